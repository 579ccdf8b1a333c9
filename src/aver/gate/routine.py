"""Which parts of a command are a workspace's daily work: its tests and builds, and what changes no file's content.

Shell commands are judged by what they do, and that leaves two effects too coarse to write rules with. `pytest` runs
code, and so does anything; `git add` writes, and so does `cat > app.py`. So of a command's effects two are told apart:

    build      instead of `execute`: a known tool does a known task (tests, builds, linters), or instead of `write`:
               a known formatter rewrites files of the workspace; and besides `arrange` where git runs hooks
    arrange    instead of `write`: directories, empty files, branches and commits are made

Both are names for what is surely known. A task that is not in the list (`make deploy`), an argument that cannot be
seen or leads out of the workspace or to something guarded, a redirection into a file: the effect keeps its name. Who
adds to the lists asks whether the task could publish, deploy, fetch, delete or start a server; if so, it stays out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from aver.gate.commands.model import Effect, Simple, Understood, Word
from aver.gate.places import ground_from, locate

__all__ = ["MEANINGS", "with_routine"]

MEANINGS = {
    "build": "builds, tests, checks or formats the workspace by a known tool",
    "arrange": "makes directories, empty files, branches or commits: no file's content",
}

_ARRANGING: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("mkdir", "touch"), ("workspace", "temporary")),
    **dict.fromkeys(("git add", "git stage", "git commit", "git switch", "git checkout"), ("workspace",)),
}
"""Where each may do so: in another repository, other hooks run."""

_RUNS_HOOKS = frozenset(("git commit", "git switch", "git checkout"))
"""Those that run hooks, which run code of the workspace."""

_FORMATTERS = frozenset(
    (
        *("ruff format", "ruff check", "black", "isort", "autopep8", "yapf", "prettier", "gofmt", "goimports"),
        *("gofumpt", "go fmt", "rustfmt", "cargo fmt", "clang-format", "shfmt", "stylua"),
    )
)

_WHOLE = frozenset(
    (
        *("pytest", "py.test", "unittest", "python -m unittest", "python -m doctest", "behave", "stestr"),
        *("jest", "vitest", "mocha", "ava", "jasmine", "karma", "tsd", "node --test"),
        *("tsc", "vue-tsc", "svelte-check", "eslint", "stylelint", "oxlint", "tslint", "xo", "npm test", "npm t"),
        *("pnpm test", "pnpm build", "pnpm lint", "yarn test", "yarn build", "yarn lint", "bun test", "bun build"),
        *("cargo build", "cargo b", "cargo test", "cargo t", "cargo check", "cargo c", "cargo clippy", "cargo bench"),
        *("cargo doc", "cargo d", "cargo nextest", "cargo fmt", "go build", "go test", "go vet"),
        *("staticcheck", "revive", "gosec", "errcheck", "ineffassign", "mypy", "dmypy"),
        *("pylint", "flake8", "prettier", "coverage report"),
        *("dotnet build", "dotnet test", "dotnet format", "swift build", "swift test"),
        *("rspec", "rubocop", "minitest", "phpunit", "phpstan", "psalm", "phpcs", "pest"),
    )
)
"""Tools, with their subcommand, that do nothing else."""

_FIRST_SAYS: Mapping[str, frozenset[str]] = {
    name: frozenset(tasks.split())
    for name, tasks in {
        "playwright": "test",
        "next": "build lint",
        "nuxt": "build typecheck",
        "vite": "build",
        "astro": "build check",
        "ng": "build test lint",
        "nx": "build test lint typecheck",
        "biome": "check lint format ci",
        "golangci-lint": "run",
        "meson": "compile",
        "rails": "test",
    }.items()
}
"""Tools whose first operand is the task."""

_SCRIPTS = frozenset(("npm", "pnpm", "yarn", "bun"))
"""Tools that run a script by name: `npm run build`."""

_GOALS = frozenset(
    (
        *("make", "gmake", "bmake", "remake", "just", "task", "rake", "ninja", "samu", "gradle", "gradlew", "mvn"),
        *("mvnw", "ant"),
    )
)
"""Tools whose operands are all tasks. Without any they do the default one."""

_TASKS = frozenset(
    (
        *("test", "tests", "check", "checks", "lint", "build", "compile", "typecheck", "types", "format", "fmt"),
        *("coverage", "verify", "package", "assemble", "docs", "doc", "all", "unit", "style"),
    )
)
_QUALIFIERS = frozenset(
    (
        *("fast", "quick", "js", "ts", "css", "py", "python", "web", "api", "server", "client", "app", "type"),
        *("debug", "dev", "prod", "production", "fix", "only", "strict", "html", "json", "changed", "affected"),
    )
)
"""What the name of a task may say besides, as in `test:unit` and `build-prod`."""

_SAYS_MORE: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("pytest", "py.test"), ("--past", "--tx", "--px", "--rsync")),
    **dict.fromkeys(("gofmt", "gofumpt", "goimports"), ("-r", "-c", "--r", "--c")),
    "dotnet": ("-t", "--t"),
    "isort": ("-a", "--a"),
    "meson": ("--n", "--v", "--x"),
    "nx": ("--runner",),
    "playwright": ("--ui",),
    "rails": ("-e", "--e"),
    "ruff": ("-o", "--o", "--cache"),
    "vitest": ("--api", "--ui", "--browser", "--open"),
}
"""Beginnings of options by which a tool publishes, serves, runs or writes what it is given. Letters count anywhere in a
cluster of them."""

_GOAL_OPTIONS: Mapping[str, str] = {
    **dict.fromkeys(
        ("make", "gmake", "bmake", "remake"),
        r"-[BbdijklnqrRsSvw]+[0-9.]*|-C.*|-O\w*|--(?:directory|jobs|debug|output-sync)(?:=.*)?|--(?:no-)?print-directory"
        r"|--(?:silent|quiet|keep-going|dry-run|just-print|always-make|trace|warn-undefined-variables)",
    ),
    **dict.fromkeys(("ninja", "samu"), r"-[jklnv]+[0-9.]*|-C.*|--(?:verbose|quiet)"),
    "just": r"-[nqv]+|--(?:dry-run|quiet|verbose|color=\w+)",
    "task": r"-[fnsv]+|--(?:force|dry|silent|verbose)",
    "rake": r"-[mnqstv]+|--(?:trace|quiet|silent|verbose|multitask)",
    **dict.fromkeys(
        ("gradle", "gradlew"),
        r"-[aimqsw]+|--(?:info|debug|stacktrace|quiet|warn|offline|continue|rerun-tasks|dry-run|profile|(?:no-)?daemon"
        r"|(?:no-)?parallel|(?:no-)?build-cache|(?:no-)?configuration-cache|console=\w+|warning-mode=\w+|tests(?:=.*)?)",
    ),
    **dict.fromkeys(
        ("mvn", "mvnw"),
        r"-[BXeqo]+|-ntp|-am|-amd|-fae|-ff|-fn|-T[0-9.]*C?|--(?:batch-mode|no-transfer-progress|quiet|offline|errors|debug)"
        r"|-D(?:skipTests|skipITs|maven\.test\.skip|failIfNoTests|(?:it\.)?test|surefire\.\w+)(?:=.*)?",
    ),
    "ant": r"-(?:quiet|verbose|debug|q|v|d|k|S)",
}
"""Options of tools that run goals, which change nothing of what those are. Many others name another file of goals."""

_TOOLS_HERE = frozenset(
    (
        *(name.partition(" ")[0] for name in (*_WHOLE, *_FORMATTERS)),
        *(*_FIRST_SAYS, *_GOALS, *_SCRIPTS),
        *("pyright", "basedpyright", "pycodestyle", "pyflakes"),
    )
)
"""Programs that may lie in the workspace itself, as in `.venv/bin/pytest`: that they run is no news then."""

_ACTIVATION = re.compile(r"(?:^|/)\.?v?env[\w.-]*/bin/activate$")
_PYTHON = re.compile(r"python[0-9.]*")
_PIECES = re.compile(r"[\s=:,;@|\"'{}()\[\]<>]+")
"""What stands between paths in one argument."""


def with_routine(understood: Understood, workspace: str) -> tuple[Effect, ...]:
    """The effects of a command, with those that are daily work under their own names."""
    if not understood.classes & {"write", "execute"}:
        return understood.effects
    named = [_named(effect, understood.commands, workspace) for effect in understood.effects]
    hooks = [Effect("build", words=one.words) for one in named if one.name == "arrange" and one.words[0] in _RUNS_HOOKS]
    return tuple(dict.fromkeys((*named, *hooks)))


def _named(effect: Effect, commands: Iterable[Simple], workspace: str) -> Effect:
    if effect.name == "write" and effect.words and not effect.classes:
        tool = effect.words[0].rpartition("/")[2]
        if tool in _ARRANGING and effect.where in _ARRANGING[tool]:
            return replace(effect, name="arrange")
        if tool in _FORMATTERS and effect.where == "workspace" and _all_stay(tool, commands, workspace):
            return replace(effect, name="build")
    runs = effect.name == "execute" and not effect.where
    if runs and (_activates(effect) or _builds(effect.target, commands, workspace)):
        return replace(effect, name="build")
    return effect


def _activates(effect: Effect) -> bool:
    """`source .venv/bin/activate`, which comes before the tests."""
    return effect.words[:1] in (("source",), (".",)) and _ACTIVATION.search(effect.target) is not None


def _builds(tool: str, commands: Iterable[Simple], workspace: str) -> bool:
    """Whether a tool, by its name or by where it lies in the workspace, does no more than known tasks in a command."""
    if tool.startswith("/"):
        # What it is told to do is an effect of its own.
        base = tool.rpartition("/")[2]
        return base in _TOOLS_HERE or _PYTHON.fullmatch(base) is not None
    if not _all_stay(tool, commands, workspace):
        return False
    return tool in _WHOLE or all(_is_known_task(call) for call in _calls_of(tool, commands))


def _all_stay(tool: str, commands: Iterable[Simple], workspace: str) -> bool:
    calls = _calls_of(tool, commands)
    return bool(calls) and all(_stays(call, workspace) for call in calls)


def _calls_of(tool: str, commands: Iterable[Simple]) -> list[Simple]:
    program = tool.partition(" ")[0]
    return [command for command in commands if command.program == program]


def _stays(call: Simple, workspace: str) -> bool:
    """Whether every argument can be seen, none leads out of the workspace, and none makes the tool do more."""
    more = _SAYS_MORE.get(call.program or "", ())
    return all(
        word.is_known and not any(_says_more(value, more) or _leads_away(value, workspace) for value in word.values)
        for word in call.arguments
    )


def _says_more(value: str, options: tuple[str, ...]) -> bool:
    if value.startswith("-") and not value.startswith("--"):
        return any(len(option) == 2 and option[1] in value for option in options)
    return value.startswith(tuple(option for option in options if len(option) > 2))


def _leads_away(value: str, workspace: str) -> bool:
    """Whether anything in an argument leads out of the workspace, or to something guarded."""
    attached = (value[2:],) if value.startswith("-") and not value.startswith("--") else ()
    return any(_is_elsewhere(piece, workspace) for text in (value, *attached) for piece in _PIECES.split(text))


def _is_elsewhere(piece: str, workspace: str) -> bool:
    if "/" not in piece and "." not in piece and not piece.startswith("~"):
        return False
    if ".." in piece.split("/") or piece.startswith("~"):
        return True
    place = locate(piece, workspace or None, ground_from(workspace, None))
    return place.where != "workspace" or bool(place.classes)


def _is_known_task(call: Simple) -> bool:
    from aver.gate.commands.options import read_arguments, spec_from
    from aver.gate.commands.tables import ROWS

    program = call.program or ""
    if program == "cmake":
        return _builds_all([word.value or "" for word in call.arguments])
    if program not in _SCRIPTS and program not in _GOALS and program not in _FIRST_SAYS:
        return False
    if program in _GOALS and not _options_are_known(call):
        return False
    posix = "" if program in _GOALS else "posix "
    operands = read_arguments(spec_from(posix + ROWS.get(program, "")), call.arguments).operands
    names = list(_task_names(operands))
    if program in _GOALS:
        return all(_is_task(name.rpartition(":")[2] if program.startswith("gradle") else name) for name in names)
    if program in _FIRST_SAYS:
        return bool(names) and names[0] in _FIRST_SAYS[program]
    if names[:1] in (["run"], ["run-script"]):
        names = names[1:]
    return bool(names) and _is_task(names[0])


def _builds_all(arguments: list[str]) -> bool:
    """`cmake --build` without a target, of which one may be `install`, and without options for whatever builds."""
    return arguments[:1] == ["--build"] and not any(one == "--" or one.startswith(("-t", "--t")) for one in arguments)


def _options_are_known(call: Simple) -> bool:
    known = re.compile(_GOAL_OPTIONS[call.program or ""])
    values = [value for word in call.arguments for value in word.values]
    return all(known.fullmatch(value) for value in values if value.startswith("-"))


def _task_names(operands: Iterable[Word]) -> Iterator[str]:
    """The operands before `--`, without options. One that may be several things is nothing that is in a list."""
    for word in operands:
        value = word.value
        if value == "--":
            return
        if value is None or not value.startswith("-"):
            yield value or "?"


def _is_task(name: str) -> bool:
    parts = [part for part in re.split(r"[:_-]+", name.lower()) if part]
    return any(part in _TASKS for part in parts) and all(part in _TASKS or part in _QUALIFIERS for part in parts)

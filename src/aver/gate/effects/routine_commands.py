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

from aver.gate.effects.findings import Effect
from aver.gate.effects.paths import PathRoots, locate_path
from aver.gate.shell.model import CommandAnalysis, ResolvedCommand, Word

__all__ = ["ROUTINE_EFFECTS", "mark_routine_effects"]

ROUTINE_EFFECTS = {
    "build": "builds, tests, checks or formats the workspace by a known tool",
    "arrange": "makes directories, empty files, branches or commits: no file's content",
}

_ARRANGE_PLACES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("mkdir", "touch"), ("workspace", "temporary")),
    **dict.fromkeys(("git add", "git stage", "git commit", "git switch", "git checkout"), ("workspace",)),
}
"""Where each may do so: in another repository, other hooks run."""

_HOOK_RUNNERS = frozenset(("git commit", "git switch", "git checkout"))
"""Those that run hooks, which run code of the workspace."""

_FORMATTERS = frozenset(
    (
        *("ruff format", "ruff check", "black", "isort", "autopep8", "yapf", "prettier", "gofmt", "goimports"),
        *("gofumpt", "go fmt", "rustfmt", "cargo fmt", "clang-format", "shfmt", "stylua"),
    )
)

_BUILD_TOOLS = frozenset(
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

_TASKS_BY_TOOL: Mapping[str, frozenset[str]] = {
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

_SCRIPT_RUNNERS = frozenset(("npm", "pnpm", "yarn", "bun"))
"""Tools that run a script by name: `npm run build`."""

_GOAL_RUNNERS = frozenset(
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

_RISKY_OPTIONS: Mapping[str, tuple[str, ...]] = {
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

_WORKSPACE_TOOLS = frozenset(
    (
        *(name.partition(" ")[0] for name in (*_BUILD_TOOLS, *_FORMATTERS)),
        *(*_TASKS_BY_TOOL, *_GOAL_RUNNERS, *_SCRIPT_RUNNERS),
        *("pyright", "basedpyright", "pycodestyle", "pyflakes"),
    )
)
"""Programs that may lie in the workspace itself, as in `.venv/bin/pytest`: that they run is no news then."""

_VENV_ACTIVATE = re.compile(r"(?:^|/)\.?v?env[\w.-]*/bin/activate$")
_PYTHON = re.compile(r"python[0-9.]*")
_PATH_SEPARATORS = re.compile(r"[\s=:,;@|\"'{}()\[\]<>]+")
"""What stands between paths in one argument."""


def mark_routine_effects(understood: CommandAnalysis, roots: PathRoots) -> tuple[Effect, ...]:
    """The effects of a command, with those that are daily work under their own names."""
    if not understood.classes & {"write", "execute"}:
        return understood.effects
    named = [_classify_effect(effect, understood.commands, roots) for effect in understood.effects]
    hooks = [
        Effect("build", words=one.words) for one in named if one.name == "arrange" and one.words[0] in _HOOK_RUNNERS
    ]
    return tuple(dict.fromkeys((*named, *hooks)))


def _classify_effect(effect: Effect, commands: Iterable[ResolvedCommand], roots: PathRoots) -> Effect:
    if effect.name == "write" and effect.words and not effect.classes:
        tool = effect.words[0].rpartition("/")[2]
        if tool in _ARRANGE_PLACES and effect.where in _ARRANGE_PLACES[tool]:
            return replace(effect, name="arrange")
        if tool in _FORMATTERS and effect.where == "workspace" and _is_tool_contained(tool, commands, roots):
            return replace(effect, name="build")
    runs = effect.name == "execute" and not effect.where
    if runs and (_is_venv_activation(effect) or _is_build(effect.target, commands, roots)):
        return replace(effect, name="build")
    return effect


def _is_venv_activation(effect: Effect) -> bool:
    """`source .venv/bin/activate`, which comes before the tests."""
    return effect.words[:1] in (("source",), (".",)) and _VENV_ACTIVATE.search(effect.target) is not None


def _is_build(tool: str, commands: Iterable[ResolvedCommand], roots: PathRoots) -> bool:
    """Whether a tool, by its name or by where it lies in the workspace, does no more than known tasks in a command."""
    if tool.startswith("/"):
        # What it is told to do is an effect of its own.
        base = tool.rpartition("/")[2]
        return base in _WORKSPACE_TOOLS or _PYTHON.fullmatch(base) is not None
    if not _is_tool_contained(tool, commands, roots):
        return False
    return tool in _BUILD_TOOLS or all(_is_known_task_call(call) for call in _find_calls(tool, commands))


def _is_tool_contained(tool: str, commands: Iterable[ResolvedCommand], roots: PathRoots) -> bool:
    calls = _find_calls(tool, commands)
    return bool(calls) and all(_is_call_contained(call, roots) for call in calls)


def _find_calls(tool: str, commands: Iterable[ResolvedCommand]) -> list[ResolvedCommand]:
    program = tool.partition(" ")[0]
    return [command for command in commands if command.program == program]


def _is_call_contained(call: ResolvedCommand, roots: PathRoots) -> bool:
    """Whether every argument can be seen, none leads out of the workspace, and none makes the tool do more."""
    more = _RISKY_OPTIONS.get(call.program or "", ())
    return all(
        word.is_known
        and not any(_has_risky_option(value, more) or _has_outside_path(value, roots) for value in word.values)
        for word in call.arguments
    )


def _has_risky_option(value: str, options: tuple[str, ...]) -> bool:
    if value.startswith("-") and not value.startswith("--"):
        return any(len(option) == 2 and option[1] in value for option in options)
    return value.startswith(tuple(option for option in options if len(option) > 2))


def _has_outside_path(value: str, roots: PathRoots) -> bool:
    """Whether anything in an argument leads out of the workspace, or to something guarded."""
    attached = (value[2:],) if value.startswith("-") and not value.startswith("--") else ()
    return any(
        _is_outside_or_guarded(piece, roots) for text in (value, *attached) for piece in _PATH_SEPARATORS.split(text)
    )


def _is_outside_or_guarded(piece: str, roots: PathRoots) -> bool:
    if "/" not in piece and "." not in piece and not piece.startswith("~"):
        return False
    if ".." in piece.split("/") or piece.startswith("~"):
        return True
    place = locate_path(piece, roots.workspace or None, roots)
    return place.where != "workspace" or bool(place.classes)


def _is_known_task_call(call: ResolvedCommand) -> bool:
    from aver.gate.shell.programs.spec import parse_spec, read_arguments
    from aver.gate.shell.programs.tables import ROWS

    program = call.program or ""
    if program == "cmake":
        return _is_plain_cmake_build([word.value or "" for word in call.arguments])
    if program not in _SCRIPT_RUNNERS and program not in _GOAL_RUNNERS and program not in _TASKS_BY_TOOL:
        return False
    if program in _GOAL_RUNNERS and not _has_known_options(call):
        return False
    posix = "" if program in _GOAL_RUNNERS else "posix "
    operands = read_arguments(parse_spec(posix + ROWS.get(program, "")), call.arguments).operands
    names = list(_task_names(operands))
    if program in _GOAL_RUNNERS:
        return all(_is_task_name(name.rpartition(":")[2] if program.startswith("gradle") else name) for name in names)
    if program in _TASKS_BY_TOOL:
        return bool(names) and names[0] in _TASKS_BY_TOOL[program]
    if names[:1] in (["run"], ["run-script"]):
        names = names[1:]
    return bool(names) and _is_task_name(names[0])


def _is_plain_cmake_build(arguments: list[str]) -> bool:
    """`cmake --build` without a target, of which one may be `install`, and without options for whatever builds."""
    return arguments[:1] == ["--build"] and not any(one == "--" or one.startswith(("-t", "--t")) for one in arguments)


def _has_known_options(call: ResolvedCommand) -> bool:
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


def _is_task_name(name: str) -> bool:
    parts = [part for part in re.split(r"[:_-]+", name.lower()) if part]
    return any(part in _TASKS for part in parts) and all(part in _TASKS or part in _QUALIFIERS for part in parts)

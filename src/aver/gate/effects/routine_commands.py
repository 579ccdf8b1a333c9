"""Routine effects of commands: tests and builds of the workspace, and changes that touch no file's content.

For policy rules two effects of commands are too coarse. `pytest` has the effect `execute`, like every unknown program.
`git add` has the effect `write`, like `cat > app.py`. Aver therefore gives routine cases names of their own:

    build      instead of `execute`: a known tool does a known task (tests, builds, linters);
               instead of `write`: a known formatter rewrites files of the workspace;
               beside `arrange`: git runs hooks
    arrange    instead of `write`: the command makes directories, empty files, branches or commits
    scratch    instead of `write`: the output of a build, or a file in a temporary directory

Only certain cases get these names. The effect keeps its old name for a task that is not in the lists (`make deploy`),
an unknown argument, an argument that leads out of the workspace or to something guarded, and a redirection into a file.
Before you add a tool or task, ask whether it could publish, deploy, fetch, delete or start a server. If it could, leave
it out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from aver.gate.effects.code_scan.language import find_language
from aver.gate.effects.findings import Effect
from aver.gate.effects.output_options import list_named_outputs
from aver.gate.effects.paths import PathRoots, locate_path
from aver.gate.shell.environment import SEARCH_PATHS
from aver.gate.shell.model import CommandAnalysis, ResolvedCommand
from aver.lazy_pattern import lazy_pattern

ROUTINE_EFFECTS = {
    "build": "builds, tests, checks or formats the workspace by a known tool",
    "arrange": "makes directories, empty files, branches or commits: no file's content",
    "scratch": "writes build output or temporary files, which can be made again",
    "create": "beside `write`: makes only new source or text files, and shows their content",
    "seen": "beside `create`: all lines of the new files were looked at, and reach nowhere",
}

_ARRANGE_PLACES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("mkdir", "touch"), ("workspace", "temporary")),
    **dict.fromkeys(("git add", "git stage", "git commit", "git switch", "git checkout"), ("workspace",)),
}
"""The zones in which each counts as routine. In another repository, other hooks run."""

_HOOK_RUNNERS = frozenset(("git commit", "git switch", "git checkout"))
"""Commands that run git hooks, which are code of the workspace."""

_FORMATTERS = frozenset(
    (
        *("ruff format", "ruff check", "black", "isort", "autopep8", "yapf", "prettier", "gofmt", "goimports"),
        *("gofumpt", "go fmt", "rustfmt", "cargo fmt", "clang-format", "shfmt", "stylua"),
    )
)

_OUTPUT_TOOLS = frozenset(
    (
        *("go build", "go test", "gcc", "g++", "cc", "c++", "clang", "clang++", "rustc", "ld", "ar", "nasm"),
        *("cargo build", "cargo test", "cargo doc", "javac", "tsc", "esbuild", "protoc", "pytest", "py.test"),
        *("jest", "vitest", "vite", "next", "nuxt", "astro", "vitepress", "mkdocs"),
        *("coverage html", "coverage xml", "coverage json", "coverage lcov", "cmake"),
    )
)
"""Tools whose only writes are those of their output options: programs, objects, reports."""

_PROGRAM_MAKERS = frozenset(("go build", "gcc", "g++", "cc", "c++", "clang", "clang++", "rustc", "ld"))
"""Tools whose output is one program. For the others, a name without an ending is a directory, such as `src`."""

_REPORT_ENDINGS = frozenset(["out", "prof", "cov", "coverage", "log", "lcov", "info", "sarif"])
"""Endings of reports, which no source and no setting has."""

_REPORT_NAMES = frozenset(
    ["coverage.xml", "coverage.json", "junit.xml", "report.xml", "results.xml", "test-results.xml"]
)
_OUTPUT_DIRECTORIES = frozenset(["dist", "build", "out", "target", "coverage", "htmlcov", "_build"])
"""Directories at the top of the workspace that a build makes, and makes again."""

_BUILD_TOOLS = frozenset(
    (
        *("pytest", "py.test", "unittest", "python -m unittest", "python -m doctest", "behave", "stestr"),
        *("jest", "vitest", "mocha", "ava", "jasmine", "karma", "tsd", "node --test"),
        *("tsc", "vue-tsc", "svelte-check", "eslint", "stylelint", "oxlint", "tslint", "xo", "npm test", "npm t"),
        *("pnpm test", "pnpm build", "pnpm lint", "yarn test", "yarn build", "yarn lint", "bun test", "bun build"),
        *("cargo build", "cargo b", "cargo test", "cargo t", "cargo check", "cargo c", "cargo clippy", "cargo bench"),
        *("cargo doc", "cargo d", "cargo nextest", "cargo fmt", "go build", "go test", "go vet"),
        *("staticcheck", "revive", "gosec", "errcheck", "ineffassign", "mypy", "dmypy"),
        *("pylint", "flake8", "prettier", "coverage report", "coverage html", "coverage xml", "coverage json"),
        *("coverage lcov", "coverage combine"),
        *("dotnet build", "dotnet test", "dotnet format", "swift build", "swift test"),
        *("rspec", "rubocop", "minitest", "phpunit", "phpstan", "psalm", "phpcs", "pest"),
        *("sphinx-build", "rollup", "tsup", "uvu", "standard"),
    )
)
"""Tools, with their subcommand, that only build, test or check."""

_TASKS_BY_TOOL: Mapping[str, frozenset[str]] = {
    name: frozenset(tasks.split())
    for name, tasks in {
        "playwright": "test",
        "next": "build lint",
        "nuxt": "build typecheck dev",
        "vite": "build dev serve preview",
        "astro": "build check dev preview",
        "ng": "build test lint",
        "nx": "build test lint typecheck",
        "biome": "check lint format ci",
        "golangci-lint": "run",
        "meson": "compile",
        "rails": "test",
        "grunt": "test lint build jshint eslint",
        "gulp": "test lint build",
        "vitepress": "build",
        "docusaurus": "build",
        "mkdocs": "build serve",
        "parcel": "build",
        "webpack": "build b bundle",
    }.items()
}
"""Tools whose first operand is the task."""

_TASKS_BY_SUBCOMMAND: Mapping[str, frozenset[str]] = {
    "cargo hack": frozenset(("check", "test", "build", "clippy")),
    "cargo miri": frozenset(("test", "nextest")),
}
"""Subcommands whose own first operand is the task."""

_DEFAULT_TASKS = frozenset(("webpack", "vite"))
"""Tools of `_TASKS_BY_TOOL` that build, or serve this machine, if they are given no task."""

_INSTALLING_RUNNERS = frozenset(("tox", "nox", "pre-commit"))
"""Tools that test or check in an environment of their own, and install there what settings of the workspace name."""

_RUN_WORDS = frozenset(
    (
        "run",
        "r",
        "p",
        "run-parallel",
        "-p",
        "auto",
        "-q",
        "-v",
        "-vv",
        "--parallel",
        "-R",
        "--reuse-existing-virtualenvs",
    )
)
_PRE_COMMIT_WORD = lazy_pattern(r"-a|-v|--all-files|--verbose|--show-diff-on-failure|--color=\w+|\w[\w-]*")
_PYTHON_TASK = lazy_pattern(r"(?:py|pypy|python)[0-9.]*")
_PYTHON_PART = lazy_pattern(r"\b(?:py|pypy|python)[0-9.]+\b|(?<=-)[0-9.]+\b")

_SCRIPT_RUNNERS = frozenset(("npm", "pnpm", "yarn", "bun"))
"""Tools that run a script by name: `npm run build`."""

_SCRIPT_LISTS = frozenset(("run-s", "run-p", "npm-run-all"))
"""Tools that run several scripts by their names, or by patterns for them: `run-s lint test:*`."""

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
        *("coverage", "verify", "package", "assemble", "docs", "doc", "all", "unit", "style", "spellcheck"),
        *("spelling", "bench", "benchmark", "eslint", "prettier", "mypy", "ruff", "vet", "clippy", "tsc", "e2e"),
        *("unittest", "unittests", "doctest", "black", "isort", "flake8", "pylint", "pytest", "jest", "vitest"),
        *("stylelint", "golint", "codespell", "shellcheck", "typing", "bundle", "spec", "specs", "html"),
        *("generate", "codegen", "proto", "protos"),
    )
)
_QUALIFIERS = frozenset(
    (
        *("fast", "quick", "js", "ts", "css", "py", "python", "web", "api", "server", "client", "app", "type"),
        *("debug", "dev", "prod", "production", "fix", "only", "strict", "html", "json", "changed", "affected"),
        *("ui", "integration", "core", "lib", "go", "rust", "node", "browser", "esm", "cjs", "race", "short", "smoke"),
        *("functional", "website", "ssr", "full", "local"),
    )
)
"""Further parts of the name of a task, as in `test:fast` and `build-prod`."""

_CMAKE_WORD = lazy_pattern(r"-[BSGD].*|-Wno-dev|-Wdev|--fresh|--preset=?|(?!-).*", re.DOTALL)
_CTEST_WORD = lazy_pattern(
    r"--test-dir(?:=.*)?|--output-on-failure|--progress|--verbose|--no-tests=\w+|--schedule-random|--parallel|-[VjCREL]\d*|-VV"
    r"|--(?:timeout|build-config|tests-regex|label-regex)(?:=.*)?|(?!-).*",
    re.DOTALL,
)
_MONOREPO_OPTION = lazy_pattern(
    r"--(?:filter|scope|ignore|since|concurrency|output-logs|log-order)=[\w@/.*!^{}\[\]-]+"
    r"|--(?:force|continue|no-cache|stream|parallel|no-bail|sort|no-sort)"
)
_COVERAGE_OPTION = lazy_pattern(
    r"-[paL]+|--(?:branch|append|parallel-mode|timid)|--(?:source|source-pkg|omit|include|concurrency|context)=.*",
    re.DOTALL,
)
_TEST_WORD = lazy_pattern(r"-[qvxslrfb]+|-ra|--tb=\w+|--maxfail=[0-9]+|discover|(?![-@])[\w./:\[\]-]+")
"""Words that make the tools above do nothing but configure, test or measure the workspace."""

_SERVER_TASKS = frozenset(("dev", "watch", "preview", "storybook"))
"""Scripts of a package that build, and serve this machine or build again after each change. A goal of make with such a
name mostly installs something."""

_RISKY_OPTIONS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("pytest", "py.test"), ("--past", "--tx", "--px", "--rsync", "--baset")),
    **dict.fromkeys(("gofmt", "gofumpt", "goimports"), ("-r", "-c", "--r", "--c")),
    "dotnet": ("-t", "--t"),
    "isort": ("-a", "--a"),
    "meson": ("--n", "--v", "--x"),
    "nx": ("--runner",),
    "playwright": ("--ui",),
    "prettier": ("--plugin",),
    "rails": ("-e", "--e"),
    "ruff": ("-o", "--o", "--cache"),
    "vitest": ("--api", "--ui", "--browser", "--open"),
}
"""Beginnings of options that make a tool publish, serve, run or write something else. A single letter counts anywhere
in a group such as `-xvo`."""

_READ_TEXTS = frozenset(
    (
        *("pytest", "py.test", "python", "unittest", "coverage", "mypy", "dmypy", "pylint", "flake8", "prettier"),
        *("ruff", "black", "isort", "autopep8", "yapf", "biome", "mkdocs", "git"),
    )
)
"""Tools that read a text that they are given. Others run it, such as `mocha notes.txt` and `rspec -r ./notes.txt`."""

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
"""Harmless options of tools that run goals. Many other options name another file of goals."""

_WORKSPACE_TOOLS = frozenset(
    (
        *(name.partition(" ")[0] for name in (*_BUILD_TOOLS, *_FORMATTERS)),
        *(*_TASKS_BY_TOOL, *_GOAL_RUNNERS, *_SCRIPT_RUNNERS),
        *("pyright", "basedpyright", "pycodestyle", "pyflakes"),
    )
)
"""Programs that may lie in the workspace, as in `.venv/bin/pytest`. Running them from there is routine."""

_VENV_ACTIVATE = lazy_pattern(r"(?:^|/)\.?v?env[\w.-]*/bin/activate$")
_VENV_DIRECTORY = lazy_pattern(r"/(?:\.?venv[\w-]*|env)$")
_PYTHON = lazy_pattern(r"python[0-9.]*")
_PATH_SEPARATORS = lazy_pattern(r"[\s=:,;@|\"'{}()\[\]<>]+")
"""Characters that separate paths inside one argument."""


def mark_routine_effects(analysis: CommandAnalysis, roots: PathRoots) -> tuple[Effect, ...]:
    """Return the effects of a command, with routine effects under their own names."""
    if not analysis.classes & {"write", "execute"}:
        return analysis.effects
    # A build may put its output into a temporary directory, and nothing else of it may lie there.
    outputs = frozenset(e.target for e in analysis.effects if e.name == "write" and e.where == "temporary")
    named = [_name_effect(effect, analysis.commands, roots, outputs) for effect in analysis.effects]
    # git runs the repository's hooks for these, and hooks are code of the workspace.
    hooks = [
        Effect("build", words=effect.words)
        for effect in named
        if effect.name == "arrange" and effect.words[0] in _HOOK_RUNNERS
    ]
    return tuple(dict.fromkeys((*named, *hooks)))


def mark_scratch_files(effects: tuple[Effect, ...]) -> tuple[Effect, ...]:
    """Return the effects, with writes into temporary directories under the name `scratch`."""
    if not any(effect.name == "write" and effect.where == "temporary" for effect in effects):
        return effects
    return tuple(
        replace(effect, name="scratch")
        if effect.name == "write" and effect.where == "temporary" and not effect.classes
        else effect
        for effect in effects
    )


def _is_build_output(tool: str, path: str, roots: PathRoots) -> bool:
    """Whether what a tool writes is no source, text or setting by its name, so that a build may replace it."""
    from aver.gate.risk.features import file_kind

    inner = path.removeprefix(roots.workspace.rstrip("/") + "/")
    name = inner.rpartition("/")[2].lower()
    return (
        (file_kind(inner) in ("unknown", "vendored") and ("." in name or tool in _PROGRAM_MAKERS))
        or name.rpartition(".")[2] in _REPORT_ENDINGS
        or name in _REPORT_NAMES
        or inner.partition("/")[0] in _OUTPUT_DIRECTORIES
    )


def _name_effect(
    effect: Effect, commands: tuple[ResolvedCommand, ...], roots: PathRoots, outputs: frozenset[str]
) -> Effect:
    """Return an effect under the name of the routine case that it is; as it is for any other."""
    if effect.name == "write" and effect.words and not effect.classes:
        tool = effect.words[0].rpartition("/")[2]
        if tool in _ARRANGE_PLACES and effect.where in _ARRANGE_PLACES[tool]:
            return replace(effect, name="arrange")
        if _PYTHON.fullmatch(tool) and _VENV_DIRECTORY.search(effect.target) and all(map(_makes_venv, commands)):
            return replace(effect, name="arrange")
        if tool in _OUTPUT_TOOLS and effect.where == "workspace" and _is_build_output(tool, effect.target, roots):
            return replace(effect, name="scratch")
        if tool in _FORMATTERS and effect.where == "workspace" and _are_calls_contained(tool, commands, roots, outputs):
            return replace(effect, name="build")
    if effect.name != "execute" or effect.where:
        return effect
    # The target is the name of a program, or its path in the workspace.
    tool, base = effect.target, effect.target.rpartition("/")[2]
    if not tool and effect.words and effect.words[0].partition("=")[0] in SEARCH_PATHS:
        is_build = True  # `PYTHONPATH=src`; another directory is unclear as well.
    elif effect.words[:1] in (("source",), (".",)) and _VENV_ACTIVATE.search(tool) is not None:
        is_build = True  # `source .venv/bin/activate`
    elif tool.startswith("/"):
        # Only that the program lies in the workspace. Its task is another effect, which is judged separately.
        is_build = base in _WORKSPACE_TOOLS or _PYTHON.fullmatch(base) is not None
    else:
        program = tool.partition(" ")[0]
        calls = [command for command in commands if command.program == program]
        is_contained = _are_calls_contained(tool, commands, roots, outputs)
        if is_contained and tool in _INSTALLING_RUNNERS and all(map(_is_known_run, calls)):
            return replace(effect, name="locked-install")
        is_build = is_contained and (
            tool in _BUILD_TOOLS
            or (tool == "coverage run" and all(_is_known_coverage_run(call) for call in calls))
            or _is_known_subcommand_task(tool, calls)
            or all(_is_known_task_call(call) for call in calls)
        )
    return replace(effect, name="build") if is_build else effect


def _makes_venv(call: ResolvedCommand) -> bool:
    """Whether a call, if it is one of Python, makes an environment by `-m venv` and does nothing else."""
    if call.program is None or not _PYTHON.fullmatch(call.program):
        return True
    return [word.value for word in call.arguments[:2]] == ["-m", "venv"]


def _are_calls_contained(
    tool: str, commands: tuple[ResolvedCommand, ...], roots: PathRoots, outputs: frozenset[str]
) -> bool:
    """Whether a tool is called, and its arguments keep each call in the workspace and to its task.

    Every argument must be known, none may make the tool do more, and none may lead out of the workspace but to
    `outputs`, the temporary files that the tool writes.
    """
    program = tool.partition(" ")[0]
    calls = [command for command in commands if command.program == program]
    for call in calls:
        if any(
            not _is_build_output(tool, place.path, roots)
            for value in list_named_outputs([word.value or "" for word in call.arguments])
            if (place := locate_path(value, roots.workspace or None, roots)).matters and place.path not in outputs
        ):
            return False  # A build that writes over sources is not contained.
        options = _RISKY_OPTIONS.get(call.program or "", ())
        letters = [option[1] for option in options if len(option) == 2]
        beginnings = tuple(option for option in options if len(option) > 2)
        for word in call.arguments:
            if not word.is_known:
                return False
            for value in word.values:
                is_group = value.startswith("-") and not value.startswith("--")
                if is_group and any(letter in value for letter in letters):
                    return False
                if not is_group and value.startswith(beginnings):
                    return False
                # An option may have a path attached to it, as in `-C/tmp` and `--root=/tmp`.
                pieces = _PATH_SEPARATORS.split(value) + (_PATH_SEPARATORS.split(value[2:]) if is_group else [])
                if program not in _READ_TEXTS and any(find_language(piece) in ("prose", "data") for piece in pieces):
                    return False  # What such a file holds was never looked into as code.
                for piece in pieces:
                    # Only these can be paths. One must not lead out of the workspace, or to something guarded.
                    if "/" not in piece and "." not in piece and not piece.startswith("~"):
                        continue
                    if ".." in piece.split("/") or piece.startswith("~"):
                        return False
                    place = locate_path(piece, roots.workspace or None, roots)
                    if not place.matters or place.path in outputs:
                        continue
                    if place.where != "workspace" or place.classes:
                        return False
    return bool(calls)


def _is_known_coverage_run(call: ResolvedCommand) -> bool:
    """Whether a call of coverage runs the tests, with plain arguments: `coverage run -m pytest tests`."""
    words = [word.value or "-?" for word in call.arguments]
    if words[:1] != ["run"] or "-m" not in words:
        return False
    at = words.index("-m")
    return (
        all(map(_COVERAGE_OPTION.fullmatch, words[1:at]))
        and words[at + 1 : at + 2] in (["pytest"], ["unittest"])
        and all(map(_TEST_WORD.fullmatch, words[at + 2 :]))
    )


def _is_known_run(call: ResolvedCommand) -> bool:
    """Whether a call of tox, nox or pre-commit names only known tasks, and no option that is not listed."""
    words = [word.value or "?" for word in call.arguments]
    if call.program == "pre-commit":
        return words[:1] == ["run"] and all(_PRE_COMMIT_WORD.fullmatch(word) for word in words[1:])
    names: list[str] = []
    rest = iter(words)
    for word in rest:
        if word in ("-e", "-s", "--session", "--sessions"):
            names += next(rest, "?").split(",")
        elif word not in _RUN_WORDS:
            return False
    return all(_PYTHON_TASK.fullmatch(name) or is_task_name(_PYTHON_PART.sub("unit", name)) for name in names)


def _is_known_subcommand_task(tool: str, calls: list[ResolvedCommand]) -> bool:
    """Whether each call names a known task right after the subcommand: `cargo hack test --each-feature`."""
    tasks = _TASKS_BY_SUBCOMMAND.get(tool, frozenset())
    values = [[word.value or "?" for word in call.arguments] for call in calls]
    own = [words[1:] for words in values if words[:1] == [tool.partition(" ")[2]]]
    return bool(own) and all(words[:1] and words[0] in tasks for words in own)


def _is_known_task_call(call: ResolvedCommand) -> bool:
    """Whether a call of a runner names only known tasks."""
    from aver.gate.shell.programs.spec import parse_spec, read_arguments
    from aver.gate.shell.programs.tables import ROWS

    program = call.program or ""
    arguments = [word.value or "" for word in call.arguments]
    if program == "cmake":
        if arguments[:1] == ["--build"]:
            # Without a target, which could be `install`, and without options for the builder.
            return not any(word == "--" or word.startswith(("-t", "--t")) for word in arguments)
        # `cmake -S . -B build` runs the workspace's own description of its build.
        return any(word.startswith("-B") for word in arguments) and all(map(_CMAKE_WORD.fullmatch, arguments))
    if program == "ctest":
        return all(map(_CTEST_WORD.fullmatch, arguments))
    if program in ("turbo", "lerna"):
        tasks = [word for word in arguments if not word.startswith("-")]
        options = [word for word in arguments if word.startswith("-")]
        tasks = tasks[1:] if tasks[:1] == ["run"] else tasks if program == "turbo" else []
        return bool(tasks) and all(map(is_script_name, tasks)) and all(map(_MONOREPO_OPTION.fullmatch, options))
    if program in _SCRIPT_LISTS:
        given = read_arguments(parse_spec(ROWS[program]), call.arguments)
        listed = [word.value or "?" for word in given.operands]
        return bool(listed) and not given.unlisted and all(is_task_name(re.sub(r":\*{1,2}$", "", n)) for n in listed)
    if program not in _SCRIPT_RUNNERS and program not in _GOAL_RUNNERS and program not in _TASKS_BY_TOOL:
        return False
    if program in _GOAL_RUNNERS:
        known = re.compile(_GOAL_OPTIONS[program])
        values = [value for word in call.arguments for value in word.values]
        if not all(known.fullmatch(value) for value in values if value.startswith("-")):
            return False
    # Goals may come after options and between them. Other runners read nothing after the name of the task.
    posix = "" if program in _GOAL_RUNNERS else "posix "
    names: list[str] = []
    for word in read_arguments(parse_spec(posix + ROWS.get(program, "")), call.arguments).operands:
        if word.value == "--":
            break
        if word.value is None or not word.value.startswith("-"):
            names.append(word.value or "?")  # An unknown operand becomes a name that is in no list.
    if program in _GOAL_RUNNERS:
        return all(is_task_name(name.rpartition(":")[2] if program.startswith("gradle") else name) for name in names)
    if program in _TASKS_BY_TOOL:
        return names[0] in _TASKS_BY_TOOL[program] if names else program in _DEFAULT_TASKS
    if names[:1] in (["run"], ["run-script"]):
        names = names[1:]
    return bool(names) and is_script_name(names[0])


def is_script_name(name: str) -> bool:
    """Whether the name of a package's script says that it builds, tests, checks or serves this machine: `dev:web`."""
    parts = [part for part in re.split(r"[:_-]+", name.lower()) if part]
    serves = not _SERVER_TASKS.isdisjoint(parts) and _SERVER_TASKS.union(_TASKS, _QUALIFIERS).issuperset(parts)
    return serves or is_task_name(name)


def is_task_name(name: str) -> bool:
    """Whether the name of a script or a goal says that it builds, tests or checks: `test`, `lint:js`, `build-prod`."""
    parts = [part for part in re.split(r"[:_-]+", name.lower()) if part]
    return any(part in _TASKS for part in parts) and all(part in _TASKS or part in _QUALIFIERS for part in parts)

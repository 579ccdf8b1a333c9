"""Judges an invocation by what Aver knows about its program: a handler, or a line of a table.

1. `judge_invocation` finds the program. The order is that of bash: first functions of the script, then programs. A path
   counts as a known program only if it lies in a directory of programs, such as `/usr/bin`. Of a file elsewhere Aver
   knows nothing, even if it has the name of a known program.
2. A program with a handler is judged by the handler. A program with subcommands (`git`, `cargo`, `npm`, `docker`) is
   judged by the line of its subcommand, and every other program by its own line.
3. `apply_arguments` carries out a line. Handlers call it as well.
"""

from __future__ import annotations

import re
from dataclasses import replace

from aver.gate.effects.findings import EFFECTS
from aver.gate.effects.paths import UNKNOWN_LOCATION, PathLocation, PathRoots, locate_path
from aver.gate.effects.routine_commands import is_script_name
from aver.gate.shell.invocation import Invocation
from aver.gate.shell.model import ResolvedCommand, StatesAfter, Word, merge_states
from aver.gate.shell.parser.grammar import RESERVED_WORDS
from aver.gate.shell.programs.handlers import HANDLERS, OPEN_PROGRAMS, find_handler
from aver.gate.shell.programs.spec import ParsedArguments, ProgramSpec, parse_spec, read_arguments
from aver.gate.shell.programs.tables import ROWS, find_locked_install, has_subcommands
from aver.gate.shell.programs.verbs import apply_verb
from aver.lazy_pattern import lazy_pattern

_PROGRAM_DIRECTORIES = frozenset(
    ("/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/opt/homebrew/bin", "/snap/bin")
)
_WORKSPACE_TOOLS = lazy_pattern(r"(?:^|.*/)(?:\.?v?env[\w.-]*/bin|node_modules/\.bin|vendor/bin)$")
_LOW_RISK_DIRECTORY = lazy_pattern(
    r"(?:.*/)?(?:tests?|specs?|__tests__|testing|testdata|fixtures|docs?|examples?|samples?|benchmarks?)(?:/.*)?",
    re.IGNORECASE,
)
"""Directories where files may be written with less care. No person keeps the tools of a project there."""
_WRAPPER_SCRIPTS = frozenset(("gradlew", "mvnw"))
"""Scripts that Gradle and Maven put into every project."""
_VERSIONED_NAME = lazy_pattern(
    r"(python|pip|pypy|perl|ruby|php|lua|node|gcc|g\+\+|clang|clang\+\+|tclsh)-?[0-9][0-9.]*"
)
_PROGRAM_NAME = lazy_pattern(r"[A-Za-z0-9_.+@:%,\[-]+")
_CHANGING_VERBS = ("edit", "write", "delete")
"""If options give the operands different verbs, one of these wins over the others."""
_VERSION_OR_HELP = frozenset(("--version", "--help", "-V"))
_SHORT_VERSION = frozenset(("npm", "pnpm", "yarn", "bun", "npx"))
"""Programs that only print their version for `-v`. For others it means more output."""
_HELP_WORDS = frozenset(("version", "help"))
_HELP_PROGRAMS = frozenset(
    (
        *("git", "go", "cargo", "docker", "podman", "kubectl", "helm", "terraform", "tofu", "gh", "uv", "pip", "ruff"),
        *("golangci-lint", "rustup", "brew", "minikube", "kind", "istioctl", "hugo", "buf", "sqlc"),
    )
)
"""Programs with a subcommand `help` or `version` that only prints. To others the word is a file or a package."""
_HELP_BELOW_PROGRAMS = frozenset(
    (
        *("git", "docker", "podman", "gh", "kubectl", "npm", "pip", "uv", "poetry", "cargo", "go", "terraform", "tofu"),
        *("ruff", "systemctl", "brew", "conda", "dotnet", "rustup"),
    )
)
"""Programs that answer `--help` after any subcommand. Others hand it on to what they run (`yarn start --help`)."""

_TOOLCHAIN = lazy_pattern(r"\+(?:stable|beta|nightly(?:-[0-9-]+)?|[0-9]+\.[0-9]+(?:\.[0-9]+)?)")
"""A toolchain of Rust that is installed: `cargo +nightly fmt`."""
_EDITABLE = lazy_pattern(r"\.(?:/)?(?:\[[\w, -]*\])?")
"""The workspace itself as a package: `.` and `.[dev]`."""
_INSTALLS_PACKAGES = frozenset(("pip install", "uv pip install"))
_RUNS_CODE = ("execute", "locked-install")
"""Effects of programs that run code of the workspace."""

NAME_WORDS_MAX = 3
"""Words of a subcommand's name: `docker compose up`."""


def judge_invocation(call: Invocation) -> StatesAfter:
    """Resolve the program of an invocation and judge it. Returns the states after it."""
    program = _resolve_program(call)
    call.program = program or ""
    command = ResolvedCommand(program, call.words, call.via, call.inside, call.assignments, call.redirects)
    # Each command is listed, even if nothing is known about it.
    if not call.report.add_command(command) or program is None:
        return call.state, call.state
    if not _may_run_function(call, program):
        return _judge_program(call)
    after = call.walk.judge_function_call(call)
    if call.walk.is_surely_function(program) and not is_known_program(program):
        return after
    # The function may not exist at this place. Then the program of the same name runs, so both are judged.
    others = _judge_program(call)
    return merge_states(after[0], others[0]), merge_states(after[1], others[1])


def _judge_program(call: Invocation) -> StatesAfter:
    """Judge a program by its handler, or by its line of a table."""
    unchanged: StatesAfter = (call.state, call.state)
    program = call.program
    # A handler comes before a line: some programs have both, and the handler uses the line.
    handler = find_handler(program)
    if handler is not None:
        call.report.has_open_parts |= program in OPEN_PROGRAMS
        return handler(call) or unchanged
    if is_version_or_help(call):
        return unchanged
    if has_subcommands(program):
        judge_subcommand(call)
    elif program in ROWS:
        apply_spec(call, parse_spec(ROWS[program]))
    else:
        call.report_effect("execute", target=program)
        call.report_unclear("unknown-program", f"{program} is not in the tables")
    return unchanged


def _may_run_function(call: Invocation, program: str) -> bool:
    """Whether a name may run a function of the script. A path never does, and neither does another program."""
    return program in call.walk.functions and not call.via and "/" not in (call.name.value or "")


def _resolve_program(call: Invocation) -> str | None:
    """Return the listed name of a program: `python` for `python3.12`, `git` for `/usr/bin/git`.

    Returns None if the word alone already decided the findings.
    """
    name = call.name.value
    if name is None or (call.name.is_pattern and name != "["):  # `[` is a program, not a pattern
        call.report_effect("execute")
        call.report_unclear("dynamic-program", "which program runs depends on what cannot be seen")
        return None
    # 1. A path must be a known place of programs, in every directory that this may run in.
    if "/" in name:
        base = name.rpartition("/")[2]
        for cwd in call.state.cwds:
            place = locate_path(name, cwd, call.path_roots)
            directory = place.path.rpartition("/")[0]
            if directory in _PROGRAM_DIRECTORIES:
                continue
            inner = directory[len(call.path_roots.workspace) + 1 :]
            is_wrapper = (
                base in _WRAPPER_SCRIPTS and place.where == "workspace" and not _LOW_RISK_DIRECTORY.fullmatch(inner)
            )
            if is_wrapper or is_tool_directory(replace(place, path=directory), call.path_roots):
                call.report_effect("execute", target=place.path)
                continue
            # `./app serve --help` only tells about itself. Whether that is enough depends on where the file comes from.
            values = [word.value for word in call.words]
            asks = values[-1:] == ["--help"] and not {None, "--"} & set(values)
            call.report_executed_file(call.name, *(call.words[-1:] if asks else ()))
            return None
        name = base
    # 2. A function of the script may hide a program of the same name.
    if _may_run_function(call, name):
        return name
    if name in RESERVED_WORDS or not _PROGRAM_NAME.fullmatch(name):
        call.report_effect("execute")
        why = "is a word of the shell itself" if name in RESERVED_WORDS else "has characters that no program's name has"
        call.report_unclear("characters", f"{name[:40]!r} {why}")
        return None
    # 3. Try the name as written, then without a version, a suffix and upper case.
    if is_known_program(name):
        return name
    plain = name.lower().removesuffix(".exe")
    if versioned := _VERSIONED_NAME.fullmatch(plain):
        plain = versioned[1]
    if plain == name or not is_known_program(plain):
        return name
    # Only file systems that ignore case run `git` for `GIT`.
    if not name.startswith(plain):
        call.report_unclear("unknown-program", f"{name} is {plain} where upper case does not count")
    return plain


def is_tool_directory(place: PathLocation, roots: PathRoots) -> bool:
    """Whether a directory is a usual place for the tools of a project: `.venv/bin`, `node_modules/.bin`."""
    if place.where != "workspace" or place.classes:
        return False
    inner = place.path[len(roots.workspace) + 1 :]
    return _WORKSPACE_TOOLS.fullmatch(inner) is not None and _LOW_RISK_DIRECTORY.fullmatch(inner) is None


def is_careless_directory(path: str, roots: PathRoots) -> bool:
    """Whether a path of the workspace lies where files are written with less care, or in a git directory."""
    inner = path[len(roots.workspace) + 1 :]
    return _LOW_RISK_DIRECTORY.fullmatch(inner) is not None or any(name.endswith(".git") for name in inner.split("/"))


def is_known_program(program: str) -> bool:
    return program in HANDLERS or program in ROWS or has_subcommands(program)


def is_version_or_help(call: Invocation) -> bool:
    """Whether the only argument asks for the version or for help."""
    if len(call.words) != 1:
        return False
    asked = call.words[0].value
    program, _, subcommand = call.program.partition(" ")
    if subcommand:
        return asked == "--help" and program in _HELP_BELOW_PROGRAMS
    if asked == "-v" and program in _SHORT_VERSION:
        return True
    return asked in _VERSION_OR_HELP or (asked in _HELP_WORDS and program in _HELP_PROGRAMS)


def judge_subcommand(call: Invocation) -> None:
    """Judge by the line of the longest subcommand name that fits. If none fits, the program's own line counts."""
    if call.program == "cargo" and call.words and _TOOLCHAIN.fullmatch(call.words[0].value or ""):
        call = replace(call, words=call.words[1:])
    # The program's own line describes the options before the subcommand.
    spec = parse_spec(f"posix {ROWS.get(call.program, '')}")
    given = read_arguments(spec, call.words)
    # First with the options before the subcommand (`npm --version` is a line), then without them.
    for words in (call.words, tuple(given.operands)):
        names: list[str] = [call.program]
        for word in words[:NAME_WORDS_MAX]:
            if word.value is None or word.is_pattern:
                break
            names.append(word.value)
        # `docker compose up` before `docker compose`.
        for count in range(len(names), 1, -1):
            name = " ".join(names[:count])
            if name not in ROWS:
                continue
            if given.options:
                apply_arguments(call, replace(spec, always=(), here="", nothing=""), given.without_operands())
            inner = replace(call, program=name, words=words[count - 1 :], name=Word(name))
            if not is_version_or_help(inner) and not _judge_locked_install(inner):
                apply_spec(inner, parse_spec(ROWS[name]))
            return
    # No line fits. `yarn lint:js` is `yarn run lint:js`, where the name says that it is a script of the project.
    if call.program in ("yarn", "pnpm") and given.operands and is_script_name(given.operands[0].value or ""):
        name = f"{call.program} run"
        apply_arguments(call, replace(spec, always=(), here="", nothing=""), given.without_operands())
        apply_spec(replace(call, program=name, words=tuple(given.operands), name=Word(name)), parse_spec(ROWS[name]))
        return
    # The program's own line counts, or the subcommand is unknown.
    apply_arguments(call, spec, given.without_operands())
    if spec.always:
        return
    name_words = given.operands[:1]
    if name_words and not name_words[0].is_known:
        call.report_effect("execute", *name_words)
        why = f"what {call.program} is to do depends on what cannot be seen"
        call.report_unclear("dynamic-program", why, *name_words)
    elif name_words or not is_version_or_help(call):
        call.report_effect("execute", *name_words, target=call.program)
        what = f"{call.program} {name_words[0].short_text}" if name_words else f"{call.program} alone"
        call.report_unclear("unknown-program", f"{what} is not in the tables", *name_words)


def _judge_locked_install(call: Invocation) -> bool:
    """Judge an install of exactly what a lock file names. Returns False if it is any other call of the program."""
    marks = find_locked_install(call.program)
    if marks is None:
        return False
    required, _, listed = marks.partition("|")
    spec = parse_spec(listed)
    given = read_arguments(spec, call.words)
    # `pip install .` installs the workspace itself, as `pip install -e .` does.
    is_own = call.program in _INSTALLS_PACKAGES and bool(given.operands)
    is_own = is_own and all(word.value is not None and _EDITABLE.fullmatch(word.value) for word in given.operands)
    # One option too many, an unknown word or an operand, and the ordinary line of the program judges all of it.
    if given.unlisted or given.doubtful or not all(word.is_known for word in call.words):
        return False
    if given.operands and not is_own:
        return False
    if required.split() and not is_own and not given.has_option(*required.split()):
        return False
    # A group is one of the workspace's own `pyproject.toml`, unless another file is named before it.
    if any(not re.fullmatch(r"[\w-]+", value.value or "") for value in given.option_values("--group")):
        return False
    if any(_EDITABLE.fullmatch(value.value or "") is None for value in given.option_values("-e", "--editable")):
        return False
    _apply_effect(call, "locked-install", None)
    return True


def apply_spec(call: Invocation, spec: ProgramSpec) -> ParsedArguments:
    """Judge an invocation by a line of a table."""
    given = read_arguments(spec, call.words)
    apply_arguments(call, spec, given)
    return given


def apply_options(call: Invocation, spec: ProgramSpec) -> ParsedArguments:
    """Judge only the options of an invocation. A handler judges the operands."""
    given = read_arguments(spec, call.words)
    apply_arguments(call, spec, given.without_operands())
    return given


def apply_arguments(call: Invocation, spec: ProgramSpec, given: ParsedArguments) -> None:
    """Judge arguments that are already sorted into options and operands."""
    outputs = frozenset(id(word) for option, _, word in given.options if option.verb == "write") | frozenset(
        id(value) for option, value, _ in given.options if option.verb == "write" and value is not None
    )
    for effect in spec.always:
        _apply_effect(call, effect, None, outputs)
    # `-d:VERB` options replace the verb of the operands.
    changed = [option.operands for option, _, _ in given.options if option.operands]
    operands_become = max(changed, key=_CHANGING_VERBS.count) if changed else spec.rest
    # With `php -l` or `perl -v` the operands are no longer what they were. With `sed -i` the script stays a script.
    first = list(spec.first) if operands_become in ("tree", "edit", spec.rest) else []
    for option, value, word in given.options:
        for effect in option.effects:
            _apply_effect(call, effect, word)
        if option.is_first_operand and first:
            first.pop(0)  # `sed -e SCRIPT`: all operands are files now
        if option.verb and value is not None:
            apply_verb(option.verb, call, value)
    report_unlisted_options(call, spec, given)
    # A file whose name begins with a hyphen becomes an option of `rm *`.
    if given.doubtful and spec.has_risky_options:
        for word in given.doubtful:
            advice = f"; write ./{word.text}" if word.is_pattern else ""
            call.report_unclear(
                "unknown-option", f"{word.short_text} may become an option of {call.program}{advice}", word
            )
    if spec.here == "unpack" and not changed:
        call.report_unpacking(None)
    elif spec.here and not changed:
        call.report_current_directory(spec.here)
    if len(given.operands) <= len(first):
        if operands_become == "tree":
            call.report_current_directory("read")
        elif spec.nothing and not changed:
            call.report_current_directory(spec.nothing)
        elif changed and operands_become in _CHANGING_VERBS:
            # `ruff check --fix` without a file changes every file here.
            call.report_current_directory("delete" if operands_become == "delete" else "write")
    # The first operands have verbs of their own, then the last, then the rest.
    waiting = list(given.operands)
    for verb in first:
        if waiting:
            word = waiting.pop(0)
            if verb:
                apply_verb(verb, call, word)
    if operands_become == "command":
        call.judge_words(waiting)
        return
    last = waiting.pop() if spec.last and len(given.operands) > 1 and waiting else None
    if operands_become:
        for word in waiting:
            apply_verb(operands_become, call, word)
    if last is not None:
        apply_verb(spec.last, call, last)


def report_unlisted_options(call: Invocation, spec: ProgramSpec, given: ParsedArguments) -> None:
    """Report options that a line does not list, unless the line is lax. Handlers call it for lines of their own."""
    if spec.is_lax:
        call.report.has_open_parts = True
        return
    if any(effect.startswith("?") for effect in spec.always):
        return  # the program is unclear in any case, and the reason for that says more
    for name, word in given.unlisted:
        call.report_unclear("unknown-option", f"the option {name} of {call.program} is not in the tables", word)


def _apply_effect(call: Invocation, effect: str, word: Word | None, outputs: frozenset[int] = frozenset()) -> None:
    """Report an effect of a line. `outputs` are the words that name what the program writes, by identity."""
    if effect in _RUNS_CODE and word is None:
        call.report_environment()
        # The tables list tools that run the workspace's own code as clear. Elsewhere they run other code.
        places = [
            locate_path(cwd, cwd, call.path_roots) if cwd is not None else UNKNOWN_LOCATION for cwd in call.state.cwds
        ]
        for argument in call.words:
            for value in argument.values:
                if value.startswith(("/", "~", "..")):
                    found = [locate_path(value, cwd, call.path_roots) for cwd in call.state.cwds]
                    # What a build puts into a temporary directory does not run there.
                    places += [place for place in found if place.where != "temporary" or id(argument) not in outputs]
        if any(place.where != "workspace" and place.matters for place in places):
            call.report_unclear("script", f"{call.program} may run code that lies outside the workspace")
    if effect in EFFECTS:
        call.report_effect(effect, word, target=call.program if effect in _RUNS_CODE else "")
    else:
        about = f"{call.program} {word.short_text}" if word is not None else call.program
        call.report_unclear(effect.removeprefix("?"), f"{about}: what this does is not looked into", word)

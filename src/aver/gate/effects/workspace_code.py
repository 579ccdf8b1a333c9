"""Says whether a command may run code of the workspace without anyone being asked. Pure: it gets all texts as facts.

A build, a test or a script runs code that the agent may have written a moment ago. So Aver remembers which files of a
session were changed *unseen* (`gate.facts.session`), and looks into the code before it runs:

    1. `list_code` names what must be looked into: the files that were changed unseen, the scripts that the command
       names, and code in its arguments.
    2. The caller reads the files, and `look_into` turns each text into a sealed fact `{sha256, found}`.
    3. `judge_workspace_code` decides by these facts alone:

       * a script, or code in the arguments, that reaches nowhere has the effect `build` instead of `execute`;
       * while a file that was changed unseen reaches out, every `build` has the effect `execute`;
       * so it has while the workspace holds code that git brought from elsewhere, and in a command that has git bring
         such code before it runs something.

A script that the command itself makes and shows is looked into as code in the arguments is. A file on the disk says
nothing if the same command may change it before it runs.

`found` says where the text reaches out (`code_scan.scan`). An empty list means that it reaches nowhere. A file that is
not there has no digest. A script that is not there is not known, so it is asked about.

The keys of the facts are `<path>` for a file that was changed unseen, `<language> <path> in <directory>` for a script,
and `<language> sha256:<digest> in <directory>` for code in the arguments. The directory counts: a relative path in the
code leads to another file elsewhere.

A request to a server on this machine runs code, too: a development server loads a new route when it is asked for it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from aver.fast_dataclass import NamedTuple
from aver.gate.effects.code_scan.language import CodeLanguage, find_language
from aver.gate.effects.findings import Effect, UnclearPart
from aver.gate.effects.paths import PathRoots, locate_path
from aver.gate.effects.shown_changes import list_new_texts, may_change, reaches_nowhere
from aver.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from aver.gate.effects.effects import Effects

UNSEEN_MAX = 200
"""Files of a session that are kept by name as changed unseen. A session with more counts as one that changed all."""

ALL_FILES = "*"
"""Stands for all files in the list of those that were changed unseen."""

ARRIVED = "*git"
"""Stands, in the same list, for the code that git brought from elsewhere: see `gate.facts.session_state`."""

MANY_REASON = f"this session has changed more than {UNSEEN_MAX} files unseen, and this may run them"
ARRIVED_REASON = "this may run code that git brought here in this session, and nobody has looked at it"
BRINGING_REASON = "git would bring back or bring in code that nobody has looked at, and this may run it"

CODE_SIZE_MAX = 512 * 1024
"""Bytes of a file that the caller reads. A larger file cannot be looked into."""

CODE_TOTAL_MAX = 8 * 1024 * 1024
"""Bytes that the caller reads for one decision."""

NAMED_MAX = 3
"""Files that a reason names."""

RUNNING_EFFECTS = frozenset({"build", "execute", "locked-install", "loopback"})
"""Effects that may run code of the workspace."""

_ROUTINE_EFFECTS = RUNNING_EFFECTS - {"execute"}

_RUNS_NO_CODE = frozenset(
    (
        *("ruff", "black", "isort", "autopep8", "yapf", "gofmt", "goimports", "gofumpt", "go fmt", "go vet", "rustfmt"),
        *("cargo fmt", "clang-format", "shfmt", "stylua", "pyright", "basedpyright", "pyflakes", "pycodestyle", "tsc"),
    )
)
"""Checkers and formatters that read code of the workspace and run none of it."""

ProgramLanguage = Literal["python", "javascript", "shell"]

_INTERPRETERS: Mapping[str, ProgramLanguage] = {
    **dict.fromkeys(("sh", "bash", "dash", "zsh", "ksh", "source", "."), "shell"),
    **dict.fromkeys(("node", "nodejs", "tsx", "ts-node"), "javascript"),
}
_INSTALLED_MODULES = frozenset(("json.tool", "pip", "hatch", "venv"))
"""Modules that `python -m` runs from its installation, unless the current directory has one of that name. The tables
judge what they do."""
_PYTHON = lazy_pattern(r"python[0-9.]*|pypy[0-9.]*")
_QUOTED_PATH = lazy_pattern(r"[\"'`](\./[^\"'`\s]{1,400})[\"'`]")
_BARE_NAME = lazy_pattern(r"[\w:.@/-]*")
_SHEBANG = lazy_pattern(r"#![ \t]*/(?:usr/(?:local/)?)?bin/(?:env[ \t]+)?(\w[\w.]*)[ \t]*\r?\n")


class CodeQuestion(NamedTuple):
    """Code that must be looked into before a command runs it."""

    key: str
    """Its key in the facts."""
    path: str
    """The file that holds it; empty for code in the arguments."""
    program: ProgramLanguage | Literal["", "file", "module"]
    """The language of a program that the command starts, or `file` if the file itself says it; `module` for a module of
    Python that `text` names; empty for a file that was changed unseen."""
    text: str = ""
    cwd: str = ""
    beside: str = ""
    """The directory of the file that a text is put into before it runs; empty for code in the arguments."""


def runs_code(effects: Effects) -> bool:
    """Whether an action may run code of the workspace."""
    return any(_may_run_code(effect) for effect in effects.effects)


def _may_run_code(effect: Effect) -> bool:
    if effect.name not in RUNNING_EFFECTS:
        return False
    tool = (effect.target if effect.name == "execute" or not effect.where else "") or " ".join(effect.words[:1])
    tool = tool.rpartition("/")[2]
    return tool not in _RUNS_NO_CODE and tool.partition(" ")[0] not in _RUNS_NO_CODE


def list_code(effects: Effects, unseen: Collection[str], absent: Collection[str] = ()) -> tuple[CodeQuestion, ...]:
    """Return the code that must be looked into before an action with these effects; none if it runs no code.

    `absent` are the files that the action writes and that are not there.
    """
    if not runs_code(effects):
        return ()
    found: dict[CodeQuestion, None] = {}
    texts = _list_own_scripts(effects, absent)
    for part in effects.unclear:
        for question in _list_program(part, effects.effects, texts):
            found[question] = None
    for path in unseen:
        if path not in (ALL_FILES, ARRIVED):
            found[CodeQuestion(path, path, "")] = None
    return tuple(found)


def _list_own_scripts(effects: Effects, absent: Collection[str]) -> Mapping[str, str]:
    """Return the texts of scripts that the action makes, by path; none if it runs other code, which may change them."""
    if not effects.writes or not absent:
        return {}
    looked_into = {part.words for part in effects.unclear if part.code in ("script", "code")}
    if any(_may_run_code(effect) and effect.words not in looked_into for effect in effects.effects):
        return {}
    return list_new_texts(effects, absent)


def _list_program(part: UnclearPart, effects: tuple[Effect, ...], texts: Mapping[str, str]) -> Iterator[CodeQuestion]:
    """Yield the scripts, or the code in the arguments, that an unclear part is about."""
    language = _find_interpreter(part.words[0]) if part.words else ""
    # A bare name is no program: `node --run NAME` runs a script of the project.
    if part.code == "code" and part.text and language and not _BARE_NAME.fullmatch(part.text):
        yield _ask_about_text(language, part.text, part.cwd)
    if part.code != "script":
        return
    if language == "python" and len(part.words) == 2 and part.words[1] in _INSTALLED_MODULES and part.cwd:
        name = part.words[1].partition(".")[0]
        yield CodeQuestion(f"module {name} in {part.cwd}", "", "module", name, part.cwd)
    for effect in effects:
        if effect.name == "execute" and effect.words == part.words and effect.where in ("workspace", "temporary"):
            # A file that is started by its own name says itself what it is written in.
            program: ProgramLanguage | Literal["file"] = language or "file"
            # Its name must say the language, too: a file of another kind was not scanned when it was made.
            if language and effect.target in texts and find_language(effect.target) == language:
                directory = effect.target.rpartition("/")[0]
                yield _ask_about_text(language, texts[effect.target], part.cwd, directory)
            elif language or len(part.words) == 1:
                key = f"{program} {effect.target} in {part.cwd}"
                yield CodeQuestion(key, effect.target, program, "", part.cwd)


def _ask_about_text(language: ProgramLanguage, text: str, cwd: str, beside: str = "") -> CodeQuestion:
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    place = f"{cwd} beside {beside}" if beside else cwd
    return CodeQuestion(f"{language} sha256:{digest} in {place}", "", language, text, cwd, beside)


def _find_interpreter(word: str) -> ProgramLanguage | Literal[""]:
    name = word.rpartition("/")[2]
    return "python" if _PYTHON.fullmatch(name) else _INTERPRETERS.get(name, "")


# --- looking into a text


class CodeSurroundings(NamedTuple):
    """Where code would run, and how Aver judges a shell script."""

    roots: PathRoots
    judge_script: Callable[[str, str], str]
    """Gets a shell script and its directory, and returns what about it is not routine; empty if all is."""
    has_module: Callable[[str, str], bool] = lambda name, directory: False
    """Says whether a directory holds a module of Python of this name. Programs that start there load that one."""
    reads_outside: bool = False
    """Whether a program may read files outside of the workspace that are neither guarded nor private."""


ABSENT: Mapping[str, Any] = {"sha256": None, "found": []}
"""The fact about a file that is not there."""


def refuse_look(why: str) -> dict[str, Any]:
    """Return the fact about a file that cannot be looked into."""
    return {"sha256": None, "found": [why]}


def look_into(question: CodeQuestion, raw: bytes, workspace: CodeSurroundings) -> dict[str, Any]:
    """Return the fact about a text: its digest, and the places at which it reaches out."""
    try:
        found = tuple(_find_reaches(question, raw.decode("utf-8"), workspace))
    except UnicodeDecodeError:
        is_data = not question.program and find_language(question.path) == "data"
        found = () if is_data else ("it is not text",)
    return {"sha256": hashlib.sha256(raw).hexdigest(), "found": list(found)}


def _find_reaches(question: CodeQuestion, text: str, workspace: CodeSurroundings) -> Iterator[str]:
    from aver.gate.effects.code_scan.scan import scan_javascript_program, scan_text

    if question.program == "module":
        if workspace.has_module(text, question.cwd):
            yield f"the directory that it runs in has a module {text} of its own"
        return
    language: CodeLanguage | str = question.program or find_language(question.path)
    if language == "file" or (not question.program and language == "unknown"):
        # A file that starts other programs by its first line, as `./run.sh` does.
        shebang = _SHEBANG.match(text)
        named = _find_interpreter(shebang[1]) if shebang else ""
        if not named and question.program and find_language(question.path) == "shell":
            named = "shell"
        language = named or "unknown"
    cwd = question.cwd or (workspace.roots.workspace if not question.program else "")
    if language == "shell":
        if not cwd:
            yield "which directory it runs in is not known"
        elif why := workspace.judge_script(text, cwd):
            yield why
        return
    if not question.program:
        # Files that were changed: the rules for changes of the workspace's own code.
        yield from map(str, scan_text(text, language if language != "file" else "unknown"))  # type: ignore[arg-type]
        return
    place = locate_path(cwd, None, workspace.roots) if cwd else None
    if place is None or place.where not in ("workspace", "temporary"):
        yield "it runs in a directory that is not of the workspace, or not known"
    elif language == "python":
        from aver.gate.effects.python_code.program import scan_python_program

        def is_inside(path: str) -> bool:
            return _is_readable(path, cwd, workspace.roots, ("workspace", "temporary"))

        def may_read(path: str) -> bool:
            return _is_readable(path, cwd, workspace.roots, ("workspace", "temporary", "tree", "outside"))

        def may_import(path: str) -> bool:
            # Anybody may write into a temporary directory.
            return _is_readable(path, cwd, workspace.roots, ("workspace",))

        def is_own_module(name: str) -> bool:
            return workspace.has_module(name, beside)

        # Python looks for modules beside the program first.
        beside = question.path.rpartition("/")[0] if question.path else question.beside or cwd
        further = may_read if workspace.reads_outside else None
        found = scan_python_program(
            text, is_inside=is_inside, may_read=further, may_import=may_import, is_own_module=is_own_module
        )
        yield from map(str, found)
    elif language == "javascript":
        yield from map(str, scan_javascript_program(text))
        for path in _QUOTED_PATH.findall(text):
            if not _is_readable(path, cwd, workspace.roots, ("workspace", "temporary")):
                yield f"it reads {path}"
    else:
        yield "it is written in a language that Aver does not look into"


def _is_readable(path: str, cwd: str, roots: PathRoots, zones: tuple[str, ...]) -> bool:
    place = locate_path(path, cwd, roots)
    return place.where in zones and not place.classes_for("read") - {"system"}


# --- judging by the facts


def is_clean(fact: Mapping[str, Any] | None) -> bool:
    """Whether a file that was changed unseen reaches nowhere. One that is gone runs no more."""
    return fact is not None and not fact.get("found")


class CodeVerdict(NamedTuple):
    """The effects of an action, with what its code was found to do, and the reasons for people."""

    effects: Effects
    reasons: tuple[str, ...] = ()
    runs_unseen: bool = False
    """Whether code that was changed unseen may run."""


def judge_workspace_code(
    effects: Effects,
    unseen: Collection[str],
    facts: Mapping[str, Mapping[str, Any]],
    workspace: str,
    absent: Collection[str] = (),
    git: Mapping[str, Any] = MappingProxyType({}),
) -> CodeVerdict:
    """Return the effects of an action after its code was looked into. `facts` are those of `look_into`, by key.

    `absent` are the files that the action writes and that are not there. `git` is what git keeps of the session: see
    `gate.facts.session_state`.
    """
    if not runs_code(effects):
        return CodeVerdict(effects)
    questions = list_code(effects, unseen, absent)
    reasons = [
        *_explain_git(effects, unseen, git),
        *_explain_unseen(questions, unseen, facts, workspace, git),
        *_explain_own_changes(effects, absent, workspace),
    ]
    effects, more = _accept_programs(_accept_own_help(effects), facts, workspace, absent)
    if reasons:
        # Something that may run was changed unseen: nothing that runs code is routine any more.
        demoted = tuple(
            replace(effect, name="execute") if effect.name in _ROUTINE_EFFECTS and _may_run_code(effect) else effect
            for effect in effects.effects
        )
        effects = replace(effects, effects=tuple(dict.fromkeys(demoted)))
    return CodeVerdict(effects, tuple(dict.fromkeys((*reasons, *more))), bool(reasons))


def _explain_git(effects: Effects, unseen: Collection[str], git: Mapping[str, Any]) -> Iterator[str]:
    """Yield the reason why git may bring code that nobody has seen, before it runs. Aver cannot look at it there."""
    moves = effects.git_moves
    is_new = bool(git.get("fetched")) or "fetch" in moves
    brings = is_new or bool(git.get("stored")) or ("store" in moves and bool(unseen))
    # For files that are unseen now, the order of the commands does not count.
    if ("and-more" in moves and brings) or (unseen and _restores_files(effects)):
        yield BRINGING_REASON


def _explain_own_changes(effects: Effects, absent: Collection[str], workspace: str) -> Iterator[str]:
    """Yield reasons why code that the action itself puts into its place may run, and was not looked at."""
    # A program may import what lies beside it. A build of the workspace finds nothing in temporary directories.
    if not any(part.code in ("script", "code") for part in effects.unclear):
        return
    texts = list_new_texts(effects, absent)
    for effect in effects.effects:
        # Files of the workspace are `write`, which a rule asks about, or they were shown.
        is_code = effect.name == "scratch" and effect.where == "temporary" and _is_code_file(effect.target)
        if is_code and not reaches_nowhere(texts.get(effect.target, "\0"), effect.target):
            yield f"this may run {_show(effect.target, workspace)}, which it writes itself"


def _is_code_file(path: str) -> bool:
    return find_language(path) not in ("unknown", "prose", "data")


_TREE_CHANGERS = ("git stash", "git switch", "git checkout")


def _restores_files(effects: Effects) -> bool:
    """Whether git may put other versions of files into the work tree."""
    return "restore" in effects.git_moves or any(
        effect.name in ("git-state", "arrange") and effect.words[:1] and effect.words[0].startswith(_TREE_CHANGERS)
        for effect in effects.effects
    )


def _explain_unseen(
    questions: Collection[CodeQuestion],
    unseen: Collection[str],
    facts: Mapping[str, Mapping[str, Any]],
    workspace: str,
    git: Mapping[str, Any],
) -> Iterator[str]:
    if ALL_FILES in unseen:
        yield MANY_REASON
    if ARRIVED in unseen:
        yield ARRIVED_REASON
    # A person has let this very content run before git kept it.
    known = git.get("stored") or {}
    reaching = [
        question
        for question in questions
        if not question.program
        and not is_clean(fact := facts.get(question.key))
        and not (fact and fact.get("sha256") and known.get(question.path) == fact["sha256"])
    ]
    for question in reaching[:NAMED_MAX]:
        found = (facts.get(question.key) or {}).get("found") or ["it was not looked into"]
        yield f"this may run {_show(question.path, workspace)}, which this session changed unseen: {found[0]}"
    if len(reaching) > NAMED_MAX:
        yield f"this may run {len(reaching) - NAMED_MAX} more files that this session changed unseen"


_PROGRAM_BUILDERS = frozenset(("go build", "gcc", "g++", "cc", "c++", "clang", "clang++", "rustc"))


def _accept_own_help(effects: Effects) -> Effects:
    """Return the effects in which a program that the action itself builds, and asks for its help, is `build`.

    It is code of the workspace, as a test is, and does nothing but tell about itself.
    """
    built = {
        effect.target
        for effect in effects.effects
        if effect.name == "scratch" and effect.words[:1] and effect.words[0] in _PROGRAM_BUILDERS
    }
    asked = {part.words for part in effects.unclear if part.code == "script" and part.words[1:] == ("--help",)}
    for words in list(asked):
        runs = [effect for effect in effects.effects if effect.name == "execute" and effect.words == words]
        changed = any(
            may_change(effect, run.target) and effect.words[:1] and effect.words[0] not in _PROGRAM_BUILDERS
            for run in runs
            for effect in effects.effects
        )
        if not runs or changed or any(run.target not in built for run in runs):
            asked.discard(words)
    if not asked:
        return effects
    kept = tuple(part for part in effects.unclear if part.words not in asked)
    named = tuple(
        replace(effect, name="build") if effect.name == "execute" and effect.words in asked else effect
        for effect in effects.effects
    )
    return replace(effects, effects=tuple(dict.fromkeys(named)), unclear=kept)


def _accept_programs(
    effects: Effects, facts: Mapping[str, Mapping[str, Any]], workspace: str, absent: Collection[str]
) -> tuple[Effects, list[str]]:
    """Return the effects in which programs that reach nowhere are `build`, and reasons for the other programs."""
    texts = _list_own_scripts(effects, absent)
    judged = [
        part
        for part in effects.unclear
        if part.code in ("script", "code") and next(_list_program(part, effects.effects, texts), None) is not None
    ]
    reasons: list[str] = []
    refused: set[tuple[str, ...]] = set()
    restores = _restores_files(effects)
    for part in judged:
        targets = [effect for effect in effects.effects if effect.name == "execute" and effect.words == part.words]
        questions = list(_list_program(part, effects.effects, texts))
        # A link may lead to a file elsewhere, which was not looked into.
        is_module = any(question.program == "module" for question in questions)
        whole = part.code == "code" or is_module or len(questions) == len(targets)
        for question in questions:
            why = _find_refusal(question, facts.get(question.key))
            # The file was looked at before the command. What the command then makes of it was not.
            if question.path and (restores or any(may_change(effect, question.path) for effect in effects.effects)):
                why = "this may change it before it runs"
            if question.program == "module" and (restores or _may_make_module(question, effects.effects)):
                why = "this may put a module of this name into the directory that it runs in"
            if why:
                name = _show(question.path, workspace) if question.path else "its code"
                reasons.append(f"{name}: {why}")
                whole = False
        if not whole:
            refused.add(part.words)
    # Two programs may have the same words, as two here-documents have. Then both must reach nowhere.
    accepted = {part.words for part in judged} - refused
    accepted -= {part.words for part in effects.unclear if part not in judged}
    if not accepted:
        return effects, reasons
    kept = tuple(part for part in effects.unclear if part.words not in accepted)
    named = tuple(
        replace(effect, name="build") if effect.name == "execute" and effect.words in accepted else effect
        for effect in effects.effects
    )
    return replace(effects, effects=tuple(dict.fromkeys(named)), unclear=kept), reasons


def _may_make_module(question: CodeQuestion, effects: tuple[Effect, ...]) -> bool:
    """Whether an effect may put a module of Python beside the one that a question is about."""
    start = f"{question.cwd}/{question.text}"
    return any(
        effect.name in ("write", "scratch", "file-state", "arrange", "unknown")
        and effect.where != ""
        # A directory alone hides no module that is installed, as the one of `python -m venv venv`.
        and not (effect.name == "arrange" and effect.target == start)
        and (effect.target.startswith(start) or may_change(replace(effect, name="write"), f"{start}.py"))
        for effect in effects
    )


def _find_refusal(question: CodeQuestion, fact: Mapping[str, Any] | None) -> str:
    if fact is None:
        return "it was not looked into"
    if fact.get("found"):
        return str(fact["found"][0])
    return "" if fact.get("sha256") else "it is not there, so what it does is not known"


def _show(path: str, workspace: str) -> str:
    inside = workspace.rstrip("/") + "/"
    return path.removeprefix(inside) if workspace else path

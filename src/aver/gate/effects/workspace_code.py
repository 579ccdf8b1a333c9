"""Says whether a command may run code of the workspace without anyone being asked. Pure: it gets all texts as facts.

A build, a test or a script runs code that the agent may have written a moment ago. So Aver remembers which files of a
session were changed *unseen* (`gate.session`), and looks into the code before it runs:

    1. `list_code` names what must be looked into: the files that were changed unseen, the scripts that the command
       names, and code in its arguments.
    2. The caller reads the files, and `look_into` turns each text into a sealed fact `{sha256, found}`.
    3. `judge_workspace_code` decides by these facts alone:

       * a script, or code in the arguments, that reaches nowhere has the effect `build` instead of `execute`;
       * while a file that was changed unseen reaches out, every `build` has the effect `execute`;
       * so it has while the workspace holds code that git brought from elsewhere, and in a command that has git bring
         such code before it runs something.

`found` says where the text reaches out (`code_scan`). An empty list means that it reaches nowhere. A file that is not
there has no digest. A script that is not there is not known, so it is asked about.

The keys of the facts are `<path>` for a file that was changed unseen, `<language> <path>` for a script, and
`<language> sha256:<digest>` for code in the arguments.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from aver.gate.effects.code_scan import CodeLanguage, find_language
from aver.gate.effects.findings import Effect, PathRoots, UnclearPart, locate_path
from aver.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from aver.gate.effects.effects import Effects

UNSEEN_MAX = 200
"""Files of a session that are kept by name as changed unseen. A session with more counts as one that changed all."""

ALL_FILES = "*"
"""Stands for all files in the list of those that were changed unseen."""

ARRIVED = "*git"
"""Stands, in the same list, for the code that git brought from elsewhere: see `gate.session_state`."""

MANY_REASON = f"this session has changed more than {UNSEEN_MAX} files unseen, and this may run them"
ARRIVED_REASON = "this may run code that git brought here in this session, and nobody has looked at it"
BRINGING_REASON = "git would bring back or bring in code that nobody has looked at, and this may run it"

CODE_SIZE_MAX = 512 * 1024
"""Bytes of a file that the caller reads. A larger file cannot be looked into."""

CODE_TOTAL_MAX = 8 * 1024 * 1024
"""Bytes that the caller reads for one decision."""

NAMED_MAX = 3
"""Files that a reason names."""

RUNNING_EFFECTS = frozenset({"build", "execute", "locked-install"})
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
_PYTHON = lazy_pattern(r"python[0-9.]*|pypy[0-9.]*")
_BARE_NAME = lazy_pattern(r"[\w:.@/-]*")
_SHEBANG = lazy_pattern(r"#![ \t]*/(?:usr/(?:local/)?)?bin/(?:env[ \t]+)?(\w[\w.]*)[ \t]*\r?\n")


class CodeQuestion(NamedTuple):
    """Code that must be looked into before a command runs it."""

    key: str
    """Its key in the facts."""
    path: str
    """The file that holds it; empty for code in the arguments."""
    program: ProgramLanguage | Literal["", "file"]
    """The language of a program that the command starts, or `file` if the file itself says it; empty for a file that
    was changed unseen."""
    text: str = ""
    cwd: str = ""


def runs_code(effects: Effects) -> bool:
    """Whether an action may run code of the workspace."""
    return any(_may_run_code(effect) for effect in effects.effects)


def _may_run_code(effect: Effect) -> bool:
    if effect.name not in RUNNING_EFFECTS:
        return False
    tool = (effect.target if effect.name == "execute" or not effect.where else "") or " ".join(effect.words[:1])
    tool = tool.rpartition("/")[2]
    return tool not in _RUNS_NO_CODE and tool.partition(" ")[0] not in _RUNS_NO_CODE


def list_code(effects: Effects, unseen: Collection[str]) -> tuple[CodeQuestion, ...]:
    """Return the code that must be looked into before an action with these effects; none if it runs no code."""
    if not runs_code(effects):
        return ()
    found: dict[CodeQuestion, None] = {}
    for part in effects.unclear:
        for question in _list_program(part, effects.effects):
            found[question] = None
    for path in unseen:
        if path not in (ALL_FILES, ARRIVED):
            found[CodeQuestion(path, path, "")] = None
    return tuple(found)


def _list_program(part: UnclearPart, effects: tuple[Effect, ...]) -> Iterator[CodeQuestion]:
    """Yield the scripts, or the code in the arguments, that an unclear part is about."""
    language = _find_interpreter(part.words[0]) if part.words else ""
    # A bare name is no program: `node --run NAME` runs a script of the project.
    if part.code == "code" and part.text and language and not _BARE_NAME.fullmatch(part.text):
        digest = hashlib.sha256(part.text.encode("utf-8", "surrogatepass")).hexdigest()
        yield CodeQuestion(f"{language} sha256:{digest}", "", language, part.text, part.cwd)
    if part.code != "script":
        return
    for effect in effects:
        if effect.name == "execute" and effect.words == part.words and effect.where in ("workspace", "temporary"):
            # A file that is started by its own name says itself what it is written in.
            program: ProgramLanguage | Literal["file"] = language or "file"
            if language or len(part.words) == 1:
                yield CodeQuestion(f"{program} {effect.target}", effect.target, program, "", part.cwd)


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
    from aver.gate.effects.code_scan import scan_javascript_program, scan_text

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
        from aver.gate.effects.python_program import scan_python_program

        # Python looks for modules beside the program first.
        beside = question.path.rpartition("/")[0] if question.path else cwd
        yield from map(
            str,
            scan_python_program(
                text,
                is_inside=lambda path: _is_inside(path, cwd, workspace.roots),
                is_own_module=lambda name: workspace.has_module(name, beside),
            ),
        )
    elif language == "javascript":
        yield from map(str, scan_javascript_program(text))
    else:
        yield "it is written in a language that Aver does not look into"


def _is_inside(path: str, cwd: str, roots: PathRoots) -> bool:
    place = locate_path(path, cwd, roots)
    return place.where in ("workspace", "temporary") and not place.classes_for("read") - {"system"}


# --- judging by the facts


def is_clean(fact: Mapping[str, Any] | None) -> bool:
    """Whether a file that was changed unseen reaches nowhere. One that is gone runs no more."""
    return fact is not None and not fact.get("found")


class CodeVerdict(NamedTuple):
    """The effects of an action, with what its code was found to do, and the reasons for people."""

    effects: Effects
    reasons: tuple[str, ...] = ()


def judge_workspace_code(
    effects: Effects,
    unseen: Collection[str],
    facts: Mapping[str, Mapping[str, Any]],
    workspace: str,
    git: Mapping[str, Any] = MappingProxyType({}),
) -> CodeVerdict:
    """Return the effects of an action after its code was looked into. `facts` are those of `look_into`, by key.

    `git` is what git keeps of the session: see `gate.session_state`.
    """
    questions = list_code(effects, unseen)
    brings = _brings_unseen_code(effects, unseen, git)
    if not runs_code(effects) or not (questions or brings or ALL_FILES in unseen or ARRIVED in unseen):
        return CodeVerdict(effects)
    reasons = [BRINGING_REASON] if brings else []
    reasons += _explain_unseen(questions, unseen, facts, workspace, git)
    effects, more = _accept_programs(effects, facts, workspace)
    if reasons:
        # Something that may run was changed unseen: nothing that runs code is routine any more.
        demoted = tuple(
            replace(effect, name="execute") if effect.name in _ROUTINE_EFFECTS and _may_run_code(effect) else effect
            for effect in effects.effects
        )
        effects = replace(effects, effects=tuple(dict.fromkeys(demoted)))
    return CodeVerdict(effects, tuple(dict.fromkeys((*reasons, *more))))


def _brings_unseen_code(effects: Effects, unseen: Collection[str], git: Mapping[str, Any]) -> bool:
    """Whether a command has git bring code that nobody has seen, and may run it. Aver cannot look at it before."""
    moves = effects.git_moves
    if "and-more" not in moves:
        return False
    is_new = bool(git.get("fetched")) or "fetch" in moves
    return is_new or bool(git.get("stored")) or ("store" in moves and bool(unseen))


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


def _accept_programs(
    effects: Effects, facts: Mapping[str, Mapping[str, Any]], workspace: str
) -> tuple[Effects, list[str]]:
    """Return the effects in which programs that reach nowhere are `build`, and reasons for the other programs."""
    judged = [
        part
        for part in effects.unclear
        if part.code in ("script", "code") and next(_list_program(part, effects.effects), None) is not None
    ]
    reasons: list[str] = []
    refused: set[tuple[str, ...]] = set()
    for part in judged:
        targets = [effect for effect in effects.effects if effect.name == "execute" and effect.words == part.words]
        questions = list(_list_program(part, effects.effects))
        # A link may lead to a file elsewhere, which was not looked into.
        whole = part.code == "code" or len(questions) == len(targets)
        for question in questions:
            why = _find_refusal(question, facts.get(question.key))
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


def _find_refusal(question: CodeQuestion, fact: Mapping[str, Any] | None) -> str:
    if fact is None:
        return "it was not looked into"
    if fact.get("found"):
        return str(fact["found"][0])
    return "" if fact.get("sha256") else "it is not there, so what it does is not known"


def _show(path: str, workspace: str) -> str:
    inside = workspace.rstrip("/") + "/"
    return path.removeprefix(inside) if workspace else path

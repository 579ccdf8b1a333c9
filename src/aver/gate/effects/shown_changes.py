"""Changes whose content is shown: what a command writes, and files that are made new.

A command that writes files is judged by its kind, unless it shows all that it writes. Then it is judged by the lines,
as an edit is. And a file that was not there before has no user yet. Some changes therefore have names of their own:

    create       beside `write`: makes only new source or text files, and shows their content
    seen         beside `create`: all lines of the new files were looked at, and reach nowhere (`effects.code_scan`)
    file-state   instead of `write`: copies or renames a file, and overwrites none; or edits a file that is not there,
                 by a program that makes none; or sorts lines into a new text, or packs files into a new archive
    scratch      instead of `delete`: removes a file that the same command has made

All of them depend on the disk, so the caller of the gate looks (`gather_change_facts`), and the facts of the decision
keep what it saw:

    absent     the files that the action writes, and that are not there
    written    the change that a command makes, as a unified diff

A new file is `create` if it lies in the workspace, is not guarded, and is a source or a text by its name. Names that a
tool loads by itself (`conftest.py`, `build.rs`, `vite.config.ts`), configuration, and everything in `bin` are none of
these. Its code may reach out: Aver asks when something is about to run it (`effects.workspace_code`). It may not hide
what it does.

    >>> is_unused_when_new("src/tool.py"), is_unused_when_new("conftest.py")
    (True, False)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from aver.fast_dataclass import NamedTuple
from aver.gate.effects.code_scan.language import find_language
from aver.gate.effects.file_writes import diff_writes, is_inert
from aver.gate.effects.findings import Effect
from aver.gate.effects.paths import has_glob
from aver.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from aver.gate.action import Action, Facts
    from aver.gate.effects.effects import Effects
    from aver.gate.effects.file_writes import FileWrite

LOOKED_AT_MAX = 50
"""Files of one action that the caller looks at. An action that writes more is judged without."""

CREATE_EFFECT = "create"
SEEN_EFFECT = "seen"

_SHOWN_BY = frozenset((">", ">>", ">|", "tee", "sed"))
"""The first word of an effect whose write `FileWrite`s list: a redirection without its descriptor, or a program."""

_MADE_BY = frozenset({"write", "scratch", "arrange"})
"""Effects by which a command makes a file or a directory."""

_LOOKED_INTO = frozenset({"script", "code"})
"""The codes of unclear parts that `effects.workspace_code` looks into."""

_LOADED_NAMES = frozenset(
    (
        *("conftest.py", "setup.py", "noxfile.py", "tasks.py", "fabfile.py", "sitecustomize.py", "usercustomize.py"),
        *("__init__.py", "__main__.py", "conf.py", "manage.py", "wsgi.py", "asgi.py", "settings.py", "tests.py"),
        *("build.rs", "build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts", "build.sbt"),
        *("build.zig", "mix.exs", "package.swift", "project.clj", "gulpfile.js", "gulpfile.ts", "gruntfile.js"),
        *("karma.conf.js", "extconf.rb", "build.pl", "makefile.pl", "install.sh", "configure.sh"),
    )
)
"""Names that a tool loads or runs by itself."""

_LOADED_NAME = lazy_pattern(r".*(?:\.config|rc|\.setup|\.conf|file)\.(?:js|ts|mjs|cjs|mts|cts|py|rb)$")
_LOADED_DIRECTORIES = frozenset(("bin", "sbin", "hooks", "node_modules", "site-packages", "plugins", "requirements"))


class FileState(NamedTuple):
    """A file as the caller found it. `text` is None where Aver must not read it, or could not."""

    is_there: bool
    text: str | None = None
    is_directory: bool = False


class ChangeFacts(NamedTuple):
    """The files that an action writes, as the caller saw them."""

    absent: tuple[str, ...] = ()
    written: str | None = None


def gather_change_facts(effects: Effects, workspace: str, look: Callable[[str], FileState]) -> ChangeFacts:
    """Look at the files that an action writes. `look` reads one of them."""
    writes = _list_writes(effects)
    shown = {write.path for write in effects.writes}
    # Temporary files that the command shows, and files that it makes and removes again.
    removed = {effect.target for effect in effects.effects if effect.name == "delete"}
    others = [
        effect.target
        for effect in effects.effects
        if effect.name in _MADE_BY and effect.where and (effect.target in shown or effect.target in removed)
    ]
    targets = list(dict.fromkeys([*(effect.target for effect in writes), *others]))
    if not targets or len(targets) > LOOKED_AT_MAX or any(part.code not in _LOOKED_INTO for part in effects.unclear):
        return ChangeFacts()
    states = {path: look(path) for path in targets}
    for write in effects.writes:
        # `mv a.py pkg` makes `pkg/a.py` if there is such a directory.
        if write.how in ("copy", "move") and (state := states.get(write.path)) is not None and state.is_directory:
            inner = f"{write.path}/{write.text.rpartition('/')[2]}"
            states[inner] = look(inner)
    # No record can hold a name that is not text.
    absent = tuple(path for path, state in states.items() if not state.is_there and path.isprintable())
    texts: Mapping[str, str | None] = {
        path: state.text for path, state in states.items() if state.text is not None or not state.is_there
    }
    idle = _find_idle_edits(effects, absent) | _find_moves(effects, absent, workspace)
    idle |= _find_new_texts(effects, absent, workspace)
    kept = [effect for effect in writes if effect not in idle]
    chosen = {effect.target for effect in kept}
    own = [write for write in effects.writes if write.path in chosen]
    # Each write must be one that the list has. A program such as `cp` may write the same file once more.
    is_shown = bool(own) and all(
        effect.target in shown and effect.words and effect.words[0].lstrip("0123456789") in _SHOWN_BY for effect in kept
    )
    return ChangeFacts(absent, diff_writes(own, texts, workspace) if is_shown else None)


def _list_writes(effects: Effects) -> list[Effect]:
    return [effect for effect in effects.effects if effect.name == "write"]


def mark_creations(effects: Effects, action: Action, facts: Facts) -> Effects:
    """Return the effects, with the names that follow from what was there before the action."""
    absent = frozenset(facts.absent)
    if not absent:
        return effects
    moves = _find_moves(effects, absent, action.workspace, facts.links)
    moves |= _find_idle_edits(effects, absent, facts.links)
    moves |= _find_new_texts(effects, absent, action.workspace, facts.links)
    removals = _find_own_removals(effects, absent)
    named = (
        replace(effect, name="file-state")
        if effect in moves
        else replace(effect, name="scratch")
        if effect in removals
        else effect
        for effect in effects.effects
    )
    effects = replace(effects, effects=tuple(dict.fromkeys(named)))
    made = _list_creations(effects, action, facts)
    return replace(effects, effects=(*effects.effects, *made)) if made else effects


def _list_creations(effects: Effects, action: Action, facts: Facts) -> list[Effect]:
    """Return the effects `create` and `seen`; none if not all that the action writes are new files."""
    writes = _list_writes(effects)
    diff = action.diff if action.diff is not None else facts.written
    if not writes or not diff:
        return []
    inside = action.workspace.rstrip("/") + "/"
    shown = _read_new_files(diff, inside)
    if shown is None:
        return []
    is_seen = True
    for effect in writes:
        target = effect.target
        is_new = effect.where == "workspace" and not effect.classes and target in facts.absent and target in shown
        if not is_new or not is_unused_when_new(target.removeprefix(inside)):
            return []
        lines = shown[target]
        if not is_inert(target) and not _is_plain_code(lines, target):
            return []
        # Nothing runs a log or a patch, whatever it holds. Test runners may run sessions in other texts.
        is_report = is_inert(target) and find_language(target) == "unknown"
        is_seen &= is_report or (bool(lines) and reaches_nowhere("\n".join(lines), target))
    names = (CREATE_EFFECT, SEEN_EFFECT) if is_seen else (CREATE_EFFECT,)
    return [replace(effect, name=name) for name in names for effect in writes]


def _read_new_files(diff: str, inside: str) -> dict[str, list[str]] | None:
    """Return the lines of each new file of a diff, by path; None if the diff does more than make new text files."""
    from aver.gate.risk.diff import read_diff
    from aver.gate.risk.diff_model import FileChange, Hunk

    shown: dict[str, list[str]] = {}
    path = ""
    for part in read_diff(diff):
        if isinstance(part, FileChange):
            path = part.path if part.path.startswith("/") else inside + part.path
            if part.old is not None or part.new is None or part.binary or part.new_mode not in ("", "100644"):
                return None
            shown[path] = []
        elif isinstance(part, Hunk):
            shown[path] += [line[1:] for line in part.lines if line.startswith("+")]
        else:
            return None
    return shown


def _is_plain_code(lines: list[str], path: str) -> bool:
    """Whether the lines of a new file show what it does. A file that hides or decodes something does not."""
    from aver.gate.effects.code_scan.reach import DISGUISES
    from aver.gate.effects.code_scan.scan import LINE_MAX, scan_code

    if not lines or any(len(line) > LINE_MAX for line in lines):
        return False
    # Shell scripts are not scanned by words. Before one runs, the reader of commands judges it.
    kinds = {reach.kind for reach in scan_code("\n".join(lines), path)} if find_language(path) != "shell" else set()
    return not kinds & {*DISGUISES, "unreadable"}


def reaches_nowhere(text: str, path: str) -> bool:
    """Whether a text of the file `path` reaches nowhere."""
    from aver.gate.effects.code_scan.scan import scan_code

    return not scan_code(text, path)


def list_new_texts(effects: Effects, absent: Collection[str]) -> dict[str, str]:
    """Return the texts of files that the action itself makes and shows, by path.

    A file that was not there has this text when something runs it, in whatever order the commands run: it is written
    once, and as a whole.
    """
    counts = Counter(write.path for write in effects.writes)
    return {
        write.path: write.text
        for write in effects.writes
        if write.path in absent
        and counts[write.path] == 1
        and (write.how == "replace" or (write.how == "append" and write.text.endswith("\n")))
        and not any(may_change(effect, write.path) and not _is_known_change(effect) for effect in effects.effects)
    }


def may_change(effect: Effect, path: str) -> bool:
    """Whether an effect may change the content of a file: that of its target, or of all below it."""
    if effect.name not in ("write", "scratch", "file-state", "unknown") or not effect.where:
        return False
    target = effect.target.rstrip("/")
    return target in ("", path) or path.startswith(f"{target}/") or has_glob(target)


def _is_known_change(effect: Effect) -> bool:
    """Whether `FileWrite`s list this change, or it leaves a file either as it is or gone."""
    by = effect.words[0].lstrip("0123456789") if effect.words else ""
    return by in _SHOWN_BY or by in (*_REMOVED_BY, "chmod")


# --- files that get another name, and files that the same command removes


def _find_moves(
    effects: Effects, absent: Collection[str], workspace: str, links: Collection[str] = ()
) -> frozenset[Effect]:
    """Return the `write` effects of copies and moves that keep all content, and that nothing loads by its new name.

    A path through one of the symbolic links leads out of its place.
    """
    inside = workspace.rstrip("/") + "/"
    counts = Counter(write.path for write in effects.writes)
    found: set[Effect] = set()
    for write in effects.writes:
        if write.how not in ("copy", "move") or counts[write.path] > 1:
            continue
        touched = {write.path, write.text} if write.how == "move" else {write.path}
        own = [effect for effect in effects.effects if effect.name == "write" and effect.target in touched]
        is_plain = write.path not in links and all(
            effect.where == "workspace" and not effect.classes and effect.words[0] in _MOVED_BY for effect in own
        )
        if is_plain and _keeps_its_kind(write, absent, inside):
            found.update(own)
    return frozenset(found)


_MOVED_BY = frozenset(("cp", "mv", "gcp", "gmv", "git mv"))


def _keeps_its_kind(write: FileWrite, absent: Collection[str], inside: str) -> bool:
    """Whether a copy or a move makes a new file, and the content is of the same kind there as it was before.

    A text that becomes a program by its new name was never looked at as one.
    """
    source, target = write.text, write.path
    within = f"{target}/{source.rpartition('/')[2]}"
    if target not in absent and within not in absent:
        return False
    target = target if target in absent else within
    if not target.startswith(inside) or not is_unused_when_new(target.removeprefix(inside)):
        return False
    if write.how == "move" and not (source.startswith(inside) and is_unused_when_new(source.removeprefix(inside))):
        return False
    endings = {path.rpartition("/")[2].rpartition(".")[2].lower() for path in (source, target)}
    return is_inert(target) or len(endings) == 1


_TEXT_MAKERS = frozenset(("sort", "uniq", "shuf", "iconv"))
"""Programs that write lines of the files which they read."""

_PACKERS = frozenset(("tar", "gtar", "bsdtar"))
_PACKED_ENDINGS = (".tgz", ".gz", ".tbz2", ".bz2", ".txz", ".xz", ".zst")
"""Endings of compressed archives. Nothing loads code from one."""


def _is_inert_result(effect: Effect, path: str) -> bool:
    """Whether an effect makes a file from other files that nothing runs: a text, or a compressed archive."""
    if effect.words[0] in _PACKERS:
        return path.lower().endswith(_PACKED_ENDINGS) and is_ordinary_place(path)
    return effect.words[0] in _TEXT_MAKERS and is_inert(path) and is_unused_when_new(path)


def _find_new_texts(
    effects: Effects, absent: Collection[str], workspace: str, links: Collection[str] = ()
) -> frozenset[Effect]:
    """Return the `write` effects that make a new file which nothing runs, from other files.

    `sort a.txt -o b.txt` makes a text, `tar czf a.tgz src` an archive.
    """
    inside = workspace.rstrip("/") + "/"
    return frozenset(
        effect
        for effect in effects.effects
        if effect.name == "write"
        and effect.where == "workspace"
        and not effect.classes
        and effect.target in absent
        and effect.target not in links
        and _is_inert_result(effect, effect.target.removeprefix(inside))
    )


_EDITORS = frozenset(("sed", "misspell", "codespell", "typos", "dos2unix", "unix2dos", "chmod", "chown", "chgrp"))
"""Programs that change files which are there, and make none. A script of sed can, so only files that it edits count."""

_MAKING_EFFECTS = frozenset({"write", "scratch", "arrange", "file-state", "git-state", "unknown"})


def _find_idle_edits(effects: Effects, absent: Collection[str], links: Collection[str] = ()) -> frozenset[Effect]:
    """Return the `write` effects on files that are not there, by programs that make none: `sed -i s/a/b/ missing.py`.

    Nothing else of the action may make the file first: no other program, and not git. A build may, but its code could
    write anything itself.
    """
    if effects.git_moves or any(effect.name in ("execute", "install") for effect in effects.effects):
        return frozenset()
    in_place = {write.path for write in effects.writes if write.how == "sed"}
    edits = [
        effect
        for effect in effects.effects
        if effect.name == "write"
        and effect.words
        and effect.words[0] in _EDITORS
        and (effect.words[0] != "sed" or effect.target in in_place)
    ]
    others = [
        effect for effect in effects.effects if effect.name in _MAKING_EFFECTS and effect.where and effect not in edits
    ]

    def may_appear(path: str) -> bool:
        targets = [effect.target.rstrip("/") for effect in others]
        return any(target in ("", path) or path.startswith(f"{target}/") or has_glob(target) for target in targets)

    return frozenset(
        effect
        for effect in edits
        if effect.where in ("workspace", "temporary")
        and not effect.classes
        and effect.target in absent
        and effect.target not in links
        and not has_glob(effect.target)
        and not may_appear(effect.target)
    )


_REMOVED_BY = frozenset(("rm", "unlink", "rmdir"))
_MAKERS = frozenset((*_SHOWN_BY - {"sed"}, "mkdir", "touch", "cp", "go build", "go test", "gcc", "g++", "cc", "clang"))
"""Programs that make what they name, from nothing or from a copy."""


def _find_own_removals(effects: Effects, absent: Collection[str]) -> frozenset[Effect]:
    """Return the `delete` effects on files that the action itself makes: before it, they were not there.

    After a move, what is deleted may be the only copy of something that was there.
    """
    if not _MOVERS.isdisjoint(effects.programs) or any(e.words[:1] == ("git mv",) for e in effects.effects):
        return frozenset()
    made = {
        effect.target
        for effect in effects.effects
        if effect.name in _MADE_BY and effect.where and effect.words[0].lstrip("0123456789") in _MAKERS
    }
    return frozenset(
        effect
        for effect in effects.effects
        if effect.name == "delete"
        and effect.where in ("workspace", "temporary")
        and not effect.classes
        and effect.target in absent
        and effect.target in made
        and effect.words[0] in _REMOVED_BY
    )


_MOVERS = frozenset(("mv", "gmv", "rename", "rsync", "install", "ditto", "mmv", "ln", "gln", "mount"))
"""Programs that may put something that was there before under another name."""


# --- names


def is_unused_when_new(path: str) -> bool:
    """Whether a new file of the workspace is a source or a text that no tool loads by itself, judged by its path."""
    from aver.gate.risk.features import file_kind

    name = path.lower().rpartition("/")[2]
    if is_inert(path):
        return True
    if name in _LOADED_NAMES or _LOADED_NAME.match(name) or not name.rpartition(".")[0]:
        return False
    if not is_ordinary_place(path):
        return False
    # By its name alone: in a directory of tests or docs every file has the kind of that directory.
    return file_kind(path) in ("source", "test", "docs") and file_kind(name) in ("source", "test", "docs")


def is_ordinary_place(path: str) -> bool:
    """Whether a path of the workspace leads through no hidden directory, and none whose files are found by name."""
    *directories, name = path.lower().split("/")
    return not name.startswith(".") and not any(
        part in _LOADED_DIRECTORIES or part.startswith(".") or part.endswith(".git") for part in directories
    )

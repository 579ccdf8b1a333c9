"""Changes whose content is shown: what a command writes, and files that are made new.

A command that writes files is judged by its kind, unless it shows all that it writes. Then it is judged by the lines,
as an edit is. And a file that was not there before has no user yet: making one is the effect `create`, beside `write`.

Both depend on the disk, so the caller of the gate looks (`gather_change_facts`), and the facts of the decision keep
what it saw:

    absent     the files that the action writes, and that are not there
    written    the change that a command makes, as a unified diff

The effect `create` is found if it holds for all that the action writes: each file lies in the workspace, is not
there, is not guarded, its content is shown and reaches nowhere (`effects.code_scan`), and it is a source or a text by
its name. Names that a tool loads by itself (`conftest.py`, `build.rs`, `vite.config.ts`), configuration, and everything
in `bin` are none of these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from aver.gate.effects.file_writes import diff_writes, is_inert
from aver.gate.effects.findings import Effect
from aver.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from aver.gate.action import Action, Facts
    from aver.gate.effects.effects import Effects

LOOKED_AT_MAX = 50
"""Files of one action that the caller looks at. An action that writes more is judged without."""

CREATE_EFFECT = "create"

_SHOWN_BY = frozenset((">", ">>", ">|", "tee", "sed"))
"""The first word of an effect whose write `FileWrite`s list: a redirection without its descriptor, or a program."""

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


class ChangeFacts(NamedTuple):
    """The files that an action writes, as the caller saw them."""

    absent: tuple[str, ...] = ()
    written: str | None = None


def gather_change_facts(effects: Effects, workspace: str, look: Callable[[str], FileState]) -> ChangeFacts:
    """Look at the files that an action writes. `look` reads one of them."""
    targets = list(dict.fromkeys(effect.target for effect in _list_writes(effects)))
    if not targets or len(targets) > LOOKED_AT_MAX or effects.unclear:
        return ChangeFacts()
    states = {path: look(path) for path in targets}
    # No record can hold a name that is not text.
    absent = tuple(path for path, state in states.items() if not state.is_there and path.isprintable())
    texts: Mapping[str, str | None] = {
        path: state.text for path, state in states.items() if state.text is not None or not state.is_there
    }
    shown = effects.writes
    covered = {write.path for write in shown}
    # Each write must be one that the list has. A program such as `cp` may write the same file once more.
    is_shown = bool(shown) and all(
        effect.target in covered and effect.words and effect.words[0].lstrip("0123456789") in _SHOWN_BY
        for effect in _list_writes(effects)
    )
    return ChangeFacts(absent, diff_writes(shown, texts, workspace) if is_shown else None)


def _list_writes(effects: Effects) -> list[Effect]:
    return [effect for effect in effects.effects if effect.name == "write"]


def mark_creations(effects: Effects, action: Action, facts: Facts) -> Effects:
    """Return the effects, with `create` beside `write` where all that the action writes are new files."""
    writes = _list_writes(effects)
    absent = frozenset(facts.absent)
    diff = action.diff if action.diff is not None else facts.written
    if not writes or not absent or not diff:
        return effects
    from aver.gate.risk.diff import read_diff
    from aver.gate.risk.diff_model import FileChange, Hunk

    # The new files of the diff, with the lines that it shows.
    inside = action.workspace.rstrip("/") + "/"
    shown: dict[str, list[str]] = {}
    path = ""
    for part in read_diff(diff):
        if isinstance(part, FileChange):
            path = part.path if part.path.startswith("/") else inside + part.path
            if part.old is not None or part.new is None or part.binary or part.new_mode not in ("", "100644"):
                return effects
            shown[path] = []
        elif isinstance(part, Hunk):
            shown[path] += [line[1:] for line in part.lines if line.startswith("+")]
        else:
            return effects
    for effect in writes:
        target = effect.target
        is_new = effect.where == "workspace" and not effect.classes and target in absent and target in shown
        if not is_new or not (is_inert(target) or _is_harmless(shown[target], target, inside)):
            return effects
    made = tuple(replace(effect, name=CREATE_EFFECT) for effect in writes)
    return replace(effects, effects=(*effects.effects, *made))


def _is_harmless(lines: list[str], path: str, inside: str) -> bool:
    """Whether the lines of a new file are shown, nothing loads the file by itself, and its code reaches nowhere."""
    from aver.gate.effects.code_scan import scan_code

    return bool(lines) and is_unused_when_new(path.removeprefix(inside)) and not scan_code("\n".join(lines), path)


def is_unused_when_new(path: str) -> bool:
    """Whether a new file of the workspace is a source or a text that no tool loads by itself, judged by its path."""
    from aver.gate.risk.features import file_kind

    *directories, name = path.lower().split("/")
    if is_inert(path):
        return True
    if name in _LOADED_NAMES or _LOADED_NAME.match(name) or not name.rpartition(".")[0]:
        return False
    if any(part in _LOADED_DIRECTORIES or part.startswith(".") or part.endswith(".git") for part in directories):
        return False
    # By its name alone: in a directory of tests or docs every file has the kind of that directory.
    return file_kind(path) in ("source", "test", "docs") and file_kind(name) in ("source", "test", "docs")

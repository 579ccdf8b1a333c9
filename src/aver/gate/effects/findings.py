"""Findings about an action: its effects, and the parts that Aver could not understand.

An *effect* is one thing that an action does: it reads a path, talks to a host, ends a process. An *unclear part* is a
place where Aver could not tell. An action with an unclear part may do more than its effects say, so policy treats it
with care. Both the shell reader (`gate.shell`) and the reader of tool arguments (`gate.effects.effects`) fill the same
`EffectReport`. This module therefore imports neither.

    >>> from aver.gate.effects.paths import locate_path
    >>> roots = PathRoots(workspace="/work/shop")
    >>> report = EffectReport(roots)
    >>> report.add_path("read", locate_path(".env", "/work/shop", roots), ("cat", ".env"))
    >>> [effect.name for effect in report.effects]
    ['read', 'secret']
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any, Literal

from aver.fast_dataclass import dataclass
from aver.gate.effects.paths import (
    PathLocation,
    PathRoots,
    PathZone,
    has_root_inside,
    is_private,
    may_hold_private,
)

FINDINGS_MAX = 1000
"""Effects that one report lists. An action with more is unclear."""

EFFECTS = {
    "read": "reads a file",
    "write": "creates or changes a file",
    "delete": "removes a file, or changes that were not committed",
    "execute": "runs code that is not a known program with known options",
    "network": "talks to another machine",
    "privilege": "acts as another user, or with more rights",
    "install": "fetches and installs software",
    "git-history": "changes or drops what git has recorded, here or elsewhere",
    "process": "signals or ends processes",
    "secret": "sees what should stay secret",
    "system": "changes the operating system",
    "persist": "leaves behind something that will run later by itself",
    "egress": "sends data to another machine",
    "agent-config": "changes what steers or stops an agent",
    "unknown": "may be anything: a tool of which nothing is known",
    "call": "calls a tool that does something, of which Aver knows what it means",
    "call-read": "calls a tool that only reads",
    "git-state": "sets work aside or takes it back in git, without losing any: a stash, a branch, what is staged",
    "file-state": "copies, renames or changes the mode of files in the workspace, and loses none",
    "git-fetch": "gets new commits from a remote that the repository has already",
    "service-read": "reads from a service by its own program, such as gh, kubectl or docker; no secret",
    "loopback": "talks to a server on this machine",
    "locked-install": "installs what the workspace's own lock file names, or the workspace itself",
}

"""The names of effects, with their meaning."""

UNCLEAR = {
    "no-parser": "the parser is not installed",
    "too-much": "longer, deeper or more than the limits",
    "characters": "has characters that look like others, like nothing, or that shells read differently",
    "syntax": "cannot be read as a shell reads it",
    "readers-differ": "two parsers see different commands in it",
    "dynamic-program": "which program runs depends on what cannot be seen",
    "unknown-program": "a program that is not in the tables",
    "unknown-option": "an option that is not in the tables, of a program whose options matter",
    "unknown-target": "what it acts on depends on what cannot be seen",
    "code": "code in another language, which is not looked into",
    "script": "runs a file whose contents are not looked into",
    "piped-code": "runs what another program prints",
    "encoded": "runs what was encoded",
    "dynamic-code": "runs text that depends on what cannot be seen",
    "environment": "a variable that changes what programs do",
    "remote": "runs on another machine",
    "container": "runs inside a container",
    "shell": "changes how the shell reads what follows",
    "changed-tool": "a tool of an MCP server whose definition is not the one that was first seen",
}
"""The codes of unclear parts, with their meaning."""

# A guarded class of a path (see `guarded_names`) adds effects to what is done to the path.
_SECRET_WHEN_READ = frozenset({"secret", "aver"})
_RUN_LATER = frozenset({"hooks", "startup"})
_STEER_AGENTS = frozenset({"agent-config", "aver"})
_BELONG_TO_SYSTEM = frozenset({"system", "device"})


@dataclass(frozen=True, slots=True)
class Effect:
    """One thing that an action does: its name in `EFFECTS`, its target, and the words that show it."""

    name: str
    target: str = ""
    """A path or a host. Empty if there is none, or if it is not known."""
    where: PathZone | Literal[""] = ""
    """The zone of the path; empty if the target is not a path."""
    classes: frozenset[str] = frozenset()
    """The guarded classes of the path that count for this effect."""
    words: tuple[str, ...] = ()
    is_host: bool = False

    def to_dict(self) -> dict[str, Any]:
        return {
            "effect": self.name,
            "target": self.target,
            "where": self.where,
            "classes": sorted(self.classes),
            "words": list(self.words),
        }


@dataclass(frozen=True, slots=True)
class UnclearPart:
    """A part that Aver could not understand: a code of `UNCLEAR`, the reason, and the words it was found in."""

    code: str
    why: str
    words: tuple[str, ...] = ()
    text: str = ""
    """The whole text of code in another language, where it is known. `effects.workspace_code` looks into it."""
    cwd: str = ""
    """The directory in which code or a script runs, where it is known."""

    def to_dict(self) -> dict[str, Any]:
        return {"code": self.code, "why": self.why, "words": list(self.words)}


_LISTING_PROGRAMS = frozenset(
    (
        *("ls", "find", "fd", "fdfind", "du", "df", "tree", "stat", "test", "[", "[[", "which", "whereis", "realpath"),
        *("readlink", "basename", "dirname", "cd", "pushd", "exa", "eza", "lsd", "locate", "mountpoint", "wc", "file"),
    )
)
"""Programs that show names, sizes, kinds and dates of files, never their contents. Options by which they read a file
have the verb `contents`, under which they are quoted by another name."""

_NAME_PROGRAMS = _LISTING_PROGRAMS - {"wc", "file"}
"""Those of them that never open a file. `ls .env` reads no secret."""

LISTED_FILES = (("{}",), ("the files listed",))
"""The word that stands for the files that another program lists."""


def drop_listed_secrets(effects: Collection[Effect]) -> tuple[Effect, ...]:
    """Return the effects of a clear command, in which showing the name of a secret reads no secret: `ls -l .env`.

    Nothing may read the files that the command lists. At home the names of secrets are kept to their owner.
    """
    if any(effect.words[-1:] in LISTED_FILES for effect in effects):
        return tuple(effects)
    shown = [
        effect
        for effect in effects
        if "secret" in effect.classes
        and effect.name in ("read", "secret")
        and effect.where in ("workspace", "temporary", "tree")
        and effect.words[0].rpartition("/")[2] in _NAME_PROGRAMS
    ]
    kept = [
        replace(effect, classes=effect.classes - {"secret"}) if effect in shown else effect
        for effect in effects
        if effect not in shown or effect.name == "read"
    ]
    return tuple(dict.fromkeys(kept))


_ENDLESS_DEVICES = frozenset(("/dev/zero", "/dev/random", "/dev/urandom"))
_STREAM_PROGRAMS = frozenset(
    ("head", "dd", "cat", "od", "xxd", "hexdump", "tr", "base64", "openssl", "the shell", "fold", "strings")
)
"""Programs that read an endless device piece by piece. Another one may fill the memory, as `tail` does."""


class EffectReport:
    """Collects findings in the order in which they are made. It lists each finding once."""

    __slots__ = ("_path_roots", "effects", "unclear")

    def __init__(self, path_roots: PathRoots) -> None:
        self._path_roots = path_roots
        # Dictionaries serve as ordered sets.
        self.effects: dict[Effect, None] = {}
        self.unclear: dict[UnclearPart, None] = {}

    def add_effect(
        self,
        name: str,
        words: tuple[str, ...],
        target: str = "",
        *,
        where: PathZone | Literal[""] = "",
        classes: frozenset[str] = frozenset(),
        is_host: bool = False,
    ) -> None:
        """Add one effect, with the fields of `Effect`. Nothing follows from a path here: see `add_path`."""
        effect = Effect(name, target, where, classes, words, is_host)
        if len(self.effects) < FINDINGS_MAX:
            self.effects.setdefault(effect)
        elif effect not in self.effects:
            # The list is full: from here on the action may do more than the report says.
            self.add_unclear("too-much", f"more than {FINDINGS_MAX} effects")

    def add_host(self, name: str, host: str, words: tuple[str, ...]) -> None:
        self.add_effect(name, words, host, is_host=True)

    def add_unclear(self, code: str, why: str, words: tuple[str, ...] = (), text: str = "", cwd: str = "") -> None:
        if len(self.unclear) < FINDINGS_MAX:
            self.unclear.setdefault(UnclearPart(code, why, words, text, cwd))

    def add_path(self, name: str, place: PathLocation, words: tuple[str, ...]) -> None:
        """Add an effect on a path, and the further effects that follow from the path's guarded classes."""
        program = words[0].rpartition("/")[2] if words else ""
        if not place.matters and (
            name != "read" or place.path not in _ENDLESS_DEVICES or program in ("", *_STREAM_PROGRAMS)
        ):
            return
        where = place.where
        # Names of files may be listed where their contents may not be read. Guarded names keep their classes.
        if where == "private" and name == "read" and program in _LISTING_PROGRAMS:
            where = "outside"
        # `find ROOT -name NAME` gives `ROOT/NAME` here, but the file may lie at any depth below the root.
        elif where in ("outside", "private") and words[-1:] in LISTED_FILES:
            root = place.path.rpartition("/")[0] or "/"
            is_kept = is_private(place.path, self._path_roots) or may_hold_private(root, self._path_roots)
            where = "private" if is_kept else "outside"
        classes = place.classes_for(name)
        # Deleting a parent of the workspace or of the home deletes these, too.
        if name == "delete" and place.where != "unknown" and has_root_inside(place, self._path_roots):
            classes |= {"root"}
        effects = [name]
        if name in ("read", "execute"):
            effects += ["secret"] if classes & _SECRET_WHEN_READ else []
        else:
            effects += ["persist"] if classes & _RUN_LATER else []
            effects += ["agent-config"] if classes & _STEER_AGENTS else []
            effects += ["system"] if classes & _BELONG_TO_SYSTEM else []
            effects += ["git-history"] if name == "delete" and "git" in classes else []
        for effect in effects:
            self.add_effect(effect, words, place.path, where=where, classes=classes)

"""Where a path lies, and whether it is one that more depends on than its contents.

Paths are worked out by their letters alone: nothing here looks at the disk, so the answer is the same wherever and
whenever it is asked. So **a symbolic link is not followed here**: whoever asks the gate looks where the paths of an
action lead, and says so in its facts (`aver.gate.door`).

A path is `workspace` (at or below the workspace), `temporary`, `outside`, or `unknown` where it depends on what cannot
be seen; a backslash, which some systems take for a slash, makes it so, and an address, which some programs go to. For
being inside, letters count exactly; for being guarded, they do not: upper case, Unicode look-alikes by compatibility,
characters of no width, and dots or blanks at the end of a name make no difference, because on some file systems they do
not.

    >>> ground = Ground(workspace="/work/shop", home="/home/me")
    >>> locate("src/../.ENV", "/work/shop", ground).classes
    frozenset({'secret'})
    >>> locate("../shop-2/a.py", "/work/shop", ground).where
    'outside'
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Literal

from aver.gate.guarded_names import DIRECTORIES, FILES, PAIRS, PATTERNS, PUBLIC_FILES, SUFFIXES, SYSTEM_ROOTS
from aver.values import dataclass

__all__ = [
    *("PATH_MAX", "POLICY_ENV", "UNKNOWN", "Ground", "Place", "Where", "ground_from", "has_glob", "holds"),
    "locate",
]

Where = Literal["workspace", "temporary", "outside", "unknown"]

PATH_MAX = 4096
"""Characters of a path that can be a path: PATH_MAX of Linux. A longer one is of unknown place."""

PATTERN_MAX = 64
"""Characters of a pattern for one name that are compared with guarded names. A longer one is taken to match."""

POLICY_ENV = "AVER_POLICY"
"""Where the facts of a decision say which directory its rules come from."""

_TEMPORARY = ("/tmp", "/var/tmp", "/private/tmp", "/private/var/tmp", "/dev/shm")
_HARMLESS_DEVICES = frozenset(
    ("/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero", "/dev/random", "/dev/urandom")
)
_GUARDED_FROM_READING = frozenset({"secret", "aver", "system", "device"})
_DOOR = re.compile(r"^/proc/(?:self|thread-self|[0-9]+)(?:/task/[0-9]+)?/(root|cwd)(?=/|$)")
"""Ways through /proc to somewhere else."""
_SEES_MEMORY = re.compile(r"^/proc/(?:self|thread-self|[0-9]+)(?:/task/[0-9]+)?/(?:environ|mem|maps|auxv|fd)(?:/|$)")
_NO_WORKSPACE = re.compile(
    r"//|/[^/]*/$|/(?:bin|boot|dev|etc|lib|lib32|lib64|libx32|proc|run|sbin|sys|system|library)/", re.IGNORECASE
)
"""Directories that a workspace does not make less what they are: everything, what lies right below, the system's."""
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://|(?i:file):")
_GLOB = re.compile(r"[*?\[]")
_ALL_OF = re.compile(r"/[*?.]*\*[*?]*$")
_PLAIN = re.compile(r"[a-z0-9_/.-]*")
_NO_WIDTH = dict.fromkeys(
    [0x00AD, 0x034F, 0x061C, 0x180E, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070), 0xFEFF]
)


@dataclass(frozen=True, slots=True)
class Ground:
    """What places are judged by. `home` and `own` may be unknown: then no path is taken to be there by its root."""

    workspace: str = ""
    home: str = ""
    own: tuple[str, ...] = ()
    """Aver's own directories and files: its home, the ledger."""


@dataclass(frozen=True, slots=True)
class Place:
    """A path, where it lies, and the classes of guarded things that it is one of."""

    path: str
    where: Where
    classes: frozenset[str] = frozenset()

    def classes_for(self, effect: str) -> frozenset[str]:
        """The classes that count: settings and hooks are there to be read, and are guarded against change alone."""
        return self.classes & _GUARDED_FROM_READING if effect == "read" else self.classes

    @property
    def matters(self) -> bool:
        """Not for /dev/null and its like: what goes there goes nowhere."""
        return self.path not in _HARMLESS_DEVICES and not self.path.startswith("/dev/fd/")


UNKNOWN = Place("", "unknown")


def ground_from(workspace: str, environment: Mapping[str, str] | None) -> Ground:
    """The ground for a workspace, with what an environment tells of the home and of Aver's own places."""
    environment = environment or {}
    home = environment.get("HOME", "")
    own = [environment[name] for name in ("AVER_HOME", POLICY_ENV) if environment.get(name)]
    ledger = environment.get("AVER_LEDGER", "")
    if ledger.startswith("sqlite:///"):
        own.append(ledger.removeprefix("sqlite://"))
    return _ground(workspace, home, tuple(own))


@lru_cache(maxsize=64)
def _ground(workspace: str, home: str, own: tuple[str, ...]) -> Ground:
    return Ground(
        workspace=_normalised(workspace) if workspace.startswith("/") else "",
        home=_normalised(home) if home.startswith("/") else "",
        own=tuple(_normalised(path) for path in own if path.startswith("/")),
    )


def has_glob(path: str) -> bool:
    return _GLOB.search(path) is not None


def locate(path: str, cwd: str | None, ground: Ground) -> Place:
    """Where a path lies that is used in the directory `cwd` (None: not known). It may be a pattern of the shell."""
    if not path or len(path) > PATH_MAX or "\0" in path:
        return UNKNOWN
    whole = _absolute(path, cwd, ground)
    if whole is None:
        return Place(path, "unknown", _classes(f"/{path}"))
    while door := _DOOR.match(whole):
        if door[1] == "cwd":
            return Place(whole, "unknown", frozenset({"system"}))
        whole = _normalised(whole[door.end() :] or "/")
    where: Where = "outside"
    if ground.workspace and _is_at_or_below(whole, ground.workspace):
        where = "workspace"
        inner = whole[len(ground.workspace) :] if ground.workspace != "/" else whole
        classes = _classes(inner or "/") | _own(whole, ground)
        if _NO_WORKSPACE.match(f"{ground.workspace}/"):
            classes |= _classes(whole) | _system(whole, where)
    else:
        if any(_is_at_or_below(whole, directory) for directory in _TEMPORARY):
            where = "temporary"
        classes = _classes(whole) | _own(whole, ground) | _system(whole, where)
    if "\\" in path or _ADDRESS.match(path) or (has_glob(whole) and _climbs(whole)):
        where = "unknown"
    return Place(whole, where, classes)


def holds(place: Place, ground: Ground) -> bool:
    """Whether the workspace, the home or everything lies at or below a place: what is done to it is done to them."""
    path = _ALL_OF.sub("", place.path) or "/"
    return any(_is_at_or_below(root, path) for root in (ground.workspace, ground.home, "/") if root)


def _absolute(path: str, cwd: str | None, ground: Ground) -> str | None:
    if path.startswith("~"):
        name, slash, rest = path.partition("/")
        if name != "~":
            return _normalised(f"/home/{name[1:]}{slash}{rest}")
        # An unknown home stays a name of its own, which lies in no workspace.
        return _normalised(f"{ground.home or '/~'}/{rest}")
    if path.startswith("/"):
        return _normalised(path)
    return None if cwd is None else _normalised(f"{cwd}/{path}")


def _normalised(path: str) -> str:
    """An absolute path without `.`, `..`, doubled or trailing slashes."""
    if "/." not in path and "//" not in path:
        return path.rstrip("/") or "/"
    kept: list[str] = []
    for name in path.split("/"):
        if name == "..":
            if kept:
                kept.pop()
        elif name not in ("", "."):
            kept.append(name)
    return "/" + "/".join(kept)


def _is_at_or_below(path: str, directory: str) -> bool:
    if directory == "/":
        return True
    return path.startswith(directory) and (len(path) == len(directory) or path[len(directory)] == "/")


def _climbs(path: str) -> bool:
    """Whether a pattern may match `..`, as `.*` and `.?` do in some shells."""
    patterns = [name for name in path.split("/") if name.startswith(".") and has_glob(name)]
    return any(len(name) > PATTERN_MAX or fnmatchcase("..", name) for name in patterns)


def _own(path: str, ground: Ground) -> frozenset[str]:
    for own in ground.own:
        if _is_at_or_below(path.casefold(), own.casefold()):
            return frozenset({"aver"})
        if path.startswith((f"{own}.", f"{own}-")):  # the ledger's lock and journals
            return frozenset({"aver"})
    return frozenset()


def _system(path: str, where: Where) -> frozenset[str]:
    if where == "temporary":
        return frozenset()
    if path == "/":
        return frozenset({"system"})
    if path.startswith("/dev/"):
        return frozenset() if path in _HARMLESS_DEVICES or path.startswith("/dev/fd/") else frozenset({"device"})
    first = path.split("/", 2)[1].lower()
    classes = {"system"} if first in SYSTEM_ROOTS or has_glob(first) else set()
    if _SEES_MEMORY.match(path):
        classes.add("secret")
    return frozenset(classes)


@lru_cache(maxsize=4096)
def _classes(path: str) -> frozenset[str]:
    """The classes that a path has by the names in it."""
    found: set[str] = set()
    names = [name for name in _told_alike(path).split("/") if name]
    for index, name in enumerate(names):
        last = index == len(names) - 1
        for candidate in _meanings(name):
            found.update(DIRECTORIES.get(candidate, ()))
            if index:
                found.update(PAIRS.get(f"{names[index - 1]}/{candidate}", ()))
        if last:
            found.update(_file_classes(name))
    if names and (names[-1] in PUBLIC_FILES or names[-1].endswith(".pub")):
        found.discard("secret")
    if "hooks" in found and "git" in found and names[-1].endswith(".sample"):
        found.discard("hooks")
    return frozenset(found)


def _told_alike(path: str) -> str:
    """A path in the one spelling under which names are looked up."""
    if _PLAIN.fullmatch(path) and "./" not in path:
        return path
    folded = unicodedata.normalize("NFKC", path).translate(_NO_WIDTH).casefold()
    return "/".join(name.partition(":")[0].rstrip(". ") or name for name in folded.replace("\\", "/").split("/"))


def _meanings(name: str) -> Iterator[str]:
    """The name, and where it is a pattern, the guarded directories that it may match."""
    yield name
    if _is_telling_pattern(name):
        yield from (known for known in DIRECTORIES if fnmatchcase(known, name))


def _is_telling_pattern(name: str) -> bool:
    """A pattern that begins with a letter of its own. `*` and `*.py` may match anything and tell nothing."""
    return has_glob(name) and name[0] not in "*?[" and len(name) <= PATTERN_MAX


def _file_classes(name: str) -> set[str]:
    found = set(FILES.get(name, ()))
    if name.startswith(".env.") or _looks_like_pattern(name):
        found.update(kind for pattern, kinds in PATTERNS.items() if fnmatchcase(name, pattern) for kind in kinds)
    stem, dot, ending = name.rpartition(".")
    if dot and stem:
        found.update(SUFFIXES.get(ending, ()))
    if _is_telling_pattern(name):
        found.update(kind for known, kinds in FILES.items() if fnmatchcase(known, name) for kind in kinds)
    elif has_glob(name) and len(name) > PATTERN_MAX:
        found.add("secret")
    return found


_PATTERN_HINTS = re.compile(r"env|id_|service|_history|powershell|^\.#")


def _looks_like_pattern(name: str) -> bool:
    return _PATTERN_HINTS.search(name) is not None

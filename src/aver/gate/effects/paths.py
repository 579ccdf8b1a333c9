"""Where a path lies, and whether it is one that more depends on than its contents.

Paths are worked out by their letters alone: nothing here looks at the disk, so the answer is the same wherever and
whenever it is asked. So **a symbolic link is not followed here**: whoever asks the gate looks where the paths of an
action lead, and says so in its facts (`aver.gate.ask`).

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
from dataclasses import field
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Literal

from aver.fast_dataclass import dataclass
from aver.gate.effects.guarded_names import GUARDED_PATTERNS, GUARDED_SUFFIXES, PUBLIC_FILES, SYSTEM_ROOTS
from aver.gate.effects.known_agents import KnownAgents, default_known_agents

__all__ = [
    *(
        "PATH_MAX",
        "POLICY_ENV",
        "UNKNOWN_LOCATION",
        "PathRoots",
        "PathLocation",
        "PathZone",
        "build_path_roots",
        "has_glob",
        "has_root_inside",
    ),
    "locate_path",
]

PathZone = Literal["workspace", "temporary", "outside", "unknown"]

PATH_MAX = 4096
"""Characters of a path that can be a path: PATH_MAX of Linux. A longer one is of unknown place."""

PATTERN_MAX = 64
"""Characters of a pattern for one name that are compared with guarded names. A longer one is taken to match."""

POLICY_ENV = "AVER_POLICY"
"""Where the facts of a decision say which directory its rules come from."""

_TEMPORARY_DIRECTORIES = ("/tmp", "/var/tmp", "/private/tmp", "/private/var/tmp", "/dev/shm")
_HARMLESS_DEVICES = frozenset(
    ("/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero", "/dev/random", "/dev/urandom")
)
_GUARDED_FROM_READING = frozenset({"secret", "aver", "system", "device"})
_PROC_LINK = re.compile(r"^/proc/(?:self|thread-self|[0-9]+)(?:/task/[0-9]+)?/(root|cwd)(?=/|$)")
"""Ways through /proc to somewhere else."""
_PROCESS_MEMORY = re.compile(r"^/proc/(?:self|thread-self|[0-9]+)(?:/task/[0-9]+)?/(?:environ|mem|maps|auxv|fd)(?:/|$)")
_SYSTEM_WORKSPACE = re.compile(
    r"//|/[^/]*/$|/(?:bin|boot|dev|etc|lib|lib32|lib64|libx32|proc|run|sbin|sys|system|library)/", re.IGNORECASE
)
"""Directories that a workspace does not make less what they are: everything, what lies right below, the system's."""
_URL_START = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://|(?i:file):")
_GLOB = re.compile(r"[*?\[]")
_TRAILING_WILDCARD = re.compile(r"/[*?.]*\*[*?]*$")
_PLAIN_PATH = re.compile(r"[a-z0-9_/.-]*")
_ZERO_WIDTH = dict.fromkeys(
    [0x00AD, 0x034F, 0x061C, 0x180E, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070), 0xFEFF]
)


@dataclass(frozen=True, slots=True)
class PathRoots:
    """What places are judged by. `home` and `own` may be unknown: then no path is taken to be there by its root."""

    workspace: str = ""
    home: str = ""
    own: tuple[str, ...] = ()
    """Aver's own directories and files: its home, the ledger."""
    known: KnownAgents = field(default_factory=default_known_agents)
    """The names of guarded files and directories, those of coding agents among them."""


@dataclass(frozen=True, slots=True)
class PathLocation:
    """A path, where it lies, and the classes of guarded things that it is one of."""

    path: str
    where: PathZone
    classes: frozenset[str] = frozenset()

    def classes_for(self, effect: str) -> frozenset[str]:
        """The classes that count: settings and hooks are there to be read, and are guarded against change alone."""
        return self.classes & _GUARDED_FROM_READING if effect == "read" else self.classes

    @property
    def matters(self) -> bool:
        """Not for /dev/null and its like: what goes there goes nowhere."""
        return self.path not in _HARMLESS_DEVICES and not self.path.startswith("/dev/fd/")


UNKNOWN_LOCATION = PathLocation("", "unknown")


def build_path_roots(
    workspace: str, environment: Mapping[str, str] | None, known: KnownAgents | None = None
) -> PathRoots:
    """The ground for a workspace, with what an environment tells of the home and of Aver's own places."""
    environment = environment or {}
    home = environment.get("HOME", "")
    own = [environment[name] for name in ("AVER_HOME", POLICY_ENV) if environment.get(name)]
    ledger = environment.get("AVER_LEDGER", "")
    if ledger.startswith("sqlite:///"):
        own.append(ledger.removeprefix("sqlite://"))
    return _normalise_roots(workspace, home, tuple(own), known or default_known_agents())


@lru_cache(maxsize=64)
def _normalise_roots(workspace: str, home: str, own: tuple[str, ...], known: KnownAgents) -> PathRoots:
    return PathRoots(
        workspace=_normalise_path(workspace) if workspace.startswith("/") else "",
        home=_normalise_path(home) if home.startswith("/") else "",
        own=tuple(_normalise_path(path) for path in own if path.startswith("/")),
        known=known,
    )


def has_glob(path: str) -> bool:
    return _GLOB.search(path) is not None


def locate_path(path: str, cwd: str | None, ground: PathRoots) -> PathLocation:
    """Where a path lies that is used in the directory `cwd` (None: not known). It may be a pattern of the shell."""
    if not path or len(path) > PATH_MAX or "\0" in path:
        return UNKNOWN_LOCATION
    whole = _make_absolute(path, cwd, ground)
    if whole is None:
        return PathLocation(path, "unknown", _name_classes(f"/{path}", ground.known))
    while door := _PROC_LINK.match(whole):
        if door[1] == "cwd":
            return PathLocation(whole, "unknown", frozenset({"system"}))
        whole = _normalise_path(whole[door.end() :] or "/")
    where: PathZone = "outside"
    if ground.workspace and _is_at_or_below(whole, ground.workspace):
        where = "workspace"
        inner = whole[len(ground.workspace) :] if ground.workspace != "/" else whole
        classes = _name_classes(inner or "/", ground.known) | _aver_classes(whole, ground)
        if _SYSTEM_WORKSPACE.match(f"{ground.workspace}/"):
            classes |= _name_classes(whole, ground.known) | _system_classes(whole, where)
    else:
        if any(_is_at_or_below(whole, directory) for directory in _TEMPORARY_DIRECTORIES):
            where = "temporary"
        classes = _name_classes(whole, ground.known) | _aver_classes(whole, ground) | _system_classes(whole, where)
    if "\\" in path or _URL_START.match(path) or (has_glob(whole) and _can_match_parent(whole)):
        where = "unknown"
    return PathLocation(whole, where, classes)


def has_root_inside(place: PathLocation, ground: PathRoots) -> bool:
    """Whether the workspace, the home or everything lies at or below a place: what is done to it is done to them."""
    path = _TRAILING_WILDCARD.sub("", place.path) or "/"
    return any(_is_at_or_below(root, path) for root in (ground.workspace, ground.home, "/") if root)


def _make_absolute(path: str, cwd: str | None, ground: PathRoots) -> str | None:
    if path.startswith("~"):
        name, slash, rest = path.partition("/")
        if name != "~":
            return _normalise_path(f"/home/{name[1:]}{slash}{rest}")
        # An unknown home stays a name of its own, which lies in no workspace.
        return _normalise_path(f"{ground.home or '/~'}/{rest}")
    if path.startswith("/"):
        return _normalise_path(path)
    return None if cwd is None else _normalise_path(f"{cwd}/{path}")


def _normalise_path(path: str) -> str:
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


def _can_match_parent(path: str) -> bool:
    """Whether a pattern may match `..`, as `.*` and `.?` do in some shells."""
    patterns = [name for name in path.split("/") if name.startswith(".") and has_glob(name)]
    return any(len(name) > PATTERN_MAX or fnmatchcase("..", name) for name in patterns)


def _aver_classes(path: str, ground: PathRoots) -> frozenset[str]:
    for own in ground.own:
        if _is_at_or_below(path.casefold(), own.casefold()):
            return frozenset({"aver"})
        if path.startswith((f"{own}.", f"{own}-")):  # the ledger's lock and journals
            return frozenset({"aver"})
    return frozenset()


def _system_classes(path: str, where: PathZone) -> frozenset[str]:
    if where == "temporary":
        return frozenset()
    if path == "/":
        return frozenset({"system"})
    if path.startswith("/dev/"):
        return frozenset() if path in _HARMLESS_DEVICES or path.startswith("/dev/fd/") else frozenset({"device"})
    first = path.split("/", 2)[1].lower()
    classes = {"system"} if first in SYSTEM_ROOTS or has_glob(first) else set()
    if _PROCESS_MEMORY.match(path):
        classes.add("secret")
    return frozenset(classes)


@lru_cache(maxsize=4096)
def _name_classes(path: str, known: KnownAgents) -> frozenset[str]:
    """The classes that a path has by the names in it."""
    found: set[str] = set()
    names = [name for name in _fold_spelling(path).split("/") if name]
    for index, name in enumerate(names):
        last = index == len(names) - 1
        for candidate in _possible_names(name, known):
            found.update(known.directories.get(candidate, ()))
            if index:
                found.update(known.pairs.get(f"{names[index - 1]}/{candidate}", ()))
        if last:
            found.update(_file_classes(name, known))
    if names and (names[-1] in PUBLIC_FILES or names[-1].endswith(".pub")):
        found.discard("secret")
    if "hooks" in found and "git" in found and names[-1].endswith(".sample"):
        found.discard("hooks")
    return frozenset(found)


def _fold_spelling(path: str) -> str:
    """A path in the one spelling under which names are looked up."""
    if _PLAIN_PATH.fullmatch(path) and "./" not in path:
        return path
    folded = unicodedata.normalize("NFKC", path).translate(_ZERO_WIDTH).casefold()
    return "/".join(name.partition(":")[0].rstrip(". ") or name for name in folded.replace("\\", "/").split("/"))


def _possible_names(name: str, known: KnownAgents) -> Iterator[str]:
    """The name, and where it is a pattern, the guarded directories that it may match."""
    yield name
    if _is_specific_pattern(name):
        yield from (directory for directory in known.directories if fnmatchcase(directory, name))


def _is_specific_pattern(name: str) -> bool:
    """A pattern that begins with a letter of its own. `*` and `*.py` may match anything and tell nothing."""
    return has_glob(name) and name[0] not in "*?[" and len(name) <= PATTERN_MAX


def _file_classes(name: str, known: KnownAgents) -> set[str]:
    found = set(known.files.get(name, ()))
    if name.startswith(".env.") or _can_match_guarded_pattern(name):
        found.update(
            kind for pattern, kinds in GUARDED_PATTERNS.items() if fnmatchcase(name, pattern) for kind in kinds
        )
    stem, dot, ending = name.rpartition(".")
    if dot and stem:
        found.update(GUARDED_SUFFIXES.get(ending, ()))
    if _is_specific_pattern(name):
        found.update(kind for file, kinds in known.files.items() if fnmatchcase(file, name) for kind in kinds)
    elif has_glob(name) and len(name) > PATTERN_MAX:
        found.add("secret")
    return found


_PATTERN_HINTS = re.compile(r"env|id_|service|_history|powershell|^\.#")


def _can_match_guarded_pattern(name: str) -> bool:
    return _PATTERN_HINTS.search(name) is not None

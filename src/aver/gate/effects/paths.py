"""Where a path lies: its zone, and whether it is guarded because more depends on it than its contents.

Aver works with the text of a path alone and never looks at the disk. The answer is therefore the same at any time and
on any machine. **Symbolic links are not followed here.** The caller of the gate resolves the paths of an action, and
puts the result into the facts (`aver.gate.facts.surroundings`).

The zone of a path:

    workspace   at or below the workspace, by any of the names in `PathRoots`
    temporary   in a temporary directory of the system
    tree        in the git work tree that holds the workspace
    outside     anywhere else that is for everybody: other projects, libraries, settings of the system
    private     dot files and dot directories of the home, homes of other users, /proc, /sys, /dev, data of services,
                and directories that hold such things, as `/` does
    unknown     it depends on something that Aver cannot see; a path with a backslash, which some systems read as a
                slash; a URL, which some programs open

Zones compare the text exactly. Guarded names do not: upper case, compatible Unicode characters, characters without
width, and dots or blanks at the end of a name make no difference, because some file systems ignore them.

    >>> roots = PathRoots(workspace="/work/shop", home="/home/me")
    >>> locate_path("src/../.ENV", "/work/shop", roots).classes
    frozenset({'secret'})
    >>> locate_path("../shop-2/a.py", "/work/shop", roots).where
    'outside'
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import field
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Literal

from aver.fast_dataclass import dataclass
from aver.gate.effects.known_agents import (
    GUARDED_PATTERNS,
    GUARDED_SUFFIXES,
    PUBLIC_FILES,
    SYSTEM_ROOTS,
    KnownAgents,
    default_known_agents,
)
from aver.lazy_pattern import lazy_pattern

PathZone = Literal["workspace", "temporary", "tree", "outside", "private", "unknown"]

PATH_MAX = 4096
"""Characters of a path, as on Linux. A longer one has an unknown zone."""

PATTERN_MAX = 64
"""Characters of a pattern that is compared with guarded names. A longer pattern counts as a match."""

POLICY_ENV = "AVER_POLICY"
"""The name under which the facts of a decision hold the directory of its rules."""

WORKSPACE_ENV = "AVER_WORKSPACE"
"""The name under which the facts of a decision hold other names of the workspace, one a line."""

TREE_ENV = "AVER_TREE"
"""The name under which the facts of a decision hold the git work tree around the workspace."""

_TEMPORARY_DIRECTORIES = ("/tmp", "/var/tmp", "/private/tmp", "/private/var/tmp", "/dev/shm")
_HARMLESS_DEVICES = frozenset(
    ("/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero", "/dev/random", "/dev/urandom")
)
_GUARDED_FROM_READING = frozenset({"secret", "aver", "system", "device"})
_PROC_LINK = lazy_pattern(r"^/proc/(?:self|thread-self|[0-9]+)(?:/task/[0-9]+)?/(root|cwd)(?=/|$)")
"""Links in /proc that lead elsewhere."""
_PROCESS_MEMORY = lazy_pattern(
    r"^/proc/(?:self|thread-self|[0-9]+)(?:/task/[0-9]+)?/(?:environ|mem|maps|auxv|fd)(?:/|$)"
)
_SYSTEM_WORKSPACE = lazy_pattern(
    r"//|/[^/]*/$|/(?:bin|boot|dev|etc|lib|lib32|lib64|libx32|proc|run|sbin|sys|system|library)/", re.IGNORECASE
)
"""Workspaces whose paths stay system paths: `/`, a directory right below it, and directories of the system."""
_URL_START = lazy_pattern(r"[A-Za-z][A-Za-z0-9+.-]*://|(?i:file):")
_GLOB = lazy_pattern(r"[*?\[]")
_TRAILING_WILDCARD = lazy_pattern(r"/[*?.]*\*[*?]*$")
_PLAIN_PATH = lazy_pattern(r"[a-z0-9_/.-]*")
_PATTERN_HINTS = lazy_pattern(r"env|id_|service|_history|powershell|^\.#")
"""Found in every name that `GUARDED_PATTERNS` can match. Comparing a name with all the patterns takes longer."""
_ZERO_WIDTH = dict.fromkeys(
    [0x00AD, 0x034F, 0x061C, 0x180E, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070), 0xFEFF]
)


@dataclass(frozen=True, slots=True)
class PathRoots:
    """The directories that paths are compared with. An empty one is unknown, and then no path lies in it."""

    workspace: str = ""
    home: str = ""
    own: tuple[str, ...] = ()
    """Aver's own directories and files: its home, the ledger."""
    aliases: tuple[str, ...] = ()
    """Other names of the workspace: the directory that it leads to as a link, or another spelling."""
    tree: str = ""
    """The git work tree that holds the workspace, if it is larger."""
    known: KnownAgents = field(default_factory=default_known_agents)
    """The names of guarded files and directories, those of coding agents among them."""


@dataclass(frozen=True, slots=True)
class PathLocation:
    """A path, its zone, and its guarded classes."""

    path: str
    where: PathZone
    classes: frozenset[str] = frozenset()

    def classes_for(self, effect: str) -> frozenset[str]:
        """Return the classes that count for an effect. Settings and hooks may be read; only changes to them count."""
        return self.classes & _GUARDED_FROM_READING if effect == "read" else self.classes

    @property
    def matters(self) -> bool:
        """False for /dev/null and similar devices: writing there changes nothing."""
        return self.path not in _HARMLESS_DEVICES and not self.path.startswith("/dev/fd/")


UNKNOWN_LOCATION = PathLocation("", "unknown")


def build_path_roots(
    workspace: str, environment: Mapping[str, str] | None, known: KnownAgents | None = None
) -> PathRoots:
    """Build the roots for a workspace. The environment names the home and Aver's own directories."""
    environment = environment or {}
    home = environment.get("HOME", "")
    own = [environment[name] for name in ("AVER_HOME", POLICY_ENV) if environment.get(name)]
    ledger = environment.get("AVER_LEDGER", "")
    if ledger.startswith("sqlite:///"):
        own.append(ledger.removeprefix("sqlite://"))
    names = environment.get(WORKSPACE_ENV, ""), environment.get(TREE_ENV, "")
    return _normalise_roots(workspace, home, tuple(own), *names, known or default_known_agents())


@lru_cache(maxsize=64)
def _normalise_roots(
    workspace: str, home: str, own: tuple[str, ...], aliases: str, tree: str, known: KnownAgents
) -> PathRoots:
    return PathRoots(
        workspace=_normalise_path(workspace) if workspace.startswith("/") else "",
        home=_normalise_path(home) if home.startswith("/") else "",
        own=tuple(_normalise_path(path) for path in own if path.startswith("/")),
        aliases=tuple(_normalise_path(path) for path in aliases.split("\n") if path.startswith("/")),
        tree=_normalise_path(tree) if tree.startswith("/") else "",
        known=known,
    )


def has_glob(path: str) -> bool:
    return _GLOB.search(path) is not None


def locate_path(path: str, cwd: str | None, roots: PathRoots) -> PathLocation:
    """Locate a path that is used in the directory `cwd` (None if unknown). It may be a pattern of the shell."""
    if not path or len(path) > PATH_MAX or "\0" in path:
        return UNKNOWN_LOCATION
    if path.startswith("~"):
        # `~name` is the home of another user. An unknown home stays a name of its own, which lies in no workspace.
        name, slash, rest = path.partition("/")
        start = f"{roots.home or '/~'}/" if name == "~" else f"/home/{name[1:]}{slash}"
        whole = _normalise_path(f"{start}{rest}")
    elif path.startswith("/") or cwd is not None:
        whole = _normalise_path(path if path.startswith("/") else f"{cwd}/{path}")
    else:
        return PathLocation(path, "unknown", _name_classes(f"/{path}", roots.known))
    # `/proc/self/root/etc` is `/etc`. The directory behind `/proc/…/cwd` is not known.
    while link := _PROC_LINK.match(whole):
        if link[1] == "cwd":
            return PathLocation(whole, "unknown", frozenset({"system"}))
        whole = _normalise_path(whole[link.end() :] or "/")
    # The workspace may have several names. Its files keep the one by which the action knows it.
    for alias in roots.aliases:
        if roots.workspace and _is_at_or_below(whole, alias) and not _is_at_or_below(whole, roots.workspace):
            whole = roots.workspace + whole[len(alias) :]
            break
    # Aver's own files are guarded anywhere. Without case: on some file systems both spellings are the same file. The
    # ledger's lock and journals have its name with an ending.
    own = [
        path
        for path in roots.own
        if _is_at_or_below(whole.casefold(), path.casefold()) or whole.startswith((f"{path}.", f"{path}-"))
    ]
    classes = frozenset({"aver"}) if own else frozenset[str]()
    # The workspace comes first: one that lies in a temporary directory is still the workspace.
    where: PathZone = "outside"
    if roots.workspace and _is_at_or_below(whole, roots.workspace):
        where = "workspace"
        # Inside the workspace only the names below it count: a workspace in `/home/me/.config/x` is not guarded.
        inner = whole[len(roots.workspace) :] if roots.workspace != "/" else whole
        classes |= _name_classes(inner or "/", roots.known)
        if _SYSTEM_WORKSPACE.match(f"{roots.workspace}/"):
            classes |= _name_classes(whole, roots.known) | _system_classes(whole, where)
    else:
        # The work tree comes first: files of one that lies in a temporary directory are no temporary files.
        if roots.tree and _is_at_or_below(whole, roots.tree) and not is_private(whole, roots):
            where = "tree"
        elif any(_is_at_or_below(whole, directory) for directory in _TEMPORARY_DIRECTORIES):
            where = "temporary"
        elif is_private(whole, roots) or may_hold_private(whole, roots):
            where = "private"
        classes |= _name_classes(whole, roots.known) | _system_classes(whole, where)
    # A pattern may match `..`, as `.*` and `.?` do in some shells, and so lead to the parent.
    dotted = [name for name in whole.split("/") if name.startswith(".") and has_glob(name)]
    leads_up = any(len(name) > PATTERN_MAX or fnmatchcase("..", name) for name in dotted)
    # The classes found so far stay. Only the zone becomes unknown.
    if leads_up or "\\" in path or _URL_START.match(path):
        where = "unknown"
    return PathLocation(whole, where, classes)


def has_root_inside(place: PathLocation, roots: PathRoots) -> bool:
    """Whether the workspace, the home or `/` lies at or below a place. An effect on the place then concerns them."""
    path = _TRAILING_WILDCARD.sub("", place.path) or "/"
    return any(_is_at_or_below(root, path) for root in (roots.workspace, roots.home, "/") if root)


def is_private(path: str, roots: PathRoots) -> bool:
    """Whether a path outside of the workspace is one that a user, a service or the system keeps for itself."""
    if _PRIVATE_PATH.match(path) is not None:
        return _PUBLIC_PROC.match(path) is None
    home = roots.home
    if home and home != "/" and _is_at_or_below(path, home):
        below = path[len(home) + 1 :]
        first = below.partition("/")[0]
        if first.startswith("."):
            return not roots.known.is_readable(below)
        return first.lower() in _PRIVATE_IN_HOME
    return _HOMES.match(path) is not None and not (home and _is_at_or_below(home, path))


def may_hold_private(path: str, roots: PathRoots) -> bool:
    """Whether reading all of a path outside of the workspace may show what is private: `/`, a home, `/etc/*`.

    A pattern counts if it may match the name of a secret: outside of the workspace Aver does not look.
    """
    home = roots.home
    if path in _HOLDERS or (home and _is_at_or_below(home, path)):
        return True
    if not has_glob(path):
        return False
    last = path.rpartition("/")[2].casefold()
    is_in_home = bool(home) and _is_at_or_below(path, home) and has_glob(path[len(home) + 1 :].partition("/")[0])
    return is_in_home or any(
        "secret" in kinds and fnmatchcase(file, last) for file, kinds in roots.known.files.items() if has_glob(last)
    )


_HOLDERS = frozenset(("/", "/etc", "/var", "/private", "/private/etc", "/private/var", "/mnt", "/media", "/Volumes"))
"""Directories that hold private ones, and whole disks."""

_HOMES = lazy_pattern(r"/(?:home|users|export/home)(?:/|$)|/(?:var/)?root(?:/|$)", re.IGNORECASE)

_PRIVATE_PATH = lazy_pattern(
    r"/[^/]*[*?\[]|/~(?:/|$)|/(?:proc|sys|dev|run)(?:/|$)|(?:/private)?/var/(?:lib|spool|mail|backups|run|db|root)(?:/|$)"
    r"|(?:/private)?/etc/(?:wireguard|openvpn|ppp|networkmanager|ipsec\.d|ssl/private|krb5\.keytab|sudoers\.d)(?:/|$)"
    r"|.*/appdata(?:/|$)|/lost\+found(?:/|$)|/system/volumes(?:/|$)",
    re.IGNORECASE,
)
_PUBLIC_PROC = lazy_pattern(
    r"/proc/(?:cpuinfo|meminfo|version|loadavg|uptime|stat|mounts|filesystems|partitions|diskstats|swaps)$"
)
_PRIVATE_IN_HOME = frozenset(("library", "appdata", "snap", "mail", "maildir"))
"""Names in a home that do not begin with a dot, and hold what programs keep there."""


def _normalise_path(path: str) -> str:
    """Return an absolute path without `.`, `..`, doubled or trailing slashes."""
    if "/." not in path and "//" not in path:  # the common case: nothing to normalise
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
    """Return the guarded classes that follow from the names in a path."""
    if not _PLAIN_PATH.fullmatch(path) or "./" in path:
        # Guarded names are looked up in one spelling. After a colon, Windows names a stream of the same file.
        folded = unicodedata.normalize("NFKC", path).translate(_ZERO_WIDTH).casefold().replace("\\", "/")
        path = "/".join(name.partition(":")[0].rstrip(". ") or name for name in folded.split("/"))
    found: set[str] = set()
    names = [name for name in path.split("/") if name]
    for before, name in zip(["", *names], names, strict=False):
        # A pattern stands for every guarded directory that it may match.
        matches = known.directories if _is_specific_pattern(name) else ()
        for candidate in (name, *(directory for directory in matches if fnmatchcase(directory, name))):
            found.update(known.directories.get(candidate, ()))
            if before:
                found.update(known.pairs.get(f"{before}/{candidate}", ()))
    if not names:
        return frozenset()
    last = names[-1]
    found.update(known.files.get(last, ()))
    if last.startswith(".env.") or _PATTERN_HINTS.search(last) is not None:
        guarded = [kinds for pattern, kinds in GUARDED_PATTERNS.items() if fnmatchcase(last, pattern)]
        found.update(*guarded)
    stem, dot, ending = last.rpartition(".")
    if dot and stem:
        found.update(GUARDED_SUFFIXES.get(ending, ()))
    if _is_specific_pattern(last):
        found.update(*(kinds for file, kinds in known.files.items() if fnmatchcase(file, last)))
    elif has_glob(last) and len(last) > PATTERN_MAX:
        found.add("secret")
    # Examples and public keys are not secret, even in a directory of secrets.
    if last in PUBLIC_FILES or last.endswith(".pub"):
        found.discard("secret")
    if "hooks" in found and "git" in found and last.endswith(".sample"):  # git does not run these.
        found.discard("hooks")
    return frozenset(found)


def _is_specific_pattern(name: str) -> bool:
    """Whether this is a pattern that begins with a literal character. `*` and `*.py` match too much to say anything."""
    return has_glob(name) and name[0] not in "*?[" and len(name) <= PATTERN_MAX

"""MAC keys: the keyrings by which policy servers authenticate their shares, and the key that two servers have together.

A keyring is a file of lines, newest first, at most `KEYS_MAX`, mode 0600:

    3:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
    2:60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752

Each line is `kid:hex`: the name that a share gives for its key, and 16 to 64 bytes in lower-case hex. The first line is
the active key, with which a server makes MACs. The others only check older ones. A new key is put first, and the old
ones stay, so that evidence that is under way still verifies. To retire a key, remove its line.

In an environment variable the same entries stand in one line: `kid:hex,kid:hex`. An entry without a colon has the kid
`0`, in both forms. The environment wins over the file, and the plural variable over the singular one:

    a policy server             POLICY_MAC_KEYS, POLICY_MAC_KEY; POLICY_MAC_ACTIVE_KID names the active key
    executor, verifier          POLICY0_MAC_KEYS, POLICY0_MAC_KEY for server 0; POLICY1_… for server 1

No message, repr or log of this module shows a key, or a part of one.
"""

from __future__ import annotations

import hmac
import os
import re
import secrets
import time
from collections.abc import Iterable, Mapping
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from aver.errors import BadInput, NotFound, Refused, Unavailable
from aver.files.atomic import make_directory, replace_file
from aver.files.locks import lock_directory
from aver.files.regular import read_private_file, require_safe_directory
from aver.keys.private_files import Stamp, read_stamp
from aver.keys.store import UNSETTLED_NS
from aver.lazy_pattern import lazy_pattern
from aver.log import debug

KEY_MIN, KEY_MAX = 16, 64
"""Bytes of a key: 128 bits cannot be guessed, and HMAC-SHA256 gains nothing from more than one block."""

NEW_KEY_BYTES = 32
"""Bytes of a key that Aver makes: as many as the hash has."""

KEYS_MAX = 64
"""Most keys in a ring: five years of monthly rotations."""

LONE_KID = "0"
"""The kid of an entry that names none."""

SHARED = "shared"
"""In the place of a server's number: the keyring that both servers have, and nobody else."""

_EMBEDDED_FILES: Mapping[int | str, str] = {0: "policy-0.mac", 1: "policy-1.mac", SHARED: "policy-shared.mac"}

KID_PATTERN = lazy_pattern(r"[A-Za-z0-9][A-Za-z0-9._-]{0,31}", re.ASCII)
_ENTRY = lazy_pattern(rf"(?:([A-Za-z0-9][A-Za-z0-9._-]{{0,31}}):)?((?:[0-9a-f]{{2}}){{{KEY_MIN},{KEY_MAX}}})", re.ASCII)
_NUMBER = lazy_pattern(r"[0-9]{1,18}", re.ASCII)

FILE_MAX = KEYS_MAX * (32 + 1 + 2 * KEY_MAX + 1)
"""Most bytes of a file."""


class MacKey(NamedTuple):
    """A key and its name. `kid, key = ring.active` works; its repr shows the name alone."""

    kid: str
    key: bytes

    def __repr__(self) -> str:
        return f"<MacKey {self.kid}>"


class MacKeyring:
    """The keys of one server, newest first. A value; it cannot be pickled or copied, and shows no key."""

    __slots__ = ("_active", "_keys")

    def __init__(self, keys: Iterable[MacKey], *, active: str | None = None) -> None:
        """Without `active`, the first key is the active one. Raises `BadInput`."""
        self._keys = tuple(keys)
        if not 1 <= len(self._keys) <= KEYS_MAX:
            raise BadInput(f"a keyring has 1 to {KEYS_MAX} keys, not {len(self._keys)}")
        for kid, key in self._keys:
            if KID_PATTERN.fullmatch(kid) is None:
                raise BadInput(
                    f"{ascii(kid)[:40]} is not the name of a key", advice="use A-Z a-z 0-9 . _ -, 32 at most"
                )
            if not KEY_MIN <= len(key) <= KEY_MAX:
                raise BadInput(f"the key {kid} has {len(key)} bytes, not {KEY_MIN} to {KEY_MAX}")
        kids = [each.kid for each in self._keys]
        if twice := next((kid for kid in kids if kids.count(kid) > 1), None):
            raise BadInput(f"two keys have the name {twice}", advice="give each key a name of its own")
        if active is not None and active not in kids:
            raise BadInput(f"no key has the name {ascii(active)[:40]}, which is to be the active one")
        self._active = 0 if active is None else kids.index(active)

    @property
    def active(self) -> MacKey:
        """The key with which MACs are made."""
        return self._keys[self._active]

    @property
    def kids(self) -> tuple[str, ...]:
        """The names of the keys, newest first."""
        return tuple(each.kid for each in self._keys)

    def find(self, kid: str) -> bytes | None:
        """The key of that name, or None."""
        return next((each.key for each in self._keys if each.kid == kid), None)

    def require_apart(self, other: MacKeyring) -> None:
        """Raise `BadInput` if both rings have a key in common: then each server could speak for the other."""
        # All pairs are compared, each in constant time.
        pairs = [hmac.compare_digest(mine.key, theirs.key) for mine in self._keys for theirs in other._keys]
        if any(pairs):
            raise BadInput(
                "both policy servers have the same MAC key, so one could speak for the other",
                advice="give each server a key of its own",
            )

    def with_new_key(self) -> MacKeyring:
        """The ring with a new random key, which comes first and is the active one. `Refused` if the ring is full."""
        if len(self._keys) >= KEYS_MAX:
            raise Refused(
                "KEYRING_FULL", f"the keyring has {KEYS_MAX} keys already", advice="remove the lines of old keys first"
            )
        highest = max((int(kid) for kid in self.kids if _NUMBER.fullmatch(kid)), default=0)
        kid = next(kid for kid in map(str, count(highest + 1)) if kid not in self.kids)
        return MacKeyring([MacKey(kid, secrets.token_bytes(NEW_KEY_BYTES)), *self._keys])

    def __repr__(self) -> str:
        return f"<MacKeyring {' '.join(self.kids)}, active {self.active.kid}>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a keyring holds secret keys and is not copied or pickled")


def parse_mac_keys(text: str, where: str, *, active: str | None = None) -> MacKeyring:
    """Read the entries `kid:hex,kid:hex`. `BadInput` names `where` and the entry, and repeats nothing of it."""
    return _build_ring([entry.strip(" ") for entry in text.split(",")], where, "entry", active)


def _build_ring(entries: list[str], where: str, noun: str, active: str | None) -> MacKeyring:
    keys = []
    for number, entry in enumerate(entries, 1):
        match = _ENTRY.fullmatch(entry)
        if match is None:
            raise BadInput(
                f"{where}: {noun} {number} is not kid:hex with {KEY_MIN} to {KEY_MAX} bytes in lower-case hex"
            )
        keys.append(MacKey(match[1] or LONE_KID, bytes.fromhex(match[2])))
    try:
        return MacKeyring(keys, active=active)
    except BadInput as error:
        raise BadInput(f"{where}: {error.message}", advice=error.advice) from error


# --- files


def mac_key_path(home: Path, server: int | str) -> Path:
    """The file of an embedded policy server's keyring, 0 or 1, or of `SHARED`."""
    name = _EMBEDDED_FILES.get(server)
    if name is None:
        raise BadInput(f"there is no policy server {ascii(server)[:40]}", advice=f"use 0, 1 or {SHARED!r}")
    return home / "keys" / name


def read_mac_keys(path: Path, *, active: str | None = None) -> MacKeyring:
    """Read a keyring. `NotFound` without a file, `Refused` if others can read it, `BadInput` if it is not one."""
    raw = read_private_file(path, limit=FILE_MAX)
    if raw is None:
        raise NotFound(f"there is no MAC key in {path}", advice="aver gateway init makes one")
    require_safe_directory(path.parent)
    try:
        text = raw.decode("ascii")
    except UnicodeDecodeError:
        raise BadInput(f"{path} is not a keyring: it is not ASCII") from None
    # A last line without a line feed may have been cut off.
    if not text.endswith("\n"):
        raise BadInput(f"{path} is not a keyring: its last line does not end", advice="restore it from a backup")
    return _build_ring(text[:-1].split("\n"), str(path), "line", active)


def create_mac_keys(path: Path) -> MacKeyring:
    """Make a keyring with one new key. `Refused` with `KEY_EXISTS` if there is a file."""
    return _change_file(path, create=True)


def rotate_mac_keys(path: Path) -> MacKeyring:
    """Put a new key first. Servers and verifiers that read the file use it from their next call on.

    Verifiers that have a copy of the file need the new copy first: a MAC by a key that they do not know is refused.
    """
    return _change_file(path, create=False)


def copy_mac_keys(path: Path, target: Path) -> None:
    """Write the keyring of one file to another, for a second part that needs it. An older file there is replaced."""
    ring = read_mac_keys(path)
    _make_key_directory(target)
    with lock_directory(target.parent.resolve()):
        _write_ring(target, ring)


def _change_file(path: Path, *, create: bool) -> MacKeyring:
    _make_key_directory(path)
    # Locked, so that of two changes at a time none is lost. Readers need no lock: the file is replaced as a whole.
    with lock_directory(path.parent.resolve()):
        if not create:
            ring = read_mac_keys(path).with_new_key()
        elif os.path.lexists(path):
            raise Refused("KEY_EXISTS", f"{path} exists already", advice="rotate it instead")
        else:
            ring = MacKeyring([MacKey("1", secrets.token_bytes(NEW_KEY_BYTES))])
        _write_ring(path, ring)
    return ring


def _make_key_directory(path: Path) -> None:
    try:
        make_directory(path.parent)
    except OSError as error:
        raise Unavailable(f"cannot create {path.parent}: {error.strerror}") from error
    require_safe_directory(path.parent)


def _write_ring(path: Path, ring: MacKeyring) -> None:
    """Write a keyring. The caller holds the lock on the directory."""
    lines = [f"{kid}:{key.hex()}\n" for kid, key in ring._keys]
    replace_file(path, "".join(lines).encode("ascii"))
    debug("keys", "wrote the MAC keys %s to %s", ring.kids, path)


# --- where a part finds its keys


class MacKeySource:
    """Where a part finds a keyring: environment variables, or a file that is read again when it has changed."""

    def __init__(
        self,
        path: Path | None,
        variables: tuple[str, ...],
        *,
        active_variable: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._path = path
        self._variables = variables
        given: Mapping[str, Any] = os.environ if environment is None else environment
        self._active = (given.get(active_variable) if active_variable else None) or None
        name = next((name for name in variables if given.get(name)), None)  # The plural comes first.
        self._fixed = None if name is None else parse_mac_keys(given[name], name, active=self._active)
        self._seen: tuple[Stamp | None, MacKeyring] | None = None

    def load(self) -> MacKeyring:
        """The keyring as it is now. Raises as `read_mac_keys`, and `NotFound` if there is neither variable nor file."""
        if self._fixed is not None:
            return self._fixed
        if self._path is None:
            raise NotFound("there is no MAC key", advice=f"set {' or '.join(self._variables)}")
        stamp = read_stamp(str(self._path))
        seen = self._seen
        if seen is not None and stamp is not None and seen[0] == stamp:
            return seen[1]
        ring = read_mac_keys(self._path, active=self._active)
        # A file that changed a moment ago may change again within one tick of its timestamps.
        if stamp is not None and time.time_ns() - stamp[3] > UNSETTLED_NS:
            self._seen = stamp, ring
        return ring


def server_mac_source(path: Path | None, environment: Mapping[str, str] | None = None) -> MacKeySource:
    """The keys by which a policy server makes its MACs."""
    return MacKeySource(
        path,
        ("POLICY_MAC_KEYS", "POLICY_MAC_KEY"),
        active_variable="POLICY_MAC_ACTIVE_KID",
        environment=environment,
    )


def verifier_mac_source(server: int, path: Path | None, environment: Mapping[str, str] | None = None) -> MacKeySource:
    """The keys by which an executor or a verifier checks the MACs of policy server 0 or 1."""
    return MacKeySource(path, (f"POLICY{server}_MAC_KEYS", f"POLICY{server}_MAC_KEY"), environment=environment)


def shared_mac_source(path: Path) -> MacKeySource:
    """The key that the two policy servers have together. It comes from a file alone."""
    return MacKeySource(path, ())

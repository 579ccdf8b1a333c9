"""MAC keys of a policy server: named secrets, of which the first makes new MACs.

They are written as `kid:hex[,kid:hex]`, the newest first. An entry without a colon has the kid `0`:

    >>> keys = parse_mac_keys("2026-b:1111111111111111,0:2222222222222222")
    >>> keys.active
    '2026-b'
    >>> keys.find("1") is None
    True
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from aver.errors import BadInput
from aver.fast_dataclass import dataclass
from aver.lazy_pattern import lazy_pattern

MAC_KEY_BYTES_MIN = 8
"""Shortest MAC key that is read, in bytes. Aver makes keys of 32 bytes; others may be shorter."""

MAC_KEYS_MAX = 64
"""Most keys in one ring. Two are enough to rotate a key."""

_KID = lazy_pattern(r"[!-+\--9;-~]{1,64}")
_HEX = lazy_pattern(r"(?:[0-9a-fA-F]{2})+")


@dataclass(frozen=True, slots=True)
class MacKeyring:
    """The MAC keys of one policy server. Its text never shows a key."""

    active: str
    """The kid with which new MACs are made."""
    _keys: Mapping[str, bytes] = field(repr=False)

    def find(self, kid: str) -> bytes | None:
        """The key of that name, or None."""
        return self._keys.get(kid)


def parse_mac_keys(text: str) -> MacKeyring:
    """Read `kid:hex[,kid:hex]`. `BadInput` names the entry by its place, and never shows a key."""
    keys: dict[str, bytes] = {}
    entries = text.split(",")
    if len(entries) > MAC_KEYS_MAX:
        raise BadInput(f"there are more than {MAC_KEYS_MAX} MAC keys")
    for number, entry in enumerate(entries, 1):
        kid, colon, digits = entry.strip().rpartition(":")
        if not colon:
            kid = "0"
        if _KID.fullmatch(kid) is None or _HEX.fullmatch(digits) is None or len(digits) < 2 * MAC_KEY_BYTES_MIN:
            raise BadInput(
                f"MAC key {number} is not of the form kid:hex, with at least {MAC_KEY_BYTES_MIN} bytes",
                advice="write kid:hex[,kid:hex]",
            )
        if kid in keys:
            raise BadInput(f"two MAC keys have the kid {kid!r}")
        keys[kid] = bytes.fromhex(digits)
    return MacKeyring(next(iter(keys)), keys)

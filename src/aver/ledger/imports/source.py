"""The source of an import, and the names that its chains get here.

Every imported chain is stored as

    import.<16 hex digits>.<name>

so that no import takes a name of this ledger's own. The digits stand for the source: they are the beginning of SHA-256
of `<ledger id>/<tenant>`. A source that names no ledger, such as a database of the public tools, has the hash of the
first record of its first chain in their place. The first chain is its meta chain, or else the one that was begun first;
so the digits stay the same when the source grows. For example, the chain `gate.default` of the tenant `default` of the
ledger `9a66d3ac-0f2f-4b6b-a3cb-1f0b4c6a7d11` becomes `import.93dbd7c3122c24a5.gate.default`.

A name that is too long or has other characters becomes `x-` and 32 digits of its SHA-256, after the same prefix. The
name in a chain's first record, its origin, stays what it is; the rooms judge the chain by that name.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from aver.capsule.aver_block import IMPORT_DOMAIN, RESERVED_CHAINS, check_chain_name, is_tenant_name
from aver.capsule.sealed import Sealed
from aver.errors import BadInput
from aver.fast_dataclass import dataclass

DIGITS = 16
"""How many digits of the digest stand for a source."""

LEDGER_ID_MAX = 256
"""Longest id of a ledger, in characters, that names a source. Aver's own ids have 36."""

OLD_IMPORT = "imported"
"""Stands for the source of a chain that an older version imported under a name without digits."""

_STORED_NAME = re.compile(rf"{IMPORT_DOMAIN}\.([0-9a-f]{{{DIGITS}}})\.")


@dataclass(frozen=True, slots=True)
class ImportSource:
    """Where chains come from. `text` is `<ledger id>/<tenant>`, or the hash of a record."""

    text: str

    @property
    def digits(self) -> str:
        return hashlib.sha256(self.text.encode("utf-8")).hexdigest()[:DIGITS]

    def name_chain(self, name: str) -> str:
        """The name under which a chain of this source is stored here."""
        prefix = f"{IMPORT_DOMAIN}.{self.digits}."
        try:
            return check_chain_name(prefix + name)
        except BadInput:
            digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
            return f"{prefix}x-{digest[:32]}"


def source_from_ledger(ledger: object, tenant: object) -> ImportSource | None:
    """The source of chains that name this ledger and tenant; None unless both can be names of such."""
    if not isinstance(ledger, str) or not isinstance(tenant, str) or not is_tenant_name(tenant):
        return None
    if not ledger.isprintable() or not 0 < len(ledger) <= LEDGER_ID_MAX:
        return None
    return ImportSource(f"{ledger}/{tenant}")


def source_from_records(firsts: Iterable[Sealed], meta: Sealed | None = None) -> ImportSource:
    """The source of chains that name no ledger, from their first records; `meta` is that of the meta chain.

    Raises `BadInput` if there is none.
    """
    first = meta or min(firsts, key=lambda record: (record.signed_at, record.hash), default=None)
    if first is None:
        raise BadInput("nothing was imported: it has no records")
    return ImportSource(first.hash)


def read_digits(chain: str) -> str | None:
    """The digits in the stored name of an imported chain; None for other names."""
    match = _STORED_NAME.match(chain)
    return None if match is None else match[1]


def original_name(chain: str, origin: str | None) -> str:
    """The name of an imported chain where it was made, in Aver's form. `origin` may have that of the public tool."""
    if origin is not None and ("." in origin or origin in RESERVED_CHAINS):
        return origin
    while digits := read_digits(chain):  # A chain that was imported there, too, has two prefixes.
        chain = chain.removeprefix(f"{IMPORT_DOMAIN}.{digits}.")
    return chain

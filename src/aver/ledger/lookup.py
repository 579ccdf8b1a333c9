"""Look up a name that a person typed: which chain or record of a ledger does it mean?

A name is tried in this order:

1. a `capsule://` URI;
2. a chain's name;
3. a record's hash or id, or an idempotency key;
4. the beginning of a chain's name or of a session id, if only one session begins so;
5. if no chain that was made here matches: the same for the names that imported chains had where they were made.

A session and its subagents (`<tool>.<session>` and `<tool>.<session>.<agent>`) count as one, and so do the decisions
about it (`gate.<session>`): the name then means the session's own chain.

The result is a place, found through unsigned columns. The caller must verify the record there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from aver.capsule.aver_block import split_chain_name
from aver.capsule.uri import parse_uri
from aver.config import hide_password, load_config
from aver.errors import BadInput, IntegrityError, NotFound
from aver.fast_dataclass import dataclass
from aver.ledger.imports.source import original_name
from aver.ledger.ledger import Ledger, open_ledger
from aver.ledger.seen_heads import META_CHAIN
from aver.ledger.stores.protocol import ChainRow, LookupColumn

_HEX64 = re.compile(r"[0-9a-f]{64}").fullmatch
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch

DECISION_DOMAIN = "gate"
"""The domain of the chains with a session's decisions: `gate.<session>`."""

NAMED_MAX = 5
"""How many of several matching chains an error message names."""


LedgerLike = Ledger | str | Path | None
"""An open ledger, the URL or path of one, or the default one."""


@dataclass(frozen=True, slots=True)
class LedgerSource:
    """The ledger in which names are looked up. It is opened only when a name needs it."""

    tenant: str | None
    home: Path
    ledger: LedgerLike
    open_url: Callable[..., Ledger] = open_ledger
    """Opens the ledger at a URL; `aver.check` gives a function that also opens bundles."""

    @contextmanager
    def open(self) -> Iterator[Ledger]:
        """Give the ledger, and close it if it was not open already. Creates none; raises `NotFound` instead."""
        if isinstance(self.ledger, Ledger):
            if self.tenant not in (None, self.ledger.tenant):
                raise BadInput(f"the ledger was opened for the tenant {self.ledger.tenant}, not {self.tenant}")
            yield self.ledger
            return
        with self.open_url(self.ledger, tenant=self.tenant, create=False, home=self.home) as opened:
            yield opened


@contextmanager
def locate_name(name: str, source: LedgerSource) -> Iterator[tuple[Ledger, Location]]:
    """Open the ledger and give the place that a name means in it. `NotFound` says in which ledger it is not."""
    if not name:
        raise BadInput("an empty name names nothing")
    with ExitStack() as stack:
        try:
            ledger = stack.enter_context(source.open())
            place = locate(ledger, name)
        except NotFound as error:
            given = source.ledger.store.url if isinstance(source.ledger, Ledger) else source.ledger
            shown = hide_password(str(given) if given else load_config(home=source.home).ledger)
            words = f"there is no file or directory {ascii(name)[:120]}, and {error.message}"
            raise NotFound(words, advice=f"looked in {shown}; aver log lists the chains there") from error
        yield ledger, place


@dataclass(frozen=True, slots=True)
class Location:
    """A chain, or with `sequence` one record in it; `fragment` is the part of the record that a URI names."""

    chain: str
    sequence: int | None = None
    fragment: str | None = None


def locate(ledger: Ledger, name: str) -> Location:
    """The place that a name means. Raises `NotFound` if there is none, `BadInput` if there are several."""
    if name.startswith("capsule://"):  # 1.
        uri = parse_uri(name)
        found: Location | None = None
        if uri.sequence is not None:
            row = ledger.store.chain(ledger.tenant, str(uri.chain)) or _find_imported(ledger, str(uri.chain))
            if row is not None and uri.sequence < row.count:
                found = Location(row.name, uri.sequence)
        elif uri.hash is not None:
            found = _find_by_column(ledger, "hash", uri.hash)
        else:
            found = _find_by_column(ledger, "id", str(uri.id))
        if found is None or (uri.sequence is None and uri.chain not in (None, found.chain)):
            raise NotFound(f"there is no {name} in this ledger")
        return Location(found.chain, found.sequence, uri.fragment)
    if not name.isprintable():
        raise _not_found_error(name)
    # 2. `meta` may be missing: the caller gets its verdict, which says so, instead of "not found".
    if name == META_CHAIN or ledger.store.chain(ledger.tenant, name) is not None:
        return Location(name)
    # 3. to 5.
    if _HEX64(name):
        found = _find_by_column(ledger, "hash", name)
    else:
        found = (_find_by_column(ledger, "id", name) if _UUID(name) else None) or _find_by_column(ledger, "key", name)
    # The names of all chains are read only if nothing is called exactly so.
    return found or Location(_find_by_prefix(ledger.store.chains(ledger.tenant), name))


def _find_by_column(ledger: Ledger, column: LookupColumn, value: str) -> Location | None:
    found = ledger.store.find_first(ledger.tenant, column, value)
    if found is None:
        return None
    chain, row = found
    if type(row.sequence) is not int:
        words = f"chain {chain}: the record with the {column} {value} has no sequence number"
        raise IntegrityError("COLUMN_MISMATCH", words, evidence=row.sealed, advice="run: aver verify")
    return Location(chain, row.sequence)


def _find_imported(ledger: Ledger, name: str) -> ChainRow | None:
    """The imported chain that had this name where it was made; None if there is none, or several."""
    rows = ledger.store.chains(ledger.tenant)
    found = [row for row in rows if row.frozen and original_name(row.name, row.origin) == name]
    return found[0] if len(found) == 1 else None


def _find_by_prefix(rows: list[ChainRow], beginning: str) -> str:
    """The chain whose name or session id begins so. Raises `NotFound`, or `BadInput` if several sessions match."""
    # Chains that were made here come first, so that no import changes what a name means.
    own = {row.name: row.name for row in rows if not row.frozen}
    imported = {row.name: original_name(row.name, row.origin) for row in rows if row.frozen}
    matches = _match_beginning(own, beginning) or _match_beginning(imported, beginning)
    matches = matches or [row.name for row in rows if beginning and row.name.startswith(beginning)]
    if not matches:
        raise _not_found_error(beginning)
    shortest = min(matches, key=len)
    if all(name == shortest or name.startswith(f"{shortest}.") for name in matches):
        return shortest
    listed = ", ".join(matches[:NAMED_MAX]) + (", ..." if len(matches) > NAMED_MAX else "")
    raise BadInput(
        f"{ascii(beginning)[:80]} may be any of {len(matches)} chains: {listed}", advice="give the whole name of one"
    )


def _match_beginning(names: dict[str, str], beginning: str) -> list[str]:
    """The chains whose original name or session id begins so; `names` has the original name of each."""
    matches = [
        name
        for name, made_as in names.items()
        if beginning and (made_as.startswith(beginning) or split_chain_name(made_as)[1].startswith(beginning))
    ]
    return [name for name in matches if split_chain_name(names[name])[0] != DECISION_DOMAIN] or matches


def _not_found_error(name: str) -> NotFound:
    return NotFound(f"no chain, session, record or hash in this ledger is called {ascii(name)[:80]}")

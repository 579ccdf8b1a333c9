"""The heads that this machine has verified, so that the next verification can resume there.

After a verification at signature level that did not fail, with our own and the known keys, this machine saves the head
of every chain in `AVER_HOME/verified/<ledger>.<tenant>.json` (mode 0600, replaced atomically):

    {v: 1, ledger, tenant, whole_at, entries, keys: [<public key>],
     chains: {<chain>: {count, hash, at, trusted, post_quantum}}}

Every later verification compares the chains with these heads, and so finds chains that are shorter, gone or different.
With `since="last"` it reads only the records after them, under these rules:

1. a chain is resumed only if nothing about it was doubtful (`trusted`);
2. all keys that were accepted then are still accepted; after a key was forgotten, all records are read again;
3. if ML-DSA-65 signatures are required now, they were required then;
4. after a failed verification, its chains are not trusted until they were verified from their beginning.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from aver.capsule.aver_block import is_tenant_name
from aver.capsule.json_reader import ELEMENT_MAX, read_json
from aver.clock import now
from aver.errors import AverError, BadInput, NotFound, Unavailable
from aver.fast_dataclass import dataclass
from aver.files.atomic import replace_file
from aver.files.regular import open_inside
from aver.keys import Ring
from aver.ledger.head import Head
from aver.ledger.imports.history import ImportHistory
from aver.ledger.meta_chain import check_meta
from aver.ledger.seen_heads import META_CHAIN, SeenHead, check_heads, check_seen_head, save_seen_head
from aver.ledger.stores.protocol import ChainRow
from aver.log import debug
from aver.verdict import CHECKS, Tally, Verdict

if TYPE_CHECKING:
    from aver.ledger.ledger import Ledger

DIRECTORY = "verified"
VERSION = 1

CHAINS_MAX = 40_000
"""Most chains saved for one tenant: with the longest names, the JSON document is still small enough to be read.
The chains verified longest ago are dropped first; the next verification reads them from their beginning."""

FILES_MAX = 10_000
"""Most files in the directory. The ones written longest ago are removed first."""

RECORD_CHECKS = tuple(check for check in CHECKS if check not in ("store", "meta"))
"""The checks of single records. A resumed verification skips them if there is no new record."""

_LEDGER_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch
_PUBLIC_KEY = re.compile(r"[0-9a-f]{64}").fullmatch
_DOCUMENT_KEYS = {"v", "ledger", "tenant", "whole_at", "entries", "keys", "chains"}
_HEAD_KEYS = {"count", "hash", "at", "trusted", "post_quantum"}


@dataclass(frozen=True, slots=True)
class VerifiedHead:
    """The head of a chain when its newest record was verified; `at` is the time of that verification."""

    count: int
    hash: str
    at: str
    trusted: bool
    """Nothing about the chain was doubtful: a verification may resume here."""
    post_quantum: bool
    """An ML-DSA-65 signature was required of every record up to here."""


@dataclass(frozen=True, slots=True)
class VerifiedChains:
    """The verified heads of one tenant's chains."""

    heads: Mapping[str, VerifiedHead] = field(default_factory=dict)
    keys: frozenset[str] = frozenset()
    """The public keys whose signatures were accepted."""
    whole_at: str | None = None
    """When all chains were last verified from their beginning."""
    entries: int = 0
    """How many entries of `meta` all chains were compared with; 0 unless `heads` has all chains."""

    def resumable_heads(self, rows: Iterable[ChainRow], ring: Ring, *, require_pq: bool) -> dict[str, VerifiedHead]:
        """The heads from which a verification with these keys may resume. Chains that are shorter now have none."""
        if not self.keys <= _accepted_keys(ring):  # Rule 2.
            debug("ledger", "a key that was accepted earlier is not accepted now: every record is read again")
            return {}
        found = {}
        for row in rows:
            head = self.heads.get(row.name)
            # Rules 1 and 3.
            if head is not None and head.trusted and (head.post_quantum or not require_pq) and head.count <= row.count:
                found[row.name] = head
        return found

    def without_dropped(self, history: ImportHistory) -> VerifiedChains:
        """A copy without the heads of imports that were dropped: a chain of the same name is another chain."""
        kept = {
            name: head
            for name, head in self.heads.items()
            if not history.has_dropped(Head("", "", name, head.count, head.hash))
        }
        return self if len(kept) == len(self.heads) else replace(self, heads=kept)

    def distrust(self, chains: Iterable[str | None]) -> VerifiedChains:
        """A copy in which these chains cannot be resumed. None among them stands for all chains."""
        doubted = set(chains)
        heads = {
            name: replace(head, trusted=False) if None in doubted or name in doubted else head
            for name, head in self.heads.items()
        }
        return replace(self, heads=heads)


def update_verified(
    before: VerifiedChains,
    rows: Iterable[ChainRow],
    resumed: Mapping[str, VerifiedHead],
    tally: Tally,
    verdict: Verdict,
    *,
    chain: str | None,
    ring: Ring,
    require_pq: bool,
) -> VerifiedChains:
    """The heads to save after a verification of one chain (`chain`) or of all, which resumed at `resumed`."""
    if verdict.status == "failed":  # Rule 4. If `chain` is None, all chains were verified, and none is trusted.
        return before.distrust({chain, *tally.doubtful})
    if verdict.level != "signature":
        return before
    rows, at, keys = list(rows), now(), _accepted_keys(ring)
    # A doubt about no chain in particular (None), or a check that should have been carried out, concerns them all.
    certain = None not in tally.doubtful and not any(matters for _, matters in tally.skipped.values())
    heads: dict[str, VerifiedHead] = {}
    if chain is not None:
        heads.update((before if before.keys <= keys else before.distrust([None])).heads)
    for row in rows:
        if row.head is None:
            continue
        if row.name in tally.doubtful:
            # A stranger's file may claim our ledger's id. Do not save its heads: our own ledger would seem to have
            # been rolled back.
            if row.name in before.heads:
                heads[row.name] = replace(before.heads[row.name], trusted=False)
            continue
        resumed_at = resumed.get(row.name)
        all_pq = require_pq and (resumed_at is None or resumed_at.post_quantum)
        if resumed_at is not None and resumed_at.count == row.count:
            heads[row.name] = replace(resumed_at, trusted=certain)
        else:
            heads[row.name] = VerifiedHead(row.count, row.head, at, certain, all_pq)
    if chain is not None:
        return replace(before, heads=heads, keys=keys)
    # Entries of `meta` may be skipped next time only if every chain that they name is compared through `heads`.
    all_saved = all(row.head is None or (row.name in heads and row.name not in tally.doubtful) for row in rows)
    entries = sum(row.count for row in rows if row.name == META_CHAIN) if all_saved else 0
    return VerifiedChains(heads, keys, before.whole_at if resumed else at, entries)


def check_remembered_heads(
    ledger: Ledger,
    chain: str | None,
    rows: Iterable[ChainRow],
    known: VerifiedChains,
    resumed: Mapping[str, VerifiedHead],
    history: ImportHistory,
    tally: Tally,
    seen: SeenHead = "stored",
) -> None:
    """Compare chains with the heads in `meta`, in `seen.json`, and from earlier verifications on this machine."""
    if chain in (None, META_CHAIN):
        entries = sum(row.count for row in rows if row.name == META_CHAIN)
        start = min(known.entries, entries) if chain is None and resumed else 0
        check_meta(ledger, tally, history, start=start, stop=entries)
        check_seen_head(ledger, tally, seen)
        _check_verified_heads(ledger, known, None, tally)
    else:
        tally.skip("meta", "only one chain was verified", matters=False)
        _check_verified_heads(ledger, known, chain, tally)
    if chain == META_CHAIN:
        others = sum(name != META_CHAIN for name in ledger.chains())
        tally.skip("chains", f"the records of {others} other chains were not verified; use --deep", matters=False)
    if resumed and not tally.records:
        for check in RECORD_CHECKS:
            tally.skip(check, "there are no new records", matters=False)
    if resumed:
        tally.earlier = sum(head.count for head in resumed.values())
        last = max(head.at for head in resumed.values())
        whole = f"the ledger was last read whole at {known.whole_at}" if known.whole_at else "it was never read whole"
        words = f"{tally.earlier} records were verified earlier, until {last}, and not read again; {whole}"
        tally.skip("earlier", words, matters=False)


def save_meta_head(ledger: Ledger, rows: Iterable[ChainRow], tally: Tally, verdict: Verdict) -> None:
    """Save the head of `meta` in `seen.json`, if nothing about it was doubtful."""
    meta = next((row for row in rows if row.name == META_CHAIN), None)
    certain = verdict.level == "signature" and verdict.status != "failed" and META_CHAIN not in tally.doubtful
    if meta is not None and certain:
        save_seen_head(ledger, Head(ledger.id, ledger.tenant, meta.name, meta.count, meta.head))


def _check_verified_heads(ledger: Ledger, verified: VerifiedChains, chain: str | None, tally: Tally) -> None:
    """Compare the chains, or one of them, with the heads that this machine verified earlier."""
    # `check_seen_head` may have reported the meta chain already.
    already = {finding.place.chain for finding in tally.findings if finding.check == "rollback"}
    heads = [
        Head(ledger.id, ledger.tenant, name, head.count, head.hash)
        for name, head in verified.heads.items()
        if chain in (None, name) and not (name == META_CHAIN and name in already)
    ]
    if not heads:
        return
    grown = check_heads(ledger, heads, tally, check="rollback", remembered="the last verification on this machine")
    last = max(head.at for name, head in verified.heads.items() if chain in (None, name))
    tally.notes["rollback"] = f"{len(heads)} chains match the last verification here, of {last} ({grown} grown since)"


# --- the file


def load_verified(ledger: Ledger) -> VerifiedChains:
    """Read the saved heads of the ledger; none if there is no file. Raises `BadInput` if the file is not valid."""
    name = _file_name(ledger)
    if name is None:
        return VerifiedChains()
    try:
        with open_inside(ledger.config.home, DIRECTORY, name) as file:
            raw = file.read(ELEMENT_MAX + 1)
    except NotFound:
        return VerifiedChains()
    try:
        document = read_json(raw)
        if not isinstance(document, dict) or document.keys() != _DOCUMENT_KEYS or document["v"] != VERSION:
            raise BadInput("it is not a file of verified heads")
        if (document["ledger"], document["tenant"]) != (ledger.id, ledger.tenant):
            raise BadInput("it is about another ledger or tenant")
        whole_at, entries = document["whole_at"], document["entries"]
        keys, chains = document["keys"], document["chains"]
        has_types = isinstance(whole_at, str | None) and type(entries) is int and isinstance(chains, dict)
        if not has_types:
            raise BadInput("it is not a file of verified heads")
        if not isinstance(keys, list) or not all(isinstance(key, str) and _PUBLIC_KEY(key) for key in keys):
            raise BadInput("its keys are not public keys")
        heads = {name: _parse_head(name, head, ledger) for name, head in chains.items()}
        return VerifiedChains(heads, frozenset(keys), whole_at, max(entries, 0))
    except BadInput as error:
        path = ledger.config.home / DIRECTORY / name
        raise BadInput(f"{path}: {error.message}", advice="remove it; verifying creates it again") from error


def try_load_verified(ledger: Ledger, tally: Tally) -> VerifiedChains:
    """Like `load_verified`, but report an unreadable file as a skipped check and continue without it."""
    try:
        return load_verified(ledger)
    except (BadInput, Unavailable) as error:
        tally.skip("rollback", str(error), matters=True)
        return VerifiedChains()


def save_verified(ledger: Ledger, verified: VerifiedChains, history: ImportHistory) -> None:
    """Save verified heads, if `AVER_HOME` exists. Longer heads that another process has saved meanwhile are kept."""
    name, home = _file_name(ledger), ledger.config.home
    if name is None or not home.is_dir():
        return
    try:
        saved = load_verified(ledger)
        if saved == verified or (not verified.heads and not saved.heads):
            return
        saved = saved.without_dropped(history)
        heads = {chain: _later_head(saved.heads.get(chain), head) for chain, head in verified.heads.items()}
        kept = dict(sorted(heads.items(), key=lambda item: item[1].at)[-CHAINS_MAX:])
        # A dropped chain must be compared through `meta` again, so all entries of `meta` must be read.
        entries = verified.entries if len(kept) == len(heads) else 0
        chains = {
            name: {
                "count": head.count,
                "hash": head.hash,
                "at": head.at,
                "trusted": head.trusted,
                "post_quantum": head.post_quantum,
            }
            for name, head in kept.items()
        }
        document = {
            "v": VERSION,
            "ledger": ledger.id,
            "tenant": ledger.tenant,
            "whole_at": verified.whole_at,
            "entries": entries,
            "keys": sorted(verified.keys),
            "chains": chains,
        }
        directory = home / DIRECTORY
        directory.mkdir(mode=0o700, exist_ok=True)
        if not (directory / name).exists():
            # A new file: the oldest ones make room for it.
            files = sorted(directory.glob("[!.]*"), key=lambda path: path.stat().st_mtime)
            for path in files[: max(len(files) - FILES_MAX + 1, 0)]:
                path.unlink(missing_ok=True)
        replace_file(directory / name, orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE))
    except (AverError, OSError, TypeError) as error:  # orjson refuses a number beyond 64 bits by a TypeError.
        # The verdict is not affected. The next verification reads more records.
        debug("ledger", "cannot save the verified heads in %s: %s", home / DIRECTORY / name, error)


def verified_tenants(home: Path, ledger_id: str) -> list[str]:
    """The tenants of a ledger that were verified here, also if they are no longer in it."""
    if not _LEDGER_ID(ledger_id):
        return []
    prefix, suffix = f"{ledger_id}.", ".json"
    try:
        names = [path.name for path in (home / DIRECTORY).iterdir()]
    except OSError:
        return []
    found = (name.removeprefix(prefix).removesuffix(suffix) for name in names if name.startswith(prefix))
    return sorted(tenant for tenant in found if is_tenant_name(tenant))


def _file_name(ledger: Ledger) -> str | None:
    """The name of a ledger's file; None if its id, which comes from an untrusted file, is no id that Aver makes."""
    return f"{ledger.id}.{ledger.tenant}.json" if _LEDGER_ID(ledger.id) else None


def _later_head(saved: VerifiedHead | None, head: VerifiedHead) -> VerifiedHead:
    """The longer of two verified heads of a chain, trusted if both are. They agree, or one verdict had failed."""
    if saved is None or saved.count <= head.count:
        return head
    return replace(saved, trusted=saved.trusted and head.trusted)


def _accepted_keys(ring: Ring) -> frozenset[str]:
    own = (entry.key.ed25519 for entry in ring.entries)
    return frozenset((*own, *(key.ed25519 for key in ring.known.values())))


def _parse_head(name: str, data: Any, ledger: Ledger) -> VerifiedHead:
    if not isinstance(data, dict) or data.keys() != _HEAD_KEYS:
        raise BadInput(f"its head of {name!r} is not valid")
    head = Head.from_dict(
        {"ledger": ledger.id, "tenant": ledger.tenant, "chain": name, "count": data["count"], "hash": data["hash"]}
    )
    flags = data["trusted"], data["post_quantum"]
    if head.hash is None or not isinstance(data["at"], str) or not all(type(flag) is bool for flag in flags):
        raise BadInput(f"its head of {name!r} is not valid")
    return VerifiedHead(head.count, head.hash, data["at"], *flags)

"""What was verified here before: the head of every chain, so that verifying can go on from there.

After a verification that did not fail, at signature level and by our own keys and those we know, this machine notes
where each chain was, in `AVER_HOME/verified/<ledger>.<tenant>.json` (0600, replaced all at once):

    {v: 1, ledger, tenant, whole_at, entries, keys: [<public key>],
     chains: {<chain>: {count, hash, at, trusted, post_quantum}}}

Every later verification holds the chains to these heads: one that is shorter, gone or different since is found. And
one that is asked to (`since="last"`) reads only what came after them, under these rules:

* a chain is noted, and gone on from, only if nothing about it was doubtful (`trusted`);
* all keys that were accepted then are accepted still: what was verified with a key that was forgotten since is
  verified anew;
* if ML-DSA-65 signatures are required, they were required then;
* once a verification has failed, nothing that it was about is trusted until it was verified from its beginning.
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
from aver.config import replace_file
from aver.errors import AverError, BadInput, NotFound, Unavailable
from aver.fast_dataclass import dataclass
from aver.keys import Ring
from aver.ledger.foreign.seal_checks import open_inside
from aver.ledger.head import Head
from aver.ledger.meta_chain import check_meta
from aver.ledger.seen_heads import META_CHAIN, check_heads, check_seen_head, save_seen_head
from aver.ledger.stores.rows import ChainRow
from aver.verdict import CHECKS, Tally, Verdict

if TYPE_CHECKING:
    from aver.ledger.ledger import Ledger

__all__ = [
    "VerifiedChains",
    "VerifiedHead",
    "check_remembered_heads",
    "load_verified",
    "save_meta_head",
    "save_verified",
    "try_load_verified",
    "update_verified",
    "verified_tenants",
]

DIRECTORY = "verified"
VERSION = 1

CHAINS_MAX = 40_000
"""Chains remembered of one tenant: what a JSON document may hold whatever their names. Beyond that, those that were
verified longest ago are forgotten, and verified from their beginning the next time."""

FILES_MAX = 10_000
"""Tenants of ledgers remembered; beyond that, those that were verified longest ago are forgotten."""

RECORD_CHECKS = tuple(check for check in CHECKS if check not in ("store", "meta"))
"""The checks of records, which there may be none of that are new."""

_LEDGER_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch
_PUBLIC_KEY = re.compile(r"[0-9a-f]{64}").fullmatch
_DOCUMENT_KEYS = {"v", "ledger", "tenant", "whole_at", "entries", "keys", "chains"}
_HEAD_KEYS = {"count", "hash", "at", "trusted", "post_quantum"}


@dataclass(frozen=True, slots=True)
class VerifiedHead:
    """Where a chain was when its newest record was verified, at `at`."""

    count: int
    hash: str
    at: str
    trusted: bool
    """Nothing about the chain was doubtful: verifying may go on from here."""
    post_quantum: bool
    """Every record up to here was held to having an ML-DSA-65 signature."""


@dataclass(frozen=True, slots=True)
class VerifiedChains:
    """What is known of one tenant's chains from verifying them before."""

    heads: Mapping[str, VerifiedHead] = field(default_factory=dict)
    keys: frozenset[str] = frozenset()
    """The public keys whose signatures were accepted."""
    whole_at: str | None = None
    """When all chains were last verified from their beginning."""
    entries: int = 0
    """How many entries of `meta` all chains were held to, and `heads` has all those chains."""

    def resumable_heads(self, rows: Iterable[ChainRow], ring: Ring, *, require_pq: bool) -> dict[str, VerifiedHead]:
        """The heads that a verification with these keys may go on from. Chains that are shorter now have none."""
        if not self.keys <= _accepted_keys(ring):
            return {}
        found = {}
        for row in rows:
            head = self.heads.get(row.name)
            if head is not None and head.trusted and (head.post_quantum or not require_pq) and head.count <= row.count:
                found[row.name] = head
        return found

    def distrust(self, chains: Iterable[str | None]) -> VerifiedChains:
        """The same with nothing to go on from in these chains; in none at all where one of them is None."""
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
    """What is known after a verification of one chain, or of all, that went on from `resumed` where there was one."""
    if verdict.status == "failed":
        return before.distrust({chain, *tally.doubtful})
    if verdict.level != "signature":
        return before
    rows, at, keys = list(rows), now(), _accepted_keys(ring)
    certain = None not in tally.doubtful and not any(matters for _, matters in tally.skipped.values())
    heads: dict[str, VerifiedHead] = {}
    if chain is not None:
        heads.update((before if before.keys <= keys else before.distrust([None])).heads)
    for row in rows:
        if row.head is None:
            continue
        if row.name in tally.doubtful:
            # A stranger's file may have our ledger's id: what nobody known has signed is not held against ours.
            if row.name in before.heads:
                heads[row.name] = replace(before.heads[row.name], trusted=False)
            continue
        went_on = resumed.get(row.name)
        held_to_pq = require_pq and (went_on is None or went_on.post_quantum)
        if went_on is not None and went_on.count == row.count:
            heads[row.name] = replace(went_on, trusted=certain)
        else:
            heads[row.name] = VerifiedHead(row.count, row.head, at, certain, held_to_pq)
    if chain is not None:
        return replace(before, heads=heads, keys=keys)
    all_noted = all(row.head is None or (row.name in heads and row.name not in tally.doubtful) for row in rows)
    entries = sum(row.count for row in rows if row.name == META_CHAIN) if all_noted else 0
    return VerifiedChains(heads, keys, before.whole_at if resumed else at, entries)


def check_remembered_heads(
    ledger: Ledger,
    chain: str | None,
    rows: Iterable[ChainRow],
    known: VerifiedChains,
    resumed: Mapping[str, VerifiedHead],
    tally: Tally,
) -> None:
    """Hold chains to all that is remembered of them: by `meta`, in `seen.json`, and from verifying them before."""
    if chain in (None, META_CHAIN):
        entries = sum(row.count for row in rows if row.name == META_CHAIN)
        start = min(known.entries, entries) if chain is None and resumed else 0
        check_meta(ledger, tally, start=start, stop=entries)
        check_seen_head(ledger, tally)
        _check_verified_heads(ledger, known, None, tally)
    else:
        tally.skip("meta", "only one chain was verified", matters=False)
        _check_verified_heads(ledger, known, chain, tally)
    if chain == META_CHAIN:
        others = sum(name != META_CHAIN for name in ledger.chains())
        tally.skip("chains", f"the records of {others} other chains were not verified: --deep does", matters=False)
    if resumed and not tally.records:
        for check in RECORD_CHECKS:
            tally.skip(check, "nothing is new", matters=False)
    if resumed:
        tally.earlier = sum(head.count for head in resumed.values())
        last = max(head.at for head in resumed.values())
        whole = f"the ledger was last read whole at {known.whole_at}" if known.whole_at else "it was never read whole"
        words = f"{tally.earlier} records were verified earlier, until {last}, and not read again; {whole}"
        tally.skip("earlier", words, matters=False)


def save_meta_head(ledger: Ledger, rows: Iterable[ChainRow], tally: Tally, verdict: Verdict) -> None:
    """Note the head of `meta`, if it was verified without a doubt."""
    meta = next((row for row in rows if row.name == META_CHAIN), None)
    certain = verdict.level == "signature" and verdict.status != "failed" and META_CHAIN not in tally.doubtful
    if meta is not None and certain:
        save_seen_head(ledger, Head(ledger.id, ledger.tenant, meta.name, meta.count, meta.head))


def _check_verified_heads(ledger: Ledger, verified: VerifiedChains, chain: str | None, tally: Tally) -> None:
    """Hold the chains, or one of them, to where they were when they were verified here."""
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
    tally.notes["rollback"] = f"{len(heads)} chains held to what was verified here until {last}, {grown} grown since"


# --- the file


def load_verified(ledger: Ledger) -> VerifiedChains:
    """What was noted of the ledger's chains; nothing, if nothing was. `BadInput` if the file is not one of ours."""
    name = _file_name(ledger)
    if name is None:
        return VerifiedChains()
    try:
        with open_inside(ledger.config.home, DIRECTORY, name) as file:
            raw = file.read(ELEMENT_MAX + 1)
    except NotFound:
        return VerifiedChains()
    try:
        return _from_document(read_json(raw), ledger)
    except BadInput as error:
        path = ledger.config.home / DIRECTORY / name
        raise BadInput(f"{path}: {error.message}", advice="remove it; verifying begins it anew") from error


def try_load_verified(ledger: Ledger, tally: Tally) -> VerifiedChains:
    """The same for a verification, which goes on without a file that cannot be read, and says so."""
    try:
        return load_verified(ledger)
    except (BadInput, Unavailable) as error:
        tally.skip("rollback", str(error), matters=True)
        return VerifiedChains()


def save_verified(ledger: Ledger, verified: VerifiedChains) -> None:
    """Note what is known now, if there is a home to note it in. What another process has noted further on, stays."""
    name, home = _file_name(ledger), ledger.config.home
    if name is None or not home.is_dir():
        return
    try:
        noted = load_verified(ledger)
        if noted == verified or (not verified.heads and not noted.heads):
            return
        heads = {chain: _later_head(noted.heads.get(chain), head) for chain, head in verified.heads.items()}
        kept = dict(sorted(heads.items(), key=lambda item: item[1].at)[-CHAINS_MAX:])
        entries = verified.entries if len(kept) == len(heads) else 0
        document = _to_document(replace(verified, heads=kept, entries=entries), ledger)
        directory = home / DIRECTORY
        directory.mkdir(mode=0o700, exist_ok=True)
        _remove_oldest_files(directory, name)
        replace_file(directory / name, orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE))
    except (AverError, OSError):
        return  # The verdict stands; what could not be noted is read again next time.


def verified_tenants(home: Path, ledger_id: str) -> list[str]:
    """The tenants of a ledger that were verified here: also those that are not in it any more."""
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
    """A ledger's id comes from its file, which may be anyone's: only one like ours becomes part of a path."""
    return f"{ledger.id}.{ledger.tenant}.json" if _LEDGER_ID(ledger.id) else None


def _later_head(noted: VerifiedHead | None, head: VerifiedHead) -> VerifiedHead:
    """The later of two notes, trusted if both are. They agree as far as both go, or one of them would have failed."""
    if noted is None or noted.count <= head.count:
        return head
    return replace(noted, trusted=noted.trusted and head.trusted)


def _remove_oldest_files(directory: Path, name: str) -> None:
    if (directory / name).exists():
        return
    files = sorted(directory.glob("[!.]*"), key=lambda path: path.stat().st_mtime)
    for path in files[: max(len(files) - FILES_MAX + 1, 0)]:
        path.unlink(missing_ok=True)


def _accepted_keys(ring: Ring) -> frozenset[str]:
    own = (entry.key.ed25519 for entry in ring.entries)
    return frozenset((*own, *(key.ed25519 for key in ring.known.values())))


def _to_document(verified: VerifiedChains, ledger: Ledger) -> dict[str, Any]:
    chains = {
        name: {
            "count": head.count,
            "hash": head.hash,
            "at": head.at,
            "trusted": head.trusted,
            "post_quantum": head.post_quantum,
        }
        for name, head in verified.heads.items()
    }
    return {
        "v": VERSION,
        "ledger": ledger.id,
        "tenant": ledger.tenant,
        "whole_at": verified.whole_at,
        "entries": verified.entries,
        "keys": sorted(verified.keys),
        "chains": chains,
    }


def _from_document(document: Any, ledger: Ledger) -> VerifiedChains:
    if not isinstance(document, dict) or document.keys() != _DOCUMENT_KEYS or document["v"] != VERSION:
        raise BadInput("it does not hold what was verified")
    if (document["ledger"], document["tenant"]) != (ledger.id, ledger.tenant):
        raise BadInput("it is about another ledger or tenant")
    whole_at, entries = document["whole_at"], document["entries"]
    keys, chains = document["keys"], document["chains"]
    if not (whole_at is None or isinstance(whole_at, str)) or type(entries) is not int or not isinstance(chains, dict):
        raise BadInput("it does not hold what was verified")
    if not isinstance(keys, list) or not all(isinstance(key, str) and _PUBLIC_KEY(key) for key in keys):
        raise BadInput("its keys are not public keys")
    heads = {name: _parse_head(name, one, ledger) for name, one in chains.items()}
    return VerifiedChains(heads, frozenset(keys), whole_at, max(entries, 0))


def _parse_head(name: str, data: Any, ledger: Ledger) -> VerifiedHead:
    if not isinstance(data, dict) or data.keys() != _HEAD_KEYS:
        raise BadInput(f"its head of {name!r} is not one")
    head = Head.from_dict(
        {"ledger": ledger.id, "tenant": ledger.tenant, "chain": name, "count": data["count"], "hash": data["hash"]}
    )
    flags = data["trusted"], data["post_quantum"]
    if head.hash is None or not isinstance(data["at"], str) or not all(type(flag) is bool for flag in flags):
        raise BadInput(f"its head of {name!r} is not one")
    return VerifiedHead(head.count, head.hash, data["at"], *flags)

"""Verifying a bundle: every chain as given, its index, its meta chain and its blobs.

1. The index is read. What it claims proves nothing; what it claims wrongly fails (check `index`).
2. The meta chain is judged, and tells how long each chain was when it was last recorded.
3. Every chain that the index lists is judged as any chain is, and held to the claims and to the meta chain.
4. Every blob that a record refers to is held to its digest.

Files are streamed; memory grows with the number of chains and blobs, not with their size. A chain that the meta chain
knows and that is not here is `CHAIN_MISSING`, unless the bundle says that it is only a part.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from aver.capsule.blobs import blob_references
from aver.capsule.block import RESERVED_CHAINS, block_of
from aver.capsule.reading import ELEMENT_MAX
from aver.capsule.sealed import Sealed
from aver.errors import BadInput, NotFound
from aver.ledger.bundle.layout import BLOBS, INDEX, META, Claim, Index, capsules_in, read_index
from aver.ledger.head import Head
from aver.ledger.keychain import KEYS_CHAIN, retirements
from aver.ledger.memory import META_CHAIN, hold_to_head
from aver.ledger.meta import HEADS_MAX, kept_elsewhere, note_heads
from aver.ledger.outside import chunks_of, code_of, open_file, open_inside
from aver.ledger.verify import intact, rules_for_imported
from aver.verdict import CHECKS, ChainJudge, Finding, Place, Rules, Subject, Tally, Terms, Verdict, conclude

__all__ = ["Bundle", "judge_bundle", "judge_chain_file"]

_REFERENCE = b'"blob":{'

SIGNERS_KEPT = 1000
"""How many signers of a bundle are noted by name."""

BLOBS_KEPT = 100_000
"""How many blobs are remembered as seen; beyond that, one that is referred to again is read again."""


@dataclass(slots=True)
class _Seen:
    """What was met in a chain while it was judged. `wanted` is the place where another memory of it is compared."""

    wanted: int = -1
    count: int = 0
    genesis: str | None = None
    head: str | None = None
    at_wanted: str | None = None
    own_claim: Claim | None = None
    refers_to_blobs: bool = False

    def take(self, item: Sealed | BadInput | Claim, judge: ChainJudge) -> dict[str, Any] | None:
        """Judge what a chain's file gives next. Returns the content of a record that could be read."""
        if isinstance(item, Claim):
            self.own_claim = item
            return None
        if isinstance(item, BadInput):
            judge.unreadable(item.message, code=code_of(item))
            self.count, self.head = self.count + 1, None
            return None
        if self.count == 0:
            self.genesis = item.hash
        if self.count == self.wanted:
            self.at_wanted = item.hash
        self.count, self.head = self.count + 1, item.hash
        self.refers_to_blobs = self.refers_to_blobs or _REFERENCE in item.canonical
        return judge.judge(item)

    def hold_to(self, claim: Claim, who: str, tally: Tally, chain: str | None) -> None:
        """Hold the chain to what an index or summary claims of it. It is the claim that is wrong, or the chain."""
        count = self.count
        if claim.length is not None and claim.length != count:
            code = "TRUNCATED" if claim.length > count else "ROLLBACK"
            words = f"{who} claims {claim.length} records; {count} are here"
            tally.add(Finding("index", "failed", code, words, Place(chain, min(claim.length, count))))
        elif count and claim.head_hash is not None and claim.head_hash != self.head:
            words = f"{who} claims another last record"
            tally.add(Finding("index", "failed", "ROLLBACK", words, Place(chain, count - 1)))
        if count and claim.genesis_hash is not None and claim.genesis_hash != self.genesis:
            words = f"{who} claims another first record"
            tally.add(Finding("index", "failed", "CHAIN_IDENTITY", words, Place(chain, 0)))


class Bundle:
    """A bundle under verification."""

    def __init__(self, directory: Path, index: Index, terms: Terms) -> None:
        self.directory = directory
        self.index = index
        self.signers: set[str] = set()
        self.heads: dict[str, Head] = {}
        """The head of every chain that was judged, by its id."""
        self.first_hashes: dict[str, str | None] = {}
        """The hash of each one's first record."""
        self._tally = Tally()
        self._remembered: dict[str, Head] = {}
        self._elsewhere: set[str] = set()
        self._ledger: object = index.ledger
        self._imported = 0
        self._blobs: dict[str, int | None] = {}
        self._rules = terms.rules(retirements(terms.ring, intact(terms.ring, self._key_records()), self._small_blob))

    def judge(self, only: Collection[str] | None = None) -> Tally:
        """Judge everything, or only the chains of these ids."""
        tally, index = self._tally, self.index
        if index.unfinished:
            tally.add(Finding("index", "failed", "CHAIN_MISSING", "the export did not finish", Place(source=INDEX)))
            return tally
        if index.meta is not None and only is None:
            self._judge_chain(index.meta, META_CHAIN, META, None)
        of_meta = tally.records
        held = grown = 0
        for claim in index.chains:
            if only is not None and claim.id not in only:
                continue
            head = self._remembered.pop(claim.name, None)
            seen = self._judge_chain(claim, claim.id, claim.file, head)
            if head is not None and seen is not None:
                head, actual = replace(head, chain=claim.id), self._head(claim.id, seen)
                held += 1
                grown += hold_to_head(head, actual, seen.at_wanted, tally, check="meta", remembered="the meta chain")
        if only is None:
            self._check_counts(tally.records - of_meta)
            self._check_missing(held, grown)
        else:
            tally.skip("meta", "only some chains were verified", matters=False)
        return tally

    def _judge_chain(self, claim: Claim, chain: str, file_name: str, wanted: Head | None) -> _Seen | None:
        """Judge one chain; None if there is none to judge, which is reported."""
        tally = self._tally
        tally.did("index")
        seen = _Seen(wanted=-1 if wanted is None else wanted.count - 1)
        try:
            with open_inside(self.directory, file_name) as file:
                rules, identity = self._held_to(claim)
                judge = ChainJudge(rules, chain=chain, identity=identity)
                for item in capsules_in(file):
                    content = seen.take(item, judge)
                    if content is not None and isinstance(item, Sealed):
                        self._note(item, content, Place(chain, seen.count - 1), judge.tally)
        except NotFound:
            words = f"the index lists this chain; there is no {file_name}"
            tally.add(Finding("index", "failed", "CHAIN_MISSING", words, Place(chain)))
            return None
        except BadInput as error:
            tally.add(Finding("schema", "failed", "SCHEMA_INVALID", error.message, Place(chain)))
            return None
        tally.merge(judge.finish())
        tally.chains += 1
        self.heads[claim.id] = self._head(claim.id, seen)
        self.first_hashes[claim.id] = seen.genesis
        seen.hold_to(claim, "the index", tally, chain)
        if seen.own_claim is not None:
            seen.hold_to(seen.own_claim, "its summary", tally, chain)
            if seen.own_claim.id not in ("", "meta", claim.id):
                words = f"the file says that it is {seen.own_claim.id!r}"
                tally.add(Finding("index", "failed", "CHAIN_IDENTITY", words, Place(chain)))
        return seen

    def _note(self, record: Sealed, content: dict[str, Any], place: Place, tally: Tally) -> None:
        if len(self.signers) < SIGNERS_KEPT:
            self.signers.add(record.signed_by)
        if place.sequence == 0 and self._ledger is None:
            named = (block_of(content) or {}).get("chain")
            self._ledger = named.get("ledger") if isinstance(named, dict) else None
        if place.chain == META_CHAIN and len(self._remembered) < HEADS_MAX:
            note_heads(content, self._remembered, ledger=self.index.ledger or "", tenant=self.index.tenant or "")
            self._elsewhere.update(kept_elsewhere(content))
        if _REFERENCE in record.canonical:
            self._check_blobs(content, place, tally)

    def _held_to(self, claim: Claim) -> tuple[Rules, dict[str, str]]:
        """The rules for a chain, and what its first record must say about it if it says anything."""
        if claim.origin is not None:
            self._imported += 1
            self._tally.notes["identity"] = f"{self._imported} chains were imported by the ledger that exported them"
            return rules_for_imported(self._rules, claim.id), {"name": claim.origin}
        identity = {"name": claim.id, "ledger": self._ledger, "tenant": self.index.tenant}
        return self._rules, {key: value for key, value in identity.items() if isinstance(value, str)}

    def _head(self, chain: str, seen: _Seen) -> Head:
        return Head(self.index.ledger or "", self.index.tenant or "", chain, seen.count, seen.head)

    def _check_counts(self, records: int) -> None:
        index, place = self.index, Place(source=INDEX)
        for what, counted, here, code in (
            ("chains", index.chain_count, len(index.chains), "CHAIN_MISSING"),
            ("capsules", index.capsule_count, records, "TRUNCATED"),
        ):
            if counted is not None and counted != here:
                words = f"the index counts {counted} {what}; {here} are here"
                code = code if counted > here else "ROLLBACK"
                self._tally.add(Finding("index", "failed", code, words, place))

    def _check_missing(self, held: int, grown: int) -> None:
        """What the meta chain knows and the index does not list."""
        tally, index = self._tally, self.index
        if index.meta is None:
            tally.skip("meta", "the bundle has no meta chain: chains may have been cut or left out", matters=False)
            return
        if not self._remembered and not held:
            tally.skip("meta", "the meta chain records no chain", matters=False)
            return
        if index.part and self._remembered:
            # Nobody signed that this is a part; so what is known to exist and is not here cannot be passed over.
            words = f"{len(self._remembered)} chains that the meta chain knows are not in this part"
            tally.skip("meta", words, matters=True)
        elsewhere = 0
        for name, head in () if index.part else self._remembered.items():
            if name in self._elsewhere:
                elsewhere += 1
            else:
                hold_to_head(head, None, None, tally, check="meta", remembered="the meta chain")
        if elsewhere:
            words = f"{elsewhere} chains were kept in databases of their own and are not here"
            tally.skip("meta", words, matters=True)
        if held + len(self._remembered) >= HEADS_MAX:
            tally.skip("meta", f"the meta chain records more than {HEADS_MAX} chains", matters=True)
        outside = len([claim for claim in index.chains if claim.id not in RESERVED_CHAINS]) - held
        tally.notes["meta"] = f"{held} chains held to it, {grown} grown since, {max(outside, 0)} not in it"

    # --- blobs and keys

    def _check_blobs(self, content: Any, place: Place, tally: Tally) -> None:
        for digest, size in blob_references(content):
            if self.index.blobs_left_out:
                tally.skip("blobs", "the bundle was made without its blobs", matters=True)
                return
            tally.did("blobs")
            actual = self._blobs[digest] if digest in self._blobs else self._blob_size(digest)
            if len(self._blobs) < BLOBS_KEPT:
                self._blobs[digest] = actual
            if actual is None:
                tally.add(Finding("blobs", "failed", "ARTIFACT_MISSING", f"the blob {digest} is not here", place))
            elif actual != size:
                words = f"the blob stored as {digest} has other bytes"
                tally.add(Finding("blobs", "failed", "ARTIFACT_HASH_MISMATCH", words, place))

    def _blob_size(self, digest: str) -> int | None:
        """How many bytes a blob has; -1 if they are not those of its digest, None if there is none."""
        try:
            with open_inside(self.directory, BLOBS, digest) as file:
                hashed, size = hashlib.sha256(), 0
                for chunk in chunks_of(file):
                    hashed.update(chunk)
                    size += len(chunk)
        except BadInput:
            return None
        return size if hashed.hexdigest() == digest else -1

    def _small_blob(self, digest: str) -> bytes:
        with open_inside(self.directory, BLOBS, digest) as file:
            data = file.read(ELEMENT_MAX + 1)
        if hashlib.sha256(data).hexdigest() != digest:
            raise BadInput(f"the blob stored as {digest} has other bytes")
        return data

    def _key_records(self) -> Iterator[Sealed]:
        if not any(claim.id == KEYS_CHAIN for claim in self.index.chains):
            return
        try:
            with open_inside(self.directory, KEYS_CHAIN + ".json") as file:
                for item in capsules_in(file):
                    if isinstance(item, Sealed):
                        yield item
        except BadInput:
            return  # Reported where the chain itself is judged.


def judge_bundle(subject: Subject, terms: Terms) -> Verdict:
    """The verdict on a whole bundle."""
    path = subject.path or Path()
    directory = path.parent if path.name == INDEX else path
    try:
        tally = Bundle(directory, read_index(directory), terms).judge()
    except NotFound:
        raise
    except BadInput as error:
        tally = Tally()
        tally.add(Finding("index", "failed", code_of(error), error.message, Place(source=INDEX)))
    return conclude(f"bundle {directory.absolute().name}", tally, level=terms.level, expected=(*CHECKS, "index"))


def judge_chain_file(subject: Subject, terms: Terms) -> Verdict:
    """The verdict on one chain of a bundle, by its file alone."""
    from aver.ledger.capsules import retired_by_time

    judge = ChainJudge(terms.rules(retired_by_time(terms.ring)), source=subject.name)
    seen = _Seen()
    with open_file(subject.path or Path()) as file:
        for item in capsules_in(file):
            seen.take(item, judge)
    tally = judge.finish()
    tally.chains = int(seen.count > 0)
    tally.did("index")
    if seen.own_claim is not None:
        seen.hold_to(seen.own_claim, "its summary", tally, None)
    tally.skip("meta", "only one chain was verified", matters=False)
    if seen.refers_to_blobs:
        tally.skip("blobs", "only one chain was verified", matters=False)
    return conclude(f"chain in {subject.name}", tally, level=terms.level, expected=(*CHECKS, "index"))

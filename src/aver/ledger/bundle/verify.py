"""Verifying a bundle: every chain as given, its signed heads, its index, its meta chain and its blobs.

1. The index is read. Its claims prove nothing; a wrong claim fails (check `index`, see `index_check`).
2. The meta chain is judged. It records how long each chain was.
3. Every chain that the index lists is judged as any chain is, and compared with the claims and with the meta chain.
   Chains that Aver made must name one ledger, one tenant, and themselves.
4. Every blob that a record refers to must have the bytes of its digest.
5. The chains are compared with the signed heads in `head.json` (check `head`, see `head_file`). A bundle of an Aver
   ledger without it may lack chains and records, so the verdict on it is at most qualified.
6. Files that nobody lists are a warning. In a site, the twins of the files are compared with them (check `page`).
7. Examiners check the records of other rooms, as they do in a ledger: see `aver.verdict.examiner`.

The index alone excuses nothing. A chain that the meta chain knows and that is not here is `CHAIN_MISSING`; if the
index calls the bundle a part, the verdict is qualified. A chain that the index calls imported may come from another
ledger under another name; unless the meta chain says so too, the verdict is qualified.

The owner of a bundle is the ledger and tenant that the first record of an Aver chain names. An index names them too,
unsigned. Where the index leaves something out, the first such record counts, so that leaving it out lets nothing in.
Bundles of the public tool have no such record, and no owner.

Files are streamed; memory grows with the number of chains and blobs, not with their size.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from aver.capsule.aver_block import RESERVED_CHAINS, read_block, read_kind
from aver.capsule.sealed import Sealed
from aver.errors import BadInput, NotFound
from aver.fast_dataclass import dataclass
from aver.files.regular import open_file, open_inside
from aver.ledger.bundle.blob_check import BLOBS_KEPT, BlobCheck
from aver.ledger.bundle.head_file import CHECK as HEAD_CHECK
from aver.ledger.bundle.head_file import check_bundle_head, read_head, read_recorded_keys
from aver.ledger.bundle.index_check import (
    ClaimSource,
    check_chain_claim,
    check_key_claims,
    check_origin_claim,
    check_shown_claims,
    check_unlisted_files,
    warn_of_members,
)
from aver.ledger.bundle.layout import (
    HEAD,
    INDEX,
    META,
    SHORTEST_CHAIN,
    BundleIndex,
    ChainClaim,
    read_chain_file,
    read_index,
)
from aver.ledger.bundle.owner import find_owner, peek_chain_identity, read_histories
from aver.ledger.bundle.reader import BundleReader, RecordsDigest
from aver.ledger.bundle.site import check_page, check_site, is_site, list_site_files
from aver.ledger.bundle.summary import ChainFacts
from aver.ledger.checkpoint import Checkpoint
from aver.ledger.foreign.seal_checks import unreadable_code
from aver.ledger.head import Head
from aver.ledger.imports.history import DROP_KIND, IMPORT_KIND, ImportHistory
from aver.ledger.imports.source import OLD_IMPORT, read_digits
from aver.ledger.key_history import (
    KeyHistory,
    only_valid,
    replaced_keys,
    report_unrecorded,
    retirements_by_time,
)
from aver.ledger.keys_chain import KEYS_CHAIN
from aver.ledger.meta_chain import HEADS_MAX, collect_heads, find_external_chains, forget_dropped
from aver.ledger.seen_heads import META_CHAIN, check_head
from aver.ledger.slices import rules_for_imported
from aver.verdict import (
    CHECKS,
    ChainJudge,
    Examination,
    ExaminedChain,
    Finding,
    Place,
    Subject,
    Tally,
    Verdict,
    VerifyOptions,
    conclude,
)
from aver.verdict.chain import UNREADABLE_MAX
from aver.verdict.examiner import (
    EXAMINED_DOMAINS,
    ValidRecords,
    examine,
    guard,
    skip_examiners,
)

_BLOB_REFERENCE = b'"blob":{'

_UNREADABLE_CODES = frozenset({"SCHEMA_INVALID", "DUPLICATE_KEY"})
"""Codes of records that were not read, so that their hashes were not computed."""

SIGNERS_KEPT = 1000
"""How many signers of a bundle are noted by name."""

NAME_SHOWN = 160
"""Characters of a name in a record that a verdict repeats."""

SHORT_CHAINS_MAX = 1000
"""Most chains whose files are shorter than `SHORTEST_CHAIN`. After them, the rest is not read: opening and judging a
chain costs far more than the few bytes of such a file."""


@dataclass(slots=True)
class _JudgedChain:
    """The content of a chain's file. The hash at the place `wanted` is compared with the meta chain's head."""

    wanted: int = -1
    at_wanted: str | None = None
    own_claim: ChainClaim | None = None
    refers_to_blobs: bool = False
    facts: ChainFacts = field(default_factory=ChainFacts)
    digest: RecordsDigest = field(default_factory=RecordsDigest)

    def take(self, item: Sealed | BadInput | ChainClaim, judge: ChainJudge) -> dict[str, Any] | None:
        """Judge what a chain's file gives next. Returns the content of a record that could be read."""
        if isinstance(item, ChainClaim):
            self.own_claim = item
            return None
        if isinstance(item, BadInput):
            judge.unreadable(item.message, code=unreadable_code(item))
            self.facts.add_unreadable()
            return None
        if self.facts.count == self.wanted:
            self.at_wanted = item.hash
        self.digest.add(item)
        self.refers_to_blobs = self.refers_to_blobs or _BLOB_REFERENCE in item.canonical
        content = judge.judge(item)
        self.facts.add_record(item, content or {})
        return content

    def check_claim(
        self, claim: ChainClaim, source: ClaimSource, judge: ChainJudge, chain: str | None, name: str, shown: Tally
    ) -> None:
        """Compare the chain with the claims of the index or of its own summary. `name` is the chain's, where known.

        Findings about its length and ends go into the judge's tally. The other wrong claims go into `shown`.
        They come last in the verdict: they are about what a reader is shown, not about the records.
        """
        codes = {code for _, _, code in judge.tally.counts}
        is_known = "content" in judge.tally.done and codes.isdisjoint(_UNREADABLE_CODES)
        hashes_ok = "HASH_MISMATCH" not in codes if is_known else None
        check_chain_claim(claim, self.facts, source, judge.tally, chain)
        # A summary that leaves out the name of its chain still claims a title and a tool.
        check_shown_claims(claim, self.facts, source, shown, Place(chain), hashes_ok, claim.id or name)


class BundleJudge:
    """A bundle under verification."""

    def __init__(self, directory: Path, index: BundleIndex, options: VerifyOptions) -> None:
        self.directory = directory
        self.index = index
        self.signers: set[str] = set()
        self.heads: dict[str, Head] = {}
        """The head of every chain that was judged, by its id."""
        self.names: dict[str, str] = {}
        """The name by which a meta chain knows each one."""
        self.digests: dict[str, bytes] = {}
        """The digest of the records of every chain that was read to its end, by its id."""
        self._tally = Tally()
        self._shown = Tally()
        """Wrong claims about what a reader of the index is shown."""
        self._remembered: dict[str, Head] = {}
        self._elsewhere: set[str] = set()
        self._history = ImportHistory(options.ring, replaced_keys(self._read_key_records()))
        self._made: set[str] = set()
        self._decisions: set[str] = set()
        self._named_decisions: set[str] = set()
        """The ids of the gate's decisions that are here, and of those that other records name."""
        """Chains that the meta chain recorded before an entry called them imported. No drop excuses their absence."""
        self._doubtful_drops = 0
        self._compared: set[str] = set()
        self._grown = self._outside = 0
        self._by_index_alone = 0
        self._absent = self._failed = self._short = 0
        self.owner = find_owner(directory, index)
        self._blobs = BlobCheck(directory, are_left_out=index.blobs_left_out)
        self._examiners = options.examiners
        self._ring = options.ring
        self._level = options.level
        self._verifier_home = options.verifier_home
        self._origins: dict[str, tuple[str, tuple[str, str]]] = {}
        """Of each chain that examiners may look at: its name, and its ledger and tenant, by its first record."""
        # The bundle's own `keys` chain limits retired keys. It is read first, because the limits apply to all chains.
        self._histories = read_histories(directory, index, options.ring)
        self._key_history = KeyHistory(retirements_by_time(options.ring))
        self.rules = options.rules(self._key_history.retired)
        if self.owner.ledger is not None:
            owner = OLD_IMPORT, self.owner.ledger, self.owner.tenant or ""
            self._key_history = self._histories.get(owner, self._key_history)
            self.rules = self._key_history.rules(self.rules)
        self._recorded = read_recorded_keys(only_valid(options.ring, self._read_key_records()))

    @property
    def doubtful(self) -> set[str | None]:
        """The chains in which something was found."""
        return set(self._tally.doubtful)

    @property
    def key_history(self) -> KeyHistory:
        """The history of the keys of the bundle's ledger."""
        return self._key_history

    def judge(self, only: Collection[str] | None = None) -> Tally:
        """Judge everything, or only the chains of these ids. The numbers are those of the module's docstring."""
        tally, index = self._tally, self.index
        if index.unfinished:
            tally.add(Finding("index", "failed", "CHAIN_MISSING", "the export did not finish", Place(source=INDEX)))
            return tally
        if only is None and is_site(self.directory):
            check_page(self.directory, tally)  # First: a reader of the verdict may be about to open the page.
        # 2. First, because it says how long the other chains must be.
        if index.meta is not None and only is None:
            self._judge_chain(index.meta, META)
        of_meta = tally.records
        # 3. and 4.
        for claim in index.chains:
            if limit := self._find_limit():
                words = f"{limit}; the rest was not read"
                tally.add(Finding("index", "failed", "NOT_READ", words, Place(source=INDEX)))
                break
            if only is None or claim.id in only:
                self._judge_chain(claim, claim.file)
        if self._by_index_alone:
            words = f"that {self._by_index_alone} chains were imported under their names rests on the index alone"
            tally.skip("identity", words, matters=True)
        if only is None:
            for what, counted, here, code in (
                ("chains", index.chain_count, len(index.chains), "CHAIN_MISSING"),
                ("capsules", index.capsule_count, tally.records - of_meta, "TRUNCATED"),
            ):
                if counted is not None and counted != here:
                    words = f"the index counts {counted} {what}; {here} are here"
                    code = code if counted > here else "ROLLBACK"
                    tally.add(Finding("index", "failed", code, words, Place(source=INDEX)))
            self._check_missing()
        else:
            tally.skip("meta", "only some chains were verified", matters=False)
        head = self._check_head(only)  # 5.
        if index.meta is None:
            instead = "" if head is None else f"; {HEAD} states which chains there are"
            words = f"the bundle has no meta chain{instead or ': chains may have been cut or left out'}"
            tally.skip("meta", words, matters=False)
        tally.merge(self._shown)
        if only is None:
            self._check_index(head)  # 6., and the rest of 1.
        self._examine(is_whole=only is None and not index.part)  # 7.
        if only is None and (absent := len(self._named_decisions - self._decisions)):
            words = f"{absent} decisions that records name are not here: who allowed these calls was not checked"
            tally.skip("decisions", words, matters=True)
        report_unrecorded(tally)  # After the examiners: those of traces vouch for the keys that joined.
        return tally

    def _find_limit(self) -> str | None:
        """The limit of a bundle that is exceeded; None if all are kept. Nobody's honest bundle exceeds one."""
        for count, most, words in (
            (self._absent, UNREADABLE_MAX, "chains that it lists are not here"),
            (self._failed, UNREADABLE_MAX, "chains failed"),
            (self._short, SHORT_CHAINS_MAX, f"chains have files of less than {SHORTEST_CHAIN} bytes: too many"),
        ):
            if count > most:
                return f"more than {most} {words}"
        return None

    def _check_head(self, only: Collection[str] | None) -> Checkpoint | None:
        """Compare the chains with the signed heads, and return these; None if there are none."""
        tally, owner = self._tally, self.owner
        try:
            head = read_head(self.directory)
        except BadInput as error:
            tally.add(Finding(HEAD_CHECK, "failed", unreadable_code(error), error.message, Place(source=HEAD)))
            return None
        if head is None:
            if owner.ledger is not None:
                words = f"there is no {HEAD}: chains may have been left out, or cut at their ends"
                tally.skip(HEAD_CHECK, words, matters=True)
            return None
        of = owner.ledger, owner.tenant
        ring = self._ring if self._level == "signature" else None
        if ring is None:
            tally.skip(HEAD_CHECK, f"{self._level} level: its signature was not checked", matters=True)
        check_bundle_head(
            head,
            self.heads,
            tally,
            of=of,
            ring=ring,
            history=self._key_history,
            only=only,
        )
        return head

    def _check_index(self, head: Checkpoint | None) -> None:
        """Compare the index's keys and number of blobs with the records, and warn of files that nobody lists."""
        tally, index = self._tally, self.index
        if self.owner.ledger is not None:
            check_key_claims(index, head, self.signers, self._ring, self._recorded, tally)
        if len(self._blobs.sizes) >= BLOBS_KEPT:
            tally.skip("index", f"more than {BLOBS_KEPT} blobs were not counted", matters=True)
            return
        here = sum(size is not None for size in self._blobs.sizes.values())
        if index.blobs is not None and index.blobs != here:
            words = f"the index counts {index.blobs} blobs; records refer to {here} that are here"
            tally.add(Finding("index", "failed", "INDEX_MISMATCH", words, Place(source=INDEX)))
        check_unlisted_files(self.directory, index, self._blobs.sizes, tally)
        if is_site(self.directory):
            blobs = (digest for digest, size in self._blobs.sizes.items() if size is not None)
            check_site(self.directory, list_site_files(index, blobs), tally)

    def _examine(self, *, is_whole: bool) -> None:
        """Run the examiners on the chains, one examination for each ledger that the chains name."""
        # As in a ledger: an import must not stand in for another one that names the same ledger.
        sources: dict[tuple[str, str, str], dict[str, str]] = {}
        for name, (origin, source) in self._origins.items():
            sources.setdefault((read_digits(name) or "", *source), {}).setdefault(origin, name)
        if not sources:
            return
        files = {claim.id: claim.file for claim in self.index.chains}
        doubtful = self.doubtful
        owner = "", self.owner.ledger, self.owner.tenant
        with closing(BundleReader(self.directory, self.heads, files, self.digests)) as reader:
            for (digits, ledger, tenant), names in sources.items():
                chains = tuple(ExaminedChain(name, origin, self.heads[name].count) for origin, name in names.items())
                is_own = (digits, ledger, tenant) == owner
                theirs = self._histories.get((digits or OLD_IMPORT, ledger, tenant), KeyHistory())
                rules = self.rules if is_own else replace(self.rules, roles=theirs.roles)
                valid = ValidRecords(reader, rules, names, doubtful)
                complete = is_whole and is_own
                examination = Examination(
                    valid, rules, ledger, tenant, chains, is_complete=complete, verifier_home=self._verifier_home
                )
                examine(self._examiners, [examination], self._tally)

    def _judge_chain(self, claim: ChainClaim, file_name: str) -> None:
        """Judge one chain, and compare it with the claims about it and with the meta chain."""
        tally, chain = self._tally, claim.id
        tally.count_done("index")
        try:
            with open_inside(self.directory, file_name) as file:
                self._short += os.fstat(file.fileno()).st_size < SHORTEST_CHAIN
                unknown: dict[str, int] = {}
                named, items = peek_chain_identity(file, unknown)
                name = claim.name if named is None and self.owner.ledger is None else claim.id
                remembered = self._remembered.get(name)
                seen = _JudgedChain(wanted=-1 if remembered is None else remembered.count - 1)
                judge = self._build_judge(claim, named)
                is_stopped = False
                for item in items:
                    is_stopped = judge.stops_reading()
                    if is_stopped:
                        break
                    content = seen.take(item, judge)
                    if content is not None and isinstance(item, Sealed):
                        self._note_record(item, content, Place(chain, seen.facts.count - 1), judge.tally)
        except NotFound:
            self._absent += 1
            words = f"the index lists this chain; there is no {file_name}"
            tally.add(Finding("index", "failed", "CHAIN_MISSING", words, Place(chain)))
            return
        except BadInput as error:
            self._failed += 1
            tally.add(Finding("schema", "failed", "SCHEMA_INVALID", error.message, Place(chain)))
            return
        facts = seen.facts
        judge.finish()
        is_avers = self.owner.ledger is not None
        for each, who in ((claim, "the index"), (seen.own_claim, "its summary")):
            if each is None:
                continue
            source = ClaimSource(who, is_avers)
            seen.check_claim(each, source, judge, chain, chain, self._shown)
            if named is not None:
                origin = None if self.owner.has_made(named) else named.get("name")
                check_origin_claim(each, origin, source, self._shown, Place(chain))
        warn_of_members(unknown, self._shown, chain)
        self._failed += any(status == "failed" for _, status, _ in judge.tally.counts)
        tally.merge(judge.tally)
        tally.chains += 1
        self.names[chain] = name
        owner = self.owner
        if not is_stopped:
            self.digests[chain] = seen.digest.finish()
        self.heads[chain] = Head(owner.ledger or "", owner.tenant or "", chain, facts.count, facts.head_hash)
        # Examiners know a chain by the name in its first record, or else by the claimed one.
        identity = named or {}
        origin = str(identity.get("name", claim.origin or name))
        if origin.partition(".")[0] in EXAMINED_DOMAINS:
            ledger, tenant = identity.get("ledger", self.owner.ledger), identity.get("tenant", self.owner.tenant)
            self._origins[chain] = origin, (str(ledger or ""), str(tenant or ""))
        if seen.own_claim is not None and seen.own_claim.id not in ("", chain):
            words = f"the file says that it is {seen.own_claim.id!r}"
            tally.add(Finding("index", "failed", "CHAIN_IDENTITY", words, Place(chain)))
        if remembered is None:
            self._outside += chain not in RESERVED_CHAINS
            return
        self._compared.add(name)
        # The meta chain knows it by the name that it had there; findings have its id in this bundle.
        head, actual = replace(remembered, chain=chain), self.heads[chain]
        self._grown += check_head(head, actual, seen.at_wanted, tally, check="meta", remembered="the meta chain")

    def _note_record(self, record: Sealed, content: dict[str, Any], place: Place, tally: Tally) -> None:
        """Note the signer of a record and the heads in the meta chain's records, and check the record's blobs."""
        if len(self.signers) < SIGNERS_KEPT:
            self.signers.add(record.signed_by)
        if place.chain == META_CHAIN and len(self._remembered) < HEADS_MAX:
            known, owner = self._remembered, self.owner
            self._note_claim(content)
            collect_heads(content, known, ledger=owner.ledger or "", tenant=owner.tenant or "")
            self._elsewhere.update(name for name in find_external_chains(content) if name in known)
            self._note_import(record)
        refs = (read_block(content) or {}).get("refs")
        if record.kind == "gate.decision":
            self._decisions.add(record.id)
        elif isinstance(refs, dict) and isinstance(refs.get("decision"), str):
            self._named_decisions.add(refs["decision"])
        if _BLOB_REFERENCE in record.canonical:
            with guard(tally, "blobs", place):
                self._blobs.check(content, place, tally)

    def _note_claim(self, content: dict[str, Any]) -> None:
        """Note a chain that an entry calls imported, and that was recorded before: it was made there, and stays so."""
        claimed: dict[str, Head] = {}
        if read_kind(content) == IMPORT_KIND:
            collect_heads(content, claimed, ledger="", tenant="")  # A malformed entry claims nothing.
        self._made.update(claimed.keys() & self._remembered.keys())

    def _note_import(self, record: Sealed) -> None:
        """Take up an entry of the meta chain about an import or a drop. An entry that does not hold drops nothing."""
        if record.kind == IMPORT_KIND:
            self._history.add(record)
        elif record.kind == DROP_KIND:
            judge = ChainJudge(self.rules, chain=META_CHAIN, start=None)
            judge.judge(record)
            if any(finding.status == "failed" for finding in judge.tally.findings):
                return
            dropped = self._history.add(record)
            forget_dropped(self._remembered, {name: head for name, head in dropped.items() if name not in self._made})
            if judge.tally.findings or judge.signer is None:
                self._doubtful_drops += len(dropped)

    def _build_judge(self, claim: ChainClaim, named: Mapping[str, Any] | None) -> ChainJudge:
        """The judge of a chain whose first record says this about it, if it says anything.

        That a chain was imported excuses its name and its ledger; so it counts only for one that was not made by the
        exporting ledger. Records that the ledger made have Aver's block.
        """
        owner = self.owner
        if claim.origin is None or claim.id in RESERVED_CHAINS or owner.has_made(named):
            identity = {"name": claim.id, "ledger": owner.ledger, "tenant": owner.tenant}
            known = {key: value for key, value in identity.items() if value is not None}
            return ChainJudge(self.rules, chain=claim.id, identity=known, needs_block=owner.ledger is not None)
        entry = self._history.imported.get(claim.id)
        if entry is None or entry.origin != claim.origin:
            self._by_index_alone += 1
        rules = rules_for_imported(self.rules, claim.id, claim.origin, named or {}, self._histories)
        return ChainJudge(rules, chain=claim.id, identity={"name": claim.origin})

    def _check_missing(self) -> None:
        """Report the chains that the meta chain knows and the index does not list."""
        tally, index = self._tally, self.index
        if index.meta is None:
            return
        if not self._remembered:
            tally.skip("meta", "the meta chain records no chain", matters=False)
            return
        if self._doubtful_drops:
            words = f"that {self._doubtful_drops} imported chains were dropped says an entry by an unknown signer"
            tally.skip("meta", words, matters=True)
        missing = {name: head for name, head in self._remembered.items() if name not in self._compared}
        if index.part and missing:
            # No signature says that this is a part, so missing chains that are known to exist must be reported.
            words = f"{len(missing)} chains that the meta chain knows are not in this part"
            tally.skip("meta", words, matters=True)
        elsewhere = 0
        for name, head in () if index.part else missing.items():
            if name in self._elsewhere:
                elsewhere += 1
            else:
                check_head(head, None, None, tally, check="meta", remembered="the meta chain")
        if elsewhere:
            words = f"{elsewhere} chains were kept in databases of their own and are not here"
            tally.skip("meta", words, matters=True)
        if len(self._remembered) >= HEADS_MAX:
            tally.skip("meta", f"the meta chain records more than {HEADS_MAX} chains", matters=True)
        grown, outside = self._grown, self._outside
        compared = f"{len(self._compared)} chains match their recorded heads"
        tally.notes["meta"] = f"{compared} ({grown} grown since, {outside} not recorded)"

    def _read_key_records(self) -> Iterator[Sealed]:
        """The records of the bundle's `keys` chain, streamed: a hostile bundle may make it as long as it likes."""
        for claim in self.index.chains:
            if claim.id == KEYS_CHAIN:
                try:
                    with open_inside(self.directory, claim.file) as file:
                        yield from (item for item in read_chain_file(file) if isinstance(item, Sealed))
                except BadInput:
                    return  # Reported where the chain itself is judged.


def judge_bundle(subject: Subject, options: VerifyOptions) -> Verdict:
    """The verdict on a whole bundle."""
    path = subject.path or Path()
    directory = path.parent if path.name == INDEX else path
    try:
        tally = BundleJudge(directory, read_index(directory), options).judge()
    except NotFound:
        raise
    except BadInput as error:
        tally = Tally()
        tally.add(Finding("index", "failed", unreadable_code(error), error.message, Place(source=INDEX)))
    return conclude(f"bundle {directory.absolute().name}", tally, level=options.level, expected=(*CHECKS, "index"))


def judge_chain_file(subject: Subject, options: VerifyOptions) -> Verdict:
    """The verdict on one chain of a bundle, by its file alone."""
    # No ledger is here that says up to which record a retired key was valid; only times can tell.
    judge = ChainJudge(options.rules(retirements_by_time(options.ring)), source=subject.name)
    seen = _JudgedChain()
    unknown: dict[str, int] = {}
    shown = Tally()
    with open_file(subject.path or Path()) as file:
        named, items = peek_chain_identity(file, unknown)
        for item in items:
            if judge.stops_reading():
                break
            seen.take(item, judge)
    tally = judge.finish()
    tally.chains = int(seen.facts.count > 0)
    tally.count_done("index", int(seen.own_claim is not None and seen.facts.count > 0))
    if seen.own_claim is not None:
        source, name = ClaimSource("its summary", is_avers=named is not None), str((named or {}).get("name", ""))
        seen.check_claim(seen.own_claim, source, judge, None, name, shown)
        _check_name(seen.own_claim, named, tally, Place(None, 0, subject.name))
    warn_of_members(unknown, shown, None, subject.name)
    tally.merge(shown)
    tally.skip("meta", "only one chain was verified: it may have been cut at its end", matters=False)
    skip_examiners(str((named or {}).get("name", "")).partition(".")[0], "only one chain was verified", tally)
    if seen.refers_to_blobs:
        tally.skip("blobs", "only one chain was verified", matters=False)
    return conclude(f"chain in {subject.name}", tally, level=options.level, expected=(*CHECKS, "index"))


def _check_name(claim: ChainClaim, named: Mapping[str, Any] | None, tally: Tally, place: Place) -> None:
    """Hold what a chain's file says it is called to what the chain's first record says."""
    if named is None:
        tally.skip("identity", "made by other software, which does not name its chain", matters=False)
        return
    if not claim.id:
        tally.skip("identity", "the file does not say which chain it is", matters=False)
        return
    tally.count_done("identity")
    made_as = claim.origin or claim.id
    if named.get("name") != made_as:
        words = f"the file calls it {made_as!r}, its first record {repr(named.get('name'))[:NAME_SHOWN]}"
        tally.add(Finding("identity", "failed", "CHAIN_IDENTITY", words, place))
    elif made_as != claim.id:
        words = f"that {made_as!r} was imported as {claim.id!r} rests on the file's summary alone"
        tally.skip("identity", words, matters=True)

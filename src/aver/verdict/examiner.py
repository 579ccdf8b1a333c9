"""Examiners: checks that a room makes on its own records, beyond their seals.

A valid seal proves that a key signed the bytes. It does not prove that the gate made a decision, or that a person gave
an approval: the holder of the ledger's key can seal records that claim both. The room that writes such records knows
how to check them. It offers an `Examiner`, and `aver.check` lists them all.

An examiner reads ledgers, imported chains, bundles and `.cap` files through one interface, `EvidenceReader`. It gets an
`Examination` for each ledger whose records are there: the verified ledger itself, and every other ledger that an
imported chain names in its first record. Chains have the name of their first record (`origin`); findings have the name
under which a chain is stored (`name`).

An examiner that needs every record of a chain can *follow* it: it takes each record while the verifier judges the
chain, so that the record is read and parsed once. The verifier offers this where only one chain is verified, and drops
a follower of a chain in which it finds anything. Then, and everywhere else, the examiner reads the chain itself.

An examiner sees only records whose content and signature hold. Where it would have seen another one, its checks say
that they were not made on all records. An exception in an examiner becomes a finding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import Any, Protocol

from aver.capsule.aver_block import read_block
from aver.capsule.sealed import Sealed
from aver.errors import AverError, BadInput, NotFound, Unavailable, find_machine_fault
from aver.fast_dataclass import dataclass
from aver.log import debug
from aver.verdict.chain import JUDGED_TOGETHER, ChainJudge, Rules
from aver.verdict.verdict import Finding, Place, Tally

RUN_CHECKS = ("receipts", "parents", "sealed", "gates", "proof")
"""The checks of a run of actions, in the order of their report."""

ACT_CHECKS = ("evidence", "effects", "delegation")
"""The checks of acts of the gateway, in the order of their report."""

TRACE_CHECKS = (
    "participants",
    "roles",
    "order",
    "intents",
    "executions",
    "claims",
    "attribution",
    "report",
    "append_only",
)
"""The checks of a trace of the protocol, in the order of their report."""

EXAMINED_DOMAINS: Mapping[str, tuple[str, ...]] = {
    "gate": ("decisions",),
    "approvals": ("approvals",),
    "approvers": ("approvals",),
    "actions": RUN_CHECKS,
    "gateway": ACT_CHECKS,
    "delegations": ("delegation",),
    "protocol": TRACE_CHECKS,
}
"""By domain, the checks that a verdict owes to chains of it. A check without an examiner is reported as not checked."""


class ChainHead(Protocol):
    """How many records a chain has, and the hash of the last."""

    @property
    def count(self) -> int: ...

    @property
    def hash(self) -> str | None: ...


class EvidenceReader(Protocol):
    """Reads records of a ledger, a bundle or a `.cap` file. `read` and `blob` raise `NotFound`."""

    def read(self, chain: str, start: int = 0, stop: int | None = None) -> Iterator[Sealed]: ...

    def get(self, reference: str) -> Sealed | None:
        """The record with this hash."""

    def blob(self, digest: str) -> bytes: ...

    def head(self, chain: str) -> ChainHead: ...


@dataclass(frozen=True, slots=True)
class ExaminedChain:
    """A chain to examine."""

    name: str
    """Under which it is stored here. Findings have this name."""
    origin: str
    """The name in its first record. The reader takes this name."""
    count: int
    start: int = 0
    """Records before this place were verified earlier."""
    is_excerpt: bool = False
    """Whether only some of its records are here."""
    is_attested: bool = False
    """Whether others have signed the facts of its decisions. Then the decisions before an excerpt are not needed."""

    @property
    def domain(self) -> str:
        return self.origin.partition(".")[0]


class ChainFollower(Protocol):
    """Takes the records of one chain, in order, while they are judged. It raises nothing, whatever they hold."""

    def take(self, records: Sequence[Sealed]) -> None:
        """Take the next records."""


@dataclass(frozen=True, slots=True)
class Examination:
    """The chains of one ledger and tenant that are to be examined, and how to read what they refer to."""

    reader: EvidenceReader
    rules: Rules
    ledger: str
    tenant: str
    chains: tuple[ExaminedChain, ...]
    is_complete: bool = True
    """Whether all chains that records refer to must be here. Where they need not be, a missing one is `not_checked`."""
    is_single: bool = False
    """Whether only this one chain is verified, not the whole that it belongs to."""
    is_own: bool = False
    """Whether the ring in `rules` is the one that seals in this ledger. Then records of other keys decide nothing."""
    home: str = ""
    """The directory of the home that the ring belongs to, where `is_own`: it has further keys and settings."""
    verifier_home: str = ""
    """The directory of the verifier's own home, whose settings may name keys. Empty where only given keys count."""
    follower: ChainFollower | None = None
    """Has taken every record of the one chain, and each of them holds. None where the examiner reads it itself."""

    def select(self, *domains: str) -> list[ExaminedChain]:
        return [chain for chain in self.chains if chain.domain in domains]


@dataclass(frozen=True, slots=True)
class Examiner:
    """One room's examination of chains of its `domains`, reported under `checks`."""

    domains: tuple[str, ...]
    checks: tuple[str, ...]
    examine: Callable[[Examination], Tally]
    follow: Callable[[Rules, str, str, str], ChainFollower] | None = None
    """Returns a follower of a chain, from the rules, the ledger, the tenant and the chain's name."""


def examine(examiners: Sequence[Examiner], examinations: Iterable[Examination], tally: Tally) -> None:
    """Add the examiners' findings to `tally`; a check that cannot be made is added as not checked."""
    # A caller of the ledger room alone gives no examiners. The verdict must then say that the checks were not made.
    covered = {check for examiner in examiners for check in examiner.checks}
    for examination in examinations:
        for domain in {chain.domain: None for chain in examination.chains}:
            if examination.rules.level != "signature":
                words = f"{examination.rules.level} level: only intact records can be examined"
                skip_examiners(domain, words, tally)
            elif not covered.issuperset(EXAMINED_DOMAINS.get(domain, ())):
                words = "no examiner was given: open the ledger with aver.open_ledger, or use aver.verify"
                skip_examiners(domain, words, tally)
        for examiner in examiners if examination.rules.level == "signature" else ():
            chains = examination.select(*examiner.domains)
            if not chains:
                continue
            reader = examination.reader
            if isinstance(reader, ValidRecords):
                reader.left_out = None
            try:
                with guard(tally, examiner.checks[0], Place(chains[0].name)):
                    tally.merge(examiner.examine(examination))
            except AverError as error:
                # The records cannot be reached, so the checks of this examiner were not made.
                for check in examiner.checks:
                    tally.skip(check, f"the records cannot be read: {error.message}", matters=True)
            if isinstance(reader, ValidRecords) and reader.left_out is not None:
                # Without this, a check could pass that never saw the record that would have failed it.
                for check in examiner.checks:
                    tally.skip(check, f"records that do not hold were left out, first {reader.left_out}", matters=True)


def skip_examiners(domain: str, reason: str, tally: Tally) -> None:
    """Report the checks that chains of this domain would need as not checked."""
    for check in EXAMINED_DOMAINS.get(domain, ()):
        tally.skip(check, reason, matters=True)


@contextmanager
def guard(tally: Tally, check: str, place: Place) -> Iterator[None]:
    """Turn any exception in the judging of a record into a finding at its place.

    A record that cannot be reached is another matter: `NotFound` and `Unavailable` go on to the caller.
    """
    try:
        yield
    except (NotFound, Unavailable):
        raise
    except BadInput as error:
        tally.add(Finding(check, "failed", "SCHEMA_INVALID", error.message, place))
    except AverError:
        raise
    except Exception as error:  # Hostile records must not keep others from being judged.
        if (fault := find_machine_fault(error)) is not None:
            raise fault from error
        debug("verdict", "judging %s failed: %r", place, error)
        words = f"it lacks keys of a record of its kind ({type(error).__name__})"
        tally.add(Finding(check, "failed", "SCHEMA_INVALID", words, place))


class ValidRecords:
    """A reader that takes origins, and gives only records whose content and signature hold.

    Chains in which the verifier found nothing are read as they are. Those in `doubtful` are judged once more, record
    by record; so only a damaged chain costs more time, and no list of bad records has to be kept.
    """

    def __init__(
        self,
        reader: EvidenceReader,
        rules: Rules,
        names: Mapping[str, str],
        doubtful: set[str | None],
        *,
        are_blobs_judged: bool = False,
    ) -> None:
        self.left_out: Place | None = None
        """The first record that was asked for and does not hold."""
        self._reader = reader
        self._names = names
        self._doubtful = doubtful
        self._are_blobs_judged = are_blobs_judged
        """Whether the blobs of every record were compared with their digests, and those that differ are findings."""
        # Links, places and retired keys were judged with the chain; here only the record itself counts.
        self._rules = replace(rules, retired={})
        self._judge: tuple[str | None, ChainJudge] | None = None
        """The chain that was read last, and a judge that has found nothing in it yet. Making one takes long."""

    def read(self, chain: str, start: int = 0, stop: int | None = None) -> Iterator[Sealed]:
        name = self._stored_name(chain)
        records = iter(self._reader.read(name, start, stop))
        if name not in self._doubtful:
            yield from records
            return
        while together := list(islice(records, JUDGED_TOGETHER)):
            self._take_judge(name).verify_ahead(together)
            for record in together:
                if self._holds(record, name):
                    yield record

    def get(self, reference: str) -> Sealed | None:
        # Always judged: a lookup by hash may find a record of a chain that was not verified.
        record = self._reader.get(reference)
        return record if record is not None and self._holds(record, record.chain) else None

    def blob(self, digest: str) -> bytes:
        return self._reader.blob(digest)

    def head(self, chain: str) -> ChainHead:
        return self._reader.head(self._stored_name(chain))

    def has_intact_blobs(self, chain: str) -> bool:
        """Whether all blobs of a chain's records are known to be here and unchanged."""
        return self._are_blobs_judged and self._stored_name(chain) not in self._doubtful

    def _stored_name(self, chain: str) -> str:
        name = self._names.get(chain)
        if name is None:
            raise NotFound(f"the chain {chain} is not here")
        return name

    def _take_judge(self, chain: str | None) -> ChainJudge:
        if self._judge is None or self._judge[0] != chain:
            self._judge = chain, ChainJudge(self._rules, chain=chain, start=None)
        return self._judge[1]

    def _holds(self, record: Sealed, chain: str | None) -> bool:
        judge = self._take_judge(chain)
        content = judge.judge_alone(record)
        if content is not None:
            record.keep_content(content)
        if not judge.tally.findings:
            return True
        self._judge = None
        # A warning or an unknown signer does not count: the verdict reports these at the record.
        failed = next((finding for finding in judge.tally.findings if finding.status == "failed"), None)
        if failed is not None and self.left_out is None:
            self.left_out = failed.place
        return failed is None


def read_chain_identity(record: Sealed | None) -> Mapping[str, Any]:
    """The name, ledger and tenant that a chain's first record gives it; empty where it gives none."""
    try:
        named = None if record is None else (read_block(record.to_dict()) or {}).get("chain")
    except (AverError, AttributeError, KeyError, TypeError):
        return {}
    return named if isinstance(named, dict) else {}

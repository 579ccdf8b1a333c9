"""The verdict on the file of one act: by public keys alone, without a ledger.

1. The file has its one form, and its parts have theirs (`aver.gateway.judgement.act_file`).
2. Each record holds by itself: hash, signature, seal, key. The roster of approvers is whole, so its links are judged,
   too. Of the other chains the file has single records, whose links cannot be judged.
3. The records are those of this act, in order, and all that they refer to is there.
4. The blobs have their digests, and a record refers to each.
5. The keys that the file names have made the signatures that they stand for. No trust comes from them.
6. The examiners judge decisions, approvals, evidence, effects and delegation, as in a ledger.

A problem is a finding at its record, or at the part of the file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

from aver.capsule.aver_block import read_block
from aver.capsule.blobs import blob_references
from aver.capsule.sealed import Sealed
from aver.errors import AverError, BadInput, NotFound
from aver.files.regular import open_file
from aver.gate.approvals.enrolment import approvers_chain
from aver.gate.decision_record import DECISION_KIND
from aver.gateway.act_records import COMMIT_KIND, OUTCOME_KIND, PREVIEW_KIND
from aver.gateway.judgement.act_file import (
    ACT_FILE_MAX,
    ACT_KINDS,
    BLOB_KEPT_MAX,
    ActFile,
    find_attestations,
    find_tokens,
    parse_act_file,
)
from aver.keys.algorithms import verify_ed25519, verify_ml_dsa_65
from aver.keys.public_key import PublicKey
from aver.keys.ring import Ring
from aver.keys.statement import Statement, check_statement
from aver.ledger import Head
from aver.ledger.key_history import retirements_by_time
from aver.verdict import (
    ChainJudge,
    Examination,
    ExaminedChain,
    Finding,
    Place,
    Rules,
    Subject,
    Tally,
    Verdict,
    VerifyOptions,
    conclude,
)
from aver.verdict.chain import make_printable
from aver.verdict.examiner import ValidRecords, examine

PARTS_CHECK = "parts"
"""The check of what a file contains: the records of the act, the values they refer to, the keys it names."""

EXPECTED = ("schema", "canonical", "content", "signature", "signature_pq", "links", "keys", "blobs", PARTS_CHECK)

LINKS_WORDS = "of its other chains, the file of an act has single records"

_CHAIN_ORDER = ("approvers", "approvals", "gate", "gateway")
_FIRST_KEYS = ("act_file", "action_id", "approved_in", "blobs")


def is_act_file(subject: Subject) -> bool:
    """Whether it is the file of an act. One damaged key does not make it something else."""
    return not subject.is_directory and len(set(subject.keys[:4]) & set(_FIRST_KEYS)) > 1


def read_act_records(subject: Subject) -> Iterator[Sealed]:
    """Yield the records in the file of an act, for showing."""
    yield from parse_act_file(_read_raw(subject), subject.name).records


def judge_act_file(subject: Subject, options: VerifyOptions) -> Verdict:
    """The verdict on the file of an act."""
    tally = Tally()
    try:
        found = parse_act_file(_read_raw(subject), "the file")  # 1.
    except BadInput as error:
        tally.add(Finding("schema", "failed", "SCHEMA_INVALID", error.message, Place(source=subject.name)))
        tally.records = 1  # Something was there to read.
        return conclude(subject.name, tally, level=options.level, expected=EXPECTED)
    _ActFileJudge(found, subject.name, options, tally).judge()
    return conclude(f"act {found.action_id} in {subject.name}", tally, level=options.level, expected=EXPECTED)


def _read_raw(subject: Subject) -> bytes:
    if subject.path is None:
        value = subject.value
        return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")
    with open_file(Path(subject.path)) as file:
        return file.read(ACT_FILE_MAX + 1)


class _ActFileJudge:
    """Judges the parts of one file into a tally."""

    def __init__(self, found: ActFile, name: str, options: VerifyOptions, tally: Tally) -> None:
        self._found = found
        self._name = name
        self._options = options
        self._tally = tally
        self._rules: Rules = options.rules(retirements_by_time(options.ring))
        self._reader = ActFileReader(found)

    def judge(self) -> None:
        """Steps 2 to 6."""
        tally, before = self._tally, len(self._tally.findings)
        self._judge_records()
        tally.chains = len(self._reader.chains)
        tally.skip("links", LINKS_WORDS, matters=False)
        if "links" in tally.done:
            tally.notes["links"] = f"{tally.done['links']} checked in the roster; {LINKS_WORDS}"
        # Without intact records, nothing else can be told about them.
        if not any(finding.status == "failed" for finding in tally.findings[before:]):
            tally.count_done(PARTS_CHECK)
            for check in (self._check_composition, self._check_blobs, self._check_keys):
                try:
                    check()
                except (AverError, AttributeError, KeyError, TypeError, ValueError):
                    self._fail("SCHEMA_INVALID", "its records are not those of an act")
        examine(self._options.examiners, [self._build_examination()], tally)

    # --- 2. records

    def _judge_records(self) -> None:
        home = self._found.approved_in
        roster = None if home is None else approvers_chain(home[1])
        identity = {} if home is None else {"name": str(roster), "ledger": home[0], "tenant": home[1]}
        # The roster must be whole from its beginning: each record depends on those before it.
        whole = ChainJudge(self._rules, chain=roster, identity=identity, source=self._name, needs_block=True)
        for record in self._found.records:
            if record.chain == roster:
                whole.judge(record)
                continue
            judge = ChainJudge(self._rules, chain=record.chain, start=None, source=self._name, needs_block=True)
            judge.judge(record)
            self._tally.merge(judge.finish())
        self._tally.merge(whole.finish())

    # --- 3. the records of one act

    def _check_composition(self) -> None:
        found, last, requests, asked = self._found, (-1, -1), set[str](), set[str]()
        decisions = [record for record in found.records if record.kind == DECISION_KIND]
        digests = {str(record.to_dict()["outcome"]["result"]["digest"]) for record in decisions}
        for record in found.records:
            domain, _, name = str(record.chain).partition(".")
            if domain not in _CHAIN_ORDER or (_CHAIN_ORDER.index(domain), record.sequence) <= last:
                self._fail("SEQUENCE_GAP", "it comes twice, out of order, or is of another chain", record)
                return
            last = (_CHAIN_ORDER.index(domain), record.sequence)
            content = record.to_dict()
            if domain in ("gate", "gateway"):
                kinds = ACT_KINDS if domain == "gateway" else {DECISION_KIND}
                # The act may use an approval that was asked for when the same was tried before.
                is_asking = record.kind == DECISION_KIND and content["outcome"]["result"]["gate_id"] in asked
                is_about = content["trigger"]["correlation_id"] == found.action_id
                belongs = is_asking or (is_about and record.kind in kinds)
            else:
                belongs = found.approved_in is not None and name == found.approved_in[1]
            if domain == "approvals":
                result = content["outcome"]["result"]
                belongs = belongs and (result["digest"] in digests or result.get("request") in requests)
                requests.add(record.id)
                asked.add(str(result.get("gate_id", "")))
            if not belongs:
                self._fail("SCHEMA_INVALID", "it does not belong to the act of this file", record)
        if len(self._reader.chains) != len({chain.partition(".")[0] for chain in self._reader.chains}):
            self._fail("SCHEMA_INVALID", "it has records of two sessions or tenants")
        # Only where a system file says who may approve, the ledger has no roster.
        anchors = {
            record.to_dict()["outcome"]["result"].get("anchor") for record in self._reader.of_domain("approvals")
        }
        if "ledger" in anchors and not self._reader.of_domain("approvers"):
            self._fail("ARTIFACT_MISSING", "it lacks the roster of those who may approve")
        if (found.approved_in is not None) != bool(requests):
            self._fail("SCHEMA_INVALID", "it says where a person was asked, and none was, or the other way round")
        self._check_references()

    def _check_references(self) -> None:
        """Check that the records to which those of the act refer are there."""
        ids = {record.id for record in self._found.records}
        acts = self._select_acts()
        if not any(record.kind == PREVIEW_KIND for record in acts):
            self._fail("ARTIFACT_MISSING", "it has no PREVIEW")
        kinds = [record.kind for record in acts]
        # Records of the end can be left out of a file, and nothing in it would show that.
        if COMMIT_KIND not in kinds and any(map(_has_shares, acts)):
            self._tally.skip("effects", "the file has no COMMIT; whether one was made, it cannot show", matters=True)
        elif COMMIT_KIND in kinds and not any(self._is_end(record) for record in acts):
            self._tally.skip("effects", "the file has no outcome of its COMMIT", matters=True)
        for record in acts:
            content = record.to_dict()
            named = dict((read_block(content) or {}).get("refs") or {})
            if record.kind != PREVIEW_KIND:
                named["parent"] = content["parent_id"]
            for name, value in named.items():
                if value not in ids:
                    self._fail("ARTIFACT_MISSING", f"the {name} that it names is not in the file", record)

    def _is_end(self, record: Sealed) -> bool:
        """Whether a record is the outcome of a COMMIT. That of a refused COMMIT has no key."""
        return record.kind == OUTCOME_KIND and bool((read_block(record.to_dict()) or {}).get("key"))

    def _select_acts(self) -> list[Sealed]:
        return [record for record in self._found.records if record.kind in ACT_KINDS]

    # --- 4. blobs

    def _check_blobs(self) -> None:
        tally, blobs = self._tally, self._found.blobs
        named: set[str] = set()
        for record in self._found.records:
            for digest, size in blob_references(record.to_dict()):
                named.add(digest)
                data = blobs.get(digest)
                tally.count_done("blobs")
                if data is None and size > BLOB_KEPT_MAX:
                    tally.skip("blobs", "large values are too large for a file of one act", matters=True)
                elif data is None:
                    self._add("blobs", "ARTIFACT_MISSING", f"the blob {digest[:16]} is not in the file", record)
                elif len(data) != size:
                    words = f"the blob {digest[:16]} has another size than the record says"
                    self._add("blobs", "ARTIFACT_HASH_MISMATCH", words, record)
        for digest, data in blobs.items():
            if hashlib.sha256(data).hexdigest() != digest:
                self._add("blobs", "ARTIFACT_HASH_MISMATCH", f"the blob {digest[:16]} has other bytes")
            elif digest not in named:
                self._add("blobs", "UNLISTED_FILE", f"no record refers to the blob {digest[:16]}")

    # --- 5. the keys that the file names

    def _check_keys(self) -> None:
        """Compare the keys that the file names with the signatures: a reader may rely on the list."""
        acts, found = self._select_acts(), self._found
        attested = list(find_attestations(acts))
        made: dict[str, list[Callable[[PublicKey], bool]]] = {
            "seal": [_build_seal_test(record) for record in found.records],
            "principals": [_build_statement_test(token) for _, token in find_tokens(acts, self._reader.blob)],
            **{
                f"policy{server_id}": [_build_statement_test(one) for number, one in attested if number == server_id]
                for server_id in (0, 1)
            },
        }
        for name, keys in found.keys.items():
            tests = made[name]
            digits = [key.ed25519 for key in keys]
            if digits != sorted(set(digits)):
                self._fail("INDEX_MISMATCH", f"keys.{name} has a key twice, or out of order")
            for key in keys:
                if not any(test(key) for test in tests):
                    words = f"keys.{name} names {key.fingerprint}, which made no such signature in this file"
                    self._fail("INDEX_MISMATCH", words)
            # Of principals the exporter need not know the keys.
            if name != "principals" and not all(any(test(key) for key in keys) for test in tests):
                self._fail("INDEX_MISMATCH", f"keys.{name} lacks a key that made a signature")

    # --- 6. examiners

    def _build_examination(self) -> Examination:
        found, reader = self._found, self._reader
        ledger, tenant = found.approved_in or ("", "")
        is_attested = any(_has_shares(record) for record in self._select_readable_acts())
        chains = tuple(
            ExaminedChain(
                name,
                name,
                len(records),
                is_excerpt=not name.startswith("approvers."),
                is_attested=is_attested and name.startswith("gate."),
            )
            for name, records in reader.chains.items()
        )
        valid = ValidRecords(reader, self._rules, {name: name for name in reader.chains}, self._tally.doubtful)
        return Examination(
            valid,
            self._rules,
            ledger,
            tenant,
            chains,
            is_complete=False,
            is_single=True,
            verifier_home=self._options.verifier_home,
        )

    def _select_readable_acts(self) -> Iterator[Sealed]:
        for record in self._found.records:
            try:
                if record.kind in ACT_KINDS:
                    yield record
            except BadInput:
                continue  # Reported with the record.

    def _fail(self, code: str, words: str, record: Sealed | None = None) -> None:
        self._add(PARTS_CHECK, code, words, record)

    def _add(self, check: str, code: str, words: str, record: Sealed | None = None) -> None:
        place = Place(source=self._name) if record is None else Place(record.chain, record.sequence, self._name)
        self._tally.add(Finding(check, "failed", code, make_printable(words), place))


def _has_shares(record: Sealed) -> bool:
    try:
        return record.kind == PREVIEW_KIND and bool(record.to_dict()["outcome"]["result"]["shares"])
    except (KeyError, TypeError):
        return False


def _build_seal_test(record: Sealed) -> Callable[[PublicKey], bool]:
    """Return the test whether a key has sealed a record."""
    message = record.hash.encode("utf-8", "surrogatepass")

    def test(key: PublicKey) -> bool:
        if key.fingerprint != record.signed_by or not verify_ed25519(key.ed25519_bytes, message, record.signature):
            return False
        return not key.ml_dsa_65 or verify_ml_dsa_65(key.ml_dsa_65_bytes, message, record.signature_pq)

    return test


def _build_statement_test(statement: Statement) -> Callable[[PublicKey], bool]:
    """Return the test whether a key has signed a statement."""
    return lambda key: [result.outcome for result in check_statement(statement, Ring.pin([key]))] == ["valid"]


class ActFileReader:
    """Gives examiners the records and blobs of a file."""

    def __init__(self, found: ActFile) -> None:
        self._found = found
        self.chains: dict[str, list[Sealed]] = {}
        for record in found.records:
            self.chains.setdefault(str(record.chain), []).append(record)

    def of_domain(self, domain: str) -> list[Sealed]:
        """The records of the chain of this domain; none where it is not here."""
        return [record for record in self._found.records if str(record.chain).partition(".")[0] == domain]

    def read(self, chain: str, start: int = 0, stop: int | None = None) -> Iterator[Sealed]:
        yield from self._of(chain)[start:stop]

    def get(self, reference: str) -> Sealed | None:
        return next((record for record in self._found.records if record.hash == reference), None)

    def blob(self, digest: str) -> bytes:
        data = self._found.blobs.get(digest)
        if data is None:
            raise NotFound(f"the blob {digest} is not in the file")
        if hashlib.sha256(data).hexdigest() != digest:
            raise BadInput(f"the blob {digest[:16]} has other bytes than its digest says")
        return data

    def head(self, chain: str) -> Head:
        records = self._of(chain)
        ledger, tenant = self._found.approved_in or ("", "")
        return Head(ledger, tenant, chain, len(records), records[-1].hash)

    def _of(self, chain: str) -> list[Sealed]:
        if chain not in self.chains:
            raise NotFound(f"the chain {chain} is not in the file")
        return self.chains[chain]

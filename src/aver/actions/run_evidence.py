"""The evidence behind a run's gate decisions: `evidence.jsonl`, which verifiers read together with `capsules.jsonl`.

A verifier makes each decision again, and checks the approvals that decisions rest on. The capsules of the decisions are
in `capsules.jsonl`. `evidence.jsonl` has the rest, one JSON object per line, in this order:

1. the whole chain `approvers.<tenant>`: who may approve;
2. of the chain `approvals.<tenant>`, the requests, votes and uses for actions that the gate asked a person about;
3. the blobs that decisions refer to: rules, risk states, diffs and long texts.

For example:

    {"chain":"approvals.default","hash":"…",…,"canonical":"…"}      a capsule, as in `capsules.jsonl`
    {"sha256":"…","text":"…"}                                       a blob
    {"sha256":"…","base64":"…"}                                     a blob that is not UTF-8

A run without gate decisions has no such file. Without 1 and 2 no person was asked. A blob that is too large is left
out; then the verifier cannot make its decision again, and the verdict says so.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import orjson

from aver.actions.archive import Archive
from aver.actions.encodings import (
    CAPSULE_LINE_MAX,
    capsule_line,
    parse_json_line,
    read_capsule_line,
    read_own_lines,
)
from aver.actions.run_files import ARCHIVE_CHECK, EVIDENCE_FILE
from aver.capsule.base64_text import decode_base64
from aver.capsule.blobs import blob_references
from aver.capsule.json_reader import Unreadable
from aver.capsule.sealed import Sealed
from aver.errors import AverError, BadInput, IntegrityError, NotFound
from aver.gate.approvals.enrolment import approvers_chain
from aver.gate.approvals.request_records import approvals_chain
from aver.gate.decision_record import DECISION_KIND
from aver.ledger import Head, Ledger
from aver.verdict import ChainJudge, Finding, Place, Rules, Tally
from aver.verdict.chain import REST_UNREAD, UNREADABLE_MAX

BLOB_LINE_MAX = 8 * 1024 * 1024
"""The maximum size, in bytes, of a line of `evidence.jsonl`. Rules, states and most diffs are far smaller."""

BLOBS_MAX = 48 * 1024 * 1024
"""The maximum size, in bytes, of all blobs that Aver writes. Similar risk states compress very well: with more of them,
the reader could take an honest archive for an attack (see `RATIO_MAX`)."""

NEEDS_MAX = 100_000
"""The maximum number of approvals, and of blobs, that are looked for. Their digests are kept in memory."""

DIGEST_SHOWN = 200
"""The maximum number of characters of a digest that is kept. Real ones have 64."""

_ASKING = ("human_review", "human_approved")


@dataclass(slots=True)
class EvidenceNeeds:
    """The approvals and blobs that the decisions of a run rest on."""

    asked: set[str] = field(default_factory=set)
    """The digests of the actions that the gate asked a person about."""
    blobs: dict[str, None] = field(default_factory=dict)
    """The digests of the blobs, in the order in which decisions name them."""

    def add(self, record: Sealed) -> None:
        """Add the needs of a decision. Records of another kind, and damaged ones, need nothing."""
        result = _read_result(record)
        if record.kind != DECISION_KIND:
            return
        if result.get("decision") in _ASKING and len(self.asked) < NEEDS_MAX:
            self.asked.add(str(result.get("digest"))[:DIGEST_SHOWN])
        for part in ("basis", "action"):
            if len(self.blobs) < NEEDS_MAX:
                self.blobs.update(dict.fromkeys(digest for digest, _ in blob_references(result.get(part))))


# --- writing


def write_evidence(ledger: Ledger, needs: EvidenceNeeds, out: BinaryIO) -> None:
    """Write `evidence.jsonl` from the ledger, in the order of the module docstring."""
    approvals, roster = approvals_chain(ledger.tenant), approvers_chain(ledger.tenant)
    selected: list[Sealed] = []
    requests: set[str] = set()
    if needs.asked and ledger.head(approvals).count:
        for record in ledger.read(approvals):
            result = _read_result(record)
            # A forged vote may give another digest than its request, so the request's id counts as well.
            if result.get("digest") in needs.asked or result.get("request") in requests:
                requests.add(record.id)
                selected.append(record)
    # Without approvals no roster is needed.
    has_roster = selected and ledger.head(roster).count
    for record in (*(ledger.read(roster) if has_roster else ()), *selected):
        out.write(capsule_line(record, None))
    left = BLOBS_MAX
    for digest in needs.blobs:
        try:
            data = ledger.blob(digest)
            content = {"sha256": digest, "text": data.decode("utf-8")}
        except (NotFound, IntegrityError):
            continue  # The verdict on the ledger reports it; the one on the run says what it could not make again.
        except UnicodeDecodeError:
            content = {"sha256": digest, "base64": base64.b64encode(data).decode()}
        line = orjson.dumps(content, option=orjson.OPT_APPEND_NEWLINE)
        if len(line) <= min(BLOB_LINE_MAX, left):
            left -= len(line)
            out.write(line)


def _read_result(record: Sealed) -> Mapping[str, Any]:
    """Return the result in a record; empty if it cannot be read, which its own check reports."""
    try:
        result = record.to_dict()["outcome"]["result"]
    except (AverError, KeyError, TypeError):
        return {}
    return result if isinstance(result, dict) else {}


# --- reading


@dataclass(slots=True)
class _ChainExtent:
    """The part of a file that has the records of a chain, how many there are, and the hash of the last."""

    file: str
    start: int
    end: int = 0
    count: int = 0
    hash: str | None = None


@dataclass(slots=True)
class RunFilesReader:
    """Gives examiners the records and blobs in a run's files. The verifier names each of them while it judges them."""

    files: Archive
    home: Head
    """Names the ledger and the tenant of the run."""
    spans: dict[str, _ChainExtent] = field(default_factory=dict)
    """The chains of the gate and of approvals, by name."""
    blobs: dict[str, int] = field(default_factory=dict)
    """The places in `evidence.jsonl` where the lines of blobs begin, by their digests."""

    def add_record(self, record: Sealed, file: str, start: int, end: int) -> None:
        """Add a record of the gate or of approvals, which is between these places of a file."""
        span = self.spans.setdefault(str(record.chain), _ChainExtent(file, start))
        span.end, span.count, span.hash = end, span.count + 1, record.hash

    def chains(self, *domains: str) -> list[str]:
        """Return the chains of these domains that have records here."""
        return [name for name in self.spans if name.partition(".")[0] in domains]

    def read(self, chain: str, start: int = 0, stop: int | None = None) -> Iterator[Sealed]:
        span = self.spans.get(chain)
        if span is None:
            raise NotFound(f"the chain {chain} is not in the run's files")
        index = 0
        file = self.files.members[span.file]
        file.seek(span.start)
        for raw in read_own_lines(file, BLOB_LINE_MAX if span.file == EVIDENCE_FILE else CAPSULE_LINE_MAX):
            if index == stop:
                return
            end = file.tell()
            try:
                line = None if isinstance(raw, BadInput) else read_capsule_line(raw)
            except BadInput:
                line = None  # Reported with the run, or a blob.
            if line is not None and line.chain == chain and not line.has_action:
                if start <= index:
                    yield line.rebuild(None)
                index += 1
            if end >= span.end:
                return
            file.seek(end)  # The caller may have read a blob from the same file meanwhile.

    def get(self, reference: str) -> Sealed | None:
        records = (record for chain in self.spans for record in self.read(chain))
        return next((record for record in records if record.hash == reference), None)

    def blob(self, digest: str) -> bytes:
        start = self.blobs.get(digest)
        if start is None:
            raise NotFound(f"the blob {digest} is not in the run's files")
        file = self.files.members[EVIDENCE_FILE]
        file.seek(start)
        raw = next(read_own_lines(file, BLOB_LINE_MAX))
        if isinstance(raw, BadInput):
            raise raw
        return read_blob_line(parse_json_line(raw))[1]

    def head(self, chain: str) -> Head:
        span = self.spans.get(chain)
        if span is None:
            raise NotFound(f"the chain {chain} is not in the run's files")
        return Head(self.home.ledger, self.home.tenant, chain, span.count, span.hash)


def read_blob_line(content: object) -> tuple[str, bytes]:
    """Return the digest and the bytes of a blob. Raise `Unreadable` if they do not belong together."""
    if not isinstance(content, dict) or not all(isinstance(value, str) for value in content.values()):
        raise Unreadable("a line of evidence is a capsule or a blob")
    try:
        if content.keys() == {"sha256", "text"}:
            data = content["text"].encode("utf-8")
        elif content.keys() == {"sha256", "base64"}:
            data = decode_base64(content["base64"])
        else:
            raise Unreadable("a line of evidence is a capsule or a blob")
    except ValueError:  # Also a text that has no UTF-8.
        raise Unreadable("a blob is UTF-8 text, or base64") from None
    if hashlib.sha256(data).hexdigest() != content["sha256"]:
        raise Unreadable(f"the blob {ascii(content['sha256'])[1:17]} has other bytes than its digest says")
    return content["sha256"], data


# --- judging


def judge_evidence(files: Archive, needs: EvidenceNeeds, reader: RunFilesReader, rules: Rules) -> Tally:
    """Judge the lines of `evidence.jsonl`, and add the records and blobs to the reader.

    Examiners judge the content of the records later.
    """
    tally = Tally()
    file = files.members.get(EVIDENCE_FILE)
    if file is None:
        return tally  # Either it is not listed, or its absence is reported with the members.
    home = reader.home
    roster = approvers_chain(home.tenant)
    identity = {"name": roster, "ledger": home.ledger, "tenant": home.tenant}
    # The roster must be whole from its beginning: each record depends on those before it.
    roster_judge = ChainJudge(rules, chain=roster, identity=identity, needs_block=True)
    number, start, last_sequence, unreadable = 0, file.seek(0), -1, 0
    for raw in read_own_lines(file, BLOB_LINE_MAX):
        number, end = number + 1, file.tell()
        try:
            if isinstance(raw, BadInput):
                raise raw
            record = _take_line(raw, start, end, needs, reader)
            if record is not None and record.chain == roster:
                roster_judge.judge(record)
            elif record is not None:
                last_sequence = _judge_approval(record, last_sequence, rules, tally)
        except BadInput as error:
            words = f"line {number}: {error.message}"
            tally.add(Finding(ARCHIVE_CHECK, "failed", "SCHEMA_INVALID", words, Place(source=EVIDENCE_FILE)))
            unreadable += 1
            if unreadable > UNREADABLE_MAX:
                tally.add(Finding(ARCHIVE_CHECK, "failed", "NOT_READ", REST_UNREAD, Place(source=EVIDENCE_FILE)))
                break
        start = end
    tally.merge(roster_judge.finish())
    tally.chains += len(reader.chains("approvals", "approvers"))
    return tally


def _take_line(raw: bytes, start: int, end: int, needs: EvidenceNeeds, reader: RunFilesReader) -> Sealed | None:
    """Add a line, which is between these places of the file, to the reader. Return its record; None if it is a blob.

    Raise `BadInput` if the line does not belong there.
    """
    content = parse_json_line(raw)
    if not isinstance(content, dict) or "canonical" not in content:
        digest, _ = read_blob_line(content)
        if digest not in needs.blobs:
            raise BadInput(f"no decision refers to the blob {digest}")
        if digest in reader.blobs:
            raise BadInput(f"the blob {digest} is in it twice")
        reader.blobs[digest] = start
        return None
    line = read_capsule_line(raw)
    if line.has_action or line.chain not in (approvers_chain(reader.home.tenant), approvals_chain(reader.home.tenant)):
        raise BadInput("the capsule is neither of the approvers nor of the approvals")
    record = line.rebuild(None)
    reader.add_record(record, EVIDENCE_FILE, start, end)
    return record


def _judge_approval(record: Sealed, last_sequence: int, rules: Rules, tally: Tally) -> int:
    """Judge a record of the approvals by itself. Records about other actions are missing between them.

    Return the highest sequence so far.
    """
    judge = ChainJudge(rules, chain=record.chain, start=None, needs_block=True)
    content = judge.judge(record)
    tally.merge(judge.finish())
    if content is None:
        return last_sequence
    sequence = int(content["sequence"])
    if sequence <= last_sequence:
        words = "it comes twice, or after a later record"
        tally.add(Finding("links", "failed", "SEQUENCE_GAP", words, Place(record.chain, sequence)))
    return max(sequence, last_sequence)

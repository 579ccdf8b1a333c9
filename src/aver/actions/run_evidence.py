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
import binascii
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, BinaryIO

import orjson

from aver.actions.archive import Archive
from aver.actions.encodings import (
    CAPSULE_LINE_MAX,
    capsule_line,
    parse_json_line,
    read_capsule_line,
    read_raw_lines,
)
from aver.actions.run_files import ARCHIVE_CHECK, EVIDENCE_FILE
from aver.capsule.blobs import blob_references
from aver.capsule.json_reader import Unreadable
from aver.capsule.sealed import Sealed
from aver.errors import AverError, BadInput, IntegrityError, NotFound
from aver.gate.approvals.enrolment import approvers_chain
from aver.gate.approvals.request_records import approvals_chain
from aver.gate.decision_record import DECISION_KIND
from aver.ledger import Head, Ledger
from aver.verdict import ChainJudge, Finding, Place, Rules, Tally

BLOB_LINE_MAX = 8 * 1024 * 1024
"""The maximum size, in bytes, of a line of `evidence.jsonl`. Rules, states and most diffs are far smaller."""

BLOBS_MAX = 48 * 1024 * 1024
"""The maximum size, in bytes, of all blobs that Aver writes. Similar risk states compress very well: with more of them,
the reader could take an honest archive for an attack (see `RATIO_MAX`)."""

_ASKING = ("human_review", "human_approved")


class EvidenceNeeds:
    """The approvals and blobs that the decisions of a run rest on."""

    def __init__(self) -> None:
        self.asked: set[str] = set()
        """The digests of the actions that the gate asked a person about."""
        self.blobs: dict[str, None] = {}
        """The digests of the blobs, in the order in which decisions name them."""

    def add(self, record: Sealed) -> None:
        """Add the needs of a decision. Records of another kind, and damaged ones, need nothing."""
        result = _read_result(record)
        if record.kind != DECISION_KIND:
            return
        if result.get("decision") in _ASKING:
            self.asked.add(str(result.get("digest")))
        for part in ("basis", "action"):
            self.blobs.update(dict.fromkeys(digest for digest, _ in blob_references(result.get(part))))


# --- writing


def write_evidence(ledger: Ledger, needs: EvidenceNeeds, out: BinaryIO) -> None:
    """Write `evidence.jsonl` from the ledger."""
    for record in _read_approvals(ledger, needs.asked):
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


def _read_approvals(ledger: Ledger, asked: set[str]) -> list[Sealed]:
    """Return the approvers' chain and the approval records about these actions; nothing if no person was asked."""
    if not asked or not ledger.head(approvals_chain(ledger.tenant)).count:
        return []
    selected: list[Sealed] = []
    requests: set[str] = set()
    for record in ledger.read(approvals_chain(ledger.tenant)):
        result = _read_result(record)
        # A forged vote may give another digest than its request, so the request's id counts as well.
        if result.get("digest") in asked or result.get("request") in requests:
            requests.add(record.id)
            selected.append(record)
    has_roster = selected and ledger.head(approvers_chain(ledger.tenant)).count
    return [*(ledger.read(approvers_chain(ledger.tenant)) if has_roster else ()), *selected]


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


class RunFilesReader:
    """Gives examiners the records and blobs in a run's files. The verifier names each of them while it judges them."""

    def __init__(self, files: Archive, ledger: str, tenant: str) -> None:
        self._files = files
        self._ledger, self._tenant = ledger, tenant
        self._spans: dict[str, _ChainExtent] = {}
        self._blobs: dict[str, int] = {}

    def add_record(self, record: Sealed, file: str, start: int, end: int) -> None:
        """Add a record of the gate or of approvals, which is between these places of a file."""
        span = self._spans.setdefault(str(record.chain), _ChainExtent(file, start))
        span.end, span.count, span.hash = end, span.count + 1, record.hash

    def add_blob(self, digest: str, start: int) -> None:
        """Add a blob, whose line in `evidence.jsonl` begins at this place. Raise `BadInput` if it is there already."""
        if digest in self._blobs:
            raise BadInput(f"the blob {digest} is in it twice")
        self._blobs[digest] = start

    def chains(self, *domains: str) -> list[str]:
        """Return the chains of these domains that have records here."""
        return [name for name in self._spans if name.partition(".")[0] in domains]

    def read(self, chain: str, start: int = 0, stop: int | None = None) -> Iterator[Sealed]:
        return islice(self._read_all(chain), start, stop)

    def _read_all(self, chain: str) -> Iterator[Sealed]:
        span = self._spans.get(chain)
        if span is None:
            raise NotFound(f"the chain {chain} is not in the run's files")
        file = self._files.members[span.file]
        file.seek(span.start)
        for raw in read_raw_lines(file, BLOB_LINE_MAX if span.file == EVIDENCE_FILE else CAPSULE_LINE_MAX):
            end = file.tell()
            try:
                line = None if isinstance(raw, BadInput) else read_capsule_line(raw)
            except BadInput:
                line = None  # Reported with the run, or a blob.
            if line is not None and line.chain == chain and not line.has_action:
                yield line.rebuild(None)
            if end >= span.end:
                return
            file.seek(end)  # The caller may have read a blob from the same file meanwhile.

    def get(self, reference: str) -> Sealed | None:
        records = (record for chain in self._spans for record in self._read_all(chain))
        return next((record for record in records if record.hash == reference), None)

    def blob(self, digest: str) -> bytes:
        start = self._blobs.get(digest)
        if start is None:
            raise NotFound(f"the blob {digest} is not in the run's files")
        file = self._files.members[EVIDENCE_FILE]
        file.seek(start)
        raw = next(read_raw_lines(file, BLOB_LINE_MAX))
        if isinstance(raw, BadInput):
            raise raw
        return _read_blob_line(parse_json_line(raw))[1]

    def head(self, chain: str) -> Head:
        span = self._spans.get(chain)
        if span is None:
            raise NotFound(f"the chain {chain} is not in the run's files")
        return Head(self._ledger, self._tenant, chain, span.count, span.hash)


def _read_blob_line(content: object) -> tuple[str, bytes]:
    """Return the digest and the bytes of a blob. Raise `Unreadable` if they do not belong together."""
    if not isinstance(content, dict) or not all(isinstance(value, str) for value in content.values()):
        raise Unreadable("a line of evidence is a capsule or a blob")
    try:
        if content.keys() == {"sha256", "text"}:
            data = content["text"].encode("utf-8")
        elif content.keys() == {"sha256", "base64"}:
            data = base64.b64decode(content["base64"], validate=True)
        else:
            raise Unreadable("a line of evidence is a capsule or a blob")
    except (UnicodeEncodeError, ValueError, binascii.Error):
        raise Unreadable("a blob is UTF-8 text, or base64") from None
    if hashlib.sha256(data).hexdigest() != content["sha256"]:
        raise Unreadable(f"the blob {ascii(content['sha256'])[1:17]} has other bytes than its digest says")
    return content["sha256"], data


# --- judging


def judge_evidence(files: Archive, needs: EvidenceNeeds, reader: RunFilesReader, rules: Rules, home: Head) -> Tally:
    """Judge the lines of `evidence.jsonl`, and add the records and blobs to the reader.

    `home` names the ledger and the tenant of the run. Examiners judge the content of the records later.
    """
    judge = _EvidenceJudge(needs, reader, rules, home)
    file = files.members.get(EVIDENCE_FILE)
    if file is None:
        return judge.tally  # Either it is not listed, or its absence is reported with the members.
    file.seek(0)
    number, start = 0, 0
    for raw in read_raw_lines(file, BLOB_LINE_MAX):
        number, end = number + 1, file.tell()
        try:
            if isinstance(raw, BadInput):
                raise raw
            judge.take(raw, start, end)
        except BadInput as error:
            words = f"line {number}: {error.message}"
            judge.tally.add(Finding(ARCHIVE_CHECK, "failed", "SCHEMA_INVALID", words, Place(source=EVIDENCE_FILE)))
        start = end
    return judge.finish()


class _EvidenceJudge:
    def __init__(self, needs: EvidenceNeeds, reader: RunFilesReader, rules: Rules, home: Head) -> None:
        self.tally = Tally()
        self._needs = needs
        self._reader = reader
        self._rules = rules
        self._roster = approvers_chain(home.tenant)
        self._approvals = approvals_chain(home.tenant)
        identity = {"name": self._roster, "ledger": home.ledger, "tenant": home.tenant}
        # The roster must be whole from its beginning: each record depends on those before it.
        self._roster_judge = ChainJudge(rules, chain=self._roster, identity=identity, needs_block=True)
        self._last_sequence = -1

    def take(self, raw: bytes, start: int, end: int) -> None:
        """Judge a line, which is between these places of the file. Raise `BadInput` if it does not belong there."""
        content = parse_json_line(raw)
        if not isinstance(content, dict) or "canonical" not in content:
            digest, _ = _read_blob_line(content)
            if digest not in self._needs.blobs:
                raise BadInput(f"no decision refers to the blob {digest}")
            self._reader.add_blob(digest, start)
            return
        line = read_capsule_line(raw)
        record = line.rebuild(None)
        if line.has_action or line.chain not in (self._roster, self._approvals):
            raise BadInput("the capsule is neither of the approvers nor of the approvals")
        if line.chain == self._roster:
            self._roster_judge.judge(record)
        else:
            self._judge_approval(record)
        self._reader.add_record(record, EVIDENCE_FILE, start, end)

    def _judge_approval(self, record: Sealed) -> None:
        """Judge a record of the approvals by itself. Records about other actions are missing between them."""
        judge = ChainJudge(self._rules, chain=self._approvals, start=None, needs_block=True)
        content = judge.judge(record)
        self.tally.merge(judge.finish())
        if content is None:
            return
        sequence = int(content["sequence"])
        if sequence <= self._last_sequence:
            words = "it comes twice, or after a later record"
            self.tally.add(Finding("links", "failed", "SEQUENCE_GAP", words, Place(self._approvals, sequence)))
        self._last_sequence = max(sequence, self._last_sequence)

    def finish(self) -> Tally:
        self.tally.merge(self._roster_judge.finish())
        self.tally.chains += len(self._reader.chains("approvals", "approvers"))
        return self.tally

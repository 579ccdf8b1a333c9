"""The statements of the protocol: what a participant signs besides its capsules.

    protocol-join    {v, ledger, tenant, chain, task_sha256, profile, role, agent, public_key, public_key_pq, at}
                     by the joining key: it takes one role in one trace, for one task
    protocol-event   {v, id, ledger, tenant, chain, event, role, agent, refs, payload_sha256, artifacts,
                     seen: {count, hash}}
                     by a participant elsewhere: the operator seals the event around it. `artifacts` are the digests of
                     the blobs that come along, `seen` is the head of the chain that the participant has seen
    protocol-report  {v, ledger, tenant, chain, head: {count, hash}, profile, status, report_sha256}
                     by the auditor

Reading one checks its form and its signature. Whether it fits into a trace is the fold's matter.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from aver.capsule.blobs import Blob, blob_references
from aver.capsule.canonical import canonical_json
from aver.capsule.json_document import check_object, check_version, int_field, text_field, time_field
from aver.errors import BadInput, Refused
from aver.fast_dataclass import dataclass
from aver.keys.public_key import PublicKey
from aver.keys.ring import Ring
from aver.keys.statement import Statement, StatementSigner, check_statement, sign_statement
from aver.lazy_pattern import lazy_pattern
from aver.protocol.events import AGENT_PATTERN, EVENT_ID_PATTERN, FORMS, Event, check_refs

JOIN_PURPOSE = "protocol-join"
EVENT_PURPOSE = "protocol-event"
REPORT_PURPOSE = "protocol-report"
APPROVAL_PURPOSE = "approval"
"""The purpose of a person's signed vote: see `aver.gate.approvals.vote`."""

PROFILES = ("strict", "default", "lenient")
AUDIT_STATUSES = ("pass", "pass-with-warnings", "fail")

COUNT_MAX = 2**53
"""Highest count of records in a statement: every JSON reader keeps such a number exactly."""

ARTIFACTS_MAX = 256
"""Most artifacts that come along with one contribution."""

MORE_MAX = 64
"""Most statements that travel beside a join or a contribution: a key is not rotated more often within a trace."""

_HEX64 = lazy_pattern(r"[0-9a-f]{64}")
_NAME = lazy_pattern(r"[!-~]{1,200}")
_MEDIA = lazy_pattern(r"[ -~]{1,256}")
_PROFILE = lazy_pattern("|".join(PROFILES))
_STATUS = lazy_pattern("|".join(AUDIT_STATUSES))
_ROLE = lazy_pattern(r"planner|executor|critic|auditor|operator")
_PLACE_KEYS = frozenset({"v", "ledger", "tenant", "chain"})
_JOIN_KEYS = _PLACE_KEYS | {"task_sha256", "profile", "role", "agent", "public_key", "public_key_pq", "at"}
_EVENT_KEYS = _PLACE_KEYS | {"id", "event", "role", "agent", "refs", "payload_sha256", "artifacts", "seen"}
_REPORT_KEYS = _PLACE_KEYS | {"head", "profile", "status", "report_sha256"}


class TracePlace(NamedTuple):
    """Where a trace is: a statement is good in one ledger, tenant and chain only."""

    ledger: str
    tenant: str
    chain: str

    def to_dict(self) -> dict[str, Any]:
        return {"v": 1, "ledger": self.ledger, "tenant": self.tenant, "chain": self.chain}


@dataclass(frozen=True, slots=True)
class SeenHead:
    """A head of a trace's chain: how many records, and the hash of the last."""

    count: int
    hash: str

    def to_dict(self) -> dict[str, Any]:
        return {"count": self.count, "hash": self.hash}


class Join(NamedTuple):
    """A participant's signed word that its key takes a role in a trace."""

    place: TracePlace
    task_sha256: str
    profile: str
    role: str
    agent: str
    key: PublicKey
    at: str


class Contribution(NamedTuple):
    """A participant's signed word that it says an event in a trace."""

    place: TracePlace
    id: str
    event: str
    role: str
    agent: str
    refs: Mapping[str, str]
    payload_sha256: str
    artifacts: tuple[str, ...]
    seen: SeenHead


@dataclass(frozen=True, slots=True)
class JoinFile:
    """A join as it travels: the signed statement, and for a key that was rotated the rotations that lead to it."""

    join: Statement
    rotations: tuple[Statement, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return {"v": 1, "join": self.join.to_dict(), "rotations": [each.to_dict() for each in self.rotations]}

    @classmethod
    def from_dict(cls, data: Any) -> JoinFile:
        """Read the document strictly. Raises `BadInput`."""
        found = check_object(data, "the join", frozenset({"v", "join", "rotations"}))
        check_version(found["v"], "the join")
        return cls(Statement.from_dict(found["join"], "join"), _read_statements(found["rotations"], "rotations"))


@dataclass(frozen=True, slots=True)
class ContributionFile:
    """A contribution as it travels: the signed statement, the payload that it names, and the artifacts."""

    statement: Statement
    payload: Mapping[str, Any]
    artifacts: tuple[Blob, ...] = ()
    more: tuple[Statement, ...] = ()
    """Further statements that the event must have beside it: the auditor's about its report."""

    def to_dict(self) -> dict[str, Any]:
        """Return the document. The artifacts are in base64."""
        return {
            "v": 1,
            "statement": self.statement.to_dict(),
            "payload": dict(self.payload),
            "artifacts": [
                {"media": blob.media, "data": base64.b64encode(blob.data).decode("ascii")} for blob in self.artifacts
            ],
            **({"more": [statement.to_dict() for statement in self.more]} if self.more else {}),
        }

    @classmethod
    def from_dict(cls, data: Any) -> ContributionFile:
        """Read the document strictly. Raises `BadInput`."""
        required = frozenset({"v", "statement", "payload", "artifacts"})
        found = check_object(data, "the contribution", required, frozenset({"more"}))
        check_version(found["v"], "the contribution")
        if not isinstance(found["payload"], dict) or not isinstance(found["artifacts"], list):
            raise BadInput("the contribution: payload must be an object, and artifacts a list")
        if len(found["artifacts"]) > ARTIFACTS_MAX:
            raise BadInput(f"a contribution brings at most {ARTIFACTS_MAX} artifacts")
        blobs = []
        for index, item in enumerate(found["artifacts"]):
            where = f"artifacts[{index}]"
            item = check_object(item, where, frozenset({"media", "data"}))
            try:
                data = base64.b64decode(item["data"], validate=True)
            except (TypeError, ValueError) as error:
                raise BadInput(f"{where}.data is not base64") from error
            blobs.append(Blob(data, text_field(item["media"], f"{where}.media", _MEDIA)))
        more = _read_statements(found["more"], "more") if "more" in found else ()
        return cls(Statement.from_dict(found["statement"]), found["payload"], tuple(blobs), more)


def _read_statements(data: Any, where: str) -> tuple[Statement, ...]:
    if not isinstance(data, list) or len(data) > MORE_MAX:
        raise BadInput(f"{where} must be a list of at most {MORE_MAX} statements")
    return tuple(Statement.from_dict(item, f"{where}[{index}]") for index, item in enumerate(data))


class SignedReport(NamedTuple):
    """An auditor's signed word about the report on a trace."""

    place: TracePlace
    head: SeenHead
    profile: str
    status: str
    report_sha256: str


def digest_json(value: Any) -> str:
    """Return SHA-256 of a value's canonical JSON: of a task, a payload, or the input of an intent."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


# --- signing


def sign_join(signer: StatementSigner, join: Join) -> Statement:
    """Sign a join. `signer` must have the key that joins."""
    content = {
        **join.place.to_dict(),
        "task_sha256": join.task_sha256,
        "profile": join.profile,
        "role": join.role,
        "agent": join.agent,
        "public_key": join.key.ed25519,
        "public_key_pq": join.key.ml_dsa_65,
        "at": join.at,
    }
    return sign_statement(JOIN_PURPOSE, content, [signer])


def sign_contribution(signer: StatementSigner, place: TracePlace, event: Event, seen: SeenHead) -> Statement:
    """Sign an event that the operator is to seal. The statement covers all that the participant says."""
    content = {
        **place.to_dict(),
        "id": event.id,
        "event": event.name,
        "role": event.role,
        "agent": event.agent,
        "refs": dict(event.refs),
        "payload_sha256": digest_json(event.payload),
        "artifacts": find_artifacts(event.payload),
        "seen": seen.to_dict(),
    }
    return sign_statement(EVENT_PURPOSE, content, [signer])


def sign_report(signer: StatementSigner, report: SignedReport) -> Statement:
    """Sign the auditor's word about a report."""
    content = {
        **report.place.to_dict(),
        "head": report.head.to_dict(),
        "profile": report.profile,
        "status": report.status,
        "report_sha256": report.report_sha256,
    }
    return sign_statement(REPORT_PURPOSE, content, [signer])


def find_artifacts(payload: Any) -> list[str]:
    """Return the digests of the artifacts that a payload brings, sorted, each once."""
    return sorted({digest for digest, _ in blob_references(payload)})


# --- reading


def read_join(statement: Statement) -> Join:
    """Read a join, and check that the key in it signed it. Raises `BadInput` or `Refused`."""
    content = _check_content(statement, JOIN_PURPOSE, _JOIN_KEYS)
    join = Join(
        place=_read_place(content),
        task_sha256=text_field(content["task_sha256"], "task_sha256", _HEX64),
        profile=text_field(content["profile"], "profile", _PROFILE),
        role=text_field(content["role"], "role", _ROLE),
        agent=text_field(content["agent"], "agent", AGENT_PATTERN),
        key=PublicKey.read(content["public_key"], content["public_key_pq"], JOIN_PURPOSE).check_usable(),
        at=time_field(content["at"], "at"),
    )
    check_signed_by(statement, join.key)
    return join


def read_contribution(statement: Statement) -> Contribution:
    """Read a contribution. The caller checks the signature, when it knows whose key it must be."""
    content = _check_content(statement, EVENT_PURPOSE, _EVENT_KEYS)
    name, refs, artifacts = content["event"], content["refs"], content["artifacts"]
    if not isinstance(name, str) or name not in FORMS or not isinstance(refs, dict):
        raise BadInput(f"{ascii(name)[:80]} is not an event, or its refs are no object")
    if not isinstance(artifacts, list) or len(artifacts) > ARTIFACTS_MAX:
        raise BadInput(f"artifacts must be a list of at most {ARTIFACTS_MAX} digests")
    return Contribution(
        place=_read_place(content),
        id=text_field(content["id"], "id", EVENT_ID_PATTERN),
        event=name,
        role=text_field(content["role"], "role", _ROLE),
        agent=text_field(content["agent"], "agent", AGENT_PATTERN),
        refs=check_refs(refs, name),
        payload_sha256=text_field(content["payload_sha256"], "payload_sha256", _HEX64),
        artifacts=tuple(text_field(digest, "artifacts", _HEX64) for digest in artifacts),
        seen=read_seen(content["seen"], "seen"),
    )


def read_report_statement(statement: Statement) -> SignedReport:
    """Read the auditor's word. The caller checks the signature, when it knows whose key it must be."""
    content = _check_content(statement, REPORT_PURPOSE, _REPORT_KEYS)
    return SignedReport(
        place=_read_place(content),
        head=read_seen(content["head"], "head"),
        profile=text_field(content["profile"], "profile", _PROFILE),
        status=text_field(content["status"], "status", _STATUS),
        report_sha256=text_field(content["report_sha256"], "report_sha256", _HEX64),
    )


def check_signed_by(statement: Statement, key: PublicKey) -> None:
    """Raise `Refused` with `SIG_INVALID` unless this key, and no other, signed a statement."""
    results = check_statement(statement, Ring.pin([key]))
    if len(results) != 1 or results[0].outcome != "valid":
        words = f"the {statement.purpose} statement is not signed by the key {key.fingerprint} alone"
        raise Refused("SIG_INVALID", words, advice="sign it with the key that it names")


def find_statements(statements: Iterable[Statement], purpose: str) -> list[Statement]:
    """Return the statements of one purpose, in order."""
    return [statement for statement in statements if statement.purpose == purpose]


def read_seen(value: Any, where: str) -> SeenHead:
    """Read `{count, hash}`. A head that was seen has at least one record."""
    found = check_object(value, where, frozenset({"count", "hash"}))
    count = int_field(found["count"], f"{where}.count", low=1, high=COUNT_MAX)
    return SeenHead(count, text_field(found["hash"], f"{where}.hash", _HEX64))


def _check_content(statement: Statement, purpose: str, keys: frozenset[str]) -> dict[str, Any]:
    if statement.purpose != purpose:
        raise BadInput(f"the statement is for {statement.purpose}, not for {purpose}")
    content = check_object(statement.content, purpose, keys)
    check_version(content["v"], purpose)
    return content


def _read_place(content: Mapping[str, Any]) -> TracePlace:
    return TracePlace(*(text_field(content[name], name, _NAME) for name in ("ledger", "tenant", "chain")))

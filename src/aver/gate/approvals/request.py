"""A request for approval: the action, the approvers, and the time until it expires.

`outcome.result` of an `approval.request`:

    v           1
    digest      the action's digest: what an approval is for
    digest_version    3: the version of that digest (`aver.gate.action`). Requests of earlier versions of Aver have 2,
                or lack this field and `beside` and have version 1
    gate_id     the id of the gate's decision
    action      the part of the action that the digest covers, or a blob of its canonical bytes. SHA-256 of them is the
                digest
    beside      the rest of the action: {description, session, arguments}, or a blob of it. `arguments` are those that
                the digest leaves out
    diff        its diff, or a blob of it, or null
    risk        {score, low, high, observations}, or null
    reasons     why a person is asked
    rules       the policies that asked, and `bundle`, the digest of the policy bundle
    expires     the time at which it expires
    levels      [{approvers, quorum, after}]
    approvers   {identity: {public_key, public_key_pq, custody}}: the keys that count, pinned
    anchor      the source of those keys: `ledger` or `system`
    statement   3: the version of the statement that people sign. Requests of earlier versions of Aver want 2, or lack
                this field and the next two and want version 1
    scope       `session:<id>`: the session in which an approval is good, unless the person says `workspace`. Nobody
                can say so of an action with a `request_sha256`
    uses        1: how often it is good, unless the person says more

`aver.gate.approvals.notification` tells people that a request waits for them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from aver.capsule.aver_block import read_block
from aver.capsule.blobs import INLINE_MAX, Blob, blob_references
from aver.capsule.canonical import canonical_bytes, has_surrogate
from aver.capsule.json_document import check_object, check_version, int_field, text_field, time_field
from aver.capsule.json_reader import read_json
from aver.capsule.sealed import Sealed, content_hash
from aver.errors import AverError, BadInput, IntegrityError
from aver.fast_dataclass import dataclass
from aver.gate.action import DIGEST_VERSION, FIRST_DIGEST_VERSION, Action, bound_content
from aver.gate.approvals.roster import Approver, approver_from_dict
from aver.gate.approvals.rules import LEVELS_MAX, ApprovalLevel, level_from_dict
from aver.gate.decision import Decision

REQUEST_KIND = "approval.request"

ACTION_INLINE_MAX = INLINE_MAX // 2
"""Bytes of an action that are kept in the record itself. A larger one becomes a blob."""

DIFF_MAX = 16 * 1024 * 1024
"""Bytes of a diff. Aver does not ask people about a larger one, because a person cannot read it."""

GATE_ID_MAX = 128

STATEMENT_VERSION = 3
"""The version of the statement that a new request wants. It covers all that a person is shown. Its digest has version
3, too."""

UNBOUND_VERSION = 1
"""The first version. Its statement names none of these, so nothing shows for which request it was signed."""

DOWNGRADED = "the request wants a statement of an earlier version than a request before it"

USES = 1
"""How often an approval is good, unless the person says more."""

USES_MAX = 100
"""Upper bound of the uses that a person can allow at once. A rule is better for more (`aver policy allow`)."""

WORKSPACE_SCOPE = "workspace"
"""The scope of an approval that is good in every session. The digest names the workspace."""

_SESSION_SCOPE = "session:"

_DIGEST = re.compile(r"[0-9a-f]{64}")
_GATE_ID = re.compile(rf"[!-~]{{1,{GATE_ID_MAX}}}")
_KEYS = frozenset(
    (
        *("v", "digest", "gate_id", "action", "diff", "risk", "reasons", "rules", "bundle"),
        *("expires", "levels", "approvers", "anchor"),
    )
)
_BINDING_KEYS = frozenset({"statement", "scope", "uses"})
_DIGEST_KEYS = frozenset({"digest_version", "beside"})
_BESIDE_KEYS = frozenset({"description", "session", "arguments"})


def session_scope(session: str) -> str:
    """Return the scope of an approval for one session. It ends after the colon if the action has no session."""
    return f"{_SESSION_SCOPE}{session}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequest:
    """One request. It pins the approvers and their keys."""

    ledger: str
    tenant: str
    id: str
    hash: str
    """The hash of the bytes that were read, not the stored one."""
    chain: str
    sequence: int
    opened: str
    expires: str
    digest: str
    gate_id: str
    levels: tuple[ApprovalLevel, ...]
    approvers: Mapping[str, Approver]
    anchor: str
    content: Mapping[str, Any]
    """`outcome.result`, for display."""
    statement: int = UNBOUND_VERSION
    """The version of the statement that it wants."""
    scope: str = ""
    uses: int = USES
    digest_version: int = FIRST_DIGEST_VERSION
    summary: str = ""
    """The action in one line, with secrets masked, from `trigger.request`."""
    call_id: str = ""
    """The call that it concerns, from `trigger.correlation_id`; empty in older requests."""

    @property
    def shown_sha256(self) -> str:
        """The digest of all that the request gives a person to read: the time it was opened, and its whole content.

        The content names a part that is kept as a blob by the blob's digest.
        """
        return hashlib.sha256(canonical_bytes({"opened": self.opened, "request": self.content})).hexdigest()

    def read_action(self, fetch: Callable[[str], bytes]) -> dict[str, Any]:
        """Return the whole action, as `Action.to_dict` gives it. `fetch` returns the bytes of a blob.

        Raises IntegrityError if it is not the action of the digest, or of another session.
        """
        action, apart = self.content["action"], self.blob_digest("action")
        # The digest is what people sign, so the bytes are checked before they are shown.
        raw = canonical_bytes(action) if apart is None else fetch(apart)
        if hashlib.sha256(raw).hexdigest() != self.digest:
            raise IntegrityError("EVIDENCE_INVALID", f"the action in the request {self.id} is not the one it is about")
        action = action if apart is None else read_json(raw)
        try:
            if self.digest_version != FIRST_DIGEST_VERSION:
                action = self._join_action(action, fetch)
            if not self.has_scope_of(action):
                raise IntegrityError("EVIDENCE_INVALID", f"the request {self.id} is not of the session of its action")
            return dict(action)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise IntegrityError("EVIDENCE_INVALID", f"the request {self.id} does not hold an action") from error

    def _join_action(self, bound: Mapping[str, Any], fetch: Callable[[str], bytes]) -> dict[str, Any]:
        """Put the part that the digest covers and the rest together. Raises BadInput where they do not fit."""
        beside = check_object(self.read_beside(fetch), "the request: beside", _BESIDE_KEYS)
        if bound.get("v") != self.digest_version or beside["arguments"].keys() & bound["arguments"].keys():
            raise BadInput("the action in the request is not of the version that it names")
        whole = {**bound, **beside, "arguments": {**bound["arguments"], **beside["arguments"]}}
        left_out, described = beside["arguments"].keys(), "description" in bound
        if bound_content(whole, left_out, self.digest_version, described=described) != bound:
            raise BadInput("the action in the request and the rest of it do not fit")
        return {name: value for name, value in whole.items() if name != "v" and (value or name != "request_sha256")}

    @property
    def names_request(self) -> bool:
        """Whether the action carries out a request of another protocol, by its hash. A blob is not looked into.

        Such a hash covers the session. So an approval of the action is good in its session alone.
        """
        action = self.content["action"]
        return isinstance(action, dict) and bool(action.get("request_sha256"))

    def read_beside(self, fetch: Callable[[str], bytes]) -> Any:
        """Return the part of the action that the digest leaves out, as the record has it."""
        apart = self.blob_digest("beside")
        if apart is None:
            return self.content["beside"]
        raw = fetch(apart)
        if hashlib.sha256(raw).hexdigest() != apart:
            raise IntegrityError("EVIDENCE_INVALID", f"a blob of the request {self.id} has other bytes")
        return read_json(raw)

    def has_scope_of(self, action: Mapping[str, Any]) -> bool:
        """Whether the request is for the session of this action. One that wants version 1 does not say."""
        return self.statement == UNBOUND_VERSION or self.scope == session_scope(str(action.get("session", "")))

    def read_diff(self, blob: bytes | None, action: Mapping[str, Any]) -> str | None:
        """Return the diff. Raises IntegrityError if it is not the diff of the action."""
        diff = self.content["diff"]
        raw = blob if blob is not None else None if diff is None else str(diff).encode()
        if action.get("diff_sha256") != (None if raw is None else hashlib.sha256(raw).hexdigest()):
            raise IntegrityError("EVIDENCE_INVALID", f"the diff in the request {self.id} is not that of its action")
        return None if raw is None else raw.decode("utf-8", "surrogatepass")

    def blob_digest(self, part: str) -> str | None:
        """Return the digest of the blob with the `action`, `beside` or `diff`; None if it is in the record itself."""
        value = self.content.get(part)
        found = next(blob_references(value), None) if isinstance(value, dict) and value.keys() == {"blob"} else None
        return None if found is None else found[0]

    def levels_for(self, identity: str) -> list[int]:
        """Return the levels, from 1 on, on which a person may vote."""
        return [number for number, level in enumerate(self.levels, 1) if identity in level.approvers]

    def level_opens_at(self, level: int) -> str:
        """Return the time from which a level may decide without an escalation."""
        return add_seconds(self.opened, self.levels[level - 1].after)


def add_seconds(moment: str, seconds: float) -> str:
    """Return the time `seconds` later, in the format of records."""
    return (datetime.fromisoformat(moment) + timedelta(seconds=seconds)).isoformat()


def build_request_content(
    action: Action,
    decision: Decision,
    *,
    expires: str,
    levels: tuple[ApprovalLevel, ...],
    approvers: Mapping[str, Approver],
    anchor: str,
) -> tuple[dict[str, Any], list[Blob]]:
    """Build `outcome.result` of a new request, and its blobs."""
    text_field(decision.gate_id, "gate_id", _GATE_ID)
    blobs: list[Blob] = []
    whole, left_out = action.to_dict(), action.left_out
    beside = {
        "description": action.description,
        "session": action.session,
        "arguments": {name: whole["arguments"][name] for name in left_out},
    }
    risk = None
    if decision.score is not None and decision.interval is not None:
        from aver.gate.decision_record import write_figure

        low, high = decision.interval
        figures = {"score": decision.score, "low": low, "high": high}
        risk = {name: write_figure(value) for name, value in figures.items()} | {"observations": decision.observations}
    content = {
        "v": 1,
        "digest": decision.digest,
        "gate_id": decision.gate_id,
        "digest_version": DIGEST_VERSION,
        # The digest of such a blob is that of the action, so the request still names it exactly.
        "action": _store_large(bound_content(whole, left_out, DIGEST_VERSION), blobs),
        "beside": _store_large(beside, blobs),
        "diff": _build_diff_content(action.diff, blobs),
        "risk": risk,
        "reasons": list(decision.reasons),
        "rules": list(decision.policy.rules) if decision.policy else [],
        "bundle": decision.policy.bundle if decision.policy else None,
        "expires": expires,
        "levels": [level.to_dict() for level in levels],
        "approvers": {identity: approver.to_dict() for identity, approver in approvers.items()},
        "anchor": anchor,
        "statement": STATEMENT_VERSION,
        "scope": session_scope(action.session),
        "uses": USES,
    }
    return content, blobs


def _store_large(content: dict[str, Any], blobs: list[Blob]) -> dict[str, Any]:
    """Return a part of an action as the record holds it: itself, or a reference to a new blob of it."""
    raw = canonical_bytes(content)
    if len(raw) <= ACTION_INLINE_MAX:
        return content
    blobs.append(Blob(raw, "application/json"))
    return blobs[-1].reference


def _build_diff_content(diff: str | None, blobs: list[Blob]) -> Any:
    if diff is None:
        return None
    raw = diff.encode("utf-8", "surrogatepass")
    if len(raw) > DIFF_MAX:
        raise BadInput(
            f"a diff of {len(raw)} bytes is more than a person can review ({DIFF_MAX})", advice="split the change"
        )
    # JSON cannot hold half characters, so such a diff becomes a blob as well.
    if len(raw) <= ACTION_INLINE_MAX and not has_surrogate(diff):
        return diff
    blobs.append(Blob(raw, "text/x-diff"))
    return blobs[-1].reference


def read_request(record: Sealed, *, ledger: str, tenant: str) -> ApprovalRequest:
    """Read the request in a record of this ledger and tenant. Raises BadInput if it is not a valid request."""
    try:
        content = record.to_dict()
        if record.kind != REQUEST_KIND:
            raise BadInput(f"the record {content['id']} is of the kind {record.kind}")
        result = check_object(content["outcome"]["result"], "the request", _KEYS, _BINDING_KEYS | _DIGEST_KEYS)
        check_version(result["v"], "the request")
        statement, scope = _read_binding(result)
        digest_version = _read_digest_version(result)
        if (statement == STATEMENT_VERSION) != (digest_version == DIGEST_VERSION):
            raise BadInput("the request wants a statement of another version than its digest has")
        # Checked before the levels are read, so that a record cannot ask for endless work.
        listed = result["levels"]
        if not isinstance(listed, list) or not 1 <= len(listed) <= LEVELS_MAX:
            raise BadInput(f"the request has no levels, or more than {LEVELS_MAX}")
        approvers = {
            identity: approver_from_dict(identity, data, f"the request: approvers.{identity}")
            for identity, data in result["approvers"].items()
        }
        levels = tuple(level_from_dict(item, f"the request: levels[{index}]") for index, item in enumerate(listed))
        # Every approver needs a key, and no two may share one: each person has one vote.
        if {identity for level in levels for identity in level.approvers} != approvers.keys():
            raise BadInput("the request does not give a key for exactly those who decide")
        if len({approver.fingerprint for approver in approvers.values()}) < len(approvers):
            raise BadInput("the request gives one key to two people")
        return ApprovalRequest(
            ledger=ledger,
            tenant=tenant,
            id=record.id,
            # Computed: who reads the record again compares both, and must meet the same bytes.
            hash=content_hash(record.canonical),
            chain=str(record.chain or ""),
            sequence=record.sequence,
            opened=time_field((read_block(content) or {}).get("at"), "the request: at"),
            expires=time_field(result["expires"], "the request: expires"),
            digest=text_field(result["digest"], "the request: digest", _DIGEST),
            gate_id=text_field(result["gate_id"], "the request: gate_id", _GATE_ID),
            levels=levels,
            approvers=approvers,
            anchor=str(result["anchor"]),
            content=result,
            statement=statement,
            scope=scope,
            digest_version=digest_version,
            summary=str(content["trigger"].get("request") or ""),
            call_id=str(content["trigger"].get("correlation_id") or ""),
        )
    except AverError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BadInput("the record is not a request for approval") from error


def _read_binding(result: Mapping[str, Any]) -> tuple[int, str]:
    """Return the version of the statement that a request wants, and its scope. Without these fields it wants 1."""
    found = _BINDING_KEYS & result.keys()
    if not found:
        return UNBOUND_VERSION, ""
    if found != _BINDING_KEYS:
        raise BadInput(f"the request lacks {min(_BINDING_KEYS - found)}")
    statement = int_field(
        result["statement"], "the request: statement", low=UNBOUND_VERSION + 1, high=STATEMENT_VERSION
    )
    int_field(result["uses"], "the request: uses", low=USES, high=USES)
    scope = result["scope"]
    if not isinstance(scope, str) or not scope.startswith(_SESSION_SCOPE):
        raise BadInput("the request: scope must be the one of a session")
    return statement, scope


def _read_digest_version(result: Mapping[str, Any]) -> int:
    """Return the version of the digest. A request without these fields has version 1."""
    found = _DIGEST_KEYS & result.keys()
    if not found:
        return FIRST_DIGEST_VERSION
    if found != _DIGEST_KEYS:
        raise BadInput(f"the request lacks {min(_DIGEST_KEYS - found)}")
    low = FIRST_DIGEST_VERSION + 1
    return int_field(result["digest_version"], "the request: digest_version", low=low, high=DIGEST_VERSION)

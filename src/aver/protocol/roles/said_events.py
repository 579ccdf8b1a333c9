"""Says the event that a role wants to say. The session fills in what only it can know.

    event = say_for(session, "agent:critic", Said(event="proposal_reviewed", payload={...}, refs={...}))

A role may leave out fields that nearly always have one value: `_DEFAULTS`. Runs, `aver protocol say` and the MCP server
come here. `contribute_for` signs the same for the operator of a trace elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from aver.capsule.blobs import Blob
from aver.errors import BadInput
from aver.protocol.view import Said, View, check_speaker

if TYPE_CHECKING:
    from aver.protocol.events import Event
    from aver.protocol.handles import ExecutorHandle
    from aver.protocol.session import ProtocolSession
    from aver.protocol.statements import ContributionFile

_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "proposal_created": {"assumptions": [], "required_tools": [], "expected_evidence": []},
    "proposal_reviewed": {"risk": None, "conditions": []},
    "claim_issued": {"about": "success"},
    "claim_challenged": {"evidence": []},
    "claim_revised": {"retracted": False},
}
"""Fields that a role may leave out."""


def find_wrong_field(said: Said) -> str:
    """The field of what a function said whose type is wrong; empty if there is none. The values come later."""
    if not isinstance(said.event, str):
        return "event"
    if not isinstance(said.payload, Mapping):
        return "payload"
    refs = said.refs.values() if isinstance(said.refs, Mapping) else [None]
    if not all(isinstance(value, str) for value in refs):
        return "refs"
    is_list = isinstance(said.artifacts, list | tuple)
    return "" if is_list and all(isinstance(blob, Blob) for blob in said.artifacts) else "artifacts"


def say_for(session: ProtocolSession, agent: str, said: Said, view: View | None = None) -> Event:
    """Say what a role wants to say. The session fills in what only it can know.

    That is the hash and the derived risk of an intent, and the standings of claims in a final statement. Asking for
    `verification_run_started` runs the whole audit.

    `view` is what the role was shown. The event is refused if another process has spoken for the agent since. A final
    statement lists the claims as they stood in the view: it is refused if one was challenged since.
    """
    from aver.protocol.handles import AuditorHandle, ExecutorHandle

    check_speaker(session.fold, agent, said.event)
    seen = None if view is None else int(view.head.get("count", 0))
    payload = _fill_payload(said)
    if said.event == "tool_intent_signed":
        return _intend(ExecutorHandle(session, agent, seen=seen), payload, said.refs)
    if said.event == "final_statement_signed":
        claims = None if view is None else [{"id": each["id"], "standing": each["standing"]} for each in view.claims]
        text = _require_field(payload, "text", said.event)
        return ExecutorHandle(session, agent, seen=seen).conclude(text, claims=claims)
    if said.event == "verification_run_started":
        AuditorHandle(session, agent).audit()
        return session.events[-1]
    return session.seal_event(agent, said.event, payload, refs=said.refs, artifacts=said.artifacts, seen=seen)


def contribute_for(session: ProtocolSession, agent: str, said: Said) -> ContributionFile:
    """Sign what a role wants to say, for the operator elsewhere. The role may leave out what it may leave out here.

    A final statement lists the claims as they stand in this copy of the trace, unless it brings a list.
    """
    with session.hold_fold() as fold:
        check_speaker(fold, agent, said.event)
        payload = _fill_payload(said)
        if said.event == "final_statement_signed":
            payload = {"claims": fold.list_claims(), "unmet": [], **payload}
        return session.contribute(agent, said.event, payload, refs=said.refs, artifacts=said.artifacts)


def _fill_payload(said: Said) -> dict[str, Any]:
    """Return the payload of what was said, with the fields that were left out, and without its version."""
    payload = {**_DEFAULTS.get(said.event, {}), **said.payload}
    payload.pop("v", None)
    if said.event == "claim_revised" and payload["retracted"] is True:
        payload = {"confidence": None, "evidence": [], **payload}
    return payload


def _intend(executor: ExecutorHandle, payload: Mapping[str, Any], refs: Mapping[str, str]) -> Event:
    """Sign an intent. `repeatable` may be None: repeatable if the effects of the call allow it."""
    from aver.protocol.rules.step import EventRefused

    event, wish = "tool_intent_signed", payload.get("repeatable", False)
    tool, arguments = _require_field(payload, "tool", event), _require_field(payload, "arguments", event)
    if not isinstance(tool, str) or not isinstance(arguments, Mapping):
        raise BadInput(f"{event} needs a text as tool, and an object as arguments")
    proposal, retry_of = _require_field(refs, "proposal", event), refs.get("retry_of")
    for repeatable in (True, False) if wish is None else (wish,):
        try:
            return executor.intend(
                proposal,
                tool,
                arguments,
                justification=_require_field(payload, "justification", event),
                risk=_read_declared_risk(payload.get("risk")),
                repeatable=repeatable,
                retry_of=retry_of,
            )
        except EventRefused as error:
            if wish is not None or not repeatable or error.place != "repeatable":
                raise
    raise AssertionError("one of the two is signed, or raises")


def _require_field(values: Mapping[str, Any], name: str, event: str) -> Any:
    if name not in values:
        raise BadInput(f"{event} needs {name}", advice=f"aver protocol schema {event} shows its form")
    return values[name]


def _read_declared_risk(risk: Any) -> Any:
    """A role declares its risk as a word, or as the object that the event has."""
    return risk.get("declared") if isinstance(risk, Mapping) else risk

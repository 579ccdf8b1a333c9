"""The view of a participant: it sees a trace, and the events that it may say now. One value in, one event out.

    View   the task, the state, what is open, and the events that this role may say now, with their schemas
    Said   one event that a role wants to say

Every role works from a view: Python callables, handles, commands and MCP tools alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from aver.capsule.blobs import Blob
from aver.fast_dataclass import dataclass
from aver.protocol.events import FORMS, load_schema
from aver.protocol.rules.step import EventRefused
from aver.protocol.rules.work import needs_review
from aver.protocol.standings import Participant
from aver.protocol.trace import ADMITS, ProtocolTrace


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """An event that a role wants to say."""

    event: str
    payload: Mapping[str, Any]
    refs: Mapping[str, str] = field(default_factory=dict)
    artifacts: tuple[Blob, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A trace as one participant sees it. `to_dict` is the JSON that commands and MCP tools get."""

    trace: str
    chain: str
    agent: str
    role: str
    task: Mapping[str, Any]
    profile: str
    bounds: Mapping[str, Any]
    state: str
    status: str
    head: Mapping[str, Any]
    """`{count, hash}`: a contribution names it as `seen`."""
    participants: tuple[Mapping[str, Any], ...]
    proposals: tuple[Mapping[str, Any], ...]
    intents: tuple[Mapping[str, Any], ...]
    executions: tuple[Mapping[str, Any], ...]
    claims: tuple[Mapping[str, Any], ...]
    challenges: tuple[Mapping[str, Any], ...]
    artifacts: Mapping[str, str] = field(default_factory=dict)
    """The names of the artifacts that were recorded by themselves, by digest. Outputs are with their executions."""
    open: Mapping[str, tuple[str, ...]]
    """Things that wait for somebody, by sort: see `find_open_things`."""
    may_say: tuple[str, ...]
    """The events that this role may say in this state. A guard may still refuse one."""

    @property
    def schemas(self) -> dict[str, Any]:
        """The schemas of the payloads of `may_say`, by event."""
        return {name: load_schema(name) for name in self.may_say}

    @property
    def refs(self) -> dict[str, dict[str, list[str]]]:
        """The references that each event of `may_say` must and may have."""
        return {
            name: {"required": list(FORMS[name].refs), "optional": list(FORMS[name].optional)} for name in self.may_say
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the view as JSON, schemas included."""
        lists = ("participants", "proposals", "intents", "executions", "claims", "challenges")
        names = ("trace", "chain", "agent", "role", "task", "profile", "bounds", "state", "status", "head")
        return {
            "v": 1,
            **{name: getattr(self, name) for name in names},
            **{name: list(getattr(self, name)) for name in lists},
            "artifacts": dict(self.artifacts),
            "open": {name: list(ids) for name, ids in self.open.items()},
            "may_say": list(self.may_say),
            "refs": self.refs,
            "schemas": self.schemas,
        }


def build_view(trace: ProtocolTrace, participant: Participant) -> View:
    """Build the view of a participant."""
    role, critics = participant.role, trace.critics
    head = trace.head
    return View(
        trace=trace.trace,
        chain=trace.place.chain,
        agent=participant.agent,
        role=role,
        task=trace.task,
        profile=trace.profile,
        bounds=trace.bounds.to_dict(),
        state=trace.state,
        status=trace.status,
        head={} if head is None else head.to_dict(),
        participants=tuple(
            {"agent": each.agent, "role": each.role, "fingerprint": each.key.fingerprint}
            for each in trace.participants.values()
        ),
        proposals=tuple(
            {
                "id": each.id,
                "standing": each.standing(critics),
                "executable": each.is_executable(critics),
                "reviews": dict(each.reviews),
                "revises": each.revises,
                "revised_by": each.revised_by,
                **_without_version(each.payload),
            }
            for each in trace.proposals.values()
        ),
        intents=tuple(
            {
                "id": each.id,
                "proposal": each.proposal,
                "standing": each.standing(critics),
                "needs_review": needs_review(trace, each),
                "attempt": each.attempt,
                "code": each.code,
                **_without_version(each.payload),
            }
            for each in trace.intents.values()
        ),
        executions=tuple(
            {
                "id": each.id,
                "intent": each.intent,
                "code": each.code,
                "exit_code": each.exit_code,
                "output": dict(each.outputs),
                "until": each.until,
            }
            for each in trace.executions.values()
        ),
        claims=tuple(
            {
                "id": each.id,
                "proposal": each.proposal,
                "standing": each.standing,
                "about": each.about,
                "text": each.text,
                "confidence": each.confidence,
                "evidence": list(each.evidence),
                "challenges": list(each.challenges),
            }
            for each in trace.claims.values()
        ),
        challenges=tuple(
            {
                "id": each.id,
                "claim": each.claim,
                "agent": each.agent,
                "standing": each.standing,
                "reason": each.reason,
                "evidence": list(each.evidence),
            }
            for each in trace.challenges.values()
        ),
        artifacts=dict(trace.recorded),
        open=find_open_things(trace, participant.agent),
        may_say=find_admitted_events(trace, role),
    )


def find_admitted_events(trace: ProtocolTrace, role: str) -> tuple[str, ...]:
    """Return the events that a role may say in the present state, in the order of the table."""
    admitted = ADMITS[trace.state]
    return tuple(name for name, form in FORMS.items() if name in admitted and role in form.roles)


def check_speaker(trace: ProtocolTrace, agent: str, event: str) -> None:
    """Raise `EventRefused` if an agent's role never says this event. Then the form of its payload does not matter."""
    participant, form = trace.participants.get(agent), FORMS.get(event)
    if participant is None or form is None or participant.role in form.roles:
        return
    own = ", ".join(name for name, each in FORMS.items() if participant.role in each.roles)
    words = f"{agent} has the role {participant.role}, and may not say {event}"
    raise EventRefused("ROLE_POLICY_VIOLATION", words, place="role", advice=f"it may say {own}")


def find_open_things(trace: ProtocolTrace, agent: str) -> dict[str, tuple[str, ...]]:
    """Return what waits for somebody, by id.

    `reviews` and `intent_reviews` wait for this agent, if it is a critic. The others wait for whoever may: `revisions`
    are proposals that were rejected and not revised, `blocked` intents that a critic blocks, `runs` intents that may
    start now, `running` calls that have not ended, `disputes` challenges that are open.
    """
    critics = trace.critics
    proposals = [each for each in trace.proposals.values() if each.revised_by is None]
    waiting = [each for each in trace.intents.values() if each.start is None and each.end is None]
    is_critic = agent in critics
    return {
        "reviews": tuple(each.id for each in proposals if is_critic and agent not in each.reviews),
        "intent_reviews": tuple(
            each.id for each in waiting if is_critic and agent not in each.reviews and needs_review(trace, each)
        ),
        "revisions": tuple(each.id for each in proposals if each.standing(critics) == "rejected"),
        "blocked": tuple(each.id for each in waiting if each.standing(critics) == "blocked"),
        "runs": tuple(
            each.id
            for each in waiting
            if trace.proposals[each.proposal].is_executable(critics)
            and (
                each.standing(critics) == "approved"
                or (each.standing(critics) == "open" and not needs_review(trace, each))
            )
        ),
        "running": tuple(trace.running),
        "disputes": tuple(each.id for each in trace.challenges.values() if each.standing == "open"),
    }


def _without_version(payload: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in payload.items() if name != "v"}

"""The 19 events of the protocol: who says each, what it refers to, and how it is a capsule.

One event is one capsule in the chain `protocol.<trace>`, of the kind `protocol.<event>`:

    type                            by the table `FORMS`
    parent_id                       the event that this one answers
    trigger.correlation_id          the intent's id where the event is about one, else the trace
    context.agent_id, .session_id   the agent (`operator` for the operator), the trace
    context.environment.protocol    {v: 1, trace, event, role, agent, before, after}
    context.environment.aver.refs   ids of other events, by the names of the table
    authority.chain                 the signed statements that belong to it
    outcome.result                  the payload: an object with `v: 1`, held to the schema of the event

The schemas are in `src/aver/protocol/spec/`, and so in the wheel; `spec/protocol/` has a link to each. A proposal, an
intent, an execution, a claim and a challenge have the id of the capsule that made them. `before` and `after` are
states: `aver.protocol.trace` computes them, and a replay compares.

    >>> FORMS["claim_issued"].roles, FORMS["claim_issued"].refs
    (('executor',), ('proposal',))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from operator import itemgetter
from typing import Any, Literal, NamedTuple, get_args

from aver.capsule.aver_block import build_draft_block, chain_name, read_block
from aver.capsule.blobs import INLINE_MAX
from aver.capsule.json_document import check_object, check_version, parse_document, text_field, time_field
from aver.capsule.json_schema import build_validator, find_schema_error
from aver.capsule.model import Authority, Capsule, Context, Outcome, Trigger
from aver.capsule.sealed import Sealed
from aver.errors import BadInput
from aver.keys.public_key import FINGERPRINT_PATTERN
from aver.keys.statement import Statement
from aver.lazy_pattern import lazy_pattern

DOMAIN = "protocol"
BLOCK_KEY = "protocol"
"""The key in `context.environment` under which a record says which event of which trace it is."""

OPERATOR = "operator"

Role = Literal["operator", "planner", "executor", "critic", "auditor"]
ROLES: tuple[str, ...] = get_args(Role)

State = Literal[
    "initialized", "planning", "reviewing", "executing", "claiming", "auditing", "completed", "failed", "aborted"
]
STATES: tuple[str, ...] = get_args(State)
FINAL_STATES = frozenset({"completed", "failed", "aborted"})

SCHEMA_MAX = 256 * 1024
"""Largest schema file, in bytes. Ours have a few thousand."""

STATEMENTS_MAX = 256
"""Most statements beside one event: the joins of all participants, with some rotations each."""

TRACE_PATTERN = lazy_pattern(r"(?!x-[0-9a-f]{32}$)[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}")
"""A trace's id is the id of its chain, as it stands. A name that stands for the digest of another is no trace."""
EVENT_ID_PATTERN = lazy_pattern(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
AGENT_PATTERN = lazy_pattern(r"operator|agent:[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}")
_BLOCK_KEYS = frozenset({"v", "trace", "event", "role", "agent", "before", "after"})


PROTOCOL_AUTHORITY = Authority(type="policy", policy_reference="agent-protocol")
"""The authority of events that rest on the rules of the protocol alone."""


class EventForm(NamedTuple):
    """One row of the table of events."""

    roles: tuple[str, ...]
    """The roles that may say it."""
    type: str
    """The type of its capsule."""
    refs: tuple[str, ...] = ()
    """The references that it must have."""
    optional: tuple[str, ...] = ()
    """The references that it may have."""
    answers: tuple[str, ...] = ()
    """References, of which the first that is there names the event that this one answers."""


FORMS: Mapping[str, EventForm] = {
    "session_initialized": EventForm(("operator",), "workflow"),
    "participant_joined": EventForm(("operator",), "system", (), ("succeeds",), ("succeeds",)),
    "proposal_created": EventForm(("planner",), "agent", (), ("revises",), ("revises",)),
    "proposal_reviewed": EventForm(("critic",), "agent", ("proposal",), (), ("proposal",)),
    "tool_intent_signed": EventForm(("executor",), "agent", ("proposal",), ("retry_of",), ("retry_of", "proposal")),
    "intent_reviewed": EventForm(("critic",), "agent", ("intent",), (), ("intent",)),
    "tool_execution_started": EventForm(("executor",), "tool", ("intent", "decision"), ("review",), ("intent",)),
    "tool_execution_completed": EventForm(("executor",), "tool", ("intent", "start"), (), ("start",)),
    "tool_execution_failed": EventForm(("executor",), "tool", ("intent",), ("start",), ("start", "intent")),
    "artifact_recorded": EventForm(("executor",), "tool", (), ("execution",), ("execution",)),
    "claim_issued": EventForm(("executor",), "agent", ("proposal",), (), ("proposal",)),
    "claim_challenged": EventForm(("critic",), "agent", ("claim",), (), ("claim",)),
    "claim_revised": EventForm(("executor", "planner"), "agent", ("claim",), (), ("claim",)),
    "challenge_resolved": EventForm(("critic", "operator"), "auth", ("challenge",), ("approval",), ("challenge",)),
    "final_statement_signed": EventForm(("executor",), "agent"),
    "verification_run_started": EventForm(("auditor",), "system"),
    "verification_run_completed": EventForm(("auditor",), "system", ("start",), (), ("start",)),
    "session_aborted": EventForm(("operator",), "kill"),
    "session_failed": EventForm(("operator",), "system"),
}
"""The table of events."""

_NAME_BY_KIND = {f"{DOMAIN}.{name}": name for name in FORMS}


class Event(NamedTuple):
    """One event of a trace. The last five fields are empty before it is sealed.

    It is a tuple, because a verifier makes one of every record: a dataclass takes four times as long to make.
    """

    id: str
    trace: str
    name: str
    role: str
    agent: str
    payload: Mapping[str, Any]
    refs: Mapping[str, str]
    before: str = ""
    after: str = ""
    statements: tuple[Statement, ...] = ()
    """The statements in `authority.chain`: joins, rotations, votes, a contribution, the auditor's word."""
    sequence: int = -1
    hash: str = ""
    previous: str = ""
    """The hash of the record before it."""
    at: str = ""
    """When it was sealed."""
    signer: str = ""
    """The fingerprint of the key that sealed it."""

    @property
    def form(self) -> EventForm:
        return FORMS[self.name]

    @property
    def parent(self) -> str | None:
        """The event that this one answers; None where it answers none."""
        for name in FORMS[self.name].answers:
            if name in self.refs:
                return self.refs[name]
        return None

    @property
    def contribution(self) -> Statement | None:
        """The statement of a participant elsewhere, around which the operator sealed; None where there is none."""
        first = self.statements[0] if self.statements else None
        return first if first is not None and first.purpose == "protocol-event" else None


def check_trace_id(trace: Any) -> str:
    """Return the id of a trace; `BadInput` unless a chain can have it as it stands."""
    if not isinstance(trace, str) or TRACE_PATTERN.fullmatch(trace) is None:
        raise BadInput(
            f"{ascii(trace)[:80]} is no id of a trace: use up to 128 letters, digits, '.', '_' and '-'",
            advice="leave it out to get a new one",
        )
    return trace


def trace_chain(trace: str) -> str:
    """Return the chain of a trace."""
    return chain_name(DOMAIN, check_trace_id(trace))


# --- schemas


def read_schema_bytes(name: str) -> bytes:
    """Return the schema of an event's payload, as it is in the package. `BadInput` if there is no such event."""
    if name not in FORMS:
        raise BadInput(f"{ascii(name)[:80]} is not an event", advice=f"events are {', '.join(FORMS)}")
    from importlib.resources import files  # Here, because it takes long to load.

    return files("aver.protocol").joinpath("spec", f"{name}.schema.json").read_bytes()


@cache
def load_schema(name: str) -> Any:
    """Return the schema of an event's payload. The caller must not change it."""
    return parse_document(read_schema_bytes(name), f"the schema of {name}", limit=SCHEMA_MAX)


@cache
def _load_validator(name: str) -> Any:
    return build_validator(load_schema(name))


def find_payload_problem(name: str, payload: Any) -> str:
    """Hold a payload to its schema and to the longest text. Returns the first problem; empty if there is none."""
    return find_schema_error(_load_validator(name), payload) or find_fraction(name, payload) or _find_long_text(payload)


def find_fraction(name: str, payload: Any) -> str:
    """Name a number that must be whole and is written as a fraction, such as `8.0`; empty if there is none.

    A JSON schema takes it for an integer. Nobody else does: a reference with such a size refers to no artifact.
    """
    list_numbers = _WHOLE_NUMBERS.get(name)
    if list_numbers is None or all(type(number) is int or number is None for number in list_numbers(payload)):
        return ""
    return "a count, a size, or an exit code is no whole number"


def _list_sizes(*items: Any) -> list[Any]:
    return [item["blob"]["size"] for item in items if item is not None]


_BOUND_COUNTS = ("attempts", "evidence_min", "proposals", "output_max", "tool_calls", "time_budget")

_WHOLE_NUMBERS: Mapping[str, Callable[[Any], list[Any]]] = {
    "session_initialized": lambda payload: [payload["bounds"][name] for name in _BOUND_COUNTS],
    "tool_execution_started": lambda payload: _list_sizes(payload["input"], payload["workspace"]["change"]),
    "tool_execution_completed": lambda payload: [payload["exit_code"], *_list_sizes(*payload["output"].values())],
    "tool_execution_failed": lambda payload: _list_sizes(*payload["output"].values()),
    "artifact_recorded": lambda payload: _list_sizes(payload["blob"]),
    "verification_run_completed": lambda payload: [payload["head"]["count"], *_list_sizes(payload["report"])],
    "session_failed": lambda payload: [payload["finding"]["sequence"]],
}
"""The numbers of each event's payload that must be whole."""


def _find_long_text(payload: Any) -> str:
    """Name the place of a string with more than `INLINE_MAX` bytes; empty if there is none."""
    stack: list[tuple[str, Any]] = [("payload", payload)]
    while stack:
        place, value = stack.pop()
        if type(value) is str:
            # A character has at most four bytes, so that most strings need no encoding to be measured.
            if len(value) * 4 > INLINE_MAX and len(value.encode("utf-8", "surrogatepass")) > INLINE_MAX:
                return f"{place}: a text has at most {INLINE_MAX} bytes here; record a longer one as an artifact"
        elif isinstance(value, dict):
            stack.extend((f"{place}.{str(name)[:80]}", item) for name, item in value.items())
            stack.extend((f"{place}: a name", name) for name in value)
        elif isinstance(value, (list, tuple)):
            stack.extend((f"{place}[{index}]", item) for index, item in enumerate(value))
    return ""


# --- as a capsule


def build_event_draft(event: Event, *, authority: Authority | None = None) -> Capsule:
    """Build the capsule of an event, before sealing.

    `authority` is that of a decision or of a person, where the event rests on one; its `chain` gets the statements.
    """
    basis = authority or PROTOCOL_AUTHORITY
    status, error = find_status(event.name, event.payload)
    return Capsule(
        id=event.id,
        type=event.form.type,
        domain=DOMAIN,
        parent_id=event.parent,
        trigger=Trigger(
            type="system" if event.role == OPERATOR else "agent",
            source=event.agent,
            request=f"{event.name} by {event.agent}",
            correlation_id=event.id if event.name == "tool_intent_signed" else event.refs.get("intent", event.trace),
        ),
        context=Context(
            agent_id=event.agent,
            session_id=event.trace,
            environment={
                BLOCK_KEY: {
                    "v": 1,
                    "trace": event.trace,
                    "event": event.name,
                    "role": event.role,
                    "agent": event.agent,
                    "before": event.before,
                    "after": event.after,
                },
                **build_draft_block(f"{DOMAIN}.{event.name}", event.refs),
            },
        ),
        authority=Authority(
            type=basis.type,
            approver=basis.approver,
            policy_reference=basis.policy_reference,
            chain=[statement.to_dict() for statement in event.statements],
            escalation_reason=basis.escalation_reason,
        ),
        outcome=Outcome(status=status, result=dict(event.payload), summary=f"{event.agent}: {event.name}", error=error),
    )


def find_status(name: str, payload: Mapping[str, Any]) -> tuple[str, str | None]:
    """Return `outcome.status` and `outcome.error` of an event's capsule."""
    if name == "tool_execution_started":
        return "pending", None
    if name == "tool_execution_failed":
        code = str(payload["code"])
        status = {"REFUSED": "blocked", "OUTCOME_UNKNOWN": "pending"}.get(code, "failure")
        return status, code
    if name == "session_failed":
        return "failure", str(payload["finding"]["code"])
    if name == "session_aborted":
        return "blocked", str(payload["code"])
    if name == "verification_run_completed" and payload["status"] == "fail":
        return "failure", None
    if name in ("proposal_reviewed", "intent_reviewed") and payload["verdict"] in ("rejected", "blocked"):
        return "blocked", None
    return "success", None


def read_event(record: Sealed) -> Event:
    """Read an event back, strictly: everything that an event's capsule says must fit together.

    The record's hash, link and signature are the caller's matter. Raises `BadInput`.
    """
    content = record.content
    block = read_block(content)
    try:
        name = _NAME_BY_KIND.get(block["kind"]) if block is not None else None
        if block is None or name is None:
            raise BadInput(f"the record {record.id[:80]} is no event of the protocol")
        context, outcome, authority = content["context"], content["outcome"], content["authority"]
        said = check_object(context["environment"][BLOCK_KEY], "environment.protocol", _BLOCK_KEYS)
        trace, role, agent, before, after = speech = _read_speech(said)
        _check_speech(said["v"], *speech, block["by"])
        event = Event(
            text_field(content["id"], "id", EVENT_ID_PATTERN),
            trace,
            name,
            role,
            agent,
            outcome["result"],
            check_refs(block.get("refs", {}), name),
            before,
            after,
            _read_statements(authority["chain"]),
            record.sequence,
            record.hash,
            record.previous_hash or "",
            time_field(block["at"], "at"),
            block["by"],
        )
        problem = find_schema_error(_load_validator(name), event.payload) or find_fraction(name, event.payload)
        # A record that is not longer than the longest text has no longer text in it.
        if problem or (len(record.canonical) > INLINE_MAX and (problem := _find_long_text(event.payload))):
            raise BadInput(f"the payload of {name}: {problem}")
        told = (content["type"], content["domain"], said["event"], context["agent_id"], context["session_id"])
        if told != (FORMS[name].type, DOMAIN, name, agent, trace) or content["parent_id"] != event.parent:
            raise BadInput(f"the record of {name} says two different things about itself")
        if (outcome["status"], outcome["error"]) != find_status(name, event.payload):
            raise BadInput(f"the record of {name} has another outcome than its payload")
        _check_authority(authority, event)
        return event
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BadInput(f"the record {record.id[:80]} is no whole event ({type(error).__name__})") from error


_read_speech = itemgetter("trace", "role", "agent", "before", "after")


@lru_cache(maxsize=1024, typed=True)
def _check_speech(version: Any, trace: Any, role: Any, agent: Any, before: Any, after: Any, signer: Any) -> None:
    """Raise `BadInput` unless each of these is a value that an event may have.

    The events of a trace have few different combinations, so each is checked once. `typed`: True is no version.
    """
    check_version(version, "environment.protocol")
    check_trace_id(trace)
    _check_name(role, "role", ROLES)
    text_field(agent, "agent", AGENT_PATTERN)
    _check_name(before, "before", STATES)
    _check_name(after, "after", STATES)
    text_field(signer, "by", FINGERPRINT_PATTERN)


def _check_authority(authority: Mapping[str, Any], event: Event) -> None:
    """Raise `BadInput` where a record claims an authority that its event does not have.

    A start has that of the gate's decision, which whoever verifies the decision compares. A ruling has that of the
    people whose votes are beside it.
    """
    if event.name == "tool_execution_started":
        return
    approver, found = authority["approver"], (authority["type"], authority["policy_reference"])
    if event.name == "challenge_resolved" and event.role == OPERATOR:
        people = ", ".join(str(statement.content.get("approver")) for statement in event.statements)
        if approver != people:
            raise BadInput("the record of a ruling names other people than its votes")
    elif approver is not None or found != (PROTOCOL_AUTHORITY.type, PROTOCOL_AUTHORITY.policy_reference):
        raise BadInput(f"the record of {event.name} claims an authority that it does not have")


def check_refs(refs: Any, name: str) -> dict[str, str]:
    """Return the references of an event of this name. `BadInput` if one is missing, unknown, or no id."""
    if not isinstance(refs, dict):
        raise BadInput("refs must be an object")
    _check_ref_names(name, *refs)
    for where, reference in refs.items():
        if type(reference) is not str or EVENT_ID_PATTERN.fullmatch(reference) is None:
            text_field(reference, f"refs.{where}", EVENT_ID_PATTERN)
    return refs


@lru_cache(maxsize=1024)
def _check_ref_names(name: str, *given: str) -> None:
    """Raise `BadInput` unless an event of this name has these references. The same ones are checked once."""
    form = FORMS[name]
    for required in form.refs:
        if required not in given:
            raise BadInput(f"refs lacks {required!r}")
    for each in given:
        if each not in form.refs and each not in form.optional:
            raise BadInput(f"refs has an unknown key {ascii(each)[:80]}")


def _check_name(value: Any, where: str, names: tuple[str, ...]) -> None:
    if value not in names:
        raise BadInput(f"{where} has a bad value {ascii(value)[:80]}")


def _read_statements(chain: Any) -> tuple[Statement, ...]:
    if chain == []:
        return ()
    if not isinstance(chain, Sequence) or isinstance(chain, str) or len(chain) > STATEMENTS_MAX:
        raise BadInput(f"authority.chain must be a list of at most {STATEMENTS_MAX} statements")
    return tuple(Statement.from_dict(item, f"authority.chain[{index}]") for index, item in enumerate(chain))

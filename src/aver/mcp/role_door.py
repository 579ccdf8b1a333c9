"""A participant's MCP door: `aver mcp --trace T --as agent:critic` offers the tools of that one role.

    view              what the participant sees now, and what it may say
    read_artifact     an output or recorded artifact of the trace, as text
    <event>           one tool for each event of the role, such as `proposal_reviewed`
    run_intent        for an executor: run an intent that may run; the gate judges it first
    audit             for an auditor: verify the trace, and seal the report

An event's tool takes the fields of its payload, and `refs`, the events that it refers to. The session fills in what
only it can know, such as the hash of an intent. An event that may not be said now is an error of the tool (`isError`),
with code and reason, so that the agent can correct itself. Every result comes as text and as structured content.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from aver import __version__
from aver.capsule.blobs import TEXT_MEDIA, Blob
from aver.errors import AverError, BadInput, NotFound, Refused
from aver.mcp.tool_result import build_tool_result
from aver.protocol.events import FORMS, Event, load_schema
from aver.protocol.roles.said_events import say_for
from aver.protocol.view import Said

if TYPE_CHECKING:
    from aver.protocol.session import ProtocolSession

SERVER_NAME = "aver-protocol"

CALLS_AT_ONCE = 8
"""Calls of one participant that run at a time. Further ones wait."""

ARTIFACT_TEXT_MAX = 256 * 1024
"""Bytes of an artifact that `read_artifact` returns. The rest is cut, and the answer says so."""

_LOG = logging.getLogger("aver.mcp")
_TEXT_FIELD: dict[str, Any] = {"type": "string"}

_SHORT_FORMS: Mapping[str, dict[str, Any]] = {
    "tool_intent_signed": {
        "properties": {
            "tool": {**_TEXT_FIELD, "description": "the tool to call"},
            "arguments": {"type": "object", "description": "its arguments"},
            "justification": {**_TEXT_FIELD, "description": "why this call"},
            "risk": {"enum": ["low", "medium", "high", "critical"], "description": "only to raise the derived risk"},
            "repeatable": {"type": "boolean", "description": "whether an audit may make the call again"},
        },
        "required": ["tool", "arguments", "justification"],
    },
    "final_statement_signed": {"properties": {"text": _TEXT_FIELD}, "required": ["text"]},
    "claim_revised": {
        "properties": {
            "retracted": {"type": "boolean", "description": "whether the claim is taken back"},
            "text": {**_TEXT_FIELD, "description": "the new words, or why it is taken back"},
            "confidence": {"type": "number", "minimum": 0, "maximum": 1},
            "evidence": {"type": "array", "items": {"$ref": "#/$defs/evidence"}, "maxItems": 64},
        },
        "required": ["retracted", "text"],
    },
    "artifact_recorded": {
        "properties": {"name": _TEXT_FIELD, "text": _TEXT_FIELD, "media": _TEXT_FIELD},
        "required": ["name", "text"],
    },
}
"""Events whose tool takes less than their payload has: the session fills in the rest."""

_BY_SESSION = frozenset({"tool_execution_started", "tool_execution_completed", "tool_execution_failed"})
"""Events that `run_intent` makes. No agent says them by itself."""

_AUDIT_EVENTS = frozenset({"verification_run_started", "verification_run_completed"})


def build_role_server(open_session: Callable[[], ProtocolSession], agent: str, role: str) -> Server[Any]:
    """Build the server of one participant. The first call of a tool calls `open_session`, once."""
    door = _RoleDoor(open_session, agent, role)
    return Server(
        SERVER_NAME,
        version=__version__,
        title=f"Aver: {role}",
        description=f"Lets {agent} take part in a trace as {role}.",
        instructions=(
            f"You are {agent}, the {role} of a trace. Call view first: it shows the task, what is open, and what you "
            "may say now. Then say one event by the tool of its name, and look again. Every event is signed and final."
        ),
        on_list_tools=door.list_tools,
        on_call_tool=door.call_tool,
    )


class _RoleDoor:
    """The tools of one participant, each call in a thread."""

    def __init__(self, open_session: Callable[[], ProtocolSession], agent: str, role: str) -> None:
        self._open_session = open_session
        self._agent = agent
        self._role = role
        self._session: ProtocolSession | None = None
        self._opening = threading.Lock()
        self._turns = anyio.CapacityLimiter(CALLS_AT_ONCE)
        self._tools = {tool.name: tool for tool in _list_role_tools(role)}

    async def list_tools(
        self, context: ServerRequestContext[Any, Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=list(self._tools.values()))

    async def call_tool(
        self, context: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        if params.name not in self._tools:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name[:80]}")
        work = partial(self._answer, params.name, params.arguments or {})
        # The thread continues if the client disconnects: an event that was begun is sealed or refused completely.
        return await anyio.to_thread.run_sync(work, limiter=self._turns)

    def _answer(self, tool: str, arguments: dict[str, Any]) -> types.CallToolResult:
        try:
            with self._opening:
                self._session = self._session or self._open_session()
            return build_tool_result({"ok": True, **self._run(self._session, tool, arguments)}, is_error=False)
        except AverError as error:
            code = getattr(error, "code", type(error).__name__)
            found = {"ok": False, "code": code, "error": error.message, "advice": error.advice}
            return build_tool_result(found, is_error=True)
        except Exception as error:  # noqa: BLE001 - a defect here must not take the server down
            _LOG.exception("%s failed", tool)
            # Only the type: the text of an unexpected error may contain a secret, and the agent would see it.
            words = f"internal error: {type(error).__name__}; nothing may be taken as done"
            return build_tool_result({"ok": False, "code": "INTERNAL", "error": words, "advice": ""}, is_error=True)

    def _run(self, session: ProtocolSession, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if tool == "view":
            view = session.view(self._agent).to_dict()
            view.pop("schemas")  # Each tool has its own.
            return {"view": view}
        if tool == "read_artifact":
            return _read_artifact(session, arguments)
        if tool == "run_intent":
            from aver.protocol.handles import ExecutorHandle

            return _describe_event(ExecutorHandle(session, self._agent).run(_require_text(arguments, "intent")))
        if tool == "audit":
            from aver.protocol.handles import AuditorHandle

            outcome = AuditorHandle(session, self._agent).audit()
            return {"status": outcome.status, "state": session.state}
        refs = arguments.pop("refs", {})
        if not isinstance(refs, dict):
            raise BadInput("refs must be an object of ids")
        said = _build_said(tool, arguments, refs)
        return _describe_event(say_for(session, self._agent, said))


def _list_role_tools(role: str) -> list[types.Tool]:
    tools = [
        _describe_tool("view", "Show the task, the state, what is open, and what you may say now.", {}, reads=True),
        _describe_tool(
            "read_artifact",
            "Read an artifact of the trace by its digest, as text.",
            {"properties": {"digest": _TEXT_FIELD}, "required": ["digest"]},
            reads=True,
        ),
    ]
    for name, form in FORMS.items():
        if role not in form.roles or name in _BY_SESSION | _AUDIT_EVENTS:
            continue
        schema = load_schema(name)
        # The definitions come along: a field of a short form may refer to one.
        fields = {"$defs": schema.get("$defs", {}), **(_SHORT_FORMS.get(name) or _drop_version(schema))}
        refs = dict.fromkeys((*form.refs, *form.optional), _TEXT_FIELD)
        if refs:
            shape = {"type": "object", "properties": refs, "required": list(form.refs), "additionalProperties": False}
            required = [*fields.get("required", []), *(["refs"] if form.refs else [])]
            fields = {**fields, "properties": {**fields["properties"], "refs": shape}, "required": required}
        tools.append(_describe_tool(name, schema.get("description", name), fields))
    if role == "executor":
        fields = {"properties": {"intent": _TEXT_FIELD}, "required": ["intent"]}
        tools.append(_describe_tool("run_intent", "Run an intent of yours, after the gate has allowed it.", fields))
    if role == "auditor":
        tools.append(_describe_tool("audit", "Verify the trace and seal the report.", {}))
    return tools


def _drop_version(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a payload's schema without `v`, which the session sets."""
    properties = {name: value for name, value in schema["properties"].items() if name != "v"}
    return {"properties": properties, "required": [name for name in schema.get("required", []) if name != "v"]}


def _describe_tool(name: str, about: str, fields: Mapping[str, Any], *, reads: bool = False) -> types.Tool:
    schema = {"type": "object", "properties": {}, **fields, "additionalProperties": False}
    return types.Tool(
        name=name,
        description=about,
        input_schema=schema,
        annotations=types.ToolAnnotations(
            read_only_hint=reads, destructive_hint=False, idempotent_hint=reads, open_world_hint=False
        ),
    )


def _build_said(event: str, payload: dict[str, Any], refs: dict[str, str]) -> Said:
    if event != "artifact_recorded":
        return Said(event=event, payload=payload, refs=refs)
    from aver.protocol.calls import mask_bytes

    text, media = _require_text(payload, "text"), payload.get("media", TEXT_MEDIA)
    blob = Blob(mask_bytes(text.encode("utf-8", "surrogatepass")), media)
    named = {"name": payload.get("name"), "blob": blob.reference}
    return Said(event=event, payload=named, refs=refs, artifacts=(blob,))


def _read_artifact(session: ProtocolSession, arguments: Mapping[str, Any]) -> dict[str, Any]:
    digest = _require_text(arguments, "digest")
    session.catch_up()
    if digest not in session.fold.artifacts:
        raise NotFound(f"{ascii(digest)[:80]} is no artifact of this trace", advice="view names them")
    data = session.ledger.blob(digest)
    is_cut = len(data) > ARTIFACT_TEXT_MAX
    return {"text": data[:ARTIFACT_TEXT_MAX].decode("utf-8", "replace"), "size": len(data), "cut": is_cut}


def _describe_event(event: Event) -> dict[str, Any]:
    return {
        "event": event.name,
        "id": event.id,
        "sequence": event.sequence,
        "state": event.after,
        "payload": dict(event.payload),
    }


def _require_text(arguments: Mapping[str, Any], name: str) -> str:
    value = arguments.get(name)
    if not isinstance(value, str):
        raise Refused("BAD_REQUEST", f"{name} must be a text")
    return value

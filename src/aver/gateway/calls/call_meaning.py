"""The meaning of a request: the judgement of `aver.gate.origins` on calls of tools, and on answers.

The gateway judges before it asks the gate, by the session's memory and the definition of the tool. The judgement is a
fact of the decision (`Facts.meaning`), and is sealed with it. Intents that call no tool and say nothing have none.

A session whose memory cannot be read has no origins: every call in it has the doubt NO_PROMPT.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from aver.errors import AverError
from aver.gate.decide import Gate
from aver.gate.origins.answer import judge_answer
from aver.gate.origins.judgement import ToolMeaning, judge_call, passes
from aver.gate.origins.own_places import relate_path
from aver.gate.origins.read_values import ReadValues
from aver.gate.origins.roles import list_values
from aver.gate.origins.tool_class import classify_tool
from aver.gate.origins.user_words import UserWords
from aver.gate.own_tools import find_declaration, read_declaration
from aver.gateway.calls.session_origins import SessionOrigins, build_source
from aver.gateway.request import BoundRequest
from aver.gateway.settings import ToolSettings
from aver.ledger import Ledger
from aver.log import debug

TOOL_INTENT = "CallTool"
ANSWER_INTENT = "FinalizeOutput"


READING_INTENTS = ("ReadWorkspaceFile", "ReadResource", "FetchResource", "RunCommand")
"""Intents that call no tool, and whose results the session has read."""


def find_read_value(intent: str, data: Mapping[str, Any]) -> Any:
    """Return the part of an answer that the session has read.

    Pages and outputs count as free text, also where they are JSON: nobody knows who filled their fields.
    """
    if intent == "ReadResource":
        return data.get("result")
    if intent == "RunCommand":
        return [{"text": _read_shown(data.get(name))} for name in ("stdout", "stderr")]
    return _read_shown(data) if intent == "ReadWorkspaceFile" else {"text": _read_shown(data)}


def _read_shown(shown: Any) -> Any:
    """Return the text that bytes were shown as; None for bytes that are no text."""
    is_text = isinstance(shown, Mapping) and shown.get("encoding") == "utf-8"
    return shown.get("content") if is_text else None


def find_tool_meaning(
    inputs: Mapping[str, Any],
    definition: Mapping[str, Any],
    gate: Gate,
    settings: Mapping[str, ToolSettings],
    workspace: str,
) -> ToolMeaning:
    """Return what the tool of a call does in a workspace: by the settings, and by its server's definition."""
    server, tool = inputs["server"], inputs["tool"]
    own = settings.get(f"{server}.{tool}")
    declared = read_declaration(find_declaration(gate.tools, f"mcp__{server}__{tool}", gate.known))
    schema, hints = definition.get("inputSchema"), definition.get("annotations")
    call_class = classify_tool(
        tool,
        str(definition.get("description") or ""),
        schema if isinstance(schema, Mapping) else None,
        hints if isinstance(hints, Mapping) else None,
        server=server,
        declared=declared if own is None or own.effects is None else own.effects,
        is_trusted=server in gate.trusted,
    )
    roles = {} if own is None else own.roles
    elsewhere = _find_elsewhere(inputs["arguments"], workspace)
    return ToolMeaning(tool, call_class, schema if isinstance(schema, Mapping) else None, roles, workspace, elsewhere)


def _find_elsewhere(arguments: Mapping[str, Any], workspace: str) -> frozenset[str]:
    """Return the paths of the workspace among the arguments that a link leads to another place."""
    found = set()
    for value in list_values(arguments):
        inside = None if value is None else relate_path(value.value, workspace)
        if value is not None and inside and os.path.realpath(value.value) != f"{os.path.realpath(workspace)}/{inside}":
            found.add(value.value)
    return frozenset(found)


def judge_request(
    request: BoundRequest, action_id: str, meaning: ToolMeaning | None, memory: SessionOrigins, ledger: Ledger
) -> dict[str, Any] | None:
    """Judge the request of a call or an answer; None for all others.

    A call that passes counts as under way until `memory.end_act` is called with the act's id.
    """
    if meaning is None and request.intent_id != ANSWER_INTENT:
        return None
    words, read = UserWords(), ReadValues()
    with memory.lock:
        try:
            memory.catch_up(ledger)
            words, read = memory.words, memory.read
        except AverError as error:
            debug("gateway", "the memory of %s cannot be used: %s", request.session, error.message)
        if meaning is not None:
            arguments = request.inputs["arguments"]
            read.end(action_id)
            found = judge_call(meaning, arguments, words, read)
            if passes(found):
                # Now, and not when its result comes: calls that are made at once must not all be the largest file, or
                # all be the one message that the user asked for.
                read.begin(action_id, build_source(meaning.tool, meaning.call_class, arguments))
            return found.to_dict()
        return judge_answer(request.inputs["text"], words, read).to_dict()


def note_result(
    request: BoundRequest, meaning: ToolMeaning | None, envelope: Mapping[str, Any], memory: SessionOrigins
) -> None:
    """Add the result of an act that was carried out to what the session has read."""
    data = envelope.get("data")
    if not isinstance(data, Mapping):
        return
    if meaning is not None and envelope.get("reason_code") == "OUTCOME_UNKNOWN":
        # It may have happened, so it counts as one of the calls that the user asked for.
        source = build_source(meaning.tool, meaning.call_class, request.inputs["arguments"])
        memory.add_result(str(data.get("action_id")), source, None)
    if envelope.get("status") != "OK":
        return
    if meaning is not None and "result" in data:
        source = build_source(meaning.tool, meaning.call_class, request.inputs["arguments"])
        memory.add_result(str(data.get("action_id")), source, data["result"])
    elif request.intent_id in READING_INTENTS:
        source = build_source(request.intent_id, "read", request.inputs)
        memory.add_result(str(data.get("action_id")), source, find_read_value(request.intent_id, data))

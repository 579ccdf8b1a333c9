"""The judgement of an action without a session, for cases of rules.

The gateway judges by what a session has seen (`aver.gateway.calls.call_meaning`). Here the caller gives the user's
words and the earlier calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from aver.gate.action import Action, Facts
from aver.gate.effects.intents import find_intent
from aver.gate.origins.answer import judge_answer
from aver.gate.origins.judgement import CallOrigins, ToolMeaning, judge_call
from aver.gate.origins.read_values import ReadValues, SourceCall, list_texts
from aver.gate.origins.tool_class import classify_tool
from aver.gate.origins.user_words import UserWords
from aver.gate.own_tools import read_declaration


class EarlierCall(NamedTuple):
    """A call that the session has made, and its result."""

    tool: str
    arguments: Mapping[str, Any]
    result: Any


def index_calls(earlier: Iterable[EarlierCall]) -> ReadValues:
    """Return the values that a session with these calls has read."""
    read = ReadValues()
    for call in earlier:
        read.add(SourceCall(call.tool, classify_tool(call.tool), list_texts(call.arguments)), call.result)
    return read


def judge_action(
    action: Action, facts: Facts, turns: Iterable[str], earlier: Iterable[EarlierCall], *, is_trusted: bool = False
) -> CallOrigins | None:
    """Judge the action of a call or an answer; None for all other actions."""
    intent = find_intent(action)
    words, read = UserWords.read(turns), index_calls(earlier)
    if intent is not None and action.tool == "FinalizeOutput":
        return judge_answer(str(action.arguments["text"]), words, read)
    if intent is None or not intent.tool:
        return None
    tool = str(action.arguments[intent.tool])
    declared = read_declaration(facts.declared)
    found = classify_tool(
        tool,
        annotations=facts.annotations,
        server=str(action.arguments["server"]),
        declared=declared,
        is_trusted=is_trusted,
    )
    return judge_call(ToolMeaning(tool, found, workspace=action.workspace), action.arguments["arguments"], words, read)

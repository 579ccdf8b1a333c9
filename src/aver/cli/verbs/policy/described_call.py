"""The meaning of a call or an answer that `aver policy explain` is asked about.

The gateway judges such a request by the user's words and by what its session has read (`aver.gate.origins`). Here both
come from the first of these that is given:

    --prompt, --read   the words, and a file with the calls so far
    --session          the records of that session in the ledger
    neither            nobody has told the gateway the user's words: the doubt NO_PROMPT

The tool's definition is the one that proxies of this home have kept.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from aver.cli.action_options import STANDARD_INPUT
from aver.cli.options import Usage
from aver.config import Config
from aver.errors import NotFound

# The gate is imported where it is used, so that `--help` does not load it.
if TYPE_CHECKING:
    from aver.gate.action import Action
    from aver.gate.decide import Gate
    from aver.gate.origins.read_values import ReadValues
    from aver.gate.origins.user_words import UserWords

READ_MAX = 16 * 1024 * 1024
"""Most bytes of the file of `--read`."""


class DescribedMeaning(NamedTuple):
    """The judgement of a call or an answer, and the annotations of the tool."""

    meaning: Mapping[str, Any]
    hints: Mapping[str, Any]


def judge_described_call(given: argparse.Namespace, action: Action, gate: Gate, config: Config) -> DescribedMeaning:
    """Judge the call or the answer that the options describe, as the gateway would; empty for all other actions.

    Raises `Usage` for words or calls beside another action, and `BadInput` for a file that cannot be read.
    """
    from aver.gate.effects.intents import find_intent
    from aver.gate.origins.answer import judge_answer
    from aver.gate.origins.judgement import judge_call
    from aver.gateway.calls.call_meaning import ANSWER_INTENT, find_tool_meaning
    from aver.gateway.settings import read_gateway_settings
    from aver.mcp.proxy.tool_book import find_kept_definition

    intent = find_intent(action)
    if intent is None or not (intent.tool or action.tool == ANSWER_INTENT):
        if given.prompt is not None or given.read is not None:
            raise Usage("--prompt and --read are for --intent CallTool and --intent FinalizeOutput")
        return DescribedMeaning({}, {})
    words, read = _read_memory(given, action.session, config)
    inputs = action.arguments
    if action.tool == ANSWER_INTENT:
        return DescribedMeaning(judge_answer(inputs["text"], words, read).to_dict(), {})
    kept = find_kept_definition(config.home, inputs["server"], inputs["tool"])
    document = {} if kept is None else kept.document
    tools = read_gateway_settings(config).tools
    meaning = find_tool_meaning(inputs, document, gate, tools, action.workspace)
    found = judge_call(meaning, inputs["arguments"], words, read)
    return DescribedMeaning(found.to_dict(), {} if kept is None else kept.hints)


def _read_memory(given: argparse.Namespace, session: str, config: Config) -> tuple[UserWords, ReadValues]:
    """Return the user's words and the values that the session has read."""
    from aver.gate.origins.action_meaning import index_calls
    from aver.gate.origins.user_words import UserWords
    from aver.gate.policy.cases import parse_earlier_calls
    from aver.gateway.calls.session_origins import SessionOrigins
    from aver.ledger import open_ledger

    if given.prompt is not None or given.read is not None:
        earlier = parse_earlier_calls([] if given.read is None else _read_calls(given.read), "--read")
        return UserWords.read([given.prompt] if given.prompt else []), index_calls(earlier)
    memory = SessionOrigins(session)
    if session:
        try:
            with open_ledger(config.ledger, home=config.home, create=False) as ledger:
                memory.catch_up(ledger)
        except NotFound:  # There is no ledger yet, and so no past.
            pass
    return memory.words, memory.read


def _read_calls(source: str) -> Any:
    from aver.capsule.json_reader import read_json
    from aver.files.regular import open_file, read_limited

    if source == STANDARD_INPUT:
        return read_json(read_limited(sys.stdin.buffer, READ_MAX, "standard input"))
    with open_file(Path(source)) as file:
        return read_json(read_limited(file, READ_MAX, source))

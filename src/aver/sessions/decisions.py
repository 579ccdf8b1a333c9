"""The gate's decisions about a session's calls, and which call each decision is about.

A decision and a call that share a call id belong together: hooks record it. Sessions without it are matched by
likeness: a call takes the oldest decision about the same tool with the same arguments, and each decision is taken once.
Of a command or a patch only the text is compared, because Codex names the tools for them differently in its hooks and
in its transcripts. A proxy decides about an MCP call under an id of its own, so such a call is matched by likeness,
too. Decisions that no call took are listed by themselves: a denied call may be in no transcript.

Large arguments are stored beside a call's record as one blob, and beside a decision's record text by text. They are
compared in the decision's form: masked, and with long texts by their digests.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from aver.capsule.blobs import blob_references, move_large_texts
from aver.errors import AverError
from aver.gate.call_decisions import DoneAction, bind
from aver.gate.decision_record import DECISION_KIND, RecordedDecision
from aver.gate.effects.known_agents import default_known_agents
from aver.ingest.command_line import command_line
from aver.ingest.foreign_json import parse_embedded_json
from aver.ledger import Ledger
from aver.sessions.step import Step

_CWD_ARGUMENT = "cwd"
"""The argument that hooks add if a command does not run in the workspace itself."""
_MCP_PREFIX = "mcp__"
"""Hooks put this before the name of an MCP tool. Cline's own names do not have it."""


class DecisionMatcher:
    """The decisions that no call has taken yet."""

    def __init__(
        self, decisions: Iterable[RecordedDecision] = (), *, blob: Callable[[str], bytes] | None = None
    ) -> None:
        self._blob = blob
        self._by_call: dict[str, list[RecordedDecision]] = {}
        self._by_likeness: dict[tuple[str, str], deque[RecordedDecision]] = {}
        self.highest_score: float | None = None
        """The highest risk among the decisions; None where the gate computed none."""
        for decision in decisions:
            if isinstance(decision.score, int | float):
                self.highest_score = max(float(decision.score), self.highest_score or 0.0)
            # An id with a colon is that of a coding agent's call. Others were made up for the decision.
            if ":" in decision.call_id:
                self._by_call.setdefault(decision.call_id, []).append(decision)
            else:
                key = _match_key(decision.tool, decision.arguments)
                self._by_likeness.setdefault(key, deque()).append(decision)

    def take(self, step: Step) -> RecordedDecision | None:
        """Return the decision about a call, and count it as taken; None if there is none."""
        if not self._by_call and not self._by_likeness:
            return None
        arguments = step.arguments
        if self._blob is not None and isinstance(arguments, dict) and arguments.keys() == {"blob"}:
            # Large arguments are one blob. Bring them into the form that the decision's record has. If the blob is
            # missing or damaged, the call is compared by its reference, and finds no decision by likeness.
            with suppress(AverError, ValueError, RecursionError):
                [(digest, _)] = blob_references(arguments)
                arguments = move_large_texts({"arguments": json.loads(self._blob(digest))})[0]["arguments"]
        key = _match_key(step.call, arguments)
        call_id = step.key.removesuffix(f"@{step.chain}")
        if about_call := self._by_call.get(call_id):
            newest_first = about_call[::-1]
            action = DoneAction(call_id=call_id, is_like=lambda found: _match_key(found.tool, found.arguments) == key)
            # An id that was used once needs no likeness: another hook may have changed the arguments since.
            taken = bind(action, newest_first) or newest_first[0]
            # Earlier decisions about the same attempt led to this one, such as that a person must approve.
            left = [decision for decision in about_call if decision.digest != taken.digest]
            self._by_call[call_id] = left
            return taken
        waiting = self._by_likeness.get(key)
        return waiting.popleft() if waiting else None

    def list_unmatched(self) -> list[RecordedDecision]:
        """Return the decisions that no call took, the oldest first."""
        groups = (*self._by_likeness.values(), *self._by_call.values())
        found = [decision for group in groups for decision in group]
        return sorted(found, key=lambda decision: (decision.chain or "", decision.sequence or 0))


def read_decisions(ledger: Ledger, chain: str | None) -> DecisionMatcher:
    """Read the decisions of a chain. It skips a record that cannot be read; `aver verify` reports that."""
    found: list[RecordedDecision] = []
    for record in () if chain is None else ledger.read(chain):
        with suppress(AverError):
            content = record.to_dict()
            if record.kind == DECISION_KIND:
                found.append(RecordedDecision.from_record(record, content))
    return DecisionMatcher(found, blob=ledger.blob)


def _match_key(tool: str, arguments: Any) -> tuple[str, str]:
    """Return the key by which a call and the decision about it are compared."""
    given = _replace_blobs(arguments) if isinstance(arguments, dict) else {}
    # A proxy's decision, and some clients, name an MCP server and its tool apart, beside the arguments of the tool.
    for server, called in (("server", "tool"), ("server_name", "tool_name")):
        name = f"{_MCP_PREFIX}{given.get(server)}__{given.get(called)}"
        if tool in (name, "use_mcp_tool") and "arguments" in given:
            tool, inner = name, parse_embedded_json(given["arguments"])
            given = inner if isinstance(inner, dict) else {}
    use = default_known_agents().find_profile(tool)
    if use is not None and use.takes_command and (command := command_line(given)):
        return "a command", command
    if use is not None and use.takes_patch and (patch := _patch_text(given)):
        return "a patch", patch
    without = {name: value for name, value in given.items() if name != _CWD_ARGUMENT}
    # Clients write servers' names with these characters alone.
    spelled = re.sub("[^A-Za-z0-9_-]", "_", tool.removeprefix(_MCP_PREFIX))
    return spelled, json.dumps(without, sort_keys=True, ensure_ascii=True)


def _patch_text(arguments: Mapping[str, Any]) -> str:
    return next((text for name in ("patch", "input") if isinstance(text := arguments.get(name), str)), "")


def _replace_blobs(value: Any) -> Any:
    """Return a value in which long texts, which are blobs beside the record, are named by their digests."""
    if isinstance(value, dict):
        kept = list(blob_references(value)) if value.keys() == {"blob"} else []
        return f"sha256 {kept[0][0]}" if kept else {name: _replace_blobs(item) for name, item in value.items()}
    return [_replace_blobs(item) for item in value] if isinstance(value, list) else value

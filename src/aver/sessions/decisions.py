"""What the gate decided about a session's calls, and which call each decision is about.

A decision names the tool and its arguments, not the call's id: it was made before the call. So calls take decisions
about the same tool with the same arguments, the oldest first, each once. Of a command or a patch only its text counts:
Codex calls the tools for them otherwise in its hooks than in its transcripts. What no call took is told by itself: a
call that the gate denied may stand in no transcript.

Large arguments are kept beside a call's record as one, and beside a decision's text by text. They are compared as the
decision has them: masked, and long texts by their digests.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from aver.capsule.blobs import blob_references, move_large_texts
from aver.capsule.sealed import Sealed
from aver.errors import AverError
from aver.fast_dataclass import dataclass
from aver.gate.effects.known_agents import default_known_agents
from aver.ingest.command_line import command_line
from aver.ingest.times import to_utc
from aver.ledger import Ledger
from aver.sessions.step import Step

__all__ = ["DecisionMatcher", "SealedDecision", "read_decisions"]

_DENIALS = frozenset({"skip", "skipped"})
_CWD_ARGUMENT = "cwd"
"""The argument that is added where a command does not run in the workspace itself."""
_MCP_PREFIX = "mcp__"
"""What the gate is told before the name of an MCP server's tool, also where the client's own name lacks it: Cline's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedDecision:
    """One decision of the gate."""

    word: str
    """`pass`, `skip`, `human_review`, `human_approved` or `skipped`."""
    reasons: tuple[str, ...]
    rules: tuple[str, ...]
    score: float | None
    tool: str
    arguments: Mapping[str, Any]
    at: str | None
    chain: str | None
    sequence: int | None
    hash: str
    signed_by: str

    @property
    def is_denial(self) -> bool:
        return self.word in _DENIALS


class DecisionMatcher:
    """The decisions that no call has taken yet."""

    def __init__(self, rulings: Iterable[SealedDecision] = (), *, blob: Callable[[str], bytes] | None = None) -> None:
        self._left: dict[tuple[str, str], deque[SealedDecision]] = {}
        self._blob = blob
        for ruling in rulings:
            self._left.setdefault(_match_key(ruling.tool, ruling.arguments), deque()).append(ruling)

    def take(self, step: Step) -> SealedDecision | None:
        """The decision about a call; None where none is known."""
        if not self._left:
            return None
        waiting = self._left.get(_match_key(step.call, self._full_arguments(step.arguments)))
        return waiting.popleft() if waiting else None

    def _full_arguments(self, arguments: Any) -> Any:
        """The arguments of a call, also where they are so large that they are kept beside its record as one."""
        if self._blob is None or not isinstance(arguments, dict) or arguments.keys() != {"blob"}:
            return arguments
        try:
            [(digest, _)] = blob_references(arguments)
            return move_large_texts({"arguments": json.loads(self._blob(digest))})[0]["arguments"]
        except (AverError, ValueError, RecursionError):
            return arguments

    def list_unmatched(self) -> list[SealedDecision]:
        """What no call took, the oldest first."""
        found = [ruling for waiting in self._left.values() for ruling in waiting]
        return sorted(found, key=lambda ruling: (ruling.chain or "", ruling.sequence or 0))


def read_decisions(ledger: Ledger, chain: str | None) -> DecisionMatcher:
    """The decisions in a chain."""
    if chain is None:
        return DecisionMatcher()
    found = (ruling for record in ledger.read(chain) if (ruling := _decision_from_record(record)) is not None)
    return DecisionMatcher(found, blob=ledger.blob)


def _decision_from_record(record: Sealed) -> SealedDecision | None:
    """A decision as a record has it; None where the record is something else, or cannot be read."""
    try:
        content = record.to_dict()
        if record.kind != "gate.decision":
            return None
        result = content["outcome"]["result"]
        action, policy = result["action"], result.get("policy") or {}
        arguments = action.get("arguments")
        score = result.get("score")
        return SealedDecision(
            word=str(result["decision"]),
            reasons=tuple(map(str, result.get("reasons") or ())),
            rules=tuple(map(str, policy.get("rules") or ())),
            score=float(score) if isinstance(score, int | float) else None,
            tool=str(action.get("tool") or ""),
            arguments=arguments if isinstance(arguments, dict) else {},
            at=to_utc(content["trigger"].get("timestamp")),
            chain=record.chain,
            sequence=record.sequence,
            hash=record.hash,
            signed_by=record.signed_by,
        )
    except (AverError, AttributeError, KeyError, TypeError, ValueError):
        return None


def _match_key(tool: str, arguments: Any) -> tuple[str, str]:
    """What a call and the decision about it have in common."""
    given = _replace_blobs(arguments) if isinstance(arguments, dict) else {}
    use = default_known_agents().find_profile(tool)
    if use is not None and use.takes_command and (command := command_line(given)):
        return "a command", command
    if use is not None and use.takes_patch and (patch := _patch_text(given)):
        return "a patch", patch
    without = {name: value for name, value in given.items() if name != _CWD_ARGUMENT}
    return tool.removeprefix(_MCP_PREFIX), json.dumps(without, sort_keys=True, ensure_ascii=True)


def _patch_text(arguments: Mapping[str, Any]) -> str:
    return next((text for name in ("patch", "input") if isinstance(text := arguments.get(name), str)), "")


def _replace_blobs(value: Any) -> Any:
    """A value in which long texts, which are kept beside the record, are named by their digests."""
    if isinstance(value, dict):
        kept = list(blob_references(value)) if value.keys() == {"blob"} else []
        return f"sha256 {kept[0][0]}" if kept else {name: _replace_blobs(item) for name, item in value.items()}
    return [_replace_blobs(item) for item in value] if isinstance(value, list) else value

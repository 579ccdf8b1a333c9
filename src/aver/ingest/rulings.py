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

from aver.capsule.blobs import blob_references, externalised
from aver.capsule.sealed import Sealed
from aver.errors import AverError
from aver.gate.tool_names import use_of
from aver.ingest.codex_calls import command_of
from aver.ingest.telling import Step
from aver.ingest.times import utc
from aver.ledger import Ledger
from aver.values import dataclass

__all__ = ["Ruling", "Rulings", "rulings_in"]

_DENIALS = frozenset({"skip", "skipped"})
_ADDED_WHEN_ASKING = "cwd"
"""The argument that is added where a command does not run in the workspace itself."""
_ADDED_TO_NAMES = "mcp__"
"""What the gate is told before the name of an MCP server's tool, also where the client's own name lacks it: Cline's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
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
    def denies(self) -> bool:
        return self.word in _DENIALS


class Rulings:
    """The decisions that no call has taken yet."""

    def __init__(self, rulings: Iterable[Ruling] = (), *, blob: Callable[[str], bytes] | None = None) -> None:
        self._left: dict[tuple[str, str], deque[Ruling]] = {}
        self._blob = blob
        for ruling in rulings:
            self._left.setdefault(_likeness(ruling.tool, ruling.arguments), deque()).append(ruling)

    def take(self, step: Step) -> Ruling | None:
        """The decision about a call; None where none is known."""
        if not self._left:
            return None
        waiting = self._left.get(_likeness(step.call, self._whole(step.arguments)))
        return waiting.popleft() if waiting else None

    def _whole(self, arguments: Any) -> Any:
        """The arguments of a call, also where they are so large that they are kept beside its record as one."""
        if self._blob is None or not isinstance(arguments, dict) or arguments.keys() != {"blob"}:
            return arguments
        try:
            [(digest, _)] = blob_references(arguments)
            return externalised({"arguments": json.loads(self._blob(digest))})[0]["arguments"]
        except (AverError, ValueError, RecursionError):
            return arguments

    def left(self) -> list[Ruling]:
        """What no call took, the oldest first."""
        found = [ruling for waiting in self._left.values() for ruling in waiting]
        return sorted(found, key=lambda ruling: (ruling.chain or "", ruling.sequence or 0))


def rulings_in(ledger: Ledger, chain: str | None) -> Rulings:
    """The decisions in a chain."""
    if chain is None:
        return Rulings()
    found = (ruling for record in ledger.read(chain) if (ruling := _ruling(record)) is not None)
    return Rulings(found, blob=ledger.blob)


def _ruling(record: Sealed) -> Ruling | None:
    """A decision as a record has it; None where the record is something else, or cannot be read."""
    try:
        content = record.to_dict()
        if record.kind != "gate.decision":
            return None
        result = content["outcome"]["result"]
        action, policy = result["action"], result.get("policy") or {}
        arguments = action.get("arguments")
        score = result.get("score")
        return Ruling(
            word=str(result["decision"]),
            reasons=tuple(map(str, result.get("reasons") or ())),
            rules=tuple(map(str, policy.get("rules") or ())),
            score=float(score) if isinstance(score, int | float) else None,
            tool=str(action.get("tool") or ""),
            arguments=arguments if isinstance(arguments, dict) else {},
            at=utc(content["trigger"].get("timestamp")),
            chain=record.chain,
            sequence=record.sequence,
            hash=record.hash,
            signed_by=record.signed_by,
        )
    except (AverError, AttributeError, KeyError, TypeError, ValueError):
        return None


def _likeness(tool: str, arguments: Any) -> tuple[str, str]:
    """What a call and the decision about it have in common."""
    given = _by_digests(arguments) if isinstance(arguments, dict) else {}
    use = use_of(tool)
    if use is not None and use.takes_command and (command := command_of(given)):
        return "a command", command
    if use is not None and use.takes_patch and (patch := _patch_of(given)):
        return "a patch", patch
    without = {name: value for name, value in given.items() if name != _ADDED_WHEN_ASKING}
    return tool.removeprefix(_ADDED_TO_NAMES), json.dumps(without, sort_keys=True, ensure_ascii=True)


def _patch_of(arguments: Mapping[str, Any]) -> str:
    return next((text for name in ("patch", "input") if isinstance(text := arguments.get(name), str)), "")


def _by_digests(value: Any) -> Any:
    """A value in which long texts, which are kept beside the record, are named by their digests."""
    if isinstance(value, dict):
        kept = list(blob_references(value)) if value.keys() == {"blob"} else []
        return f"sha256 {kept[0][0]}" if kept else {name: _by_digests(item) for name, item in value.items()}
    return [_by_digests(item) for item in value] if isinstance(value, list) else value

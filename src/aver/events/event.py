"""One live event, and how it is made from a record of the ledger.

    {"type": "gate", "timestamp": 1707000000.0, "summary": "approve: Fix shell injection (p_fail=0.12)"}
    {"type": "record", "timestamp": 1707000001.0, "summary": "code_edit: Replaced subprocess.call with subprocess.run"}
    {"type": "seal", "timestamp": 1707000002.0, "summary": "Sealed 3 actions"}

An event has exactly these three keys. Its time is that of sealing. It is made only from a sealed record, so its secrets
are masked as in the record, and it contains no diff and no output.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from aver.actions.run_capsules import ACTION_KIND, SEAL_KIND
from aver.capsule.json_reader import read_json
from aver.capsule.masking.mask import mask
from aver.capsule.sealed import Sealed
from aver.errors import AverError, BadInput
from aver.gate.decision_record import DECISION_KIND, RecordedDecision
from aver.text import clip_text

TYPES = ("gate", "record", "seal")

SUMMARY_MAX = 160
"""The longest summary, in characters: more than one line of a status bar."""

LINE_MAX = 8 * 1024
"""The longest line that is read, in bytes. Aver's lines are far shorter, even fully escaped."""

_COLOUR = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_DECISION_WORDS = {"pass": "approve", "human_approved": "approve", "human_review": "flag"}


def decision_word(decision: str) -> str:
    """A decision in the words of the CapSeal Agent Protocol: approve, flag or deny."""
    return _DECISION_WORDS.get(decision, "deny")


@dataclass(frozen=True, slots=True)
class LiveEvent:
    """One line of `events.jsonl`. `timestamp` is in seconds since 1970."""

    type: str
    timestamp: float
    summary: str

    def to_line(self) -> bytes:
        """The event as a line of the file, with its line feed."""
        content = {"type": self.type, "timestamp": self.timestamp, "summary": self.summary}
        return json.dumps(content).encode("ascii") + b"\n"


def event_from_record(record: Sealed) -> LiveEvent | None:
    """The event of a record; None if its kind has no event or if it cannot be read."""
    summarize = _SUMMARIZERS.get(record.kind)
    if summarize is None:
        return None
    try:
        content = record.to_dict()
        kind, summary = summarize(record, content)
        moment = datetime.fromisoformat(content["context"]["environment"]["aver"]["at"]).timestamp()
    except (AverError, KeyError, TypeError, ValueError, AttributeError):
        return None  # `aver verify` reports damaged records.
    return LiveEvent(kind, moment, _to_one_line(summary))


def read_event(raw: bytes) -> LiveEvent:
    """Read a line, without its line feed. Raises `BadInput` if it is not an event."""
    if len(raw) > LINE_MAX:
        raise BadInput(f"an event has more than {LINE_MAX} bytes")
    data = read_json(raw)
    if not isinstance(data, dict) or data.keys() != {"type", "timestamp", "summary"}:
        raise BadInput("an event has the keys type, timestamp and summary")
    kind, moment, summary = data["type"], data["timestamp"], data["summary"]
    if kind not in TYPES or not isinstance(summary, str) or type(moment) not in (int, float):
        raise BadInput(f"an event is one of {', '.join(TYPES)}, with a time in seconds and a text")
    return LiveEvent(kind, float(moment), summary)


def _summarize_gate(record: Sealed, content: Mapping[str, Any]) -> tuple[str, str]:
    decision = RecordedDecision.from_record(record, content)
    words = decision.action["description"] or f"{decision.action['type']} {decision.tool}"
    risk = "" if decision.score is None else f" (p_fail={decision.score:.2f})"
    observed = " (observed)" if decision.is_observed else ""
    return "gate", f"{decision_word(decision.decision)}{observed}: {_to_one_line(words)[: SUMMARY_MAX - 40]}{risk}"


_SUMMARIZERS: dict[str, Callable[[Sealed, Mapping[str, Any]], tuple[str, str]]] = {
    DECISION_KIND: _summarize_gate,
    ACTION_KIND: lambda _, content: ("record", content["outcome"]["summary"]),
    SEAL_KIND: lambda _, content: ("seal", f"Sealed {int(content['outcome']['result']['num_actions'])} actions"),
}
"""By the kind of a record, the type and the summary of its event."""


def _to_one_line(text: str) -> str:
    """Any text as one line of printable characters.

    It is masked again: a colour code just before a secret may have hidden the secret from the first masking.
    """
    plain = _COLOUR.sub(" ", text[: 4 * SUMMARY_MAX])
    line = " ".join("".join(character if character.isprintable() else " " for character in plain).split())
    line = str(mask(line).value)
    return clip_text(line, SUMMARY_MAX)

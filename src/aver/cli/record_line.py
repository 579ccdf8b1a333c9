"""Prints a record as one line of a list. A damaged record is marked as unreadable and raises nothing."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from aver.cli.terminal import Screen, StyledText, clip, format_time
from aver.errors import AverError
from aver.fast_dataclass import dataclass
from aver.text import to_one_line

if TYPE_CHECKING:
    from aver.capsule import Sealed

DECISION_KIND = "gate.decision"
"""As in `aver.gate.decision_record`, which lists without a decision need not load."""

ACT_KINDS = frozenset({"act.preview", "act.commit", "act.outcome"})
"""As in `aver.gateway.act_records`."""

CHAIN_WIDTH = 28
"""Columns for a chain's name in a list of several chains."""


@dataclass(frozen=True, slots=True)
class RecordLine:
    """The parts of a record that a list shows. They are the record's own claims; `log` verifies nothing."""

    chain: str | None
    sequence: int | None
    at: str
    type: str
    kind: str
    status: str
    summary: str
    hash: str
    id: str
    signed_by: str
    text: str = ""
    """The words for people, where the summary says too little."""

    def to_dict(self) -> dict[str, Any]:
        """The line for programs: what the record says, without the words for people."""
        return {name: value for name, value in asdict(self).items() if name != "text"}


def to_record_line(record: Sealed) -> RecordLine:
    """The line of a record. An unreadable record gives a line that says so."""
    seal: dict[str, Any] = {
        "chain": record.chain,
        "at": record.signed_at,
        "hash": record.hash,
        "signed_by": record.signed_by,
    }
    try:
        content = record.to_dict()
        outcome, trigger = content["outcome"], content["trigger"]
        return RecordLine(
            **seal,
            sequence=record.sequence,
            type=record.type,
            kind=record.kind,
            status=str(outcome.get("status", "")),
            summary=str(outcome.get("summary") or trigger.get("request") or ""),
            id=record.id,
            text=_describe(record, content),
        )
    except (AverError, AttributeError, KeyError, TypeError, ValueError):
        words = "cannot be read; aver verify shows what is wrong"
        return RecordLine(**seal, sequence=None, type="?", kind="?", status="?", summary=words, id="")


def _describe(record: Sealed, content: dict[str, Any]) -> str:
    """The words about a record whose summary says too little; empty for all others."""
    if record.kind == DECISION_KIND:
        return _decision_text(record, content)
    return _act_text(content) if record.kind in ACT_KINDS else ""


def _act_text(content: dict[str, Any]) -> str:
    """A record of an act in one line: `PREVIEW of SendMessage: POLICY_DENY by agent:mail for partner, a_kR3vX0…: …`."""
    outcome, result = content["outcome"], content["outcome"]["result"]
    context, approver = result.get("context") or {}, content["authority"].get("approver")
    principal = f" for {context['external_principal']}" if "external_principal" in context else ""
    approved = f", approved by {approver}" if approver else ""
    detail = f": {result['detail']}" if result.get("detail") else ""
    caller = content["trigger"].get("source")
    return f"{outcome.get('summary')} by {caller}{principal}, {result.get('action_id')}{approved}{detail}"


def _decision_text(record: Sealed, content: dict[str, Any]) -> str:
    """A decision of the gate in one line: `denied (secrets-leave): Bash: cat .env | curl … in ~/shop, codex`.

    Empty for a record of that kind which another program sealed without these fields.
    """
    from aver.gate.action_text import summarise_action
    from aver.gate.decision_record import RecordedDecision
    from aver.sessions.labels import decision_label

    try:
        decided = RecordedDecision.from_record(record, content)
    except AverError:
        return ""
    # The rules come first: at the edge of a terminal the command is cut.
    rules = f" ({', '.join(decided.rules)})" if decided.rules else ""
    return f"{decision_label(decided.decision)}{rules}: {summarise_action(decided.action)}"


def type_and_kind(record_type: str, kind: str) -> str:
    """Type and kind as one word. The kind `record` adds nothing and is left out."""
    return record_type if kind == "record" else f"{record_type}/{kind}"


def print_record_line(screen: Screen, entry: RecordLine, *, with_chain: bool) -> None:
    """Print one line of a list. On a terminal the summary is cut at the edge."""
    sequence = "?" if entry.sequence is None else str(entry.sequence)
    sort = to_one_line(type_and_kind(entry.type, entry.kind))
    chain = to_one_line(entry.chain or "")
    before = f"{clip(chain, CHAIN_WIDTH):<{CHAIN_WIDTH}} " if with_chain else ""
    before += f"{sequence:>4}  "
    middle = f"{format_time(entry.at)}  {clip(sort, 22):<12}  "
    summary = to_one_line(entry.text or entry.summary)
    if screen.terminal:
        summary = clip(summary, screen.width - len(before) - len(middle) - 2)
    screen.print_line(before, StyledText(middle, "dim"), screen.status_mark(entry.status), " ", summary)

"""How a session of Claude Code stands: under which permission mode, with which title and settings.

Such records have no id and no time, and are written again and again: at the end of a session, after compaction, when it
is resumed. Only what is different from before is told.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any, Literal

from aver.ingest.claude_values import Json, light, one_line, words
from aver.ingest.deed import SESSION_COST, Allowed
from aver.ingest.spending import cost_in
from aver.values import dataclass

__all__ = ["KNOWN", "SKIPPED", "Change", "Settings", "authority_of", "decision_in"]

SKIPPED = (
    "file-history-snapshot",  # Copies of files, for undoing: the edits themselves are told.
    "attribution-snapshot",
    "progress",  # How far a call has come: its result tells.
    "last-prompt",  # Where to resume: repeats what was asked.
    "agent-color",
    "bridge-session",
    "speculation-accept",
    "atis-latch",
    "api-request",  # What is sent to the model, again and again: the prompts, answers and results in it are told.
    "api-request-blob",
    "api-request-shape",
    "tools-used",  # Names of tools: their calls are told.
)
"""Sorts of records that are known and tell nothing about what was done."""

_TITLES = {"summary": "summary", "ai-title": "aiTitle", "custom-title": "customTitle"}
_PLAIN = (
    "mode",
    "tag",
    "agent-name",
    "agent-setting",
    "isolation-latch",
    "worktree-state",
    "relocated",
    "pr-link",
    "frame-link",
    "content-replacement",
    "fork-context-ref",
)
KNOWN = (*_PLAIN, *_TITLES, "permission-mode", "queue-operation", "ended-by-model", "cost-state")

_TOLD_ELSEWHERE = ("enqueue", "dequeue")
"""What is put into the queue comes out of it as a prompt or a queued command, unless it is withdrawn."""

_BY_RULE = ("default", "acceptEdits", "plan", "dontAsk", "auto")


def authority_of(mode: str) -> Allowed:
    """What a permission mode says of a call that was made under it. In `default` mode a person may have been asked, but
    whether that was so is not recorded."""
    if not mode:
        return Allowed()
    reference = f"permission_mode={mode}"
    if mode == "bypassPermissions":
        return Allowed(by="autonomous", reference=reference)
    return Allowed(by="policy" if mode in _BY_RULE else "unknown", reference=reference)


def decision_in(record: Json) -> Allowed | None:
    """Who decided about a call, as newer versions write it beside its result; None where that is the mode, or not told.
    The kind of a denial does not tell: where nobody can be asked, that counts as rejected by the user."""
    found = record.get("permissionDecision")
    told = found if isinstance(found, dict) else {}
    decision, source = words(told.get("decision")), words(told.get("source"))
    if decision == "reject" and source:
        if source.startswith("user"):
            return Allowed(by="unknown", reference="rejected by the user", denied=True)
        why = one_line(words(told.get("reasonCode"))) or one_line(source)
        return Allowed(by="policy", reference=f"permission_decision={why}", denied=True)
    if decision == "accept" and source in _DECIDERS:
        return Allowed(by=_DECIDERS[source], reference=f"permission_decision={source}")
    return None


_DECIDERS: Mapping[str, Literal["human_approved", "policy"]] = {
    "user_temporary": "human_approved",
    "user_permanent": "human_approved",
    "hook": "policy",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What is different from before."""

    summary: str
    what: Literal["session", "note"] = "session"
    text: str = ""
    result: Any = None
    title: str | None = None
    ends_session: bool = False
    environment: Mapping[str, Any] = field(default_factory=dict)


class Settings:
    """What was told last."""

    def __init__(self) -> None:
        self.mode = ""
        self._told: dict[str, Any] = {}

    def change(self, sort: str, record: Json, newest: str) -> Change | None:
        """What a record of a `KNOWN` sort changes; None where that is nothing. `newest` is the id of the last record of
        the conversation before it."""
        if sort == "permission-mode":
            return self.mode_change(record.get("permissionMode"))
        if sort == "ended-by-model":
            return Change(summary="ended by the model", ends_session=True)
        if sort == "queue-operation":
            text, operation = words(record.get("content")), words(record.get("operation"))
            summary = f"queue, {one_line(operation)}: {one_line(text)}"
            return None if operation in _TOLD_ELSEWHERE else Change(what="note", summary=summary, text=text)
        if sort in _TITLES:
            ours = sort != "summary" or (bool(newest) and record.get("leafUuid") == newest)
            return self._title(sort, words(record.get(_TITLES[sort])), ours=ours)
        change = self._plain(sort, {name: light(value) for name, value in record.items() if name not in _COMMON})
        cost = cost_in(record.get("totalCostUSD")) if sort == "cost-state" else None
        if change is None or cost is None:
            return change
        return replace(change, summary=f"cost so far: ${cost:.2f}", environment={SESSION_COST: cost})

    def mode_change(self, told: Any) -> Change | None:
        mode = words(told)
        if not mode or mode == self.mode:
            return None
        before, self.mode = self.mode, mode
        return Change(summary=f"permission mode: {one_line(mode)}", result={"mode": mode, "before": before or None})

    def _plain(self, sort: str, value: Json) -> Change | None:
        if self._told.get(sort) == value:
            return None
        self._told[sort] = value
        shown = one_line(", ".join(item for item in value.values() if isinstance(item, str)))
        return Change(summary=f"{sort}: {shown}" if shown else sort, result=value)

    def _title(self, sort: str, title: str, *, ours: bool) -> Change | None:
        if not title or self._told.get(sort) == title:
            return None
        self._told[sort] = title
        # A summary may be that of another session, which was resumed as this one. What a person chose stays.
        applies = sort == "custom-title" or (ours and "custom-title" not in self._told)
        summary = f"{sort.replace('-', ' ')}: {one_line(title)}"
        return Change(summary=summary, text=title, title=title if applies else None)


_COMMON = ("type", "sessionId", "timestamp", "uuid", "parentUuid", "isSidechain")

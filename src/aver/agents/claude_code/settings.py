"""How a session of Claude Code stands: under which permission mode, with which title and settings.

Such records have no id and no time, and are written again and again: at the end of a session, after compaction, when it
is resumed. Only what is different from before is told.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any, Literal

from aver.agents.claude_code.results import Json, one_line, replace_files, string_or_empty
from aver.fast_dataclass import dataclass
from aver.ingest.contract import SESSION_COST, Permission
from aver.ingest.foreign_json import parse_cost

SKIPPED_KINDS = (
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

_TITLE_FIELDS = {"summary": "summary", "ai-title": "aiTitle", "custom-title": "customTitle"}
_SIMPLE_SETTINGS = (
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
SETTING_KINDS = (
    *_SIMPLE_SETTINGS,
    *_TITLE_FIELDS,
    "permission-mode",
    "queue-operation",
    "ended-by-model",
    "cost-state",
)

_SKIPPED_QUEUE_OPERATIONS = ("enqueue", "dequeue")
"""What is put into the queue comes out of it as a prompt or a queued command, unless it is withdrawn."""

_POLICY_MODES = ("default", "acceptEdits", "plan", "dontAsk", "auto")


def permission_from_mode(mode: str) -> Permission:
    """What a permission mode says of a call that was made under it. In `default` mode a person may have been asked, but
    whether that was so is not recorded."""
    if not mode:
        return Permission()
    reference = f"permission_mode={mode}"
    if mode == "bypassPermissions":
        return Permission(by="autonomous", reference=reference)
    return Permission(by="policy" if mode in _POLICY_MODES else "unknown", reference=reference)


def read_decision(record: Json) -> Permission | None:
    """Who decided about a call, as newer versions write it beside its result; None where that is the mode, or not told.
    The kind of a denial does not tell: where nobody can be asked, that counts as rejected by the user."""
    found = record.get("permissionDecision")
    told = found if isinstance(found, dict) else {}
    decision, source = string_or_empty(told.get("decision")), string_or_empty(told.get("source"))
    if decision == "reject" and source:
        if source.startswith("user"):
            return Permission(by="unknown", reference="rejected by the user", denied=True)
        why = one_line(string_or_empty(told.get("reasonCode"))) or one_line(source)
        return Permission(by="policy", reference=f"permission_decision={why}", denied=True)
    if decision == "accept" and source in _DECIDERS:
        return Permission(by=_DECIDERS[source], reference=f"permission_decision={source}")
    return None


_DECIDERS: Mapping[str, Literal["human_approved", "policy"]] = {
    "user_temporary": "human_approved",
    "user_permanent": "human_approved",
    "hook": "policy",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingChange:
    """What is different from before."""

    summary: str
    what: Literal["session", "note"] = "session"
    text: str = ""
    result: Any = None
    title: str | None = None
    ends_session: bool = False
    environment: Mapping[str, Any] = field(default_factory=dict)


class ClaudeSettings:
    """What was told last."""

    def __init__(self) -> None:
        self.mode = ""
        self._told: dict[str, Any] = {}

    def change(self, sort: str, record: Json, newest: str) -> SettingChange | None:
        """What a record of a `KNOWN` sort changes; None where that is nothing. `newest` is the id of the last record of
        the conversation before it."""
        if sort == "permission-mode":
            return self.update_mode(record.get("permissionMode"))
        if sort == "ended-by-model":
            return SettingChange(summary="ended by the model", ends_session=True)
        if sort == "queue-operation":
            text, operation = string_or_empty(record.get("content")), string_or_empty(record.get("operation"))
            summary = f"queue, {one_line(operation)}: {one_line(text)}"
            return (
                None
                if operation in _SKIPPED_QUEUE_OPERATIONS
                else SettingChange(what="note", summary=summary, text=text)
            )
        if sort in _TITLE_FIELDS:
            ours = sort != "summary" or (bool(newest) and record.get("leafUuid") == newest)
            return self._update_title(sort, string_or_empty(record.get(_TITLE_FIELDS[sort])), ours=ours)
        change = self._update_value(
            sort, {name: replace_files(value) for name, value in record.items() if name not in _COMMON_FIELDS}
        )
        cost = parse_cost(record.get("totalCostUSD")) if sort == "cost-state" else None
        if change is None or cost is None:
            return change
        return replace(change, summary=f"cost so far: ${cost:.2f}", environment={SESSION_COST: cost})

    def update_mode(self, told: Any) -> SettingChange | None:
        mode = string_or_empty(told)
        if not mode or mode == self.mode:
            return None
        before, self.mode = self.mode, mode
        return SettingChange(
            summary=f"permission mode: {one_line(mode)}", result={"mode": mode, "before": before or None}
        )

    def _update_value(self, sort: str, value: Json) -> SettingChange | None:
        if self._told.get(sort) == value:
            return None
        self._told[sort] = value
        shown = one_line(", ".join(item for item in value.values() if isinstance(item, str)))
        return SettingChange(summary=f"{sort}: {shown}" if shown else sort, result=value)

    def _update_title(self, sort: str, title: str, *, ours: bool) -> SettingChange | None:
        if not title or self._told.get(sort) == title:
            return None
        self._told[sort] = title
        # A summary may be that of another session, which was resumed as this one. What a person chose stays.
        applies = sort == "custom-title" or (ours and "custom-title" not in self._told)
        summary = f"{sort.replace('-', ' ')}: {one_line(title)}"
        return SettingChange(summary=summary, text=title, title=title if applies else None)


_COMMON_FIELDS = ("type", "sessionId", "timestamp", "uuid", "parentUuid", "isSidechain")

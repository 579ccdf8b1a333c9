"""Settings in Claude Code's transcripts: the permission mode, the title and other facts about a session.

    {"type": "permission-mode", "permissionMode": "acceptEdits", "sessionId": "5d2e4c1a-…"}
    {"type": "custom-title", "customTitle": "Round half up", "sessionId": "5d2e4c1a-…"}

These records have no id and no time. Claude Code repeats them at the end of a session, after compaction and when the
session is resumed. So only a changed value becomes an event.
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
    "file-history-snapshot",  # Copies of files for undo. The edits have their own records.
    "attribution-snapshot",
    "progress",  # The progress of a call. Its result has its own record.
    "last-prompt",  # For resuming; repeats a prompt.
    "agent-color",
    "bridge-session",
    "speculation-accept",
    "atis-latch",
    "api-request",  # Each request repeats all prompts, answers and results, which have their own records.
    "api-request-blob",
    "api-request-shape",
    "tools-used",  # Names of tools. Their calls have their own records.
)
"""Types of records that Aver knows and skips, because they say nothing about the agent's actions."""

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
"""A queued text that is not withdrawn appears later as a prompt or a queued command."""

_POLICY_MODES = ("default", "acceptEdits", "plan", "dontAsk", "auto")


def permission_from_mode(mode: str) -> Permission:
    """Return who allowed a call that was made in this permission mode."""
    # In `default` mode Claude Code may ask a person, but the transcript does not record whether it did. So this
    # function never returns `human_approved`.
    if not mode:
        return Permission()
    reference = f"permission_mode={mode}"
    if mode == "bypassPermissions":
        return Permission(by="autonomous", reference=reference)
    return Permission(by="policy" if mode in _POLICY_MODES else "unknown", reference=reference)


def read_decision(record: Json) -> Permission | None:
    """Return who decided about a call, from `permissionDecision`, which newer versions write beside the result.

    Returns None if the permission mode decided or the record does not say. `toolDenialKind` cannot replace this field:
    Claude Code writes `user-rejected` also in runs where it can ask nobody.
    """
    found = record.get("permissionDecision")
    fields = found if isinstance(found, dict) else {}
    decision, source = string_or_empty(fields.get("decision")), string_or_empty(fields.get("source"))
    if decision == "reject" and source:
        if source.startswith("user"):
            return Permission(by="unknown", reference="rejected by the user", denied=True)
        why = one_line(string_or_empty(fields.get("reasonCode"))) or one_line(source)
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
    """A setting that differs from its last value."""

    summary: str
    what: Literal["session", "note"] = "session"
    text: str = ""
    result: Any = None
    title: str | None = None
    ends_session: bool = False
    environment: Mapping[str, Any] = field(default_factory=dict)


class ClaudeSettings:
    """The current settings of a session."""

    def __init__(self) -> None:
        self.mode = ""
        self._values: dict[str, Any] = {}

    def change(self, kind: str, record: Json, newest: str) -> SettingChange | None:
        """Apply a record of `SETTING_KINDS` and return the change; None if nothing changed.

        `newest` is the `uuid` of the last record of the conversation before it.
        """
        if kind == "permission-mode":
            return self.update_mode(record.get("permissionMode"))
        if kind == "ended-by-model":
            return SettingChange(summary="ended by the model", ends_session=True)
        if kind == "queue-operation":
            text, operation = string_or_empty(record.get("content")), string_or_empty(record.get("operation"))
            summary = f"queue, {one_line(operation)}: {one_line(text)}"
            return (
                None
                if operation in _SKIPPED_QUEUE_OPERATIONS
                else SettingChange(what="note", summary=summary, text=text)
            )
        if kind in _TITLE_FIELDS:
            ours = kind != "summary" or (bool(newest) and record.get("leafUuid") == newest)
            title = string_or_empty(record.get(_TITLE_FIELDS[kind]))
            if not title or self._values.get(kind) == title:
                return None
            self._values[kind] = title
            # A summary may describe another session, which was resumed as this one. A title that a person chose wins.
            applies = kind == "custom-title" or (ours and "custom-title" not in self._values)
            summary = f"{kind.replace('-', ' ')}: {one_line(title)}"
            return SettingChange(summary=summary, text=title, title=title if applies else None)
        value = {name: replace_files(item) for name, item in record.items() if name not in _COMMON_FIELDS}
        if self._values.get(kind) == value:
            return None
        self._values[kind] = value
        shown = one_line(", ".join(item for item in value.values() if isinstance(item, str)))
        change = SettingChange(summary=f"{kind}: {shown}" if shown else kind, result=value)
        cost = parse_cost(record.get("totalCostUSD")) if kind == "cost-state" else None
        if cost is None:
            return change
        return replace(change, summary=f"cost so far: ${cost:.2f}", environment={SESSION_COST: cost})

    def update_mode(self, value: Any) -> SettingChange | None:
        mode = string_or_empty(value)
        if not mode or mode == self.mode:
            return None
        before, self.mode = self.mode, mode
        return SettingChange(
            summary=f"permission mode: {one_line(mode)}", result={"mode": mode, "before": before or None}
        )


_COMMON_FIELDS = ("type", "sessionId", "timestamp", "uuid", "parentUuid", "isSidechain")

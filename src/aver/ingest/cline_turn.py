"""What the messages of a Cline task say, joined with what went to the model and came back.

Messages that a person sees come in order, and what belongs to a request is told with the first thing that came of it:
its tokens and its reasoning. A call is told when its result is in the API history; where there is no such history, when
the next request begins. What came first, message or history, makes no difference to what is told.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from aver.ingest.cline_calls import ApiCall, History
from aver.ingest.cline_shown import AWAITED, CallShown, call_shown
from aver.ingest.cline_telling import OpenCall, told, told_alone
from aver.ingest.cline_values import at, face_of, is_before, listed, text_in_message, tokens_in
from aver.ingest.contract import Raw, Source
from aver.ingest.deed import Deed, Prompt, Tokens, unknown
from aver.ingest.heavy import without_pictures
from aver.ingest.records import as_json, parsed

__all__ = ["TaskTurn"]

_SKIPPED = (
    *("api_req_finished", "mcp_server_request_started", "shell_integration_warning"),
    "shell_integration_warning_with_suggestion",
)
"""Messages that tell a person to wait, and nothing of what was done."""

_PROMPTS = ("task", "user_feedback")
_ANSWERS = ("text", "completion_result", "plan_mode_respond", "act_mode_respond", "followup", "new_task")
_FAILURES = ("error", "diff_error", "clineignore_error", "api_req_failed", "mistake_limit_reached", "error_retry")
_HAS_CHANGES = "HAS_CHANGES"


class _Usage(NamedTuple):
    """What an API request cost, and what became of it."""

    tokens: Tokens | None
    environment: Mapping[str, Any]
    key: str
    at: str | None
    place: str


class TaskTurn:
    """What of a task has been read."""

    def __init__(self, _: Source) -> None:
        self._history = History()
        self._has_history = False
        self._open: list[OpenCall] = []
        self._prompt: Prompt | None = None
        self._thinking: list[str] = []
        self._thought_shown = False
        self._usage: _Usage | None = None
        self._models: list[Any] = []
        self._version: str | None = None
        self._started: int | None = None
        self._prompts: dict[int, Prompt | None] = {}
        self._keys: dict[str, str] = {}

    def take(self, raw: Raw) -> Iterable[Deed]:
        sort, _, number = raw.place.partition(":")
        record = parsed(raw)
        if sort == "metadata":
            yield from self._metadata(raw, record)
        elif sort == "api":
            self._has_history = True
            self._history.add(int(number) if number.isdecimal() else 0, record)
            yield from self._complete()
        elif isinstance(record, dict) and isinstance(record.get("say") or record.get("ask"), str):
            yield from self._message(raw, record)
        else:
            kept = record if isinstance(record, dict) else raw.data.decode("utf-8", "replace")
            kept = kept if raw.data else {"sha256": raw.sha256, "size": raw.size}
            yield unknown(raw.place, "message", kept, key=self._key(record, raw), at=at(record))

    def end(self) -> Iterable[Deed]:
        for one in self._open:
            self._join(one)
        shown = [self._told(one) for one in self._open]
        self._open.clear()
        alone = [self._told_alone(call) for call in self._history.untaken()]
        return [*shown, *alone, *self._unclaimed()]

    # --- messages

    def _message(self, raw: Raw, message: dict[str, Any]) -> Iterator[Deed]:
        sort = str(message.get("say") or message.get("ask"))
        if raw.place == "ui:0" and sort == "text":
            sort = "task"  # As older versions write it.
        if sort not in AWAITED:
            yield from self._complete()  # The history may have come first.
        if sort == "api_req_started":
            yield from self._request(raw, message)
        elif sort == "reasoning":
            self._thinking.append(text_in_message(message) or str(message.get("reasoning") or ""))
            self._thought_shown = True
        elif sort in AWAITED:
            yield from self._awaited(raw, message, sort)
        elif (shown := call_shown(message, sort)) is not None:
            yield from self._begin(raw, message, shown)
        elif sort in _PROMPTS:
            yield from self._asked(raw, message, sort)
        elif sort in _ANSWERS:
            yield from self._answered(raw, message, sort)
        elif sort not in _SKIPPED:
            yield self._noted(raw, message, sort)

    def _request(self, raw: Raw, message: dict[str, Any]) -> Iterator[Deed]:
        """A request begins: what the one before cost is told, and what it called."""
        yield from self._unclaimed()
        index = message.get("conversationHistoryIndex")
        self._started = index if isinstance(index, int) else None
        if self._started is not None:
            self._prompts[self._started + 2] = self._prompt  # The person's message comes next, then the model's.
        yield from self._close()
        self._thought_shown = False
        info = as_json(message.get("text"))
        info = info if isinstance(info, dict) else {}
        told = {
            "cancel_reason": info.get("cancelReason"),
            "streaming_failed": info.get("streamingFailedMessage"),
            "retry_status": info.get("retryStatus"),
        }
        environment = {name: value for name, value in told.items() if value}
        self._usage = _Usage(tokens_in(info), environment, self._key(message, raw), at(message), raw.place)

    def _asked(self, raw: Raw, message: dict[str, Any], sort: str) -> Iterator[Deed]:
        text, key = text_in_message(message), self._key(message, raw)
        self._prompt = Prompt(key=key, text=text)
        line = text.strip().partition("\n")[0]
        attached = {name: listed(message.get(name)) for name in ("images", "files") if message.get(name)}
        yield Deed(
            what="prompt",
            key=key,
            summary=f"prompt: {line or '(no text)'}",
            text=text,
            at=at(message),
            title=line[:TITLE_MAX] or None if sort == "task" else None,
            result=without_pictures(attached) or None,
            environment=self._environment(message),
            places=(raw.place,),
        )

    def _answered(self, raw: Raw, message: dict[str, Any], sort: str) -> Iterator[Deed]:
        said = as_json(message.get("text"))
        said = said if isinstance(said, dict) else {}
        text = str(said.get("response") or said.get("question") or said.get("context") or text_in_message(message))
        changed = sort == "completion_result" and text.endswith(_HAS_CHANGES)
        text = text.removesuffix(_HAS_CHANGES).rstrip() if changed else text
        if not text:
            return  # Cline asks what comes next: a button, no words.
        more = {name: said[name] for name in ("options", "selected") if said.get(name)}
        deed = Deed(
            what="answer",
            key=self._key(message, raw),
            summary=f"{sort.replace('_', ' ')}: {text.strip().partition(chr(10))[0]}",
            text=text,
            at=at(message),
            result=more or None,
            environment=self._environment(message) | ({"has_changes": True} if changed else {}),
            places=(raw.place,),
        )
        yield self._with_request(deed, message)

    def _noted(self, raw: Raw, message: dict[str, Any], sort: str) -> Deed:
        known = sort in _NOTES or sort in _FAILURES
        deed = Deed(
            what="note",
            key=self._key(message, raw),
            summary=sort.replace("_", " "),
            at=at(message),
            result=without_pictures(as_json(message.get("text"))),
            environment=self._environment(message),
            status="failure" if sort in _FAILURES else None,
            prompt=self._prompt,
            places=(raw.place,),
        )
        if not known:
            return replace(unknown(raw.place, sort, message, key=deed.key, at=deed.at), prompt=self._prompt)
        if sort == "checkpoint_created":
            return replace(deed, summary=f"checkpoint {str(message.get('lastCheckpointHash') or '')[:12]}".strip())
        usage = tokens_in(deed.result) if sort == "subagent_usage" else None
        return replace(deed, tokens=usage)

    def _metadata(self, raw: Raw, record: Any) -> Iterator[Deed]:
        if not isinstance(record, dict):
            return
        self._models = [one for one in listed(record.get("model_usage")) if isinstance(one, dict)]
        face = face_of(record)
        self._version = face.get("cline_version")
        key = f"metadata:{hashlib.sha256(json.dumps(face, sort_keys=True).encode()).hexdigest()[:16]}"
        if face and key not in self._keys:
            self._keys[key] = raw.place
            yield Deed(
                what="session",
                key=key,
                summary=f"task of Cline {face.get('cline_version') or ''}".rstrip(),
                model=face.get("model"),
                result={"files_in_context": record.get("files_in_context")} if record.get("files_in_context") else None,
                environment=face,
                places=(raw.place,),
            )

    # --- calls

    def _begin(self, raw: Raw, message: dict[str, Any], shown: CallShown) -> Iterator[Deed]:
        asked = message.get("type") == "ask" or "ask" in message
        deed = Deed(
            what="call",
            key=self._key(message, raw),
            summary="",
            at=at(message),
            environment=self._environment(message)
            | ({"outside_workspace": True} if shown.arguments.get("operationIsLocatedInWorkspace") is False else {}),
        )
        thought_shown = self._thought_shown
        deed = self._with_request(deed, message)
        self._open.append(OpenCall(shown, deed, place=raw.place, asked=asked, thought_shown=thought_shown))
        if len(self._open) > OPEN_MAX:
            yield self._told(self._open.pop(0))

    def _awaited(self, raw: Raw, message: dict[str, Any], sort: str) -> Iterator[Deed]:
        """What came of a call is shown: it belongs to the last call of its sort, if that is not told yet."""
        one = next((one for one in reversed(self._open) if one.shown.sort == AWAITED[sort]), None)
        if one is None:
            if message.get("text"):
                yield self._noted(raw, message, sort)
            return
        one.places.append(raw.place)
        if sort == "command_permission_denied":
            one.denied_by = "command permissions"
        one.outputs.append(message.get("text"))

    def _complete(self) -> Iterator[Deed]:
        """The calls of which all is known that will be."""
        still: list[OpenCall] = []
        for one in self._open:
            self._join(one)
            if self._is_known(one):
                yield self._told(one)
            else:
                still.append(one)
        self._open = still

    def _close(self) -> Iterator[Deed]:
        """Another request begins: nothing more will be shown of the calls before it, and what was not, never was."""
        for one in self._open:
            one.is_closed = True
        yield from self._complete()
        for call in self._history.untaken():
            begun = self._started is not None and self._started >= call.index
            if begun and self._history.result_of(call) is not None:
                yield self._told_alone(call)

    def _join(self, one: OpenCall) -> None:
        if one.call is None and (found := self._history.matching(one.shown.match)) is not None:
            self._history.take(found)
            one.call = found

    def _is_known(self, one: OpenCall) -> bool:
        """Whether the result is there, and all that was shown of it: a message that names its place in the history is
        read before what comes after that place."""
        at = one.shown.match.history
        if one.call is not None:
            return self._history.result_of(one.call) is not None and (one.is_closed or at is not None)
        return one.is_closed and (not self._has_history or (at is not None and self._history.last_index >= at + 2))

    def _told(self, one: OpenCall) -> Deed:
        call = one.call
        result = self._history.result_of(call) if call else None
        key = self._own(call.id, call.place) if call and call.id else one.deed.key
        deed = told(one, result, key)
        lost = self._has_history and call is None
        return replace(deed, environment={**deed.environment, "joined": False}) if lost else deed

    def _told_alone(self, call: ApiCall) -> Deed:
        self._history.take(call)
        key = self._own(call.id or f"api-{call.index}.{call.number}", call.place)
        about = {"cwd": self._history.directory} if self._history.directory else {}
        deed = Deed(what="call", key=key, summary="", prompt=self._prompts.get(call.index), environment=about)
        return told_alone(call, self._history.result_of(call), deed)

    # --- what belongs to a request

    def _with_request(self, deed: Deed, message: dict[str, Any]) -> Deed:
        """The deed with what the request cost and thought, if it is the first that came of it."""
        usage, self._usage = self._usage, None
        thinking = "\n\n".join(filter(None, self._thinking)) or str(message.get("reasoning") or "")
        self._thinking.clear()
        return replace(
            deed,
            prompt=self._prompt,
            model=self._model_at(message),
            tokens=usage.tokens if usage else None,
            thinking=thinking,
            environment={**deed.environment, **(usage.environment if usage else {})},
        )

    def _unclaimed(self) -> Iterator[Deed]:
        """A request of which nothing came: what it cost, and what was thought, is told all the same."""
        usage, self._usage = self._usage, None
        thinking = "\n\n".join(filter(None, self._thinking))
        self._thinking.clear()
        if usage is None or not (usage.tokens or usage.environment or thinking):
            return
        failed = "cancel_reason" in usage.environment or "streaming_failed" in usage.environment
        yield Deed(
            what="note",
            key=usage.key,
            summary="API request" + (" that was cancelled" if failed else ""),
            at=usage.at,
            prompt=self._prompt,
            thinking=thinking,
            tokens=usage.tokens,
            status="failure" if failed else None,
            environment=usage.environment,
            places=(usage.place,),
        )

    # --- what is told of each

    def _environment(self, message: Mapping[str, Any]) -> dict[str, Any]:
        info = message.get("modelInfo")
        info = info if isinstance(info, dict) else {}
        told = {
            "checkpoint": message.get("lastCheckpointHash"),
            "checkpoint_checked_out": message.get("isCheckpointCheckedOut"),
            "conversation_history_index": message.get("conversationHistoryIndex"),
            "conversation_history_deleted": message.get("conversationHistoryDeletedRange"),
            "outside_workspace": message.get("isOperationOutsideWorkspace"),
            "mode": info.get("mode"),
            "provider": info.get("providerId"),
            "version": self._version,
            "cwd": self._history.directory,
        }
        return {name: value for name, value in told.items() if value not in (None, "", False)}

    def _model_at(self, message: Mapping[str, Any]) -> str | None:
        info = message.get("modelInfo")
        if isinstance(info, dict) and isinstance(model := info.get("modelId"), str) and model:
            return model
        when = message.get("ts")
        used = [one.get("model_id") for one in self._models if is_before(one.get("ts"), when)]
        return used[-1] if used and isinstance(used[-1], str) else None

    def _key(self, message: Any, raw: Raw) -> str:
        """A message's own time is what Cline knows it by; of two with the same, the second has its place too."""
        when = message.get("ts") if isinstance(message, dict) else None
        key = f"ts-{when}" if isinstance(when, int) and not isinstance(when, bool) else f"at-{raw.place}"
        identity = f"{raw.place}:{raw.sha256}"
        if self._keys.setdefault(key, identity) == identity:
            return key
        return self._own(f"{key}.{raw.place}", identity)

    def _own(self, key: str, identity: str) -> str:
        """The key, or one like it that no other record has."""
        number = 1
        while self._keys.setdefault(key if number == 1 else f"{key}.{number}", identity) != identity:
            number += 1
        return key if number == 1 else f"{key}.{number}"


OPEN_MAX = 16
"""Calls that may be open at once. Cline makes one after the other, or a few in one request; the first of more is told
as it is, so that no task takes for ever."""

TITLE_MAX = 120
"""Characters of a task's first line that name its session."""

_NOTES = (
    *("checkpoint_created", "user_feedback_diff", "api_req_retried", "mcp_notification", "deleted_api_reqs", "info"),
    *("load_mcp_documentation", "generate_explanation", "task_progress", "hook_status", "hook_output_stream"),
    *("subagent_usage", "conditional_rules_applied", "resume_task", "resume_completed_task", "condense", "report_bug"),
    *("summarize_task", "tool", *AWAITED),
)

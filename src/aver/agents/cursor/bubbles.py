"""The bubbles of a Cursor conversation. Each bubble becomes one event.

    type 1                   a prompt of the user
    type 2, toolFormerData   a tool call with its result
    type 2, text             an answer of the model
    type 2, thinking         thinking without text or call

The value of `bubbleId:<conversation>:b3` in the database, a call (wrapped):

    {"type": 2, "bubbleId": "b3", "text": "", "createdAt": "2026-05-31T09:02:01.000Z", "toolFormerData":
      {"toolCallId": "toolu_b3", "name": "run_terminal_cmd", "status": "completed",
       "params": "{\\"command\\": \\"pytest -q\\"}", "rawArgs": "{\\"command\\": \\"pytest -q\\"}",
       "result": "{\\"output\\": \\"3 passed\\", \\"exitCode\\": 0}"}}

`params`, `rawArgs` and `result` are JSON in strings. A long one is replaced by the key of another value,
`agentKv:blob:<sha256>`.

An event depends only on its bubble, on the prompt before it and on the values that the bubble refers to. So a second
reading gives the same event. Cursor does not record who allowed a call: `userDecision` is `accepted` even if it asked
nobody. So the authority is unknown, unless the call was rejected.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from aver.agents.cursor import calls
from aver.agents.cursor.calls import CONTENT_PREFIX, EDIT_TOOLS, build_diff, find_content_keys, find_path
from aver.agents.cursor.database import composer_key
from aver.ingest.attachments import replace_attachments
from aver.ingest.contract import AgentCall, AgentEvent, Prompt, RawRecord, Tokens, TranscriptSource, build_unknown_event
from aver.ingest.foreign_json import parse_embedded_json, parse_json, to_utc, utc_from_ms
from aver.text import plural

AUTHORSHIP_PLACE = "ai-code-tracking.db"
"""The place of the record with Cursor's count of a conversation's lines."""

BLOB_PREFIX = "agentKv:blob:"
_BLOB_KEY = re.compile(r"agentKv:blob:[0-9a-f]{64}").fullmatch

_WHOLE_FILES = ("originalFile", "originalContents", "contentsBeforeEdit", "contentsAfterEdit", "fullFileContents")


def find_references(bubble: Mapping[str, Any]) -> list[str]:
    """Return the keys of the values that a bubble refers to."""
    call = bubble.get("toolFormerData")
    values = _pick_members(call, "params", "rawArgs", "result")
    ids = find_content_keys(parse_embedded_json(_pick_members(call, "result").get("result")))
    texts = (
        *values.values(),
        bubble.get("text"),
        _pick_members(bubble.get("thinking"), "text").get("text"),
        *ids.values(),
    )
    return [text for text in texts if isinstance(text, str) and (_BLOB_KEY(text) or text.startswith(CONTENT_PREFIX))]


def conversation_info(composer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts about a conversation as a whole that go into its event."""
    model = _pick_members(composer.get("modelConfig"), "modelName", "maxMode")
    subagent_info = _pick_members(
        composer.get("subagentInfo"), "parentComposerId", "parentConversationId", "toolCallId", "subagentType"
    )
    info = {
        "name": composer.get("name"),
        "created_at": _parse_time(composer.get("createdAt")),
        "model": _model_name(model.get("modelName")),
        "max_mode": model.get("maxMode"),
        "mode": composer.get("unifiedMode") or composer.get("forceMode"),
        "git_branch": composer.get("createdOnBranch"),
        "version": composer.get("_v"),
        "subagent_of": subagent_info or None,
    }
    return {
        name: value for name, value in info.items() if value is not None and isinstance(value, str | int | float | dict)
    }


class BubbleParser:
    """Turns the bubbles of one conversation into events."""

    def __init__(self, source: TranscriptSource) -> None:
        self._conversation = source.agent or source.session
        self._info: dict[str, Any] = {}
        self._prompt: Prompt | None = None
        self._turn_model: str | None = None
        self._named: dict[str, RawRecord] = {}
        self._prompts: dict[str, tuple[Prompt | None, str | None]] = {}
        self._owners: dict[str, str] = {}
        self._usages: set[tuple[str, str]] = set()

    def feed(self, raw: RawRecord) -> Iterable[AgentEvent]:
        if raw.place.startswith((BLOB_PREFIX, CONTENT_PREFIX)):
            # The reader gives the values that a bubble refers to before the bubble itself.
            self._named[raw.place] = raw
            return
        record = parse_json(raw)
        if raw.place == AUTHORSHIP_PLACE:
            if isinstance(record, dict) and self._is_new(f"authorship:{raw.sha256[:32]}"):
                by_source = record.get("lines_by_source") or {}
                counts = ", ".join(f"{source} {count}" for source, count in sorted(by_source.items()))
                files = number if isinstance(number := record.get("file_count"), int) else 0
                yield AgentEvent(
                    what="session",
                    key=f"authorship:{raw.sha256[:32]}",
                    summary=f"authorship, by lines: {counts}; in {plural(files, 'file')}",
                    result=record,
                    environment={"authorship_from": AUTHORSHIP_PLACE},
                    places=(raw.place,),
                )
        elif raw.place == composer_key(self._conversation):
            yield from self._read_composer(raw, record)
        elif record is not None:  # Cursor leaves some bubbles as `null`.
            identity = raw.place.replace("#", ":").rpartition(":")[2] or raw.place
            if not isinstance(record, dict):
                yield self._build_unreadable(raw, identity)
            elif record.get("type") == 1:
                yield self._build_prompt(raw, record, identity)
            elif record.get("type") == 2:
                yield from self._read_answer(raw, record, identity)
            else:
                kind = f"bubble of type {record.get('type')}"
                key = self._claim_key(identity, raw.place) or f"at-{raw.place}"
                yield build_unknown_event(raw.place, kind, record, key=key, at=_parse_time(record.get("createdAt")))
        self._named.clear()

    def finish(self) -> Iterable[AgentEvent]:
        return ()

    def _read_composer(self, raw: RawRecord, record: Any) -> Iterator[AgentEvent]:
        if not isinstance(record, dict):
            yield self._build_unreadable(raw, f"composer:{raw.sha256[:16]}")
            return
        self._info = conversation_info(record)
        name, model = self._info.get("name"), self._info.get("model")
        about = ", ".join(str(part) for part in (self._info.get("mode"), model) if part)
        digest = hashlib.sha256(json.dumps(self._info, sort_keys=True).encode()).hexdigest()[:16]
        if self._is_new(f"composer:{digest}"):
            yield AgentEvent(
                what="session",
                key=f"composer:{digest}",
                summary=f"conversation: {name or 'untitled'}{f' ({about})' if about else ''}",
                at=self._info.get("created_at"),
                model=model,
                environment={key: value for key, value in self._info.items() if key not in ("name", "created_at")},
                title=name if isinstance(name, str) and name else None,
                places=(raw.place,),
            )

    def _build_prompt(self, raw: RawRecord, bubble: dict[str, Any], identity: str) -> AgentEvent:
        key = self._claim_key(identity, raw.place) or f"at-{raw.place}"
        text = self._read_text(bubble.get("text"))
        self._prompt = Prompt(key=key, text=text)
        self._turn_model = _model_name(_pick_members(bubble.get("modelInfo"), "modelName").get("modelName"))
        images = bubble.get("images")
        return AgentEvent(
            what="prompt",
            key=key,
            summary=f"prompt: {_first_line(text) or '(no text)'}",
            text=text,
            at=_parse_time(bubble.get("createdAt")),
            model=self._turn_model,
            result={"attached": attached} if (attached := list(_attached_paths(bubble))) else None,
            environment=self._build_environment(bubble, identity)
            | ({"images": len(images)} if isinstance(images, list) and images else {}),
            places=(raw.place,),
        )

    def _read_answer(self, raw: RawRecord, bubble: dict[str, Any], identity: str) -> Iterator[AgentEvent]:
        thinking = bubble.get("thinking")
        thought = self._read_text(thinking.get("text") if isinstance(thinking, dict) else thinking)
        signature = _pick_members(thinking, "signature").get("signature")
        event = AgentEvent(
            what="answer",
            key="",
            summary="",
            text=self._read_text(bubble.get("text")),
            thinking=thought,
            signatures=(signature,) if isinstance(signature, str) and signature else (),
            redacted=not thought and bool(signature or bubble.get("thinkingDurationMs")),
            at=_parse_time(bubble.get("createdAt")),
            prompt=self._prompt,
            model=_model_name(_pick_members(bubble.get("modelInfo"), "modelName").get("modelName"))
            or self._turn_model
            or self._info.get("model"),
            tokens=self._read_tokens(bubble),
            environment=self._build_environment(bubble, identity),
            places=(*self._named, raw.place),
        )
        call = bubble.get("toolFormerData")
        if isinstance(call, dict) and (call.get("name") or call.get("toolCallId") or call.get("tool")):
            call_id = call.get("toolCallId")
            wanted = call_id if isinstance(call_id, str) and call_id else identity
            key = self._claim_key(wanted, raw.place) or f"at-{raw.place}"
            # The reader gives an open call again when it has ended. It still belongs to the turn in which it began.
            prompt, model = self._prompts.setdefault(key, (self._prompt, self._turn_model))
            starting_turn = {"prompt": prompt} if prompt is self._prompt else {"prompt": prompt, "model": model}
            event = replace(event, key=key, **starting_turn)
            made = self._build_call(event, call, key)
            # The reader gives an open call when the conversation has left it behind.
            yield replace(made, status="pending") if calls.call_state(call) == "open" else made
        elif event.text or event.thinking or event.redacted:
            key = self._claim_key(identity, raw.place) or f"at-{raw.place}"
            summary = f"answer: {_first_line(event.text)}" if event.text else "thinking"
            yield replace(event, key=key, summary=summary, duration_ms=_int_or_none(bubble.get("thinkingDurationMs")))
        elif error := bubble.get("errorDetails"):
            key = self._claim_key(identity, raw.place) or f"at-{raw.place}"
            yield replace(event, what="note", key=key, summary="error", result=error, status="failure")

    # --- calls

    def _build_call(self, event: AgentEvent, call: dict[str, Any], key: str) -> AgentEvent:
        name = str(call.get("name") or f"tool-{call.get('tool')}")
        params, asked = self._read_object(call.get("params")), self._read_object(call.get("rawArgs"))
        arguments = {**params, **asked}
        result = replace_attachments(parse_embedded_json(self._resolve_blob(call.get("result"))), _WHOLE_FILES)
        path = find_path(params, asked, result)
        diff = build_diff(name, arguments, result, self._file_contents(), path) if name.lower() in EDIT_TOOLS else None
        denied = calls.is_denied(call, result)
        ok, error = calls.read_success(call, result)
        return replace(
            event,
            what="call",
            summary=calls.build_summary(name, arguments, path, diff, result),
            call=AgentCall(
                tool=name,
                id=key,
                arguments=replace_attachments(arguments, _WHOLE_FILES),
                result=calls.normalize_streams(name, result),
                ok=False if denied else ok,
                error="rejected by the user" if denied else error,
                diff=diff,
            ),
            allowed=calls.read_permission(call, denied=denied),
            side_effects=() if denied or ok is False else tuple(calls.list_effects(name, arguments, path)),
            launched=calls.launched_agent_id(name, result),
            environment={**event.environment, **calls.call_provenance(call)},
        )

    def _read_object(self, value: Any) -> dict[str, Any]:
        value = parse_embedded_json(self._resolve_blob(value))
        if isinstance(value, dict):
            return value
        return {} if value in (None, "") else {"raw": value}

    def _resolve_blob(self, value: Any) -> Any:
        """Return the value, or the value under the key that it names."""
        if not isinstance(value, str) or not _BLOB_KEY(value) or value not in self._named:
            return value
        found = self._named[value]
        # The key ends with the value's SHA-256. A value that does not fit it is not the one that the call had.
        return found.data.decode("utf-8", "replace") if value.endswith(found.sha256) else value

    def _file_contents(self) -> dict[str, str]:
        return {
            key: found.data.decode("utf-8", "replace")
            for key, found in self._named.items()
            if key.startswith(CONTENT_PREFIX) and len(found.data) == found.size
        }

    def _read_text(self, value: Any) -> str:
        value = self._resolve_blob(value)
        return value if isinstance(value, str) else ""

    # --- for all bubbles

    def _build_environment(self, bubble: Mapping[str, Any], identity: str) -> dict[str, Any]:
        window = bubble.get("contextWindowStatusAtCreation")
        workspaces = bubble.get("workspaceUris")
        fields = {
            "bubble_id": identity,
            "request_id": bubble.get("requestId"),
            "server_bubble_id": bubble.get("serverBubbleId"),
            "checkpoint": bubble.get("checkpointId"),
            "checkpoint_after": bubble.get("afterCheckpointId"),
            "context_window": window if isinstance(window, dict) and window else None,
            "thinking_duration_ms": _int_or_none(bubble.get("thinkingDurationMs")),
            "turn_duration_ms": _int_or_none(bubble.get("turnDurationMs")),
            "mode": self._info.get("mode"),
            "git_branch": self._info.get("git_branch"),
            "workspaces": [item for item in workspaces if isinstance(item, str)]
            if isinstance(workspaces, list)
            else None,
        }
        return {name: value for name, value in fields.items() if value not in (None, "", [])}

    def _read_tokens(self, bubble: Mapping[str, Any]) -> Tokens | None:
        """Return the tokens of a bubble; None if Cursor did not count, or if an earlier bubble has them."""
        # Cursor writes zeros where it does not count, and repeats a message's usage on several of its bubbles.
        counts = bubble.get("tokenCount")
        if not isinstance(counts, dict) or not any(_int_or_none(value) for value in counts.values()):
            return None
        usage = bubble.get("usageUuid")
        if isinstance(usage, str) and usage:
            counted = (usage, str(sorted(counts.items(), key=str)))
            if counted in self._usages:
                return None
            self._usages.add(counted)
        return Tokens(
            input=_int_or_none(counts.get("inputTokens")),
            output=_int_or_none(counts.get("outputTokens")),
            native=counts,
        )

    def _claim_key(self, key: str, place: str) -> str | None:
        """Return the key, if no other record has it; else None."""
        return key if self._owners.setdefault(key, place) == place else None

    def _is_new(self, key: str) -> bool:
        return key not in self._owners and self._claim_key(key, key) is not None

    def _build_unreadable(self, raw: RawRecord, key: str) -> AgentEvent:
        key = self._claim_key(key, raw.place) or f"at-{raw.place}"
        return build_unknown_event(raw.place, "unreadable", raw.read_text(), key=key)


def _attached_paths(bubble: Mapping[str, Any]) -> Iterator[str]:
    """Yield the files and folders that the user added to a prompt."""
    context = bubble.get("context")
    for kind in ("fileSelections", "folderSelections", "selections"):
        chosen = context.get(kind) if isinstance(context, Mapping) else None
        for item in chosen if isinstance(chosen, list) else ():
            if path := find_path(item):
                yield path


def _pick_members(values: Any, *names: str) -> dict[str, Any]:
    """Return these members of an object; an empty dict if it is no object."""
    return {name: values[name] for name in names if name in values} if isinstance(values, Mapping) else {}


def _model_name(name: Any) -> str | None:
    # Cursor writes `default` if the user chose no model.
    return name if isinstance(name, str) and name not in ("", "default") else None


def _parse_time(value: Any) -> str | None:
    return to_utc(value) or utc_from_ms(value)


def _int_or_none(value: Any) -> int | None:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < 2**53:
        return None
    return int(value)


def _first_line(text: str) -> str:
    return next((line.strip() for line in text[:FIRST_LINE_SEARCH_MAX].splitlines() if line.strip()), "")


FIRST_LINE_SEARCH_MAX = 400
"""Characters of a text in which Aver looks for its first line."""

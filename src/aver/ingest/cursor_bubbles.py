"""What the bubbles of a Cursor conversation say: each is one deed.

    type 1                   what a person asked
    type 2, toolFormerData   a tool call with its result
    type 2, text             what the model said
    type 2, thinking         what it thought, where nothing else stands beside it

A deed rests on its bubble, on the prompt before it and on what the bubble names, never on what else was being done at
the time: read again from the beginning, it is the same. Cursor does not keep who allowed a call: `userDecision` is
`accepted` also where nobody was asked, and the option of its dialog is the one that was offered. So the authority is
unknown, unless the call was rejected.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from aver.ingest import cursor_calls as calls
from aver.ingest.contract import Raw, Source
from aver.ingest.cursor_db import composer_key
from aver.ingest.cursor_edits import CONTENT, EDITS, content_ids, diff_of, path_in
from aver.ingest.deed import Call, Deed, Prompt, Tokens, counted, unknown
from aver.ingest.heavy import lightened
from aver.ingest.records import as_json, parsed
from aver.ingest.times import from_ms, utc

__all__ = ["AUTHORSHIP", "BLOB", "BubbleTurn", "face_of", "references_in"]

AUTHORSHIP = "ai-code-tracking.db"
"""The place of what Cursor counted of a conversation's lines."""

BLOB = "agentKv:blob:"
_BLOB_KEY = re.compile(r"agentKv:blob:[0-9a-f]{64}").fullmatch

_WHOLE_FILES = ("originalFile", "originalContents", "contentsBeforeEdit", "contentsAfterEdit", "fullFileContents")


def references_in(bubble: Mapping[str, Any]) -> list[str]:
    """The keys of what a bubble names instead of holding it."""
    call = bubble.get("toolFormerData")
    held = _of(call, "params", "rawArgs", "result")
    ids = content_ids(as_json(_of(call, "result").get("result")))
    texts = (*held.values(), bubble.get("text"), _of(bubble.get("thinking"), "text").get("text"), *ids.values())
    return [text for text in texts if isinstance(text, str) and (_BLOB_KEY(text) or text.startswith(CONTENT))]


def face_of(composer: Mapping[str, Any]) -> dict[str, Any]:
    """What is worth telling of a conversation as a whole."""
    model = _of(composer.get("modelConfig"), "modelName", "maxMode")
    info = _of(composer.get("subagentInfo"), "parentComposerId", "parentConversationId", "toolCallId", "subagentType")
    face = {
        "name": composer.get("name"),
        "created_at": _time(composer.get("createdAt")),
        "model": _model(model.get("modelName")),
        "max_mode": model.get("maxMode"),
        "mode": composer.get("unifiedMode") or composer.get("forceMode"),
        "git_branch": composer.get("createdOnBranch"),
        "version": composer.get("_v"),
        "subagent_of": info or None,
    }
    return {name: value for name, value in face.items() if value is not None and _is_plain(value)}


class BubbleTurn:
    """What of a conversation has been read."""

    def __init__(self, source: Source) -> None:
        self._conversation = source.agent or source.session
        self._face: dict[str, Any] = {}
        self._prompt: Prompt | None = None
        self._turn_model: str | None = None
        self._named: dict[str, Raw] = {}
        self._open: dict[str, Deed] = {}
        self._prompts: dict[str, tuple[Prompt | None, str | None]] = {}
        self._owners: dict[str, str] = {}
        self._usages: set[tuple[str, str]] = set()

    def take(self, raw: Raw) -> Iterable[Deed]:
        if raw.place.startswith((BLOB, CONTENT)):
            self._named[raw.place] = raw
            return
        record = parsed(raw)
        if raw.place == AUTHORSHIP:
            yield from self._authorship(raw, record)
        elif raw.place == composer_key(self._conversation):
            yield from self._composer(raw, record)
        elif record is not None:  # Cursor leaves some bubbles as `null`.
            yield from self._bubble(raw, record)
        self._named.clear()

    def end(self) -> Iterable[Deed]:
        begun = list(self._open.values())
        self._open.clear()
        return begun

    def _composer(self, raw: Raw, record: Any) -> Iterator[Deed]:
        if not isinstance(record, dict):
            yield self._unreadable(raw, f"composer:{raw.sha256[:16]}")
            return
        self._face = face_of(record)
        name, model = self._face.get("name"), self._face.get("model")
        about = ", ".join(str(part) for part in (self._face.get("mode"), model) if part)
        digest = hashlib.sha256(json.dumps(self._face, sort_keys=True).encode()).hexdigest()[:16]
        if self._is_new(f"composer:{digest}"):
            yield Deed(
                what="session",
                key=f"composer:{digest}",
                summary=f"conversation: {name or 'untitled'}{f' ({about})' if about else ''}",
                at=self._face.get("created_at"),
                model=model,
                environment={key: value for key, value in self._face.items() if key not in ("name", "created_at")},
                title=name if isinstance(name, str) and name else None,
                places=(raw.place,),
            )

    def _authorship(self, raw: Raw, record: Any) -> Iterator[Deed]:
        if isinstance(record, dict) and self._is_new(f"authorship:{raw.sha256[:32]}"):
            by_source = record.get("lines_by_source") or {}
            counts = ", ".join(f"{source} {count}" for source, count in sorted(by_source.items()))
            files = record.get("file_count")
            yield Deed(
                what="session",
                key=f"authorship:{raw.sha256[:32]}",
                summary=f"authorship, by lines: {counts}; in {counted(files if isinstance(files, int) else 0, 'file')}",
                result=record,
                environment={"authorship_from": AUTHORSHIP},
                places=(raw.place,),
            )

    def _bubble(self, raw: Raw, record: Any) -> Iterator[Deed]:
        identity = raw.place.replace("#", ":").rpartition(":")[2] or raw.place
        if not isinstance(record, dict):
            yield self._unreadable(raw, identity)
        elif record.get("type") == 1:
            yield self._asked(raw, record, identity)
        elif record.get("type") == 2:
            yield from self._answered(raw, record, identity)
        else:
            sort = f"bubble of type {record.get('type')}"
            key = self._owned(identity, raw.place) or f"at-{raw.place}"
            yield unknown(raw.place, sort, record, key=key, at=_time(record.get("createdAt")))

    def _asked(self, raw: Raw, bubble: dict[str, Any], identity: str) -> Deed:
        key = self._owned(identity, raw.place) or f"at-{raw.place}"
        text = self._text(bubble.get("text"))
        self._prompt = Prompt(key=key, text=text)
        self._turn_model = _model(_of(bubble.get("modelInfo"), "modelName").get("modelName"))
        images = bubble.get("images")
        return Deed(
            what="prompt",
            key=key,
            summary=f"prompt: {_line(text) or '(no text)'}",
            text=text,
            at=_time(bubble.get("createdAt")),
            model=self._turn_model,
            result={"attached": attached} if (attached := list(_attached(bubble))) else None,
            environment=self._environment(bubble, identity)
            | ({"images": len(images)} if isinstance(images, list) and images else {}),
            places=(raw.place,),
        )

    def _answered(self, raw: Raw, bubble: dict[str, Any], identity: str) -> Iterator[Deed]:
        thinking = bubble.get("thinking")
        thought = self._text(thinking.get("text") if isinstance(thinking, dict) else thinking)
        signature = _of(thinking, "signature").get("signature")
        deed = Deed(
            what="answer",
            key="",
            summary="",
            text=self._text(bubble.get("text")),
            thinking=thought,
            signatures=(signature,) if isinstance(signature, str) and signature else (),
            redacted=not thought and bool(signature or bubble.get("thinkingDurationMs")),
            at=_time(bubble.get("createdAt")),
            prompt=self._prompt,
            model=_model(_of(bubble.get("modelInfo"), "modelName").get("modelName"))
            or self._turn_model
            or self._face.get("model"),
            tokens=self._tokens(bubble),
            environment=self._environment(bubble, identity),
            places=(*self._named, raw.place),
        )
        call = bubble.get("toolFormerData")
        if isinstance(call, dict) and (call.get("name") or call.get("toolCallId") or call.get("tool")):
            yield from self._called(deed, raw, call, identity)
        elif deed.text or deed.thinking or deed.redacted:
            key = self._owned(identity, raw.place) or f"at-{raw.place}"
            summary = f"answer: {_line(deed.text)}" if deed.text else "thinking"
            yield replace(deed, key=key, summary=summary, duration_ms=_whole(bubble.get("thinkingDurationMs")))
        elif error := bubble.get("errorDetails"):
            key = self._owned(identity, raw.place) or f"at-{raw.place}"
            yield replace(deed, what="note", key=key, summary="error", result=error, status="failure")

    # --- calls

    def _called(self, deed: Deed, raw: Raw, call: dict[str, Any], identity: str) -> Iterator[Deed]:
        told = call.get("toolCallId")
        key = self._owned(told if isinstance(told, str) and told else identity, raw.place) or f"at-{raw.place}"
        deed = replace(deed, key=key, **self._turn_of(key))
        made = self._outcome(deed, call, key)
        if calls.state_of(call) == "open":
            self._open[key] = replace(made, status="pending")
            return
        self._open.pop(key, None)
        yield made

    def _turn_of(self, key: str) -> dict[str, Any]:
        """A call that is told of again when it has ended belongs to the turn in which it began."""
        prompt, model = self._prompts.setdefault(key, (self._prompt, self._turn_model))
        return {"prompt": prompt} if prompt is self._prompt else {"prompt": prompt, "model": model}

    def _outcome(self, deed: Deed, call: dict[str, Any], key: str) -> Deed:
        name = str(call.get("name") or f"tool-{call.get('tool')}")
        params, asked = self._object(call.get("params")), self._object(call.get("rawArgs"))
        arguments = {**params, **asked}
        result = lightened(as_json(self._held(call.get("result"))), _WHOLE_FILES)
        path = path_in(params, asked, result)
        diff = diff_of(name, arguments, result, self._contents(), path) if name.lower() in EDITS else None
        denied = calls.was_denied(call, result)
        ok, error = calls.worth(call, result)
        return replace(
            deed,
            what="call",
            summary=calls.summary(name, arguments, path, diff, result),
            call=Call(
                tool=name,
                id=key,
                arguments=lightened(arguments, _WHOLE_FILES),
                result=calls.as_streams(name, result),
                ok=False if denied else ok,
                error="rejected by the user" if denied else error,
                diff=diff,
            ),
            allowed=calls.allowed(call, denied=denied),
            side_effects=() if denied or ok is False else tuple(calls.effects(name, arguments, path)),
            launched=calls.launched(name, result),
            environment={**deed.environment, **calls.about(call)},
        )

    def _object(self, value: Any) -> dict[str, Any]:
        value = as_json(self._held(value))
        if isinstance(value, dict):
            return value
        return {} if value in (None, "") else {"raw": value}

    def _held(self, value: Any) -> Any:
        """The value, or what stands under the key that it names, if that is what the key says."""
        if not isinstance(value, str) or not _BLOB_KEY(value) or value not in self._named:
            return value
        found = self._named[value]
        return found.data.decode("utf-8", "replace") if value.endswith(found.sha256) else value

    def _contents(self) -> dict[str, str]:
        return {
            key: found.data.decode("utf-8", "replace")
            for key, found in self._named.items()
            if key.startswith(CONTENT) and len(found.data) == found.size
        }

    def _text(self, value: Any) -> str:
        value = self._held(value)
        return value if isinstance(value, str) else ""

    # --- what is told of each

    def _environment(self, bubble: Mapping[str, Any], identity: str) -> dict[str, Any]:
        window = bubble.get("contextWindowStatusAtCreation")
        workspaces = bubble.get("workspaceUris")
        told = {
            "bubble_id": identity,
            "request_id": bubble.get("requestId"),
            "server_bubble_id": bubble.get("serverBubbleId"),
            "checkpoint": bubble.get("checkpointId"),
            "checkpoint_after": bubble.get("afterCheckpointId"),
            "context_window": window if isinstance(window, dict) and window else None,
            "thinking_duration_ms": _whole(bubble.get("thinkingDurationMs")),
            "turn_duration_ms": _whole(bubble.get("turnDurationMs")),
            "mode": self._face.get("mode"),
            "git_branch": self._face.get("git_branch"),
            "workspaces": [item for item in workspaces if isinstance(item, str)]
            if isinstance(workspaces, list)
            else None,
        }
        return {name: value for name, value in told.items() if value not in (None, "", [])}

    def _tokens(self, bubble: Mapping[str, Any]) -> Tokens | None:
        """Cursor writes zeros where it does not count, and the same usage on several bubbles of one message."""
        counts = bubble.get("tokenCount")
        if not isinstance(counts, dict) or not any(_whole(value) for value in counts.values()):
            return None
        usage = bubble.get("usageUuid")
        if isinstance(usage, str) and usage:
            counted = (usage, str(sorted(counts.items(), key=str)))
            if counted in self._usages:
                return None
            self._usages.add(counted)
        return Tokens(input=_whole(counts.get("inputTokens")), output=_whole(counts.get("outputTokens")), native=counts)

    def _owned(self, key: str, place: str) -> str | None:
        """The key, if it is this record's own; None if another record has it."""
        return key if self._owners.setdefault(key, place) == place else None

    def _is_new(self, key: str) -> bool:
        return key not in self._owners and self._owned(key, key) is not None

    def _unreadable(self, raw: Raw, key: str) -> Deed:
        kept: Any = raw.data.decode("utf-8", "replace") if raw.data else {"sha256": raw.sha256, "size": raw.size}
        return unknown(raw.place, "unreadable", kept, key=self._owned(key, raw.place) or f"at-{raw.place}")


def _attached(bubble: Mapping[str, Any]) -> Iterator[str]:
    """The files and folders that a person added to a prompt."""
    context = bubble.get("context")
    for kind in ("fileSelections", "folderSelections", "selections"):
        chosen = context.get(kind) if isinstance(context, Mapping) else None
        for item in chosen if isinstance(chosen, list) else ():
            if path := path_in(item):
                yield path


def _of(values: Any, *names: str) -> dict[str, Any]:
    """These members of an object; none where it is no object."""
    return {name: values[name] for name in names if name in values} if isinstance(values, Mapping) else {}


def _model(name: Any) -> str | None:
    """`default` is what the list of models shows where none was chosen."""
    return name if isinstance(name, str) and name not in ("", "default") else None


def _time(value: Any) -> str | None:
    return utc(value) or from_ms(value)


def _whole(value: Any) -> int | None:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < 2**53:
        return None
    return int(value)


def _line(text: str) -> str:
    return next((line.strip() for line in text[:LINE_MAX].splitlines() if line.strip()), "")


LINE_MAX = 400
"""Characters of a text in which its first line is looked for."""


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float | dict)

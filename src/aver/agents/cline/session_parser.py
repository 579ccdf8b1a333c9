"""Sessions of Cline: version 4 and later, and its command line. They replace the tasks of older versions.

    <sessions>/<session>/<session>.messages.json   the messages to and from the model; rewritten at every message
    <sessions>/<session>/<session>.json            the manifest: model, directory, title, status
    <sessions>/<session>/<agent>.messages.json     the messages of an agent that the session launched

`<sessions>` is the first that is set of `CLINE_SESSION_DATA_DIR`, `CLINE_DATA_DIR/sessions` and
`CLINE_DIR/data/sessions`, or else `~/.cline/data/sessions`. A file of messages with a call and its result (shortened):

    {"system_prompt": "You are Cline…", "messages": [
      {"role": "assistant", "id": "m2", "ts": 1780218001000, "metrics": {"inputTokens": 900, "outputTokens": 40},
       "content": [{"type": "tool_use", "id": "call_1", "name": "run_commands", "input": {"commands": ["ls"]}}]},
      {"role": "user", "id": "m3", "ts": 1780218002000,
       "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": "[…]"}]}]}

- A record is one element of `messages`, at the place `message:<index>`. `manifest` and `system_prompt` are records too.
- The reader gives the last answer when its tokens are counted, another message follows or the session has ended.
- A call becomes an event when its result comes. The event includes the text and the thinking before the call.
- Cline does not record whether it asked a person. So no call has an approval.
- The key of a call is its id. Cline may renumber messages, so their key is their index and a digest of their content.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from aver.agents.cline.results import (
    finish_call,
    list_or_empty,
    message_time,
    one_line,
    read_session_tokens,
    start_call,
)
from aver.diffs import format_line_counts
from aver.files.regular import read_if_regular
from aver.files.user_dirs import UserEnvironment
from aver.ingest.attachments import digest_reference, replace_images
from aver.ingest.contract import (
    AgentEvent,
    Prompt,
    RawRecord,
    Tokens,
    TranscriptSource,
    build_unknown_event,
    record_from_bytes,
)
from aver.ingest.foreign_json import UNREADABLE, ms_between, parse_json, split_array, split_object
from aver.ingest.json_lines import FileStatus, is_settled, read_file_status
from aver.ingest.open_calls import OpenCalls

MESSAGES_SUFFIX, MANIFEST, SYSTEM_PROMPT = ".messages.json", "manifest", "system_prompt"

FILE_MAX = 512 * 1024 * 1024
"""The largest file that Aver reads, in bytes. It must fit into memory, because it is one JSON value."""

MANIFEST_MAX = 16 * 1024 * 1024

_INFO_FIELDS = ("source", "provider", "model", "cwd", "workspace_root", "team_name", "interactive")
_RUNNING = "running"


def sessions_dir(around: UserEnvironment) -> Path:
    """Return the directory with all sessions."""
    get = around.environment.get
    if own := get("CLINE_SESSION_DATA_DIR"):
        return Path(own)
    if data := get("CLINE_DATA_DIR"):
        return Path(data) / "sessions"
    cline = get("CLINE_DIR")
    return (Path(cline) if cline else around.home / ".cline") / "data" / "sessions"


def locate_sessions(directory: Path, tool: str) -> Iterator[TranscriptSource]:
    for path in sorted(directory.glob(f"*/*{MESSAGES_SUFFIX}")):
        session, name = path.parent.name, path.name.removesuffix(MESSAGES_SUFFIX)
        agent = "" if name == session else name
        stamp = f"{read_file_status(path)};{read_file_status(_manifest_path(path))}"
        yield TranscriptSource(tool=tool, session=session, path=path, agent=agent, appends=False, stamp=stamp)


def session_info(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts about a session that do not change with every message."""
    metadata = manifest.get("metadata")
    title = metadata.get("title") if isinstance(metadata, Mapping) else None
    status = manifest.get("status")
    fields = {
        **{name: manifest.get(name) for name in _INFO_FIELDS},
        "title": title,
        "status": None if status == _RUNNING else status,
    }
    return {name: value for name, value in fields.items() if isinstance(value, str | bool) and value != ""}


class SessionReader:
    """Reads the messages of a session or of one of its agents, and remembers which it has given."""

    started_anew = False
    """Always false: Cline rewrites the whole list, so there is no position to start again from."""
    unfinished = 0

    def __init__(self, source: TranscriptSource) -> None:
        self._path = source.path
        self._is_agent = bool(source.agent)
        self._read: FileStatus | None = None
        self._file: dict[str, bytes] = {}
        self._seen_texts: dict[int, bytes] = {}
        self._given: set[tuple[str, str]] = set()

    def __call__(self) -> Iterator[RawRecord]:
        """Yield the new records; none while Cline is writing the file."""
        if not self._refresh():
            return
        data = read_if_regular(_manifest_path(self._path), MANIFEST_MAX)
        manifest = parse_json(data) if data else None
        info: Mapping[str, Any] = manifest if isinstance(manifest, dict) else {}
        if data and info and not self._is_agent and self._is_new(MANIFEST, str(session_info(info))):
            yield record_from_bytes(MANIFEST, data)
        if (prompt := self._file.get(SYSTEM_PROMPT)) and self._is_new(
            SYSTEM_PROMPT, record_from_bytes("", prompt).sha256
        ):
            yield record_from_bytes(SYSTEM_PROMPT, prompt)
        listed = split_array(self._file.get("messages", b"[]")) or []
        for index, text in enumerate(listed):
            if self._seen_texts.get(index) == text:
                continue  # Unchanged. This skips most messages without parsing them.
            place, message = f"message:{index}", parse_json(text)
            followed = index + 1 < len(listed)
            if not followed and not _is_final(message, runs=info.get("status") == _RUNNING):
                return
            self._seen_texts[index] = text
            # Cline may add an id, a time or counts to a message later. Only another role or content makes it new.
            content = text
            if isinstance(message, dict):
                content = repr((message.get("role"), message.get("content"))).encode("utf-8", "surrogatepass")
            if self._is_new(place, record_from_bytes("", content).sha256):
                yield record_from_bytes(place, text)

    def _refresh(self) -> bool:
        """Read the file if it has changed. Returns False if it is missing or incomplete."""
        status = read_file_status(self._path)
        if status is None:
            return False
        if status != self._read:
            found = split_object(read_if_regular(self._path, FILE_MAX) or b"")
            if found is None:
                return False
            self._file, self._read = found, status if is_settled([status]) else None
        return True

    def _is_new(self, kind: str, identity: str) -> bool:
        if (kind, identity) in self._given:
            return False
        self._given.add((kind, identity))
        return True


def _is_final(message: Any, *, runs: bool) -> bool:
    if not runs or not isinstance(message, dict) or message.get("role") != "assistant":
        return True
    return isinstance(message.get("metrics"), dict)


def _manifest_path(messages: Path) -> Path:
    return messages.with_name(f"{messages.parent.name}.json")


_USER_INPUT = re.compile(r"\A\s*<user_input\b[^>]*>(.*)</user_input>\s*\Z", re.DOTALL)


@dataclass(slots=True)
class _ModelOutput:
    """The text and thinking of a message that no event has yet."""

    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    signatures: list[str] = field(default_factory=list)
    redacted: bool = False

    def event_fields(self) -> dict[str, Any]:
        return {
            "text": "\n".join(self.texts),
            "thinking": "\n".join(self.thoughts),
            "signatures": tuple(self.signatures),
            "redacted": self.redacted,
        }

    def __bool__(self) -> bool:
        return bool(self.texts or self.thoughts or self.signatures or self.redacted)


class SessionParser:
    """Turns the records of one session into events."""

    def __init__(self, source: TranscriptSource) -> None:
        self._agent = source.agent
        self._prompt: Prompt | None = None
        self._unanswered_calls = OpenCalls[AgentEvent]()
        self._environment: dict[str, Any] = {}
        self._model: str | None = None
        self._keys: dict[str, int] = {}

    def feed(self, raw: RawRecord) -> Iterator[AgentEvent]:
        record = parse_json(raw)
        if raw.place == MANIFEST and isinstance(record, dict):
            facts = session_info(record)
            title, manifest_model = facts.pop("title", None), facts.get("model")
            self._environment = {name: facts[name] for name in ("cwd", "provider") if name in facts}
            self._model = manifest_model if isinstance(manifest_model, str) else self._model
            about = ", ".join(one_line(str(facts[name])) for name in ("source", "status") if name in facts)
            yield AgentEvent(
                what="session",
                key=self._reserve_key(f"session-{_short_digest(f'{facts}{title}')}"),
                summary=f"session of Cline: {about}",
                at=None if not isinstance(started := record.get("started_at"), str) else started,
                model=self._model,
                environment=facts,
                title=title if isinstance(title, str) else None,
                places=(raw.place,),
            )
        elif raw.place == SYSTEM_PROMPT and isinstance(record, str):
            key, kept = self._place_key(raw, raw.sha256[:16]), {"text": record, **digest_reference(record)}
            yield AgentEvent(what="note", key=key, summary="system prompt", result=kept, places=(raw.place,))
        elif isinstance(record, dict) and (
            record.get("role") in ("user", "assistant") and isinstance(record.get("content"), str | list | None)
        ):
            blocks = record.get("content")
            blocks = [{"type": "text", "text": blocks}] if isinstance(blocks, str) else list_or_empty(blocks)
            info = record.get("modelInfo")
            name = info.get("id") if isinstance(info, Mapping) else None
            model = name if isinstance(name, str) and name else None
            self._model = model or self._model
            read = self._read_answer if record["role"] == "assistant" else self._read_user_message
            yield from read(raw, record, blocks)
        else:
            yield self._build_unknown(raw, "message", record)

    def finish(self) -> Iterator[AgentEvent]:
        yield from self._unanswered_calls.leave_all()

    # --- messages

    def _read_user_message(self, raw: RawRecord, message: Mapping[str, Any], blocks: list[Any]) -> Iterator[AgentEvent]:
        texts, beside = list[str](), list[Any]()
        for block in blocks:
            kind = block.get("type") if isinstance(block, dict) else None
            if kind == "tool_result":
                yield from self._unanswered_calls.leave_before(str(block.get("tool_use_id")))
                yield self._finish_call(raw, message, block)
            elif kind == "text" and isinstance(block.get("text"), str):
                texts.append(block["text"])
            elif kind == "file" and isinstance(block.get("content"), str):
                beside.append({"file": block.get("path"), **digest_reference(block["content"])})
            else:
                beside.append(replace_images(block))
        if not texts and not beside:
            return
        text = "\n".join(texts)
        unwrapped = _USER_INPUT.match(text)
        text = unwrapped[1].strip("\n") if unwrapped else text
        key = self._message_key(raw, blocks)
        yield from self._unanswered_calls.leave_all()
        self._prompt = Prompt(key=key, text=text)
        result = beside or None
        yield self._build_event(
            raw, message, "prompt", key, f"prompt: {one_line(text)}", text=text, result=result, prompt=None
        )

    def _read_answer(self, raw: RawRecord, message: Mapping[str, Any], blocks: list[Any]) -> Iterator[AgentEvent]:
        output, tokens = _ModelOutput(), read_session_tokens(message.get("metrics"))
        for block in blocks:
            kind = block.get("type") if isinstance(block, dict) else None
            if kind == "text" and isinstance(block.get("text"), str):
                output.texts += [block["text"]] if block["text"] else []
            elif kind in ("thinking", "redacted_thinking"):
                thought = block.get("thinking")
                if isinstance(thought, str) and thought:
                    output.thoughts.append(thought)
                else:
                    output.redacted = True
                for name in ("signature", "data"):
                    if isinstance(signature := block.get(name), str) and signature:
                        output.signatures.append(signature)
            elif kind == "tool_use" and isinstance(block.get("id"), str) and block["id"]:
                yield from self._start_call(raw, message, block, output, tokens)
                output, tokens = _ModelOutput(), None
            else:
                yield self._build_unknown(raw, f"assistant {kind}", replace_images(block))
        if output or tokens is not None:
            fields = output.event_fields()
            summary = one_line(fields["text"]) or ("reasoning" if output else "an answer without words")
            key = self._message_key(raw, blocks)
            # Cline writes its own error message in place of an answer that did not come.
            metadata = message.get("metadata")
            status = "failure" if isinstance(metadata, Mapping) and metadata.get("displayRole") == "error" else None
            yield self._build_event(raw, message, "answer", key, summary, tokens=tokens, status=status, **fields)

    def _start_call(
        self, raw: RawRecord, message: Mapping[str, Any], block: Any, output: _ModelOutput, tokens: Tokens | None
    ) -> Iterator[AgentEvent]:
        call, summary = start_call(str(block.get("name") or "unnamed"), block["id"], block.get("input"))
        if (other := self._unanswered_calls.pop(call.id)) is not None:
            # Two calls have the same id. The next result belongs to the second, so the first stays without one.
            yield other
        key = self._reserve_key(call.id)
        event = self._build_event(raw, message, "call", key, summary, tokens=tokens, **output.event_fields())
        self._unanswered_calls.add(call.id, replace(event, call=call, status="pending"), raw.place)

    def _finish_call(self, raw: RawRecord, message: Mapping[str, Any], block: Mapping[str, Any]) -> AgentEvent:
        event = self._unanswered_calls.pop(str(block.get("tool_use_id")))
        if event is None or event.call is None:
            return self._build_unknown(raw, "the result of no known call", replace_images(dict(block)))
        call, effects = finish_call(event.call, block.get("content"), failed=block.get("is_error") is True)
        return replace(
            event,
            call=call,
            status=None,
            summary=f"{event.summary} {format_line_counts(call.diff)}" if call.diff else event.summary,
            side_effects=effects,
            duration_ms=ms_between(event.at, message_time(message)),
            places=(*event.places, raw.place),
        )

    # --- for all records

    def _build_event(
        self, raw: RawRecord, message: Mapping[str, Any], what: Any, key: str, summary: str, **more: Any
    ) -> AgentEvent:
        info = {"prompt": self._prompt, "model": self._model, **more}
        name = message.get("id")
        environment = self._environment | ({"message_id": name} if isinstance(name, str) and name else {})
        places = (raw.place,)
        return AgentEvent(
            what=what,
            key=key,
            summary=summary,
            at=message_time(message),
            environment=environment,
            places=places,
            **info,
        )

    def _build_unknown(self, raw: RawRecord, kind: str, record: Any) -> AgentEvent:
        kept = raw.data.decode("utf-8", "replace") if record is UNREADABLE else record
        return build_unknown_event(raw.place, kind, kept, key=self._place_key(raw, raw.sha256[:16]))

    def _message_key(self, raw: RawRecord, blocks: list[Any]) -> str:
        return self._place_key(raw, _short_digest(repr(blocks)))

    def _place_key(self, raw: RawRecord, digest: str) -> str:
        """Return the key of a record without an id. An agent's file counts from 0 again, so its id is added."""
        place = raw.place.removeprefix("message:")
        return self._reserve_key(f"{self._agent}:at-{place}-{digest}" if self._agent else f"at-{place}-{digest}")

    def _reserve_key(self, key: str) -> str:
        """Return the key, with a number if an earlier event has it."""
        fresh = key
        while fresh in self._keys:
            self._keys[key] += 1
            fresh = f"{key}~{self._keys[key]}"
        self._keys[fresh] = 1
        return fresh


def _short_digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]

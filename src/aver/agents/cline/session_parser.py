"""Cline from version 4 on, and its command line: sessions instead of tasks, where they are and how they are read.

    <sessions>/<session>/<session>.messages.json   what went to the model and came back: rewritten at every message
    <sessions>/<session>/<session>.json            what the session is: model, directory, title, how it ended
    <sessions>/<session>/<agent>.messages.json     the same of an agent that it launched

`<sessions>` is `CLINE_SESSION_DATA_DIR`, `CLINE_DATA_DIR/sessions`, `CLINE_DIR/data/sessions` or
`~/.cline/data/sessions`, whichever is set first.

A record is an element of the list of messages, as it stands: `message:<index>`; and `manifest` and `system_prompt`.
The last answer is given once its tokens are counted, another message follows it, or the session has ended.

What the messages of a Cline session say (see `cline_sessions`).

A call is told when its result has come, with what the model said and thought before it (`cline_tools`). Whether a
person was asked is not kept, so nobody is said to have allowed anything.

Keys: a call's is its id. Messages have ids, too, but these may be given anew; so what was said goes by the place of its
message and the digest of what it says.
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
from aver.files.regular import read_if_regular
from aver.files.user_dirs import UserEnvironment
from aver.ingest.attachments import digest_reference, replace_images
from aver.ingest.contract import (
    AgentCall,
    AgentEvent,
    Prompt,
    RawRecord,
    Tokens,
    TranscriptSource,
    build_unknown_event,
    record_from_bytes,
)
from aver.ingest.diffs import format_line_counts
from aver.ingest.foreign_json import UNREADABLE, ms_between, parse_json, split_array, split_object
from aver.ingest.json_lines import FileStatus, is_settled, read_file_status

MESSAGES_SUFFIX, MANIFEST, SYSTEM_PROMPT = ".messages.json", "manifest", "system_prompt"

FILE_MAX = 512 * 1024 * 1024
"""Bytes of a file that are read: a list has to be held whole to be read."""

MANIFEST_MAX = 16 * 1024 * 1024

_INFO_FIELDS = ("source", "provider", "model", "cwd", "workspace_root", "team_name", "interactive")
_RUNNING = "running"


def sessions_dir(around: UserEnvironment) -> Path:
    """The directory that holds all sessions."""
    told = around.environment.get
    if own := told("CLINE_SESSION_DATA_DIR"):
        return Path(own)
    if data := told("CLINE_DATA_DIR"):
        return Path(data) / "sessions"
    cline = told("CLINE_DIR")
    return (Path(cline) if cline else around.home / ".cline") / "data" / "sessions"


def locate_sessions(directory: Path, tool: str) -> Iterator[TranscriptSource]:
    for path in sorted(directory.glob(f"*/*{MESSAGES_SUFFIX}")):
        session, name = path.parent.name, path.name.removesuffix(MESSAGES_SUFFIX)
        agent = "" if name == session else name
        stamp = f"{read_file_status(path)};{read_file_status(_manifest_path(path))}"
        yield TranscriptSource(tool=tool, session=session, path=path, agent=agent, appends=False, stamp=stamp)


def session_info(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """What is worth telling of a session, and does not change with every message."""
    metadata = manifest.get("metadata")
    title = metadata.get("title") if isinstance(metadata, Mapping) else None
    status = manifest.get("status")
    told = {
        **{name: manifest.get(name) for name in _INFO_FIELDS},
        "title": title,
        "status": None if status == _RUNNING else status,
    }
    return {name: value for name, value in told.items() if isinstance(value, str | bool) and value != ""}


class SessionReader:
    """Reads the messages of a session, or of one of its agents: which of them were given."""

    started_anew = False
    """A list that is rewritten has no beginning to start from again: its elements are told apart."""
    unfinished = 0

    def __init__(self, source: TranscriptSource) -> None:
        self._path = source.path
        self._is_agent = bool(source.agent)
        self._read: FileStatus | None = None
        self._file: dict[str, bytes] = {}
        self._told: dict[int, bytes] = {}
        self._given: set[tuple[str, str]] = set()

    def __call__(self) -> Iterator[RawRecord]:
        """What is new; nothing while the file is not whole."""
        if not self._refresh():
            return
        data = read_if_regular(_manifest_path(self._path), MANIFEST_MAX)
        manifest = parse_json(data) if data else None
        facts: Mapping[str, Any] = manifest if isinstance(manifest, dict) else {}
        if data and facts and not self._is_agent and self._is_new(MANIFEST, str(session_info(facts))):
            yield record_from_bytes(MANIFEST, data)
        if (prompt := self._file.get(SYSTEM_PROMPT)) and self._is_new(
            SYSTEM_PROMPT, record_from_bytes("", prompt).sha256
        ):
            yield record_from_bytes(SYSTEM_PROMPT, prompt)
        listed = split_array(self._file.get("messages", b"[]")) or []
        for index, text in enumerate(listed):
            if self._told.get(index) == text:
                continue  # Most of them, each time that the file is written.
            place, message = f"message:{index}", parse_json(text)
            followed = index + 1 < len(listed)
            if not followed and not _is_final(message, runs=facts.get("status") == _RUNNING):
                return
            self._told[index] = text
            # What tells a message from another that takes its place: what it says. Ids, times and counts may come
            # later.
            if not isinstance(message, dict):
                message_identity = record_from_bytes("", text).sha256
            else:
                message_identity = record_from_bytes(
                    "", repr((message.get("role"), message.get("content"))).encode("utf-8", "surrogatepass")
                ).sha256
            if self._is_new(place, message_identity):
                yield record_from_bytes(place, text)

    def _refresh(self) -> bool:
        """Whether what the file holds is known; it is read only where it has changed."""
        status = read_file_status(self._path)
        if status is None:
            return False
        if status != self._read:
            found = split_object(read_if_regular(self._path, FILE_MAX) or b"")
            if found is None:
                return False
            self._file, self._read = found, status if is_settled([status]) else None
        return True

    def _is_new(self, sort: str, identity: str) -> bool:
        if (sort, identity) in self._given:
            return False
        self._given.add((sort, identity))
        return True


def _is_final(message: Any, *, runs: bool) -> bool:
    if not runs or not isinstance(message, dict) or message.get("role") != "assistant":
        return True
    return isinstance(message.get("metrics"), dict)


def _manifest_path(messages: Path) -> Path:
    return messages.with_name(f"{messages.parent.name}.json")


_USER_INPUT = re.compile(r"\A\s*<user_input\b[^>]*>(.*)</user_input>\s*\Z", re.DOTALL)


@dataclass(slots=True)
class _UnansweredCall:
    """A call whose result has not come."""

    event: AgentEvent
    call: AgentCall


@dataclass(slots=True)
class _ModelOutput:
    """What the model said and thought in a message, and what was not told yet."""

    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    signatures: list[str] = field(default_factory=list)
    redacted: bool = False

    def facts(self) -> dict[str, Any]:
        return {
            "text": "\n".join(self.texts),
            "thinking": "\n".join(self.thoughts),
            "signatures": tuple(self.signatures),
            "redacted": self.redacted,
        }

    def __bool__(self) -> bool:
        return bool(self.texts or self.thoughts or self.signatures or self.redacted)


class SessionParser:
    """What has been read of one session."""

    def __init__(self, source: TranscriptSource) -> None:
        self._agent = source.agent
        self._prompt: Prompt | None = None
        self._begun: dict[str, _UnansweredCall] = {}
        self._environment: dict[str, Any] = {}
        self._model: str | None = None
        self._keys: dict[str, int] = {}

    def feed(self, raw: RawRecord) -> Iterator[AgentEvent]:
        record = parse_json(raw)
        if raw.place == MANIFEST and isinstance(record, dict):
            face = session_info(record)
            title, manifest_model = face.pop("title", None), face.get("model")
            self._environment = {name: face[name] for name in ("cwd", "provider") if name in face}
            self._model = manifest_model if isinstance(manifest_model, str) else self._model
            about = ", ".join(one_line(str(face[name])) for name in ("source", "status") if name in face)
            yield AgentEvent(
                what="session",
                key=self._reserve_key(f"session-{_short_digest(f'{face}{title}')}"),
                summary=f"session of Cline: {about}",
                at=None if not isinstance(started := record.get("started_at"), str) else started,
                model=self._model,
                environment=face,
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
            tell = self._read_answer if record["role"] == "assistant" else self._read_user_message
            yield from tell(raw, record, blocks)
        else:
            yield self._build_unknown(raw, "message", record)

    def finish(self) -> Iterator[AgentEvent]:
        for begun in self._begun.values():
            yield replace(begun.event, call=begun.call, status="pending")
        self._begun.clear()

    # --- what messages say

    def _read_user_message(self, raw: RawRecord, message: Mapping[str, Any], blocks: list[Any]) -> Iterator[AgentEvent]:
        texts, beside = list[str](), list[Any]()
        for block in blocks:
            sort = block.get("type") if isinstance(block, dict) else None
            if sort == "tool_result":
                yield self._finish_call(raw, message, block)
            elif sort == "text" and isinstance(block.get("text"), str):
                texts.append(block["text"])
            elif sort == "file" and isinstance(block.get("content"), str):
                beside.append({"file": block.get("path"), **digest_reference(block["content"])})
            else:
                beside.append(replace_images(block))
        if not texts and not beside:
            return
        text = "\n".join(texts)
        unwrapped = _USER_INPUT.match(text)
        text = unwrapped[1].strip("\n") if unwrapped else text
        key = self._message_key(raw, blocks)
        self._prompt = Prompt(key=key, text=text)
        result = beside or None
        yield self._build_event(
            raw, message, "prompt", key, f"prompt: {one_line(text)}", text=text, result=result, prompt=None
        )

    def _read_answer(self, raw: RawRecord, message: Mapping[str, Any], blocks: list[Any]) -> Iterator[AgentEvent]:
        said, tokens = _ModelOutput(), read_session_tokens(message.get("metrics"))
        for block in blocks:
            sort = block.get("type") if isinstance(block, dict) else None
            if sort == "text" and isinstance(block.get("text"), str):
                said.texts += [block["text"]] if block["text"] else []
            elif sort in ("thinking", "redacted_thinking"):
                thought = block.get("thinking")
                if isinstance(thought, str) and thought:
                    said.thoughts.append(thought)
                else:
                    said.redacted = True
                for name in ("signature", "data"):
                    if isinstance(signature := block.get(name), str) and signature:
                        said.signatures.append(signature)
            elif sort == "tool_use" and isinstance(block.get("id"), str) and block["id"]:
                yield from self._start_call(raw, message, block, said, tokens)
                said, tokens = _ModelOutput(), None
            else:
                yield self._build_unknown(raw, f"assistant {sort}", replace_images(block))
        if said or tokens is not None:
            facts = said.facts()
            summary = one_line(facts["text"]) or ("reasoning" if said else "an answer without words")
            key = self._message_key(raw, blocks)
            # Whether Cline speaks in the model's place, and says that no answer came.
            metadata = message.get("metadata")
            error_message = isinstance(metadata, Mapping) and metadata.get("displayRole") == "error"
            status = "failure" if error_message else None
            yield self._build_event(raw, message, "answer", key, summary, tokens=tokens, status=status, **facts)

    def _start_call(
        self, raw: RawRecord, message: Mapping[str, Any], block: Any, said: _ModelOutput, tokens: Tokens | None
    ) -> Iterator[AgentEvent]:
        call, summary = start_call(str(block.get("name") or "unnamed"), block["id"], block.get("input"))
        if (other := self._begun.pop(call.id, None)) is not None:  # Its result will not be known from this one's.
            yield replace(other.event, call=other.call, status="pending")
        key = self._reserve_key(call.id)
        event = self._build_event(raw, message, "call", key, summary, tokens=tokens, **said.facts())
        self._begun[call.id] = _UnansweredCall(event, call)

    def _finish_call(self, raw: RawRecord, message: Mapping[str, Any], block: Mapping[str, Any]) -> AgentEvent:
        begun = self._begun.pop(str(block.get("tool_use_id")), None)
        if begun is None:
            return self._build_unknown(raw, "the result of no known call", replace_images(dict(block)))
        call, effects = finish_call(begun.call, block.get("content"), failed=block.get("is_error") is True)
        return replace(
            begun.event,
            call=call,
            summary=f"{begun.event.summary} {format_line_counts(call.diff)}" if call.diff else begun.event.summary,
            side_effects=effects,
            duration_ms=ms_between(begun.event.at, message_time(message)),
            places=(*begun.event.places, raw.place),
        )

    # --- all of them

    def _build_event(
        self, raw: RawRecord, message: Mapping[str, Any], what: Any, key: str, summary: str, **more: Any
    ) -> AgentEvent:
        facts = {"prompt": self._prompt, "model": self._model, **more}
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
            **facts,
        )

    def _build_unknown(self, raw: RawRecord, sort: str, record: Any) -> AgentEvent:
        kept = raw.data.decode("utf-8", "replace") if record is UNREADABLE else record
        return build_unknown_event(raw.place, sort, kept, key=self._place_key(raw, raw.sha256[:16]))

    def _message_key(self, raw: RawRecord, blocks: list[Any]) -> str:
        return self._place_key(raw, _short_digest(repr(blocks)))

    def _place_key(self, raw: RawRecord, digest: str) -> str:
        """Agents share the keys of their session, and have messages of their own."""
        place = raw.place.removeprefix("message:")
        return self._reserve_key(f"{self._agent}:at-{place}-{digest}" if self._agent else f"at-{place}-{digest}")

    def _reserve_key(self, key: str) -> str:
        """The key, if nothing was told under it yet; otherwise with a number."""
        fresh = key
        while fresh in self._keys:
            self._keys[key] += 1
            fresh = f"{key}~{self._keys[key]}"
        self._keys[fresh] = 1
        return fresh


def _short_digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]

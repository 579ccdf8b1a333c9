"""What the messages of a Cline session say (see `cline_sessions`).

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
from typing import Any

from aver.ingest.cline_sessions import MANIFEST, SYSTEM_PROMPT, face_of
from aver.ingest.cline_tools import call_begun, call_ended, line_of
from aver.ingest.cline_values import at, listed, tokens_of_answer
from aver.ingest.contract import Raw, Source
from aver.ingest.deed import Call, Deed, Prompt, Tokens, unknown
from aver.ingest.diffs import tally
from aver.ingest.heavy import reference, without_pictures
from aver.ingest.records import UNREADABLE, parsed
from aver.ingest.times import ms_between

__all__ = ["SessionTurn"]

_WRAPPED = re.compile(r"\A\s*<user_input\b[^>]*>(.*)</user_input>\s*\Z", re.DOTALL)


@dataclass(slots=True)
class _Begun:
    """A call whose result has not come."""

    deed: Deed
    call: Call


@dataclass(slots=True)
class _Said:
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


class SessionTurn:
    """What has been read of one session."""

    def __init__(self, source: Source) -> None:
        self._agent = source.agent
        self._prompt: Prompt | None = None
        self._begun: dict[str, _Begun] = {}
        self._environment: dict[str, Any] = {}
        self._model: str | None = None
        self._keys: dict[str, int] = {}

    def take(self, raw: Raw) -> Iterator[Deed]:
        record = parsed(raw)
        if raw.place == MANIFEST and isinstance(record, dict):
            yield from self._session(raw, record)
        elif raw.place == SYSTEM_PROMPT and isinstance(record, str):
            key, kept = self._placed(raw, raw.sha256[:16]), {"text": record, **reference(record)}
            yield Deed(what="note", key=key, summary="system prompt", result=kept, places=(raw.place,))
        elif isinstance(record, dict) and _is_said(record):
            blocks = record.get("content")
            blocks = [{"type": "text", "text": blocks}] if isinstance(blocks, str) else listed(blocks)
            self._model = _model_in(record) or self._model
            tell = self._answered if record["role"] == "assistant" else self._asked
            yield from tell(raw, record, blocks)
        else:
            yield self._unknown(raw, "message", record)

    def end(self) -> Iterator[Deed]:
        for begun in self._begun.values():
            yield replace(begun.deed, call=begun.call, status="pending")
        self._begun.clear()

    # --- what messages say

    def _session(self, raw: Raw, manifest: Mapping[str, Any]) -> Iterator[Deed]:
        face = face_of(manifest)
        title, model = face.pop("title", None), face.get("model")
        self._environment = {name: face[name] for name in ("cwd", "provider") if name in face}
        self._model = model if isinstance(model, str) else self._model
        about = ", ".join(line_of(str(face[name])) for name in ("source", "status") if name in face)
        yield Deed(
            what="session",
            key=self._fresh(f"session-{_digest(f'{face}{title}')}"),
            summary=f"session of Cline: {about}",
            at=None if not isinstance(started := manifest.get("started_at"), str) else started,
            model=self._model,
            environment=face,
            title=title if isinstance(title, str) else None,
            places=(raw.place,),
        )

    def _asked(self, raw: Raw, message: Mapping[str, Any], blocks: list[Any]) -> Iterator[Deed]:
        texts, beside = list[str](), list[Any]()
        for block in blocks:
            sort = block.get("type") if isinstance(block, dict) else None
            if sort == "tool_result":
                yield self._finished(raw, message, block)
            elif sort == "text" and isinstance(block.get("text"), str):
                texts.append(block["text"])
            elif sort == "file" and isinstance(block.get("content"), str):
                beside.append({"file": block.get("path"), **reference(block["content"])})
            else:
                beside.append(without_pictures(block))
        if not texts and not beside:
            return
        text = "\n".join(texts)
        unwrapped = _WRAPPED.match(text)
        text = unwrapped[1].strip("\n") if unwrapped else text
        key = self._said_key(raw, blocks)
        self._prompt = Prompt(key=key, text=text)
        result = beside or None
        yield self._deed(raw, message, "prompt", key, f"prompt: {line_of(text)}", text=text, result=result, prompt=None)

    def _answered(self, raw: Raw, message: Mapping[str, Any], blocks: list[Any]) -> Iterator[Deed]:
        said, tokens = _Said(), tokens_of_answer(message.get("metrics"))
        for block in blocks:
            sort = block.get("type") if isinstance(block, dict) else None
            if sort == "text" and isinstance(block.get("text"), str):
                said.texts += [block["text"]] if block["text"] else []
            elif sort in ("thinking", "redacted_thinking"):
                _think(said, block)
            elif sort == "tool_use" and isinstance(block.get("id"), str) and block["id"]:
                yield from self._begin(raw, message, block, said, tokens)
                said, tokens = _Said(), None
            else:
                yield self._unknown(raw, f"assistant {sort}", without_pictures(block))
        if said or tokens is not None:
            facts = said.facts()
            summary = line_of(facts["text"]) or ("reasoning" if said else "an answer without words")
            key = self._said_key(raw, blocks)
            status = "failure" if _is_error(message) else None
            yield self._deed(raw, message, "answer", key, summary, tokens=tokens, status=status, **facts)

    def _begin(
        self, raw: Raw, message: Mapping[str, Any], block: Any, said: _Said, tokens: Tokens | None
    ) -> Iterator[Deed]:
        call, summary = call_begun(str(block.get("name") or "unnamed"), block["id"], block.get("input"))
        if (other := self._begun.pop(call.id, None)) is not None:  # Its result will not be known from this one's.
            yield replace(other.deed, call=other.call, status="pending")
        key = self._fresh(call.id)
        deed = self._deed(raw, message, "call", key, summary, tokens=tokens, **said.facts())
        self._begun[call.id] = _Begun(deed, call)

    def _finished(self, raw: Raw, message: Mapping[str, Any], block: Mapping[str, Any]) -> Deed:
        begun = self._begun.pop(str(block.get("tool_use_id")), None)
        if begun is None:
            return self._unknown(raw, "the result of no known call", without_pictures(dict(block)))
        call, effects = call_ended(begun.call, block.get("content"), failed=block.get("is_error") is True)
        return replace(
            begun.deed,
            call=call,
            summary=f"{begun.deed.summary} {tally(call.diff)}" if call.diff else begun.deed.summary,
            side_effects=effects,
            duration_ms=ms_between(begun.deed.at, at(message)),
            places=(*begun.deed.places, raw.place),
        )

    # --- all of them

    def _deed(self, raw: Raw, message: Mapping[str, Any], what: Any, key: str, summary: str, **more: Any) -> Deed:
        facts = {"prompt": self._prompt, "model": self._model, **more}
        name = message.get("id")
        environment = self._environment | ({"message_id": name} if isinstance(name, str) and name else {})
        places = (raw.place,)
        return Deed(
            what=what, key=key, summary=summary, at=at(message), environment=environment, places=places, **facts
        )

    def _unknown(self, raw: Raw, sort: str, record: Any) -> Deed:
        kept = raw.data.decode("utf-8", "replace") if record is UNREADABLE else record
        return unknown(raw.place, sort, kept, key=self._placed(raw, raw.sha256[:16]))

    def _said_key(self, raw: Raw, blocks: list[Any]) -> str:
        return self._placed(raw, _digest(repr(blocks)))

    def _placed(self, raw: Raw, digest: str) -> str:
        """Agents share the keys of their session, and have messages of their own."""
        place = raw.place.removeprefix("message:")
        return self._fresh(f"{self._agent}:at-{place}-{digest}" if self._agent else f"at-{place}-{digest}")

    def _fresh(self, key: str) -> str:
        """The key, if nothing was told under it yet; otherwise with a number."""
        fresh = key
        while fresh in self._keys:
            self._keys[key] += 1
            fresh = f"{key}~{self._keys[key]}"
        self._keys[fresh] = 1
        return fresh


def _is_said(message: Mapping[str, Any]) -> bool:
    return message.get("role") in ("user", "assistant") and isinstance(message.get("content"), str | list | None)


def _think(said: _Said, block: Mapping[str, Any]) -> None:
    thought = block.get("thinking")
    if isinstance(thought, str) and thought:
        said.thoughts.append(thought)
    else:
        said.redacted = True
    for name in ("signature", "data"):
        if isinstance(signature := block.get(name), str) and signature:
            said.signatures.append(signature)


def _is_error(message: Mapping[str, Any]) -> bool:
    """Whether Cline speaks in the model's place, and says that no answer came."""
    metadata = message.get("metadata")
    return isinstance(metadata, Mapping) and metadata.get("displayRole") == "error"


def _model_in(message: Mapping[str, Any]) -> str | None:
    info = message.get("modelInfo")
    name = info.get("id") if isinstance(info, Mapping) else None
    return name if isinstance(name, str) and name else None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]

"""Handles: names for secrets, in the place of the secrets themselves.

An agent needs to move a secret, and seldom needs to see it. In the answers of `act`, a secret is replaced by a handle:

    {"content": "DATABASE_URL=h_5pB0wqv3mXo1TfWmDk2c9A\\n"}

Two sorts of values are of high sensitivity (HIGH): a text at a guarded secret path, such as `.env` or `~/.ssh/id_rsa`,
as a whole; and each part of any other text that has the form of a secret (`aver.capsule.masking`). Bytes that are no
text come in base64: with a secret inside, they are behind one handle as a whole.

A handle belongs to one session and one caller, and is good for ten minutes. The values are in the memory of the gateway
alone: no record and no file has them. An agent can use a handle in one way: in the content of a file that it writes in
the workspace, where the executor puts the secret back. A handle in any other input, also inside of a text, is
`HIGH_HANDLE_BLOCKED`. `Declassify` gives the value out, after a person has approved that very handle and purpose.

A value that went back into a file is remembered as long as the gateway lives. It gets a handle wherever an answer has
it, also where it has no form of a secret: else an agent would write it to a file of its own, and read that.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

from aver.capsule.masking.mask import mask_part
from aver.errors import Refused
from aver.gateway.request import BoundRequest
from aver.lazy_pattern import lazy_pattern
from aver.log import debug

HANDLE_SECONDS = 600.0
"""How long a handle is good."""

HANDLES_MAX = 10_000
"""Handles of one gateway. The oldest go first."""

RANDOM_DIGITS, MARK_DIGITS = 16, 6
"""Characters of a handle: 96 random bits in base64url, which nobody guesses, and the store's mark of them.

By the mark, a handle that has expired is told from a long name in a program, such as `path_to_the_settings_of_ada`.
"""

SECRETS_MAX = 500
"""Most secrets of one answer that get handles. With more, `TOO_MANY` stands in the place of each: a page of ten
thousand made-up keys must not keep a gateway busy, nor push the handles of others out."""

TOO_MANY = "[masked:many]"

WRITTEN_MAX = 1000
"""Most texts that went back into files and are remembered. With more, no value goes back: a forgotten one would
show."""

WRITTEN_TEXT_MIN, WRITTEN_LINE_MIN = 4, 8
"""Fewest characters of a value, and of a line of a value, that are remembered. Shorter ones are in every text."""

# Looks ahead, so that it also finds a handle right after another `h_`.
_HANDLE = lazy_pattern(rf"(?=(h_[A-Za-z0-9_-]{{{RANDOM_DIGITS + MARK_DIGITS}}}))")
_MASKED = lazy_pattern(r"\[masked:[a-z0-9_-]+\]")
_BASE64 = lazy_pattern(r"[A-Za-z0-9+/]{16,}={0,2}")

_WRITE, _CONTENT = "WriteWorkspaceFile", "content"
"""The one intent and input in which a handle may stand: the secret goes back to where it came from."""

DECLASSIFY = "Declassify"


class HeldValue(NamedTuple):
    """A value behind a handle."""

    value: str
    session: str
    caller: str
    label: str
    """Where it came from: the intent that read it."""
    expires: float


class HandleStore:
    """The handles of one gateway. Safe to use from several threads."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._key = secrets.token_bytes(32)
        self._held: dict[str, HeldValue] = {}
        self._written: set[str] = set()
        """The values that went back into files, and their longer lines."""
        self._lock = threading.Lock()

    def hold(self, value: str, *, session: str, caller: str, label: str) -> str:
        """Keep a value, and return a handle for it. The same value has one handle in a session and for a caller."""
        now = self._clock()
        with self._lock:
            self._forget(now)
            for handle, held in self._held.items():
                if (held.value, held.session, held.caller) == (value, session, caller):
                    self._held[handle] = held._replace(expires=now + HANDLE_SECONDS)
                    return handle
            random = secrets.token_urlsafe(RANDOM_DIGITS * 6 // 8)
            handle = f"h_{random}{self._mark(random)}"
            self._held[handle] = HeldValue(value, session, caller, label, now + HANDLE_SECONDS)
        return handle

    def _mark(self, random: str) -> str:
        digest = hmac.digest(self._key, random.encode("ascii"), "sha256")
        return base64.urlsafe_b64encode(digest)[:MARK_DIGITS].decode("ascii")

    def _find_own(self, text: str) -> Iterator[tuple[int, str]]:
        """Return the place of each handle in a text that this store gave out at any time, and the handle."""
        for match in _HANDLE.finditer(text):
            random, mark = match[1][2:][:RANDOM_DIGITS], match[1][-MARK_DIGITS:]
            if hmac.compare_digest(mark, self._mark(random)):
                yield match.start(), match[1]

    def _forget(self, now: float) -> None:
        for handle in [name for name, held in self._held.items() if held.expires <= now]:
            del self._held[handle]
        while len(self._held) >= HANDLES_MAX:
            del self._held[next(iter(self._held))]

    def find(self, handle: str, *, session: str, caller: str) -> HeldValue:
        """Return the value behind a handle. Raises `Refused` with `HANDLE_INVALID`."""
        with self._lock:
            self._forget(self._clock())
            held = self._held.get(handle)
        if held is None or (held.session, held.caller) != (session, caller):
            debug("gateway", "refused a handle: %s", "unknown" if held is None else "of another session or caller")
            raise Refused("HANDLE_INVALID", "no such handle: it has expired, or belongs to another session or caller")
        return held

    def cover(self, value: Any, *, session: str, caller: str, label: str) -> Any:
        """Return a JSON value with a handle in the place of each part that has the form of a secret.

        What went back into files comes first: a rule may see only a part of it as a secret.
        """
        hold: Callable[[str], str] = partial(self.hold, session=session, caller=caller, label=label)
        value = self._cover_written(value, hold)
        masked = mask_part(value, set())
        if masked.count > SECRETS_MAX:
            debug("gateway", "an answer has %d secrets: they get no handles", masked.count)
            hold = _hold_nothing
        # `password=h_3GPi…` sounds secret, too.
        return _cover_part(value, masked.value, lambda text: text if self._is_own(text) else hold(text))

    def _is_own(self, text: str) -> bool:
        return next(iter(self._find_own(text)), None) == (0, text)

    def _cover_written(self, value: Any, hold: Callable[[str], str]) -> Any:
        """Return a JSON value with handles also for what went back into files."""
        with self._lock:
            written = sorted(self._written, key=len, reverse=True)
        if not written:
            return value
        pattern = re.compile("|".join(map(re.escape, written)))

        def cover_text(text: str) -> str:
            if any(pattern.search(view) for view in _decode_base64(text)):
                return hold(text)
            parts, end = list[str](), 0
            for start, handle in [*self._find_own(text), (len(text), "")]:
                if start < end:  # It lies in the handle before it.
                    continue
                parts += (pattern.sub(lambda match: hold(match[0]), text[end:start]), handle)
                end = start + len(handle)
            return "".join(parts)

        return _map_texts(value, cover_text)

    def restore(self, text: str, *, session: str, caller: str) -> str:
        """Put the values back into a text that goes to a file of the workspace. Raises `Refused`."""
        parts, end, values = list[str](), 0, set[str]()
        for start, handle in self._find_own(text):
            value = self.find(handle, session=session, caller=caller).value
            values.add(value)
            parts += (text[end:start], value)
            end = start + len(handle)
        self._remember(values)
        return "".join((*parts, text[end:]))

    def _remember(self, values: set[str]) -> None:
        """Remember values that go back into a file. Raises `Refused` where there are too many."""
        lines = {line.strip() for value in values for line in value.splitlines()}
        texts = {value.strip() for value in values}
        new = {text for text in texts if len(text) >= WRITTEN_TEXT_MIN}
        new |= {line for line in lines if len(line) >= WRITTEN_LINE_MIN}
        with self._lock:
            if len(self._written | new) > WRITTEN_MAX:
                raise Refused("HIGH_HANDLE_BLOCKED", f"more than {WRITTEN_MAX} lines of secrets went back into files")
            self._written |= new

    def check_inputs(self, request: BoundRequest, *, can_restore: bool) -> None:
        """Raise `Refused` if an input has a handle where none may stand.

        `can_restore`: the executor is in this process, and can put a value back into a file.
        """
        if request.intent_id == DECLASSIFY:
            self.find(request.inputs["handle"], session=request.session, caller=request.caller)
        for name, text in ((name, text) for name, value in request.inputs.items() for text in _list_texts(value)):
            if request.intent_id == DECLASSIFY and name == "handle":
                continue
            for _, handle in self._find_own(text):
                if request.intent_id == _WRITE and name == _CONTENT and can_restore:
                    self.find(handle, session=request.session, caller=request.caller)
                    continue
                words = f"inputs.{name} has the handle of a secret, which may only go back into a file of the workspace"
                raise Refused("HIGH_HANDLE_BLOCKED", words)


def _list_texts(value: Any) -> Iterator[str]:
    """Return every text in a JSON value. Keys of objects are texts, too."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, Mapping):
            stack += [*item.keys(), *item.values()]
        elif isinstance(item, (list, tuple)):
            stack += item


def _hides_secret(text: str) -> bool:
    """Whether a text is base64 as a whole, and a secret is in the bytes."""
    return any(mask_part(view, set()).by_rule for view in _decode_base64(text))


def _decode_base64(text: str) -> set[str]:
    """Return the bytes of a text that is base64 as a whole, read as text of one or two bytes a letter."""
    packed = "".join(text.split())
    if _BASE64.fullmatch(packed) is None:
        return set()
    try:
        data = base64.b64decode(packed)
    except binascii.Error:
        return set()
    return {data.decode("utf-8", "replace"), data.replace(b"\0", b"").decode("latin-1")}


def _map_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Return a JSON value whose texts are changed. Keys of objects are texts, too."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {change(key): _map_texts(each, change) for key, each in value.items()}
    return [_map_texts(each, change) for each in value] if isinstance(value, (list, tuple)) else value


def _hold_nothing(secret: str) -> str:
    return TOO_MANY


def _cover_part(value: Any, masked: Any, hold: Callable[[str], str]) -> Any:
    """Return a part of an answer with handles. `masked` is the same part without its secrets: it shows them."""
    if isinstance(value, str):
        if value == masked:
            return hold(value) if _hides_secret(value) else value
        return _cover_text(value, str(masked), hold)
    if isinstance(value, Mapping) and isinstance(masked, Mapping) and len(value) == len(masked):
        pairs = zip(value.items(), masked.items(), strict=True)
        return {
            _cover_part(key, masked_key, hold): _cover_part(each, masked_each, hold)
            for (key, each), (masked_key, masked_each) in pairs
        }
    if isinstance(value, (list, tuple)) and isinstance(masked, (list, tuple)) and len(value) == len(masked):
        return [_cover_part(*pair, hold) for pair in zip(value, masked, strict=True)]
    return value if value == masked else hold(json.dumps(value))


def _cover_text(text: str, masked: str, hold: Callable[[str], str]) -> str:
    """Return the words of the masked text, with a handle for each gap between them.

    Only words of the masked text are shown, so no secret can be left. A text that does not fit is held as a whole.
    """
    words = _MASKED.split(masked)
    parts, end = [words[0]], len(words[0])
    for number, word in enumerate(words[1:], 2):
        start = len(text) - len(word) if number == len(words) else text.find(word, end + 1)
        if start <= end or not text.startswith(word, start):
            return hold(text)
        parts += (hold(text[end:start]), word)
        end = start + len(word)
    return "".join(parts) if text.startswith(words[0]) and end == len(text) else hold(text)

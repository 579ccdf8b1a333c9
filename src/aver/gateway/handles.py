"""Handles: names for secrets, in the place of the secrets themselves.

An agent needs to move a secret, and seldom needs to see it. In the answers of `act`, a secret is replaced by a handle:

    {"content": "DATABASE_URL=h_5pB0wqv3mXo1TfWmDk2c9A\\n"}

Two sorts of values are of high sensitivity (HIGH): a text at a guarded secret path, such as `.env` or `~/.ssh/id_rsa`,
as a whole; and each part of any other text that has the form of a secret (`aver.capsule.masking`).

A handle belongs to one session and one caller, and is good for ten minutes. The values are in the memory of the gateway
alone: no record and no file has them. An agent can use a handle in one way: in the content of a file that it writes in
the workspace, where the executor puts the secret back. A handle in any other input, also inside of a text, is
`HIGH_HANDLE_BLOCKED`. `Declassify` gives the value out, after a person has approved that very handle and purpose.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
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

HANDLE_BYTES = 16
"""Random bytes of a handle: 22 characters in base64url. Nobody guesses one."""

SECRET_LENGTH_MIN = 4
"""Shortest secret that gets a handle. A shorter one would be found in many words that are no secret."""

_HANDLE = lazy_pattern(r"h_[A-Za-z0-9_-]{22}")

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
        self._held: dict[str, HeldValue] = {}
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
            handle = f"h_{secrets.token_urlsafe(HANDLE_BYTES)}"
            self._held[handle] = HeldValue(value, session, caller, label, now + HANDLE_SECONDS)
        return handle

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
        """Return a JSON value with a handle in the place of each part that has the form of a secret."""
        found: set[str] = set()
        mask_part(value, found)
        # The longest first: a secret may be a part of another one.
        known = sorted((each for each in found if len(each) >= SECRET_LENGTH_MIN), key=len, reverse=True)
        handles = {each: self.hold(each, session=session, caller=caller, label=label) for each in known}
        return _replace_all(value, handles) if handles else value

    def restore(self, text: str, *, session: str, caller: str) -> str:
        """Put the values back into a text that goes to a file of the workspace. Raises `Refused`."""
        return _HANDLE.sub(lambda match: self.find(match[0], session=session, caller=caller).value, text)

    def check_inputs(self, request: BoundRequest, *, can_restore: bool) -> None:
        """Raise `Refused` if an input has a handle where none may stand.

        `can_restore`: the executor is in this process, and can put a value back into a file.
        """
        if request.intent_id == DECLASSIFY:
            self.find(request.inputs["handle"], session=request.session, caller=request.caller)
        for name, text in _list_texts(request.inputs):
            if request.intent_id == DECLASSIFY and name == "handle":
                continue
            for handle in _HANDLE.findall(text):
                with self._lock:
                    is_held = handle in self._held
                if not is_held:
                    continue  # A text that only looks like one names no secret.
                if request.intent_id == _WRITE and name == _CONTENT and can_restore:
                    self.find(handle, session=request.session, caller=request.caller)
                    continue
                words = f"inputs.{name} has the handle of a secret, which may only go back into a file of the workspace"
                raise Refused("HIGH_HANDLE_BLOCKED", words)


def _list_texts(inputs: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Return every text in the inputs, with the name of the input. Keys of objects are texts, too."""
    for name, value in inputs.items():
        stack = [value]
        while stack:
            item = stack.pop()
            if isinstance(item, str):
                yield name, item
            elif isinstance(item, Mapping):
                stack += [*item.keys(), *item.values()]
            elif isinstance(item, (list, tuple)):
                stack += item


def _replace_all(value: Any, handles: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        for secret, handle in handles.items():
            value = value.replace(secret, handle)
        return value
    if isinstance(value, Mapping):
        return {_replace_all(key, handles): _replace_all(each, handles) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_replace_all(each, handles) for each in value]
    return value

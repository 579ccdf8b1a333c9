"""One hook, from its payload to its answer, whatever goes wrong on the way.

    reply = answer("claude-code", "PreToolUse", sys.stdin.buffer)

Where Aver cannot do its work, the person is told on stderr, the failure is remembered and sealed as soon as that works,
and the tool gets an answer all the same:

| what failed | an event that asks | an event that tells |
|---|---|---|
| the payload cannot be read or judged | denied | goes on |
| settings or ledger cannot be used, the decision cannot be sealed | denied; `on_failure = "open"`: goes on | goes on |
| no files or memory are left, or no time; a crash while the payload is judged | the same | goes on |
| any other crash of Aver's | goes on; `on_failure = "closed"`: denied | goes on |

With `on_failure = "closed"` an event that cannot be recorded also ends the agent's work, where the tool lets us. "Goes
on" is never an approval: the tool's own rules hold, as without Aver.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, BinaryIO

from aver.errors import AverError, BadInput, Unavailable
from aver.home import Config, home_dir, load_config
from aver.ingest.hooks.canary import canary_in, went_through
from aver.ingest.hooks.contract import Hook, Reading, Reply, Ruling, objects, text
from aver.ingest.hooks.settings import Settings, read_settings

if TYPE_CHECKING:
    from aver.gate.door import Answer
    from aver.ledger import Ledger

__all__ = ["PAYLOAD_MAX", "TOOLS", "answer", "hook_of"]

PAYLOAD_MAX = 64 * 1024 * 1024
"""Bytes of a payload, which holds what a tool read or wrote. A larger one is not looked into."""

TOOLS = {"claude-code": "claude_code", "codex": "codex", "cursor": "cursor", "cline": "cline"}
"""The module of each tool."""


def hook_of(tool: str) -> Hook:
    """A tool's hooks; `BadInput` where there is no such tool."""
    if tool not in TOOLS:
        raise BadInput(f"{tool!r} has no hooks that Aver knows", advice=f"known are {', '.join(TOOLS)}")
    found: Hook = import_module(f"aver.ingest.hooks.{TOOLS[tool]}").HOOK
    return found


def answer(tool: str, event: str, payload: bytes | BinaryIO) -> Reply:
    """Do what an event asks for, and give the answer. Only an unknown tool raises."""
    return _Event(hook_of(tool), event).answered(payload)


class _Event:
    """One event while it is dealt with: what is known of it so far, for whoever must tell that it failed."""

    def __init__(self, hook: Hook, event: str) -> None:
        self._hook = hook
        self._event = event
        self._raw = b""
        self._settings: Settings | None = None
        self._forbidden = False
        """Whether the gate has said no. Whatever fails after that, this holds."""

    def answered(self, payload: bytes | BinaryIO) -> Reply:
        try:
            return self._done(payload)
        except _UnreadableError as error:
            return self._failed(str(error), decides="deny")
        except (AverError, OSError, MemoryError, KeyboardInterrupt) as error:
            return self._failed(_words(error), decides="leave" if self._on_failure() == "open" else "deny")
        except Exception as error:  # noqa: BLE001 - a defect of ours must not become one of the agent's
            why = f"internal error: {_words(error)}"
            return self._failed(why, decides="deny" if self._on_failure() == "closed" else "leave")

    def _on_failure(self) -> str:
        """The setting, also where it was not read before something failed; empty where it cannot be read."""
        if self._settings is None:
            with suppress(Exception):
                self._settings = read_settings(load_config().hooks)
        return "" if self._settings is None else self._settings.on_failure

    def _done(self, payload: bytes | BinaryIO) -> Reply:
        self._raw = _taken(payload)
        said = _parsed(self._raw)
        config = load_config()
        self._settings = read_settings(config.hooks)
        reading = self._read(said)
        canary = canary_in(said)
        if reading.asks is None and not reading.deeds:
            return self._hook.done(self._event)
        with _ledger(config, canary) as ledger:
            ruling = self._ruled(ledger, reading, canary, self._settings)
            _recorded(ledger, self._hook.tool, reading)
            trouble = _made_good(ledger)
        reply = self._hook.done(self._event) if ruling is None else self._replied(ruling)
        return reply._replace(err=went_through(canary) if canary else trouble)

    def _read(self, said: Mapping[str, Any]) -> Reading:
        try:
            with _judging():
                return self._hook.read(self._event, said)
        except BadInput as error:  # What is asked is no action that could be judged.
            raise _UnreadableError(str(error)) from error

    def _ruled(self, ledger: Ledger, reading: Reading, canary: str, settings: Settings) -> Ruling | None:
        if reading.asks is None:
            return None
        from aver.gate.door import judge
        from aver.ingest.hooks.asking import own_hints

        with _judging():
            ruling = _ruling(judge(ledger, reading.asks, annotations=own_hints(reading.asks.tool)), settings)
        self._forbidden = ruling.word in ("ask", "deny")
        return ruling._replace(reason=f"{canary}: {ruling.reason}") if canary else ruling

    def _replied(self, ruling: Ruling) -> Reply:
        reply = self._hook.reply(self._event, ruling)
        return reply._replace(forbids=ruling.word in ("ask", "deny"))

    def _failed(self, why: str, *, decides: str) -> Reply:
        hook, event = self._hook, self._event
        asks = event in hook.gating
        denied = asks and (decides == "deny" or self._forbidden)
        consequence = "it is denied" if denied else "the tool goes on by its own rules"
        words = f"aver: the hook {hook.tool} {event} failed: {why}; {consequence if asks else 'this is not recorded'}"
        self._remember(why)
        if denied:
            reply = self._replied(Ruling("deny", f"Permission denied by hook: Aver cannot judge this: {why}"))
        elif not asks and self._on_failure() == "closed":
            reply = hook.stop(event, f"Aver cannot record this: {why}")
        else:
            reply = hook.failed(event, words)
        return reply._replace(err=words)

    def _remember(self, why: str) -> None:
        with suppress(Exception):  # It is said on stderr in any case.
            from aver.ingest.hooks.failures import remember

            session, call = _whose(self._raw)
            remember(home_dir(), self._hook.tool, self._event, session, why, self._raw, call)


def _words(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return str(error) or "it was interrupted"
    return str(error) if isinstance(error, AverError) else f"{type(error).__name__}: {error}"


_SESSIONS = ("session_id", "conversation_id", "taskId", "thread-id")
_CALLS = ("tool_call", "tool_result")
"""What the tools call a session; and where Cline tells of a call, whose session has a name of its own."""


def _whose(raw: bytes) -> tuple[str, str]:
    """The session and the call that a payload is of, as far as it can be read."""
    try:
        said = _parsed(raw)
    except _UnreadableError:
        return "", ""
    sessions = (text(objects(said, "sessionContext"), "rootSessionId"), *(text(said, name) for name in _SESSIONS))
    calls = (text(said, "tool_use_id"), *(text(objects(said, name), "id") for name in _CALLS))
    return next(filter(None, sessions), ""), next(filter(None, calls), "")


class _UnreadableError(BadInput):
    """What came cannot be judged: whoever sends it must not gain by that."""


@contextmanager
def _judging() -> Iterator[None]:
    """Have a crash on what an agent wrote count as something that cannot be judged: the agent could provoke it."""
    try:
        yield
    except (AverError, OSError, MemoryError):
        raise
    except Exception as error:
        raise Unavailable(f"internal error: {_words(error)}") from error


def _taken(payload: bytes | BinaryIO) -> bytes:
    if isinstance(payload, bytes):
        return payload
    try:
        return payload.read(PAYLOAD_MAX + 1)
    except (OSError, ValueError) as error:
        raise _UnreadableError(f"the payload cannot be read: {error}") from error


def _parsed(raw: bytes) -> Mapping[str, Any]:
    from aver.ingest.records import parsed

    if len(raw) > PAYLOAD_MAX:
        raise _UnreadableError(f"the payload has more than {PAYLOAD_MAX} bytes")
    said = parsed(raw)
    if not isinstance(said, dict):
        raise _UnreadableError("the payload is not a JSON object")
    return said


@contextmanager
def _ledger(config: Config, canary: str) -> Iterator[Ledger]:
    """The ledger; for a canary one that is thrown away."""
    if canary:
        from aver.ingest.hooks.canary import throwaway_ledger

        with throwaway_ledger() as ledger:
            yield ledger
        return
    from aver.ledger import open_ledger

    with open_ledger(config.ledger, tenant=config.tenant, home=config.home) as ledger:
        yield ledger


def _recorded(ledger: Ledger, tool: str, reading: Reading) -> None:
    """Seal what an event tells, and close the chains that end with it."""
    if not reading.deeds:
        return
    from aver.ingest.drafting import chain_of
    from aver.ingest.told import seal_deed

    for deed in reading.deeds:
        seal_deed(ledger, tool, reading.session, deed)
    for agent in reading.closes:
        chain = chain_of(tool, reading.session, agent)
        if ledger.head(chain).count:
            ledger.close_chain(chain)


def _made_good(ledger: Ledger) -> str:
    """Seal what was not recorded before. Gives what is to be told if that fails: this event is dealt with all the same,
    and what was decided about it holds."""
    from aver.ingest.hooks.failures import seal_remembered

    try:
        seal_remembered(ledger)
    except Exception as error:  # noqa: BLE001 - whatever lies in that file must not undo a denial
        return f"aver: earlier failures of hooks could not be sealed: {_words(error)}"
    return ""


def _ruling(answer: Answer, settings: Settings) -> Ruling:
    """What the tool is told, by what the gate decided."""
    reason = "; ".join(answer.reasons) or answer.decision.decision
    if answer.decision.decision == "human_approved":
        return Ruling("allow", f"Aver: {reason}")
    if answer.allows:
        return Ruling(settings.on_pass, f"Aver: {reason}")
    if answer.decision.decision == "human_review" and (answer.outcome is None or answer.outcome.state == "timeout"):
        return Ruling("ask", f"Aver: {reason}")
    return Ruling("deny", f"Permission denied by hook: Aver does not allow this, and it was not done: {reason}")

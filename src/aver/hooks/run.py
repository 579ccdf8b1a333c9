"""One hook, from its payload to its answer, also where something fails.

    reply = answer_event(registry.load_hook("claude-code"), "PreToolUse", sys.stdin.buffer)

Where Aver fails, it reports the failure on standard error, remembers it until it can be sealed, and still answers:

| what failed | an event that asks | an event that reports |
|---|---|---|
| the payload cannot be read or judged | denied | goes on |
| settings or ledger cannot be used, the decision cannot be sealed | denied; `on_failure = "open"`: goes on | goes on |
| no memory, open files or time is left; a crash while the payload is judged | the same | goes on |
| any other crash of Aver | goes on; `on_failure = "closed"`: denied | goes on |

With `on_failure = "closed"` an event that cannot be recorded also ends the agent's work, where the agent allows that.
"Goes on" is never an approval: the agent's own rules hold, as without Aver.

The settings:

    [hooks]
    on_failure = "open"      or "closed"; without it the table above holds
    on_pass = "allow"        or "leave": where the gate passes, the agent asks as it would without Aver
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, NamedTuple, cast

from aver import log
from aver.config import Config, home_dir, load_config
from aver.errors import AverError, BadInput, Unavailable
from aver.hooks.contract import Hook, HookDecision, HookReply, ParsedPayload, get_object, get_text
from aver.hooks.selftest import canary_name, success_message

if TYPE_CHECKING:
    from aver.gate.ask import Answer
    from aver.ledger import Ledger

PAYLOAD_MAX = 64 * 1024 * 1024
"""Bytes of a payload, which may hold a whole file. Aver does not read a larger one."""


def answer_event(hook: Hook, event: str, payload: bytes | BinaryIO, *, agents: Collection[str]) -> HookReply:
    """Do what an event asks for, and return the answer. Never raises.

    `agents` are the names of all known agents: Aver seals earlier failures of their hooks now, and drops others.
    """
    return _HookRun(hook, event, agents).answer(payload)


class _HookRun:
    """One event while Aver handles it: what is known so far, also for the answer to a failure."""

    def __init__(self, hook: Hook, event: str, agents: Collection[str]) -> None:
        self._hook = hook
        self._event = event
        self._agents = agents
        self._raw = b""
        self._settings: HookSettings | None = None
        self._forbidden = False
        """Whether the gate has denied the action, or wants a person. A later failure does not change that."""

    def answer(self, payload: bytes | BinaryIO) -> HookReply:
        try:
            return self._process(payload)
        except _PayloadError as error:
            return self._reply_to_failure(str(error), decides="deny")
        except (AverError, OSError, MemoryError, KeyboardInterrupt) as error:
            return self._reply_to_failure(
                _error_text(error), decides="leave" if self._failure_setting() == "open" else "deny"
            )
        except Exception as error:  # noqa: BLE001 - a defect of Aver must not break the agent
            why = f"internal error: {_error_text(error)}"
            return self._reply_to_failure(why, decides="deny" if self._failure_setting() == "closed" else "leave")

    def _failure_setting(self) -> str:
        """The setting `on_failure`, also where the failure came before it was read; empty where it cannot be read."""
        if self._settings is None:
            with suppress(Exception):
                self._settings = read_hook_settings(load_config().hooks)
        return "" if self._settings is None else self._settings.on_failure

    def _process(self, payload: bytes | BinaryIO) -> HookReply:
        self._raw = _read_bytes(payload)
        content = _parse_payload(self._raw)
        with log.timed("hooks", "settings read"):
            config = load_config()
            self._settings = read_hook_settings(config.hooks)
        reading = self._read_payload(content)
        canary = canary_name(content)
        if reading.asks is None and not reading.events:
            return self._hook.done(self._event)
        with _open_ledger(config, canary) as ledger:
            with log.timed("hooks", "gate asked"):
                decision = self._ask_gate(ledger, reading, canary, self._settings)
            with log.timed("hooks", "events sealed"):
                _seal_events(ledger, self._hook.tool, reading)
            trouble = _seal_earlier_failures(ledger, self._agents)
        reply = self._hook.done(self._event) if decision is None else self._build_reply(decision)
        return reply._replace(err=success_message(canary) if canary else trouble)

    def _read_payload(self, content: Mapping[str, Any]) -> ParsedPayload:
        try:
            with _crash_as_unavailable():
                return self._hook.read(self._event, content)
        except BadInput as error:  # The payload asks about something that is no action.
            raise _PayloadError(str(error)) from error

    def _ask_gate(
        self, ledger: Ledger, reading: ParsedPayload, canary: str, settings: HookSettings
    ) -> HookDecision | None:
        if reading.asks is None:
            return None
        from aver.gate.ask import ask
        from aver.hooks.action import own_tool_hints

        with _crash_as_unavailable():
            answer = ask(ledger, reading.asks, annotations=own_tool_hints(reading.asks.tool))
            decision = _decision_from_answer(answer, settings)
        log.debug("hooks", "%s: %s for call %s: %s", self._event, decision.word, answer.call_id, decision.reason)
        self._forbidden = decision.word in ("ask", "deny")
        return decision._replace(reason=f"{canary}: {decision.reason}") if canary else decision

    def _build_reply(self, decision: HookDecision) -> HookReply:
        reply = self._hook.reply(self._event, decision)
        return reply._replace(forbids=decision.word in ("ask", "deny"))

    def _reply_to_failure(self, why: str, *, decides: str) -> HookReply:
        hook, event = self._hook, self._event
        asks = event in hook.gating
        denied = asks and (decides == "deny" or self._forbidden)
        consequence = "it is denied" if denied else "the tool goes on by its own rules"
        words = f"aver: the hook {hook.tool} {event} failed: {why}; {consequence if asks else 'this is not recorded'}"
        log.debug("hooks", "%s failed and %s: %s", event, "denies" if denied else "goes on", why)
        self._remember_failure(why)
        if denied:
            reply = self._build_reply(HookDecision("deny", f"Permission denied by hook: Aver cannot judge this: {why}"))
        elif not asks and self._failure_setting() == "closed":
            reply = hook.stop(event, f"Aver cannot record this: {why}")
        else:
            reply = hook.failed(event, words)
        return reply._replace(err=words)

    def _remember_failure(self, why: str) -> None:
        with suppress(Exception):  # Standard error has the failure in any case.
            from aver.hooks.failures import remember_failure

            session, call = _session_and_call(self._raw)
            remember_failure(home_dir(), self._hook.tool, self._event, session, why, self._raw, call)


def _error_text(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return str(error) or "it was interrupted"
    return str(error) if isinstance(error, AverError) else f"{type(error).__name__}: {error}"


_SESSION_FIELDS = ("session_id", "conversation_id", "taskId", "thread-id")
_CALL_FIELDS = ("tool_call", "tool_result")
"""The members of payloads that name a session; and those in which Cline reports a call."""


def _session_and_call(raw: bytes) -> tuple[str, str]:
    """The session and the call of a payload, as far as it can be read."""
    try:
        content = _parse_payload(raw)
    except _PayloadError:
        return "", ""
    sessions = (
        get_text(get_object(content, "sessionContext"), "rootSessionId"),
        *(get_text(content, name) for name in _SESSION_FIELDS),
    )
    calls = (get_text(content, "tool_use_id"), *(get_text(get_object(content, name), "id") for name in _CALL_FIELDS))
    return next(filter(None, sessions), ""), next(filter(None, calls), "")


class _PayloadError(BadInput):
    """The payload cannot be judged. The sender must gain nothing by that, so what it asks is denied."""


@contextmanager
def _crash_as_unavailable() -> Iterator[None]:
    """Turn a crash on the agent's input into `Unavailable`: an agent could provoke it, so it must not pass."""
    try:
        yield
    except (AverError, OSError, MemoryError):
        raise
    except Exception as error:
        raise Unavailable(f"internal error: {_error_text(error)}") from error


def _read_bytes(payload: bytes | BinaryIO) -> bytes:
    if isinstance(payload, bytes):
        return payload
    try:
        return payload.read(PAYLOAD_MAX + 1)
    except (OSError, ValueError) as error:
        raise _PayloadError(f"the payload cannot be read: {error}") from error


def _parse_payload(raw: bytes) -> Mapping[str, Any]:
    from aver.ingest.foreign_json import parse_json

    if len(raw) > PAYLOAD_MAX:
        raise _PayloadError(f"the payload has more than {PAYLOAD_MAX} bytes")
    content = parse_json(raw)
    if not isinstance(content, dict):
        raise _PayloadError("the payload is not a JSON object")
    return content


@contextmanager
def _open_ledger(config: Config, canary: str) -> Iterator[Ledger]:
    """Open the ledger; for a test by `aver doctor` a temporary one."""
    if canary:
        from aver.hooks.selftest import open_throwaway_ledger

        with open_throwaway_ledger() as ledger:
            yield ledger
        return
    from aver.ledger import open_configured_ledger

    with open_configured_ledger(config) as ledger:
        yield ledger


def _seal_events(ledger: Ledger, tool: str, reading: ParsedPayload) -> None:
    """Seal what an event reports, and close the chains that end with it."""
    if not reading.events:
        return
    from aver.ingest.draft import session_chain_name
    from aver.ingest.seal import seal_event

    for event in reading.events:
        seal_event(ledger, tool, reading.session, event)
    for agent in reading.closes:
        chain = session_chain_name(tool, reading.session, agent)
        if ledger.head(chain).count:
            ledger.close_chain(chain)


def _seal_earlier_failures(ledger: Ledger, agents: Collection[str]) -> str:
    """Seal earlier failures of hooks. Returns a message if that fails: the answer to this event must not change."""
    from aver.hooks.failures import seal_failures

    try:
        seal_failures(ledger, agents)
    except Exception as error:  # noqa: BLE001 - nothing in that file may undo a denial
        return f"aver: earlier failures of hooks could not be sealed: {_error_text(error)}"
    return ""


def _decision_from_answer(answer: Answer, settings: HookSettings) -> HookDecision:
    """Return the answer for the agent, by the gate's decision."""
    reason = "; ".join(answer.reasons) or answer.decision.decision
    if answer.decision.decision == "human_approved":
        return HookDecision("allow", f"Aver: {reason}")
    if answer.allows:
        return HookDecision(settings.on_pass, f"Aver: {reason}")
    if answer.decision.decision == "human_review" and (answer.outcome is None or answer.outcome.state == "timeout"):
        return HookDecision("ask", f"Aver: {reason}")
    return HookDecision("deny", f"Permission denied by hook: Aver does not allow this, and it was not done: {reason}")


SECTION = "[hooks]"

_ALLOWED_VALUES = {"on_failure": ("open", "closed"), "on_pass": ("allow", "leave")}


class HookSettings(NamedTuple):
    """The settings under `[hooks]`."""

    on_failure: Literal["open", "closed", ""] = ""
    """Empty where it is not set: see the table of this module."""
    on_pass: Literal["allow", "leave"] = "allow"  # noqa: S105 - no password


def read_hook_settings(table: Mapping[str, Any]) -> HookSettings:
    """Read the settings. Raises `BadInput` for one that is unknown or has a wrong value."""
    for name, value in table.items():
        allowed = _ALLOWED_VALUES.get(name)
        if allowed is None:
            raise BadInput(f"{SECTION}: unknown setting {name!r}", advice=f"known are {', '.join(_ALLOWED_VALUES)}")
        if value not in allowed:
            raise BadInput(f"{SECTION} {name} must be one of {', '.join(allowed)}")
    return HookSettings(**cast(dict[str, Any], dict(table)))

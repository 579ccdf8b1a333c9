"""One hook, from its payload to its answer, whatever goes wrong on the way.

    reply = answer("claude-code", "PreToolUse", sys.stdin.buffer)

Where Aver cannot do its work, the person is told on stderr, the failure is remembered and sealed as soon as that works,
and the tool gets an answer all the same:

| what failed | an event that asks | an event that tells |
|---|---|---|
| the payload cannot be read or judged | denied | goes on |
| settings or ledger cannot be used, the decision cannot be sealed | denied; `on_failure = "open"`: goes on | goes on |
| a crash of Aver's | goes on; `on_failure = "closed"`: denied | goes on |

With `on_failure = "closed"` an event that cannot be recorded also ends the agent's work, where the tool lets us. "Goes
on" is never an approval: the tool's own rules hold, as without Aver.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, BinaryIO

from aver.errors import AverError, BadInput
from aver.home import Config, home_dir, load_config
from aver.ingest.hooks.canary import canary_in, went_through
from aver.ingest.hooks.contract import Hook, Reading, Reply, Ruling, text
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
        self._session = ""
        self._call = ""
        self._settings = Settings()

    def answered(self, payload: bytes | BinaryIO) -> Reply:
        try:
            return self._done(payload)
        except _UnreadableError as error:
            return self._failed(str(error), decides="deny")
        except AverError as error:
            on_failure = self._settings.on_failure
            return self._failed(str(error), decides="leave" if on_failure == "open" else "deny")
        except Exception as error:  # noqa: BLE001 - a defect of ours must not become one of the agent's
            why = f"internal error: {type(error).__name__}: {error}"
            return self._failed(why, decides="deny" if self._settings.on_failure == "closed" else "leave")

    def _done(self, payload: bytes | BinaryIO) -> Reply:
        self._raw = payload if isinstance(payload, bytes) else payload.read(PAYLOAD_MAX + 1)
        said = _parsed(self._raw)
        self._note(said)
        config = load_config()
        self._settings = read_settings(config.hooks)
        reading = self._read(said)
        canary = canary_in(said)
        if reading.asks is None and not reading.deeds:
            return self._hook.done(self._event)
        with _ledger(config, canary) as ledger:
            ruling = self._ruled(ledger, reading, canary)
            _recorded(ledger, self._hook.tool, reading)
        reply = self._hook.done(self._event) if ruling is None else self._hook.reply(self._event, ruling)
        return reply._replace(err=went_through(canary)) if canary else reply

    def _note(self, said: Mapping[str, Any]) -> None:
        """Know whose event it is before anything can fail."""
        self._session = next((text(said, name) for name in _SESSIONS if text(said, name)), "")
        self._call = text(said, "tool_use_id")

    def _read(self, said: Mapping[str, Any]) -> Reading:
        try:
            return self._hook.read(self._event, said)
        except BadInput as error:  # What is asked is no action that could be judged.
            raise _UnreadableError(str(error)) from error

    def _ruled(self, ledger: Ledger, reading: Reading, canary: str) -> Ruling | None:
        if reading.asks is None:
            return None
        from aver.gate.door import judge

        ruling = _ruling(judge(ledger, reading.asks), self._settings)
        return ruling._replace(reason=f"{canary}: {ruling.reason}") if canary else ruling

    def _failed(self, why: str, *, decides: str) -> Reply:
        hook, event = self._hook, self._event
        asks = event in hook.gating
        consequence = "it is denied" if asks and decides == "deny" else "the tool goes on by its own rules"
        words = f"aver: the hook {hook.tool} {event} failed: {why}; {consequence if asks else 'this is not recorded'}"
        self._remember(why)
        if asks and decides == "deny":
            reply = hook.reply(event, Ruling("deny", f"Permission denied by hook: Aver cannot judge this: {why}"))
        elif not asks and self._settings.on_failure == "closed":
            reply = hook.stop(event, f"Aver cannot record this: {why}")
        else:
            reply = hook.failed(event, words)
        return reply._replace(err=words)

    def _remember(self, why: str) -> None:
        from aver.ingest.hooks.failures import remember

        remember(home_dir(), self._hook.tool, self._event, self._session, why, self._raw, self._call)


_SESSIONS = ("session_id", "conversation_id", "taskId", "thread-id")
"""What the tools call a session."""


class _UnreadableError(BadInput):
    """What came cannot be judged: whoever sends it must not gain by that."""


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
    """Seal what an event tells, close the chains that end with it, and make good what was not recorded before."""
    from aver.ingest.hooks.failures import seal_remembered

    if reading.deeds:
        from aver.ingest.drafting import chain_of
        from aver.ingest.sealing import seal_deed

        for deed in reading.deeds:
            seal_deed(ledger, tool, reading.session, deed)
        for agent in reading.closes:
            chain = chain_of(tool, reading.session, agent)
            if ledger.head(chain).count:
                ledger.close_chain(chain)
    seal_remembered(ledger)


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

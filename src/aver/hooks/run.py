"""One hook, from its payload to its answer, also where something fails.

    reply = answer_event(registry.load_hook("claude-code"), "PreToolUse", sys.stdin.buffer, agents=registry.AGENTS)

Where Aver fails, it reports the failure on standard error, remembers it until it can be sealed, and still answers:

| what failed | an event that asks | an event that reports |
|---|---|---|
| the payload cannot be read or judged | denied | goes on |
| settings or ledger cannot be used, the decision cannot be sealed | denied; `on_failure = "open"`: goes on | goes on |
| no memory, open files or time is left; a crash while the payload is judged | the same | goes on |
| a module that Aver needs cannot be loaded | the same | goes on |
| any other crash of Aver | goes on; `on_failure = "closed"`: denied | goes on |

With `on_failure = "closed"` an event that cannot be recorded also ends the agent's work, where the agent allows that.
"Goes on" is never an approval: the agent's own rules hold, as without Aver. In the mode `observe` everything goes on,
as soon as the settings could be read.

`aver.hooks.settings` describes the settings, and how a decision of the gate becomes an answer.

Failures are remembered in `AVER_HOME/hook-failures.jsonl`, and sealed by the next hook that works:

    {"id": …, "at": …, "tool": "codex", "event": "Stop", "session": …, "call": …, "why": "the disk is full",
     "payload": {"sha256": …, "size": 812}}

Of the payload a line has only the digest, the size and the call's id: Aver could not mask the rest. The transcript
still has the call, and a watcher seals it from there. Remembering never raises and waits a few seconds at most. A
failure that cannot be remembered was still reported on standard error.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from aver import log
from aver.clock import new_id, now
from aver.config import LEDGER_ENV, ensure_home, home_dir, load_config
from aver.errors import AverError, BadInput, Unavailable
from aver.files.locks import lock
from aver.files.regular import open_descriptor
from aver.hooks.client_process import ClientProcess, find_client, is_behind_proxy, note_session
from aver.hooks.contract import Hook, HookChoice, HookDecision, HookReply, ParsedPayload, get_text
from aver.hooks.selftest import CANARY_FIELD, open_throwaway_ledger, success_message
from aver.hooks.settings import ChosenAnswer, HookSettings, choose_call, read_hook_settings

if TYPE_CHECKING:
    from aver.gate.action import Action
    from aver.gate.decision import Decision
    from aver.gate.decision_record import CallerAnswer
    from aver.ledger import Ledger

PAYLOAD_MAX = 64 * 1024 * 1024
"""Bytes of a payload, which may hold a whole file. Aver does not read a larger one."""

SERVERS_DIRECTORY = "gateway/servers"
"""Where proxies keep what they know of their servers. A home without it has no proxy."""

OWN_SERVER = "aver"
"""The name under which `aver install` registers Aver's MCP server."""

OWN_TOOL_HINTS = {"readOnlyHint": True, "destructiveHint": False, "openWorldHint": False}
"""MCP annotations of the tools of that server, which write into Aver's ledger alone."""


def answer_event(hook: Hook, event: str, payload: bytes | BinaryIO, *, agents: Collection[str]) -> HookReply:
    """Do what an event asks for, and return the answer. Never raises.

    `agents` are the names of all known agents: Aver seals earlier failures of their hooks now, and drops others.
    """
    run = _HookRun(hook, event)
    # The handlers are the rows of the table above, in its order.
    try:
        return run.process(payload, agents)
    except _PayloadError as error:
        return run.reply_to_failure(str(error), denies=True)
    except (AverError, OSError, MemoryError, KeyboardInterrupt, ImportError, SyntaxError) as error:
        return run.reply_to_failure(_error_text(error), denies=run.on_failure() != "open")
    except Exception as error:  # noqa: BLE001 - a defect of Aver must not break the agent
        return run.reply_to_failure(f"internal error: {_error_text(error)}", denies=run.on_failure() == "closed")


class _HookRun:
    """One event while Aver handles it: what is known so far, also for the answer to a failure."""

    def __init__(self, hook: Hook, event: str) -> None:
        self._hook = hook
        self._event = event
        self._raw = b""
        self._content: Mapping[str, Any] = {}
        self._settings: HookSettings | None = None
        self._forbidden = False
        """Whether the gate has denied the action, or wants a person. A later failure does not change that."""

    def process(self, payload: bytes | BinaryIO, agents: Collection[str]) -> HookReply:
        """Handle the event and return the answer where nothing fails."""
        from aver.ingest.foreign_json import parse_json

        hook, event = self._hook, self._event
        # Keep the payload as far as it is known: the answer to a failure names its session and digest.
        try:
            self._raw = payload if isinstance(payload, bytes) else payload.read(PAYLOAD_MAX + 1)
        except (OSError, ValueError) as error:
            raise _PayloadError(f"the payload cannot be read: {error}") from error
        if len(self._raw) > PAYLOAD_MAX:
            raise _PayloadError(f"the payload has more than {PAYLOAD_MAX} bytes")
        content = parse_json(self._raw)
        if not isinstance(content, dict):
            raise _PayloadError("the payload is not a JSON object")
        self._content = content

        with log.log_time("hooks", "settings read"):
            config = load_config()
            self._settings = settings = read_hook_settings(config, hook.tool, dict.fromkeys(agents))
            if config.source["ledger"] == LEDGER_ENV and not settings.ledger_from_environment:
                log.debug("hooks", "%s is ignored: a project can set it, and config.toml does not allow it", LEDGER_ENV)
                config = load_config(obeys_environment=False)

        try:
            with _crash_as_unavailable():
                parsed = hook.read(event, content)
        except BadInput as error:  # The payload asks about something that is no action.
            raise _PayloadError(str(error)) from error
        if parsed.asks is None and not parsed.events:
            return hook.done(event)

        # A test by `aver doctor` must leave no trace: it gets a temporary ledger.
        canary = get_text(content, CANARY_FIELD)
        client = None if canary else find_client(f"hook {hook.tool} {event}", event)
        if client is not None:
            _note_session(config.home, client, hook.tool, parsed.session)
            if parsed.asks is not None and not parsed.events and is_behind_proxy(config.home, client, parsed.asks.tool):
                log.debug("hooks", "%s: left to the proxy of this client: %s", event, parsed.asks.tool)
                return hook.reply(event, HookDecision("leave", "the proxy before the server judges this call"))

        from aver.ledger import open_configured_ledger

        opened: AbstractContextManager[Ledger] = open_throwaway_ledger() if canary else open_configured_ledger(config)
        trouble = ""
        with opened as ledger:
            decision = None if parsed.asks is None else self._ask_gate(ledger, parsed.asks, settings, canary)
            if parsed.events:
                with log.log_time("hooks", "events sealed"):
                    _seal_events(ledger, hook.tool, parsed)
                if parsed.prompt:
                    _seal_prompt(ledger, hook.tool, parsed)
                if parsed.asked_person:
                    _seal_clicks(ledger, hook.tool, parsed)
            # Last, because earlier failures must not delay or undo what this event needs.
            try:
                seal_failures(ledger, agents)
            except Exception as error:  # noqa: BLE001 - nothing in that file may undo a denial
                trouble = f"aver: earlier failures of hooks could not be sealed: {_error_text(error)}"
        reply = hook.done(event) if decision is None else hook.reply(event, decision)
        return reply._replace(err=success_message(canary) if canary else trouble, forbids=self._forbidden)

    def _ask_gate(self, ledger: Ledger, action: Action, settings: HookSettings, canary: str) -> HookDecision:
        """Let the gate decide about the action, seal the decision, and return it in the words of hooks."""
        from aver.gate.ask import ask
        from aver.gate.decision_record import CallerAnswer
        from aver.gate.effects.arguments import mcp_server

        word: HookChoice
        with log.log_time("hooks", "gate asked"), _crash_as_unavailable():
            # Hooks get no annotations from the agent. The gate believes these only where the user trusts Aver's server
            # by name, because any server may have the name.
            annotations = OWN_TOOL_HINTS if mcp_server(action.tool) == OWN_SERVER else {}
            # A test by `aver doctor` shows that a denial comes through, also where the hook only observes.
            mode = "enforce" if canary else settings.mode
            settings = settings._replace(mode=mode)
            if not self._hook.can_allow:
                settings = settings._replace(on_pass="leave")  # noqa: S106 - no password
            if not self._hook.can_rewrite or mode == "observe":
                settings = settings._replace(confines=False)
            if self._event not in self._hook.asks_person:
                settings = settings._replace(asks_person=False)
            self._note_refusals(ledger, action)
            chosen = ChosenAnswer("deny")

            def describe_answer(decision: Decision) -> CallerAnswer:
                # The last decision that is described is the one that `ask` returns.
                nonlocal chosen
                chosen = choose_call(decision, action, settings)
                confined = chosen.confined
                return CallerAnswer(chosen.word) if confined is None else CallerAnswer(chosen.word, *confined)

            answer = ask(ledger, action, annotations=annotations, mode=mode, answer_with=describe_answer)
            word, reason = chosen.word, chosen.trouble or "; ".join(answer.reasons) or answer.decision.decision
            # A person has denied it, or let it expire: the agent need not ask the one who sits in front of it.
            if word == "ask" and answer.outcome is not None and answer.outcome.state != "timeout":
                word = "deny"
            elif word == "ask" and answer.decision.decision == "human_review":
                reason = answer.prompt or reason
        denial = "Permission denied by hook: Aver does not allow this, and it was not done"
        reason = f"{denial if word == 'deny' else 'Aver'}: {reason}"
        log.debug("hooks", "%s: %s for call %s: %s", self._event, word, answer.call_id, reason)
        self._forbidden = word in ("ask", "deny")
        arguments = None if chosen.confined is None else chosen.confined.arguments
        return HookDecision(word, f"{canary}: {reason}" if canary else reason, arguments)

    def _note_refusals(self, ledger: Ledger, action: Action) -> None:
        """Seal which calls of the session the agent refused after Aver had asked about them."""
        find_refused = self._hook.find_refused
        if find_refused is None or not action.session:
            return
        from aver.gate.facts.session import list_open_calls

        calls = list_open_calls(ledger, action.session)
        refused = find_refused(self._content, calls) if calls else ()
        if not refused:
            return
        from aver.gate.outcomes.refusals import record_refusals

        try:
            record_refusals(ledger, action.session, refused)
        except AverError as error:  # Then the calls count as made, and the gate finds the trouble again.
            log.debug("hooks", "refused calls could not be noted: %s", error.message)

    def on_failure(self) -> str:
        """The setting `on_failure`, also where the failure came before it was read; empty where it cannot be read."""
        if self._settings is None:
            with suppress(Exception):
                self._settings = read_hook_settings(load_config(), self._hook.tool)
        return "" if self._settings is None else self._settings.on_failure

    def reply_to_failure(self, why: str, *, denies: bool) -> HookReply:
        """Report and remember a failure, and return the answer to the agent: by the table of this module."""
        hook, event = self._hook, self._event
        asks = event in hook.gating
        observes = self._settings is not None and self._settings.mode == "observe"
        denied = asks and (denies or self._forbidden) and not observes
        consequence = "it is denied" if denied else "the tool goes on by its own rules"
        words = f"aver: the hook {hook.tool} {event} failed: {why}; {consequence if asks else 'this is not recorded'}"
        log.debug("hooks", "%s failed and %s: %s", event, "denies" if denied else "goes on", why)
        session = call = ""
        with suppress(Exception):  # The payload may be anything. The failure is remembered without them, too.
            session, call = hook.identify(self._content)
        with suppress(Exception):  # Standard error has the failure in any case.
            remember_failure(home_dir(), hook.tool, event, session, why, self._raw, call)
        if denied:
            denial = HookDecision("deny", f"Permission denied by hook: Aver cannot judge this: {why}")
            return hook.reply(event, denial)._replace(err=words, forbids=True)
        if not asks and self.on_failure() == "closed" and not observes:
            return hook.stop(event, f"Aver cannot record this: {why}")._replace(err=words)
        return hook.failed(event, words)._replace(err=words)


def _note_session(home: Path, client: ClientProcess, agent: str, session: str) -> None:
    """Note the session of the client for its proxies. Without the note, a proxy has a session of its own."""
    if not session:
        return
    try:
        ensure_home(home)
        note_session(home, client, agent, session)
    except (AverError, OSError) as error:
        log.debug("hooks", "the session of the client was not noted: %s", error)


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


def _error_text(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return str(error) or "it was interrupted"
    return str(error) if isinstance(error, AverError) else f"{type(error).__name__}: {error}"


def _seal_events(ledger: Ledger, tool: str, parsed: ParsedPayload) -> None:
    """Seal what an event reports, and close the chains that end with it."""
    from aver.ingest.draft import session_chain_name
    from aver.ingest.seal import seal_event

    for event in parsed.events:
        seal_event(ledger, tool, parsed.session, event)
    for agent in parsed.closes:
        chain = session_chain_name(tool, parsed.session, agent)
        if ledger.head(chain).count:  # A chain without records cannot be closed.
            ledger.close_chain(chain)


def _seal_prompt(ledger: Ledger, tool: str, parsed: ParsedPayload) -> None:
    """Seal the user's words for the calls that go through a proxy, where this home has one."""
    if not (ledger.config.home / SERVERS_DIRECTORY).is_dir():
        return
    from aver.gateway.act_records import check_session
    from aver.gateway.calls.session_origins import seal_turn

    try:
        seal_turn(ledger, check_session(parsed.session), parsed.prompt, told_by=f"hook {tool}")
    except BadInput as error:  # Then the calls of this session have the doubt NO_PROMPT.
        log.debug("hooks", "the prompt was not sealed for the proxy: %s", error.message)


def _seal_clicks(ledger: Ledger, tool: str, parsed: ParsedPayload) -> None:
    """Seal which of the calls were made after the person at the agent had allowed them."""
    from aver.gate.outcomes.clicks import record_click
    from aver.ingest.draft import event_key

    for event in parsed.events:
        if event.call is not None and not event.allowed.denied:
            record_click(ledger, event_key(tool, parsed.session, event.key), event.call.arguments)


# --- failures that are remembered, and sealed later

FAILURES_FILE = "hook-failures.jsonl"

FAILURES_SIZE_MAX = 1024 * 1024
"""Bytes of the file: thousands of failures. Aver does not add to a larger file."""

FAILURE_TEXT_MAX = 2000
"""Characters of the reason, and of every other text, that are kept."""

LOCK_SECONDS = 5.0
"""Seconds to wait for another hook that has the file. A hook must not hang: the agent would go on without it."""


def remember_failure(home: Path, tool: str, event: str, session: str, why: str, payload: bytes, call: str = "") -> None:
    """Remember that a hook failed, for the next hook that works."""
    import hashlib

    import orjson

    from aver.capsule.masking.mask import mask

    texts = {"event": event, "session": session, "call": call, "why": str(mask(why).value)}
    failure = {
        "id": new_id(),
        "at": now(),
        "tool": tool,
        # A short part of each text, without halves of surrogate pairs, which JSON cannot hold.
        **{name: text[:FAILURE_TEXT_MAX].encode("utf-8", "backslashreplace").decode() for name, text in texts.items()},
        "payload": {"sha256": hashlib.sha256(payload).hexdigest(), "size": len(payload)},
    }
    with suppress(Exception):
        ensure_home(home)
        with _open_locked(home / FAILURES_FILE, os.O_CREAT, LOCK_SECONDS) as handle:
            if os.fstat(handle).st_size < FAILURES_SIZE_MAX:
                os.lseek(handle, 0, os.SEEK_END)
                os.write(handle, orjson.dumps(failure) + b"\n")


def seal_failures(ledger: Ledger, agents: Collection[str]) -> int:
    """Seal the remembered failures of these agents, each in the chain of its session, and empty the file.

    Returns how many there were; 0 where another hook has the file.
    """
    path = ledger.config.home / FAILURES_FILE
    try:
        if not path.stat().st_size:
            return 0
    except OSError:
        return 0
    from aver.ingest.contract import AgentEvent
    from aver.ingest.seal import seal_event

    with suppress(BlockingIOError), _open_locked(path, 0) as handle:
        failures = [failure for failure in _parse_failures(handle) if failure["tool"] in agents]
        for failure in failures:
            event = AgentEvent(
                what="note",
                key=f"hook-failure-{failure['id']}",
                summary=f"hook {failure['event']} failed: {failure['why']}",
                at=failure["at"],
                status="failure",
                result=failure,
            )
            seal_event(ledger, failure["tool"], failure["session"] or "unknown", event)
        # Only now: after a crash in between, the next hook seals all again, under the same keys, so none twice.
        os.ftruncate(handle, 0)
        return len(failures)
    return 0


def read_failures(home: Path) -> list[dict[str, Any]]:
    """Return the failures that are not sealed yet, the oldest first. Raises `OSError` for what is no plain file."""
    try:
        handle = open_descriptor(home / FAILURES_FILE, follow=False)
    except FileNotFoundError:
        return []
    try:
        return list(_parse_failures(handle))
    finally:
        os.close(handle)


_REQUIRED_FIELDS = ("id", "at", "tool", "event", "session", "why")


def _parse_failures(handle: int) -> Iterator[dict[str, Any]]:
    """Read the lines of the file, and skip those that are no failure: a line may be torn, or somebody else's."""
    from aver.ingest.foreign_json import parse_json

    os.lseek(handle, 0, os.SEEK_SET)
    # The last line may go beyond FAILURES_SIZE_MAX, by far less than as much again.
    for line in os.read(handle, 2 * FAILURES_SIZE_MAX).splitlines():
        failure = parse_json(line)
        if isinstance(failure, dict) and all(isinstance(failure.get(name), str) for name in _REQUIRED_FIELDS):
            yield failure


@contextmanager
def _open_locked(path: Path, more: int, patience: float = 0.0) -> Iterator[int]:
    """Open the file under its lock. Raises `BlockingIOError` where another hook has it for longer than `patience`."""
    handle = open_descriptor(path, os.O_RDWR | more, follow=False)
    try:
        lock(handle, timeout=patience)
        yield handle
    finally:
        os.close(handle)

"""The server without its wire: which session a call belongs to, and what the five tools do.

    service = Service(Workspace("."), agent="claude-code")
    told = service.call(Caller("stdio"), "capseal_status", {})

Safe for threads. The ledger is opened by the first call that needs it, so that a server starts at once and a ledger
that cannot be opened is told to the agent, not only to a log.
"""

from __future__ import annotations

import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from aver.check import open_ledger
from aver.errors import AverError, BadInput, Refused
from aver.gate.risk.state import load_state
from aver.ledger import Ledger
from aver.mcp.answers import (
    ToolAnswer,
    context_answer,
    error_answer,
    gate_answer,
    record_answer,
    seal_answer,
    status_answer,
)
from aver.mcp.history import SessionHistory
from aver.mcp.parameters import read_arguments
from aver.mcp.session import McpSession
from aver.mcp.tools import TOOLS
from aver.mcp.workspace import Workspace

__all__ = ["Caller", "Service"]

SESSIONS_MAX = 200
"""Sessions that are kept open at once, each with two files. The one that was quiet the longest is let go; its run goes
on when it comes back."""

AGENT_MAX = 64
"""Characters of a client's name."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Whose call it is, as the wire tells it."""

    connection: str
    """The same for all calls of one connection."""
    client: str = ""
    """What the client calls itself. Nobody has checked that."""
    session: str = ""
    """The session that it wants to be in; empty for one of its own."""
    lasting: bool = True
    """Whether the connection is one that lasts. Without, every call comes alone, and the client's name must do."""


class Service:
    """The five tools, for one workspace."""

    def __init__(
        self,
        workspace: Workspace,
        *,
        agent: str = "",
        session: str = "",
        ledger: str | None = None,
        tenant: str | None = None,
        wait: float = 0.0,
    ) -> None:
        """`agent` is who acts, where whoever started the server knows; `session` the one for all calls; `wait` for how
        many seconds to wait for a human."""
        self.workspace = workspace
        self._agent = agent
        self._session = session
        self._wait = wait
        self._where = (ledger, tenant)
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self._ledger: Ledger | None = None
        self._history: SessionHistory | None = None
        self._sessions: OrderedDict[str, McpSession] = OrderedDict()

    def call(self, caller: Caller, tool: str, given: Mapping[str, Any]) -> ToolAnswer:
        """Do what a tool does. Whatever goes wrong with it is told in the answer."""
        session: McpSession | None = None
        try:
            arguments = read_arguments(TOOLS[tool].takes, given)
            session = self._find_session(caller)
            return _TOOL_HANDLERS[tool](self, session, arguments)
        except AverError as error:
            return error_answer(tool, None if session is None else _run_id_or_none(session), error)

    def close(self) -> None:
        """Let go of sessions and ledger. Runs stay as they are."""
        with self._lock:
            for session in self._sessions.values():
                session.close()
            self._sessions.clear()
            if self._ledger is not None:
                self._ledger.close()
                self._ledger = None

    # --- the tools

    def _answer_gate(self, session: McpSession, given: Mapping[str, Any]) -> ToolAnswer:
        if not (given["description"].strip() or given["files_affected"] or given["diff_text"]):
            raise BadInput("provide at least one of: description, files_affected, diff_text")
        run_id, answer = session.gate(given, wait=self._wait)
        return gate_answer(run_id, given, answer, self._open_history().similar_changes(given["files_affected"] or ()))

    def _answer_record(self, session: McpSession, given: Mapping[str, Any]) -> ToolAnswer:
        if not given["description"].strip():
            raise BadInput("description is required")
        run_id, recorded = session.record(given)
        return record_answer(run_id, given, recorded)

    def _answer_seal(self, session: McpSession, given: Mapping[str, Any]) -> ToolAnswer:
        done = session.seal()
        if done is None:
            raise Refused("EMPTY", "cannot seal empty session; record at least one action first")
        run_id, sealed = done
        cap = sealed.cap.relative_to(self.workspace.root).as_posix()
        return seal_answer(run_id, given["session_name"], sealed, cap, self._count_learned_outcomes())

    def _answer_status(self, session: McpSession, given: Mapping[str, Any]) -> ToolAnswer:
        run_id, past = session.run_id, self._open_history()
        uptime = int(time.monotonic() - self._began)
        root = str(self.workspace.root)
        return status_answer(
            run_id, root, session.counts(), uptime, past.recent(), past.count(), self._count_learned_outcomes()
        )

    def _answer_context(self, session: McpSession, given: Mapping[str, Any]) -> ToolAnswer:
        if not given["file"].strip():
            raise BadInput("file parameter is required")
        return context_answer(session.run_id, given["file"], self._open_history().sessions_for_file(given["file"]))

    # --- what they need

    def _count_learned_outcomes(self) -> int:
        """Outcomes of changes that were learned in this workspace."""
        with self._lock:
            home = self._open_ledger().config.home
        return load_state(self.workspace.root, home).level("change").observations

    def _open_history(self) -> SessionHistory:
        with self._lock:
            if self._history is None:
                self._history = SessionHistory(self._open_ledger(), self.workspace)
            return self._history

    def _open_ledger(self) -> Ledger:
        if self._ledger is None:
            url, tenant = self._where
            self._ledger = open_ledger(url, tenant=tenant)
        return self._ledger

    def _find_session(self, caller: Caller) -> McpSession:
        agent = self._agent or _declared_agent_name(caller.client)
        wanted = self._session or caller.session or ("" if caller.lasting else agent)
        key = f"name:{wanted}" if wanted else f"connection:{caller.connection}"
        with self._lock:
            session = self._sessions.get(key)
            if session is None:
                ledger = self._open_ledger()
                slot = self.workspace.shared(wanted) if wanted else self.workspace.own(_slot_name(agent))
                session = self._sessions[key] = McpSession(ledger, self.workspace, slot, agent)
                if len(self._sessions) > SESSIONS_MAX:
                    self._sessions.popitem(last=False)[1].close()
            self._sessions.move_to_end(key)
            return session


def _declared_agent_name(client: str) -> str:
    """A client's name for itself, marked as such, so that no rule about a known agent holds for it."""
    name = "".join(one for one in client if one.isprintable())[:AGENT_MAX].strip()
    return f"mcp:{name}" if name else "mcp:unknown"


def _slot_name(agent: str) -> str:
    """A session's name for an agent whose session has none."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", agent.removeprefix("mcp:")).strip("-.") or "agent"


def _run_id_or_none(session: McpSession) -> str | None:
    try:
        return session.run_id
    except AverError:
        return None


_TOOL_HANDLERS: Mapping[str, Callable[[Service, McpSession, Mapping[str, Any]], ToolAnswer]] = {
    "capseal_gate": Service._answer_gate,
    "capseal_record": Service._answer_record,
    "capseal_seal": Service._answer_seal,
    "capseal_status": Service._answer_status,
    "capseal_context": Service._answer_context,
}

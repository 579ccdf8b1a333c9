"""The five tools without the protocol: Aver finds the session of a call and runs the tool.

    service = Service(Workspace("."), agent="claude-code")
    answer = service.call(Caller("stdio"), "capseal_status", {})

Safe for threads. The first call that needs the ledger opens it. So the server starts at once, and if the ledger cannot
be opened, the agent gets the error in its answer.
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
from aver.mcp.session import McpSession
from aver.mcp.tools import TOOLS, read_arguments
from aver.mcp.workspace import Workspace

SESSIONS_MAX = 200
"""The maximum number of open sessions, each with two open files. Beyond it, Aver closes the session that was unused for
the longest time. If that session calls again, its run continues."""

AGENT_MAX = 64
"""The maximum length of the name of a client."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of a tool, as the protocol describes it."""

    connection: str
    """The same for all calls of one connection."""
    client: str = ""
    """The name that the client gave itself. Aver cannot check it."""
    session: str = ""
    """The session that the client asks for; empty for a session of its own."""
    lasting: bool = True
    """Whether several calls share the connection. If not, Aver finds the session by the name of the client."""


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
        """Prepare the tools for one workspace.

        `agent` is the name of the agent, if the user who started the server gave it. `session` is the session for all
        calls. `wait` is the number of seconds to wait for a human approval.
        """
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
        """Run a tool. Every `AverError` becomes an answer that reports it."""
        session: McpSession | None = None
        try:
            arguments = read_arguments(TOOLS[tool].takes, given)
            session = self._find_session(caller)
            return _TOOL_HANDLERS[tool](self, session, arguments)
        except AverError as error:
            return error_answer(tool, None if session is None else _run_id_or_none(session), error)

    def close(self) -> None:
        """Close all sessions and the ledger. This does not seal any run."""
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

    # --- what the tools need

    def _count_learned_outcomes(self) -> int:
        """Return the number of outcomes of changes that were learned in this workspace."""
        with self._lock:
            home = self._open_ledger().config.home
        return load_state(self.workspace.root, home).level("change").observations

    def _open_history(self) -> SessionHistory:
        with self._lock:
            if self._history is None:
                self._history = SessionHistory(self._open_ledger(), self.workspace)
            return self._history

    def _open_ledger(self) -> Ledger:
        """Return the ledger, and open it first if needed. The caller holds the lock."""
        if self._ledger is None:
            url, tenant = self._where
            self._ledger = open_ledger(url, tenant=tenant)
        return self._ledger

    def _find_session(self, caller: Caller) -> McpSession:
        """Return the session of a caller: the one that was asked for by name, or one for its connection."""
        agent = self._agent or _declared_agent_name(caller.client)
        wanted = self._session or caller.session or ("" if caller.lasting else agent)
        key = f"name:{wanted}" if wanted else f"connection:{caller.connection}"
        with self._lock:
            session = self._sessions.get(key)
            if session is None:
                ledger = self._open_ledger()
                if wanted:
                    slot = self.workspace.shared_session(wanted)
                else:
                    # The name of the agent becomes part of file names.
                    name = re.sub(r"[^A-Za-z0-9._-]+", "-", agent.removeprefix("mcp:")).strip("-.")
                    slot = self.workspace.own(name or "agent")
                session = self._sessions[key] = McpSession(ledger, self.workspace, slot, agent)
                if len(self._sessions) > SESSIONS_MAX:
                    # The first entry was unused for the longest time: each call moves its session to the end.
                    self._sessions.popitem(last=False)[1].close()
            self._sessions.move_to_end(key)
            return session


def _declared_agent_name(client: str) -> str:
    """Return the name that a client gave itself, with the prefix `mcp:`.

    With the prefix, a client cannot claim the name of an agent for which the policy has rules.
    """
    name = "".join(char for char in client if char.isprintable())[:AGENT_MAX].strip()
    return f"mcp:{name}" if name else "mcp:unknown"


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

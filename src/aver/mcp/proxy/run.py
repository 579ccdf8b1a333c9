"""The proxy of one client and one server: put together, run to its end, and closed in the right order.

    code = run_proxy(ProxyPlan(name="files", command=("files-server",), workspace="."))

The proxy ends when the client closes its output, when the server ends, or at SIGTERM, SIGINT or SIGHUP. Calls that wait
for a person end at once then. Calls that the server works on get some time to end. A call whose answer does not come is
sealed as `OUTCOME_UNKNOWN` before the proxy ends.

`run_canary` runs a proxy without a server, for a test (`aver.mcp.proxy.canary`).
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aver.clock import new_id
from aver.config import Config, ensure_home
from aver.errors import AverError, Unavailable, install_advice
from aver.fast_dataclass import dataclass
from aver.files.atomic import make_directory
from aver.hooks.client_process import ClientProcess, ProxyNote, find_client, read_session
from aver.log import debug
from aver.mcp.proxy.messages import CLIENT_MESSAGE_MAX, INVALID_REQUEST, build_error
from aver.mcp.proxy.relay import Relay
from aver.mcp.proxy.server_link import ProcessLink, ServerLink
from aver.mcp.proxy.tool_book import ToolBook, server_file

if TYPE_CHECKING:
    from aver.gateway.gateway import Gateway
    from aver.ledger import Ledger

DRAIN_SECONDS = 30.0
"""How long calls at the server may take to end after the client has closed its output."""

HURRY_SECONDS = 1.0
"""The same after a signal: a client that sends one ends the proxy by force soon."""

CHUNK = 256 * 1024
"""Bytes of the client that are read at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyPlan:
    """A proxy to run: the server behind it, and the session that its calls belong to."""

    name: str
    command: tuple[str, ...] = ()
    """The words that start the server; empty for a server at a URL."""
    url: str = ""
    is_sse: bool = False
    """Whether the server at the URL speaks the older transport of server-sent events."""
    headers: Mapping[str, str]
    workspace: str
    session: str = ""
    """The session; empty for that of the client, or a new one where it is not known."""
    wait: float = 0.0


def run_proxy(plan: ProxyPlan, config: Config, open_ledger: Callable[[], Ledger]) -> int:
    """Run a proxy on standard input and output, and return the server's exit code.

    `open_ledger` is called at the first call. Raises `Unavailable` where the server cannot be started.
    """
    ensure_home(config.home)
    # Hooks seal the user's words for proxies where this directory is. So it must be there before the first prompt.
    make_directory(server_file(config.home, plan.name).parent)
    with ExitStack() as stack:
        own = new_id()
        client = find_client(f"proxy --name {plan.name} ")
        if client is not None:
            try:
                stack.callback(ProxyNote(config.home, client, plan.name).close)
            except (AverError, OSError) as error:  # Then hooks judge the calls, too.
                write_error_line(f"the client's hooks do not know of this proxy: {error}")
        find_session = partial(_find_session, plan.session, own, client, config.home)
        return _relay(plan, _open_link(plan), config.home, open_ledger, find_session)


def run_canary(plan: ProxyPlan, name: str) -> int:
    """Answer the test of `aver doctor`. It leaves no trace."""
    from aver.hooks.selftest import open_throwaway_ledger
    from aver.mcp.proxy.canary import CanaryLink

    with open_throwaway_ledger() as ledger:
        return _relay(plan, CanaryLink(name), ledger.config.home, lambda: ledger, new_id)


def _open_link(plan: ProxyPlan) -> ServerLink:
    if plan.command:
        return ProcessLink(plan.command, environment=os.environ, tell=write_error_line)
    try:
        from aver.mcp.proxy.http_link import HttpLink  # Not above: it imports the SDK.
    except ImportError as error:
        words = f"a server at a URL needs a package that is not installed: {error.name}"
        raise Unavailable(words, advice=install_advice("gateway")) from error
    return HttpLink(plan.url, headers=plan.headers, is_sse=plan.is_sse, tell=write_error_line)


def _relay(
    plan: ProxyPlan, link: ServerLink, home: Path, open_ledger: Callable[[], Ledger], find_session: Callable[[], str]
) -> int:
    """Relay between standard input and output and a server, until either ends."""
    from aver.mcp.proxy.call_judge import CallJudge

    book = ToolBook(home, plan.name)
    relay = Relay(link, book, write=_ClientWriter(sys.stdout.fileno()).write, tell=write_error_line)
    judge = CallJudge(
        relay,
        book,
        server=plan.name,
        open_gateway=lambda: open_proxy_gateway(plan, relay, book, open_ledger()),
        find_session=find_session,
        wait=plan.wait,
    )
    hurry = threading.Event()
    _catch_signals(relay, hurry)
    relay.start(judge)
    threading.Thread(target=partial(_read_client, relay), daemon=True).start()
    try:
        relay.finished.wait()
        # The server may have ended while calls are still being sealed.
        relay.drain(HURRY_SECONDS if hurry.is_set() else DRAIN_SECONDS)
    finally:
        code = relay.close()
        judge.close()
    return code


def open_proxy_gateway(plan: ProxyPlan, relay: Relay, book: ToolBook, ledger: Ledger) -> Gateway:
    """Open the gateway whose executor calls the server behind a relay."""
    from aver.gateway.embedded_parts import open_embedded
    from aver.gateway.parts.entrance import is_apart
    from aver.gateway.settings import read_gateway_settings
    from aver.mcp.proxy.server_upstream import ServerUpstream

    try:
        settings = read_gateway_settings(ledger.config)
        if is_apart(ledger.config.home, settings):
            words = "the parts of this home's gateway run apart, and a proxy carries its calls out in its own process"
            raise Unavailable(words, advice="give the proxy a home of its own: AVER_HOME=…")
        gateway = open_embedded(ledger, settings, workspace=plan.workspace, effects={}, close=ledger.close)
        gateway.connect(plan.name, ServerUpstream(relay, book))
        return gateway
    except BaseException:
        ledger.close()
        raise


def _find_session(given: str, own: str, client: ClientProcess | None, home: Path) -> str:
    """Return the session of a call that comes now: the given one, that of the client, or the proxy's own.

    A client may begin a new session at any time, so this is asked for each call.
    """
    noted = None if given or client is None else read_session(home, client)
    if noted is None:
        return given or own
    from aver.gateway.act_records import check_session

    try:
        return check_session(noted.session)
    except AverError as error:  # The client's name for it is no name of a chain.
        debug("mcp", "the session of the client is not joined: %s", error.message)
        return own


def _catch_signals(relay: Relay, hurry: threading.Event) -> None:
    def stop(number: int, frame: Any) -> None:
        hurry.set()
        relay.finished.set()

    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, stop)


def _read_client(relay: Relay, source: int = 0) -> None:
    """Read the client's lines until it closes its output.

    From the descriptor itself: Python's own buffer has a lock, which a thread that still reads would hold at the end.
    """
    rest, is_skipping = bytearray(), False
    with suppress(OSError):
        while chunk := os.read(source, CHUNK):
            *lines, tail = chunk.split(b"\n")
            for line in lines:
                if is_skipping:
                    is_skipping = False
                else:
                    relay.take_from_client(bytes(rest) + line)
                rest.clear()
            if is_skipping:
                continue
            rest += tail
            if len(rest) > CLIENT_MESSAGE_MAX:
                relay.reply(build_error(None, INVALID_REQUEST, f"a message has more than {CLIENT_MESSAGE_MAX} bytes"))
                rest.clear()
                is_skipping = True
    relay.finished.set()


class _ClientWriter:
    """Writes whole lines to the client. After the client has gone, lines are dropped."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._writing = threading.Lock()
        self._is_gone = False

    def write(self, line: bytes) -> None:
        with self._writing:
            if self._is_gone:
                return
            try:
                for part in (memoryview(line), memoryview(b"\n")):
                    at = 0
                    while at < len(part):
                        at += os.write(self._target, part[at:])
            except OSError as error:
                debug("mcp", "the client does not read any more: %s", error)
                self._is_gone = True


def write_error_line(words: str) -> None:
    """Write a line to standard error, which clients keep as a server's log."""
    with suppress(OSError, ValueError):
        os.write(2, f"{words}\n".encode("utf-8", "replace"))

"""The server of `aver serve`: where it listens, its link, and its life.

    with listen_locally(4840) as place:
        server = ExplorerServer(ledger, place, read_only=True)
        print(server.link)
        server.run()

Without TLS the server listens on this machine only, on both local addresses or not at all (see
`aver.serving.sockets.bind_loopback_pair`). The token is made anew at each start, and is in the link's fragment, which
browsers send to nobody. The fragment also has SHA-256 of the key list. A page that was opened by this link takes these
keys as its reader's own, because the reader got the link from the terminal, and not from the server.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import secrets
import signal
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import cast
from urllib.parse import urlsplit

import anyio.to_thread
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from aver.errors import BadInput, Unavailable
from aver.explorer.answers import COMMON_HEADERS, error_answer, problem_answer
from aver.explorer.api import ExplorerApi
from aver.explorer.connection import ExplorerConnection
from aver.explorer.guard import ExplorerGuard
from aver.explorer.handshake import TlsHandshake
from aver.explorer.ledger_reads import digest_keys
from aver.explorer.page_files import PageFiles
from aver.ledger import Ledger
from aver.serving.sockets import BACKLOG, bind_loopback_pair

PORT = 4840

GRACE_SECONDS = 5
"""How long a server that is stopped waits for running requests. They are short, and live streams end by themselves."""

PATIENCE_SECONDS = 5.0
"""How long a request waits for a ledger that is locked, or whose server does not answer."""

KEEP_SECONDS = 30
"""How long a connection without a request stays open. The page asks now and then."""

TOKEN_BYTES = 32

_ORIGIN = re.compile(r"https://[a-z0-9.-]+(?::[1-9][0-9]{0,4})?|https://\[[0-9a-f:]+\](?::[1-9][0-9]{0,4})?").fullmatch


@dataclass(slots=True)
class ListeningPlace:
    """Sockets that listen, and the names by which clients may call the server there."""

    sockets: list[socket.socket]
    port: int
    hosts: frozenset[str]
    origins: frozenset[str]
    url: str
    """The beginning of the link."""
    context: ssl.SSLContext | None = None

    def close(self) -> None:
        for each in self.sockets:
            each.close()

    def __enter__(self) -> ListeningPlace:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def listen_locally(port: int, origin: str | None = None) -> ListeningPlace:
    """Listen on this machine only. `origin` is the address of a TLS proxy in front, for people elsewhere.

    Raises `Unavailable` if the port is in use, and `BadInput` for an origin that is none.
    """
    further = [] if origin is None else [check_origin(origin)]
    listeners = bind_loopback_pair(port)
    chosen = int(listeners[0].socket.getsockname()[1])
    hosts = [f"{name}:{chosen}" for name in ("localhost", "127.0.0.1", "[::1]")]
    return ListeningPlace(
        [listener.socket for listener in listeners],
        chosen,
        frozenset({*hosts, *(each.removeprefix("https://") for each in further)}),
        frozenset({*(f"http://{host}" for host in hosts), *further}),
        further[0] if further else f"http://localhost:{chosen}",
    )


def listen_with_tls(host: str, port: int, cert: Path, key: Path, origin: str | None = None) -> ListeningPlace:
    """Listen at any address, with TLS. `origin` is the name by which clients call it, if that is not `host`.

    Raises `BadInput` for a certificate or key that cannot be used, and `Unavailable` for an address.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        # Without a callback, OpenSSL would ask at the terminal for the passphrase of a key.
        context.load_cert_chain(cert, key, password=lambda: "")
    except (OSError, ValueError) as error:
        words = f"cannot use the certificate {cert} with the key {key}: {error}"
        raise BadInput(words, advice="give PEM files that belong together; the key has no passphrase") from error
    named = check_origin(origin) if origin is not None else None
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        # The address counts: `0` and `*` are other names for the same.
        if named is None and ipaddress.ip_address(found[0][4][0]).is_unspecified:
            raise BadInput(
                f"{host} is every address of this machine", advice="give the name for clients: --origin https://…"
            )
        listening = socket.create_server(found[0][4][:2], family=found[0][0], backlog=BACKLOG)
    except (OSError, OverflowError, UnicodeError) as error:
        raise Unavailable(
            f"cannot listen on {host}:{port}: {error}", advice="choose another --host or --port"
        ) from error
    chosen = int(listening.getsockname()[1])
    written = f"[{host}]" if ":" in host else host.lower()
    origins = {named} if named is not None else {f"https://{written}:{chosen}"}
    if named is None and chosen == 443:
        origins.add(f"https://{written}")
    hosts = {each.removeprefix("https://") for each in origins}
    return ListeningPlace([listening], chosen, frozenset(hosts), frozenset(origins), min(origins, key=len), context)


def check_origin(text: str) -> str:
    """An origin as browsers write it. Raises `BadInput` for any other."""
    try:
        if not _ORIGIN(text) or urlsplit(text).port == 443:
            raise ValueError
    except ValueError:  # Also a port that is too large, and an address that is none.
        raise BadInput(
            f"{ascii(text)[:120]} is not an origin", advice="use https://NAME or https://NAME:PORT, in lower case"
        ) from None
    return text


class ExplorerServer:
    """One server over one ledger, which the caller opens and closes."""

    def __init__(self, ledger: Ledger, place: ListeningPlace, *, read_only: bool) -> None:
        self._place = place
        self._uvicorn: _Uvicorn | None = None
        self.token = secrets.token_urlsafe(TOKEN_BYTES)
        self.link = f"{place.url}/#token={self.token}&keys={digest_keys(ledger.keys.ring())}"
        """For the person at the terminal. Everyone who has it can read the ledger."""
        page = PageFiles()
        self._api = ExplorerApi(ledger, page, read_only=read_only)

        async def give_file(request: Request) -> Response:
            return page.answer(request)

        async def give_nothing(request: Request) -> Response:
            return Response(status_code=204, headers=COMMON_HEADERS)  # Every browser asks for it.

        app = Starlette(
            routes=[
                *(Route(path, give_file, methods=["GET"]) for path in page.by_path),
                Route("/favicon.ico", give_nothing, methods=["GET"]),
                *self._api.routes(),
            ],
            exception_handlers={HTTPException: _answer_missing, Exception: _answer_defect},
            lifespan=self._live,
        )
        app.router.redirect_slashes = False
        self.app = ExplorerGuard(app, self.token, hosts=place.hosts, origins=place.origins)

    @asynccontextmanager
    async def _live(self, app: Starlette) -> AsyncIterator[None]:
        """Watch the ledger and keep the index near it while the server runs."""
        watch = asyncio.create_task(self._api.feed.watch())
        self._api.keeper.start()
        try:
            yield
        finally:
            watch.cancel()
            await anyio.to_thread.run_sync(self._api.keeper.stop)

    def run(self) -> None:
        """Serve until SIGINT, SIGTERM or `stop`. Running requests are finished first."""
        config = uvicorn.Config(
            self.app,
            http=_protocol_for(self._place),
            ws="none",
            lifespan="on",
            log_level="critical",  # The guard logs defects. What is left are clients that went away.
            access_log=False,
            backlog=BACKLOG,  # asyncio accepts so many at a time, before it makes a connection of any.
            server_header=False,
            date_header=False,
            proxy_headers=False,
            timeout_keep_alive=KEEP_SECONDS,
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
        self._uvicorn = _Uvicorn(config, self._api)
        self._uvicorn.run(self._place.sockets)

    def stop(self) -> None:
        """Make `run` return soon. Any thread may call it."""
        if self._uvicorn is not None:
            self._uvicorn.should_exit = True


def _protocol_for(place: ListeningPlace) -> type[asyncio.Protocol]:
    """Return the class that uvicorn makes an object of for each connection."""
    if place.context is None:
        return ExplorerConnection
    return cast(type[asyncio.Protocol], partial(TlsHandshake, context=place.context, pending={}))


class _Uvicorn(uvicorn.Server):
    """uvicorn, which ends live streams first, and returns when a signal has stopped it."""

    def __init__(self, config: uvicorn.Config, api: ExplorerApi) -> None:
        super().__init__(config)
        self._api = api

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        # uvicorn's own handlers raise the signal again at the end, and so the caller could clean up nothing.
        loop = asyncio.get_running_loop()
        taken = (signal.SIGINT, signal.SIGTERM)

        def stop() -> None:
            self.force_exit = self.should_exit  # At the second signal.
            self.should_exit = True

        try:
            for each in taken:
                loop.add_signal_handler(each, stop)
        except (RuntimeError, ValueError):  # Not in the main thread: its owner stops it.
            yield
            return
        try:
            yield
        finally:
            for each in taken:
                loop.remove_signal_handler(each)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._api.feed.stop()
        await super().shutdown(sockets)


async def _answer_defect(request: Request, error: Exception) -> Response:
    """The answer to a request at which the application failed. Starlette then raises the error, and the guard logs it.

    Without this, Starlette would answer in its own form, without the common headers.
    """
    return error_answer(error)


async def _answer_missing(request: Request, error: Exception) -> Response:
    """The answer to a path or method that is not there."""
    path = ascii(request.url.path)[:120]
    if isinstance(error, HTTPException) and error.status_code == 405:
        answer = problem_answer(405, f"{request.method} is not a method of {path}")
        answer.headers.update(error.headers or {})
        return answer
    return problem_answer(404, f"there is no {path} here")

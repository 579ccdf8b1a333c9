"""The routes below `/api/v1/`: what each takes, and what it answers. `openapi` describes them for programs.

Routes read the ledger in threads, at most `THREADS_MAX` at a time. They take no parameter that they do not know, and
none twice. Lists have at most `PAGE_MAX` entries; `next` is the cursor of the next page, and null at the end. A cursor
is a text that only this server understands.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import orjson
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from aver import __version__
from aver.capsule.json_document import check_object
from aver.capsule.json_reader import read_json
from aver.errors import AverError, BadInput, Refused
from aver.explorer.answers import COMMON_HEADERS, CONTENT_POLICY, error_answer, json_answer, problem_answer
from aver.explorer.approval_places import STATES, answer_request, enrol_from_page, list_places
from aver.explorer.command_options import find_command_options
from aver.explorer.guard import API
from aver.explorer.index import CountsPage, IndexUnavailable, LedgerIndex, SearchPage, SessionsPage
from aver.explorer.index.database import ADVICE as INDEX_ADVICE
from aver.explorer.index_keeper import IndexKeeper
from aver.explorer.ledger_reads import digest_keys, dump_keys, find_place, read_blob, read_records
from aver.explorer.live import LiveFeed
from aver.explorer.moments import Moments
from aver.explorer.openapi import API_VERSION, build_openapi
from aver.explorer.page_files import PageFiles
from aver.ledger import Ledger
from aver.ledger.stores.urls import is_on_server
from aver.log import debug

PAGE_MAX = 500
"""Entries of one list."""

PAGE_USUAL = 100
"""Entries of one list, if the client asks for no number."""

ORDERS = ("descending", "ascending")

THREADS_MAX = 6
"""Requests that read the ledger at a time. With the live stream and the index, they use the 8 connections that a
process has to a PostgreSQL server."""

RECORDS_SENT_MAX, BLOBS_SENT_MAX = 16, 4
"""Answers with records, and with blobs, that are in memory until their clients have read them. One of the first has up
to 8 MiB, one of the second up to 64 MiB."""

TURN_SECONDS = 5.0
"""How long a request waits until one of these has been read."""

PIECE = 256 * 1024
"""Bytes of an answer that are given to the connection at a time. A client has `STALL_SECONDS` for each."""

_NUMBER = re.compile(r"[0-9]{1,18}", re.ASCII).fullmatch
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII).fullmatch

Result = TypeVar("Result")
Handler = Callable[[Request], Awaitable[Response]]


class ReadOnly(Refused):
    """The server was started with `--read-only`."""

    def __init__(self) -> None:
        super().__init__("READ_ONLY", "this server only reads", advice="start aver serve without --read-only")


class Turns:
    """How many large answers may be in memory. A turn ends when its answer is sent, or its client is gone."""

    def __init__(self, count: int) -> None:
        self._free = asyncio.Semaphore(count)

    async def take(self, build: Callable[[], Awaitable[PiecewiseResponse]]) -> Response:
        """Build an answer when there is a turn for it. Answers 429 if there is none for `TURN_SECONDS`."""
        try:
            async with asyncio.timeout(TURN_SECONDS):
                await self._free.acquire()
        except TimeoutError:
            return problem_answer(429, "other clients have not read their answers yet")
        try:
            answer = await build()
        except BaseException:
            self._free.release()
            raise
        answer.release = self._free.release
        return answer


class PiecewiseResponse(Response):
    """An answer that is sent piece by piece, so that no more than a piece waits for a slow client."""

    release: Callable[[], None] = staticmethod(lambda: None)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            body = memoryview(self.body)
            for start in range(0, max(len(body), 1), PIECE):
                piece = bytes(body[start : start + PIECE])
                await send({"type": "http.response.body", "body": piece, "more_body": start + PIECE < len(body)})
        finally:
            self.release()


class ExplorerApi:
    """The routes over one ledger."""

    def __init__(self, ledger: Ledger, page: PageFiles, *, read_only: bool) -> None:
        self._ledger = ledger
        self._page = page
        self._read_only = read_only
        self._command_options = find_command_options(ledger.config)
        self._moments = Moments()
        self._index = LedgerIndex.in_home(ledger.config.home)
        self.keeper = IndexKeeper(ledger, self._index)
        self.feed = LiveFeed(ledger, self._moments, self.keeper)
        self._threads = anyio.CapacityLimiter(THREADS_MAX)
        self._record_turns = Turns(RECORDS_SENT_MAX)
        self._blob_turns = Turns(BLOBS_SENT_MAX)

    def routes(self) -> list[Route]:
        """The routes, for Starlette."""
        gets = {
            "about": self._about,
            "keys": self._keys,
            "chains": self._chains,
            "chains/{name}/records": self._records,
            "locate": self._locate,
            "blobs/{sha256}": self._blob,
            "sessions": self._sessions,
            "search": self._search,
            "counts": self._counts,
            "approvals": self._approvals,
            "live": self._live,
            "openapi.json": self._openapi,
        }
        posts = {"approvals/{id}": self._answer, "approvers": self._enrol}
        return [
            *(Route(f"{API}{path}", _report_errors(handler), methods=["GET"]) for path, handler in gets.items()),
            *(Route(f"{API}{path}", _report_errors(handler), methods=["POST"]) for path, handler in posts.items()),
        ]

    async def _run(self, work: Callable[..., Result], *given: Any) -> Result:
        return await anyio.to_thread.run_sync(work, *given, limiter=self._threads)

    # --- the ledger

    async def _about(self, request: Request) -> Response:
        read_query(request)
        ring = await self._run(self._ledger.keys.ring)
        return json_answer(
            {
                "versions": {"aver": __version__, "api": API_VERSION},
                "ledger": self._ledger.id,
                "tenant": self._ledger.tenant,
                "store": {
                    "kind": "postgresql" if is_on_server(self._ledger.store.url) else "sqlite",
                    "name": self._ledger.store.name,
                },
                "page_sha256": self._page.sha256,
                "keys_sha256": digest_keys(ring),
                "read_only": self._read_only,
                "command_options": self._command_options,
                "index": self.keeper.describe(),
            }
        )

    async def _keys(self, request: Request) -> Response:
        read_query(request)
        ring = await self._run(self._ledger.keys.ring)
        return Response(dump_keys(ring), 200, COMMON_HEADERS, "application/json")

    async def _chains(self, request: Request) -> Response:
        given = read_query(request, "after", "limit")
        limit = read_limit(given)
        if "after" in given:
            name, _, offset = read_cursor(given["after"]).partition(":")
            if not _NUMBER(offset):
                raise cursor_error()
            moment, start = self._moments.find(name), int(offset)
            if moment is None:
                words = "the chains have changed too often since the first page was read"
                raise Refused("MOMENT_GONE", words, advice="begin again without `after`")
        else:
            moment, start = await self._run(self.feed.take_moment), 0
        end = start + limit
        return json_answer(
            {
                "moment": moment.id,
                "total": len(moment.chains),
                "records": moment.records,
                "chains": [chain.to_dict() for chain in moment.chains[start:end]],
                "next": write_cursor(f"{moment.id}:{end}") if end < len(moment.chains) else None,
            }
        )

    async def _records(self, request: Request) -> Response:
        given = read_query(request, "start", "stop")
        start = read_number(given, "start", 0)
        stop = read_number(given, "stop", None)
        if stop is not None and stop < start:
            raise BadInput("`stop` is before `start`")
        name = request.path_params["name"]

        async def build() -> PiecewiseResponse:
            found = await self._run(read_records, self._ledger, name, start, stop)
            headers = dict(COMMON_HEADERS)
            if found.next_start is not None:
                headers["aver-next"] = str(found.next_start)
            return PiecewiseResponse(found.data, 200, headers, "application/x-ndjson")

        return await self._record_turns.take(build)

    async def _locate(self, request: Request) -> Response:
        given = read_query(request, "ref")
        if "ref" not in given:
            raise BadInput("`ref` is missing", advice="give a hash, an id, a key, a URI or a chain")
        return json_answer(await self._run(find_place, self._ledger, given["ref"]))

    async def _blob(self, request: Request) -> Response:
        read_query(request)
        digest = request.path_params["sha256"]

        async def build() -> PiecewiseResponse:
            data = await self._run(read_blob, self._ledger, digest)
            headers = {
                **COMMON_HEADERS,
                "content-security-policy": f"{CONTENT_POLICY}; sandbox",
                "content-disposition": f'attachment; filename="{digest}"',
            }
            return PiecewiseResponse(data, 200, headers, "application/octet-stream")

        return await self._blob_turns.take(build)

    # --- the index

    async def _sessions(self, request: Request) -> Response:
        given = read_query(request, "tool", "workspace", "since", "until", "query", "sort", "order", "after", "limit")
        order = given.pop("order", "descending")
        if order not in ORDERS:
            raise BadInput(f"`order` is one of {', '.join(ORDERS)}")
        limit, cursor = read_limit(given), given.pop("after", None)
        given.pop("limit", None)
        return await self._ask_index(
            lambda: self._index.sessions(
                self._ledger, **given, descending=order == "descending", cursor=cursor, limit=limit
            )
        )

    async def _search(self, request: Request) -> Response:
        given = read_query(request, "query", "after", "limit")
        if "query" not in given:
            raise BadInput("`query` is missing", advice="give words to search for")
        limit, cursor = read_limit(given), given.get("after")
        return await self._ask_index(
            lambda: self._index.search(self._ledger, given["query"], cursor=cursor, limit=limit)
        )

    async def _counts(self, request: Request) -> Response:
        given = read_query(request, "by", "since", "until", "after", "limit")
        limit, cursor = read_limit(given), given.pop("after", None)
        given.pop("limit", None)
        return await self._ask_index(lambda: self._index.counts(self._ledger, **given, cursor=cursor, limit=limit))

    async def _ask_index(self, ask: Callable[[], SearchPage | SessionsPage | CountsPage]) -> Response:
        """An answer of the index. It is as old as its last run: this makes sure that another one follows."""
        self.keeper.want()
        try:
            page = await self._run(ask)
            return json_answer(page.to_dict())
        except IndexUnavailable as error:
            return problem_answer(503, error.message, code="INDEX_UNAVAILABLE", advice=error.advice)
        except orjson.JSONEncodeError as error:
            # A damaged file may hold numbers beyond 64 bits.
            debug("explorer", "the answer of the index cannot be written: %s", error)
            return problem_answer(503, "the index is damaged", code="INDEX_UNAVAILABLE", advice=INDEX_ADVICE)

    # --- approvals

    async def _approvals(self, request: Request) -> Response:
        given = read_query(request, "state", "after", "limit")
        state = given.get("state")
        if state is not None and state not in STATES:
            raise BadInput(f"`state` is one of {', '.join(STATES)}")
        before = None
        if "after" in given:
            text = read_cursor(given["after"])
            if not _NUMBER(text):
                raise cursor_error()
            before = int(text)
        found, following = await self._run(list_places, self._ledger, state, before, read_limit(given))
        return json_answer({"requests": found, "next": None if following is None else write_cursor(str(following))})

    async def _answer(self, request: Request) -> Response:
        name = request.path_params["id"]
        if not _UUID(name):
            raise BadInput("a request is named by its id")
        body = await self._read_body(request)
        document = check_object(body, "the answer", frozenset({"statement", "shown", "comment"}))
        if not isinstance(document["shown"], str) or not isinstance(document["comment"], str):
            raise BadInput("`shown` and `comment` are texts")
        return json_answer(await self._run(answer_request, self._ledger, name, document))

    async def _enrol(self, request: Request) -> Response:
        document = check_object(await self._read_body(request), "the enrolment", frozenset({"statement"}))
        return json_answer(await self._run(enrol_from_page, self._ledger, document))

    async def _read_body(self, request: Request) -> Any:
        """The JSON of a request that writes, by the strict reader. Raises `ReadOnly` if this server takes none."""
        read_query(request)
        if self._read_only:
            raise ReadOnly
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise BadInput("the body must be JSON", advice="send Content-Type: application/json")
        return await self._run(read_json, await request.body())

    # --- the rest

    async def _live(self, request: Request) -> Response:
        read_query(request)
        await self.feed.look()
        # Asked last: others may have come while the ledger was read. Nothing waits from here until the stream counts.
        if self.feed.is_full:
            return problem_answer(429, "too many live streams are open")
        # Without the last header, some proxies keep events back until they have many.
        headers = {**COMMON_HEADERS, "x-accel-buffering": "no"}
        if request.method == "HEAD":
            return Response(None, 200, headers, "text/event-stream")
        events: AsyncIterator[bytes] = self.feed.stream(request.headers.get("last-event-id", ""))
        return StreamingResponse(events, 200, headers, "text/event-stream")

    async def _openapi(self, request: Request) -> Response:
        read_query(request)
        return json_answer(build_openapi())


def _report_errors(handler: Handler) -> Handler:
    """A handler whose errors of Aver become answers. Others are left to the guard, which logs them."""

    async def run(request: Request) -> Response:
        try:
            return await handler(request)
        except ReadOnly as error:
            return problem_answer(403, error.message, code=error.code, advice=error.advice)
        except AverError as error:
            return error_answer(error)

    return run


def read_query(request: Request, *names: str) -> dict[str, str]:
    """The parameters of a request. Raises `BadInput` for one that is unknown or comes twice."""
    given: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name not in names:
            known = ", ".join(names) or "none"
            raise BadInput(f"there is no parameter {ascii(name)[:80]} here", advice=f"known parameters: {known}")
        if name in given:
            raise BadInput(f"the parameter {name} comes twice")
        given[name] = value
    return given


def read_number(given: dict[str, str], name: str, default: Result) -> int | Result:
    """A whole number of at most 18 digits. Raises `BadInput` for any other text."""
    if name not in given:
        return default
    if not _NUMBER(given[name]):
        raise BadInput(f"`{name}` is a whole number")
    return int(given[name])


def read_limit(given: dict[str, str]) -> int:
    """How many entries a client asks for. Raises `BadInput` for none, and for more than one answer has."""
    limit = read_number(given, "limit", PAGE_USUAL)
    if not 1 <= limit <= PAGE_MAX:
        raise BadInput(f"`limit` is 1 to {PAGE_MAX}")
    return limit


def write_cursor(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode("ascii")).decode("ascii").rstrip("=")


def read_cursor(cursor: str) -> str:
    """The text in a cursor. Raises `BadInput` if this server did not write it."""
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        text = base64.b64decode(padded, altchars=b"-_", validate=True).decode("ascii")
    except (UnicodeError, binascii.Error):
        raise cursor_error() from None
    if write_cursor(text) != cursor:
        raise cursor_error()
    return text


def cursor_error() -> BadInput:
    return BadInput("`after` is not a cursor of this server", advice="begin again without `after`")

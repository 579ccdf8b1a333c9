"""Answers of the Explorer's server: the headers that every answer has, JSON, and the one form of errors.

An error is `{"code": "...", "message": "...", "advice": "..."}`. The code is for programs. Errors of Aver become

    404  NotFound                   400  any other BadInput
    409  Refused, with its code     503  IntegrityError and Unavailable: the ledger cannot be read now

All other exceptions are defects: they become a 500 that says no more than the type.
"""

from __future__ import annotations

import json
from typing import Any

import orjson
from starlette.responses import Response

from aver.config import hide_password
from aver.errors import AverError, BadInput, IntegrityError, NotFound, Refused
from aver.log import debug
from aver.serving.guard import HttpRefusal, Send

CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; worker-src blob:;"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script';"
    " trusted-types aver"
)
"""The page runs its own script, reads from its own server, and nothing else."""

COMMON_HEADERS = {
    "content-security-policy": CONTENT_POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""The headers of every answer. The page's files replace the last one, and a blob adds to the first."""

RETRY_SECONDS = 1
"""When a client that was refused for its number of requests may try again."""

CODE_BY_STATUS = {
    400: "BAD_REQUEST",
    401: "NO_TOKEN",
    403: "FORBIDDEN",
    404: "NOT_FOUND",
    405: "METHOD_NOT_ALLOWED",
    413: "TOO_LARGE",
    421: "WRONG_HOST",
    429: "TOO_MANY",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}
ADVICE_BY_STATUS = {
    401: "open the link that aver serve printed",
    403: "open the link that aver serve printed in a window of its own",
    421: "use the address that aver serve printed; for a proxy in front, start aver serve with --origin",
    429: "wait a moment, then try again",
    500: "this is a bug in Aver: please report it, with the traceback that the server shows",
}


def json_answer(document: Any, status: int = 200) -> Response:
    """A document as an answer."""
    return Response(orjson.dumps(document), status, COMMON_HEADERS, "application/json")


def describe_problem(status: int, message: str, *, code: str = "", advice: str = "") -> dict[str, str]:
    """The document of an error."""
    return {
        "code": code or CODE_BY_STATUS[status],
        "message": hide_password(message),
        "advice": hide_password(advice) or ADVICE_BY_STATUS.get(status, ""),
    }


def problem_answer(status: int, message: str, *, code: str = "", advice: str = "") -> Response:
    """An error as an answer."""
    debug("explorer", "answered %s: %s", status, message)
    answer = json_answer(describe_problem(status, message, code=code, advice=advice), status)
    if status == 429:
        answer.headers["retry-after"] = str(RETRY_SECONDS)
    if status == 401:
        answer.headers["www-authenticate"] = "Bearer"
    return answer


def error_answer(error: Exception) -> Response:
    """An exception as an answer."""
    if isinstance(error, NotFound):
        return problem_answer(404, error.message, advice=error.advice)
    if isinstance(error, BadInput):
        return problem_answer(400, error.message, advice=error.advice)
    if isinstance(error, Refused):
        return problem_answer(409, error.message, code=error.code, advice=error.advice)
    if isinstance(error, IntegrityError):
        return problem_answer(503, error.message, code=error.code, advice=error.advice or "run: aver verify")
    if isinstance(error, AverError):
        return problem_answer(503, error.message, advice=error.advice)
    return problem_answer(500, f"internal error: {type(error).__name__}")


async def send_refusal(refusal: HttpRefusal, send: Send) -> None:
    """Send a refusal of the guard as the whole answer."""
    answer = problem_answer(refusal.status, refusal.words)
    headers = [*answer.raw_headers, *(pair for pair in refusal.headers if pair[0] != b"www-authenticate")]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})


def raw_problem(status: int, reason: str, message: str) -> bytes:
    """An error as the bytes of a whole HTTP answer, for a connection that no application serves."""
    body = json.dumps(describe_problem(status, message)).encode("ascii")
    retry = f"retry-after: {RETRY_SECONDS}\r\n" if status == 429 else ""
    common = "".join(f"{name}: {value}\r\n" for name, value in COMMON_HEADERS.items())
    head = (
        f"HTTP/1.1 {status} {reason}\r\n{common}{retry}content-type: application/json\r\n"
        f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
    )
    return head.encode("ascii") + body

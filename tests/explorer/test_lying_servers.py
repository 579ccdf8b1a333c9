"""The page's verifier on servers that lie: a lie is found or not judged, and never verified; nothing is endless."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from aver import Ledger
from support.browser_pages import key_of
from support.bundles import draft
from support.explorer_servers import API, ServedExplorer, serve
from support.node import try_page_sources

pytestmark = pytest.mark.more  # They run the sources of the page.

SCRIPT = "tests/judge_ledger.mjs"
A, B = f"{API}chains/ci.a/records", f"{API}chains/ci.b/records"
CHAINS, KEYS, BLOBS = f"{API}chains", f"{API}keys", f"{API}blobs/"

Lie = Callable[[str, bytes], bytes | None]
"""Makes another answer of the true one at a path. None ends the connection in the middle of the answer."""


@contextmanager
def lie_about(served: ServedExplorer, lie: Lie) -> Iterator[str]:
    """A server in front of the true one, which changes its answers. Gives its origin."""

    class Liar(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
            headers = {"Host": f"localhost:{served.port}", "Authorization": self.headers["Authorization"]}
            connection.request("GET", self.path, headers=headers)
            answer = connection.getresponse()
            body = lie(self.path, answer.read())
            connection.close()
            self.send_response(answer.status)
            self.send_header("Content-Length", str(1000 if body is None else len(body)))
            self.end_headers()
            self.wfile.write(b"{" if body is None else body)

        def log_message(self, *_: Any) -> None:
            pass

    liar = ThreadingHTTPServer(("127.0.0.1", 0), Liar)
    threading.Thread(target=liar.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{liar.server_address[1]}"
    finally:
        liar.shutdown()
        liar.server_close()


def judge(ledger: Ledger, lie: Lie) -> tuple[str, set[tuple[str, str | None]]]:
    """The status and the codes of the failures by their chains; `not judged` and no code where there is no verdict."""
    with serve(ledger) as served, lie_about(served, lie) as origin:
        done = try_page_sources(SCRIPT, origin, served.server.token, "--", key_of(ledger))
    if done.returncode:
        assert "NotJudged" in done.stderr or "ApiError" in done.stderr, done.stderr
        return "not judged", set()
    verdict = json.loads(done.stdout)
    found = {(one["code"], one["place"]["chain"]) for one in verdict["findings"] if one["status"] == "failed"}
    return verdict["status"], found


@pytest.fixture
def ledger_of_two(ledger: Ledger) -> Ledger:
    ledger.append_many("ci.a", [draft(f"step {number}") for number in range(8)])
    ledger.append_many("ci.b", [draft(f"other {number}") for number in range(3)])
    ledger.append("ci.c", draft("x" * 50_000))
    ledger.close_chain("ci.b")
    return ledger


def change_lines(path: str, change: Callable[[list[bytes]], Any]) -> Lie:
    def lie(asked: str, body: bytes) -> bytes:
        if not asked.startswith(path):
            return body
        lines = body.splitlines(keepends=True)
        change(lines)
        return b"".join(lines)

    return lie


def drop(number: int) -> Callable[[list[bytes]], None]:
    """Leave a line out, where the answer has so many."""

    def change(lines: list[bytes]) -> None:
        lines[:] = [line for at, line in enumerate(lines) if at not in (number, len(lines) + number)]

    return change


def change_chains(change: Callable[[list[dict[str, Any]]], Any]) -> Lie:
    def lie(asked: str, body: bytes) -> bytes:
        if asked.partition("?")[0] != CHAINS:
            return body
        document = json.loads(body)
        change(document["chains"])
        return json.dumps(document).encode()

    return lie


def find(chains: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(chain for chain in chains if chain["name"] == name)


def replace_answer(path: str, answer: bytes | None) -> Lie:
    return lambda asked, body: answer if asked.startswith(path) else body


def repeat_chains(asked: str, body: bytes) -> bytes:
    """Each page of the list leads to a next one, which is the same."""
    if asked.partition("?")[0] != CHAINS:
        return body
    return json.dumps({**json.loads(body), "next": "again"}).encode()


FOUND: dict[str, tuple[Lie, tuple[str, str | None]]] = {
    "withholds a record": (change_lines(A, drop(3)), ("SEQUENCE_GAP", "ci.a")),
    "withholds the end": (change_lines(A, drop(-1)), ("TRUNCATED", "ci.a")),
    "withholds all records": (replace_answer(A, b""), ("TRUNCATED", "ci.a")),
    "reorders": (change_lines(A, lambda lines: lines.reverse()), ("SEQUENCE_GAP", "ci.a")),
    "doubles": (change_lines(A, lambda lines: lines.insert(2, lines[-1])), ("SEQUENCE_GAP", "ci.a")),
    "answers for another chain": (
        lambda asked, body: body.replace(b"other", b"OTHER") if asked.startswith(B) else body,
        ("HASH_MISMATCH", "ci.b"),
    ),
    "gives lines that are no records": (replace_answer(B, b"{}\n" * 3), ("SCHEMA_INVALID", "ci.b")),
    "gives markup": (replace_answer(B, b"<html>\xff</html>"), ("SCHEMA_INVALID", "ci.b")),
    "claims more records": (
        change_chains(lambda chains: find(chains, "ci.a").update(count=9)),
        ("TRUNCATED", "ci.a"),
    ),
    "claims another head": (
        change_chains(lambda chains: find(chains, "ci.a").update(head="0" * 64)),
        ("ROLLBACK", "ci.a"),
    ),
    "leaves out a chain that meta knows": (
        change_chains(lambda chains: chains.remove(find(chains, "ci.b"))),
        ("CHAIN_MISSING", "ci.b"),
    ),
    "cuts a chain that meta knows": (
        change_chains(lambda chains: find(chains, "ci.b").update(count=2, head=None)),
        ("TRUNCATED", "ci.b"),
    ),
    "gives other bytes of a blob": (replace_answer(BLOBS, b"y" * 50_000), ("ARTIFACT_HASH_MISMATCH", "ci.c")),
}

NOT_JUDGED: dict[str, Lie] = {
    "ends in the middle of an answer": replace_answer(A, None),
    "lists chains without an end": repeat_chains,
    "lists chains that are none": replace_answer(CHAINS, b'{"chains": [{"name": 7}], "next": null}'),
    "has a list that is no JSON": replace_answer(CHAINS, b"<html>"),
    "counts below nothing": change_chains(lambda chains: find(chains, "ci.a").update(count=-1)),
    "has keys that are none": replace_answer(KEYS, b'{"keys": [null]}'),
    "gives far more than it may": replace_answer(B, b" " * (65 * 1024**2)),
}


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", FOUND)
def test_lie_is_found(ledger_of_two: Ledger, name: str) -> None:
    lie, expected = FOUND[name]
    status, found = judge(ledger_of_two, lie)
    assert status == "failed"
    assert expected in found, found


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", NOT_JUDGED)
def test_answer_that_is_none_is_not_judged(ledger_of_two: Ledger, name: str) -> None:
    assert judge(ledger_of_two, NOT_JUDGED[name]) == ("not judged", set())


def test_honest_server_is_verified(ledger_of_two: Ledger) -> None:
    assert judge(ledger_of_two, lambda asked, body: body) == ("verified", set())

"""The page before a server that lies: it never calls verified what was changed, never hangs, and can be stopped.

`test_lying_servers.py` shows the same of the verifier alone. Here the server can also lie to the views, and after the
verdict: it gives the true records to the judge, and others to the reader.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from aver import Ledger
from aver.gate.approvals import deny, enrol_approver
from support.approvals import opened, somebody
from support.browser_pages import go, wait_for_verdict
from support.bundles import draft
from support.explorer_servers import API, serve
from support.large_ledgers import fill_sessions
from support.lying_servers import Answerer, Liar, lie_about

pytestmark = [pytest.mark.browser, pytest.mark.long]

RECORDS = f"{API}chains/ci.a/records"
Send = Callable[[bytes], None]


@pytest.fixture
def liar(filled: Ledger) -> Iterator[Liar]:
    """A server in front of the one of a ledger with two more chains of six records."""
    filled.append_many("ci.a", [draft(f"alpha {number}") for number in range(6)])
    filled.append_many("ci.b", [draft(f"beta {number}") for number in range(6)])
    with serve(filled) as served, lie_about(served) as front:
        yield front


def swap(lines: list[bytes]) -> None:
    lines[1], lines[2] = lines[2], lines[1]


def change_byte(lines: list[bytes]) -> None:
    lines[:] = [line.replace(b"alpha 2", b"alpha 7") for line in lines]


FOUND: dict[str, tuple[Callable[[list[bytes]], Any], str]] = {
    "withholds the last record": (lambda lines: lines.pop(), "TRUNCATED"),
    "reorders two": (swap, "SEQUENCE_GAP"),
    "changes a byte": (change_byte, "HASH_MISMATCH"),
}


@pytest.mark.parametrize(
    ("options", "printed"),
    [
        (["--ledger", "a'; reboot"], r"aver verify --ledger 'a'\''; reboot'"),
        (["--tenant", "$(reboot)\u202e"], "aver verify --tenant '$(reboot)⟨U+202E⟩'"),
        (["--key", "0" * 64], "aver verify"),
        (["--ledger", "a", "; reboot"], "aver verify"),
        ([["--ledger"], "a"], "aver verify"),
    ],
)
def test_commands_take_nothing_of_a_server_but_its_ledger(
    free_page: Any, liar: Liar, options: list[Any], printed: str
) -> None:
    def answer(path: str, body: bytes, send: Send) -> None:
        if path.startswith(f"{API}about"):
            body = json.dumps({**json.loads(body), "command_options": options}).encode()
        send(body)

    liar.answer = answer
    free_page.goto(liar.link)
    shown = free_page.locator(".without-page .command code")
    shown.wait_for()
    assert shown.inner_text() == printed


@pytest.mark.parametrize("name", FOUND)
def test_lie_to_everyone_is_found_at_its_place(free_page: Any, liar: Liar, name: str) -> None:
    change, code = FOUND[name]
    liar.change_lines(RECORDS, change)
    free_page.goto(liar.link)
    assert wait_for_verdict(free_page) == "Failed"
    words = free_page.locator(".band .finding").first.inner_text()
    assert f"{code} at chain ci.a" in words
    assert "failed" in free_page.locator("header .chip").inner_text()


# --- the truth for the judge, and a lie for the views


def change_text(body: bytes) -> bytes:
    return body.replace(b"alpha 2", b"omega 2")


def change_text_and_hash(body: bytes) -> bytes:
    """Such a record fits in itself. Only its signature and its neighbours do not."""
    lines = []
    for line in change_text(body).splitlines():
        record = json.loads(line)
        record["hash"] = hashlib.sha3_256(record["canonical"].encode()).hexdigest()
        lines.append(json.dumps(record).encode() + b"\n")
    return b"".join(lines)


def lie_by(liar: Liar, change: Callable[[bytes], bytes]) -> Answerer:
    def answer(asked: str, body: bytes, send: Send) -> None:
        send(change(body) if asked.startswith(RECORDS) else body)

    return answer


def give_other_chain(liar: Liar) -> Answerer:
    """Records that are true, and signed by the right key, and of another chain."""

    def answer(asked: str, body: bytes, send: Send) -> None:
        other = asked.startswith(RECORDS)
        send(liar.served.ask(asked.replace("ci.a", "ci.b")).body if other else body)

    return answer


LIES: dict[str, Callable[[Liar], Answerer]] = {
    "another text": lambda liar: lie_by(liar, change_text),
    "another text with its hash": lambda liar: lie_by(liar, change_text_and_hash),
    "another chain": give_other_chain,
}
WRONG = ("omega 2", "beta 2")


def expect_no_lie(page: Any, view: str) -> None:
    go(page, view)
    page.get_by_text("another record here than it gave to be verified").first.wait_for()
    words = page.locator("main").inner_text()
    assert not any(lie in words for lie in WRONG), words


@pytest.mark.parametrize("name", LIES)
def test_views_are_held_to_what_was_judged(free_page: Any, liar: Liar, name: str) -> None:
    free_page.goto(liar.link)
    assert wait_for_verdict(free_page) == "Verified"
    liar.answer = LIES[name](liar)
    for view in ("#/chain/ci.a", "#/s/ci.a", "#/c/ci.a/2"):
        expect_no_lie(free_page, view)
    liar.answer = None
    free_page.get_by_role("button", name="Try again").click()
    free_page.get_by_role("heading", name="alpha 2").wait_for()


def test_record_that_views_are_not_given_is_missing(free_page: Any, liar: Liar) -> None:
    free_page.goto(liar.link)
    assert wait_for_verdict(free_page) == "Verified"
    liar.change_lines(RECORDS, lambda lines: lines.pop())
    go(free_page, "#/chain/ci.a")
    free_page.get_by_text("the server withholds this record").wait_for()
    go(free_page, "#/c/ci.a/5")
    free_page.get_by_text("the server withholds this record").wait_for()


def test_verdict_is_no_verdict_on_what_the_views_were_given_before(free_page: Any, liar: Liar) -> None:
    """The views read first. Then the judge is given the truth: its verdict is not about what the reader sees."""
    is_shown = threading.Event()

    def answer(asked: str, body: bytes, send: Send) -> None:
        # The judge asks for a whole chain from its beginning to its end, and the list for a page of rows.
        if asked.startswith(RECORDS) and not asked.endswith("start=0&stop=6"):
            body = change_text_and_hash(body)
        elif asked.startswith(f"{API}chains/ci.b/records"):
            is_shown.wait(60)
        send(body)

    liar.answer = answer
    free_page.goto(f"{liar.link}")
    go(free_page, "#/c/ci.a/2")
    free_page.get_by_role("heading", name="omega 2").wait_for()
    is_shown.set()
    go(free_page, "#/")
    assert wait_for_verdict(free_page) == "Not judged"
    assert "another record 2 of ci.a than it gave to be verified" in free_page.locator(".band").inner_text()
    assert free_page.locator("header .chip").inner_text().strip() == "not judged"


def test_record_is_held_to_its_number_before_any_verdict(free_page: Any, liar: Liar) -> None:
    """The server answers with the record after the one that was asked for. It is true, and not that one."""

    def answer(asked: str, body: bytes, send: Send) -> None:
        if asked.startswith(RECORDS) and "start=2&stop=3" in asked:
            body = liar.served.ask(asked.replace("start=2&stop=3", "start=4&stop=5")).body
        elif asked.startswith(f"{API}chains/") and "stop=6" in asked:
            return  # Nothing is judged.
        send(body)

    liar.answer = answer
    free_page.goto(liar.link)
    go(free_page, "#/c/ci.a/2")
    free_page.get_by_text("This record does not hold by itself").wait_for()


# --- what was there before


def roll_back(liar: Liar, chain: str, count: int) -> None:
    """Serve the first records of a chain alone, in the list and in the records."""
    path = f"{API}chains/{chain}/records"
    head = json.loads(liar.served.ask(f"{path}?start={count - 1}&stop={count}").body)["hash"]

    def answer(asked: str, body: bytes, send: Send) -> None:
        if asked.partition("?")[0] == f"{API}chains":
            document = json.loads(body)
            for one in document["chains"]:
                if one["name"] == chain:
                    one.update(count=count, head=head)
            body = json.dumps(document).encode()
        elif asked.startswith(path):
            lines = body.splitlines(keepends=True)
            body = b"".join(line for line in lines if json.loads(json.loads(line)["canonical"])["sequence"] < count)
        send(body)

    liar.answer = answer


@pytest.mark.parametrize("how", ["meanwhile", "before it is loaded again"])
def test_rollback_after_the_page_has_seen_the_head(free_page: Any, liar: Liar, filled: Ledger, how: str) -> None:
    free_page.goto(liar.link)
    assert wait_for_verdict(free_page) == "Verified"
    roll_back(liar, "ci.a", 4)
    if how == "meanwhile":
        filled.append("ci.b", draft("news, so that the page looks again"))
    else:
        free_page.reload()
    free_page.locator(".band.failed").wait_for()
    words = free_page.locator(".band .finding").first.inner_text()
    assert "ROLLBACK at chain ci.a" in words
    assert "remembers 6 records of the chain ci.a; 4 are here" in words


def test_older_answer_about_a_request_is_noticed(free_page: Any, liar: Liar, filled: Ledger) -> None:
    """The person said no. A server that shows the request as it was before does not get it asked again unnoticed."""
    ada = somebody("ada")
    enrol_approver(filled, ada)
    request = opened(filled)
    deny(filled, request, ada, shown="seen")
    free_page.goto(liar.link)
    wait_for_verdict(free_page)
    go(free_page, f"#/approvals/{request.id}")
    free_page.locator(".sentence .word").filter(has_text="denied").wait_for()
    roll_back(liar, request.chain, request.sequence + 1)
    free_page.reload()
    free_page.locator(".sentence .word").filter(has_text="waits for an answer").wait_for()
    go(free_page, "#/")
    free_page.locator(".band.failed").wait_for()
    assert f"ROLLBACK at chain {request.chain}" in free_page.locator(".band .finding").first.inner_text()


def test_verdict_on_a_large_ledger_ends_when_records_are_gone(free_page: Any, ledger: Ledger) -> None:
    """So many records are not verified again by themselves. The verdict must not stay beside a shorter ledger."""
    (chain,) = fill_sessions(ledger, range(1), 20_001)
    ledger.append("ci.b", draft())
    with serve(ledger) as served, lie_about(served) as liar:
        free_page.goto(liar.link)
        free_page.get_by_role("button", name="Verify everything").click()
        free_page.locator(".band.verified").wait_for()
        roll_back(liar, chain, 20_000)
        ledger.append("ci.b", draft("news"))
        free_page.locator(".band.not-judged").wait_for()
        assert f"fewer records of {chain} than before" in free_page.locator(".band").inner_text()
        free_page.get_by_role("button", name="Try again").first.click()
        free_page.locator(".band.failed").wait_for()
        assert "ROLLBACK" in free_page.locator(".band .finding").first.inner_text()


def test_verdict_on_a_chain_of_a_large_ledger_follows_it(free_page: Any, ledger: Ledger) -> None:
    """It is verified again when it grows, and has no verdict when it became another one."""
    fill_sessions(ledger, range(1), 20_001)
    ledger.append_many("ci.b", [draft(f"beta {number}") for number in range(6)])
    with serve(ledger) as served, lie_about(served) as liar:
        free_page.goto(liar.link)
        free_page.get_by_role("button", name="Verify everything").wait_for()
        go(free_page, "#/chain/ci.b")
        free_page.locator(".judged").filter(has_text="verified").wait_for()
        ledger.append("ci.b", draft("one more"))
        free_page.get_by_text("7 records").first.wait_for()
        free_page.locator(".judged").filter(has_text="verified").wait_for()
        roll_back(liar, "ci.b", 4)
        ledger.append("ci.c", draft("news"))
        free_page.locator(".band.not-judged").wait_for()
        assert "fewer records of ci.b than before" in free_page.locator(".band").inner_text()
        assert not free_page.locator(".judged").filter(has_text="verified").count()


def test_verdict_on_a_large_ledger_ends_when_a_head_is_another(free_page: Any, ledger: Ledger) -> None:
    fill_sessions(ledger, range(1), 20_001)
    ledger.append("ci.b", draft())
    with serve(ledger) as served, lie_about(served) as liar:
        free_page.goto(liar.link)
        free_page.get_by_role("button", name="Verify everything").click()
        free_page.locator(".band.verified").wait_for()

        def answer(path: str, body: bytes, send: Send) -> None:
            if path.startswith(f"{API}chains?"):
                listed = json.loads(body)
                next(chain for chain in listed["chains"] if chain["name"] == "ci.b")["head"] = "f" * 64
                body = json.dumps(listed).encode()
            send(body)

        liar.answer = answer
        ledger.append("ci.c", draft("news"))
        free_page.locator(".band.not-judged").wait_for()
        assert "records of ci.b than before, or others" in free_page.locator(".band").inner_text()


# --- answers that do not end well


def test_answer_that_comes_byte_by_byte_can_be_stopped(free_page: Any, liar: Liar) -> None:
    is_over = threading.Event()

    def answer(asked: str, body: bytes, send: Send) -> None:
        if not asked.startswith(RECORDS) or is_over.is_set():
            return send(body)
        for at in range(len(body)):
            if is_over.is_set():
                return None
            send(body[at : at + 1])
            time.sleep(0.2)
        return None

    liar.answer = answer
    free_page.goto(liar.link)
    free_page.locator(".band.working").wait_for()
    go(free_page, "#/keys")  # The page's own thread waits for nobody.
    free_page.get_by_role("heading", name="Keys", level=1).wait_for()
    go(free_page, "#/")
    free_page.get_by_role("button", name="Stop").click()
    assert wait_for_verdict(free_page) == "Not judged"
    assert "you stopped it" in free_page.locator(".band").inner_text()
    is_over.set()
    free_page.get_by_role("button", name="Try again").first.click()
    free_page.locator(".band.verified").wait_for()


def test_answer_of_100_megabytes_is_not_judged(free_page: Any, liar: Liar) -> None:
    sent: list[int] = []

    def answer(asked: str, body: bytes, send: Send) -> None:
        if not asked.startswith(RECORDS):
            return send(body)
        piece = b" " * 1024**2
        with suppress(OSError):
            for _ in range(100):
                send(piece)
                sent.append(len(piece))
        return None

    liar.answer = answer
    free_page.goto(liar.link)
    assert wait_for_verdict(free_page) == "Not judged"
    assert "the server's answer is larger than 64 MiB" in free_page.locator(".band").inner_text()
    go(free_page, "#/chain/ci.a")
    free_page.get_by_text("larger than 64 MiB").first.wait_for()


def test_answer_that_ends_in_the_middle_is_not_judged(free_page: Any, liar: Liar) -> None:
    """The length is said, so that the browser knows that something is missing."""

    def answer(asked: str, body: bytes, send: Send) -> None:
        send(body[: len(body) // 2] if asked.startswith(RECORDS) else body)

    liar.answer = answer
    liar.says_lengths = True
    free_page.goto(liar.link)
    assert wait_for_verdict(free_page) == "Not judged"
    assert "the server does not answer" in free_page.locator(".band").inner_text()
    liar.answer = None
    free_page.get_by_role("button", name="Try again").first.click()
    free_page.locator(".band.verified").wait_for()


def test_answer_that_ends_in_the_middle_without_a_length_fails(free_page: Any, liar: Liar) -> None:
    """The browser takes the half for a whole answer. The records say that something is missing."""

    def answer(asked: str, body: bytes, send: Send) -> None:
        send(body[: len(body) // 2] if asked.startswith(RECORDS) else body)

    liar.answer = answer
    free_page.goto(liar.link)
    assert wait_for_verdict(free_page) == "Failed"

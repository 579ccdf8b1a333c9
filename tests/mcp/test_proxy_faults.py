"""Servers and clients that misbehave, and a proxy that is killed: no call unsealed, none twice, no outcome invented."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from aver import open_ledger
from aver.gateway.embedded_parts import open_embedded
from aver.gateway.settings import GatewaySettings
from aver.mcp.proxy import server_link
from support.proxies import (
    READS,
    SESSION,
    Shop,
    open_shop,
    read_kinds,
    read_outcomes,
    start_proxy,
    text_of,
    write_settings,
)

EFFECTS = (*READS, "die", "hang", "slow", "endless", "refund")


@pytest.fixture
def shop(tmp_path: Path, aver_home: Path) -> Iterator[Shop]:
    write_settings(aver_home, EFFECTS)
    with open_shop(tmp_path) as found:
        yield found


def wait_for(shop: Shop, tool: str) -> None:
    """Wait until a call has reached the server."""
    deadline = time.monotonic() + 60
    while f'"{tool}"' not in shop.log.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.02)


# --- servers


def test_a_server_that_dies_in_a_call_leaves_an_outcome_that_nobody_knows(shop: Shop) -> None:
    shop.call(1, "die")
    result = shop.result(1)
    assert result["_meta"]["aver/reason_code"] == "OUTCOME_UNKNOWN"
    assert shop.outcomes() == ["OUTCOME_UNKNOWN"]
    # Later calls are refused, and not sent to anybody.
    shop.call(2, "get_order")
    assert shop.result(2)["isError"] is True
    shop.request(3, "ping")
    assert "error" in shop.answer(3)
    assert [each["name"] for each in shop.reached()] == ["die"]
    with open_ledger() as ledger:
        assert ledger.verify().status == "qualified"


def test_requests_that_wait_are_answered_when_the_server_dies(shop: Shop) -> None:
    shop.call(1, "hang")
    wait_for(shop, "hang")
    shop.call(2, "die")
    assert {shop.read()["id"], shop.read()["id"]} == {1, 2}
    assert shop.outcomes() == ["OUTCOME_UNKNOWN", "OUTCOME_UNKNOWN"]


@pytest.mark.more
def test_a_server_that_hangs_keeps_no_other_call_from_its_answer(shop: Shop) -> None:
    shop.call(1, "hang")
    wait_for(shop, "hang")
    shop.call(2, "get_order")
    assert "isError" not in shop.result(2)
    shop.cancel(1)
    shop.relay.drain(30)
    assert sorted(shop.outcomes()) == ["ALLOW", "OUTCOME_UNKNOWN"]
    assert '"notifications/cancelled"' in shop.log.read_text()
    assert shop.is_silent()


@pytest.mark.more
def test_a_server_that_answers_after_the_cancelling_has_a_known_outcome(shop: Shop) -> None:
    shop.call(1, "slow", {"seconds": 1})
    wait_for(shop, "slow")
    shop.cancel(1)
    shop.relay.drain(30)
    assert shop.outcomes() == ["ALLOW"]
    assert shop.is_silent()


def test_a_server_that_floods_is_relayed_in_order(shop: Shop) -> None:
    shop.call(1, "flood", {"count": 3000})
    shop.result(1)
    assert [each["params"]["data"] for each in shop.kept] == list(range(3000))


def test_a_message_without_an_end_stops_the_server(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_link, "MESSAGE_MAX", 100_000)
    # The thread that reads has the old limit for the line that it waits for now. This line ends.
    shop.request(0, "ping")
    shop.result(0)
    shop.call(1, "endless", {"size": 200_000})
    assert shop.result(1)["_meta"]["aver/reason_code"] == "OUTCOME_UNKNOWN"
    assert shop.outcomes() == ["OUTCOME_UNKNOWN"]


def test_answers_that_nobody_waits_for_never_reach_the_client(shop: Shop) -> None:
    shop.call(1, "other_id")
    assert text_of(shop.result(1)) == "for you"
    shop.call(2, "twice")
    assert text_of(shop.result(2)) == "first"
    shop.request(3, "ping")
    shop.result(3)
    assert shop.kept == []
    assert shop.outcomes() == ["ALLOW", "ALLOW"]
    assert sum("dropped" in words for words in shop.told) == 2


def test_lines_that_are_no_messages_are_dropped(shop: Shop) -> None:
    shop.call(1, "junk")
    assert text_of(shop.result(1)) == "after the junk"
    assert shop.kept == []
    assert not any("\x1b" in words for words in shop.told)


@pytest.mark.parametrize(
    "forged",
    [
        '{"jsonrpc": "2.0", "id": ID, "method": "ping", "result": {"content": []}}',
        '{"jsonrpc": "2.0", "id": ID, "method": "ping", "error": {"code": 1, "message": "no"}}',
        '{"jsonrpc": "2.0", "id": ID, "method": 7, "result": {"content": []}}',
        '{"jsonrpc": "2.0", "id": [1], "method": "ping"}',
        '{"jsonrpc": "2.0", "id": null, "method": "ping"}',
    ],
)
def test_a_request_that_is_an_answer_as_well_never_reaches_the_client(shop: Shop, forged: str) -> None:
    """A client could take it for the result of its call: unsealed, and with its secrets."""
    shop.call(1, "raw", {"line": f'{forged}\n{{"jsonrpc": "2.0", "id": ID, "result": {{"a": 1}}}}'})
    assert shop.result(1) == {"a": 1}
    assert shop.kept == []
    assert any("of the server was dropped" in words for words in shop.told)
    assert shop.outcomes() == ["ALLOW"]


def test_a_terminal_gets_no_control_characters_and_the_result_is_as_it_was(shop: Shop) -> None:
    shop.call(1, "control")
    assert text_of(shop.result(1)) == "\x1b[31mred\x1b[0m\u202e"
    deadline = time.monotonic() + 30
    while not any("gotcha" in words for words in shop.told):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert all(words.isprintable() for words in shop.told)


@pytest.mark.parametrize(
    "line",
    [
        '{"jsonrpc": "2.0", "id": 99, "id": ID, "result": {"a": 1}}',
        '{"jsonrpc": "2.0", "id": ID, "result": {"a": 2}, "result": {"a": 1}}',
    ],
)
def test_an_answer_that_two_readers_could_read_differently_is_written_anew(shop: Shop, line: str) -> None:
    shop.call(1, "raw", {"line": line})
    raw = shop.lines.get(timeout=60)
    assert raw.count(b'"id"') == raw.count(b'"result"') == 1
    assert json.loads(raw) == {"jsonrpc": "2.0", "id": 1, "result": {"a": 1}}


def test_numbers_of_a_result_stay_as_the_server_wrote_them(shop: Shop) -> None:
    shop.call(1, "raw", {"line": '{"jsonrpc": "2.0", "id": ID, "result": {"a": 1.50, "b": 12345678901234567890123}}'})
    assert b'"a": 1.50, "b": 12345678901234567890123' in shop.lines.get(timeout=60)


@pytest.mark.more
@pytest.mark.parametrize("mebibytes", [16, pytest.param(100, marks=pytest.mark.long)])
def test_a_huge_result_passes_and_its_record_stays_small(shop: Shop, mebibytes: int) -> None:
    size = mebibytes * 1024 * 1024
    shop.call(1, "big", {"size": size})
    assert text_of(shop.result(1)) == "x" * size
    [outcome] = [record for record in shop.ledger.read(f"gateway.{SESSION}") if record.kind == "act.outcome"]
    result = outcome.to_dict()["outcome"]["result"]["result"]
    assert result["size"] > size
    assert "result" not in result
    assert len(result["sha256"]) == 64


# --- clients


def test_a_client_that_uses_an_id_twice_gets_both_answers(shop: Shop) -> None:
    shop.call(1, "slow", {"seconds": 0.5})
    wait_for(shop, "slow")
    shop.call(1, "get_order", {"id": 7})
    texts = {text_of(shop.result(1))[:9], text_of(shop.result(1))[:9]}
    assert texts == {"done slow", "get_order"}
    assert shop.outcomes() == ["ALLOW", "ALLOW"]
    assert len(shop.reached()) == 2


def test_ids_of_two_kinds_are_two_ids(shop: Shop) -> None:
    shop.call(1, "get_order", {"id": "number"})
    shop.call("1", "get_order", {"id": "text"})
    found = {json.dumps(message["id"]): text_of(message["result"]) for message in (shop.read(), shop.read())}
    assert '"number"' in found["1"]
    assert '"text"' in found['"1"']


@pytest.mark.more
def test_many_calls_at_once_are_each_sealed_once(shop: Shop) -> None:
    for number in range(24):
        shop.call(number, "get_order", {"id": number})
    found = [shop.read() for _ in range(24)]
    assert sorted(message["id"] for message in found) == list(range(24))
    assert all(f'"id": {message["id"]}' in text_of(message["result"]) for message in found)
    kinds = read_kinds(shop.ledger)
    assert [kinds.count(f"act.{kind}") for kind in ("preview", "commit", "outcome")] == [24, 24, 24]
    assert len(shop.reached()) == 24


def test_a_client_that_cancels_before_the_call_is_judged_causes_nothing(shop: Shop) -> None:
    gate = threading.Event()
    real = shop.judge._get_gateway
    shop.judge._get_gateway = lambda: (gate.wait(60), real())[1]  # type: ignore[method-assign]
    shop.call(1, "get_order")
    shop.cancel(1)
    gate.set()
    shop.relay.drain(60)
    assert shop.reached() == []
    assert shop.is_silent()


# --- the command itself


@pytest.mark.more
def test_the_command_ends_with_the_servers_own_code(tmp_path: Path, aver_home: Path) -> None:
    write_settings(aver_home, EFFECTS)
    with start_proxy(tmp_path) as proxy:
        proxy.call(1, "die")
        assert proxy.result(1)["_meta"]["aver/reason_code"] == "OUTCOME_UNKNOWN"
        assert proxy.process.wait(60) == 7


def test_a_server_that_cannot_be_started_is_named(tmp_path: Path, aver_home: Path) -> None:
    with start_proxy(tmp_path, server=["/no/such/program"]) as proxy:
        assert proxy.process.wait(60) == 3
        assert b"/no/such/program" in proxy.process.communicate()[1]


@pytest.mark.more
def test_a_client_that_closes_early_leaves_no_call_unsealed(tmp_path: Path, aver_home: Path) -> None:
    write_settings(aver_home, EFFECTS)
    with start_proxy(tmp_path) as proxy:
        proxy.call(1, "slow", {"seconds": 1})
        proxy.call(2, "get_order")
        assert proxy.process.stdin is not None
        proxy.process.stdin.close()
        proxy.process.stdin = None
        assert proxy.process.wait(90) == 0
    with open_ledger() as ledger:
        assert read_outcomes(ledger) == ["ALLOW", "ALLOW"]
        kinds = read_kinds(ledger)
        assert kinds.count("act.commit") == kinds.count("act.outcome")


@pytest.mark.more
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_proxy_and_the_open_call_is_unknown(tmp_path: Path, aver_home: Path, number: int) -> None:
    write_settings(aver_home, EFFECTS)
    with start_proxy(tmp_path) as proxy:
        proxy.call(1, "hang")
        while '"hang"' not in proxy.log.read_text():
            time.sleep(0.05)
        proxy.process.send_signal(number)
        proxy.process.wait(90)
    with open_ledger() as ledger:
        assert read_outcomes(ledger) == ["OUTCOME_UNKNOWN"]


@pytest.mark.more
def test_a_proxy_that_is_killed_in_a_call_leaves_a_mark_that_the_next_one_closes(
    tmp_path: Path, aver_home: Path
) -> None:
    write_settings(aver_home, EFFECTS)
    with start_proxy(tmp_path) as proxy:
        proxy.call(1, "hang")
        while '"hang"' not in proxy.log.read_text():
            time.sleep(0.05)
        os.kill(proxy.process.pid, signal.SIGKILL)
        proxy.process.wait(60)
    with open_ledger() as ledger:
        assert read_kinds(ledger) == ["act.preview", "act.commit"]
        with open_embedded(ledger, GatewaySettings(), workspace=str(tmp_path), close=lambda: None):
            assert read_outcomes(ledger) == ["OUTCOME_UNKNOWN"]
        assert ledger.verify().status == "qualified"
    # The call is not sent again by anyone.
    assert proxy.log.read_text().count('"tools/call"') == 1


@pytest.mark.long
def test_a_storm_of_kills_leaves_no_call_twice_and_none_without_a_mark(tmp_path: Path, aver_home: Path) -> None:
    write_settings(aver_home, EFFECTS)
    for turn in range(8):
        with start_proxy(tmp_path) as proxy:
            for number in range(40):
                proxy.call(number, "get_order", {"turn": turn, "number": number})
            proxy.answer(turn)
            os.kill(proxy.process.pid, signal.SIGKILL)
            proxy.process.wait(60)
    sent = [json.loads(line) for line in (tmp_path / "log.txt").read_text().splitlines() if '"tools/call"' in line]
    calls = [json.dumps(message["params"]["arguments"], sort_keys=True) for message in sent]
    assert len(calls) == len(set(calls))
    with open_ledger() as ledger, open_embedded(ledger, GatewaySettings(), workspace=str(tmp_path), close=lambda: None):
        kinds = read_kinds(ledger)
        assert kinds.count("act.commit") == kinds.count("act.outcome") >= len(calls)
        assert ledger.verify().status in ("verified", "qualified")

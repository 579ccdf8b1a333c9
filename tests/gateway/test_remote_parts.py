"""Parts that run apart: they work, and each way in which one can fail denies the act with its reason, once."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from aver import open_ledger
from aver.capsule.canonical import canonical_json
from aver.gate.ask import load_gate
from aver.gateway.act_records import mark_key, outcome_key
from aver.gateway.codes import build_envelope
from aver.gateway.parts.part_directories import LINK_TOKEN, install_program
from aver.gateway.parts.pinned_program import PinnedProgram
from aver.gateway.parts.remote_parts import PartMismatch
from aver.serving.part_client import PartUnavailable
from support.apart import ALL, Town, commit, open_town, preview, write
from support.parts import answering, read_request

CODES = {"policy0": "POLICY_UNAVAILABLE", "policy1": "POLICY_UNAVAILABLE", "executor": "EXECUTOR_UNAVAILABLE"}


@pytest.fixture(scope="module")
def shared() -> Iterator[Town]:
    with open_town() as town:
        town.start(*ALL)
        yield town


@pytest.fixture
def town(shared: Town) -> Town:
    """The running parts. Those that a test has ended are started again for the next one."""
    shared.start(*(part for part in ALL if part not in shared.processes))
    for path in shared.workspace.iterdir():
        path.unlink()
    return shared


@pytest.mark.more
def test_an_act_goes_through_three_processes_and_its_records_verify(town: Town) -> None:
    with town.open() as gateway:
        answer = gateway.act(write())
    assert (answer["status"], answer["reason_code"]) == ("OK", "ALLOW")
    assert (town.workspace / "a.txt").read_text() == "one\n"
    records = [record.to_dict() for record in town.ledger.read("gateway.s1")]
    assert town.kinds() == ["act.preview", "act.commit", "act.outcome"]
    assert {each["context"]["environment"]["gateway"]["deployment"] for each in records} == {"apart"}
    assert town.ledger.verify().status == "verified"


def test_a_preview_is_committed_by_another_gateway_and_only_once(town: Town) -> None:
    with town.open(session="s2") as first:
        tx_id = first.act(preview())["data"]["tx_id"]
    with town.open(session="s2") as second:
        assert second.act(commit(tx_id))["reason_code"] == "ALLOW"
        (town.workspace / "a.txt").unlink()
        assert second.act(commit(tx_id))["reason_code"] == "REPLAY_DENY"
    assert not (town.workspace / "a.txt").exists()


def test_an_intent_without_an_effect_here_is_refused_and_recorded(town: Town) -> None:
    call = write(intent_id="FinalizeOutput", inputs={"text": "hello"}, constraints={"user_confirm": True})
    with town.open(session="s3", confirm="flag") as gateway:
        assert gateway.act(call)["reason_code"] == "EXECUTOR_UNAVAILABLE"
    assert town.kinds("s3") == ["act.preview"]  # Before anybody is asked to approve it.


@pytest.mark.parametrize("part", ["policy0", pytest.param("policy1", marks=pytest.mark.more), "executor"])
def test_a_part_that_was_killed_denies_and_works_again_after_its_start(town: Town, part: str) -> None:
    session = f"killed-{part}"
    with town.open(session=session) as gateway:
        assert gateway.act(write("before.txt"))["reason_code"] == "ALLOW"
        town.end(part)
        answer = gateway.act(write())
        assert (answer["status"], answer["reason_code"]) == ("DENY", CODES[part])
        assert "does not run" in answer["summary"]
        assert not (town.workspace / "a.txt").exists()
        assert town.kinds(session)[-1] == ("act.outcome" if part == "executor" else "act.preview")
        town.start(part)
        assert gateway.act(write())["reason_code"] == "ALLOW"


@pytest.mark.parametrize("part", ["policy0", "policy1"])
def test_a_policy_server_that_is_stopped_denies(town: Town, part: str) -> None:
    with town.open(session=f"stopped-{part}", seconds=0.5) as gateway:
        assert gateway.act(write("before.txt"))["reason_code"] == "ALLOW"
        town.stop(part)
        answer = gateway.act(write())
        town.send(part, signal.SIGCONT)
    assert answer["reason_code"] == "POLICY_UNAVAILABLE"
    assert "gave no answer within 0.5 seconds" in answer["summary"]
    assert not (town.workspace / "a.txt").exists()


def test_an_executor_that_is_slow_acts_once_and_its_outcome_is_the_truth(town: Town) -> None:
    with town.open(session="slow", seconds=0.5) as gateway:
        tx_id = gateway.act(preview())["data"]["tx_id"]
        town.stop("executor")
        answer = gateway.act(commit(tx_id))
        assert answer["reason_code"] == "EXECUTOR_UNAVAILABLE"
        assert "may still happen" in answer["summary"]
        town.send("executor", signal.SIGCONT)
        action_id = answer["data"]["action_id"]
        while (record := town.ledger.get(outcome_key(action_id))) is None:
            time.sleep(0.02)
        assert record.to_dict()["outcome"]["result"]["reason_code"] == "ALLOW"
        assert gateway.act(commit(tx_id))["reason_code"] == "REPLAY_DENY"
    assert town.kinds("slow").count("act.commit") == 1


@pytest.mark.parametrize(("fault", "happens"), [("before", False), pytest.param("after", True, marks=pytest.mark.more)])
def test_an_executor_killed_between_mark_and_outcome_is_closed_and_never_tried_again(
    town: Town, fault: str, happens: bool
) -> None:
    session = f"fault-{fault}"
    town.end("executor")
    town.start("executor", fault=fault)
    with town.open(session=session) as gateway:
        tx_id = gateway.act(preview())["data"]["tx_id"]
        answer = gateway.act(commit(tx_id))
        action_id = answer["data"]["action_id"]
        assert answer["reason_code"] == "EXECUTOR_UNAVAILABLE"
        assert town.processes.pop("executor").wait() == -signal.SIGKILL
        assert town.ledger.get(mark_key(action_id)) is not None
        assert town.ledger.get(outcome_key(action_id)) is None
        town.start("executor")
        closed = town.ledger.get(outcome_key(action_id))
        assert closed is not None
        assert closed.to_dict()["outcome"]["result"]["reason_code"] == "OUTCOME_UNKNOWN"
        assert gateway.act(commit(tx_id))["reason_code"] == "REPLAY_DENY"
    assert (town.workspace / "a.txt").exists() is happens
    assert town.kinds(session).count("act.commit") == 1


def test_an_executor_killed_after_its_outcome_is_answered_from_the_ledger(town: Town) -> None:
    town.end("executor")
    town.start("executor", fault="outcome")
    with town.open(session="told") as gateway:
        answer = gateway.act(write())
    assert town.processes.pop("executor").wait() == -signal.SIGKILL
    assert (answer["status"], answer["reason_code"]) == ("OK", "ALLOW")
    assert answer["data"]["relpath"] == "a.txt"
    assert (town.workspace / "a.txt").read_text() == "one\n"


@pytest.mark.parametrize("part", ALL)
def test_a_wrong_token_is_denied_by_the_part(town: Town, part: str) -> None:
    path = town.directories.of("gateway") / f"{part}.token"
    right = path.read_text()
    path.write_text("x" * 43 + "\n")
    try:
        with town.open(session=f"token-{part}") as gateway:
            answer = gateway.act(write())
    finally:
        path.write_text(right)
    assert answer["reason_code"] == CODES[part]
    assert "401" in answer["summary"]
    assert not (town.workspace / "a.txt").exists()


@pytest.mark.parametrize("part", ALL)
def test_a_part_answers_nobody_without_its_token(town: Town, part: str) -> None:
    for token in ("", "x" * 43, (town.directories.of("gateway") / LINK_TOKEN).read_text().strip()):
        with pytest.raises(PartUnavailable) as caught:
            town.client(part, token=token).get("/health")
        assert caught.value.status == 401


@pytest.mark.parametrize("part", ALL)
def test_health_says_which_part_it_is(town: Town, part: str) -> None:
    health = town.client(part).get("/health")
    assert health.keys() == {"ok", "part", "majors", "program_id"}
    assert (health["ok"], health["part"], health["majors"]) == (True, part, [1])


@pytest.mark.parametrize("part", ["policy0", "executor"])
def test_a_part_refuses_a_call_of_another_version(town: Town, part: str) -> None:
    path = "/evaluate" if part == "policy0" else "/exec/write_file"
    for headers in ({}, {"Aver-Major": "2"}):
        with pytest.raises(PartUnavailable, match="Aver-Major") as caught:
            town.client(part).post(path, {}, headers)
        assert caught.value.status == 400


def test_an_order_that_is_none_is_refused_and_recorded_nowhere(town: Town) -> None:
    before = town.ledger.head("meta")
    answer = town.client("executor").post("/exec/write_file", {"action_id": "a_1"}, {"Aver-Major": "1"})
    assert (answer["status"], answer["reason_code"]) == ("DENY", "BAD_REQUEST")
    assert town.ledger.head("meta") == before


# --- parts that misbehave


def respond(document: Any, *, status: str = "200 OK") -> bytes:
    body = document if isinstance(document, bytes) else canonical_json(document)
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status.encode(), len(body), body)


class Impostor:
    """A server in the place of a part: healthy, and then with one answer to everything else."""

    def __init__(
        self, part: str, answer: bytes | Callable[[dict[str, Any]], bytes], health: dict[str, Any] | None = None
    ) -> None:
        self.health = {"ok": True, "part": part, "majors": [1], "program_id": "p", **(health or {})}
        self.answer = answer
        self.calls = 0

    def __call__(self, connection: socket.socket) -> None:
        while request := read_request(connection):
            if request.startswith(b"GET /health"):
                connection.sendall(respond(self.health))
                continue
            self.calls += 1
            body = json.loads(request.partition(b"\r\n\r\n")[2])
            connection.sendall(self.answer(body) if callable(self.answer) else self.answer)


def lie_about_another_act(order: dict[str, Any]) -> bytes:
    return respond(build_envelope("ALLOW", "done", data={"action_id": "a_other"}))


def contradict_itself(order: dict[str, Any]) -> bytes:
    return respond({**build_envelope("ALLOW", data={"action_id": order["action_id"]}), "status": "DENY"})


GARBAGE = {
    "not HTTP": b"garbage\r\n\r\n",
    "not JSON": respond(b"{"),
    "a key twice": respond(b'{"share": null, "share": null}'),
    "not an object": respond([1]),
    "other keys": respond({"anything": 1}),
    "an error": respond({"error": "no"}, status="500 Internal Server Error"),
    "nothing": b"",
    "half": b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{",
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", GARBAGE)
@pytest.mark.parametrize("part", ["policy1", "executor"])
def test_a_part_that_talks_garbage_denies(town: Town, part: str, name: str) -> None:
    impostor = Impostor(part, GARBAGE[name])
    session = f"garbage-{part}-{name.replace(' ', '-')}"
    with answering(impostor) as address, town.open(session=session, seconds=1, **{part: str(address)}) as gateway:
        answer = gateway.act(write())
    assert (answer["status"], answer["reason_code"]) == ("DENY", CODES[part])
    assert not (town.workspace / "a.txt").exists()
    assert impostor.calls == 1, "nothing is sent twice"


def test_a_refusal_by_status_means_that_nothing_happened(town: Town) -> None:
    impostor = Impostor("executor", respond({"error": "too large"}, status="413 Content Too Large"))
    with answering(impostor) as address, town.open(session="status", executor=str(address)) as gateway:
        answer = gateway.act(write())
    assert answer["reason_code"] == "EXECUTOR_UNAVAILABLE"
    assert "may still happen" not in answer["summary"]
    assert town.kinds("status") == ["act.preview", "act.outcome"]


@pytest.mark.more
def test_a_large_file_goes_through_all_parts(town: Town) -> None:
    content = "a line\n" * 120_000
    with town.open(session="large") as gateway:
        tx_id = gateway.act(preview(content=content))["data"]["tx_id"]
        answer = gateway.act(write(inputs={"tx_id": tx_id}))
    assert answer["reason_code"] == "ALLOW", answer["summary"]
    assert (town.workspace / "a.txt").read_text() == content


@pytest.mark.parametrize("lie", [lie_about_another_act, contradict_itself])
def test_an_executor_that_lies_is_not_believed(town: Town, lie: Callable[[dict[str, Any]], bytes]) -> None:
    impostor = Impostor("executor", lie)
    with answering(impostor) as address, town.open(session=lie.__name__, executor=str(address)) as gateway:
        answer = gateway.act(write())
    assert (answer["status"], answer["reason_code"]) == ("DENY", "EXECUTOR_UNAVAILABLE")
    assert impostor.calls == 1


def test_a_policy_server_with_the_answer_of_the_other_is_not_believed(town: Town) -> None:
    def pass_on(question: dict[str, Any]) -> bytes:
        return respond(town.client("policy1").post("/evaluate", question, {"Aver-Major": "1"}))

    with answering(Impostor("policy0", pass_on)) as address, town.open(session="twin", policy0=str(address)) as gateway:
        answer = gateway.act(write())
    assert answer["reason_code"] == "POLICY_UNAVAILABLE"
    assert not (town.workspace / "a.txt").exists()


@pytest.mark.parametrize("health", [{"majors": [2]}, {"majors": []}, {"majors": "1"}, {"part": "policy1"}])
def test_a_part_of_another_version_keeps_the_gateway_from_starting(town: Town, health: dict[str, Any]) -> None:
    impostor = Impostor("policy0", respond({}), health)
    with answering(impostor) as address, pytest.raises(PartMismatch), town.open(policy0=str(address)):
        pass
    assert impostor.calls == 0


@pytest.mark.more
def test_a_part_that_comes_back_in_another_version_denies(town: Town) -> None:
    """The gateway agreed with a part that then breaks and is replaced: it must agree anew."""
    impostor = Impostor("executor", b"")
    with answering(impostor) as address, town.open(session="v2", seconds=1, executor=str(address)) as gateway:
        assert gateway.act(write())["reason_code"] == "EXECUTOR_UNAVAILABLE"
        impostor.health["majors"] = [2]
        answer = gateway.act(write("b.txt"))
    assert answer["reason_code"] == "EXECUTOR_UNAVAILABLE"
    assert "speaks the versions [2]" in answer["summary"]
    assert impostor.calls == 1


def test_the_lowest_common_version_is_used(town: Town) -> None:
    seen: list[bytes] = []

    def note(connection: socket.socket) -> None:
        while request := read_request(connection):
            if request.startswith(b"GET"):
                connection.sendall(respond({"ok": True, "part": "executor", "majors": [2, 1], "program_id": "p"}))
            else:
                seen.append(request)
                return

    with answering(note) as address, town.open(session="major", seconds=1, executor=str(address)) as gateway:
        gateway.act(write())
    [request] = seen
    assert b"aver-major: 1" in request.lower()


@pytest.mark.more
def test_parts_on_loopback_tcp(town: Town, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    town.end("executor")
    words = town.words("executor")
    address = f"http://127.0.0.1:{port}"
    town.words = lambda part: [*words, "--listen", address]  # type: ignore[method-assign]
    find = town.directories.find_address
    try:
        town.directories.find_address = lambda part, settings: find(  # type: ignore[method-assign]
            part, type(settings)(executor=address) if part == "executor" else settings
        )
        town.start("executor")
        with town.open(session="tcp", executor=address) as gateway:
            assert gateway.act(write())["reason_code"] == "ALLOW"
    finally:
        del town.words, town.directories.find_address
        town.end("executor")


@pytest.mark.more
def test_acts_at_once_from_one_gateway(town: Town) -> None:
    answers: list[dict[str, Any]] = []
    with town.open(session="many") as gateway:

        def act(number: int) -> None:
            answers.append(gateway.act(write(f"{number}.txt", f"{number}\n")))

        threads = [threading.Thread(target=act, args=(number,)) for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [answer["reason_code"] for answer in answers] == ["ALLOW"] * 16
    found = {path.name: path.read_text() for path in town.workspace.iterdir()}
    assert found == {f"{number}.txt": f"{number}\n" for number in range(16)}


ACTS, WRITERS = 500, 4


@pytest.mark.long
def test_acts_of_several_processes_are_neither_lost_nor_doubled_nor_mixed_up(town: Town) -> None:
    children = []
    for writer in range(WRITERS):
        child = os.fork()
        if child == 0:
            signal.alarm(600)  # A child that hangs must not hang the tests.
            code = 1
            try:
                code = _write_many(town, writer)
            finally:
                os._exit(code)
        children.append(child)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * WRITERS
    each = ACTS // WRITERS
    found = {path.name: path.read_text() for path in town.workspace.iterdir()}
    assert found == {f"{writer}-{n}.txt": f"{writer} {n}\n" for writer in range(WRITERS) for n in range(each)}
    for writer in range(WRITERS):
        records = [record.to_dict() for record in town.ledger.read(f"gateway.w{writer}")]
        assert {record["context"]["agent_id"] for record in records} == {f"agent:{writer}"}
        acts: dict[str, list[str]] = {}
        for record in records:
            acts.setdefault(record["trigger"]["correlation_id"], []).append(
                record["context"]["environment"]["aver"]["kind"]
            )
        assert len(acts) == each
        assert all(kinds == ["act.preview", "act.commit", "act.outcome"] for kinds in acts.values())
    verdict = town.ledger.verify()
    # Other tests killed executors of this town, and their acts have no known outcome. These acts all hold.
    assert verdict.status in ("verified", "qualified"), verdict.first_bad
    assert [found for found in verdict.findings if str(found.place.chain).startswith("gateway.w")] == []
    assert {verdict.check(name).status for name in ("evidence", "decisions")} == {"passed"}, verdict.to_dict()


def _write_many(town: Town, writer: int) -> int:
    with open_ledger(home=town.home) as ledger:
        own = Town(town.home, ledger)
        with own.open(session=f"w{writer}", seconds=120) as gateway:
            for number in range(ACTS // WRITERS):
                act = write(f"{writer}-{number}.txt", f"{writer} {number}\n", caller=f"agent:{writer}")
                if gateway.act(act)["reason_code"] != "ALLOW":
                    return 2
    return 0


@pytest.mark.both_stores
@pytest.mark.more
def test_parts_share_a_ledger_on_either_store() -> None:
    """Each process opens the ledger that the environment names."""
    with open_town() as town:
        town.start(*ALL)
        with town.open(session="both") as gateway:
            tx_id = gateway.act(preview())["data"]["tx_id"]
            assert gateway.act(commit(tx_id))["reason_code"] == "ALLOW"
            assert gateway.act(commit(tx_id))["reason_code"] == "REPLAY_DENY"
        assert town.kinds("both")[:3] == ["act.preview", "act.commit", "act.outcome"]
        assert town.ledger.verify().status == "verified"


@pytest.mark.more
def test_changed_rules_deny_until_they_are_pinned_and_running_parts_take_them() -> None:
    with open_town() as town:
        town.start(*ALL)
        (town.home / "config.toml").write_text("[gate]\nmax_retries = 5\n")
        with open_ledger(home=town.home) as ledger:
            changed = Town(town.home, ledger)
            with changed.open(session="pin") as gateway:
                answer = gateway.act(write())
                assert answer["reason_code"] == "POLICY_UNAVAILABLE"
                assert "runs another program" in answer["summary"]
                install_program(town.directories, PinnedProgram.pin(load_gate(ledger.config, "", ledger=ledger)))
                assert gateway.act(write())["reason_code"] == "ALLOW"

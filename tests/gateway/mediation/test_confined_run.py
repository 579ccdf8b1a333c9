"""An agent in its confinement: what it can do, what it cannot, and what the records say of its acts."""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aver.errors import BadInput
from aver.gateway.mediation import enclosure
from aver.gateway.mediation.confined_run import SMOKE_SESSION, ConfinedRun, RunPlan, open_confined_run
from aver.gateway.mediation.contract import CapsuleContract
from aver.gateway.mediation.enclosure import CannotConfine
from aver.serving.part_client import PartClient, PartUnavailable
from aver.serving.sockets import UnixAddress
from support.acts import Office, open_office
from support.confinements import needs_wrapper, quick_contract

AGENT = """
import ctypes, fcntl, http.client, json, os, socket, subprocess, sys, termios
LIBC = ctypes.CDLL(None, use_errno=True)
def act(intent, inputs, caller="agent:writer", **headers):
    connection = http.client.HTTPConnection("localhost")
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(os.environ["AVER_GATEWAY"].removeprefix("unix:"))
    body = json.dumps({"intent_id": intent, "inputs": inputs, "constraints": {}, "caller": caller})
    connection.request("POST", "/act", body, headers)
    return json.loads(connection.getresponse().read())
def call(number, *words):
    if LIBC.syscall(number, *words) < 0:
        raise OSError(ctypes.get_errno(), "refused")
def attempt(function):
    try:
        return ["worked", repr(function())[:200]]
    except OSError as error:
        return [error.errno, str(error)]
    except Exception as error:
        return [type(error).__name__, str(error)]
answers = {}
"""


class Agent:
    """Runs Python in a confinement, and reads what it found."""

    def __init__(self, run: ConfinedRun, office: Office) -> None:
        self.run = run
        self.office = office

    def __call__(self, code: str) -> dict[str, Any]:
        """Run lines that fill `answers`. Returns those."""
        script, found = self.office.workspace / "agent.py", self.office.workspace / "answers.json"
        script.write_text(f"{AGENT}\n{code}\njson.dump(answers, open('answers.json', 'w'))\n")
        found.unlink(missing_ok=True)
        code_ = self.run.start([os.path.realpath(sys.executable), "agent.py"])
        assert code_ == 0
        answers = json.loads(found.read_text())
        assert isinstance(answers, dict)
        return answers

    def attempts(self, **lines: str) -> dict[str, Any]:
        """Try each line. Returns for each `worked`, or the number of its error."""
        code = "\n".join(f"answers[{name!r}] = attempt(lambda: {line})" for name, line in lines.items())
        return {name: answer[0] for name, answer in self(code).items()}


@contextmanager
def confine(
    office: Office, contract: CapsuleContract | None = None, *, home: Path, **more: Any
) -> Iterator[tuple[ConfinedRun, Agent]]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "SECRET_TOKEN": "abc"}
    plan = RunPlan(contract=contract or quick_contract(), contract_path="c.json", environment=environment, **more)
    with open_confined_run(office.gateway, plan, clock=office.clock) as run:
        yield run, Agent(run, office)


@pytest.fixture
def office(tmp_path: Path, aver_home: Path) -> Iterator[Office]:
    with open_office(tmp_path / "work") as opened:
        yield opened


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The home of a person with a key."""
    (tmp_path / "person" / ".ssh").mkdir(parents=True)
    (tmp_path / "person" / ".ssh" / "id_rsa").write_text("secret\n")
    return tmp_path / "person"


@pytest.fixture
def listening(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Sockets of other programs: on the loopback, abstract, in a directory, and in the workspace."""
    (tmp_path / "work").mkdir(exist_ok=True)
    names = {"file": str(tmp_path / "s"), "work": str(tmp_path / "work" / "s"), "abstract": f"\0{os.urandom(8).hex()}"}
    found = []
    before = os.getcwd()
    for name in names.values():
        opened = socket.socket(socket.AF_UNIX)
        if not name.startswith("\0"):  # A path of a test may be longer than the kernel takes.
            os.chdir(os.path.dirname(name))
            name = os.path.basename(name)
        opened.bind(name)
        opened.listen()
        found.append(opened)
    os.chdir(before)
    server = socket.create_server(("127.0.0.1", 0))
    yield {**names, "port": str(server.getsockname()[1])}
    for each in (*found, server):
        each.close()


def mediations(office: Office, session: str) -> list[tuple[str, str]]:
    records = [record.to_dict() for record in office.ledger.read(f"gateway.{session}")]
    return [
        (each["context"]["environment"]["aver"]["kind"], each["context"]["environment"]["gateway"]["mediation"])
        for each in records
        if "gateway" in each["context"]["environment"]
    ]


@pytest.mark.more
@needs_wrapper
def test_the_confinement_holds_and_its_acts_are_verified(office: Office, home: Path) -> None:
    with confine(office, home=home, callers=("agent:*",)) as (run, agent):
        verdict = run.verify()
        assert verdict["ok"], [each for each in (*verdict["results"], *verdict["clauses"]) if not each["ok"]]
        answers = agent(
            """
answers["allowed"] = act("WriteWorkspaceFile", {"relpath": "a.txt", "content": "hi\\n"})["reason_code"]
inputs = {"relpath": "b.txt", "content": ""}
answers["session"] = act("WriteWorkspaceFile", inputs, **{"Aver-Session": "other"})["reason_code"]
answers["caller"] = act("WriteWorkspaceFile", inputs, caller="person:ada")["reason_code"]
"""
        )
    assert answers == {"allowed": "ALLOW", "session": "INGRESS_CONFLICT", "caller": "INGRESS_CONFLICT"}
    assert (office.workspace / "a.txt").read_text() == "hi\n"
    kinds = ["act.preview", "act.commit", "act.outcome", "act.preview"]
    assert mediations(office, "s1") == [(kind, "verified") for kind in kinds]
    assert {found for _, found in mediations(office, SMOKE_SESSION)} == {"unverified"}
    [record] = office.ledger.find(kind="act.confinement")
    assert record.to_dict()["outcome"]["result"]["ok"] is True
    preview = next(iter(office.ledger.find(kind="act.preview", chain="gateway.s1"))).to_dict()
    assert preview["context"]["environment"]["gateway"]["ingress"]["kind"] == "confined"
    assert office.ledger.verify().status in ("verified", "qualified")


@needs_wrapper
def test_ways_out_are_closed(office: Office, home: Path, listening: dict[str, str], tmp_path: Path) -> None:
    (office.workspace / ".git" / "hooks").mkdir(parents=True)
    with confine(office, home=home) as (_, agent):
        found = agent.attempts(
            key=f"open({str(home / '.ssh' / 'id_rsa')!r}).read()",
            ledger=f"os.listdir({str(office.ledger.config.home)!r})",
            passwords="open('/etc/passwd').read()",
            root="open('/x', 'w')",
            devices="open('/dev/x', 'w')",
            kernel="os.open('/proc/sys/kernel/core_pattern', os.O_WRONLY)",
            hooks="open('.git/hooks/pre-commit', 'w')",
            internet="socket.create_connection(('1.1.1.1', 443), 3)",
            loopback=f"socket.create_connection(('127.0.0.1', {listening['port']}), 3)",
            vsock="socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)",
            file=f"socket.socket(socket.AF_UNIX).connect({listening['file'][-100:]!r})",
            work="socket.socket(socket.AF_UNIX).connect('s')",
            abstract=f"socket.socket(socket.AF_UNIX).connect({listening['abstract']!r})",
            init="os.listdir('/proc/1/root/')",
            trace="call(101, 16, 1, 0, 0)",
            shell="subprocess.run(['/bin/sh', '-c', 'exit'])",
            script="(open('x', 'w').write('#!/bin/sh'), os.chmod('x', 0o700), subprocess.run(['./x']))",
            memory="os.memfd_create('x')",
            terminal="fcntl.ioctl(0, termios.TIOCSTI, b'x')",
            keyring="call(250, 0, -3, 0)",
            namespace="call(272, 0x10000000)",
            mount="LIBC.mount(b'x', b'/tmp', b'tmpfs', 0, None) == 0 or call(-1)",
            door="os.unlink(os.environ['AVER_GATEWAY'].removeprefix('unix:'))",
        )
        allowed = agent.attempts(
            write="open('made.txt', 'w').write('x')",
            temporary="open('/tmp/x', 'w').write('x')",
            beside=f"open({str(tmp_path / 'x')!r}, 'w').write('x')",
            move="(os.mkdir('/tmp/d'), os.rename('/tmp/x', '/tmp/d/x'))",
            python="subprocess.run([sys.executable, '-c', ''], check=True)",
        )
        seen = agent(
            "answers['environment'] = sorted(os.environ)\n"
            "answers['open'] = [n for n in range(3, 512) if not attempt(lambda: os.fstat(n))[0] == 9]\n"
            "answers['processes'] = len([n for n in os.listdir('/proc') if n.isdecimal()])"
        )
    assert [name for name, answer in found.items() if answer == "worked"] == []
    assert set(allowed.values()) == {"worked"}
    # The temporary directory inside is another one.
    assert not (tmp_path / "x").exists()
    assert "SECRET_TOKEN" not in seen["environment"]
    assert seen["open"] == []
    assert seen["processes"] <= 2


@needs_wrapper
def test_what_would_have_been_reached_is_there_outside(home: Path, listening: dict[str, str]) -> None:
    """The controls of the test above."""
    assert (home / ".ssh" / "id_rsa").read_text()
    socket.create_connection(("127.0.0.1", int(listening["port"])), 3).close()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(listening["abstract"])


@needs_wrapper
def test_a_process_outside_cannot_use_the_door(office: Office, home: Path) -> None:
    with confine(office, home=home) as (run, _):
        client = PartClient(UnixAddress(run._socket), "", 10.0, part="the door")
        with pytest.raises(PartUnavailable) as refused:
            client.post("/act", {})
    assert refused.value.status == 401
    assert list(office.ledger.find(kind="act.preview")) == []


@needs_wrapper
def test_a_variable_is_given_only_by_name(office: Office, home: Path) -> None:
    with confine(office, home=home, passed=("SECRET_TOKEN",)) as (_, agent):
        assert agent("answers['token'] = os.environ['SECRET_TOKEN']") == {"token": "abc"}


@pytest.mark.more
@needs_wrapper
def test_an_act_needs_a_fresh_verdict_where_the_settings_say_so(tmp_path: Path, aver_home: Path, home: Path) -> None:
    code = 'answers["code"] = act("WriteWorkspaceFile", {"relpath": "a.txt", "content": "1"})["reason_code"]'
    with open_office(tmp_path / "work", require_capsule=True, capsule_ttl=100) as office:
        assert office.write()["reason_code"] == "CAPSULE_REQUIRED"
        with confine(office, home=home) as (run, agent):
            # No verdict yet: the first act has the probes made.
            assert agent(code) == {"code": "ALLOW"}
            assert len(list(office.ledger.find(kind="act.confinement"))) == 1
            office.clock.ahead = 50
            agent(code)
            assert len(list(office.ledger.find(kind="act.confinement"))) == 1
            office.clock.ahead = 200
            agent(code)
            assert len(list(office.ledger.find(kind="act.confinement"))) == 2
            # The probes fail from now on. The last verdict counts until it is too old.
            run.probe = _fail  # type: ignore[method-assign]
            assert agent(code)["code"] != "CAPSULE_REQUIRED"
            office.clock.ahead = 400
            assert agent(code) == {"code": "CAPSULE_REQUIRED"}
        assert office.ledger.verify().status in ("verified", "qualified")


def _fail() -> dict[str, Any]:
    raise CannotConfine("the machine was changed")


@needs_wrapper
def test_a_contract_that_does_not_hold_is_found_by_the_probes(office: Office, home: Path) -> None:
    """The contract says less than the enclosure gives: each section is found."""
    with confine(office, home=home) as (run, _):
        honest: Callable[..., Any] = run.enclose

        def open_more(values: Any) -> Any:
            made = honest(values)
            options = [*made.options, "--ro-bind", "/etc", "/etc", "--share-net"]
            return replace(made, options=tuple(options), programs=(*made.programs, "/"))

        run.enclose = open_more  # type: ignore[method-assign]
        verdict = run.verify()
    failed = {each["id"] for each in (*verdict["results"], *verdict["clauses"]) if not each["ok"]}
    assert failed >= {
        "filesystem.mounts",
        "network.internet",
        "network.loopback",
        "network.namespace",
        "process.exec_copy",
        "transport.abstract_socket",
        "no_loopback_http_exfil",
    }


BAD = [
    ({"filesystem": {"allow_write_prefixes": ["${HOME}"]}}, "home directory"),
    ({"filesystem": {"allow_read_prefixes": ["${HOME}/.ssh"]}}, "allows .* and denies"),
    ({"filesystem": {"allow_read_prefixes": ["${AVER_HOME}/keys"]}}, "belongs to Aver"),
    ({"filesystem": {"allow_read_prefixes": ["${HOME}"], "deny_read_prefixes": ["${HOME}/.none"]}}, "does not exist"),
    ({"process": {"allow_exec_paths": ["/usr/bin"]}}, "directory"),
    ({"transport": {"allowed_uds_paths": ["${CAPSULE_WORKSPACE}/s"]}}, "cannot be at"),
]


@pytest.mark.parametrize(("changes", "words"), BAD)
def test_a_contract_that_cannot_be_held(
    changes: dict[str, Any], words: str, office: Office, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(enclosure, "find_wrapper", lambda: "/usr/bin/bwrap")
    (office.ledger.config.home / "keys").mkdir(exist_ok=True)
    with confine(office, quick_contract(**changes), home=home) as (run, _), pytest.raises(BadInput, match=words):
        run.enclose({**run.values, "AVER_HOME": (str(office.ledger.config.home),)})


@pytest.mark.more
def test_a_program_that_the_contract_does_not_list(office: Office, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enclosure, "find_wrapper", lambda: "/usr/bin/bwrap")
    with confine(office, home=home) as (run, _):
        for name in ("/bin/sh", "sh", "./agent.py", "none"):
            with pytest.raises(BadInput, match="does not allow"):
                run.check_command([name])


def test_without_a_wrapper_nothing_is_confined(office: Office, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enclosure, "find_wrapper", lambda: None)
    with confine(office, home=home) as (run, _), pytest.raises(CannotConfine, match="bwrap is not installed") as error:
        run.verify()
    assert error.value.exit_code == 2


@needs_wrapper
def test_a_link_that_an_earlier_run_left_opens_nothing(office: Office, home: Path) -> None:
    (office.workspace / ".git").mkdir()
    (office.workspace / ".git" / "hooks").symlink_to(home / ".ssh")
    with confine(office, home=home) as (_, agent):
        assert agent.attempts(key="os.listdir('.git/hooks')")["key"] == 2


@pytest.mark.more
@needs_wrapper
def test_two_agents_have_two_sessions(tmp_path: Path, aver_home: Path, home: Path) -> None:
    """Each namespace acts in its own session, also at one time."""
    code = 'answers["code"] = act("CheckWriteWorkspaceFile", {"relpath": "a.txt", "content": "1"})["reason_code"]'
    found: dict[str, Any] = {}
    with open_office(tmp_path / "one", session="one") as first, confine(first, home=home) as (_, agent):
        with open_office(tmp_path / "two", first.ledger, session="two") as second:
            with confine(second, home=home) as (_, other):
                thread = threading.Thread(target=lambda: found.update(other(code)))
                thread.start()
                assert agent(code) == {"code": "ALLOW"}
                thread.join()
        assert found == {"code": "ALLOW"}
        sessions = {record.to_dict()["context"]["session_id"] for record in first.ledger.find(kind="act.preview")}
        assert {"one", "two"} <= sessions

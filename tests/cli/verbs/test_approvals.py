"""`aver approvals`: enrolling, listing, showing, answering, watching, as a person does it."""

from __future__ import annotations

import json
import os
import pty
import shutil
import signal
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aver import Ledger, open_ledger
from aver.gate.action import Action
from aver.gate.approvals import (
    ApprovalRequest,
    consume,
    load_request_state,
    open_request,
    record_signed_vote,
    wait_for_answer,
)
from aver.gate.approvals.rules import SYSTEM_FILE
from aver.gate.decision import Decision, PolicyAnswer, Thresholds
from aver.keys import encode_statement
from support.approvals import SHOWN
from support.aver_command import COMMAND, Aver
from support.passkeys import SoftPasskey

pytestmark = pytest.mark.skipif(SYSTEM_FILE.exists(), reason=f"{SYSTEM_FILE} is in force on this machine")

PASSPHRASE = "correct horse battery"
FROM_STDIN = ("--passphrase-fd", "0")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which person:ada has a key and is enrolled, by the command; made once, because Argon2id takes long."""
    own = Aver(tmp_path_factory.mktemp("prepared"))
    ran = own("keys", "new", "person:ada", *FROM_STDIN, stdin=f"{PASSPHRASE}\n")
    assert ran.code == 0, ran.err
    ran = own("approvals", "enrol", "person:ada", *FROM_STDIN, stdin=f"{PASSPHRASE}\n")
    assert ran.code == 0, ran.err
    assert "person:ada may approve with the key" in ran.out
    return own.home


@pytest.fixture
def asked(aver: Aver, prepared: Path) -> Aver:
    """The same home, copied."""
    shutil.copytree(prepared, aver.home)
    aver.home.chmod(0o700)
    return aver


@pytest.fixture
def ledger(asked: Aver) -> Iterator[Ledger]:
    with open_ledger(home=asked.home) as opened:
        yield opened


def ask(ledger: Ledger, command: str = "rm -rf build", gate_id: str = "g1", **more: Any) -> ApprovalRequest:
    given = {"type": "shell_exec", "tool": "Bash", "arguments": {"command": command}, "caller": "builder", **more}
    action = Action(**given)
    decision = Decision(
        decision="human_review",
        digest=action.digest,
        score=0.25,
        interval=(0.125, 0.5),
        observations=3,
        policy=PolicyAnswer("step_up", ("deletes",), "b" * 64),
        reasons=("it deletes files",),
        gate_id=gate_id,
        thresholds=Thresholds(),
    )
    return open_request(ledger, action, decision)


# --- looking


def test_nothing_waits(asked: Aver) -> None:
    ran = asked("approvals", "list")
    assert (ran.code, ran.out) == (0, "")
    assert "no pending approvals" in ran.err
    assert asked("approvals", "list", "--json").json == {"requests": []}


def test_without_a_ledger_looking_makes_none(aver: Aver) -> None:
    for action in (["list"], ["show", "3f0c9a1b"], ["approvers"], ["approve", "3f0c9a1b"]):
        ran = aver("approvals", *action)
        assert ran.code == 2
    assert aver.listing() == []


def test_listing_and_showing(asked: Aver, ledger: Ledger) -> None:
    request = ask(ledger, diff="-old\n+new\n")
    ran = asked("approvals", "list")
    assert ran.out.split()[:2] == [request.id[:8], "pending"]
    assert "0.25  Bash: rm -rf build" in ran.out
    (listed,) = asked("approvals", "list", "--json").json["requests"]
    assert (listed["request"], listed["state"], listed["digest"]) == (request.id, "pending", request.digest)
    assert listed["action"]["arguments"] == {"command": "rm -rf build"}

    shown = asked("approvals", "show", request.id[:8])
    assert shown.code == 0
    for words in ("| command: rm -rf build", "| -old", "| it deletes files", f"digest {request.digest}"):
        assert words in shown.out
    as_json = asked("approvals", "show", request.id, "--json").json
    assert (as_json["shown"], as_json["cut"]) == (shown.out, 0)
    for name in ("zzzz", "abc", request.id[:8][::-1]):
        assert asked("approvals", "show", name).code == 2


def test_colour_only_on_a_terminal(asked: Aver, ledger: Ledger) -> None:
    request = ask(ledger, diff="-old\n+new\n")
    _, on_terminal = asked.on_terminal("approvals", "show", request.id)
    assert "\x1b[31;1m  | -old\x1b[0m" in on_terminal
    assert "\x1b[32m  | +new\x1b[0m" in on_terminal
    assert "\x1b" not in asked("approvals", "show", request.id).out


@pytest.mark.more
def test_hostile_text_does_nothing_to_a_terminal(asked: Aver, ledger: Ledger) -> None:
    hostile = "\x1b]0;x\x07\x1b[2J\u202e\u200b\r\x9b5m"
    request = ask(ledger, hostile, description=hostile, diff=hostile, session=hostile, files=(hostile,))
    for arguments in (["list"], ["show", request.id], ["list", "--json"], ["show", request.id, "--json"]):
        _, shown = asked.on_terminal("approvals", *arguments, NO_COLOR="1")
        assert not any(character in shown for character in "\x1b\x07\u202e\u200b\x9b")
        assert "\r" not in shown


def test_a_cut_is_told(asked: Aver, ledger: Ledger) -> None:
    request = ask(ledger, diff="+x\n" * 500)
    ran = asked("approvals", "show", request.id)
    assert "[cut here: 440 more lines of the diff, 880 characters]" in ran.out
    assert "440 lines not shown; --all shows them" in ran.err
    assert ran.out.count("| +x") == 60
    assert asked("approvals", "show", request.id, "--all").out.count("| +x") == 500


# --- answering


def test_approving(asked: Aver, ledger: Ledger) -> None:
    request = ask(ledger, diff="+x\n" * 500)
    ran = asked(
        *("approvals", "approve", request.id[:8], "--because", "as agreed", *FROM_STDIN), stdin=f"{PASSPHRASE}\n"
    )
    assert ran.code == 0, ran.err
    assert ran.out.count("| +x") == 500  # Whoever decides sees all of it.
    assert "approved by person:ada; the agent may do this once" in ran.out
    assert PASSPHRASE not in ran.out + ran.err
    assert wait_for_answer(ledger, request, 0).allows

    record = list(ledger.read(request.chain))[-1].to_dict()
    shown = ledger.blob(record["outcome"]["result"]["shown"]["blob"]["digest"]).decode()
    assert shown == ran.out[: len(shown)]
    assert "your reason\n  | as agreed\n" in shown
    assert shown.endswith(
        "what an answer is good for\n"
        f"  ledger {ledger.id}, tenant default\n"
        f"  request {request.id}\n"
        "  | scope: session:\n"
        f"  once, until {request.expires} (UTC)\n"
        f"digest {request.digest}\n"
    )

    consume(ledger, request, request.digest)
    again = asked("approvals", "approve", request.id, *FROM_STDIN, stdin=f"{PASSPHRASE}\n")
    assert again.code == 5
    assert "is used" in again.err
    assert asked("verify", "--json").json["status"] == "verified"


def test_denying_as_json(asked: Aver, ledger: Ledger) -> None:
    request = ask(ledger)
    ran = asked("approvals", "deny", request.id, "--because", "no", "--json", *FROM_STDIN, stdin=f"{PASSPHRASE}\n")
    assert ran.code == 0, ran.err
    assert (ran.json["decision"], ran.json["state"], ran.json["approver"]) == ("deny", "denied", "person:ada")
    assert "| command: rm -rf build" in ran.err  # The person still sees it.
    assert asked("approvals", "list").out == ""
    (listed,) = asked("approvals", "list", "--all", "--json").json["requests"]
    assert (listed["state"], listed["reason"]) == ("denied", "person:ada denied it: no")


@pytest.mark.parametrize("given", ["wrong passphrase\n", f"{PASSPHRASE.upper()}\n"])
def test_a_wrong_passphrase_approves_nothing(given: str, asked: Aver, ledger: Ledger) -> None:
    request = ask(ledger)
    ran = asked("approvals", "approve", request.id, "--json", *FROM_STDIN, stdin=given)
    assert (ran.code, ran.json["error"]["code"]) == (5, "BAD_PASSPHRASE")
    assert ledger.head(request.chain).count == 1


def test_without_a_terminal_or_descriptor_nothing_is_signed(asked: Aver, ledger: Ledger) -> None:
    request = ask(ledger)
    done = subprocess.run(
        [str(COMMAND), "approvals", "approve", request.id],
        input=f"{PASSPHRASE}\n".encode(),
        capture_output=True,
        env=asked.environment,
        start_new_session=True,
        check=False,
    )
    assert done.returncode == 2
    assert b"no terminal" in done.stderr
    assert ledger.head(request.chain).count == 1


@pytest.mark.parametrize("option", ["--passphrase", f"--passphrase={PASSPHRASE}"])
def test_a_passphrase_is_no_argument(option: str, asked: Aver, ledger: Ledger) -> None:
    assert asked("approvals", "approve", ask(ledger).id, option).code == 2


def test_at_a_terminal_the_passphrase_is_asked_for_after_all_was_shown(asked: Aver, ledger: Ledger) -> None:
    request = ask(ledger)
    code, shown = typed(asked, ("approvals", "approve", request.id), b"Passphrase for person:ada: ", PASSPHRASE)
    assert code == 0, shown
    assert shown.index(request.digest) < shown.index("Passphrase for")
    assert PASSPHRASE not in shown
    assert load_request_state(ledger, request).state == "approved"


def typed(asked: Aver, arguments: tuple[str, ...], prompt: bytes, words: str) -> tuple[int, str]:
    """Run the command at a terminal of its own and type something when it asks."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ.clear()
        os.environ.update({**asked.environment, "TERM": "dumb"})
        os.execv(COMMAND, [str(COMMAND), *arguments])
    shown = b""
    answered = False
    try:
        while chunk := os.read(terminal, 65_536):
            shown += chunk
            if not answered and prompt in shown:
                os.write(terminal, f"{words}\n".encode())
                answered = True
    except OSError:
        pass  # How a terminal ends on Linux.
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), shown.decode()


@pytest.mark.more
def test_too_much_to_show_is_not_approved_by_mistake(
    asked: Aver, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = ask(ledger, diff="+\n" * 100_050)
    ran = asked("approvals", "approve", request.id, *FROM_STDIN, stdin=f"{PASSPHRASE}\n")
    assert ran.code == 5
    assert "the request is too long: 50 lines not shown" in ran.err
    assert ledger.head(request.chain).count == 1
    ran = asked("approvals", "approve", request.id, "--although-cut", *FROM_STDIN, stdin=f"{PASSPHRASE}\n")
    assert ran.code == 0
    record = list(ledger.read(request.chain))[-1].to_dict()
    shown = ledger.blob(record["outcome"]["result"]["shown"]["blob"]["digest"]).decode()
    assert "[cut here: 50 more lines of the diff" in shown


def test_somebody_who_may_not(asked: Aver, ledger: Ledger) -> None:
    request = ask(ledger)
    ran = asked("approvals", "approve", request.id, "--as", "person:ben", *FROM_STDIN, stdin=f"{PASSPHRASE}\n")
    assert ran.code == 2
    assert "person:ben has no key here" in ran.err
    ran = asked("approvals", "escalate", request.id, *FROM_STDIN, stdin=f"{PASSPHRASE}\n")
    assert (ran.code, "nobody above level 1" in ran.err) == (5, True)


# --- the roster


def test_approvers(asked: Aver) -> None:
    ran = asked("approvals", "approvers")
    assert ran.out.split()[0] == "person:ada"
    assert "under a passphrase" in ran.out
    assert "according to this ledger's roster" in ran.err
    as_json = asked("approvals", "approvers", "--json").json
    assert (as_json["anchor"], as_json["expires"], as_json["ignored"]) == ("ledger", 3600, [])
    table = tomllib.loads(asked("approvals", "approvers", "--toml").out)
    assert table["keys"]["person:ada"]["public_key"] == as_json["approvers"][0]["public_key"]
    assert asked("approvals", "approvers", "--toml", "--json").code == 2


@pytest.mark.more
def test_enrolling_a_second_and_taking_them_off_again(asked: Aver) -> None:
    other = "another good one"
    assert asked("keys", "new", "person:ben", *FROM_STDIN, stdin=f"{other}\n").code == 0
    ran = asked("approvals", "enrol", "person:ben", *FROM_STDIN, stdin=f"{other}\n")
    assert (ran.code, "--by person:NAME" in ran.err) == (5, True)
    both = f"{other}\n{PASSPHRASE}\n"
    ran = asked("approvals", "enrol", "person:ben", "--by", "person:ada", "--json", *FROM_STDIN, stdin=both)
    assert ran.code == 0, ran.err
    assert ran.json["identity"] == "person:ben"
    with open_ledger(home=asked.home) as ledger:
        request = ask(ledger)
    ran = asked("approvals", "approve", request.id, *FROM_STDIN, stdin=f"{other}\n")
    assert (ran.code, "say who answers: --as person:ada" in ran.err) == (2, True)
    ran = asked("approvals", "withdraw", "person:ben", *FROM_STDIN, stdin=f"{other}\n")
    assert ran.code == 0, ran.err
    ran = asked("approvals", "withdraw", "person:ada", *FROM_STDIN, stdin=f"{PASSPHRASE}\n")
    assert (ran.code, "last approver" in ran.err) == (5, True)


@pytest.mark.more
def test_endorsing_a_passkey_and_taking_it_off_again(asked: Aver) -> None:
    device = SoftPasskey("ada-phone")
    with open_ledger(home=asked.home) as ledger:
        code = encode_statement(device.enrolment(ledger))
    given = ("approvals", "endorse", code, "--by", "person:ada")
    ran = asked(*given, *FROM_STDIN, stdin="wrong\n")
    assert ran.code != 0
    assert "person:ada-phone" not in asked("approvals", "approvers").out
    ran = asked(*given, *FROM_STDIN, stdin=f"{PASSPHRASE}\n")
    assert ran.code == 0, ran.err
    # The person compares it with the page, before the passphrase is asked for.
    assert f"fingerprint  {device.fingerprint}" in ran.err
    assert f"passkey {device.fingerprint}, endorsed by person:ada" in ran.out
    listed = asked("approvals", "approvers")
    assert "as a passkey of localhost, endorsed by person:ada" in listed.out
    found = {one["identity"]: one for one in asked("approvals", "approvers", "--json").json["approvers"]}
    assert found["person:ada-phone"]["passkey"] == device.passkey.to_dict()
    assert found["person:ada-phone"]["independent"] is True
    table = tomllib.loads(asked("approvals", "approvers", "--toml").out)
    assert table["keys"]["person:ada-phone"]["passkey"] == device.passkey.to_dict()
    with open_ledger(home=asked.home) as ledger:
        request = ask(ledger)
        state = record_signed_vote(ledger, request.id, device.vote(request), shown=SHOWN)
        assert (state.state, state.escalation) == ("approved", None)
        assert ledger.verify().check("approvals").status == "passed"
    ran = asked(*given, *FROM_STDIN, stdin=f"{PASSPHRASE}\n")
    assert (ran.code, "is or was on the roster" in ran.err) == (5, True)
    ran = asked("approvals", "withdraw", "person:ada-phone")
    assert (ran.code, "--by person:NAME" in ran.err) == (2, True)
    ran = asked("approvals", "withdraw", "person:ada", *FROM_STDIN, stdin=f"{PASSPHRASE}\n")
    assert (ran.code, "whose key is no passkey" in ran.err) == (5, True)
    signed = ("--by", "person:ada", *FROM_STDIN)
    ran = asked("approvals", "withdraw", "person:ada-phone", *signed, stdin=f"{PASSPHRASE}\n")
    assert ran.code == 0, ran.err


def test_code_that_is_none(asked: Aver) -> None:
    for code in ("nothing", "e30", "A"):
        ran = asked("approvals", "endorse", code, "--by", "person:ada")
        assert (ran.code, "copy it again from the page" in ran.err) == (2, True)
    ran = asked("approvals", "endorse", "-", "--by", "person:ada", stdin="\x1b[2J")
    assert ran.code == 2


def test_a_rotated_key_approves_and_the_old_one_no_longer(asked: Aver, ledger: Ledger) -> None:
    before = ask(ledger, gate_id="before")
    ran = asked("keys", "rotate", "person:ada", "--json", *FROM_STDIN, stdin=f"{PASSPHRASE}\n")
    assert (ran.code, ran.json["recorded"]) == (0, True)
    after = ask(ledger, gate_id="after")
    assert asked("approvals", "approve", after.id, *FROM_STDIN, stdin=f"{PASSPHRASE}\n").code == 0
    ran = asked("approvals", "approve", before.id, "--as", "person:ada", *FROM_STDIN, stdin=f"{PASSPHRASE}\n")
    assert ran.code == 5
    assert "another key than that of person:ada in the request" in ran.err


@pytest.mark.skipif(not all(map(shutil.which, ("ssh-agent", "ssh-add", "ssh-keygen"))), reason="no OpenSSH")
def test_with_a_key_in_ssh_agent(aver: Aver, tmp_path: Path) -> None:
    agent = subprocess.run(["ssh-agent", "-s"], capture_output=True, text=True, check=True).stdout
    told = dict(part.split("=", 1) for part in agent.replace("\n", " ").split("; ") if "=" in part)
    found = {name.split()[-1]: value for name, value in told.items()}
    environment = {name: found[name] for name in ("SSH_AUTH_SOCK", "SSH_AGENT_PID")}
    try:
        for name in ("ada", "other"):
            subprocess.run(
                ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", tmp_path / name], check=True
            )
            add = ["ssh-add", "-q", tmp_path / name]
            subprocess.run(add, check=True, env={**os.environ, **environment}, stderr=subprocess.DEVNULL)
        ran = aver("keys", "new", "person:ada", "--ssh-agent", **environment)
        assert (ran.code, "2 keys in ssh-agent match" in ran.err) == (2, True)
        assert aver("keys", "new", "person:ada", "--ssh-agent", "--pq", **environment).code == 2
        ran = aver("keys", "new", "person:ada", "--ssh-agent", "ada", "--json", **environment)
        assert ran.json["key"]["purpose"] == "approve"
        assert aver("approvals", "enrol", "person:ada", **environment).code == 0
        with open_ledger(home=aver.home) as ledger:
            request = ask(ledger)
            ran = aver("approvals", "approve", request.id, **environment)
            assert (ran.code, "--yes" in ran.err) == (2, True)
            ran = aver("approvals", "approve", request.id, "--yes", "--json", **environment)
            assert (ran.code, ran.json["state"], ran.json["escalation"]) == (0, "approved", None)
            consume(ledger, request, request.digest)
        assert "in ssh-agent" in aver("approvals", "approvers").out
        with open_ledger(home=aver.home) as ledger:
            request = ask(ledger, gate_id="g2")
        ran = aver("approvals", "approve", request.id, "--yes", SSH_AUTH_SOCK="")
        assert ran.code == 3
    finally:
        os.kill(int(environment["SSH_AGENT_PID"]), signal.SIGTERM)


# --- watching


@pytest.mark.more
def test_watching(asked: Aver, ledger: Ledger) -> None:
    old = ask(ledger, "make clean", gate_id="g0")
    child = asked.started("approvals", "watch")
    assert child.stdout is not None
    try:
        first = child.stdout.readline().decode()
        assert f"{old.id[:8]}  pending" in first
        request = ask(ledger, "rm -rf dist")
        second = child.stdout.readline().decode()
        assert f"{request.id[:8]}  pending" in second
        assert "Bash: rm -rf dist" in second
        ran = asked("approvals", "deny", request.id, *FROM_STDIN, stdin=f"{PASSPHRASE}\n")
        assert ran.code == 0
        assert f"{request.id[:8]}  denied" in child.stdout.readline().decode()
    finally:
        child.send_signal(signal.SIGINT)
        _, err = child.communicate()
    assert child.returncode == 130
    assert err == b""
    assert asked("approvals", "watch", "--json").code == 2


def test_json_is_one_object(asked: Aver, ledger: Ledger) -> None:
    request = ask(ledger)
    for arguments in (["list"], ["show", request.id], ["approvers"], ["show", "nothing"]):
        ran = asked("approvals", *arguments, "--json")
        assert isinstance(json.loads(ran.out), dict)


# --- scope, uses and rules


def approve_by_command(asked: Aver, request: ApprovalRequest, *more: str) -> Any:
    return asked("approvals", "approve", request.id[:8], *more, *FROM_STDIN, stdin=f"{PASSPHRASE}\n")


def test_scope_and_uses_are_chosen_by_the_person(asked: Aver, ledger: Ledger) -> None:
    request = ask(ledger, session="s1", workspace="/work/shop")
    ran = approve_by_command(asked, request, "--scope", "workspace", "--uses", "3")
    assert ran.code == 0, ran.err
    assert "  | scope: workspace\n  3 times, until" in ran.out
    assert "approved by person:ada; the agent may do this 3 times, in any session of this workspace" in ran.out
    state = load_request_state(ledger, request)
    assert (state.scope, state.uses) == ("workspace", 3)
    consume(ledger, request, request.digest, session="s2")
    assert asked("approvals", "list", "--json").json["requests"][0]["used"] == 1


@pytest.mark.parametrize("more", [("--uses", "0"), ("--uses", "101"), ("--scope", "everywhere")])
def test_a_wrong_choice_is_refused(asked: Aver, ledger: Ledger, more: tuple[str, ...]) -> None:
    request = ask(ledger, workspace="/work/shop")
    assert approve_by_command(asked, request, *more).code == 2
    assert load_request_state(ledger, request).state == "pending"


def test_no_scope_of_a_workspace_without_one(asked: Aver, ledger: Ledger) -> None:
    ran = approve_by_command(asked, ask(ledger), "--scope", "workspace")
    assert ran.code == 2
    assert "leave out --scope" in ran.err


def test_always_writes_a_rule_that_was_shown(asked: Aver, ledger: Ledger) -> None:
    request = ask(ledger, "npm ci", workspace="/work/shop", description="call Bash")
    ran = approve_by_command(asked, request, "--always")
    assert ran.code == 0, ran.err
    assert '  | when { context.command == "npm ci" && context.workspace == "/work/shop" }' in ran.out
    rule = next(record for record in ledger.read("gate.settings")).to_dict()["outcome"]["result"]
    assert (rule["about"], rule["by"], rule["request"]) == ("npm ci", "person:ada", request.id)
    assert "allowed for good by person:ada: npm ci" in (asked.home / "allowed.cedar").read_text()
    shown = [rule["id"] for rule in asked("policy", "show", "--json").json["rules"]]
    assert rule["rule"] in shown
    assert asked("policy", "forget", rule["rule"]).code == 0
    assert not (asked.home / "allowed.cedar").exists()


@pytest.mark.parametrize(
    "more",
    [{"tool": "refund", "arguments": {"id": 3}}, {"arguments": {"command": "ls", "cwd": "/x"}}, {"files": ("a",)}],
)
def test_only_a_command_is_allowed_for_good(asked: Aver, ledger: Ledger, more: dict[str, Any]) -> None:
    request = ask(ledger, **{"workspace": "/work/shop", **more})
    ran = approve_by_command(asked, request, "--always")
    assert ran.code == 2
    assert "only a command in its workspace" in ran.err
    assert load_request_state(ledger, request).state == "pending"


def test_the_list_says_what_is_asked_and_that_nobody_is_enrolled(asked: Aver, ledger: Ledger, tmp_path: Path) -> None:
    ask(ledger, workspace="/work/shop", description="call Bash")
    assert "Bash: rm -rf build in /work/shop, builder" in asked("approvals", "list").out
    ran = asked("approvals", "list", "--tenant", "other")
    assert "no pending approvals" in ran.err
    assert "nobody is enrolled who could approve" in ran.err

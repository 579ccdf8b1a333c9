"""`aver protocol`: what it says a person can do next, when a trace waits, is over, or cannot go on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from support.aver_command import Aver
from support.small_projects import git, make_project, task_text

SLEEPING = "import time\ntime.sleep(600)\n"
"""A test script that does not come to its end."""

DOUBTING_CRITIC = """if True:
    import json, sys
    view = json.load(sys.stdin)
    def say(event, payload, **refs):
        print(json.dumps({"event": event, "payload": payload, "refs": refs}))
        sys.exit()
    for proposal in view["open"]["reviews"]:
        say("proposal_reviewed", {"verdict": "approved", "rationale": "fine"}, proposal=proposal)
    for intent in view["open"]["intent_reviews"]:
        say("intent_reviewed", {"verdict": "approved", "rationale": "fine"}, intent=intent)
    if view["claims"] and not view["challenges"]:
        say("claim_challenged", {"reason": "I doubt it"}, claim=view["claims"][0]["id"])
"""


@pytest.fixture
def project(aver: Aver) -> Aver:
    make_project(aver.directory / "shop")
    return aver


def run(aver: Aver, trace: str, **roles: str) -> Any:
    (aver.directory / "task.toml").write_text(task_text(**roles))
    return aver("protocol", "run", "task.toml", "--workspace", "shop", "--trace", trace)


def test_a_broken_role_is_named_by_its_line_and_resumed_in_the_workspace_of_before(project: Aver) -> None:
    lines = "def criticise(view):\n    facts = {}\n    return facts['content']\n"
    (project.directory / "own_roles.py").write_text(lines)
    ran = run(project, "broken", critic='python = "own_roles:criticise"')
    assert ran.code == 3
    assert f"KeyError: 'content' ({project.directory / 'own_roles.py'}, line 3)" in ran.err
    assert "aver protocol resume broken" in ran.err
    assert "nobody has anything to say" not in ran.err
    (project.directory / "task.toml").write_text(task_text())
    # Without --workspace: the directory of the first run, not the one that the caller stands in.
    ran = project("protocol", "resume", "broken", "--task", "task.toml")
    assert (ran.code, "3 passed" in ran.out) == (0, True), ran
    # It is over now, so there is nothing to resume.
    ran = run(project, "broken")
    assert ran.code == 2
    assert "it is completed" in ran.err
    assert "resume" not in ran.err
    ran = project("protocol", "view", "bro", "--as", "critic")
    assert ran.code == 2
    assert "at least 4 characters" in ran.err


def test_a_home_that_does_not_know_the_workspace_asks_for_it(project: Aver) -> None:
    assert run(project, "waits", critic="waits = true").code == 3
    (project.home / "protocol" / "waits.run.json").unlink()
    ran = project("protocol", "resume", "waits", "--task", "task.toml")
    assert ran.code == 2, ran
    assert "--workspace DIR" in ran.err


def test_a_review_of_commits_that_are_not_there_begins_no_trace(project: Aver) -> None:
    review = 'use = "review"\noptions = {range = "nope..HEAD"}'
    ran = run(project, "review", planner=review, executor=review, critic=review)
    assert ran.code == 2, ran
    assert "there is no revision 'nope'" in ran.err
    assert project("protocol", "list", "--json").json["found"] == 0


@pytest.mark.more
def test_a_trace_that_waits_for_an_audit_says_by_which_command(project: Aver) -> None:
    assert "aver protocol audit waits" in run(project, "waits", auditor="waits = true").err
    ran = project("protocol", "audit", "waits", "--rerun")
    assert ran.code == 0, ran
    assert "repeated by the auditor: the same result" in ran.out or "no call was repeated" in ran.err
    ran = project("protocol", "audit", "waits", "--rerun")
    assert ran.code == 2
    assert "waits = true" in ran.err
    assert "--profile" not in ran.err
    text = task_text()
    (project.directory / "task.toml").write_text(text[: text.index("[roles.auditor]")])
    ran = project("protocol", "run", "task.toml", "--workspace", "shop", "--trace", "noaud")
    join = "aver protocol join noaud --role auditor --as agent:NAME"
    assert join in ran.err
    assert join in project("protocol", "audit", "noaud").err


def test_a_role_that_may_not_say_an_event_hears_that_first(project: Aver) -> None:
    assert run(project, "slow", critic="waits = true").code == 3
    claim = json.dumps({"payload": {"text": "all is well"}})
    for more in ((), ("--out", "claim.json")):
        ran = project("protocol", "say", "slow", "claim_issued", "-", "--as", "critic", *more, stdin=claim)
        assert ran.code == 5
        assert "agent:critic has the role critic, and may not say claim_issued" in ran.err


@pytest.mark.more
def test_a_ruling_on_a_dispute_is_led_to_its_trace(project: Aver) -> None:
    (project.directory / "critic.py").write_text(DOUBTING_CRITIC)
    assert run(project, "one", critic=f'command = ["{sys.executable}", "critic.py"]').code == 3
    words = "correct horse battery\n"
    for verb in (("keys", "new"), ("approvals", "enrol")):
        assert project(*verb, "person:lead", "--passphrase-fd", "0", stdin=words).code == 0
    view = project("protocol", "view", "one", "--as", "critic", "--json").json
    challenge = view["open"]["disputes"][0]
    assert project("protocol", "resolve", "one", challenge[:8]).code == 3
    request = project("approvals", "list", "--json").json["requests"][0]["request"]
    ran = project("approvals", "deny", request, "--passphrase-fd", "0", stdin=words)
    assert ran.code == 0, ran
    # The person reads who says what, and on which evidence; then the next step.
    assert "agent:executor claims it with confidence 0.99" in ran.out
    assert "passed == 3" in ran.out
    assert "agent:critic challenges it, without evidence" in ran.out
    assert f"aver protocol resolve one {challenge[:8]}" in ran.out
    ran = project("protocol", "resume", "one")
    assert "upheld: " in ran.out
    assert "let a person rule" not in ran.err
    assert "a challenge to the claim was upheld" in ran.out


def test_an_unknown_key_weighs_in_the_summary_as_in_the_event(project: Aver, tmp_path: Path) -> None:
    """A second auditor, elsewhere, has joined by a key that nobody here knows."""
    dora = {"AVER_HOME": str(tmp_path / "dora")}
    text = f'{task_text()}[roles.dora]\nrole = "auditor"\nwaits = true\n'
    (project.directory / "task.toml").write_text(text)
    invited = ("protocol", "invite", "task.toml", "--role", "auditor", "--trace", "far", "--out", "i.json")
    assert project(*invited).code == 0
    joined = ("protocol", "join", "i.json", "--role", "auditor", "--as", "dora", "--out", "dora.json")
    assert project(*joined, **dora).code == 0
    ran = project("protocol", "run", "task.toml", "--workspace", "shop", "--trace", "far", "--join", "dora.json")
    assert ran.code == 0, ran
    assert "completed, audit pass-with-warnings" in ran.out
    assert "UNKNOWN_SIGNER: the auditor does not know the key" in ran.out
    assert "of agent:dora" in ran.out
    ran = project("verify", "far")
    assert (ran.code, "qualified" in ran.out) == (0, True)
    assert "so the signature was not checked" not in " ".join(ran.out.split())
    assert "agent:dora (auditor) is not known here" in ran.out


def test_a_failed_review_says_which_value_was_expected(project: Aver) -> None:
    shop = project.directory / "shop"
    (shop / "settings.py").write_text('TOKEN = "ghp_' + "a1B2c3D4e5F6" * 3 + '"\n')
    git(shop, "add", "-A")
    git(shop, "commit", "-qm", "keys")
    review = 'use = "review"\noptions = {range = "HEAD~1..HEAD"}'
    ran = run(project, "review", planner=review, executor=review, critic=review)
    assert "expected /secrets == 0; found " in ran.out, ran


@pytest.mark.more
def test_a_command_that_outlives_its_killed_run_is_ended_before_the_next_attempt(project: Aver) -> None:
    """The run is killed with no chance to end its command. Who resumes the trace ends it first."""
    orphan = start_and_kill(project)
    ran = project("protocol", "resume", "night")
    assert ran.code == 0, ran
    assert "Aver's process is gone; the command still ran, and was ended now" in ran.out
    assert not is_running_tests(str(orphan), project.directory / "shop")
    assert "still runs a command" not in ran.err


@pytest.mark.more
def test_a_process_without_the_mark_of_the_call_is_named_and_goes_on(project: Aver) -> None:
    """It may be a command that has dropped its variables. It may also be somebody else's."""
    os.kill(start_and_kill(project), signal.SIGKILL)
    shop = project.directory / "shop"
    (shop / "tests.py").write_text(SLEEPING)
    other = subprocess.Popen(["python3", "tests.py"], cwd=shop)
    try:
        while not is_running_tests(str(other.pid), shop):
            time.sleep(0.02)
        wait_until_asleep(other.pid)
        git(shop, "checkout", "-q", ".")
        ran = project("protocol", "resume", "night")
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()
    assert ran.code == 0, ran
    assert "Aver's process is gone, and the command may still run" in ran.out
    assert f"process {other.pid} still runs a command" in ran.err, ran.err
    assert "python3 tests.py" in ran.err


@pytest.mark.more
def test_a_run_that_is_told_to_end_ends_its_command_first(project: Aver) -> None:
    started, command = start_sleeping_run(project)
    started.terminate()
    _, errors = started.communicate(timeout=60)
    assert started.returncode == 3
    assert "ended by SIGTERM; go on with: aver protocol resume night" in str(errors)
    assert not is_running_tests(str(command), project.directory / "shop")


def start_and_kill(project: Aver) -> int:
    """Start a run, kill it while its command sleeps, and return the command's process."""
    started, command = start_sleeping_run(project)
    started.kill()
    started.communicate()
    git(project.directory / "shop", "checkout", "-q", ".")
    return command


def start_sleeping_run(project: Aver) -> tuple[subprocess.Popen[Any], int]:
    """Start a run whose command sleeps. Returns both processes."""
    (project.directory / "shop" / "tests.py").write_text(SLEEPING)
    (project.directory / "task.toml").write_text(task_text())
    started = project.started("protocol", "run", "task.toml", "--workspace", "shop", "--trace", "night")
    commands: list[int] = []
    while not commands:  # The start is sealed before the process is there.
        running = [name for name in os.listdir("/proc") if name.isdecimal()]
        commands = [int(name) for name in running if is_running_tests(name, project.directory / "shop")]
    wait_until_asleep(commands[0])
    return started, commands[0]


def wait_until_asleep(process: int) -> None:
    """Wait until a process has read its file, which is changed then."""
    asleep = 0
    while asleep < 20:
        asleep = asleep + 1 if "\nState:\tS" in Path(f"/proc/{process}/status").read_text() else 0
        time.sleep(0.02)


def is_running_tests(process: str, directory: Path) -> bool:
    """Whether a process is the command of the run. Aver also starts git there, which ends by itself."""
    try:
        is_tests = b"tests.py" in Path(f"/proc/{process}/cmdline").read_bytes()
        # `python3` may be a script that becomes Python a little later, and sleeps meanwhile.
        is_python = Path(f"/proc/{process}/exe").readlink().name.startswith("python")
        return is_tests and is_python and Path(f"/proc/{process}/cwd").resolve() == directory.resolve()
    except OSError:
        return False

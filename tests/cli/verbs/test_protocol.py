"""`aver protocol`: traces from the command line, with exit codes, JSON, and one home or two."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from aver import open_ledger
from aver.capsule.json_document import dump_document
from support.aver_command import Aver
from support.small_projects import make_project, task_text

FAILING = "return sum(prices) + len(prices) // 2"


@pytest.fixture
def project(aver: Aver) -> Aver:
    """A home, and a small project in the directory `shop` with a task file beside it."""
    make_project(aver.directory / "shop")
    (aver.directory / "task.toml").write_text(task_text())
    return aver


def run(aver: Aver, *options: str, task: str = "task.toml") -> Any:
    return aver("protocol", "run", task, "--workspace", "shop", *options)


def said(aver: Aver, *roles: tuple[str, str]) -> None:
    (aver.directory / "task.toml").write_text(task_text(**dict(roles)))


# --- running


def test_a_run_prints_every_event_and_the_claims(project: Aver) -> None:
    ran = run(project, "--trace", "first")
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert lines[0].startswith("trace first  profile default")
    assert [line.split()[2] for line in lines[1:-3]][:3] == [
        "session_initialized",
        "proposal_created",
        "proposal_reviewed",
    ]
    assert lines[-2] == "completed, audit pass"
    assert lines[-1].strip() == ("✓ unit: 3 tests: 3 passed, 0 failed, 0 errors, 0 skipped; exit code 0  (issued)")
    assert "aver verify first" in ran.err
    assert project("verify", "first").code == 0


def test_a_run_as_json(project: Aver) -> None:
    ran = run(project, "--json")
    found = ran.json
    assert ran.code == 0
    assert list(found) == ["trace", "chain", "state", "status", "claims", "report_sha256", "verdict"]
    assert (found["chain"], found["state"], found["status"]) == (f"protocol.{found['trace']}", "completed", "succeeded")
    (claim,) = found["claims"]
    assert [item["holds"] for item in claim["evidence"]] == [True, True]
    assert claim["evidence"][0]["found"]["passed"] == 3
    assert found["verdict"]["status"] == "verified"
    assert len(found["report_sha256"]) == 64


def test_warnings_are_explained(aver: Aver) -> None:
    make_project(aver.directory / "shop", body=FAILING)
    said(aver)
    ran = run(aver)
    assert ran.code == 0
    assert "completed, audit pass-with-warnings" in ran.out
    assert "CLAIM_UNPROVEN: " in ran.out


@pytest.mark.more
def test_a_strict_run_fails_by_the_same_weakness(aver: Aver) -> None:
    make_project(aver.directory / "shop", body=FAILING)
    said(aver)
    ran = run(aver, "--profile", "strict")
    assert ran.code == 1
    assert "failed, audit fail" in ran.out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has no objective"),
        ("objective = 1", "objective must be a text"),
        ('objective = "x"\nmax_tool_call = 1', "unknown field"),
        ('objective = "x"\n[roles.a]\nrole = "critic"\nuse = "checks"', "nobody has the role planner"),
        (task_text() + "\n[bounds]\nattempts = 1000\n", "attempts"),
    ],
)
def test_a_bad_task_is_exit_code_2(project: Aver, text: str, words: str) -> None:
    (project.directory / "bad.toml").write_text(text)
    ran = run(project, task="bad.toml")
    assert (ran.code, ran.out) == (2, "")
    assert words in ran.err
    assert run(project, "--json", task="bad.toml").json["error"]["exit_code"] == 2


def test_a_task_that_is_not_there_and_a_workspace_that_is_none(project: Aver) -> None:
    assert run(project, task="none.toml").code == 2
    assert project("protocol", "run", "task.toml", "--workspace", "task.toml").code == 2
    assert run(project, "--trace", "../up").code == 2
    assert not (project.directory / "up").exists()


def test_a_role_that_breaks_down_is_exit_code_3_and_the_trace_goes_on(project: Aver) -> None:
    (project.directory / "critic.py").write_text("raise SystemExit('no model today')\n")
    said(project, ("critic", f'command = ["{sys.executable}", "critic.py"]'))
    ran = run(project, "--trace", "broken")
    assert ran.code == 3
    assert "the role agent:critic broke down" in ran.err
    assert "no model today" in ran.err
    said(project)
    ran = project("protocol", "resume", "broken", "--task", "task.toml", "--workspace", "shop")
    assert ran.code == 0, ran.err
    assert "completed, audit pass" in ran.out
    assert run(project, "--trace", "broken").code == 2


def test_a_run_names_the_agent_of_this_home_that_it_waits_for(project: Aver) -> None:
    said(project, ("critic", "waits = true"))
    ran = run(project, "--trace", "slow")
    assert ran.code == 3
    assert "the trace waits for agent:critic; go on with: aver protocol resume slow" in ran.err
    # An event without its payload is a mistake of the caller, and nothing is sealed.
    empty = project("protocol", "say", "slow", "proposal_reviewed", "--as", "agent:critic")
    assert empty.code == 2
    assert "proposal_reviewed needs a payload, and no FILE was given" in empty.err
    assert "- to read standard input" in empty.err


@pytest.mark.more
def test_a_critic_who_speaks_by_itself_challenges_during_a_run(project: Aver) -> None:
    said(project, ("critic", "waits = true"))
    started = project.started("protocol", "run", "task.toml", "--workspace", "shop", "--trace", "open", "--wait", "600")
    try:
        while "session_initialized" not in project("log", "protocol.open").out:
            pass
        while not (view := look(project))["claims"]:
            for sort, event in (("reviews", "proposal_reviewed"), ("intent_reviews", "intent_reviewed")):
                ref = {"reviews": "proposal", "intent_reviews": "intent"}[sort]
                for subject in view["open"][sort]:
                    say(project, event, {"verdict": "approved", "rationale": "fine"}, {ref: subject})
        say(project, "claim_challenged", {"reason": "I doubt it"}, {"claim": view["claims"][0]["id"]})
        assert look(project)["state"] == "claiming"
        assert project("protocol", "abort", "open", "--because", "it was shown").code == 0
    finally:
        out, err = started.communicate()
    assert started.returncode == 3
    assert b"claim_challenged" in out
    assert b"waiting for agent:critic, up to 600 seconds" in err
    assert b"the claims can be challenged until agent:executor concludes" in err


def look(project: Aver) -> Any:
    return project("protocol", "view", "open", "--as", "critic", "--json").json


def say(project: Aver, event: str, payload: dict[str, Any], refs: dict[str, str]) -> None:
    document = json.dumps({"payload": payload, "refs": refs})
    assert project("protocol", "say", "open", event, "-", "--as", "critic", stdin=document).code == 0


@pytest.mark.more
def test_nothing_was_allowed_is_exit_code_5(project: Aver) -> None:
    check = '{name = "remove", argv = ["rm", "-r", "src"]}'
    lines = f'use = "checks"\noptions = {{checks = [{check}]}}'
    said(project, *((role, lines) for role in ("planner", "executor", "critic")), ("auditor", 'use = "checks"'))
    ran = run(project, "--json")
    assert ran.code == 5
    assert ran.json["claims"][0]["text"].endswith("did not complete")
    assert (project.directory / "shop" / "shop.py").exists()


@pytest.mark.more
def test_a_killed_run_is_resumed_by_its_own_memory(project: Aver) -> None:
    (project.directory / "shop" / "tests.py").write_text("import time\ntime.sleep(600)\n")
    started = project.started("protocol", "run", "task.toml", "--workspace", "shop", "--trace", "night")
    try:
        for line in iter(started.stdout.readline, b""):  # type: ignore[union-attr]
            if b"intent_reviewed" in line:
                break
        while "tool_execution_started" not in project("log", "protocol.night").out:
            pass
    finally:
        started.kill()
        started.communicate()
    subprocess.run(["git", "checkout", "-q", "."], cwd=project.directory / "shop", check=True)
    ran = project("protocol", "resume", "night")
    assert ran.code == 0, ran.err
    assert "OUTCOME_UNKNOWN" in ran.out
    assert "3 passed" in ran.out


# --- looking


@pytest.mark.more
def test_traces_are_listed_newest_first(project: Aver) -> None:
    assert "no traces" in project("protocol", "list").err or project("protocol", "list").code == 2
    run(project, "--trace", "one")
    run(project, "--trace", "two")
    project("protocol", "abort", "two", "--because", "too late")
    ran = project("protocol", "list", "--json")
    assert [(line["trace"], line["state"], line["objective"]) for line in ran.json["traces"]] == [
        ("two", "completed", "all tests pass"),
        ("one", "completed", "all tests pass"),
    ]
    assert project("protocol", "list", "-n", "1").out.count("\n") == 1
    assert "1 older trace not listed" in project("protocol", "list", "-n", "1").err
    assert project("protocol", "list", "--state", "aborted", "--json").json["traces"] == []


def test_a_view_says_what_may_be_said(project: Aver) -> None:
    said(project, ("critic", "waits = true"))
    ran = run(project, "--trace", "open")
    assert ran.code == 3
    ran = project("protocol", "view", "open", "--as", "critic")
    assert ran.code == 0
    assert "1 proposal to review" in ran.out
    assert "may say  proposal_reviewed" in ran.out
    found = project("protocol", "view", "open", "--as", "agent:critic", "--json").json
    assert found["open"]["reviews"] == [found["proposals"][0]["id"]]
    assert "proposal_reviewed" in found["schemas"]
    assert project("protocol", "view", "open", "--as", "agent:mallory").code == 2
    assert project("protocol", "view", "none", "--as", "critic").code == 2


@pytest.mark.more
def test_a_participant_says_an_event(project: Aver) -> None:
    said(project, ("critic", "waits = true"))
    run(project, "--trace", "open")
    proposal = project("protocol", "view", "open", "--as", "critic", "--json").json["open"]["reviews"][0]
    document = json.dumps({"payload": {"verdict": "rejected", "rationale": "no"}, "refs": {"proposal": proposal}})
    ran = project("protocol", "say", "open", "proposal_reviewed", "-", "--as", "critic", stdin=document)
    assert ran.code == 0, ran.err
    assert "rejected: no" in ran.out
    assert project("protocol", "say", "open", "proposal_reviewed", "-", "--as", "planner", stdin=document).code == 5
    assert project("protocol", "say", "open", "tea_poured", "--as", "critic").code == 2
    assert project("protocol", "say", "open", "proposal_reviewed", "-", "--as", "critic", stdin="[1]").code == 2
    assert project("protocol", "say", "open", "proposal_reviewed", "-", "--as", "critic", stdin='{"a": 1}').code == 2


@pytest.mark.more
def test_an_operator_aborts(project: Aver) -> None:
    said(project, ("critic", "waits = true"))
    run(project, "--trace", "open")
    ran = project("protocol", "abort", "open", "--because", "the wrong\nworkspace", "--json")
    assert (ran.code, ran.json["after"]) == (0, "aborted")
    assert project("protocol", "abort", "open", "--because", "again").code == 5
    assert project("protocol", "resume", "open").code == 3


def test_schemas_are_printed(aver: Aver) -> None:
    assert aver("protocol", "schema").out.count("\n") == 19
    assert aver("protocol", "schema", "claim_issued", "--json").json["title"] == "claim_issued"
    assert len(aver("protocol", "schema", "--json").json["events"]) == 19
    assert aver("protocol", "schema", "nothing").code == 2


# --- judging and showing


@pytest.mark.more
def test_the_report_is_written_as_files(project: Aver) -> None:
    run(project, "--trace", "one")
    ran = project("protocol", "audit", "one", "--out", "report")
    assert ran.code == 0
    assert ran.out.startswith("PASS: trace one")
    assert "signed by the auditor" in ran.err
    names = sorted(path.name for path in (project.directory / "report").iterdir())
    assert names == ["keys.json", "report.html", "report.json", "report.txt", "statement.json"]
    assert project("protocol", "audit", "one", "--out", "report").code == 2  # Evidence is not overwritten.
    assert project("protocol", "audit", "one", "--out", "report", "--force").code == 0
    assert project("protocol", "audit", "one", "--profile", "lenient").code == 2
    strict = project("protocol", "audit", "one", "--profile", "strict", "--json").json
    assert (strict["report"]["profile"], strict["signed"]) == ("strict", False)
    assert project("protocol", "audit", "one", "--rerun").code == 2


@pytest.mark.more
def test_an_auditor_who_waits_audits_later(project: Aver) -> None:
    said(project, ("auditor", "waits = true"))
    assert run(project, "--trace", "one").code == 3
    assert project("verify", "one", "--json").json["status"] == "qualified"  # It is under way.
    ran = project("protocol", "audit", "one")
    assert ran.code == 0
    assert "signed by the auditor" in ran.err
    assert project("verify", "one", "--json").json["status"] == "verified"


@pytest.mark.more
def test_show_tells_a_trace(project: Aver) -> None:
    run(project, "--trace", "one")
    ran = project("show", "one")
    assert ran.code == 0
    assert "task   all tests pass" in ran.out
    assert "✓ intact, verified" in ran.out
    assert ran.out.count("agent:executor") >= 4
    assert '✓ {"exit_code": ["==", 0]}' in ran.out
    found = project("show", "one", "--json").json
    assert len(found["events"]) == found["report"]["head"]["count"] + 1
    page = project("show", "one", "--html", "one.html")
    assert page.code == 0
    text = (project.directory / "one.html").read_text()
    assert "<h2>Events</h2>" in text
    assert "<script" not in text
    assert project("show", "one", "--html", "one.html").code == 2


@pytest.mark.more
def test_show_tells_of_the_calls_that_the_auditor_has_repeated(project: Aver) -> None:
    check = 'use = "checks"\noptions = {checks = [{name = "look", argv = ["cat", "shop.py"]}]}'
    said(project, *((role, check) for role in ("planner", "executor", "critic")), ("auditor", "waits = true"))
    assert run(project, "--trace", "one").code == 3
    assert "repeated" not in project("show", "one").out
    assert project("protocol", "audit", "one", "--rerun").code == 0
    lines = project("show", "one").out.splitlines()
    place = lines.index("call   command cat shop.py")
    assert lines[place + 1] == "  ✓ repeated by the auditor: the same result"
    assert project("show", "one", "--html", "one.html").code == 0
    assert "; repeated by the auditor: the same result" in (project.directory / "one.html").read_text()


@pytest.mark.more
def test_hostile_texts_reach_neither_terminal_nor_page(project: Aver) -> None:
    hostile = 'objective = "\\u001b[2J<script>alert(1)</script>"\n'
    (project.directory / "task.toml").write_text(hostile + task_text().partition("\n")[2])
    run(project, "--trace", "one")
    assert "\x1b" not in project("show", "one").out
    assert "\x1b" not in project("protocol", "list").out
    project("show", "one", "--html", "one.html")
    assert "<script>" not in (project.directory / "one.html").read_text()


@pytest.mark.more
def test_an_export_has_the_decisions_and_is_judged_whole(project: Aver) -> None:
    run(project, "--trace", "one")
    assert project("export", "--out", "bundle", "one").code == 0
    with open_ledger(project.directory / "bundle", home=project.home) as bundle:
        assert {"protocol.one", "gate.one"} <= set(bundle.chains())
    project("keys", "export", "--out", "keys.json", *("ledger", *(f"agent:{role}" for role in ROLES)))
    ran = project("verify", "bundle", "--key", "keys.json", "--json", AVER_HOME=str(project.directory / "other"))
    checks = {check["name"]: check["status"] for check in ran.json["checks"]}
    assert ran.code == 0
    assert {checks[name] for name in ("report", "claims", "roles", "executions")} == {"passed"}
    shown = project("show", "one", "--ledger", "bundle")
    assert "✓ intact, verified" in shown.out or "qualified" in shown.out


ROLES = ("planner", "executor", "critic", "auditor")


# --- several homes


@pytest.mark.more
def test_a_critic_elsewhere_by_files(project: Aver, tmp_path: Path) -> None:
    carol = str(tmp_path / "carol")
    text = task_text(critic="waits = true").replace("[roles.critic]", "[roles.carol]")
    (project.directory / "task.toml").write_text(text)
    invited = project("protocol", "invite", "task.toml", "--role", "critic", "--trace", "far", "--out", "i.json")
    assert invited.code == 0, invited.err
    joined = ("protocol", "join", "i.json", "--role", "critic", "--as", "carol", "--out", "carol.json")
    assert project(*joined, AVER_HOME=carol).code == 0
    ran = run(project, "--trace", "far", "--join", "carol.json")
    assert ran.code == 3
    assert "the trace waits for agent:carol" in ran.err
    # She reads an export, and signs a review for the operator.
    project("export", "--out", "bundle", "far")
    project("keys", "export", "--out", "keys.json", "ledger", "agent:planner", "agent:executor", "agent:auditor")
    assert project("keys", "trust", "keys.json", AVER_HOME=carol).code == 0
    view = project("protocol", "view", "far", "--ledger", "bundle", "--as", "carol", "--json", AVER_HOME=carol).json
    refs = {"proposal": view["open"]["reviews"][0]}
    payload = {"verdict": "approved", "rationale": "fine"}  # She may leave out what a critic here may leave out.
    document = json.dumps({"payload": payload, "refs": refs})
    say = ("protocol", "say", "bundle", "proposal_reviewed", "-", "--as", "carol", "--out", "r.json")
    assert project(*say, stdin=document, AVER_HOME=carol).code == 0
    assert project("protocol", "say", "bundle", "proposal_reviewed", "-", "--as", "carol", stdin=document).code == 2
    accepted = project("protocol", "accept", "r.json", "--json")
    assert accepted.json["accepted"][0]["agent"] == "agent:carol"
    again = project("protocol", "accept", "r.json")
    assert again.code == 5
    assert project("protocol", "accept", "carol.json").code == 5  # She has joined already.
    # A changed file counts as nothing.
    changed = json.loads((project.directory / "r.json").read_text())
    (project.directory / "changed.json").write_text(json.dumps(changed))
    refused = project("protocol", "accept", "changed.json")
    assert refused.code == 2
    assert "byte for byte" in refused.err
    changed["payload"]["verdict"] = "rejected"
    (project.directory / "changed.json").write_bytes(dump_document(changed))
    assert project("protocol", "accept", "changed.json").code in (1, 5)


def test_an_invitation_with_another_task_is_not_signed(project: Aver, tmp_path: Path) -> None:
    project("protocol", "invite", "task.toml", "--role", "critic", "--out", "i.json")
    found = json.loads((project.directory / "i.json").read_text())
    found["task"]["objective"] = "something harmless"
    (project.directory / "j.json").write_bytes(dump_document(found))
    ran = project("protocol", "join", "j.json", "--role", "critic", "--as", "carol", "--out", "c.json")
    assert ran.code == 2
    assert "do not sign it" in ran.err
    (project.directory / "j.json").write_text(json.dumps(json.loads((project.directory / "i.json").read_text())))
    ran = project("protocol", "join", "j.json", "--role", "critic", "--as", "carol", "--out", "c.json")
    assert (ran.code, "byte for byte" in ran.err) == (2, True)
    assert not (project.directory / "c.json").exists()
    assert project("protocol", "join", "i.json", "--role", "auditor", "--as", "carol", "--out", "c.json").code == 2


@pytest.mark.more
def test_a_dispute_waits_for_a_person(project: Aver) -> None:
    critic = """if True:
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
    (project.directory / "critic.py").write_text(critic)
    said(project, ("critic", f'command = ["{sys.executable}", "critic.py"]'))
    ran = run(project, "--trace", "one")
    assert ran.code == 3
    assert "disputed: I doubt it" in ran.err
    found = project("protocol", "view", "one", "--as", "critic", "--json").json
    challenge = found["open"]["disputes"][0]
    ran = project("protocol", "resolve", "one", challenge[:8])
    assert ran.code == 5
    assert "no approver is enrolled" in ran.err
    words = "correct horse battery\n"
    for verb in (("keys", "new"), ("approvals", "enrol")):
        assert project(*verb, "person:lead", "--passphrase-fd", "0", stdin=words).code == 0
    assert project("protocol", "resolve", "one", challenge[:8]).code == 3
    assert project("approvals", "list", "--json").json["requests"]
    assert project("protocol", "resolve", "one", "zzzz").code == 2

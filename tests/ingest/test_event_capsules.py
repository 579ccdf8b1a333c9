"""An event as the capsule that is sealed of it: what stands where, what is masked, and what is kept beside it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aver.capsule.blobs import INLINE_MAX, blob_references
from aver.ingest import draft as draft_module
from aver.ingest.contract import AgentCall, AgentEvent, Permission, Prompt, Tokens
from aver.ingest.seal import seal_event
from aver.ledger import Ledger, open_ledger
from aver.sessions.step import read_step

SECRET = "ghp_" + "a1B2" * 9
SIGNATURE = "EqQBCkYIAxgCKkDb" + "Zx9+/" * 200 + "=="
AT = "2026-05-31T09:00:03.120Z"


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(tmp_path / "ledger.db", home=tmp_path / "home") as opened:
        yield opened


def sealed(ledger: Ledger, **event: Any) -> dict[str, Any]:
    facts: dict[str, Any] = {"what": "call", "key": "k1", "summary": "Bash: ls", "at": AT, **event}
    content = seal_event(ledger, "claude-code", "5d2e", AgentEvent(**facts)).to_dict()
    assert ledger.verify().status == "verified"
    assert ledger.verify().check("profile").reason.startswith("cps: ")
    return content


def call(**more: Any) -> AgentCall:
    return AgentCall(**{"tool": "Bash", "id": "toolu_1", "arguments": {"command": "ls"}, "ok": True, **more})


def test_all_six_sections_of_a_call(ledger: Ledger) -> None:
    content = sealed(
        ledger,
        prompt=Prompt(key="u1", text="Make totals round half up\nand test it"),
        call=call(result={"stdout": "a", "exit_code": 0}),
        text="I look first.",
        thinking="The file must be here.",
        model="claude-opus-4-8",
        duration_ms=40,
        tokens=Tokens(input=20_926, output=96, cost_usd=0.5, native={"cache_read_input_tokens": 20_110}),
        allowed=Permission(by="policy", reference="permission_mode=acceptEdits"),
        side_effects=("ran ls",),
        environment={"cwd": "/w/app", "git_branch": "main", "checkpoint": "9c1b"},
    )
    assert (content["type"], content["domain"], content["spec_version"]) == ("tool", "claude-code", "1.0")
    trigger = content["trigger"]
    assert (trigger["type"], trigger["source"], trigger["request"]) == (
        "user_request",
        "5d2e",
        "Make totals round half up",
    )
    assert (trigger["timestamp"], trigger["correlation_id"]) == (
        "2026-05-31T09:00:03.120000+00:00",
        "claude-code:5d2e:u1",
    )
    context = content["context"]
    assert (context["agent_id"], context["session_id"]) == ("claude-code", "5d2e")
    told = {name: context["environment"][name] for name in ("cwd", "git_branch", "checkpoint", "tool_call_id")}
    assert told == {"cwd": "/w/app", "git_branch": "main", "checkpoint": "9c1b", "tool_call_id": "toolu_1"}
    assert not {"time_known", "duration_known", "thinking_redacted"} & context["environment"].keys()
    reasoning = content["reasoning"]
    assert (reasoning["analysis"], reasoning["reasoning"]) == ("I look first.", "The file must be here.")
    assert reasoning["model"] == "claude-opus-4-8"
    assert reasoning["prompt_hash"] == hashlib.sha3_256(b"Make totals round half up\nand test it").hexdigest()
    assert (content["authority"]["type"], content["authority"]["policy_reference"]) == (
        "policy",
        "permission_mode=acceptEdits",
    )
    assert content["execution"] == {
        "tool_calls": [
            {
                "tool": "Bash",
                "arguments": {"command": "ls"},
                "result": {"stdout": "a", "exit_code": 0},
                "success": True,
                "duration_ms": 40,
                "error": None,
            }
        ],
        "duration_ms": 40,
        "resources_used": {
            "tokens_in": 20_926,
            "tokens_out": 96,
            "input_tokens": 20_926,
            "output_tokens": 96,
            "cost_usd": 0.5,
            "native": {"cache_read_input_tokens": 20_110},
        },
    }
    outcome = content["outcome"]
    assert (outcome["status"], outcome["summary"], outcome["side_effects"]) == ("success", "Bash: ls", ["ran ls"])
    assert outcome["result"] == {"stdout": "a", "exit_code": 0}
    assert context["environment"]["model"] == "claude-opus-4-8"
    assert context["environment"]["aver"]["kind"] == "call"
    assert context["environment"]["aver"]["key"] == "claude-code:5d2e:k1"


def test_an_edit_has_its_diff_and_its_lines(ledger: Ledger) -> None:
    diff = "--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n-a\n+b\n+c\n"
    outcome = sealed(ledger, call=call(tool="Edit", diff=diff))["outcome"]
    assert outcome["result"] == {"diff": diff}
    assert outcome["metrics"] == {"lines_added": 2, "lines_removed": 1}


@pytest.mark.parametrize(
    ("facts", "status", "error", "success"),
    [
        ({"call": call(ok=True)}, "success", None, True),
        ({"call": call(ok=False, error="exit code 1")}, "failure", "exit code 1", False),
        ({"call": call(ok=False)}, "failure", "the tool reported an error", False),
        ({"call": call(ok=None)}, "pending", "OUTCOME_UNKNOWN", False),
        ({"call": call(ok=True), "status": "partial"}, "partial", None, True),
        ({"call": call(ok=False), "allowed": Permission(by="unknown", denied=True)}, "blocked", "denied", False),
    ],
    ids=str.split("success failure unsaid pending partial denied"),
)
def test_how_a_call_ended(ledger: Ledger, facts: Any, status: str, error: str | None, success: bool) -> None:
    content = sealed(ledger, **facts)
    [told] = content["execution"]["tool_calls"]
    assert (content["outcome"]["status"], content["outcome"]["error"]) == (status, error)
    assert (told["error"], told["success"]) == (error, success)


@pytest.mark.parametrize("by", ["human_approved", "policy", "autonomous", "unknown"])
def test_who_allowed_it_is_said_as_it_is_known(ledger: Ledger, by: Any) -> None:
    authority = sealed(ledger, call=call(), allowed=Permission(by=by))["authority"]
    assert (authority["type"], authority["policy_reference"]) == (by, None)
    # A client that tells of a person's answer does not tell whose it was.
    assert authority["approver"] == ("client" if by == "human_approved" else None)


def test_what_is_not_known_is_said_to_be_unknown(ledger: Ledger) -> None:
    content = sealed(ledger, call=call(), at=None)
    environment = content["context"]["environment"]
    assert (environment["time_known"], environment["duration_known"]) == (False, False)
    assert (content["authority"]["type"], content["execution"]["resources_used"]) == ("unknown", {})
    assert content["reasoning"]["prompt_hash"] is None


def test_a_prompt_is_whole_and_an_answer_is_the_result(ledger: Ledger) -> None:
    text = "Make totals\nround half up"
    prompt = sealed(ledger, what="prompt", key="u1", summary="prompt", text=text)
    assert (prompt["type"], prompt["trigger"]["request"]) == ("chat", text)
    assert prompt["trigger"]["correlation_id"] == "claude-code:5d2e:u1"
    answer = sealed(ledger, what="answer", key="a1", summary="Done.", text="Done.")
    assert (answer["type"], answer["outcome"]["result"], answer["execution"]["tool_calls"]) == ("chat", "Done.", [])


def test_a_subagent_is_named_and_linked(ledger: Ledger) -> None:
    launching = sealed(ledger, call=call(tool="Task"), launched="kid")
    assert launching["context"]["environment"]["subagent"] == {"id": "kid", "chain": "claude-code.5d2e.kid"}
    content = sealed(ledger, key="k2", call=call(id="toolu_2"), agent="kid", cause="k1")
    assert content["context"]["agent_id"] == "claude-code/kid"
    assert content["context"]["environment"]["launched_by"] == "claude-code:5d2e:k1"
    assert content["trigger"]["type"] == "agent"


# --- what is masked and what is not


def test_a_signature_of_reasoning_stays_whole(ledger: Ledger) -> None:
    """Nothing of it may be taken for a secret: cut or masked, it proves nothing any more."""
    alike = "AKIA" + "IOSFODNN7EXAMPLE" * 8
    content = sealed(ledger, call=call(), redacted=True, signatures=(SIGNATURE, alike, SECRET))
    environment = content["context"]["environment"]
    assert environment["thinking_redacted"] is True
    assert environment["thinking_signatures"][:2] == [SIGNATURE, alike]
    assert environment["thinking_signatures"][2].startswith("[masked:")
    assert content["reasoning"]["reasoning"] == ""


def test_secrets_are_masked_wherever_they_stand(ledger: Ledger) -> None:
    content = sealed(
        ledger,
        prompt=Prompt(key="u1", text=f"use {SECRET}"),
        call=call(
            arguments={"command": f"curl -H 'Authorization: Bearer {SECRET}'", "password": "hunter2"},
            result={"stdout": f"token {SECRET}"},
            diff=f"--- a/.env\n+++ b/.env\n@@ -0,0 +1 @@\n+TOKEN={SECRET}\n",
            error=f"no {SECRET}",
            ok=False,
        ),
        text=f"I use {SECRET}",
        thinking=f"{SECRET} it is",
        summary=f"Bash: {SECRET}",
        side_effects=(f"ran {SECRET}",),
        environment={"cwd": f"/w/{SECRET}"},
    )
    written = json.dumps(content)
    assert SECRET not in written
    assert "hunter2" not in written
    assert content["context"]["environment"]["masked"]["count"] >= 9
    masked = hashlib.sha3_256(b"use [masked:github-token]").hexdigest()
    assert content["reasoning"]["prompt_hash"] == masked, "the hash of a short secret would give it away"


@pytest.mark.parametrize(
    "result",
    ["x " * INLINE_MAX + SECRET, {"rows": [f"row {number} {SECRET}" for number in range(1000)]}],
    ids=["text", "object"],
)
def test_what_is_heavy_is_kept_beside_it_and_masked_too(ledger: Ledger, result: Any) -> None:
    content = sealed(ledger, call=call(result=result))
    kept = content["execution"]["tool_calls"][0]["result"]
    [(digest, size)] = blob_references(kept)
    data = ledger.blob(digest)
    assert (len(data), hashlib.sha256(data).hexdigest()) == (size, digest)
    assert SECRET.encode() not in data
    assert b"[masked:github-token]" in data


def test_what_is_not_heavy_stays(ledger: Ledger) -> None:
    result = {"rows": ["x" * (draft_module.INLINE_MAX // 4)] * 3, "text": "y" * (INLINE_MAX // 4)}
    content = sealed(ledger, call=call(result=result))
    assert content["execution"]["tool_calls"][0]["result"] == result


def test_addresses_of_people_are_no_provenance(ledger: Ledger) -> None:
    content = sealed(
        ledger,
        call=call(result="written by ann@example.org"),
        environment={"git_branch": "ann@example.org/fix", "who": [{"user": "ann@example.org"}]},
    )
    environment = content["context"]["environment"]
    assert (environment["git_branch"], environment["who"]) == ("[masked:email]/fix", [{"user": "[masked:email]"}])
    assert content["execution"]["tool_calls"][0]["result"] == "written by ann@example.org", "what a file says stays"


@pytest.mark.parametrize("odd", ["a\x00b", "\u202e", 10**30, 1e-7, {"a": {"b": [None, True, ""]}}])
def test_odd_values_are_sealed(ledger: Ledger, odd: Any) -> None:
    text = odd if isinstance(odd, str) else "x"
    content = sealed(ledger, call=call(arguments={"odd": odd}, result=odd), text=text, thinking=text)
    assert content["execution"]["tool_calls"][0]["tool"] == "Bash"


@pytest.mark.parametrize("result", ["x" * 40_000, {"rows": ["y" * 500] * 100}, ["short"], {"diff": "no edit"}, None])
def test_the_result_of_a_call_stands_twice_and_is_kept_once(ledger: Ledger, result: Any) -> None:
    content = sealed(ledger, call=call(result=result))
    told = content["execution"]["tool_calls"][0]["result"]
    assert content["outcome"]["result"] == told
    if len(json.dumps(result)) > 32_000:
        assert told.keys() == {"blob"}
    (record,) = ledger.read("claude-code.5d2e")
    step = read_step(record)
    assert (step.result, step.more, step.diff) == (told, None, None)


def test_a_session_is_a_record_of_the_system(ledger: Ledger) -> None:
    assert sealed(ledger, what="session")["type"] == "system"

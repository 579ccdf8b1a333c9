"""The five tools, through the official client and the installed command."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError

from aver import open_ledger
from support.mcp_clients import COMMAND, DIFF, ask, done, edit, environment, events, fail, talk

ENVELOPE = {"ok", "tool", "session_id", "timestamp", "schema_version", "human_summary"}
ANSWERS = {
    "capseal_gate": "decision predicted_failure p_fail confidence uncertainty observations grid_cell grid_idx label "
    "features thresholds receipt_id action_type description files_affected model_loaded reason similar_patches",
    "capseal_record": "recorded action_id receipt_hash action_type files_affected receipt_chain_length label "
    "p_fail error",
    "capseal_seal": "sealed session_name cap_file hash actions_count verification proof_generated proof_verified "
    "model_updated model_episodes error proof_type capsule_hash verify_command",
    "capseal_status": "session_active workspace actions_count gates_count denials_count model_loaded uptime_seconds "
    "recent_sessions project_stats",
    "capseal_context": "file total_changes total_sessions sessions",
}
REQUIRED = {
    "capseal_gate": ["action_type", "description"],
    "capseal_record": ["action_type", "description", "tool_name", "success"],
    "capseal_seal": [],
    "capseal_status": [],
    "capseal_context": ["file"],
}


@pytest.mark.more
def test_what_the_server_offers(workspace: Path) -> None:
    async def look(client: Client) -> Any:
        listed = (await client.list_tools()).tools
        prompts = (await client.list_prompts()).prompts
        prompt = await client.get_prompt(prompts[0].name)
        return client.server_info, client.instructions, listed, prompts, prompt

    info, instructions, tools, prompts, prompt = talk(workspace, look)
    assert info.name == "aver"
    assert {tool.name: tool.input_schema["required"] for tool in tools} == REQUIRED
    for tool in tools:
        assert set(tool.output_schema["required"]) == ENVELOPE | set(ANSWERS[tool.name].split())
        assert tool.annotations.read_only_hint is (tool.name in ("capseal_status", "capseal_context"))
    assert all(name in instructions for name in REQUIRED)
    assert [one.name for one in prompts] == ["capseal-instructions"]
    assert prompt.messages[0].content.text == instructions
    assert not (workspace / ".capseal").exists(), "looking leaves no traces"


@pytest.mark.more
def test_the_session_of_the_specification(workspace: Path) -> None:
    """status, gate, record, seal; then what it left is verified by the command alone."""

    async def session(client: Client) -> dict[str, Any]:
        first = await ask(client, "capseal_status")
        assert (first["session_active"], first["session_id"], first["recent_sessions"]) == (False, None, [])
        gate = await ask(client, "capseal_gate", **edit())
        assert gate["decision"] == "approve"
        receipt = await ask(
            client, "capseal_record", **done(receipt_id=gate["receipt_id"], output="ok", duration_ms=12)
        )
        assert receipt["p_fail"] == gate["p_fail"]
        assert receipt["label"] == gate["label"] == "simple + single-file"
        during = await ask(client, "capseal_status")
        assert (during["session_active"], during["actions_count"], during["gates_count"]) == (True, 1, 1)
        sealed = await ask(client, "capseal_seal", session_name="the fix")
        after = await ask(client, "capseal_status")
        context = await ask(client, "capseal_context", file="src/app.py")
        return {"gate": gate, "record": receipt, "seal": sealed, "status": after, "context": context}

    told = talk(workspace, session)
    for name, one in told.items():
        assert set(one) == ENVELOPE | set(ANSWERS[f"capseal_{name}"].split())
        assert (one["ok"], one["tool"], one["schema_version"]) == (True, f"capseal_{name}", "1.0")
    seal, status = told["seal"], told["status"]
    assert (seal["sealed"], seal["session_name"], seal["actions_count"]) == (True, "the fix", 1)
    assert (seal["verification"], seal["proof_verified"], seal["hash"]) == (
        "passed",
        True,
        told["record"]["receipt_hash"],
    )
    assert status["session_active"] is False
    [past] = status["recent_sessions"]
    assert (past["actions"], past["approved"], past["denied"]) == (1, 1, 0)
    assert (past["files_changed"], past["summary"]) == (["src/app.py"], "fix the bug")
    assert past["receipt"] == Path(seal["cap_file"]).name
    assert told["context"]["sessions"][0]["changes"] == [
        f"fix the bug (approved, p_fail={told['gate']['p_fail']:.2f}, label=simple + single-file)"
    ]
    assert [event["type"] for event in events(workspace)] == ["gate", "record", "seal"]
    verified = subprocess.run(
        [COMMAND, *seal["verify_command"].split()[1:], "--json"], cwd=workspace, env=environment(), capture_output=True
    )
    assert json.loads(verified.stdout)["status"] == "verified"


@pytest.mark.more
def test_a_change_that_is_not_shown_is_flagged_and_the_record_of_it_says_so(workspace: Path) -> None:
    async def session(client: Client) -> Any:
        gate = await ask(
            client, "capseal_gate", action_type="file_delete", description="clear", files_affected=["/etc/x"]
        )
        assert gate["decision"] == "flag"
        record = await ask(
            client,
            "capseal_record",
            action_type="file_delete",
            description="clear",
            tool_name="Bash",
            success=True,
            files_affected=["/etc/x"],
        )
        return gate, record, await ask(client, "capseal_seal")

    gate, record, sealed = talk(workspace, session)
    assert "approve" in gate["reason"]
    assert "did not allow" in record["human_summary"]
    assert sealed["verification"] == "failed", "what was done without leave is named when it is verified"


@pytest.mark.more
def test_a_command_is_judged_by_its_arguments(workspace: Path) -> None:
    async def session(client: Client) -> Any:
        given = {"action_type": "command", "description": "look", "tool_name": "Bash"}
        shown = await ask(client, "capseal_gate", **given, arguments={"command": "ls -la"})
        hidden = await ask(client, "capseal_gate", **given)
        record = await ask(client, "capseal_record", **given, success=True, arguments={"command": "ls -la"})
        other = await ask(client, "capseal_record", **given, success=True, arguments={"command": "rm -rf /"})
        return shown, hidden, record, other

    shown, hidden, record, other = talk(workspace, session)
    assert (shown["decision"], hidden["decision"]) == ("approve", "flag")
    assert record["p_fail"] == shown["p_fail"]
    assert other["p_fail"] is None
    assert "not gated" in other["human_summary"]


HOSTILE: list[tuple[str, dict[str, Any]]] = [
    ("capseal_gate", {}),
    ("capseal_gate", {"action_type": "edit"}),
    ("capseal_gate", {"action_type": "edit", "description": ""}),
    ("capseal_gate", {"action_type": 1, "description": "x"}),
    ("capseal_gate", {"action_type": "edit", "description": None}),
    ("capseal_gate", {"action_type": "edit", "description": ["x"]}),
    ("capseal_gate", {"action_type": "edit", "description": "x", "files_affected": "a.py"}),
    ("capseal_gate", {"action_type": "edit", "description": "x", "files_affected": [1]}),
    ("capseal_gate", {"action_type": "edit", "description": "x", "files_affected": ["a"] * 1001}),
    ("capseal_gate", {"action_type": "edit", "description": "x" * 20_000}),
    ("capseal_gate", {"action_type": "edit", "description": "x", "arguments": [1]}),
    ("capseal_gate", {"action_type": "edit", "description": "x", "dif_text": "misspelt"}),
    ("capseal_record", {**done(), "success": "yes"}),
    ("capseal_record", {**done(), "success": 1}),
    ("capseal_record", {**done(), "duration_ms": -1}),
    ("capseal_record", {**done(), "duration_ms": 1.5}),
    ("capseal_record", {**done(), "duration_ms": True}),
    ("capseal_record", {**done(), "description": "  "}),
    ("capseal_record", {**done(), "receipt_id": "no such"}),
    ("capseal_record", {**done(), "receipt_id": "\x00"}),
    ("capseal_seal", {}),
    ("capseal_seal", {"session_name": 5}),
    ("capseal_context", {}),
    ("capseal_context", {"file": ""}),
    ("capseal_context", {"file": {"path": "a"}}),
]


@pytest.mark.more
def test_bad_arguments_are_told_to_the_agent_and_leave_nothing(workspace: Path) -> None:
    async def session(client: Client) -> None:
        for tool, arguments in HOSTILE:
            told = await fail(client, tool, **arguments)
            assert told["error"], (tool, arguments)
        with pytest.raises(MCPError, match="Unknown tool"):
            await client.call_tool("capseal_nothing", {})
        with pytest.raises(MCPError, match="Unknown prompt"):
            await client.get_prompt("nothing")
        assert (await ask(client, "capseal_status"))["actions_count"] == 0
        assert (await ask(client, "capseal_record", **done()))["recorded"] is True

    talk(workspace, session)


@pytest.mark.more
def test_paths_and_texts_of_any_kind_are_recorded_as_they_are(workspace: Path) -> None:
    files = ["../../etc/passwd", "/dev/null", "a\nb", "\u202egpj.exe", "é" * 500, "", " ", "C:\\x", "a\x00b"]

    async def session(client: Client) -> Any:
        for file in files:
            await ask(
                client, "capseal_gate", action_type="nonsense", description=f"touch {file}", files_affected=[file]
            )
            await ask(client, "capseal_record", **done(file, f"touch {file}"))
        return await ask(client, "capseal_seal")

    assert talk(workspace, session)["actions_count"] == len(files)
    for event in events(workspace):
        assert event["summary"].isprintable()
        assert "\n" not in event["summary"]


@pytest.mark.more
def test_secrets_reach_neither_events_nor_metadata(workspace: Path) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"

    async def session(client: Client) -> Any:
        await ask(client, "capseal_gate", **edit(description=f"use {secret}"))
        record = await ask(client, "capseal_record", **done(description=f"use {secret}", output=secret, error=secret))
        return record, await ask(client, "capseal_seal")

    record, sealed = talk(workspace, session)
    assert record["p_fail"] is not None, "the gate's answer is found though both are masked"
    assert sealed["verification"] == "passed"
    for path in workspace.rglob("*"):
        if path.is_file():
            assert secret.encode() not in path.read_bytes(), path
    with open_ledger() as ledger:
        for chain in ledger.chains():
            assert all(secret.encode() not in one.canonical for one in ledger.read(chain))


@pytest.mark.more
def test_diffs_and_outputs_are_kept_by_their_hashes_alone(workspace: Path) -> None:
    mark = "a-line-that-is-nowhere-else"

    async def session(client: Client) -> None:
        given = {**edit(), "diff_text": DIFF.format("src/app.py") + f"+{mark}\n"}
        gate = await ask(client, "capseal_gate", **given)
        await ask(
            client, "capseal_record", **done(receipt_id=gate["receipt_id"], output=mark, diff_text=given["diff_text"])
        )
        await ask(client, "capseal_seal")

    talk(workspace, session)
    assert mark not in (workspace / ".capseal" / "events.jsonl").read_text()
    [actions] = workspace.glob(".capseal/runs/*/actions.jsonl")
    assert mark not in actions.read_text()


@pytest.mark.more
def test_a_ledger_that_cannot_be_opened_is_told_to_the_agent(workspace: Path, tmp_path: Path) -> None:
    broken = tmp_path / "ledger.db"
    broken.write_bytes(b"this is no database" * 100)

    async def session(client: Client) -> Any:
        return await fail(client, "capseal_gate", **edit())

    assert "ledger" in talk(workspace, session, "--ledger", str(broken))["error"]

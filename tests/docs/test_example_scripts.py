"""The example scripts run, and print what they are there to show."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.doc_pages import ROOT

REFUSED = "Not allowed, and not done: deletes files"
GATED = ["recorded: read_file pass POLICY_ENFORCED", "run: verified"]
SHOWN = {
    "record_an_agent.py": ["deploy: audit.intent audit.reasoning audit.outcome", "unfinished: deploy(", "masked: 1"],
    "seal_and_verify.py": ["chain demo.refactoring: verified, 2 records", "HASH_MISMATCH at "],
    "signer_in_another_process.py": ["without the key: qualified", "with the key: verified"],
    "audit_an_export.py": ["tools used: {'kubectl': 2, 'psql': 1}", "failed: HASH_MISMATCH at "],
    "declare_own_tools.py": [
        "lookup_order: pass: two lamps",
        "lookup_order: human_review: ",
        "send_mail: human_review: talks to another machine",
        "close_order: human_review: unknown tool close_order: tell Aver what it does: [gate.tools] close_order",
        "run: verified",
    ],
    "gate_langchain.py": ["read_file: success: buy milk", f"delete_file: error: {REFUSED}", *GATED],
    "gate_pydantic_ai.py": ["read_file: success: buy milk", f"delete_file: failed: {REFUSED}", *GATED],
    "gate_openai_agents.py": ["read_file: buy milk", f"delete_file: {REFUSED}", *GATED],
    "gate_claude_agent_sdk.py": ["toolu_1: done: ", "toolu_2: refused: ", "recorded: Read pass POLICY_ENFORCED"],
}
NEEDS = {
    "gate_langchain.py": "langchain",
    "gate_pydantic_ai.py": "pydantic_ai",
    "gate_openai_agents.py": "agents",
    "gate_claude_agent_sdk.py": "claude_agent_sdk",
}
"""The package that an example is about."""


def test_every_example_is_run() -> None:
    assert {path.name for path in (ROOT / "examples").glob("*.py")} == set(SHOWN)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.more) if name in NEEDS else name for name in sorted(SHOWN)]
)
def test_an_example_shows_what_it_is_for(name: str, cwd: Path, environment: dict[str, str]) -> None:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name], reason="needs the extra that the example is about")
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / name],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for line in SHOWN[name]:
        assert any(printed.startswith(line) for printed in done.stdout.splitlines()), done.stdout
    assert list(cwd.iterdir()) == []
    assert not Path(environment["AVER_HOME"]).exists()

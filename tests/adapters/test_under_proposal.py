"""The four frameworks, as released, under a proposal of a trace: a call is an intent, a decision, an execution."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import aver
from support.doc_pages import ROOT

pytestmark = pytest.mark.more

Work = Callable[[Any, Path], None]


def load_example(name: str) -> ModuleType:
    """The scripted model and the tools of an example: the adapters' own pages use them."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", ROOT / "examples" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def work_with_langchain(run: Any, notes: Path) -> None:
    pytest.importorskip("langchain")
    example = load_example("gate_langchain")
    tools = [example.read_file, example.delete_file]
    agent = example.create_agent(example.script(notes), tools, middleware=[example.AverMiddleware(run)])
    agent.invoke({"messages": [("user", "Tidy up.")]})


def work_with_pydantic_ai(run: Any, notes: Path) -> None:
    pytest.importorskip("pydantic_ai")
    example = load_example("gate_pydantic_ai")
    tools = [example.read_file, example.delete_file]
    agent = example.Agent(example.script(notes), tools=tools, capabilities=[example.AverCapability(run)])
    agent.run_sync("Tidy up.")


def work_with_openai_agents(run: Any, notes: Path) -> None:
    pytest.importorskip("agents.testing")
    example = load_example("gate_openai_agents")
    example.set_tracing_disabled(True)
    asyncio.run(example.tidy_up(run, notes))


def work_with_claude_agent_sdk(run: Any, notes: Path) -> None:
    pytest.importorskip("claude_agent_sdk")
    example = load_example("gate_claude_agent_sdk")
    server = example.scripted_model(notes)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    environment = {
        "HOME": str(notes.parent.parent),
        "CLAUDE_CONFIG_DIR": str(notes.parent.parent / "config"),
        "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{server.server_address[1]}",
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }
    try:
        asyncio.run(example.tidy_up(run, notes.parent, environment))
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(
    "work",
    [work_with_langchain, work_with_pydantic_ai, work_with_openai_agents, work_with_claude_agent_sdk],
    ids=lambda work: work.__name__.removeprefix("work_with_"),
)
def test_a_framework_works_under_a_proposal(tmp_path: Path, work: Work) -> None:
    place = tmp_path / "work"
    place.mkdir()
    notes = place / "notes.txt"
    notes.write_text("buy milk")
    with aver.ProtocolSession("what do the notes say?", workspace=place) as session:
        proposal = session.planner.propose("read the notes")
        session.critic.review(proposal.id, "approved", rationale="reading only")
        work(session.executor.under(proposal.id), notes)
        assert notes.read_text() == "buy milk"  # Deleting needs the critic's word about that very call.
        # Some libraries make both calls at once, so either intent may come first.
        deleting, reading = sorted(session.fold.intents.values(), key=lambda intent: intent.code)
        assert reading.code == "COMPLETED"
        assert (deleting.start, deleting.risk in ("high", "critical")) == (None, True)
        session.critic.review(deleting.id, "blocked", rationale="nobody asked for that")
        (execution,) = session.fold.executions.values()
        digest = execution.outputs["result"]
        assert b"buy milk" in session.ledger.blob(digest)
        evidence = [{"artifact": digest, "execution": execution.id, "check": {"text": {"contains": "buy milk"}}}]
        session.executor.claim("there is milk on the list", confidence=1.0, evidence=evidence)
        session.executor.conclude("buy milk")
        assert session.auditor.audit().status == "pass"
        assert session.verify().status == "verified"

"""Sessions of any content, sealed as a transcript's would be: a tool whose records are the events themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from aver.diffs import unified_diff
from aver.gate.action import Action
from aver.gate.ask import ask
from aver.ingest.contract import (
    Adapter,
    AgentCall,
    AgentEvent,
    Permission,
    Prompt,
    RawRecord,
    Tokens,
    TranscriptSource,
    build_unknown_event,
)
from aver.ingest.json_lines import LineReader
from aver.ingest.seal import TranscriptFollower
from aver.ledger import Ledger
from support.tamper import unguarded

TOOL, SESSION = "claude-code", "5d2e8f30"

ASKED = Prompt(key="u1", text="Make totals round half up\nand add a test for it")

DIFF = unified_diff(
    "sum.py", "def total(xs):\n    return round(sum(xs))\n", "def total(xs):\n    return half_up(sum(xs))\n"
)


class _Script:
    def __init__(self, events: Sequence[AgentEvent]) -> None:
        self._deeds = events

    def feed(self, raw: RawRecord) -> Iterable[AgentEvent]:
        event = self._deeds[int(raw.place) - 1]
        return [AgentEvent(**{**_fields(event), "places": (raw.place,)})]

    def finish(self) -> Iterator[AgentEvent]:
        return iter(())


def _fields(event: AgentEvent) -> dict[str, Any]:
    return {name: getattr(event, name) for name in AgentEvent.__slots__}


def seal(
    ledger: Ledger,
    folder: Path,
    events: Sequence[AgentEvent],
    *,
    tool: str = TOOL,
    session: str = SESSION,
    agent: str = "",
) -> None:
    """Seal these events as those of one transcript."""
    path = folder / f"{session}~{agent}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f'{{"line":{number}}}\n' for number in range(len(events))))
    adapter = Adapter(
        tool=tool,
        title=tool,
        locate=lambda around: (),
        read=lambda source: LineReader(source.path),
        parser=lambda source: _Script(events),
        places=lambda around: (),
    )
    following = TranscriptFollower(
        ledger, adapter, TranscriptSource(tool=tool, session=session, path=path, agent=agent)
    )
    following.step()
    following.end()


def with_agent(event: AgentEvent, agent: str) -> AgentEvent:
    return AgentEvent(**{**_fields(event), "agent": agent})


def prompt(text: str, *, key: str = "u1", at: str | None = "2026-05-31T09:00:00Z", **more: Any) -> AgentEvent:
    return AgentEvent(what="prompt", key=key, summary=text.partition("\n")[0], text=text, at=at, **more)


def answer(text: str, *, key: str = "a1", at: str | None = "2026-05-31T09:09:00Z", **more: Any) -> AgentEvent:
    return AgentEvent(what="answer", key=key, summary=text.partition("\n")[0][:80], text=text, at=at, **more)


def call(
    key: str, tool: str = "Bash", *, summary: str = "", at: str | None = "2026-05-31T09:01:00Z", **more: Any
) -> AgentEvent:
    """A call; what belongs to `Call` may be given beside what belongs to `Event`."""
    own = {name: more.pop(name) for name in ("arguments", "result", "ok", "error", "diff") if name in more}
    own.setdefault("ok", True)
    return AgentEvent(
        what="call",
        key=key,
        summary=summary or tool,
        at=at,
        call=AgentCall(tool=tool, id=key, **own),
        prompt=ASKED,
        **more,
    )


def command(key: str, line: str, out: str = "", code: int = 0, **more: Any) -> AgentEvent:
    failed = {"ok": False, "error": f"exit code {code}"} if code else {}
    return call(
        key,
        summary=f"Bash: {line}",
        arguments={"command": line},
        result={"stdout": out, "stderr": "", "exit_code": code},
        side_effects=(f"ran {line}",),
        **failed,
        **more,
    )


def edit(key: str, path: str = "sum.py", diff: str = DIFF, **more: Any) -> AgentEvent:
    return call(
        key,
        "Edit",
        summary=f"Edit: {path} (+1/-1)",
        arguments={"file_path": path},
        result="The file has been updated.",
        diff=diff,
        side_effects=(f"edited {path}",),
        **more,
    )


def spent(tokens_in: int = 1000, tokens_out: int = 50, cost: float | None = 0.02) -> Tokens:
    return Tokens(input=tokens_in, output=tokens_out, cost_usd=cost, native={"input_tokens": tokens_in})


def rich(ledger: Ledger, folder: Path, *, session: str = SESSION) -> None:
    """A session with one of everything: asked, thought, edited, run, failed, denied, delegated, unknown, answered."""
    by_mode = Permission(by="policy", reference="permission_mode=acceptEdits")
    child = [
        prompt("Find total()", key="k1", at="2026-05-31T09:02:01Z"),
        command("k2", "ls", "sum.py\n", at="2026-05-31T09:02:02Z", tokens=spent(200, 10, None)),
        answer("It is in sum.py.", key="k3", at="2026-05-31T09:02:03Z"),
    ]
    seal(ledger, folder, child, session=session, agent="kid")
    main = [
        prompt(ASKED.text, title="Round half up"),
        edit(
            "c1",
            thinking="The sum is rounded to even.\nHalf up is asked for.",
            text="I change the rounding.",
            model="claude-opus-4-8",
            tokens=spent(),
            allowed=by_mode,
            duration_ms=1500,
        ),
        command("c2", "pytest -q", "F\n1 failed\n", code=1, at="2026-05-31T09:01:30Z", allowed=by_mode),
        call(
            "c3",
            "Task",
            summary="Task: look around [Explore: 1 tool call]",
            arguments={"prompt": "Find total()"},
            result="It is in sum.py.",
            launched="kid",
            side_effects=("delegated to Explore",),
            at="2026-05-31T09:02:00Z",
        ),
        call(
            "c4",
            summary="Bash: rm -rf /",
            arguments={"command": "rm -rf /"},
            ok=False,
            error="The user does not want this",
            allowed=Permission(by="human_approved", denied=True),
            at="2026-05-31T09:03:00Z",
        ),
        call("c5", "Read", summary="Read: big.txt", result="line of text\n" * 5000, at="2026-05-31T09:04:00Z"),
        build_unknown_event("7", "novelty", {"type": "novelty", "x": 1}, key="at-7"),
        answer("Done: totals round half up.", model="claude-opus-4-8", tokens=spent(2000, 70, 0.05)),
    ]
    seal(ledger, folder, main, session=session)


def asked_of_the_gate(ledger: Ledger, line: str, *, session: str = SESSION, workspace: str = "/w/shop") -> str:
    """What the gate decides about a command, sealed beside the session."""
    action = Action(
        type="shell_exec", tool="Bash", arguments={"command": line}, session=session, workspace=workspace, caller=TOOL
    )
    return ask(ledger, action).decision.decision


def tampered(ledger: Ledger, chain: str, canonical: bytes | None = None) -> None:
    """Change what the first record of a chain says, behind the ledger's back."""
    record = next(ledger.read(chain))
    changed = record.canonical.replace(b'"summary":"', b'"summary":"!', 1) if canonical is None else canonical
    attacker = unguarded(ledger)
    attacker.execute("UPDATE records SET canonical = ? WHERE hash = ?", (changed, record.hash))
    attacker.close()


__all__ = [
    "SESSION",
    "TOOL",
    "AgentEvent",
    "answer",
    "asked_of_the_gate",
    "call",
    "command",
    "edit",
    "prompt",
    "rich",
    "seal",
    "spent",
    "tampered",
    "with_agent",
]

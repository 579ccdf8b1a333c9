"""The demo's seventh part: four agents on one task, and four attacks on their trace.

The demo makes a small repository in which one of three tests fails. Aver's own roles run the tests. The executor first
claims that all three pass. The critic recomputes the count and challenges the claim, the executor revises it, and the
auditor recomputes everything. Then somebody attacks copies of the trace:

* an auditor signs a report that says more than the trace does;
* the planner's key says an event as the auditor;
* the last records are cut off;
* a signed contribution is handed in a second time.
"""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from aver import KeyStore, Said, View, clock, open_ledger
from aver.check import ProtocolSession
from aver.errors import Refused
from aver.fast_dataclass import dataclass
from aver.protocol.events import Event, build_event_draft
from aver.protocol.judgement.audit import audit_trace
from aver.protocol.roles.protocol_run import run_session
from aver.protocol.roles.role import RoleFunction
from aver.protocol.roles.role_sources import build_roles
from aver.protocol.roles.task_file import RoleSpec
from aver.protocol.runner import AuditOutcome
from aver.protocol.tools.standard_tools import protocol_tools

TRACE = "shop-tests"
CHAIN = f"protocol.{TRACE}"
OPTIONS = {"checks": [{"name": "unit", "argv": ["python3", "tests.py"], "report": "tap"}]}

SHOP = """\
def total(prices):
    return sum(prices[1:])
"""

TESTS = """\
from shop import total

cases = {"adds": total([1, 2]) == 3, "nothing": total([]) == 0, "free": total([0]) == 0}
print(f"1..{len(cases)}")
for number, (name, good) in enumerate(cases.items(), 1):
    print("ok" if good else "not ok", number, "-", name)
raise SystemExit(0 if all(cases.values()) else 1)
"""


@dataclass(frozen=True, slots=True)
class StoryStep:
    """One line of the story: what happened, in words, and whether that was expected."""

    title: str
    words: str
    is_expected: bool

    def to_dict(self) -> dict[str, Any]:
        return {"title": self.title, "words": self.words, "as_expected": self.is_expected}


@dataclass(frozen=True, slots=True)
class TraceAttack:
    """One attack: the code that was expected, the code that was found, and where."""

    title: str
    expected: str
    code: str
    place: str

    @property
    def is_caught(self) -> bool:
        return self.code == self.expected

    def to_dict(self) -> dict[str, Any]:
        return {"title": self.title, "caught": self.is_caught, "code": self.code, "place": self.place}


# --- the story


def run_trace(home: Path, workspace: Path) -> Iterator[StoryStep]:
    """Make the repository, run the trace up to its audit, keep a copy for attackers, and audit."""
    _make_repository(workspace)
    with _open_session(home, workspace, {"objective": "all tests of the shop pass"}) as session:
        roles = _build_roles(session)
        roles["agent:executor"] = _overstate(roles["agent:executor"])
        del roles["agent:auditor"]
        run_session(session, {**roles, "agent:auditor": lambda _: None})
        for event in session.events:
            step = _STORY.get(event.name)
            if step is not None:
                title, read, expected = step
                words = read(event.payload)
                yield StoryStep(title, words, expected in words)
    shutil.copytree(home, home.with_name("trace-before-audit"))
    with _open_session(home, workspace) as session:
        session.auditor.audit()
        status = session.events[-1].payload["status"]
        words = f"{status}: the count holds, but exit code 0 was expected"
        yield StoryStep("audited", words, status == "pass-with-warnings")


_STORY: Mapping[str, tuple[str, Callable[[Mapping[str, Any]], str], str]] = {
    "tool_execution_completed": ("ran", lambda found: f"python3 tests.py: exit code {found['exit_code']}", "1"),
    "claim_issued": ("claimed", lambda found: str(found["text"]), "3 tests pass"),
    "claim_challenged": ("challenged", lambda found: str(found["reason"]).partition(";")[0], "does not hold"),
    "claim_revised": ("revised", lambda found: str(found["text"]).partition(";")[0], "2 passed, 1 failed"),
}
"""By event: its title, its words, and the part of them that is expected."""


def _overstate(executor: RoleFunction) -> RoleFunction:
    """Return an executor that first claims that all tests pass."""

    def speak(view: View) -> Said | None:
        said = executor(view)
        if said is None or said.event != "claim_issued":
            return said
        first = said.payload["evidence"][0]
        check = {"tests": {"format": "tap", "counts": {"passed": ["==", 3]}}}
        payload = {**said.payload, "text": "unit: 3 tests pass", "evidence": [{**first, "check": check}]}
        return Said(event=said.event, payload=payload, refs=said.refs)

    return speak


def _build_roles(session: ProtocolSession) -> dict[str, RoleFunction]:
    specs = tuple(
        RoleSpec(f"agent:{role}", role, "use", "checks", OPTIONS if role != "auditor" else {})
        for role in ("planner", "executor", "critic", "auditor")
    )
    return build_roles(specs, workspace=session.workspace, directory=session.workspace, blob=session.ledger.blob)


def _make_repository(workspace: Path) -> None:
    workspace.mkdir()
    (workspace / "shop.py").write_text(SHOP)
    (workspace / "tests.py").write_text(TESTS)
    (workspace / ".gitignore").write_text("__pycache__/\n")
    if git := shutil.which("git"):  # Without it, the workspace has no revision, and the trace says so.
        who = ["-c", "user.name=demo", "-c", "user.email=demo@example.com", "-c", "commit.gpgsign=false"]
        for words in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "the shop"]):
            subprocess.run([git, *words], cwd=workspace, check=True, capture_output=True)


def _open_session(home: Path, workspace: Path, task: Mapping[str, Any] | None = None) -> _OwnedSession:
    return _OwnedSession(home, workspace, task)


class _OwnedSession:
    """The demo's session, with a ledger of its own, as a context."""

    def __init__(self, home: Path, workspace: Path, task: Mapping[str, Any] | None) -> None:
        self._ledger = open_ledger(home / "ledger.db", home=home)
        try:
            self._session = ProtocolSession(
                task, ledger=self._ledger, trace=TRACE, workspace=workspace, tools=protocol_tools(workspace)
            )
        except BaseException:
            self._ledger.close()
            raise

    def __enter__(self) -> ProtocolSession:
        return self._session

    def __exit__(self, *_: object) -> None:
        self._session.close()
        self._ledger.close()


# --- the attacks


def attack_trace(home: Path, workspace: Path) -> Iterator[TraceAttack]:
    """Attack copies of the trace, each in its own way."""
    before = home.with_name("trace-before-audit")
    for title, expected, source, attack in (
        ("an audit forged", "EVIDENCE_INVALID", before, _forge_audit),
        ("a role stolen", "ROLE_POLICY_VIOLATION", before, _steal_role),
        ("the audit cut off", "TRUNCATED", home, _cut_tail),
    ):
        copy = home.with_name(f"trace-{title.replace(' ', '-')}")
        shutil.copytree(source, copy)
        attack(copy, workspace)
        with open_ledger(copy / "ledger.db", home=copy, create=False) as ledger:
            bad = ledger.verify().first_bad
        place = "" if bad is None else f"{bad.place.chain}/{bad.place.sequence}"
        yield TraceAttack(title, expected, "" if bad is None else bad.code, place)
    copy = home.with_name("trace-a-contribution-replayed")
    shutil.copytree(before, copy)
    yield TraceAttack("a contribution replayed", "REPLAY", *_replay_contribution(copy, workspace))


def _forge_audit(home: Path, workspace: Path) -> None:
    """The auditor signs a report without the warnings."""

    def praise(session: ProtocolSession, *, rerun: bool) -> AuditOutcome:
        honest = audit_trace(session, rerun=rerun)
        report = {**orjson.loads(honest.report), "status": "pass", "findings": []}
        return AuditOutcome("pass", orjson.dumps(report, option=orjson.OPT_SORT_KEYS), honest.known)

    with _open_session(home, workspace) as opened:
        opened.audit_engine = praise
        opened.auditor.audit()


def _steal_role(home: Path, workspace: Path) -> None:
    """The planner's key signs an event of the auditor, past the session and its guards."""
    with _open_session(home, workspace) as session:
        event = Event(
            id=clock.new_id(),
            trace=TRACE,
            name="verification_run_started",
            role="auditor",
            agent="agent:auditor",
            payload={"v": 1, "profile": "default"},
            refs={},
            before=session.state,
            after=session.state,
        )
        signer = KeyStore(home).signer("agent:planner")
        session.ledger.append(CHAIN, build_event_draft(event), signer=signer)


def _cut_tail(home: Path, _: Path) -> None:
    """Cut the audit off, so that the trace looks as if it had not taken place."""
    file = sqlite3.connect(home / "ledger.db")
    with file:
        for (name,) in file.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
            file.execute(f'DROP TRIGGER "{name}"')
        (number, count) = file.execute("SELECT chain, count FROM chains WHERE name = ?", (CHAIN,)).fetchone()
        file.execute("DELETE FROM records WHERE chain = ? AND sequence >= ?", (number, count - 2))
        where = "chain = ? AND sequence = ?"
        (last,) = file.execute(f"SELECT hash FROM records WHERE {where}", (number, count - 3)).fetchone()
        file.execute("UPDATE chains SET count = ?, head = ? WHERE chain = ?", (count - 2, last, number))
    file.close()


def _replay_contribution(home: Path, workspace: Path) -> tuple[str, str]:
    """An auditor signs an event for the operator, who hands it in twice. Returns the code, and the place."""
    with _open_session(home, workspace) as session:
        signed = session.contribute("agent:auditor", "verification_run_started", {"profile": "default"})
        first = session.accept(signed)
        try:
            session.accept(signed)
        except Refused as refusal:
            return refusal.code, f"{CHAIN}/{first.sequence}"
    return "", ""

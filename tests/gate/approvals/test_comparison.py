"""An approval holds for what was shown: in the gate, in the votes, and for whoever verifies the records."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import aver
from aver import Action, Ledger
from aver.agents.registry import provide_known_agents
from aver.capsule.aver_block import of_kind
from aver.capsule.blobs import blob_references
from aver.clock import new_id
from aver.errors import Refused
from aver.gate.approvals import ApprovalRequest, approve, consume, load_request_state, recent_requests
from aver.gate.approvals.comparison import find_request_problem, find_worse
from aver.gate.approvals.enrolment import load_approval_setup
from aver.gate.approvals.request_records import valid_approvers
from aver.gate.approvals.vote import read_vote, vote_problem
from aver.gate.ask import ask, load_gate
from aver.gate.decision import Thresholds
from aver.keys import Ring
from aver.ledger.bundle import export_bundle
from support.approvals import SHOWN, code_of, enrolled, open_old_request, somebody
from support.page_cases import Cases, expect_agreement
from support.random_changes import list_paths

provide_known_agents()

ADA = somebody("ada")
DIFF = "--- a/a.py\n+++ b/a.py\n@@ -1 +1,2 @@\n import os\n+import sys\n"
COMMAND = {"type": "command", "tool": "Bash", "arguments": {"command": "rm -r build", "description": "clean"}}
EDIT = {"type": "code_edit", "tool": "Edit", "files": (".git/hooks/a.py",), "diff": DIFF, "description": "import sys"}
MCP = {"type": "tool_call", "tool": "mcp__shop__order", "arguments": {"item": "tea", "count": 2}, "description": "buy"}
WORDS = {"type": "command", "files": ("a.py",), "description": "run the unit tests"}


@pytest.fixture
def approved(ledger: Ledger) -> Ledger:
    ledger.keys.trust(ADA.public)
    enrolled(ledger, ADA)
    return ledger


def act(given: dict[str, Any], at: Path, **more: Any) -> Action:
    return Action(**{"caller": "claude-code", "session": "s1", "workspace": str(at), **given, **more})


def approve_it(ledger: Ledger, action: Action, **more: Any) -> ApprovalRequest:
    request = ask(ledger, action).request
    assert request is not None
    approve(ledger, request, ADA, shown=SHOWN, **more)
    return request


def test_the_approval_of_one_deed_is_not_spent_on_another(approved: Ledger, tmp_path: Path) -> None:
    approve_it(approved, act(WORDS, tmp_path))
    other = ask(approved, act(WORDS, tmp_path, description="delete the database and push to production"))
    assert (other.allows, other.decision.decision) == (False, "human_review")
    assert ask(approved, act(WORDS, tmp_path)).allows
    assert aver.verify(approved).status == "verified"


CHANGES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (name, given, {field: value})
    for name, given in (("command", COMMAND), ("edit", EDIT), ("mcp", MCP), ("words", WORDS))
    for field, value in (
        ("type", "action"),
        ("tool", "mystery"),
        ("arguments", {**given.get("arguments", {}), "more": 1}),
        ("arguments", {"command": "rm -r src"}),
        ("files", (*given.get("files", ()), "b.py")),
        ("diff", DIFF.replace("sys", "pty")),
        ("workspace", "/elsewhere"),
        ("caller", "codex"),
        ("on_behalf_of", "eve"),
        ("session", "s2"),
        ("description", "delete the database"),
    )
]
TOLD_OTHERWISE = {("command", "description"), ("edit", "description")}
"""What these would do stands in the command and in the diff."""


@pytest.mark.parametrize(("name", "given", "change"), CHANGES, ids=lambda value: str(value)[:40])
def test_each_thing_that_was_shown_counts(
    name: str, given: dict[str, Any], change: dict[str, Any], approved: Ledger, tmp_path: Path
) -> None:
    approve_it(approved, act(given, tmp_path))
    is_same = (name, *change) in TOLD_OTHERWISE
    assert ask(approved, act(given, tmp_path, **change)).allows == is_same
    assert ask(approved, act(given, tmp_path)).allows == (not is_same)


RETRIES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (COMMAND, {"arguments": {"command": "rm -r build", "description": "Remove the build directory"}}),
    (COMMAND, {"description": "call Bash again"}),
    (EDIT, {"description": "add the missing import"}),
    (MCP, {}),
    (WORDS, {}),
    ({**MCP, "tool": "Write", "arguments": {"file_path": "/x/.git/hooks/a", "content": "x"}}, {"description": "other"}),
]


@pytest.mark.parametrize(("given", "change"), RETRIES, ids=lambda value: str(value)[:40])
def test_a_retry_of_the_same_call_meets_its_approval(
    given: dict[str, Any], change: dict[str, Any], approved: Ledger, tmp_path: Path
) -> None:
    approve_it(approved, act(given, tmp_path, call_id="claude-code:s1:toolu_1"))
    assert ask(approved, act(given, tmp_path, call_id="claude-code:s1:toolu_2", **change)).allows
    assert aver.verify(approved).status == "verified"


def changed_requests(request: ApprovalRequest) -> Iterator[tuple[Any, ApprovalRequest]]:
    """The request with each of its values changed, one at a time, as a record of the same id would have it."""
    yield "opened", replace(request, opened="2026-01-01T00:00:00+00:00")
    for path in list_paths(request.content):
        content: Any = copy.deepcopy(request.content)
        holder = content
        for key in path[:-1]:
            holder = holder[key]
        holder[path[-1]] = "other" if holder[path[-1]] != "other" else "another"
        yield path, replace(request, content=content)


def test_every_value_of_a_request_is_signed(approved: Ledger, tmp_path: Path) -> None:
    request = approve_it(approved, act(EDIT, tmp_path))
    [vote] = [found[1] for record in approved.read(request.chain) if (found := read_vote(record)) is not None]
    counted = valid_approvers(request, load_approval_setup(approved))
    assert vote_problem(request, vote, counted) is None
    changes = list(changed_requests(request))
    assert len(changes) > 30
    for path, changed in changes:
        problem = vote_problem(changed, vote, counted)
        assert problem is not None, path
        assert problem.code == "STATEMENT_MISMATCH"


# --- what was decided when the person was asked


def asked_record(ledger: Ledger, request: ApprovalRequest) -> dict[str, Any]:
    record = ledger.get(f"gate:{request.gate_id}")
    assert record is not None
    found: dict[str, Any] = record.to_dict()["outcome"]["result"]
    return found


@pytest.mark.parametrize("name", ["risk", "rules", "bundle", "reasons"])
def test_a_request_shows_what_the_gate_decided(name: str, approved: Ledger, tmp_path: Path) -> None:
    action = act(WORDS, tmp_path)
    request = ask(approved, action).request
    assert request is not None
    asked = asked_record(approved, request)
    assert find_request_problem(request, asked) is None
    harmless = {"risk": None, "rules": [], "bundle": "0" * 64, "reasons": ["nothing to see"]}
    lying = replace(request, content={**request.content, name: harmless[name]})
    assert find_request_problem(lying, asked) == f"it shows another {name} than the gate's decision has"


def test_a_forged_request_that_plays_the_risk_down_is_not_taken_up(approved: Ledger, tmp_path: Path) -> None:
    action = act(WORDS, tmp_path)
    first = ask(approved, action).request
    assert first is not None
    lying = {**first.content, "reasons": ["nothing to see"], "risk": None}
    draft = aver.Capsule(type="auth", outcome=aver.Outcome(status="pending", result=lying))
    approved.append(first.chain, of_kind(draft, "approval.request"))
    forged = list(recent_requests(approved))[-1]
    approve(approved, forged, ADA, shown=SHOWN)
    assert not ask(approved, action).allows


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"policy": {"rules": ["a", "b"]}}, "a person was not asked about the rule b"),
        ({"effects": ["read", "secret"]}, "a person was not asked about the effect secret"),
        ({"facts": {"labels": ["secret"]}}, "a person was not asked about the label secret"),
        ({"interval": [0.0, 0.5]}, "the risk is unsure now, and was low when a person was asked"),
        ({"interval": [0.9, 1.0]}, "the risk is high now, and was low when a person was asked"),
        ({"interval": None}, "the risk is unsure now, and was low when a person was asked"),
        ({"policy": {"rules": []}, "effects": [], "interval": [0.0, 0.0]}, None),
    ],
    ids=str,
)
def test_an_action_may_not_be_judged_worse_than_when_a_person_was_asked(
    change: dict[str, Any], words: str | None
) -> None:
    thresholds = {"pass_below": 0.05, "skip_above": 0.8}
    asked = {"policy": {"rules": ["a"]}, "effects": ["read"], "facts": {"labels": []}, "interval": [0.0, 0.01]}
    asked["thresholds"] = thresholds
    assert find_worse(asked, asked) is None
    assert find_worse(asked, {**asked, **change}) == words


def test_a_higher_risk_word_needs_a_new_approval(approved: Ledger, tmp_path: Path) -> None:
    action = act(COMMAND, tmp_path)
    gate = load_gate(approved.config, str(tmp_path), approved)
    mild = replace(gate, thresholds=Thresholds(pass_below=1.0))
    request = ask(approved, action, gate=mild).request
    assert request is not None
    approve(approved, request, ADA, shown=SHOWN, uses=2)
    assert not ask(approved, action, gate=gate).allows
    assert ask(approved, action, gate=mild).allows
    assert aver.verify(approved).status == "verified"


# --- records by somebody who has the ledger's key


def reseal(ledger: Ledger, record: aver.Sealed, change: Any, blobs: Any = (), **refs: str) -> aver.Sealed:
    content = record.to_dict()
    own = content["context"]["environment"]["aver"]
    content.update(id=new_id(), sequence=0, previous_hash=None)
    content["context"]["environment"]["aver"] = {"kind": record.kind, "refs": {**own.get("refs", {}), **refs}}
    change(content)
    return ledger.append(str(record.chain), aver.Capsule.from_dict(content), blobs=blobs)


def used_as(home: Path, at: Path, given: dict[str, Any], version: int, words: str) -> Ledger:
    """A ledger of an earlier version in which an approval was used, by a decision whose action has these words."""
    home.mkdir(mode=0o700)
    shown, done = act(given, at), act(given, at, description=words)
    with aver.open_ledger(home=home / "model") as model:
        enrolled(model, ADA)
        approve_it(model, done)
        decided = ask(model, done)
        assert decided.allows
        records = list(model.read("gate.s1"))
        digests = {digest for record in records for digest, _ in blob_references(record.to_dict())}
        blobs = [aver.Blob(model.blob(digest), "application/json") for digest in digests]
    ledger = aver.open_ledger(home=home)
    ledger.keys.trust(ADA.public)
    enrolled(ledger, ADA)
    request = open_old_request(ledger, version=version, about=shown)
    approve(ledger, request, ADA, shown=SHOWN)
    use = consume(ledger, request, request.digest, by=decided.call_id, session="s1")

    def change(content: dict[str, Any]) -> None:
        result = content["outcome"]["result"]
        result.update(digest=request.digest, digest_version=version)
        if version == 1:
            del result["digest_version"], result["left_out"]

    for record in records:
        refs = {"approval": use.id} if record.content["outcome"]["result"]["decision"] == "human_approved" else {}
        reseal(ledger, record, change, blobs, **refs)
    return ledger


CASES: list[tuple[dict[str, Any], str, str]] = [
    (WORDS, "run the unit tests", "verified"),
    (WORDS, "delete the database and push to production", "failed"),
    (MCP, "sell", "failed"),
    (EDIT, "add the missing import", "verified"),
    (COMMAND, "once more", "verified"),
]


@pytest.mark.more
def test_old_records_verify_as_before_but_where_the_words_differ(tmp_path: Path) -> None:
    """In a ledger, in a bundle, and in the page."""
    cases = Cases(tmp_path / "cases")
    for number, (given, words, status) in enumerate(CASES):
        with used_as(tmp_path / f"home{number}", tmp_path, given, 2, words) as ledger:
            verdict = aver.verify(ledger)
            assert verdict.status == status, (words, verdict.to_dict())
            failed = [(one.check, one.code) for one in verdict.findings]
            assert failed == ([("approvals", "EVIDENCE_INVALID")] if status == "failed" else [])
            bundle = cases.new_folder() / "bundle"
            export_bundle(ledger, bundle)
            cases.add(bundle, ledger.keys.ring(), words)
            assert (aver.verify(bundle).status == "failed") == (status == "failed")
    assert expect_agreement(cases.directory) == len(CASES)


def test_a_new_digest_that_leaves_the_words_out_is_found(approved: Ledger, tmp_path: Path) -> None:
    """Somebody with the ledger's key asks ada about harmless words, under a digest that does not cover them."""
    action = act(WORDS, tmp_path)
    honest = ask(approved, action)
    assert honest.request is not None
    content: dict[str, Any] = copy.deepcopy(dict(honest.request.content))
    del content["action"]["description"]
    content["digest"] = action.compute_digest(3, described=False)
    draft = aver.Capsule(type="auth", outcome=aver.Outcome(status="pending", result=content))
    approved.append(honest.request.chain, of_kind(draft, "approval.request"))
    forged = list(recent_requests(approved))[-1]
    approve(approved, forged, ADA, shown=SHOWN)
    use = consume(approved, forged, forged.digest, by=honest.call_id, session="s1")
    warned = approved.verify().check("approvals")
    assert warned.status == "warning"

    def change(found: dict[str, Any]) -> None:
        result = found["outcome"]["result"]
        result["action"]["description"] = "delete the database"
        result.update(gate_id=new_id(), decision="human_approved", digest=forged.digest)
        result["facts"] |= {"approved": True, "approved_by": "person:ada"} | result["session"]

    reseal(approved, honest.record, change, approval=use.id)
    found = {(one.check, one.code) for one in approved.verify().findings if one.status == "failed"}
    assert ("decisions", "EVIDENCE_INVALID") in found


def test_a_request_that_was_changed_after_it_was_signed_allows_nothing(approved: Ledger, tmp_path: Path) -> None:
    """The same id and digest, sealed again with other words beside the digest."""
    request = approve_it(approved, act(EDIT, tmp_path))
    record = next(approved.read(request.chain))
    vote = list(approved.read(request.chain))[-1]
    with aver.open_ledger(tenant="copy") as other:
        enrolled(other, ADA)
        for found in (record, vote):
            content = found.to_dict()
            content.update(sequence=0, previous_hash=None)
            content["context"]["environment"]["aver"] = {"kind": found.kind}
            if found is record:
                content["outcome"]["result"]["beside"]["description"] = "harmless"
            blobs = [aver.Blob(SHOWN.encode(), "text/plain; charset=utf-8")]
            other.append("approvals.copy", aver.Capsule.from_dict(content), blobs=blobs)
        [changed] = recent_requests(other)
        [(_, problem)] = load_request_state(other, changed).uncounted
        assert "another shown_sha256" in problem.words
        with pytest.raises(Refused) as refusal:
            consume(other, changed, changed.digest)
        assert code_of(refusal) == "NOT_APPROVED"


def test_who_signed_is_asked_in_the_page_too(approved: Ledger, tmp_path: Path) -> None:
    """A run of this version holds in the page as it does here."""
    cases = Cases(tmp_path / "cases")
    approve_it(approved, act(WORDS, tmp_path))
    assert ask(approved, act(WORDS, tmp_path)).allows
    bundle = cases.new_folder() / "bundle"
    export_bundle(approved, bundle)
    for name, ring in (("known", approved.keys.ring()), ("unknown", Ring())):
        cases.add(bundle, ring, name)
        assert expect_agreement(cases.directory) == 1


def test_the_approval_of_one_deed_is_not_moved_to_another_under_a_mask(approved: Ledger, tmp_path: Path) -> None:
    """Whoever has the ledger's key marks the action as masked, so that nobody can compute its digest again."""
    secret = {"command": "rm -r build # GITHUB_TOKEN=ghp_" + "a1B2c3D4e5F6" * 3}
    honest = act(COMMAND, tmp_path, arguments=secret)
    approve_it(approved, honest)
    answer = ask(approved, honest)
    assert answer.allows
    assert aver.verify(approved).status == "verified"
    request = approve_it(approved, honest)
    use = consume(approved, request, request.digest, by=answer.call_id, session="s1")

    def change(content: dict[str, Any]) -> None:
        result = content["outcome"]["result"]
        result["action"]["arguments"]["command"] = "rm -r / # [masked:token]"
        result.update(gate_id=new_id(), facts=result["facts"] | result["session"])

    reseal(approved, answer.record, change, approval=use.id)
    verdict = aver.verify(approved)
    assert verdict.status == "qualified", verdict.to_dict()
    assert "is not known to be the one that was approved" in verdict.check("decisions").reason

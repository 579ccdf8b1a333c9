"""Edits of real commits, judged by the gate: `python bench/gate.py HISTORY…` with the paths of git histories.

Each commit of a history is a session, and each hunk of it is one edit by an editor tool, in the order of the diff. A
file that the commit makes is written whole. A change that is asked about counts as approved by a click, which begins
the session's counting anew. Two figures:

    source edits that pass     of the edits of source files that change at most 20 lines
    commits that pass whole    no edit of theirs is asked about; and the share of them that failed later

A commit failed if a later one reverts it, or repairs its lines within 180 days (`aver.gate.risk.history`). Only commits
count whose outcome can be known: those older than 90 days before the end of the history. The shipped prior decides;
nothing is learned from the history but the number of fixes before each commit.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from measuring import Line

from aver.agents.registry import load_known_agents
from aver.gate.action import Action, Facts
from aver.gate.decide import Gate, decide
from aver.gate.facts.session_state import next_session_state
from aver.gate.policy.bundle import load_policy_bundle
from aver.gate.risk.diff_model import FileChange, Hunk
from aver.gate.risk.features import file_kind
from aver.gate.risk.history.commits import CommitChange, MinedCommit, find_failures, read_changes
from aver.gate.risk.history.git import open_git
from aver.gate.risk.history.learn import MATURITY, find_history_end
from aver.gate.risk.history.mined_commits import mine_history
from aver.gate.risk.history.repository import open_repository

EDIT_LINES = 20
"""Lines, added and removed, of an edit that counts."""

COMMIT_EDITS_MAX = 400
"""Edits of a commit that are judged. A larger commit counts as one that does not pass."""

WORKSPACE = "/work/history"
PASS_TARGET, FAILED_TARGET = 0.75, 0.025


@dataclass
class EditFigures:
    edits: int = 0
    passed: int = 0
    commits: int = 0
    whole: int = 0
    failed: int = 0
    failed_of_all: int = 0

    def add(self, other: EditFigures) -> None:
        for name in self.__dataclass_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass(frozen=True)
class Edit:
    path: str
    is_new: bool
    lines: int
    diff: str


@dataclass(frozen=True)
class KnownFixes:
    """The number of fixes before the commit, as the history was mined."""

    count: int

    def fixes_before(self, paths: Collection[str], now: str) -> int:
        return self.count


def list_edits(change: CommitChange) -> Iterator[Edit]:
    """Yield the edits of a commit: one for each hunk, and one for a file that it makes, renames or removes."""
    file: FileChange | None = None
    hunks: list[Hunk] = []

    def build() -> Iterator[Edit]:
        if file is None:
            return
        old = "/dev/null" if file.old is None else f"a/{file.old}"
        new = "/dev/null" if file.new is None else f"b/{file.new}"
        is_kept = file.old is not None and file.old == file.new
        for group in ([hunk] for hunk in hunks) if is_kept else (hunks,):
            text = f"--- {old}\n+++ {new}\n"
            lines = 0
            for hunk in group:
                before, after = (sum(line[0] in marks for line in hunk.lines) for marks in (" -", " +"))
                lines += sum(line[0] != " " for line in hunk.lines)
                text += f"@@ -{hunk.old_start},{before} +{hunk.old_start},{after} @@\n"
                text += "".join(f"{line}\n" for line in hunk.lines)
            yield Edit(file.path, file.old is None, lines, text)

    for part in change.parts:
        if isinstance(part, FileChange):
            yield from build()
            file, hunks = part, []
        elif isinstance(part, Hunk):
            hunks.append(part)
    yield from build()


def judge_commit(edits: list[Edit], gate: Gate) -> tuple[int, int, bool]:
    """Judge the edits of a commit as one session.

    Returns how many source edits count, how many of them pass, and whether all edits do.
    """
    facts = Facts(now="2026-01-05T09:00:00+00:00")
    counted = passed = 0
    is_whole = True
    for edit in edits:
        path = f"{WORKSPACE}/{edit.path}"
        action = Action(
            type="code_edit",
            tool="Write" if edit.is_new else "Edit",
            arguments={"file_path": path},
            diff=edit.diff,
            workspace=WORKSPACE,
            caller="agent",
            session="s",
        )
        decision = decide(action, replace(facts, absent=(path,) if edit.is_new else ()), gate)
        is_whole &= decision.allows
        if file_kind(edit.path) == "source" and edit.lines <= EDIT_LINES:
            counted += 1
            passed += decision.allows
        if not decision.allows:
            decision = replace(decision, decision="human_approved")
        state = next_session_state(facts, decision)
        if state is not None:
            facts = replace(facts, changed=state["changed"], changed_files=tuple(state["changed_files"]))
    return counted, passed, is_whole


def judge_history(path: Path) -> EditFigures:
    """Judge the commits of a history."""
    repository = open_repository(path)
    with tempfile.TemporaryDirectory() as home:
        found = mine_history(repository, home=Path(home)).commits
    mined: dict[str, MinedCommit] = {item.commit.id: item for item in found}
    failures, end = find_failures(mined.values()), find_history_end(mined.values())
    figures = EditFigures()
    gate = Gate(bundle=load_policy_bundle(), known=load_known_agents())
    with open_git(repository) as git:
        for change in read_changes(git, [item.commit for item in mined.values()]):
            item = mined[change.commit.id]
            edits = list(list_edits(change))
            if not item.features.files or not edits:
                continue
            basis = replace(gate, history=KnownFixes(item.features.fixes))
            counted, passed, is_whole = judge_commit(edits[:COMMIT_EDITS_MAX], basis)
            figures.edits += counted
            figures.passed += passed
            if change.commit.time + MATURITY > end:
                continue
            is_failed = change.commit.id in failures
            figures.commits += 1
            figures.failed_of_all += is_failed
            if is_whole and len(edits) <= COMMIT_EDITS_MAX:
                figures.whole += 1
                figures.failed += is_failed
    return figures


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "–"


def bench_edits(paths: list[Path]) -> list[Line]:
    total, lines = EditFigures(), []
    for path in [*paths, None]:
        found = total if path is None else judge_history(path)
        if path is not None:
            total.add(found)
        name = "all histories" if path is None else path.resolve().name
        edits, whole = _share(found.passed, found.edits), _share(found.failed, found.whole)
        base = _share(found.failed_of_all, found.commits)
        about = f"{_share(found.whole, found.commits)} of {found.commits} commits; base {base}"
        work = f"source edits of ≤ {EDIT_LINES} lines that pass: {name}, {found.edits}"
        lines.append(Line(work, "", edits, "", "", f"≥ {PASS_TARGET:.0%}"))
        work = f"commits that pass whole and fail: {name}"
        lines.append(Line(work, "", whole, "", about, f"≤ {FAILED_TARGET:.1%}"))
    return lines

"""Judging a run by its chain in a ledger, with or without the lines that its directory has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from aver.actions.checking import RUN_CHECKS, RunJudge
from aver.actions.lines import Line, written
from aver.actions.records import ACTION, action_of, sealed_action
from aver.capsule.block import kind_of
from aver.capsule.sealed import Sealed
from aver.errors import AverError, BadInput, IntegrityError, NotFound
from aver.ledger import Head, Ledger
from aver.ledger.verify import verify_ledger
from aver.verdict import Finding, Place, Rules, Tally, Terms, Verdict, conclude, worst

__all__ = ["judge_chain"]

Lines = Iterable[bytes | BadInput]


def judge_chain(ledger: Ledger, chain: str, terms: Terms, lines: Lines | None = None) -> Verdict:
    """The verdict on a run's chain: its capsules as the ledger judges them, and what this room adds.

    Given the `lines` of a file, they are held to the capsules; otherwise those that the capsules give are judged.
    """
    head = ledger.head(chain)
    verdict = verify_ledger(ledger, chain, level=terms.level, since=None, ring=terms.ring, require_pq=terms.require_pq)
    run_id = _run_id(ledger, chain)
    if run_id is None:
        tally = Tally()
        words = "the chain does not begin as a run does"
        tally.add(Finding("sealed", "failed", "CHAIN_IDENTITY", words, Place(chain, 0)))
        return _joined(verdict, tally)
    # Signatures and keys were judged with the ledger; here the bytes must be those that were signed.
    judge = RunJudge(Rules(terms.ring, "content"), run_id=run_id, identity=Head(*_place(head), 0, None))
    given = None if lines is None else iter(lines)
    for record in ledger.read(chain, 0, head.count):
        line = _line(judge, record, given, ledger)
        judge.take(record, line, None if line is None else line.texts.sealed(line.action))
    for raw in given or ():
        judge.receipts.take(raw)
    _take_gates(ledger, judge)
    tally, _, ending = judge.finish(complete=False)
    tally.merge(ending)
    if judge.receipts.count != judge.actions:
        words = f"the file has {judge.receipts.count} actions; {judge.actions} are sealed"
        tally.add(Finding("sealed", "failed", "TRUNCATED", words, Place(chain, head.count)))
    return _joined(verdict, tally)


def _place(head: Head) -> tuple[str, str, str]:
    return head.ledger, head.tenant, head.chain


def _run_id(ledger: Ledger, chain: str) -> str | None:
    try:
        first = next(ledger.read(chain, 0, 1), None)
        return None if first is None else str(first.to_dict()["outcome"]["result"]["run_id"])
    except (AverError, KeyError, TypeError):
        return None


def _line(judge: RunJudge, record: Sealed, given: Iterator[bytes | BadInput] | None, ledger: Ledger) -> Line | None:
    """The line of a record: the next that was given, or the one that its action has."""
    try:
        content = record.to_dict()
        if kind_of(content) != ACTION:
            return None
        if given is None:
            return judge.receipts.take(written(action_of(sealed_action(content), ledger.blob)))
    except (AverError, KeyError, TypeError, AttributeError) as error:
        words = error.message if isinstance(error, AverError) else "it lacks what the capsule of an action says"
        return judge.receipts.take(BadInput(words)) if given is None else None
    raw = next(given, None)
    return None if raw is None else judge.receipts.take(raw)


def _take_gates(ledger: Ledger, judge: RunJudge) -> None:
    """The gate's own chain as far as the seal counts it, and the decisions of other chains that actions name."""
    seal = judge.seal
    if seal is not None and seal.gates is not None:
        try:
            for record in ledger.read(seal.gates.chain, 0, seal.gates.count):
                judge.take_gate(record)
        except NotFound:
            pass  # That it is not there, the seal's count tells.
    for digest in judge.wanted_gates():
        try:
            found = ledger.get(digest)
        except IntegrityError:
            continue
        if found is not None:
            judge.take_gate(found)


def _joined(verdict: Verdict, tally: Tally) -> Verdict:
    tally = replace(tally, records=verdict.records)
    added = conclude(verdict.subject, tally, level=verdict.level, expected=RUN_CHECKS)
    return replace(
        verdict,
        status=worst((verdict.status, added.status)),
        checks=(*verdict.checks, *added.checks),
        findings=(*verdict.findings, *added.findings),
        first_bad=verdict.first_bad or added.first_bad,
    )

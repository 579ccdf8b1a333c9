"""Examining runs by their chains: in a ledger, in imported chains and in bundles.

The chain of a run holds its actions; the lines of `actions.jsonl` follow from them. So the checks on a run are the same
whether its files are here or not. Given the lines of a file, they are compared with the chain as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from aver.actions.encodings import ActionLine, action_line
from aver.actions.run_capsules import ACTION_KIND, load_action, read_sealed_action
from aver.actions.verify_run import RunJudge
from aver.capsule.aver_block import read_kind
from aver.capsule.sealed import Sealed
from aver.errors import AverError, BadInput, IntegrityError, NotFound
from aver.ledger import Head, Ledger
from aver.ledger.verify import verify_ledger
from aver.verdict import (
    EvidenceReader,
    Examination,
    ExaminedChain,
    Examiner,
    Finding,
    Place,
    Tally,
    Verdict,
    VerifyOptions,
)
from aver.verdict.examiner import RUN_CHECKS, guard
from aver.verdict.verdict import DOES_NOT_APPLY

RawLines = Iterable[bytes | BadInput]


def examine_runs(examination: Examination, lines: RawLines | None = None) -> Tally:
    """Check every run, from its beginning: each action depends on the one before it.

    A run that has no seal qualifies the verdict on that run. A verdict on more than the run only mentions it.
    """
    tally = Tally()
    unsealed = 0
    for chain in examination.select("actions"):
        if chain.count and chain.start >= chain.count:
            continue  # Nothing was added since it was verified.
        with guard(tally, "sealed", Place(chain.name)):
            run, is_sealed = _examine_run(examination, chain, None if lines is None else iter(lines))
            unsealed += not is_sealed
            tally.merge(run)
    if examination.is_single:
        for check in RUN_CHECKS:
            if check not in tally.done:
                tally.skip(check, DOES_NOT_APPLY, matters=False)
    elif unsealed:
        tally.notes["sealed"] = f"{tally.done.get('sealed', 0)} checked; {unsealed} runs are not sealed yet"
    return tally


def _examine_run(
    examination: Examination, chain: ExaminedChain, lines: Iterator[bytes | BadInput] | None
) -> tuple[Tally, bool]:
    """The tally of one run, and whether it is sealed."""
    reader = examination.reader
    run_id = _read_run_id(reader, chain.origin)
    if run_id is None:
        tally = Tally()
        words = "the chain does not begin as a run does"
        tally.add(Finding("sealed", "failed", "CHAIN_IDENTITY", words, Place(chain.name, 0)))
        return tally, True
    identity = Head(examination.ledger, examination.tenant, chain.origin, 0, None)
    judge = RunJudge(examination.rules, run_id=run_id, identity=identity, stored_as=chain.name, is_valid=True)
    for record in reader.read(chain.origin, 0, chain.count):
        line = _take_line(judge, record, lines, reader)
        judge.take(record, line, None if line is None else line.texts.seal_form(line.action))
    for raw in lines or ():
        judge.receipts.take(raw)
    _take_gate_records(reader, judge)
    tally, _, ending = judge.finish(complete=False)
    if not examination.is_single:
        # One run's words would stand for all runs.
        tally.notes.clear()
        ending.skipped.pop("sealed", None)
    tally.merge(ending)
    if judge.receipts.count != judge.actions:
        words = f"the file has {judge.receipts.count} actions; {judge.actions} are sealed"
        tally.add(Finding("sealed", "failed", "TRUNCATED", words, Place(chain.name, chain.count)))
    return tally, judge.seal is not None


def _read_run_id(reader: EvidenceReader, chain: str) -> str | None:
    try:
        first = next(reader.read(chain, 0, 1), None)
        return None if first is None else str(first.to_dict()["outcome"]["result"]["run_id"])
    except (AverError, KeyError, TypeError):
        return None


def _take_line(
    judge: RunJudge, record: Sealed, lines: Iterator[bytes | BadInput] | None, reader: EvidenceReader
) -> ActionLine | None:
    """The line of a record: the next that was given, or the one that follows from its action."""
    try:
        content = record.to_dict()
        if read_kind(content) != ACTION_KIND:
            return None
        if lines is None:
            return judge.receipts.take(action_line(load_action(read_sealed_action(content), reader.blob)))
    except (AverError, KeyError, TypeError, AttributeError) as error:
        words = error.message if isinstance(error, AverError) else "it lacks keys of an action's capsule"
        return judge.receipts.take(BadInput(words)) if lines is None else None
    raw = next(lines, None)
    return None if raw is None else judge.receipts.take(raw)


def _take_gate_records(reader: EvidenceReader, judge: RunJudge) -> None:
    """Take the gate's own chain as far as the seal counts it, and the decisions of other chains that actions name."""
    seal = judge.seal
    if seal is not None and seal.gates is not None:
        try:
            for record in reader.read(seal.gates.chain, 0, seal.gates.count):
                judge.take_gate_record(record, is_own=True)
        except NotFound:
            pass  # The seal's count shows that it is missing.
    for digest in judge.missing_decisions():
        try:
            found = reader.get(digest)
        except IntegrityError:
            continue
        if found is not None:
            judge.take_gate_record(found, is_own=False)


def judge_chain(ledger: Ledger, chain: str, terms: VerifyOptions, lines: RawLines) -> Verdict:
    """The verdict on a run's chain in a ledger, compared with the `lines` of a file."""
    examiners: Sequence[Examiner] = [
        Examiner(one.domains, one.checks, partial(examine_runs, lines=lines)) if one.domains == ("actions",) else one
        for one in terms.examiners
    ]
    return verify_ledger(
        ledger,
        chain,
        level=terms.level,
        since=None,
        ring=terms.ring,
        require_pq=terms.require_pq,
        examiners=examiners,
    )

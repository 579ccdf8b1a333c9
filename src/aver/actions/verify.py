"""Verify runs: in directories, `.cap` files and `actions.jsonl`, and by their chains in ledgers, imports and bundles.

The chain of a run has its actions, and the lines of `actions.jsonl` follow from them. So the checks on a run are the
same whether its files are there or not. Where lines are given, they are also compared with the chain.

A sealed run needs nothing but its files and public keys. A run that is not sealed yet is compared with the ledger that
its `run.json` names, but only if the caller names that ledger too: Aver opens no other. Lines of actions alone show
only that their receipts and links fit together, because nothing in them is signed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from aver.actions.archive import open_archive, open_directory
from aver.actions.capseal_files import CAPSEAL_MEMBERS, is_capseal, judge_capseal
from aver.actions.encodings import ACTION_LINE_MAX, ActionLine, action_line, read_raw_lines
from aver.actions.proofs.inclusion import PROOF_MAX, judge_inclusion
from aver.actions.run_capsules import ACTION_KIND, load_action, read_sealed_action, run_chain
from aver.actions.run_directory import RunIdentity, read_run_identity
from aver.actions.run_files import ACTIONS_FILE, ARCHIVE_CHECK, MEMBER_ORDER, RUN_FILE
from aver.actions.verify_files import judge_files
from aver.actions.verify_run import ReceiptJudge, RunJudge, skip_answers
from aver.capsule.aver_block import read_kind
from aver.capsule.sealed import Sealed
from aver.errors import AverError, BadInput, IntegrityError, NotFound
from aver.files.regular import open_file, open_inside
from aver.ledger import Head, Ledger, open_ledger
from aver.ledger.foreign.seal_checks import unreadable_code
from aver.ledger.verify import verify_ledger
from aver.verdict import (
    CHECKS,
    EvidenceReader,
    Examination,
    ExaminedChain,
    Examiner,
    Finding,
    Place,
    Subject,
    Tally,
    Verdict,
    VerifyOptions,
    conclude,
)
from aver.verdict.examiner import RUN_CHECKS, guard
from aver.verdict.verdict import DOES_NOT_APPLY

SEALED_FILES = frozenset(MEMBER_ORDER) - {ACTIONS_FILE}
"""The files that only a sealed run has."""

RawLines = Iterable[bytes | BadInput]


# --- files: the functions that `aver.check` lists as judges


def judge_run(subject: Subject, terms: VerifyOptions) -> Verdict:
    """Judge the run in a directory."""
    return _judge_directory(subject.path or Path(), terms)


def judge_archive(subject: Subject, terms: VerifyOptions) -> Verdict:
    """Judge a `.cap` file, of Aver or of the public CapSeal tool."""
    try:
        with _open_subject(subject) as file, open_archive(file, MEMBER_ORDER, CAPSEAL_MEMBERS) as archive:
            if is_capseal(archive):
                return judge_capseal(subject.name, archive, terms)
            return judge_files(subject.name, archive, terms)
    except BadInput as error:
        return _failed_verdict(subject.name, terms, unreadable_code(error), error.message, subject.name)


def judge_actions(subject: Subject, terms: VerifyOptions) -> Verdict:
    """Judge lines of actions; if they are the file of a run, the whole run."""
    path = subject.path
    if path is not None and path.name == ACTIONS_FILE and os.path.lexists(path.parent / RUN_FILE):
        return _judge_directory(path.parent, terms)
    with _open_subject(subject) as file:
        return _judge_lines(subject.name, file, terms, "it is alone, and nothing says where it is sealed")


def judge_proof(subject: Subject, terms: VerifyOptions) -> Verdict:
    """Judge the proof that a run has an action."""
    with _open_subject(subject) as file:
        return judge_inclusion(subject.name, file.read(PROOF_MAX + 1), terms)


def verify_directory(directory: Path, ledger: Ledger) -> Verdict:
    """Return the verdict on the run in a directory, by the keys and examiners of a ledger."""
    terms = VerifyOptions(ledger.ring(), ledger.config.home, examiners=ledger.examiners)
    return _judge_directory(directory, terms, ledger)


@contextmanager
def _open_subject(subject: Subject) -> Iterator[BinaryIO]:
    if subject.path is None:
        yield BytesIO(subject.value)
        return
    with open_file(subject.path) as file:
        yield file


def _judge_directory(directory: Path, terms: VerifyOptions, ledger: Ledger | None = None) -> Verdict:
    name = f"run in {directory.absolute().name}"
    try:
        with open_directory(directory, MEMBER_ORDER) as files:
            if files.members.keys() & SEALED_FILES:
                return judge_files(name, files, terms, directory)
        identity = read_run_identity(directory)
        if identity is not None and identity.chain != run_chain(identity.run_id):
            return _failed_verdict(name, terms, "CHAIN_IDENTITY", "it names a chain that is not the run's", RUN_FILE)
        return _judge_unsealed(name, directory, identity, terms, ledger)
    except NotFound as error:
        return _failed_verdict(name, terms, "ARTIFACT_MISSING", error.message, ACTIONS_FILE)
    except BadInput as error:
        return _failed_verdict(name, terms, unreadable_code(error), error.message, RUN_FILE)


def _judge_unsealed(
    name: str, directory: Path, identity: RunIdentity | None, terms: VerifyOptions, ledger: Ledger | None
) -> Verdict:
    """Judge a run that has no seal in its directory: its lines, and its chain in the ledger if one was named."""
    with ExitStack() as stack:
        lines = stack.enter_context(open_inside(directory, ACTIONS_FILE))
        if identity is None:
            return _judge_lines(ACTIONS_FILE, lines, terms, "nothing says where it is sealed")
        if ledger is None and terms.ledger is not None:
            try:
                opened = open_ledger(terms.ledger, tenant=identity.tenant, create=False, home=terms.home)
                ledger = stack.enter_context(opened)
            except BadInput:
                ledger = None  # There is none at that place.
        if ledger is None or (ledger.id, ledger.tenant) != (identity.ledger, identity.tenant):
            why = f"it has no seal here, and ledger {identity.ledger}, where it was begun, was not named (--ledger)"
            return _judge_lines(ACTIONS_FILE, lines, terms, why)
        if ledger.head(identity.chain).count == 0:
            return _failed_verdict(name, terms, "CHAIN_MISSING", f"the ledger has no chain {identity.chain}", RUN_FILE)
        return _judge_chain(ledger, identity.chain, terms, read_raw_lines(lines, ACTION_LINE_MAX))


def _judge_lines(name: str, file: BinaryIO, terms: VerifyOptions, why: str) -> Verdict:
    """Judge lines by themselves. `why` says why they are not compared with a chain."""
    tally = Tally()
    receipts = ReceiptJudge(tally, source=name)
    for _ in receipts.take_all(read_raw_lines(file, ACTION_LINE_MAX)):
        pass
    tally.records = receipts.count
    receipts.finish()
    tally.skip("sealed", f"receipts and links can be made by anyone: {why}", matters=True)
    tally.skip("signature", "lines of actions are not signed", matters=True)
    return conclude(name, tally, level=terms.level, expected=(*CHECKS, *RUN_CHECKS))


def _judge_chain(ledger: Ledger, chain: str, terms: VerifyOptions, lines: RawLines) -> Verdict:
    """Judge a run's chain in a ledger, and compare it with the lines of a file."""
    examiners = [
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


def _failed_verdict(name: str, terms: VerifyOptions, code: str, words: str, source: str) -> Verdict:
    tally = Tally()
    tally.add(Finding(ARCHIVE_CHECK, "failed", code, words, Place(source=source)))
    return conclude(name, tally, level=terms.level, expected=(*CHECKS, *RUN_CHECKS, ARCHIVE_CHECK))


# --- chains: the examiner that `aver.check` lists


def examine_runs(examination: Examination, lines: RawLines | None = None) -> Tally:
    """Check every run, from its beginning: each action depends on the one before it.

    A run that has no seal, or in which a person's answer is missing, qualifies the verdict on that run. A verdict on
    more than the run only mentions it.
    """
    tally = Tally()
    unsealed = waiting = waited = 0
    for chain in examination.select("actions"):
        if chain.count and chain.start >= chain.count:
            continue  # Nothing was added since it was verified.
        with guard(tally, "sealed", Place(chain.name)):
            run, judge = _examine_run(examination, chain, None if lines is None else iter(lines))
            if judge is not None:
                unsealed += judge.seal is None
                waiting, waited = waiting + judge.waiting, waited + judge.waited
            tally.merge(run)
    if examination.is_single:
        for check in RUN_CHECKS:
            if check not in tally.done:
                tally.skip(check, DOES_NOT_APPLY, matters=False)
        return tally
    # As for a run that is not sealed: the verdict on more than the run only mentions it.
    skip_answers(tally, waiting, waited, matters=False)
    if unsealed:
        tally.notes["sealed"] = f"{tally.done.get('sealed', 0)} checked; {unsealed} runs are not sealed yet"
    return tally


def _examine_run(
    examination: Examination, chain: ExaminedChain, lines: Iterator[bytes | BadInput] | None
) -> tuple[Tally, RunJudge | None]:
    """Return the tally of one run, and its judge; None if it does not begin as a run does."""
    reader = examination.reader
    try:
        first = next(reader.read(chain.origin, 0, 1))
        run_id = str(first.to_dict()["outcome"]["result"]["run_id"])
    except (AverError, KeyError, StopIteration, TypeError):
        tally = Tally()
        words = "the chain does not begin as a run does"
        tally.add(Finding("sealed", "failed", "CHAIN_IDENTITY", words, Place(chain.name, 0)))
        return tally, None
    identity = Head(examination.ledger, examination.tenant, chain.origin, 0, None)
    judge = RunJudge(examination.rules, run_id=run_id, identity=identity, stored_as=chain.name, is_valid=True)
    for record in reader.read(chain.origin, 0, chain.count):
        line = _take_line(judge, record, lines, reader)
        judge.take(record, line, None if line is None else line.texts.seal_form(line.action))
    for _ in judge.receipts.take_all(lines or ()):
        pass  # Lines after the last action of the chain.
    _take_gate_records(reader, judge)
    tally, _, ending = judge.finish(complete=False)
    if not examination.is_single:
        # The words about one run would appear as words about all runs.
        tally.notes.clear()
        for check in ("sealed", "answers"):
            ending.skipped.pop(check, None)
    tally.merge(ending)
    if judge.receipts.count != judge.actions:
        words = f"the file has {judge.receipts.count} actions; {judge.actions} are sealed"
        tally.add(Finding("sealed", "failed", "TRUNCATED", words, Place(chain.name, chain.count)))
    return tally, judge


def _take_line(
    judge: RunJudge, record: Sealed, lines: Iterator[bytes | BadInput] | None, reader: EvidenceReader
) -> ActionLine | None:
    """Judge the line of an action: the next of `lines`, or without them the line that follows from the record."""
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
    for digest in list(judge.wanted):  # A copy: each record that is taken leaves the dict.
        try:
            found = reader.get(digest)
        except IntegrityError:
            continue
        if found is not None:
            judge.take_gate_record(found, is_own=False)

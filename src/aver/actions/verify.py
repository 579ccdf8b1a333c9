"""Judging runs in directories, `.cap` files, `actions.jsonl`, and proofs that a run has an action.

A sealed run is complete in itself: its files and a public key suffice. A run that is not sealed yet is compared
with the ledger that its `run.json` names, if the caller names that ledger; no ledger is opened otherwise. A file of
actions alone shows that its receipts and links hold, and no more, because it is not signed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from aver.actions.archive import open_archive, open_directory
from aver.actions.capseal_files import CAPSEAL_MEMBERS, is_capseal, judge_capseal
from aver.actions.encodings import ACTION_LINE_MAX, read_raw_lines
from aver.actions.proofs.inclusion import PROOF_MAX, judge_inclusion
from aver.actions.run_capsules import run_chain
from aver.actions.run_directory import RunIdentity, read_run_identity
from aver.actions.run_files import ACTIONS_FILE, ARCHIVE_CHECK, MEMBER_ORDER, RUN_FILE
from aver.actions.verify_chain import judge_chain
from aver.actions.verify_files import judge_files
from aver.actions.verify_run import ReceiptJudge
from aver.errors import BadInput, NotFound
from aver.files.regular import open_file, open_inside
from aver.ledger import Ledger, open_ledger
from aver.ledger.foreign.seal_checks import unreadable_code
from aver.verdict import CHECKS, Finding, Place, Subject, Tally, Verdict, VerifyOptions, conclude
from aver.verdict.examiner import RUN_CHECKS

ALLOWED_MEMBERS = CAPSEAL_MEMBERS | frozenset(MEMBER_ORDER)
"""The members that an archive may have."""

SEALED_FILES = frozenset(MEMBER_ORDER) - {ACTIONS_FILE}


def verify_directory(directory: Path, ledger: Ledger) -> Verdict:
    """The verdict on the run in a directory, by the keys and examiners of a ledger."""
    terms = VerifyOptions(ledger.ring(), ledger.config.home, examiners=ledger.examiners)
    return _judge_directory(directory, terms, ledger)


def _judge_directory(directory: Path, terms: VerifyOptions, ledger: Ledger | None = None) -> Verdict:
    name = f"run in {directory.absolute().name}"
    try:
        with open_directory(directory, MEMBER_ORDER) as files:
            if files.members.keys() & SEALED_FILES:
                return judge_files(name, files, terms)
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
    """Judge a run that has no seal in its directory: its lines, and its chain in the ledger where one was named."""
    if identity is None:
        return _judge_lines_alone(directory, terms, "nothing says where it is sealed")
    with ExitStack() as stack:
        lines = stack.enter_context(open_inside(directory, ACTIONS_FILE))
        ledger = ledger or _try_open_ledger(identity, terms, stack)
        if ledger is None or (ledger.id, ledger.tenant) != (identity.ledger, identity.tenant):
            return _judge_lines_alone(
                directory, terms, f"ledger {identity.ledger}, in which it is sealed, was not named (--ledger)"
            )
        if ledger.head(identity.chain).count == 0:
            return _failed_verdict(name, terms, "CHAIN_MISSING", f"the ledger has no chain {identity.chain}", RUN_FILE)
        return judge_chain(ledger, identity.chain, terms, read_raw_lines(lines, ACTION_LINE_MAX))


def _try_open_ledger(identity: RunIdentity, terms: VerifyOptions, stack: ExitStack) -> Ledger | None:
    """The ledger that the caller named; None where none was named, or it is not there."""
    if terms.ledger is None:
        return None
    try:
        return stack.enter_context(open_ledger(terms.ledger, tenant=identity.tenant, create=False, home=terms.home))
    except BadInput:
        return None


def judge_archive(subject: Subject, terms: VerifyOptions) -> Verdict:
    try:
        with _open_subject(subject) as file, open_archive(file, ALLOWED_MEMBERS) as archive:
            if is_capseal(archive):
                return judge_capseal(subject.name, archive, terms)
            return judge_files(subject.name, archive, terms)
    except BadInput as error:
        return _failed_verdict(subject.name, terms, unreadable_code(error), error.message, subject.name)


def _failed_verdict(name: str, terms: VerifyOptions, code: str, words: str, source: str) -> Verdict:
    tally = Tally()
    tally.add(Finding(ARCHIVE_CHECK, "failed", code, words, Place(source=source)))
    return conclude(name, tally, level=terms.level, expected=(*CHECKS, *RUN_CHECKS, ARCHIVE_CHECK))


def judge_actions(subject: Subject, terms: VerifyOptions) -> Verdict:
    path = subject.path
    if path is not None and path.name == ACTIONS_FILE and os.path.lexists(path.parent / RUN_FILE):
        return _judge_directory(path.parent, terms)
    with _open_subject(subject) as file:
        return _judge_lines(subject.name, file, terms, "it is alone, and nothing says where it is sealed")


def _judge_lines_alone(directory: Path, terms: VerifyOptions, why: str) -> Verdict:
    with open_inside(directory, ACTIONS_FILE) as file:
        return _judge_lines(ACTIONS_FILE, file, terms, why)


def _judge_lines(name: str, file: BinaryIO, terms: VerifyOptions, why: str) -> Verdict:
    """What lines can show by themselves."""
    tally = Tally()
    chain = ReceiptJudge(tally, source=name)
    for raw in read_raw_lines(file, ACTION_LINE_MAX):
        chain.take(raw)
    tally.records = chain.count
    chain.finish()
    tally.skip("sealed", f"receipts and links can be made by anyone: {why}", matters=True)
    tally.skip("signature", "lines of actions are not signed", matters=True)
    return conclude(name, tally, level=terms.level, expected=(*CHECKS, *RUN_CHECKS))


@contextmanager
def _open_subject(subject: Subject) -> Iterator[BinaryIO]:
    if subject.path is None:
        yield BytesIO(subject.value)
        return
    with open_file(subject.path) as file:
        yield file


def judge_run(subject: Subject, terms: VerifyOptions) -> Verdict:
    return _judge_directory(subject.path or Path(), terms)


def judge_proof(subject: Subject, terms: VerifyOptions) -> Verdict:
    with _open_subject(subject) as file:
        return judge_inclusion(subject.name, file.read(PROOF_MAX + 1), terms)

"""Judging runs in directories, `.cap` files, `actions.jsonl`, and proofs that a run has an action.

A sealed run is whole in itself: six files, and a public key is all that is needed besides. A run that is not sealed yet
is held to the ledger that its `run.json` names, where that is at hand. A file of actions alone shows that its receipts
and links hold, and no more: nobody signed it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from aver.actions.archive import opened_archive
from aver.actions.capseal import is_capseal, judge_capseal
from aver.actions.checking import RUN_CHECKS
from aver.actions.file_names import ACTIONS, MEMBERS, RUN
from aver.actions.folder import RunIdentity, identity_in
from aver.actions.inclusion import PROOF_MAX, judge_inclusion
from aver.actions.ledger_runs import judge_chain
from aver.actions.lines import LINE_MAX
from aver.actions.receipt_chain import ReceiptChain
from aver.actions.records import run_chain
from aver.actions.run_files import ARCHIVE, judge_files, opened_directory, raw_lines
from aver.errors import BadInput, NotFound
from aver.ledger import Ledger, open_ledger
from aver.ledger.outside import code_of, open_file, open_inside
from aver.verdict import CHECKS, Finding, Place, Subject, Tally, Terms, Verdict, conclude

__all__ = ["judge_actions", "judge_archive", "judge_proof", "judge_run", "verify_directory"]

SEALED_ONLY = frozenset(MEMBERS) - {ACTIONS}


def verify_directory(directory: Path, ledger: Ledger) -> Verdict:
    """The verdict on the run in a directory, by the keys that a ledger goes by."""
    return _judge_directory(directory, Terms(ledger.ring(), ledger.config.home), ledger)


def _judge_directory(directory: Path, terms: Terms, ledger: Ledger | None = None) -> Verdict:
    name = f"run in {directory.absolute().name}"
    try:
        with opened_directory(directory) as files:
            if files.members.keys() & SEALED_ONLY:
                return judge_files(name, files, terms)
        identity = identity_in(directory)
        if identity is not None and identity.chain != run_chain(identity.run_id):
            return _failed(name, terms, "CHAIN_IDENTITY", "it names a chain that is not the run's", RUN)
        return _judge_unsealed(name, directory, identity, terms, ledger)
    except NotFound as error:
        return _failed(name, terms, "ARTIFACT_MISSING", error.message, ACTIONS)
    except BadInput as error:
        return _failed(name, terms, code_of(error), error.message, RUN)


def _judge_unsealed(
    name: str, directory: Path, identity: RunIdentity | None, terms: Terms, ledger: Ledger | None
) -> Verdict:
    """A run that has no seal in its directory: its lines, held to the ledger where that is at hand."""
    if identity is None:
        return _judge_alone(directory, terms, "nothing says where it is sealed")
    with ExitStack() as stack:
        lines = stack.enter_context(open_inside(directory, ACTIONS))
        ledger = ledger or _opened_ledger(identity, terms, stack)
        if ledger is None or (ledger.id, ledger.tenant) != (identity.ledger, identity.tenant):
            return _judge_alone(directory, terms, f"ledger {identity.ledger}, in which it is sealed, is not at hand")
        if ledger.head(identity.chain).count == 0:
            return _failed(name, terms, "CHAIN_MISSING", f"the ledger has no chain {identity.chain}", RUN)
        return judge_chain(ledger, identity.chain, terms, raw_lines(lines, LINE_MAX))


def _opened_ledger(identity: RunIdentity, terms: Terms, stack: ExitStack) -> Ledger | None:
    try:
        return stack.enter_context(open_ledger(terms.ledger, tenant=identity.tenant, create=False, home=terms.home))
    except BadInput:
        return None


def judge_archive(subject: Subject, terms: Terms) -> Verdict:
    try:
        with _opened(subject) as file, opened_archive(file) as archive:
            if is_capseal(archive):
                return judge_capseal(subject.name, archive, terms)
            return judge_files(subject.name, archive, terms)
    except BadInput as error:
        return _failed(subject.name, terms, code_of(error), error.message, subject.name)


def _failed(name: str, terms: Terms, code: str, words: str, source: str) -> Verdict:
    tally = Tally()
    tally.add(Finding(ARCHIVE, "failed", code, words, Place(source=source)))
    return conclude(name, tally, level=terms.level, expected=(*CHECKS, *RUN_CHECKS, ARCHIVE))


def judge_actions(subject: Subject, terms: Terms) -> Verdict:
    path = subject.path
    if path is not None and path.name == ACTIONS and os.path.lexists(path.parent / RUN):
        return _judge_directory(path.parent, terms)
    with _opened(subject) as file:
        return _verdict_on_lines(subject.name, file, terms, "it is alone, and nothing says where it is sealed")


def _judge_alone(directory: Path, terms: Terms, why: str) -> Verdict:
    with open_inside(directory, ACTIONS) as file:
        return _verdict_on_lines(ACTIONS, file, terms, why)


def _verdict_on_lines(name: str, file: BinaryIO, terms: Terms, why: str) -> Verdict:
    """What lines can show by themselves."""
    tally = Tally()
    chain = ReceiptChain(tally, source=name)
    for raw in raw_lines(file, LINE_MAX):
        chain.take(raw)
    tally.records = chain.count
    chain.finish()
    tally.skip("sealed", f"receipts and links can be made by anyone: {why}", matters=True)
    tally.skip("signature", "lines of actions are not signed", matters=True)
    return conclude(name, tally, level=terms.level, expected=(*CHECKS, *RUN_CHECKS))


@contextmanager
def _opened(subject: Subject) -> Iterator[BinaryIO]:
    if subject.path is None:
        yield BytesIO(subject.value)
        return
    with open_file(subject.path) as file:
        yield file


def judge_run(subject: Subject, terms: Terms) -> Verdict:
    return _judge_directory(subject.path or Path(), terms)


def judge_proof(subject: Subject, terms: Terms) -> Verdict:
    with _opened(subject) as file:
        return judge_inclusion(subject.name, file.read(PROOF_MAX + 1), terms)

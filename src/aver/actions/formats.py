"""Recognising runs, `.cap` files, proofs and files of actions. `aver.actions.verify` judges them."""

from __future__ import annotations

import os

from aver.actions.run_files import ACTIONS_FILE, CAP_SUFFIX, CAPSULES_FILE, GZIP_MAGIC, MANIFEST_FILE, RUN_FILE
from aver.verdict import Subject


def is_run(subject: Subject) -> bool:
    """Whether it is a directory with at least two files of a run."""
    if subject.path is None or not subject.is_directory:
        return False
    names = (ACTIONS_FILE, RUN_FILE, MANIFEST_FILE, CAPSULES_FILE)
    return sum(os.path.isfile(subject.path / name) for name in names) > 1


def is_archive(subject: Subject) -> bool:
    """Whether it is a `.cap` file by its name, or compressed by gzip as one is."""
    if subject.is_directory:
        return False
    if subject.path is not None and subject.path.suffix == CAP_SUFFIX:
        return True
    return subject.beginning.startswith(GZIP_MAGIC)


def is_proof(subject: Subject) -> bool:
    """Whether it is the proof that a run has an action."""
    return not subject.is_directory and {"proof_type", "statement", "path"} <= set(subject.keys)


def is_actions_file(subject: Subject) -> bool:
    """Whether it holds lines of actions."""
    if subject.is_directory:
        return False
    if subject.path is not None and subject.path.name == ACTIONS_FILE:
        return True
    return {"action_id", "receipt_hash"} <= set(subject.keys)

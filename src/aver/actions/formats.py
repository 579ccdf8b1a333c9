"""What this room can judge: how it is recognised. `aver.actions.verify` does it, and is loaded only when it must."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module

from aver.actions.run_files import ACTIONS_FILE, CAP_SUFFIX, CAPSULES_FILE, GZIP_MAGIC, MANIFEST_FILE, RUN_FILE
from aver.verdict import Judge, Subject, Verdict, VerifyOptions

__all__ = ["JUDGES"]


def _is_run(subject: Subject) -> bool:
    if subject.path is None or not subject.is_directory:
        return False
    return (
        sum(os.path.isfile(subject.path / name) for name in (ACTIONS_FILE, RUN_FILE, MANIFEST_FILE, CAPSULES_FILE)) > 1
    )


def _is_archive(subject: Subject) -> bool:
    if subject.is_directory:
        return False
    if subject.path is not None and subject.path.suffix == CAP_SUFFIX:
        return True
    return subject.beginning.startswith(GZIP_MAGIC)


def _is_proof(subject: Subject) -> bool:
    return not subject.is_directory and {"proof_type", "statement", "path"} <= set(subject.keys)


def _is_actions_file(subject: Subject) -> bool:
    if subject.is_directory:
        return False
    if subject.path is not None and subject.path.name == ACTIONS_FILE:
        return True
    return {"action_id", "receipt_hash"} <= set(subject.keys)


def _lazy_judge(name: str) -> Callable[[Subject, VerifyOptions], Verdict]:
    def judge(subject: Subject, terms: VerifyOptions) -> Verdict:
        verdict: Verdict = getattr(import_module("aver.actions.verify"), name)(subject, terms)
        return verdict

    return judge


JUDGES = (
    Judge("a run", _is_run, _lazy_judge("judge_run")),
    Judge("a .cap file", _is_archive, _lazy_judge("judge_archive")),
    Judge("a proof", _is_proof, _lazy_judge("judge_proof")),
    Judge("actions", _is_actions_file, _lazy_judge("judge_actions")),
)

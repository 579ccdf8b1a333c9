"""What this room can judge: how it is recognised. `aver.actions.judging` does it, and is loaded only when it must."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module

from aver.actions.file_names import ACTIONS, CAP_SUFFIX, CAPSULES, GZIP_MAGIC, MANIFEST, RUN
from aver.verdict import Judge, Subject, Terms, Verdict

__all__ = ["JUDGES"]


def _is_run(subject: Subject) -> bool:
    if subject.path is None or not subject.is_directory:
        return False
    return sum(os.path.isfile(subject.path / name) for name in (ACTIONS, RUN, MANIFEST, CAPSULES)) > 1


def _is_archive(subject: Subject) -> bool:
    if subject.is_directory:
        return False
    if subject.path is not None and subject.path.suffix == CAP_SUFFIX:
        return True
    return subject.beginning.startswith(GZIP_MAGIC)


def _is_proof(subject: Subject) -> bool:
    return not subject.is_directory and {"proof_type", "statement", "path"} <= set(subject.keys)


def _is_actions(subject: Subject) -> bool:
    if subject.is_directory:
        return False
    if subject.path is not None and subject.path.name == ACTIONS:
        return True
    return {"action_id", "receipt_hash"} <= set(subject.keys)


def _by(name: str) -> Callable[[Subject, Terms], Verdict]:
    def judge(subject: Subject, terms: Terms) -> Verdict:
        verdict: Verdict = getattr(import_module("aver.actions.judging"), name)(subject, terms)
        return verdict

    return judge


JUDGES = (
    Judge("a run", _is_run, _by("judge_run")),
    Judge("a .cap file", _is_archive, _by("judge_archive")),
    Judge("a proof", _is_proof, _by("judge_proof")),
    Judge("actions", _is_actions, _by("judge_actions")),
)

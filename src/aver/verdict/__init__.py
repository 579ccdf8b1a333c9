"""The verdict: pure functions from bytes and keys to findings, which can be merged."""

from aver.verdict.chain import LEVELS, ChainJudge, Level, Retirement, Rules
from aver.verdict.examiner import EvidenceReader, Examination, ExaminedChain, Examiner
from aver.verdict.subject import BEGINNING_BYTES, Subject, VerifyOptions
from aver.verdict.verdict import (
    CHECKS,
    Check,
    Finding,
    Place,
    Tally,
    Verdict,
    conclude,
    explain_code,
    load_codes,
    merge_verdicts,
    worst_integrity,
    worst_status,
)

__all__ = [
    "BEGINNING_BYTES",
    "CHECKS",
    "LEVELS",
    "ChainJudge",
    "Check",
    "EvidenceReader",
    "Examination",
    "ExaminedChain",
    "Examiner",
    "Finding",
    "Level",
    "Place",
    "Retirement",
    "Rules",
    "Subject",
    "Tally",
    "Verdict",
    "VerifyOptions",
    "conclude",
    "explain_code",
    "load_codes",
    "merge_verdicts",
    "worst_integrity",
    "worst_status",
]

"""The verdict: pure functions from bytes and keys to findings that merge."""

from aver.verdict.chain import LEVELS, ChainJudge, Level, Retirement, Rules
from aver.verdict.codes import codes
from aver.verdict.subject import BEGINNING, Judge, Subject, Terms
from aver.verdict.verdict import CHECKS, Check, Finding, Place, Tally, Verdict, conclude, explain, joined, worst

__all__ = [
    "BEGINNING",
    "CHECKS",
    "LEVELS",
    "ChainJudge",
    "Check",
    "Finding",
    "Judge",
    "Level",
    "Place",
    "Retirement",
    "Rules",
    "Subject",
    "Tally",
    "Terms",
    "Verdict",
    "codes",
    "conclude",
    "explain",
    "joined",
    "worst",
]

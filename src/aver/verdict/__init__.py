"""The verdict: pure functions from bytes and keys to findings that merge."""

from aver.verdict.chain import LEVELS, ChainJudge, Level, Retirement, Rules
from aver.verdict.codes import codes
from aver.verdict.verdict import CHECKS, Check, Finding, Place, Tally, Verdict, conclude, explain

__all__ = [
    "CHECKS",
    "LEVELS",
    "ChainJudge",
    "Check",
    "Finding",
    "Level",
    "Place",
    "Retirement",
    "Rules",
    "Tally",
    "Verdict",
    "codes",
    "conclude",
    "explain",
]

"""The result of one check of `aver doctor`, as every module of the checks gives it."""

from __future__ import annotations

from typing import Literal

from aver.fast_dataclass import dataclass

DoctorStatus = Literal["ok", "warning", "problem"]


@dataclass(frozen=True, slots=True)
class DoctorReport:
    """The result of one check."""

    status: DoctorStatus
    subject: str
    words: str
    advice: str = ""

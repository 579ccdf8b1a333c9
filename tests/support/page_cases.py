"""Things with Aver's verdict on each, which the page's verifier is held to."""

from __future__ import annotations

import json
from pathlib import Path

from aver import BadInput, check
from aver.keys import Ring
from aver.verdict import VerifyOptions
from support.page_verdicts import compare, judge_cases
from support.recorded_cases import describe, publish


class Cases:
    """Things with Aver's verdict on each, in the form of `support.recorded_cases`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.count = self._folders = 0

    def new_folder(self) -> Path:
        self.count += 1
        self._folders += 1
        folder = self.directory / f"{self._folders:05}" / "thing"
        folder.mkdir(parents=True)
        return folder

    def add(self, thing: Path, ring: Ring, name: str, *, require_pq: bool = False) -> None:
        """Judge a thing that lies in a folder of `new_folder`. One that nobody recognises any more is no case."""
        try:
            subject, found = check._identify(thing, check.LedgerSource(None, check.home_dir(), None, check.open_ledger))
        except BadInput:
            self.count -= 1
            return
        assert subject is not None
        assert found is not None
        known = publish(ring)
        options = VerifyOptions(known, check.home_dir(), require_pq=require_pq, examiners=check.EXAMINERS)
        verdict = check._load(found.judge)(subject, options)
        case = {
            "thing": thing.name,
            "test": name,
            "ring": describe(known),
            "require_pq": require_pq,
            "verdict": verdict.to_dict(),
            "matters": [one.name for one in verdict.checks if one.matters],
        }
        (thing.parents[1] / "case.json").write_text(json.dumps(case))

    def add_file(self, name: str, data: bytes, ring: Ring, words: str) -> None:
        thing = self.new_folder() / name
        thing.write_bytes(data)
        self.add(thing, ring, words)


def expect_agreement(directory: Path) -> int:
    """Compare all verdicts, and return how many there are."""
    compared = [(case["test"], compare(case, answer)) for case, answer in judge_cases(directory)]
    wrong = [(name, differences) for name, differences in compared if differences]
    assert wrong == [], wrong
    return len(compared)

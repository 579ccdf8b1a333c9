"""Faults of the machine under the gateway: denied with a reason, nothing twice, and the next start works.

The disk is full at some point of an act; the ledger's file is gone or is replaced by an older copy. Parts that are
killed, stopped, slow, or of another version are in `tests/gateway/test_remote_parts.py`, jumps of the clock in
`tests/gateway/test_hostile_agent.py`.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from aver import Ledger, open_ledger
from aver.errors import Unavailable
from aver.gateway.act_records import outcome_key
from support.acts import Office, open_office
from support.apart import ALL, Town, commit, preview, write
from support.faults.small_disk import small_disk
from support.parts import short_directory

PAGE = 4096
"""A file system in memory gives room in pages of this size."""

DISK = "24m"


@contextmanager
def fill_disk(disk: Path, *, pages_left: int) -> Iterator[None]:
    """Leave so many pages of a small disk free, for a while."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (64 * PAGE, PAGE):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue
        file.truncate(max(file.seek(0, os.SEEK_END) - pages_left * PAGE, 0))
    try:
        yield
    finally:
        filler.unlink()


def require_truth(ledger: Ledger, workspace: Path) -> None:
    """Each file that was written has one mark, and no act has two."""
    marks = Counter(record.to_dict()["trigger"]["correlation_id"] for record in ledger.find(kind="act.commit"))
    assert set(marks.values()) <= {1}
    assert len([path for path in workspace.iterdir() if not path.name.startswith(".")]) <= len(marks)


PAGES = range(0, 200, 6)
"""Room for an act ends at another write each time, until there is room for all of it."""


@pytest.mark.parametrize("where", [pytest.param("ledger", marks=pytest.mark.more), "workspace"])
def test_a_full_disk_denies_and_room_lets_the_next_act_pass(tmp_path: Path, where: str) -> None:
    disk = tmp_path / "disk"
    with small_disk(disk, DISK):
        home = (disk if where == "ledger" else tmp_path) / "home"
        work = (disk if where == "workspace" else tmp_path) / "work"
        answers = Counter[str]()
        with open_ledger(home=home) as ledger, open_office(work, ledger) as office:
            assert office.write("first.txt")["reason_code"] == "ALLOW"
            for pages in PAGES if where == "ledger" else (0, 1):
                with fill_disk(disk, pages_left=pages):
                    answer = office.write(f"{pages}.txt", "x" * 2 * PAGE)
                answers[answer["reason_code"]] += 1
                if answers["ALLOW"] > 1:
                    break
                assert answer["summary"]
                assert (work / f"{pages}.txt").exists() == (
                    answer["status"] == "OK" or "the effect is done" in answer["summary"]
                ), answer
                again = office.write(f"{pages}-again.txt")
                assert again["reason_code"] == "ALLOW", again
            require_truth(ledger, work)
            # Whatever could not be sealed at first was sealed with the next act.
            assert ledger.verify().status == "verified"
        assert set(answers) <= {"ALLOW", "EXECUTOR_UNAVAILABLE", "EFFECT_FAILED"}
        assert answers["EFFECT_FAILED" if where == "workspace" else "EXECUTOR_UNAVAILABLE"] > 1
        assert answers["ALLOW"] == (2 if where == "ledger" else 0)
        with open_ledger(home=home) as ledger, open_office(work, ledger) as office:
            assert office.write("last.txt")["reason_code"] == "ALLOW"


class NoOutcomes:
    """A ledger on whose disk nothing more fits after a mark."""

    def __init__(self, ledger: Ledger) -> None:
        self._append = ledger.append
        self.is_full = True

    def __call__(self, chain: str, draft: Any, *, key: str | None = None, **more: Any) -> Any:
        if self.is_full and key is not None and key.startswith("outcome:"):
            raise Unavailable("the disk is full")
        return self._append(chain, draft, key=key, **more)


class TestOutcomeThatCannotBeSealed:
    def test_it_is_sealed_with_the_next_act(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with open_ledger() as ledger, open_office(tmp_path / "work", ledger) as office:
            append = NoOutcomes(ledger)
            monkeypatch.setattr(ledger, "append", append)
            answer = office.write("a.txt")
            assert (answer["reason_code"], "the effect is done" in answer["summary"]) == ("EXECUTOR_UNAVAILABLE", True)
            append.is_full = False
            assert office.write("b.txt")["reason_code"] == "ALLOW"
            sealed = ledger.get(outcome_key(answer["data"]["action_id"]))
            assert sealed is not None
            assert sealed.to_dict()["outcome"]["result"]["reason_code"] == "ALLOW"
            assert ledger.verify().status == "verified"

    def test_it_is_sealed_at_the_end(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with open_ledger() as ledger:
            with open_office(tmp_path / "work", ledger) as office:
                append = NoOutcomes(ledger)
                monkeypatch.setattr(ledger, "append", append)
                office.write("a.txt")
                append.is_full = False
            assert [record.kind for record in ledger.read("gateway.s1")][-1] == "act.outcome"

    def test_otherwise_the_next_start_closes_the_act(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with open_ledger() as ledger:
            with monkeypatch.context() as patched:
                patched.setattr(ledger, "append", NoOutcomes(ledger))
                with open_office(tmp_path / "work", ledger) as office:
                    action_id = office.write("a.txt")["data"]["action_id"]
            with open_office(tmp_path / "work", ledger) as office:
                closed = ledger.get(outcome_key(action_id))
                assert closed is not None
                assert closed.to_dict()["outcome"]["result"]["reason_code"] == "OUTCOME_UNKNOWN"
                assert office.write("b.txt")["reason_code"] == "ALLOW"


class TestLedgerFile:
    @pytest.fixture
    def office(self, tmp_path: Path) -> Iterator[Office]:
        with open_office(tmp_path / "work") as opened:
            yield opened

    def test_without_its_file_every_act_is_denied(self, office: Office, tmp_path: Path) -> None:
        home = office.ledger.config.home
        tx_id = office.preview()["data"]["tx_id"]
        aside = tmp_path / "aside"
        aside.mkdir()
        for path in home.glob("ledger.db*"):
            path.rename(aside / path.name)
        for answer in (office.write("b.txt"), office.commit(tx_id)):
            assert answer["reason_code"] == "EXECUTOR_UNAVAILABLE"
            assert "deleted or moved away" in answer["summary"]
        assert not list(office.workspace.iterdir())
        for path in aside.iterdir():
            path.rename(home / path.name)
        assert office.commit(tx_id)["reason_code"] == "ALLOW"

    def test_an_older_copy_in_its_place_is_no_way_to_act_twice(self, office: Office, tmp_path: Path) -> None:
        home = office.ledger.config.home
        tx_id = office.preview()["data"]["tx_id"]
        copy = tmp_path / "copy"
        copy.mkdir()
        for path in home.glob("ledger.db*"):
            shutil.copy(path, copy / path.name)
        assert office.commit(tx_id)["reason_code"] == "ALLOW"
        (office.workspace / "notes.txt").unlink()
        for path in copy.iterdir():
            path.replace(home / path.name)
        answer = office.commit(tx_id)
        assert (answer["reason_code"], "replaced" in answer["summary"]) == ("EXECUTOR_UNAVAILABLE", True)
        assert not list(office.workspace.iterdir())


@pytest.mark.more
def test_parts_on_a_full_disk_deny_and_go_on_with_room() -> None:
    with short_directory() as directory:
        disk = directory / "disk"
        with small_disk(disk, DISK), open_ledger(home=disk / "home") as ledger:
            from aver.gateway.parts.part_directories import make_part_directories

            make_part_directories(ledger)
            town = Town(disk / "home", ledger)
            try:
                town.start(*ALL)
                with town.open() as gateway:
                    for pages in (0, 10, 20, 24, 28, 32):
                        with fill_disk(disk, pages_left=pages):
                            answer = gateway.act(write(f"{pages}.txt"))
                        assert answer["summary"]
                        assert answer["status"] == "OK" or answer["reason_code"].endswith("_UNAVAILABLE")
                        assert gateway.act(write(f"{pages}-again.txt"))["reason_code"] == "ALLOW"
                    tx_id = gateway.act(preview("kept.txt"))["data"]["tx_id"]
                    assert gateway.act(commit(tx_id))["reason_code"] == "ALLOW"
                    assert gateway.act(commit(tx_id))["reason_code"] == "REPLAY_DENY"
                require_truth(ledger, town.workspace)
                assert ledger.verify().status == "verified"
                assert town.end("executor", signal.SIGTERM) == 0
            finally:
                town.end_all()

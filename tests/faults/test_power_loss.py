"""The power goes: what was acknowledged before is there when it comes back, once, and nothing else is half there.

A real process appends (one by one, many at once, with blobs; with a log so short that SQLite moves it into the main
file and begins it anew several times), rotates its key, sweeps heads into `meta`, writes a checkpoint, and verifies.
Each of its system calls that change files is written down by `strace`. Then a model disk (see `disk`, which says what
it models and what it does not) is cut off before one of these calls after the other, and for each cut several images
of what may be left are made: without all that was not synced, with all of it, and with chance deciding write by
write, sector by sector. Aver opens every image as if the machine had been started again.

Long: every call. Otherwise some of them, by chance.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from aver import Capsule, open_ledger
from support.faults.aftermath import check
from support.faults.disk import TRACED, Chance, DataOnly, Dice, Disk, Luck, NamesOnly, changes_in
from support.faults.strace import DeedServer, need_strace

pytestmark = pytest.mark.more

NOTED = ["-xx", "-s", str(2**20), "-e", "trace=" + ",".join(f"?{call}" for call in TRACED)]


@dataclass
class Run:
    """A process's life, written down, in a home below a directory that was there before."""

    disk: Disk
    seed: bytes | None
    """The private key that was replaced during it."""

    def survives(self, cut: int, chance: Chance, at: Path) -> None:
        self.disk.write_image(cut, chance, at)
        home = at / "home"
        said = self.disk.said(cut)
        if self.seed is not None and "rotate" in said:
            left = [path for path in at.rglob("*") if path.is_file() and self.seed in path.read_bytes()]
            assert not left, f"the retired private key is still in {left}"
        home.mkdir(mode=0o700, exist_ok=True)
        try:
            check(home, said)
        except Exception as error:
            change = self.disk.changes[cut] if cut < len(self.disk.changes) else "the end"
            raise AssertionError(f"cut {cut} before {change}, {type(chance).__name__}: {error}") from error
        shutil.rmtree(at)


def noted(directory: Path, base: Path | None) -> Run:
    root = directory / "disk"
    root.mkdir(mode=0o700)
    home = root / "home"
    if base is not None:
        shutil.copytree(base, home)
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    seed = before.get(home / "keys" / "ledger.0.key")
    server = DeedServer(directory)
    trial = server.run("everything", home, NOTED)
    server.stop()
    assert trial.status == 0
    assert not trial.told("failed")
    return Run(Disk(root, before, changes_in(trial.trace, root, before)), seed)


@pytest.fixture(scope="module", params=["a ledger in use", "first use"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    need_strace()
    directory = tmp_path_factory.mktemp("power")
    if request.param == "first use":
        return noted(directory, None)
    base = directory / "base"
    base.mkdir(mode=0o700)
    with open_ledger(base / "ledger.db", home=base) as ledger:
        for _ in range(3):
            ledger.append("fault.before", Capsule(type="tool"))
    return noted(directory, base)


def chances(cut: int, dice: int) -> Iterator[Chance]:
    yield from (Chance(), Luck(), NamesOnly(), DataOnly())
    yield from (Dice((cut, number)) for number in range(dice))


def test_the_trace_tells_of_everything(run: Run) -> None:
    """If this fails, Aver or SQLite changes files by other means than before, and the model would miss them."""
    kinds = {change.kind for change in run.disk.changes}
    assert kinds >= {"write", "sync", "name", "rename", "unname", "settle", "cut", "say"}
    assert len(run.disk.said(len(run.disk.changes))) > 15


def test_the_model_ends_where_the_process_ended(run: Run, tmp_path: Path) -> None:
    """With everything on disk, the image is the home as the process has left it."""
    run.disk.write_image(len(run.disk.changes), Luck(), tmp_path / "image")
    real = run.disk.root
    for path in (path for path in real.rglob("*") if path.is_file() and not path.name.endswith("-shm")):
        assert (tmp_path / "image" / path.relative_to(real)).read_bytes() == path.read_bytes(), path


def test_the_power_goes_at_some_moments(run: Run, tmp_path: Path) -> None:
    picker = random.Random(7)
    moments = len(run.disk.changes)
    for cut in (*picker.sample(range(moments), 12), moments):
        for number, chance in enumerate(chances(cut, 2)):
            run.survives(cut, chance, tmp_path / f"image.{number}")


@pytest.mark.long
def test_the_power_goes_at_every_moment(run: Run, tmp_path: Path) -> None:
    for cut in range(len(run.disk.changes) + 1):
        for number, chance in enumerate(chances(cut, 2)):
            run.survives(cut, chance, tmp_path / f"image.{number}")

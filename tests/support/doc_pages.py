"""The pages of the documentation, and the code blocks in them.

A block's info string says what becomes of it:

    sh                  run, in order, in the page's directory
    python              run, in order, in the page's directory
    sh setup            run only in a clean copy of the checkout (`test_clean_copy`)
    sh server           run only where there is a PostgreSQL server (`test_postgresql_page`)
    sh needs=PROGRAM    run where PROGRAM is installed
    LANG file=NAME      written to NAME
    text output         what the block before it prints: line for line, `…` standing for anything
    anything else       not run
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"

Place = Literal["here", "setup", "server"]
"""Where a page is run: in an empty directory, in a clean copy of the checkout, or beside a PostgreSQL server."""

_FENCE = re.compile(r"^```(.*)$")


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    language: str
    tags: frozenset[str]
    text: str

    @property
    def file(self) -> str | None:
        return self._value("file")

    @property
    def needs(self) -> str | None:
        return self._value("needs")

    @property
    def where(self) -> str:
        return f"{'/'.join(self.page.parts[-2:])}:{self.line}"

    def _value(self, name: str) -> str | None:
        return next((tag.removeprefix(f"{name}=") for tag in self.tags if tag.startswith(f"{name}=")), None)


def pages() -> list[Path]:
    """Every page of the repository: those at its top, and those in `docs`."""
    return [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]


def blocks_of(page: Path) -> list[Block]:
    blocks: list[Block] = []
    opened: tuple[int, str] | None = None
    lines: list[str] = []
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        fence = _FENCE.match(line)
        if fence is None:
            lines.append(line)
        elif opened is None:
            opened, lines = (number, fence[1].strip()), []
        else:
            language, *tags = opened[1].split() or [""]
            blocks.append(Block(page, opened[0], language, frozenset(tags), "\n".join(lines) + "\n"))
            opened = None
    assert opened is None, f"{page}:{opened} is not closed"
    return blocks


def run_page(page: Path, cwd: Path, environment: dict[str, str], *, place: Place = "here") -> int:
    """Run a page's blocks in order. Returns how many were run."""
    printed = ""
    ran = 0
    for block in blocks_of(page):
        if block.file is not None:
            (cwd / block.file).write_text(block.text, encoding="utf-8")
        elif block.tags == {"output"}:
            hold_to_output(block, printed)
        elif block.language in ("sh", "python") and runs_here(block, place):
            printed = run_block(block, cwd, environment)
            ran += 1
    return ran


def runs_here(block: Block, place: Place = "here") -> bool:
    if not block.tags & {"setup", "server"} <= {place}:
        return False
    return block.needs is None or shutil.which(block.needs) is not None


def run_block(block: Block, cwd: Path, environment: dict[str, str]) -> str:
    python = shutil.which("python", path=environment["PATH"]) or sys.executable
    command = [python, "-c"] if block.language == "python" else ["bash", "-euo", "pipefail", "-c"]
    done = subprocess.run([*command, block.text], cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    said = f"--- stdout\n{done.stdout}\n--- stderr\n{done.stderr}"
    assert done.returncode == 0, f"{block.where} ended with {done.returncode}\n{block.text}\n{said}"
    return done.stdout


def hold_to_output(block: Block, printed: str) -> None:
    """Every line the page shows was printed, in that order."""
    lines = iter(printed.splitlines())
    for expected in block.text.splitlines():
        pattern = re.compile(".*".join(re.escape(part) for part in expected.rstrip().split("…")))
        assert any(pattern.fullmatch(line.rstrip()) for line in lines), (
            f"{block.where}: {expected!r} was not printed, or not there\n--- printed\n{printed}"
        )

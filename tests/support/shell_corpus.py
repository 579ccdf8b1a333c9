"""The corpus of commands, as the tests read it. Its form is told at the top of `corpus.txt`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from aver.gate.shell.model import CommandAnalysis
from aver.gate.shell.understand import understand

CORPUS = Path(__file__).parents[1] / "gate" / "shell" / "corpus.txt"
WORKSPACE = "/work/shop"
HOME = "/home/me"
OUTER = ("outside", "temporary")
READS, ORDINARY, MORE = "reads the workspace, and nothing else", "ordinary work", "more than that"


@dataclass(frozen=True)
class Case:
    number: int
    section: str
    command: str
    effects: frozenset[str]
    unclear: frozenset[str]
    targets: frozenset[str]

    @property
    def name(self) -> str:
        return f"{self.number:04}-{re.sub(r'[^A-Za-z0-9]+', '-', self.command)[:40].strip('-')}"


def in_shop(command: str) -> CommandAnalysis:
    return understand(command, cwd=WORKSPACE, workspace=WORKSPACE, env={"HOME": HOME})


def told(understood: CommandAnalysis) -> frozenset[str]:
    """Hosts, and paths outside or guarded, as the corpus writes them."""
    found = set()
    for effect in understood.effects:
        if effect.is_host and effect.target:
            found.add(f"{effect.name} {effect.target}")
        # The corpus calls private places outside, too: test_paths tells them apart.
        elif (where := "outside" if effect.where == "private" else effect.where) in OUTER or effect.classes:
            classes = f" {','.join(sorted(effect.classes))}" if effect.classes else ""
            found.add(f"{effect.name} {effect.target} {where}{classes}")
    return frozenset(found)


def cases() -> list[Case]:
    return list(_read(CORPUS.read_text(encoding="utf-8")))


def _read(text: str) -> Iterator[Case]:
    section, number = "", 0
    for block in re.split(r"\n\n+", text):
        lines = [line for line in block.split("\n") if not line.startswith("#")]
        if lines and re.fullmatch(r"\[.*\]", lines[0]):
            section = lines[0][1:-1]
        if not lines or not lines[0].startswith("$"):
            continue
        number += 1
        command = lines[0].partition(" ")[2]
        for line in lines[1:]:
            if line.startswith(">"):
                command += "\n" + line[2:]
        if lines[0].startswith("$u "):
            command = command.encode("ascii").decode("unicode_escape")
        expected = next(line for line in lines if line.startswith("="))
        effects, _, unclear = expected[1:].partition("?")
        targets = frozenset(line[2:] for line in lines if line.startswith("@ "))
        yield Case(number, section, command, frozenset(effects.split()), frozenset(unclear.split()), targets)

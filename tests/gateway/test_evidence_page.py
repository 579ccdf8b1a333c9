"""The page about evidence: its tables are those of the program. `tests/docs` runs its examples."""

from __future__ import annotations

import re

from aver.gateway.codes import load_reason_codes
from aver.gateway.intents import INTENTS
from aver.gateway.proof.patch import PATCH_NAMES, PATCHED_INPUTS
from aver.gateway.proof.predicate import PROOF_CHECKS
from support.doc_pages import DOCS

PAGE = (DOCS / "gateway" / "evidence.md").read_text("utf-8")


def rows_of(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.strip().splitlines()[2:]]


def marked_table(mark: str) -> list[list[str]]:
    return rows_of(PAGE.partition(f"<!-- {mark} -->")[2].partition(f"<!-- /{mark} -->")[0])


def test_the_table_of_intents() -> None:
    assert marked_table("intents") == [
        [
            f"`{intent.name}`",
            f"`{intent.preview}`" if intent.preview else "–",
            " ".join(f"`{name}`" for name in intent.inputs),
            f"`{intent.endpoint}`" if intent.endpoint else f"in the {intent.place}",
            f"`{intent.action_type}`",
        ]
        for intent in INTENTS.values()
    ]


def test_the_table_of_patches() -> None:
    rows = marked_table("patches")
    assert [row[:2] for row in rows] == [[str(number), f"`{name}`"] for number, name in enumerate(PATCH_NAMES)]
    for number, row in enumerate(rows[1:], 1):
        told = {name: tuple(inputs.split()) for name, inputs in re.findall(r"`(\w+)` \(([\w ]+)\)", row[2])}
        assert told == PATCHED_INPUTS[number]


def test_the_table_of_checks() -> None:
    table = PAGE.partition("| check | holds if | else |")[2].partition("\n\n")[0]
    rows = rows_of(f"\nx{table}")
    assert tuple(row[0].strip("`") for row in rows) == PROOF_CHECKS
    assert {row[2].strip("`") for row in rows} <= load_reason_codes().keys()

"""The public CapSeal tool's `.cap` files: its vectors, and what its bytes can and cannot show."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import aver
from aver import AgentAction
from aver.actions.action import text_hash, value_hash
from aver.actions.capseal_files import capseal_leaf, capseal_root, capseal_row
from support import capseal_files
from support.capseal_files import Files, cap
from support.runs import A, codes_of

RECEIPT_A = "2ac7a66f387f2c38b8d8405c9475196a55df1062146ff74e3e67842972330ef9"
RECEIPT_B = "e9cd7af276b73afa5a20fab49693d7a122c07b6f922f6f8e566c512e016afa55"
B = AgentAction(
    "act_0002",
    "code_gen",
    text_hash("Generate"),
    value_hash({"b": 1, "a": [1, 2.5, None, "é"]}),
    text_hash("text out"),
    "act_0001",
    RECEIPT_A,
    None,
    None,
    None,
    True,
    0,
    "2024-01-15T10:30:01Z",
)
ROW_A = (
    *(0, 10368909103932161433, 11457556999785275073, 16734363288310387730, 11971511540383777889),
    *(12698514977449283504, 1890615140745869948, 1799853255689678048, 9907267904967669092, 0, 0),
    *(4047750045467330346, 7645271122501490872, 31),
)


def test_row_leaf_and_root_vectors() -> None:
    first, second = capseal_row(0, A, RECEIPT_A), capseal_row(1, B, RECEIPT_B)
    assert first == ROW_A
    assert second[9:] == (4047750045467330346, 7645271122501490872, 18030925779633360361, 11661952035589857370, 35)
    assert capseal_leaf(first).hex() == "ba2d5af399771d7682cd205f7d6ad8c283c4fe0ece3d24cfb228fb2ade6ade39"
    root = capseal_root([capseal_leaf(first), capseal_leaf(second)])
    assert root.hex() == "11fc478c995a11413226c806abbd77e78defe5bf17abb35f74a5467533cb7077"


def test_the_test_files_follow_the_same_vectors() -> None:
    assert capseal_files.receipt(A) == RECEIPT_A
    assert tuple(capseal_files.row(0, A)) == ROW_A


@pytest.fixture(scope="module")
def honest() -> Files:
    return capseal_files.files(capseal_files.actions(20))


def test_a_sound_file_is_qualified_because_nobody_signed_it(honest: Files) -> None:
    verdict = aver.verify(cap(honest))
    assert verdict.status == "qualified", verdict.to_dict()
    assert verdict.first_bad is None
    assert verdict.records == 20
    assert "13 keys" in verdict.check("receipts").reason
    assert verdict.check("signature").status == "not_checked"


def edit_lines(change: Callable[[list[str]], list[str]]) -> Callable[[Files], Files]:
    def changed(files: Files) -> Files:
        lines = change(files["actions.jsonl"].decode().splitlines(keepends=True))
        return {**files, "actions.jsonl": "".join(lines).encode()}

    return changed


def edit_line(at: int, **values: Any) -> Callable[[Files], Files]:
    def change(lines: list[str]) -> list[str]:
        lines[at] = json.dumps({**json.loads(lines[at]), **values}) + "\n"
        return lines

    return edit_lines(change)


def edit_document(name: str, **values: Any) -> Callable[[Files], Files]:
    return lambda files: {**files, name: capseal_files.document({**json.loads(files[name]), **values})}


def without(*names: str) -> Callable[[Files], Files]:
    return lambda files: {name: data for name, data in files.items() if name not in names}


MATRIX: dict[str, Callable[[Files], Files]] = {
    "success and output edited": edit_line(3, success=False, output_hash="0" * 64),
    "description edited in one of two files": edit_line(3, metadata={"description": "rm -rf /"}),
    "parent edited": edit_line(5, parent_receipt_hash="0" * 64),
    "actions deleted": edit_lines(lambda lines: lines[:5] + lines[9:]),
    "all actions deleted": edit_lines(lambda _: []),
    "actions swapped": edit_lines(lambda lines: [*lines[:10], lines[11], lines[10], *lines[12:]]),
    "capsule edited": edit_document("agent_capsule.json", timestamp="2020-01-01T00:00:00Z"),
    "capsule says only that all is well": lambda files: {
        **files,
        "agent_capsule.json": b'{"verification": {"constraints_valid": true}}',
    },
    "proof and rows deleted": without("proof.json", "row_archive/rows.json", "row_archive/merkle_levels.json"),
    "rows deleted": without("row_archive/rows.json"),
    "actions.json deleted": without("actions.json"),
    "actions.jsonl deleted": without("actions.jsonl"),
    "agent_capsule.json deleted": without("agent_capsule.json"),
    "last action edited": edit_line(-1, success=False),
    "last half cut": edit_lines(lambda lines: lines[:10]),
    "action 0 has a parent": edit_line(0, parent_receipt_hash="0" * 64),
    "manifest names another head": edit_document("manifest.json", chain_hash="0" * 64),
    "manifest counts otherwise": edit_document("manifest.json", actions_count=7),
    "proof about other rows": edit_document("proof.json", commitment={"row_root": "0" * 64, "num_rows": 20}),
    "a row changed": lambda files: {
        **files,
        "row_archive/rows.json": files["row_archive/rows.json"].replace(b"31", b"30"),
    },
    "metadata count otherwise": edit_document("run_metadata.json", num_actions=7),
    "metadata name another receipt": edit_document("run_metadata.json", final_receipt_hash="0" * 64),
    "metadata that are none": lambda files: {**files, "run_metadata.json": b"[]"},
    "a node changed": lambda files: {
        **files,
        "row_archive/merkle_levels.json": files["row_archive/merkle_levels.json"].replace(b"1", b"2", 1),
    },
    "a level cut off": lambda files: {
        **files,
        "row_archive/merkle_levels.json": json.dumps(json.loads(files["row_archive/merkle_levels.json"])[:-1]).encode(),
    },
    "levels that are none": lambda files: {**files, "row_archive/merkle_levels.json": b"{}"},
    "documents that are not": lambda files: {**files, "proof.json": b"[]", "agent_capsule.json": b"7"},
    "manifest that is none": lambda files: {**files, "manifest.json": b"["},
    "manifest that says nothing": lambda files: {**files, "manifest.json": b"[]"},
}


@pytest.mark.parametrize("row", MATRIX, ids=lambda row: row.replace(" ", "-"))
def test_what_the_tool_calls_verified_is_failed(honest: Files, row: str) -> None:
    verdict = aver.verify(cap(MATRIX[row](dict(honest))))
    assert verdict.status == "failed"


def test_a_second_gzip_member(honest: Files) -> None:
    data = cap(honest)
    assert aver.verify(data + data).status == "failed"
    assert aver.verify(data + b"x").status == "failed"


def test_what_its_bytes_cannot_show(honest: Files) -> None:
    """Whoever has the file can make another run of it. That is why no such file is ever `verified`."""
    forged = capseal_files.actions(20)
    forged[3] = replace(forged[3], metadata={"description": "rm -rf /"})
    verdict = aver.verify(cap(capseal_files.files(forged)))
    assert verdict.status == "qualified"


def test_avers_own_files_are_not_excused_as_the_tools(sealed_run: Any) -> None:
    members = dict(sealed_run.members)
    foreign = capseal_files.files(capseal_files.actions(3))
    verdict = aver.verify(cap({**foreign, "head.json": members["head.json"]}))
    assert verdict.status == "failed"
    assert codes_of(verdict)

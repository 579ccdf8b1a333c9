"""The public CapSeal tool's own `.cap` files and run directories: read, and judged by what their bytes can show.

    manifest.json            run_cap_v1: chain_hash is the last receipt, actions_count their number
    actions.jsonl            as Aver's, with receipts over 13 keys
    actions.json             the same actions without receipts
    agent_capsule.json       hashes of itself, of a statement and of proof.json
    proof.json, row_archive/ rows over Goldilocks and their tree, by that tool's own rules
    run_metadata.json        how many actions there are, and the last receipt

All of it is recomputed from the lines and compared. But nothing of it is signed, metadata are bound by nothing but the
two files' saying the same, and whoever has a file can make another that is as consistent. So a verdict on one is at
best `qualified`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, cast

from aver.actions.action import AgentAction
from aver.actions.archive import Archive
from aver.actions.checking import RUN_CHECKS
from aver.actions.file_names import ACTIONS, CAPSULES, COMMITMENTS, HEAD, MANIFEST, PROOF
from aver.actions.layout import SMALL_MAX
from aver.actions.lines import LINE_MAX
from aver.actions.receipt_chain import ReceiptChain
from aver.actions.run_files import ARCHIVE, raw_lines
from aver.actions.trace import MODULUS
from aver.capsule.bounds import ELEMENT_MAX
from aver.capsule.reading import read_elements, read_json
from aver.errors import BadInput
from aver.ledger.outside import chunks_of
from aver.verdict import CHECKS, Finding, Place, Tally, Terms, Verdict, conclude

__all__ = ["is_capseal", "judge_capseal", "leaf_of", "root_of", "row_of"]

SCHEMAS = ("run_cap_v1", "agent_cap_v1")
CAPSULE, ACTIONS_JSON = "agent_capsule.json", "actions.json"
METADATA = "run_metadata.json"
ROWS, LEVELS = "row_archive/rows.json", "row_archive/merkle_levels.json"
AIR_ID = "agent_air_v1"
"""The tool's own air id: its rows hold half of each hash."""

LEAVES_COMPARED = 200_000
"""Leaves of a tree whose levels are compared: those of more do not fit into one JSON element that is read. Its root is
always recomputed."""

_OWN_MEMBERS = frozenset({HEAD, CAPSULES, COMMITMENTS})


def is_capseal(archive: Archive) -> bool:
    """Whether an archive is one of that tool's. One that holds Aver's own files is not excused as one."""
    if _OWN_MEMBERS & archive.members.keys():
        return False
    try:
        manifest = _document(archive, MANIFEST)
    except BadInput:
        return CAPSULE in archive.members
    return CAPSULE in archive.members or (isinstance(manifest, dict) and manifest.get("schema") in SCHEMAS)


def judge_capseal(name: str, archive: Archive, terms: Terms) -> Verdict:
    """The verdict on one of that tool's archives."""
    found = _Reading(archive)
    found.judge()
    tally = found.tally
    tally.records = found.receipts.count
    found.receipts.finish()
    words = "the public tool's format has no signatures: whoever has the file can make another like it"
    tally.skip("signature", words, matters=True)
    tally.skip("sealed", "nothing is sealed in this format, and metadata are not bound", matters=True)
    tally.skip("gates", "the gate's decisions are not recorded in this format", matters=True)
    return conclude(name, tally, level=terms.level, expected=(*CHECKS, *RUN_CHECKS, ARCHIVE))


# --- rows and leaves, by that tool's rules


def row_of(index: int, action: AgentAction, receipt: str) -> tuple[int, ...]:
    """A row of `agent_air_v1`."""
    flags = (
        action.success
        | (action.gate_decision != "skip") << 1
        | (action.gate_score is not None) << 2
        | (action.policy_verdict is not None) << 3
        | (action.action_type == "tool_call") << 4
        | (action.action_type == "code_gen") << 5
    )
    type_hash = hashlib.sha256(action.action_type.encode()).hexdigest()
    parent = (0, 0) if action.parent_receipt_hash is None else _pair(action.parent_receipt_hash)
    hashes = (type_hash, action.instruction_hash, action.input_hash, action.output_hash)
    pairs = (half for digest in hashes for half in _pair(digest))
    return (index, *pairs, *parent, *_pair(receipt), flags)


def _pair(digest: str) -> tuple[int, int]:
    raw = bytes.fromhex(digest)
    return int.from_bytes(raw[:8], "little") % MODULUS, int.from_bytes(raw[8:16], "little") % MODULUS


def leaf_of(row: tuple[int, ...]) -> bytes:
    numbers = b"".join(value.to_bytes(16, "big") for value in row)
    return hashlib.sha256(row[0].to_bytes(8, "big") + numbers).digest()


def root_of(leaves: list[bytes]) -> bytes:
    """Its tree: no difference between leaves and nodes, and an odd one is doubled."""
    return levels_of(leaves)[-1][0] if leaves else hashlib.sha256(b"empty").digest()


def levels_of(leaves: list[bytes]) -> list[list[bytes]]:
    """The tree's levels, leaves first."""
    levels = [leaves]
    while len(level := levels[-1]) > 1:
        even = level + level[-1:] if len(level) % 2 else level
        levels.append([hashlib.sha256(even[at] + even[at + 1]).digest() for at in range(0, len(even), 2)])
    return levels


# --- its files


class _Reading:
    def __init__(self, archive: Archive) -> None:
        self.tally = Tally()
        self.receipts = ReceiptChain(self.tally, source=ACTIONS)
        self._archive = archive
        self._leaves: list[bytes] = []

    def judge(self) -> None:
        self.tally.did(ARCHIVE)
        if ACTIONS in self._archive.members:
            self._take_lines()
        else:
            self._fail("ARTIFACT_MISSING", "there are no actions with receipts", ACTIONS)
        self._held(MANIFEST, self._hold_manifest)
        self._held(CAPSULE, self._hold_capsule)
        self._held(PROOF, self._hold_proof)
        if METADATA in self._archive.members:
            self._held(METADATA, self._hold_metadata)
        if LEVELS in self._archive.members:
            self._hold_levels()

    def _held(self, name: str, hold: Callable[[Any], None]) -> None:
        try:
            document = _document(self._archive, name)
            if document is None:
                self._fail("ARTIFACT_MISSING", f"{name} is not here", name)
            else:
                hold(document)
        except BadInput as error:
            self._fail("SCHEMA_INVALID", error.message, name)
        except (KeyError, TypeError, AttributeError):
            self._fail("SCHEMA_INVALID", "it lacks what the tool writes there", name)

    def _fail(self, code: str, words: str, name: str, check: str = ARCHIVE) -> None:
        self.tally.add(Finding(check, "failed", code, words, Place(source=name)))

    def _take_lines(self) -> None:
        file = self._archive.members[ACTIONS]
        file.seek(0)
        listed, rows = self._elements(ACTIONS_JSON), self._elements(ROWS)
        for raw in raw_lines(file, LINE_MAX):
            line = self.receipts.take(raw)
            beside = next(listed, None)
            if line is None:
                continue
            row = row_of(len(self._leaves), line.action, line.receipt_hash)
            self._leaves.append(leaf_of(row))
            if next(rows, None) != list(row):
                self._fail("PROOF_INVALID", f"row {row[0]} is not that of its action", ROWS, "proof")
            if beside != line.action.to_dict():
                words = f"action {self.receipts.count - 1} is another one than in {ACTIONS}"
                self._fail("RECEIPT_MISMATCH", words, ACTIONS_JSON)
        for name, elements in ((ACTIONS_JSON, listed), (ROWS, rows)):
            if next(elements, None) is not None:
                self._fail("TRUNCATED", f"it has more entries than {ACTIONS}", name)

    def _elements(self, name: str) -> Iterator[Any]:
        """What a file with an array has, one after the other."""
        file = self._archive.members.get(name)
        if file is None:
            self._fail("ARTIFACT_MISSING", f"{name} is not here", name)
            return
        file.seek(0)
        try:
            for _, value in read_elements(chunks_of(cast(BinaryIO, file))):
                yield value
        except BadInput as error:
            self._fail("SCHEMA_INVALID", error.message, name)

    def _hold_manifest(self, manifest: Any) -> None:
        if not isinstance(manifest, dict):
            raise BadInput("it is not an object")
        count, last = self.receipts.count, self.receipts.last_receipt
        for key, value in (("chain_hash", last), ("root_hex", last), ("actions_count", count)):
            if key in manifest and manifest[key] != value:
                self._fail("TRUNCATED", f"its {key} is not that of the actions", MANIFEST)

    def _hold_capsule(self, capsule: Any) -> None:
        own = {key: value for key, value in capsule.items() if key != "capsule_hash"}
        if capsule["capsule_hash"] != _hashed(own) or capsule["statement_hash"] != _hashed(capsule["statement"]):
            self._fail("HASH_MISMATCH", "its hashes are not its own", CAPSULE)
        inputs = capsule["statement"]["public_inputs"]
        if inputs["num_actions"] != self.receipts.count or inputs["final_receipt_hash"] != self.receipts.last_receipt:
            self._fail("TRUNCATED", "it is about other actions", CAPSULE)
        if capsule["statement"]["row_commitment"] != self._root or capsule["commitment"]["row_root"] != self._root:
            self._fail("PROOF_INVALID", "its root is not that of the rows", CAPSULE, "proof")
        proof = self._archive.small(PROOF, SMALL_MAX) or b""
        if capsule["proof"]["proof_hash"] != hashlib.sha256(proof).hexdigest():
            self._fail("ARTIFACT_HASH_MISMATCH", "it has the hash of another proof.json", CAPSULE, "proof")

    def _hold_proof(self, proof: Any) -> None:
        self.tally.did("proof", self.receipts.count)
        if proof["air_id"] != AIR_ID or proof["constraint_verification"]["valid"] is not True:
            self._fail("PROOF_INVALID", "it does not say that the constraints hold", PROOF, "proof")
        if proof["commitment"]["row_root"] != self._root or proof["statement"]["num_actions"] != self.receipts.count:
            self._fail("PROOF_INVALID", "it is about other rows", PROOF, "proof")

    def _hold_metadata(self, metadata: Any) -> None:
        expected = {"num_actions": self.receipts.count, "final_receipt_hash": self.receipts.last_receipt}
        for key, value in expected.items():
            if metadata.get(key, value) != value:
                self._fail("TRUNCATED", f"its {key} is not that of the actions", METADATA)

    def _hold_levels(self) -> None:
        if len(self._leaves) > LEAVES_COMPARED:
            words = f"{LEVELS} was not compared: more than {LEAVES_COMPARED} leaves"
            self.tally.skip("proof", words, matters=False)
            return
        expected = [[node.hex() for node in level] for level in levels_of(self._leaves)]
        if list(self._elements(LEVELS)) != expected:
            self._fail("PROOF_INVALID", "it is not the tree over the rows", LEVELS, "proof")

    @property
    def _root(self) -> str:
        return root_of(self._leaves).hex()


def _hashed(value: Any) -> str:
    """As the tool hashes documents: sorted, with spaces after the separators."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _document(archive: Archive, name: str) -> Any:
    raw = archive.small(name, ELEMENT_MAX if name == CAPSULE else SMALL_MAX)
    return None if raw is None else read_json(raw)

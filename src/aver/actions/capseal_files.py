"""Read and judge the `.cap` files and run directories of the public CapSeal tool.

    manifest.json            run_cap_v1: chain_hash is the last receipt, actions_count their number
    actions.jsonl            like Aver's, with receipts over 13 keys
    actions.json             the same actions without receipts
    agent_capsule.json       hashes of itself, of a statement and of proof.json
    proof.json, row_archive/ rows over the Goldilocks field and their tree, by the rules of that tool
    run_metadata.json        the number of actions, and the last receipt

Aver recomputes all of this from the lines of `actions.jsonl` and compares it. But the format has no signatures, and
only the equality of the two action files protects the metadata. Anyone can make another file that is as consistent.
Therefore the best possible verdict is `qualified`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, cast

from aver.actions.action import AgentAction
from aver.actions.archive import Archive
from aver.actions.encodings import ACTION_LINE_MAX, read_raw_lines
from aver.actions.proofs.trace import MODULUS
from aver.actions.run_files import (
    ACTIONS_FILE,
    ARCHIVE_CHECK,
    CAPSULES_FILE,
    COMMITMENTS_FILE,
    EVIDENCE_FILE,
    HEAD_FILE,
    MANIFEST_FILE,
    PROOF_FILE,
    SMALL_FILE_MAX,
)
from aver.actions.verify_run import ReceiptJudge
from aver.capsule.json_reader import ELEMENT_MAX, read_elements, read_json
from aver.errors import BadInput
from aver.files.regular import read_chunks
from aver.verdict import CHECKS, Finding, Place, Tally, Verdict, VerifyOptions, conclude
from aver.verdict.examiner import RUN_CHECKS

SCHEMAS = ("run_cap_v1", "agent_cap_v1")
AGENT_CAPSULE_FILE, ACTIONS_JSON_FILE = "agent_capsule.json", "actions.json"
RUN_METADATA_FILE = "run_metadata.json"
ROWS_FILE, LEVELS_FILE = "row_archive/rows.json", "row_archive/merkle_levels.json"
CAPSEAL_AIR_ID = "agent_air_v1"
"""The AIR id of that tool. Its rows contain only half of each hash."""

LEAVES_COMPARED_MAX = 200_000
"""The maximum number of leaves for which Aver compares the levels of the tree. A larger level does not fit into one
JSON element that Aver reads. Aver always recomputes the root."""

CAPSEAL_MEMBERS = frozenset(
    {
        *(MANIFEST_FILE, ACTIONS_FILE, ACTIONS_JSON_FILE, AGENT_CAPSULE_FILE, PROOF_FILE),
        *(RUN_METADATA_FILE, ROWS_FILE, LEVELS_FILE),
    }
)
"""The members of that tool's archives."""

_AVER_ONLY_FILES = frozenset({HEAD_FILE, CAPSULES_FILE, COMMITMENTS_FILE, EVIDENCE_FILE})


def is_capseal(archive: Archive) -> bool:
    """Return whether an archive was written by the CapSeal tool.

    An archive with a file that only Aver writes is never one. Otherwise a damaged Aver archive could pass the weaker
    checks for this format.
    """
    if _AVER_ONLY_FILES & archive.members.keys():
        return False
    try:
        manifest = _read_document(archive, MANIFEST_FILE)
    except BadInput:
        return AGENT_CAPSULE_FILE in archive.members
    return AGENT_CAPSULE_FILE in archive.members or (isinstance(manifest, dict) and manifest.get("schema") in SCHEMAS)


def judge_capseal(name: str, archive: Archive, terms: VerifyOptions) -> Verdict:
    """Judge an archive of the CapSeal tool."""
    found = _CapsealJudge(archive)
    found.judge()
    tally = found.tally
    tally.records = found.receipts.count
    found.receipts.finish()
    words = "the public tool's format has no signatures: anyone can make such a file"
    tally.skip("signature", words, matters=True)
    tally.skip("sealed", "nothing is sealed in this format, and metadata are not bound", matters=True)
    tally.skip("gates", "the gate's decisions are not recorded in this format", matters=True)
    return conclude(name, tally, level=terms.level, expected=(*CHECKS, *RUN_CHECKS, ARCHIVE_CHECK))


# --- rows and leaves, by the rules of the CapSeal tool


def capseal_row(index: int, action: AgentAction, receipt: str) -> tuple[int, ...]:
    """Build a row of `agent_air_v1`."""
    flags = (
        action.success
        | (action.gate_decision != "skip") << 1
        | (action.gate_score is not None) << 2
        | (action.policy_verdict is not None) << 3
        | (action.action_type == "tool_call") << 4
        | (action.action_type == "code_gen") << 5
    )
    type_hash = hashlib.sha256(action.action_type.encode()).hexdigest()
    parent = (0, 0) if action.parent_receipt_hash is None else _hash_limbs(action.parent_receipt_hash)
    hashes = (type_hash, action.instruction_hash, action.input_hash, action.output_hash)
    pairs = (half for digest in hashes for half in _hash_limbs(digest))
    return (index, *pairs, *parent, *_hash_limbs(receipt), flags)


def _hash_limbs(digest: str) -> tuple[int, int]:
    # The tool uses only the first 16 of the 32 bytes, and reduces them modulo p.
    raw = bytes.fromhex(digest)
    return int.from_bytes(raw[:8], "little") % MODULUS, int.from_bytes(raw[8:16], "little") % MODULUS


def capseal_leaf(row: tuple[int, ...]) -> bytes:
    numbers = b"".join(value.to_bytes(16, "big") for value in row)
    return hashlib.sha256(row[0].to_bytes(8, "big") + numbers).digest()


def capseal_root(leaves: list[bytes]) -> bytes:
    """Return the root of the tool's tree.

    Leaves and nodes are hashed alike, and an odd last node is paired with itself.
    """
    return capseal_levels(leaves)[-1][0] if leaves else hashlib.sha256(b"empty").digest()


def capseal_levels(leaves: list[bytes]) -> list[list[bytes]]:
    """Return the levels of the tree, leaves first."""
    levels = [leaves]
    while len(level := levels[-1]) > 1:
        even = level + level[-1:] if len(level) % 2 else level
        levels.append([hashlib.sha256(even[at] + even[at + 1]).digest() for at in range(0, len(even), 2)])
    return levels


# --- the files of the CapSeal tool


class _CapsealJudge:
    def __init__(self, archive: Archive) -> None:
        self.tally = Tally()
        self.receipts = ReceiptJudge(self.tally, source=ACTIONS_FILE)
        self._archive = archive
        self._leaves: list[bytes] = []

    def judge(self) -> None:
        self.tally.count_done(ARCHIVE_CHECK)
        if ACTIONS_FILE in self._archive.members:
            self._judge_lines()
        else:
            self._fail("ARTIFACT_MISSING", "there are no actions with receipts", ACTIONS_FILE)
        self._check_document(MANIFEST_FILE, self._check_manifest)
        self._check_document(AGENT_CAPSULE_FILE, self._check_capsule)
        self._check_document(PROOF_FILE, self._check_proof)
        if RUN_METADATA_FILE in self._archive.members:
            self._check_document(RUN_METADATA_FILE, self._check_metadata)
        if LEVELS_FILE in self._archive.members:
            self._check_levels()

    def _check_document(self, name: str, check: Callable[[Any], None]) -> None:
        try:
            document = _read_document(self._archive, name)
            if document is None:
                self._fail("ARTIFACT_MISSING", f"{name} is not here", name)
            else:
                check(document)
        except BadInput as error:
            self._fail("SCHEMA_INVALID", error.message, name)
        except (KeyError, TypeError, AttributeError):
            self._fail("SCHEMA_INVALID", "it lacks keys that the tool writes", name)

    def _fail(self, code: str, words: str, name: str, check: str = ARCHIVE_CHECK) -> None:
        self.tally.add(Finding(check, "failed", code, words, Place(source=name)))

    def _judge_lines(self) -> None:
        file = self._archive.members[ACTIONS_FILE]
        file.seek(0)
        listed, rows = self._read_array(ACTIONS_JSON_FILE), self._read_array(ROWS_FILE)
        for line in self.receipts.take_all(read_raw_lines(file, ACTION_LINE_MAX)):
            beside = next(listed, None)  # Advance also for an unreadable line, so that the files stay aligned.
            if line is None:
                continue
            row = capseal_row(len(self._leaves), line.action, line.receipt_hash)
            self._leaves.append(capseal_leaf(row))
            if next(rows, None) != list(row):
                self._fail("PROOF_INVALID", f"row {row[0]} is not that of its action", ROWS_FILE, "proof")
            if beside != line.action.to_dict():
                words = f"action {self.receipts.count - 1} is another one than in {ACTIONS_FILE}"
                self._fail("RECEIPT_MISMATCH", words, ACTIONS_JSON_FILE)
        for name, elements in ((ACTIONS_JSON_FILE, listed), (ROWS_FILE, rows)):
            if next(elements, None) is not None:
                self._fail("TRUNCATED", f"it has more entries than {ACTIONS_FILE}", name)

    def _read_array(self, name: str) -> Iterator[Any]:
        """Yield the elements of a file that contains a JSON array.

        Record a finding if the file is missing or invalid.
        """
        file = self._archive.members.get(name)
        if file is None:
            self._fail("ARTIFACT_MISSING", f"{name} is not here", name)
            return
        file.seek(0)
        try:
            for _, value in read_elements(read_chunks(cast(BinaryIO, file))):
                yield value
        except BadInput as error:
            self._fail("SCHEMA_INVALID", error.message, name)

    def _check_manifest(self, manifest: Any) -> None:
        if not isinstance(manifest, dict):
            raise BadInput("it is not an object")
        count, last = self.receipts.count, self.receipts.last_receipt
        for key, value in (("chain_hash", last), ("root_hex", last), ("actions_count", count)):
            if key in manifest and manifest[key] != value:
                self._fail("TRUNCATED", f"its {key} is not that of the actions", MANIFEST_FILE)

    def _check_capsule(self, capsule: Any) -> None:
        own = {key: value for key, value in capsule.items() if key != "capsule_hash"}
        if capsule["capsule_hash"] != _hash_document(own) or capsule["statement_hash"] != _hash_document(
            capsule["statement"]
        ):
            self._fail("HASH_MISMATCH", "its hashes are not its own", AGENT_CAPSULE_FILE)
        inputs = capsule["statement"]["public_inputs"]
        if inputs["num_actions"] != self.receipts.count or inputs["final_receipt_hash"] != self.receipts.last_receipt:
            self._fail("TRUNCATED", "it is about other actions", AGENT_CAPSULE_FILE)
        if (
            capsule["statement"]["row_commitment"] != self._row_root
            or capsule["commitment"]["row_root"] != self._row_root
        ):
            self._fail("PROOF_INVALID", "its root is not that of the rows", AGENT_CAPSULE_FILE, "proof")
        proof = self._archive.read_small(PROOF_FILE, SMALL_FILE_MAX) or b""
        if capsule["proof"]["proof_hash"] != hashlib.sha256(proof).hexdigest():
            self._fail("ARTIFACT_HASH_MISMATCH", "it has the hash of another proof.json", AGENT_CAPSULE_FILE, "proof")

    def _check_proof(self, proof: Any) -> None:
        self.tally.count_done("proof", self.receipts.count)
        if proof["air_id"] != CAPSEAL_AIR_ID or proof["constraint_verification"]["valid"] is not True:
            self._fail("PROOF_INVALID", "it does not say that the constraints hold", PROOF_FILE, "proof")
        if (
            proof["commitment"]["row_root"] != self._row_root
            or proof["statement"]["num_actions"] != self.receipts.count
        ):
            self._fail("PROOF_INVALID", "it is about other rows", PROOF_FILE, "proof")

    def _check_metadata(self, metadata: Any) -> None:
        expected = {"num_actions": self.receipts.count, "final_receipt_hash": self.receipts.last_receipt}
        for key, value in expected.items():
            if metadata.get(key, value) != value:
                self._fail("TRUNCATED", f"its {key} is not that of the actions", RUN_METADATA_FILE)

    def _check_levels(self) -> None:
        if len(self._leaves) > LEAVES_COMPARED_MAX:
            words = f"{LEVELS_FILE} was not compared: more than {LEAVES_COMPARED_MAX} leaves"
            self.tally.skip("proof", words, matters=False)
            return
        expected = [[node.hex() for node in level] for level in capseal_levels(self._leaves)]
        if list(self._read_array(LEVELS_FILE)) != expected:
            self._fail("PROOF_INVALID", "it is not the tree over the rows", LEVELS_FILE, "proof")

    @property
    def _row_root(self) -> str:
        return capseal_root(self._leaves).hex()


def _hash_document(value: Any) -> str:
    """Hash a document as the tool does: sorted keys, with a space after each separator."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _read_document(archive: Archive, name: str) -> Any:
    raw = archive.read_small(name, ELEMENT_MAX if name == AGENT_CAPSULE_FILE else SMALL_FILE_MAX)
    return None if raw is None else read_json(raw)

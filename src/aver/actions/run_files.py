"""The files of a run: their names, how to recognise them, and the contents of the four small ones.

A sealed run consists of six or seven files, in a directory or packed as a `.cap` file:

    manifest.json      the run, and the size and SHA-256 of the files below `head.json`
    head.json          a statement with purpose `cap`, signed by the key of the ledger: chain head and manifest hash
    proof.json         the statement about the run, and the type of its proof
    commitments.json   the Merkle root of the rows, and the heads of the capsule chains
    actions.jsonl      the actions with their receipts
    capsules.jsonl     the sealed capsules
    evidence.jsonl     approvals and blobs that gate decisions rest on; only in a run with such decisions

The signature in `head.json` covers the manifest, and through its digests all other files. Each capsule also has its own
signature.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Any

from aver.actions.proofs.proof import PROOF_TYPE
from aver.actions.proofs.trace import AIR_ID, CONSTRAINTS, WIDTH
from aver.actions.run_capsules import PROTOCOL_VERSION, RunSeal
from aver.capsule.json_document import dump_document, read_exactly
from aver.errors import BadInput
from aver.files.regular import CHUNK
from aver.ledger import Head
from aver.verdict import Subject

RUN_FILE = "run.json"
"""Names the run that a directory holds. It is not part of the sealed run."""

CAP_FILE = "run.cap"
"""The files of the run, packed as one archive."""

CAP_SUFFIX = ".cap"
GZIP_MAGIC = b"\x1f\x8b"

MANIFEST_FILE, HEAD_FILE, PROOF_FILE, COMMITMENTS_FILE = "manifest.json", "head.json", "proof.json", "commitments.json"
ACTIONS_FILE, CAPSULES_FILE, EVIDENCE_FILE = "actions.jsonl", "capsules.jsonl", "evidence.jsonl"

MEMBERS = (MANIFEST_FILE, HEAD_FILE, PROOF_FILE, COMMITMENTS_FILE, ACTIONS_FILE, CAPSULES_FILE)
"""The files that every sealed run has, in the order of the archive."""

MEMBER_ORDER = (*MEMBERS, EVIDENCE_FILE)
"""All files that a sealed run may have, in the order of the archive."""

LISTED_MEMBERS = MEMBERS[2:]
"""The files whose digests are in every manifest: all except the manifest and the head. `EVIDENCE_FILE` may follow."""

ARCHIVE_CHECK = "archive"
"""The check that the files are those of the run, all of them and nothing else."""

MANIFEST_SCHEMA = "aver_cap_v1"
HEAD_PURPOSE = "cap"

SMALL_FILE_MAX = 1024 * 1024
"""The maximum size, in bytes, of each of the first four files. They hold a few names and hashes."""


@dataclass(frozen=True, slots=True)
class FileDigest:
    sha256: str
    size: int


def digest_file(file: IO[bytes]) -> FileDigest:
    """Return the digest and the size of a file, read from its beginning."""
    file.seek(0)
    hashed, size = hashlib.sha256(), 0
    while chunk := file.read(CHUNK):
        hashed.update(chunk)
        size += len(chunk)
    return FileDigest(hashed.hexdigest(), size)


@dataclass(frozen=True, slots=True)
class Manifest:
    """The content of `manifest.json`.

    The seal of the run repeats all of it except the digests; verifiers compare both.
    """

    run_id: str
    head: Head
    created_at: str
    num_actions: int
    final_receipt_hash: str | None
    policy_verdict: str | None
    proved: bool
    files: Mapping[str, FileDigest]

    def to_dict(self) -> dict[str, Any]:
        return {
            "schema": MANIFEST_SCHEMA,
            "protocol_version": PROTOCOL_VERSION,
            "run_id": self.run_id,
            "head": self.head.to_dict(),
            "created_at": self.created_at,
            "num_actions": self.num_actions,
            "final_receipt_hash": self.final_receipt_hash,
            "policy_verdict": self.policy_verdict,
            "proof_type": PROOF_TYPE if self.proved else None,
            "files": {name: {"sha256": file.sha256, "size": file.size} for name, file in self.files.items()},
        }

    @classmethod
    def from_bytes(cls, raw: bytes) -> Manifest:
        """Read a manifest. Raise `BadInput` if Aver would not write exactly these bytes."""
        return read_exactly(raw, "the manifest", cls._from_json, lambda found: dump_document(found.to_dict()))

    @classmethod
    def _from_json(cls, data: Any) -> Manifest:
        try:
            if data["schema"] != MANIFEST_SCHEMA or data["protocol_version"] != PROTOCOL_VERSION:
                raise BadInput("the manifest is of another schema or protocol", advice="use the Aver that made it")
            files = {str(name): FileDigest(**digest) for name, digest in data["files"].items()}
            found = cls(
                data["run_id"],
                Head.from_dict(data["head"]),
                data["created_at"],
                data["num_actions"],
                data["final_receipt_hash"],
                data["policy_verdict"],
                data["proof_type"] == PROOF_TYPE,
                files,
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise BadInput(f"the manifest is not whole: {error}") from None
        # Writing the manifest again detects unknown keys and values of a wrong type.
        if found.to_dict() != data or found.files.keys() - {EVIDENCE_FILE} != set(LISTED_MEMBERS):
            raise BadInput("the manifest says more or less than a manifest does")
        texts = (found.run_id, found.created_at, found.final_receipt_hash if found.num_actions else "")
        if not all(isinstance(text, str) for text in texts):
            raise BadInput("the manifest does not name the run, its time and its last receipt")
        if type(found.num_actions) is not int:
            raise BadInput("the manifest does not count the run's actions")
        return found


def head_content(manifest: Manifest, manifest_sha256: str) -> dict[str, Any]:
    """Return the content of `head.json`, which the key of the ledger signs."""
    return {
        "v": 1,
        "run_id": manifest.run_id,
        **manifest.head.to_dict(),
        "num_actions": manifest.num_actions,
        "final_receipt_hash": manifest.final_receipt_hash,
        "manifest_sha256": manifest_sha256,
    }


def seal_documents(seal: RunSeal, head: Head) -> dict[str, bytes]:
    """Return the bytes of `proof.json` and `commitments.json`, by name. They follow from the seal of the run.

    `head` is the head of the run's chain, after its seal. Without a statement, all that depends on it is null.
    """
    statement, gates = seal.statement, seal.gates
    proof: dict[str, Any] = {"v": 1, "proof_type": None, "statement": None, "constraints": None}
    commitments: dict[str, Any] = {
        "v": 1,
        "rows": None,
        "capsules": {"chain": head.chain, "count": head.count, "hash": head.hash},
        "gates": None if gates is None else {"chain": gates.chain, "count": gates.count, "hash": gates.hash},
    }
    if statement is not None:
        proof["proof_type"] = PROOF_TYPE
        proof["statement"] = statement.to_dict()
        proof["constraints"] = {kind: list(names) for kind, names in CONSTRAINTS.items()}
        commitments["rows"] = {
            "air_id": AIR_ID,
            "tree": "rfc6962",
            "hash": "sha256",
            "row_width": WIDTH,
            "count": statement.num_actions,
            "root": statement.row_root,
        }
    return {PROOF_FILE: dump_document(proof), COMMITMENTS_FILE: dump_document(commitments)}


# --- recognising files: the functions that `aver.check` lists


def is_run(subject: Subject) -> bool:
    """Return whether it is a directory with at least two files of a run."""
    if subject.path is None or not subject.is_directory:
        return False
    names = (ACTIONS_FILE, RUN_FILE, MANIFEST_FILE, CAPSULES_FILE)
    return sum(os.path.isfile(subject.path / name) for name in names) > 1


def is_archive(subject: Subject) -> bool:
    """Return whether it is a `.cap` file by its name, or compressed by gzip as one is."""
    if subject.is_directory:
        return False
    if subject.path is not None and subject.path.suffix == CAP_SUFFIX:
        return True
    return subject.beginning.startswith(GZIP_MAGIC)


def is_proof(subject: Subject) -> bool:
    """Return whether it is the proof that a run has an action."""
    return not subject.is_directory and {"proof_type", "statement", "path"} <= set(subject.keys)


def is_actions_file(subject: Subject) -> bool:
    """Return whether it has lines of actions."""
    if subject.is_directory:
        return False
    if subject.path is not None and subject.path.name == ACTIONS_FILE:
        return True
    return {"action_id", "receipt_hash"} <= set(subject.keys)

"""What the files of a run are called."""

from __future__ import annotations

__all__ = [
    "ACTIONS",
    "CAP",
    "CAPSULES",
    "CAP_SUFFIX",
    "COMMITMENTS",
    "GZIP_MAGIC",
    "HEAD",
    "LISTED",
    "MANIFEST",
    "MEMBERS",
    "PROOF",
    "RUN",
]

RUN = "run.json"
"""Which run a directory holds."""

CAP = "run.cap"
"""The six files below, packed."""

CAP_SUFFIX = ".cap"
GZIP_MAGIC = b"\x1f\x8b"

MANIFEST, HEAD, PROOF, COMMITMENTS = "manifest.json", "head.json", "proof.json", "commitments.json"
ACTIONS, CAPSULES = "actions.jsonl", "capsules.jsonl"

MEMBERS = (MANIFEST, HEAD, PROOF, COMMITMENTS, ACTIONS, CAPSULES)
"""What a sealed run consists of, in the order in which it is packed."""

LISTED = MEMBERS[2:]
"""Those whose digests the manifest has."""

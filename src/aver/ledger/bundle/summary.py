"""The summary of a chain in a bundle: length, hashes, signers, times and title.

The exporter collects these facts while it writes a chain. The verifier collects them while it judges the chain, and
compares them with the claims of the index. Both use this module, so a claim that differs is wrong.

A summary in an index, of a chain named `claude-code.5d2e`:

    {"id": "claude-code.5d2e", "tool": "claude-code", "title": "fix the rounding", "length": 12,
     "head_hash": "…", "genesis_hash": "…", "all_hashes_ok": true, "signed_by": ["7c87a2cda6408eb8"],
     "started_at": "2026-11-17T04:28:28+00:00", "ended_at": "2026-11-17T04:31:02+00:00"}
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from aver.capsule.aver_block import split_chain_name
from aver.capsule.sealed import Sealed
from aver.errors import AverError
from aver.fast_dataclass import dataclass

TITLE_MAX = 90
"""Longest title of a chain, in characters."""

TITLE_SCAN_MAX = 4096
"""Characters of a request in which the title is searched."""

SIGNERS_MAX = 1000
"""Most signers of a chain that are noted. The signers of a chain with more are not compared with the index."""

_E_MAIL = re.compile(r"[\w.%+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}")
_HOME = re.compile(r"(?:/home|/Users|[A-Za-z]:\\Users)[/\\][^/\\\s]+")


@dataclass(slots=True)
class ChainFacts:
    """Facts about a chain, collected record by record."""

    count: int = 0
    genesis_hash: str | None = None
    head_hash: str | None = None
    started_at: str | None = None
    ended_at: str | None = None
    title: str = ""
    raw_title: str = ""
    """The title as the public tool makes it: with addresses and paths."""
    signers: set[str] = field(default_factory=set)

    def add_record(self, record: Sealed, content: Mapping[str, Any] | None = None) -> None:
        """Add the next record. `content` is what its bytes say, if the caller has parsed them already."""
        if self.count == 0:
            self.genesis_hash, self.started_at = record.hash, record.signed_at
        self.count += 1
        self.head_hash, self.ended_at = record.hash, record.signed_at
        if record.signed_by and len(self.signers) <= SIGNERS_MAX:
            self.signers.add(record.signed_by)
        if not self.raw_title:
            self.raw_title = _read_request_line(record, content)
            self.title = clean_title(self.raw_title)

    def add_unreadable(self) -> None:
        """Count a record that is no capsule. It has a place in the chain, and no hash."""
        self.count, self.head_hash = self.count + 1, None


def build_summary(
    name: str, facts: ChainFacts, *, length: int, head_hash: str | None, all_hashes_ok: bool
) -> dict[str, Any]:
    """The summary of a chain. Count and head are given: the exporter takes them from the ledger's head row."""
    return {
        "id": name,
        "tool": split_chain_name(name)[0],
        "title": facts.title or name,
        "length": length,
        "head_hash": head_hash,
        "genesis_hash": facts.genesis_hash,
        "all_hashes_ok": all_hashes_ok,
        "signed_by": sorted(facts.signers),
        "started_at": facts.started_at,
        "ended_at": facts.ended_at,
    }


def clean_title(line: str) -> str:
    """A title from the first line of a request, without e-mail addresses and home directories."""
    return _HOME.sub("~", _E_MAIL.sub("[e-mail]", line)).encode("utf-8", "replace").decode()[:TITLE_MAX]


def _read_request_line(record: Sealed, content: Mapping[str, Any] | None) -> str:
    try:
        request = (record.to_dict() if content is None else content)["trigger"]["request"]
        text = request[:TITLE_SCAN_MAX].strip()
        return str(text.splitlines()[0]) if text else ""
    except (AverError, AttributeError, KeyError, TypeError):
        return ""

"""The demo's site: the coding agents' sessions as a bundle with the Explorer's page, verified, and changed in a copy.

Python judges the site, and so does the page's own verifier where there is a Node.js. Both must say the same.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from aver.check import open_ledger, verify
from aver.keys import Ring
from aver.ledger.bundle import export_bundle
from aver.ledger.bundle.site import page_directory
from aver.verdict import Verdict

CHANGED_WORD, CHANGE = b"half_up", b"half_dn"
"""A word of the first session, and what a copy says instead."""


class SiteVerdicts(NamedTuple):
    """The verdicts on the site and on its changed copy: by Python, and by the page; None without Node.js."""

    site: Path
    intact: Verdict
    intact_by_page: str | None
    changed: Verdict
    changed_by_page: str | None

    @property
    def is_good(self) -> bool:
        """Whether the site holds, the copy fails, and the page says the same."""
        own = self.intact.status in ("verified", "qualified") and self.changed.status == "failed"
        return (
            own and self.intact_by_page in (None, "verified", "qualified") and self.changed_by_page in (None, "failed")
        )


def make_site(home: Path, site: Path) -> SiteVerdicts:
    """Export a ledger as a site, verify it, change a copy of it, and verify that."""
    with open_ledger(home / "ledger.db", home=home, create=False) as ledger:
        export_bundle(ledger, site, html=True)
        ring = ledger.keys.ring()
    copy = site.with_name(f"{site.name}-changed")
    shutil.copytree(site, copy)
    changed = next(path for path in sorted(copy.rglob("*")) if path.suffix in (".json", ".jsonl") and _has_word(path))
    changed.write_bytes(changed.read_bytes().replace(CHANGED_WORD, CHANGE, 1))
    return SiteVerdicts(site, *_judge(site, home, ring), *_judge(copy, home, ring))


def _has_word(path: Path) -> bool:
    return "explorer" not in path.parts and CHANGED_WORD in path.read_bytes()


def _judge(directory: Path, home: Path, ring: Ring) -> tuple[Verdict, str | None]:
    keys = [key for entry in ring.entries for key in ("--key", entry.key.ed25519)]
    beside = Path(sys.executable).with_name("node")
    node = str(beside) if beside.exists() else shutil.which("node")
    found = None
    if node is not None:
        command = [node, str(page_directory() / "verify.mjs"), str(directory), *keys]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        found = str(json.loads(done.stdout)["status"]) if done.stdout else "not judged"
    return verify(directory, home=home), found

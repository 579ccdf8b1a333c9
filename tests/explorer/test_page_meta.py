"""The page's list of the meta chain counts chains as `aver verify` does."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aver import Ledger, PublicKey
from aver.check import verify
from aver.ledger.bundle import export_bundle, import_bundle
from aver.ledger.imports.drop import drop_import
from aver.verdict import Verdict
from support.agent_capsules import AgentCapsules
from support.bundles import draft, load
from support.page_verdicts import ask_library

pytestmark = pytest.mark.more

Make = Callable[[Ledger, Path], Path]


def _before_the_first_checkpoint(ledger: Ledger, folder: Path) -> Path:
    ledger.append("ci.nightly", draft())
    ledger.append("ci.daily", draft())
    ledger.close_chain("ci.nightly")
    export_bundle(ledger, folder / "bundle")
    return folder / "bundle"


def _with_a_dropped_import(ledger: Ledger, folder: Path) -> Path:
    theirs = AgentCapsules()
    theirs.session("codex", "019d", 2)
    key = PublicKey(theirs.public)
    ledger.keys.import_keys([key], trust={key.ed25519})
    ledger.append("ci.nightly", draft())
    drop_import(ledger, import_bundle(ledger, theirs.write_bundle(folder / "theirs")).source.digits)
    export_bundle(ledger, folder / "bundle")
    return folder / "bundle"


def _of_the_public_tool(_: Ledger, folder: Path) -> Path:
    theirs = AgentCapsules()
    theirs.session("claude-code", "5d2e", 2)
    theirs.session("codex", "019d", 3)
    theirs.session("cline", "s2", 1, finish=False)
    return theirs.write_bundle(folder / "bundle")


def _note(verdict: Verdict) -> tuple[int, ...]:
    """How many chains match their heads, have grown, and are not recorded, by the words of the verdict."""
    found = re.search(r"(\d+) chains match .* \((\d+) grown since, (\d+) not recorded\)", verdict.check("meta").reason)
    assert found is not None, verdict.check("meta").reason
    return tuple(map(int, found.groups()))


@pytest.mark.parametrize(
    ("make", "note"),
    [
        pytest.param(_before_the_first_checkpoint, (1, 0, 1), id="before-the-first-checkpoint"),
        pytest.param(_with_a_dropped_import, (0, 0, 1), id="with-a-dropped-import"),
        pytest.param(_of_the_public_tool, (2, 0, 1), id="of-the-public-tool"),
    ],
)
def test_page_counts_chains_as_aver_verify_does(
    make: Make, note: tuple[int, ...], ledger: Ledger, tmp_path: Path
) -> None:
    bundle = make(ledger, tmp_path)
    pinned = [PublicKey(AgentCapsules().public)] if make is _of_the_public_tool else []
    verdict = verify(bundle, keys=pinned)
    if note[0]:
        assert _note(verdict) == note
    [answer] = ask_library(bundle, [{"type": "meta"}])
    assert answer["unrecorded"] == note[2]
    here = [entry for entry in answer["entries"] if entry["here"] is not None]
    assert sum(entry["here"] >= entry["count"] for entry in here) == note[0]
    absent: list[Any] = [entry for entry in answer["entries"] if entry["here"] is None]
    # Only the dropped chains are absent, and the list says why; no verdict fails for it.
    assert {entry["kind"] for entry in absent} == ({"chain.drop"} if make is _with_a_dropped_import else set())
    assert "meta" not in {finding.check for finding in verdict.findings if finding.status == "failed"}
    assert {chain["id"] for chain in load(bundle / "index.json")["chains"]} >= {entry["chain"] for entry in here}

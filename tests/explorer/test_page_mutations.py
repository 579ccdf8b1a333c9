"""Hostile values in every place of a capsule, a bundle and a sealed run: the page and Aver say the same about each."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pytest

from aver import AverError, Ledger, seal
from aver.capsule.json_document import dump_document
from aver.keys import Ring
from aver.ledger.bundle import export_bundle
from support.loose_capsules import KEY, SIGNER, draft
from support.page_cases import Cases, expect_agreement
from support.random_changes import change
from support.runs import make_sealed_run, packed, with_true_manifest

pytestmark = pytest.mark.more

TIMES = 200
"""Changes of each sort of thing."""


def test_capsules(tmp_path: Path) -> None:
    cases, rng, ring = Cases(tmp_path), random.Random(30), Ring.pin([KEY])
    honest = draft(outcome={"status": "success", "result": {"a": [1, 2.5, None]}}, reasoning={"confidence": 0.5})
    for _ in range(TIMES):
        content, place = change(honest.to_dict(), rng)
        try:
            sealed = seal(content, SIGNER, unchecked=True).to_sealed_dict()
        except AverError:
            continue  # It has no canonical form.
        cases.add_file("capsule.json", json.dumps(sealed).encode(), ring, f"sealed with {place}")
        later, place = change(sealed, rng)
        cases.add_file("capsule.json", json.dumps(later).encode(), ring, f"changed {place}")
    assert expect_agreement(tmp_path) == cases.count > TIMES


def test_bundles(filled: Ledger, tmp_path: Path) -> None:
    cases, rng, ring = Cases(tmp_path / "cases"), random.Random(31), filled.keys.ring()
    export_bundle(filled, tmp_path / "honest")
    signer = filled.keys.signer("ledger")
    for _ in range(TIMES):
        name = rng.choice(["index.json", "head.json", "keys.json", "meta.json", "codex.two.json"])
        document = json.loads((tmp_path / "honest" / name).read_text())
        if name in ("keys.json", "meta.json"):
            # Sealed again by the ledger's own key, so that the change is judged and not the seal.
            record = rng.choice(document["capsules"])
            content, place = change(json.loads(record["canonical"]), rng)
            try:
                sealed = seal(content, signer, unchecked=True)
            except AverError:
                continue
            record.update(hash=sealed.hash, signature=sealed.signature, canonical=sealed.canonical.decode())
        else:
            document, place = change(document, rng)
        bundle = cases.new_folder() / "bundle"
        shutil.copytree(tmp_path / "honest", bundle)
        (bundle / name).write_text(json.dumps(document))
        cases.add(bundle, ring, f"{name}, {place}")
    assert expect_agreement(tmp_path / "cases") == cases.count > TIMES // 2


def test_sealed_runs(tmp_path: Path) -> None:
    run = make_sealed_run(tmp_path / "made", actions=3, gated=(1,))
    cases, rng, ring = Cases(tmp_path / "cases"), random.Random(32), Ring.pin([run.key])
    for _ in range(TIMES):
        name, data = rng.choice(list(run.members.items()))
        if name.endswith(".jsonl"):
            lines = data.splitlines()
            number = rng.randrange(len(lines))
            document, place = change(json.loads(lines[number]), rng)
            lines[number] = json.dumps(document, separators=(",", ":")).encode()
            members = {**run.members, name: b"\n".join(lines) + b"\n"}
            members = with_true_manifest(members) if rng.random() < 0.5 else members
        else:
            document, place = change(json.loads(data), rng)
            members = {**run.members, name: dump_document(document)}
        cases.add_file("run.cap", packed(members), ring, f"{name}, {place}")
        if name == "actions.jsonl":
            cases.add_file(name, members[name], ring, f"{name} alone, {place}")
    assert expect_agreement(tmp_path / "cases") == cases.count > TIMES

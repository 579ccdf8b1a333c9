"""The page's verifier in Node gives the verdict of `aver verify`: on honest things, and on every change of them."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import aver
from aver import Ledger, open_ledger
from aver.actions.encodings import action_line, receipt_hash
from aver.keys import Ring
from aver.keys.exchange import read_keys
from aver.ledger.bundle import export_bundle, import_bundle
from support.bundles import change_chain, change_index, claim_origin, draft, wrong_origins
from support.loose_capsules import KEY, as_json, chain_of
from support.node import ROOT, find_node
from support.page_cases import Cases, expect_agreement
from support.page_verdicts import VERIFIER
from support.runs import A, make_sealed_run, packed, with_true_manifest
from support.site_twins import (
    CHANGED,
    FOREIGN_PAGES,
    TWIN_CHANGES,
    changed_pieces,
    export_long_site,
    twin_of,
    write_twin,
)
from support.stolen_keys import seal_after_rotation

FLIPS = 120
"""Positions of a file that are changed in the first tier. The second tier changes every byte."""


def flip(data: bytes, at: int, by: int) -> bytes:
    return data[:at] + bytes([data[at] ^ by]) + data[at + 1 :]


def export(ledger: Ledger, cases: Cases, *, html: bool = False) -> Path:
    bundle = cases.new_folder() / "bundle"
    export_bundle(ledger, bundle, html=html)
    return bundle


TAMPERED: dict[str, Callable[[Path], Any]] = {
    "honest": lambda bundle: None,
    "changed": change_chain(
        lambda records: records[1].update(canonical=records[1]["canonical"].replace("step", "stop"))
    ),
    "dropped": change_chain(lambda records: records.pop(1)),
    "swapped": change_chain(lambda records: records.reverse()),
    "doubled": change_chain(lambda records: records.insert(1, records[1])),
    "cut": change_chain(lambda records: records.pop()),
    "signature of another record": change_chain(lambda records: records[0].update(signature=records[1]["signature"])),
    "no signature": change_chain(lambda records: records[0].update(signature="")),
    "another signer": change_chain(lambda records: records[0].update(signed_by="0" * 16)),
    "a member that nobody signed": change_chain(lambda records: records[0].update(note="trust me")),
    "a wrong title": change_index(lambda index: index["chains"][0].update(title="harmless")),
    "a chain left out": change_index(lambda index: index["chains"].pop()),
    "a wrong count": change_index(lambda index: index.update(capsule_count=1)),
    "a part by its own word": change_index(lambda index: index.update(part=True)),
    "no blob": lambda bundle: next((bundle / "blobs").iterdir()).unlink(),
    "another blob": lambda bundle: next((bundle / "blobs").iterdir()).write_bytes(b"y" * 50_000),
    "no head": lambda bundle: (bundle / "head.json").unlink(),
    "no keys chain": lambda bundle: (bundle / "keys.json").unlink(),
    "no meta chain": lambda bundle: (bundle / "meta.json").unlink(),
    "a file that nobody lists": lambda bundle: (bundle / "notes.txt").write_text("see also"),
    "an index that is no JSON": lambda bundle: (bundle / "index.json").write_text("{"),
}


@pytest.mark.usefixtures("judges")
def test_bundles(filled: Ledger, tmp_path: Path) -> None:
    cases = Cases(tmp_path)
    ring = filled.keys.ring()
    for name, tamper in TAMPERED.items():
        bundle = export(filled, cases)
        tamper(bundle)
        cases.add(bundle, ring, name)
    cases.add(export(filled, cases), Ring(), "keys that nobody knows")
    cases.add(export(filled, cases), Ring.pin([KEY]), "a key that is not the signer's")
    assert expect_agreement(tmp_path) == len(TAMPERED) + 2


def test_runs_without_an_action_and_runs_in_which_a_person_was_asked(tmp_path: Path) -> None:
    """Alone and in a bundle; times of other programs in lines of actions."""
    cases = Cases(tmp_path)
    with aver.open_ledger(home=tmp_path / "home") as ledger:
        ring = ledger.ring()
        with aver.AgentRuntime(tmp_path / "refused", ledger=ledger) as refused:
            refused.gate(action_type="tool_call", tool="refund", arguments={"order": 17})
        named = {"library": "test", "tool_name": "refund", "tool_call_id": "c1"}
        with aver.AgentRuntime(tmp_path / "asked", ledger=ledger) as asked:
            asked.record_simple("tool_call", "refund", {}, "", success=False, metadata={**named, "waiting": "ask()"})
        with aver.AgentRuntime(tmp_path / "answered", ledger=ledger) as answered:
            answered.record_simple("tool_call", "refund", {}, "done", metadata=named)
        ring = ledger.ring()
        for run in (refused, asked, answered):
            cases.add_file(f"{run.output_dir.name}.cap", (run.output_dir / "run.cap").read_bytes(), ring, run.run_id)
        cases.add(export(ledger, cases), ring, "all of them")
        statuses = [
            aver.verify(run.output_dir, keys=[ledger.keys.ring().active("ledger").key]).status
            for run in (refused, asked, answered)
        ]
        assert statuses == ["verified", "verified", "qualified"]
        verdict = ledger.verify(examiners=aver.open_ledger(home=tmp_path / "home").examiners)
        assert (verdict.status, verdict.check("answers").matters) == ("verified", False)
    for text in (
        "2024-01-15",
        "2024-01-15T10:30",
        "2024-01-15T10:30:00,5+0200",
        "2024-01-15T10:30:00-25:00",
        "2023-02-29",
    ):
        line = action_line(A).replace(A.timestamp.encode(), text.encode())
        canonical = json.dumps({**json.loads(line)["canonical_fields"]}, sort_keys=True, separators=(",", ":"))
        line = line.replace(receipt_hash(A).encode(), hashlib.sha256(canonical.encode()).hexdigest().encode())
        cases.add_file("actions.jsonl", line + b"\n", ring, text)
    assert expect_agreement(tmp_path) == 9


def change_twin(site: Path, change: Callable[[Path], object]) -> None:
    change(twin_of(site, CHANGED))


def add_file(site: Path, name: str) -> None:
    """Add a file with a twin, which the index does not list."""
    listed = site / "explorer/data/names.js"
    names = json.loads(listed.read_bytes()[len("averNames(") : -len(");\n")])
    write_twin(listed.with_name(f"{len(names)}.js"), name, b"{}")
    (site / name).write_bytes(b"{}")
    listed.write_text(f"averNames({json.dumps([*names, name], ensure_ascii=False)});\n", encoding="utf-8")


@pytest.mark.more
def test_sites(filled: Ledger, tmp_path: Path) -> None:
    cases = Cases(tmp_path)
    ring = filled.keys.ring()
    for name, tamper in {
        "honest": lambda site: None,
        "another twin": lambda site: (site / "explorer/data/1.js").write_bytes(
            (site / "explorer/data/2.js").read_bytes()
        ),
        "no twin": lambda site: (site / "explorer/data/1.js").unlink(),
        "another list": lambda site: (site / "explorer/data/names.js").write_text('averNames(["index.json"]);\n'),
        "no list": lambda site: (site / "explorer/data/names.js").unlink(),
        "a list with half a character": lambda site: (site / "explorer/data/names.js").write_text(
            'averNames(["\\ud800"]);\n'
        ),
        "a name of many letters": partial(add_file, name="“Ö日.json"),
        **{f"twin: {name}": partial(change_twin, change=change) for name, change in TWIN_CHANGES.items()},
        **FOREIGN_PAGES,
        "another record": change_chain(lambda records: records.pop()),
    }.items():
        site = export(filled, cases, html=True)
        tamper(site)
        cases.add(site, ring, name)
    changes = changed_pieces(export_long_site(filled, tmp_path / "long"))
    for name, changed in changes.items():
        site = cases.new_folder() / "bundle"
        export_long_site(filled, site).write_bytes(changed)
        cases.add(site, ring, name)
    assert expect_agreement(tmp_path) == cases.count


@pytest.mark.more
def test_origins(filled: Ledger, tmp_path: Path) -> None:
    cases = Cases(tmp_path)
    export_bundle(filled, tmp_path / "first")
    with open_ledger(home=tmp_path / "home") as importer:
        import_bundle(importer, tmp_path / "first")
        importer.append("ci.nightly", draft("own"))
        export_bundle(importer, tmp_path / "source")
        ring = importer.keys.ring()
    for number, (chain, origin, places) in enumerate(wrong_origins(tmp_path / "source")):
        bundle = cases.new_folder() / "bundle"
        shutil.copytree(tmp_path / "source", bundle)
        claim_origin(bundle, chain, origin, places)
        cases.add(bundle, ring, f"{number}: {chain} from {origin!r} in {places}")
    assert expect_agreement(tmp_path) == cases.count > 20


@pytest.mark.more
def test_capsules_with_single_bits_flipped(tmp_path: Path) -> None:
    cases, rng = Cases(tmp_path), random.Random(18)
    ring = Ring.pin([KEY])
    data = "\n".join(json.dumps(one) for one in as_json(chain_of(2))).encode()
    cases.add_file("capsules.jsonl", data, ring, "honest")
    for _ in range(FLIPS):
        at, by = rng.randrange(len(data)), 1 << rng.randrange(8)
        cases.add_file("capsules.jsonl", flip(data, at, by), ring, f"byte {at} ^ {by}")
    assert expect_agreement(tmp_path) == cases.count > FLIPS // 2


@pytest.mark.long
def test_every_byte_of_a_capsule_and_of_a_chain(filled: Ledger, tmp_path: Path) -> None:
    cases, rng = Cases(tmp_path / "cases"), random.Random(19)
    export_bundle(filled, tmp_path / "source")
    chain = (tmp_path / "source" / "claude-code.blob.json").read_bytes()
    capsule = json.dumps(as_json(chain_of(1))[0]).encode()
    for name, data, ring in (
        ("chain.json", chain, filled.keys.ring()),
        ("capsule.json", capsule, Ring.pin([KEY])),
    ):
        for at in range(len(data)):
            cases.add_file(name, flip(data, at, 1 << rng.randrange(8)), ring, f"{name}, byte {at}")
        for at in range(0, len(data), 7):
            cases.add_file(name, data[:at], ring, f"{name}, cut at {at}")
    assert expect_agreement(tmp_path / "cases") == cases.count > 1000


@pytest.mark.more
@pytest.mark.parametrize("count", [12, pytest.param(60, marks=pytest.mark.long)])
def test_every_file_of_a_bundle_with_single_bytes_changed(filled: Ledger, tmp_path: Path, count: int) -> None:
    cases, rng = Cases(tmp_path / "cases"), random.Random(21)
    export_bundle(filled, tmp_path / "source", html=True)
    ring = filled.keys.ring()
    for name in ("index.json", "head.json", "meta.json", "keys.json", "codex.two.json", "explorer/data/1.js"):
        data = (tmp_path / "source" / name).read_bytes()
        for at in sorted(rng.sample(range(len(data)), count)):
            bundle = cases.new_folder() / "bundle"
            shutil.copytree(tmp_path / "source", bundle)
            (bundle / name).write_bytes(flip(data, at, 1 << rng.randrange(8)))
            cases.add(bundle, ring, f"{name}, byte {at}")
    assert expect_agreement(tmp_path / "cases") == cases.count > 5 * count


@pytest.mark.long
def test_everything_that_other_tests_verify(tmp_path: Path) -> None:
    """Bundles, capsules, runs and proofs that the tests of these formats make, most of them tampered with."""
    approvals = ("ended_keys", "foreign_records", "hostile", "passkeys", "replayed_votes", "roster", "uses")
    tests = (
        *("ledger/bundle", "actions", "test_check_capsules.py", "test_check_forged.py", "test_check_hostile.py"),
        *(f"gate/approvals/test_{name}.py" for name in approvals),
    )
    environment = {**os.environ, "AVER_CASES": str(tmp_path)}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n",
        "0",
        "-p",
        "support.recorded_cases",
        "-m",
        "not long",
    ]
    done = subprocess.run(
        [*command, *(str(ROOT / "tests" / name) for name in tests)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    assert expect_agreement(tmp_path) > 500


@pytest.mark.more
def test_command_prints_what_aver_prints(filled: Ledger, tmp_path: Path) -> None:
    export_bundle(filled, tmp_path / "bundle")
    active = filled.keys.ring().active("ledger")
    assert active is not None
    for keys, code, status in (
        (("--key", active.key.ed25519), 0, "verified"),
        ((), 0, "qualified"),
        (("--key", KEY), 1, "qualified"),
    ):
        command = [find_node(), str(VERIFIER), str(tmp_path / "bundle"), *keys]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, json.loads(done.stdout)["status"]) == (code, status)


def test_command_refuses_what_it_cannot_judge(ledger: Ledger, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    for given in (["missing"], [str(tmp_path / "notes.txt")], [str(tmp_path)], ["--key", "00"], []):
        done = subprocess.run([find_node(), str(VERIFIER), *given], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("verify.mjs: ")


@pytest.mark.more
@pytest.mark.parametrize("count", [12, pytest.param(60, marks=pytest.mark.long)])
def test_sealed_runs_with_single_bytes_changed(tmp_path: Path, count: int) -> None:
    """Bytes of a `.cap` as it is packed, and of its members, packed again by someone who has no key."""
    run = make_sealed_run(tmp_path / "made", actions=4, gated=(1, 2))
    cases, rng = Cases(tmp_path / "cases"), random.Random(20)
    ring = Ring.pin([run.key])
    cap, members = run.cap, run.members
    cases.add_file("run.cap", cap, ring, "honest")
    cases.add_file("run.cap", cap, Ring(), "honest, and nobody knows the key")
    for at in sorted(rng.sample(range(len(cap)), 3 * count)):
        cases.add_file("run.cap", flip(cap, at, 1 << rng.randrange(8)), ring, f"byte {at}")
    for at in range(0, len(cap), 5820 // count):
        cases.add_file("run.cap", cap[:at], ring, f"cut at {at}")
    for name, data in members.items():
        for at in sorted(rng.sample(range(len(data)), min(len(data), count))):
            changed = {**members, name: flip(data, at, 1 << rng.randrange(8))}
            for again in (changed, with_true_manifest(changed) if name not in ("manifest.json", "head.json") else None):
                if again is not None:
                    cases.add_file("run.cap", packed(again), ring, f"{name}, byte {at}")
        for number, line in enumerate(data.splitlines(keepends=True)):
            changed = {**members, name: data.replace(line, b"", 1)}
            cases.add_file("run.cap", packed(changed), ring, f"{name} without line {number}")
    lines = members["actions.jsonl"]
    for at in sorted(rng.sample(range(len(lines)), 3 * count)):
        cases.add_file("actions.jsonl", flip(lines, at, 1 << rng.randrange(8)), ring, f"actions.jsonl, byte {at}")
    assert expect_agreement(tmp_path / "cases") == cases.count


@pytest.mark.more
def test_bombs(tmp_path: Path) -> None:
    """What unpacks to far more than it is, at its end or at its beginning; and nesting and sizes beyond all limits."""
    cases, ring = Cases(tmp_path), Ring.pin([KEY])
    zeros, noise = bytes(80 * 1024 * 1024), random.Random(22).randbytes(1024 * 1024)
    for name, data in {"zeros": zeros, "zeros, then noise": zeros + noise, "noise, then zeros": noise + zeros}.items():
        cases.add_file("bomb.cap", gzip.compress(data, 9), ring, name)
    # The first half alone would be a bomb. A platform may have read the whole by then.
    run = make_sealed_run(tmp_path / "made", actions=1, gated=())
    pack = zlib.compressobj(9, wbits=31)
    late = [pack.compress(gzip.decompress(run.cap) + zeros), pack.flush(zlib.Z_FULL_FLUSH), b"\0\0\0\xff\xff" * 100_000]
    cases.add_file("late.cap", b"".join([*late, pack.flush()]), Ring.pin([run.key]), "empty blocks behind zeros")
    one = json.dumps(as_json(chain_of(1))[0])
    for name, text in {
        "deep": "[" * 100_000,
        "deep object": '{"a":' * 300 + "1" + "}" * 300,
        "many values": "[" + "0," * 1_100_000 + "0]",
        "long number": one.replace('"sequence": 0', f'"sequence": {"1" * 5000}'),
        "large number": one.replace('"confidence": 0.0', '"confidence": 1e999'),
        "long line": one[:-1] + " " * (17 * 1024 * 1024) + "}",
        "many lines that are no JSON": "{\n" * 3000,
    }.items():
        cases.add_file("capsules.jsonl", text.encode(), ring, name)
    assert expect_agreement(tmp_path) == cases.count == 11


def test_key_that_its_owner_retired_counts_by_the_export(aver_home: Path, tmp_path: Path) -> None:
    bundle, keys = seal_after_rotation(aver_home, tmp_path)
    ours = aver.verify(bundle, keys=read_keys(keys)).to_dict()
    done = subprocess.run(
        [find_node(), str(VERIFIER), str(bundle), "--key", str(keys)], capture_output=True, text=True, check=False
    )
    theirs = json.loads(done.stdout)
    assert done.returncode == 1, done.stderr
    assert (ours["first_bad"]["code"], ours["first_bad"]["place"]["chain"]) == ("KEY_RETIRED", "ci.a")
    for name in ("status", "records", "first_bad"):
        expected, found = ours[name], theirs[name]
        if name == "first_bad":
            expected, found = ({**one, "words": ""} for one in (expected, found))
        assert found == expected


@pytest.mark.usefixtures("judges")
def test_files_in_which_nothing_can_be_read(tmp_path: Path) -> None:
    """No check passes that was carried out for nothing."""
    cases = Cases(tmp_path)
    texts = ('{"capsules": [', '{"capsules": []}', "[{]", "[{}]", '{"capsules": [{}], "all_hashes_ok": 1}')
    for text in texts:
        cases.add_file("x.json", text.encode(), Ring(), text)
    assert expect_agreement(tmp_path) == len(texts)
    for text in texts:
        (tmp_path / "x.json").write_text(text)
        checks = {check.name: check.status for check in aver.verify(tmp_path / "x.json").checks}
        assert "passed" not in (checks.get("canonical"), checks.get("index")), (text, checks)

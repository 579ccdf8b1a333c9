"""Files of keys: `verify.mjs --key FILE` takes those that `aver verify --key FILE` takes, and means the same."""

from __future__ import annotations

import copy
import json
import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import aver
from aver.errors import AverError
from aver.keys.exchange import build_key_export, read_keys
from aver.ledger import Ledger, open_ledger
from aver.ledger.bundle import export_bundle
from support.node import find_node
from support.page_verdicts import VERIFIER
from support.random_changes import change

READER = """
const { readFileSync } = await import("node:fs");
const { Ring, readKeyOption } = await import(process.argv[1]);
const answers = [];
for (const path of JSON.parse(readFileSync(0, "utf8"))) {
  try {
    const ring = new Ring(await readKeyOption(path));
    const ownerOf = (key) => ring.entryOf(key) ?? { purpose: null, retiredAt: null };
    answers.push(ring.keys.map((key) => [key.ed25519, key.mlDsa, ownerOf(key).purpose, ownerOf(key).retiredAt]));
  } catch (error) {
    answers.push(null);
  }
}
console.log(JSON.stringify(answers));
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle, and the export of a ring with a retired key."""
    folder = tmp_path_factory.mktemp("keys")
    with open_ledger(folder / "ledger.db", home=folder / "home") as ledger:
        ledger.append("ci.one", {"type": "system"})
        ledger.keys.rotate("ledger")
        ledger.append("ci.one", {"type": "system"})
        export_bundle(ledger, folder / "bundle")
        (folder / "export.json").write_text(json.dumps(_export(ledger)))
    return folder


def _export(ledger: Ledger) -> dict[str, Any]:
    entries = ledger.keys.ring().entries
    return build_key_export([*entries, entries[0].key])


def _edit(edit: Callable[[dict[str, Any], dict[str, Any]], object]) -> Callable[[Any], bytes]:
    def apply(export: Any) -> bytes:
        edit(export, export["keys"][0])
        return json.dumps(export).encode()

    return apply


FILES: dict[str, Callable[[Any], bytes]] = {
    "as exported": _edit(lambda *_: None),
    "no key": _edit(lambda export, _: export["keys"].clear()),
    "nothing": lambda _: b"",
    "an empty object": lambda _: b"{}",
    "an empty list": lambda _: b"[]",
    "a text": lambda _: b"no key at all",
    "64 digits": lambda export: f"{export['keys'][1]['public_key']}\n".encode(),
    "64 large digits": lambda export: export["keys"][1]["public_key"].upper().encode(),
    "64 digits after a mark of byte order": lambda export: b"\xef\xbb\xbf" + export["keys"][1]["public_key"].encode(),
    "epochs of no version": lambda export: json.dumps(
        {"epochs": [{"public_key_hex": key["public_key"], "fingerprint": key["fingerprint"]} for key in export["keys"]]}
    ).encode(),
    "16 digits": lambda export: export["keys"][1]["fingerprint"].encode(),
    "a list of entries": lambda export: json.dumps(export["keys"]).encode(),
    "known keys": lambda export: json.dumps({key["fingerprint"]: key["public_key"] for key in export["keys"]}).encode(),
    "identity is a number": _edit(lambda _, key: key.update(identity=7)),
    "identity is null": _edit(lambda _, key: key.update(identity=None)),
    "another version": _edit(lambda export, _: export.update(version=2)),
    "one more member": _edit(lambda export, _: export.update(note="x")),
    "one more member of a key": _edit(lambda _, key: key.update(note="x")),
    "another fingerprint": _edit(lambda export, _: export["keys"][-1].update(fingerprint="0" * 16)),
    "a point of small order": _edit(lambda export, _: export["keys"].append({**export["keys"][-1], **SMALL})),
}
SMALL = {"public_key": f"01{'00' * 31}", "fingerprint": f"01{'00' * 7}"}


def _compare(folder: Path, texts: dict[str, bytes]) -> None:
    paths = []
    for number, text in enumerate(texts.values()):
        paths.append(folder / f"{number}.keys")
        paths[-1].write_bytes(text)
    command = [find_node(), "--input-type=module", "-e", READER, VERIFIER.as_uri()]
    given = json.dumps([str(path) for path in paths])
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=True)
    for name, path, theirs in zip(texts, paths, json.loads(done.stdout), strict=True):
        try:
            ours: list[Any] | None = [
                [key.ed25519, key.ml_dsa_65, None, None]
                if isinstance(key, aver.PublicKey)
                else [key.key.ed25519, key.key.ml_dsa_65, key.purpose, key.retired_at]
                for key in read_keys(path)
            ]
        except AverError:
            ours = None
        assert theirs == ours, name


def test_files_of_keys_are_read_alike(home: Path, tmp_path: Path) -> None:
    export = json.loads((home / "export.json").read_text())
    _compare(tmp_path, {name: make(copy.deepcopy(export)) for name, make in FILES.items()})


def test_changed_exports_are_read_alike(home: Path, tmp_path: Path) -> None:
    export, rng = json.loads((home / "export.json").read_text()), random.Random(18)
    changed = [change(copy.deepcopy(export), rng) for _ in range(200)]
    _compare(tmp_path, {f"{number}: {what}": json.dumps(text).encode() for number, (text, what) in enumerate(changed)})


@pytest.mark.parametrize("name", ["no key", "64 digits", "identity is a number", "a text"])
def test_command_ends_as_aver_verify_does(home: Path, tmp_path: Path, name: str) -> None:
    path = tmp_path / "keys"
    path.write_bytes(FILES[name](json.loads((home / "export.json").read_text())))
    command = [find_node(), str(VERIFIER), str(home / "bundle"), "--key", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        ours = {"verified": 0, "qualified": 0}.get(aver.verify(home / "bundle", keys=read_keys(path)).status, 1)
    except AverError:
        ours = 2
    assert done.returncode == ours, done.stderr


def test_keys_that_come_with_a_bundle_vouch_for_nothing(home: Path, tmp_path: Path) -> None:
    """Its index, under any name and without any claim, and every file in it: a stranger can make all of them."""
    bundle = home / "bundle"
    index = json.loads((bundle / "index.json").read_text())
    bare = {"chains": [], "keys": index["keys"]}
    given = [bundle / "index.json", tmp_path / "copy.json", tmp_path / "bare.json", tmp_path / "inside" / "keys.json"]
    given[1].write_bytes(given[0].read_bytes())
    given[2].write_text(json.dumps(bare))
    shutil.copytree(bundle, tmp_path / "inside")
    given[3].write_bytes((home / "export.json").read_bytes())
    for path in given:
        thing = path.parent if path.parent.name == "inside" else bundle
        command = [find_node(), str(VERIFIER), str(thing), "--key", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (2, ""), path

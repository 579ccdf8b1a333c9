"""The two small verifiers of docs/verify-it-yourself.md: short, free of Aver, and right."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import aver
from aver.ledger.bundle import export_bundle
from support.doc_pages import DOCS, blocks_of
from support.node import find_node

LINES_MAX = 40
CHAIN = "demo.check"
PAGE = DOCS / "verify-it-yourself.md"
PROGRAMS = {block.file: block for block in blocks_of(PAGE) if block.file}
INTERPRETERS = {"check.py": [sys.executable, "-I"], "check.mjs": [find_node()]}


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], str]:
    """A chain file of a real bundle, and the key that signed it."""
    home = tmp_path_factory.mktemp("home")
    with aver.open_ledger(home=home) as ledger:
        for summary in ("first", "sécond\n", "third"):
            ledger.append(CHAIN, aver.Capsule(type="tool", outcome=aver.Outcome(status="success", summary=summary)))
        active = ledger.keys.ring().active("ledger")
        assert active is not None
        export_bundle(ledger, home / "bundle")
    return json.loads((home / "bundle" / f"{CHAIN}.json").read_bytes()), active.key.ed25519


@pytest.fixture(params=sorted(PROGRAMS))
def check(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run one of the programs on a chain document."""
    program = tmp_path / request.param
    program.write_text(PROGRAMS[request.param].text, encoding="utf-8")
    interpreter = INTERPRETERS[request.param]

    def run(document: dict[str, Any] | bytes, *keys: str) -> subprocess.CompletedProcess[str]:
        path = tmp_path / "chain.json"
        path.write_bytes(document if isinstance(document, bytes) else json.dumps(document).encode())
        return subprocess.run([*interpreter, program, path, *keys], capture_output=True, text=True, check=False)

    return run


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_a_program_is_short_and_free_of_aver(name: str) -> None:
    text = PROGRAMS[name].text
    assert text.count("\n") <= LINES_MAX
    imports = [line for line in text.splitlines() if line.startswith(("import ", "from "))]
    assert imports
    assert not any("aver" in line for line in imports)
    if name == "check.mjs":
        assert all('"node:' in line for line in imports)


def test_there_is_one_in_each_language() -> None:
    assert sorted(PROGRAMS) == ["check.mjs", "check.py"]


def test_an_intact_chain_passes(check: Any, exported: tuple[dict[str, Any], str]) -> None:
    chain, key = exported
    done = check(chain, key)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == f"3 records, the last is {chain['capsules'][-1]['hash']}"


def applied(change: Callable[[list[dict[str, Any]]], None]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    def changed(chain: dict[str, Any]) -> dict[str, Any]:
        copy = json.loads(json.dumps(chain))
        change(copy["capsules"])
        return copy

    return changed


def edit_text(records: list[dict[str, Any]]) -> None:
    records[1]["canonical"] = records[1]["canonical"].replace("sécond", "secónd")


def edit_text_and_hash(records: list[dict[str, Any]]) -> None:
    import hashlib

    edit_text(records)
    records[1]["hash"] = hashlib.sha3_256(records[1]["canonical"].encode()).hexdigest()


def flip_signature(records: list[dict[str, Any]]) -> None:
    signature = records[1]["signature"]
    records[1]["signature"] = ("0" if signature[0] != "0" else "1") + signature[1:]


def drop(records: list[dict[str, Any]]) -> None:
    del records[1]


def behead(records: list[dict[str, Any]]) -> None:
    del records[0]


def swap(records: list[dict[str, Any]]) -> None:
    records[1], records[2] = records[2], records[1]


def repeat(records: list[dict[str, Any]]) -> None:
    records.insert(1, records[1])


def backdate(records: list[dict[str, Any]]) -> None:
    records[1]["signed_at"] = "2020-01-01T00:00:00+00:00"


def rename_signer(records: list[dict[str, Any]]) -> None:
    records[1]["signed_by"] = "0" * 16


def forge_with_own_key(records: list[dict[str, Any]]) -> None:
    forger = aver.SeedSigner.generate()
    content = json.loads(records[2]["canonical"])
    content["context"]["environment"]["aver"]["by"] = forger.fingerprint
    sealed = aver.seal(content, forger)
    records[2].update(canonical=sealed.canonical.decode(), hash=sealed.hash, signature=sealed.signature)
    records[2]["signed_by"] = forger.fingerprint


TAMPERING = (
    edit_text,
    edit_text_and_hash,
    flip_signature,
    drop,
    behead,
    swap,
    repeat,
    backdate,
    rename_signer,
    forge_with_own_key,
)


@pytest.mark.sample(8)
@pytest.mark.parametrize("tamper", TAMPERING, ids=lambda tamper: tamper.__name__)
def test_tampering_is_found(check: Any, exported: tuple[dict[str, Any], str], tamper: Any) -> None:
    chain, key = exported
    done = check(applied(tamper)(chain), key)
    assert done.returncode == 1
    assert done.stderr.startswith("record ")
    assert done.stdout == ""


def test_another_key_does_not_do(check: Any, exported: tuple[dict[str, Any], str]) -> None:
    done = check(exported[0], aver.SeedSigner.generate().public.ed25519)
    assert done.returncode == 1
    assert "whom you did not name" in done.stderr


def test_no_records_are_no_success(check: Any, exported: tuple[dict[str, Any], str]) -> None:
    assert check({**exported[0], "capsules": []}, exported[1]).returncode == 1


# --- held to Aver

ODD = "bad byte \ufffd here"
"""A text with U+FFFD, as a program's output has it where a byte was damaged."""


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The file of a chain with such a text, in its bundle, and the key that signed it."""
    home = tmp_path_factory.mktemp("odd")
    with aver.open_ledger(home=home) as ledger:
        for summary in ("first", ODD):
            ledger.append(CHAIN, aver.Capsule(type="tool", outcome=aver.Outcome(status="success", summary=summary)))
        active = ledger.keys.ring().active("ledger")
        assert active is not None
        export_bundle(ledger, home / "bundle")
    return home / "bundle" / f"{CHAIN}.json", active.key.ed25519


def _sign(change: Callable[[str], str]) -> Callable[[bytes], bytes]:
    def changed(raw: bytes) -> bytes:
        chain = json.loads(raw)
        chain["capsules"][1]["signature"] = change(chain["capsules"][1]["signature"])
        return json.dumps(chain).encode()

    return changed


def _replace_odd(by: bytes) -> Callable[[bytes], bytes]:
    """Write U+FFFD otherwise: in JSON inside of JSON, as a character or as its escape."""
    return lambda raw: raw.replace("\ufffd".encode(), by).replace(b"\\ufffd", by)


REWRITTEN: dict[str, tuple[Callable[[bytes], bytes], bool]] = {
    "nothing": (lambda raw: raw, True),
    "half a character": (_replace_odd(b"\\ud800"), False),
    "another half": (_replace_odd(b"\\udfff"), False),
    "a byte that is no UTF-8": (_replace_odd(b"\xff"), False),
    "more behind the signature": (_sign(lambda text: f"{text}zz"), False),
    "a signature in capitals": (_sign(str.upper), False),
    "blanks in the signature": (_sign(lambda text: f"{text[:64]} {text[64:]}"), False),
    "a signature cut": (_sign(lambda text: text[:-2]), False),
}
"""Other bytes with the same look, and whether Aver takes them."""


@pytest.mark.parametrize("name", sorted(REWRITTEN))
def test_what_aver_refuses_the_programs_refuse(check: Any, odd: tuple[Path, str], tmp_path: Path, name: str) -> None:
    path, key = odd
    change, is_good = REWRITTEN[name]
    changed = change(path.read_bytes())
    assert (changed == path.read_bytes()) == is_good
    written = tmp_path / path.name
    written.write_bytes(changed)
    assert (aver.verify(written, home=tmp_path, keys=[key]).status != "failed") == is_good
    assert (check(changed, key).returncode == 0) == is_good


def test_a_block_of_null_is_no_block(check: Any, tmp_path: Path) -> None:
    signer = aver.SeedSigner.generate()
    capsule = aver.Capsule(type="tool", context={"agent_id": "a", "environment": {"aver": None}})
    sealed = aver.seal(capsule, signer)
    record = {"canonical": sealed.canonical.decode(), "hash": sealed.hash, "signature": sealed.signature}
    record |= {"signature_pq": "", "signed_at": sealed.signed_at, "signed_by": sealed.signed_by}
    done = check({"capsules": [record]}, signer.public.ed25519)
    assert done.returncode == 0, done.stderr

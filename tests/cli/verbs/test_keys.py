"""`aver keys`: making, rotating, exporting, importing and trusting keys."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import subprocess
import sys

import pytest

from aver import Capsule, SeedSigner, open_ledger
from support.aver_command import ONE_DRAFT, Aver


def test_no_keys_yet(aver: Aver) -> None:
    ran = aver("keys", "show")
    assert (ran.code, ran.out) == (0, "")
    assert "no keys yet" in ran.err
    assert aver("keys", "show", "--json").json == {"keys": [], "known": []}
    assert aver.listing() == []


def test_a_new_key(aver: Aver) -> None:
    ran = aver("keys", "new", "agent:builder", "--pq", "--json")
    key = ran.json["key"]
    assert (key["identity"], key["purpose"], key["algorithm"]) == ("agent:builder", "seal", "ed25519+ml-dsa-65")
    assert key["fingerprint"] in aver("keys", "show").out
    private = aver.home / "keys" / "agent-builder.0.key"
    assert stat.S_IMODE(private.stat().st_mode) == 0o600


def test_what_is_no_identity(aver: Aver) -> None:
    ran = aver("keys", "new", "../evil")
    assert ran.code == 2
    assert aver.listing() == []


@pytest.mark.more
def test_a_persons_key_is_kept_under_a_passphrase(aver: Aver) -> None:
    reader, writer = os.pipe()
    os.write(writer, b"correct horse battery staple\n")
    os.close(writer)
    child = aver.started("keys", "new", "person:ada", "--passphrase-fd", str(reader), pass_fds=[reader])
    _, err = child.communicate()
    os.close(reader)
    assert child.returncode == 0, err
    assert (aver.home / "keys" / "person-ada.0.sealed.json").exists()
    ran = aver("keys", "rotate", "person:ada", "--passphrase-fd", "0", stdin="wrong\n")
    assert ran.code != 0
    assert "Traceback" not in ran.err
    ran = aver("keys", "rotate", "person:ada", "--passphrase-fd", "0", stdin="correct horse battery staple\n")
    assert ran.code == 0
    assert "correct horse" not in ran.out + ran.err


@pytest.mark.parametrize(
    ("descriptor", "given"), [("0", b""), ("0", b"\n"), ("0", b"\xff\n"), ("0", b"x" * 5000), ("77", b""), ("-1", b"")]
)
def test_a_passphrase_that_is_none(descriptor: str, given: bytes, aver: Aver) -> None:
    ran = aver("keys", "new", "person:ada", "--passphrase-fd", descriptor, stdin=given)
    assert ran.code == 2
    assert aver.listing() == []


def test_rotation_is_recorded_at_once(sealed: Aver) -> None:
    ran = sealed("keys", "rotate", "--json")
    assert ran.code == 0
    assert ran.json["recorded"] is True
    assert (ran.json["old"]["status"], ran.json["new"]["status"]) == ("retired", "active")
    kinds = [record["kind"] for record in sealed("log", "keys", "--json").json["records"]]
    assert kinds == ["key.create", "key.rotate"]
    sealed.seal(ONE_DRAFT)
    assert sealed("verify", "--json").json["status"] == "verified"


def test_rotation_is_recorded_for_every_tenant(sealed: Aver) -> None:
    assert sealed("seal", "-", "--chain", "a.1", "--tenant", "blue", stdin='{"type": "tool"}').code == 0
    assert sealed("keys", "rotate").code == 0
    for tenant in ("default", "blue"):
        records = sealed("log", "keys", "--tenant", tenant, "--json").json["records"]
        assert [record["kind"] for record in records] == ["key.create", "key.rotate"]


def test_rotation_without_a_ledger_makes_none(aver: Aver) -> None:
    assert aver("keys", "new", "ledger").code == 0
    ran = aver("keys", "rotate", "--pq", "--json")
    assert ran.json["recorded"] is False
    assert ran.json["new"]["algorithm"] == "ed25519+ml-dsa-65"
    assert not (aver.home / "ledger.db").exists()


@pytest.mark.more
def test_export_import_and_trust(sealed: Aver) -> None:
    assert sealed("keys", "export", "--out", "ours.json").code == 0
    (key,) = [key["public_key"] for key in sealed("keys", "export").json["keys"]]
    name = key[:16]
    other = {"AVER_HOME": str(sealed.directory / "other")}

    listed = sealed("keys", "import", "ours.json", **other)
    assert listed.code == 0
    assert listed.out.split() == [key, "not", "registered", "ed25519"]
    assert "no key was registered" in listed.err
    assert not (sealed.directory / "other").exists()

    for short in (name, "0" * 16):
        wrong = sealed("keys", "import", "ours.json", "--trust", short, **other)
        assert wrong.code == 2
        assert f"{short} is a fingerprint" in wrong.err
        assert "64 digits" in wrong.err
    assert sealed("keys", "import", "ours.json", "--trust", "0" * 64, **other).code == 2
    assert not (sealed.directory / "other").exists()

    trusted = sealed("keys", "import", "ours.json", "--trust", key, "--json", **other)
    assert [key["fate"] for key in trusted.json["keys"]] == ["registered"]
    again = sealed("keys", "import", "ours.json", "--json", **other)
    assert [key["fate"] for key in again.json["keys"]] == ["known_already"]
    assert name in sealed("keys", "show", **other).out
    assert sealed("verify", sealed.home / "ledger.db", "--strict", **other).code == 0

    assert sealed("keys", "forget", name, **other).code == 0
    assert sealed("keys", "forget", name, **other).code == 2
    assert sealed("verify", sealed.home / "ledger.db", "--strict", **other).code == 1


def test_an_export_is_never_written_over_another_file(sealed: Aver) -> None:
    (sealed.directory / "mine.json").write_text("precious")
    assert sealed("keys", "export", "--out", "mine.json").code == 2
    assert (sealed.directory / "mine.json").read_text() == "precious"
    assert sealed("keys", "export", "--out", "no/where.json").code == 2
    assert sealed("keys", "export", "agent:nobody").code == 2


def test_trusting_a_key_in_hex(aver: Aver) -> None:
    key = SeedSigner.generate().public
    ran = aver("keys", "trust", key.ed25519)
    assert ran.code == 0
    assert ran.out.split()[:2] == [key.ed25519, "registered"]
    assert aver("keys", "trust", "00" * 32).code == 2
    assert aver("keys", "trust", key.ed25519.upper()).code == 2


def test_a_fingerprint_is_no_key(sealed: Aver) -> None:
    (key,) = [key["public_key"] for key in sealed("keys", "export").json["keys"]]
    for command in (("verify", "--key", key[:16]), ("keys", "trust", key[:16]), ("keys", "import", key[:16])):
        ran = sealed(*command)
        assert ran.code == 2
        assert f"{key[:16]} is a fingerprint" in ran.err
        assert "aver keys export --out keys.json" in ran.err
    assert sealed("verify", "--key", key).code == 0


def test_an_export_names_what_the_verifier_needs(sealed: Aver) -> None:
    ran = sealed("export", "--out", "bundle")
    assert "  aver verify bundle --key bundle.keys.json" in ran.out.splitlines()
    assert not (sealed.directory / "bundle" / "bundle.keys.json").exists()
    assert sealed("verify", "bundle", "--key", "bundle.keys.json", "--strict").code == 0
    with open_ledger(home=sealed.home) as ledger:
        ledger.keys.create("agent:bob")
        ledger.keys.create("agent:unrelated")
        ledger.append("ci.a", Capsule(type="tool"), signer=ledger.keys.signer("agent:bob"))
    assert sealed("export", "--out", "second").code == 0
    for made in ("second.keys.json", "both.json"):
        assert made != "both.json" or sealed("keys", "export", "--out", made).code == 0
        keys = json.loads((sealed.directory / made).read_text())["keys"]
        assert [key["identity"] for key in keys] == ["ledger", "agent:bob"]
        assert sealed("verify", "second", "--key", made, "--strict").code == 0
    # One of several keys: nothing is wrong, but not everything was checked.
    ran = sealed("verify", "second", "--key", "bundle.keys.json")
    assert (ran.code, ran.out.startswith("! unsigned, qualified: ")) == (0, True)
    assert "2 signatures by keys that are not known here" in ran.out.splitlines()[0]


def test_an_export_overwrites_no_file_of_keys(sealed: Aver) -> None:
    (sealed.directory / "bundle.keys.json").write_text("mine")
    ran = sealed("export", "--out", "bundle")
    assert (ran.code, (sealed.directory / "bundle").exists()) == (2, False)
    assert "bundle.keys.json" in ran.err
    assert sealed("export", "--out", "bundle", "--force").code == 0
    assert sealed("verify", "bundle", "--key", "bundle.keys.json").code == 0


def test_an_export_of_keys_has_every_epoch_and_reads_every_tenant(sealed: Aver) -> None:
    assert sealed("keys", "rotate").code == 0
    with open_ledger(home=sealed.home, tenant="blue") as ledger:
        ledger.keys.create("agent:blue")
        ledger.append("ci.a", Capsule(type="tool"), signer=ledger.keys.signer("agent:blue"))
    keys = sealed("keys", "export").json["keys"]
    assert [(key["identity"], key["epoch"]) for key in keys] == [("ledger", 0), ("ledger", 1), ("agent:blue", 0)]
    assert keys[0]["retired_at"] is not None
    assert keys[1]["statement"] is not None
    of_one = sealed("keys", "export", "--tenant", "default").json["keys"]
    assert {key["identity"] for key in of_one} == {"ledger"}
    assert sealed("keys", "export", "--ledger", "nowhere.db").code == 2


def test_without_a_ledger_the_ledgers_key_is_exported(aver: Aver) -> None:
    assert aver("keys", "export").code == 2
    assert aver("keys", "new", "ledger").code == 0
    assert [key["identity"] for key in aver("keys", "export").json["keys"]] == ["ledger"]


def test_keys_that_signed_nothing_vouch_for_nothing(sealed: Aver) -> None:
    """A stranger's forgery is by unknown keys. Without a match, the exit code says so; else only `--strict` does."""
    assert sealed("export", "--out", "bundle").code == 0
    other = SeedSigner(b"o" * 32).public.ed25519
    (own,) = [key["public_key"] for key in sealed("keys", "export").json["keys"]]
    for thing in ("bundle", str(sealed.home / "ledger.db")):
        ran = sealed("verify", thing, "--key", other)
        assert (ran.code, ran.out.startswith("! unsigned, qualified: ")) == (1, True)
        assert "nobody's signature was checked" in ran.out.splitlines()[0]
        assert "none of the given keys has signed a record here" in ran.err
        assert sealed("verify", thing, "--key", other, "--key", own).code == 0
    stranger = {"AVER_HOME": str(sealed.directory / "stranger")}
    ran = sealed("verify", "bundle", **stranger)
    assert (ran.code, "nobody's signature was checked" in ran.out.splitlines()[0]) == (0, True)
    assert sealed("verify", "bundle", "--strict", **stranger).code == 1
    assert sealed("verify", "bundle", "--json", **stranger).json["integrity"] == "unsigned"


@pytest.mark.more
def test_keys_that_come_with_the_thing_are_refused(sealed: Aver) -> None:
    assert sealed("export", "--out", "bundle").code == 0
    bundle = sealed.directory / "bundle"
    (sealed.directory / "link").symlink_to(bundle)
    (sealed.directory / "index-link.json").symlink_to(bundle / "index.json")
    (sealed.directory / "hard.json").hardlink_to(bundle / "index.json")
    (sealed.directory / "copy.json").write_bytes((bundle / "index.json").read_bytes())
    sources = ("bundle", "bundle/index.json", "link", "link/index.json", "index-link.json", "hard.json", "copy.json")
    for source in sources:
        for thing in ("bundle", "bundle/index.json", "link"):
            ran = sealed("verify", thing, "--key", source)
            assert ran.code == 2, (thing, source)
            assert "prove nothing about it" in ran.err
    assert sealed("keys", "export", "--out", "keys.json").code == 0
    assert sealed("verify", "bundle", "--key", "keys.json").code == 0
    # A file that somebody put into the bundle is part of it, whatever it is called.
    assert sealed("keys", "export", "--out", "bundle/theirs.json").code == 0
    assert sealed("verify", "bundle", "--key", "bundle/theirs.json").code == 2


def test_no_copy_of_an_index_is_a_key_source(sealed: Aver) -> None:
    assert sealed("export", "--out", "bundle").code == 0
    assert sealed("keys", "export", "--out", "keys.json").code == 0
    index = (sealed.directory / "bundle/index.json").read_bytes()
    other = json.loads(index) | {"chains": [], "generated_at": ""}
    epoch = {"public_key_hex": other["public_key"], "fingerprint": other["public_key"][:16]}
    copies = {
        "longer": index + b"\n",
        "other": json.dumps(other).encode(),
        "disguised": json.dumps({**other, "version": 1, "epochs": [epoch]}).encode(),
        "no chains": json.dumps({"public_key": other["public_key"]}).encode(),
    }
    for name, copy in copies.items():
        (sealed.directory / "copy.json").write_bytes(copy)
        for thing in ("bundle", sealed.home / "ledger.db"):
            ran = sealed("verify", thing, "--key", "copy.json")
            assert (ran.code, "the index of a bundle" in ran.err) == (2, True), (name, thing)
            assert "aver keys export --out keys.json" in ran.err
    # Listing the keys of an index is not refused: it trusts none.
    assert sealed("keys", "import", "bundle/index.json").code == 0


@pytest.mark.more
@pytest.mark.parametrize("source", ["/dev/stdin", "/dev/fd/0"])
def test_a_pipe_is_held_to_the_same_rules(sealed: Aver, source: str) -> None:
    assert sealed("export", "--out", "bundle").code == 0
    assert sealed("keys", "export", "--out", "keys.json").code == 0
    assert sealed("keys", "export", "--out", "bundle/theirs.json").code == 0
    export = (sealed.directory / "keys.json").read_bytes()
    index = (sealed.directory / "bundle/index.json").read_bytes()
    for given, words in ((index, "the index of a bundle"), (index + b" ", "the index"), (export, "prove nothing")):
        ran = run_with_pipe(sealed, ["verify", "bundle", "--key", source], given)
        assert ran.returncode == 2
        assert words in ran.stderr.decode()
    (sealed.directory / "bundle/theirs.json").unlink()
    assert run_with_pipe(sealed, ["verify", "bundle", "--key", source], export).returncode == 0


def run_with_pipe(aver: Aver, words: list[str], given: bytes) -> subprocess.CompletedProcess[bytes]:
    """Run the command with bytes in a pipe that is full and closed before it starts."""
    ours, theirs = os.pipe()
    os.write(theirs, given)
    os.close(theirs)
    environment = {**os.environ, "AVER_HOME": str(aver.home)}
    command = [sys.executable, "-m", "aver", *words]
    try:
        return subprocess.run(
            command, stdin=ours, capture_output=True, cwd=aver.directory, env=environment, check=False
        )
    finally:
        os.close(ours)


def test_both_halves_of_a_key_are_confirmed(sealed: Aver) -> None:
    assert sealed("keys", "rotate", "--pq").code == 0
    assert sealed("keys", "export", "--out", "ours.json").code == 0
    document = json.loads((sealed.directory / "ours.json").read_text())
    (entry,) = [entry for entry in document["keys"] if entry["public_key_pq"]]
    digest = hashlib.sha256(bytes.fromhex(entry["public_key_pq"])).hexdigest()
    whole = f"{entry['public_key']}:{digest}"
    assert whole in [key["confirmation"] for key in sealed("keys", "show", "--json").json["keys"]]
    assert whole in sealed("keys", "import", "ours.json", AVER_HOME="other").out
    # A stranger leaves the Ed25519 half as it is, and puts his own half beside it.
    stranger = SeedSigner(b"s" * 32, b"t" * 32).public
    forged = {"public_key": entry["public_key"], "public_key_pq": stranger.ml_dsa_65}
    forged |= {"algorithm": entry["algorithm"], "fingerprint": entry["public_key"][:16]}
    document["keys"] = [forged]
    (sealed.directory / "forged.json").write_text(json.dumps(document))
    for wanted in (entry["public_key"], whole):
        ran = sealed("keys", "import", "forged.json", "--trust", wanted, AVER_HOME="other")
        assert ran.code == 2, wanted
        assert not (sealed.directory / "other").exists()
    ran = sealed("keys", "import", "ours.json", "--trust", entry["public_key"], AVER_HOME="other")
    assert (ran.code, "half of a key" in ran.err, whole in ran.err) == (2, True, True)
    ran = sealed("keys", "import", "ours.json", "--trust", whole, "--json", AVER_HOME="other")
    assert [key["fate"] for key in ran.json["keys"] if key["confirmation"] == whole] == ["registered"]


def test_keys_of_the_bundle_are_refused_for_its_chains_and_in_the_place_of_a_ledger(sealed: Aver) -> None:
    assert sealed("export", "--out", "bundle").code == 0
    chain = "bundle/notes.today.json"
    for thing in (chain, "bundle/keys.json", "bundle/head.json"):
        for source in ("bundle", "bundle/index.json"):
            ran = sealed("verify", thing, "--key", source)
            assert (ran.code, "prove nothing about it" in ran.err) == (2, True), (thing, source)
    for things in ((), ("notes.today",)):
        for where in ({"AVER_LEDGER": "bundle"}, {"AVER_LEDGER": "bundle/index.json"}):
            ran = sealed("verify", *things, "--key", "bundle/index.json", **where)
            assert (ran.code, "prove nothing about it" in ran.err) == (2, True), (things, where)
    # Beside an index that does not list it, a file has keys of its own directory.
    (sealed.directory / "index.json").write_text("{}")
    (sealed.directory / "alone.json").write_bytes((sealed.directory / chain).read_bytes())
    assert sealed("keys", "export", "--out", "keys.json").code == 0
    assert sealed("verify", "alone.json", "--key", "keys.json").code == 0


def test_trusting_an_export_honours_its_retirements(sealed: Aver) -> None:
    assert sealed("keys", "rotate").code == 0
    assert sealed("keys", "export", "--out", "ours.json").code == 0
    other = {"AVER_HOME": str(sealed.directory / "other")}
    listed = sealed("keys", "import", "ours.json", **other)
    assert sum("retired" in line for line in listed.out.splitlines()) == 1
    assert sealed("keys", "trust", "ours.json", **other).code == 0
    assert "known, retired" in sealed("keys", "show", **other).out
    assert sealed("verify", sealed.home / "ledger.db", "--strict", **other).code == 0

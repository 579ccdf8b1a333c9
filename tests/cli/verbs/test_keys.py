"""`aver keys`: making, rotating, exporting, importing and trusting keys."""

from __future__ import annotations

import os
import stat

import pytest

from aver import SeedSigner
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


def test_export_import_and_trust(sealed: Aver) -> None:
    assert sealed("keys", "export", "--out", "ours.json").code == 0
    (name,) = [key["fingerprint"] for key in sealed("keys", "export").json["keys"]]
    other = {"AVER_HOME": str(sealed.directory / "other")}

    listed = sealed("keys", "import", "ours.json", **other)
    assert listed.code == 0
    assert listed.out.split() == [name, "not", "registered", "ed25519"]
    assert "no key was registered" in listed.err
    assert not (sealed.directory / "other").exists()

    wrong = sealed("keys", "import", "ours.json", "--trust", "0" * 16, **other)
    assert wrong.code == 2
    assert not (sealed.directory / "other").exists()

    trusted = sealed("keys", "import", "ours.json", "--trust", name, "--json", **other)
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
    assert ran.out.split()[:2] == [key.fingerprint, "registered"]
    assert aver("keys", "trust", "00" * 32).code == 2
    assert aver("keys", "trust", key.ed25519.upper()).code == 2

"""The directories of parts: exactly the keys that each needs, the pinned program, and what `pin` shows."""

from __future__ import annotations

import hashlib
import json
import stat
from pathlib import Path

import pytest

from aver import canonical_bytes, open_ledger
from aver.errors import AverError, NotFound, Refused
from aver.gateway.parts.entrance import is_apart
from aver.gateway.parts.part_directories import (
    PartDirectories,
    make_part_directories,
    read_policy_keys,
)
from aver.gateway.parts.part_services import build_policy_part
from aver.gateway.parts.pinned_program import PinnedProgram
from aver.gateway.policy_server import PROGRAM_PREFIX
from aver.gateway.settings import GatewaySettings, read_gateway_settings
from aver.keys import KeyStore
from support.acts import open_office


@pytest.fixture
def home(aver_home: Path) -> Path:
    with open_ledger() as ledger:
        ledger.record_keys()  # Makes the ledger's own key.
        make_part_directories(ledger)
    return aver_home


def files_below(path: Path) -> set[str]:
    return {str(each.relative_to(path)) for each in path.rglob("*") if each.is_file() and not each.name.startswith(".")}


def test_each_part_has_exactly_what_it_needs(home: Path) -> None:
    root = home / "gateway"
    assert files_below(root / "gateway") == {
        *("link-token", "policy-keys.json", "policy0.token", "policy1.token", "executor.token"),
    }
    for number in (0, 1):
        assert files_below(root / f"policy{number}") == {
            *("link-token", "program.json", "keyring.json", "keys/policy-shared.mac"),
            *(f"keys/policy-{number}.mac", f"keys/policy-{number}.0.key"),
        }
    assert files_below(root / "executor") == {
        *("link-token", "program.json", "policy-keys.json", "keys/policy-0.mac", "keys/policy-1.mac"),
    }


def test_no_part_has_a_private_key_of_another(home: Path) -> None:
    root = home / "gateway"
    secrets = {
        "policy0": (root / "policy0/keys/policy-0.0.key").read_bytes(),
        "policy1": (root / "policy1/keys/policy-1.0.key").read_bytes(),
        "mac0": (root / "policy0/keys/policy-0.mac").read_bytes().partition(b":")[2],
        "mac1": (root / "policy1/keys/policy-1.mac").read_bytes().partition(b":")[2],
        "shared": (root / "policy0/keys/policy-shared.mac").read_bytes().partition(b":")[2],
        "ledger": next((home / "keys").glob("ledger.*.key")).read_bytes(),
    }
    holders = {
        name: {
            path.relative_to(root).parts[0]
            for path in root.rglob("*")
            if path.is_file() and (secret in path.read_bytes() or secret.hex().encode() in path.read_bytes())
        }
        for name, secret in secrets.items()
    }
    assert holders == {
        "policy0": {"policy0"},
        "policy1": {"policy1"},
        "mac0": {"policy0", "executor"},
        "mac1": {"policy1", "executor"},
        "shared": {"policy0", "policy1"},
        "ledger": set(),
    }
    assert not list((home / "keys").glob("policy*")), "the ledger's own store has only the public halves"


def test_everything_is_for_its_owner_alone(home: Path) -> None:
    for path in [home / "gateway", *(home / "gateway").rglob("*")]:
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), path


def test_both_public_keys_are_in_the_ledgers_ring(home: Path) -> None:
    keys = read_policy_keys(home / "gateway" / "executor")
    with open_ledger() as ledger:
        ring = ledger.keys.ring()
        for number in (0, 1):
            entry = ring.active(f"policy:{number}")
            assert entry is not None
            assert keys.of(number) == (entry.key,)


def test_a_second_init_is_refused(home: Path) -> None:
    with open_ledger() as ledger, pytest.raises(Refused, match="has its parts already"):
        make_part_directories(ledger)


def test_an_init_that_was_interrupted_goes_on_with_the_same_keys(home: Path) -> None:
    before = {name: (home / "gateway" / name).read_bytes() for name in ("policy0/keyring.json", "executor/link-token")}
    (home / "gateway" / "program.json").unlink()
    (home / "gateway" / "executor" / "policy-keys.json").unlink()
    with open_ledger() as ledger:
        assert not is_apart(home, read_gateway_settings(ledger.config))
        make_part_directories(ledger)
        assert is_apart(home, read_gateway_settings(ledger.config))
    assert before == {name: (home / "gateway" / name).read_bytes() for name in before}


def test_keys_of_a_gateway_in_one_process_are_retired_and_destroyed(tmp_path: Path, aver_home: Path) -> None:
    with open_office(tmp_path / "work") as office:
        assert office.write()["reason_code"] == "ALLOW"
    assert list((aver_home / "keys").glob("policy-*.key"))
    with open_ledger() as ledger:
        make_part_directories(ledger)
        entries = ledger.keys.ring().entries_of("policy:0")
        assert [entry.status for entry in entries] == ["retired", "active"]
        assert not list((aver_home / "keys").glob("policy-*.key"))
        assert ledger.verify().status == "verified"


def test_a_setting_makes_a_home_apart_even_without_directories(tmp_path: Path) -> None:
    assert is_apart(tmp_path, GatewaySettings(executor="run/executor.sock"))
    assert not is_apart(tmp_path, GatewaySettings())


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("", "unix:{root}/run/executor.sock"),
        ("run/other.sock", "unix:{root}/run/other.sock"),
        ("/run/aver/x.sock", "unix:/run/aver/x.sock"),
        ("unix:/run/aver/x.sock", "unix:/run/aver/x.sock"),
        ("http://127.0.0.1:9001", "http://127.0.0.1:9001"),
    ],
)
def test_addresses(tmp_path: Path, given: str, address: str) -> None:
    directories = PartDirectories(Path("/h"))
    found = directories.find_address("executor", GatewaySettings(executor=given))
    assert str(found) == address.format(root=directories.root)


@pytest.mark.parametrize("given", ["http://example.com:80", "http://127.0.0.1", "unix:relative"])
def test_addresses_of_other_machines_are_refused(given: str) -> None:
    with pytest.raises(AverError):
        PartDirectories(Path("/h")).find_address("executor", GatewaySettings(executor=given))


# --- the pinned program


def test_a_program_that_was_changed_is_refused(home: Path) -> None:
    path = home / "gateway" / "policy0" / "program.json"
    document = json.loads(path.read_text())
    name = min(document["program"]["files"])
    document["program"]["files"][name] += "\npermit (principal, action, resource);\n"
    path.write_text(json.dumps(document))
    with pytest.raises(Refused, match="was changed after it was pinned"):
        PinnedProgram.read(path)
    address = PartDirectories(home).find_address("policy0", GatewaySettings())
    with pytest.raises(Refused, match="was changed"):
        build_policy_part(path.parent, 0, address, peer_uid=None)


def test_a_program_of_another_version_is_refused(home: Path) -> None:
    program = PinnedProgram.read(home / "gateway" / "program.json")
    for change in ({"schema": program.description["schema"] + "\n"}, {"effects_version": "other"}):
        described = {**program.description, **change}
        named = PROGRAM_PREFIX + hashlib.sha256(canonical_bytes(described)).hexdigest()
        other = PinnedProgram(named, program.pinned_at, described)
        with pytest.raises(Refused, match="another version"):
            other.build_gate()


@pytest.mark.parametrize("name", ["link-token", "program.json", "keys/policy-0.mac", "keys/policy-shared.mac"])
def test_a_policy_server_does_not_start_without_one_of_its_files(home: Path, name: str) -> None:
    directory = home / "gateway" / "policy0"
    (directory / name).unlink()
    address = PartDirectories(home).find_address("policy0", GatewaySettings())
    with pytest.raises(NotFound):
        build_policy_part(directory, 0, address, peer_uid=None)
    assert not (directory / name).exists(), "nothing is made in its place"


def test_a_policy_server_does_not_start_without_its_signing_key(home: Path) -> None:
    directory = home / "gateway" / "policy0"
    KeyStore(directory).retire("policy:0")
    address = PartDirectories(home).find_address("policy0", GatewaySettings())
    with pytest.raises(NotFound):
        build_policy_part(directory, 0, address, peer_uid=None)

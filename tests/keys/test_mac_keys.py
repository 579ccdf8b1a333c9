"""MAC keys: files and variables, rotation while a server runs, and keys that are shown nowhere."""

from __future__ import annotations

import copy
import logging
import os
import pickle
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.errors import AverError, BadInput, NotFound, Refused
from aver.keys import KeyRole, KeyStore, PublicKey, RingEntry, check_statement, sign_statement
from aver.keys.mac_keys import (
    FILE_MAX,
    KEY_MAX,
    KEY_MIN,
    KEYS_MAX,
    SHARED,
    MacKey,
    MacKeyring,
    create_mac_keys,
    mac_key_path,
    parse_mac_keys,
    read_mac_keys,
    rotate_mac_keys,
    server_mac_source,
    verifier_mac_source,
)

ONE, TWO, THREE = "11" * 32, "22" * 32, "33" * 16


def write(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o600)
    os.utime(path, (1, 1))  # The inode's change time is now, so only the bytes and times matter to a reader.


# --- entries


@pytest.mark.parametrize(
    ("text", "active", "expected"),
    [
        (f"k1:{ONE}", None, [("k1", ONE)]),
        (f"k2:{TWO},k1:{ONE}", None, [("k2", TWO), ("k1", ONE)]),
        (f"k2:{TWO}, k1:{ONE} ", "k1", [("k2", TWO), ("k1", ONE)]),
        (ONE, None, [("0", ONE)]),
        (f"{ONE},1:{TWO}", None, [("0", ONE), ("1", TWO)]),
        (THREE, None, [("0", THREE)]),
        ("ab" * KEY_MAX, None, [("0", "ab" * KEY_MAX)]),
    ],
)
def test_entries_are_read(text: str, active: str | None, expected: list[tuple[str, str]]) -> None:
    ring = parse_mac_keys(text, "X", active=active)
    assert [(kid, ring.find(kid).hex()) for kid in ring.kids] == expected
    kid, key = ring.active
    assert kid == (active or expected[0][0])
    assert key == ring.find(kid)
    assert ring.find("none") is None


@pytest.mark.parametrize(
    "text",
    [
        *("", ",", f"k1:{ONE},", f",k1:{ONE}", "k1:", f":{ONE}", f"k1:{ONE}:{TWO}", f"k1:k2:{ONE}", f"k1={ONE}"),
        *(
            f"k1:{ONE.upper()[:-2]}AB",
            f"k1:{ONE[:-1]}",
            "k1:" + "1" * (2 * KEY_MIN - 2),
            "k1:" + "1" * (2 * KEY_MAX + 2),
        ),
        *(f"k 1:{ONE}", f"-k:{ONE}", f".k:{ONE}", f"{'k' * 33}:{ONE}", f"é:{ONE}", f"k1:0x{ONE[2:]}", f"k1:{ONE}\n"),
        *(f"k1:{ONE},k1:{TWO}", f"{ONE},{TWO}", f"0:{ONE},{TWO}", f"k1:\N{FULLWIDTH DIGIT ONE}{ONE[1:]}"),
        ",".join(f"k{number}:{ONE}" for number in range(KEYS_MAX + 1)),
    ],
)
def test_other_entries_are_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(BadInput, match=r"^SOME_VARIABLE: ") as caught:
        parse_mac_keys(text, "SOME_VARIABLE")
    assert "1111" not in str(caught.value)


def test_the_active_key_must_be_there() -> None:
    with pytest.raises(BadInput, match="no key has the name 'k3'"):
        parse_mac_keys(f"k1:{ONE}", "X", active="k3")


PIECES = st.sampled_from([ONE, TWO, THREE, "k1", "k2", "0", ":", ",", " ", "\n", "A", "é", "\0"])


@given(st.one_of(st.text(max_size=100), st.lists(PIECES, max_size=12).map("".join)))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        ring = parse_mac_keys(text, "X")
    except BadInput:
        return
    written = ",".join(f"{kid}:{ring.find(kid).hex()}" for kid in ring.kids)
    assert parse_mac_keys(written, "X").kids == ring.kids
    assert written.replace("0:", "") == text.replace("0:", "").replace(" ", "")


def test_a_ring_checks_its_keys_itself() -> None:
    for keys in ([], [MacKey("", bytes(32))], [MacKey("a", bytes(15))], [MacKey("a", bytes(65))]):
        with pytest.raises(BadInput):
            MacKeyring(keys)


# --- nothing is shown


def test_no_key_is_shown(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    path = tmp_path / "policy.mac"
    create_mac_keys(path)
    ring = rotate_mac_keys(path)
    keys = [ring.find(kid) for kid in ring.kids]
    shown = f"{ring} {ring!r} {ring.active} {ring.active!r} {[ring.active]} {caplog.text}"
    for key in keys:
        assert key is not None
        assert key.hex() not in shown
        assert repr(key) not in shown
    assert repr(ring) == "<MacKeyring 2 1, active 2>"
    for copier in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="not copied or pickled"):
            copier(ring)


def test_two_servers_must_not_have_the_same_key() -> None:
    first, second = parse_mac_keys(f"a:{ONE},b:{TWO}", "X"), parse_mac_keys(f"c:{THREE},d:{TWO}", "X")
    for mine, theirs in ((first, second), (second, first)):
        with pytest.raises(BadInput, match="one could speak for the other"):
            mine.require_apart(theirs)
    first.require_apart(parse_mac_keys(f"a:{THREE}", "X"))


# --- files


def test_a_new_file_is_its_owners_alone(tmp_path: Path) -> None:
    path = mac_key_path(tmp_path / "home", 0)
    ring = create_mac_keys(path)
    assert path == tmp_path / "home" / "keys" / "policy-0.mac"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert len(ring.active.key) == 32
    assert path.read_text() == f"1:{ring.active.key.hex()}\n"
    assert read_mac_keys(path).active == ring.active
    with pytest.raises(Refused, match="exists already"):
        create_mac_keys(path)
    assert mac_key_path(tmp_path, SHARED).name == "policy-shared.mac"
    for wrong in (2, -1, "0", "../x", ""):
        with pytest.raises(BadInput, match="no policy server"):
            mac_key_path(tmp_path, wrong)


def test_rotation_puts_the_new_key_first_and_keeps_the_old_ones(tmp_path: Path) -> None:
    path = tmp_path / "policy.mac"
    rings = [create_mac_keys(path)]
    for _ in range(3):
        rings.append(rotate_mac_keys(path))
    assert rings[-1].kids == ("4", "3", "2", "1")
    assert rings[-1].active.kid == "4"
    for ring in rings:
        assert rings[-1].find(ring.active.kid) == ring.active.key
    assert len({ring.active.key for ring in rings}) == 4
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_new_kid_is_never_one_that_is_there(tmp_path: Path) -> None:
    path = tmp_path / "policy.mac"
    write(path, f"{ONE}\n")
    assert rotate_mac_keys(path).kids == ("1", "0")
    write(path, f"2026-11:{ONE}\n7:{TWO}\nk9:{THREE}\n")
    assert rotate_mac_keys(path).kids == ("8", "2026-11", "7", "k9")
    write(path, f"{'9' * 18}:{ONE}\n")
    assert rotate_mac_keys(path).kids == ("1" + "0" * 18, "9" * 18)
    assert rotate_mac_keys(path).kids[0] == "1" + "0" * 17 + "1"


def test_a_full_ring_is_not_rotated(tmp_path: Path) -> None:
    path = tmp_path / "policy.mac"
    write(path, "".join(f"{number}:{ONE}\n" for number in range(KEYS_MAX)))
    before = path.read_bytes()
    with pytest.raises(Refused, match="64 keys already"):
        rotate_mac_keys(path)
    assert path.read_bytes() == before


def test_rotations_at_the_same_time_lose_no_key(
    tmp_path: Path, start: Callable[[Callable[[], None]], int], finish: Callable[[int], int]
) -> None:
    path = tmp_path / "policy.mac"
    create_mac_keys(path)
    children = [start(lambda: [rotate_mac_keys(path) for _ in range(5)] and None) for _ in range(4)]
    assert [finish(child) for child in children] == [0] * 4
    assert read_mac_keys(path).kids == tuple(str(number) for number in range(21, 0, -1))


@pytest.mark.parametrize(
    "text",
    [
        *("", "\n", f"1:{ONE}", f"1:{ONE}\n\n", f"\n1:{ONE}\n", f"1:{ONE}\r\n", f"# keys\n1:{ONE}\n", f"1:{ONE} \n"),
        *(f"1:{ONE},2:{TWO}\n", f"1:{ONE}\n1:{TWO}\n", f"1:{ONE}\n2:{TWO[:-1]}\n", f"1:{ONE}\n2:{TWO}"),
        "x" * (FILE_MAX + 1),
    ],
)
def test_a_file_that_is_no_keyring_is_refused_and_not_repeated(tmp_path: Path, text: str) -> None:
    path = tmp_path / "policy.mac"
    write(path, text)
    for read in (read_mac_keys, rotate_mac_keys):
        with pytest.raises(BadInput, match=r"policy\.mac") as caught:
            read(path)
        assert "1111" not in str(caught.value)
    assert path.read_bytes() == text.encode()


def test_every_cut_of_a_file_is_noticed(tmp_path: Path) -> None:
    """A ring that lost its end could still hold whole lines; only the final line feed tells."""
    path = tmp_path / "policy.mac"
    whole = f"2:{TWO}\n1:{ONE}\n"
    for end in range(len(whole)):
        write(path, whole[:end])
        if whole[:end] == f"2:{TWO}\n":
            assert read_mac_keys(path).kids == ("2",)  # This is a good file: keys are retired so.
            continue
        with pytest.raises(BadInput):
            read_mac_keys(path)


def test_files_that_others_can_touch_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "keys" / "policy.mac"
    create_mac_keys(path)
    for mode in (0o640, 0o604, 0o620, 0o602):
        path.chmod(mode)
        with pytest.raises(Refused, match="by others"):
            read_mac_keys(path)
    path.chmod(0o600)
    path.parent.chmod(0o777)
    for use in (read_mac_keys, rotate_mac_keys):
        with pytest.raises(Refused, match="can be written by others"):
            use(path)
    path.parent.chmod(0o700)
    link = path.with_name("link.mac")
    link.symlink_to(path)
    with pytest.raises(Refused, match="symbolic link"):
        read_mac_keys(link)
    with pytest.raises(Refused, match="exists already"):
        create_mac_keys(link)
    with pytest.raises(NotFound, match="no MAC key"):
        read_mac_keys(path.with_name("none.mac"))


# --- where a part finds its keys


def test_the_environment_wins_over_the_file_and_the_plural_over_the_singular(tmp_path: Path) -> None:
    path = tmp_path / "policy.mac"
    write(path, f"f:{THREE}\n")
    both = {"POLICY_MAC_KEYS": f"b:{TWO},a:{ONE}", "POLICY_MAC_KEY": ONE}
    for environment, expected in [
        (both, "b"),
        ({**both, "POLICY_MAC_ACTIVE_KID": "a"}, "a"),
        ({"POLICY_MAC_KEY": ONE}, "0"),
        ({"POLICY_MAC_KEY": f"s:{ONE}"}, "s"),
        ({"POLICY_MAC_KEYS": "", "POLICY_MAC_KEY": ONE}, "0"),
        ({"POLICY0_MAC_KEYS": f"b:{TWO}"}, "f"),
        ({"POLICY_MAC_KEYS": "", "POLICY_MAC_ACTIVE_KID": ""}, "f"),
    ]:
        assert server_mac_source(path, environment).load().active.kid == expected
    for wrong in ({**both, "POLICY_MAC_ACTIVE_KID": "c"}, {"POLICY_MAC_KEYS": "k1:short", "POLICY_MAC_KEY": ONE}):
        with pytest.raises(BadInput, match="POLICY_MAC_KEYS"):
            server_mac_source(path, wrong)


def test_a_verifier_has_the_keys_of_both_servers(tmp_path: Path) -> None:
    environment = {
        "POLICY0_MAC_KEYS": f"a:{ONE}",
        "POLICY1_MAC_KEY": TWO,
        "POLICY_MAC_KEYS": f"x:{THREE}",
        "POLICY_MAC_ACTIVE_KID": "x",
    }
    assert verifier_mac_source(0, None, environment).load().find("a") == bytes.fromhex(ONE)
    assert verifier_mac_source(1, None, environment).load().find("0") == bytes.fromhex(TWO)
    with pytest.raises(NotFound, match="no MAC key"):
        verifier_mac_source(1, None, {}).load()
    with pytest.raises(NotFound):
        verifier_mac_source(1, tmp_path / "none.mac", {}).load()


def test_the_process_environment_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLICY_MAC_KEYS", f"e:{ONE}")
    assert server_mac_source(None).load().kids == ("e",)
    monkeypatch.delenv("POLICY_MAC_KEYS")
    with pytest.raises(NotFound, match="no MAC key"):
        server_mac_source(None).load()


def test_the_active_key_of_a_file_can_be_named(tmp_path: Path) -> None:
    path = tmp_path / "policy.mac"
    write(path, f"2:{TWO}\n1:{ONE}\n")
    assert server_mac_source(path, {"POLICY_MAC_ACTIVE_KID": "1"}).load().active.kid == "1"
    with pytest.raises(BadInput, match="no key has the name"):
        server_mac_source(path, {"POLICY_MAC_ACTIVE_KID": "9"}).load()


def test_a_running_part_sees_a_rotation_at_once(tmp_path: Path) -> None:
    path = tmp_path / "policy.mac"
    create_mac_keys(path)
    source = verifier_mac_source(0, path, {})
    for number in range(2, 8):
        before = source.load()
        ring = rotate_mac_keys(path)
        assert source.load().active == ring.active
        assert source.load().find(before.active.kid) == before.active.key
        assert source.load().kids[0] == str(number)


def test_a_file_that_did_not_change_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "policy.mac"
    create_mac_keys(path)
    source = server_mac_source(path, {})
    monkeypatch.setattr("aver.keys.mac_keys.UNSETTLED_NS", -1)
    assert source.load() is source.load()
    rotate_mac_keys(path)
    assert source.load().kids == ("2", "1")


@pytest.mark.parametrize("damage", ["removed", "opened to others", "overwritten"])
def test_a_part_whose_keys_went_bad_fails_closed(tmp_path: Path, damage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aver.keys.mac_keys.UNSETTLED_NS", -1)
    path = tmp_path / "policy.mac"
    create_mac_keys(path)
    source = server_mac_source(path, {})
    source.load()
    if damage == "removed":
        path.unlink()
    elif damage == "opened to others":
        path.chmod(0o644)
    else:
        path.write_text("nonsense")
    with pytest.raises(AverError):
        source.load()


def test_threads_may_share_a_source(tmp_path: Path) -> None:
    path = tmp_path / "policy.mac"
    create_mac_keys(path)
    source, failures = server_mac_source(path, {}), []

    def load() -> None:
        for _ in range(200):
            try:
                source.load()
            except AverError as error:
                failures.append(error)

    threads = [threading.Thread(target=load) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        rotate_mac_keys(path)
    for thread in threads:
        thread.join()
    assert failures == []
    assert source.load().kids[0] == "21"


# --- the identities of the policy servers


def test_policy_servers_have_keys_of_their_own(store: KeyStore, home: Path) -> None:
    """Their private keys and their MAC keys lie side by side, and neither takes the other for a leftover."""
    entries: dict[int, RingEntry] = {}
    for number in (0, 1):
        create_mac_keys(mac_key_path(home, number))
        entries[number] = store.create(f"policy:{number}")
    create_mac_keys(mac_key_path(home, SHARED))
    rotated = store.rotate("policy:0").new
    for number, entry in ((0, rotated), (1, entries[1])):
        assert (entry.identity, entry.purpose) == (f"policy:{number}", "policy")
        content: dict[str, Any] = {"v": 1, "server_id": number}
        statement = sign_statement("policy", content, [store.signer(entry.identity, create=False)])
        [result] = check_statement(statement, store.ring())
        assert result.outcome == "valid"
        assert isinstance(result.key, PublicKey)
        found = store.ring().entry_of(result.key)
        assert found is not None
        assert [found.role.may_attest_policy(server) for server in (0, 1)] == [number == 0, number == 1]
        assert not found.role.may_seal
        assert not found.role.may_attest
        assert read_mac_keys(mac_key_path(home, number)).kids == ("1",)
    assert read_mac_keys(mac_key_path(home, SHARED)).kids == ("1",)


def test_only_a_policy_key_attests_policy() -> None:
    for role in (
        KeyRole("ledger", "seal"),
        KeyRole("ledger", "policy"),
        KeyRole("policy:0", "seal"),
        KeyRole("policy:00", "policy"),
        KeyRole("agent:0", "policy"),
        KeyRole("person:0", "approve"),
    ):
        assert not role.may_attest_policy(0), role
    assert KeyRole("policy:0", "policy").may_attest_policy(0)

"""What `aver keys` does, action by action."""

from __future__ import annotations

import argparse
import getpass
import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from aver.cli.files import check_free, write_new
from aver.cli.output import Errors, Painted, Part, Screen, plural, print_json
from aver.errors import BadInput, NotFound
from aver.home import Config, load_config
from aver.keys import KeyStore, PublicKey, RingEntry, read_keys

__all__ = ["ACTIONS"]

PASSPHRASE_MAX = 1024
"""Bytes of a passphrase read from a descriptor."""


def _store() -> KeyStore:
    config = load_config()
    return KeyStore(config.home, lock_timeout=config.lock_timeout)


# --- looking


def _show(given: argparse.Namespace, screen: Screen) -> None:
    ring = _store().ring()
    if given.json:
        print_json({"keys": [_entry(entry) for entry in ring.entries], "known": list(map(_key, ring.known.values()))})
        return
    if not ring.entries and not ring.known:
        Errors().note("no keys yet; the first aver seal makes one for the ledger")
    own: list[list[Part]] = [
        [
            entry.identity,
            entry.fingerprint,
            _status(entry),
            entry.purpose,
            f"epoch {entry.epoch}",
            entry.algorithm,
        ]
        for entry in ring.entries
    ]
    known: list[list[Part]] = [
        ["(another's)", key.fingerprint, "known", "", "", key.algorithm] for key in ring.known.values()
    ]
    screen.table([*own, *known], header=("identity", "fingerprint", "status", "purpose", "", "algorithm"))


def _status(entry: RingEntry) -> Painted:
    if entry.retired_at is None:
        return Painted(f"active since {entry.created_at[:10]}", "good")
    return Painted(f"retired {entry.retired_at[:10]}", "dim")


def _export(given: argparse.Namespace, screen: Screen) -> None:
    if given.out:
        check_free(Path(given.out))
    document = _store().export(given.name)
    if given.out:
        write_new(Path(given.out), json.dumps(document, indent=2).encode("ascii") + b"\n")
        found = len(document["keys"])
        (Errors() if given.json else screen).line(f"wrote {given.out}: {plural(found, 'public key')} of {given.name}")
    if given.json or not given.out:
        print_json(document)


# --- our keys


def _new(given: argparse.Namespace, screen: Screen) -> None:
    person = given.identity.startswith("person:")
    passphrase = _passphrase(given, new=True) if person or given.passphrase_fd is not None else None
    post_quantum = given.pq or load_config().post_quantum
    entry = _store().create(given.identity, purpose=given.purpose, post_quantum=post_quantum, passphrase=passphrase)
    if given.json:
        print_json({"key": _entry(entry)})
        return
    screen.line(f"made a key for {entry.identity}: {entry.fingerprint} ({entry.algorithm}, to {entry.purpose})")


def _rotate(given: argparse.Namespace, screen: Screen) -> None:
    config = load_config()
    store = _store()
    person = given.identity.startswith("person:")
    passphrase = _passphrase(given, new=False) if person or given.passphrase_fd is not None else None
    rotation = store.rotate(given.identity, passphrase=passphrase, post_quantum=given.pq)
    recorded = given.identity == "ledger" and _record_in_ledger(config)
    for path in rotation.remains:
        Errors().note(f"could not destroy the old private key {path}; the next change of keys tries again")
    if given.json:
        described = {"old": _entry(rotation.old), "new": _entry(rotation.new), "recorded": recorded}
        print_json({**described, "remains": [str(path) for path in rotation.remains]})
        return
    screen.line(f"{given.identity} signs with {rotation.new.fingerprint} now ({rotation.new.algorithm})")
    screen.line(f"{rotation.old.fingerprint} is retired, its private key destroyed")
    if recorded:
        screen.line("the rotation is recorded in the ledger: what the old key signs from now on is KEY_RETIRED")
    screen.line("whoever verifies elsewhere needs the new public key: aver keys export")


def _record_in_ledger(config: Config) -> bool:
    """Record the rotation with the heads of all chains at once, where there is a ledger, rather than at its next
    append: the sooner, the less the old key can still pretend to have signed."""
    from aver.ledger import open_ledger, tenants_of

    try:
        tenants = tenants_of()
    except NotFound:
        return False
    for tenant in tenants:
        with open_ledger(tenant=tenant, create=False) as ledger:
            ledger.record_keys()
    return bool(tenants)


def _passphrase(given: argparse.Namespace, *, new: bool) -> str:
    """From the descriptor given, or from a person at the terminal, who types a new one twice."""
    if given.passphrase_fd is not None:
        return _passphrase_from(given.passphrase_fd)
    words = getpass.getpass(f"Passphrase for {given.identity}: ")
    if new and getpass.getpass("The same again: ") != words:
        raise BadInput("the two passphrases differ", advice="try again")
    return _usable(words)


def _passphrase_from(descriptor: int) -> str:
    try:
        with os.fdopen(os.dup(descriptor), "rb") as file:
            raw = file.readline(PASSPHRASE_MAX + 1)
    except OSError as error:
        raise BadInput(f"cannot read the passphrase from descriptor {descriptor}: {error.strerror}") from error
    if len(raw) > PASSPHRASE_MAX:
        raise BadInput(f"the passphrase is longer than {PASSPHRASE_MAX} bytes")
    try:
        return _usable(raw.decode("utf-8").rstrip("\r\n"))
    except UnicodeDecodeError:
        raise BadInput("the passphrase is not UTF-8") from None


def _usable(words: str) -> str:
    if not words:
        raise BadInput("the passphrase is empty", advice="a few words that nobody can guess will do")
    return words


# --- other people's keys


def _import(given: argparse.Namespace, screen: Screen) -> None:
    keys = read_keys(given.path)
    wanted = set(given.trust)
    missing = wanted - {key.fingerprint for key in keys}
    if missing:
        raise NotFound(f"{given.path} holds no key {min(missing)}", advice=f"aver keys import {given.path} lists them")
    fates = _registered(keys, wanted) if wanted else _looked_up(keys)
    _print_fates(given, screen, keys, fates)
    if not wanted and "not registered" in fates.values():
        Errors().note("nothing was registered: compare a fingerprint with its owner, then give --trust FINGERPRINT")


def _trust(given: argparse.Namespace, screen: Screen) -> None:
    keys = read_keys(given.key)
    _print_fates(given, screen, keys, _registered(keys, {key.fingerprint for key in keys}))


def _forget(given: argparse.Namespace, screen: Screen) -> None:
    _store().forget(given.fingerprint)
    if given.json:
        print_json({"forgotten": given.fingerprint})
    else:
        screen.line(f"{given.fingerprint} is not known any more")


def _registered(keys: Iterable[PublicKey], trust: set[str]) -> dict[str, str]:
    imported = _store().import_keys(keys, trust=trust)
    return {
        **{key.fingerprint: "registered" for key in imported.registered},
        **{key.fingerprint: "known already" for key in imported.already_known},
        **{key.fingerprint: "not registered" for key in imported.left_out},
    }


def _looked_up(keys: Iterable[PublicKey]) -> dict[str, str]:
    """What is known of these keys, without writing anything."""
    ring = _store().ring()
    return {
        key.fingerprint: "known already" if key in ring.lookup(key.fingerprint) else "not registered" for key in keys
    }


def _print_fates(
    given: argparse.Namespace, screen: Screen, keys: Iterable[PublicKey], fates: Mapping[str, str]
) -> None:
    if given.json:
        print_json({"keys": [{**_key(key), "fate": fates[key.fingerprint].replace(" ", "_")} for key in keys]})
        return
    styles = {"registered": "good", "not registered": "warn"}
    rows: list[list[Part]] = []
    for key in keys:
        fate = fates[key.fingerprint]
        rows.append([key.fingerprint, Painted(fate, styles.get(fate, "dim")), key.algorithm])
    screen.table(rows)


def _entry(entry: RingEntry) -> dict[str, Any]:
    return {name: value for name, value in entry.to_dict().items() if name != "statement"}


def _key(key: PublicKey) -> dict[str, Any]:
    return {
        "fingerprint": key.fingerprint,
        "algorithm": key.algorithm,
        "public_key": key.ed25519,
        "public_key_pq": key.ml_dsa_65,
    }


ACTIONS: Mapping[str, Callable[[argparse.Namespace, Screen], None]] = {
    "show": _show,
    "new": _new,
    "rotate": _rotate,
    "export": _export,
    "import": _import,
    "trust": _trust,
    "forget": _forget,
}

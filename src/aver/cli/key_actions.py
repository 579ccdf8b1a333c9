"""What `aver keys` does, action by action."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from aver.cli.files import check_free, write_new
from aver.cli.options import Usage
from aver.cli.output import Errors, Painted, Part, Screen, plural, print_json
from aver.cli.passphrases import ask_passphrase
from aver.errors import BadInput, NotFound
from aver.home import load_config
from aver.keys import LEDGER, KeyStore, PublicKey, RingEntry, read_keys

__all__ = ["ACTIONS"]


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
    entry = _made(given) if given.ssh_agent is None else _held_by_agent(given)
    if given.json:
        print_json({"key": _entry(entry)})
        return
    did = "made a key for" if given.ssh_agent is None else "registered the key in ssh-agent as that of"
    screen.line(f"{did} {entry.identity}: {entry.fingerprint} ({entry.algorithm}, to {entry.purpose})")


def _made(given: argparse.Namespace) -> RingEntry:
    post_quantum = given.pq or load_config().post_quantum
    passphrase = _passphrase(given, new=True)
    return _store().create(given.identity, purpose=given.purpose, post_quantum=post_quantum, passphrase=passphrase)


def _held_by_agent(given: argparse.Namespace) -> RingEntry:
    """Register a key that ssh-agent holds: the one that is named, or the only one."""
    from aver.keys.agent import agent_keys

    if given.pq or given.passphrase_fd is not None:
        raise Usage(
            "ssh-agent holds the key: there is nothing to make or to lock here", advice="give --ssh-agent alone"
        )
    held = agent_keys()
    named = [key for key in held if given.ssh_agent in ("", key.public.fingerprint, key.comment)]
    if len(named) != 1:
        listed = ", ".join(f"{key.public.fingerprint} ({key.comment})" for key in held) or "no Ed25519 key"
        raise BadInput(f"{len(named)} keys in ssh-agent fit", advice=f"name one by its fingerprint; it holds {listed}")
    return _store().register(given.identity, named[0].public, purpose=given.purpose)


def _passphrase(given: argparse.Namespace, *, new: bool) -> str | None:
    """The passphrase, where the key is to be under one, or is."""
    if not given.identity.startswith("person:") and given.passphrase_fd is None:
        return None
    return ask_passphrase(given.identity, given.passphrase_fd, new=new)


def _rotate(given: argparse.Namespace, screen: Screen) -> None:
    rotation = _store().rotate(given.identity, passphrase=_passphrase(given, new=False), post_quantum=given.pq)
    recorded = _record_in_ledger(given.identity)
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


def _record_in_ledger(identity: str) -> bool:
    """Record the rotation with the heads of all chains at once, where there is a ledger, rather than at its next
    append: the sooner, the less the old key can still pretend to have signed. An approver's goes onto the rosters."""
    from aver.gate.approvals import record_rotations
    from aver.ledger import open_ledger, tenants_of

    if identity != LEDGER and not identity.startswith("person:"):
        return False
    try:
        tenants = tenants_of()
    except NotFound:
        return False
    recorded = False
    for tenant in tenants:
        with open_ledger(tenant=tenant, create=False) as ledger:
            if identity == LEDGER:
                ledger.record_keys()
            recorded |= identity == LEDGER or record_rotations(ledger) > 0
    return recorded


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

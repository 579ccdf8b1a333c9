"""`aver keys`: our keys and the ones we know. Looking creates nothing; importing trusts nobody by itself.

What `aver keys` does, action by action.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from aver.cli.files import check_new_path, write_new_file
from aver.cli.options import Parser, Usage, add_json, parse_count
from aver.cli.passphrase import ask_passphrase
from aver.cli.terminal import LinePart, Screen, StderrScreen, StyledText, print_json
from aver.config import load_config
from aver.errors import BadInput, NotFound
from aver.keys import LEDGER, KeyStore, PublicKey, RingEntry, read_public_keys
from aver.text import plural

__all__ = ["ACTIONS", "EXAMPLES", "add_arguments", "run"]


EXAMPLES = """\
  aver keys show
  aver keys new agent:builder
  aver keys rotate                            a new key for the ledger, vouched for by the old one
  aver keys export --out our-keys.json        public keys, to give to whoever verifies
  aver keys import their-keys.json            lists what is in it; trusts nothing
  aver keys import their-keys.json --trust 3f0c9a1b2d4e5f60"""

IDENTITY_HELP = "ledger, agent:NAME, person:NAME or policy:NAME"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=Parser)
    _add_action_parser(actions, "show", "list our keys and the ones we know", "  aver keys show --json")
    _add_new_parser(actions)
    _add_rotate_parser(actions)
    _add_export_parser(actions)
    _add_import_parser(actions)
    _add_trust_parser(actions)
    _add_forget_parser(actions)


def run(given: argparse.Namespace, screen: Screen) -> int:

    ACTIONS[given.action](given, screen)
    return 0


def _add_action_parser(actions: Any, name: str, summary: str, examples: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = actions.add_parser(name, help=summary, summary=summary, examples=examples)
    add_json(parser)
    return parser


def _add_new_parser(actions: Any) -> None:
    examples = (
        "  aver keys new agent:builder\n"
        "  aver keys new person:ada             asks for a passphrase\n"
        "  aver keys new person:ada --ssh-agent registers the key that ssh-agent holds"
    )
    new = _add_action_parser(actions, "new", "make a key for an identity", examples)
    new.add_argument("identity", metavar="IDENTITY", help=IDENTITY_HELP)
    new.add_argument("--purpose", help="seal, approve, policy or checkpoint (default: by identity)")
    new.add_argument("--pq", action="store_true", help="with an ML-DSA-65 half beside Ed25519")
    new.add_argument(
        "--ssh-agent",
        nargs="?",
        const="",
        metavar="KEY",
        help="no new key: the Ed25519 key that ssh-agent holds, by fingerprint or comment where there are several",
    )
    _add_passphrase_option(new)


def _add_rotate_parser(actions: Any) -> None:
    summary = "replace an identity's key; the old private key is destroyed"
    rotate = _add_action_parser(actions, "rotate", summary, "  aver keys rotate\n  aver keys rotate agent:builder --pq")
    rotate.add_argument("identity", nargs="?", default="ledger", metavar="IDENTITY", help="(default: ledger)")
    rotate.add_argument("--pq", action="store_true", default=None, help="give the new key an ML-DSA-65 half")
    _add_passphrase_option(rotate)


def _add_passphrase_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--passphrase-fd", type=parse_count, metavar="N", help="read the passphrase's line from this file descriptor"
    )


def _add_export_parser(actions: Any) -> None:
    examples = "  aver keys export --out our-keys.json\n  aver keys export agent:builder"
    export = _add_action_parser(actions, "export", "write public keys, for whoever verifies", examples)
    export.add_argument(
        "name", nargs="?", default="ledger", metavar="NAME", help="identity or fingerprint (default: ledger)"
    )
    export.add_argument("--out", metavar="FILE", help="write here (default: stdout)")


def _add_import_parser(actions: Any) -> None:
    summary = "list the public keys in a file or directory, and trust those you name"
    examples = "  aver keys import bundle/index.json\n  aver keys import bundle/index.json --trust 3f0c9a1b2d4e5f60"
    importing = _add_action_parser(actions, "import", summary, examples)
    importing.add_argument("path", metavar="PATH", help="an export, a keyring, a bundle's index, or their directory")
    importing.add_argument(
        "--trust", action="append", default=[], metavar="FINGERPRINT", help="register this key; repeat for more"
    )


def _add_trust_parser(actions: Any) -> None:
    examples = "  aver keys trust their-keys.json\n  aver keys trust HEX                  64 hex digits"
    trust = _add_action_parser(actions, "trust", "register other parties' public keys as known", examples)
    trust.add_argument("key", metavar="HEX|FILE", help="a public key in hex, or a file of keys, all of which you trust")


def _add_forget_parser(actions: Any) -> None:
    forget = _add_action_parser(
        actions, "forget", "stop knowing another party's key", "  aver keys forget 3f0c9a1b2d4e5f60"
    )
    forget.add_argument("fingerprint", metavar="FINGERPRINT")


def _open_store() -> KeyStore:
    config = load_config()
    return KeyStore(config.home, lock_timeout=config.lock_timeout)


# --- looking


def _show_keys(given: argparse.Namespace, screen: Screen) -> None:
    ring = _open_store().ring()
    if given.json:
        print_json(
            {
                "keys": [_entry_to_dict(entry) for entry in ring.entries],
                "known": list(map(_key_to_dict, ring.known.values())),
            }
        )
        return
    if not ring.entries and not ring.known:
        StderrScreen().print_note("no keys yet; the first aver seal makes one for the ledger")
    own: list[list[LinePart]] = [
        [
            entry.identity,
            entry.fingerprint,
            _key_status(entry),
            entry.purpose,
            f"epoch {entry.epoch}",
            entry.algorithm,
        ]
        for entry in ring.entries
    ]
    known: list[list[LinePart]] = [
        ["(another's)", key.fingerprint, "known", "", "", key.algorithm] for key in ring.known.values()
    ]
    screen.print_table([*own, *known], header=("identity", "fingerprint", "status", "purpose", "", "algorithm"))


def _key_status(entry: RingEntry) -> StyledText:
    if entry.retired_at is None:
        return StyledText(f"active since {entry.created_at[:10]}", "good")
    return StyledText(f"retired {entry.retired_at[:10]}", "dim")


def _export_keys(given: argparse.Namespace, screen: Screen) -> None:
    if given.out:
        check_new_path(Path(given.out))
    document = _open_store().export(given.name)
    if given.out:
        write_new_file(Path(given.out), json.dumps(document, indent=2).encode("ascii") + b"\n")
        found = len(document["keys"])
        (StderrScreen() if given.json else screen).print_line(
            f"wrote {given.out}: {plural(found, 'public key')} of {given.name}"
        )
    if given.json or not given.out:
        print_json(document)


# --- our keys


def _create_key(given: argparse.Namespace, screen: Screen) -> None:
    entry = _generate_key(given) if given.ssh_agent is None else _register_agent_key(given)
    if given.json:
        print_json({"key": _entry_to_dict(entry)})
        return
    did = "made a key for" if given.ssh_agent is None else "registered the key in ssh-agent as that of"
    screen.print_line(f"{did} {entry.identity}: {entry.fingerprint} ({entry.algorithm}, to {entry.purpose})")


def _generate_key(given: argparse.Namespace) -> RingEntry:
    post_quantum = given.pq or load_config().post_quantum
    passphrase = _ask_needed_passphrase(given, new=True)
    return _open_store().create(given.identity, purpose=given.purpose, post_quantum=post_quantum, passphrase=passphrase)


def _register_agent_key(given: argparse.Namespace) -> RingEntry:
    """Register a key that ssh-agent holds: the one that is named, or the only one."""
    from aver.keys.ssh_agent import list_ssh_agent_keys

    if given.pq or given.passphrase_fd is not None:
        raise Usage(
            "ssh-agent holds the key: there is nothing to make or to lock here", advice="give --ssh-agent alone"
        )
    held = list_ssh_agent_keys()
    named = [key for key in held if given.ssh_agent in ("", key.public.fingerprint, key.comment)]
    if len(named) != 1:
        listed = ", ".join(f"{key.public.fingerprint} ({key.comment})" for key in held) or "no Ed25519 key"
        raise BadInput(f"{len(named)} keys in ssh-agent fit", advice=f"name one by its fingerprint; it holds {listed}")
    return _open_store().register(given.identity, named[0].public, purpose=given.purpose)


def _ask_needed_passphrase(given: argparse.Namespace, *, new: bool) -> str | None:
    """The passphrase, where the key is to be under one, or is."""
    if not given.identity.startswith("person:") and given.passphrase_fd is None:
        return None
    return ask_passphrase(given.identity, given.passphrase_fd, new=new)


def _rotate_key(given: argparse.Namespace, screen: Screen) -> None:
    rotation = _open_store().rotate(
        given.identity, passphrase=_ask_needed_passphrase(given, new=False), post_quantum=given.pq
    )
    recorded = _record_rotation(given.identity)
    for path in rotation.remains:
        StderrScreen().print_note(f"could not destroy the old private key {path}; the next change of keys tries again")
    if given.json:
        described = {"old": _entry_to_dict(rotation.old), "new": _entry_to_dict(rotation.new), "recorded": recorded}
        print_json({**described, "remains": [str(path) for path in rotation.remains]})
        return
    screen.print_line(f"{given.identity} signs with {rotation.new.fingerprint} now ({rotation.new.algorithm})")
    screen.print_line(f"{rotation.old.fingerprint} is retired, its private key destroyed")
    if recorded:
        screen.print_line("the rotation is recorded in the ledger: what the old key signs from now on is KEY_RETIRED")
    screen.print_line("whoever verifies elsewhere needs the new public key: aver keys export")


def _record_rotation(identity: str) -> bool:
    """Record the rotation with the heads of all chains at once, where there is a ledger, rather than at its next
    append: the sooner, the less the old key can still pretend to have signed. An approver's goes onto the rosters."""
    from aver.gate.approvals import record_rotations
    from aver.ledger import list_tenants, open_ledger

    if identity != LEDGER and not identity.startswith("person:"):
        return False
    try:
        tenants = list_tenants()
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


def _import_keys(given: argparse.Namespace, screen: Screen) -> None:
    keys = read_public_keys(given.path)
    wanted = set(given.trust)
    missing = wanted - {key.fingerprint for key in keys}
    if missing:
        raise NotFound(f"{given.path} holds no key {min(missing)}", advice=f"aver keys import {given.path} lists them")
    fates = _register_keys(keys, wanted) if wanted else _look_up_keys(keys)
    _print_import_results(given, screen, keys, fates)
    if not wanted and "not registered" in fates.values():
        StderrScreen().print_note(
            "nothing was registered: compare a fingerprint with its owner, then give --trust FINGERPRINT"
        )


def _trust_keys(given: argparse.Namespace, screen: Screen) -> None:
    keys = read_public_keys(given.key)
    _print_import_results(given, screen, keys, _register_keys(keys, {key.fingerprint for key in keys}))


def _forget_key(given: argparse.Namespace, screen: Screen) -> None:
    _open_store().forget(given.fingerprint)
    if given.json:
        print_json({"forgotten": given.fingerprint})
    else:
        screen.print_line(f"{given.fingerprint} is not known any more")


def _register_keys(keys: Iterable[PublicKey], trust: set[str]) -> dict[str, str]:
    imported = _open_store().import_keys(keys, trust=trust)
    return {
        **{key.fingerprint: "registered" for key in imported.registered},
        **{key.fingerprint: "known already" for key in imported.already_known},
        **{key.fingerprint: "not registered" for key in imported.left_out},
    }


def _look_up_keys(keys: Iterable[PublicKey]) -> dict[str, str]:
    """What is known of these keys, without writing anything."""
    ring = _open_store().ring()
    return {
        key.fingerprint: "known already" if key in ring.lookup(key.fingerprint) else "not registered" for key in keys
    }


def _print_import_results(
    given: argparse.Namespace, screen: Screen, keys: Iterable[PublicKey], fates: Mapping[str, str]
) -> None:
    if given.json:
        print_json({"keys": [{**_key_to_dict(key), "fate": fates[key.fingerprint].replace(" ", "_")} for key in keys]})
        return
    styles = {"registered": "good", "not registered": "warn"}
    rows: list[list[LinePart]] = []
    for key in keys:
        fate = fates[key.fingerprint]
        rows.append([key.fingerprint, StyledText(fate, styles.get(fate, "dim")), key.algorithm])
    screen.print_table(rows)


def _entry_to_dict(entry: RingEntry) -> dict[str, Any]:
    return {name: value for name, value in entry.to_dict().items() if name != "statement"}


def _key_to_dict(key: PublicKey) -> dict[str, Any]:
    return {
        "fingerprint": key.fingerprint,
        "algorithm": key.algorithm,
        "public_key": key.ed25519,
        "public_key_pq": key.ml_dsa_65,
    }


ACTIONS: Mapping[str, Callable[[argparse.Namespace, Screen], None]] = {
    "show": _show_keys,
    "new": _create_key,
    "rotate": _rotate_key,
    "export": _export_keys,
    "import": _import_keys,
    "trust": _trust_keys,
    "forget": _forget_key,
}

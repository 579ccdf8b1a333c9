"""`aver keys`: manages your own keys and the keys of others that you trust.

Showing keys creates none. Importing a file trusts no key by itself.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aver.cli.options import (
    Parser,
    Usage,
    add_action_parser,
    add_force,
    add_json,
    add_ledger,
    add_passphrase_fd,
    add_tenant,
)
from aver.cli.terminal import LinePart, Screen, StderrScreen, StyledText, ask_passphrase, print_json
from aver.config import load_config
from aver.errors import BadInput, NotFound
from aver.files.new_file import check_new_path, write_new_file
from aver.keys import LEDGER, KeyStore, PublicKey, RingEntry, read_keys
from aver.keys.algorithms import FINGERPRINT_DIGITS
from aver.keys.exchange import build_key_export, dump_key_export, fingerprint_error, half_error
from aver.text import plural

if TYPE_CHECKING:
    from aver.ledger.bundle.signers import UsedKeys

EXAMPLES = """\
  aver keys show
  aver keys new agent:builder
  aver keys rotate                            make a new key for the ledger, signed by the old one
  aver keys export --out our-keys.json        write the public keys that the ledger's records use, for a verifier
  aver keys import their-keys.json            list the keys in a file; trusts none
  aver keys import their-keys.json --trust KEY
                                              trust one of them, by all the digits that import lists"""

IDENTITY_HELP = "ledger, agent:NAME, person:NAME or policy:NAME"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=Parser)
    _add_action_parser(
        actions, "show", "list your keys and the keys of others that you trust", "  aver keys show --json"
    )
    _add_new_parser(actions)
    summary = "replace an identity's key; the old private key is deleted"
    rotate = _add_action_parser(actions, "rotate", summary, "  aver keys rotate\n  aver keys rotate agent:builder --pq")
    rotate.add_argument("identity", nargs="?", default="ledger", metavar="IDENTITY", help="(default: ledger)")
    rotate.add_argument(
        "--pq", action="store_true", default=None, help="add an ML-DSA-65 (post-quantum) key to the new key"
    )
    add_passphrase_fd(rotate)
    parser_examples = (
        "  aver keys export --out our-keys.json\n"
        "  aver keys export ledger agent:builder --out our-keys.json   these, and no others"
    )
    export = _add_action_parser(actions, "export", "write public keys, for a verifier", parser_examples)
    export.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="identity, fingerprint or key (default: all that the ledger's records use)",
    )
    export.add_argument("--out", metavar="FILE", help="write here (default: stdout)")
    add_force(export)
    add_ledger(export)
    add_tenant(export, default="all of the ledger's")
    _add_import_parser(actions)
    examples = "  aver keys trust their-keys.json\n  aver keys trust HEX                  64 hex digits"
    trust = _add_action_parser(actions, "trust", "trust the public keys of another party", examples)
    trust.add_argument(
        "key", metavar="HEX|FILE", help="a public key of 64 hex digits, or a file of keys, all of which you trust"
    )
    forget = _add_action_parser(
        actions, "forget", "stop trusting another party's key", "  aver keys forget 3f0c9a1b2d4e5f60"
    )
    forget.add_argument(
        "fingerprint", metavar="FINGERPRINT|KEY", help="all 64 digits where two known keys have one fingerprint"
    )


def run(given: argparse.Namespace, screen: Screen) -> int:
    ACTIONS[given.action](given, screen)
    return 0


def _add_action_parser(actions: Any, name: str, summary: str, examples: str) -> argparse.ArgumentParser:
    parser = add_action_parser(actions, name, summary, examples)
    add_json(parser)
    return parser


def _add_new_parser(actions: Any) -> None:
    examples = (
        "  aver keys new agent:builder\n"
        "  aver keys new person:ada             asks for a passphrase\n"
        "  aver keys new person:ada --ssh-agent uses the key in ssh-agent"
    )
    new = _add_action_parser(actions, "new", "make a key for an identity", examples)
    new.add_argument("identity", metavar="IDENTITY", help=IDENTITY_HELP)
    new.add_argument("--purpose", help="seal, approve, policy or checkpoint (default: by identity)")
    new.add_argument("--pq", action="store_true", help="add an ML-DSA-65 (post-quantum) key to the Ed25519 key")
    new.add_argument(
        "--ssh-agent",
        nargs="?",
        const="",
        metavar="KEY",
        help="use the Ed25519 key in ssh-agent; with several, name one by fingerprint or comment",
    )
    add_passphrase_fd(new)


def _add_import_parser(actions: Any) -> None:
    summary = "list the public keys in a file or directory, and trust those that you name"
    examples = (
        "  aver keys import bundle/index.json\n"
        "  aver keys import bundle/index.json --trust KEY     64 hex digits; with an ML-DSA-65 half 64:64"
    )
    importing = _add_action_parser(actions, "import", summary, examples)
    importing.add_argument(
        "path", metavar="PATH", help="a file from keys export, a keyring, a bundle's index, or a directory with one"
    )
    importing.add_argument(
        "--trust",
        action="append",
        default=[],
        metavar="KEY",
        help="trust this key, given whole: 64 hex digits, and for its ML-DSA-65 half a colon and the SHA-256 of that"
        " half, as listed without --trust; repeatable",
    )


def _open_store() -> KeyStore:
    config = load_config()
    return KeyStore(config.home, lock_timeout=config.lock_timeout)


# --- showing keys


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
    known: list[list[LinePart]] = []
    for key in ring.known.values():
        published = ring.entry_of(key)
        status = "known" if published is None or published.retired_at is None else "known, retired"
        known.append(["(other)", key.fingerprint, status, "", "", key.algorithm])
    screen.print_table([*own, *known], header=("identity", "fingerprint", "status", "purpose", "", "algorithm"))
    if own:
        note = "a fingerprint is the beginning of a key; for a verifier: aver keys export --out keys.json"
        StderrScreen().print_note(note)


def _key_status(entry: RingEntry) -> StyledText:
    if entry.retired_at is None:
        return StyledText(f"active since {entry.created_at[:10]}", "good")
    return StyledText(f"retired {entry.retired_at[:10]}", "dim")


def _export_keys(given: argparse.Namespace, screen: Screen) -> None:
    if given.out:
        check_new_path(Path(given.out), force=given.force)
    from aver.ledger.bundle.signers import UsedKeys

    used = UsedKeys(_open_store().find_keys(*given.names), ()) if given.names else _find_used_keys(given)
    if given.out:
        write_new_file(Path(given.out), dump_key_export(used.keys), force=given.force)
        (StderrScreen() if given.json else screen).print_line(
            f"wrote {given.out}: {plural(len(used.keys), 'public key')} of {', '.join(used.owners)}"
        )
    if used.unknown:
        StderrScreen().print_note(used.describe_unknown())
    if given.json or not given.out:
        print_json(build_key_export(used.keys))


def _find_used_keys(given: argparse.Namespace) -> UsedKeys:
    """The keys that the records of the ledger use; where there is no ledger yet, those of its identity."""
    from aver.ledger import list_tenants, open_ledger
    from aver.ledger.bundle.signers import UsedKeys, find_used_keys

    try:
        tenants = list_tenants(given.ledger) if given.tenant is None else [given.tenant]
        keys: dict[str, RingEntry | PublicKey] = {}
        unknown: dict[str, None] = {}
        for tenant in tenants:
            with open_ledger(given.ledger, tenant=tenant, create=False) as ledger:
                used = find_used_keys(ledger)
            keys |= {_public_key(key).ed25519: key for key in used.keys}
            unknown |= dict.fromkeys(used.unknown)
    except NotFound:
        if given.ledger or given.tenant:
            raise
        keys, unknown = {}, {}
    return UsedKeys(tuple(keys.values()) or _open_store().find_keys(LEDGER), tuple(unknown))


# --- your own keys


def _create_key(given: argparse.Namespace, screen: Screen) -> None:
    entry = _generate_key(given) if given.ssh_agent is None else _register_agent_key(given)
    if given.json:
        print_json({"key": _entry_to_dict(entry)})
        return
    did = "made a key for" if given.ssh_agent is None else "registered the ssh-agent key of"
    screen.print_line(f"{did} {entry.identity}: {entry.fingerprint} ({entry.algorithm}, to {entry.purpose})")


def _generate_key(given: argparse.Namespace) -> RingEntry:
    post_quantum = given.pq or load_config().post_quantum
    passphrase = _ask_needed_passphrase(given, new=True)
    return _open_store().create(given.identity, purpose=given.purpose, post_quantum=post_quantum, passphrase=passphrase)


def _register_agent_key(given: argparse.Namespace) -> RingEntry:
    """Register a key in ssh-agent: the one that is named, or the only one."""
    from aver.keys.ssh_agent import list_ssh_agent_keys

    if given.pq or given.passphrase_fd is not None:
        raise Usage("--ssh-agent cannot be combined with --pq or --passphrase-fd", advice="ssh-agent keeps the key")
    held = list_ssh_agent_keys()
    # `--ssh-agent` without a value is the empty string, which fits every key.
    named = [key for key in held if given.ssh_agent in ("", key.public.fingerprint, key.comment)]
    if len(named) != 1:
        listed = ", ".join(f"{key.public.fingerprint} ({key.comment})" for key in held) or "no Ed25519 key"
        raise BadInput(
            f"{len(named)} keys in ssh-agent match", advice=f"name one by its fingerprint; ssh-agent has {listed}"
        )
    return _open_store().register(given.identity, named[0].public, purpose=given.purpose)


def _ask_needed_passphrase(given: argparse.Namespace, *, new: bool) -> str | None:
    """The passphrase, if the key is or will be protected by one; otherwise None."""
    if not given.identity.startswith("person:") and given.passphrase_fd is None:
        return None
    return ask_passphrase(given.identity, given.passphrase_fd, new=new)


def _rotate_key(given: argparse.Namespace, screen: Screen) -> None:
    rotation = _open_store().rotate(
        given.identity, passphrase=_ask_needed_passphrase(given, new=False), post_quantum=given.pq
    )
    recorded = _record_rotation(given.identity)
    for path in rotation.remains:
        StderrScreen().print_note(f"could not delete the old private key {path}; the next key change tries again")
    if given.json:
        described = {"old": _entry_to_dict(rotation.old), "new": _entry_to_dict(rotation.new), "recorded": recorded}
        print_json({**described, "remains": [str(path) for path in rotation.remains]})
        return
    screen.print_line(f"{given.identity} now signs with {rotation.new.fingerprint} ({rotation.new.algorithm})")
    screen.print_line(f"{rotation.old.fingerprint} is retired, and its private key is deleted")
    if recorded:
        screen.print_line(
            "the rotation is recorded in the ledger: verification rejects later signatures by the old key (KEY_RETIRED)"
        )
    screen.print_line("verifiers elsewhere need the new public key: aver keys export")


def _record_rotation(identity: str) -> bool:
    """Record a rotation in the ledger at once. Returns whether anything was recorded.

    The ledger would record it with the next append. Until then, a stolen old key could still sign records that look
    good. A rotation of an approver's key is recorded in the rosters.
    """
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


# --- the keys of others


def _import_keys(given: argparse.Namespace, screen: Screen) -> None:
    keys = read_keys(given.path)
    wanted = set(given.trust)
    # A stranger can make a key with the same fingerprint in fifteen tries, so the user must confirm the whole key.
    if short := next((name for name in given.trust if len(name) == FINGERPRINT_DIGITS), None):
        raise fingerprint_error(short)
    publics = [_public_key(key) for key in keys]
    if half := next((key for key in publics if key.ml_dsa_65 and key.ed25519 in wanted), None):
        raise half_error(half)
    missing = wanted - {key.confirmation for key in publics}
    if missing:
        raise NotFound(f"{given.path} has no key {min(missing)}", advice=f"aver keys import {given.path} lists them")
    fates = _register_keys(keys, wanted) if wanted else _look_up_keys(keys)
    _print_import_results(given, screen, keys, fates)
    if not wanted and "not registered" in fates.values():
        StderrScreen().print_note(
            "no key was registered: compare all digits of a key with its owner, then give --trust KEY"
        )


def _trust_keys(given: argparse.Namespace, screen: Screen) -> None:
    keys = read_keys(given.key)
    _print_import_results(given, screen, keys, _register_keys(keys, {_public_key(key).confirmation for key in keys}))


def _forget_key(given: argparse.Namespace, screen: Screen) -> None:
    _open_store().forget(given.fingerprint)
    if given.json:
        print_json({"forgotten": given.fingerprint})
    else:
        screen.print_line(f"{given.fingerprint} is no longer trusted")


def _register_keys(keys: Iterable[PublicKey | RingEntry], trust: set[str]) -> dict[str, str]:
    imported = _open_store().import_keys(keys, trust=trust)
    return {
        **{_public_key(key).ed25519: "registered" for key in imported.registered},
        **{_public_key(key).ed25519: "known already" for key in imported.already_known},
        **{_public_key(key).ed25519: "not registered" for key in imported.left_out},
    }


def _look_up_keys(keys: Iterable[PublicKey | RingEntry]) -> dict[str, str]:
    """Which of these keys are known already. Writes nothing."""
    ring = _open_store().ring()
    return {
        key.ed25519: "known already" if key in ring.lookup(key.fingerprint) else "not registered"
        for key in map(_public_key, keys)
    }


def _print_import_results(
    given: argparse.Namespace, screen: Screen, keys: Iterable[PublicKey | RingEntry], fates: Mapping[str, str]
) -> None:
    """Print each key whole: its first digits are not enough to compare it with its owner."""
    if given.json:
        listed = []
        for key in keys:
            retired = {"retired_at": key.retired_at} if isinstance(key, RingEntry) and key.retired_at else {}
            public = _public_key(key)
            listed.append({**_key_to_dict(public), **retired, "fate": fates[public.ed25519].replace(" ", "_")})
        print_json({"keys": listed})
        return
    styles = {"registered": "good", "not registered": "warn"}
    rows: list[list[LinePart]] = []
    for key in keys:
        public = _public_key(key)
        fate = fates[public.ed25519]
        # The owner's word about the key. It is shown before anyone trusts it.
        said = "" if isinstance(key, PublicKey) or key.retired_at is None else f"retired {key.retired_at[:10]}"
        rows.append([public.confirmation, StyledText(fate, styles.get(fate, "dim")), public.algorithm, said])
    screen.print_table(rows)


def _public_key(key: PublicKey | RingEntry) -> PublicKey:
    return key.key if isinstance(key, RingEntry) else key


def _entry_to_dict(entry: RingEntry) -> dict[str, Any]:
    described = {name: value for name, value in entry.to_dict().items() if name != "statement"}
    return {**described, "confirmation": entry.key.confirmation}


def _key_to_dict(key: PublicKey) -> dict[str, Any]:
    return {
        "fingerprint": key.fingerprint,
        "algorithm": key.algorithm,
        "public_key": key.ed25519,
        "public_key_pq": key.ml_dsa_65,
        "confirmation": key.confirmation,
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

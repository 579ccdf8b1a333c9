"""`aver gateway delegate`: issues a token by which a principal lets a caller act for it, and records it."""

from __future__ import annotations

import argparse
import re
import secrets
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from aver.cli.options import add_json, add_ledger, add_passphrase_fd, add_tenant
from aver.cli.terminal import Screen, ask_passphrase, print_json
from aver.errors import BadInput, Refused

if TYPE_CHECKING:
    from aver.keys import PublicKey, StatementSigner
    from aver.ledger import Ledger

EXAMPLES = """\
  aver gateway delegate agent:build --principal ext:acme --key acme.key --session build-7 --scope intent:SendMessage
  aver gateway delegate agent:build --principal ext:ada --identity person:ada --session s1 --scope '*' --for 8h
  aver gateway delegate agent:tester --principal agent:build --identity agent:build --parent @token --session build-7 \\
      --scope intent:ReadWorkspaceFile --for 10m"""

_DURATION = re.compile(r"([0-9]{1,6})([smhd])", re.ASCII)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}

JTI_BYTES = 12
"""Random bytes of a token's id, as many as an act's id has."""

TOKEN_FILE_MAX = 64 * 1024
"""Largest file with a parent token, in bytes. A gateway takes none that is longer."""

DEFAULT_DURATION = timedelta(hours=1)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("subject", metavar="CALLER", help="who may act for the principal")
    parser.add_argument(
        "--principal", required=True, metavar="NAME", help="who delegates, as [gateway.principals] says"
    )
    signer = parser.add_mutually_exclusive_group(required=True)
    signer.add_argument("--identity", metavar="IDENTITY", help="sign with this identity's key in your key store")
    signer.add_argument("--key", metavar="FILE", help="sign with the raw 32-byte Ed25519 seed in this file")
    parser.add_argument("--session", required=True, metavar="NAME", help="the session in which the token is good")
    parser.add_argument(
        "--scope",
        action="append",
        required=True,
        metavar="SCOPE",
        help="*, intent:NAME or intent:PREFIX*; may be given several times",
    )
    parser.add_argument(
        "--for",
        dest="duration",
        type=_parse_duration,
        metavar="TIME",
        help="30m, 8h, 7d (default: 1h, and no longer than --parent)",
    )
    parser.add_argument("--parent", metavar="TOKEN", help="the token from which the principal has its right; or @FILE")
    add_passphrase_fd(parser)
    add_ledger(parser)
    add_tenant(parser)
    add_json(parser)


def _parse_duration(text: str) -> timedelta:
    match = _DURATION.fullmatch(text)
    if match is None or not int(match[1]):
        raise argparse.ArgumentTypeError(f"{text!r} is not a time: use 30m, 8h or 7d")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.check import open_ledger
    from aver.gateway.act_records import check_session
    from aver.gateway.delegation import sign_delegation
    from aver.gateway.delegation_records import build_issue_draft, delegations_chain, issue_key
    from aver.gateway.settings import read_gateway_settings

    with open_ledger(given.ledger, tenant=given.tenant) as ledger:
        known = read_gateway_settings(ledger.config).keys.get(given.principal)
        public, signer = _find_signer(given, ledger)
        if known != public:
            raise BadInput(
                f"no act would be allowed by this token: {given.principal} has {'no' if known is None else 'another'} "
                "key in [gateway.principals]",
                advice=f'add two lines to {ledger.config.file}: [gateway.principals."{given.principal}"], and below it '
                f'key = "{public.ed25519}"',
            )
        parent = None if given.parent is None else _read_token(given.parent)
        jti, expires = f"dlg_{secrets.token_urlsafe(JTI_BYTES)}", _find_expiry(given.duration, parent)
        token = sign_delegation(
            signer,
            iss=given.principal,
            sub=given.subject,
            session=check_session(given.session),
            scope=tuple(given.scope),
            expires=expires,
            jti=jti,
            parent=parent,
        )
        # Recorded before anyone gets it.
        record = ledger.append(delegations_chain(ledger.tenant), build_issue_draft(token), key=issue_key(jti))
    if given.json:
        print_json({"jti": jti, "expires": expires, "token": token, "record": record.id})
    else:
        screen.print_line(f"{jti}, good until {expires}; to end it: aver gateway revoke {jti}")
        print(token)
    return 0


def _find_signer(given: argparse.Namespace, ledger: Ledger) -> tuple[PublicKey, StatementSigner]:
    """Return the key that signs the token: its public half, and the signer."""
    from aver.gate.approvals import find_person
    from aver.keys import load_seed_signer

    if given.key is not None:
        signer = load_seed_signer(Path(given.key))
        return signer.public, signer
    person = find_person(ledger.keys, given.identity, lambda: ask_passphrase(given.identity, given.passphrase_fd))
    return person.public, person.signer


def _find_expiry(duration: timedelta | None, parent: str | None) -> str:
    """Return when a token ends: after the time that was asked for, else in an hour, and not after its parent."""
    from aver.gateway.delegation import read_delegation

    wanted = datetime.now(UTC) + (duration or DEFAULT_DURATION)
    if parent is None:
        return wanted.isoformat()
    try:
        last = read_delegation(parent)[-1]
    except Refused as refusal:
        advice = "give the token itself, or @FILE with the token or the JSON that --json printed"
        raise BadInput(f"--parent: {refusal.message}", advice=advice) from refusal
    if wanted.timestamp() <= last.expires_at:
        return wanted.isoformat()
    if duration is None:
        return last.expires
    raise BadInput(f"the parent expires at {last.expires}, before this token", advice="give a shorter time with --for")


def _read_token(text: str) -> str:
    """Return the token of `--parent`. A file has the token, or an object in JSON with it, as `--json` prints."""
    from aver.capsule.json_reader import Unreadable, read_json
    from aver.files.regular import open_file

    if not text.startswith("@"):
        return text
    with open_file(Path(text[1:])) as file:
        data = file.read(TOKEN_FILE_MAX).strip()
    if data.startswith(b"{"):
        try:
            found = read_json(data)
        except Unreadable as error:
            raise BadInput(f"{text[1:]} cannot be read: {error}") from error
        return str(found.get("token", "")) if isinstance(found, dict) else ""
    return data.decode("ascii", "replace")

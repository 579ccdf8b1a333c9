"""`aver verify`: the verdict on anything. Never a bare "valid": what was not checked is always said."""

from __future__ import annotations

import argparse
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aver.cli.files import read_document
from aver.cli.options import Usage, add_json, add_ledger, add_tenant
from aver.cli.output import Progress, Screen, print_json
from aver.cli.verdicts import exit_code, print_verdict
from aver.errors import BadInput, Unavailable

if TYPE_CHECKING:
    from aver.keys import PublicKey, Statement
    from aver.ledger import Head, Ledger
    from aver.verdict import Verdict

__all__ = ["EXAMPLES", "add_arguments", "run"]

EXAMPLES = """\
  aver verify                                     the whole ledger, every tenant
  aver verify claude-code.5d2e                    one chain
  aver verify capsule://claude-code.5d2e/7        one record
  aver verify ./bundle --key their-keys.json      what somebody sent, held to keys you got another way
  aver verify --checkpoint monday.json            is all of it still there?
  aver verify --strict --json | jq .status

exit code: 0 verified or qualified, 1 failed or empty; with --strict qualified is 1, too."""

LEVELS = ("structural", "content", "signature")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "thing",
        nargs="?",
        metavar="X",
        help="a chain, session, id, hash or capsule:// URI in the ledger; a bundle; a file of capsules; a database "
        "(default: the ledger)",
    )
    parser.add_argument("--level", choices=LEVELS, default="signature", help="how deep to look (default: signature)")
    parser.add_argument(
        "--key", action="append", default=[], metavar="HEX|FILE", help="accept these signers and no others; repeatable"
    )
    parser.add_argument("--require-pq", action="store_true", help="a missing ML-DSA-65 signature is a failure")
    parser.add_argument(
        "--since", metavar="HEAD", help="one chain only: trust it up to COUNT:HASH, or up to the head in this JSON file"
    )
    parser.add_argument("--checkpoint", metavar="FILE", help="also hold the ledger to this checkpoint")
    parser.add_argument("--strict", action="store_true", help="exit with 1 when the verdict is only qualified")
    add_ledger(parser)
    add_tenant(parser, default="all of the ledger's")
    add_json(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    verdicts = _verdicts(given)
    statuses = [verdict.status for verdict in verdicts.values()]
    if given.json:
        print_json(_described(verdicts))
    else:
        for number, (tenant, verdict) in enumerate(verdicts.items()):
            if number:
                screen.line()
            print_verdict(screen, verdict, about=f", tenant {tenant}" if len(verdicts) > 1 else "")
    return exit_code(statuses, strict=given.strict)


def _verdicts(given: argparse.Namespace) -> dict[str | None, Verdict]:
    """One verdict per tenant where the ledger is verified whole; otherwise one."""
    if given.since is not None:
        return {given.tenant: _verify_since(given)}
    if given.thing is None:
        return _verify_ledger(given.ledger, given)
    from aver.check import is_name, verify

    named = _ledger_named(given.thing)
    if named is not None and not is_name(given.thing, tenant=given.tenant, ledger=given.ledger):
        return _verify_ledger(named, given)
    if given.checkpoint is not None:
        raise Usage("--checkpoint holds a whole ledger to its heads", advice="leave out X, or name it with --ledger")
    options = {"level": given.level, "require_pq": given.require_pq, "tenant": given.tenant, "ledger": given.ledger}
    return {given.tenant: verify(given.thing, keys=_keys(given.key), **options)}


def _keys(sources: list[str]) -> list[PublicKey]:
    from aver.keys import read_keys

    return [key for source in sources for key in read_keys(source)]


_SQLITE = b"SQLite format 3\0"


def _ledger_named(thing: str) -> str | None:
    """The ledger that X itself is; None if it is something else. A ledger is verified with all its tenants."""
    from aver.ledger import tenants_of
    from aver.ledger.outside import open_file

    if "://" in thing:
        return None if thing.startswith("capsule://") else thing
    path = Path(thing).expanduser()
    path = path / "ledger.db" if path.is_dir() else path
    try:
        with open_file(path) as file:
            if file.read(len(_SQLITE)) != _SQLITE:
                return None
        tenants_of(path)
    except (BadInput, Unavailable, ValueError):
        return None  # Not there, or another program's: `check` knows what it is.
    return str(path)


def _verify_ledger(url: str | None, given: argparse.Namespace) -> dict[str | None, Verdict]:
    from aver.ledger import open_ledger, tenants_of

    keys = _keys(given.key)
    checkpoint = None if given.checkpoint is None else _read_checkpoint(Path(given.checkpoint))
    tenants: list[str | None] = [given.tenant]
    if given.tenant is None:
        tenants = [*tenants_of(url)] or [None]
    if checkpoint is not None and given.tenant is None:
        # A tenant that was deleted altogether is listed nowhere but in the checkpoint.
        tenants = [*dict.fromkeys([*(one for one in tenants if one is not None), _tenant_of(checkpoint)])]
    verdicts: dict[str | None, Verdict] = {}
    for tenant in tenants:
        with open_ledger(url, tenant=tenant, create=False) as ledger:
            verdict = _verify_tenant(ledger, None, given, keys)
            if checkpoint is not None and (given.tenant is not None or ledger.tenant == _tenant_of(checkpoint)):
                verdict = _held_to(checkpoint, ledger, verdict, keys)
            verdicts[ledger.tenant] = verdict
    return verdicts


def _verify_tenant(
    ledger: Ledger, chain: str | None, given: argparse.Namespace, keys: list[PublicKey], since: Head | None = None
) -> Verdict:
    from aver.ledger.verify import verify_ledger

    with Progress("verifying") as progress:
        return verify_ledger(
            ledger,
            chain,
            level=given.level,
            since=since,
            ring=ledger.ring(keys),
            require_pq=given.require_pq,
            progress=progress,
        )


# --- since a trusted head

_COUNT_AND_HASH = re.compile(r"([0-9]{1,18}):([0-9a-f]{64})", re.ASCII)


def _verify_since(given: argparse.Namespace) -> Verdict:
    from aver.ledger import open_ledger

    if given.thing is None or given.checkpoint is not None:
        raise Usage("--since verifies one chain from a head on", advice="aver verify CHAIN --since COUNT:HASH")
    with open_ledger(given.ledger, tenant=given.tenant, create=False) as ledger:
        since = _read_head(given.since, ledger, given.thing)
        return _verify_tenant(ledger, given.thing, given, _keys(given.key), since)


def _read_head(text: str, ledger: Ledger, chain: str) -> Head:
    from aver.ledger import Head

    if match := _COUNT_AND_HASH.fullmatch(text):
        count = int(match[1])
        return Head(ledger.id, ledger.tenant, chain, count, match[2] if count else None)
    if ":" in text and not Path(text).exists():
        raise Usage(f"--since {text}: not a head", advice="give COUNT:HASH (64 lower-case hex digits), or a file")
    try:
        return Head.from_dict(read_document(Path(text)))
    except BadInput as error:
        raise BadInput(f"--since {text}: {error.message}", advice=error.advice) from error


# --- held to a checkpoint


def _read_checkpoint(path: Path) -> Statement:
    from aver.keys import Statement
    from aver.ledger.checkpoint import PURPOSE

    statement = Statement.from_dict(read_document(path), str(path))
    if statement.purpose != PURPOSE:
        raise BadInput(f"{path} is a statement, but not a checkpoint", advice="aver checkpoint --out FILE makes one")
    return statement


def _tenant_of(checkpoint: Statement) -> str:
    return str(checkpoint.content.get("tenant"))


def _held_to(checkpoint: Statement, ledger: Ledger, verdict: Verdict, keys: list[PublicKey]) -> Verdict:
    """The verdict, with what the checkpoint adds to it."""
    from aver.ledger.checkpoint import check_checkpoint
    from aver.verdict import Tally, conclude, worst

    tally = Tally(records=verdict.records)
    check_checkpoint(ledger, checkpoint, ledger.ring(keys), tally)
    added = conclude(verdict.subject, tally, level=verdict.level, expected=("checkpoint",))
    return replace(
        verdict,
        status=worst((verdict.status, added.status)),
        checks=(*verdict.checks, *added.checks),
        findings=(*verdict.findings, *added.findings),
        first_bad=verdict.first_bad or added.first_bad,
    )


def _described(verdicts: dict[str | None, Verdict]) -> dict[str, Any]:
    """One verdict as it is; several with their sum in front and themselves under `tenants`."""
    if len(verdicts) == 1:
        return next(iter(verdicts.values())).to_dict()
    from aver.verdict import worst

    listed = list(verdicts.values())
    bad = next((verdict.first_bad for verdict in listed if verdict.first_bad is not None), None)
    return {
        "status": worst(verdict.status for verdict in listed),
        "records": sum(verdict.records for verdict in listed),
        "chains": sum(verdict.chains for verdict in listed),
        "first_bad": None if bad is None else bad.to_dict(),
        "tenants": [{"tenant": tenant, **verdict.to_dict()} for tenant, verdict in verdicts.items()],
    }

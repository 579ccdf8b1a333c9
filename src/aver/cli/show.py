"""`aver show`: one record, readable: where it stands, its verdict, its six sections, its seal."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from aver.cli.entries import sort_of
from aver.cli.options import Usage, add_json, add_ledger, add_tenant
from aver.cli.output import Painted, Screen, one_line, print_json, safe, short_time
from aver.cli.sections import print_content, print_fields, print_value
from aver.cli.verdicts import exit_code, status_parts
from aver.errors import AverError, BadInput

if TYPE_CHECKING:
    from aver.capsule import Sealed
    from aver.check import Found
    from aver.verdict import Verdict

__all__ = ["EXAMPLES", "add_arguments", "run"]

EXAMPLES = """\
  aver show capsule://claude-code.5d2e/7
  aver show capsule://claude-code.5d2e/7#reasoning/options/0      one place in it
  aver show 3f0c9a1b-2d4e-4f60-8a7b-5c6d7e8f9a0b --section outcome
  aver show capsule.json                                          a record in a file
  aver show --raw capsule://claude-code.5d2e/7 | openssl dgst -sha3-256      its hash, by other means"""

SECTIONS = ("trigger", "context", "reasoning", "authority", "execution", "outcome", "seal")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("thing", metavar="X", help="id, hash, key or capsule:// URI in the ledger, or a file")
    parser.add_argument("--section", choices=SECTIONS, help="only this part")
    parser.add_argument("--raw", action="store_true", help="the exact bytes that were hashed, and nothing else")
    add_ledger(parser)
    add_tenant(parser)
    add_json(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.check import resolve

    if given.raw and given.json:
        raise Usage("--raw and --json are two different outputs", advice="choose one")
    found = resolve(given.thing, tenant=given.tenant, ledger=given.ledger)
    record = _one_record(found)
    if given.raw:
        _print_raw(record, screen)
        return 0
    verdict = _verdict(given)
    if given.json:
        print_json(_described(found, record, verdict))
    elif found.fragment is not None:
        print_value(screen, _place(record, found.fragment), indent="")
    else:
        _print_record(screen, found, record, verdict, section=given.section)
    return 0 if verdict is None else exit_code([verdict.status], strict=False)


def _one_record(found: Found) -> Sealed:
    """The record asked for; of a file or chain with one record, that one."""
    if found.record is not None:
        return found.record
    records = found.read()
    first, second = next(records, None), next(records, None)
    if first is None:
        raise BadInput(f"{found.name} holds no records")
    if second is not None:
        place = f"capsule://{found.chain}/0" if found.chain else "one of its ids or hashes"
        raise BadInput(f"{found.name} has many records; show takes one", advice=f"aver log lists them; try {place}")
    return first


def _verdict(given: argparse.Namespace) -> Verdict | None:
    """The record's own verdict; None if there is none to be had, which is then said."""
    from aver.check import verify

    try:
        return verify(given.thing.partition("#")[0], tenant=given.tenant, ledger=given.ledger)
    except AverError:
        return None


def _place(record: Sealed, fragment: str) -> Any:
    from aver.capsule import resolve_fragment

    return resolve_fragment(record.to_dict(), fragment)


def _print_raw(record: Sealed, screen: Screen) -> None:
    """The bytes as they are; on a terminal, which obeys some of them, escaped."""
    if screen.terminal:
        screen.line(safe(record.canonical.decode("utf-8", "backslashreplace")))
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(record.canonical)
    sys.stdout.buffer.flush()


def _described(found: Found, record: Sealed, verdict: Verdict | None) -> dict[str, Any]:
    described = {
        "uri": record.uri,
        "chain": found.chain or record.chain,
        "capsule": record.to_sealed_dict(),
        "verdict": None if verdict is None else verdict.to_dict(),
    }
    if found.fragment is not None:
        described |= {"fragment": found.fragment, "value": _place(record, found.fragment)}
    return described


def _print_record(
    screen: Screen, found: Found, record: Sealed, verdict: Verdict | None, *, section: str | None
) -> None:
    try:
        content: dict[str, Any] = record.to_dict()
        sort = sort_of(record.type, record.kind)
        chain = found.chain or record.chain
        place = f"capsule://{chain}/{record.sequence}" if chain else record.uri
    except (AverError, AttributeError, KeyError, TypeError):
        content, sort, place = {}, "cannot be read as a capsule", record.uri
    if section is None:
        screen.line(Painted(place, "strong"))
        signer = f"{record.signed_by or 'nobody'}{_identity(record.signed_by)}"
        screen.line(f"{sort}, sealed {short_time(record.signed_at)} UTC by {one_line(signer)}")
        _print_verdict_line(screen, verdict)
    if section != "seal":
        print_content(screen, content, only=section)
    if section in (None, "seal"):
        screen.line()
        screen.line(Painted("seal", "strong"))
        _print_seal(screen, record, content)


def _identity(signed_by: str) -> str:
    """Whose key that is, as far as it is known here. Whether it did sign is the verdict's to say."""
    from aver.home import load_config
    from aver.keys import KeyStore

    ring = KeyStore(load_config().home).ring()
    entry = ring.entry(signed_by)
    if entry is not None:
        return f" ({entry.identity})"
    return " (a known key)" if ring.lookup(signed_by) else ""


def _print_verdict_line(screen: Screen, verdict: Verdict | None) -> None:
    if verdict is None:
        screen.line(screen.mark("warning"), " no verdict on this record alone; verify what it is in")
        return
    words = [check.name for check in verdict.checks if check.status == "passed"]
    said = f": {', '.join(words)} hold" if words and verdict.first_bad is None else ""
    if verdict.first_bad is not None:
        said = f": {verdict.first_bad.code}, {verdict.first_bad.words}"
    screen.line(*status_parts(screen, verdict), said)
    for check in verdict.checks:
        if check.status == "warning" or (check.status == "not_checked" and check.matters):
            screen.line("  ", screen.mark("warning"), f" {check.name}: {check.reason}")


def _print_seal(screen: Screen, record: Sealed, content: dict[str, Any]) -> None:
    from aver.capsule import block_of

    seal = {
        "id": content.get("id"),
        "parent_id": content.get("parent_id"),
        "previous_hash": content.get("previous_hash"),
        "hash": record.hash,
        "signature": _beginning(record.signature),
        "signature_pq": _beginning(record.signature_pq),
        "signed_at": record.signed_at,
        "signed_by": record.signed_by,
        "aver": dict(block_of(content) or {}),
    }
    print_fields(screen, {name: value for name, value in seal.items() if value})


def _beginning(signature: str) -> str:
    return f"{signature[:32]}… (--json has it whole)" if len(signature) > 32 else signature

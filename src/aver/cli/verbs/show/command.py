"""`aver show`: prints one record with its verdict, six sections and seal, or the story of a session."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from aver.cli.options import Usage, add_force, add_json, add_ledger, add_tenant
from aver.cli.record_line import print_record_line, to_record_line, type_and_kind
from aver.cli.terminal import Screen, StderrScreen, StyledText, format_time, print_json
from aver.cli.verbs.show.capsule_view import print_fields, print_sections, print_value
from aver.cli.verdict_text import exit_code, status_parts
from aver.errors import BadInput, NotFound
from aver.text import escape_unprintable, to_one_line

if TYPE_CHECKING:
    from aver.capsule import Sealed
    from aver.check import ResolvedTarget
    from aver.verdict import Verdict

EXAMPLES = """\
  aver show capsule://claude-code.5d2e/7
  aver show capsule://claude-code.5d2e/7#reasoning/options/0      show one value in it
  aver show 3f0c9a1b-2d4e-4f60-8a7b-5c6d7e8f9a0b --section outcome
  aver show capsule.json                                          show a record in a file
  aver show claude-code:5d2e:toolu_7                              show a call, or why it was refused
  aver show 5d2e                                                  show a session; --full shows every line
  aver show 5d2e --html session.html                              write a session or a trace as one HTML page
  aver show --raw capsule://claude-code.5d2e/7 | openssl dgst -sha3-256      compute its hash without Aver"""

SECTION_CHOICES = ("trigger", "context", "reasoning", "authority", "execution", "outcome", "seal")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("thing", metavar="X", help="an id, hash, key, URI, call or session in the ledger, or a file")
    parser.add_argument("--section", choices=SECTION_CHOICES, help="show only this part")
    parser.add_argument("--raw", action="store_true", help="print exactly the bytes that were hashed")
    parser.add_argument("--full", action="store_true", help="for a session: show every line of every text")
    parser.add_argument("--html", metavar="FILE", help="for a session: write it as one self-contained HTML page")
    add_force(parser)
    add_ledger(parser)
    add_tenant(parser)
    add_json(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.check import open_read_only

    ledger = open_read_only(given.ledger, tenant=given.tenant)
    if ledger is None:
        return _show(given, screen)
    from aver.cli.read_only import print_read_only_note

    with ledger:
        given.ledger = ledger  # Opened once: opening verifies all of it.
        code = _show(given, screen)
        return max(code, print_read_only_note(ledger))


def _show(given: argparse.Namespace, screen: Screen) -> int:
    from aver.check import resolve, verify

    if given.raw and given.json:
        raise Usage("--raw and --json are two different outputs", advice="choose one")
    try:
        found = resolve(given.thing, tenant=given.tenant, ledger=given.ledger)
    except NotFound:
        decisions = _find_call_decisions(given)
        if not decisions:
            raise
        if len(decisions) > 1:
            return _print_call(given, decisions, screen)
        given.thing = f"capsule://{decisions[0].chain}/{decisions[0].sequence}"
        found = resolve(given.thing, tenant=given.tenant, ledger=given.ledger)
    if found.record is None and not given.raw and given.section is None:
        from aver.cli.verbs.show.session import show_session
        from aver.cli.verbs.show.trace import show_trace

        if (code := show_trace(found, given, screen)) is not None:
            return code
        if (code := show_session(found, given, screen)) is not None:
            return code
    if given.full or given.html:
        raise Usage("--full and --html need a session", advice="aver sessions lists the sessions")
    record = _require_one_record(found)
    if given.raw:
        # Print the hashed bytes as they are. On a terminal, control characters are escaped.
        if screen.terminal:
            screen.print_line(escape_unprintable(record.canonical.decode("utf-8", "backslashreplace")))
        else:
            sys.stdout.flush()
            sys.stdout.buffer.write(record.canonical)
            sys.stdout.buffer.flush()
        return 0
    whole = given.thing.partition("#")[0] if found.fragment is not None else given.thing
    verdict = verify(whole, tenant=given.tenant, ledger=given.ledger)
    # The content of the record; empty if it cannot be read. The verdict then says why.
    from aver.capsule.json_reader import Unreadable
    from aver.verdict.record import read_record

    try:
        content: dict[str, Any] = read_record(record.canonical)[0]
    except Unreadable:
        content = {}
    if given.json:
        print_json(_record_to_dict(found, record, content, verdict))
    elif found.fragment is not None:
        print_value(screen, _read_fragment(content, found.fragment), indent="")
        if verdict.first_bad is not None:
            StderrScreen().print_error(
                f"the record failed verification: {verdict.first_bad}", f"see: aver verify {whole}"
            )
    else:
        _print_record(screen, found, record, content, verdict, section=given.section)
    return exit_code([verdict.status], strict=False)


def _find_call_decisions(given: argparse.Namespace) -> list[Sealed]:
    """The records of the gate's decisions about the call with this id, oldest first.

    A call that was done has a record under its id. A call that was refused has only these.
    """
    from aver.config import home_dir
    from aver.gate.call_decisions import find_decision_records
    from aver.ledger.lookup import LedgerSource

    if not given.thing.isprintable():
        return []
    try:
        with LedgerSource(given.tenant, home_dir(), given.ledger).open() as ledger:
            return find_decision_records(ledger, given.thing)[::-1]
    except NotFound:  # There is no ledger.
        return []


def _print_call(given: argparse.Namespace, decisions: list[Sealed], screen: Screen) -> int:
    """List several decisions about one call, one line each."""
    newest = f"capsule://{decisions[-1].chain}/{decisions[-1].sequence}"
    if given.raw or given.section or given.full or given.html:
        raise BadInput(f"there are {len(decisions)} decisions about this call", advice=f"name one, such as {newest}")
    entries = [to_record_line(record) for record in decisions]
    if given.json:
        print_json({"call": given.thing, "records": [entry.to_dict() for entry in entries]})
        return 0
    for entry in entries:
        print_record_line(screen, entry, with_chain=True)
    StderrScreen().print_note(f"these are the decisions about this call; aver show {newest} shows the newest")
    return 0


def _require_one_record(found: ResolvedTarget) -> Sealed:
    """The record that was found. A file or chain must have exactly one record."""
    if found.record is not None:
        return found.record
    records = found.read()
    first, second = next(records, None), next(records, None)
    if first is None:
        raise BadInput(f"{found.name} has no records")
    if second is not None:
        advice = "aver log CHAIN --ledger BUNDLE lists the records of a bundle; aver show ID --ledger BUNDLE shows one"
        if found.chain:
            advice = f"aver log {found.chain} lists them; try capsule://{found.chain}/0"
        raise BadInput(f"{found.name} has many records, and show takes one", advice=advice)
    return first


def _read_fragment(content: dict[str, Any], fragment: str) -> Any:
    from aver.capsule import resolve_fragment

    return resolve_fragment(content, fragment)


def _record_to_dict(found: ResolvedTarget, record: Sealed, content: dict[str, Any], verdict: Verdict) -> dict[str, Any]:
    seal = {name: getattr(record, name) for name in ("hash", "signature", "signature_pq", "signed_at", "signed_by")}
    described = {
        "uri": record.uri,
        "chain": found.chain,
        "capsule": {**content, **seal},
        "verdict": verdict.to_dict(),
    }
    if found.fragment is not None:
        described |= {"fragment": found.fragment, "value": _read_fragment(content, found.fragment)}
    return described


def _print_record(
    screen: Screen,
    found: ResolvedTarget,
    record: Sealed,
    content: dict[str, Any],
    verdict: Verdict,
    *,
    section: str | None,
) -> None:
    from aver.capsule import read_kind

    if section is None:
        sort = type_and_kind(content["type"], read_kind(content)) if content else "unreadable"
        # The owner of the key, as far as it is known here. Only the verdict says whether this key did sign.
        from aver.config import load_config
        from aver.keys import KeyStore

        ring = KeyStore(load_config().home).ring()
        entry = ring.entry(record.signed_by)
        if entry is not None:
            signer_identity = f" ({entry.identity})"
        else:
            signer_identity = " (a known key)" if ring.lookup(record.signed_by) else ""
        signer = f"{record.signed_by or 'nobody'}{signer_identity}"
        screen.print_line(StyledText(found.name if found.chain else record.uri, "strong"))
        screen.print_line(to_one_line(f"{sort}, sealed {format_time(record.signed_at)} UTC by {signer}"))
        passed = [check.name for check in verdict.checks if check.status == "passed"]
        text = f"{', '.join(passed)} passed"
        if verdict.first_bad is not None:
            text = f"{verdict.first_bad.code}, {verdict.first_bad.words}"
        screen.print_hanging(*status_parts(screen, verdict), ": ", text=text)
        for check in verdict.checks:
            if check.status == "warning" or (check.status == "not_checked" and check.matters):
                screen.print_hanging("  ", screen.status_mark("warning"), f" {check.name}: ", text=check.reason)
    if section != "seal":
        print_sections(screen, content, only=section)
    if section in (None, "seal"):
        screen.print_line()
        screen.print_line(StyledText("seal", "strong"))
        from aver.capsule import read_block

        seal = {
            "id": content.get("id"),
            "parent_id": content.get("parent_id"),
            "previous_hash": content.get("previous_hash"),
            "hash": record.hash,
            "signature": _shorten_signature(record.signature),
            "signature_pq": _shorten_signature(record.signature_pq),
            "signed_at": record.signed_at,
            "signed_by": record.signed_by,
            "aver": dict(read_block(content) or {}),
        }
        print_fields(screen, {name: value for name, value in seal.items() if value})


def _shorten_signature(signature: str) -> str:
    return f"{signature[:32]}… (--json shows all of it)" if len(signature) > 32 else signature

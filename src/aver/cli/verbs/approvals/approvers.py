"""`aver approvals approvers`, `enrol`, `endorse` and `withdraw`: who may answer requests."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from aver.cli.options import Usage
from aver.cli.terminal import LinePart, Screen, StderrScreen, StyledText, print_json
from aver.cli.verbs.approvals.answer import find_signer
from aver.cli.verbs.approvals.requests import open_ledger_of

if TYPE_CHECKING:
    from aver.gate.approvals import ApprovalSetup
    from aver.gate.approvals.roster import Approver


def list_approvers(given: argparse.Namespace, screen: Screen) -> int:
    from aver.gate.approvals import load_approval_setup
    from aver.gate.approvals.rules import SYSTEM_FILE, approvals_to_toml

    with open_ledger_of(given) as ledger:
        setup = load_approval_setup(ledger)
    if given.toml:
        if given.json:
            raise Usage("--toml and --json are two different outputs", advice="choose one")
        sys.stdout.write(approvals_to_toml(setup.rules, setup.roster))
        return 0
    if given.json:
        roster = {
            "anchor": setup.roster.anchor,
            "approvers": [
                {
                    "identity": approver.identity,
                    "fingerprint": approver.fingerprint,
                    "independent": approver.is_independent,
                    **approver.to_dict(),
                }
                for approver in setup.roster.approvers.values()
            ],
            "levels": [level.to_dict() for level in setup.rules.levels],
            "expires": setup.rules.expires,
            "ignored": list(setup.roster.ignored),
        }
        print_json(roster)
        return 0
    if not setup.roster.approvers:
        StderrScreen().print_note("there are no approvers: every action that needs approval is denied")
    rows: list[list[LinePart]] = [
        [
            approver.identity,
            approver.fingerprint,
            _custody_text(approver),
            ", ".join(_approval_levels(setup, approver.identity)),
        ]
        for approver in setup.roster.approvers.values()
    ]
    screen.print_table(rows, header=("person", "key", "key is kept", "decides on"))
    source = "this ledger's roster" if setup.roster.anchor == "ledger" else str(SYSTEM_FILE)
    StderrScreen().print_note(f"according to {source}")
    for words in setup.roster.ignored:
        StderrScreen().print_note(f"ignored, {words}")
    return 0


def _custody_text(approver: Approver) -> StyledText:
    kept = {"passphrase": "under a passphrase", "ssh-agent": "in ssh-agent", "file": "in a plain file"}
    words = kept.get(approver.custody, "")
    if approver.custody == "passkey":
        endorsers = ", ".join(endorser.identity for endorser in approver.endorsers) or "nobody"
        words = f"as a passkey of {approver.to_dict()['passkey']['rp_id']}, endorsed by {endorsers}"
    return StyledText(words, "good" if approver.is_independent else "warn")


def _approval_levels(setup: ApprovalSetup, identity: str) -> list[str]:
    return [
        f"level {number}"
        for number, level in enumerate(setup.rules.levels, 1)
        if not level.approvers or identity in level.approvers
    ]


def enrol_person(given: argparse.Namespace, screen: Screen) -> int:
    from aver.gate.approvals import enrol_approver

    with open_ledger_of(given, create=True) as ledger:
        newcomer = find_signer(ledger, given.identity, given)
        record = enrol_approver(ledger, newcomer, None if given.by is None else find_signer(ledger, given.by, given))
        return _print_roster_change(given, screen, record.to_dict()["outcome"]["summary"], record.id)


CODE_BYTES_MAX = 64 * 1024
"""Most bytes that are read as a code from standard input. A code has some 1,500."""


def endorse_page_passkey(given: argparse.Namespace, screen: Screen) -> int:
    """Show the passkey that a page has made, then sign its enrolment and record it."""
    from aver.gate.approvals import endorse_passkey, read_enrolment_code, read_passkey

    code = sys.stdin.read(CODE_BYTES_MAX) if given.code == "-" else given.code
    statement = read_enrolment_code("".join(code.split()))
    with open_ledger_of(given) as ledger:
        approver = read_passkey(ledger, statement)
        passkey = approver.to_dict()["passkey"]
        shown = StderrScreen()
        shown.print_line("You allow this passkey to approve. Compare its fingerprint with the one on the page.")
        for name, value in (
            ("person", approver.identity),
            ("fingerprint", approver.fingerprint),
            ("site", passkey["rp_id"]),
            ("algorithm", passkey["alg"]),
            ("ledger", f"{ledger.id}, tenant {ledger.tenant}"),
        ):
            shown.print_line(f"  {name:<12} {value}")
        record = endorse_passkey(ledger, statement, find_signer(ledger, given.by, given))
        given.identity = approver.identity
        return _print_roster_change(given, screen, record.to_dict()["outcome"]["summary"], record.id)


def withdraw_person(given: argparse.Namespace, screen: Screen) -> int:
    from aver.gate.approvals import load_roster, withdraw_approver

    with open_ledger_of(given) as ledger:
        listed = load_roster(ledger).approvers.get(given.identity)
        if given.by is None and listed is not None and listed.custody == "passkey":
            raise Usage(
                f"{given.identity} has a passkey, which cannot sign here", advice="say who signs: --by person:NAME"
            )
        record = withdraw_approver(ledger, given.identity, find_signer(ledger, given.by or given.identity, given))
        return _print_roster_change(given, screen, record.to_dict()["outcome"]["summary"], record.id)


def _print_roster_change(given: argparse.Namespace, screen: Screen, summary: str, record_id: str) -> int:
    if given.json:
        print_json({"identity": given.identity, "summary": summary, "record": record_id})
    else:
        screen.print_line(summary)
    return 0

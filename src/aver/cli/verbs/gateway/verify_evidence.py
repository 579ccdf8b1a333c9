"""`aver gateway verify-evidence`: judges the evidence of one act by the RFC alone, from three files.

Exits with 0 if the evidence is accepted, and with 2 if it is not. MAC keys come from the command line, from the
environment, or else from the home of a gateway on this machine. Other users of the machine can read a command line.
"""

from __future__ import annotations

import argparse
import os
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aver.cli.files import read_json_file
from aver.cli.options import add_json
from aver.cli.terminal import Screen, print_json
from aver.errors import BadInput, NotFound

if TYPE_CHECKING:
    from aver.gateway.proof.attestation import PolicyKeys
    from aver.keys.mac_keys import MacKeyring

EXAMPLES = """\
  aver gateway verify-evidence --commit commit.json --request request.json
  aver gateway verify-evidence --spec spec/secureclaw_accept_predicate_v1.json --commit commit.json \\
      --request request.json --now 1700000000 --user-confirm --json
  aver gateway verify-evidence --commit commit.json --request request.json --strict   wants attestations, too"""

ACCEPTED, NOT_ACCEPTED = 0, 2
"""The exit codes of the RFC's own tool."""

_NUMBER = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,9})?", re.ASCII)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--spec", metavar="FILE", help="the accept predicate (default: the one that comes with Aver)")
    parser.add_argument("--commit", required=True, metavar="FILE", help="the commit: {policy0, policy1}")
    parser.add_argument(
        "--request",
        required=True,
        metavar="FILE",
        help="{action_id, intent_id, caller, session, inputs, context}; with --strict also attestations",
    )
    parser.add_argument("--now", type=_parse_seconds, metavar="UNIX", help="judge ages at this time (default: now)")
    parser.add_argument("--user-confirm", action="store_true", help="a person has confirmed the request")
    parser.add_argument("--replay-seen", action="store_true", help="the action_id was used before")
    parser.add_argument("--program-id", metavar="ID", help="the policy program (default: that of the spec)")
    parser.add_argument(
        "--strict", action="store_true", help="want attestations by the keys of policy:0 and policy:1 in your ring, too"
    )
    for number in (0, 1):
        parser.add_argument(
            f"--policy{number}-mac-keys",
            metavar="KEYS",
            help=f"kid:hex[,kid:hex] of server {number} (default: POLICY{number}_MAC_KEYS, or this home)",
        )
    parser.add_argument("--out", metavar="FILE", help="also write the report here; an older report is replaced")
    add_json(parser)


def _parse_seconds(text: str) -> float:
    if _NUMBER.fullmatch(text) is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a Unix time")
    return float(text) if "." in text else int(text)


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.capsule.json_document import dump_document
    from aver.files.new_file import check_new_path, write_new_file
    from aver.gateway.proof.evidence_report import EvidenceRequest, build_report
    from aver.gateway.proof.predicate import EvidenceTrust, KnownCommit, judge_commit
    from aver.gateway.specs import ACCEPT_PREDICATE, AcceptRules

    if given.out:
        check_new_path(Path(given.out), force=True)
    rules = AcceptRules() if given.spec is None else AcceptRules.parse(read_json_file(Path(given.spec)), given.spec)
    request = EvidenceRequest.parse(read_json_file(Path(given.request)), given.request)
    commit, problem = _read_commit(Path(given.commit))
    known = KnownCommit(
        action_id=request.action_id,
        request_sha256=request.sha256,
        program_id=given.program_id or rules.program_id,
        now=time.time() if given.now is None else given.now,
        replay_seen=given.replay_seen,
        confirmed=given.user_confirm,
        patch=None,
    )
    trust = EvidenceTrust(
        mac_keys0=_find_mac_keys(0, given.policy0_mac_keys),
        mac_keys1=_find_mac_keys(1, given.policy1_mac_keys),
        mac_ttl=_read_ttl(rules.mac_ttl_variable),
        policy_keys=_find_policy_keys() if given.strict else None,
        attestations="required" if given.strict else "ignored",
    )
    acceptance = judge_commit(commit, request.attestations, known, trust, rules=rules)
    paths = {"spec_path": given.spec or ACCEPT_PREDICATE, "commit_path": given.commit, "request_path": given.request}
    report = build_report(acceptance, request=request, known=known, trust=trust, rules=rules, paths=paths)
    wrong = [f"policy{number}" for number in (0, 1) if report[f"share{number}_code"] == "bad_program_id"]
    if wrong and not given.program_id:  # The RFC's spec names the program of its example.
        report["words"] += f"; if that is the one you pinned, give --program-id {commit[wrong[0]]['program_id']}"
    if problem:
        report |= {"schema_error": problem, "words": problem}
    if given.out:
        write_new_file(Path(given.out), dump_document(report), force=True)
    if given.json:
        print_json(report)
    else:
        _print_report(report, screen)
    return ACCEPTED if report["accepts"] else NOT_ACCEPTED


def _read_commit(path: Path) -> tuple[Any, str]:
    """Read the commit. A file that is no strict JSON is evidence of a wrong form, with the problem in words."""
    from aver.capsule.json_reader import Unreadable

    try:
        return read_json_file(path), ""
    except BadInput as error:
        if not isinstance(error.__cause__, Unreadable):
            raise
        return "", error.message


def _find_mac_keys(number: int, option: str | None) -> MacKeyring | None:
    from aver.config import load_config
    from aver.keys.mac_keys import mac_key_path, parse_mac_keys, verifier_mac_source

    if option:
        return parse_mac_keys(option, f"--policy{number}-mac-keys")
    try:
        return verifier_mac_source(number, mac_key_path(load_config().home, number)).load()
    except NotFound:
        return None


def _read_ttl(variable: str) -> float:
    """The greatest age of a share. As in the RFC's own tool, 0 and less mean the default."""
    from aver.gateway.proof.predicate import MAC_TTL

    text = os.environ.get(variable, "")
    if not text:
        return MAC_TTL
    if _NUMBER.fullmatch(text) is None:
        raise BadInput(f"{variable} must be a number of seconds", advice=f"unset it for the default, {MAC_TTL}")
    seconds = _parse_seconds(text)
    return seconds if seconds > 0 else MAC_TTL


def _find_policy_keys() -> PolicyKeys | None:
    """The keys of both policy servers in this user's ring; None if the ring has no key of either."""
    from aver.config import load_config
    from aver.gateway.proof.attestation import PolicyKeys
    from aver.keys import KeyStore

    keys = PolicyKeys.from_ring(KeyStore(load_config().home).ring())
    return keys if keys.server0 or keys.server1 else None


def _print_report(report: dict[str, Any], screen: Screen) -> None:
    mark = screen.status_mark("passed" if report["accepts"] else "failed")
    screen.print_line(mark, f" {report['decision']}", f" ({report['detail']})" if report["detail"] else "")
    rows = [
        ("action", report["action_id"]),
        ("request", report["request_sha256"]),
        ("server 0", report["share0_code"]),
        ("server 1", report["share1_code"]),
        ("outputs", " ".join(f"{name}={bit}" for name, bit in sorted(report["outs"].items())) or "none"),
    ]
    for name, text in rows:
        screen.print_line(f"  {name:<10}{text}")
    if report["words"]:
        screen.print_wrapped(report["words"], indent="  ")
    if "mac" in report["not_checked"] and report["schema_ok"]:
        screen.print_wrapped("give the MAC keys in POLICY0_MAC_KEYS and POLICY1_MAC_KEYS", indent="  ")

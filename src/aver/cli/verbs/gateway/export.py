"""`aver gateway export`: writes one act as a file that anyone can verify by public keys alone."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from aver.cli.options import add_force, add_json, add_ledger, add_tenant
from aver.cli.terminal import Screen, print_json
from aver.files.new_file import check_new_path, write_new_file
from aver.text import plural

if TYPE_CHECKING:
    from aver.gateway.judgement.act_file import ActFile
    from aver.keys import Ring

EXAMPLES = """\
  aver gateway export a_kR3vX0aQ9sTn2LbE --out act.json    the act with this action_id
  aver keys export ledger policy:0 policy:1 --out keys.json
  aver verify act.json --key keys.json                     anyone can check it later"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("act", metavar="ACTION", help="the act's action_id or tx_id, or the id of one of its records")
    parser.add_argument("--out", required=True, metavar="FILE", help="the file to write")
    add_force(parser)
    add_ledger(parser)
    add_tenant(parser)
    add_json(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.gateway.judgement.act_file import build_act_file, parse_act_file
    from aver.ledger import open_ledger

    path = Path(given.out)
    check_new_path(path, force=given.force)
    with open_ledger(given.ledger, tenant=given.tenant, create=False) as ledger:
        action_id, data = build_act_file(ledger, given.act)
        found = parse_act_file(data)
        names, others = _name_signers(found, ledger.keys.ring())
    write_new_file(path, data, force=given.force)
    if given.json:
        keys = {"export": names, "others": others}
        print_json({"path": str(path), "action_id": action_id, "records": len(found.records), "keys": keys})
        return 0
    more = "".join(f" --key {key}" for key in others)
    screen.print_line(f"wrote {path}: the act {action_id}, {plural(len(found.records), 'record')}")
    screen.print_line("Give the verifier the public keys by another channel than the act:")
    screen.print_line(f"  aver keys export {' '.join(names)} --out keys.json")
    screen.print_line(f"The verifier then runs: aver verify {path.name} --key keys.json{more}")
    return 0


def _name_signers(found: ActFile, ring: Ring) -> tuple[list[str], list[str]]:
    """Return the names for `aver keys export` of the keys that made the signatures, and keys that must be given bare.

    A principal's key may be in the settings of the gateway alone. If it is on the ring, too, it has another name there
    than the principal, and a verifier would not take it for the principal's.
    """
    from aver.gate.approvals.request import REQUEST_KIND, read_request
    from aver.keys import PublicKey

    principals = found.keys["principals"]
    keys = [key for name, keys in found.keys.items() for key in keys if name != "principals"]
    for record in found.records:
        if record.kind == REQUEST_KIND and found.approved_in is not None:
            request = read_request(record, ledger=found.approved_in[0], tenant=found.approved_in[1])
            # A passkey is on no ring. A verifier knows it by the key of the approver who endorsed it.
            keys += [approver.key for approver in request.approvers.values() if isinstance(approver.key, PublicKey)]
    names: dict[str, None] = {}
    others: dict[str, None] = dict.fromkeys(key.ed25519 for key in principals)
    for key in keys:
        own = ring.entry(key.fingerprint)
        listed = names if key in ring.lookup(key.fingerprint) else others
        listed[key.ed25519 if own is None else own.identity] = None
    return sorted(names, key=lambda name: (name != "ledger", name)), list(others)

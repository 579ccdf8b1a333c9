"""`aver prove`: writes a small file that proves that a sealed run contains an action. It hides the other actions."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from aver.cli.options import Usage, add_force, add_json, add_ledger, add_tenant
from aver.cli.terminal import Screen, print_json
from aver.errors import BadInput
from aver.files.new_file import check_new_path, write_new_file

if TYPE_CHECKING:
    from aver.actions.run_state import LoadedRun

EXAMPLES = """\
  aver prove act_0003_5d2e9a1b --run run.cap --out proof.json    prove the action with this id
  aver prove 3 --run runs/today > proof.json                     prove the fourth action
  aver prove capsule://actions.run_20260531_090000_5d2e9a1b/4    name the action by its capsule
  aver verify proof.json --key their-keys.json                   anyone can check it later"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action",
        metavar="ACTION",
        help="the action's id, receipt hash, or number from 0; without --run, the URI of its capsule",
    )
    parser.add_argument("--run", metavar="RUN", help="a run's directory, its .cap file, or its chain in the ledger")
    parser.add_argument("--out", metavar="FILE", help="write the proof here instead of to stdout")
    add_force(parser)
    add_ledger(parser)
    add_tenant(parser)
    add_json(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.actions.proofs.inclusion import find_action_index, inclusion_document

    if given.out is not None:
        check_new_path(Path(given.out), force=given.force)
    if given.run is None:
        found, index = _find_run_by_capsule(given)
    else:
        from aver.actions.run_state import load_run_from_ledger, load_run_from_path
        from aver.ledger import open_ledger
        from aver.ledger.lookup import locate

        path = Path(given.run).expanduser()
        if path.exists():
            found = load_run_from_path(path)
        else:
            with open_ledger(given.ledger, tenant=given.tenant, create=False) as ledger:
                found = load_run_from_ledger(ledger, locate(ledger, given.run).chain)
        index = find_action_index(found.actions, given.action)
    document = inclusion_document(found.actions, index, found.seal)
    if given.out is not None:
        write_new_file(Path(given.out), f"{json.dumps(document, indent=2)}\n".encode(), force=given.force)
    if given.json or given.out is None:
        print_json(document)
    else:
        words = f"wrote {given.out}: action {index} of {len(found.actions)}, {found.actions[index].action_id}"
        screen.print_line(words)
    return 0


def _find_run_by_capsule(given: argparse.Namespace) -> tuple[LoadedRun, int]:
    from aver.actions.run_state import load_run_from_ledger
    from aver.ledger import open_ledger
    from aver.ledger.lookup import locate

    with open_ledger(given.ledger, tenant=given.tenant, create=False) as ledger:
        place = locate(ledger, given.action)
        if place.sequence is None:
            raise Usage(f"{given.action} is a whole chain", advice="name one action in it: aver prove ACTION --run RUN")
        found = load_run_from_ledger(ledger, place.chain)
    index = place.sequence - 1
    if not 0 <= index < len(found.actions):
        raise BadInput(f"record {place.sequence} of {place.chain} is not an action")
    return found, index

"""`aver gateway smoke`: tries inside of a confinement what an agent could do, and writes a report."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from aver.cli.options import add_json, add_ledger, add_tenant
from aver.cli.terminal import Screen, print_json
from aver.cli.verbs.gateway.confinement_options import add_contract, open_run

EXAMPLES = """\
  aver gateway smoke --out smoke.json
  aver gateway smoke --contract contract.json --workspace ~/src/app --out smoke.json
  aver gateway verify-contract --contract contract.json --report smoke.json --out verdict.json

exit code: 0 if the report was written, whatever it says; 2 if this machine cannot confine."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_contract(parser)
    parser.add_argument("--out", required=True, metavar="FILE", help="the report; an older one is replaced")
    parser.add_argument("--workspace", default=os.curdir, metavar="DIR", help="where acts happen (default: here)")
    add_ledger(parser)
    add_tenant(parser)
    add_json(parser)
    parser.set_defaults(session=None)


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.capsule.json_document import dump_document
    from aver.files.new_file import check_new_path, write_new_file

    check_new_path(Path(given.out), force=True)
    with open_run(given) as confined:
        report = confined.probe()
    write_new_file(Path(given.out), dump_document(report), force=True)
    if given.json:
        print_json(report)
        return 0
    for name, probe in report.items():
        if isinstance(probe, dict) and "control" in probe:
            word = "works" if probe.get("spawned", probe.get("ok")) else f"denied ({probe.get('error', '')})"
            outside = "works" if probe["control"].get("ok") else f"fails ({probe['control'].get('error', '')})"
            screen.print_line(f"{name:<20}inside: {word}, outside: {outside}")
    screen.print_line(f"{len(report['clauses'])} clauses were probed; the report is in {given.out}")
    return 0

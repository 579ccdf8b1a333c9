"""`aver gateway verify-contract`: judges a smoke report by every section of its contract.

Exits with 0 if all of them hold, and with 1 if not. A contract or a report that has the wrong form holds nothing: the
verdict says why.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any

from aver.cli.files import read_json_file
from aver.cli.options import Usage, add_json
from aver.cli.terminal import Screen, print_json
from aver.cli.verbs.gateway.confinement_options import add_contract, print_verdict, read_contract
from aver.errors import BadInput, NotFound

EXAMPLES = """\
  aver gateway verify-contract --report smoke.json --out verdict.json
  aver gateway verify-contract --contract contract.json --report smoke.json --out verdict.json --json

exit code: 0 if every section holds, else 1."""

HELD, BROKEN = 0, 1
"""The exit codes of the RFC's own tool."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_contract(parser)
    parser.add_argument("--report", required=True, metavar="FILE", help="the report of aver gateway smoke")
    parser.add_argument("--out", required=True, metavar="FILE", help="the verdict; an older one is replaced")
    parser.add_argument(
        "--workspace", default=os.curdir, metavar="DIR", help="the workspace of the report (default: here)"
    )
    add_json(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.capsule.json_document import dump_document
    from aver.files.new_file import check_new_path, write_new_file

    check_new_path(Path(given.out), force=True)
    if not os.path.isdir(given.workspace):
        raise Usage(f"the workspace {given.workspace} is not a directory")
    verdict = _judge(given)
    write_new_file(Path(given.out), dump_document(verdict), force=True)
    if given.json:
        print_json(verdict)
    elif "error" in verdict:
        screen.print_line(screen.status_mark("failed"), f" FAIL: {verdict['error']}")
    else:
        print_verdict(verdict, screen)
    return HELD if verdict["ok"] else BROKEN


def _judge(given: argparse.Namespace) -> dict[str, Any]:
    """Return the verdict. Raises `NotFound` for a file that is not there."""
    from aver.config import load_config
    from aver.gateway.mediation.confined_run import judge_smoke
    from aver.gateway.mediation.contract_verdict import find_reported_values
    from aver.gateway.mediation.enclosure import list_values

    now = int(time.time())
    try:
        contract, path = read_contract(given)
        report = read_json_file(Path(given.report))
        values = list_values(given.workspace, load_config().home, dict(os.environ))
        expanded = contract.expand({**find_reported_values(report), **values})
    except NotFound:
        raise
    except BadInput as error:
        return {
            "status": "FAIL",
            "ok": False,
            "ts_unix": now,
            "contract_path": given.contract,
            "report_path": given.report,
            "error": str(error),
        }
    return judge_smoke(expanded, report, now=now, contract_path=path, report_path=given.report)

"""`aver protocol resume`: goes on with a trace that was interrupted."""

from __future__ import annotations

import argparse
from pathlib import Path

from aver.cli.options import add_json, add_ledger, add_tenant
from aver.cli.terminal import Screen, StderrScreen
from aver.cli.verbs.protocol.run import add_wait
from aver.cli.verbs.protocol.trace_access import add_trace, find_trace

EXAMPLES = """\
  aver protocol resume 5d2e
  aver protocol resume 5d2e --task task.toml --workspace ~/src/shop      with other roles than before

Aver reads and verifies the whole trace first. A call that was started and never ended becomes OUTCOME_UNKNOWN; Aver
never makes it a second time by itself."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_trace(parser)
    parser.add_argument("--task", metavar="FILE", help="take the roles from this task file (default: as it was begun)")
    parser.add_argument("--workspace", metavar="DIR", help="where the tools work (default: as it was begun)")
    add_wait(parser)
    add_ledger(parser)
    add_tenant(parser)
    add_json(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    import os
    import shlex

    import aver
    from aver.check import open_ledger
    from aver.cli.verbs.protocol.left_processes import find_left_processes
    from aver.cli.verbs.protocol.trace_run import load_roles, load_saved_run, run_and_report
    from aver.protocol.dispute import resolve_answered
    from aver.protocol.roles.task_file import read_task_file

    with open_ledger(given.ledger, tenant=given.tenant, create=False) as ledger:
        trace = find_trace(ledger, given.trace)
        with aver.ProtocolSession(None, ledger=ledger, trace=trace, wait=float(given.wait)) as session:
            if given.task is not None:
                path = Path(given.task)
                roles, directory = read_task_file(path).roles, str(path.parent.absolute())
                workspace = given.workspace or load_saved_run(session, missing="--workspace DIR").workspace
            else:
                saved = load_saved_run(session)
                roles, directory, workspace = saved.roles, saved.directory, given.workspace or saved.workspace
            session.workspace = os.path.abspath(workspace)
            for left in find_left_processes(session):
                words = f"process {left.pid} still runs a command whose call was given up: {shlex.join(left.argv)}"
                StderrScreen().print_note(f"{words}; the next call shares its workspace")
            resolve_answered(session)
            functions = load_roles(ledger, roles, workspace=session.workspace, directory=directory)
            return run_and_report(session, roles, functions, given, screen)

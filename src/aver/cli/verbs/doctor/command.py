"""`aver doctor`: finds problems with this installation and says how to solve them. It changes nothing."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from aver.cli.options import add_json, add_ledger
from aver.cli.terminal import Screen, print_json
from aver.text import plural

EXAMPLES = """\
  aver doctor
  aver doctor --ledger /srv/aver/ledger.db --json
  aver doctor --setup-sql | psql -d aver     create tables and roles on a PostgreSQL server, as their owner
  aver doctor --roles-sql | psql -d aver     set up the roles again and remove excess rights

exit code: 0 no problems (there may be warnings), 1 problems."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    sql = parser.add_mutually_exclusive_group()
    sql.add_argument("--setup-sql", action="store_true", help="print the SQL that creates an empty PostgreSQL ledger")
    sql.add_argument(
        "--roles-sql", action="store_true", help="print only the SQL that creates the roles and their rights"
    )
    add_ledger(parser)
    add_json(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    if given.setup_sql or given.roles_sql:
        from aver.ledger.stores.urls import server_sql

        text = server_sql("roles" if given.roles_sql else "setup")
        if given.json:
            print_json({"sql": text})
        else:
            print(text, end="")
        return 0
    from aver.cli.verbs.doctor.checks import run_checks
    from aver.cli.verbs.doctor.report import DoctorReport

    reports: list[DoctorReport] = []
    for report in run_checks(given.ledger):
        reports.append(report)
        if not given.json:
            screen.print_hanging(screen.status_mark(report.status), f" {report.subject:<10} ", text=report.words)
            if report.advice:
                screen.print_hanging(" " * 13, text=report.advice, style="warn")
    problems = sum(report.status == "problem" for report in reports)
    warnings = sum(report.status == "warning" for report in reports)
    if given.json:
        listed = [asdict(report) for report in reports]
        print_json({"problems": problems, "warnings": warnings, "reports": listed})
    else:
        screen.print_line()
        screen.print_line(f"{plural(problems, 'problem')}, {plural(warnings, 'warning')}")
    return 1 if problems else 0

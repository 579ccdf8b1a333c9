"""`aver doctor`: look for trouble and say what to do about it. It creates and repairs nothing."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from aver.cli.options import add_json, add_ledger
from aver.cli.output import Screen, plural, print_json

__all__ = ["EXAMPLES", "add_arguments", "run"]

EXAMPLES = """\
  aver doctor
  aver doctor --ledger /srv/aver/ledger.db --json

exit code: 0 no problem (there may be warnings), 1 a problem."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_ledger(parser)
    add_json(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.cli.examinations import Report, examine

    reports: list[Report] = []
    for report in examine(given.ledger):
        reports.append(report)
        if not given.json:
            screen.hanging(screen.mark(report.status), f" {report.subject:<10} ", text=report.words)
            if report.advice:
                screen.hanging(" " * 13, text=report.advice, style="warn")
    problems = sum(report.status == "problem" for report in reports)
    warnings = sum(report.status == "warning" for report in reports)
    if given.json:
        listed = [asdict(report) for report in reports]
        print_json({"problems": problems, "warnings": warnings, "reports": listed})
    else:
        screen.line()
        screen.line(f"{plural(problems, 'problem')}, {plural(warnings, 'warning')}")
    return 1 if problems else 0

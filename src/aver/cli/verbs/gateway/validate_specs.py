"""`aver gateway validate-specs`: checks the four files of the RFC that machines read."""

from __future__ import annotations

import argparse
from pathlib import Path

from aver.cli.options import add_json
from aver.cli.terminal import Screen, print_json
from aver.errors import NotFound

EXAMPLES = """\
  aver gateway validate-specs                 those that come with Aver
  aver gateway validate-specs spec            those in a directory"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", nargs="?", metavar="DIR", help="a directory with the four files")
    add_json(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.files.regular import open_file
    from aver.gateway.specs import SPEC_FILES, SPEC_MAX, validate_specs

    documents = None
    if given.directory is not None:
        documents = {}
        for name in SPEC_FILES:
            try:
                with open_file(Path(given.directory) / name) as file:
                    documents[name] = file.read(SPEC_MAX + 1)
            except NotFound:
                continue  # `validate_specs` says which are missing.
    problems = validate_specs(documents)
    if given.json:
        print_json({"status": "FAIL" if problems else "OK", "files": list(SPEC_FILES), "problems": problems})
    elif problems:
        for problem in problems:
            screen.print_line(screen.status_mark("failed"), f" {problem}")
    else:
        screen.print_line("OK: specs validate")
    return 1 if problems else 0

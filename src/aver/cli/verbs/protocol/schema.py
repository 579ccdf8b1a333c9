"""`aver protocol schema`: prints the JSON Schema of an event, or lists the events."""

from __future__ import annotations

import argparse

from aver.cli.options import Usage, add_json
from aver.cli.terminal import LinePart, Screen, print_json

EXAMPLES = """\
  aver protocol schema                       list the events: who says each, and to what it refers
  aver protocol schema claim_issued          print its schema, for a validator or a model's tool"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("event", nargs="?", metavar="EVENT", help="the event, such as claim_issued (default: list all)")
    add_json(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.protocol.events import FORMS, load_schema

    if given.event is None:
        if given.json:
            forms = {
                name: {"roles": form.roles, "refs": form.refs, "optional": form.optional}
                for name, form in FORMS.items()
            }
            print_json({"events": forms})
            return 0
        rows: list[list[LinePart]] = []
        for name, form in FORMS.items():
            refs = ", ".join((*form.refs, *(f"{ref}?" for ref in form.optional)))
            rows.append([name, " or ".join(form.roles), refs])
        screen.print_table(rows, header=("event", "said by", "refers to"))
        return 0
    if given.event not in FORMS:
        raise Usage(f"{given.event!r} is not an event", advice="aver protocol schema lists the events")
    print_json(load_schema(given.event))
    return 0

"""`aver protocol accept`: takes in joins and events that participants elsewhere have signed."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from aver.cli.options import Usage, add_json, add_ledger, add_tenant
from aver.cli.terminal import Screen, StderrScreen, print_json
from aver.cli.verbs.protocol.trace_access import DOCUMENT_MAX, event_to_dict, print_event
from aver.errors import AverError

if TYPE_CHECKING:
    from aver.keys import Statement
    from aver.protocol.statements import ContributionFile, JoinFile

EXAMPLES = """\
  aver protocol accept challenge.signed.json
  aver protocol accept carol.json dora.json        several, in this order

A file names its trace. It counts once, and only there; the operator's key seals around the signature."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="a signed join or contribution")
    add_ledger(parser)
    add_tenant(parser)
    add_json(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    import aver
    from aver.capsule.json_document import dump_document, read_exactly
    from aver.check import open_ledger
    from aver.files.regular import open_file, read_limited
    from aver.protocol.contributions import read_document

    documents: list[tuple[str, ContributionFile | JoinFile | Statement]] = []
    for name in given.files:
        with open_file(Path(name)) as file:
            raw = read_limited(file, DOCUMENT_MAX, name)
        documents.append((name, read_exactly(raw, name, read_document, lambda found: dump_document(found.to_dict()))))
    code, events = 0, []
    with open_ledger(given.ledger, tenant=given.tenant, create=False) as ledger:
        for name, document in documents:
            try:
                with aver.ProtocolSession(None, ledger=ledger, trace=_find_trace(document, name)) as session:
                    events.append(session.accept(document))
            except AverError as error:
                StderrScreen().print_error(f"{name}: {error.message}", error.advice)
                code = max(code, error.exit_code)
                continue
            if not given.json:
                print_event(screen, events[-1])
    if given.json:
        print_json({"accepted": [event_to_dict(event) for event in events], "refused": len(documents) - len(events)})
    return code


def _find_trace(document: ContributionFile | JoinFile | Statement, name: str) -> str:
    """Return the trace that a file names."""
    from aver.capsule.aver_block import TRACE_PREFIX
    from aver.protocol.statements import ContributionFile, JoinFile

    statement = document.join if isinstance(document, JoinFile) else document
    chain = (statement.statement if isinstance(statement, ContributionFile) else statement).content.get("chain")
    if not isinstance(chain, str) or not chain.startswith(TRACE_PREFIX):
        raise Usage(f"{name} is no signed join or contribution")
    return chain.removeprefix(TRACE_PREFIX)

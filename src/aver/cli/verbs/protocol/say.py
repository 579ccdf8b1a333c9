"""`aver protocol say`: says one event as a participant, or signs it for the operator of a trace elsewhere."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aver.cli.options import Usage, add_force, add_json, add_ledger, add_tenant
from aver.cli.terminal import Screen, print_json
from aver.cli.verbs.protocol.trace_access import (
    DOCUMENT_MAX,
    add_agent,
    event_to_dict,
    open_bundle_session,
    open_session,
    print_event,
    read_agent,
    read_object,
    write_signed,
)

if TYPE_CHECKING:
    from aver.capsule.blobs import Blob
    from aver.protocol.statements import ContributionFile
    from aver.protocol.view import Said

EXAMPLES = """\
  aver protocol say 5d2e proposal_reviewed review.json --as agent:critic
  echo '{"refs": {"claim": "3f0c…"}, "payload": {"reason": "no tests ran"}}' |
      aver protocol say 5d2e claim_challenged - --as agent:critic
  aver protocol say 5d2e artifact_recorded --as agent:worker --artifact notes=notes.txt
  aver protocol say bundle claim_challenged c.json --as agent:critic --out c.signed.json      for a trace elsewhere

FILE has {"payload": {...}, "refs": {...}}. aver protocol schema EVENT shows the payload's form."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("trace", metavar="TRACE|BUNDLE", help="a trace here, or a bundle of a trace elsewhere")
    parser.add_argument("event", metavar="EVENT", help="the event, such as claim_challenged")
    parser.add_argument("file", nargs="?", metavar="FILE|-", help="payload and refs as JSON; - for standard input")
    add_agent(parser)
    parser.add_argument(
        "--artifact", action="append", default=[], metavar="NAME=FILE", help="a file that comes along; repeatable"
    )
    parser.add_argument("--out", metavar="FILE", help="sign the event and write it to this file; append nothing")
    add_force(parser)
    add_ledger(parser)
    add_tenant(parser)
    add_json(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.protocol.roles.said_events import contribute_for, say_for

    said = _read_said(given)
    agent = read_agent(given.agent)
    if os.path.isdir(given.trace):
        if given.out is None:
            raise Usage("a bundle cannot be appended to", advice="give --out FILE, and send the file to its operator")
        with open_bundle_session(given.trace, given.tenant) as session:
            signed = contribute_for(session, agent, said)
        return _write_signed(given, signed, screen)
    with open_session(given) as session:
        if given.out is not None:
            signed = contribute_for(session, agent, said)
            return _write_signed(given, signed, screen)
        if said.event == "tool_intent_signed":
            from aver.protocol.tools.standard_tools import protocol_tools

            session.tools = protocol_tools(session.workspace)
        event = say_for(session, agent, said)
    if given.json:
        print_json(event_to_dict(event))
    else:
        print_event(screen, event)
    return 0


def _read_said(given: argparse.Namespace) -> Said:
    from aver.protocol.records.draft import prepare_payload
    from aver.protocol.rules.step import EventRefused
    from aver.protocol.view import Said

    document: dict[str, Any] = {}
    if given.file == "-":
        document = read_object(sys.stdin.buffer.read(DOCUMENT_MAX + 1), "standard input")
    elif given.file is not None:
        from aver.files.regular import open_file, read_limited

        with open_file(Path(given.file)) as file:
            document = read_object(read_limited(file, DOCUMENT_MAX, given.file), given.file)
    if document.keys() - {"payload", "refs"}:
        raise Usage(f"{given.file} has more than payload and refs", advice='write {"payload": {...}, "refs": {...}}')
    payload, refs = document.get("payload", {}), document.get("refs", {})
    if not isinstance(payload, dict) or not isinstance(refs, dict):
        raise Usage("payload and refs must be objects")
    artifacts = [_read_artifact(text) for text in given.artifact]
    if given.event == "artifact_recorded" and len(artifacts) == 1:
        payload = {"name": artifacts[0][0], "blob": artifacts[0][1].reference, **payload}
    if given.file is None:
        try:
            prepare_payload(given.event, payload)
        except EventRefused as error:
            words = f"{given.event} needs a payload, and no FILE was given ({error.message})"
            raise Usage(words, advice="give a FILE, or - to read standard input") from error
    return Said(event=given.event, payload=payload, refs=refs, artifacts=tuple(blob for _, blob in artifacts))


def _read_artifact(text: str) -> tuple[str, Blob]:
    from aver.capsule.blobs import BLOB_MAX, Blob
    from aver.files.regular import open_file, read_limited
    from aver.protocol.calls import mask_bytes
    from aver.protocol.tools.command_tool import guess_media

    name, equals, path = text.partition("=")
    if not equals or not name or not path:
        raise Usage(f"--artifact {text}: give NAME=FILE")
    with open_file(Path(path)) as file:
        return name, Blob(mask_bytes(read_limited(file, BLOB_MAX, path)), guess_media(path))


def _write_signed(given: argparse.Namespace, signed: ContributionFile, screen: Screen) -> int:
    write_signed(given.out, signed, force=given.force)
    if given.json:
        print_json({"path": given.out, "event": given.event})
    else:
        screen.print_line(f"wrote {given.out}; its operator runs: aver protocol accept {os.path.basename(given.out)}")
    return 0

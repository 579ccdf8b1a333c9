"""`aver export`: writes chains as a bundle directory. Anyone can verify it with Aver or with another tool."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from aver.cli.options import add_force, add_json, add_ledger, add_tenant
from aver.cli.terminal import Screen, StderrScreen, print_json
from aver.fast_dataclass import dataclass
from aver.text import plural, to_one_line

if TYPE_CHECKING:
    from aver.ledger import Ledger

EXAMPLES = """\
  aver export --out bundle                         export all chains and the meta chain
  aver export --out bundle 5d2e                    export a session, with its subagents and the decisions about it
  aver export --out bundle claude-code.5d2e        export one chain, and nothing else of its session
  aver export --html --out site 5d2e               a session with a page that shows and verifies it in a browser
  aver export --out bundle protocol.5d2e           export a trace, with decisions and approvals that it rests on
  aver verify bundle --key bundle.keys.json        the receiver checks the bundle with the keys that lie beside it;
                                                   send these by another channel than the bundle
  aver log --ledger bundle                         and reads it with this"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "names",
        nargs="*",
        metavar="CHAIN|SESSION",
        help="export only these: a chain by its whole name, or all chains of a session by the beginning of its id "
        "(default: all chains)",
    )
    parser.add_argument("--out", required=True, metavar="DIR", help="the directory to write")
    parser.add_argument(
        "--with-meta", action="store_true", help="include the meta chain when only some chains are exported"
    )
    parser.add_argument(
        "--no-approvals",
        action="store_true",
        help="leave out the approvals that a trace or session to export rests on",
    )
    parser.add_argument("--no-blobs", action="store_true", help="leave out large values")
    parser.add_argument(
        "--html", action="store_true", help="add the Explorer's page: open index.html, or put DIR on any web server"
    )
    add_force(parser)
    add_ledger(parser)
    add_tenant(parser)
    add_json(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.files.new_file import check_new_path, write_new_file
    from aver.keys.exchange import dump_key_export
    from aver.ledger import open_ledger
    from aver.ledger.bundle import export_bundle
    from aver.ledger.bundle.layout import read_index
    from aver.ledger.bundle.signers import find_used_keys
    from aver.ledger.bundle.site import PAGE_FILE

    # Beside the bundle, never in it: keys that come with the records prove nothing about them.
    key_file = Path(f"{os.path.abspath(given.out)}.keys.json")
    check_new_path(key_file, force=given.force)

    with open_ledger(given.ledger, tenant=given.tenant, create=False) as ledger:
        chosen = _choose_chains(ledger, given.names)
        approvals = [] if given.no_approvals else _find_approvals(ledger, chosen)
        chains = [*chosen.chains, *approvals]
        done = export_bundle(
            ledger,
            Path(given.out),
            chains=chains or None,
            with_meta=given.with_meta,
            blobs=not given.no_blobs,
            html=given.html,
            force=given.force,
        )
        used = find_used_keys(ledger, [claim.id for claim in read_index(done.path).chains])
    if used.keys:
        write_new_file(key_file, dump_key_export(used.keys), force=given.force)
    if given.json:
        counts = {"chains": done.chains, "capsules": done.capsules, "missing": done.missing, "blobs": done.blobs}
        keys = {"keys": str(key_file) if used.keys else None, "unknown_keys": used.unknown}
        signed = {"fingerprint": done.fingerprint, "head_signed": done.head_signed}
        print_json({"path": str(done.path), **counts, **signed, **keys})
        return 0
    blobs = f", {plural(done.blobs, 'blob')}" if done.blobs else ""
    screen.print_line(f"wrote {done.path}: {plural(done.capsules, 'record')} in {plural(done.chains, 'chain')}{blobs}")
    if done.missing:
        words = f"{plural(done.missing, 'record')} of these chains could not be exported: the ledger no longer has them"
        StderrScreen().print_note(f"{words}; run: aver verify")
    for left in chosen.left_out:
        StderrScreen().print_note(left)
    if given.html:
        screen.print_line(f"open {done.path / PAGE_FILE} in a browser, or put the directory on any web server")
    if approvals:
        words = f"with {' and '.join(approvals)}: a person has decided here, and these show all that people were asked"
        StderrScreen().print_note(f"{words}; --no-approvals leaves them out")
    if done.head_signed:
        screen.print_line(f"head.json states where these chains end, signed by the ledger's key {done.fingerprint}")
    else:
        StderrScreen().print_note(
            "the ledger's key is not at hand here, so the bundle has no head.json: a verdict on it is at most "
            "qualified, because no signature says that it is complete"
        )
    if used.keys:
        screen.print_line(f"wrote {key_file.name} beside it: {plural(len(used.keys), 'public key')}")
        screen.print_line("Send these keys by another channel than the bundle. The receiver then runs:")
        screen.print_line(f"  aver verify {done.path.name} --key {key_file.name}")
    if used.unknown:
        StderrScreen().print_note(used.describe_unknown())
    return 0


@dataclass(frozen=True, slots=True)
class _Choice:
    """The chains that the names of a command line mean."""

    chains: list[str]
    """None of them means all chains."""
    judged: set[str]
    """Those of traces and sessions, with the gate's decisions about them. They may rest on a person's answer."""
    left_out: list[str]
    """What the reader should know about chains that belong to these, and that nobody named."""


def _choose_chains(ledger: Ledger, names: list[str]) -> _Choice:
    """The chains to export. Raises `NotFound` for a name of nothing, and `BadInput` for one of several sessions.

    1. A chain's whole name means this chain.
    2. A trace, which may be named by its id alone, takes the gate's decisions about its calls along: it cannot be
       judged without them.
    3. Any other name means a session, with all its chains.
    """
    from aver.capsule.aver_block import TRACE_PREFIX

    here = set(ledger.chains())
    chains: list[str] = []
    judged: set[str] = set()
    alone: list[str] = []
    for name in names:
        chain = name if name in here else f"{TRACE_PREFIX}{name}"
        if chain in here:
            found = [chain]
            if chain.startswith(TRACE_PREFIX):
                found += [each for each in (f"gate.{chain.removeprefix(TRACE_PREFIX)}",) if each in here]
                judged.update(found)
            else:
                alone.append(chain)
        else:
            found = _find_session_chains(ledger, name)
            judged.update(found)
        chains += found
    chains = list(dict.fromkeys(chains))
    return _Choice(chains, judged, list(_describe_left_out(ledger, alone, set(chains))))


def _find_session_chains(ledger: Ledger, name: str) -> list[str]:
    """All chains of the session that a name means. Raises `NotFound` if there is none, `BadInput` for several."""
    from aver.errors import BadInput, NotFound
    from aver.ledger.lookup import locate
    from aver.sessions.sessions import find_named_session

    session = find_named_session(ledger, name)
    if session is not None:
        return list(session.names)
    shown = ascii(name)[:80]
    advice = "aver sessions lists the sessions, aver log the chains"
    try:
        place = locate(ledger, name)
    except (BadInput, NotFound):
        raise NotFound(f"no chain and no session in this ledger is called {shown}", advice=advice) from None
    if place.sequence is not None:
        words = f"{shown} is a record of the chain {place.chain}, and whole chains are exported"
        raise NotFound(words, advice=f"name the chain, or its session; {advice}")
    words = f"no session begins with {shown}, and a chain is exported by its whole name"
    raise NotFound(words, advice=f"did you mean {place.chain}? {advice}")


def _describe_left_out(ledger: Ledger, alone: list[str], chosen: set[str]) -> Iterator[str]:
    """For each chain that was named as one, and is the main chain of a session: which of its chains stay out."""
    from aver.sessions.sessions import find_session_by_chain

    for chain in alone:
        session = find_session_by_chain(ledger, chain)
        rest = [] if session is None else [name for name in session.names if name not in chosen]
        if session is not None and session.main == chain and rest:
            words = f"{chain} is one chain of a session; not exported: {plural(len(rest), 'other chain')} of it"
            yield to_one_line(f"{words}, such as {rest[0]}; to export the whole session, name {session.session}")


def _find_approvals(ledger: Ledger, chosen: _Choice) -> list[str]:
    """The chains of requests and approvers, if a trace or session rests on a person's answer. Else there are none."""
    from aver.capsule.aver_block import read_block
    from aver.gate.approvals.enrolment import approvers_chain
    from aver.gate.approvals.request_records import approvals_chain

    both = (approvals_chain(ledger.tenant), approvers_chain(ledger.tenant))
    here = set(ledger.chains())
    for chain in chosen.chains:
        for record in ledger.read(chain) if chain in chosen.judged else ():
            block = read_block(record.content) if b'"approval":' in record.canonical else None
            refs = block.get("refs") if block is not None else None
            if isinstance(refs, dict) and "approval" in refs:
                return [name for name in both if name in here and name not in chosen.chains]
    return []

"""`aver export`: writes chains as a bundle directory. Anyone can verify it with Aver or with another tool."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from aver.cli.options import add_force, add_json, add_ledger, add_tenant
from aver.cli.terminal import Screen, StderrScreen, print_json
from aver.text import plural

if TYPE_CHECKING:
    from aver.ledger import Ledger

EXAMPLES = """\
  aver export --out bundle                         export all chains and the meta chain
  aver export --out bundle claude-code.5d2e        export one chain
  aver export --html --out site                    the same, with a page that shows and verifies it in a browser
  aver export --out bundle protocol.5d2e           export a trace, with decisions and approvals that it rests on
  aver keys export --out keys.json                 then send this file by another channel than the bundle
  aver verify bundle --key keys.json               the receiver checks the bundle with this
  aver log --ledger bundle                         and reads it with this"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("chains", nargs="*", metavar="CHAIN", help="export only these chains (default: all)")
    parser.add_argument("--out", required=True, metavar="DIR", help="the directory to write")
    parser.add_argument(
        "--with-meta", action="store_true", help="include the meta chain when only some chains are exported"
    )
    parser.add_argument(
        "--no-approvals", action="store_true", help="leave out the approvals that a trace to export rests on"
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
    from aver.keys import LEDGER
    from aver.ledger import open_ledger
    from aver.ledger.bundle import export_bundle
    from aver.ledger.bundle.signers import find_needed_keys
    from aver.ledger.bundle.site import PAGE_FILE

    with open_ledger(given.ledger, tenant=given.tenant, create=False) as ledger:
        chains = _add_decisions(given.chains, set(ledger.chains()))
        approvals = [] if given.no_approvals else _find_approvals(ledger, chains)
        chains += approvals
        done = export_bundle(
            ledger,
            Path(given.out),
            chains=chains or None,
            with_meta=given.with_meta,
            blobs=not given.no_blobs,
            html=given.html,
            force=given.force,
        )
        needed = find_needed_keys(ledger, done.path)
    if given.json:
        counts = {"chains": done.chains, "capsules": done.capsules, "blobs": done.blobs}
        print_json({"path": str(done.path), **counts, "fingerprint": done.fingerprint, "head_signed": done.head_signed})
        return 0
    blobs = f", {plural(done.blobs, 'blob')}" if done.blobs else ""
    screen.print_line(f"wrote {done.path}: {plural(done.capsules, 'record')} in {plural(done.chains, 'chain')}{blobs}")
    if given.html:
        screen.print_line(f"open {done.path / PAGE_FILE} in a browser, or put the directory on any web server")
    if approvals:
        words = f"with {' and '.join(approvals)}: a person has decided here, and these show all that people were asked"
        StderrScreen().print_note(f"{words}; --no-approvals leaves them out")
    if done.head_signed:
        screen.print_line(f"head.json states where these chains end, signed by the ledger's key {done.fingerprint}")
        screen.print_line("Give the verifier your public key in a file, by another channel than the bundle:")
        # Without names, `aver keys export` exports the key of the ledger alone.
        names = [] if needed.names == (LEDGER,) else needed.names
        screen.print_line(f"  aver keys export {' '.join((*names, '--out keys.json'))}")
        screen.print_line(f"The verifier then runs: aver verify {done.path.name} --key keys.json")
        if needed.unknown:
            words = f"you do not know these keys, which sign in the bundle: {', '.join(needed.unknown)}"
            StderrScreen().print_note(f"{words}; the verifier must get them from their owners")
    else:
        StderrScreen().print_note(
            "the ledger's key is not at hand here, so the bundle has no head.json: a verdict on it is at most "
            "qualified, because no signature says that it is complete"
        )
    return 0


def _add_decisions(chains: list[str], here: set[str]) -> list[str]:
    """The chains to export. A trace takes the gate's decisions about its calls along: it cannot be judged without them.

    A trace may be named by its id alone.
    """
    from aver.capsule.aver_block import TRACE_PREFIX

    named = [
        name if name in here or f"{TRACE_PREFIX}{name}" not in here else f"{TRACE_PREFIX}{name}" for name in chains
    ]
    decisions = [f"gate.{name.removeprefix(TRACE_PREFIX)}" for name in named if name.startswith(TRACE_PREFIX)]
    return list(dict.fromkeys([*named, *(name for name in decisions if name in here)]))


def _find_approvals(ledger: Ledger, chains: list[str]) -> list[str]:
    """The chains of requests and approvers, if a trace to export rests on a person's answer. Else there are none."""
    from aver.capsule.aver_block import TRACE_PREFIX, read_block
    from aver.gate.approvals.enrolment import approvers_chain
    from aver.gate.approvals.request_records import approvals_chain

    traces = {name for name in chains if name.startswith(TRACE_PREFIX)}
    decisions = {f"gate.{name.removeprefix(TRACE_PREFIX)}" for name in traces}
    needed = [name for name in (approvals_chain(ledger.tenant), approvers_chain(ledger.tenant)) if name not in chains]
    here = set(ledger.chains())
    for chain in chains:
        for record in ledger.read(chain) if chain in traces | decisions else ():
            block = read_block(record.content) if b'"approval":' in record.canonical else None
            refs = block.get("refs") if block is not None else None
            if isinstance(refs, dict) and "approval" in refs:
                return [name for name in needed if name in here]
    return []

"""`aver checkpoint`: writes a signed snapshot of where every chain ends.

A copy that the ledger's owner cannot change proves later that no record was removed.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from aver.cli.options import Usage, add_force, add_json, add_ledger, add_tenant
from aver.cli.terminal import Screen, StderrScreen, print_json
from aver.errors import NotFound
from aver.files.new_file import check_new_path, write_new_file
from aver.text import plural

if TYPE_CHECKING:
    from aver.ledger import Ledger

EXAMPLES = """\
  aver checkpoint --out monday.json          write a file; keep it on another machine
  aver verify --checkpoint monday.json       later: check that nothing was removed
  aver checkpoint --git ../audit --commit    add a checkpoint to the history in a git repository
  aver checkpoint | ssh vault 'cat >> aver.jsonl'
  aver checkpoint --close claude-code.5d2e   also record that this chain has ended
  aver checkpoint --sweep                    also record all heads in the meta chain"""

STDOUT = "-"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", metavar="FILE", help="write the checkpoint to this file (default: -, stdout)")
    add_force(parser)
    parser.add_argument(
        "--git", metavar="DIR", help="append it to checkpoints/<ledger>.<tenant>.jsonl in this git repository"
    )
    parser.add_argument("--commit", action="store_true", help="with --git: commit that file and nothing else")
    parser.add_argument(
        "--close", action="append", default=[], metavar="CHAIN", help="first record that this chain has ended"
    )
    parser.add_argument(
        "--sweep", action="store_true", help="first record the heads of all changed chains in the meta chain"
    )
    add_ledger(parser)
    add_tenant(parser)
    add_json(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.ledger import open_ledger
    from aver.ledger.meta_chain import sweep

    if given.commit and given.git is None:
        raise Usage("--commit needs --git")
    to_file = given.out not in (None, STDOUT)
    if to_file:
        check_new_path(Path(given.out), force=given.force)
    notes = []
    with open_ledger(given.ledger, tenant=given.tenant, create=False) as ledger:
        if not ledger.chains():
            raise NotFound(f"tenant {ledger.tenant} has no chains yet", advice="seal something first: aver seal --help")
        for chain in given.close:
            entry = ledger.close_chain(chain)
            notes.append(f"closed {chain}: recorded in meta, sequence {entry.sequence}")
        if given.sweep:
            notes.append(f"swept: {plural(len(sweep(ledger)), 'new record')} in meta")
        on_stdout = given.json or given.out == STDOUT or (given.out is None and given.git is None)
        if given.git is not None:
            notes += _add_to_history(ledger, given)
        if to_file or on_stdout:
            from aver.ledger.checkpoint import make_checkpoint
            from aver.ledger.checkpoint_files import to_checkpoint_line

            statement = make_checkpoint(ledger)
            if to_file:
                path = Path(given.out)
                write_new_file(path, to_checkpoint_line(statement), force=given.force)
                heads = plural(len(statement.content["heads"]), "chain")
                notes.append(
                    f"wrote {path}: the heads of {heads}; keep it where the owner of this ledger cannot change it"
                )
            if on_stdout:
                print_json(statement.to_dict())
    for note in notes:
        (StderrScreen() if on_stdout else screen).print_line(note)
    return 0


def _add_to_history(ledger: Ledger, given: argparse.Namespace) -> list[str]:
    from aver.ledger.checkpoint_files import append_checkpoint, history_path

    repository = Path(given.git)
    path = history_path(repository, ledger)
    added = append_checkpoint(repository, ledger)
    words = f"nothing changed since the last checkpoint in {path}"
    if added is not None:
        words = f"added to {path}: {plural(len(added.heads), 'new head')}"
    if not given.commit:
        return [words]
    from aver.cli.git_commit import commit_file

    commit = commit_file(repository, path.relative_to(repository), f"Checkpoint of ledger {ledger.id}")
    return [words, "already committed" if commit is None else f"committed as {commit[:12]}"]

"""`aver copy`: copies a ledger byte for byte to another store and verifies the copy.

An interrupted copy continues where it stopped when the command is run again.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from aver.cli.options import add_json, add_ledger, add_tenant
from aver.cli.terminal import Progress, Screen, print_json
from aver.cli.verdict_text import exit_code, print_verdict
from aver.errors import BadInput, Unavailable
from aver.text import plural

if TYPE_CHECKING:
    from aver.config import Config
    from aver.ledger.head import Head
    from aver.ledger.stores.copy import CopyResult
    from aver.ledger.verified_heads import VerifiedChains
    from aver.verdict import Verdict

EXAMPLES = """\
  aver copy --to postgresql://aver@db.example/aver          copy the default ledger to a server
  aver copy --ledger postgresql://aver@db.example/aver --to sqlite:///copy.db
  aver copy --to /mnt/backup/ledger.db --tenant red         copy one tenant's chains

exit code: 0 the copy is verified or qualified, 1 it is not.
Run it again after an interruption, or when the ledger has grown."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--to", required=True, metavar="URL", help="the target: a new ledger, or an earlier copy of this one"
    )
    add_ledger(parser)
    add_tenant(parser, default="all of the ledger's")
    add_json(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.config import load_config

    config = load_config(ledger=given.ledger)
    # Before the end of the copy is fixed: another process may verify newer records of the original meanwhile, and the
    # copy would seem to have been cut.
    memory = _load_memory(config)
    copied = _copy_store(config, given.to, given.tenant)
    verdicts = {tenant: _verify_copy(config, given.to, tenant, memory.get(tenant)) for tenant in copied.tenants}
    statuses = [verdict.status for verdict in verdicts.values()] or ["empty"]
    if given.json:
        listed = [{"tenant": tenant, **verdict.to_dict()} for tenant, verdict in verdicts.items()]
        described = {"chains": copied.chains, "records": copied.records, "copied": copied.copied, "tenants": listed}
        print_json(described)
        return exit_code(statuses, strict=False)
    before = copied.records - copied.copied
    there = f", {before:,} were already there" if before else ""
    screen.print_line(f"copied {plural(copied.copied, 'record')} in {plural(copied.chains, 'chain')}{there}")
    for tenant, verdict in verdicts.items():
        screen.print_line()
        print_verdict(screen, verdict, about=f", tenant {tenant}" if len(verdicts) > 1 else "")
    return exit_code(statuses, strict=False)


def _copy_store(config: Config, to: str, tenant: str | None) -> CopyResult:
    from aver.ledger.stores.copy import copy_ledger
    from aver.ledger.stores.urls import open_store

    source = open_store(config.ledger, create=False, timeout=config.lock_timeout)
    try:
        target = open_store(to, create=True, timeout=config.lock_timeout, facts=source.facts())
        try:
            with Progress("copying") as progress:
                return copy_ledger(source, target, tenants=None if tenant is None else [tenant], progress=progress)
        finally:
            target.close()
    finally:
        source.close()


Memory = tuple["VerifiedChains", "Head | None"]
"""What this machine has verified of a tenant: the heads of its chains, and the newest head of `meta`."""


def _load_memory(config: Config) -> dict[str, Memory]:
    """Read what this machine has verified of each tenant of the original, where that can be read."""
    from aver.ledger.ledger import list_tenants, open_ledger
    from aver.ledger.seen_heads import read_seen_head
    from aver.ledger.verified_heads import load_verified

    found = {}
    for tenant in list_tenants(config.ledger, home=config.home):
        with open_ledger(config.ledger, tenant=tenant, home=config.home, create=False) as ledger:
            try:
                # Without trust in any head, all records are read.
                found[tenant] = load_verified(ledger).distrust([None]), read_seen_head(ledger)
            except (BadInput, Unavailable):
                continue  # The verdict on the copy says why.
    return found


def _verify_copy(config: Config, url: str, tenant: str, memory: Memory | None) -> Verdict:
    from aver.check import open_ledger
    from aver.ledger.verify import verify_ledger

    known, seen = (None, None) if memory is None else memory

    with open_ledger(url, tenant=tenant, home=config.home, create=False) as copy, Progress("verifying") as progress:
        return verify_ledger(
            copy,
            None,
            level="signature",
            since=known,
            ring=copy.ring(),
            require_pq=False,
            progress=progress,
            examiners=copy.examiners,
            seen="stored" if memory is None else seen,
        )

"""`aver verify`: the verdict on anything. It is never a bare "valid": the checks that were not made are always named.

`aver.check` makes the verdicts. This module reads the command line, and prints the verdicts or gives them as JSON.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from aver.cli.files import read_json_file
from aver.cli.options import Usage, add_json, add_ledger, add_tenant, parse_count, parse_port
from aver.cli.terminal import Progress, Screen, StderrScreen, print_json
from aver.cli.verdict_text import exit_code, have_matched, print_verdict
from aver.errors import AverError, BadInput
from aver.fast_dataclass import dataclass

if TYPE_CHECKING:
    from aver.keys import KeyLike
    from aver.ledger import Head
    from aver.verdict import Verdict

LAST: Literal["last"] = "last"
"""`--since last`: from what was verified on this machine before."""

META = "meta"


@dataclass(frozen=True, slots=True)
class TargetVerdict:
    """The verdict on one thing; on one tenant of it, where it is a whole ledger."""

    verdict: Verdict
    tenant: str | None = None
    thing: str | None = None
    """The argument that named it, if the command line names several."""

    @property
    def about(self) -> str:
        """The part of the headline that the verdict's subject does not contain."""
        return "" if self.tenant is None else f", tenant {self.tenant}"


def verify_targets(given: argparse.Namespace) -> list[TargetVerdict]:
    """The verdicts on the things that the command line names, in that order."""
    from aver.check import verify
    from aver.config import load_config
    from aver.ledger import Head

    several = len(given.things) > 1
    if several and (given.since is not None or given.checkpoint or given.deep):
        raise Usage("--since, --checkpoint and --deep go with one thing at a time", advice="verify them one by one")
    things, tenant = given.things or [None], given.tenant
    if given.deep:
        if things != [META]:
            raise Usage("--deep goes with meta", advice="aver verify meta --deep; everything else is verified whole")
        # Every record of the tenant whose meta chain it is.
        things, tenant = [None], tenant or load_config().tenant
    # `last` and COUNT:HASH are left as they are; anything else is a file with a head.
    since: Head | str | None = given.since
    if given.since not in (None, LAST) and not (":" in given.since and not Path(given.since).exists()):
        try:
            since = Head.from_dict(read_json_file(Path(given.since)))
        except BadInput as error:
            raise BadInput(f"--since {given.since}: {error.message}", advice=error.advice) from error
    keys = read_key_options(given)
    found = []
    for thing in things:
        with Progress("verifying") as progress:
            verdict = verify(
                thing,
                keys=keys,
                level=given.level,
                require_pq=given.require_pq,
                tenant=tenant,
                ledger=given.ledger,
                since=since,
                checkpoints=given.checkpoint,
                progress=progress,
            )
        # A ledger with several tenants is reported tenant by tenant.
        for name, part in verdict.tenants.items() or ((None, verdict),):
            found.append(TargetVerdict(part, name, thing if several else None))
    return found


def read_key_options(given: argparse.Namespace) -> list[KeyLike]:
    """The keys of `--key`, which then are the only ones that are known; empty if the option was not given.

    Keys inside the thing that is verified prove nothing about it: its maker put them there. They are refused.
    """
    if not given.key:
        return []
    from aver.cli.verbs.verify.key_source import build_source_check
    from aver.keys import read_keys

    ledger = given.ledger or os.environ.get("AVER_LEDGER")
    things = (*given.things, *filter(None, [ledger]))
    return [key for source in given.key for key in read_keys(source, examine=build_source_check(source, things))]


def verdicts_to_dict(found: Sequence[TargetVerdict]) -> dict[str, Any]:
    """One verdict as it is; of several first their sum, then each one under `tenants` or `things`."""
    if len(found) == 1:
        return found[0].verdict.to_dict()
    from aver.verdict import worst_integrity, worst_status

    verdicts = [answer.verdict for answer in found]
    bad = next((verdict.first_bad for verdict in verdicts if verdict.first_bad is not None), None)
    of_one_ledger = all(answer.thing is None for answer in found)
    listed = [
        {**({} if of_one_ledger else {"thing": answer.thing}), "tenant": answer.tenant, **answer.verdict.to_dict()}
        for answer in found
    ]
    return {
        "status": worst_status(verdict.status for verdict in verdicts),
        "integrity": worst_integrity(verdict.integrity for verdict in verdicts),
        "records": sum(verdict.records for verdict in verdicts),
        "earlier": sum(verdict.earlier for verdict in verdicts),
        "chains": sum(verdict.chains for verdict in verdicts),
        "first_bad": None if bad is None else bad.to_dict(),
        "tenants" if of_one_ledger else "things": listed,
    }


EXAMPLES = """\
  aver verify                                     verify the whole ledger, every tenant
  aver verify claude-code.5d2e                    verify one chain
  aver verify capsule://claude-code.5d2e/7        verify one record
  aver verify meta --deep                         compare all chains with the meta chain, and verify every record
  aver verify ./bundle --key their-keys.json      verify a bundle with keys that you got separately
  aver verify run.cap --key their-keys.json       verify an agent's sealed run; also its directory, or a proof
  aver verify --checkpoint monday.json            check that nothing was removed since this checkpoint
  aver verify --since last                        verify only records that are new since the last time
  aver verify --watch --metrics /srv/aver.prom    keep verifying, for a monitor
  aver verify --strict --json | jq .status

exit code: 0 verified or qualified, 1 failed or empty; 1 also for qualified with --strict, and for keys (--key) that
have signed nothing here."""

LEVELS = ("structural", "content", "signature")

ROUND_SECONDS = 60
WHOLE_ROUND_SECONDS = 24 * 60 * 60


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "things",
        nargs="*",
        metavar="X",
        help="a chain, session, id, hash or capsule:// URI in the ledger; a bundle; a run or .cap file; a file of "
        "capsules or checkpoints; a database (default: the ledger)",
    )
    parser.add_argument("--deep", action="store_true", help="with meta: also verify every record of every chain")
    parser.add_argument("--level", choices=LEVELS, default="signature", help="how much to check (default: signature)")
    parser.add_argument(
        "--key", action="append", default=[], metavar="HEX|FILE", help="check by these keys and no others; repeatable"
    )
    parser.add_argument(
        "--require-pq", action="store_true", help="fail if a record has no ML-DSA-65 (post-quantum) signature"
    )
    parser.add_argument(
        "--since",
        metavar="last|HEAD",
        help="only records after the last verification here, or after a head of one chain: COUNT:HASH or a JSON file",
    )
    parser.add_argument(
        "--checkpoint",
        action="append",
        default=[],
        metavar="FILE|DIR",
        help="also compare with the checkpoints in this file or git repository; repeatable",
    )
    parser.add_argument("--strict", action="store_true", help="exit with 1 when the verdict is only qualified")
    add_ledger(parser)
    add_tenant(parser, default="all of the ledger's")
    add_json(parser)
    watching = parser.add_argument_group("for monitors")
    watching.add_argument("--metrics", metavar="FILE", help="write Prometheus metrics to this file")
    watching.add_argument("--watch", action="store_true", help="keep verifying: new records in each round")
    watching.add_argument(
        "--every", type=parse_count, metavar="SECONDS", help=f"time between two rounds (default: {ROUND_SECONDS})"
    )
    watching.add_argument(
        "--whole-every",
        type=parse_count,
        metavar="SECONDS",
        help=f"time between two rounds that read everything (default: {WHOLE_ROUND_SECONDS}, a day)",
    )
    watching.add_argument("--keep-going", action="store_true", help="continue after a bad round")
    watching.add_argument(
        "--metrics-port", type=parse_port, metavar="PORT", help="serve metrics at 127.0.0.1:PORT/metrics"
    )


def run(given: argparse.Namespace, screen: Screen) -> int:
    _check_options(given)
    if given.watch:  # The loop of a monitor; it returns when it is interrupted, or after a bad round.
        from aver.cli.verbs.verify.watch import watch_ledger

        given.every = ROUND_SECONDS if given.every is None else given.every
        given.whole_every = WHOLE_ROUND_SECONDS if given.whole_every is None else given.whole_every
        return watch_ledger(given, screen)
    started = time.monotonic()
    found = verify_targets(given)
    seconds = time.monotonic() - started
    verdicts = [answer.verdict for answer in found]
    code = exit_code([verdict.status for verdict in verdicts], strict=given.strict)
    if given.key and not have_matched(verdicts):
        StderrScreen().print_note("none of the given keys has signed a record here, so nobody vouches for it")
        code = 1
    if given.json:
        print_json(verdicts_to_dict(found))
    else:
        for number, answer in enumerate(found):
            if number:
                screen.print_line()
            print_verdict(screen, answer.verdict, about=answer.about)
    if given.metrics is None:
        return code
    # After the verdict is printed: an unwritable file must not hide it.
    from aver.cli.verbs.verify.metrics import Metrics, write_metrics

    metrics = Metrics()
    metrics.observe(verdicts, seconds, code)
    try:
        write_metrics(Path(given.metrics), metrics)
    except AverError as error:
        StderrScreen().print_error(error.message, error.advice)
        return code or error.exit_code
    return code


def _check_options(given: argparse.Namespace) -> None:
    """Raise `Usage` for options that exclude each other, before anything is verified or written."""
    if given.since == LAST and given.key:
        raise Usage(
            "--since last cannot be used with --key: it continues a verification with your own and your known keys"
        )
    if given.every == 0:
        raise Usage("--every takes at least one second")
    if not given.watch:
        names = ("every", "whole_every", "metrics_port")
        for name in (*names, "keep_going"):
            if getattr(given, name) not in (None, False):
                raise Usage(f"--{name.replace('_', '-')} goes with --watch")
    if given.metrics is not None:
        from aver.cli.verbs.verify.metrics import check_metrics_path

        check_metrics_path(Path(given.metrics))

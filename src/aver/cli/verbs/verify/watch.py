"""`aver verify --watch`: verify a ledger again and again, each time what is new, and tell monitors.

The first round, and one in every `--whole-every` seconds, verifies everything; so does every round after one that
failed, until one does not. The others go on from the round before. The watch ends with the exit code of the first round
that is not good; with `--keep-going` it goes on. Told to end by SIGTERM or Ctrl-C, it ends with 1 if any round was
not good; else with 0, or for Ctrl-C 130.

There is one line for each round. With `--json` there is one object, at the end: the last round's verdict, with the
number of `rounds` and of `bad_rounds`.
"""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from aver.cli.options import Usage
from aver.cli.terminal import Progress, Screen, StderrScreen, StyledText, Terminated, print_json, raise_on_sigterm
from aver.cli.verbs.verify.command import LAST, TargetVerdict, read_key_options, verdicts_to_dict
from aver.cli.verbs.verify.metrics import Metrics, write_metrics
from aver.cli.verdict_text import exit_code, extent_text, have_matched, print_verdict, status_parts, unsigned_text
from aver.errors import AverError, BadInput

if TYPE_CHECKING:
    from aver.ledger.verified_heads import VerifiedChains

INTERRUPTED = 130


def watch_ledger(given: argparse.Namespace, screen: Screen) -> int:
    """Verify until a round is not good, or until told to end."""
    watching = _VerifyWatch(given)
    code = 0
    with ExitStack() as stack:
        if given.metrics_port is not None:
            from aver.cli.verbs.verify.metrics import serve_metrics

            stack.enter_context(serve_metrics(given.metrics_port, watching.metrics.text))
        try:
            with raise_on_sigterm():
                while True:
                    code = _run_round(watching, screen)
                    if code and not given.keep_going:
                        break
                    time.sleep(given.every)
        except Terminated:
            code = int(watching.bad_rounds > 0)
        except KeyboardInterrupt:
            code = 1 if watching.bad_rounds else INTERRUPTED
    if given.json:
        last_round = verdicts_to_dict(watching.answers) if watching.answers else {}
        print_json({"rounds": watching.rounds, "bad_rounds": watching.bad_rounds, **last_round})
    return code


class _VerifyWatch:
    """The rounds so far, and what is known from them."""

    def __init__(self, given: argparse.Namespace) -> None:
        if len(given.things) > 1 or given.deep or given.since not in (None, LAST):
            raise Usage("--watch verifies a whole ledger", advice="aver verify --watch, or aver verify LEDGER --watch")
        from aver.check import find_ledger

        try:
            thing = given.things[0] if given.things else None
            self._url = find_ledger(thing, tenant=given.tenant, ledger=given.ledger)
        except BadInput as error:
            raise Usage(f"--watch verifies a whole ledger: {error.message}", advice=error.advice) from error
        self.given = given
        self.metrics = Metrics()
        self.answers: list[TargetVerdict] = []
        self.rounds = self.bad_rounds = 0
        self._keys = read_key_options(given)
        self._known: dict[str, VerifiedChains] | Literal["last"] | None = given.since
        self._whole_at = time.monotonic()

    def verify_once(self) -> int:
        """Verify once. Returns the exit code that this round alone would end with."""
        from aver.check import examine_tenants

        started = time.monotonic()
        self.rounds += 1
        # From time to time every record is read again: an old record may have been changed in the meantime.
        if isinstance(self._known, dict) and started - self._whole_at >= self.given.whole_every:
            self._known = {tenant: verified.distrust([None]) for tenant, verified in self._known.items()}
            self._whole_at = started
        try:
            with Progress("verifying") as progress:
                examined = examine_tenants(
                    self._url,
                    keys=self._keys,
                    level=self.given.level,
                    require_pq=self.given.require_pq,
                    tenant=self.given.tenant,
                    known=self._known,
                    checkpoints=self.given.checkpoint,
                    progress=progress,
                )
        except AverError as error:
            self.bad_rounds += 1
            self.metrics.observe_error(error.exit_code)
            raise
        self._known = {tenant: one.verified for tenant, one in examined.items()}
        several = len(examined) > 1
        self.answers = [TargetVerdict(one.verdict, tenant if several else None) for tenant, one in examined.items()]
        verdicts = [answer.verdict for answer in self.answers]
        code = exit_code([verdict.status for verdict in verdicts], strict=self.given.strict)
        if self._keys and not have_matched(verdicts):
            code = 1
        self.bad_rounds += code != 0
        self.metrics.observe(verdicts, time.monotonic() - started, code)
        return code


def _run_round(watching: _VerifyWatch, screen: Screen) -> int:
    """Verify once, write the metrics and print a line. An error ends the watch, unless `--keep-going` was given."""
    given = watching.given
    started = time.monotonic()
    try:
        try:
            code = watching.verify_once()
        finally:
            # Also after an error: the monitor must see that a round could not be carried out.
            if given.metrics is not None:
                write_metrics(Path(given.metrics), watching.metrics)
    except AverError as error:
        if not given.keep_going:
            raise
        StderrScreen().print_error(error.message, error.advice)
        return error.exit_code
    if not given.json:
        from aver.verdict import merge_verdicts

        # One line a round: the verdicts on all tenants as one.
        answers, seconds = watching.answers, time.monotonic() - started
        whole = merge_verdicts(answers[0].verdict.subject, {answer.about: answer.verdict for answer in answers})
        tenants = f", {len(answers)} tenants" if len(answers) > 1 else ""
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())
        words = f": {whole.subject}{tenants}, {extent_text(whole)}, {seconds:.2f} s{unsigned_text(whole)}"
        screen.print_line(StyledText(f"{when} ", "dim"), *status_parts(screen, whole), words)
        if code:
            for answer in watching.answers:
                if exit_code([answer.verdict.status], strict=given.strict):
                    print_verdict(screen, answer.verdict, about=answer.about)
        sys.stdout.flush()
    return code

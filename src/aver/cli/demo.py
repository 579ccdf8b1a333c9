"""`aver demo`: ask the gate, seal a small agent run, verify it, tamper with copies of it and see each change caught;
then seal what four coding agents did from their transcripts, edit one of those, and see that caught too.

Nothing shown is made up: the gate really decides, everything is sealed in ledgers of its own, in a temporary home that
is removed at the end, and every line that says `caught` is what the verdict on a really changed file says.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aver.cli.entries import Entry, entry_of
from aver.cli.files import check_free
from aver.cli.options import add_json
from aver.cli.output import Errors, Painted, Part, Screen, plural, print_json
from aver.cli.verdicts import status_parts
from aver.values import dataclass

if TYPE_CHECKING:
    from aver.cli.demo_gate import Step
    from aver.cli.demo_ingest import Ingested
    from aver.cli.tampering import Tampering
    from aver.verdict import Verdict

__all__ = ["EXAMPLES", "add_arguments", "run"]

EXAMPLES = """\
  aver demo
  aver demo --keep /tmp/aver-demo        keep the ledger and the tampered copies, to look at them yourself"""


BRIEF = 8
"""Characters of a session's id that are shown."""


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one attack."""

    tampering: Tampering
    verdict: Verdict
    file: Path

    @property
    def caught(self) -> bool:
        """Caught means: the verdict failed, for the right reason and at the right place."""
        bad, expected = self.verdict.first_bad, self.tampering
        return (
            self.verdict.status == "failed"
            and bad is not None
            and (bad.code, bad.place.chain, bad.place.sequence) == (expected.code, expected.chain, expected.sequence)
        )

    def to_dict(self) -> dict[str, Any]:
        bad = self.verdict.first_bad
        return {
            "title": self.tampering.title,
            "caught": self.caught,
            "status": self.verdict.status,
            "code": bad.code if bad else None,
            "place": bad.place.to_dict() if bad else None,
            "words": bad.words if bad else None,
        }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--keep", metavar="DIR", help="do it in this new directory, and leave it there")
    add_json(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    if given.keep:
        check_free(Path(given.keep))
    with _stage(given.keep) as stage:
        steps = _ask_gate(stage, None if given.json else screen)
        entries, fingerprint, verdict = _seal_and_verify(stage)
        if not given.json:
            _print_run(screen, entries, fingerprint, verdict)
        results = []
        for result in _tamper(stage):
            results.append(result)
            if not given.json:
                _print_result(screen, result)
        sessions, edited = _ingest(stage, None if given.json else screen)
    caught = sum(result.caught for result in results)
    good = verdict.status == "verified" and caught == len(results) and all(step.as_expected for step in steps)
    good = good and all(session.is_good for session in sessions) and edited.status == "failed"
    if given.json:
        described = [result.to_dict() for result in results]
        records = [entry.to_dict() for entry in entries]
        summary = {"caught": caught, "missed": len(results) - caught, "kept": given.keep}
        asked = [step.to_dict() for step in steps]
        told = {"sessions": [session.to_dict() for session in sessions], "edited": edited.to_dict()}
        sealed = {"records": records, "verdict": verdict.to_dict(), "tampering": described}
        print_json({"gate": asked, **sealed, **told, **summary})
    else:
        _print_end(screen, caught + (edited.status == "failed"), len(results) + 1, given.keep)
    if not good:
        Errors().tell("the demo did not go as it should: see above", "this is a defect in Aver: please report it")
    return 0 if good else 1


@contextmanager
def _stage(keep: str | None) -> Iterator[Path]:
    """A directory for the demo: a new one that stays, or a temporary one."""
    if keep:
        stage = Path(keep).absolute()
        stage.mkdir(mode=0o700)
        yield stage
        return
    stage = Path(tempfile.mkdtemp(prefix="aver-demo-"))
    try:
        yield stage
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def _ask_gate(stage: Path, screen: Screen | None) -> list[Step]:
    """Ask the gate, and show each answer. Where packages that it needs are missing, say so instead."""
    try:
        import cedarpy
        import tree_sitter_bash
    except ImportError:
        Errors().note('the gate is not shown, because it needs more packages: pip install "aver[policy]"')
        return []
    del cedarpy, tree_sitter_bash
    from aver.cli.demo_gate import asked_in_turn

    steps = []
    if screen is not None:
        screen.line(Painted("1. Gate", "strong"), " what an agent is about to do: rules, risk, and a person's key.")
        screen.line()
    for step in asked_in_turn(stage / "gate-home", stage / "shop"):
        steps.append(step)
        if screen is not None:
            _print_step(screen, step)
    if screen is not None:
        screen.line()
    return steps


_STEP_STYLES = {"pass": "good", "human_approved": "good", "human_review": "warn", "skip": "bad"}


def _print_step(screen: Screen, step: Step) -> None:
    decision = step.answer.decision
    word = decision.decision
    rules = "" if decision.policy is None else ", ".join(decision.policy.rules)
    screen.line(
        "  ", Painted(f"{word:<14}", _STEP_STYLES.get(word, "bad")), f"  {step.title:<42}  ", Painted(rules, "dim")
    )
    if not step.as_expected:
        screen.line(f"    expected {step.expected}")


def _seal_and_verify(stage: Path) -> tuple[list[Entry], str, Verdict]:
    from aver import KeyStore, open_ledger
    from aver.cli.demo_run import CHAIN, seal_runs
    from aver.cli.tampering import rotate_keys

    home = stage / "home"
    path = seal_runs(home)
    shutil.copytree(home, stage / "stolen-home")
    rotate_keys(home, path)
    with open_ledger(path, home=home, create=False) as ledger:
        entries = [entry_of(record) for record in ledger.read(CHAIN)]
        verdict = ledger.verify(require_pq=True)
        return entries, KeyStore(home).ring().entries[0].fingerprint, verdict


def _tamper(stage: Path) -> Iterator[Result]:
    from aver import open_ledger
    from aver.cli.tampering import TAMPERINGS, Scene

    home = stage / "home"
    scene = Scene(home, stage / "stolen-home", home / "before.db")
    for number, tampering in enumerate(TAMPERINGS, 1):
        copy = stage / f"tampered-{number:02}.db"
        shutil.copyfile(home / "ledger.db", copy)
        tampering.attack(copy, scene)
        with open_ledger(copy, home=home, create=False) as ledger:
            yield Result(tampering, ledger.verify(require_pq=tampering.require_pq), copy)


def _ingest(stage: Path, screen: Screen | None) -> tuple[list[Ingested], Verdict]:
    """Seal sessions from their transcripts, show how they compare, and what becomes of one that is edited."""
    from aver.cli.demo_ingest import edited_afterwards, ingested

    home, user = stage / "agents-home", stage / "user"
    if screen is not None:
        screen.line()
        screen.line(Painted("5. Ingest", "strong"), " what coding agents did, from the transcripts that they keep.")
        screen.line()
    sessions = []
    for session in ingested(home, user):
        sessions.append(session)
        if screen is not None:
            seen = session.reconciled.counts.sealed_and_seen
            words = f"  {session.title:<12}  {plural(session.records, 'record')} sealed, {seen} seen again  "
            marks = status_parts(screen, session.reconciled.verdict)
            screen.line("  ", *marks, words, Painted(_brief(session.chain), "dim"))
    edited = edited_afterwards(home, user)
    if screen is not None:
        bad = edited.first_bad
        place = _short(_brief(str(bad.place.chain)), bad.place.sequence) if bad else ""
        found = f"{bad.code:<22}  {place}" if bad else edited.status
        word = Painted("caught", "good") if bad else Painted("NOT CAUGHT", "bad")
        screen.line("  ", word, "  a transcript edited  ", Painted(found, "warn"))
    return sessions, edited


def _print_run(screen: Screen, entries: list[Entry], fingerprint: str, verdict: Verdict) -> None:
    screen.line(Painted("2. Seal", "strong"), " an agent's run: each step a record, signed and linked to the last.")
    screen.line()
    rows: list[list[Part]] = [
        [f"{entry.sequence}", f"{entry.type}", entry.summary, Painted(f"sha3 {entry.hash[:8]}…", "dim")]
        for entry in entries
    ]
    screen.table(rows, indent=2)
    screen.line(Painted(f"  chain {entries[0].chain}, signed by {fingerprint} with Ed25519 and ML-DSA-65", "dim"))
    screen.line()
    screen.line(Painted("3. Verify", "strong"), " it: content, signatures, links, keys, and that nothing is missing.")
    screen.line()
    extent = f"{plural(verdict.records, 'record')} in {plural(verdict.chains, 'chain')}"
    screen.line("  ", *status_parts(screen, verdict), f": {extent} (two runs, the keys, where each run ended)")
    screen.line()
    screen.line(Painted("4. Tamper", "strong"), " with copies of the file, as someone who holds the disk could.")
    screen.line()


def _print_result(screen: Screen, result: Result) -> None:
    bad, expected = result.verdict.first_bad, result.tampering
    found = f"{bad.code:<22}  {_short(bad.place.chain, bad.place.sequence)}" if bad else result.verdict.status
    if result.caught:
        screen.line("  ", Painted("caught", "good"), f"  {expected.title:<30}  ", Painted(found, "warn"))
        return
    screen.line("  ", Painted("NOT CAUGHT", "bad"), f"  {expected.title}: ", Painted(found, "bad"))
    screen.line(f"    expected {expected.code} {_short(expected.chain, expected.sequence)}")


def _brief(chain: str) -> str:
    """A chain's name without most of a long id."""
    tool, _, session = chain.partition(".")
    return chain if len(session) <= BRIEF else f"{tool}.{session[:BRIEF]}…"


def _short(chain: str | None, sequence: int | None) -> str:
    return f"{chain}" if sequence is None else f"{chain}/{sequence}"


def _print_end(screen: Screen, caught: int, total: int, keep: str | None) -> None:
    screen.line()
    style = "good" if caught == total else "bad"
    screen.line(
        Painted(f"{caught} of {total} caught", style),
        ", each for its reason (the code) and at its place (chain/sequence).",
    )
    if keep:
        screen.line(f"Kept in {keep}. Try: AVER_HOME={keep}/home aver verify {keep}/tampered-01.db")
    else:
        screen.line("Look at the files yourself: aver demo --keep DIR. Seal your own: aver seal --help")

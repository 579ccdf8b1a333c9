"""`aver demo`: shows in eight parts what Aver does.

1. Gate: an agent asks before it acts.
2. Seal: an agent's run becomes signed records.
3. Verify: the records are checked.
4. Tamper: copies of the ledger are changed, and each change is caught.
5. Ingest: sessions of four coding agents are sealed from their transcripts; one transcript is edited and caught.
6. Act: an agent acts through the gateway, by the word of two policy servers; an act that nobody allowed is caught.
   It calls tools of an MCP server through the proxy, which are acts, too.
7. Prove: four agents work on one task; a wrong claim is challenged, and attacks on their trace are caught.
8. Show: the sessions become a site that verifies itself in a browser; a copy is changed and caught.

Nothing is hard-coded. The gate really decides, and every line with `caught` is the verdict on a file that was really
changed. Everything happens in a temporary directory that is removed at the end.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aver.cli.options import add_json
from aver.cli.record_line import RecordLine, to_record_line
from aver.cli.terminal import LinePart, Screen, StderrScreen, StyledText, clip, print_json
from aver.cli.verdict_text import STATUS_STYLES, decision_label, status_parts
from aver.errors import BadInput
from aver.fast_dataclass import dataclass
from aver.text import plural

if TYPE_CHECKING:
    from aver.cli.verbs.demo.acts import ActStep
    from aver.cli.verbs.demo.scenes import GateStep, IngestedSession
    from aver.cli.verbs.demo.site import SiteVerdicts
    from aver.cli.verbs.demo.tampering import Tampering
    from aver.cli.verbs.demo.traces import StoryStep, TraceAttack
    from aver.verdict import Verdict

EXAMPLES = """\
  aver demo
  aver demo --keep /tmp/aver-demo        keep the ledger and the tampered copies"""


WORDS_WIDTH = 66
"""Columns of the words about a step of the trace."""

SHORT_ID_LENGTH = 8
"""Characters that are shown of a session's id."""


@dataclass(frozen=True, slots=True)
class AttackResult:
    """The verdict on one attack."""

    tampering: Tampering
    verdict: Verdict
    file: Path

    @property
    def is_caught(self) -> bool:
        """Whether the verdict failed for the right reason and at the right place."""
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
            "caught": self.is_caught,
            "status": self.verdict.status,
            "code": bad.code if bad else None,
            "place": bad.place.to_dict() if bad else None,
            "words": bad.words if bad else None,
        }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--keep", metavar="DIR", help="work in this new directory, and keep it")
    add_json(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    if given.keep and os.path.lexists(given.keep):
        raise BadInput(f"{given.keep} exists already and is not overwritten", advice="choose another name")
    with _demo_directory(given.keep) as stage:
        steps = _ask_gate(stage, None if given.json else screen)
        entries, fingerprint, verdict = _seal_and_verify(stage)
        if not given.json:
            _print_run(screen, entries, fingerprint, verdict)
        results = []
        for result in _run_attacks(stage):
            results.append(result)
            if not given.json:
                _print_result(screen, result)
        sessions, edited = _ingest_transcripts(stage, None if given.json else screen)
        acts, forged = _act_through_gateway(stage, None if given.json else screen)
        calls, called = _call_through_proxy(stage, None if given.json else screen)
        story, attacks = _prove_claims(stage, None if given.json else screen)
        shown = _show_site(stage, None if given.json else screen)
    caught = sum(result.is_caught for result in results)
    good = verdict.status == "verified" and caught == len(results) and all(step.is_expected for step in steps)
    good = good and all(session.is_good for session in sessions) and edited.status == "failed"
    good = good and all(step.is_expected for step in acts) and forged.status == "failed"
    good = good and all(step.is_expected for step in calls) and called.status == "verified"
    good = good and all(step.is_expected for step in story) and all(attack.is_caught for attack in attacks)
    good = good and shown.is_good
    if given.json:
        described = [result.to_dict() for result in results]
        records = [entry.to_dict() for entry in entries]
        summary = {"caught": caught, "missed": len(results) - caught, "kept": given.keep}
        gate = [step.to_dict() for step in steps]
        sealed = {"records": records, "verdict": verdict.to_dict(), "tampering": described}
        ingested = {"sessions": [session.to_dict() for session in sessions], "edited": edited.to_dict()}
        acted = {"acts": [step.to_dict() for step in acts], "forged": forged.to_dict()}
        acted |= {"calls": [step.to_dict() for step in calls], "calls_verdict": called.to_dict()}
        proved = {"trace": [step.to_dict() for step in story], "attacks": [attack.to_dict() for attack in attacks]}
        site = {"site": shown.intact.to_dict(), "site_changed": shown.changed.to_dict()}
        by_page = {"site_by_page": shown.intact_by_page, "site_changed_by_page": shown.changed_by_page}
        print_json({"gate": gate, **sealed, **ingested, **acted, **proved, **site, **by_page, **summary})
    else:
        others = sum(verdict.status == "failed" for verdict in (edited, forged, shown.changed))
        others += sum(attack.is_caught for attack in attacks)
        _print_summary(screen, caught + others, len(results) + 3 + len(attacks), given.keep)
    if not good:
        StderrScreen().print_error(
            "the demo did not go as expected: see above", "this is a bug in Aver: please report it"
        )
    return 0 if good else 1


@contextmanager
def _demo_directory(keep: str | None) -> Iterator[Path]:
    """A directory for the demo: a new one that is kept, or a temporary one."""
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


def _ask_gate(stage: Path, screen: Screen | None) -> list[GateStep]:
    """Ask the gate and show each answer."""
    from aver.cli.verbs.demo.scenes import run_gate_steps

    steps = []
    if screen is not None:
        screen.print_line(
            StyledText("1. Gate", "strong"), " what an agent is about to do, by rules, risk, and a person's approval."
        )
        screen.print_line()
    for step in run_gate_steps(stage / "gate-home", stage / "shop"):
        steps.append(step)
        if screen is not None:
            decision = step.answer.decision
            label = decision_label(decision.decision)
            rules = "" if decision.policy is None else ", ".join(decision.policy.rules)
            screen.print_line(
                "  ",
                StyledText(f"{label.text:<14}", label.style),
                f"  {step.title:<42}  ",
                StyledText(rules, "dim"),
            )
            if not step.is_expected:
                screen.print_line(f"    expected {step.expected}")
    if screen is not None:
        screen.print_line()
    return steps


def _seal_and_verify(stage: Path) -> tuple[list[RecordLine], str, Verdict]:
    from aver import KeyStore, open_ledger
    from aver.cli.verbs.demo.scenes import CHAIN, seal_runs
    from aver.cli.verbs.demo.tampering import rotate_keys

    home = stage / "home"
    path = seal_runs(home)
    shutil.copytree(home, stage / "stolen-home")
    rotate_keys(home, path)
    with open_ledger(path, home=home, create=False) as ledger:
        entries = [to_record_line(record) for record in ledger.read(CHAIN)]
        verdict = ledger.verify(require_pq=True)
        return entries, KeyStore(home).ring().entries[0].fingerprint, verdict


def _run_attacks(stage: Path) -> Iterator[AttackResult]:
    from aver import open_ledger
    from aver.cli.verbs.demo.tampering import TAMPERINGS, AttackPaths

    home = stage / "home"
    paths = AttackPaths(home, stage / "stolen-home", home / "before.db")
    for number, tampering in enumerate(TAMPERINGS, 1):
        copy = stage / f"tampered-{number:02}.db"
        shutil.copyfile(home / "ledger.db", copy)
        tampering.attack(copy, paths)
        with open_ledger(copy, home=home, create=False) as ledger:
            yield AttackResult(tampering, ledger.verify(require_pq=tampering.require_pq), copy)


def _ingest_transcripts(stage: Path, screen: Screen | None) -> tuple[list[IngestedSession], Verdict]:
    """Seal sessions from their transcripts, compare them, then edit one transcript and compare again."""
    from aver.cli.verbs.demo.scenes import edit_and_reconcile, ingest_sessions

    home, user = stage / "agents-home", stage / "user"
    if screen is not None:
        screen.print_line()
        screen.print_line(StyledText("5. Ingest", "strong"), " what coding agents did, from their transcripts.")
        screen.print_line()
    sessions = []
    for session in ingest_sessions(home, user):
        sessions.append(session)
        if screen is not None:
            seen = session.reconciled.counts.sealed_and_seen
            words = f"  {session.title:<12}  {plural(session.records, 'record')}, {seen} match transcript  "
            status = session.reconciled.verdict.status
            shown = StyledText(status, STATUS_STYLES[status])
            chain = StyledText(_shorten_chain(session.chain), "dim")
            screen.print_line("  ", screen.status_mark(status), " ", shown, words, chain)
    edited = edit_and_reconcile(home, user)
    if screen is not None:
        _print_finding(screen, "a transcript edited", edited)
    return sessions, edited


def _act_through_gateway(stage: Path, screen: Screen | None) -> tuple[list[ActStep], Verdict]:
    """Ask the gateway for acts, then forge one and verify."""
    from aver.cli.verbs.demo.acts import forge_act, run_acts

    home = stage / "acts-home"
    if screen is not None:
        screen.print_line()
        screen.print_line(StyledText("6. Act", "strong"), " through the gateway, by the word of two policy servers.")
        screen.print_line()
    steps = list(_show_acts(run_acts(home, stage / "acts"), screen))
    forged_home = stage / "acts-forged-home"
    shutil.copytree(home, forged_home)
    forged = forge_act(forged_home)
    if screen is not None:
        _print_finding(screen, "an act forged", forged)
    return steps, forged


def _call_through_proxy(stage: Path, screen: Screen | None) -> tuple[list[ActStep], Verdict]:
    """Call tools of an MCP server behind the proxy, and verify the records."""
    from aver.cli.verbs.demo.proxied_calls import run_calls, verify_calls

    home = stage / "calls-home"
    if screen is not None:
        screen.print_line()
        screen.print_line("   Tools of an MCP server behind aver proxy: each call is an act.")
        screen.print_line()
    steps = list(_show_acts(run_calls(home, stage / "calls"), screen))
    return steps, verify_calls(home)


def _show_acts(steps: Iterator[ActStep], screen: Screen | None) -> Iterator[ActStep]:
    """Pass acts on, and show each."""
    for step in steps:
        if screen is not None:
            style = "good" if step.answer["status"] == "OK" else "warn"
            screen.print_line("  ", StyledText(f"{step.answer['reason_code']:<22}", style), f"  {step.title}")
            if not step.is_expected:
                screen.print_line(f"    expected {step.expected}: {step.answer['summary']}")
        yield step


def _prove_claims(stage: Path, screen: Screen | None) -> tuple[list[StoryStep], list[TraceAttack]]:
    """Run a trace of four agents, then attack copies of it."""
    from aver.cli.verbs.demo.traces import attack_trace, run_trace

    home, workspace = stage / "trace-home", stage / "trace-shop"
    if screen is not None:
        screen.print_line()
        screen.print_line(StyledText("7. Prove", "strong"), " what agents claim: planner, executor, critic, auditor.")
        screen.print_line()
    story = []
    for step in run_trace(home, workspace):
        story.append(step)
        if screen is not None:
            style = "good" if step.is_expected else "bad"
            screen.print_line("  ", StyledText(f"{step.title:<10}", style), f"  {clip(step.words, WORDS_WIDTH)}")
    attacks = []
    for attack in attack_trace(home, workspace):
        attacks.append(attack)
        if screen is not None:
            word = StyledText("caught", "good") if attack.is_caught else StyledText("NOT CAUGHT", "bad")
            found = f"{attack.code:<22}  {attack.place}"
            screen.print_line("  ", word, f"  {attack.title:<24}  ", StyledText(found, "warn"))
    return story, attacks


def _show_site(stage: Path, screen: Screen | None) -> SiteVerdicts:
    """Make a site of the coding agents' sessions, then change a copy of it."""
    from aver.cli.verbs.demo.site import make_site

    if screen is not None:
        screen.print_line()
        screen.print_line(StyledText("8. Show", "strong"), " it: a site that verifies itself in a browser.")
        screen.print_line()
    found = make_site(stage / "agents-home", stage / "site")
    if screen is not None:
        extent = f"  {plural(found.intact.records, 'record')} in {plural(found.intact.chains, 'chain')}"
        page = "" if found.intact_by_page is None else f"; the page itself says {found.intact_by_page}"
        screen.print_line("  ", *status_parts(screen, found.intact), extent, page)
        _print_finding(screen, "a copy of it changed", found.changed)
    return found


def _print_finding(screen: Screen, title: str, verdict: Verdict) -> None:
    """Print whether a verdict caught something, with the first bad place."""
    bad = verdict.first_bad
    place = _format_place(_shorten_chain(str(bad.place.chain)), bad.place.sequence) if bad else ""
    found = f"{bad.code:<22}  {place}" if bad else verdict.status
    word = StyledText("caught", "good") if bad else StyledText("NOT CAUGHT", "bad")
    screen.print_line("  ", word, f"  {title}  ", StyledText(found, "warn"))


def _print_run(screen: Screen, entries: list[RecordLine], fingerprint: str, verdict: Verdict) -> None:
    screen.print_line(
        StyledText("2. Seal", "strong"), " an agent's run: each step is a record, signed and linked to the last."
    )
    screen.print_line()
    rows: list[list[LinePart]] = [
        [f"{entry.sequence}", f"{entry.type}", entry.summary, StyledText(f"sha3 {entry.hash[:8]}…", "dim")]
        for entry in entries
    ]
    screen.print_table(rows, indent=2)
    screen.print_line(
        StyledText(f"  chain {entries[0].chain}, signed by {fingerprint} with Ed25519 and ML-DSA-65", "dim")
    )
    screen.print_line()
    screen.print_line(
        StyledText("3. Verify", "strong"), " the run: content, signatures, links, keys, and that nothing is missing."
    )
    screen.print_line()
    extent = f"{plural(verdict.records, 'record')} in {plural(verdict.chains, 'chain')}"
    screen.print_line("  ", *status_parts(screen, verdict), f": {extent}")
    screen.print_line()
    screen.print_line(
        StyledText("4. Tamper", "strong"), " with copies of the file, as someone with access to the disk could."
    )
    screen.print_line()


def _print_result(screen: Screen, result: AttackResult) -> None:
    bad, expected = result.verdict.first_bad, result.tampering
    found = f"{bad.code:<22}  {_format_place(bad.place.chain, bad.place.sequence)}" if bad else result.verdict.status
    if result.is_caught:
        screen.print_line("  ", StyledText("caught", "good"), f"  {expected.title:<30}  ", StyledText(found, "warn"))
        return
    screen.print_line("  ", StyledText("NOT CAUGHT", "bad"), f"  {expected.title}: ", StyledText(found, "bad"))
    screen.print_line(f"    expected {expected.code} {_format_place(expected.chain, expected.sequence)}")


def _shorten_chain(chain: str) -> str:
    """A chain's name with a long id shortened."""
    tool, _, session = chain.partition(".")
    return chain if len(session) <= SHORT_ID_LENGTH else f"{tool}.{session[:SHORT_ID_LENGTH]}…"


def _format_place(chain: str | None, sequence: int | None) -> str:
    return f"{chain}" if sequence is None else f"{chain}/{sequence}"


def name_own_command() -> str:
    """How the caller can run this `aver` again: by its path, if the shell would not find it by its name."""
    import sys

    found, own = shutil.which("aver"), os.path.abspath(sys.argv[0])
    if os.path.basename(own) != "aver" or (found is not None and os.path.realpath(found) == os.path.realpath(own)):
        return "aver"
    near = os.path.relpath(own)
    return own if near.startswith("..") else near


def _print_summary(screen: Screen, caught: int, total: int, keep: str | None) -> None:
    screen.print_line()
    style = "good" if caught == total else "bad"
    screen.print_line(
        StyledText(f"{caught} of {total} caught", style),
        ", each with its reason (a code) and its place (chain/sequence).",
    )
    if keep:
        command = name_own_command()
        screen.print_line(f"Kept in {keep}. Try: AVER_HOME={keep}/home {command} verify {keep}/tampered-01.db")
        has_server = all(importlib.util.find_spec(name) for name in ("starlette", "uvicorn"))
        before = "" if has_server else ", after pip install 'aver-ledger[explorer]'"
        screen.print_line(f"See it: open {keep}/site/index.html, or{before}:")
        screen.print_line(f"  AVER_HOME={keep}/agents-home {command} serve --open")
    else:
        screen.print_line("Keep the files: aver demo --keep DIR. Seal your own records: aver seal --help")

"""The oracles of the fuzzer notice what they are for: each is shown a deliberately broken Aver."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

import aver
from aver.hooks import run as hook_run
from aver.hooks.contract import HookDecision
from fuzz import agent_inputs, parsers, stores, verbs
from fuzz.engine import Recorder, fuzz_by_mutation
from fuzz.oracles import Defect, call_parser, require_harmless_text
from fuzz.recipes import reseal
from fuzz.target import Target
from fuzz.targets import BY_NAME

if TYPE_CHECKING:
    from pathlib import Path

    from fuzz.honest import HonestThings

OTHER_CONTENT = {
    "ledger": "record-rehashed-without-a-key.json",
    "ledger-full": "result-of-record-9-is-gone.json",
    "bundle": "records-swapped.json",
    "bundle-full": "decision-without-outcome.json",
    "cap": "action-edited-and-hashes-computed-again.json",
    "run": "run-file-edited.json",
    "foreign-database": "content-changed.json",
    "proof": "no-path.json",
    "checkpoint": "count-of-many-digits.jsonl",
    "capsules": "number-as-id-and-no-sections.json",
}
"""For each store an input of the corpus that changes what the store says."""


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", sorted(OTHER_CONTENT))
def test_the_honest_thing_is_verified(things: HonestThings, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the oracle of its target would never have anything to compare."""
    verify, verdicts = aver.verify, list[aver.Verdict]()

    def note(*given: Any, **options: Any) -> aver.Verdict:
        verdicts.append(verify(*given, **options))
        return verdicts[-1]

    target = BY_NAME[name](things)
    monkeypatch.setattr(aver, "verify", note)
    target.run(target.seeds()[0])
    assert [verdict.status for verdict in verdicts] == ["verified"], verdicts[-1].findings


@pytest.mark.parametrize("name", sorted(OTHER_CONTENT))
def test_a_verifier_that_accepts_everything_is_caught(
    things: HonestThings, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = BY_NAME[name](things)
    ledger = things.ledger
    verdict = aver.verify(ledger.path, keys=ledger.keys, home=things.new_path("auditor"))
    assert verdict.status == "verified"
    monkeypatch.setattr(aver, "verify", lambda *_, **__: verdict)
    with pytest.raises(Defect, match="verified with other content"):
        target.run(target.corpus()[OTHER_CONTENT[name]])


def test_a_bundle_with_a_false_title_and_one_without_a_chain_are_caught(
    things: HonestThings, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = BY_NAME["bundle"](things)
    verdict = aver.verify(things.ledger.bundle, keys=things.ledger.keys, home=things.new_path("auditor"))
    assert verdict.status == "verified"
    monkeypatch.setattr(aver, "verify", lambda *_, **__: verdict)
    with pytest.raises(Defect, match="title"):
        target.run(target.corpus()["false-title.json"])
    with pytest.raises(Defect, match="verified without"):
        target.run(b'[{"op": "drop", "member": "ci.build.json"}]')


def test_signatures_that_are_not_checked_are_caught(things: HonestThings, monkeypatch: pytest.MonkeyPatch) -> None:
    target = stores.CapsuleFile(things)
    record = json.loads(target.seeds()[1])
    record["outcome"]["summary"] = "PWNED"
    changed = json.dumps(record | reseal(record, None)).encode()
    target.run(changed)
    monkeypatch.setattr("aver.verdict.chain.verify_ed25519", lambda *_: True)
    with pytest.raises(Defect, match="with other content"):
        target.run(changed)


def test_a_crash_and_a_silent_refusal_are_caught() -> None:
    def refuse() -> None:
        raise aver.BadInput("")

    with pytest.raises(Defect, match="internal error: KeyError"):
        call_parser(lambda: {}["trigger"])
    with pytest.raises(Defect, match="without words"):
        call_parser(refuse)


def test_a_valid_signature_over_another_statement_is_caught(
    things: HonestThings, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = parsers.StatementTarget(things)
    changed = target.seeds()[0].replace(b'"approve"', b'"deny"')
    target.run(changed)
    monkeypatch.setattr("aver.keys.algorithms.verify_ed25519", lambda *_: True)
    with pytest.raises(Defect, match="valid with other content"):
        target.run(changed)


@pytest.mark.parametrize("agent", sorted(agent_inputs.PAYLOADS))
def test_a_hook_that_allows_what_it_could_not_read_is_caught(
    things: HonestThings, agent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = BY_NAME[f"hook-{agent}"](things)
    broken = target.corpus()["not-json.txt"]
    target.run(broken)

    def allow(run: Any, *_: Any) -> Any:
        return run._hook.reply(run._event, HookDecision("allow"))

    monkeypatch.setattr(hook_run._HookRun, "process", allow)
    with pytest.raises(Defect, match="not denied"):
        target.run(broken)


def test_a_hook_that_crashes_is_caught(things: HonestThings, monkeypatch: pytest.MonkeyPatch) -> None:
    target = BY_NAME["hook-claude-code"](things)

    def crash(*_: Any) -> None:
        raise KeyError("trigger")

    monkeypatch.setattr(hook_run._HookRun, "process", crash)
    with pytest.raises(Defect, match="internal error in a hook: KeyError"):
        target.run(target.seeds()[0])


def test_a_verb_that_crashes_or_prints_control_characters_is_caught(
    things: HonestThings, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = verbs.Verbs(things)
    monkeypatch.setattr("aver.cli.verbs.log.run", lambda *_: {}["trigger"])
    with pytest.raises(Defect, match="aver log ends with 4"):
        target.run(b'[{"op": "run", "command": "log"}]')
    monkeypatch.setattr("aver.cli.verbs.log.run", lambda *_: print("\x1b[2J") or 0)
    with pytest.raises(Defect, match="control character"):
        target.run(b'[{"op": "run", "command": "log"}]')
    require_harmless_text("two\nlines\tand é")


class Odd(Target):
    """Breaks at every input with a `!` in it."""

    name = "odd"
    inputs: list[bytes]

    def prepare(self) -> None:
        self.inputs = []

    def seeds(self) -> list[bytes]:
        return [b'{"a": [1, 2, 3], "b": "text!"}', b'{"c": "text"}']

    def run(self, data: bytes) -> None:
        self.inputs.append(data)
        if b"!" in data:
            call_parser(lambda: {}[data])


def test_a_seed_repeats_a_run_and_a_defect_is_kept_once(things: HonestThings, tmp_path: Path) -> None:
    seen = []
    for number in range(2):
        target, lines = Odd(things), list[str]()
        recorder = Recorder(target, tmp_path / str(number), lines.append)
        fuzz_by_mutation(target, recorder, runs=60, seed=5)
        seen.append(target.inputs)
        [kept] = recorder.outcome.defects.values()
        assert b"!" in kept.read_bytes()
        assert f"--replay odd {kept}" in "\n".join(lines)
        assert re.search(r"internal error: KeyError", lines[0])
    assert seen[0] == seen[1]
    assert len(set(seen[0])) > 30

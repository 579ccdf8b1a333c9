"""The public reference implementation as a living peer: what one seals, the other verifies."""

from __future__ import annotations

import copy
import json
import random
import string
from pathlib import Path
from typing import Any

import pytest

from aver import (
    Capsule,
    InvalidCapsule,
    PublicKey,
    Ring,
    Sealed,
    SeedSigner,
    canonical_bytes,
    open_ledger,
    seal,
    validate,
)
from aver.capsule.draft import prepare_draft
from aver.capsule.json_reader import Unreadable
from aver.capsule.sealed import content_hash
from aver.verdict import ChainJudge, Rules, Verdict, conclude

qp = pytest.importorskip("qp_capsule", reason="the peer is not installed")
qp_validation = pytest.importorskip("qp_capsule.validation")

ROUNDS = 1_000
AWKWARD = 'é\u0301😀～\u2028\x7f\x00\x1f"\\/\n\t<>&' + string.ascii_letters + string.digits + " "


class Maker:
    """Random capsules, as a seed gives them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def text(self, most: int = 12) -> str:
        return "".join(self.random.choice(AWKWARD) for _ in range(self.random.randrange(most)))

    def maybe(self) -> str | None:
        return self.random.choice([None, self.text()])

    def number(self) -> int | float:
        picker = self.random
        return picker.choice(
            [
                picker.randrange(-(10**6), 10**6),
                picker.randrange(-(2**80), 2**80),
                picker.uniform(-1e6, 1e6),
                picker.uniform(-1, 1) * 10 ** picker.randrange(-300, 300),
                *(0, 1.0, -0.0, 1e16, 2e-05, 1e22, 5e-324, 2**53 + 1, 2**64),
            ]
        )

    def value(self, depth: int = 3) -> Any:
        kind = self.random.randrange(7 if depth else 5)
        if kind == 5:
            return [self.value(depth - 1) for _ in range(self.random.randrange(4))]
        if kind == 6:
            return self.object(depth - 1)
        return [None, self.random.random() < 0.5, self.number(), self.text(), self.number()][kind]

    def object(self, depth: int = 2) -> dict[str, Any]:
        return {self.text(): self.value(depth) for _ in range(self.random.randrange(4))}

    def score(self) -> float:
        return self.random.choice([0.0, 1.0, 0.5, round(self.random.uniform(0.001, 1), 6)])

    def content(self) -> dict[str, Any]:
        picker = self.random
        count = picker.randrange(4)
        chosen = picker.randrange(count) if count else -1
        options = [
            {
                "id": f"opt_{index}",
                "description": f"{index}{self.text()}",
                "pros": [self.text() for _ in range(picker.randrange(3))],
                "cons": [self.text() for _ in range(picker.randrange(3))],
                "estimated_impact": self.object(),
                "feasibility": self.score(),
                "risks": [self.text() for _ in range(picker.randrange(3))],
                "selected": index == chosen,
                "rejection_reason": "" if index == chosen else f"no {self.text()}",
            }
            for index in range(count)
        ]
        moment = f"2026-{picker.randrange(1, 13):02}-{picker.randrange(1, 29):02}T{picker.randrange(24):02}:00:07"
        return {
            "type": picker.choice(["agent", "tool", "system", "kill", "workflow", "chat", "vault", "auth"]),
            "domain": self.text() or "agents",
            "trigger": {
                "type": picker.choice(["user_request", "scheduled", "system", "agent"]),
                "source": self.text(),
                "timestamp": moment + picker.choice(["", f".{picker.randrange(1, 10**6):06}"]) + "+00:00",
                "request": self.text(40),
                "correlation_id": self.maybe(),
                "user_id": self.maybe(),
            },
            "context": {"agent_id": self.text(), "session_id": self.maybe(), "environment": self.object()},
            "reasoning": {
                "analysis": self.text(),
                "options": options,
                "options_considered": [option["description"] for option in options],
                "selected_option": options[chosen]["id"] if count else "",
                "reasoning": self.text(),
                "confidence": self.score(),
                "model": self.maybe(),
                "prompt_hash": None,
            },
            "authority": {
                "type": picker.choice(["autonomous", "human_approved", "policy", "escalated"]),
                "approver": self.maybe(),
                "policy_reference": self.maybe(),
                "chain": [self.object() for _ in range(picker.randrange(3))],
                "escalation_reason": self.maybe(),
            },
            "execution": {
                "tool_calls": [
                    {
                        "tool": self.text(),
                        "arguments": self.object(),
                        "result": self.value(),
                        "success": picker.random() < 0.5,
                        "duration_ms": picker.randrange(10**6),
                        "error": self.maybe(),
                    }
                    for _ in range(picker.randrange(3))
                ],
                "duration_ms": picker.randrange(10**6),
                "resources_used": self.object(),
            },
            "outcome": {
                "status": picker.choice(["pending", "success", "failure", "partial", "blocked"]),
                "result": self.value(),
                "summary": self.text(),
                "error": self.maybe(),
                "side_effects": [self.text() for _ in range(picker.randrange(3))],
                "metrics": self.object(),
            },
        }


@pytest.fixture
def peer(tmp_path: Path) -> Any:
    return qp.Seal(tmp_path / "peer" / "key", enable_pq=False)


def judged(record: Sealed, *keys: PublicKey) -> Verdict:
    judge = ChainJudge(Rules(Ring.pin(keys)), start=None)
    judge.judge(record)
    return conclude("capsule", judge.finish())


@pytest.mark.more
def test_what_aver_seals_the_peer_verifies(peer: Any) -> None:
    maker, signer = Maker(1), SeedSigner(bytes(range(32)))
    chain = {"ledger": "l", "tenant": "t", "name": "demo.x"}
    for number in range(ROUNDS):
        draft = Capsule(**maker.content())
        if number % 2:
            sealed = seal(draft, signer)
        else:
            sealed = prepare_draft(draft, key=f"k{number}").seal(
                signer, at="2026-01-01T00:00:00+00:00", sequence=0, previous_hash=None, chain=chain
            )
        for document in (sealed.to_sealed_dict(), json.loads(json.dumps(sealed.to_sealed_dict()))):
            theirs = qp.Capsule.from_sealed_dict(document)
            result = peer.verify_with_key_detailed(theirs, signer.public.ed25519)
            assert result.ok, (number, result)
        changed = {**sealed.to_sealed_dict(), "domain": "changed"}
        assert not peer.verify_with_key(qp.Capsule.from_sealed_dict(changed), signer.public.ed25519)


@pytest.mark.more
def test_what_the_peer_seals_aver_verifies(peer: Any) -> None:
    maker = Maker(2)
    key = PublicKey(peer.get_public_key())
    for number in range(ROUNDS):
        theirs = qp.Capsule.from_dict({**Capsule(**maker.content()).to_dict(), "spec_version": "1.0"})
        document = peer.seal(theirs).to_sealed_dict()
        for sealed in (Sealed.from_sealed_dict(document), Sealed.from_sealed_json(json.dumps(document))):
            verdict = judged(sealed, key)
            assert verdict.status == "verified", (number, verdict.findings)
        assert judged(Sealed.from_sealed_dict({**document, "domain": "changed"}), key).first_bad.code == "HASH_MISMATCH"


def test_both_compute_the_same_hash() -> None:
    from qp_capsule.seal import compute_hash

    maker = Maker(3)
    for _ in range(200):
        content = Capsule(**maker.content()).to_dict()
        assert content_hash(canonical_bytes(content)) == compute_hash(content)


def test_a_chain_of_the_ledger_verifies_record_by_record_in_the_peer(peer: Any, aver_home: Path) -> None:
    maker = Maker(4)
    with open_ledger() as ledger:
        for _ in range(30):
            ledger.append("demo.peer", Capsule(**maker.content()))
        key = ledger.keys.ring().active("ledger").key.ed25519
        previous = None
        for number, record in enumerate(ledger.read("demo.peer")):
            theirs = qp.Capsule.from_sealed_dict(record.to_sealed_dict())
            assert peer.verify_with_key(theirs, key)
            assert (theirs.sequence, theirs.previous_hash) == (number, previous)
            assert qp_validation.validate_capsule_dict(record.to_dict(), claimed_hash=record.hash).ok
            previous = theirs.hash


def test_whatever_aver_would_write_the_peers_validator_accepts() -> None:
    maker = Maker(5)
    for _ in range(300):
        content = Capsule(**maker.content()).to_dict()
        validate(content)
        assert qp_validation.validate_capsule_dict(content, strict_unknown_keys=True).ok


WRONG: list[Any] = [None, True, -1, 1.5, "", "x", [], {}, [1], {"a": 1}, "2026-01-01T00:00:00Z", "AGENT", 2**70]
PATHS = [
    *("id", "type", "domain", "parent_id", "sequence", "previous_hash", "spec_version"),
    *("trigger", "context", "reasoning", "authority", "execution", "outcome"),
    *("trigger.type", "trigger.timestamp", "context.environment", "reasoning.confidence", "execution.tool_calls"),
    *("execution.duration_ms", "execution.resources_used"),
]


def set_at(content: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(content)
    *outer, last = path.split(".")
    place = changed
    for part in outer:
        place = place[part]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return changed


def verdict_of(content: Any) -> tuple[str, str] | None:
    try:
        validate(content)
    except InvalidCapsule as error:
        return error.category, error.field
    return None


def test_where_both_reject_they_agree_on_category_and_field() -> None:
    """One thing wrong at a time; Aver may reject more than the peer, never less, and names it alike."""
    base = Capsule(type="agent").to_dict()
    compared = 0
    for path in PATHS:
        for wrong in (..., *WRONG):
            content = set_at(base, path, wrong)
            theirs = qp_validation.validate_capsule_dict(content)
            ours = verdict_of(content)
            if (path == "sequence" and wrong is True) or (path in base and isinstance(wrong, dict)):
                continue  # the peer takes True for 1, and names any one of several missing keys
            if not theirs.ok:
                assert ours == (theirs.category, theirs.field), (path, wrong)
                compared += 1
    assert compared > 120


@pytest.mark.parametrize("section", ["trigger", "context", "reasoning", "authority", "execution", "outcome"])
def test_every_missing_section_key_is_named_alike(section: str) -> None:
    base = Capsule(type="agent").to_dict()
    for key in base[section]:
        content = set_at(base, f"{section}.{key}", ...)
        theirs = qp_validation.validate_capsule_dict(content)
        assert verdict_of(content) == (theirs.category, theirs.field) == ("missing_field", f"{section}.{key}")


@pytest.mark.parametrize("content", [None, [], "x", 1, True])
def test_what_is_no_object(content: Any) -> None:
    theirs = qp_validation.validate_capsule_dict(content)
    assert verdict_of(content) == (theirs.category, theirs.field)


@pytest.mark.more
def test_two_keys_of_the_peers_ring_that_share_a_short_name() -> None:
    """`qp_key_XXXX` has 16 bits; where two keys share it, either may have signed."""
    first = SeedSigner(bytes(32))
    for number in range(1, 1_000_000):
        other = SeedSigner(number.to_bytes(32, "big"))
        if other.public.ed25519[:4] == first.public.ed25519[:4]:
            break
    name = f"qp_key_{first.public.ed25519[:4]}"
    for signer in (first, other):
        sealed = seal(Capsule(type="tool"), signer)
        sealed.signed_by = name
        assert judged(sealed, first.public, other.public).status == "verified"
        stranger = SeedSigner(bytes([9]) * 32)
        forged = seal(Capsule(type="tool"), stranger)
        forged.signed_by = name
        assert judged(forged, first.public, other.public).first_bad.code == "SIG_INVALID"


def test_records_that_the_peer_seals_though_they_are_broken(peer: Any) -> None:
    """NaN and integer keys: the peer seals them and can never verify them again. Here they do not pass for intact."""
    for metrics in ({"loss": float("nan")}, {10: "a", 9: "b"}):
        theirs = qp.Capsule(type=qp.CapsuleType.TOOL)
        theirs.outcome.metrics = metrics
        text = json.dumps(peer.seal(theirs).to_sealed_dict())
        if "NaN" in text:
            with pytest.raises(Unreadable):
                Sealed.from_sealed_json(text)
        else:
            sealed = Sealed.from_sealed_json(text)
            assert judged(sealed, PublicKey(peer.get_public_key())).first_bad.code == "HASH_MISMATCH"

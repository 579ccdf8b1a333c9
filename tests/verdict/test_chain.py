"""The judge of one chain, on records made here: each single change is found, named and placed."""

from __future__ import annotations

import copy
import random
from typing import Any

import orjson
import pytest

from aver import Capsule, PublicKey, Ring, Sealed, SeedSigner, canonical_bytes
from aver.capsule.draft import prepare_draft
from aver.capsule.sealed import content_hash, seal_content
from aver.verdict import ChainJudge, Finding, Level, Retirement, Rules, Tally, Verdict, conclude

OURS = SeedSigner(bytes([1]) * 32)
HYBRID = SeedSigner(bytes([2]) * 32, bytes([3]) * 32)
STRANGER = SeedSigner(bytes([4]) * 32)
IDENTITY = {"ledger": "L", "tenant": "t", "name": "demo.a"}
KEYS = (OURS.public, HYBRID.public)


def make_chain() -> list[Sealed]:
    """Six records: by our key, by one with a post-quantum half, and one as other software makes them."""
    records: list[Sealed] = []
    for sequence, signer in enumerate((OURS, HYBRID, OURS, None, HYBRID, OURS)):
        previous = records[-1].hash if records else None
        at = f"2026-01-01T00:00:0{sequence}+00:00"
        if signer is None:
            content = {**Capsule(type="agent").to_dict(), "sequence": sequence, "previous_hash": previous}
            records.append(seal_content(content, OURS, at=at))
        else:
            draft = prepare_draft(Capsule(type="tool", outcome={"result": sequence}), key=f"k{sequence}")
            records.append(draft.seal(signer, at=at, sequence=sequence, previous_hash=previous, chain=IDENTITY))
    return records


CHAIN = make_chain()


def judged(records: list[Sealed], **options: Any) -> Verdict:
    """Judge records one by one, and with their signatures verified ahead: both must come to the same verdict."""
    level: Level = options.pop("level", "signature")
    rules = Rules(
        options.pop("ring", Ring.pin(KEYS)), level, options.pop("require_pq", False), options.pop("retired", {})
    )
    verdicts = []
    for ahead in ([], records):
        judge = ChainJudge(rules, chain="demo.a", identity=IDENTITY, **options)
        judge.verify_ahead(ahead)
        for record in records:
            judge.judge(record)
        verdicts.append(conclude("chain", judge.finish(), level=level))
    assert verdicts[0] == verdicts[1]
    return verdicts[0]


def with_seal(record: Sealed, **changes: Any) -> Sealed:
    names = ("canonical", "hash", "signature", "signature_pq", "signed_at", "signed_by")
    return Sealed(**{**{name: getattr(record, name) for name in names}, **changes})


def replaced(place: int, record: Sealed) -> list[Sealed]:
    return [*CHAIN[:place], record, *CHAIN[place + 1 :]]


def first(verdict: Verdict) -> tuple[str, int | None]:
    assert verdict.status == "failed"
    assert isinstance(verdict.first_bad, Finding)
    assert verdict.first_bad.place.chain == "demo.a"
    return verdict.first_bad.code, verdict.first_bad.place.sequence


def test_the_chain_itself_is_verified() -> None:
    verdict = judged(CHAIN)
    assert verdict.status == "verified"
    assert not verdict.findings
    assert {check.name for check in verdict.checks if check.status == "passed"} >= {
        *("schema", "canonical", "content", "signature", "signature_pq", "links", "genesis", "identity", "keys"),
    }
    assert verdict.check("signature_pq").count == 2


@pytest.mark.parametrize("place", range(6))
@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.long)])
def test_every_flipped_bit_of_every_byte_is_found(place: int, step: int) -> None:
    record = CHAIN[place]
    for at in range(place if step > 1 else 0, len(record.canonical), step):
        flipped = bytearray(record.canonical)
        flipped[at] ^= 1 << (at % 8)
        code, sequence = first(judged(replaced(place, with_seal(record, canonical=bytes(flipped)))))
        assert code in {"HASH_MISMATCH", "SCHEMA_INVALID", "DUPLICATE_KEY"}
        assert sequence == place


@pytest.mark.sample(4)
@pytest.mark.parametrize("place", range(6))
def test_every_inserted_and_removed_byte_is_found(place: int) -> None:
    record = CHAIN[place]
    for at in range(0, len(record.canonical), 7):
        shorter = record.canonical[:at] + record.canonical[at + 1 :]
        longer = record.canonical[:at] + b" " + record.canonical[at:]
        for canonical in (shorter, longer, record.canonical[:at]):
            assert first(judged(replaced(place, with_seal(record, canonical=canonical))))[1] == place


@pytest.mark.sample(4)
@pytest.mark.parametrize("place", range(6))
@pytest.mark.parametrize("name", ["hash", "signature"])
def test_every_changed_digit_of_the_seal_is_found(place: int, name: str) -> None:
    record = CHAIN[place]
    text = getattr(record, name)
    for at, digit in enumerate(text):
        for other in {"0" if digit != "0" else "1", digit.upper(), " ", "é"} - {digit}:
            changed = with_seal(record, **{name: text[:at] + other + text[at + 1 :]})
            code, sequence = first(judged(replaced(place, changed)))
            assert sequence == place
            assert code == ("HASH_MISMATCH" if name == "hash" else "SIG_INVALID")


@pytest.mark.parametrize("place", [1, 4])
def test_changed_digits_of_the_post_quantum_signature_are_found(place: int) -> None:
    record = CHAIN[place]
    text = record.signature_pq
    for at in [*range(0, len(text), 211), len(text) - 1]:
        changed = text[:at] + ("0" if text[at] != "0" else "1") + text[at + 1 :]
        assert first(judged(replaced(place, with_seal(record, signature_pq=changed)))) == ("SIG_INVALID", place)


@pytest.mark.parametrize("place", [0, 1, 2, 4, 5])
def test_every_changed_character_of_the_seals_copies_is_found(place: int) -> None:
    """The record of other software (3) has nothing inside to compare with."""
    record = CHAIN[place]
    for name in ("signed_at", "signed_by"):
        text = getattr(record, name)
        variants = [text[:at] + ("0" if text[at] != "0" else "1") + text[at + 1 :] for at in range(len(text))]
        for changed in (*variants, "", text + " ", text.upper() if text.upper() != text else text + "x"):
            code, sequence = first(judged(replaced(place, with_seal(record, **{name: changed}))))
            assert sequence == place
            assert code in ({"SEAL_MISMATCH"} if name == "signed_at" else {"SEAL_MISMATCH", "SIG_INVALID"})


def test_each_record_dropped() -> None:
    for place in range(5):
        assert first(judged(CHAIN[:place] + CHAIN[place + 1 :])) == ("SEQUENCE_GAP", place)


def test_each_record_doubled() -> None:
    for place in range(6):
        assert first(judged([*CHAIN[: place + 1], *CHAIN[place:]])) == ("SEQUENCE_GAP", place + 1)


def test_each_two_records_swapped() -> None:
    for left in range(6):
        for right in range(left + 1, 6):
            order = list(range(6))
            order[left], order[right] = right, left
            assert first(judged([CHAIN[place] for place in order])) == ("SEQUENCE_GAP", left)


def test_a_cut_tail_is_a_perfect_chain() -> None:
    """Only a remembered head can tell; see the ledger's tests."""
    for length in range(1, 6):
        assert judged(CHAIN[:length]).status == "verified"


def test_nothing_is_empty() -> None:
    assert judged([]).status == "empty"


def resealed(place: int, change: Any, signer: SeedSigner) -> Sealed:
    """The record with its content changed, hashed and signed again by someone."""
    content = copy.deepcopy(CHAIN[place].to_dict())
    change(content)
    return seal_content(content, signer, at=CHAIN[place].signed_at)


def test_a_rehashed_record_has_no_signature() -> None:
    for place in range(6):
        canonical = canonical_bytes({**CHAIN[place].to_dict(), "domain": "other"})
        forged = with_seal(CHAIN[place], canonical=canonical, hash=content_hash(canonical))
        assert first(judged(replaced(place, forged))) == ("SIG_INVALID", place)


def test_a_record_signed_again_by_a_stranger() -> None:
    for place in (0, 2, 5):
        forged = resealed(place, lambda content: None, STRANGER)
        assert first(judged(replaced(place, forged))) == ("SEAL_MISMATCH", place)
        claimed = with_seal(forged, signed_by=CHAIN[place].signed_by)
        assert first(judged(replaced(place, claimed))) == ("SIG_INVALID", place)


def test_a_stranger_who_seals_in_a_name_of_his_own_is_unknown_and_never_verified() -> None:
    for place in (0, 2, 5):

        def rename(content: dict[str, Any]) -> None:
            content["context"]["environment"]["aver"]["by"] = STRANGER.fingerprint

        verdict = judged(replaced(place, resealed(place, rename, STRANGER)))
        signature = verdict.check("signature")
        assert (signature.code, signature.place and signature.place.sequence) == ("UNKNOWN_SIGNER", place)
        expected = ("qualified", "unsigned") if place == 5 else ("failed", "failed")
        assert (verdict.status, verdict.integrity) == expected
        if place < 5:  # The record after it names another hash.
            assert first(verdict) == ("CHAIN_BREAK", place + 1)


def test_a_record_signed_again_by_another_trusted_key() -> None:
    """Whoever holds a trusted key can seal; but not in another's name, and not without breaking the chain after it."""
    for place in (0, 2, 5):
        forged = resealed(place, lambda content: None, HYBRID)
        assert first(judged(replaced(place, forged))) == ("SEAL_MISMATCH", place)

        def rename(content: dict[str, Any]) -> None:
            content["context"]["environment"]["aver"]["by"] = HYBRID.fingerprint

        renamed = resealed(place, rename, HYBRID)
        verdict = judged(replaced(place, renamed))
        if place == 5:
            assert verdict.status == "verified"
        else:
            assert first(verdict) == ("CHAIN_BREAK", place + 1)


def test_a_changed_record_signed_again_by_its_own_key_breaks_the_chain_after_it() -> None:
    for place in range(5):
        signer = HYBRID if place in (1, 4) else OURS
        forged = resealed(place, lambda content: content.update(domain="other"), signer)
        assert first(judged(replaced(place, forged))) == ("CHAIN_BREAK", place + 1)


@pytest.mark.parametrize(("key", "value"), [("ledger", "M"), ("tenant", "u"), ("name", "demo.b")])
def test_a_chain_passed_off_as_another(key: str, value: str) -> None:
    judge = ChainJudge(Rules(Ring.pin(KEYS)), chain="demo.a", identity={**IDENTITY, key: value})
    for record in CHAIN:
        judge.judge(record)
    assert first(conclude("chain", judge.finish())) == ("CHAIN_IDENTITY", 0)


def test_a_later_record_that_claims_to_be_the_first() -> None:
    def cut(content: dict[str, Any]) -> None:
        content["previous_hash"] = None

    assert first(judged(replaced(2, resealed(2, cut, OURS)))) == ("GENESIS_INVALID", 2)


def test_a_first_record_with_a_predecessor() -> None:
    def link(content: dict[str, Any]) -> None:
        content["previous_hash"] = "0" * 64

    assert first(judged(replaced(0, resealed(0, link, OURS)))) == ("GENESIS_INVALID", 0)


# --- levels


@pytest.mark.parametrize("level", ["structural", "content"])
def test_lower_levels_never_say_verified(level: Level) -> None:
    verdict = judged(CHAIN, level=level)
    assert verdict.status == "qualified"
    assert verdict.check("signature").status == "not_checked"
    assert verdict.check("content").status == ("passed" if level == "content" else "not_checked")
    for length in range(1, 7):
        assert judged(CHAIN[:length], level=level).status == "qualified"


def test_structural_still_finds_gaps_and_content_still_finds_changes() -> None:
    assert first(judged(CHAIN[:2] + CHAIN[3:], level="structural")) == ("SEQUENCE_GAP", 2)
    changed = with_seal(CHAIN[2], canonical=CHAIN[2].canonical.replace(b'"agents"', b'"agentz"'))
    assert judged(replaced(2, changed), level="structural").status == "qualified"
    assert first(judged(replaced(2, changed), level="content")) == ("HASH_MISMATCH", 2)


# --- keys


def test_unknown_signers_qualify_whether_keys_were_given_or_are_known_here() -> None:
    for only_hybrid in (Ring(known={HYBRID.fingerprint: HYBRID.public}), Ring.pin([HYBRID.public])):
        verdict = judged(CHAIN, ring=only_hybrid)
        assert (verdict.status, verdict.integrity) == ("qualified", "unsigned")
        assert verdict.check("signature").code == "UNKNOWN_SIGNER"
        assert verdict.check("signature").count == verdict.unknown_signatures == 4
        assert verdict.held == 2


def test_an_unknown_signer_does_not_hide_other_faults() -> None:
    changed = with_seal(CHAIN[2], canonical=CHAIN[2].canonical.replace(b'"agents"', b'"agentz"'))
    assert first(judged(replaced(2, changed), ring=Ring())) == ("HASH_MISMATCH", 2)
    assert first(judged(CHAIN[:2] + CHAIN[3:], ring=Ring())) == ("SEQUENCE_GAP", 2)


def test_a_record_without_signature_fails_whoever_is_known() -> None:
    for ring in (Ring(), Ring.pin(KEYS)):
        assert first(judged(replaced(2, with_seal(CHAIN[2], signature="")), ring=ring)) == ("SIG_MISSING", 2)


def test_post_quantum_signatures_can_be_required() -> None:
    hybrid_only = [CHAIN[1]]
    assert judged(hybrid_only, start=1, require_pq=True).status == "verified"
    assert first(judged(CHAIN, require_pq=True)) == ("SIG_MISSING", 0)
    stripped = [with_seal(CHAIN[1], signature_pq="")]
    assert first(judged(stripped, start=1, require_pq=True)) == ("SIG_MISSING", 1)


def test_a_post_quantum_signature_stripped_from_a_key_that_makes_them_is_noticed() -> None:
    """Whoever can write the file can remove it: a verdict that then still says `verified` hides that."""
    verdict = judged(replaced(1, with_seal(CHAIN[1], signature_pq="")))
    assert verdict.status != "verified"
    assert verdict.check("signature_pq").code == "SIG_MISSING"
    assert verdict.check("signature_pq").place.sequence == 1


def test_a_post_quantum_signature_by_an_unknown_key() -> None:
    classic_only = PublicKey(HYBRID.public.ed25519)
    ring = Ring(known={key.fingerprint: key for key in (OURS.public, classic_only)})
    verdict = judged(CHAIN, ring=ring)
    assert verdict.status == "qualified"
    assert verdict.check("signature_pq").code == "UNKNOWN_SIGNER"
    assert first(judged(CHAIN[1:2], start=1, ring=ring, require_pq=True)) == ("SIG_INVALID", 1)


def test_a_post_quantum_signature_by_the_wrong_key() -> None:
    other = SeedSigner(bytes([2]) * 32, bytes([9]) * 32)
    forged = with_seal(CHAIN[1], signature_pq=other.sign(CHAIN[1].hash).ml_dsa_65)
    assert first(judged(replaced(1, forged))) == ("SIG_INVALID", 1)


# --- retired keys


def test_a_retired_key_is_good_up_to_the_recorded_head_and_no_further() -> None:
    for limit in range(7):
        retired = {OURS.public.ed25519: Retirement("2020-01-01T00:00:00+00:00", {"demo.a": limit})}
        verdict = judged(CHAIN, retired=retired)
        beyond = [place for place in (0, 2, 3, 5) if place >= limit]
        if beyond:
            assert first(verdict) == ("KEY_RETIRED", beyond[0])
        else:
            assert verdict.status == "verified"


def test_a_chain_the_rotation_did_not_know_admits_no_retired_key() -> None:
    assert first(judged(CHAIN, retired={OURS.public.ed25519: Retirement(None, {})})) == ("KEY_RETIRED", 0)


def test_without_recorded_heads_the_time_counts() -> None:
    retired = {OURS.public.ed25519: Retirement("2026-01-01T00:00:02.500000+00:00")}
    assert first(judged(CHAIN, retired=retired)) == ("KEY_RETIRED", 3)


@pytest.mark.parametrize("alias", [f"qp_key_{OURS.public.ed25519[:4]}", OURS.fingerprint])
def test_a_retired_key_gains_nothing_by_another_name(alias: str) -> None:
    def rename(content: dict[str, Any]) -> None:
        content["context"]["environment"]["aver"].update(by=alias, at="2000-01-01T00:00:00+00:00")

    forged = resealed(5, rename, OURS)
    forged = with_seal(forged, signed_by=alias, signed_at="2000-01-01T00:00:00+00:00")
    retired = {OURS.public.ed25519: Retirement("2026-01-01T00:00:00+00:00", {"demo.a": 5})}
    assert first(judged(replaced(5, forged), retired=retired)) == ("KEY_RETIRED", 5)


# --- columns


@pytest.mark.parametrize("at", range(6))
def test_each_column_is_held_to_the_signed_content(at: int) -> None:
    content = CHAIN[2].to_dict()
    block = content["context"]["environment"]["aver"]
    columns = [content["id"], "tool", "call", "k2", None, block["at"]]
    for wrong in ("x", None, 0, b"x"):
        judge = ChainJudge(Rules(Ring.pin(KEYS)), chain="demo.a", start=2, previous=CHAIN[1].hash)
        judge.judge(CHAIN[2], tuple(columns))
        assert conclude("x", judge.finish()).status == "verified"
        if wrong == columns[at]:
            continue
        judge = ChainJudge(Rules(Ring.pin(KEYS)), chain="demo.a", start=2, previous=CHAIN[1].hash)
        judge.judge(CHAIN[2], tuple(wrong if index == at else value for index, value in enumerate(columns)))
        assert first(conclude("x", judge.finish())) == ("COLUMN_MISMATCH", 2)


# --- canonical form


def test_signed_bytes_that_are_not_canonical_are_intact_with_a_warning() -> None:
    canonical = CHAIN[3].canonical.replace(b'"confidence":0.0', b'"confidence":0')
    loose = with_seal(
        CHAIN[3],
        canonical=canonical,
        hash=content_hash(canonical),
        signature=OURS.sign(content_hash(canonical)).ed25519,
    )
    verdict = judged([*CHAIN[:3], loose])
    assert verdict.status == "qualified"
    assert [(f.code, f.place.sequence) for f in verdict.findings] == [("NOT_CANONICAL", 3)]


def test_a_duplicate_key_fails_even_when_signed() -> None:
    canonical = CHAIN[3].canonical.replace(b'"type":"agent"', b'"type":"agent","type":"agent"')
    digest = content_hash(canonical)
    forged = with_seal(CHAIN[3], canonical=canonical, hash=digest, signature=OURS.sign(digest).ed25519)
    assert first(judged([*CHAIN[:3], forged])) == ("DUPLICATE_KEY", 3)


# --- reports


def test_findings_stay_short_and_writable_whatever_a_record_says() -> None:
    """A hostile record chooses what it says about itself: it must not be able to flood or garble a report."""
    hostile = "\x1b[2J\ud800" + "A" * 1_000_000
    changes = [
        with_seal(CHAIN[2], signed_by=hostile),
        with_seal(CHAIN[2], signed_at=hostile),
        with_seal(CHAIN[2], signature=hostile),
        with_seal(CHAIN[2], hash=hostile),
        with_seal(CHAIN[1], signed_by=hostile),
    ]
    big = copy.deepcopy(CHAIN[0].to_dict())
    big["context"]["environment"]["aver"]["chain"] = {"ledger": "A" * 1_000_000, "tenant": "\x1b[2J", "name": 1}
    changes.append(seal_content(big, OURS, at=CHAIN[0].signed_at))
    big = copy.deepcopy(CHAIN[0].to_dict())
    big["context"]["environment"]["aver"]["at"] = "B" * 1_000_000
    changes.append(seal_content(big, OURS, at=CHAIN[0].signed_at))
    for ring in (Ring(), Ring.pin(KEYS)):
        for changed in changes:
            judge = ChainJudge(Rules(ring), chain="demo.a", identity=IDENTITY, start=None)
            judge.judge(changed)
            verdict = conclude("hostile", judge.finish())
            report = orjson.dumps(verdict.to_dict())
            assert len(report) < 20_000
            for finding in verdict.findings:
                assert finding.words.isprintable()


def test_the_judge_goes_on_after_a_fault() -> None:
    bad = with_seal(CHAIN[1], canonical=b"garbage")
    worse = with_seal(CHAIN[4], signature="0" * 128)
    verdict = judged([CHAIN[0], bad, CHAIN[2], CHAIN[3], worse, CHAIN[5]])
    assert [(finding.code, finding.place.sequence) for finding in verdict.findings] == [
        ("SCHEMA_INVALID", 1),
        ("SIG_INVALID", 4),
    ]
    assert verdict.records == 6


def test_a_chain_judged_in_parts_gives_the_same_verdict_as_a_whole() -> None:
    picker = random.Random(7)
    for _ in range(30):
        records = list(CHAIN)
        for place in picker.sample(range(6), picker.randrange(3)):
            records[place] = with_seal(records[place], signature="0" * 128)
        whole = judged(records)
        cut = picker.randrange(1, 6)
        parts = [(0, records[:cut]), (cut, records[cut:])]
        tally = Tally()
        for start, part in parts:
            judge = ChainJudge(
                Rules(Ring.pin(KEYS)),
                chain="demo.a",
                identity=IDENTITY,
                start=start,
                previous=records[start - 1].hash if start else None,
            )
            for record in part:
                judge.judge(record)
            tally.merge(judge.finish())
        assert conclude("chain", tally).to_dict() == whole.to_dict()


@pytest.mark.parametrize("signature", ["garbage", "ab" * 63, "AB" * 64, "ab" * 64 + "\n"])
def test_what_no_key_can_have_made_is_invalid_whoever_is_named(signature: str) -> None:
    stranger = with_seal(CHAIN[3], signed_by=STRANGER.fingerprint)
    open_ring = Ring(known={HYBRID.public.fingerprint: HYBRID.public, OURS.public.fingerprint: OURS.public})
    for changes in ({"signature": signature}, {"signature": "ab" * 64, "signature_pq": signature}):
        changed = with_seal(stranger, **changes)
        assert first(judged(replaced(3, changed), ring=open_ring)) == ("SIG_INVALID", 3)
    unknown = with_seal(stranger, signature="ab" * 64, signature_pq="ab" * 3309)
    assert judged(replaced(3, unknown), ring=open_ring).status == "qualified"


@pytest.mark.parametrize(("depth", "passes"), [(190, True), (198, True), (199, False), (240, False)])
def test_what_the_strict_reader_finds_too_deep_is_no_record(depth: int, passes: bool) -> None:
    """Also where it is canonical, and the fast reader takes it: not every reader could."""
    value: Any = []
    for _ in range(depth - 1):
        value = [value]
    signer = SeedSigner(bytes(32))
    content = {**Capsule(type="tool").to_dict()}
    content["outcome"] = {**content["outcome"], "result": value}
    canonical = orjson.dumps(content, option=orjson.OPT_SORT_KEYS)
    digest = content_hash(canonical)
    record = Sealed(canonical, digest, signer.sign(digest).ed25519, "", "", signer.fingerprint)
    judge = ChainJudge(Rules(Ring.pin([signer.public])))
    judge.judge(record)
    assert [finding.code for finding in judge.tally.findings] == ([] if passes else ["SCHEMA_INVALID"])


# Hashes and signatures of this chain differ from run to run, so the cases have names of their own.
@pytest.mark.sample(8)
@pytest.mark.parametrize(
    "hash_",
    ["", "\ud800", "ü" * 64, "g" * 64, CHAIN[2].hash.upper(), CHAIN[0].hash],
    ids=("empty", "surrogate", "beyond ASCII", "no hex", "upper case", "another"),
)
@pytest.mark.parametrize(
    "signature",
    ["", "\ud800", "zz", CHAIN[0].signature, CHAIN[2].signature.upper()],
    ids=("none", "surrogate", "no hex", "another", "upper case"),
)
def test_verifying_ahead_takes_any_seal(hash_: str, signature: str) -> None:
    verdict = judged(replaced(2, with_seal(CHAIN[2], hash=hash_, signature=signature)))
    assert verdict.status == "failed"
    assert verdict.first_bad is not None
    assert verdict.first_bad.place.sequence == 2


def test_a_signature_verified_ahead_counts_for_no_other_hash_or_key() -> None:
    judge = ChainJudge(Rules(Ring.pin(KEYS)), chain="demo.a", identity=IDENTITY)
    judge.verify_ahead(CHAIN[:1])
    judge.judge(with_seal(CHAIN[0], signature=CHAIN[2].signature))
    judge.judge(with_seal(CHAIN[1], signature=CHAIN[0].signature))
    judge.judge(with_seal(CHAIN[2], signed_by=HYBRID.fingerprint))
    assert [finding.code for finding in judge.tally.findings] == ["SIG_INVALID"] * 3

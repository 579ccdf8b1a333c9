"""The capsule as values: what is read is written back, whoever wrote it."""

from __future__ import annotations

import copy
import dataclasses
import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

import aver
from aver import (
    Capsule,
    InvalidCapsule,
    Option,
    Reasoning,
    Sealed,
    SeedSigner,
    Trigger,
    canonical_bytes,
    seal,
    validate,
)
from aver.capsule.model import REQUIRED_KEYS, SECTIONS
from aver.capsule.sealed import content_hash
from support.strategies import capsules, foreign_contents


@pytest.mark.more
@given(capsules())
def test_what_may_be_written_is_accepted_and_survives_a_round_trip(capsule: Capsule) -> None:
    validate(capsule)
    content = capsule.to_dict()
    again = Capsule.from_dict(content)
    assert again == capsule
    assert canonical_bytes(again.to_dict()) == canonical_bytes(content)


@pytest.mark.more
@given(capsules())
def test_building_from_plain_dicts_is_the_same(capsule: Capsule) -> None:
    content = capsule.to_dict()
    assert Capsule(**content).to_dict() == content


@pytest.mark.more
@given(foreign_contents())
def test_documents_of_others_are_read_whole(content: dict[str, Any]) -> None:
    """Keys a model does not know stay, at every level that has a model; nothing is renamed or re-typed."""
    content["reasoning"].pop("options", None)
    content["execution"].pop("tool_calls", None)
    before = copy.deepcopy(content)
    written = Capsule.from_dict(content).to_dict()
    assert content == before
    for key, value in content.items():
        if key in SECTIONS:
            assert {name: written[key][name] for name in value} == value
        else:
            assert written[key] == value
    assert ("spec_version" in written) == ("spec_version" in content)


@pytest.mark.more
@given(capsules())
def test_a_sealed_capsule_survives_its_dict(capsule: Capsule) -> None:
    sealed = seal(capsule, SIGNER)
    again = Sealed.from_sealed_dict(sealed.to_sealed_dict())
    assert again == sealed
    assert content_hash(again.canonical) == sealed.hash


SIGNER = SeedSigner(bytes(32))


@pytest.mark.parametrize("number", [2**64, 2**70, -(2**63) - 1, -(10**40), 10**300])
def test_huge_integers_survive_sealing_and_reading(number: int) -> None:
    """A fast parser reads integers beyond 64 bits as floats; the record must still say what was sealed."""
    sealed = seal(Capsule(type="tool", outcome={"metrics": {"n": number}}), SIGNER)
    assert sealed.to_dict()["outcome"]["metrics"] == {"n": number}
    assert type(sealed.to_dict()["outcome"]["metrics"]["n"]) is int
    assert sealed.capsule.outcome.metrics == {"n": number}
    assert content_hash(Sealed.from_sealed_dict(sealed.to_sealed_dict()).canonical) == sealed.hash


@pytest.mark.parametrize("missing", REQUIRED_KEYS)
def test_each_of_the_twelve_keys_is_required(missing: str) -> None:
    content = Capsule(type="tool").to_dict()
    del content[missing]
    with pytest.raises(InvalidCapsule) as caught:
        Capsule.from_dict(content)
    assert (caught.value.category, caught.value.field) == ("missing_field", missing)


@pytest.mark.parametrize("section", SECTIONS)
@pytest.mark.parametrize("wrong", [None, [], "x", 1])
def test_a_section_is_an_object(section: str, wrong: Any) -> None:
    content = {**Capsule(type="tool").to_dict(), section: wrong}
    with pytest.raises(InvalidCapsule) as caught:
        Capsule.from_dict(content)
    assert (caught.value.category, caught.value.field) == ("wrong_type", section)


@pytest.mark.parametrize("wrong", [None, [], "x", 1, ("a",)])
def test_only_an_object_is_a_capsule(wrong: Any) -> None:
    for read in (Capsule.from_dict, Sealed.from_sealed_dict):
        with pytest.raises(InvalidCapsule):
            read(wrong)


def test_twelve_keys_stay_twelve() -> None:
    content = Capsule(type="tool").to_dict()
    del content["spec_version"]
    assert Capsule.from_dict(content).to_dict().keys() == content.keys()


def test_values_are_frozen() -> None:
    capsule = Capsule(type="tool")
    with pytest.raises(dataclasses.FrozenInstanceError):
        capsule.type = "agent"  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        capsule.outcome.status = "success"  # type: ignore[misc]


def test_an_aware_datetime_becomes_utc_text() -> None:
    east = datetime.timezone(datetime.timedelta(hours=2))
    moment = datetime.datetime(2026, 1, 1, 1, 30, tzinfo=east)
    assert Trigger(timestamp=moment).timestamp == "2025-12-31T23:30:00+00:00"  # type: ignore[arg-type]
    with pytest.raises(InvalidCapsule):
        Trigger(timestamp=datetime.datetime(2026, 1, 1))  # type: ignore[arg-type]


def test_defaults_are_valid_and_fresh() -> None:
    one, two = Capsule(type="agent"), Capsule(type="agent")
    validate(one)
    assert one.id != two.id
    assert one.id[14] == "4"
    assert one.id[19] in "89ab"


def test_an_unsealed_capsule_has_no_sealed_form() -> None:
    with pytest.raises(InvalidCapsule):
        Capsule(type="tool").to_sealed_dict()


def test_a_time_that_nobody_signed_is_not_read() -> None:
    content = Capsule(type="tool").to_dict()
    del content["trigger"]["timestamp"]
    assert Capsule.from_dict(content).trigger.timestamp == ""
    assert Sealed(canonical_bytes(content), "", "").capsule.trigger.timestamp == ""
    assert Trigger.from_dict({"source": "ci"}).timestamp == ""
    for made in (Trigger(source="ci"), Capsule(type="tool", trigger={"source": "ci"}).trigger):
        assert made.timestamp > "2020"


CONTRADICTIONS: dict[str, dict[str, Any]] = {
    "no outcome": {"outcome": None},
    "another type": {"type": "zzz"},
    "a place without a predecessor": {"sequence": 5},
    "no version": {"spec_version": None},
    "a rejected option without a reason": {
        "reasoning": Reasoning(options=[Option(description="a")]).to_dict(),
    },
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_seal_refuses_what_a_ledger_refuses(name: str) -> None:
    content = {**Capsule(type="tool").to_dict(), **CONTRADICTIONS[name]}
    content = {
        key: value for key, value in content.items() if value is not None or key in ("parent_id", "previous_hash")
    }
    signer = SeedSigner.generate()
    with pytest.raises(InvalidCapsule):
        seal(content, signer)
    with pytest.raises(InvalidCapsule):
        validate(content)
    assert seal(content, signer, unchecked=True).to_dict() == content


@pytest.mark.parametrize(
    ("written", "kept"), {".123": ".123000", ".5": ".500000", ".000": "", ".123456": ".123456", "": ""}.items()
)
def test_milliseconds_are_padded_where_aver_writes(written: str, kept: str, tmp_path: Path) -> None:
    at = "2026-05-31T09:00:00"
    capsule = Capsule(type="tool", trigger=Trigger(timestamp=f"{at}{written}+00:00"))
    assert seal(capsule, SeedSigner.generate()).to_dict()["trigger"]["timestamp"] == f"{at}{kept}+00:00"
    with aver.open_ledger(home=tmp_path / "home") as ledger:
        assert ledger.append("demo.x", capsule).to_dict()["trigger"]["timestamp"] == f"{at}{kept}+00:00"
        assert ledger.verify().status == "verified"


@pytest.mark.parametrize(
    "at", ["2026-05-31T09:00:00.+00:00", "2026-05-31T09:00:00.12Z", "2026-05-31T09:00:00.1234567+00:00"]
)
def test_other_times_are_refused_as_before(at: str) -> None:
    with pytest.raises(InvalidCapsule, match="timestamp"):
        seal(Capsule(type="tool", trigger=Trigger(timestamp=at)), SeedSigner.generate())


@pytest.mark.parametrize(("name", "right"), [("canonicalize", "canonical_bytes"), ("compute_hash", "hash")])
def test_names_of_the_specification_are_answered_with_ours(name: str, right: str) -> None:
    with pytest.raises(AttributeError, match=right):
        getattr(aver, name)

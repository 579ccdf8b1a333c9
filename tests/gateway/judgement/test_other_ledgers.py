"""Acts of another ledger, judged on a machine that has a gateway of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import aver
from aver import Ledger, open_ledger
from aver.gateway.judgement.act_file import build_act_file
from aver.gateway.parts.part_directories import make_part_directories
from aver.keys import RingEntry
from aver.keys.statement import sign_statement
from aver.ledger.bundle.export import export_bundle
from aver.verdict import Verdict
from support.act_ledgers import Acts, forge_commit, open_acts, prepare_home
from support.acts import open_office
from support.apart import ALL, Town, write
from support.parts import short_directory


@pytest.fixture
def acts(tmp_path: Path) -> Iterator[Acts]:
    """Acts in the ledger of somebody else."""
    prepare_home(tmp_path / "other")
    with open_acts(tmp_path / "other", tmp_path / "elsewhere") as opened:
        yield opened


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Ledger]:
    """Our own ledger, whose ring has keys of policy servers, too."""
    with open_ledger() as ledger, open_office(tmp_path / "work", ledger) as office:
        assert office.write()["reason_code"] == "ALLOW"
        yield ledger


def keys_of(acts: Acts, *identities: str) -> list[RingEntry]:
    return [entry for entry in acts.ledger.keys.ring().entries if entry.identity in identities]


def judge(acts: Acts, own: Ledger, tmp_path: Path, sort: str, keys: list[RingEntry]) -> Verdict:
    """The verdict of our machine on a bundle, or on the file of one act."""
    if sort == "bundle":
        export_bundle(acts.ledger, tmp_path / "bundle")
        thing = tmp_path / "bundle"
    else:
        thing = tmp_path / "act.json"
        thing.write_bytes(build_act_file(acts.ledger, acts.ids["allowed"])[1])
    for entry in keys:
        own.keys.trust(entry)
    return aver.verify(thing)


@pytest.mark.parametrize("sort", ["bundle", "file"])
def test_our_own_policy_servers_say_nothing_about_those_of_another_ledger(
    acts: Acts, own: Ledger, tmp_path: Path, sort: str
) -> None:
    verdict = judge(acts, own, tmp_path, sort, keys_of(acts, "ledger"))
    assert verdict.status == "qualified", verdict
    assert verdict.check("evidence").status == "not_checked"
    assert "keys of policy:0 and policy:1 are not known" in verdict.check("evidence").reason


@pytest.mark.parametrize("sort", ["bundle", "file"])
def test_with_the_keys_of_that_ledger_its_evidence_is_checked(
    acts: Acts, own: Ledger, tmp_path: Path, sort: str
) -> None:
    verdict = judge(acts, own, tmp_path, sort, keys_of(acts, "ledger", "policy:0", "policy:1"))
    assert verdict.check("evidence").status == "passed", verdict


def forge(acts: Acts) -> None:
    """Seal a COMMIT whose attestation is by a key that the forger has made."""
    stranger = aver.SeedSigner.generate()
    preview = acts.preview("open")
    forged = tuple(sign_statement("policy", each.content, [stranger]) for each in preview.attestations)
    forge_commit(acts, attestations=forged)


@pytest.mark.more
def test_a_forgery_is_found_by_whoever_knows_the_keys(acts: Acts, own: Ledger, tmp_path: Path) -> None:
    forge(acts)
    verdict = judge(acts, own, tmp_path, "bundle", keys_of(acts, "ledger", "policy:0", "policy:1"))
    assert (verdict.status, verdict.check("evidence").status) == ("failed", "failed")


def test_in_a_bundle_of_our_own_ledger_unknown_keys_are_a_forgery(acts: Acts, tmp_path: Path) -> None:
    forge(acts)
    export_bundle(acts.ledger, tmp_path / "bundle")
    verdict = aver.verify(tmp_path / "bundle", home=acts.ledger.config.home)
    assert (verdict.status, verdict.check("evidence").status) == ("failed", "failed")


@pytest.mark.more
def test_a_home_that_ran_in_one_process_first_and_apart_later_holds() -> None:
    """Both kinds of servers have MAC keys of their own, with the same names."""
    with short_directory() as directory:
        home = directory / "home"
        with open_ledger(home=home) as ledger:
            with open_office(directory / "work", ledger) as office:
                assert office.write("before.txt")["reason_code"] == "ALLOW"
            make_part_directories(ledger)
            town = Town(home, ledger)
            try:
                town.start(*ALL)
                with town.open(session="s2") as gateway:
                    assert gateway.act(write())["reason_code"] == "ALLOW"
            finally:
                town.end_all()
            verdict = ledger.verify()
            assert verdict.status == "verified", verdict
            assert "MAC" not in verdict.check("evidence").reason

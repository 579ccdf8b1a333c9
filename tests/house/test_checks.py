"""A check that checked nothing has not passed: over every check of every examiner, and of every verifier."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from aver import Ledger
from aver.capsule.canonical import canonical_json
from aver.capsule.sealed import Sealed
from aver.check import EXAMINERS, verify
from aver.errors import NotFound
from aver.ledger.bundle import export_bundle
from aver.verdict import CHECKS, Examination, ExaminedChain, Examiner, Tally, Verdict, VerifyOptions, conclude
from aver.verdict.examiner import ChainHead
from support.page_verdicts import VERIFIER, find_node
from support.runs import make_sealed_run
from support.shop_ledger import write_shop_ledger

pytestmark = pytest.mark.more

ALL_CHECKS = sorted({check for examiner in EXAMINERS for check in examiner.checks})


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ledger]:
    with write_shop_ledger(tmp_path_factory.mktemp("shop")) as ledger:
        yield ledger


def hold_to_the_rule(verdict: Verdict) -> set[str]:
    """The checks that passed. Each was carried out for at least one thing."""
    passed = [check for check in verdict.checks if check.status == "passed"]
    assert [check.name for check in passed if check.count < 1] == []
    return {check.name for check in passed}


def test_every_check_that_passed_was_carried_out(shop: Ledger, tmp_path: Path) -> None:
    export_bundle(shop, tmp_path / "site", html=True)
    run = make_sealed_run(tmp_path / "run", actions=3, gated=(1,))
    record = next(iter(shop.read("gate.shop-acts")))
    (tmp_path / "capsule.json").write_text(json.dumps(record.to_sealed_dict()))
    passed: set[str] = set()
    for thing in (shop, tmp_path / "site", tmp_path / "capsule.json"):
        passed |= hold_to_the_rule(verify(thing, home=shop.config.home))
    for thing in (run.path, run.path / "run.cap"):
        passed |= hold_to_the_rule(verify(thing, keys=[run.key]))
    for chain in shop.chains():
        passed |= hold_to_the_rule(verify(chain, ledger=shop))
    for path in (tmp_path / "site").glob("*.json"):
        if path.name not in ("index.json", "head.json"):
            passed |= hold_to_the_rule(verify(path, home=shop.config.home))
    # A rule that no check ever meets would hold, too.
    assert passed >= {"decisions", "approvals", "changes", "evidence", "effects", "order", "receipts", "page", "meta"}


def test_every_check_that_passed_in_the_page_was_carried_out(shop: Ledger, tmp_path: Path) -> None:
    export_bundle(shop, tmp_path / "site", html=True)
    run = make_sealed_run(tmp_path / "run", actions=3, gated=(1,))
    passed: set[str] = set()
    for thing in (tmp_path / "site", *(tmp_path / "site").glob("[!ih]*.json"), run.path / "run.cap"):
        command = [find_node(), str(VERIFIER), str(thing), "--key", run.key.ed25519]
        found = json.loads(subprocess.run(command, capture_output=True, text=True, check=False).stdout)
        of_thing = [check for check in found["checks"] if check["status"] == "passed"]
        assert [check["name"] for check in of_thing if check["count"] < 1] == []
        passed |= {check["name"] for check in of_thing}
    assert passed >= {"schema", "content", "receipts", "page"}


class NothingToCheck:
    """Reads a ledger in which no record is of a kind that any examiner knows, and no blob is here."""

    def __init__(self, ledger: Ledger, kind: str | None) -> None:
        self._ledger = ledger
        self._kind = kind

    def read(self, chain: str, start: int = 0, stop: int | None = None) -> Iterator[Sealed]:
        for record in self._ledger.read(chain) if self._kind is not None else ():
            content = record.to_dict()
            if start <= content["sequence"] < (stop or 1 << 60):
                content["context"]["environment"]["aver"]["kind"] = self._kind
                given = (record.hash, record.signature, record.signature_pq, record.signed_at, record.signed_by)
                yield Sealed(canonical_json(content), *given, chain=chain)

    def get(self, reference: str) -> Sealed | None:
        return None

    def blob(self, digest: str) -> bytes:
        raise NotFound("it is not here")

    def head(self, chain: str) -> ChainHead:
        return self._ledger.head(chain)


@pytest.mark.parametrize("kind", [None, "gate.future", "future.kind"])
@pytest.mark.parametrize("examiner", EXAMINERS, ids=lambda examiner: examiner.checks[0])
def test_no_examiner_passes_where_it_can_check_nothing(shop: Ledger, examiner: Examiner, kind: str | None) -> None:
    options = VerifyOptions(shop.keys.ring(), shop.config.home)
    chains = tuple(ExaminedChain(name, name, shop.head(name).count if kind else 0) for name in shop.chains())
    examination = Examination(NothingToCheck(shop, kind), options.rules({}), shop.id, shop.tenant, chains)
    tally = examiner.examine(examination)
    tally.records = 1
    verdict = conclude("nothing", tally, expected=(*CHECKS, *examiner.checks))
    assert hold_to_the_rule(verdict) == set()


@pytest.mark.parametrize("check", [*CHECKS, *ALL_CHECKS])
def test_a_count_of_nothing_does_not_pass(check: str) -> None:
    tally = Tally(records=1)
    tally.count_done(check, 0)
    tally.notes[check] = "3 checked, 0 made again"
    assert conclude("nothing", tally).check(check).status == "not_checked"

"""`aver demo`: a run really sealed, really verified, really tampered with, and every change caught at its place."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from aver import open_ledger
from aver.agents.registry import AGENTS
from aver.cli.verbs.demo.command import name_own_command
from aver.cli.verbs.demo.tampering import TAMPERINGS
from support.aver_command import Aver


class KeptDemo(NamedTuple):
    """A demo that was run with `--keep kept`."""

    aver: Aver
    shown: dict[str, Any]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> KeptDemo:
    """One demo for all tests that look at what it has kept. It takes seconds."""
    aver = Aver(tmp_path_factory.mktemp("demo"))
    ran = aver("demo", "--keep", "kept", "--json")
    assert ran.code == 0
    return KeptDemo(aver, ran.json)


@pytest.mark.more
def test_it_catches_every_change(aver: Aver) -> None:
    ran = aver("demo")
    assert ran.code == 0
    assert ran.err == ""
    # The last seven: an edited transcript, a forged act, four attacks on a trace, and a changed site.
    attacks = len(TAMPERINGS) + 7
    assert f"{attacks} of {attacks} caught" in ran.out
    edited = r"caught +a transcript edited +ARTIFACT_HASH_MISMATCH +claude-code\.5d2e4c1a…/3\n"
    assert re.search(edited, ran.out)
    verified = [["✓", "verified"]] * len(AGENTS)
    assert [line.split()[:2] for line in ran.out.splitlines() if "match transcript" in line] == verified
    assert re.search(r"caught +an act forged +EVIDENCE_INVALID +gateway\.shop-act…/", ran.out)
    for tampering in TAMPERINGS:
        place = tampering.chain if tampering.sequence is None else f"{tampering.chain}/{tampering.sequence}"
        assert re.search(rf"caught +{re.escape(tampering.title)} +{tampering.code} +{re.escape(place)}\n", ran.out)


@pytest.mark.more
def test_the_gate_really_decides_and_what_it_allows_happens(demo: KeptDemo) -> None:
    aver, shown = demo
    words = [step["decision"] for step in shown["gate"]]
    assert words == ["pass", "human_review", "skip", "human_review", "human_approved", "human_review"]
    assert all(step["as_expected"] and step["reasons"] and step["rules"] for step in shown["gate"])
    shop = aver.directory / "kept" / "shop"
    assert (shop / "src" / "price.py").read_text() == "SHIPPING = 5\n"
    assert not (shop / "build").exists()
    verdict = aver("verify", "--json", AVER_HOME=str(aver.directory / "kept" / "gate-home")).json
    checks = {check["name"]: check["status"] for check in verdict["checks"]}
    assert (verdict["status"], checks["decisions"], checks["approvals"]) == ("verified", "passed", "passed")


@pytest.mark.more
def test_acts_really_happen_once_each(demo: KeptDemo) -> None:
    aver, shown = demo
    codes = [step["reason_code"] for step in shown["acts"]]
    assert codes == ["ALLOW", "ALLOW", "RECIPIENT_NOT_ALLOWED", "REQUIRE_CONFIRM", "ALLOW", "REPLAY_DENY"]
    shop = aver.directory / "kept" / "acts"
    assert sorted(path.name for path in shop.iterdir()) == ["log.txt", "prices.txt"]
    assert len((shop / "log.txt").read_text()) == 24
    assert shown["forged"]["status"] == "failed"


@pytest.mark.more
def test_calls_through_the_proxy_are_acts_and_an_approved_one_happens_once(demo: KeptDemo) -> None:
    aver, shown = demo
    codes = [step["reason_code"] for step in shown["calls"]]
    assert codes == ["ALLOW", "ALLOW", "ALLOW", "POLICY_DENY", "REQUIRE_CONFIRM", "ALLOW", "REQUIRE_CONFIRM"]
    assert shown["calls_verdict"]["status"] == "verified"
    sent = (aver.directory / "kept" / "calls" / "sent.txt").read_text().splitlines()
    assert [line.split()[0] for line in sent] == ["send_receipt", "send_receipt"]
    assert ["ada@example.com" in sent[0], "books@example.net" in sent[1]] == [True, True]


def test_a_wrong_claim_is_challenged_and_attacks_on_the_trace_are_caught(demo: KeptDemo) -> None:
    aver, shown = demo
    assert [step["title"] for step in shown["trace"]] == ["ran", "claimed", "challenged", "revised", "audited"]
    assert all(step["as_expected"] for step in shown["trace"])
    assert [(attack["code"], attack["caught"]) for attack in shown["attacks"]] == [
        ("EVIDENCE_INVALID", True),
        ("ROLE_POLICY_VIOLATION", True),
        ("TRUNCATED", True),
        ("REPLAY", True),
    ]
    home = aver.directory / "kept" / "trace-home"
    assert aver("verify", "shop-tests", "--json", AVER_HOME=str(home)).json["status"] == "qualified"


def test_its_site_is_judged_by_the_page_too(demo: KeptDemo) -> None:
    """The tests have a Node.js, so the page's own verifier must have been asked."""
    _, shown = demo
    assert (shown["site"]["status"], shown["site_by_page"]) == ("verified", "verified")
    assert (shown["site_changed"]["status"], shown["site_changed_by_page"]) == ("failed", "failed")


def test_its_last_lines_name_a_command_that_the_caller_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After `make demo` alone, the command is in .venv, where no shell looks for it."""
    own = tmp_path / ".venv" / "bin" / "aver"
    own.parent.mkdir(parents=True)
    own.touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(own), "demo"])
    monkeypatch.setenv("PATH", "/usr/bin")
    assert name_own_command() == ".venv/bin/aver"
    monkeypatch.setenv("PATH", str(own.parent))
    assert name_own_command() == "aver"


def test_its_attacks_are_of_many_kinds() -> None:
    assert len({tampering.code for tampering in TAMPERINGS}) >= 12
    assert len({tampering.title for tampering in TAMPERINGS}) == len(TAMPERINGS)


@pytest.mark.more
def test_it_leaves_no_trace(aver: Aver, tmp_path: Path) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    assert aver("demo", TMPDIR=str(temporary)).code == 0
    assert aver.listing() == ["tmp"]


@pytest.mark.more
def test_it_never_touches_the_users_own_ledger(sealed: Aver) -> None:
    before = (sealed.home / "ledger.db").read_bytes()
    mine = sealed("log", "--json").json
    assert sealed("demo", AVER_LEDGER=str(sealed.home / "ledger.db")).code == 0
    assert (sealed.home / "ledger.db").read_bytes() == before
    assert sealed("log", "--json").json == mine


@pytest.mark.more
def test_what_is_kept_is_what_was_shown(aver: Aver) -> None:
    ran = aver("demo", "--keep", "kept")
    assert ran.code == 0
    assert re.fullmatch(r" +AVER_HOME=kept/agents-home \S*aver serve --open", ran.out.splitlines()[-1])
    assert aver("verify", "kept/site", AVER_HOME=str(aver.directory / "kept" / "agents-home")).code == 0
    home = str(aver.directory / "kept" / "home")
    assert aver("verify", "--json", AVER_HOME=home).json["status"] == "verified"
    for number, tampering in enumerate(TAMPERINGS, 1):
        pq = ["--require-pq"] if tampering.require_pq else []
        ran = aver("verify", f"kept/tampered-{number:02}.db", "--json", *pq, AVER_HOME=home)
        bad = ran.json["first_bad"]
        found = (ran.code, bad["code"], bad["place"]["chain"], bad["place"]["sequence"])
        assert found == (1, tampering.code, tampering.chain, tampering.sequence), tampering.title


def test_it_does_not_write_into_a_directory_that_is_there(aver: Aver) -> None:
    (aver.directory / "kept").mkdir()
    ran = aver("demo", "--keep", "kept")
    assert ran.code == 2
    assert aver.listing() == ["kept"]


@pytest.mark.more
def test_as_json(aver: Aver) -> None:
    shown = aver("demo", "--json").json
    assert shown["verdict"]["status"] == "verified"
    assert (shown["caught"], shown["missed"]) == (len(TAMPERINGS), 0)
    assert all(one["caught"] and one["status"] == "failed" for one in shown["tampering"])
    assert [record["sequence"] for record in shown["records"]] == [0, 1, 2, 3, 4]


@pytest.mark.more
def test_a_change_that_is_not_caught_is_a_failure(
    aver_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An attack that changes nothing stands for one that is not found."""
    import dataclasses

    from aver.cli.main import main
    from aver.cli.verbs.demo import tampering

    harmless = dataclasses.replace(TAMPERINGS[0], attack=lambda path, scene: None)
    monkeypatch.setattr(tampering, "TAMPERINGS", (harmless, *TAMPERINGS[1:3]))
    assert main(["demo"]) == 1
    shown = capsys.readouterr()
    assert "NOT CAUGHT" in shown.out
    assert "9 of 10 caught" in shown.out
    assert "bug in Aver" in shown.err


@pytest.mark.more
def test_it_fits_a_small_terminal(aver: Aver) -> None:
    code, shown = aver.on_terminal("demo", columns=80, NO_COLOR="1")
    lines = shown.splitlines()
    assert code == 0
    assert len(lines) <= 98
    assert max(map(len, lines)) <= 82


def test_its_run_is_sealed_with_both_signatures(demo: KeptDemo) -> None:
    home = demo.aver.directory / "kept" / "home"
    with open_ledger(home / "ledger.db", home=home, create=False) as ledger:
        assert all(record.signature_pq for chain in ledger.chains() for record in ledger.read(chain))

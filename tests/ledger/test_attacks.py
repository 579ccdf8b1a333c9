"""What each way of verifying finds of each attack on a ledger's memory: as the table in `docs/auditing.md` says.

The table is read from the page. Every cell is carried out: the attack on a copy of the same ledger, then the command.
A ledger here has a chain that the meta chain has recorded (`notes.kept`), one that it has not (`notes.loose`), and a
second tenant. One machine has verified it before; another has its keys and never saw it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from aver import Capsule, IntegrityError, Ledger, open_ledger
from aver.cli.main import main
from support.tamper import unguarded

pytestmark = pytest.mark.both_stores

PAGE = Path(__file__).resolve().parents[2] / "docs" / "auditing.md"
KEPT, LOOSE, TENANT = "notes.kept", "notes.loose", "second"


@dataclass(frozen=True)
class Scene:
    """Where everything lies: the owner's home, the home of a machine that never saw the ledger, an old copy."""

    owner: Path
    stranger: Path
    url: str
    yesterday: dict[str, list[Any]]
    checkpoints: Path


def contents() -> dict[str, list[Any]]:
    """All rows of the ledger as they are."""
    with open_ledger() as ledger:
        attacker = unguarded(ledger)
        rows = attacker.contents()
        attacker.close()
        return rows


def put_back(rows: dict[str, list[Any]]) -> None:
    with open_ledger() as ledger:
        attacker = unguarded(ledger)
        attacker.put_back(rows)
        attacker.close()


def append(ledger: Ledger, chain: str, times: int) -> None:
    for _ in range(times):
        ledger.append(chain, Capsule(type="tool"))


def cut(ledger: Ledger, chain: str, length: int) -> None:
    """Remove a chain's tail, or all of it, and put its head row right."""
    attacker = unguarded(ledger)
    row = attacker.execute("SELECT chain FROM chains WHERE name = ? AND tenant = ?", (chain, ledger.tenant)).fetchone()
    place = "FROM records WHERE chain = ? AND sequence"
    attacker.execute(f"DELETE {place} >= ?", (row[0], length))
    last = attacker.execute(f"SELECT hash {place} = ?", (row[0], length - 1)).fetchone()
    if length:
        attacker.execute("UPDATE chains SET count = ?, head = ? WHERE chain = ?", (length, last[0], row[0]))
    else:
        attacker.execute("DELETE FROM chains WHERE chain = ?", (row[0],))
    attacker.close()


def aver(home: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setenv("AVER_HOME", str(home))
    return main(list(arguments))


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Scene:
    owner, stranger, checkpoints = tmp_path / "owner", tmp_path / "stranger", tmp_path / "heads.jsonl"
    url = os.environ.get("AVER_LEDGER") or str(owner / "ledger.db")
    monkeypatch.setenv("AVER_HOME", str(owner))
    with open_ledger() as ledger:
        append(ledger, KEPT, 3)
        ledger.sweep()
    yesterday = contents()
    with open_ledger() as ledger:
        append(ledger, KEPT, 2)
        ledger.sweep()
        append(ledger, LOOSE, 3)
    with open_ledger(tenant=TENANT) as ledger:
        append(ledger, KEPT, 3)
        ledger.sweep()
    assert aver(owner, monkeypatch, "keys", "export", "--out", str(tmp_path / "keys.json")) == 0
    assert aver(owner, monkeypatch, "verify") == 0
    capsys.readouterr()
    lines = []
    for tenant in ("default", TENANT):
        assert aver(owner, monkeypatch, "checkpoint", "--tenant", tenant) == 0
        lines.append(capsys.readouterr().out)
    checkpoints.write_text("".join(lines))
    assert aver(stranger, monkeypatch, "keys", "trust", str(tmp_path / "keys.json")) == 0
    monkeypatch.setenv("AVER_HOME", str(owner))
    return Scene(owner, stranger, url, yesterday, checkpoints)


# --- the attacks


def nothing_but_growth(scene: Scene) -> None:
    with open_ledger() as ledger:
        append(ledger, KEPT, 2)
        append(ledger, LOOSE, 2)
        append(ledger, "notes.new", 1)
        ledger.sweep()
        append(ledger, KEPT, 1)


def delete_a_recorded_chain(scene: Scene) -> None:
    with open_ledger() as ledger:
        cut(ledger, KEPT, 0)


def delete_a_chain_that_was_not_recorded(scene: Scene) -> None:
    with open_ledger() as ledger:
        cut(ledger, LOOSE, 0)


def cut_the_tail_of_a_recorded_chain(scene: Scene) -> None:
    with open_ledger() as ledger:
        cut(ledger, KEPT, 4)


def cut_the_tail_of_a_chain_that_was_not_recorded(scene: Scene) -> None:
    with open_ledger() as ledger:
        cut(ledger, LOOSE, 2)


def cut_a_chain_and_have_it_recorded_like_that(scene: Scene) -> None:
    with open_ledger() as ledger:
        cut(ledger, KEPT, 4)
        with pytest.raises(IntegrityError) as refused:
            ledger.sweep()
        assert refused.value.code == "TRUNCATED"
        ledger.close_chain(KEPT)


def cut_a_chain_and_the_meta_chain_together(scene: Scene) -> None:
    with open_ledger() as ledger:
        cut(ledger, KEPT, 3)
        cut(ledger, "meta", 1)


def the_same_and_record_it_anew(scene: Scene) -> None:
    cut_a_chain_and_the_meta_chain_together(scene)
    with open_ledger() as ledger:
        append(ledger, KEPT, 4)
        ledger.sweep()


def delete_the_meta_chain(scene: Scene) -> None:
    with open_ledger() as ledger:
        cut(ledger, "meta", 0)


def put_yesterday_s_copy_back(scene: Scene) -> None:
    put_back(scene.yesterday)


def the_same_and_let_it_grow(scene: Scene) -> None:
    put_yesterday_s_copy_back(scene)
    with open_ledger() as ledger:
        append(ledger, KEPT, 6)
        append(ledger, LOOSE, 6)
        ledger.sweep()
        ledger.sweep()


def fork_a_chain_to_the_same_length(scene: Scene) -> None:
    with open_ledger() as ledger:
        cut(ledger, KEPT, 4)
        append(ledger, KEPT, 1)


def fork_a_chain_and_let_it_grow(scene: Scene) -> None:
    with open_ledger() as ledger:
        cut(ledger, KEPT, 4)
        append(ledger, KEPT, 5)
        ledger.close_chain(KEPT)


def delete_a_tenant(scene: Scene) -> None:
    with open_ledger(tenant=TENANT) as ledger:
        for chain in ledger.chains():
            cut(ledger, chain, 0)


def begin_another_ledger_in_its_place(scene: Scene) -> None:
    put_back({"chains": [], "records": [], "blobs": []})
    with open_ledger() as ledger:
        attacker = unguarded(ledger)
        attacker.execute("UPDATE ledger SET value = ? WHERE name = 'id'", (str(uuid4()),))
        attacker.close()
    with open_ledger() as ledger:
        append(ledger, KEPT, 5)
        ledger.sweep()


ATTACKS: dict[str, Callable[[Scene], None]] = {
    attack.__name__.replace("_s_", "'s_").replace("_", " "): attack
    for attack in (
        nothing_but_growth,
        delete_a_recorded_chain,
        delete_a_chain_that_was_not_recorded,
        cut_the_tail_of_a_recorded_chain,
        cut_the_tail_of_a_chain_that_was_not_recorded,
        cut_a_chain_and_have_it_recorded_like_that,
        cut_a_chain_and_the_meta_chain_together,
        the_same_and_record_it_anew,
        delete_the_meta_chain,
        put_yesterday_s_copy_back,
        the_same_and_let_it_grow,
        fork_a_chain_to_the_same_length,
        fork_a_chain_and_let_it_grow,
        delete_a_tenant,
        begin_another_ledger_in_its_place,
    )
}

ON_A_NEW_MACHINE = ", new machine"
NOTHING = "–"


def table() -> tuple[list[str], dict[str, list[set[str]]]]:
    """The ways of verifying that the page lists, and for each attack the codes that each of them finds."""
    text = PAGE.read_text(encoding="utf-8").partition("<!-- finds -->")[2].partition("<!-- /finds -->")[0]
    header, _, *rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in text.strip().splitlines()]
    ways = [way.replace("`", "") for way in header[1:]]
    found = {}
    for attack, *cells in rows:
        assert len(cells) == len(ways), attack
        assert all(cell == NOTHING or re.fullmatch("`[A-Z_]+`( `[A-Z_]+`)*|`empty`", cell) for cell in cells), attack
        found[attack] = [set(re.findall("`([A-Z_a-z]+)`", cell)) for cell in cells]
    return ways, found


def test_the_page_lists_the_attacks_that_are_tried() -> None:
    assert list(table()[1]) == list(ATTACKS)


def verify(way: str, scene: Scene, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> set[str]:
    command = way.removesuffix(ON_A_NEW_MACHINE).split()
    assert command[:2] == ["aver", "verify"]
    arguments = [str(scene.checkpoints) if part == "FILE" else part for part in command[1:]]
    home = scene.stranger if way.endswith(ON_A_NEW_MACHINE) else scene.owner
    capsys.readouterr()
    code = aver(home, monkeypatch, *arguments, "--ledger", scene.url, "--json")
    verdict = json.loads(capsys.readouterr().out)
    assert code == (0 if verdict["status"] in ("verified", "qualified") else 1), verdict
    parts = verdict.get("tenants", [verdict])
    findings = [finding for part in parts for finding in part["findings"]]
    found = {finding["code"] for finding in findings if finding["status"] == "failed"}
    return found or {verdict["status"]} - {"verified"}


@pytest.mark.sample(8)
@pytest.mark.parametrize("attack", ATTACKS)
def test_each_way_of_verifying_finds_what_the_page_says(
    attack: str, scene: Scene, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    ATTACKS[attack](scene)
    after = contents()
    home = tmp_path / "owner-after"
    shutil.copytree(scene.owner, home)
    ways, expected = table()
    found = {}
    for way in ways:
        monkeypatch.setenv("AVER_HOME", str(scene.owner))
        put_back(after)
        for memory in (scene.owner, scene.stranger):
            shutil.rmtree(memory / "verified", ignore_errors=True)
            (memory / "seen.json").unlink(missing_ok=True)
        shutil.copytree(home / "verified", scene.owner / "verified")
        shutil.copy(home / "seen.json", scene.owner)
        found[way] = verify(way, scene, monkeypatch, capsys)
    assert found == dict(zip(ways, expected[attack], strict=True))

"""After a fault: what must hold in a home, whatever happened to the process that wrote to it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from aver import Capsule, KeyStore, Ledger, Sealed, Verdict, open_ledger
from aver.capsule.json_reader import read_json
from aver.keys import Statement
from aver.ledger.checkpoint import Checkpoint, check_ledger_checkpoints
from aver.verdict import Tally, conclude

AFTER = "fault.after"


def check(home: Path, acknowledged: Mapping[str, str]) -> None:
    """Nothing acknowledged is lost, nothing is doubled, the verdict is true, and the next honest run works."""
    with open_ledger(home / "ledger.db", home=home) as ledger:
        stored = by_key(ledger)
        wanted = {name.partition(":")[2]: digest for name, digest in acknowledged.items() if ":" in name}
        lost = {key for key, digest in wanted.items() if stored.get(key) != digest}
        assert not lost, f"acknowledged and lost: {lost}"
        if ledger.chains():
            assert_true(ledger.verify())
        if "checkpoint" in acknowledged:
            hold_to_checkpoint(ledger, home / "checkpoint.json")
        go_on(ledger, home)
    leftovers = [path.name for path in home.iterdir() if path.name.endswith(("-wal", "-journal", ".new"))]
    assert not leftovers, f"left behind: {leftovers}"


def by_key(ledger: Ledger) -> dict[str, str]:
    """Every record by its idempotency key; one that stands twice is an error, and so is half a call."""
    stored: dict[str, str] = {}
    ids: set[str] = set()
    records = [record for chain in ledger.chains() for record in ledger.read(chain)]
    for record in records:
        assert record.id not in ids, f"{record.id} is there twice"
        ids.add(record.id)
        key = record.to_dict()["context"]["environment"]["aver"].get("key")
        assert key is None or key not in stored, f"{key} was recorded twice"
        stored[key] = record.hash
    torn = partners(records) - stored.keys()
    assert not torn, f"of calls that were written in part: {torn}"
    return stored


def partners(records: Iterable[Sealed]) -> set[str]:
    """The keys that records name as those of the records of their call of `append_together`."""
    named = (record.to_dict()["outcome"]["result"] for record in records)
    return {key for result in named if isinstance(result, dict) for key in result.get("together", ())}


def assert_true(verdict: Verdict) -> None:
    """Verified; or qualified for the one good reason, that a rotation could not be recorded yet."""
    if verdict.status == "qualified":
        doubts = [check for check in verdict.checks if check.status == "warning" or check.matters]
        assert [check.name for check in doubts] == ["keys"], verdict.to_dict()
        assert "only times were compared" in doubts[0].reason
    else:
        assert verdict.status == "verified", verdict.first_bad


def hold_to_checkpoint(ledger: Ledger, path: Path) -> None:
    statement = Statement.from_dict(read_json(path.read_bytes()))
    tally = Tally(records=1)
    check_ledger_checkpoints(ledger, [Checkpoint.from_statement(statement)], ledger.keys.ring(), tally)
    assert conclude("checkpoint", tally).status == "verified"


def go_on(ledger: Ledger, home: Path) -> None:
    """Work as if nothing had happened."""
    before = ledger.head(AFTER).count
    ledger.append(AFTER, Capsule(type="tool"))
    assert ledger.verify().status == "verified"
    KeyStore(home).rotate("ledger")
    assert ledger.append(AFTER, Capsule(type="tool")).sequence == before + 1
    assert ledger.verify().status == "verified"
    for name in ("seen.json", "keyring.json"):
        if (home / name).exists():
            json.loads((home / name).read_bytes())
    keys = [path.name for path in (home / "keys").iterdir() if path.name.endswith(".key")]
    assert len(keys) == 1, f"private keys that should be gone: {keys}"

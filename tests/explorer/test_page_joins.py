"""Joins of a trace stand for records of keys: the page and Aver say the same about each change of one.

Nothing is left of the `keys` chain but its beginning, so that only the joins vouch for the participants. The records
that hold the joins are changed and sealed anew by the operator, which no other check of the page would notice.
"""

from __future__ import annotations

import contextlib
import copy
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aver import AverError, Ledger, seal
from aver.keys import Ring
from aver.ledger.bundle import export_bundle
from support.page_cases import Cases, expect_agreement
from support.protocol_sessions import open_session, reach_executing
from support.random_changes import change

TIMES = 150
"""Random changes of a join."""

TRACE = "protocol.shared.json"


class TraceBundle:
    """A bundle with a trace which one more auditor joined after the planner and the critic had spoken.

    Where the operator rotated its key before that, its new key sealed its own join, and then the auditor's.
    """

    def __init__(self, ledger: Ledger, folder: Path, *, is_rotated: bool) -> None:
        folder.mkdir()
        with open_session(folder, ledger=ledger, trace="shared", task="count the tests") as session:
            reach_executing(session)
            if is_rotated:
                ledger.keys.rotate("ledger")
            session.join("agent:second", "auditor")
            session.abort("enough")
        self.operator, self.critic = ledger.keys.signer("ledger"), ledger.keys.signer("agent:critic")
        self.ring = ledger.keys.ring()
        self.folder = folder / "honest"
        export_bundle(ledger, self.folder)
        keys = json.loads((self.folder / "keys.json").read_text())
        del keys["capsules"][1:]
        (self.folder / "keys.json").write_text(json.dumps(keys))

    def add(self, cases: Cases, words: str, say: Callable[[list[dict[str, Any]]], Any], *, by: Any = None) -> None:
        """Change the contents of the trace's records, and let the operator, or another, seal those that differ anew."""
        document = json.loads((self.folder / TRACE).read_text())
        contents = [json.loads(record["canonical"]) for record in document["capsules"]]
        say(contents)
        signer = by or self.operator
        for record, content in zip(document["capsules"], contents, strict=True):
            if content != json.loads(record["canonical"]):
                content["context"]["environment"]["aver"]["by"] = signer.fingerprint
                sealed = seal(content, signer, unchecked=True)
                record.update(hash=sealed.hash, signature=sealed.signature, canonical=sealed.canonical.decode())
                record["signed_by"] = signer.fingerprint
        bundle = cases.new_folder() / "bundle"
        shutil.copytree(self.folder, bundle)
        (bundle / TRACE).write_text(json.dumps(document))
        cases.add(bundle, self.ring, words)


def unrecorded(cases: Cases, number: int) -> set[str]:
    """The first digits of the keys that Aver's verdict on a case calls unrecorded."""
    case = json.loads((cases.directory / f"{number:05}" / "case.json").read_text())
    found = [one for one in case["verdict"]["findings"] if one["code"] == "KEY_UNRECORDED"]
    return {one["words"].split("the key ")[1][:16] for one in found}


def joined(contents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The records that hold joins: the opening, the operator's own, and the second auditor's."""
    kinds = ("protocol.session_initialized", "protocol.participant_joined")
    return [one for one in contents if one["context"]["environment"]["aver"]["kind"] in kinds]


@pytest.mark.more
def test_joins_and_changes_of_them(ledger: Ledger, tmp_path: Path) -> None:
    bundle, cases = TraceBundle(ledger, tmp_path / "work", is_rotated=False), Cases(tmp_path / "cases")
    # The critic's record is not the one after the opening, whose link breaks where the opening is sealed anew.
    critic = bundle.critic.fingerprint
    bundle.add(cases, "honest", lambda contents: None)
    assert unrecorded(cases, 1) == set()
    bundle.add(cases, "no joins", lambda contents: joined(contents)[0]["authority"].update(chain=[]))
    assert unrecorded(cases, 2) == {critic}
    bundle.add(cases, "joins under another kind", lambda contents: _rename(joined(contents)[0]))
    assert unrecorded(cases, 3) == {critic}
    bundle.add(cases, "a participant sealed it", lambda contents: _touch(joined(contents)[0]), by=bundle.critic)
    assert critic in unrecorded(cases, 4)
    # A record that is sealed again breaks the next link, and with it the trace. The joins stand as they are.
    bundle.add(cases, "the operator sealed it again", lambda contents: _touch(joined(contents)[0]))
    assert unrecorded(cases, 5) == set()
    bundle.add(cases, "a later record breaks the rules", lambda contents: _rename(joined(contents)[1]))
    assert unrecorded(cases, 6) == set()
    bundle.add(cases, "the opening comes second", lambda contents: joined(contents)[0].update(sequence=1))
    assert unrecorded(cases, 7) == {critic}
    bundle.add(cases, "the joins twice", lambda contents: _double(joined(contents)[0]))
    bundle.add(cases, "joins are no list", lambda contents: joined(contents)[0]["authority"].update(chain={"a": 1}))
    bundle.ring = Ring.pin([each.key for each in bundle.ring.entries if each.identity != "ledger"])
    bundle.add(cases, "an unknown operator", lambda contents: None)
    assert expect_agreement(cases.directory) == cases.count == 10


@pytest.mark.more
def test_joins_under_the_operators_rotated_key(ledger: Ledger, tmp_path: Path) -> None:
    bundle, cases = TraceBundle(ledger, tmp_path / "work", is_rotated=True), Cases(tmp_path / "cases")
    bundle.add(cases, "honest", lambda contents: None)
    # A join does not stand for the record of the operator's own new key.
    assert unrecorded(cases, 1) == {bundle.operator.fingerprint}
    bundle.add(cases, "no rotation", lambda contents: joined(contents)[1]["authority"]["chain"].pop())
    bundle.add(cases, "the rotation first", lambda contents: joined(contents)[1]["authority"]["chain"].reverse())
    bundle.add(cases, "no join", lambda contents: joined(contents)[1]["authority"]["chain"].pop(0))
    assert expect_agreement(cases.directory) == cases.count == 4


@pytest.mark.more
@pytest.mark.parametrize("is_rotated", [False, pytest.param(True, marks=pytest.mark.long)])
def test_random_changes_of_joins(ledger: Ledger, tmp_path: Path, is_rotated: bool) -> None:
    bundle, cases = TraceBundle(ledger, tmp_path / "work", is_rotated=is_rotated), Cases(tmp_path / "cases")
    rng = random.Random(71)

    def say(contents: list[dict[str, Any]]) -> None:
        content = rng.choice(joined(contents)[is_rotated:])
        content["authority"]["chain"], _ = change(content["authority"]["chain"], rng)

    for number in range(TIMES):
        with contextlib.suppress(AverError):  # Such a record has no canonical form.
            bundle.add(cases, f"{number}", say)
    assert expect_agreement(cases.directory) == cases.count > TIMES // 2


def _rename(content: dict[str, Any]) -> None:
    content["context"]["environment"]["aver"]["kind"] = "protocol.proposal_created"


def _touch(content: dict[str, Any]) -> None:
    content["outcome"]["summary"] = "changed"


def _double(content: dict[str, Any]) -> None:
    content["authority"]["chain"] += copy.deepcopy(content["authority"]["chain"])

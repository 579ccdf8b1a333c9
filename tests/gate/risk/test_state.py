"""The state's file: kept whole, shared safely, and refused when it is not what we wrote."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aver.errors import Refused, Unavailable
from aver.gate.risk.estimate import learn_outcome
from aver.gate.risk.model import CHANGE, RiskState
from aver.gate.risk.state import (
    decode_path,
    encode_path,
    find_workspace_root,
    load_state,
    state_from_dict,
    state_path,
    update_state,
)

FEATURES = {"added": 20, "files": 1}


def learn(state: RiskState) -> RiskState:
    return learn_outcome(state, FEATURES, "failed")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    directory = tmp_path / "shop"
    directory.mkdir()
    return directory


def test_nothing_learned_is_the_prior_and_looking_leaves_no_trace(workspace: Path, aver_home: Path) -> None:
    assert load_state(workspace) == RiskState()
    assert not aver_home.exists()


def test_what_was_learned_comes_back(workspace: Path, aver_home: Path) -> None:
    stored = update_state(workspace, learn)
    assert load_state(workspace) == stored
    assert stored.level(CHANGE).observations == 1
    assert stored.note == ""
    file = state_path(workspace)
    assert file.parent == aver_home / "risk"
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_each_workspace_has_its_own(workspace: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    update_state(workspace, learn)
    assert load_state(other) == RiskState()
    assert state_path(other) != state_path(workspace)


def test_a_workspace_is_its_repository_by_whatever_path(workspace: Path, tmp_path: Path) -> None:
    (workspace / ".git").mkdir()
    (workspace / "src").mkdir()
    (tmp_path / "link").symlink_to(workspace)
    update_state(workspace / "src", learn)
    for path in (workspace, f"{workspace}/src/", tmp_path / "link", tmp_path / "link" / "src"):
        assert load_state(path).level(CHANGE).observations == 1
        assert find_workspace_root(path) == workspace


# --- damage


def edited(change: Callable[[dict[str, Any]], None]) -> Callable[[Path], None]:
    """A change of what the file says, with a checksum that fits again: what a forger would write."""

    def apply(path: Path) -> None:
        import hashlib

        from aver.capsule.canonical import canonical_json

        document = json.loads(path.read_text())
        change(document["state"])
        del document["sha256"]
        document["sha256"] = hashlib.sha256(canonical_json(document)).hexdigest()
        path.write_text(json.dumps(document))

    return apply


def level(**numbers: Any) -> Callable[[Path], None]:
    return edited(lambda state: state["levels"][CHANGE].update(numbers))


DAMAGE: dict[str, Callable[[Path], Any]] = {
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-20]),
    "a digit changed": lambda path: path.write_text(path.read_text().replace('"observations": 1', '"observations": 9')),
    "not JSON": lambda path: path.write_bytes(b"\x80\x04cos\nsystem\n"),
    "NaN": lambda path: path.write_text(path.read_text().replace('"v": 0', '"v": NaN, "w": 0')),
    "a list": lambda path: path.write_text("[]"),
    "deep": lambda path: path.write_text("[" * 100_000),
    "huge": lambda path: path.write_bytes(b" " * 10_000_000),
    "twice the same key": lambda path: path.write_text(path.read_text().replace('"format"', '"format": 1, "format"')),
    "another version": lambda path: path.write_text(path.read_text().replace('"version": 1', '"version": 2')),
    "level too low": level(b=-50.0),
    "level huge": level(b=1e300),
    "level whole": level(b=-4),
    "level a text": level(b="-4.0"),
    "variance none": level(v=0.0),
    "variance huge": level(v=1e9),
    "observations below zero": level(observations=-1),
    "observations none": level(observations=0),
    "observations true": level(observations=True),
    "observations huge": level(observations=10**30),
    "a strange level": edited(lambda state: state["levels"].update(evil={"b": -4.0, "v": 0.1, "observations": 1})),
    "a strange field": edited(lambda state: state.update(evil=1)),
    "no levels": edited(lambda state: state.update(levels=[])),
    "a time that is none": edited(lambda state: state.update(learned_until=-5)),
    "a time too late": edited(lambda state: state.update(learned_until=10**18)),
    "others may write": lambda path: path.chmod(0o666),
    "a link": lambda path: (path.rename(path.with_name("elsewhere")), path.symlink_to(path.with_name("elsewhere"))),
    "a directory": lambda path: (path.unlink(), path.mkdir()),
    "a pipe": lambda path: (path.unlink(), os.mkfifo(path)),
}


@pytest.mark.parametrize("name", sorted(DAMAGE))
def test_a_damaged_or_hostile_file_is_refused_and_that_is_said(name: str, workspace: Path) -> None:
    update_state(workspace, learn)
    DAMAGE[name](state_path(workspace))
    state = load_state(workspace)
    assert state.levels == {}
    assert state.learned_until == 0
    assert "not used" in state.note
    assert "shipped prior" in state.note


def test_a_file_of_another_workspace_is_refused(workspace: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    update_state(workspace, learn)
    os.rename(state_path(workspace), state_path(other))
    assert "another workspace" in load_state(other).note


def test_learning_begins_anew_after_damage(workspace: Path) -> None:
    update_state(workspace, learn)
    update_state(workspace, learn)
    state_path(workspace).write_text("{}")
    assert update_state(workspace, learn).level(CHANGE).observations == 1
    assert load_state(workspace).note == ""


def test_a_state_comes_back_from_its_dict_and_nothing_else_does() -> None:
    learned = RiskState(learn(RiskState()).levels, 7)
    assert state_from_dict(learned.to_dict()) == learned
    assert state_from_dict(RiskState().to_dict()) == RiskState()
    wrong = [{}, {"levels": {}}, {"levels": None, "learned_until": 0}, {**learned.to_dict(), "x": 1}]
    for other in (None, [], 5, "x", *wrong):
        with pytest.raises(Refused):
            state_from_dict(other)


def test_a_failed_change_leaves_what_was_there(workspace: Path) -> None:
    before = update_state(workspace, learn)

    def fail(state: RiskState) -> RiskState:
        raise Unavailable("no")

    with pytest.raises(Unavailable):
        update_state(workspace, fail)
    assert load_state(workspace) == before


WRITER = """
import sys
from aver.gate.risk.estimate import learn_outcome
from aver.gate.risk.state import update_state
for _ in range(int(sys.argv[2])):
    update_state(sys.argv[1], lambda state: learn_outcome(state, {"added": 3}, "survived"))
"""


def test_no_update_is_lost_among_processes(workspace: Path) -> None:
    processes = [subprocess.Popen([sys.executable, "-c", WRITER, str(workspace), "25"]) for _ in range(4)]
    assert [process.wait() for process in processes] == [0, 0, 0, 0]
    assert load_state(workspace).level(CHANGE).observations == 100


@pytest.mark.parametrize("path", ["a.py", "é/ü.py", "\udcff\udc80.py", "a\nb"])
def test_paths_of_any_bytes_come_back(path: str) -> None:
    written = encode_path(path)
    assert decode_path(json.loads(json.dumps(written))) == path

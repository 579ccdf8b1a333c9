"""The door under faults: killed between any two writes, a disk that is full, and approvals that belong elsewhere.

Whatever happens, nothing is let through that was not sealed, an approval lets one thing through at most, and whoever
asks again gets an answer.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from aver import Ledger, open_ledger
from aver.errors import Unavailable
from aver.gate.action import Action
from aver.gate.approvals import approve, recent_requests
from aver.gate.ask import ask
from support.approvals import enrolled, somebody
from support.forks import exit_of, in_child
from support.many_cases import first_now

APPENDS = 2
"""What the door writes where an approval is there: that the approval is used, and the decision."""


def deletion(workspace: Path, session: str = "s1") -> Action:
    given = {"tool": "Bash", "arguments": {"command": "rm -r build"}, "workspace": str(workspace), "session": session}
    return Action(type="shell_exec", **given)


def words_in(ledger: Ledger, chain: str = "gate.s1") -> list[str]:
    return [record.to_dict()["outcome"]["result"]["decision"] for record in ledger.read(chain)]


def uses_in(ledger: Ledger) -> int:
    return sum(record.kind == "approval.use" for record in ledger.read("approvals.default"))


KILLED = """
import os, signal, sys
from pathlib import Path
import aver
from aver.gate.ask import ask
from aver.ledger import Ledger
from test_ask_faults import deletion
step, when, count = int(sys.argv[2]), sys.argv[3], 0
append = Ledger.append_together
def counted(*given, **named):
    global count
    count += 1
    if count == step and when == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        return append(*given, **named)
    finally:
        if count == step:
            os.kill(os.getpid(), signal.SIGKILL)
Ledger.append_together = counted
with aver.open_ledger() as ledger:
    ask(ledger, deletion(Path(sys.argv[1])))
"""


@pytest.mark.more
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", first_now(range(1, APPENDS + 1)))
def test_killed_between_any_two_writes(ledger: Ledger, tmp_path: Path, step: int, when: str) -> None:
    ada = somebody("ada")
    enrolled(ledger, ada)
    first = ask(ledger, deletion(tmp_path))
    assert first.request is not None
    approve(ledger, first.request, ada, shown="rm -r build")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    given = [sys.executable, "-c", KILLED, str(tmp_path), str(step), when]
    done = subprocess.run(given, check=False, env=environment)
    assert done.returncode == -signal.SIGKILL
    again = [ask(ledger, deletion(tmp_path)) for _ in range(2)]
    words = words_in(ledger)
    assert words.count("human_approved") <= uses_in(ledger) == 1
    assert again[-1].decision.decision == "human_review"
    assert again[-1].request is not None
    assert again[-1].request.id != first.request.id, "what was used up by a crash is asked anew"
    assert ledger.verify().status != "failed"


def test_killed_before_the_request_was_opened(ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    enrolled(ledger, somebody("ada"))

    def killed(*given: Any, **named: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("aver.gate.approvals.open_request", killed, raising=False)
        with pytest.raises(KeyboardInterrupt):
            ask(ledger, deletion(tmp_path))
    assert words_in(ledger) == ["human_review"]
    assert list(recent_requests(ledger)) == []
    assert ask(ledger, deletion(tmp_path)).request is not None


def test_what_cannot_be_sealed_is_not_let_through(ledger: Ledger, tmp_path: Path) -> None:
    reading = Action(type="file_read", tool="Read", files=("a.py",), workspace=str(tmp_path), session="s1")
    assert ask(ledger, reading).allows
    before = words_in(ledger)

    def ask_on_a_full_disk() -> None:
        with open_ledger() as own:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
            with pytest.raises(Unavailable):
                ask(own, reading)

    assert exit_of(in_child(ask_on_a_full_disk)) == 0
    assert words_in(ledger) == before
    assert ask(ledger, reading).allows


def test_an_approval_is_its_ledgers_and_its_tenants(ledger: Ledger, tmp_path: Path) -> None:
    ada = somebody("ada")
    enrolled(ledger, ada)
    asked = ask(ledger, deletion(tmp_path))
    assert asked.request is not None
    approve(ledger, asked.request, ada, shown="rm -r build")
    for other in (open_ledger(tenant="other"), open_ledger(tmp_path / "second.db")):
        with other:
            enrolled(other, ada)
            assert ask(other, deletion(tmp_path)).decision.decision == "human_review"
            assert ask(other, deletion(tmp_path)).decision.decision == "human_review"
    assert ask(ledger, deletion(tmp_path)).decision.decision == "human_approved"

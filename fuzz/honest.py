"""Honest things, made by Aver itself in a throw-away home: what the fuzzer damages.

Everything is made once. Targets write their hostile copies to a disk in memory, where the machine has one.
`honest_things` also sets `HOME` and `AVER_HOME`, so that no target meets the files of the user who runs it.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from unittest.mock import patch

import aver
from aver import Blob
from aver.actions.proofs.inclusion import inclusion_document
from aver.actions.run_state import load_run_from_path
from aver.agents.registry import AGENTS, load_adapter, load_agent, provide_known_agents
from aver.files.user_dirs import UserEnvironment
from aver.gate.action import Action
from aver.gate.approvals import approve, enrol_approver, open_request
from aver.gate.ask import ask
from aver.ingest.seal import TranscriptFollower
from aver.ledger.bundle import export_bundle
from aver.ledger.checkpoint import make_checkpoint
from aver.ledger.checkpoint_files import to_checkpoint_line
from aver.ledger.meta_chain import sweep
from support.approvals import SHOWN, action, asking, somebody
from support.bundles import draft, fill
from support.runs import SealedRun, make_sealed_run

SHARED_MEMORY = Path("/dev/shm")

HIDDEN_VARIABLES = ("DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "CLAUDE_PROJECT_DIR", "AVER_LEDGER")


class HonestLedger:
    """A ledger that is closed now, and what Aver wrote of it."""

    def __init__(self, home: Path, people: tuple[aver.PublicKey, ...] = ()) -> None:
        self.home = home
        self.path = home / "ledger.db"
        self.keys = (aver.KeyStore(home).ring().active("ledger").key, *people)
        """The keys that an auditor has: the ledger's, and those of people who answered requests."""

    @cached_property
    def checkpoints(self) -> bytes:
        """Two checkpoints, a line each."""
        with aver.open_ledger(home=self.home) as ledger:
            first = make_checkpoint(ledger)
            return to_checkpoint_line(first) + to_checkpoint_line(make_checkpoint(ledger))

    @cached_property
    def bundle(self) -> Path:
        """The directory of a bundle of the whole ledger."""
        with aver.open_ledger(home=self.home) as ledger:
            return export_bundle(ledger, self.home.with_name(f"{self.home.name}-bundle")).path


class HonestThings:
    """One ledger with all sorts of records, and everything that Aver writes of it."""

    def __init__(self, directory: Path, scratch: Path) -> None:
        self.directory = directory
        self._scratch = scratch
        self.home = directory / "aver"
        self.user = directory / "user"
        self.workspace = directory / "workspace"
        self.workspace.mkdir()
        self.user.mkdir()

    def new_path(self, name: str) -> Path:
        """A path for a target's own use."""
        return self._scratch / name

    def new_directory(self, name: str) -> Path:
        """An empty directory for a target's own use."""
        path = self.new_path(name)
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
        return path

    def remove(self) -> None:
        """Remove everything that was made."""
        shutil.rmtree(self.directory, ignore_errors=True)
        shutil.rmtree(self._scratch, ignore_errors=True)

    @cached_property
    def ledger(self) -> HonestLedger:
        """A small ledger: records of two tools, a closed chain, a large value, heads of all chains."""
        home = self.directory / "small"
        with aver.open_ledger(home=home) as ledger:
            ledger.append_many("ci.build", [draft(f"step {number} \u00fc") for number in range(3)])
            ledger.close_chain("ci.build")
            large = Blob(b"x" * 20_000, "text/x-log")
            ledger.append("codex.two", draft(outcome={"status": "success", "result": large.reference}), blobs=[large])
            sweep(ledger)
        return HonestLedger(home)

    @cached_property
    def full_ledger(self) -> HonestLedger:
        """A ledger with every kind of record: decisions, approvals, a session from a transcript, a run."""
        ada, about = somebody("ada"), action()
        with aver.open_ledger(home=self.home) as ledger:
            fill(ledger)
            ask(ledger, Action(type="shell_exec", tool="Bash", arguments={"command": "git status"}, session="s1"))
            ask(ledger, Action(type="shell_exec", tool="Bash", arguments={"command": "rm -rf x"}, session="s1"))
            enrol_approver(ledger, ada)
            approve(ledger, open_request(ledger, about, asking(about)), ada, shown=SHOWN)
            adapter = load_adapter("claude-code")
            for source in adapter.locate(self.transcripts):
                TranscriptFollower(ledger, adapter, source).step()
            sweep(ledger)
        return HonestLedger(self.home, (ada.public,))

    @cached_property
    def run(self) -> SealedRun:
        """A sealed run with gated actions."""
        return make_sealed_run(self.directory / "run", actions=5, gated=(1, 3))

    @cached_property
    def proof(self) -> bytes:
        """The proof that the run contains an action."""
        found = load_run_from_path(self.run.path)
        return json.dumps(inclusion_document(found.actions, 2, found.seal)).encode()

    @cached_property
    def transcripts(self) -> UserEnvironment:
        """A user's home with a short session of every coding agent."""
        around = UserEnvironment(self.user, {}, platform="linux")
        for name in AGENTS:
            load_agent(name).write_demo(around)
        return around


@contextmanager
def honest_things() -> Iterator[HonestThings]:
    """Honest things in a new directory, which is removed at the end."""
    # Not everything in memory: the gate asks a person about changes below /dev.
    parent = SHARED_MEMORY if os.access(SHARED_MEMORY, os.W_OK) else None
    directory = Path(tempfile.mkdtemp(prefix="aver-fuzz-"))
    scratch = Path(tempfile.mkdtemp(prefix="aver-fuzz-", dir=parent))
    things = HonestThings(directory, scratch)
    variables = {name: value for name, value in os.environ.items() if name not in HIDDEN_VARIABLES}
    variables |= {"HOME": str(things.user), "AVER_HOME": str(things.home)}
    try:
        provide_known_agents()
        with patch.dict(os.environ, variables, clear=True):
            yield things
    finally:
        things.remove()


def read_files(directory: Path) -> dict[str, bytes]:
    """The files below a directory, by their relative names."""
    files = (path for path in sorted(directory.rglob("*")) if path.is_file())
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in files}


def write_files(directory: Path, files: dict[str, bytes]) -> None:
    """Make a directory hold exactly these files. A file where another needs a directory is left out."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    for name, data in files.items():
        path = directory / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        except OSError:
            continue

"""Every verb that reads a ledger or a home, on a damaged one: it ends with a known exit code, and no traceback."""

from __future__ import annotations

import io
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from aver.cli import dispatch
from aver.cli.dispatch import INTERNAL_ERROR, run_command
from fuzz.honest import read_files, write_files
from fuzz.oracles import Defect, call_parser, require_harmless_text
from fuzz.recipes import Members, RecipeBook, apply_recipe, parse_recipe
from fuzz.target import RecipeTarget, Target

COMMANDS = (
    *("verify", "verify --json", "verify --since last", "verify claude-code.one", "verify capsule://codex.two/0"),
    *("log", "log --json", "log claude-code.one", "log --type tool --reverse -n 3", "log --unfinished"),
    *("sessions", "sessions --json", "sessions --no-verify", "show 5d2e", "show claude-code.one", "show codex.two"),
    *("show capsule://gate.s1/0", "show capsule://approvals.default/0 --json", "show 5d2e --html {out}/page.html"),
    *("export --out {out}/bundle", "copy --to {out}/copy.db", "checkpoint --out {out}/checkpoint.json"),
    *("reconcile 5d2e", "approvals list", "approvals list --json", "approvals approvers", "keys show", "keys export"),
    *("gate check --command ls", "gate check --command ls --session s1", "policy show", "events {out}", "status"),
    *("ingest --all", "seal {draft} --chain notes.today", "import {bundle}", "keys rotate", "checkpoint --sweep"),
)
"""Command lines. Each ends by itself and needs no terminal."""

EXIT_CODES = frozenset({0, 1, 2, 3, 5})


class Verbs(RecipeTarget):
    """All verbs on a damaged home. A recipe names its command line with the op `run`."""

    name = "verbs"
    share = 5

    def prepare(self) -> None:
        super().prepare()
        self._book = RecipeBook(self.members, tuple({"op": "run", "command": command} for command in COMMANDS))
        self._draft = self.things.new_path("draft.json")
        self._draft.write_text('{"type": "tool", "outcome": {"status": "success", "summary": "ran"}}')

    def honest_members(self) -> Members:
        ledger = self.things.full_ledger
        assert ledger.bundle
        return {name: data for name, data in read_files(ledger.home).items() if not name.endswith((".lock", "-shm"))}

    def seeds(self) -> list[bytes]:
        return [f'[{{"op": "run", "command": "{command}"}}]'.encode() for command in COMMANDS]

    def run(self, data: bytes) -> None:
        edits = parse_recipe(data)
        chosen = [str(edit.get("command", "")) for edit in edits if edit["op"] == "run"] or ["verify"]
        scratch = self.things.new_path("verbs-edited.db")
        members = apply_recipe(self.members, [edit for edit in edits if edit["op"] != "run"], self.fit(), scratch)
        home, out = self.things.new_path("verbs-home"), self.things.new_path("verbs-out")
        write_files(home, members)
        for path in home.rglob("*"):
            path.chmod(0o700 if path.is_dir() else 0o600)
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        places = {"out": out, "draft": self._draft, "bundle": self.things.full_ledger.bundle}
        for name, place in places.items():
            chosen[-1] = chosen[-1].replace(f"{{{name}}}", str(place))
        self._run_command(chosen[-1].split(), home)

    def _run_command(self, arguments: list[str], home: Path) -> None:
        errors: list[Exception] = []
        with patch.dict(os.environ, {"AVER_HOME": str(home)}), _captured() as streams:
            with patch("aver.cli.dispatch._report_error", _spy_on_report(errors)):
                code = call_parser(lambda: run_command(arguments))
        out, err = (stream.getvalue().decode("utf-8", "replace") for stream in streams)
        words = " ".join(arguments)
        if code == INTERNAL_ERROR or code not in EXIT_CODES:
            raise Defect(f"aver {words} ends with {code}: {err[-500:]}") from (errors[-1] if errors else None)
        if "Traceback" in err:
            raise Defect(f"aver {words} shows a traceback: {err[-500:]}")
        require_harmless_text(out)
        require_harmless_text(err)


def _spy_on_report(errors: list[Exception]) -> Callable[..., int]:
    """The function that reports errors, which also notes them."""
    report = dispatch._report_error

    def spy(error: Exception, *, as_json: bool) -> int:
        errors.append(error)
        return report(error, as_json=as_json)

    return spy


@contextmanager
def _captured() -> Iterator[tuple[io.BytesIO, io.BytesIO]]:
    """Standard output and standard error of a command."""
    raw = io.BytesIO(), io.BytesIO()
    out, err = (io.TextIOWrapper(one, "utf-8", errors="surrogateescape", write_through=True) for one in raw)
    before = sys.stdin, sys.stdout, sys.stderr
    sys.stdin, sys.stdout, sys.stderr = io.TextIOWrapper(io.BytesIO()), out, err
    try:
        yield raw
    finally:
        sys.stdin, sys.stdout, sys.stderr = before
        out.detach(), err.detach()  # Else the bytes would be closed with them.


TARGETS: tuple[type[Target], ...] = (Verbs,)

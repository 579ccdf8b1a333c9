"""The entry point of the `aver` command, and the list of its verbs.

`main` imports the module of the verb that was asked for and no other. So `aver --version` and `aver --help` take
hardly longer than Python itself. `aver.cli.dispatch` runs the verb and keeps what every verb promises: exit codes,
`--json`, and which output goes to stdout and which to stderr.
With `AVER_LOG=debug`, `main` turns on the log for every verb (`aver.log`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from aver import __version__

VERBS = {
    "demo": ("aver.cli.verbs.demo.command", "seal a small agent run, verify it, and see tampering caught"),
    "verify": ("aver.cli.verbs.verify.command", "check a ledger, chain, record, bundle or file"),
    "prove": ("aver.cli.verbs.prove", "prove that a run contains an action, without showing the others"),
    "log": ("aver.cli.verbs.log", "list chains, or the records of one chain; --follow prints new ones"),
    "sessions": ("aver.cli.verbs.sessions", "list coding agents' sessions, with figures and verdicts"),
    "search": ("aver.cli.verbs.search", "find records by their words, and verify each that is shown"),
    "show": ("aver.cli.verbs.show.command", "show one record, or the story of a session, with its verdict"),
    "report": ("aver.cli.verbs.report", "write sessions as one signed page with their records inside"),
    "ingest": ("aver.cli.verbs.ingest", "record coding agents' past sessions from their transcripts"),
    "watch": ("aver.cli.verbs.watch", "record coding agents' sessions as they happen"),
    "reconcile": ("aver.cli.verbs.reconcile", "compare a sealed session with its transcript and git history"),
    "seal": ("aver.cli.verbs.seal", "seal your own records, from a JSON or JSONL file, into a chain"),
    "gate": ("aver.cli.verbs.gate", "decide whether an action is allowed: check, learn, report, outcome"),
    "approvals": ("aver.cli.verbs.approvals.command", "answer requests for approval: list, show, approve, deny, watch"),
    "policy": ("aver.cli.verbs.policy.command", "work with the gate's rules: show, check, test, explain, init"),
    "gateway": ("aver.cli.verbs.gateway.command", "let two policy servers decide about acts, and check their evidence"),
    "protocol": ("aver.cli.verbs.protocol.command", "run planner, executor, critic and auditor on a task"),
    "confine": ("aver.cli.verbs.confine", "run a command without network, with writes in its workspace only"),
    "mcp": ("aver.cli.verbs.mcp", "run the MCP server, with which agents gate and record their actions"),
    "proxy": ("aver.cli.verbs.proxy", "stand before an MCP server, and make every call of its tools an act"),
    "serve": ("aver.cli.verbs.serve", "open the Explorer on a ledger, in a browser"),
    "events": ("aver.cli.verbs.events", "show the live events of a workspace"),
    "hook": ("aver.cli.verbs.hook", "(internal) called by coding agents' hooks"),
    "install": ("aver.cli.verbs.install", "add hooks and MCP server to coding agents, or the MCP server to VS Code"),
    "uninstall": ("aver.cli.verbs.uninstall", "remove Aver's hooks and MCP server"),
    "status": ("aver.cli.verbs.status", "show which coding agents have Aver installed"),
    "keys": ("aver.cli.verbs.keys", "manage keys: show, new, rotate, export, import, trust, forget"),
    "export": ("aver.cli.verbs.export", "write chains as a bundle that others can verify"),
    "import": ("aver.cli.verbs.import_", "add the chains of a bundle to the ledger, read-only"),
    "copy": ("aver.cli.verbs.copy", "copy a ledger to another store and verify the copy"),
    "checkpoint": (
        "aver.cli.verbs.checkpoint",
        "write a signed snapshot of where every chain ends; keep it off this machine",
    ),
    "doctor": ("aver.cli.verbs.doctor.command", "check this installation: files, keys, ledger, clock, disk, hooks"),
}
"""Each verb with its module and its summary."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if arguments in (["--version"], ["-V"]):
        print(f"aver {__version__}")
        return 0
    if arguments in (["--help"], ["-h"], ["help"]):
        print(overview())
        return 0
    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:], "--help"]
    if not arguments:
        print(overview(), file=sys.stderr)
        return 2
    if os.environ.get("AVER_LOG"):
        from aver.capsule.masking.mask import mask
        from aver.config import home_dir
        from aver.errors import AverError
        from aver.log import start_logging

        home: Path | None = None
        with suppress(AverError):  # The command itself says that AVER_HOME leads nowhere.
            home = home_dir()
        start_logging(lambda line: str(mask(line).value), home)
    try:
        # A hook runs before every tool call of an agent. It skips `dispatch`, argparse and the rest to start fast.
        if arguments[0] == "hook" and len(arguments) > 2 and not arguments[1].startswith("-"):
            from aver.cli.verbs.hook import run_and_exit

            run_and_exit(arguments[1:])
        from aver.cli.dispatch import run_command

        return run_command(arguments)
    except KeyboardInterrupt:
        return 130


def overview() -> str:
    """The text of `aver --help`."""
    verbs = "\n".join(f"  {name:<12}{summary}" for name, (_, summary) in VERBS.items())
    return f"""usage: aver VERB ...

Aver gates what an AI agent is about to do, seals what it did, and lets anyone prove it afterwards.

{verbs}

aver VERB --help shows its options and examples. Start with: aver demo"""

"""The `aver` command: one small file per verb.

`main` looks at the verb's name and imports that verb's module and nothing else, so that `aver --version` and the
list of verbs cost hardly more than Python itself. What every verb promises (exit codes, `--json`, what goes to
stdout and what to stderr) is kept in one place: `aver.cli.dispatch`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from aver import __version__

__all__ = ["VERBS", "main"]

VERBS = {
    "demo": ("aver.cli.verbs.demo.command", "seal a small agent run, verify it, and see tampering caught"),
    "verify": ("aver.cli.verbs.verify.command", "prove a ledger, chain, record, bundle or file"),
    "prove": ("aver.cli.verbs.prove", "prove that a run has an action, without showing the others"),
    "log": ("aver.cli.verbs.log", "list chains, or the records of one; --follow watches"),
    "sessions": ("aver.cli.verbs.sessions", "what coding agents did: each session with its numbers and its verdict"),
    "show": ("aver.cli.verbs.show.command", "read one record, or the story of a session, with its verdict"),
    "ingest": ("aver.cli.verbs.ingest", "seal what coding agents did, from their transcripts"),
    "watch": ("aver.cli.verbs.watch", "seal what coding agents do, as their transcripts tell it"),
    "reconcile": ("aver.cli.verbs.reconcile", "hold what was sealed of a session to its transcript, and to git"),
    "seal": ("aver.cli.verbs.seal", "seal drafts from a JSON or JSONL file into a chain"),
    "gate": ("aver.cli.verbs.gate", "may this happen? check, learn, report, outcome"),
    "approvals": ("aver.cli.verbs.approvals", "what waits for a person: list, show, approve, deny, watch"),
    "policy": ("aver.cli.verbs.policy", "the rules that decide: show, check, test, explain, init"),
    "mcp": ("aver.cli.verbs.mcp", "the MCP server: gate, record and seal for an agent's client"),
    "events": ("aver.cli.verbs.events", "what happens in a workspace, as it happens"),
    "hook": ("aver.cli.verbs.hook", "what the hooks of coding agents start: ask the gate, seal what was done"),
    "install": ("aver.cli.verbs.install", "put hooks and MCP server into Claude Code, Codex, Cursor, Cline or VS Code"),
    "uninstall": ("aver.cli.verbs.uninstall", "take them out of their settings again"),
    "status": ("aver.cli.verbs.status", "which of them have it"),
    "keys": ("aver.cli.verbs.keys", "show, new, rotate, export, import, trust, forget"),
    "export": ("aver.cli.verbs.export", "write chains as a bundle that others can verify"),
    "import": ("aver.cli.verbs.import_", "take the chains of a bundle into the ledger, frozen"),
    "copy": ("aver.cli.verbs.copy", "move a ledger to another store, verbatim, and verify it there"),
    "checkpoint": ("aver.cli.verbs.checkpoint", "write a signed statement of all heads, to keep elsewhere"),
    "doctor": ("aver.cli.verbs.doctor.command", "look for trouble: files, keys, ledger, clock, disk"),
}
"""Each verb: the module that does it, and what it does."""


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
    try:
        if arguments[0] == "hook" and len(arguments) > 2 and not arguments[1].startswith("-"):
            from aver.cli.verbs.hook import run_and_exit

            run_and_exit(arguments[1:])
        from aver.cli.dispatch import run_command

        return run_command(arguments)
    except KeyboardInterrupt:
        return 130


def overview() -> str:
    verbs = "\n".join(f"  {name:<12}{summary}" for name, (_, summary) in VERBS.items())
    return f"""usage: aver VERB ...

Seal what an AI agent did, and let anyone prove it afterwards.

{verbs}

aver VERB --help tells more, with examples. Begin with: aver demo"""

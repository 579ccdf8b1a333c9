"""`aver gateway`: finds the module of a subcommand. To add one, write its module and add a line to `SUBCOMMANDS`.

`aver.cli.subcommands` says what such a module has. It imports the gateway inside of `run`: `--help` loads none of it.
"""

from __future__ import annotations

import argparse

from aver.cli.subcommands import add_subcommands, run_subcommand
from aver.cli.terminal import Screen

SUBCOMMANDS = {
    "act": ("aver.cli.verbs.gateway.act", "send one act through the gateway"),
    "mcp": ("aver.cli.verbs.gateway.mcp", "serve the gateway to an agent over MCP, with the one tool act"),
    "serve": ("aver.cli.verbs.gateway.serve", "serve acts over HTTP, to this machine only"),
    "run": ("aver.cli.verbs.gateway.run", "run an agent that can reach nothing but the gateway"),
    "smoke": ("aver.cli.verbs.gateway.smoke", "try what a confined agent could do, and write a report"),
    "verify-contract": (
        "aver.cli.verbs.gateway.verify_contract",
        "judge the report of a confinement by every section of its contract",
    ),
    "init": ("aver.cli.verbs.gateway.init", "make a directory for each part, with exactly the keys it needs"),
    "up": ("aver.cli.verbs.gateway.up", "run the gateway, both policy servers and the executor as processes"),
    "policy-server": ("aver.cli.verbs.gateway.policy_server", "run one of the two policy servers"),
    "executor": ("aver.cli.verbs.gateway.executor", "run the executor"),
    "pin": ("aver.cli.verbs.gateway.pin", "show what changed in the rules, and pin them for all parts"),
    "status": ("aver.cli.verbs.gateway.status", "ask every part how it is"),
    "delegate": ("aver.cli.verbs.gateway.delegate", "let a caller act for a principal, by a signed token"),
    "revoke": ("aver.cli.verbs.gateway.revoke", "end a delegation"),
    "skill": ("aver.cli.verbs.gateway.skill", "bring the package of a skill in, or list those that came in"),
    "export": ("aver.cli.verbs.gateway.export", "write one act as a file that anyone can verify"),
    "evidence": ("aver.cli.verbs.gateway.evidence", "write the evidence of one act as the files of verify-evidence"),
    "verify-evidence": (
        "aver.cli.verbs.gateway.verify_evidence",
        "judge the evidence of one act by the RFC's accept predicate",
    ),
    "validate-specs": ("aver.cli.verbs.gateway.validate_specs", "check the machine-checkable files of the RFC"),
}
"""Each subcommand with its module and its summary."""

EXAMPLES = """\
  aver gateway act CheckWriteWorkspaceFile --inputs '{"relpath": "a.txt", "content": "hello"}'
  aver gateway init
  aver gateway up --workspace ~/src/app
  aver gateway run -- python agent.py
  aver gateway export a_kR3vX0aQ9sTn2LbE --out act.json
  aver gateway verify-evidence --commit commit.json --request request.json
  aver gateway validate-specs"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_subcommands(parser, SUBCOMMANDS)


def run(given: argparse.Namespace, screen: Screen) -> int:
    return run_subcommand(SUBCOMMANDS, given, screen)

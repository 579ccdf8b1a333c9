"""Reads whose files come from a listing of hidden names: a secret among them counts, whatever the command calls it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from aver import Ledger
from aver.gate.action import Action
from aver.gate.ask import ask
from aver.gate.facts.surroundings import LISTED_MAX

PRINTED = [
    "cat $(ls -a | grep env)",
    "cat $(ls -A)",
    "cat $(find . -maxdepth 1 -type f)",
    "cat $(find . -type f)",
    "head -5 $(ls -a | head -3)",
    "ls -a | xargs cat",
    "ls -A | grep env | xargs cat",
    "ls -a | grep -v '^\\.' | xargs cat",
    "find . -type f | xargs cat",
    "find . -maxdepth 1 -type f -exec cat {} +",
    "for f in $(ls -a); do cat $f; done",
    "cat `ls -a | grep env`",
    "cat $(git ls-files -o)",
    "cat $(git ls-files --others --ignored --exclude-standard)",
    "cat $(rg --files --hidden)",
    "cat $(rg -l --hidden x)",
    "cat $(rg -uu -l x)",
    "cat $(grep -rl TOKEN .)",
    "cat $(fd -H env)",
    "tail $(ls -at | head -1)",
    "awk 1 $(ls -a | grep env)",
    "ls -a | xargs -I{} cat {}",
    "ls -a | xargs -n1 head",
    "find . -newer x | xargs cat",
    "find . -size -2k | xargs cat",
    "find . -perm 600 -exec cat {} \\;",
    "find . ! -name '*.py' -type f -exec cat {} +",
    "find . -iname '*env*' -exec cat {} +",
    "find . -regex '.*env' -exec cat {} +",
    "find . -type f -name '[.]e*' | xargs cat",
    "find . -type f -not -path './node_modules/*' -exec cat {} +",
]
"""Commands that may print any file of the workspace, hidden ones, too."""

NOT_PRINTED = [
    "cat $(ls)",
    "cat $(ls src)",
    "cat $(find . -name '*.py')",
    "find . -exec grep x {} +",
    "for f in *; do cat $f; done",
    "cat $(git ls-files)",
    "cat $(git ls-files -c)",
    "cat $(git diff --name-only)",
    "cat $(rg --files)",
    "cat $(rg -l x)",
    "cat $(grep -rl x src)",
    "cat $(fd env)",
    "cat $(fd -e py)",
    "grep x $(ls -a)",
    "wc -l $(ls -a)",
    "find src -type f | xargs cat",
    "find src -type f -exec cat {} +",
    "find . -type f -name '*.md' | xargs cat",
]
"""Commands whose listing shows no hidden names, has other names, or is only searched."""


class Asking:
    def __init__(self, ledger: Ledger, workspace: Path) -> None:
        self.ledger, self.workspace, self.count = ledger, workspace, 0

    def __call__(self, command: str) -> str:
        self.count += 1
        arguments, session = {"command": command}, f"s{self.count}"
        action = Action(
            type="shell_exec", tool="Bash", arguments=arguments, session=session, workspace=str(self.workspace)
        )
        return ask(self.ledger, action).decision.decision


@pytest.fixture
def asking(ledger: Ledger, tmp_path: Path) -> Asking:
    workspace = tmp_path / "shop"
    (workspace / "src").mkdir(parents=True)
    (workspace / "src" / "a.py").write_text("x = 1\n")
    (workspace / ".editorconfig").write_text("root = true\n")
    return Asking(ledger, workspace)


def test_where_there_is_no_secret_they_pass(asking: Asking) -> None:
    assert {command: asking(command) for command in PRINTED} == dict.fromkeys(PRINTED, "pass")


@pytest.mark.parametrize("name", [".env", ".env.local", ".npmrc", "sub/deep/.env"])
def test_a_hidden_secret_is_asked_about(asking: Asking, name: str) -> None:
    (asking.workspace / name).parent.mkdir(parents=True, exist_ok=True)
    (asking.workspace / name).write_text("KEY=1\n")
    wanted = [command for command in PRINTED if "env" in name or not ("env" in command or "[.]e" in command)]
    assert [command for command in wanted if asking(command) == "pass"] == []


def test_listings_without_hidden_names_and_searches_pass(asking: Asking) -> None:
    (asking.workspace / ".env").write_text("KEY=1\n")
    assert {command: asking(command) for command in NOT_PRINTED} == dict.fromkeys(NOT_PRINTED, "pass")


def test_a_link_to_a_secret_counts(asking: Asking) -> None:
    os.symlink("/proc/1/environ", asking.workspace / "src" / ".x")
    assert asking("find . -type f | xargs cat") == "human_review"


@pytest.mark.more
def test_too_many_files_to_look_at_are_asked_about(asking: Asking) -> None:
    for number in range(LISTED_MAX + 1):
        (asking.workspace / "src" / str(number)).touch()
    assert asking("ls -a | xargs cat") == "human_review"
    assert asking("ls -a | xargs wc -l") == "pass"


def test_files_of_packages_do_not_count(asking: Asking) -> None:
    (asking.workspace / "node_modules" / "a").mkdir(parents=True)
    (asking.workspace / "node_modules" / "a" / "key.pem").touch()
    assert asking("find . -type f | xargs head -3") == "pass"

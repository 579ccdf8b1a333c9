"""Commands that once passed without a question do not pass, and neither do their relatives."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aver.agents.registry import load_known_agents
from aver.gate.action import Action, Facts
from aver.gate.decide import Gate, decide
from aver.gate.policy.bundle import load_policy_bundle
from aver.gate.shell.model import CommandAnalysis
from aver.gate.shell.understand import understand
from support.many_cases import for_each
from support.shell_corpus import HOME, WORKSPACE, in_shop

MISSES = Path(__file__).with_name("misses.txt")
COLLECTIONS = next(
    (
        found
        for parent in Path(__file__).resolve().parents
        if (found := parent / "shared" / "data" / "commands").is_dir()
    ),
    None,
)
"""Commands that others wrote. They lie beside the repository, and are never copied into it."""
KNOWN = load_known_agents()
GATE = Gate(bundle=load_policy_bundle(), known=KNOWN)


def decision_about(command: str, workspace: str = WORKSPACE, home: str = HOME) -> str:
    environment = {"HOME": home, "AVER_HOME": f"{home}/.aver"}
    facts = Facts(now="2026-01-05T09:00:00+00:00", environment=environment)
    arguments = {"command": command}
    return decide(
        Action(type="shell_exec", tool="Bash", arguments=arguments, workspace=workspace, session="s", caller="agent"),
        facts,
        GATE,
    ).decision


def misses() -> Iterator[tuple[str, str]]:
    section = ""
    for line in MISSES.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            section = line[1:].partition(":")[0]
        elif line and not line.startswith("#"):
            yield section, line.replace("\\n", "\n")


CASES = list(dict.fromkeys(misses()))


def wrap(command: str) -> Iterator[str]:
    """Yield a command in the ways in which people and agents write one."""
    yield command
    quoted = shlex.quote(command)
    yield f"bash -c {quoted}"
    yield f"eval {quoted}"
    yield f"({command}\n)"
    yield f"{{ {command}\n}}"
    yield f"true && {{ {command}\n}} | tail -5"
    yield f"if true; then\n{command}\nfi"
    yield f"for x in 1 2; do\n{command}\ndone"
    yield f"ls -la; {command}"
    yield f"cd /work/shop && {command} 2>&1"
    yield f'echo "$({command}\n)"'
    yield f"sh -c {quoted} > /dev/null"


@pytest.mark.more
@for_each(CASES, lambda case: f"{case[0]} {case[1]!r}")
def test_none_of_them_passes(case: tuple[str, str]) -> None:
    passed = [wrapped for wrapped in wrap(case[1]) if decision_about(wrapped) == "pass"]
    assert passed == []


def test_each_kind_has_ten_variants() -> None:
    sections = [section for section, _ in CASES]
    found = {f"B{number}" for number in (*range(1, 18), *range(19, 24))}
    assert set(sections) == found | {f"C{number}" for number in range(1, 7)} | {"D1", "D2", "D3"}
    assert [section for section in set(sections) if sections.count(section) < 10] == []


RUNS_WORKSPACE_CODE = (
    "pytest",
    "python -m pytest -q",
    "npm test",
    "cd tests && npm test",
    "ruff check --fix",
    "make test",
)
"""These pass as builds. Whether something that they run was changed unseen is found out from the session."""


@for_each(RUNS_WORKSPACE_CODE)
def test_what_runs_code_of_the_workspace_is_never_called_reading(command: str) -> None:
    assert in_shop(command).classes & {"execute", "write"}
    assert decision_about(command) == "pass"


# --- commands that others wrote


def read_collection(name: str) -> list[dict[str, Any]]:
    if COLLECTIONS is None or not (COLLECTIONS / f"{name}.jsonl").is_file():
        pytest.skip("the collections of commands are not beside this repository")
    return [json.loads(line) for line in (COLLECTIONS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


PAGERS = frozenset(("dpkg -l", "dmesg -H", "cargo help doc", "man man", "systemctl"))
"""These pass. They run something else only if a person types into the pager, and agents have no terminal."""


@pytest.mark.more
def test_nothing_of_gtfobins_passes_but_plain_reading() -> None:
    passed = {
        row["command"]
        for row in read_collection("gtfobins")
        if decision_about(row["command"], row["workspace"], "/home/dev") == "pass"
    }
    reads = {command for command in passed if _analyse(command, "/home/dev/project").classes == {"read"}}
    assert passed - reads - PAGERS == set()
    assert all(
        effect.where in ("workspace", "outside") and effect.classes <= {"system"}  # such as /etc/hosts
        for command in reads
        for effect in _analyse(command, "/home/dev/project").effects
    )


def _analyse(command: str, workspace: str) -> CommandAnalysis:
    return understand(command, cwd=workspace, workspace=workspace, env={"HOME": "/home/dev"}, known=KNOWN)


@pytest.mark.parametrize("name", ["claude-code", "swe-agent", "terminal-bench", "ci", "nl2bash"])
def test_common_options_are_listed(name: str) -> None:
    """A command that is asked about only because of an option that no line lists is a cost, and rare."""
    rows = read_collection(name)
    asked: list[str] = []
    for row in rows:
        understood = _analyse(row["command"], row["workspace"])
        reasons = {unclear.code for unclear in understood.unclear}
        unlisted = [unclear for unclear in understood.unclear if re.search(r"the option \S+ of", unclear.why)]
        if unlisted and reasons == {"unknown-option"} and understood.classes <= {"read", "execute"}:
            asked.append(row["command"])
    assert len(asked) <= max(2, len(rows) // 100), asked

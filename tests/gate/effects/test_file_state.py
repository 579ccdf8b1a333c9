"""Copies, new names and modes: what loses no content passes, and nothing else does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from aver import Ledger
from aver.gate.action import Action
from aver.gate.ask import ask
from support.judged_commands import judge, list_asking, list_passing, write_files


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    place = tmp_path / "shop"
    files = {"src/a.py": "x = 1\n", "src/b.py": "y = 1\n", "notes.txt": "n\n", "run.sh": "ls\n", "Makefile": "all:\n"}
    write_files(place, {**files, "docs/guide.md": "g\n", "conftest.py": "\n", "venv/bin/aver": "\n", ".hooks/x": "\n"})
    return place


COPIES = (
    "cp src/a.py src/a.py.bak",
    "cp -p src/a.py src/a.py.orig",
    "cp src/a.py src/c.py",
    "cp docs/guide.md docs/other.md",
    "mv src/a.py src/c.py",
    "mv -v src/a.py docs/",
    "mv src/a.py docs",
    "mv -n src/a.py src/c.py",
    "git mv src/a.py src/c.py",
    "cp src/a.py src/c.py && mv src/b.py src/d.py",
    "cd docs && mv guide.md GUIDE-2.md && mv GUIDE-2.md guide-3.md",
    "cp notes.txt notes.bak; pytest",
)


def test_a_copy_or_a_new_name_passes(workspace: Path) -> None:
    assert list_asking(COPIES, workspace) == []
    assert judge(COPIES[0], workspace).policy.rules == ("file-state",)  # type: ignore[union-attr]
    assert list_passing(COPIES, workspace, "strict") == []


def test_what_may_lose_or_change_something_asks(workspace: Path) -> None:
    commands = (
        "cp src/a.py src/b.py",
        "mv src/a.py src/b.py",
        "mv -f src/a.py src/b.py",
        "git mv -f src/a.py src/b.py",
        "mv src/a.py src/c.py; echo x > src/c.py; mv src/b.py src/c.py",
        "cp notes.txt src/c.py",
        "mv notes.txt src/c.py",
        "cp src/a.py src/c.sh",
        "cp src/a.py conftest2.cfg",
        "cp src/a.py docs/conftest.py",
        "mv conftest.py conftest_old.py",
        "mv Makefile Makefile.bak",
        "mv src src2",
        "cp -r src src2",
        "cp -a src/a.py src/c.py",
        "cp -l src/a.py src/c.py",
        "cp -s src/a.py src/c.py",
        "cp -b src/a.py src/c.py",
        "mv --backup src/a.py src/c.py",
        "cp -t docs src/a.py",
        "cp src/a.py src/b.py docs",
        "cp src/*.py docs",
        "mv src/?.py docs",
        "cp $A src/c.py",
        "cp src/a.py $B",
        "mv $X/* docs",
        "cp $OPTIONS src/a.py src/c.py",
        "cp $(cat list) src/c.py",
        "cp .env env.txt",
        "cp ~/.ssh/id_rsa key.txt",
        "cp src/a.py .git/hooks/pre-commit",
        "cp src/a.py .github/workflows/x.yml",
        "cp src/a.py .claude/settings.py",
        "cp src/a.py bin/c.py",
        "cp src/a.py node_modules/c.py",
        "cp src/a.py plugins/c.py",
        "cp src/a.py /home/me/c.py",
        "mv src/a.py /home/me/c.py",
        "mv /home/me/c.py src/c.py",
        "cp src/a.py venv/bin/aver",
        "find src -name '*.py' -exec cp {} docs \\;",
        "ls src | xargs -I{} mv src/{} docs",
        "mv src/a.py src/c.py; rm -rf src/c.py",
        "sudo cp src/a.py src/c.py",
        "install src/a.py src/c.py",
        "if cd docs; then mv guide.md x.md; fi; cp guide.md y.md",
    )
    assert list_passing(commands, workspace) == []


def test_a_copy_is_looked_at_before_it_runs(ledger: Ledger, tmp_path: Path) -> None:
    """Under a new name, code that nobody looked at is still such code."""
    workspace = tmp_path / "shop"
    write_files(workspace, {"src/a.py": "import subprocess\n"})

    def bash(command: str) -> str:
        action = Action(
            type="shell_exec",
            tool="Bash",
            arguments={"command": command},
            workspace=str(workspace),
            session="s",
            caller="agent",
        )
        return ask(ledger, action).decision.decision

    assert bash("pytest") == "pass"  # What an earlier session left is not looked at.
    assert bash("cp src/a.py src/c.py") == "pass"
    (workspace / "src" / "c.py").write_text("import subprocess\n")
    assert bash("pytest") == "human_review"
    assert bash("cp src/a.py src/d.py && python src/d.py") == "human_review"


def test_the_mode_of_a_named_file_passes(workspace: Path) -> None:
    passing = ("chmod +x run.sh", "chmod u+x run.sh", "chmod 755 run.sh", "chmod 0644 src/a.py", "chmod 600 notes.txt")
    more = ("chmod -x run.sh", "chmod a+x,g-w run.sh", "chmod go-rwx notes.txt", "chmod -v +x run.sh src/a.py")
    assert list_asking((*passing, *more), workspace) == []
    assert list_passing((*passing, *more), workspace, "strict") == []


def test_a_mode_that_gives_more_or_reaches_further_asks(workspace: Path) -> None:
    commands = (
        "chmod 777 run.sh",
        "chmod 666 notes.txt",
        "chmod g+w run.sh",
        "chmod o+w run.sh",
        "chmod a=rwx run.sh",
        "chmod +w run.sh",
        "chmod u+s run.sh",
        "chmod 4755 run.sh",
        "chmod +t src",
        "chmod 000 src/a.py",
        "chmod 111 src/a.py",
        "chmod u-r src/a.py",
        "chmod -R +x src",
        "chmod -R 755 .",
        "chmod --recursive 755 src",
        "chmod +x .",
        "chmod +x *.sh",
        "chmod +x $F",
        "chmod $MODE run.sh",
        "chmod +x $(cat list)",
        "chmod --reference=/bin/su run.sh",
        "chmod +x .hooks/x",
        "chmod +x .git/hooks/pre-commit",
        "chmod -x venv/bin/aver",
        "chmod 644 venv/bin/aver",
        "chmod -r .claude/settings.json",
        "chmod 600 .env",
        "chmod +x ../other.sh /home/me/x.sh",
        "chmod +x ~/bin/x",
        "find . -name '*.sh' -exec chmod +x {} \\;",
        "ls | xargs chmod +x",
        "chown me run.sh",
        "sudo chmod +x run.sh",
    )
    assert list_passing(commands, workspace) == []


def test_a_link_leads_to_its_target(ledger: Ledger, tmp_path: Path) -> None:
    workspace, other = tmp_path / "shop", tmp_path / "other"
    write_files(workspace, {"a.py": "x = 1\n"})
    write_files(other, {".env": "x\n"})
    os.symlink(other, workspace / "linked")
    os.symlink(other / ".env", workspace / "b.py")
    for command in ("chmod 644 b.py", "cp b.py c.py", "cp a.py linked/.env", "mv a.py linked/c.py"):
        action = Action(
            type="shell_exec", tool="Bash", arguments={"command": command}, workspace=str(workspace), caller="agent"
        )
        assert not ask(ledger, action).allows, command

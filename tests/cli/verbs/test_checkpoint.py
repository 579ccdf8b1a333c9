"""`aver checkpoint`: the statement, closing chains, sweeping, histories in a git repository."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from aver import KeyStore
from aver.keys import Statement, check_statement
from support.aver_command import Aver, tampering


def test_a_statement_of_all_heads_signed_by_us(sealed: Aver) -> None:
    ran = sealed("checkpoint", "--out", "heads.json")
    assert ran.code == 0
    assert "wrote heads.json: the heads of 2 chains" in ran.out
    statement = Statement.from_dict(json.loads((sealed.directory / "heads.json").read_text()))
    assert [result.outcome for result in check_statement(statement, KeyStore(sealed.home).ring())] == ["valid"]
    listed = sealed("log", "--json").json["chains"]
    assert statement.content["heads"] == {
        chain["chain"]: {"count": chain["records"], "hash": chain["head"]} for chain in listed
    }


def test_on_stdout(sealed: Aver) -> None:
    for arguments in ([], ["--out", "-"], ["--json"], ["--out", "-", "--json"]):
        assert sealed("checkpoint", *arguments).json["purpose"] == "checkpoint"


def test_closing_and_sweeping(sealed: Aver) -> None:
    ran = sealed("checkpoint", "--close", "notes.today", "--sweep", "--out", "heads.json")
    assert "closed notes.today: recorded in meta, sequence 0" in ran.out
    assert "swept: 1 new record in meta" in ran.out
    kinds = [record["kind"] for record in sealed("log", "meta", "--json").json["records"]]
    assert kinds == ["chain.close", "checkpoint"]
    assert "2 chains match their recorded heads" in sealed("verify").out


def test_a_file_that_is_there_stays_and_nothing_is_recorded(sealed: Aver) -> None:
    (sealed.directory / "heads.json").write_text("last week's")
    ran = sealed("checkpoint", "--close", "notes.today", "--out", "heads.json")
    assert ran.code == 2
    assert (sealed.directory / "heads.json").read_text() == "last week's"
    assert [chain["chain"] for chain in sealed("log", "--json").json["chains"]] == ["keys", "notes.today"]


def test_a_chain_that_is_not_there(sealed: Aver) -> None:
    ran = sealed("checkpoint", "--close", "notes.tomorrow", "--out", "heads.json")
    assert ran.code == 2
    assert not (sealed.directory / "heads.json").exists()


def test_a_tenant_without_chains(sealed: Aver) -> None:
    ran = sealed("checkpoint", "--tenant", "nobody")
    assert ran.code == 2
    assert "has no chains yet" in ran.err


# --- in a git repository

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(directory: Path, *arguments: str) -> str:
    alone = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    alone |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    done = subprocess.run(["git", *arguments], cwd=directory, env=alone, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture
def audit(tmp_path: Path) -> Path:
    """A repository with one commit."""
    directory = tmp_path / "audit"
    directory.mkdir()
    git(directory, "init", "-q")
    git(directory, "config", "user.name", "auditor")
    git(directory, "config", "user.email", "auditor@example.invalid")
    (directory / "README").write_text("kept\n")
    git(directory, "add", "README")
    git(directory, "commit", "-qm", "begin")
    return directory


def history(audit: Path) -> Path:
    (path,) = (audit / "checkpoints").iterdir()
    return path


def test_a_history_without_committing(sealed: Aver, audit: Path) -> None:
    ran = sealed("checkpoint", "--git", "audit")
    assert ran.code == 0
    assert ran.out.startswith("added to audit/checkpoints/")
    assert len(history(audit).read_text().splitlines()) == 1
    assert "nothing changed" in sealed("checkpoint", "--git", "audit").out
    sealed.seal()
    assert "1 new head" in sealed("checkpoint", "--git", "audit").out
    assert sealed("verify", "--checkpoint", "audit").code == 0
    assert sealed("verify", "--checkpoint", "audit/checkpoints", "--strict").code == 0
    assert sealed("verify", history(audit), "--strict").code == 0


@pytest.mark.more
@needs_git
def test_committing_that_file_and_nothing_else(sealed: Aver, audit: Path) -> None:
    (audit / "staged").write_text("by somebody\n")
    git(audit, "add", "staged")
    (audit / "README").write_text("changed, not staged\n")
    ran = sealed("checkpoint", "--git", "audit", "--commit")
    assert ran.code == 0, ran.err
    assert "committed as " in ran.out
    name = history(audit).relative_to(audit).as_posix()
    assert git(audit, "show", "--format=%an %s", "--name-status", "HEAD").split("\n", 2)[2].split() == ["A", name]
    assert git(audit, "status", "--short").splitlines() == [" M README", "A  staged"]
    assert git(audit, "show", f"HEAD:{name}") == history(audit).read_text()
    assert "already committed" in sealed("checkpoint", "--git", "audit", "--commit").out
    sealed.seal()
    assert sealed("checkpoint", "--git", "audit", "--commit").code == 0
    assert git(audit, "log", "--format=", "--numstat", "--", "checkpoints").split() == ["1", "0", name] * 2
    assert git(audit, "fsck", "--strict") == ""


@needs_git
def test_committing_to_a_repository_without_commits(sealed: Aver, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "new")
    for key in ("name", "email"):
        git(tmp_path / "new", "config", f"user.{key}", "auditor")
    assert sealed("checkpoint", "--git", "new", "--commit").code == 0
    assert git(tmp_path / "new", "rev-list", "--count", "HEAD") == "1\n"
    assert git(tmp_path / "new", "status", "--short") == ""


@needs_git
def test_nothing_that_the_repository_names_is_run(sealed: Aver, audit: Path) -> None:
    """Hooks, filters and every other program that settings can name: none leaves its mark."""
    mark = audit / "was-run"
    program = audit / "program"
    program.write_text(f"#!/bin/sh\necho $0 >> {mark}\ncat\n")
    program.chmod(0o755)
    for hook in ("pre-commit", "commit-msg", "post-commit", "reference-transaction", "post-index-change"):
        shutil.copy(program, audit / ".git" / "hooks" / hook)
    (audit / ".gitattributes").write_text("* filter=mine diff=mine\n")
    for key in ("filter.mine.clean", "filter.mine.process", "core.fsmonitor", "gpg.program", "core.editor"):
        git(audit, "config", key, str(program))
    git(audit, "config", "commit.gpgSign", "true")
    git(audit, "config", "core.hooksPath", str(audit / ".git" / "hooks"))
    ran = sealed("checkpoint", "--git", "audit", "--commit", GIT_INDEX_FILE="/nowhere/index", GIT_DIR="/nowhere")
    assert ran.code == 0, ran.err
    assert not mark.exists(), mark.read_text()
    git(audit, "config", "--unset", "core.fsmonitor")
    assert git(audit, "cat-file", "-t", "HEAD") == "commit\n"
    assert "gpgsig" not in git(audit, "cat-file", "commit", "HEAD")


@needs_git
def test_a_commit_that_git_refuses_leaves_the_checkpoint(sealed: Aver, audit: Path) -> None:
    (audit / ".git" / "index.lock").touch()
    ran = sealed("checkpoint", "--git", "audit", "--commit", "--json")
    assert ran.code == 3
    assert "commit it later" in ran.json["error"]["advice"]
    (audit / ".git" / "index.lock").unlink()
    assert len(history(audit).read_text().splitlines()) == 1
    ran = sealed("checkpoint", "--git", "audit", "--commit")
    assert ran.code == 0
    assert "committed as " in ran.out


def test_what_is_no_repository(sealed: Aver) -> None:
    assert sealed("checkpoint", "--git", ".").code == 2
    assert sealed("checkpoint", "--git", "nowhere").code == 2
    assert sealed("checkpoint", "--commit").code == 2
    assert not (sealed.directory / "checkpoints").exists()


def test_a_ledger_that_was_cut_gets_no_checkpoint(sealed: Aver, audit: Path) -> None:
    assert sealed("checkpoint", "--git", "audit").code == 0
    before = history(audit).read_bytes()
    with tampering(sealed.home / "ledger.db") as file:
        (last,) = file.execute("SELECT hash FROM records WHERE type = 'chat'").fetchone()
        file.execute("DELETE FROM records WHERE type = 'agent'")
        file.execute("UPDATE chains SET count = 2, head = ? WHERE name = 'notes.today'", (last,))
    ran = sealed("checkpoint", "--git", "audit", "--json")
    assert (ran.code, ran.json["error"]["code"]) == (1, "TRUNCATED")
    assert history(audit).read_bytes() == before
    ran = sealed("verify", "--checkpoint", "audit", "--json")
    assert (ran.code, ran.json["first_bad"]["code"]) == (1, "TRUNCATED")


def test_to_a_file_to_git_and_to_stdout_at_once(sealed: Aver, audit: Path) -> None:
    ran = sealed("checkpoint", "--out", "heads.json", "--git", "audit", "--json")
    assert ran.code == 0
    assert Statement.from_dict(json.loads((sealed.directory / "heads.json").read_text())) == Statement.from_dict(
        ran.json
    )
    assert sealed("verify", "--checkpoint", "heads.json", "--checkpoint", "audit", "--strict").code == 0


@pytest.mark.more
def test_a_sweep_does_not_record_a_chain_that_was_cut(sealed: Aver) -> None:
    assert sealed("checkpoint", "--sweep").code == 0
    with tampering(sealed.home / "ledger.db") as file:
        (last,) = file.execute("SELECT hash FROM records WHERE type = 'chat'").fetchone()
        file.execute("DELETE FROM records WHERE type = 'agent'")
        file.execute("UPDATE chains SET count = 2, head = ? WHERE name = 'notes.today'", (last,))
    sealed.seal(chain="notes.other")
    ran = sealed("checkpoint", "--sweep", "--json")
    assert (ran.code, ran.json["error"]["code"]) == (1, "TRUNCATED")
    assert "chain notes.today was not recorded again" in ran.err
    entries = sealed("log", "meta", "--json").json["records"]
    assert len(entries) == 2  # The other chain was recorded all the same.
    assert sealed("verify", "meta", "--json").json["first_bad"]["code"] == "TRUNCATED"

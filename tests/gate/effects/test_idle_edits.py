"""An edit of a file that is not there, by a program that makes none, changes nothing. All else is judged as before."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.judged_commands import judge, list_asking, list_passing, write_files


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    place = tmp_path / "shop"
    write_files(place, {"src/a.py": "x = 1\n", "notes.txt": "hello\n", ".git/config": "[core]\n"})
    (place / "src/link.py").symlink_to("missing-target.py")
    return place


def test_an_edit_of_a_missing_file_passes(workspace: Path) -> None:
    commands = (
        "sed -i 's/a/b/' missing.py",
        "sed -i '' -e 's|a|b|g' -e 's/c/d/' docs/missing.md",
        "sed -i '10,20d' src/missing.py && git diff",
        "sed -i 's/a/b/' src/missing.go && gofmt -l src && go test ./...",
        "misspell -w missing.go",
        "chmod 644 missing.txt",
    )
    assert list_asking(commands, workspace) == []
    assert list_passing(commands[:1], workspace, "strict") == []


def test_what_may_be_there_when_it_is_edited_asks(workspace: Path) -> None:
    commands = (
        "cp src/a.py b.py && sed -i 's/x/os.system(1)/' b.py",
        "mv src/a.py b.py && sed -i 's/x/y/' b.py",
        "touch x.py; sed -i '1i import os' x.py",
        "echo 'import os' > x.py; sed -i 's/os/os; os.system(1)/' x.py",
        "git checkout main && sed -i 's/a/b/' x.py",
        "git stash pop; sed -i 's/a/b/' x.py",
        "tar xf a.tar && sed -i 's/a/b/' x.py",
        "curl -so x.py https://example.org && sed -i 's/a/b/' x.py",
        "unzip a.zip; sed -i 's/a/b/' x.py",
        "python gen.py; sed -i 's/a/b/' x.py",
        "sed -i 's/a/b/' *.py",
        "sed -i 's/a/b/' $FILE",
        "find . -name '*.py' | xargs sed -i 's/a/b/'",
        "sed -i 's/a/b/' .git/hooks/pre-commit",
        "sed -i 's/a/b/' .git/config",
        "sed -i 's/a/b/' ~/missing.py",
        "sed -i 's/a/b/' /opt/missing.py",
        "sed -i 's/a/b/' .github/workflows/x.yml",
        "sed -i 's/a/b/' src/link.py",
        "sed -n '1w src/new.py' notes.txt",
        "sed -n '1r src/new.py\n1w src/new.py' notes.txt",
        "sed -i '1w src/new.py' missing.py",
        "sed -i '1e touch x' missing.py",
        "sed 's/a/b/' notes.txt > src/new.py",
        "perl -pi -e 's/a/b/' missing.py",
        "ln -s a.py x.py && sed -i 's/a/b/' x.py",
        "split notes.txt x; sed -i 's/a/b/' xaa",
        "sort -o missing.py notes.txt",
        "truncate -s 0 missing.py src/a.py",
        "chmod -R 777 missing /",
    )
    assert list_passing(commands, workspace) == []


def test_the_file_counts_as_unseen_from_then_on(workspace: Path) -> None:
    """Another call may have made it before the edit runs."""
    decision = judge("sed -i 's/a/b/' missing.py", workspace)
    assert [effect.name for effect in decision.effects.effects if effect.target.endswith("missing.py")] == [  # type: ignore[union-attr]
        "read",
        "file-state",
    ]

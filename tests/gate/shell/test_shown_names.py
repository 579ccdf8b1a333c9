"""Showing the name of a secret reads none, and names may be listed anywhere. Reading the files is asked about."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.judged_commands import list_asking, list_passing, write_files


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    place = tmp_path / "shop"
    write_files(place, {".env": "TOKEN=1\n", "src/a.py": "x = 1\n", "keys/server.key": "k\n"})
    return place


def test_names_of_secrets_are_shown_unasked(workspace: Path) -> None:
    commands = (
        "ls .env",
        "ls -la .env*",
        "ls -l keys/server.key 2>/dev/null || echo none",
        "stat .env",
        "du -sh .env",
        "tree keys",
        "find keys -name '*.key'",
        "realpath .env",
        'for f in .env keys/server.key; do ls -l "$f"; done',
    )
    assert list_asking(commands, workspace) == []


def test_secrets_are_not_read_by_their_names(workspace: Path) -> None:
    commands = (
        "cat .env",
        "ls .env; cat .env",
        "ls .env && head -1 .env",
        "cat $(ls .env)",
        "ls .env | xargs cat",
        "ls .env | xargs -I{} cat {}",
        "ls .env | xargs -I% cat %",
        "ls .env | xargs -I% cat ./%",
        "ls .env | xargs -I % sh -c 'cat %'",
        "find .env -exec cat {} \\;",
        "find . -name .env -exec head {} +",
        "find keys -name '*.key' | xargs base64",
        "for f in $(ls .env*); do cat $f; done",
        'ls .env | while read -r f; do cat "$f"; done',
        "x=$(ls .env); cat $x",
        "ls .env | cpio -o",
        "find .env | tar cf - -T -",
        "wc .env",
        "file -f .env",
        "du --files0-from=.env",
        "tree --fromfile .env",
        "ls ~/.ssh",
        "stat ~/.ssh/id_rsa",
        "ls ~/.aver",
        "grep '' $(ls .env)",
        "git add $(ls .env)",
        "cp $(ls .env) x.txt",
        'x=$(ls .env); git add "$x"',
        "ls .env | xargs -0 cat",
        "mv .env x && ls x",
    )
    assert list_passing(commands, workspace) == []


def test_names_are_shown_wherever_they_lie(workspace: Path) -> None:
    commands = (
        'ls "$D"',
        "ls -la $D/*.log",
        "stat -c %s $FILE",
        "readlink /proc/$$/fd/255",
        'realpath "$X"',
        "cd $D && ls",
    )
    assert list_asking(commands, workspace) == []
    assert list_passing(commands, workspace, "strict") == []


def test_files_of_unknown_names_are_not_read(workspace: Path) -> None:
    commands = (
        "cat $(ls $D)",
        "ls $D | xargs cat",
        "ls -t $D | head -1 | xargs cat",
        'x=$(ls "$D"/*); cat "$x"',
        "for f in $(ls $D); do head $f; done",
        'ls $D | while read -r f; do cat "$f"; done',
        "ls $D | xargs rm",
        "cat $D",
        'find "$D"',  # It may be `-delete`.
        "find $D -type f",
        "du $D",  # It may be `--files0-from=.env`.
        "tree $D",  # It may be `-o src/a.py`.
        "ls > $D",
        "cd $D && cat notes.txt",
        "cd $D && ls | xargs cat",
        "cd $D && cat $(ls)",
        "cd $D && cat *",
        "cd $D && find . -delete",
        "$D -la",
        "stat $(cat .env)",
    )
    assert list_passing(commands, workspace) == []

"""What a command writes is shown only where the text follows from the command and the file as it is."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.gate.effects.file_writes import DIFF_MAX, TEXT_MAX, WRITES_MAX, FileWrite, diff_writes, is_inert
from aver.gate.risk.diff import read_diff
from aver.gate.risk.diff_model import FileChange, Hunk
from aver.gate.shell.understand import understand


def writes(command: str) -> list[tuple[str, str, str]]:
    found = understand(command, cwd="/work", workspace="/work", env={"HOME": "/home/me"}).writes
    return [(write.path.removeprefix("/work/"), write.how, write.text) for write in found]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("cat > a.py <<'EOF'\nx = 1\nEOF", [("a.py", "replace", "x = 1\n")]),
        ("cat <<EOF >> a.py\nx = 1\nEOF", [("a.py", "append", "x = 1\n")]),
        ("echo 'x = 1' > a.py", [("a.py", "replace", "x = 1\n")]),
        ("echo -n x > a.py", [("a.py", "replace", "x")]),
        ("printf 'a\\nb\\n' >> a.py", [("a.py", "append", "a\nb\n")]),
        ("cd src && echo x > a.py", [("src/a.py", "replace", "x\n")]),
        ("tee a.py <<'EOF'\nx\nEOF", [("a.py", "replace", "x\n")]),
        ("echo x | tee -a a.py", [("a.py", "append", "x")]),
        ("> a.py", [("a.py", "replace", "")]),
        ("sed -i 's/a/b/' a.py", [("a.py", "sed", "s/a/b/")]),
        ("sed -i -e 3d -e 's/a/b/g' a.py b.py", [("a.py", "sed", "3d\ns/a/b/g"), ("b.py", "sed", "3d\ns/a/b/g")]),
    ],
)
def test_what_is_shown(command: str, expected: list[tuple[str, str, str]]) -> None:
    assert writes(command) == expected


@pytest.mark.parametrize(
    "command",
    [
        "cat > a.py <<EOF\n$(id)\nEOF",
        "cat > a.py <<EOF\n$SECRET\nEOF",
        "cat b.py > a.py",
        "echo -e 'a\\x41' > a.py",
        "echo x 2> a.py",
        "echo x &> a.py",
        "echo x > a.py > b.py",
        "curl https://example.org | tee a.py",
        "sed -i 's/a.*/b/' a.py",
        "sed -i 's/a/\\1/' a.py",
        "sed -i 's/a/b/e' a.py",
        "sed -i 's/a/b/w out' a.py",
        "sed -i '/x/d' a.py",
        "sed -i '1r other' a.py",
        "sed -i '1e id' a.py",
        "sed -i.bak 's/a/b/' a.py",
        "sed -n -i p a.py",
        "sed -i $SCRIPT a.py",
    ],
)
def test_what_is_not_shown(command: str) -> None:
    assert all(how == "unknown" for _, how, _ in writes(command))


def test_the_redirection_of_a_group_hides_what_else_is_shown() -> None:
    for command in (
        "echo ok > a.py; { cat b.py; } > a.py",
        "echo ok > a.py; for x in 1 2; do cat b.py; done > a.py",
        "echo ok > a.py; if true; then cat b.py; fi > a.py",
        "echo ok > a.py; ( cat b.py ) >> a.py",
    ):
        found = [FileWrite(f"/work/{path}", how, text) for path, how, text in writes(command)]  # type: ignore[arg-type]
        assert [write.how for write in found].count("unknown") == 1, command
        assert diff_writes(found, {"/work/a.py": None}, "/work") is None, command


def test_one_of_two_texts_may_be_the_last() -> None:
    absent = {"/work/a.py": None}
    both = [FileWrite("/work/a.py", "replace", "evil\n"), FileWrite("/work/a.py", "replace", "\n")]
    assert diff_writes(both, absent, "/work") is None
    assert diff_writes(both[:1], absent, "/work") == "--- /dev/null\n+++ b/a.py\n@@ -1,0 +1,1 @@\n+evil\n"
    more = [both[0], FileWrite("/work/a.py", "append", "more\n")]
    assert "+evil\n+more\n" in (diff_writes(more, absent, "/work") or "")
    assert diff_writes([both[0], FileWrite("/work/a.py", "unknown")], absent, "/work") is None


def test_limits() -> None:
    absent = {"/work/a.py": None}
    assert diff_writes([FileWrite("/work/a.py", "replace", "x" * (DIFF_MAX + 1))], absent, "/work") is None
    assert diff_writes([FileWrite("/work/a.py", "append", "x")], {"/work/a.py": "y" * (TEXT_MAX + 1)}, "/work") is None
    many = [FileWrite("/work/a.py", "append", "x\n")] * (WRITES_MAX + 1)
    assert diff_writes(many[1:], absent, "/work") is not None
    assert diff_writes(many, absent, "/work") is None
    assert diff_writes([FileWrite("/work/b.py", "replace", "x")], absent, "/work") is None
    assert diff_writes([FileWrite('/work/"b.py', "replace", "x")], {'/work/"b.py': None}, "/work") is None
    assert diff_writes([FileWrite("/work/b\n+++ c", "replace", "x")], {"/work/b\n+++ c": None}, "/work") is None


lines = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n\r\0"), max_size=8), max_size=8)
texts = lines.map(lambda found: "".join(f"{line}\n" for line in found))


@given(texts, texts)
def test_the_diff_is_the_change(before: str, after: str) -> None:
    diff = diff_writes([FileWrite("/work/a.py", "replace", after)], {"/work/a.py": before}, "/work")
    if before == after:
        assert diff is None
        return
    file, hunk = read_diff(diff or "")
    assert isinstance(file, FileChange)
    assert isinstance(hunk, Hunk)
    assert (file.old, file.new) == ("a.py", "a.py")
    old, new = before.split("\n")[:-1], after.split("\n")[:-1]
    start, removed, added = hunk.old_start - 1, hunk.removed_lines(), hunk.added_lines()
    assert old[:start] + added + old[start + len(removed) :] == new


SCRIPTS = [
    "s/a/b/",
    "s/a/b/g",
    "s|a/b|c|g",
    "2s/a/X&/".replace("&", ""),
    "2d",
    "2,3d",
    "$d",
    "2i new",
    "2a new",
    "$a new",
]
SCRIPTS += ["2,3s/a/b/g", "1c new", "2,3c new", "s/a\\.b/c/", "s/a/x\\/y/", "s/a/b\\nc/", "s/a/\\&/", "9d"]


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("text", ["a a\nba/b\na.b axb\nend a\n", "one line a", "", "\n\n\n"])
def test_sed_is_followed_as_sed_does_it(tmp_path: Path, script: str, text: str) -> None:
    """Real `sed` is the judge."""
    file = tmp_path / "a.txt"
    file.write_text(text)
    done = subprocess.run(["sed", "-i", script, "a.txt"], cwd=tmp_path, capture_output=True, check=False)
    if done.returncode:
        pytest.skip("this sed does not know the script")
    path = str(file)
    diff = diff_writes([FileWrite(path, "sed", script)], {path: text}, str(tmp_path))
    expected = diff_writes([FileWrite(path, "replace", file.read_text())], {path: text}, str(tmp_path))
    assert diff == expected


def test_inert_files() -> None:
    assert all(map(is_inert, ["a.txt", "patch.diff", "a.py.bak", "docs/x.md"]))
    assert not any(map(is_inert, ["a.py", "requirements.txt", "requirements/dev.txt", "CMakeLists.txt", "a", "a.json"]))

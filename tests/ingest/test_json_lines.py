"""Lines of a file that grows, is written anew, or is no file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from aver.ingest import json_lines
from aver.ingest.json_lines import LineReader


def read(reader: LineReader) -> list[bytes]:
    return [record.data for record in reader()]


def test_what_is_new_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"one\ntw")
    reader = LineReader(path)
    assert (read(reader), reader.unfinished) == ([b"one"], 2)
    with path.open("ab") as file:
        file.write(b"o\nthree\n")
    assert (read(reader), reader.unfinished, reader.started_anew) == ([b"two", b"three"], 0, False)


@pytest.mark.parametrize("size", [1, 3, json_lines.TAIL_SIZE, 3 * json_lines.TAIL_SIZE])
def test_a_file_that_is_written_anew_in_its_place_is_read_anew(tmp_path: Path, size: int) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"a" * size + b"\n")
    reader = LineReader(path)
    read(reader)
    again = b"b" * size + b"\nand more\n"
    with path.open("r+b") as file:  # The same file, and not shorter.
        file.write(again)
    assert read(reader) == again.splitlines()
    assert reader.started_anew


def test_lines_over_several_pieces_are_not_taken_for_another_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_lines, "CHUNK_SIZE", 7)
    monkeypatch.setattr(json_lines, "RECORD_MAX", 20)
    path = tmp_path / "a"
    path.write_bytes(b"")
    reader = LineReader(path)
    for size in (3, 9, 40, 5, 7):
        with path.open("ab") as file:
            file.write(b"x" * size + b"\n")
        assert [record.size for record in reader()] == [size]
        assert not reader.started_anew


@pytest.mark.parametrize("sort", ["pipe", "directory", "device", "nothing"])
def test_what_is_no_file_reads_as_empty(tmp_path: Path, sort: str) -> None:
    path = tmp_path / "a"
    if sort == "pipe":
        os.mkfifo(path)
    elif sort == "directory":
        path.mkdir()
    elif sort == "device":
        path.symlink_to("/dev/zero")
    assert read(LineReader(path)) == []

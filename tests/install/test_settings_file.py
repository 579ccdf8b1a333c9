"""Entries in files: undone, as their owner, through links, beside other writers, and never half."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from aver.errors import AverError, BadInput, Refused, Unavailable
from aver.install import undo
from aver.install.settings_file import SettingsFile, put_entry, read_entry, remove_entry
from aver.install.undo import UndoLog, change_file
from support.settings_texts import json_texts, toml_texts

KEY = ("mcpServers", "aver")
ENTRY = {"command": "aver", "args": ["mcp"]}


def ours(entry: Any) -> bool:
    return isinstance(entry, dict) and entry.get("command") in ("aver", "/old/aver")


def json_file(path: Path, content: str | None = None, **options: Any) -> SettingsFile:
    if content is not None:
        path.write_bytes(content.encode())
    return SettingsFile(path, "json", **options)


@pytest.mark.more
@settings(max_examples=80)
@given(st.data(), st.sampled_from(["json", "jsonc", "toml"]), st.booleans())
def test_undone_but_for_blank_space_whatever_the_file(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, form: Any, updated_between: bool
) -> None:
    text = data.draw(toml_texts() if form == "toml" else json_texts(comments=form == "jsonc"))
    path = tmp_path_factory.mktemp("undo") / "settings"
    path.write_bytes(text.encode())
    file, memory = SettingsFile(path, form), UndoLog()
    before = path.read_bytes()
    try:
        if updated_between:
            put_entry(file, KEY, {**ENTRY, "command": "/old/aver"}, ours, memory)
        assert put_entry(file, KEY, ENTRY, ours, memory) == ("updated" if updated_between else "installed")
    except AverError:
        assert path.read_bytes() == before, "what is refused is not touched"
        assume(False)
    assert read_entry(file, KEY) == ENTRY
    assert put_entry(file, KEY, ENTRY, ours, memory) == "unchanged"
    had = read_entry(file, KEY[:1])
    assert remove_entry(file, KEY, ours, memory) == "removed"
    left = path.read_text()
    if form == "toml":  # Parts of a table may come together.
        assert sorted(left.split()) == sorted(text.split())
    else:
        assert "".join(left.split()) == "".join(text.split())
    if form != "toml" and had is not None and len(had) > 1:
        assert path.read_bytes() == before, "every byte is as it was"
    assert remove_entry(file, KEY, ours, memory) == "absent"


def test_a_file_that_was_not_there_goes_again(tmp_path: Path) -> None:
    file, memory = json_file(tmp_path / "a" / "b" / "mcp.json"), UndoLog()
    assert put_entry(file, KEY, ENTRY, ours, memory) == "installed"
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert remove_entry(file, KEY, ours, memory) == "removed"
    assert not (tmp_path / "a").exists()


def test_directories_that_others_use_stay(tmp_path: Path) -> None:
    file, memory = json_file(tmp_path / "a" / "b" / "mcp.json"), UndoLog()
    put_entry(file, KEY, ENTRY, ours, memory)
    (tmp_path / "a" / "other").write_text("x")
    remove_entry(file, KEY, ours, memory)
    assert os.listdir(tmp_path / "a") == ["other"]


def test_what_others_changed_since_stays(tmp_path: Path) -> None:
    file, memory = json_file(tmp_path / "s.json", '{"a": 1}\n'), UndoLog()
    put_entry(file, KEY, ENTRY, ours, memory)
    file.path.write_text(file.path.read_text().replace('"a": 1', '"a": 2, "b": {"c": []}'))
    assert remove_entry(file, KEY, ours, memory) == "removed"
    assert file.path.read_text() == '{"a": 2, "b": {"c": []}}\n'


def test_another_entry_beside_ours_keeps_the_table(tmp_path: Path) -> None:
    file, memory = json_file(tmp_path / "s.json", "{}"), UndoLog()
    put_entry(file, KEY, ENTRY, ours, memory)
    put_entry(file, ("mcpServers", "theirs"), {"command": "x"}, lambda _: True, memory)
    remove_entry(file, KEY, ours, memory)
    assert read_entry(file, ("mcpServers", "theirs")) == {"command": "x"}
    remove_entry(file, ("mcpServers", "theirs"), lambda _: True, memory)
    assert read_entry(file, ("mcpServers",)) in (None, {})


def test_without_its_memory_only_the_entry_goes(tmp_path: Path, aver_home: Path) -> None:
    file, memory = json_file(tmp_path / "s.json", '{\n  "mcpServers": {}\n}\n'), UndoLog()
    put_entry(file, KEY, ENTRY, ours, memory)
    (aver_home / "installed.json").write_text("{ damaged")
    assert remove_entry(file, KEY, ours, memory) == "removed"
    assert file.path.read_text() == '{\n  "mcpServers": {}\n}\n'


def test_what_is_not_ours_is_not_touched(tmp_path: Path) -> None:
    text = '{"mcpServers": {"aver": {"command": "somebody-elses"}}}'
    file, memory = json_file(tmp_path / "s.json", text), UndoLog()
    for work in (lambda: put_entry(file, KEY, ENTRY, ours, memory), lambda: remove_entry(file, KEY, ours, memory)):
        with pytest.raises(Refused, match="not Aver's"):
            work()
    assert file.path.read_text() == text


@pytest.mark.parametrize("raw", [b"{", b"\xff\xfe{}", b"[]", b'{"mcpServers": 1}', b'{"a": 1, "a": 2'])
def test_what_cannot_be_read_is_refused_and_named(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "s.json"
    path.write_bytes(raw)
    with pytest.raises(BadInput, match=r"s\.json.*nothing was changed"):
        put_entry(json_file(path), KEY, ENTRY, ours, UndoLog())
    assert path.read_bytes() == raw
    assert os.listdir(tmp_path) == ["s.json"]


def test_only_telling_changes_nothing(tmp_path: Path, aver_home: Path) -> None:
    file = json_file(tmp_path / "s.json", '{"a": 1}')
    assert put_entry(file, KEY, ENTRY, ours, UndoLog(), dry_run=True) == "installed"
    assert put_entry(json_file(tmp_path / "x" / "new.json"), KEY, ENTRY, ours, UndoLog(), dry_run=True) == "installed"
    assert (file.path.read_text(), (tmp_path / "x").exists(), aver_home.exists()) == ('{"a": 1}', False, False)


# --- files of other owners and kinds


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o664])
def test_the_mode_stays(tmp_path: Path, mode: int) -> None:
    file = json_file(tmp_path / "s.json", "{}")
    file.path.chmod(mode)
    put_entry(file, KEY, ENTRY, ours, UndoLog())
    assert stat.S_IMODE(file.path.stat().st_mode) == mode


def test_the_owner_stays(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    file = json_file(tmp_path / "s.json", "{}")
    os.chown(file.path, 12345, 12346)
    put_entry(file, KEY, ENTRY, ours, UndoLog())
    status = file.path.stat()
    assert (status.st_uid, status.st_gid) == (12345, 12346)


def test_a_link_stays_a_link_and_what_it_leads_to_changes(tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    real = tmp_path / "dotfiles" / "s.json"
    real.write_text("{}")
    link = tmp_path / "s.json"
    link.symlink_to("dotfiles/s.json")
    memory = UndoLog()
    put_entry(json_file(link), KEY, ENTRY, ours, memory)
    assert link.is_symlink()
    assert read_entry(json_file(real), KEY) == ENTRY
    remove_entry(json_file(link), KEY, ours, memory)
    assert real.read_text() == "{}"


def test_a_project_cannot_lead_us_out_of_itself(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    outside = tmp_path / "outside.json"
    outside.write_text("{}")
    (project / ".mcp.json").symlink_to(outside)
    (project / ".cursor").symlink_to(tmp_path)
    for path in (project / ".mcp.json", project / ".cursor" / "mcp.json"):
        with pytest.raises(Refused, match="leads out"):
            put_entry(json_file(path, inside=project), KEY, ENTRY, ours, UndoLog())
    assert (outside.read_text(), (tmp_path / "mcp.json").exists()) == ("{}", False)


def test_pipes_directories_and_files_of_several_names_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "directory").mkdir()
    (tmp_path / "one").write_text("{}")
    os.link(tmp_path / "one", tmp_path / "two")
    for name in ("pipe", "directory", "two"):
        with pytest.raises((BadInput, Refused)):
            put_entry(json_file(tmp_path / name), KEY, ENTRY, ours, UndoLog())
    assert (tmp_path / "one").read_text() == "{}"


def test_a_file_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(undo, "FILE_MAX", 10)
    with pytest.raises(BadInput, match="larger"):
        put_entry(json_file(tmp_path / "s.json", '{"a": 12345678}'), KEY, ENTRY, ours, UndoLog())


def test_a_directory_that_may_not_be_written_is_told(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write anywhere")
    file = json_file(tmp_path / "closed" / "s.json")
    file.path.parent.mkdir(mode=0o500)
    with pytest.raises(Unavailable):
        put_entry(file, KEY, ENTRY, ours, UndoLog())


# --- beside other writers


def test_what_others_write_in_the_meantime_is_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_bytes(b"0")
    calls: list[bytes | None] = []

    def change(raw: bytes | None) -> bytes:
        calls.append(raw)
        if len(calls) == 1:
            path.write_bytes(b"1")  # Somebody else, between our reading and our writing.
        return (raw or b"") + b"+ours"

    changed = change_file(path, change)
    assert (changed.before, path.read_bytes()) == (b"1", b"1+ours")
    assert calls == [b"0", b"1"]


def test_a_file_that_never_rests_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    count = iter(range(100))

    def change(raw: bytes | None) -> bytes:
        path.write_bytes(f"{next(count)}".encode())
        return b"ours"

    with pytest.raises(Unavailable, match="keeps writing"):
        change_file(path, change)
    assert path.read_bytes() != b"ours"
    assert os.listdir(tmp_path) == ["s.json"]


def test_many_at_once_put_in_all_of_theirs(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text("{}")
    failures: list[BaseException] = []

    def work(name: str) -> None:
        memory = UndoLog()
        try:
            with memory.lock():
                put_entry(json_file(path), ("mcpServers", name), ENTRY, ours, memory)
        except AverError as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(f"s{number}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert set(read_entry(json_file(path), ("mcpServers",))) == {f"s{number}" for number in range(8)}


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = json_file(tmp_path / "s.json", "{}")

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Unavailable, match="No space"):
        put_entry(file, KEY, ENTRY, ours, UndoLog())
    assert file.path.read_text() == "{}"
    assert os.listdir(tmp_path) == ["s.json"]

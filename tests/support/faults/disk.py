"""A disk that forgets: what may be left of a process's writes when the power goes.

The changes that a real process made are read from the trace of its system calls. From them follows what was on disk
for certain at any moment, and what was not yet:

* what was written to a file is certain once that file was synced (`fsync`, `fdatasync`), its length included;
* that a name was made, changed or removed is certain once its directory was synced;
* what was not synced may be lost, may be there, and may be there in part: any of the writes to a file in any
  combination, a write torn between sectors, and of the names in a directory those that were changed first.

Not modelled: a disk that lies about having synced, bits that rot, and a torn sector. SQLite's index of the log
(`-shm`) is memory that is shared, not a file that is written; it is lost, or holds anything.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["TRACED", "Chance", "Change", "DataOnly", "Dice", "Disk", "Luck", "NamesOnly", "changes_in"]

SECTOR = 512

TRACED = (
    *("openat", "close", "write", "pwrite64", "writev", "lseek", "ftruncate", "fallocate", "fsync", "fdatasync"),
    *("rename", "renameat", "renameat2", "unlink", "unlinkat", "mkdir", "mkdirat", "link", "linkat", "copy_file_range"),
)


@dataclass(frozen=True)
class Change:
    """One thing that a process did. `file` is a number of our own; a name lies in a directory."""

    kind: str
    """write, cut, sync; name, rename, unname, make, settle (of a directory); say."""
    file: int = -1
    directory: str = ""
    name: str = ""
    new: str = ""
    at: int = 0
    data: bytes = b""


@dataclass
class _Open:
    path: str
    file: int
    at: int = 0


@dataclass
class _Reading:
    """The files as the process sees them, while its trace is read."""

    root: Path
    files: dict[str, int]
    handles: dict[int, _Open] = field(default_factory=dict)
    count: int = 0
    found: list[Change] = field(default_factory=list)

    def ours(self, path: str) -> bool:
        return path.startswith(f"{self.root}/") and not path.endswith("-shm")

    def new_file(self, path: str) -> int:
        self.count += 1
        self.files[path] = self.count
        self._note("name", path, file=self.count)
        return self.count

    def _note(self, kind: str, path: str, **more: object) -> None:
        directory, _, name = path.rpartition("/")
        self.found.append(Change(kind, directory=directory, name=name, **more))  # type: ignore[arg-type]

    # One method for each call.

    def openat(self, result: int, at: str, path: str, flags: str, *_: str) -> None:
        path = self.whole(at, path)
        if not self.ours(path):
            self.handles[result] = _Open(path, -1)
            return
        file = self.files.get(path, -1)
        if file < 0 and "O_CREAT" in flags:
            file = self.new_file(path)
        elif file >= 0 and "O_TRUNC" in flags:
            self.found.append(Change("cut", file))
        assert "O_APPEND" not in flags
        self.handles[result] = _Open(path, file)

    def close(self, _: int, handle: str) -> None:
        self.handles.pop(int(handle), None)

    def write(self, result: int, handle: str, data: str, *_: str) -> None:
        opened = self.handles.get(int(handle))
        if opened is not None and opened.file >= 0:
            self.found.append(Change("write", opened.file, at=opened.at, data=_bytes(data)[:result]))
            opened.at += result

    def pwrite64(self, result: int, handle: str, data: str, _: str, at: str) -> None:
        opened = self.handles.get(int(handle))
        if opened is not None and opened.file >= 0:
            self.found.append(Change("write", opened.file, at=int(at), data=_bytes(data)[:result]))

    def writev(self, _: int, __: str, vector: str, *___: str) -> None:
        self.found.append(Change("say", data=_bytes(vector.partition("iov_base=")[2].partition(", iov_len")[0])))

    def lseek(self, result: int, handle: str, *_: str) -> None:
        if (opened := self.handles.get(int(handle))) is not None:
            opened.at = result

    def ftruncate(self, _: int, handle: str, size: str) -> None:
        if self.handles[int(handle)].file >= 0:
            self.found.append(Change("cut", self.handles[int(handle)].file, at=int(size)))

    def fsync(self, _: int, handle: str) -> None:
        opened = self.handles[int(handle)]
        if opened.file >= 0:
            self.found.append(Change("sync", opened.file))
        else:
            self.found.append(Change("settle", directory=opened.path))

    fdatasync = fsync

    def rename(self, _: int, old: str, new: str) -> None:
        before, after = _text(old), _text(new)
        assert before.rpartition("/")[0] == after.rpartition("/")[0], "Aver renames within one directory"
        self.files[after] = self.files.pop(before)
        self._note("rename", before, new=after.rpartition("/")[2])

    def linkat(self, _: int, old_at: str, old: str, new_at: str, new: str, *__: str) -> None:
        before, after = self.whole(old_at, old), self.whole(new_at, new)
        if self.ours(after):
            self.files[after] = self.files[before]
            self._note("name", after, file=self.files[before])

    def unlink(self, _: int, path: str) -> None:
        if self.ours(_text(path)):
            self.files.pop(_text(path), None)
            self._note("unname", _text(path))

    def mkdir(self, _: int, path: str, *__: str) -> None:
        self._note("make", _text(path))

    def whole(self, at: str, path: str) -> str:
        text = _text(path)
        return text if text.startswith("/") or at == "AT_FDCWD" else f"{self.handles[int(at)].path}/{text}"


_CALL = re.compile(r"^\d+ +(\w+)\((.*)\) += (-?\d+)", re.MULTILINE)


def changes_in(trace: str, root: Path, before: Iterable[Path]) -> list[Change]:
    """The changes below `root` that a trace of `TRACED` calls tells of, in order; `before` are the files there then.

    The trace must have been made with `-xx` and with strings of any length. A call that is not understood is an error.
    """
    before = list(before)
    reading = _Reading(root, {str(path): number for number, path in enumerate(before)}, count=len(before))
    for call, given, result in _CALL.findall(trace):
        if int(result) >= 0:
            getattr(reading, call)(int(result), *given.split(", ") if call != "writev" else given.split(", ", 1))
    return reading.found


def _bytes(text: str) -> bytes:
    assert not text.endswith("..."), "the trace is cut short"
    return bytes.fromhex(text.strip('"').replace("\\x", ""))


def _text(text: str) -> str:
    return _bytes(text).decode()


class Disk:
    """What may be on disk, for a list of changes and the files and directories that were there before."""

    def __init__(self, root: Path, before: Mapping[Path, bytes], changes: Sequence[Change]) -> None:
        self.root = root
        self._contents = dict(enumerate(before.values()))
        self._names: dict[str, dict[str, int | None]] = {str(root): {}}
        for number, path in enumerate(before):
            self._name(path, number)
        self.changes = changes

    def _name(self, path: Path, file: int | None) -> None:
        parent = str(path.parent)
        if parent not in self._names:
            self._names[parent] = {}
            self._name(path.parent, None)
        self._names[parent][path.name] = file

    def said(self, cut: int) -> dict[str, str]:
        """What was acknowledged before the power went."""
        lines = [change.data.decode().split() for change in self.changes[:cut] if change.kind == "say"]
        return {line[1]: line[2] for line in lines if line[0] == "ack"}

    def write_image(self, cut: int, chance: Chance, to: Path) -> None:
        """What is left if the power goes before the change numbered `cut`; chance decides on what was not synced."""
        files, names = self._left(self.changes[:cut], chance)
        to.mkdir(mode=0o700)
        self._write_directory(str(self.root), to, files, names)
        for log in to.rglob("*-wal"):
            if memory := chance.of_memory():
                log.with_name(log.name.removesuffix("-wal") + "-shm").write_bytes(memory)

    def _write_directory(
        self, directory: str, to: Path, files: dict[int, bytes], names: dict[str, dict[str, int | None]]
    ) -> None:
        for name, file in names.get(directory, {}).items():
            path = to / name
            if file is None:
                path.mkdir(mode=0o700)
                self._write_directory(f"{directory}/{name}", path, files, names)
            else:
                path.write_bytes(files.get(file, b""))
                path.chmod(0o600)

    def _left(
        self, changes: Sequence[Change], chance: Chance
    ) -> tuple[dict[int, bytes], dict[str, dict[str, int | None]]]:
        files = dict(self._contents)
        pending: dict[int, list[Change]] = {}
        names = {directory: dict(entries) for directory, entries in self._names.items()}
        unsettled: dict[str, list[Change]] = {}
        for change in changes:
            if change.kind in ("write", "cut"):
                pending.setdefault(change.file, []).append(change)
            elif change.kind == "sync":
                files[change.file] = _applied(files.get(change.file, b""), pending.pop(change.file, []))
            elif change.kind in ("name", "rename", "unname", "make"):
                unsettled.setdefault(change.directory, []).append(change)
            elif change.kind == "settle":
                _rename(names.setdefault(change.directory, {}), unsettled.pop(change.directory, []))
        for file, unsynced in pending.items():
            files[file] = _applied(files.get(file, b""), chance.of_writes(unsynced))
        for directory, renamed in unsettled.items():
            _rename(names.setdefault(directory, {}), renamed[: chance.of_names(len(renamed))])
        return files, names


def _applied(content: bytes, changes: Iterable[Change]) -> bytes:
    data = bytearray(content)
    for change in changes:
        if change.kind == "cut":
            del data[change.at :]
            data.extend(bytes(change.at - len(data)))
        else:
            data.extend(bytes(max(change.at - len(data), 0)))
            data[change.at : change.at + len(change.data)] = change.data
    return bytes(data)


def _rename(entries: dict[str, int | None], changes: Iterable[Change]) -> None:
    for change in changes:
        if change.kind == "name":
            entries[change.name] = change.file
        elif change.kind == "make":
            entries[change.name] = None
        elif change.kind == "unname":
            entries.pop(change.name, None)
        elif change.name in entries:
            entries[change.new] = entries.pop(change.name)


class Chance:
    """Decides what becomes of that which was not synced. This one loses all of it."""

    def of_writes(self, unsynced: list[Change]) -> Iterable[Change]:
        """Which of the writes to a file are there."""
        return ()

    def of_names(self, count: int) -> int:
        """How many of the changes to a directory are there: the first so many."""
        return 0

    def of_memory(self) -> bytes:
        """What SQLite's index of its log holds, where there is a log; nothing if that file is gone."""
        return b""


class Luck(Chance):
    """Everything is there after all: as if only the process had died."""

    def of_writes(self, unsynced: list[Change]) -> Iterable[Change]:
        return unsynced

    def of_names(self, count: int) -> int:
        return count


class NamesOnly(Luck):
    """A file system that writes its directories at once and contents late."""

    def of_writes(self, unsynced: list[Change]) -> Iterable[Change]:
        return ()


class DataOnly(Chance):
    """The other way round."""

    def of_writes(self, unsynced: list[Change]) -> Iterable[Change]:
        return unsynced


class Dice(Chance):
    """Any write may be lost or torn, and any number of names."""

    def __init__(self, seed: object) -> None:
        self._random = random.Random(str(seed))

    def of_writes(self, unsynced: list[Change]) -> Iterator[Change]:
        for change in unsynced:
            fate = self._random.random()
            if fate < 0.4:
                yield change
            elif fate < 0.7 and change.kind == "write":
                yield from self._torn(change)

    def of_names(self, count: int) -> int:
        return self._random.randint(0, count)

    def of_memory(self) -> bytes:
        return self._random.choice([b"", bytes(32768), self._random.randbytes(32768)])

    def _torn(self, change: Change) -> Iterator[Change]:
        begin = 0
        while begin < len(change.data):
            end = begin + SECTOR - (change.at + begin) % SECTOR
            if self._random.random() < 0.5:
                yield Change("write", change.file, at=change.at + begin, data=change.data[begin:end])
            begin = end

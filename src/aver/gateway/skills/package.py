"""A skill's package: its files, and the digest that names it.

A package is a directory or a ZIP file with a `SKILL.md` at its top. Its digest is SHA-256 of the canonical JSON

    {"files": {"SKILL.md": "<sha256>", "tools/run.py": "<sha256>"}, "v": 1}

so one digest stands for one set of paths and contents. The time, owner and packing of the files have no part in it.

Links, special files, absolute paths and `..` are refused. Nothing of a package is run.
"""

from __future__ import annotations

import hashlib
import lzma
import os
import stat
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from aver.capsule.canonical import canonical_json
from aver.errors import BadInput
from aver.fast_dataclass import dataclass
from aver.files.regular import NotRegularFile, open_descriptor, open_file

FILES_MAX = 2000
"""Most files of a package."""

BYTES_MAX = 32 * 1024 * 1024
"""Most bytes of all files of a package together. They are held in memory while they are looked at."""

PATH_MAX = 512
"""Most characters of a path in a package."""

NAME_BYTES_MAX = 255
"""Most bytes of one name in a path: file systems take no more."""

MANIFEST = "SKILL.md"
"""The file that makes a directory a skill."""


@dataclass(frozen=True, slots=True)
class SkillPackage:
    """The files of a package by path, and its digest."""

    files: Mapping[str, bytes]
    digest: str


def read_package(source: Path) -> SkillPackage:
    """Read a directory or a ZIP file. Raises `BadInput`, which says what is wrong with it."""
    files: dict[str, bytes] = {}
    size = 0
    for name, data in _read_directory(source) if source.is_dir() else _read_zip(source):
        _check_name(name)
        size += len(data)
        if name in files or len(files) >= FILES_MAX or size > BYTES_MAX:
            raise BadInput(f"{source} has a file twice, more than {FILES_MAX} files, or more than {BYTES_MAX} bytes")
        files[name] = data
    for name in files:
        if any(str(parent) in files for parent in PurePosixPath(name).parents):
            raise BadInput(f"{source} has a file in the place of a directory of {ascii(name)[:120]}")
    if MANIFEST not in files:
        raise BadInput(f"{source} is no skill: it has no {MANIFEST} at its top")
    return SkillPackage(dict(sorted(files.items())), digest_files(files))


def digest_files(files: Mapping[str, bytes]) -> str:
    """Return the digest of a package with these files."""
    listed = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    return hashlib.sha256(canonical_json({"v": 1, "files": listed})).hexdigest()


def _check_name(name: str) -> None:
    parts = PurePosixPath(name).parts
    is_plain = name.isprintable() and "\\" not in name and "//" not in name and not name.startswith("/")
    # A name that is not UTF-8 has halves of surrogate pairs here. It is not printable, so it is refused below.
    is_long = len(name) > PATH_MAX or any(len(os.fsencode(part)) > NAME_BYTES_MAX for part in parts)
    if not is_plain or not parts or ".." in parts or is_long or str(PurePosixPath(name)) != name:
        raise BadInput(f"a package cannot have the path {ascii(name)[:120]}")


def _read_directory(source: Path) -> Iterator[tuple[str, bytes]]:
    for directory, folders, names in os.walk(source, onerror=_raise):
        for name in sorted(folders):
            if os.path.islink(os.path.join(directory, name)):
                raise BadInput(f"{os.path.join(directory, name)} is a link, which a package cannot have")
        for name in sorted(names):
            path = Path(directory, name)
            try:
                with os.fdopen(open_descriptor(path, follow=False), "rb") as file:
                    data = file.read(BYTES_MAX + 1)
            except (NotRegularFile, OSError) as error:
                raise BadInput(f"{path} is a link or special file, or cannot be read: {error}") from error
            yield path.relative_to(source).as_posix(), data


def _raise(error: OSError) -> None:
    raise BadInput(f"cannot read {error.filename}: {error.strerror}") from error


def _read_zip(source: Path) -> Iterator[tuple[str, bytes]]:
    try:
        with open_file(source) as file, zipfile.ZipFile(file) as archive:
            entries = archive.infolist()
            if len(entries) > 2 * FILES_MAX:  # Directories have entries, too.
                raise BadInput(f"{source} has more than {FILES_MAX} files")
            for entry in entries:
                if entry.is_dir():
                    continue
                mode = entry.external_attr >> 16
                if mode and not stat.S_ISREG(mode) and stat.S_IFMT(mode):
                    raise BadInput(f"{source} has a link or special file: {ascii(entry.filename)[:120]}")
                with archive.open(entry) as member:
                    # The size in the entry is a claim: a small file may unpack to gigabytes.
                    yield entry.filename, member.read(BYTES_MAX + 1)
    # `zlib`, `bz2` and `lzma` have errors of their own for data that they cannot unpack. `OSError` is that of `bz2`.
    except (
        zipfile.BadZipFile,
        NotImplementedError,
        RuntimeError,
        EOFError,
        ValueError,
        OSError,
        zlib.error,
        lzma.LZMAError,
    ) as error:
        raise BadInput(f"{source} is neither a directory nor a ZIP file that can be read: {error}") from error


def write_package(package: SkillPackage, directory: Path) -> None:
    """Write the files of a package into an empty directory."""
    for name, data in package.files.items():
        path = directory.joinpath(*PurePosixPath(name).parts)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with path.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())


def describe_package(package: SkillPackage) -> dict[str, Any]:
    """Return what a person is told about a package."""
    return {
        "digest": package.digest,
        "files": len(package.files),
        "bytes": sum(len(data) for data in package.files.values()),
    }

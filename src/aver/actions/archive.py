"""`.cap` files: a tar inside a gzip. The writer gives the same bytes for the same files. The reader trusts nothing.

The reader never extracts a member to a path. It reads members one after the other into memory or unnamed files. It
refuses

* links, devices, directories, absolute and hidden names, `..`, and a name that comes twice;
* more members or bytes than a run can have, and a compression ratio that no honest text reaches;
* extended headers that say more than times, and anything after the end of the tar or of the gzip.

If the caller gives the names that the members of one or several formats may have, the reader stops at the header of a
member that does not fit: all members must be of one of the formats.
"""

from __future__ import annotations

import os
import re
import struct
import tarfile
import zlib
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, BinaryIO, cast

from aver.capsule.json_reader import Unreadable
from aver.errors import BadInput, NotFound, Unavailable
from aver.files.regular import CHUNK, open_inside
from aver.ledger.foreign.seal_checks import check_file_name

GZIP_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff"
"""A header without name, time and system. They would make two archives of the same run differ."""

COMPRESSION_LEVEL = 6

MEMBERS_MAX = 64
"""The maximum number of members. Aver writes six or seven, other tools seven or eight."""

MEMBER_MAX = 2 * 1024**3
"""The maximum size, in bytes, of one member after unpacking: some million actions."""

RATIO_CHECKED_FROM, RATIO_MAX = 64 * 1024**2, 250
"""The reader refuses an archive that unpacks to more bytes than the first, and to more than the second times its size.
Hashes and signatures do not compress well: runs reach a ratio of ten."""

MEMORY_MAX = 32 * 1024**2
"""The maximum size, in bytes, of all members in memory. The reader puts other members into temporary files."""

TAR_RECORD = 10_240
"""The size of a tar is a multiple of this; zeros fill it up."""

TIME_HEADER_MAX = 4096
"""The maximum size, in bytes, of an extended header with times."""

_TIME_HEADER = re.compile(rb"(?:[0-9]{1,4} [amc]time=[0-9]{1,20}(?:\.[0-9]{1,20})?\n)*").fullmatch


# --- writing


def pack(members: Mapping[str, BinaryIO], out: BinaryIO) -> None:
    """Write an archive with these members, in this order."""
    deflate = zlib.compressobj(COMPRESSION_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    crc = size = packed = 0

    def put(data: bytes) -> None:
        nonlocal crc, size, packed
        crc, size = zlib.crc32(data, crc), size + len(data)
        piece = deflate.compress(data)
        packed += len(piece)
        out.write(piece)

    out.write(GZIP_HEADER)
    for name, file in members.items():
        length = file.seek(0, 2)
        if length > MEMBER_MAX:
            raise BadInput(f"{name} has {length} bytes; a .cap takes {MEMBER_MAX}", advice="keep runs shorter")
        file.seek(0)
        put(_tar_header(name, length))
        while chunk := file.read(CHUNK):
            put(chunk)
        put(bytes(-length % tarfile.BLOCKSIZE))
    put(bytes(2 * tarfile.BLOCKSIZE))
    put(bytes(-size % TAR_RECORD))
    out.write(deflate.flush())
    out.write(struct.pack("<II", crc, size & 0xFFFFFFFF))
    if _is_bomb(size, packed):
        raise BadInput("the run packs so well that its .cap would be taken for an attack", advice="keep it unpacked")


def _tar_header(name: str, size: int) -> bytes:
    info = tarfile.TarInfo(name)
    info.size = size
    return info.tobuf(tarfile.USTAR_FORMAT)


def _is_bomb(size: int, packed: int) -> bool:
    return size > RATIO_CHECKED_FROM and size > packed * RATIO_MAX


# --- reading


@dataclass(slots=True)
class Archive:
    """The members of an archive."""

    members: dict[str, IO[bytes]]
    plain: bool
    """Whether the gzip header and all tar headers are those that Aver writes."""

    def read_small(self, name: str, limit: int) -> bytes | None:
        """Return a small member; None if there is none. Raise `Unreadable` if it is larger than `limit` bytes."""
        file = self.members.get(name)
        if file is None:
            return None
        file.seek(0)
        data = file.read(limit + 1)
        if len(data) > limit:
            raise Unreadable(f"{name} is larger than {limit} bytes")
        return data


@contextmanager
def open_directory(directory: Path, names: Iterable[str]) -> Iterator[Archive]:
    """Open the files with these names in a directory, as if they were the members of an archive."""
    with ExitStack() as stack:
        members: dict[str, IO[bytes]] = {}
        for name in names:
            with suppress(NotFound):
                member = stack.enter_context(open_inside(directory, name))
                # As in an archive. Without this, a file with a hole of terabytes would be read to its end.
                if os.fstat(member.fileno()).st_size > MEMBER_MAX:
                    raise Unreadable(f"{name} is larger than {MEMBER_MAX} bytes")
                members[name] = member
        yield Archive(members, plain=True)


@contextmanager
def open_archive(file: BinaryIO, *formats: Container[str]) -> Iterator[Archive]:
    """Read an archive. Raise `Unreadable` if it is damaged, hostile, or has members that no one of `formats` has.

    Each of `formats` has the names of its members. Without any, a member may have any name.
    """
    beginning = file.read(len(GZIP_HEADER))
    file.seek(0)
    archive = Archive({}, plain=beginning == GZIP_HEADER)
    try:
        _read_members(file, archive, formats)
        yield archive
    finally:
        for member in archive.members.values():
            member.close()


def _read_members(file: BinaryIO, archive: Archive, formats: Sequence[Container[str]]) -> None:
    stream = _GzipReader(file)
    described = False
    memory = MEMORY_MAX
    try:
        while (block := stream.read_exactly(tarfile.BLOCKSIZE)).strip(b"\0"):
            info = tarfile.TarInfo.frombuf(block, "utf-8", "strict")
            if info.type == tarfile.XHDTYPE and not described:
                _check_time_header(stream, info)
                archive.plain, described = False, True
                continue
            described = False
            _check_member(info, archive)
            if formats:
                fitting = [names for names in formats if info.name in names]
                if not fitting:
                    others = " with the members before it" if archive.members else ""
                    raise Unreadable(f"{ascii(info.name)[:80]} is no part of a run{others}")
                formats = fitting
            archive.plain = archive.plain and block == _tar_header(info.name, info.size)
            kept: IO[bytes]
            if info.size <= memory:
                kept = BytesIO()
                memory -= info.size
            else:
                # A file without a name, so that no other program can find or change it.
                kept = cast(IO[bytes], TemporaryFile())  # noqa: SIM115 - closed with the archive
            archive.members[info.name] = kept
            stream.copy(info.size, kept)
            if stream.read_exactly(-info.size % tarfile.BLOCKSIZE).strip(b"\0"):
                raise Unreadable(f"there are extra bytes after the end of {info.name}")
        while chunk := stream.read_some(CHUNK):
            if chunk.strip(b"\0"):
                raise Unreadable("there are extra bytes after the end of the tar")
    except (tarfile.TarError, zlib.error, EOFError, ValueError) as error:
        raise Unreadable(f"not a tar in gzip, or a damaged one: {error}") from None
    except OSError as error:
        raise Unavailable(f"cannot unpack it: {error.strerror}", advice="make room where TMPDIR is") from error
    archive.plain = archive.plain and stream.size % TAR_RECORD == 0


def _check_time_header(stream: _GzipReader, info: tarfile.TarInfo) -> None:
    """Accept an extended header with times, which Python's own writer adds for fractions of seconds, and no other."""
    if not 0 <= info.size <= TIME_HEADER_MAX:
        raise Unreadable("an extended header is too large")
    text = stream.read_exactly(info.size + -info.size % tarfile.BLOCKSIZE)[: info.size]
    if not _TIME_HEADER(text):
        raise Unreadable("an extended header says more than times")


def _check_member(info: tarfile.TarInfo, archive: Archive) -> None:
    shown = ascii(info.name)[:80]
    if info.type != tarfile.REGTYPE:
        raise Unreadable(f"{shown} is not a plain file")
    for part in info.name.split("/"):
        check_file_name(part)
    if info.name in archive.members:
        raise Unreadable(f"{shown} is in it twice")
    if len(archive.members) >= MEMBERS_MAX:
        raise Unreadable(f"it has more than {MEMBERS_MAX} members")
    if not 0 <= info.size <= MEMBER_MAX:
        raise Unreadable(f"{shown} is larger than {MEMBER_MAX} bytes")


class _GzipReader:
    """Unpacks a gzip file that has exactly one gzip member, and nothing after it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._inflate = zlib.decompressobj(zlib.MAX_WBITS | 16)
        # Of the whole file, not of what was read: the page's verifier cannot know how far its platform has read.
        self._packed = file.seek(0, os.SEEK_END)
        file.seek(0)
        self.size = 0

    def read_exactly(self, size: int) -> bytes:
        """Return exactly so many bytes. Only for small sizes: they are kept in memory."""
        parts = []
        while size:
            parts.append(self.read_some(size))
            if not parts[-1]:
                raise EOFError("it ends early")
            size -= len(parts[-1])
        return b"".join(parts)

    def copy(self, size: int, out: IO[bytes]) -> None:
        while size:
            chunk = self.read_some(min(size, CHUNK))
            if not chunk:
                raise EOFError("it ends early")
            out.write(chunk)
            size -= len(chunk)
        out.seek(0)

    def read_some(self, most: int) -> bytes:
        """Return at most so many bytes; none at the end."""
        inflate = self._inflate
        while not inflate.eof:
            packed = inflate.unconsumed_tail
            if not packed:
                packed = self._file.read(CHUNK)
                if not packed:
                    raise EOFError("it ends early")
            piece = inflate.decompress(packed, most)
            self.size += len(piece)
            if _is_bomb(self.size, self._packed):
                raise Unreadable(f"it unpacks to more than {RATIO_MAX} times its size")
            if piece:
                return piece
        if inflate.unused_data or self._file.read(1):
            raise Unreadable("there are extra bytes after the end of the gzip")
        return b""

"""`.cap` files as an enemy would make them: nothing is followed, nothing is written, nothing is endless."""

from __future__ import annotations

import gzip
import io
import os
import struct
import subprocess
import sys
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import aver
from aver.actions.archive import (
    GZIP_HEADER,
    MEMBER_MAX,
    MEMBERS_MAX,
    MEMORY_MAX,
    RATIO_CHECKED_FROM,
    open_archive,
    pack,
)
from aver.capsule.json_reader import Unreadable
from aver.errors import BadInput, Unavailable
from support import memory_peaks as peaks
from support.many_cases import first_now
from support.runs import SealedRun, judged, packed


def read(data: bytes) -> dict[str, bytes]:
    with open_archive(io.BytesIO(data)) as archive:
        return {name: file.read() for name, file in archive.members.items()}


def tar_of(*members: tarfile.TarInfo | tuple[str, bytes], form: int = tarfile.USTAR_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as tar:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                tar.addfile(member, io.BytesIO(b"x" * member.size))
            else:
                info = tarfile.TarInfo(member[0])
                info.size = len(member[1])
                tar.addfile(info, io.BytesIO(member[1]))
    return out.getvalue()


def special(name: str, kind: bytes, target: str = "", size: int = 0) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, target, size
    return info


def pax(**headers: str) -> tarfile.TarInfo:
    info = tarfile.TarInfo("manifest.json")
    info.pax_headers = headers
    return info


HOSTILE: dict[str, bytes] = {
    "symbolic link": tar_of(special("manifest.json", tarfile.SYMTYPE, "/etc/passwd")),
    "hard link": tar_of(special("manifest.json", tarfile.LNKTYPE, "/etc/passwd")),
    "character device": tar_of(special("manifest.json", tarfile.CHRTYPE)),
    "block device": tar_of(special("manifest.json", tarfile.BLKTYPE)),
    "fifo": tar_of(special("manifest.json", tarfile.FIFOTYPE)),
    "directory": tar_of(special("row_archive", tarfile.DIRTYPE)),
    "contiguous file": tar_of(special("manifest.json", tarfile.CONTTYPE)),
    "sparse file": tar_of(special("manifest.json", tarfile.GNUTYPE_SPARSE)),
    "unknown type": tar_of(special("manifest.json", b"Z")),
    "absolute path": tar_of(("/etc/passwd", b"x")),
    "parent path": tar_of(("../manifest.json", b"x")),
    "parent path inside": tar_of(("a/../../manifest.json", b"x")),
    "dot": tar_of(("./manifest.json", b"x")),
    "empty part": tar_of(("a//b", b"x")),
    "backslashes": tar_of(("..\\manifest.json", b"x")),
    "hidden": tar_of((".manifest.json", b"x")),
    "trailing slash": tar_of(("manifest.json/", b"")),
    "escape": tar_of(("mani\x1b[0mfest", b"x")),
    "line feed": tar_of(("manifest\n.json", b"x")),
    "twice": tar_of(("manifest.json", b"x"), ("manifest.json", b"y")),
    "long name (GNU)": tar_of(("a" * 150, b"x"), form=tarfile.GNU_FORMAT),
    "long name (pax)": tar_of(("ä" * 150, b"x"), form=tarfile.PAX_FORMAT),
    "path by extended header": tar_of(pax(path="../x"), form=tarfile.PAX_FORMAT),
    "size by extended header": tar_of(pax(size="5"), form=tarfile.PAX_FORMAT),
    "sparse by extended header": tar_of(pax(**{"GNU.sparse.major": "1"}), form=tarfile.PAX_FORMAT),
    "comment by extended header": tar_of(pax(comment="trust me"), form=tarfile.PAX_FORMAT),
    "too many": tar_of(*((f"f{number}", b"") for number in range(MEMBERS_MAX + 1))),
    "not a tar": b"x" * 2048,
    "a header and no more": tar_of(("manifest.json", b"x" * 2000))[:1024],
    "no end": tar_of(("manifest.json", b"x"))[:1024],
    "something behind the end": tar_of(("manifest.json", b"x")) + b"x" * 512,
    "a broken header in the middle": tar_of(("a", b"")).replace(b"\0" * 512, b"y" * 512, 1),
    "padding that says something": tar_of(("a", b"1")).replace(b"1" + b"\0" * 100, b"1" + b"\0" * 99 + b"!"),
    "empty": b"",
}


@pytest.mark.parametrize("case", HOSTILE, ids=lambda case: case.replace(" ", "-"))
def test_hostile_members_are_refused(case: str, tmp_path: Path) -> None:
    data = gzip.compress(HOSTILE[case])
    before = os.listdir(tmp_path)
    with pytest.raises(Unreadable):
        read(data)
    path = tmp_path / "hostile.cap"
    path.write_bytes(data)
    verdict = aver.verify(path)
    assert verdict.status == "failed"
    assert os.listdir(tmp_path) == [*before, "hostile.cap"]


def negative_size(size: bytes) -> bytes:
    block = bytearray(tarfile.TarInfo("manifest.json").tobuf(tarfile.USTAR_FORMAT))
    block[124:136] = size
    checksum = sum(block[:148]) + 8 * 32 + sum(block[156:])
    block[148:156] = b"%06o\0 " % checksum
    return bytes(block)


@pytest.mark.parametrize(
    "size",
    [
        b"\xff" * 12,
        b"\x80" + b"\xff" * 11,
        b"77777777777\0",
        b"-0000000001\0",
        b"xxxxxxxxxxx\0",
    ],
)
def test_sizes_that_are_not(size: bytes) -> None:
    with pytest.raises(Unreadable):
        read(gzip.compress(negative_size(size) + bytes(2048)))


@pytest.mark.parametrize(
    "beginning", [b"", b"\x1f", b"\x1f\x8b", b"\x1f\x8b\x08", b"PK\x03\x04", b"SQLite format 3\0", b"{}"]
)
def test_what_is_no_gzip(beginning: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file.cap"
    path.write_bytes(beginning + bytes(20))
    try:
        assert aver.verify(path).status == "failed"
    except BadInput:
        assert beginning.startswith(b"SQLite")


MEASURE = f"""{peaks.PEAK}
import sys
import aver
before = peak_kb()
status = aver.verify(sys.argv[1]).status
print(status, (peak_kb() - before) // 1024)
"""


def bomb(member: Callable[[int], bytes], total: int) -> bytes:
    deflate = zlib.compressobj(9, zlib.DEFLATED, 31)
    out = [deflate.compress(member(total))]
    for _ in range(total // 2**20):
        out.append(deflate.compress(bytes(2**20)))
    out.append(deflate.flush())
    return b"".join(out)


def header(name: str) -> Callable[[int], bytes]:
    def made(size: int) -> bytes:
        info = tarfile.TarInfo(name)
        info.size = size
        return info.tobuf(tarfile.USTAR_FORMAT)

    return made


told_by_proc = pytest.mark.skipif(not peaks.KNOWN, reason="memory is told by /proc")


@pytest.mark.more
@told_by_proc
@pytest.mark.parametrize("name", first_now(["manifest.json", "actions.jsonl", "capsules.jsonl", "zeros"]))
def test_a_bomb_takes_neither_time_nor_memory(name: str, tmp_path: Path) -> None:
    path = tmp_path / "bomb.cap"
    start = (lambda _: b"") if name == "zeros" else header(name)
    path.write_bytes(bomb(start, 4 * RATIO_CHECKED_FROM))
    done = subprocess.run([sys.executable, "-c", MEASURE, str(path)], capture_output=True, text=True, check=True)
    status, grown = done.stdout.split()
    assert status == "failed"
    assert int(grown) < 60


@pytest.mark.long
@told_by_proc
def test_many_members_share_the_memory_that_one_may_take(tmp_path: Path) -> None:
    members = {f"{number}.json": io.BytesIO(os.urandom(2**16) * (MEMORY_MAX // 2**16)) for number in range(8)}
    path = tmp_path / "wide.cap"
    with path.open("wb") as out:
        pack(members, out)
    done = subprocess.run([sys.executable, "-c", MEASURE, str(path)], capture_output=True, text=True, check=True)
    status, grown = done.stdout.split()
    assert status == "failed"
    assert int(grown) < 60


def test_no_room_to_unpack_is_no_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "large.cap"
    with path.open("wb") as out:
        pack({"actions.jsonl": io.BytesIO(bytes(MEMORY_MAX + 1))}, out)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    with pytest.raises(Unavailable, match="cannot unpack"):
        aver.verify(path)


def test_a_member_that_is_no_part_of_a_run_is_refused_before_the_others_are_read(sealed_run: SealedRun) -> None:
    """Incompressible bytes in it would hide how well the others pack."""
    extra = {"extra.bin": os.urandom(100_000), **sealed_run.members}
    verdict = judged(packed(extra), sealed_run)
    assert (verdict.status, verdict.records) == ("failed", 0)
    assert [(one.code, one.words) for one in verdict.findings] == [
        ("SCHEMA_INVALID", "'extra.bin' is no part of a run")
    ]


def test_a_gzip_in_a_gzip_is_not_unpacked_twice(sealed_run: SealedRun) -> None:
    assert judged(gzip.compress(sealed_run.cap), sealed_run).status == "failed"


def test_headers_in_which_something_could_hide(sealed_run: SealedRun) -> None:
    """The packed data are the same; a name, a time or a comment in the header is not Aver's."""
    body = sealed_run.cap[len(GZIP_HEADER) :]
    assert judged(GZIP_HEADER + body, sealed_run).status == "verified"
    for other in (
        b"\x1f\x8b\x08\x08\x00\x00\x00\x00\x02\xffname\x00",
        b"\x1f\x8b\x08\x10\x00\x00\x00\x00\x02\xfftrust me\x00",
        b"\x1f\x8b\x08\x00\x01\x00\x00\x00\x02\xff",
        b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03",
        b"\x1f\x8b\x08\x04\x00\x00\x00\x00\x02\xff\x02\x00hi",
    ):
        assert judged(other + body, sealed_run).status == "failed"


def test_packing_is_plain_tar_and_gzip() -> None:
    data = packed({"manifest.json": b"{}", "actions.jsonl": b"x" * 100_000})
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        assert tar.getnames() == ["manifest.json", "actions.jsonl"]
        assert {(member.mtime, member.uid, member.mode) for member in tar} == {(0, 0, 0o644)}
    assert struct.unpack("<I", data[4:8]) == (0,)
    assert read(data) == {"manifest.json": b"{}", "actions.jsonl": b"x" * 100_000}


@pytest.mark.more
def test_what_would_be_refused_is_not_packed() -> None:
    with pytest.raises(BadInput, match="attack"):
        pack({"actions.jsonl": io.BytesIO(bytes(2 * RATIO_CHECKED_FROM))}, io.BytesIO())


@given(st.binary(max_size=2000))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for attempt in (data, GZIP_HEADER + data, gzip.compress(data)):
        try:
            found = read(attempt)
        except Unreadable:
            continue
        # What was read is in the bytes: nothing is made up.
        assert all(content in gzip.decompress(attempt) for content in found.values())


@pytest.mark.more
@settings(max_examples=150)
@given(st.data())
def test_any_change_to_a_tar_is_read_or_refused(data: st.DataObject) -> None:
    tar = bytearray(tar_of(("manifest.json", b"{}"), ("actions.jsonl", b"x" * 600)))
    for _ in range(data.draw(st.integers(1, 4))):
        tar[data.draw(st.integers(0, 2600))] = data.draw(st.integers(0, 255))
    try:
        found = read(gzip.compress(bytes(tar)))
    except Unreadable:
        return
    assert set(found) <= {*found}
    assert all("/" not in name or ".." not in name for name in found)


def test_a_file_of_a_run_is_not_larger_than_a_member_of_an_archive(sealed_run: SealedRun, tmp_path: Path) -> None:
    """A file with a hole of terabytes takes no room, and hours to read."""
    run = tmp_path / "run"
    run.mkdir()
    for name, data in sealed_run.members.items():
        (run / name).write_bytes(data)
    os.truncate(run / "actions.jsonl", MEMBER_MAX + 1)
    verdict = aver.verify(run, home=sealed_run.home)
    assert verdict.first_bad is not None
    assert (verdict.status, verdict.first_bad.code) == ("failed", "SCHEMA_INVALID")
    assert "actions.jsonl is larger" in verdict.first_bad.words

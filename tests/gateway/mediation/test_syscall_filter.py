"""The filter of system calls, run by an interpreter of its language: what it refuses, and what it lets through."""

from __future__ import annotations

import struct

import pytest

from aver.gateway.mediation.syscall_filter import FORBIDDEN, TABLES, build_filter

ALLOW = 0x7FFF0000
EPERM, ENOSYS, EAFNOSUPPORT = 0x50001, 0x50026, 0x50061
X86 = TABLES["x86_64"]


def judge(program: bytes, number: int, *arguments: int, architecture: int) -> int:
    """Run the filter as the kernel does."""
    data = struct.pack("<IIQ6Q", number, architecture, 0, *arguments, *(0 for _ in range(6 - len(arguments))))
    steps = [struct.unpack_from("<HBBI", program, offset) for offset in range(0, len(program), 8)]
    place, loaded = 0, 0
    while True:
        code, yes, no, value = steps[place]
        place += 1
        if code == 0x20:
            (loaded,) = struct.unpack_from("<I", data, value)
        elif code == 0x06:
            return int(value)
        else:
            held = {0x15: loaded == value, 0x35: loaded >= value, 0x45: bool(loaded & value)}[code]
            place += yes if held else no


@pytest.mark.parametrize("machine", TABLES)
def test_what_is_refused(machine: str) -> None:
    table = TABLES[machine]
    program = build_filter(table)

    def run(name: str, *arguments: int) -> int:
        return judge(program, table.numbers[name], *arguments, architecture=table.architecture)

    assert {run(name) for name in FORBIDDEN} == {EPERM}
    assert run("clone3") == ENOSYS
    assert run("clone", 0x10000000 | 0x11) == EPERM
    assert run("clone", 0x11) == run("clone", 0x003D0F00) == ALLOW
    assert run("unshare", 0x10020000) == EPERM
    assert run("unshare", 0x00020000) == ALLOW
    assert run("memfd_create", 0, 0) == run("memfd_create", 0, 0x13) == EPERM
    assert run("memfd_create", 0, 0x9) == ALLOW
    assert {run("socket", family) for family in (1, 2, 10, 16)} == {ALLOW}
    assert {run("socket", family) for family in (0, 3, 17, 31, 38, 40, 44, 2**32 - 1)} == {EAFNOSUPPORT}
    assert {run("ioctl", 0, request) for request in (0x5412, 0x541C, 0x5412 | 1 << 40)} == {EPERM}
    assert run("ioctl", 0, 0x5401) == run("ioctl", 0x5412, 0x5413) == ALLOW


def test_other_calls_pass_and_other_modes_do_not() -> None:
    program = build_filter(X86)
    for number in set(range(450)) - set(X86.numbers.values()):
        assert judge(program, number, architecture=X86.architecture) == ALLOW
    assert judge(program, 1 | 0x40000000, architecture=X86.architecture) == EPERM
    assert judge(program, 1, architecture=0x40000003) == EPERM
    assert judge(program, 1, architecture=TABLES["aarch64"].architecture) == EPERM

"""The system calls that a confined program does not get, as a seccomp filter.

Namespaces, read-only mounts and the rule about programs (Landlock) leave some ways open. The filter closes them:

    memfd_create        without MFD_NOEXEC_SEAL: a program in memory has no path that a rule could forbid
    socket              other families than Unix, IPv4, IPv6 and netlink: AF_VSOCK leads from a virtual machine to its
                        host, and no network namespace holds it
    ioctl               TIOCSTI and TIOCLINUX type into the terminal of the person
    add_key, keyctl     the keyring of the session may hold keys of the person
    clone, unshare      new user namespaces; `clone3` is "not implemented", because a filter cannot read its flags
    setns, bpf, perf_event_open, userfaultfd, io_uring_setup, open_by_handle_at
                        no agent needs them; io_uring would make calls that no filter sees

The answer is an error, not a signal, so that a program can do without. Calls by the numbers of another processor mode
(32 bits, x32) are all refused: their numbers mean other calls.

    struct sock_filter { u16 code; u8 jt; u8 jf; u32 k; }      eight bytes each, as `bwrap --seccomp` reads them
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

from aver.fast_dataclass import dataclass

EPERM, ENOSYS, EAFNOSUPPORT = 1, 38, 97

SOCKET_FAMILIES = (1, 2, 10, 16)
"""AF_UNIX, AF_INET, AF_INET6 and AF_NETLINK."""

TERMINAL_REQUESTS = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX."""

NEW_USER_NAMESPACE = 0x10000000
MFD_NOEXEC_SEAL = 0x0008

_LOAD, _JUMP_EQUAL, _JUMP_NOT_BELOW, _JUMP_BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000
_NUMBER, _ARCHITECTURE = 0, 4
_X32 = 0x40000000
"""Numbers from here on are those of x32, on a processor of 64 bits."""


@dataclass(frozen=True, slots=True)
class SyscallTable:
    """The numbers of system calls on one processor."""

    architecture: int
    numbers: Mapping[str, int]


_COMMON = {"clone3": 435, "io_uring_setup": 425, "memfd_secret": 447}

TABLES = {
    "x86_64": SyscallTable(
        0xC000003E,
        {
            **_COMMON,
            "ioctl": 16,
            "socket": 41,
            "clone": 56,
            "add_key": 248,
            "request_key": 249,
            "keyctl": 250,
            "unshare": 272,
            "perf_event_open": 298,
            "open_by_handle_at": 304,
            "setns": 308,
            "memfd_create": 319,
            "bpf": 321,
            "userfaultfd": 323,
        },
    ),
    "aarch64": SyscallTable(
        0xC00000B7,
        {
            **_COMMON,
            "ioctl": 29,
            "unshare": 97,
            "socket": 198,
            "add_key": 217,
            "request_key": 218,
            "keyctl": 219,
            "clone": 220,
            "perf_event_open": 241,
            "open_by_handle_at": 265,
            "setns": 268,
            "memfd_create": 279,
            "bpf": 280,
            "userfaultfd": 282,
        },
    ),
}
"""By the name of a processor, as `platform.machine` says it."""

FORBIDDEN = (
    *("add_key", "request_key", "keyctl", "setns", "bpf", "perf_event_open", "userfaultfd", "io_uring_setup"),
    *("open_by_handle_at", "memfd_secret"),
)
"""The calls that are refused whatever their arguments are."""

_Step = tuple[int, int, int, int]


def build_filter(table: SyscallTable) -> bytes:
    """Return the filter for a processor, as the kernel reads it."""
    steps: list[_Step] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_JUMP_EQUAL, 1, 0, table.architecture),
        _refuse(EPERM),
        (_LOAD, 0, 0, _NUMBER),
        (_JUMP_NOT_BELOW, 0, 1, _X32),
        _refuse(EPERM),
    ]
    for name in FORBIDDEN:
        steps += _judge(table, name, [_refuse(EPERM)])
    steps += _judge(table, "clone3", [_refuse(ENOSYS)])
    for name in ("clone", "unshare"):
        steps += _judge(
            table, name, [_load_argument(0), (_JUMP_BITS, 0, 1, NEW_USER_NAMESPACE), _refuse(EPERM), _allow()]
        )
    steps += _judge(
        table, "memfd_create", [_load_argument(1), (_JUMP_BITS, 1, 0, MFD_NOEXEC_SEAL), _refuse(EPERM), _allow()]
    )
    steps += _judge(table, "socket", _choose(0, SOCKET_FAMILIES, _allow(), _refuse(EAFNOSUPPORT)))
    steps += _judge(table, "ioctl", _choose(1, TERMINAL_REQUESTS, _refuse(EPERM), _allow()))
    steps.append(_allow())
    return b"".join(struct.pack("=HBBI", code, yes, no, value) for code, yes, no, value in steps)


def _judge(table: SyscallTable, name: str, steps: Sequence[_Step]) -> list[_Step]:
    """Do the steps for one call, and skip them for all others. The number is loaded, and the steps end in a return."""
    return [(_JUMP_EQUAL, 0, len(steps), table.numbers[name]), *steps]


def _choose(argument: int, values: Sequence[int], listed: _Step, other: _Step) -> list[_Step]:
    """Return `listed` if an argument is one of the values, else `other`."""
    jumps = [(_JUMP_EQUAL, len(values) - index, 0, value) for index, value in enumerate(values)]
    return [_load_argument(argument), *jumps, other, listed]


def _load_argument(index: int) -> _Step:
    """Load the low half of an argument. The kernel reads no more of the arguments that the filter judges."""
    return (_LOAD, 0, 0, 16 + 8 * index)


def _allow() -> _Step:
    return (_RETURN, 0, 0, _ALLOW)


def _refuse(number: int) -> _Step:
    return (_RETURN, 0, 0, _ERROR | number)

"""The program that runs inside of a confinement: it limits itself, then starts the agent or makes probes.

    python -I -S -B inner_program.py plan.json

    {"exec": [...], "command": ["/usr/bin/node", "agent.js"]}
    {"exec": [...], "probes": [{"id": "...", "kind": "read", "path": "/etc/shadow"}]}

It runs with the standard library alone, because a contract may hide all else. `exec` are the files that may be started
from now on (Landlock); without it, nothing is limited. The same program makes the controls of probes outside, without
`exec`. The answers of probes are written to standard output: {"<id>": {"ok": true, ...}, ...}.

A probe says in `ok` whether something worked. Its `error` has the system's word for why it did not.
"""

from __future__ import annotations

import ctypes
import errno
import http.client
import json
import os
import secrets
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
"""The numbers of Landlock's system calls, which are the same on all processors."""

EXECUTE, REFER = 1 << 0, 1 << 13
"""Rights of Landlock: to start a file, and to move one to another directory."""

NO_NEW_PRIVILEGES = 38

CONNECT_SECONDS = 5.0
"""How long a connection may take. Without a network it fails at once."""

MCP_SECONDS = 120.0
"""How long the MCP door may take to start and to answer. Importing its library takes a second or more."""

ENTRIES_MAX = 300_000
"""Directory entries that are looked at for sockets."""

SHOWN_MAX = 300


class Limitless(Exception):
    """The kernel cannot limit which programs are started."""


def limit_programs(paths: list[str]) -> None:
    """Let this process, and all that it starts, execute these files alone. Raises `Limitless`."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    version = libc.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    if version < 1:
        raise Limitless(f"the kernel has no Landlock: {os.strerror(ctypes.get_errno())}")
    # A rule set without REFER would forbid every move between directories.
    handled = ctypes.c_uint64(EXECUTE | (REFER if version > 1 else 0))
    ruleset = libc.syscall(CREATE_RULESET, ctypes.byref(handled), ctypes.c_size_t(8), ctypes.c_uint32(0))
    if ruleset < 0:
        raise Limitless(os.strerror(ctypes.get_errno()))
    rules = [(path, EXECUTE) for path in paths] + ([("/", REFER)] if version > 1 else [])
    for path, right in rules:
        try:
            opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue  # It is not here, so nobody can start it.
        rule = right.to_bytes(8, sys.byteorder) + opened.to_bytes(4, sys.byteorder)
        if libc.syscall(ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(1), rule, ctypes.c_uint32(0)):
            raise Limitless(f"{path}: {os.strerror(ctypes.get_errno())}")
        os.close(opened)
    libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    if libc.syscall(RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0)):
        raise Limitless(os.strerror(ctypes.get_errno()))
    os.close(ruleset)


# --- probes


def read_path(probe: dict[str, Any]) -> dict[str, Any]:
    """Read a byte of a file, or the names in a directory."""
    path = probe["path"]
    try:
        if os.path.isdir(path):
            return {"ok": True, "details": f"{len(os.listdir(path))} entries"}
        with open(path, "rb") as file:
            file.read(1)
        return {"ok": True}
    except OSError as error:
        return _fail(error)


def write_path(probe: dict[str, Any]) -> dict[str, Any]:
    """Make a file in a directory and remove it, or open a file for writing."""
    path = probe["path"]
    try:
        if not os.path.isdir(path):
            os.close(os.open(path, os.O_WRONLY))
            return {"ok": True}
        name = os.path.join(path, f".aver-probe-{secrets.token_hex(8)}")
        os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        os.unlink(name)
        return {"ok": True}
    except OSError as error:
        return _fail(error)


def start_program(probe: dict[str, Any]) -> dict[str, Any]:
    """Execute a file in a child that is stopped at its first instruction, so that nothing of it runs."""
    argv = probe["argv"]
    libc = ctypes.CDLL(None, use_errno=True)
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            # PTRACE_TRACEME: the kernel stops this process after it has executed a file.
            if libc.ptrace(0, 0, None, None):
                raise OSError(errno.ENOSYS, "ptrace")
            os.execv(argv[0], argv)
        except BaseException as error:  # noqa: BLE001 - a child must end here, whatever happens
            os.write(writer, str(getattr(error, "errno", None) or errno.EIO).encode())
        finally:
            os._exit(127)
    os.close(writer)
    _, status = os.waitpid(child, 0)
    if os.WIFSTOPPED(status):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    with os.fdopen(reader, "rb") as pipe:
        number = pipe.read()
    if number:
        return {"spawned": False, **_fail(OSError(int(number), os.strerror(int(number))))}
    return {"ok": True, "spawned": True}


def start_copy(probe: dict[str, Any]) -> dict[str, Any]:
    """Write a program into a directory, and execute it."""
    name = os.path.join(probe["path"], f".aver-probe-{secrets.token_hex(8)}")
    try:
        with open("/proc/self/exe", "rb") as own, open(name, "wb") as copy:
            while data := own.read(1 << 20):
                copy.write(data)
        os.chmod(name, 0o700)
    except OSError as error:
        return {**_fail(error), "skipped": True}
    try:
        return start_program({"argv": [name]})
    finally:
        os.unlink(name)


def start_in_memory(probe: dict[str, Any]) -> dict[str, Any]:
    """Execute a program that is in memory alone."""
    try:
        handle = os.memfd_create("aver-probe", 0)
        with open("/proc/self/exe", "rb") as own:
            while data := own.read(1 << 20):
                os.write(handle, data)
    except OSError as error:
        return {"spawned": False, **_fail(error)}
    try:
        return start_program({"argv": [f"/proc/self/fd/{handle}"]})
    finally:
        os.close(handle)


def reach_internet(probe: dict[str, Any]) -> dict[str, Any]:
    """Look for a route to a public address, which sends nothing. With a URL, also connect to its host."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as route:
            route.connect((probe["address"], 53))
            return {"ok": True, "details": "there is a route"}
    except OSError as error:
        failed = _fail(error)
    if url := probe.get("url"):
        parts = urlsplit(url)
        try:
            port = parts.port or (443 if parts.scheme == "https" else 80)
            with socket.create_connection((parts.hostname or "", port), timeout=CONNECT_SECONDS):
                return {"ok": True, "details": f"connected to {parts.hostname}"}
        except (OSError, ValueError) as error:
            failed = _fail(error)
    return failed


def post_http(probe: dict[str, Any]) -> dict[str, Any]:
    """Post to a URL of this machine."""
    parts = urlsplit(probe["url"])
    try:
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=CONNECT_SECONDS)
        connection.request("POST", parts.path or "/", b"probe")
        answer = connection.getresponse()
        return {"ok": answer.status < 400, "details": f"status {answer.status}"}
    except (OSError, ValueError, http.client.HTTPException) as error:
        return _fail(error)


def connect_unix(probe: dict[str, Any]) -> dict[str, Any]:
    """Connect to a Unix socket. A name that begins with `@` is abstract: it is no file."""
    path = probe["path"]
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(CONNECT_SECONDS)
            connection.connect(f"\0{path[1:]}" if path.startswith("@") else path)
        return {"ok": True}
    except OSError as error:
        return _fail(error)


def connect_vsock(probe: dict[str, Any]) -> dict[str, Any]:
    """Make a socket of the family that leads from a virtual machine to its host."""
    try:
        socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM).close()
        return {"ok": True}
    except OSError as error:
        return _fail(error)


def send_act(probe: dict[str, Any]) -> dict[str, Any]:
    """Send an act to the gateway's socket."""
    found: dict[str, Any] = {"transport": "uds", "path": probe["path"], "http_status": None, "body": None}
    connection = http.client.HTTPConnection("localhost", timeout=MCP_SECONDS)
    try:
        connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.sock.settimeout(MCP_SECONDS)
        connection.sock.connect(probe["path"])
        connection.request("POST", "/act", json.dumps(probe["act"]).encode(), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        body = json.loads(answer.read())
        is_answer = answer.status == 200 and isinstance(body, dict) and body.get("status") in ("OK", "DENY")
        return {**found, "ok": is_answer, "http_status": answer.status, "body": body}
    except (OSError, ValueError, http.client.HTTPException) as error:
        return {**found, **_fail(error)}
    finally:
        connection.close()


def send_act_over_mcp(probe: dict[str, Any]) -> dict[str, Any]:
    """Start the gateway's MCP door, and send an act through it."""
    messages = [
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2024-11-05",
                "capabilities": {},
                "clientInfo": {"name": "aver-smoke", "version": "1"},
            },
        },
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "act", "arguments": probe["act"]}},
    ]
    try:
        server = subprocess.Popen(
            probe["argv"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
    except OSError as error:
        return {**_fail(error), "response": None}
    signal.signal(signal.SIGALRM, lambda *_: server.kill())
    signal.alarm(int(MCP_SECONDS))
    try:
        assert server.stdin is not None
        assert server.stdout is not None
        assert server.stderr is not None
        for message in messages:
            server.stdin.write(json.dumps(message) + "\n")
        server.stdin.flush()
        for line in server.stdout:
            answer = json.loads(line)
            if answer.get("id") == 2:
                body = answer.get("result", {}).get("structuredContent")
                is_answer = isinstance(body, dict) and body.get("status") in ("OK", "DENY")
                return {"ok": is_answer, "response": answer}
        words = server.stderr.read().strip().splitlines()
        return {"ok": False, "error": (words or ["it ended without an answer"])[-1][:SHOWN_MAX], "response": None}
    except (OSError, ValueError, AttributeError) as error:
        return {**_fail(error), "response": None}
    finally:
        signal.alarm(0)
        server.kill()
        server.wait()


def list_namespaces(probe: dict[str, Any]) -> dict[str, Any]:
    """Say in which namespaces this process is, and which network interfaces it has."""
    names = ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")
    found = {}
    for name in names:
        with suppress(OSError):
            found[name] = os.stat(f"/proc/self/ns/{name}").st_ino
    return {"ok": True, "namespaces": found, "interfaces": sorted(name for _, name in socket.if_nameindex())}


def list_mounts(probe: dict[str, Any]) -> dict[str, Any]:
    """List the mounts: where they are, which device, whether they can be written to."""
    found = []
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            words = line.split()
            rest = words[words.index("-") + 1 :]
            # Spaces and such are octal numbers in this file.
            point = words[4].encode("latin-1", "replace").decode("unicode_escape", "replace")
            found.append(
                {
                    "point": point,
                    "device": words[2],
                    "root": words[3],
                    "type": rest[0],
                    "writable": "rw" in words[5].split(",") and "rw" in rest[2].split(","),
                }
            )
    return {"ok": True, "mounts": found}


def list_sockets(probe: dict[str, Any]) -> dict[str, Any]:
    """List the Unix sockets below directories that somebody listens on."""
    found: list[str] = []
    count = 0
    for directory in probe["paths"]:
        for path in walk_special(directory):
            if path is None:
                count += 1
                if count > ENTRIES_MAX:
                    return {"ok": False, "error": f"more than {ENTRIES_MAX} entries", "sockets": sorted(found)}
            else:
                with suppress(OSError):  # It may have been removed meanwhile.
                    if stat.S_ISSOCK(os.lstat(path).st_mode) and connect_unix({"path": path})["ok"]:
                        found.append(path)
    return {"ok": True, "sockets": sorted(set(found))}


def walk_special(directory: str) -> Iterator[str | None]:
    """Yield the entries below a directory that are neither files nor directories nor links, and None for all others."""
    waiting = [directory]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    yield None
                    if entry.is_symlink() or entry.is_file():
                        continue
                    if entry.is_dir():
                        waiting.append(entry.path)
                    else:
                        yield entry.path
        except OSError:
            continue


PROBES = {
    "read": read_path,
    "write": write_path,
    "exec": start_program,
    "exec_copy": start_copy,
    "exec_memory": start_in_memory,
    "internet": reach_internet,
    "post": post_http,
    "unix": connect_unix,
    "vsock": connect_vsock,
    "act": send_act,
    "mcp_act": send_act_over_mcp,
    "namespaces": list_namespaces,
    "mounts": list_mounts,
    "sockets": list_sockets,
}


def make_probes(probes: list[dict[str, Any]]) -> dict[str, Any]:
    """Make each probe, and return the answers by their ids."""
    found = {}
    for probe in probes:
        try:
            found[probe["id"]] = PROBES[probe["kind"]](probe)
        except Exception as error:  # noqa: BLE001 - one probe must not hide the others
            found[probe["id"]] = {"ok": None, "error": f"{type(error).__name__}: {error}"[:SHOWN_MAX]}
    return found


def _fail(error: BaseException) -> dict[str, Any]:
    number = getattr(error, "errno", None)
    name = errno.errorcode.get(number, "") if isinstance(number, int) else ""
    return {"ok": False, "error": name or type(error).__name__, "details": str(error)[:SHOWN_MAX]}


def main(path: str) -> int:
    with open(path, encoding="ascii") as file:
        plan = json.load(file)
    if "exec" in plan:
        try:
            limit_programs(plan["exec"])
        except Limitless as error:
            os.write(2, f"aver: programs cannot be limited here: {error}\n".encode())
            return 126
    if "probes" in plan:
        sys.stdout.write(json.dumps(make_probes(plan["probes"])))
        return 0
    command = plan["command"]
    try:
        os.execv(command[0], command)
    except OSError as error:
        os.write(2, f"aver: {command[0]} cannot be started: {error.strerror}\n".encode(errors="replace"))
        return 127 if error.errno == errno.ENOENT else 126


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

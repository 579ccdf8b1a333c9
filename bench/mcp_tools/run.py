"""The classes of tools, measured on the lists of public MCP servers.

    make bench-tools                              all servers; npm brings those that are not there yet
    python bench/mcp_tools/run.py --server git    one server
    python bench/mcp_tools/run.py --explain       also each tool that is not known for what it is

Each server is started as its package has it, and asked for its tools. `servers.json` has the package with its version,
and for each tool a label, by the name and the description that the server gives:

    read      a call only returns information. A file of its own, in which a server keeps its answer, makes no effect
    effect    a call changes something: data, a page, a process, the state that later calls depend on

No effect may be taken for a read: it would pass without a question. A read that is not known as one is asked about.
Nobody has trusted the servers, so what they say about themselves counts only where it makes a tool worse. The last
column shows how many reads are known if the user trusts them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from aver.gate.origins.tool_class import classify_tool
from support.clients.npm_clients import installed
from support.real_home import hide_real_home

LABELS = Path(__file__).with_name("servers.json")
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
READS_TARGET = 0.85


@dataclass
class Tally:
    """One server's tools."""

    server: str
    tools: int = 0
    reads: int = 0
    known: int = 0
    known_if_trusted: int = 0
    mistaken: list[str] = field(default_factory=list)
    """Effects that are taken for reads."""
    missed: list[str] = field(default_factory=list)
    """Reads that are taken for something else."""

    def count(self, tool: Mapping[str, Any], label: str) -> None:
        found, trusted = (_classify(tool, self.server, is_trusted=is_trusted) for is_trusted in (False, True))
        self.tools += 1
        if label == "effect":
            self.mistaken += [tool["name"]] if found == "read" else []
            return
        self.reads += 1
        self.known += found == "read"
        self.known_if_trusted += trusted == "read"
        self.missed += [] if found == "read" else [f"{tool['name']} ({found})"]


def _classify(tool: Mapping[str, Any], server: str, *, is_trusted: bool) -> str:
    return classify_tool(
        tool["name"],
        tool.get("description", ""),
        tool.get("inputSchema"),
        tool.get("annotations"),
        server=server,
        is_trusted=is_trusted,
    )


def list_tools(entry: Mapping[str, Any], place: Path) -> list[dict[str, Any]]:
    """Start a server, and return the definitions of its tools."""
    program = installed(entry["package"]) / entry["command"]
    words = [str(program), *(word.format(place=place) for word in entry["arguments"])]
    given = {name: value.format(place=place) for name, value in entry["environment"].items()}
    environment = {"PATH": os.environ["PATH"], "HOME": str(place), **given}
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, cwd=place
    ) as process:
        try:
            return list(_ask_for_tools(process))
        finally:
            process.kill()


def _ask_for_tools(process: subprocess.Popen[bytes]) -> Iterator[dict[str, Any]]:
    _request(process, 1, "initialize", HELLO)
    _send(process, {"method": "notifications/initialized"})
    number, cursor = 2, None
    while True:
        result = _request(process, number, "tools/list", {} if cursor is None else {"cursor": cursor})
        yield from result["tools"]
        number, cursor = number + 1, result.get("nextCursor")
        if cursor is None:
            return


def _request(process: subprocess.Popen[bytes], number: int, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    _send(process, {"id": number, "method": method, "params": params})
    assert process.stdout is not None
    for line in process.stdout:
        if not line.lstrip().startswith(b"{"):
            continue  # Some servers write notes to their output.
        message = json.loads(line)
        if message.get("id") == number and "method" not in message:
            return dict(message["result"])
    raise SystemExit(f"a server ended before it answered {method}")


def _send(process: subprocess.Popen[bytes], message: Mapping[str, Any]) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    process.stdin.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--server", action="append", help="look at this server alone")
    parser.add_argument("--explain", action="store_true", help="print each tool that is not known for what it is")
    given = parser.parse_args()
    _homes = hide_real_home()  # Only npm gets the user's own.
    rows: list[Tally] = []
    for entry in json.loads(LABELS.read_text()):
        if given.server and entry["server"] not in given.server:
            continue
        with tempfile.TemporaryDirectory() as name:
            tools = {tool["name"]: tool for tool in list_tools(entry, Path(name).resolve())}
        if tools.keys() != entry["tools"].keys():
            raise SystemExit(f"{entry['package']} has other tools: {sorted(tools.keys() ^ entry['tools'].keys())}")
        rows.append(Tally(entry["server"]))
        for tool, label in entry["tools"].items():
            rows[-1].count(tools[tool], label)
    print_table(rows)
    for row in rows if given.explain else ():
        print(f"{row.server}: mistaken {row.mistaken}; missed {row.missed}")
    raise SystemExit(0 if _is_good(rows) else 1)


def _is_good(rows: list[Tally]) -> bool:
    known, reads = sum(row.known for row in rows), sum(row.reads for row in rows)
    return not any(row.mistaken for row in rows) and known >= READS_TARGET * reads


def print_table(rows: list[Tally]) -> None:
    print("| server | tools | effects taken for reads | reads known | reads known if trusted |")
    print("|---|---|---|---|---|")
    whole = Tally("all")
    for row in (*rows, whole):
        print(
            f"| {row.server} | {row.tools} | {len(row.mistaken)} | {row.known}/{row.reads} "
            f"| {row.known_if_trusted}/{row.reads} |"
        )
        for name in ("tools", "reads", "known", "known_if_trusted", "mistaken"):
            setattr(whole, name, getattr(whole, name) + getattr(row, name))


if __name__ == "__main__":
    main()

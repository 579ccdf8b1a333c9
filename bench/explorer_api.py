"""The Explorer's server: reading 10,000 records over its API, and what it costs while nothing happens.

    python bench/explorer_api.py

The floor of a read is `ledger.read` and `orjson.dumps` of the same records, in this process. The server runs in a
process of its own, as people run it.
"""

from __future__ import annotations

import http.client
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import orjson
from measuring import Line, in_turns
from sample import sample

import aver

COMMAND = Path(sys.executable).with_name("aver")
CHAIN = "bench.chain"
RECORDS = 10_000
IDLE_SECONDS = 20


class Served:
    """`aver serve` on a ledger, and a client with one connection."""

    def __init__(self, path: Path, home: Path) -> None:
        command = [COMMAND, "serve", "--port", "0", "--ledger", path]
        environment = {**os.environ, "AVER_HOME": str(home)}
        self._child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        assert self._child.stdout is not None
        printed = ""
        while (found := re.search(r"http://localhost:(\d+)/#token=([\w-]+)\S*", printed)) is None:
            printed = self._child.stdout.readline()
            if not printed:
                raise SystemExit(f"aver serve ended with {self._child.wait()} before it printed its link")
        self.link, self._port, self._token = found[0], int(found[1]), found[2]
        self._connection = self._connect()

    def _connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("localhost", self._port, timeout=60)

    def ask(self, path: str, connection: http.client.HTTPConnection | None = None) -> http.client.HTTPResponse:
        used = connection or self._connection
        used.request("GET", f"/api/v1/{path}", headers={"Authorization": f"Bearer {self._token}"})
        return used.getresponse()

    def read_all(self) -> float:
        """Seconds to read the whole chain."""
        started = time.perf_counter()
        lines, start = 0, 0
        while start < RECORDS:
            answer = self.ask(f"chains/{CHAIN}/records?start={start}")
            lines += answer.read().count(b"\n")
            start = int(answer.getheader("Aver-Next") or RECORDS)
        if lines != RECORDS:
            raise SystemExit(f"the API gave {lines} of {RECORDS} records")
        return time.perf_counter() - started

    def wait_for_index(self) -> None:
        """Wait until everything is indexed. Ends the run if the index stands still for a minute."""
        known, since = None, time.monotonic()
        while not (index := orjson.loads(self.ask("about").read())["index"])["complete"]:
            if index != known:
                known, since = index, time.monotonic()
            if time.monotonic() - since > 60:
                raise SystemExit(f"the index stands still: {index}")
            time.sleep(0.5)

    def idle_share(self) -> float:
        """The share of a core that the server takes while one page listens and nothing happens."""
        stream = self.ask("live", self._connect())
        stream.readline()
        time.sleep(3)
        before = self._cpu()
        time.sleep(IDLE_SECONDS)
        return (self._cpu() - before) / IDLE_SECONDS

    def _cpu(self) -> float:
        fields = Path(f"/proc/{self._child.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        self._child.terminate()
        self._child.communicate()


def bench_explorer_api(directory: Path, rounds: int) -> list[Line]:
    """The lines of the table."""
    home, path = directory / "api-home", directory / "api.db"
    with aver.open_ledger(path, home=home) as ledger:
        for _ in range(RECORDS // 500):
            ledger.append_many(CHAIN, [sample() for _ in range(500)])
        served = Served(path, home)
        try:
            served.wait_for_index()  # It would take its share of the processor meanwhile.
            floor, api = in_turns(rounds, lambda: _read_bare(ledger), served.read_all)
            idle = served.idle_share()
        finally:
            served.close()
    return [
        Line(
            f"API: {RECORDS:,} records / ledger.read + orjson.dumps",
            f"{floor * 1e3:.0f} ms",
            f"{api * 1e3:.0f} ms",
            "",
            f"{api / floor:.2f} x floor",
            "≤ 2 x",
        ),
        Line("API: idle with one live page, share of a core", "", f"{idle * 100:.2f} %", "", "", "≤ 1 %"),
    ]


def _read_bare(ledger: aver.Ledger) -> float:
    started = time.perf_counter()
    for record in ledger.read(CHAIN):
        orjson.dumps(
            {
                "hash": record.hash,
                "signature": record.signature,
                "signature_pq": record.signature_pq,
                "signed_at": record.signed_at,
                "signed_by": record.signed_by,
                "canonical": record.canonical.decode("utf-8"),
            }
        )
    return time.perf_counter() - started


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        for line in bench_explorer_api(Path(made), 5):
            print(f"{line.work:<56} {line.floor:>10} {line.aver:>10} {line.ratio:>14} {line.target:>8}")

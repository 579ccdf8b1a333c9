"""The derived index: what catching up costs, as ratios within one run on one machine.

    python bench/search.py            20,000 records of sessions of Claude Code
    python bench/search.py --quick    4,000

A record tells of a command whose output is 200 to 5,000 characters of this repository's documentation: words as varied
as those that an agent reads. The floor is the same texts in a bare FTS5 table, inserted in transactions of the same
size. Aver reads the records from the ledger, parses them, counts the sessions, and stores places and figures besides.
Its own table keeps no content. The second line compares it with a bare table of that kind.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from ingest import OUTPUT, SESSION, lines
from measuring import Line, in_turns, micro, table

import aver
from aver.agents.claude_code.transcripts import ADAPTER
from aver.explorer.index import LedgerIndex
from aver.explorer.index.catch_up import SLICE
from aver.explorer.index.database import CACHE_KIB, FTS_COLUMNS
from aver.explorer.index.texts import read_texts
from aver.ingest.contract import TranscriptSource
from aver.ingest.seal import TranscriptFollower
from aver.ledger import Ledger
from aver.sessions.step import read_step


def fill(ledger: Ledger, directory: Path, records: int) -> int:
    """Seal sessions of 1,000 records each, until there are so many. Returns how many there are."""
    words = "".join(path.read_text("utf-8") for path in sorted((Path(__file__).parents[1] / "docs").rglob("*.md")))
    chance = random.Random(1)
    sealed = 0
    while sealed < records:
        session = f"{SESSION[:-5]}{sealed:05}"
        path = directory / f"{session}.jsonl"
        with path.open("w", encoding="utf-8") as file:
            for line in lines(0, 2_000):
                at = chance.randrange(len(words) - 5_000)
                output = words[at : at + chance.randrange(200, 5_000)]
                file.write(line.replace(json.dumps(OUTPUT), json.dumps(output)).replace(SESSION, session) + "\n")
        TranscriptFollower(ledger, ADAPTER, TranscriptSource(tool="claude-code", session=session, path=path)).step()
        sealed = sum(head.count for head in ledger.heads())
    return sealed


def insert_bare(path: Path, columns: str, texts: list[tuple[int, str, str]]) -> None:
    """The floor: the same texts, in transactions of the same size."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA page_size = 8192")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(f"PRAGMA cache_size = {-CACHE_KIB}")
    connection.execute(f"CREATE VIRTUAL TABLE texts USING fts5({columns})")
    for at in range(0, len(texts), SLICE):
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO texts (rowid, text, paths) VALUES (?, ?, ?)", texts[at : at + SLICE])
        connection.execute("COMMIT")
    connection.close()


def bench_search(directory: Path, *, quick: bool) -> list[Line]:
    with aver.open_ledger(directory / "searched.db", home=directory / "home") as ledger:
        count = fill(ledger, directory, 4_000 if quick else 20_000)
        steps = (read_step(record) for chain in ledger.chains() for record in ledger.read(chain))
        found = [read_texts(step, ledger.blob) for step in steps]
        texts = [(number, each.text, each.paths) for number, each in enumerate(found)]
        size = sum(len(text) for _, text, _ in texts) // len(texts)

        def floor(columns: str) -> Callable[[], float]:
            def once() -> float:
                path = directory / "bare.db"
                for suffix in ("", "-wal", "-shm"):
                    Path(f"{path}{suffix}").unlink(missing_ok=True)
                started = time.perf_counter()
                insert_bare(path, columns, texts)
                return (time.perf_counter() - started) / count

            return once

        def ours() -> float:
            with LedgerIndex.temporary() as index:
                started = time.perf_counter()
                assert index.catch_up(ledger).is_complete
                return (time.perf_counter() - started) / count

        bare, lean, own = in_turns(3 if quick else 5, floor("text, paths"), floor(FTS_COLUMNS), ours)
    work = f"index: catch up with {count:,} records of {size:,} characters"
    return [
        Line(work, micro(bare), micro(own), "-", f"{own / bare:.2f} x floor", "≤ 2 x"),
        Line("… to a bare table without content", micro(lean), micro(own), "-", f"{own / lean:.2f} x", ""),
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix="aver-bench-"))
    try:
        print(table(bench_search(place, quick=given.quick)))
    finally:
        shutil.rmtree(place)

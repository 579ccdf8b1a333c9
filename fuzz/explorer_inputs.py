"""Targets of search and of reports: queries, cursors, and the HTML file of a report."""

from __future__ import annotations

import json
import sqlite3

import aver
from aver.explorer.index.cursor import read_cursor, write_cursor
from aver.explorer.index.database import FTS_COLUMNS
from aver.explorer.index.query import parse_query
from aver.sessions.report import make_report
from aver.sessions.report_file import split_report
from aver.sessions.sessions import find_sessions
from fuzz.oracles import Defect, call_parser, call_verify
from fuzz.parsers import text_of
from fuzz.target import Target


class QueryTarget(Target):
    """Queries of a search, and cursors: no text may become syntax of SQLite."""

    name = "query"
    share = 6

    def prepare(self) -> None:
        self._connection = sqlite3.connect(":memory:")
        self._connection.execute(f"CREATE VIRTUAL TABLE texts USING fts5({FTS_COLUMNS})")
        self._connection.execute("INSERT INTO texts (rowid, text, paths) VALUES (1, 'half up', 'src/app.py')")

    def seeds(self) -> list[bytes]:
        return [
            b'"half up" roun* path:src/app.py tool:Bash kind:gate outcome:denied since:2026-05-31',
            b'NEAR(a b) OR text : "x" ^y {paths}: -z',
            write_cursor(["search"], [7]).encode(),
        ]

    def run(self, data: bytes) -> None:
        text = text_of(data)
        query = call_parser(lambda: parse_query(text))
        if query is not None:
            json.dumps(query.to_dict())
            expression = query.to_fts()
            if expression is not None:
                try:
                    self._connection.execute("SELECT rowid FROM texts WHERE texts MATCH ?", (expression,)).fetchall()
                except sqlite3.Error as error:
                    raise Defect(f"{text!r} became {expression!r}: {error}") from error
        call_parser(lambda: read_cursor(text, ["search"], (int,)))


class ReportTarget(Target):
    """The file of a report. Only the very bytes that were signed may verify."""

    name = "report"
    share = 4

    def prepare(self) -> None:
        self._honest = self.things.full_ledger
        path = self.things.new_path("honest-report.html")
        with aver.open_ledger(home=self._honest.home) as ledger:
            make_report(ledger, find_sessions(ledger)[:1], path, force=True)
        self._report = path.read_bytes()

    def seeds(self) -> list[bytes]:
        return [self._report]

    def run(self, data: bytes) -> None:
        call_parser(lambda: split_report(data))
        path = self.things.new_path("report.html")
        path.write_bytes(data)
        home = self.things.new_directory("auditor")
        verdict = call_verify(lambda: aver.verify(path, keys=self._honest.keys, home=home))
        if verdict is not None and verdict.status in ("verified", "qualified") and data != self._report:
            raise Defect("a report with other bytes than those that were signed does not fail")


TARGETS: tuple[type[Target], ...] = (QueryTarget, ReportTarget)

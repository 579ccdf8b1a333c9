"""The answers of the index: searches, lists of sessions, figures over time. All of them are claims of the index.

Each answer has the place where its next page begins, or None, and says how much of the ledger is indexed.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal

from aver.clock import parse_moment
from aver.errors import BadInput
from aver.explorer.index.catch_up import HELD, NUMBER_BITS, in_scope
from aver.explorer.index.cursor import read_cursor, write_cursor
from aver.explorer.index.database import Scope
from aver.explorer.index.progress import IndexProgress
from aver.explorer.index.query import SearchQuery
from aver.fast_dataclass import dataclass
from aver.sessions.figures import HOUR_LENGTH

LIMIT_MAX = 500
"""Most entries of one page."""

SortKey = Literal["latest", "started", "tool", "title", "actions", "edits", "tokens", "cost", "denials", "risk"]

SORT_COLUMNS: Mapping[str, type | tuple[type, ...]] = {
    "latest": str,
    "started": str,
    "tool": str,
    "title": str,
    "actions": int,
    "edits": int,
    "tokens": int,
    "cost": (int, float),
    "denials": int,
    "risk": (int, float),
}
"""The columns by which sessions can be sorted, with the types of their values."""

BUCKETS = {"hour": HOUR_LENGTH, "day": 10, "month": 7}
"""How long a bucket of time can be, with the characters of a time that name it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A place in the ledger where the search may have found something. Read and verify the record there."""

    chain: str
    sequence: int
    at: str | None
    """To the second, as the index remembers it."""
    tool: str
    call: str
    kind: str
    outcome: str

    def to_dict(self) -> dict[str, Any]:
        return {
            "chain": self.chain,
            "sequence": self.sequence,
            "at": self.at,
            "tool": self.tool,
            "call": self.call,
            "kind": self.kind,
            "outcome": self.outcome,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPage:
    """Places that a search found, the newest first."""

    query: SearchQuery
    hits: tuple[Hit, ...]
    next: str | None
    indexed: IndexProgress

    def to_dict(self) -> dict[str, Any]:
        return {
            "query": self.query.to_dict(),
            "hits": [hit.to_dict() for hit in self.hits],
            "next": self.next,
            "indexed": self.indexed.to_dict(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionsPage:
    """Sessions with the figures of `aver sessions`, and `highest_risk`, `workspace`, `latest`, `counted`.

    `counted` is the number of records by which the figures were counted.
    """

    sessions: tuple[dict[str, Any], ...]
    found: int
    next: str | None
    indexed: IndexProgress

    def to_dict(self) -> dict[str, Any]:
        return {
            "sessions": list(self.sessions),
            "found": self.found,
            "next": self.next,
            "indexed": self.indexed.to_dict(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class CountsPage:
    """Figures over time, the newest first. `undated` has those of records that name no time.

    Each entry: `start` (such as `2026-05-31`), the figures of sessions (`prompts actions edits failures denials
    tokens_in tokens_out cost_usd`), `records`, `outcomes` (by kind and outcome, the number of records), and `held`: how
    many deeds were held back, each once. The page's `held` has the places of the newest of them.
    """

    by: str
    counts: tuple[dict[str, Any], ...]
    undated: dict[str, Any] | None
    held: tuple[dict[str, Any], ...]
    next: str | None
    indexed: IndexProgress

    def to_dict(self) -> dict[str, Any]:
        return {
            "by": self.by,
            "counts": list(self.counts),
            "undated": self.undated,
            "held": list(self.held),
            "next": self.next,
            "indexed": self.indexed.to_dict(),
        }


def find_hits(
    connection: sqlite3.Connection, scope: Scope, query: SearchQuery, *, cursor: str | None, limit: int
) -> tuple[tuple[Hit, ...], str | None]:
    """The newest hits before a cursor, and the cursor after them."""
    question = ["search", scope.generation, query.to_dict()]
    older_than = read_cursor(cursor, question, (int,))[0] if cursor else 2**63 - 1
    tables, conditions, values = _match_query(query)
    rows = connection.execute(
        in_scope(
            f"SELECT record, name, sequence, tool, call, kind, outcome FROM {tables} JOIN {{chains}} USING (chain)"
            f" WHERE {conditions} AND record < ? ORDER BY record DESC LIMIT ?",
            scope,
        ),
        (*values, older_than, limit + 1),
    ).fetchall()
    hits = tuple(
        Hit(chain=name, sequence=sequence, at=_row_time(record), tool=tool, call=call, kind=kind, outcome=outcome)
        for record, name, sequence, tool, call, kind, outcome in rows[:limit]
    )
    return hits, write_cursor(question, [rows[limit - 1][0]]) if len(rows) > limit else None


def _match_query(query: SearchQuery) -> tuple[str, str, list[Any]]:
    """Tables, conditions and values of a query. Its words are values, never SQL and never syntax of FTS5."""
    conditions, values = [], list[Any]()
    tables = "{records}"
    expression = query.to_fts()
    if expression is not None:
        # The full text first, by its row numbers; CROSS keeps SQLite from turning the order round.
        tables = "{texts} CROSS JOIN {records} ON record = {texts}.rowid"
        conditions.append("{texts} MATCH ?")
        values.append(expression)
    if query.tools:
        conditions.append(_any_of("lower(tool) = ? OR lower(call) = ? OR instr(lower(calls), ?)", query.tools))
        values += [value for tool in query.tools for value in (tool, tool, f"\n{tool}\n")]
    if query.kinds:
        # A kind by its whole name, or by the word before its first dot. Not LIKE, which has wildcards.
        conditions.append(_any_of("kind = ? OR substr(kind, 1, length(?) + 1) = ? || '.'", query.kinds))
        values += [value for kind in query.kinds for value in (kind, kind, kind)]
    if query.outcomes:
        conditions.append(_any_of("lower(outcome) = ?", query.outcomes))
        values += query.outcomes
    if query.since is not None:
        conditions.append("record >= ?")
        values.append(max(int(datetime.fromisoformat(query.since).timestamp()), 0) << NUMBER_BITS)
    return tables, " AND ".join(conditions) or "1", values


def _any_of(condition: str, values: tuple[str, ...]) -> str:
    return "(" + " OR ".join([condition] * len(values)) + ")"


def _row_time(record: int) -> str | None:
    seconds = record >> NUMBER_BITS
    return datetime.fromtimestamp(seconds, UTC).isoformat() if seconds else None


def list_sessions(
    connection: sqlite3.Connection,
    scope: Scope,
    *,
    tool: str | None,
    workspace: str | None,
    since: str | None,
    until: str | None,
    query: SearchQuery | None,
    sort: str,
    descending: bool,
    cursor: str | None,
    limit: int,
) -> tuple[tuple[dict[str, Any], ...], int, str | None]:
    """A page of sessions, how many there are in all, and the cursor after it."""
    if sort not in SORT_COLUMNS:
        raise BadInput(f"sessions are not sorted by {sort[:40]!r}", advice=f"sort by {', '.join(SORT_COLUMNS)}")
    since, until = since and parse_moment(since), until and parse_moment(until)
    filters = [tool, workspace, since, until, None if query is None else query.to_dict()]
    question = ["sessions", scope.generation, sort, descending, *filters]
    conditions, values = ["1"], list[Any]()
    for condition, value in (
        ("tool = ?", tool),
        ("workspace = ?", workspace),
        ("latest >= ?", since),
        ("latest < ?", until),
    ):
        if value is not None:
            conditions.append(condition)
            values.append(value)
    if query is not None:
        tables, matching, found = _match_query(query)
        conditions.append(
            f"session IN (SELECT hit.session FROM {tables} JOIN {{chains}} AS hit USING (chain) WHERE {matching})"
        )
        values += found
    where = " AND ".join(conditions)
    [total] = connection.execute(in_scope(f"SELECT count(*) FROM {{sessions}} WHERE {where}", scope), values).fetchone()
    direction, comparison = ("DESC", "<") if descending else ("ASC", ">")
    if cursor:
        where += f" AND ({sort}, session) {comparison} (?, ?)"
        values += read_cursor(cursor, question, (SORT_COLUMNS[sort], int))
    rows = connection.execute(
        in_scope(
            f"SELECT {sort}, session, name, latest, chains, figures FROM {{sessions}} WHERE {where}"
            f" ORDER BY {sort} {direction}, session {direction} LIMIT ?",
            scope,
        ),
        (*values, limit + 1),
    ).fetchall()
    sessions = tuple(
        {
            **json.loads(figures),
            "name": name,
            "latest": latest,
            "counted": sum(json.loads(chains).values()),
        }
        for _, _, name, latest, chains, figures in rows[:limit]
    )
    following = write_cursor(question, list(rows[limit - 1][:2])) if len(rows) > limit else None
    return sessions, total, following


_FIGURES = ("prompts", "actions", "edits", "failures", "denials", "tokens_in", "tokens_out", "cost_usd")


def count_over_time(
    connection: sqlite3.Connection,
    scope: Scope,
    *,
    by: str,
    since: str | None,
    until: str | None,
    cursor: str | None,
    limit: int,
) -> tuple[tuple[dict[str, Any], ...], dict[str, Any] | None, str | None]:
    """A page of figures by hour, day or month, those without a time, and the cursor after the page."""
    if by not in BUCKETS:
        raise BadInput(f"figures are not counted by {by[:40]!r}", advice=f"count by {', '.join(BUCKETS)}")
    length = BUCKETS[by]
    first = "" if since is None else parse_moment(since)[:length]
    end = "~" if until is None else parse_moment(until)[:HOUR_LENGTH]
    question = ["counts", scope.generation, by, first, end]
    older_than = read_cursor(cursor, question, (str,))[0] if cursor else "~"
    starts = connection.execute(
        in_scope(
            "SELECT DISTINCT substr(hour, 1, ?) AS start FROM (SELECT hour FROM {hours} UNION SELECT hour FROM"
            " {activity}) WHERE hour <> '' AND start >= ? AND hour < ? AND start < ? ORDER BY start DESC LIMIT ?",
            scope,
        ),
        (length, first, end, older_than, limit + 1),
    ).fetchall()
    counts = tuple(_count_bucket(connection, scope, start, end) for (start,) in starts[:limit])
    undated = _count_bucket(connection, scope, "", "~") if not cursor else None
    following = write_cursor(question, [starts[limit - 1][0]]) if len(starts) > limit else None
    return counts, undated if undated and undated["records"] else None, following


def _count_bucket(connection: sqlite3.Connection, scope: Scope, start: str, end: str) -> dict[str, Any]:
    """The figures of the hours that begin with `start` and lie before `end`; of none, for an empty start."""
    within = "hour >= ? AND hour < ? AND hour < ?" if start else "hour = ? AND hour <> ? AND hour < ?"
    values = (start, f"{start}~", end)
    sums = ", ".join(f"coalesce(sum({name}), 0)" for name in _FIGURES)
    figures = connection.execute(in_scope(f"SELECT {sums} FROM {{hours}} WHERE {within}", scope), values).fetchone()
    outcomes: dict[str, dict[str, int]] = {}
    for kind, outcome, records in connection.execute(
        in_scope(f"SELECT kind, outcome, sum(records) FROM {{activity}} WHERE {within} GROUP BY kind, outcome", scope),
        values,
    ):
        outcomes.setdefault(kind, {})[outcome] = records
    counted = in_scope(f"SELECT count(*) FROM {{deeds}} WHERE {HELD} AND {within}", scope)
    [held] = connection.execute(counted, values).fetchone()
    return {
        "start": start,
        **dict(zip(_FIGURES, figures, strict=True)),
        "records": sum(sum(each.values()) for each in outcomes.values()),
        "outcomes": outcomes,
        "held": held,
    }


HELD_LISTED = 8


def find_held(connection: sqlite3.Connection, scope: Scope) -> tuple[dict[str, Any], ...]:
    """The places of the newest records about deeds that were held back, one of each deed."""
    sql = "SELECT name, sequence FROM {deeds} JOIN {records} USING (record) JOIN {chains} USING (chain)"
    rows = connection.execute(in_scope(f"{sql} WHERE {HELD} ORDER BY record DESC LIMIT {HELD_LISTED}", scope))
    return tuple({"chain": name, "sequence": sequence} for name, sequence in rows)

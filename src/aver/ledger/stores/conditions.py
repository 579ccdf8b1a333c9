"""Which records are searched for, and how both stores say so in SQL."""

from __future__ import annotations

from aver.fast_dataclass import dataclass

__all__ = ["Search", "sql_conditions"]

_KIND_BY_TYPE = "CASE records.type WHEN 'tool' THEN 'call' WHEN 'chat' THEN 'turn' ELSE 'record' END"
"""Records of other software name no kind: see `capsule.block.kind_of`."""


@dataclass(frozen=True, slots=True)
class Search:
    """Which records are wanted; None where anything will do. Times are compared with the time of sealing."""

    chain: str | None = None
    type: str | None = None
    kind: str | None = None
    session: str | None = None
    since: str | None = None
    until: str | None = None
    start: int | None = None
    """Records from this place of their chain on, and up to `stop`."""
    stop: int | None = None


def sql_conditions(search: Search) -> list[tuple[str, str | int]]:
    """What a search asks for, each with `?` for its value, over the tables `records` and `chains`."""
    possible = [
        ("chains.name = ?", search.chain),
        ("records.type = ?", search.type),
        (f"coalesce(records.kind, {_KIND_BY_TYPE}) = ?", search.kind),
        ("records.session = ?", search.session),
        ("coalesce(records.at, records.signed_at) >= ?", search.since),
        ("coalesce(records.at, records.signed_at) < ?", search.until),
        ("records.sequence >= ?", search.start),
        ("records.sequence < ?", search.stop),
    ]
    return [(condition, value) for condition, value in possible if value is not None]

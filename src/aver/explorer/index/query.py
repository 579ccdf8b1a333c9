"""The language of a search.

    permission denied              records with both words, anywhere
    "permission denied"            these words side by side
    perm*                          words that begin so; also "permission den"*
    tool:Bash  tool:claude-code    a tool that was called, or the coding agent
    kind:call  kind:gate           the kind of a record; kind:gate is every kind that begins with `gate.`
    outcome:failure                the outcome; `denied` is another word for `blocked`
    path:src/app.py  path:src/*    a path that the record names
    since:2026-05-31  since:7d     at or after this time

All words and conditions must hold; of several values of one condition, such as `kind:call kind:turn`, one. Upper and
lower case, and marks upon letters, make no difference. Punctuation separates words: `read_step` means the words `read`
and `step` side by side. A word of punctuation alone is ignored. A name before a colon that is none of these is text, so
`https://example.com` can be searched as it stands.

`parse_query` never lets a part of the text reach SQLite as syntax: each word becomes a quoted string of FTS5.
"""

from __future__ import annotations

from typing import Any

from aver.capsule.canonical import has_surrogate
from aver.clock import parse_moment
from aver.errors import BadInput
from aver.fast_dataclass import dataclass
from aver.lazy_pattern import lazy_pattern

QUERY_MAX = 1000
"""Longest query, in characters. A person types far less, and each word costs a look into the index."""

TERMS_MAX = 32
"""The most words, phrases and conditions of a query, for the same reason."""

OUTCOME_WORDS = {"denied": "blocked", "refused": "blocked", "failed": "failure", "ok": "success", "done": "success"}
"""Words that people use for an outcome, and the outcome that records have."""

CONDITIONS = ("tool", "kind", "outcome", "path", "since")

_TERM = lazy_pattern(
    r"""(?:(?P<name>tool|kind|outcome|path|since):)?    # a condition
        (?:"(?P<phrase>[^"]*)(?:"|\Z)|(?P<word>[^\s"]+))  # a phrase, which may be left open, or a word
        (?P<star>\*)?""",
    0x40,  # re.VERBOSE; `re` itself is loaded at first use.
)
_HAS_WORD = lazy_pattern(r"[^\W_]")


@dataclass(frozen=True, slots=True)
class SearchTerm:
    """A word or phrase that must occur; with `is_prefix`, its last word may go on."""

    text: str
    is_prefix: bool = False

    def to_fts(self) -> str:
        """The term as a quoted string of FTS5. A quotation mark cannot occur in it."""
        return f'"{self.text}"{"*" if self.is_prefix else ""}'

    def __str__(self) -> str:
        shown = f'"{self.text}"' if " " in self.text else self.text
        return f"{shown}*" if self.is_prefix else shown


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuery:
    """A query that was read. Everything in it must hold for a hit."""

    terms: tuple[SearchTerm, ...] = ()
    paths: tuple[SearchTerm, ...] = ()
    tools: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    outcomes: tuple[str, ...] = ()
    since: str | None = None
    ignored: tuple[str, ...] = ()
    """Words that have nothing to search for, such as `->`."""

    def to_fts(self) -> str | None:
        """The expression for FTS5; None if the query has no words and no paths."""
        parts = [f"text : {term.to_fts()}" for term in self.terms]
        if self.paths:
            parts.append(f"paths : ({' OR '.join(term.to_fts() for term in self.paths)})")
        return " AND ".join(parts) or None

    def to_dict(self) -> dict[str, Any]:
        """How the query was understood, for its reader."""
        return {
            "words": [str(term) for term in self.terms],
            "path": [str(term) for term in self.paths],
            "tool": list(self.tools),
            "kind": list(self.kinds),
            "outcome": list(self.outcomes),
            "since": self.since,
            "ignored": list(self.ignored),
        }


def parse_query(text: str) -> SearchQuery:
    """Read a query. Raises `BadInput` for one that is empty, too long or names no time after `since:`."""
    if len(text) > QUERY_MAX:
        raise BadInput(f"a query has at most {QUERY_MAX} characters", advice="search for fewer words")
    if "\0" in text or has_surrogate(text):
        raise BadInput("a query is text, and this one has characters that no text has")
    words: dict[str, list[SearchTerm]] = {"": [], "path": []}
    values: dict[str, list[str]] = {name: [] for name in CONDITIONS}
    ignored: list[str] = []
    for number, match in enumerate(_TERM.finditer(text)):
        if number >= TERMS_MAX:
            raise BadInput(f"a query has at most {TERMS_MAX} words and conditions", advice="search for fewer words")
        name = match["name"] or ""
        value = match["phrase"] if match["phrase"] is not None else match["word"]
        is_prefix = match["star"] is not None or (match["word"] is not None and value.endswith("*"))
        value = " ".join(value.removesuffix("*").split()) if match["word"] is not None else " ".join(value.split())
        if name in words and _HAS_WORD.search(value):
            words[name].append(SearchTerm(value, is_prefix))
        elif name in words or not value:
            ignored.append(match[0])
        else:
            values[name].append(value)
    query = SearchQuery(
        terms=tuple(words[""]),
        paths=tuple(words["path"]),
        tools=tuple(value.lower() for value in values["tool"]),
        kinds=tuple(value.lower() for value in values["kind"]),
        outcomes=tuple(OUTCOME_WORDS.get(value.lower(), value.lower()) for value in values["outcome"]),
        since=max(map(parse_moment, values["since"]), default=None),
        ignored=tuple(ignored),
    )
    if query == SearchQuery(ignored=query.ignored):
        raise BadInput("the query has no word to search for", advice='try: aver search "permission denied" tool:Bash')
    return query

"""A few words around a hit, for the reader of a list. They are cut from the record itself: the index keeps no texts.

cut_excerpt(texts, parse_query("half up"))  ->  Excerpt("… make the totals round ", "half", " up, as the law …")
"""

from __future__ import annotations

import re
from typing import NamedTuple

from aver.explorer.index.query import SearchQuery, SearchTerm
from aver.explorer.index.texts import RecordTexts

AROUND = 60
"""Characters to each side of the hit: together they fill a line and a half of a terminal."""


class Excerpt(NamedTuple):
    """The text before the hit, the hit, and the text after it, on one line. `…` stands for more text."""

    before: str
    hit: str
    after: str

    def to_dict(self) -> dict[str, str]:
        return self._asdict()


def cut_excerpt(texts: RecordTexts, query: SearchQuery) -> Excerpt | None:
    """The words around the first word of a query, or else around its first path. None if they do not stand there.

    The index also ignores marks upon letters, such as accents, so a hit may have no excerpt.
    """
    for terms, text in ((query.terms, texts.text), (query.paths, texts.paths)):
        for term in terms[:1]:
            if (found := _find_term(term, text)) is not None:
                before, after = text[: found.start()], text[found.end() :]
                return Excerpt(
                    f"{'… ' if len(before) > AROUND else ''}{_on_one_line(before[-AROUND:])}",
                    _on_one_line(found[0]),
                    f"{_on_one_line(after[:AROUND])}{' …' if len(after) > AROUND else ''}",
                )
    return None


def _find_term(term: SearchTerm, text: str) -> re.Match[str] | None:
    """The first place of a term: its words side by side, with anything but letters and digits between them."""
    words = r"[\W_]+".join(re.escape(word) for word in re.findall(r"[^\W_]+", term.text))
    end = "" if term.is_prefix else r"(?![^\W_])"
    return re.search(rf"(?<![^\W_]){words}{end}", text, re.IGNORECASE)


def _on_one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text)

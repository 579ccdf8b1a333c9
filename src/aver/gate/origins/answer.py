"""The same questions about an answer: the text that an agent gives to the person who uses it.

An answer has no effect on others. It can mislead the person: a text that the agent read may have told it what to say.
So links, addresses and names in an answer are targets, too. Each must be named by the user, stand in a structured
field, or stand in a text that the user pointed at. What stands only in another text is a doubt.

Names are phrases of two or more words in upper case, such as `Harbour View Inn`. A word before or behind a name does
not hide it: `Visit Harbour View Inn` has that name, too. A name that no text has is the agent's own wording, and no
doubt.
"""

from __future__ import annotations

from aver.gate.origins.judgement import POINTED, CallOrigins
from aver.gate.origins.plain_text import TEXT_MAX, find_addresses, has_unclear_address, word_set
from aver.gate.origins.read_values import ReadRecord, ReadValues
from aver.gate.origins.user_words import UserWords
from aver.lazy_pattern import lazy_pattern

ANSWER_CLASS = "answer"

NAMES_MAX = 500
"""Names and addresses of one answer that are looked at. An answer with more is doubtful."""

PARTS_MAX = 10_000
"""Parts of names in one answer that are looked at. An answer with more is doubtful."""

NAME_WORDS_MAX = 12
"""Words of the longest name. In a longer row of words in upper case, all rows of so many are looked at."""

_NAME = lazy_pattern(r"\b[A-Z][\w'’-]*(?:\s+(?:of|the|de|la|du|and|&)\s+[A-Z][\w'’-]*|\s+[A-Z][\w'’-]*)+")

_EDGE_WORDS = word_set(
    "a an the of de la du and & or in at on to for with by from it its is are this that you your we i my our"
)
"""Words that no part of a name begins or ends with: `The Hotel` is none, and every text about hotels has it."""


def judge_answer(text: str, words: UserWords, read: ReadValues) -> CallOrigins:
    """Judge an answer by what the user said and what the session has read."""
    why: list[str] = []
    names = list(dict.fromkeys((*find_addresses(text), *_NAME.findall(text[:TEXT_MAX]))))
    rows = [name.split() for name in names]
    parts = sum(len(row) * min(len(row), NAME_WORDS_MAX) for row in rows)
    doubts = {"TARGET_UNKNOWN"} if len(names) > NAMES_MAX or len(text) > TEXT_MAX or parts > PARTS_MAX else set[str]()
    if has_unclear_address(text):
        doubts.add("TARGET_UNKNOWN")
        why.append("an address in it has characters that cannot be told apart")
    for row in rows[:NAMES_MAX] if parts <= PARTS_MAX else ():
        if found := _find_told(row, words, read):
            doubts.add("TARGET_FREE_TEXT")
            why.append(f"{found[:80]!r} comes from a text that somebody wrote")
    origins = {"free_text"} if "TARGET_FREE_TEXT" in doubts else {POINTED} if names else set()
    return CallOrigins(ANSWER_CLASS, words.is_given, frozenset(origins), frozenset(doubts), tuple(why[:20]))


def _find_told(parts: list[str], words: UserWords, read: ReadValues) -> str:
    """Return the longest part of a name that only texts have which the user did not point at; empty where none is.

    A part inside of one that the user named or pointed at, or that stands in a structured field, is known with it.
    """
    known: list[range] = []
    for size in range(min(len(parts), NAME_WORDS_MAX), min(2, len(parts)) - 1, -1):
        for start in range(len(parts) - size + 1):
            part, place = " ".join(parts[start : start + size]), range(start, start + size)
            edges = (parts[start].lower(), parts[start + size - 1].lower())
            if size < len(parts) and not _EDGE_WORDS.isdisjoint(edges):
                continue
            if any(place.start >= other.start and place.stop <= other.stop for other in known):
                continue
            if words.names(part) or read.find_structured(part, name="", tool=""):
                known.append(place)
            elif texts := read.find_texts(part):
                if not any(_is_pointed(text.record, words) for text in texts):
                    return part
                known.append(place)
    return ""


def _is_pointed(record: ReadRecord, words: UserWords) -> bool:
    return any(words.matches(text) for text in (*record.source.arguments, *record.labels))

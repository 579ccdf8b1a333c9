"""The same questions about an answer: the text that an agent gives to the person who uses it.

An answer has no effect on others. It can mislead the person: a text that the agent read may have told it what to say.
So links, addresses and names in an answer are targets, too. Each must be named by the user, stand in a structured
field, or stand in a text that the user pointed at. What stands only in another text is a doubt.

Names are phrases of two or more words in upper case, such as `Harbour View Inn`. A name that no text has is the agent's
own wording, and no doubt.
"""

from __future__ import annotations

from aver.gate.origins.judgement import POINTED, CallOrigins
from aver.gate.origins.plain_text import TEXT_MAX, find_addresses
from aver.gate.origins.read_values import ReadRecord, ReadValues
from aver.gate.origins.user_words import UserWords
from aver.lazy_pattern import lazy_pattern

ANSWER_CLASS = "answer"

NAMES_MAX = 500
"""Names and addresses of one answer that are looked at. An answer with more is doubtful."""

_NAME = lazy_pattern(r"\b[A-Z][\w'’-]*(?:\s+(?:of|the|de|la|du|and|&)\s+[A-Z][\w'’-]*|\s+[A-Z][\w'’-]*)+")


def judge_answer(text: str, words: UserWords, read: ReadValues) -> CallOrigins:
    """Judge an answer by what the user said and what the session has read."""
    why: list[str] = []
    names = list(dict.fromkeys((*find_addresses(text), *_NAME.findall(text[:TEXT_MAX]))))
    doubts = {"TARGET_UNKNOWN"} if len(names) > NAMES_MAX or len(text) > TEXT_MAX else set[str]()
    for name in names[:NAMES_MAX]:
        if words.names(name) or read.find_structured(name, name="", tool=""):
            continue
        texts = read.find_texts(name)
        if texts and not any(_is_pointed(place.record, words) for place in texts):
            doubts.add("TARGET_FREE_TEXT")
            why.append(f"{name[:80]!r} comes from a text that somebody wrote")
    origins = {"free_text"} if "TARGET_FREE_TEXT" in doubts else {POINTED} if names else set()
    return CallOrigins(ANSWER_CLASS, words.is_given, frozenset(origins), frozenset(doubts), tuple(why[:20]))


def _is_pointed(record: ReadRecord, words: UserWords) -> bool:
    return any(words.matches(text) for text in (*record.source.arguments, *record.labels))

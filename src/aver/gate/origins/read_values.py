"""The values that a session has read: in which record each stands, who wrote the record, and which text holds it.

Results of tools are JSON, or text that is JSON. Their leaves fall into two kinds:

    structured   a short value in a field that a program fills: an id, an address, a name, a date
    free text    a field for prose (`body`, `description` …), a long or many-line value, a result that is text

A *record* is an object in a list, or the object that a result is. Its `author` is the value of a field such as `sender`
or `created_by`. A record without such a field is the service's own. Values in a record that another one wrote count as
that author's words, whatever field they stand in; the author's own name counts as the service's word, unless it is an
address that anyone can have.

The index is bounded: beyond the limits nothing is added, and a value that is not in it has no origin. A lookup takes
the same time after the 10,000th result as after the 100th.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import field
from sys import float_info
from typing import Any, NamedTuple

from aver.fast_dataclass import dataclass
from aver.gate.origins.plain_text import (
    TEXT_MAX,
    VALUE_MAX,
    contains_value,
    find_folded,
    fold,
    is_address,
    is_plain,
    split_tokens,
    word_set,
)
from aver.gate.origins.roles import split_name
from aver.gate.origins.tool_class import find_kind
from aver.lazy_pattern import lazy_pattern

LEAVES_MAX = 20_000
"""Leaves of one result that are looked at."""

RECORDS_MAX = 50_000
"""Records of one session that are kept."""

TEXTS_MAX = 16 * 1024 * 1024
"""Characters of free text of one session that are kept."""

PLACES_MAX = 32
"""Places of one value that are kept. A value that stands in more places is found in these."""

USED_MAX = 1000
"""Different effects of one tool that are kept since the user's last words."""

FIELDS_MAX = 64
"""Fields of a record by which the user can mean it."""

NESTING_MAX = 32

PROSE_WORDS = 8
"""A value with more words is a text."""

_PROSE_KEYS = word_set(
    """body text content contents message description summary comment comments note notes caption html markdown
    review reviews snippet bio about preview details excerpt transcript readme prompt instructions reply memo
    remark remarks"""
)
_AUTHOR_KEYS = word_set(
    """sender from author creator organizer organiser poster writer reporter createdby postedby sentby"""
)
_SELF = frozenset({"me", "myself", "self", "you"})
_ID_WORDS = frozenset({"id", "ids", "number", "no", "key", "uid", "uuid", "index"})
_GENERIC = word_set(
    """get list search find read fetch by id ids name names all a an the to from in of for with and or new most
    recent current create update delete remove add send set number key day query result value user"""
)
_SENSITIVE_KEYS = word_set("password passport ssn cvv pin secret token credential credentials card license licence")
_WORDS = lazy_pattern(r"\s+")


class SourceCall(NamedTuple):
    """A call of the session whose result was read."""

    tool: str
    call_class: str
    arguments: tuple[str, ...]
    """The texts of its arguments."""


@dataclass(frozen=True, slots=True)
class ReadRecord:
    """One record of a result: the fields by which it can be meant, and its author."""

    source: SourceCall
    labels: tuple[str, ...] = ()
    """Its short values, of all fields but those for prose."""
    author: str = ""
    """Who wrote it; empty where it is the service's own."""
    numbers: tuple[float, ...] = ()

    @property
    def is_others(self) -> bool:
        return bool(self.author) and self.author.casefold() not in _SELF

    def repeats(self, value: str) -> bool:
        """Whether the call that read this record gave the value itself: `nothing found for eve@evil.example`."""
        is_read = self.source.call_class in ("read", "fetch")
        return is_read and any(contains_value(text, value) for text in self.source.arguments)


class ValuePlace(NamedTuple):
    """A place where a value stands as the whole of a field."""

    record: ReadRecord
    key: str


class TextPlace(NamedTuple):
    """A free text, and the record that it stands in."""

    record: ReadRecord
    text: str
    """The text, folded."""


@dataclass(frozen=True, slots=True)
class ReadValues:
    """All that a session has read. `add` puts a result in; everything else looks up."""

    _structured: dict[str, list[ValuePlace]] = field(default_factory=dict)
    _tokens: dict[str, list[TextPlace]] = field(default_factory=dict)
    _sensitive: dict[str, str] = field(default_factory=dict)
    _records: list[ReadRecord] = field(default_factory=list)
    _used: dict[str, dict[tuple[str, ...], int]] = field(default_factory=dict)
    """The effects since the user's last words, by tool: the texts of their arguments, and how many results came."""
    _under_way: dict[str, SourceCall] = field(default_factory=dict)
    """The calls that passed and have not ended, by the ids of their acts."""
    _classes: dict[str, str] = field(default_factory=dict)
    """The classes of the tools in `_used`."""
    _size: list[int] = field(default_factory=lambda: [0])

    def add(self, source: SourceCall, result: Any) -> None:
        """Add a result of the form of MCP, or any JSON value."""
        self.note_effect(source)
        self._note_result(source, result)
        for value in _unpack_result(result):
            left = [LEAVES_MAX]
            self._add_value(source, value, left, 0)

    def _add_value(self, source: SourceCall, value: Any, left: list[int], depth: int) -> None:
        """Add a result: each object of a list is a record of its own."""
        if depth > NESTING_MAX or left[0] <= 0 or len(self._records) >= RECORDS_MAX:
            return
        if isinstance(value, list):
            plain = [item for item in value if not isinstance(item, dict | list)]
            if plain:
                self._add_record(source, [("", item) for item in plain], left)
            for item in value:
                if isinstance(item, dict | list):
                    self._add_value(source, item, left, depth + 1)
        elif isinstance(value, dict):
            inner = [
                item for item in value.values() if isinstance(item, list) and any(isinstance(x, dict) for x in item)
            ]
            own = {key: item for key, item in value.items() if not any(item is other for other in inner)}
            self._add_record(source, list(_walk_fields(own, depth)), left)
            for item in inner:
                self._add_value(source, item, left, depth + 1)
        else:
            self._add_record(source, [("", value)], left)

    def _add_record(self, source: SourceCall, leaves: list[tuple[str, Any]], left: list[int]) -> None:
        leaves = leaves[: left[0]]
        left[0] -= len(leaves)
        is_single = len(leaves) == 1 and leaves[0][0] == ""
        texts = [(key, str(value)) for key, value in leaves if value is not None and not isinstance(value, bool)]
        author = next((text for key, text in texts if _is_author(key) and len(text) <= VALUE_MAX), "")
        short = [leaf for leaf in texts if not (_is_prose(*leaf) or is_single)]
        record = ReadRecord(
            source,
            labels=tuple(text for _, text in short[:FIELDS_MAX]),
            author=author,
            # An integer beyond all floats is left out: it must not stand for another one of the same kind.
            numbers=tuple(
                float(value)
                for _, value in leaves
                if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= float_info.max
            )[:FIELDS_MAX],
        )
        self._records.append(record)
        kept = set(map(id, short))
        for leaf in texts:
            key, text = leaf
            if _SENSITIVE_KEYS & set(split_name(key)) and SENSITIVE_MIN <= len(text) <= VALUE_MAX:
                self._sensitive[fold(text)] = " ".join(split_name(key))
            if id(leaf) in kept:
                if is_plain(text):
                    places = self._structured.setdefault(fold(text), [])
                    if len(places) < PLACES_MAX:
                        places.append(ValuePlace(record, key))
            else:
                self._add_text(record, text)

    def _add_text(self, record: ReadRecord, text: str) -> None:
        folded = fold(text)
        if self._size[0] + len(folded) > TEXTS_MAX:
            return  # Nothing in it has an origin.
        self._size[0] += len(folded)
        place = TextPlace(record, folded)
        for token in split_tokens(text[:TEXT_MAX]):
            places = self._tokens.setdefault(token, [])
            if len(places) < PLACES_MAX:
                places.append(place)

    def note_effect(self, call: SourceCall) -> None:
        """Note a call that passed. A call that only reads uses up nothing."""
        if call.call_class in ("read", "fetch"):
            return
        used = self._used.setdefault(call.tool, {})
        self._classes[call.tool] = call.call_class
        if len(used) < USED_MAX:
            used.setdefault(call.arguments, 0)

    def begin(self, act_id: str, call: SourceCall) -> None:
        """Note that the call of an act passed and is under way. `end` must follow."""
        self.note_effect(call)
        self._under_way[act_id] = call

    def end(self, act_id: str) -> None:
        """Note that an act has ended, or is judged anew."""
        self._under_way.pop(act_id, None)

    def _note_result(self, call: SourceCall, result: Any) -> None:
        """Note that an effect was carried out. One that the server has refused with an error uses up nothing."""
        used = self._used.get(call.tool, {})
        if call.arguments not in used:
            return
        if not (isinstance(result, dict) and result.get("isError") is True):
            used[call.arguments] += 1
        elif not used[call.arguments]:
            del used[call.arguments]

    def forget_effects(self) -> None:
        """Begin anew: the user has asked for something else."""
        self._used.clear()
        self._classes.clear()

    def list_used(self, tool: str) -> tuple[tuple[str, ...], ...]:
        """Return the texts of each effect of this tool since the user's last words."""
        return tuple(self._used.get(tool, ()))

    def count_alike(self, tool: str, call_class: str, own: tuple[str, ...]) -> dict[tuple[str, ...], int]:
        """Return how often each effect of this tool, and of others for the same kind of thing, was carried out.

        Effects are told apart by their texts; `own` are those of the call that is judged. `create_event` and
        `schedule_event` make the same thing.
        """
        kind, counts = find_kind(tool), dict[tuple[str, ...], int]()
        for other, effects in self._used.items():
            if other == tool or (self._classes.get(other) == call_class and find_kind(other) == kind):
                for texts, times in effects.items():
                    # A call that passed and has no result yet counts. If it is of the same tool and texts, it may be
                    # the PREVIEW of the very one that is judged.
                    is_this = other == tool and texts == own
                    counts[texts] = counts.get(texts, 0) + (times if is_this else max(times, 1))
        at_once = sum(1 for call in self._under_way.values() if (call.tool, call.arguments) == (tool, own))
        return {**counts, own: counts.get(own, 0) + at_once}

    @property
    def records(self) -> list[ReadRecord]:
        return self._records

    def find_structured(self, value: str, *, name: str, tool: str) -> list[ValuePlace]:
        """Return the places where a value is the whole of a field.

        Short values and numbers say little. They count only as ids of the things that the call is about: `name` and
        `tool` are those of the argument and of the call.
        """
        places = self._structured.get(fold(value), []) if is_plain(value) else []
        if len(value) >= 3 and not value.replace(".", "").isdigit():
            return places
        nouns = _nouns(f"{tool} {name}")
        wanted = set(split_name(name))
        return [
            place
            for place in places
            if (_ID_WORDS | wanted) & set(split_name(place.key))
            and nouns & _nouns(f"{place.record.source.tool} {place.key}")
        ]

    def find_texts(self, value: str) -> list[TextPlace]:
        """Return the free texts in which a value stands as a name of its own."""
        if not is_plain(value):
            return []
        wanted, tokens = fold(value), split_tokens(value)
        if not tokens:
            return []
        # The rarest word has the shortest list. All words must be there, or the value is not.
        lists = [self._tokens.get(token) for token in tokens]
        if any(found is None for found in lists):
            return []
        candidates = min((found for found in lists if found is not None), key=len)
        return [place for place in candidates if find_folded(place.text, wanted) >= 0]

    def find_sensitive(self, text: str) -> list[str]:
        """Return the kinds of the sensitive values that a text holds, such as `passport number`."""
        folded = fold(text)
        return [kind for value, kind in self._sensitive.items() if find_folded(folded, value) >= 0]


SOURCE_TEXTS_MAX = 64
"""Texts of a call's arguments by which the user can have asked for its result."""


def list_texts(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the texts in the arguments of a call. A whole number counts as one: it may be an id."""
    texts: list[str] = []
    waiting: list[Any] = list(arguments.values())
    while waiting and len(texts) < SOURCE_TEXTS_MAX:
        item = waiting.pop(0)
        if isinstance(item, str | int) and not isinstance(item, bool):
            texts.append(str(item))
        elif isinstance(item, Mapping):
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item
    return tuple(texts)


SENSITIVE_MIN = 4
"""Characters from which on the value of a sensitive field is looked for. Shorter ones are in every text."""


def _nouns(names: str) -> set[str]:
    return {word[:-1] if word.endswith("s") and len(word) > 3 else word for word in split_name(names)} - _GENERIC


def _is_author(key: str) -> bool:
    words = split_name(key.rpartition(".")[2])
    return bool(words) and (words[-1] in _AUTHOR_KEYS or "".join(words) in _AUTHOR_KEYS or words[0] in _AUTHOR_KEYS)


def is_author_place(place: ValuePlace) -> bool:
    """Whether a value is the name of a record's author, which the service has set."""
    return _is_author(place.key)


def counts_as_own(place: ValuePlace, value: str) -> bool:
    """Whether the service itself says this value, and no other person wrote it."""
    return not place.record.is_others or (is_author_place(place) and not is_address(value))


def _is_prose(key: str, text: str) -> bool:
    words = split_name(key.rpartition(".")[2])
    if (words and words[-1] in _PROSE_KEYS) or "\n" in text or len(text) > VALUE_MAX:
        return True
    return len(_WORDS.split(text.strip())) > PROSE_WORDS


def _walk_fields(value: Mapping[str, Any], depth: int, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, item in value.items():
        name = f"{prefix}.{key}" if prefix else str(key)
        if depth > NESTING_MAX:
            return
        if isinstance(item, dict) or prefix:
            yield prefix or "key", str(key)  # `{"shared_with": {"ann@shop.example": "read"}}`
        if isinstance(item, dict):
            yield from _walk_fields(item, depth + 1, name)
        elif isinstance(item, list):
            for inner in item:
                if isinstance(inner, dict):
                    yield from _walk_fields(inner, depth + 1, name)
                elif not isinstance(inner, list):
                    yield name, inner
        else:
            yield name, item


def _unpack_result(result: Any) -> Iterator[Any]:
    """Yield the values of a result. Of MCP's form: its structured content, and each text; a text may be JSON."""
    if not isinstance(result, dict) or not (
        isinstance(result.get("structuredContent"), dict) or isinstance(result.get("content"), list)
    ):
        yield _read_text(result)
        return
    structured = result.get("structuredContent")
    if isinstance(structured, dict):
        # MCP wraps a result that is no object.
        yield _read_text(structured["result"]) if structured.keys() == {"result"} else structured
    content = result.get("content")
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict):
            text = part.get("text")
            yield _read_text(text) if isinstance(text, str) else part


def _read_text(value: Any) -> Any:
    """Return the JSON that a text is; else the value itself."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value

"""The user's words: what they ask for, what they name, and what they point at.

    words = UserWords.read(("Please send the summary of 'notes.txt' to bob@shop.example on May 3rd.",))
    words.asks_for("send", "send_email")      True
    words.names("bob@shop.example")           True
    words.dates                               {(5, 3)}

A class of call is asked for by an imperative of its own (`send`, `reply`, `forward` …) or by the tool's own verb. Words
in quotation marks are content: they name things, and ask for nothing. `send me` asks for an answer and for no message,
and `do not send` asks for nothing.

The last turn says what is asked for. A turn without any such word (`yes, please`) leaves that to the turn before it.
All turns name things.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from functools import lru_cache

from aver.fast_dataclass import dataclass
from aver.gate.origins.plain_text import find_folded, fold, is_plain, word_set
from aver.gate.origins.roles import split_name
from aver.gate.origins.tool_class import can_mean, find_verb_class, list_kinds
from aver.lazy_pattern import lazy_pattern

TURNS_MAX = 50
"""Turns of a session that count. Earlier ones name nothing any more."""

TURN_MAX = 64 * 1024
"""Characters of one turn that count."""

_ASKING: Mapping[str, frozenset[str]] = {
    name: word_set(words)
    for name, words in {
        "send": """send email e-mail mail message write reply respond post forward notify dm publish inform contact text
            comment announce""",
        "share": "share invite add give grant include assign",
        "pay": "pay send transfer refund buy purchase wire donate reimburse settle schedule set order return",
        "create": """create add make schedule book reserve set put save write generate draft register order plan upload
            build start copy record remind prepare implement refactor split""",
        "change": """change update edit modify adjust reschedule move rename append add set put mark fix correct extend
            replace write insert switch include increase decrease raise lower postpone rewrite complete refactor
            implement simplify reorganize restructure rework""",
        "delete": "delete remove cancel clear drop discard erase unsubscribe revoke archive",
    }.items()
}
"""The imperatives that ask for a class."""

_PAYING_WITH_MONEY = word_set("send set schedule order return")
"""Imperatives that ask for a payment only where the user speaks of money: `send a receipt` asks for none."""

_MONEY_WORDS = word_set(
    """money amount payment payments transaction transactions bill bills invoice invoices rent salary fee fees price
    cost costs refund balance debt deposit dollar dollars usd euro euros eur pound pounds gbp chf cent cents bitcoin
    paid pay owe owes subscription dues tip iban account"""
)
_MONEY_SIGN = lazy_pattern(r"[$€£¥]")

_ALSO_NOUNS = word_set(
    """order return text mail email e-mail message post comment contact record book schedule plan draft copy start mark
    share set wire transfer purchase drop archive invite transfer report request update change build fix"""
)
"""Imperatives that are nouns as well. They ask for something where a clause begins: `order T-2041` in `look order
T-2041 up` asks for nothing."""

_BEFORE_IMPERATIVES = word_set(
    """and then please to or also you now first next finally just let's help must should can could would kindly
    afterwards afterward additionally but both either immediately directly simply"""
)

_BEFORE_NOUNS = word_set(
    """a an the my your his her its their our this that these those each every any some no new direct unread
    which what of in from by via per with last first next following same other another own received incoming
    recent confirmation"""
)
"""Words before a noun. `in an email` asks for no mail."""

_NEGATIONS = word_set("not never don't dont doesn't without cannot can't shouldn't won't")
_FORBIDDING = word_set("not never don't dont without")
_TELLING = word_set("does did is are was were will would can could has have had")
_TOUCHING = word_set("touch touching break breaking overwrite overwriting alter altering")
_ENDS_EXCEPTION = word_set("but only instead just then")
_EXCEPTION_WORD = lazy_pattern(
    r"(?P<path>(?:\./)?[\w-][\w.-]*/(?:[\w.@+-]+/)*(?:[\w.@+-]*[\w@+-])?|\.?[\w-]+(?:\.[\w-]+)*\.[a-z0-9]{1,8}\b)"
    r"|(?P<word>[^\W\d][\w'-]*)|(?P<end>[.!?;](?=\s|$)|\n)|,"
)
"""Paths, words, and the ends of sentences, in lower case."""

_CHECK_OUT = "check-out"
"""The imperative `check out` where the user speaks of versions. It asks for no payment."""

_CHECKED_OUT = word_set("branch commit tag revision git repo repository main master")
_TO_THE_USER = word_set("me us")
_USER_DOES = word_set("i'll i'd i i've we we'll they they'll he she you'll")
"""Subjects before a verb that say who does it: not the agent."""

_SUPERLATIVES = word_set(
    """most least largest smallest biggest highest lowest cheapest best worst top newest oldest latest longest shortest
    fewest earliest"""
)
"""Words by which a user describes one target instead of naming it."""

_QUANTIFIERS = word_set("all each every any both everyone everybody")
"""Words by which a user describes any number of targets."""

_SELECTING = _SUPERLATIVES | _QUANTIFIERS | word_set("who whose which where starting beginning ending only")
"""All words by which a user describes a target instead of naming it."""

_PLURALS = word_set("them they several some few many more multiple various everything")
"""Words by which a clause asks for more than one thing, and does not say how many."""

_SINGULARS = word_set("a an another one second third other")
"""Words before a kind of thing that ask for one more of it."""

COUNT_REACH = 4
"""Words before a kind of thing among which its number or article is looked for: `a short weekly team event`."""

_COUNTS = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10}

ANY_NUMBER = 1_000_000
"""The targets that words describe which set no limit."""

_MONTH_NAMES = "jan feb mar apr may jun jul aug sep oct nov dec"
_MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES.split(), 1)}
_MONTH = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_ISO_DATE = lazy_pattern(r"(?<!\d)(?:\d{4})-(\d{2})-(\d{2})(?!\d)")
_MONTH_DAY = lazy_pattern(rf"\b{_MONTH}\s+(\d{{1,2}})(?:st|nd|rd|th)?\b(?!\s*:)", re.IGNORECASE)
_DAY_MONTH = lazy_pattern(rf"\b(\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH}\b", re.IGNORECASE)
_NUMBER = lazy_pattern(r"(?<![\w.,])(\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)(?![\w%]|\.\d|\s*%)")
_QUOTED = lazy_pattern(r"(?<!\w)(?:'([^'\n]{2,300})'|\"([^\"\n]{2,300})\"|“([^”\n]{2,300})”|‘([^’\n]{2,300})’)(?!\w)")
_WORD = lazy_pattern(r"[A-Za-z][A-Za-z'’-]*")
_CLAUSE_END = lazy_pattern(r"[.!?;](?:\s|$)|\n")
_CHOICE_WORD = lazy_pattern(r"[a-z]+|\d+")
_NUMBER_MARK = lazy_pattern(r"(?:\bid|\bids|\bnumber|\bno\.?|#|[a-z]+)\s*[:=]?\s*['\"`]?$")
_IS_NUMBER = lazy_pattern(r"[+-]?\d+(?:\.\d+)?")
_SENTENCE_END = lazy_pattern(r"(?<=[a-z0-9])\.(?=[A-Z][a-z]+\s)")
_STEM_END = lazy_pattern(r"\.[A-Za-z0-9]{1,5}$")
_SEPARATORS = lazy_pattern(r"[-_./]+")

SHORT = 3
"""A value with fewer characters, or a bare number, is named only where a word says that it is an id."""

LABEL_MAX = 120
"""Characters of a value that can be the label of a record: a title, a name. Longer ones are texts."""


@dataclass(frozen=True, slots=True)
class UserWords:
    """The user's words in a session. Without turns nothing is asked for, and nothing is named."""

    folded: str = ""
    asking: frozenset[str] = frozenset()
    """The imperatives of the turn that says what is asked for."""
    asking_turn: str = ""
    """That turn."""
    dates: frozenset[tuple[int, int]] = frozenset()
    """Month and day of each date. Years are left out: users rarely say them, and agents guess them."""
    numbers: frozenset[float] = frozenset()
    quoted: tuple[str, ...] = ()
    proper: frozenset[str] = frozenset()
    """Names: words in upper case inside a sentence."""
    excepted: frozenset[str] = frozenset()
    """Paths that the user said to leave alone, in lower case, unless a later sentence names them again."""
    choices: int = 0
    """How many targets the words describe instead of naming them: one for `the largest file`, `ANY_NUMBER` for `each
    person who …`, none where they describe nothing."""
    is_given: bool = False
    _known: dict[str, bool] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def read(cls, turns: Iterable[str]) -> UserWords:
        """Read the turns of a session, the oldest first."""
        kept = [turn[:TURN_MAX] for turn in turns][-TURNS_MAX:]
        if not kept:
            return cls()
        asking: frozenset[str] = frozenset()
        latest = kept[-1]
        for turn in reversed(kept):
            latest, asking = turn, frozenset(word for word, _ in _find_imperatives(turn))
            if asking:
                break
        whole = "\n".join(kept)
        # A sentence that ends without a space: `… our site shop.example.They sent …` names the site, too.
        split = _SENTENCE_END.sub(". ", whole)
        return cls(
            folded=fold(f"{whole}\n{split}" if split != whole else whole),
            asking=asking,
            asking_turn=latest,
            dates=frozenset(find_dates(whole)),
            numbers=frozenset(float(found.replace(",", "")) for found in _NUMBER.findall(whole)),
            quoted=tuple(fold("".join(found)) for found in _QUOTED.findall(whole)),
            proper=frozenset(_find_proper(whole)),
            excepted=_find_excepted(whole),
            choices=_count_choices(_QUOTED.sub(" ", latest)),
            is_given=True,
        )

    def asks_for(self, call_class: str, tool: str) -> bool:
        """Whether the user asks for calls of this class, or uses the tool's own verb. Reads need no asking."""
        if call_class in ("read", "fetch"):
            return self.is_given
        return bool(self.asking & self._list_asking(call_class, tool))

    def asks_by_name(self, call_class: str, tool: str) -> bool:
        """Whether the user asks for a call by the tool's own verb: `commit` for `git_commit`."""
        return any(word in self.asking for word in split_name(tool) if can_mean(word, call_class))

    def count_asked(self, call_class: str, tool: str) -> int:
        """Return how many calls of a tool the words ask for: one for `create an event`, two for `create two events`.

        `ANY_NUMBER` where the words set no limit: `create events for …`, `send a mail to each of them`.
        """
        plain, kinds, asking = _strip_quotes(self.asking_turn), list_kinds(tool), self._list_asking(call_class, tool)
        found = [place for word, place in _find_imperatives(self.asking_turn) if word in asking]
        ends = [*found[1:], len(plain)]
        total = sum(_count_things(plain[start:end], kinds) for start, end in zip(found, ends, strict=True))
        # Clauses that do not speak of the kind of thing say more about the one that is asked for: `and set its title`.
        return min(max(total, 1), ANY_NUMBER)

    def _list_asking(self, call_class: str, tool: str) -> frozenset[str]:
        """Return the imperatives that ask for calls of this class, and the tool's own verb."""
        # Only the verb that made the class: in `cancel_order`, `order` is the thing.
        own = {word for word in split_name(tool) if can_mean(word, call_class)}
        wanted = _ASKING.get(call_class, frozenset()) | own
        if call_class == "change" and "checkout" in own:
            wanted |= {_CHECK_OUT}
        if call_class == "create" and "git" in split_name(tool) and "add" in own:
            wanted |= {"commit"}  # A commit has the files that were added before.
        if call_class == "pay" and not self._speaks_of_money():
            wanted -= _PAYING_WITH_MONEY - own
        return wanted

    def _speaks_of_money(self) -> bool:
        return not _MONEY_WORDS.isdisjoint(_WORD.findall(self.folded)) or _MONEY_SIGN.search(self.folded) is not None

    def mentions_kind(self, tool: str) -> bool:
        """Whether the user's words have the kind of thing that a tool makes, such as `event`."""
        kinds = list_kinds(tool)
        forms = {form for kind in kinds for form in (kind, f"{kind}s", kind.removesuffix("s"))}
        return not kinds or any(find_folded(self.folded, form) >= 0 for form in forms)

    def names(self, value: str) -> bool:
        """Whether the user named this value, as it stands."""
        if value not in self._known:
            self._known[value] = self._is_named(value)
        return self._known[value]

    def _is_named(self, value: str) -> bool:
        if not is_plain(value):
            return False
        wanted = fold(value)
        if len(wanted) >= SHORT and not _IS_NUMBER.fullmatch(wanted):
            return find_folded(self.folded, wanted) >= 0
        # `June 13` does not name the file 13; `the file with the id 13` does.
        if wanted in self.quoted:
            return True
        start = find_folded(self.folded, wanted)
        return (
            start >= 0
            and re.search(r"(?:\b(?:ids?|number|no\.?|nr\.?)|#)\s*[:=]?\s*$", self.folded[:start]) is not None
        )

    def matches(self, label: str) -> bool:
        """Whether the label of a record is one that the user spoke of: named as it stands, or by a part of it."""
        if not 0 < len(label) <= LABEL_MAX or not is_plain(label):
            return False
        wanted = fold(label)
        if _IS_NUMBER.fullmatch(wanted) or len(wanted) < SHORT or wanted in ("true", "false", "none", "null"):
            return False
        stem = _SEPARATORS.sub(" ", _STEM_END.sub("", wanted)).strip()
        if any(len(form) >= SHORT and find_folded(self.folded, form) >= 0 for form in {wanted, stem}):
            return True
        return any(find_folded(wanted, part) >= 0 for part in (*self.quoted, *self.proper))


def _find_excepted(text: str) -> frozenset[str]:
    """Return the paths behind words that forbid something: `do not change src/pay.py`, `without touching tests/`."""
    found: set[str] = set()
    is_forbidden, before = False, ("", "")
    for match in _EXCEPTION_WORD.finditer(text.lower().replace("’", "'")):
        word, path = match["word"], match["path"]
        if path:
            (found.add if is_forbidden else found.discard)(path.removeprefix("./"))
        elif match["end"] or word in _ENDS_EXCEPTION or (before[1] == "," and word in _ALL_ASKING):
            is_forbidden = False
        # `cart.py does not import tax.py` tells something, and forbids nothing.
        elif before[1] in _FORBIDDING and before[0] not in _TELLING and (word in _TOUCHING or _is_effect_verb(word)):
            is_forbidden = True
        before = (before[1], word or match[0])
    return frozenset(found)


def _is_effect_verb(word: str) -> bool:
    return find_verb_class(word) not in (None, "read", "fetch")


def find_dates(text: str) -> set[tuple[int, int]]:
    """Return month and day of each date in a text."""
    found = {(int(month), int(day)) for month, day in _ISO_DATE.findall(text)}
    found |= {(_MONTHS[month[:3].lower()], int(day)) for month, day in _MONTH_DAY.findall(text)}
    found |= {(_MONTHS[month[:3].lower()], int(day)) for day, month in _DAY_MONTH.findall(text)}
    return {(month, day) for month, day in found if 1 <= month <= 12 and 1 <= day <= 31}


def asks_for_something(turn: str) -> bool:
    """Whether a turn asks for a call: `yes, please` asks for none."""
    return any(True for _ in _find_imperatives(turn))


def _count_choices(turn: str) -> int:
    """Return how many targets a turn describes. Each superlative describes one, or as many as it says.

    `the largest files` and words such as `all` set no limit.
    """
    words = _CHOICE_WORD.findall(turn.lower())
    if not _SELECTING & set(words):
        return 0
    found = [index for index, word in enumerate(words) if word in _SUPERLATIVES]
    if not found or _QUANTIFIERS & set(words):
        return ANY_NUMBER
    total = 0
    for index in found:
        beside = (words[index - 1] if index else "", *words[index + 1 : index + 2])
        stated = next((number for word in beside if (number := _read_count(word))), 0)
        is_plural = any(word.endswith("s") and not word.endswith("ss") for word in beside[1:])
        total += stated or (ANY_NUMBER if is_plural else 1)
    return min(total, ANY_NUMBER)


def _read_count(word: str) -> int:
    return int(word) if word.isdigit() and len(word) <= 3 else _COUNTS.get(word, 0)


def _count_things(clause: str, kinds: list[str]) -> int:
    """Return how many things of these kinds a clause asks for. The clause begins behind an imperative."""
    words = _CHOICE_WORD.findall(_CLAUSE_END.split(clause, maxsplit=1)[0].lower())
    if (_QUANTIFIERS | _PLURALS) & set(words):
        return ANY_NUMBER
    total = 0
    for index, word in enumerate(words):
        before = words[max(0, index - COUNT_REACH) : index]
        if word in kinds[-1:] and _SINGULARS & set(before):
            total += 1
        elif word.endswith("s") and {word, word[:-1]} & set(kinds):
            total += next((number for each in before if (number := _read_count(each))), ANY_NUMBER)
    return total


def _strip_quotes(turn: str) -> str:
    """Return a turn without the words in quotation marks: they are content, and ask for nothing."""
    return _QUOTED.sub(" ' ", turn).replace("’", "'")


def _find_imperatives(turn: str) -> Iterable[tuple[str, int]]:
    """Yield the verbs by which a turn asks for something, in their base form, and where each ends in the plain turn."""
    plain = _strip_quotes(turn)
    found = list(_WORD.finditer(plain))
    words = [match[0].lower() for match in found]
    for index, word in enumerate(words):
        if word == "check" and words[index + 1 : index + 2] == ["out"] and not _CHECKED_OUT.isdisjoint(words):
            yield _CHECK_OUT, found[index].end()
        if word not in _ALL_ASKING and find_verb_class(word) in (None, "read", "fetch"):
            continue
        before = words[max(0, index - 3) : index]
        after = words[index + 1] if index + 1 < len(words) else ""
        is_noun = bool(before) and before[-1] in _BEFORE_NOUNS
        is_others = bool(before) and before[-1] in _USER_DOES
        if word in _ALSO_NOUNS and not is_noun and before and before[-1] not in _BEFORE_IMPERATIVES:
            # Not after a verb or another noun. A mark of punctuation begins a clause.
            is_noun = plain[found[index - 1].end() : found[index].start()].strip() == ""
        if is_noun or is_others or after in _TO_THE_USER or _NEGATIONS & set(before[-2:]):
            continue
        yield word, found[index].end()


_ALL_ASKING = frozenset[str]().union(*_ASKING.values())

_COMMON_CAPITALS = word_set(
    """january february march april may june july august september october november december monday tuesday
    wednesday thursday friday saturday sunday please then also after note find read check hey yes"""
)


@lru_cache(maxsize=64)
def _find_proper(text: str) -> frozenset[str]:
    """Return the names in a text: words that begin in upper case and do not begin a sentence."""
    found = set()
    for match in _WORD.finditer(text):
        word, before = match[0], text[: match.start()].rstrip(" \t'\"“‘(")[-1:]
        if len(word) >= 4 and word[0].isupper() and before not in ("", ".", "!", "?", ":", "\n"):
            name = word.lower().removesuffix("'s").removesuffix("’s")
            found |= {name} if name not in _COMMON_CAPITALS else set()
    return frozenset(found)

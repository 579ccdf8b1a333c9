"""The judgement of a call: was it asked for, where do its targets come from, and what is doubtful about it.

The origin of a target is the best of these that holds:

    named       the user's words have it, as it stands; a file of the workspace also by its relative path
    linked      it stands in a record that the user's words mean, or is the result of an earlier call of the session;
                or the user described what to choose (`the largest file`), and the service listed it. A turn that
                describes one such target links one, and any other is `structured`
    structured  it stands in some other record
    free_text   it stands in a text only; with `pointed`, in texts that the user pointed at
    nowhere     the session has not read it

Values in records that others wrote are at most `structured`, and such a target has the doubt AUTHOR. Links and
addresses inside a text that is sent are targets, too.

Words that ask for one event, payment or message justify one. A further call of the tool is asked for only if it goes to
a target of its own that the words name or link, or if the words have all in which it differs from the earlier calls. So
an agent that was talked into a second event asks a person, also where the user named its day.

The doubts:

    NOT_ASKED         the user's words do not ask for this class of call, or for no further one
    TARGET_FREE_TEXT  a target stands in free text only
    TARGET_UNKNOWN    a target stands nowhere, or in a record that nothing links to the user's words
    AUTHOR            a target stands only in records that others wrote
    AMOUNT            an amount is larger than any that the user named or linked
    WHEN              a time is none of those that the user named, or stands only in a text that the user did not mean
    SENSITIVE         a secret that the user did not name, or a sensitive value in what is sent
    NO_PROMPT         nobody has told Aver what the user said
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, get_args

from aver.fast_dataclass import dataclass
from aver.gate.origins.own_places import is_excepted, is_same_site, names_directory_of, names_file, relate_path
from aver.gate.origins.plain_text import contains_value, find_addresses, has_unclear_address, is_address, word_set
from aver.gate.origins.read_values import ReadRecord, ReadValues, ValuePlace, counts_as_own, list_texts
from aver.gate.origins.roles import RoledValue, list_values, split_name
from aver.gate.origins.tool_class import can_mean
from aver.gate.origins.user_words import UserWords, find_dates

Origin = Literal["named", "linked", "structured", "free_text", "nowhere"]

ORIGINS: tuple[str, ...] = get_args(Origin)

Doubt = Literal["NOT_ASKED", "TARGET_FREE_TEXT", "TARGET_UNKNOWN", "AUTHOR", "AMOUNT", "WHEN", "SENSITIVE", "NO_PROMPT"]

DOUBTS: tuple[str, ...] = get_args(Doubt)

POINTED = "pointed"
"""Stands beside the origins where all targets from free text are from texts that the user pointed at."""

_COUNTED = ("create", "pay", "send")
"""Classes whose every call makes one more thing. Changing, sharing or deleting the same target makes nothing new."""

_REPEATED = word_set("write save put store commit stage init export")
"""Verbs of tools that are called again for the same thing: a file is written twice, and stays one file."""

WHY_MAX = 20
"""Reasons that a judgement keeps."""

SHOWN_MAX = 80
"""Characters of a value that a reason shows."""


@dataclass(frozen=True, slots=True)
class ToolMeaning:
    """A tool that is called: its name, its class, and what is known of its arguments."""

    tool: str
    call_class: str
    schema: Mapping[str, Any] | None = None
    roles: Mapping[str, str] | None = None
    workspace: str = ""
    """The directory in which the user works; empty where nobody knows it."""
    elsewhere: frozenset[str] = frozenset()
    """Paths of the workspace among the arguments that a link leads to another place."""


@dataclass(frozen=True, slots=True)
class CallOrigins:
    """The judgement of one call, as rules ask for it."""

    call_class: str
    asked: bool
    origins: frozenset[str] = frozenset()
    doubts: frozenset[str] = frozenset()
    why: tuple[str, ...] = ()
    """The doubts, in words for a person."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "class": self.call_class,
            "asked": self.asked,
            "origins": sorted(self.origins),
            "doubts": sorted(self.doubts),
            "why": list(self.why),
        }


def judge_call(meaning: ToolMeaning, arguments: Mapping[str, Any], words: UserWords, read: ReadValues) -> CallOrigins:
    """Judge a call by what the user said and what the session has read so far."""
    if meaning.call_class == "read":
        judge = _Judge(meaning, words, read)
        judge.look_for_secrets(arguments)  # The server gets what a look-up looks for.
        return judge.conclude_read()
    if not words.is_given:
        why = ("nobody has told Aver what the user asked for",)
        return CallOrigins(meaning.call_class, False, doubts=frozenset({"NO_PROMPT"}), why=why)
    judge = _Judge(meaning, words, read)
    judge.look_for_secrets(arguments)
    for value in list_values(arguments, meaning.schema, meaning.roles):
        if value is None:
            judge.doubt("TARGET_UNKNOWN", "it has more arguments than can be looked at")
        else:
            judge.look_at(value)
    return judge.conclude(list_texts(arguments))


class _Judge:
    """Looks at the values of one call, and collects origins and doubts."""

    def __init__(self, meaning: ToolMeaning, words: UserWords, read: ReadValues) -> None:
        self._meaning = meaning
        self._words = words
        self._read = read
        self._origins: set[str] = set()
        self._doubts: dict[str, None] = {}
        self._why: list[str] = []
        self._all_pointed = True
        self._chosen: list[str] = []
        """The targets of this call that the user described, and did not name."""
        self._is_spent = False
        """Whether the user described a target, and as many others were chosen before as the words describe."""
        self._named: list[str] = []
        """The targets that the user named."""
        self._amounts: list[RoledValue] = []
        self._values: list[RoledValue] = []
        """All values of the call that say what it makes: targets, contents, times and amounts."""
        self._origin_of: dict[str, Origin] = {}
        self._roots: list[RoledValue] = []
        """Targets that are the workspace itself. It says where a call works, and not on what."""

    def doubt(self, code: Doubt, why: str) -> None:
        self._doubts[code] = None
        if why not in self._why and len(self._why) < WHY_MAX:
            self._why.append(why)

    def look_at(self, value: RoledValue) -> None:
        """Look at one value, by its role."""
        role = value.role
        if role == "content" and self._meaning.call_class == "delete":
            role = "object"  # A name says what to delete.
        if role != "option":
            self._values.append(value)
        if role in ("destination", "object"):
            if relate_path(value.value, self._meaning.workspace) == "":
                self._roots.append(value)
            else:
                self._look_at_target(value.value, value.name)
        elif role == "secret":
            if not self._words.names(value.value):
                self.doubt("SENSITIVE", f"the user did not name the {value.name}")
        elif role == "amount":
            self._amounts.append(value)  # After the targets: they say which records are meant.
        elif role == "when":
            self._look_at_time(value)
        elif role == "content":
            self._look_at_content(value)

    def look_for_secrets(self, arguments: Mapping[str, Any]) -> None:
        """Doubt a call that holds a secret, by the rules of masking, unless the user named it."""
        from aver.capsule.masking.mask import mask  # Not above: most programs that load rules judge no call.

        if not mask(dict(arguments)).count:
            return
        for value in list_values(arguments):
            if value is None or (mask({value.name: value.value}).count and not self._words.names(value.value)):
                self.doubt("SENSITIVE", "its arguments hold a secret that the user did not name")
                return

    # --- targets

    def _look_at_target(self, value: str, name: str) -> None:
        self._is_spent = False
        shown = f"{name} {value[:SHOWN_MAX]!r}"
        if is_excepted(self._words, relate_path(value, self._meaning.workspace) or value):
            self._origins.add("structured")
            self.doubt("TARGET_UNKNOWN", f"{shown}: the user said to leave it alone")
            return
        origin, is_pointed, is_author = self._find_origin(value, name)
        self._origins.add(origin)
        self._origin_of[value] = origin
        if origin == "structured" and is_author:
            self.doubt("AUTHOR", f"{shown} stands only in records that others wrote")
        elif origin == "structured":
            why = "the user described other targets, which were chosen before" if self._is_spent else "nothing links it"
            self.doubt("TARGET_UNKNOWN", f"{shown}: {why}")
        elif origin == "free_text":
            self._all_pointed = self._all_pointed and is_pointed
            where = "a text that the user pointed at" if is_pointed else "a text that somebody wrote"
            self.doubt("TARGET_FREE_TEXT", f"{shown} comes from {where}")
        elif origin == "nowhere":
            self.doubt("TARGET_UNKNOWN", f"{shown} is in nothing that the user said or the session read")

    def _find_origin(self, value: str, name: str) -> tuple[Origin, bool, bool]:
        """Return the origin of a target, whether the user pointed at its texts, and whether others wrote it."""
        words = self._words
        # A link in the workspace may lead out of it, to a file that the user has not meant.
        inside = None if value in self._meaning.elsewhere else relate_path(value, self._meaning.workspace)
        if words.names(value) or (inside and names_file(words, inside)):
            self._named.append(value)
            return "named", False, False
        if inside and self._meaning.call_class in ("create", "change") and names_directory_of(words, inside):
            return "linked", False, False
        places = self._read.find_structured(value, name=name, tool=self._meaning.tool)
        is_author = not any(counts_as_own(place, value) for place in places)
        # An echo of what the agent gave itself links nothing.
        own = [place for place in places if counts_as_own(place, value) and not place.record.repeats(value)]
        is_linked = any(self._is_linked(place, value) for place in own)
        # An address can be anyone's, so describing it is not enough.
        is_described = bool(own and words.choices) and not is_address(value)
        # What is deleted is lost: where the user described one thing, a link to other words makes no second one.
        if is_described and (not is_linked or self._meaning.call_class == "delete"):
            self._is_spent = self._count_chosen(value, name, own) >= words.choices
            self._chosen.append(value)
        if (is_linked or is_described) and not self._is_spent:
            return "linked", False, False
        texts = self._read.find_texts(value)
        told = [place for place in texts if not place.record.repeats(value)]
        if self._meaning.call_class == "fetch" and any(
            words.names(place.record.author) and self._is_pointed(place.record) for place in told if place.record.author
        ):
            return "linked", False, False  # `the article that Bob posted`: the user named the author of that text.
        if self._meaning.call_class == "fetch" and any(
            place.record.source.call_class == "fetch" and is_same_site(value, words, place.record.source.arguments)
            for place in told
        ):
            return "linked", False, False  # A page of the site that the user named has this link, as it stands.
        if places:
            return "structured", False, is_author
        if texts:
            return "free_text", all(self._is_pointed(place.record) for place in texts), False
        return "nowhere", False, False

    def _count_chosen(self, value: str, name: str, places: Iterable[ValuePlace]) -> int:
        """Return how many other targets of the same sort, not named, this call and earlier ones of its tool go to.

        Of the same sort are values that stand in the same field of records, such as `file_id`.
        """
        tool, fields = self._meaning.tool, {place.key for place in places}
        used = (text for texts in self._read.list_used(tool) for text in texts)
        others = {*self._chosen, *used} - {value}
        return sum(
            1
            for text in others
            if not self._words.names(text)
            and any(place.key in fields for place in self._read.find_structured(text, name=name, tool=tool))
        )

    def _is_linked(self, place: ValuePlace, value: str) -> bool:
        """Whether the user's words mean the record in which a value stands."""
        record = place.record
        if record.source.call_class not in ("read", "fetch"):
            return True  # The result of a call that was let through.
        if any(self._words.matches(label) for label in record.labels if label != value):
            return True
        return self._is_queried(record)

    def _is_queried(self, record: ReadRecord) -> bool:
        """Whether the call that read a record asked for something that the user named."""
        return any(self._words.matches(text) for text in record.source.arguments)

    def _is_pointed(self, record: ReadRecord) -> bool:
        """Whether the user pointed at a record, or asked for the reading of it."""
        return self._is_queried(record) or any(self._words.matches(label) for label in record.labels)

    # --- all else

    def _look_at_amount(self, value: RoledValue) -> None:
        try:
            amount = value.number if value.number is not None else float(value.value)
        except ValueError:
            self.doubt("AMOUNT", f"{value.name} {value.value[:SHOWN_MAX]!r} is no number")
            return
        linked = (
            number
            for record in self._read.records
            if not record.is_others or self._words.names(record.author)
            for number in record.numbers
            if self._is_meant(record)
        )
        known = max((*self._words.numbers, *linked), default=0.0)
        if not 0 <= amount <= known:
            self.doubt("AMOUNT", f"{value.name} {value.value[:SHOWN_MAX]} is more than the user named or linked")

    def _is_meant(self, record: ReadRecord) -> bool:
        """Whether the user's words, or a target that they name, mean this record."""
        if any(self._words.matches(label) for label in record.labels):
            return True
        return any(contains_value(label, name) for name in self._named for label in record.labels)

    def _look_at_time(self, value: RoledValue) -> None:
        dates = find_dates(value.value)
        if not dates or dates & self._words.dates:
            return
        if self._words.dates:
            self.doubt("WHEN", f"{value.name} {value.value[:SHOWN_MAX]!r} is none of the dates that the user named")
            return
        texts = self._read.find_texts(value.value)
        if texts and not any(self._is_pointed(place.record) for place in texts):
            self.doubt("WHEN", f"{value.name} {value.value[:SHOWN_MAX]!r} comes from a text that somebody wrote")

    def _look_at_content(self, value: RoledValue) -> None:
        if has_unclear_address(value.value):
            self._origins.add("nowhere")
            self.doubt("TARGET_UNKNOWN", f"an address in {value.name} has characters that cannot be told apart")
        for address in dict.fromkeys(find_addresses(value.value)):
            self._look_at_target(address, f"the address in {value.name}")
        for kind in self._read.find_sensitive(value.value):
            if not all(self._words.names(word) for word in kind.split()[:1]):
                self.doubt("SENSITIVE", f"{value.name} holds a value that was read as {kind}")

    def _look_at_wording(self) -> None:
        """Look at the title of a new thing that has no target: no other value says whose idea the thing is."""
        for value in self._values:
            if value.role != "content" or " " not in value.value.strip() or self._words.names(value.value):
                continue
            texts = self._read.find_texts(value.value)
            if texts and not any(self._is_pointed(place.record) for place in texts):
                self._origins.add("free_text")
                self._all_pointed = False
                self.doubt(
                    "TARGET_FREE_TEXT",
                    f"{value.name} {value.value[:SHOWN_MAX]!r} comes from a text that somebody wrote",
                )

    def _look_at_roots(self) -> None:
        """Look at the workspace as a target: it is the user's own where the words ask for this very thing.

        A call whose other targets are the user's own works on these. Else the words must have the tool's own verb:
        `commit` means this repository, and `fix the bug` does not ask to reset it.
        """
        is_on_own = bool(self._origins) and self._origins <= {"named", "linked"}
        is_meant = is_on_own or self._words.asks_by_name(self._meaning.call_class, self._meaning.tool)
        for value in self._roots:
            if is_meant and self._meaning.call_class != "delete":
                self._origins.add("named")
            else:
                self._look_at_target(value.value, value.name)

    # --- further calls

    def _is_further(self, texts: tuple[str, ...]) -> bool:
        """Whether the user's words asked for the earlier calls of this tool, and not for this one as well."""
        call_class, tool = self._meaning.call_class, self._meaning.tool
        verb = next((word for word in split_name(tool) if can_mean(word, call_class)), "")
        if call_class not in _COUNTED or (call_class == "create" and verb in _REPEATED):
            return False
        counts = self._read.count_alike(tool, call_class, texts)
        if sum(counts.values()) < self._words.count_asked(call_class, tool):
            return False
        used = {text for each in counts if each != texts for text in each}
        return counts.get(texts, 0) > 0 or not self._is_own_thing(
            [value for value in self._values if value.value not in used]
        )

    def _is_own_thing(self, values: list[RoledValue]) -> bool:
        """Whether the user's words have the values in which a call differs from those before it."""
        # Each target that no earlier call had, and that the words name or link, is one more thing that they ask for.
        if any(self._origin_of.get(value.value) in ("named", "linked") for value in values):
            return True
        return bool(values) and all(
            not find_dates(value.value).isdisjoint(self._words.dates)
            if value.role == "when"
            else self._words.names(value.value) or value.number in self._words.numbers
            for value in values
        )

    def conclude_read(self) -> CallOrigins:
        """Return the judgement of a read. It needs no asking, and its targets do not count."""
        asked = self._words.asks_for("read", self._meaning.tool)
        return CallOrigins("read", asked, doubts=frozenset(self._doubts), why=tuple(self._why))

    def conclude(self, texts: tuple[str, ...]) -> CallOrigins:
        """Return the judgement. `texts` are those of all arguments."""
        for amount in self._amounts:
            self._look_at_amount(amount)
        self._look_at_roots()
        call_class, tool = self._meaning.call_class, self._meaning.tool
        asked = self._words.asks_for(call_class, tool)
        # A new thing without any target: only its kind says whether it is the one that the user wants.
        if call_class == "create" and not self._origins:
            asked = asked and self._words.mentions_kind(tool)
            self._look_at_wording()
        if not asked:
            self._doubts["NOT_ASKED"] = None
            self._why.insert(0, f"the user did not ask for this: {call_class}")
        elif self._is_further(texts):
            asked = False
            self._doubts["NOT_ASKED"] = None
            self._why.insert(0, f"the user asked for fewer calls of {tool}, and they were made before")
        origins = set(self._origins)
        if "free_text" in origins and self._all_pointed:
            origins.add(POINTED)
        return CallOrigins(call_class, asked, frozenset(origins), frozenset(self._doubts), tuple(self._why))


def passes(found: CallOrigins) -> bool:
    """Whether the shipped rules let a call pass without a person: for tests and tools that have no rules at hand."""
    if found.call_class == "read":
        return not found.doubts
    return found.asked and not found.doubts and found.origins <= {"named", "linked"}


def describe_doubts(doubts: Iterable[str]) -> str:
    """Return doubts as one line, in the order of the table."""
    return " ".join(code for code in DOUBTS if code in set(doubts))

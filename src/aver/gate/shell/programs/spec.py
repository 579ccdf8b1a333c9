"""The language of the tables: one line says how a program reads its arguments, and what each argument means.

A line has the names of programs, two colons, and marks. A line that begins with `#` is a comment on the next one:

    head, tail :: -[qvz] -n= -c= --lines= --bytes= *read
    npm {test run}, yarn test :: +execute

    -n=          an option with a value              -n=VERB      and the verb for the value
    --arg==      an option with two values
    -i?          an option with a value attached     -i?VERB
    -f!EFFECT    an option that has an effect        -f!?CODE     or makes the command unclear
    -d:VERB      an option that changes the verb of the operands; `-d!EFFECT:VERB` does both
    -e=~         an option that replaces the first operand
    -[abc]       options of one letter, without value or meaning
    1VERB 2VERB  the verb of the first and of the second operand
    $VERB        the verb of the last operand, if there are two or more      *VERB   the verb of all others
    .EFFECT      without operands, the effect on the current directory; @EFFECT always; neither after `-d:VERB`
    @unpack      the program writes files with unknown names to the current directory
    +EFFECT +?CODE   always
    posix        options end at the first operand
    literal      every word is an operand, whatever it begins with
    lax          options that are not listed are harmless; without it they make the command unclear
    gnu          a long option may be shortened, as the program's parser allows; elsewhere a short form is unlisted
    no           `--no-NAME` is listed for each listed `--NAME`, and means nothing
    onedash      long options have one hyphen
    (-a -b)      parentheses only group marks for the reader

**A line is closed**: an option that it does not list makes the command unclear (`unknown-option`). A line must list
every option of its program that takes a file, a host or a command. `--help`, `--version` and numbers such as `-5` are
listed everywhere. A line says `lax` only if a rule asks about all its effects anyway, and its comment says why. A line
that ignores its operands (`*skip`) says why in a comment, too. Tests hold both.

`verbs` defines the verbs. The verb `command` judges all remaining operands as a command of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from functools import lru_cache

from aver.fast_dataclass import dataclass
from aver.gate.effects.findings import EFFECTS, UNCLEAR
from aver.gate.shell.model import Word
from aver.lazy_pattern import lazy_pattern

_OPTION_MARK = lazy_pattern(
    r"(?P<option>--?[A-Za-z0-9@?#%^][\w.-]*)(?P<takes>={1,2}|\??)(?P<first>~?)(?P<verb>[a-z]*)"
    r"(?:!(?P<effects>[^:\s]+))?(?::(?P<operands>[a-z]+))?"
)
_PLAIN_OPTION = lazy_pattern(r"--?[A-Za-z0-9][A-Za-z0-9-]*")
_LETTERS = lazy_pattern(r"-\[([A-Za-z0-9]+)\]")
_ALWAYS_LISTED = frozenset(("--help", "--version"))
"""Options that only print in every program of the tables."""
_PROGRAM_NAMES = lazy_pattern(r"[^,{]*\{[^}]*\}|[^,\s][^,{]*")
_OPERAND_MARK = lazy_pattern(r"([12$*.@])([a-z-]+)")


_FLAGS = frozenset(("posix", "literal", "lax", "gnu", "no", "onedash"))

READING_VERBS = frozenset(("", "read", "tree", "contents", "skip", "sought", "filter"))
"""The verbs of a program that only reads."""


@dataclass(frozen=True, slots=True)
class OptionSpec:
    """An option of a program."""

    name: str
    takes: str = ""
    """`=`: it takes a value. `==`: two values. `?`: a value only if attached. Empty: none."""
    verb: str = ""
    """The verb for its value."""
    effects: tuple[str, ...] = ()
    operands: str = ""
    """The verb that it gives to the operands."""
    is_first_operand: bool = False
    """It replaces the first operand, as `-e` of sed replaces the script."""

    @property
    def matters(self) -> bool:
        return bool(self.effects or self.operands or self.verb)


@dataclass(frozen=True, slots=True)
class ProgramSpec:
    """A parsed line of a table."""

    options: Mapping[str, OptionSpec]
    first: tuple[str, ...] = ()
    """The verbs of the first and the second operand (`1VERB 2VERB`)."""
    last: str = ""
    """The verb of the last operand (`$VERB`)."""
    rest: str = ""
    """The verb of all others (`*VERB`)."""
    nothing: str = ""
    """The effect on the current directory without operands (`.EFFECT`)."""
    here: str = ""
    """The effect on the current directory in every case (`@EFFECT`)."""
    always: tuple[str, ...] = ()
    is_posix: bool = False
    is_literal: bool = False
    """Every word is an operand."""
    is_lax: bool = False
    """Options that are not listed are harmless."""
    can_shorten: bool = False
    """The program accepts the beginning of a long option."""
    can_negate: bool = False
    """The program accepts `--no-NAME` for each `--NAME`."""
    has_one_dash: bool = False

    @property
    def has_risky_options(self) -> bool:
        """Whether an unknown word could turn out to be an option that does more than read."""
        return any(
            option.effects or not {option.verb, option.operands} <= READING_VERBS for option in self.options.values()
        )


@dataclass(slots=True)
class ParsedArguments:
    """The arguments of a program, sorted into options and operands."""

    options: list[tuple[OptionSpec, Word | None, Word]] = field(default_factory=list)
    """Each option with its value, and the word in which it was given."""
    operands: list[Word] = field(default_factory=list)
    unlisted: list[tuple[str, Word]] = field(default_factory=list)
    doubtful: list[Word] = field(default_factory=list)
    """Unknown words and patterns that may turn out to be options."""

    def without_operands(self) -> ParsedArguments:
        """Return the options alone, for a handler that judges the operands itself."""
        return ParsedArguments(self.options, [], self.unlisted, self.doubtful)

    def option_values(self, *names: str) -> Iterator[Word]:
        return (value for option, value, _ in self.options if option.name in names and value is not None)

    def has_option(self, *names: str) -> bool:
        return any(option.name in names for option, _, _ in self.options)


def split_table(table: str) -> dict[str, str]:
    """Return the lines of a table by program, without parsing them. Aver parses a line when it needs it."""
    rows: dict[str, str] = {}
    for line in table.replace("\\\n", " ").splitlines():
        if line.startswith("#"):
            continue
        names, separator, marks = line.partition("::")
        if not separator:
            continue
        marks = marks.strip()
        # Most lines have no braces: skip the pattern for them.
        for name in _PROGRAM_NAMES.findall(names) if "{" in names else names.split(","):
            begin, _, choices = name.partition("{")
            program = " ".join(begin.split())
            if choices:
                for choice in choices.rstrip("} ").split():
                    rows[f"{program} {choice}" if program else choice] = marks
            else:
                rows[program] = marks
    return rows


@lru_cache(maxsize=1024)
def parse_spec(marks: str) -> ProgramSpec:
    """Parse the marks of a line. An invalid mark raises AssertionError; a test parses every line."""
    options: dict[str, OptionSpec] = {}
    first = ["", ""]
    found: dict[str, str] = {"$": "", "*": "", ".": "", "@": ""}
    always: list[str] = []
    flags: set[str] = set()
    for mark in marks.replace("(", " ").replace(")", " ").split():
        if _PLAIN_OPTION.fullmatch(mark):  # the common case first
            options[mark] = OptionSpec(mark)
        elif mark in _FLAGS:
            flags.add(mark)
        elif mark.startswith("+"):
            always += mark[1:].split(",")
        elif operand := _OPERAND_MARK.fullmatch(mark):
            if operand[1] in "12":
                first[int(operand[1]) - 1] = operand[2]
            else:
                found[operand[1]] = operand[2]
        elif letters := _LETTERS.fullmatch(mark):
            options.update((f"-{letter}", OptionSpec(f"-{letter}")) for letter in letters[1])
        elif option := _OPTION_MARK.fullmatch(mark):
            options[option["option"]] = OptionSpec(
                option["option"],
                option["takes"],
                option["verb"],
                tuple(option["effects"].split(",")) if option["effects"] else (),
                option["operands"] or "",
                bool(option["first"]),
            )
        else:
            raise AssertionError(f"a table has a mark that means nothing: {mark!r}")
    for name in [*always, *(effect for option in options.values() for effect in option.effects)]:
        if name not in EFFECTS and not (name.startswith("?") and name[1:] in UNCLEAR):
            raise AssertionError(f"a table has an effect that does not exist: {name!r}")
    # `1VERB` alone gives one verb, and `2VERB` alone an empty one and a verb.
    while first and not first[-1]:
        first.pop()
    return ProgramSpec(
        options,
        tuple(first),
        found["$"],
        found["*"],
        found["."],
        found["@"],
        tuple(always),
        "posix" in flags,
        "literal" in flags,
        "lax" in flags,
        "gnu" in flags,
        "no" in flags,
        "onedash" in flags,
    )


def read_arguments(spec: ProgramSpec, words: Sequence[Word]) -> ParsedArguments:
    """Sort arguments into options and operands, as getopt does."""
    given = ParsedArguments()
    if spec.is_literal:
        given.operands += words
        return given
    waiting = iter(words)
    for word in waiting:
        # In `--include=*.py` the option is certain. Every other pattern may become anything.
        text = word.value if not word.is_pattern or re.match(r"--?[A-Za-z][\w-]*=", word.prefix) else None
        if text is None:
            _sort_uncertain_word(spec, given, word)
        elif not text.startswith("-") or text == "-":
            given.operands.append(word)
            if spec.is_posix:
                break
        elif text == "--":
            break
        elif text.startswith("--") or (spec.has_one_dash and len(text) > 2):
            _read_long_option(spec, given, word, text, waiting)
        elif not text[1:].isdigit() or text in spec.options:  # `-5` of head and tail means nothing; `-0` of xargs does
            _read_short_options(spec, given, word, text, waiting)
        if spec.is_posix and given.operands:
            break
    given.operands += waiting  # after `--`, or after the first operand with `posix`
    return given


def _sort_uncertain_word(spec: ProgramSpec, given: ParsedArguments, word: Word) -> None:
    """Sort a word that is unknown, a pattern, or has several values. It may be an option if it may begin with `-`."""
    start = word.prefix if not word.is_known else ""
    if start.startswith("-"):
        name, equals, _ = start.partition("=")
        option = _find_option(spec, name) if equals else spec.options.get(start[:2])
        length = len(name) + 1 if equals else 2
        if option is not None and option.takes:
            given.options.append((option, word.drop_first(length), word))
        elif option is None and len(start) > 1:
            given.unlisted.append((name if equals else start[:2], word))
        else:
            given.doubtful.append(word)
        return
    if word.is_pattern and word.is_known:
        may_be_option = any(value[:1] in "-*?[" for value in word.values)
    elif word.is_known:
        may_be_option = any(value.startswith("-") for value in word.values)
    else:
        may_be_option = not start  # a known prefix that is no hyphen rules it out
    if may_be_option:
        given.doubtful.append(word)
    given.operands.append(word)


def _read_long_option(
    spec: ProgramSpec, given: ParsedArguments, word: Word, text: str, waiting: Iterator[Word]
) -> None:
    name, equals, _ = text.partition("=")
    length = len(name) + 1
    if spec.has_one_dash and name.startswith("--") and name not in spec.options:
        name = name[1:]  # `--exec` means `-exec`
    option = _find_option(spec, name)
    if option is None:
        # `-Dname=value` of java: one letter with its value attached.
        if spec.has_one_dash and not text.startswith("--"):
            option = spec.options.get(text[:2])
            if option is not None and option.takes:
                given.options.append((option, word.drop_first(2), word))
                return
        if name not in _ALWAYS_LISTED:
            given.unlisted.append((name, word))
    elif option.takes and equals:
        given.options.append((option, word.drop_first(length), word))
    else:
        given.options.append((option, _take_option_value(option, waiting), word))


def _take_option_value(option: OptionSpec, waiting: Iterator[Word]) -> Word | None:
    """Take the value from the next word. Of two values, return the last."""
    value: Word | None = None
    for _ in range(option.takes.count("=")):
        value = next(waiting, None)
    return value


def _find_option(spec: ProgramSpec, name: str) -> OptionSpec | None:
    """Find an option by its name, by its negation, or by the beginning of its name.

    If several options begin so, return one with a meaning: Aver then assumes the worse.
    """
    option = spec.options.get(name)
    if option is not None or len(name) < 3 or name in _ALWAYS_LISTED:
        return option
    if spec.can_negate and name.startswith("--no-") and f"--{name[5:]}" in spec.options:
        return OptionSpec(name)
    # GNU programs accept `--verb` for `--verbose`.
    candidates = (
        [spec.options[listed] for listed in spec.options if listed.startswith(name)] if spec.can_shorten else []
    )
    return next((candidate for candidate in candidates if candidate.matters), candidates[0] if candidates else None)


def _read_short_options(
    spec: ProgramSpec, given: ParsedArguments, word: Word, text: str, waiting: Iterator[Word]
) -> None:
    """Read a group such as `-xvf FILE`. The first letter that takes a value takes the rest of the word, or the next."""
    for at in range(1, len(text)):
        name = f"-{text[at]}"
        option = spec.options.get(name)
        if option is None:
            given.unlisted.append((name, word))
        elif not option.takes:
            given.options.append((option, None, word))
        else:
            attached = at + 1 < len(text)
            value = word.drop_first(at + 1) if attached else _take_option_value(option, waiting)
            given.options.append((option, value, word))
            return

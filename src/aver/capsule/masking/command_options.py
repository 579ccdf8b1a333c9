"""Passwords on command lines: values that a known program takes as a password, such as `sshpass -p ...`.

The programs, their options and the places of their words are in `rules.toml`.
A pattern is searched from the program's name to the
end of its command: the next line end, `;`, `&` or `|`. No part of a text is searched twice by the same pattern, and
the patterns are bounded, so the time is linear.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from aver.capsule.masking import rules_table
from aver.capsule.masking.secret_values import is_secret_value
from aver.capsule.masking.token_patterns import Span
from aver.lazy_pattern import lazy_pattern

COMMAND_MAX = 2_000
"""Characters of one command in which a password is looked for."""

BEFORE_MAX = 400
"""Characters before a program in which its input is looked for: `echo name:password | chpasswd`."""

RULE = "command-credentials"

_PATTERNS = tuple(lazy_pattern(pattern) for _, _, pattern, _, _ in rules_table.COMMANDS)
_BY_PROGRAM: dict[str, list[int]] = {}
_BY_NEEDLE: dict[str, dict[str, None]] = {}
"""The programs of the commands that have a needle."""
for _number, (_programs, _needles, *_) in enumerate(rules_table.COMMANDS):
    for _program in _programs:
        _BY_PROGRAM.setdefault(_program, []).append(_number)
    for _needle in _needles:
        _BY_NEEDLE.setdefault(_needle, {}).update(dict.fromkeys(_programs))

_OPTIONS = tuple(needle for needle in _BY_NEEDLE if len(needle) == 2 and needle[0] == "-")
_LITERALS = tuple(needle for needle in _BY_NEEDLE if needle not in _OPTIONS and "pass" not in needle)
_PASS_LITERALS = tuple(needle for needle in _BY_NEEDLE if "pass" in needle)
# An option begins a word. JSON may have written a quote or an escape before it. The hyphen comes first in the pattern,
# because a pattern that begins with a character is searched fast.
_OPTION = lazy_pattern(
    r"-(?:(?<![!-~]-)|(?<=\"-)|(?<=\\[nrtf]-)|(?<=\\u[0-9a-f]{4}-))["
    + re.escape("".join(each[1] for each in _OPTIONS))
    + "]"
)
_WORD_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")

_PROGRAM = lazy_pattern(
    r"(?<![A-Za-z0-9_.-])(?:"
    + "|".join(re.escape(name) for name in sorted(_BY_PROGRAM, key=len, reverse=True))
    + r")(?![A-Za-z0-9_-])"
)
_REST = lazy_pattern(
    rf"(?:[^\n;|&\\\"']|&[A-Za-z0-9_.-]{{1,64}}=|\\(?:\r?\n|.)?|\"[^\"\n]{{0,512}}+\"?|'[^'\n]{{0,512}}+'?){{0,{COMMAND_MAX}}}+"
)


def may_give_password(text: str) -> bool:
    """Whether a text, or a value written as JSON, may contain a command that is given a password. A fast test."""
    needles = set(_OPTION.findall(text))
    needles.update([needle for needle in _LITERALS if needle in text])
    if "pass" in text:
        needles.update([needle for needle in _PASS_LITERALS if needle in text])
    return any(_has_program(text, program) for needle in needles for program in _BY_NEEDLE[needle])


def _has_program(text: str, program: str) -> bool:
    """Whether a program's name is in a text, and is not a part of another word."""
    at = text.find(program)
    while at != -1:
        before = text[at - 1 : at]
        alone = before not in _WORD_CHARACTERS and before != "."
        # In JSON, the end of an escape may stand before it.
        if (alone or "\\" in text[max(at - 6, 0) : at]) and text[
            at + len(program) : at + len(program) + 1
        ] not in _WORD_CHARACTERS:
            return True
        at = text.find(program, at + 1)
    return False


def find_command_spans(text: str) -> Iterator[Span]:
    """Find the passwords that commands in a text are given."""
    searched = [0] * len(_PATTERNS)
    at = end = 0
    was_cut = False
    while program := _PROGRAM.search(text, at):
        at = program.end()
        # Programs of one command share its end. A long command is read on when half of what was read is over.
        if end <= at or (was_cut and end - at < COMMAND_MAX // 2):
            rest = _REST.match(text, at)
            found = at if rest is None else rest.end()
            end = min(found, at + COMMAND_MAX)
            was_cut = found > end or found - at >= COMMAND_MAX
        for number in _BY_PROGRAM[program[0]]:
            *_, is_before, words = rules_table.COMMANDS[number]
            if not _has_words(text, program.start(), end, words):
                continue
            if is_before:
                begin, stop = max(searched[number], program.start() - BEFORE_MAX), program.end()
            else:
                begin, stop = max(searched[number], program.start()), end
            if begin < stop:
                searched[number] = stop
                yield from _find_values(text, _PATTERNS[number], begin, stop)


def _has_words(text: str, begin: int, end: int, words: tuple[str, ...]) -> bool:
    """Whether a command has these words in this order."""
    for word in words:
        begin = text.find(word, begin, end)
        if begin == -1:
            return False
    return True


def _find_values(text: str, pattern: re.Pattern[str], begin: int, stop: int) -> Iterator[Span]:
    for found in pattern.finditer(text, begin, stop):
        for group in ("a", "b", "c"):
            value = found[group] if group in pattern.groupindex else None
            # A blank in quotes is part of a password; `$NAME` and `<name>` are none.
            if value and value[0] not in "$<{[%*-" and is_secret_value("", value):
                yield Span(*found.span(group), RULE)

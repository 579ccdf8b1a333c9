"""Write `rules_table.py` from `rules.toml`, after a change of the masking rules: `python bench/masking_rules.py`.

The rules are data, so that they can be read and reviewed. Parsing TOML takes several milliseconds, and hooks load the
rules at every call. So the parsed rules are kept as a Python module, which the interpreter caches. A test compares
both.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

RULES = Path(__file__).parents[1] / "src" / "aver" / "capsule" / "masking" / "rules.toml"

HEADER = """# Made from `rules.toml` by `python bench/masking_rules.py`. Do not edit.
# ruff: noqa: E501
# fmt: off
\"\"\"The rules of masking as a table: see `rules.toml`.\"\"\"

from __future__ import annotations

"""

WORD_END = r"(?![A-Za-z0-9_-])"
VALUE = r"""(?:\$?'(?P<a>[^'\n]{1,256}+)'|"(?P<b>[^"\n]{1,256}+)"|(?P<c>[^\s"'|;&<>()]{1,256}+))"""


def build_table(text: str) -> str:
    """Return the source of `rules_table.py` for the text of `rules.toml`."""
    rules = tomllib.loads(text)
    tokens = [
        (
            token["rule"],
            _words(token["needles"]),
            _pattern(token["pattern"]),
            token.get("kind", "key"),
            token.get("check", ""),
            token.get("back", 0),
        )
        for token in rules["token"]
    ]
    split, leading = set(_words(rules["split_needles"])), set(_words(rules["leading_needles"]))
    for vendor in rules["vendor"]:
        forms = [read_form(form) for form in _words(vendor["forms"])]
        # Forms whose needle is as far from their beginning share a pattern.
        for back in sorted({form.back for form in forms}):
            alike = [form for form in forms if form.back == back]
            needles = tuple(dict.fromkeys(form.needle for form in alike))
            pattern = "|".join(form.pattern for form in alike)
            tokens.append((vendor["rule"], needles, _pattern(pattern), "key", vendor.get("check", ""), back))
            split |= {form.needle for form in alike if form.place == "split"}
            leading |= {form.needle for form in alike if form.place == "leading"}
    shapes = [
        (
            shape["rule"],
            shape["begins"],
            tuple(int(part) for part in shape["lengths"].split("-")),
            shape.get("follows", ""),
            _pattern(shape["pattern"]),
            shape["check"],
        )
        for shape in rules["shape"]
    ]
    commands = [
        (
            _words(command["programs"]),
            _words(command["needles"]),
            _pattern(command["pattern"]),
            command.get("before", False),
            (),
        )
        for command in rules["command"]
    ]
    commands += [row for program in rules["program"] for row in _read_program(program)]
    names = {name: tuple(values) for name, values in (rules["names"] | rules["values"]).items()}
    return "".join(
        [
            HEADER,
            f"VERSION = {rules['version']!r}\n\n",
            *_sort_needles(tokens, split, leading),
            _assign("TOKENS", "str, tuple[str, ...], str, str, str, int", tokens),
            _assign("SHAPES", "str, str, tuple[int, ...], str, str, str", shapes),
            _assign("COMMANDS", "tuple[str, ...], tuple[str, ...], str, bool, tuple[str, ...]", commands),
            *(f"{name.upper()}: tuple[str, ...] = {values!r}\n" for name, values in names.items()),
        ]
    )


def _words(value: str | list[str]) -> tuple[str, ...]:
    return tuple(value.split() if isinstance(value, str) else value)


def _pattern(value: str | list[str]) -> str:
    joined = value if isinstance(value, str) else "|".join(value)
    return joined.replace("%END%", WORD_END).replace("%VALUE%", VALUE)


def _assign(name: str, types: str, rows: list[Any]) -> str:
    lines = "".join(f"    {row!r},\n" for row in rows)
    return f"{name}: tuple[tuple[{types}], ...] = (\n{lines})\n\n"


# --- programs


def _read_program(program: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    """Yield a row for each way in which a program is given a secret: programs, needles, pattern, before, words."""
    programs, words = _words(program["programs"]), _words(program["words"])
    needle = words[-1:] or programs[:1]
    if options := _words(program.get("options", "")):
        # A value may follow a short option at once.
        named = "|".join(f"{re.escape(each)}[ =]{{{1 if each.startswith('--') else 0},4}}" for each in options)
        yield programs, options, _pattern(rf"(?<!\S)(?:{named})%VALUE%"), False, words
    if position := program.get("position"):
        before = rf"(?:[^\s/-]\S{{0,128}}+\s{{1,4}}+){{{position - 1}}}(?:-[A-Za-z]{{2,20}}+\s{{1,4}}+)?"
        between = r"(?:\s{1,4}+--?[A-Za-z-]{1,32}+(?:[ =][^\s-]\S{0,128}+)?){0,8}+"
        last = rf"(?:{'|'.join(map(re.escape, programs))})" + between * bool(words) + r"\s{1,4}".join(("", *words))
        yield programs, needle, _pattern(rf"(?<!\S){last}\s{{1,4}}+{before}(?![-/])%VALUE%"), False, words
    if assigned := program.get("assigned"):
        name = "[A-Za-z_][A-Za-z0-9_.-]{0,64}+" if assigned is True else f"(?:{'|'.join(_words(assigned))})"
        yield programs, needle, _pattern(rf"(?<!\S)[\"']?{name}=%VALUE%"), False, words
    if program.get("stdin"):
        names = "|".join(map(re.escape, programs))
        said = r"(?:echo|printf)\s{1,4}+(?:-[neE]{1,3}\s{1,4}+|[\"']?%s(?:\\n)?[\"']?\s{1,4}+)?%VALUE%"
        piped = rf"{said}\s{{0,4}}+\|\s{{0,4}}+(?:sudo\s{{1,4}}+)?(?:{names})"
        yield programs, needle, _pattern(piped), True, words
        yield programs, needle, _pattern(r"<<<\s{0,4}%VALUE%"), False, words


# --- the forms of vendors

SORTS = {
    "d": "0-9",
    "x": "a-f0-9",
    "l": "a-z0-9",
    "U": "A-Z0-9",
    "w": "A-Za-z0-9",
    "u": "A-Za-z0-9_-",
    "b": "A-Za-z0-9+/",
}
"""The characters of each sort that a form can name."""

PART = re.compile(r"\{(?P<sort>[dxlUwub])(?P<least>[0-9]+)(?:-(?P<most>[0-9]+)|(?P<open>\+))?\}|(?P<uuid>\{uuid\})")
_UUID = "-".join(f"[a-f0-9]{{{size}}}" for size in (8, 4, 4, 4, 12))
DIGEST_CHARACTERS = "0123456789abcdef-"
"""Runs of these alone are not searched."""

_RUN_MIN = 15
"""`token_patterns.KEY_RUN_MIN`: a needle in a shorter run is looked for in the whole text."""


class Form(NamedTuple):
    """The form of a key: its needle is its first literal text, which stands `back` characters after its beginning."""

    needle: str
    back: int
    pattern: str
    place: Literal["run", "leading", "split"]
    """Where the needle is looked for: in long runs of letters, right before such a run, or everywhere."""


def read_form(form: str) -> Form:
    """Read a form such as `cfk_{w40}{x8}`. The text before the needle has one length."""
    parts, at = list[str | re.Match[str]](), 0
    for found in PART.finditer(form):
        parts += [form[at : found.start()], found]
        at = found.end()
    needle, back, pattern, after = "", 0, "", 0
    for part in (*parts, form[at:]):
        if isinstance(part, str):
            needle = needle or part
            pattern += re.escape(part)
        elif part["uuid"]:
            pattern += _UUID
            after += 36 if needle else 0
        else:
            least, sort = int(part["least"]), part["sort"]
            most = "," if part["open"] else f",{part['most']}" if part["most"] else ""
            pattern += f"[{SORTS[sort]}]{{{least}{most}}}{'+' if part['open'] else ''}"
            back += 0 if needle else least
            after += least if needle and sort != "b" else 0
    if form.endswith("}") and not pattern.endswith("+"):
        pattern += "%END%"
    if not RUN_CHARACTERS.issuperset(needle):
        return Form(needle, back, pattern, "leading" if needle[-1] in "./" and after >= _RUN_MIN else "split")
    is_in_run = len(needle) + after >= _RUN_MIN and bool(needle.strip(DIGEST_CHARACTERS))
    return Form(needle, back, pattern, "run" if is_in_run else "split")


# --- how a text is searched for needles

RUN_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")
"""A run of these is a word in which a key is looked for."""

RARE_CHARACTERS = "~$*=JQZXKOGRA"
"""Characters that many texts lack, the rarest first. One character is found much faster than a text."""

SHARED_MIN = 2
SHARED_WORD_MIN = 4
"""The shortest part that needles share as their guard. Among words, shorter parts are in every text."""

_Needle = tuple[str, int]
"""A needle, and the number of its pattern."""


def _sort_needles(tokens: list[Any], split: set[str], leading: set[str]) -> Iterator[str]:
    """Sort the needles by the way in which a text is searched for them: see `token_patterns.possible_patterns`."""
    beginnings: dict[str, list[_Needle]] = {}
    inner, leads, texts, words = list[_Needle](), list[_Needle](), list[_Needle](), list[_Needle]()
    for number, (_, needles, _, kind, _, back) in enumerate(tokens):
        for needle in needles:
            if kind == "word":
                words.append((needle, number))
            elif needle in leading:
                leads.append((needle, number))
            elif needle in split or not RUN_CHARACTERS.issuperset(needle):
                texts.append((needle, number))
            elif kind == "key" and not back:
                beginnings.setdefault(needle[:2], []).append((needle, number))
            else:
                inner.append((needle, number))
    by_beginning = {beginning: tuple(each) for beginning, each in beginnings.items()}
    yield f"BEGINNING_NEEDLES: dict[str, tuple[tuple[str, int], ...]] = {by_beginning!r}\n"
    yield f"INNER_NEEDLES: tuple[tuple[str, int], ...] = {tuple(inner)!r}\n"
    yield f"LEADING_NEEDLES: tuple[tuple[str, int], ...] = {tuple(leads)!r}\n"
    yield _assign("TEXT_NEEDLES", "str, tuple[tuple[str, int], ...]", _guard_needles(texts, SHARED_MIN))
    yield _assign("WORD_NEEDLES", "str, tuple[tuple[str, int], ...]", _guard_needles(words, SHARED_WORD_MIN))


def _guard_needles(needles: list[_Needle], shared_min: int) -> list[tuple[str, tuple[_Needle, ...]]]:
    """Group needles by a guard that all of a group contain: a text without the guard contains none of them."""
    guarded: dict[str, list[_Needle]] = {}
    left = list[_Needle]()
    for each in needles:
        rare = next((character for character in RARE_CHARACTERS if character in each[0]), None)
        if rare is None:
            left.append(each)
        else:
            guarded.setdefault(rare, []).append(each)
    while left:
        texts = {needle for needle, _ in left}
        parts = {text[a:b] for text in texts for a in range(len(text)) for b in range(a + shared_min, len(text) + 1)}
        # The part that most of them share; of several, the longest.
        guard = max(parts, key=lambda part: (sum(part in text for text in texts), len(part), part))
        guarded[guard] = [each for each in left if guard in each[0]]
        left = [each for each in left if guard not in each[0]]
    return [(guard, tuple(group)) for guard, group in guarded.items()]


if __name__ == "__main__":
    RULES.with_name("rules_table.py").write_text(build_table(RULES.read_text()))

"""Make `rules_table.py` from `rules.toml`.

The rules are data, so that they can be read and reviewed. Parsing TOML takes several milliseconds, and hooks load the
rules at every call. So the parsed rules are kept as a Python module, which the interpreter caches. A test compares
both.
"""

from __future__ import annotations

import tomllib
from typing import Any

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
        (_words(command["programs"]), _pattern(command["pattern"]), command.get("before", False))
        for command in rules["command"]
    ]
    names = {name: tuple(values) for name, values in (rules["names"] | rules["values"]).items()}
    return "".join(
        [
            HEADER,
            f"VERSION = {rules['version']!r}\n",
            f"SPLIT_NEEDLES: tuple[str, ...] = {_words(rules['split_needles'])!r}\n\n",
            _assign("TOKENS", "str, tuple[str, ...], str, str, str, int", tokens),
            _assign("SHAPES", "str, str, tuple[int, ...], str, str, str", shapes),
            _assign("COMMANDS", "tuple[str, ...], str, bool", commands),
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

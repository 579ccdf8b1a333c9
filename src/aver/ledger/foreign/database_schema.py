"""Refuse the schema of another tool's database if SQLite would evaluate an expression of it.

SQLite evaluates expressions of a schema unasked: those of views and generated columns when rows are read, those of
indexes in `integrity_check`, those of triggers, defaults and CHECK when rows are written. One expression can run for
ever, and can show a reader other values than the verifier saw. The tools that Aver knows write no expressions. So a
schema may have these only:

* ordinary tables, whose columns have a type, a key, a literal default, and no collation of their own;
* indexes over whole columns and all rows.

The text of each statement is judged, because it decides which object SQLite makes. Reading the texts evaluates nothing.
"""

from __future__ import annotations

import re
import sqlite3

STATEMENT_MAX = 64 * 1024
"""Longest statement of a schema, in characters. Those of the known tools have some hundred."""

OBJECTS_MAX = 1000
"""Most objects in a schema. The known tools make ten at most."""

# Comments and white space, then strings and quoted names, then words and numbers, then single characters.
_TOKEN = re.compile(
    r"""(?P<skip>\s++|--[^\n]*+|/\*.*?(?:\*/|\Z))
    |(?P<quoted>'(?:[^']|'')*+'|"(?:[^"]|"")*+"|`(?:[^`]|``)*+`|\[[^\]]*+\])
    |(?P<word>[\w$\u0080-\uffff]++)
    |(?P<sign>.)""",
    re.DOTALL | re.VERBOSE,
)

_TABLE_WORDS = {
    "CHECK": "a CHECK condition",
    "COLLATE": "a collation",
    "GENERATED": "a generated column",
    "AS": "a generated column",
}
_INDEX_WORDS = {"WHERE": "a condition", "COLLATE": "a collation"}
_INDEX_SIGNS = frozenset("(),.")
_DEFAULT_SIGNS = frozenset("+-")


def find_computation(connection: sqlite3.Connection) -> str | None:
    """The first object of a schema that computes something, in words; None if there is none."""
    objects = connection.execute(
        "SELECT substr(CAST(name AS BLOB), 1, 80), substr(CAST(sql AS BLOB), 1, ?) FROM sqlite_schema LIMIT ?",
        (STATEMENT_MAX + 1, OBJECTS_MAX + 1),
    )
    for number, (name, sql) in enumerate(objects):
        if number == OBJECTS_MAX:
            return f"it has more than {OBJECTS_MAX} tables and indexes"
        shown = ascii((name or b"").decode("utf-8", "replace"))[1:-1]
        if sql is None:
            continue  # The index of a UNIQUE constraint, over the columns that the table's own statement names.
        if len(sql) > STATEMENT_MAX:
            return f"the statement of {shown} is longer than {STATEMENT_MAX} characters"
        if words := _statement_problem(sql.decode("utf-8", "replace")):
            return f"{shown} is or has {words}"
    return None


def _statement_problem(sql: str) -> str | None:
    """Say in words what a statement computes; None if it makes a plain table or index."""
    tokens = [(str(match.lastgroup), match[0].upper()) for match in _TOKEN.finditer(sql) if match.lastgroup != "skip"]
    words = [text for kind, text in tokens if kind == "word"]
    if words[:2] == ["CREATE", "TABLE"]:
        found = next((_TABLE_WORDS[word] for word in words if word in _TABLE_WORDS), None)
        return found or _default_problem(tokens)
    if words[:2] == ["CREATE", "INDEX"] or words[:3] == ["CREATE", "UNIQUE", "INDEX"]:
        found = next((_INDEX_WORDS[word] for word in words if word in _INDEX_WORDS), None)
        signs = [text for kind, text in tokens if kind == "sign"]
        # A function has brackets of its own; an operator is another sign, or a word beside a column's name.
        is_plain = _INDEX_SIGNS.issuperset(signs) and signs.count("(") == 1 and _has_plain_columns(tokens)
        return found or (None if is_plain else "an expression")
    made = words[1] if len(words) > 1 else "nothing"
    return f"no table and no index, but {ascii(made)[1:-1][:20]}"


def _has_plain_columns(tokens: list[tuple[str, str]]) -> bool:
    """Whether the brackets of an index hold names of columns only, each with ASC or DESC at most."""
    texts = [text for _, text in tokens]
    if "(" not in texts:
        return False
    columns: list[list[tuple[str, str]]] = [[]]
    for kind, text in tokens[texts.index("(") + 1 :]:
        if text == ")" and kind == "sign":
            break
        if text == "," and kind == "sign":
            columns.append([])
        else:
            columns[-1].append((kind, text))
    return all(
        # A word that begins with a digit is a number; a text in single quotes may be a value.
        len(column) in (1, 2)
        and not column[0][1][:1].isdigit()
        and not column[0][1].startswith("'")
        and all(text in ("ASC", "DESC") for _, text in column[1:])
        for column in columns
    )


def _default_problem(tokens: list[tuple[str, str]]) -> str | None:
    """Say in words what a default of a table computes; None if each is a literal."""
    for place, token in enumerate(tokens):
        if token == ("word", "DEFAULT"):
            following = [one for one in tokens[place + 1 : place + 3] if one[1] not in _DEFAULT_SIGNS]
            if not following or following[0][0] == "sign":
                return "a default that is an expression"
    return None

"""The checks of evidence in words, for people: `exit code == 0`, `/secrets == 0`, `contains "3 passed"`.

Nothing here judges a check (module `predicates`). A check of a form that is not known is shown as its JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aver.capsule.canonical import canonical_json
from aver.text import escape_invisible, summary_line

TEXT_MAX = 300
"""Characters of one value on a line."""


def show_value(value: Any) -> str:
    """A value as canonical JSON on one safe line."""
    return escape_invisible(summary_line(canonical_json(value).decode(), TEXT_MAX))


def describe_check(check: Any) -> str:
    """Say which value a check expects."""
    try:
        return _describe(check) or show_value(check)
    except (KeyError, TypeError, ValueError, AttributeError):
        return show_value(check)


def _describe(check: Mapping[str, Any]) -> str:
    ((name, wanted),) = check.items()
    if name == "exit_code":
        return f"exit code {_compare(wanted)}"
    if name == "json":
        return (
            f"{escape_invisible(summary_line(wanted['pointer'], TEXT_MAX)) or 'the document'} {_compare(wanted['is'])}"
        )
    if name == "tests":
        return "tests " + ", ".join(f"{each} {_compare(count)}" for each, count in wanted["counts"].items())
    if name == "text":
        ((how, text),) = wanted.items()
        return f"lines {_compare(text)}" if how == "lines" else f"{how} {show_value(text)}"
    return ""


def _compare(pair: Any) -> str:
    sign, value = pair
    return f"{sign} {show_value(value)}"


def describe_item(item: Mapping[str, Any]) -> str:
    """Say what an item of evidence names, and which value it expects there."""
    about = " ".join(f"{name} {str(item[name])[:16]}" for name in ("artifact", "execution") if name in item)
    check = describe_check(item["check"]) if "check" in item else "no check"
    return f"{about}: {check}" if about else check

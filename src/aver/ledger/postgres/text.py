"""Text in a column: PostgreSQL's `text` holds any character but U+0000.

What is signed stands in `canonical`, as bytes, and is not touched by this. The columns to search by are copies, and in
them U+0000 is written U+0001 U+0001, and U+0001 is written U+0001 U+0002. So every text has one form and every form one
text, and forms sort as their texts do: a search finds here what it finds in a file.
"""

from __future__ import annotations

import re

__all__ = ["from_column", "to_column"]

_FORMS = {"\0": "\1\1", "\1": "\1\2"}
_TEXTS = {form: text for text, form in _FORMS.items()}
_WRITTEN = re.compile("[\0\1]")
_READ = re.compile("\1[\1\2]")

NOT_OURS = "\udcff"
"""Put before what Aver would never have written: half a character, which no signed text can have."""


def to_column(text: str) -> str:
    """The form in which a text is stored."""
    if "\0" not in text and "\1" not in text:
        return text
    return _WRITTEN.sub(lambda found: _FORMS[found[0]], text)


def from_column(stored: str) -> str:
    """The text that was stored; unlike any, if this is the form of none."""
    if "\1" not in stored:
        return stored
    text = _READ.sub(lambda found: _TEXTS[found[0]], stored)
    return text if to_column(text) == stored else NOT_OURS + stored

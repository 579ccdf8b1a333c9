"""The second reader: tree-sitter's grammar of bash looks at the same text.

A parser that misses a command lets it through, so no single parser is trusted to miss none. Whatever tree-sitter takes
for a command must be one that the first reader found at the same place; else the command is unclear. The other way
round needs no check: a command that only the first reader found is judged all the same.

The first reader decides what is data (the text of here-documents, quoted strings, comments, what stands in backticks
and is read on its own), and that is blanked out here, character by character, so that places stay the same. Of
tree-sitter's own reading, only where commands begin is used: its grammar misses backticks in here-documents, takes
`[ a > file ]` for a comparison, and splits words at continued lines.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from aver.gate.shell.parser.grammar import ScriptReader
from aver.gate.shell.parser.words import UnreadableCommand
from aver.gate.shell.report import EffectReport

if TYPE_CHECKING:
    from tree_sitter import Parser

__all__ = ["SYNTAX_MAX", "require_agreement"]

SYNTAX_MAX = 4096
"""Characters that are not data, in all scripts of a command. On hostile text tree-sitter takes quadratic time: 0.3 s
for so many."""

_UNPRINTABLE = re.compile(r"[^\x20-\x7e\n\t]")


@lru_cache(maxsize=1)
def _load_parser() -> Parser | None:
    """Imported when the first command is read, and once: a hook pays for it only if there is a command."""
    try:
        import tree_sitter_bash
        from tree_sitter import Language, Parser
    except ImportError:
        return None
    return Parser(Language(tree_sitter_bash.language()))


def require_agreement(reader: ScriptReader, report: EffectReport) -> None:
    """Refuse a text that was read, if tree-sitter cannot read it or sees a command where none was found."""
    parser = _load_parser()
    if parser is None:
        raise UnreadableCommand("no-parser", "the shell parser is not installed: pip install 'aver[policy]'")
    shadow, syntax = _blank_out_data(reader)
    report.syntax_read += syntax
    if report.syntax_read > SYNTAX_MAX:
        raise UnreadableCommand("too-much", f"more than {SYNTAX_MAX} characters besides quoted text and here-documents")
    root = parser.parse(shadow).root_node
    if root.has_error:
        raise UnreadableCommand("syntax", "one of two parsers cannot read it")
    found = frozenset(reader.starts)
    walk = [root]
    while walk:
        node = walk.pop()
        if node.type == "command_name":
            if node.start_byte not in found:
                seen = shadow[node.start_byte : node.end_byte].decode("ascii")
                raise UnreadableCommand("readers-differ", f"one of two parsers sees a command {seen[:40]!r} in it")
        else:
            walk += node.named_children


def _blank_out_data(reader: ScriptReader) -> tuple[bytes, int]:
    """The text with what is data blanked out, and how many characters are left."""
    text = _UNPRINTABLE.sub("u", reader.text)
    if not reader.hidden:
        return text.encode("ascii"), len(text)
    pieces: list[str] = []
    at = kept = 0
    for start, end, blank in sorted(reader.hidden):
        if start < at:  # inside one that is blanked already
            continue
        pieces += (text[at:start], blank * (end - start))
        kept += start - at
        at = end
    pieces.append(text[at:])
    return "".join(pieces).encode("ascii"), kept + len(text) - at

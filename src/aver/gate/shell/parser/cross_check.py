"""The second parser: tree-sitter's grammar of bash reads the same text, and must not find another command.

A parser that misses a command lets it through. Aver therefore does not trust a single parser. Each command that
tree-sitter sees must start where Aver's own parser found one. If not, the command is unclear. The opposite needs no
check: Aver judges every command that its own parser found.

Aver's parser decides which stretches are data: here-documents, quoted strings, comments, and backticks (which it reads
as scripts of their own). This module replaces data by filler of the same length, so that offsets stay the same:

    echo 'rm x' # ls        is shown to tree-sitter as
    echo 'xxxx'

Of tree-sitter's result only the starts of commands are used. Its grammar misses backticks in here-documents, reads
`[ a > file ]` as a comparison, and splits words at continued lines.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from aver.gate.shell.model import CommandReport
from aver.gate.shell.parser.grammar import ScriptReader
from aver.gate.shell.parser.words import UnreadableCommand
from aver.lazy_pattern import lazy_pattern
from aver.submodule import load_submodule

if TYPE_CHECKING:
    from tree_sitter import Parser

SYNTAX_MAX = 4096
"""Characters besides data, in all scripts of a command together. On hostile text tree-sitter needs quadratic time; this
many take 0.3 s."""

_UNPRINTABLE = lazy_pattern(r"[^\x20-\x7e\n\t]")


@lru_cache(maxsize=1)
def _load_parser() -> Parser | None:
    """Load tree-sitter at the first command. A hook without a command does not pay for it."""
    try:
        from tree_sitter import Language, Parser

        # The package loads `importlib.resources`, too, for files that Aver does not need.
        grammar = load_submodule("tree_sitter_bash", "_binding")
    except ImportError:
        return None
    return Parser(Language(grammar.language()))


def require_agreement(reader: ScriptReader, report: CommandReport) -> None:
    """Compare tree-sitter's reading with that of `reader`, which has read the text.

    Raises `UnreadableCommand` if tree-sitter is missing, cannot read the text, or sees another command.
    """
    parser = _load_parser()
    if parser is None:
        raise UnreadableCommand("no-parser", "the shell parser is not installed: pip install aver-ledger")
    # 1. Replace data by filler. One ASCII letter for each other character keeps the offsets.
    text = _UNPRINTABLE.sub("u", reader.text)
    pieces: list[str] = []
    at = 0
    for start, end, filler in sorted(reader.hidden):
        if start < at:  # inside a stretch that is replaced already
            continue
        pieces += (text[at:start], filler * (end - start))
        # 2. Count the rest over all scripts of the command, so that many small scripts cannot get around the limit.
        report.syntax_read += start - at
        at = end
    pieces.append(text[at:])
    report.syntax_read += len(text) - at
    if report.syntax_read > SYNTAX_MAX:
        raise UnreadableCommand("too-much", f"more than {SYNTAX_MAX} characters besides quoted text and here-documents")
    # 3. Each command that tree-sitter sees must begin where Aver's parser found one.
    shadow = "".join(pieces).encode("ascii")
    root = parser.parse(shadow).root_node
    # A tree with errors may lack commands, so it proves nothing.
    if root.has_error:
        raise UnreadableCommand("syntax", "one of two parsers cannot read it")
    found = frozenset(reader.starts)
    waiting = [root]  # a stack instead of recursion: the text decides how deep the tree is
    while waiting:
        node = waiting.pop()
        if node.type == "command_name":
            # The shadow is ASCII, so a byte offset is a character offset.
            if node.start_byte not in found:
                seen = shadow[node.start_byte : node.end_byte].decode("ascii")
                raise UnreadableCommand("readers-differ", f"one of two parsers sees a command {seen[:40]!r} in it")
        else:
            waiting += node.named_children

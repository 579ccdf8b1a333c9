"""The reader of words: quotes, escapes, expansions and substitutions, as bash reads them.

The reader refuses what shells read in different ways, and what is too rare to support. It raises `UnreadableCommand`
for quotes inside `${…}` inside quotes, `$[…]`, `${name@P}`, and arithmetic that is not plainly arithmetic. A refused
command is unclear.

The reader moves one position, `at`, from left to right. A method that reads something starts at `at` and leaves `at`
after it. Its docstring says where it expects `at` if that is not the first character.
"""

from __future__ import annotations

import re

from aver.errors import BadInput
from aver.fast_dataclass import dataclass
from aver.gate.shell.model import NESTING_MAX, WORDS_MAX
from aver.gate.shell.parser.syntax import RawWord, Redirect, Script, WordPart
from aver.lazy_pattern import lazy_pattern

BLANKS = lazy_pattern(r"(?:[ \t]|\\\n)+")
_PLAIN_WORD = lazy_pattern(r"[A-Za-z0-9_./:@%+,=~^-]+")
_WORD_ENDS = frozenset(" \t\n;&|()<>")
_OPERATORS = frozenset(";&|()<>")
_UNQUOTED_RUN = lazy_pattern(r"[^ \t\n;&|()<>'\"\\$`]+")
_QUOTED_RUN = lazy_pattern(r'[^"\\$`]+')
_PATTERN_OR_BRACE = lazy_pattern(r"[*?\[{]")
_NAME = lazy_pattern(r"[A-Za-z_][A-Za-z0-9_]*")
_SPECIAL_PARAMETERS = frozenset("0123456789@*#?$!-")
_PARAMETER = lazy_pattern(r"[!#]?(?P<name>[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!-])(?:\[[\w@*$-]+\])?", re.ASCII)
_ARITHMETIC_RUN = lazy_pattern(r"[\w\s+\-*/%<>=!&|^~?:,.\[\]@#]+", re.ASCII)
_COMPUTED_PART = lazy_pattern(r"\$\{[!#]?\w+(\[[^\]]*\]|:(?![-=?+])[^}]*)", re.ASCII)
"""The subscript or the offset in `${name[i]}` and `${name:i}`."""
_EXPANSION_RUN = lazy_pattern(r"[^}\\'\"$`{<>\n]+")
_BACKTICK_RUN = lazy_pattern(r"[^`\\]+")
_ANSI_RUN = lazy_pattern(r"[^'\\]+")
_ESCAPE = lazy_pattern(
    r"\\(?:([abeEfnrtv\\'\"?])|([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|c(.))",
    re.DOTALL,
)
_SHORT_ESCAPES = dict(zip("abeEfnrtv\\'\"?", "\a\b\x1b\x1b\f\n\r\t\v\\'\"?", strict=True))


class UnreadableCommand(BadInput):
    """The reader refuses a command, or the command exceeds a limit. `code` is a code of `UNCLEAR`."""

    def __init__(self, code: str, why: str) -> None:
        super().__init__(why)
        self.code = code


@dataclass(slots=True)
class PendingHeredoc:
    """A here-document whose operator was read. Its text begins after the end of the line."""

    redirect: Redirect
    delimiter: str
    is_literal: bool
    strips_tabs: bool
    level: int
    is_plain: bool
    """Its beginning is written so that every shell reads it alike."""


class WordReader:
    """A position in a text, and the methods that read words from there.

    A subclass reads the scripts inside words, because they need the whole grammar.
    """

    __slots__ = ("at", "depth", "end", "hidden", "level", "pending", "starts", "text", "words_read")

    def __init__(self, text: str, *, depth: int = 0) -> None:
        self.text = text
        self.at = 0
        self.end = len(text)
        self.depth = depth
        self.level = 0
        """Substitutions around the position. A here-document must end in the substitution in which it began."""
        self.words_read = 0
        self.pending: list[PendingHeredoc] = []
        self.starts: list[int] = []
        """Offsets of the program's word of each simple command, for the second parser."""
        self.hidden: list[tuple[int, int, str]] = []
        """Stretches that are data to the shell: start, end, and the filler that the second parser sees instead."""
        self.enter_level()

    # --- added by the grammar

    def read_substitution(self) -> Script:
        """Read the commands of a substitution, and its closing parenthesis."""
        raise NotImplementedError

    def read_nested_script(self, text: str) -> Script:
        """Read a text that is a script of its own: the text between backticks."""
        raise NotImplementedError

    def enter_level(self) -> None:
        """Enter one level of nesting. The caller leaves it by `depth -= 1`, unless it raises."""
        self.depth += 1
        if self.depth > NESTING_MAX:
            raise UnreadableCommand("too-much", f"nested deeper than {NESTING_MAX} levels")

    # --- words

    def read_word(self) -> RawWord | None:
        """Read the word that begins here. Returns None if there is none."""
        text, start = self.text, self.at
        self.count_words()
        # The common case first: a word without quotes or expansions, in one match.
        plain = _PLAIN_WORD.match(text, start)
        if plain is not None:
            stop = plain.end()
            # `a<(b)` goes on after the plain part.
            if stop == self.end or (text[stop] in _WORD_ENDS and not text.startswith(("<(", ">("), stop)):
                self.at = stop
                source = plain[0]
                return RawWord(source, (WordPart("text", source),))
        parts: list[WordPart] = []
        while self.at < self.end:
            self.count_words()
            char = text[self.at]
            if char in _WORD_ENDS:
                # `<(` and `>(` continue a word; every other `<` and `>` ends it.
                if char not in "<>" or not text.startswith("(", self.at + 1):
                    break
                self.at += 2
                parts.append(WordPart("process", char, script=self.read_substitution()))
            elif char == "'":
                parts.append(WordPart("text", self._read_single_quoted(), quoted=True))
            elif char == '"':
                self.at += 1
                parts += self._read_double_quoted()
            elif char == "\\":
                following = text[self.at + 1 : self.at + 2]
                if not following:
                    raise UnreadableCommand("syntax", "a backslash at the very end")
                after_word = text[self.at - 1 : self.at] not in ("", " ", "\t", "\n")
                if following != "\n":
                    parts.append(WordPart("text", following, quoted=True))
                elif after_word and text[self.at + 2 : self.at + 3] in _OPERATORS:
                    # A continued line may join two operators into one, such as `&` and `&`.
                    raise UnreadableCommand("syntax", "a continued line in the middle of a mark")
                self.at += 2
            elif char == "$":
                parts += self._read_dollar(quoted=False)
            elif char == "`":
                parts.append(WordPart("command", script=self._read_backticks(quoted=False)))
            else:
                run = _UNQUOTED_RUN.match(text, self.at)
                assert run is not None  # every other character belongs to the run
                self.at = run.end()
                parts.append(WordPart("bare" if _PATTERN_OR_BRACE.search(run[0]) else "text", run[0]))
        if not parts:
            return None
        return RawWord(text[start : self.at], tuple(parts))

    def read_expandable_heredoc(self) -> RawWord:
        """Read the whole text as a here-document: expansions count, quotes do not."""
        return RawWord(self.text, tuple(self._read_expandable_text(closing=None)))

    def count_words(self, count: int = 1) -> None:
        self.words_read += count
        if self.words_read > WORDS_MAX:
            raise UnreadableCommand("too-much", f"more than {WORDS_MAX} words and parts of words")

    # --- quotes

    def _read_single_quoted(self) -> str:
        close = self.text.find("'", self.at + 1)
        if close == -1:
            raise UnreadableCommand("syntax", "a single quote is not closed")
        inner = self.text[self.at + 1 : close]
        # The quotes stay visible to the second parser, the text between them does not.
        self.hidden.append((self.at + 1, close, "x"))
        self.at = close + 1
        return inner

    def _read_double_quoted(self) -> list[WordPart]:
        start = self.at
        parts = self._read_expandable_text(closing='"')
        if self.at > self.end:  # how `_read_expandable_text` says that the quote is missing
            raise UnreadableCommand("syntax", "a double quote is not closed")
        # With expansions inside, the second parser must see the text, too.
        if len(parts) == 1 and parts[0].kind == "text":
            self.hidden.append((start, self.at - 1, "x"))
        return parts or [WordPart("text", "", quoted=True)]

    def _read_expandable_text(self, *, closing: str | None) -> list[WordPart]:
        """Read up to and including `closing`, or up to the end of the text.

        If the closing character is missing, `at` is one past the end afterwards.
        """
        text, parts = self.text, list[WordPart]()
        literal: list[str] = []

        def flush() -> None:
            if literal:
                parts.append(WordPart("text", "".join(literal), quoted=True))
                literal.clear()

        while self.at < self.end:
            char = text[self.at]
            if char == closing:
                self.at += 1
                flush()
                return parts
            if char == "\\" and self.at + 1 < self.end:
                following = text[self.at + 1]
                # Inside double quotes a backslash is special only before these characters.
                if following in "$`\\\n" or following == closing:
                    literal.append("" if following == "\n" else following)
                else:
                    literal.append("\\" + following)
                self.at += 2
            elif char == "$":
                flush()
                self.count_words()
                parts += self._read_dollar(quoted=True)
            elif char == "`":
                flush()
                self.count_words()
                parts.append(WordPart("command", quoted=True, script=self._read_backticks(quoted=closing is not None)))
            elif run := _QUOTED_RUN.match(text, self.at):
                literal.append(run[0])
                self.at = run.end()
            else:  # a quote in a here-document, a backslash at its end
                literal.append(char)
                self.at += 1
        flush()
        if closing is not None:
            self.at = self.end + 1
        return parts

    def _read_ansi_quoted(self) -> str:
        """Read `$'…'` from its opening quote, and decode its escapes."""
        start = at = self.at + 1
        pieces: list[bytes] = []
        while at < self.end and self.text[at] != "'":
            if run := _ANSI_RUN.match(self.text, at):
                pieces.append(run[0].encode("utf-8", "surrogatepass"))
                at = run.end()
            elif self.text.startswith("\\x{", at):
                raise UnreadableCommand("syntax", "an escape \\x{…}, which shells read differently")
            elif found := _ESCAPE.match(self.text, at):
                pieces.append(_decode_escape(found))
                at = found.end()
            elif at + 1 < self.end:
                pieces.append(self.text[at : at + 2].encode("utf-8", "surrogatepass"))
                at += 2
            else:
                break
        if not self.text.startswith("'", at):
            raise UnreadableCommand("syntax", "a $' quote is not closed")
        self.hidden.append((start, at, "x"))
        self.at = at + 1
        # Escapes name bytes, so decode at the end. A NUL ends the text, as in bash.
        return b"".join(pieces).partition(b"\0")[0].decode("utf-8", "surrogateescape")

    # --- expansions

    def _read_dollar(self, *, quoted: bool) -> list[WordPart]:
        """Read what begins with a dollar sign. A lone dollar sign stands for itself."""
        text, at = self.text, self.at
        following = text[at + 1 : at + 2]
        # The longest name counts: `$ab` is never `$a` and `b`.
        if name := _NAME.match(text, at + 1):
            self.at = name.end()
            return [WordPart("variable", name[0], quoted)]
        if following == "(":
            if text.startswith("(", at + 2):
                self.at = at + 3
                scripts, computed = self.read_arithmetic()
                return [WordPart("unknown", quoted=quoted, scripts=scripts, computed=computed)]
            self.at = at + 2
            return [WordPart("command", quoted=quoted, script=self.read_substitution())]
        if following == "{":
            return [self._read_braced_expansion(quoted)]
        if following == "'" and not quoted:
            self.at = at + 1
            return [WordPart("text", self._read_ansi_quoted(), quoted=True)]
        if following == '"' and not quoted:
            self.at = at + 2
            return self._read_double_quoted()
        if following in _SPECIAL_PARAMETERS and following:
            self.at = at + 2
            return [WordPart("unknown", following, quoted)]
        if following in ("[", "\\") and (following == "[" or text.startswith("\n", at + 2)):
            raise UnreadableCommand("syntax", f"${following} is read differently by different shells")
        self.at = at + 1
        return [WordPart("text", "$", quoted)]

    def _read_braced_expansion(self, quoted: bool) -> WordPart:
        """Read `${…}` from its dollar sign. Only `${name}` is a known variable; every other form is unknown."""
        self.enter_level()
        start = self.at
        self.at += 2
        parameter = _PARAMETER.match(self.text, self.at)
        if parameter is None:
            raise UnreadableCommand("syntax", "an expansion ${…} of a kind that is not read")
        # `${#x}`, `${!x[@]}` and `${x[1]}` have a name, but another value than the variable.
        whole_name = parameter[0] == parameter["name"] and _NAME.fullmatch(parameter["name"])
        self.at = parameter.end()
        if parameter[0] == f"!{parameter['name']}" and not self.text.startswith(("@", "*"), self.at):
            raise UnreadableCommand("dynamic-code", "${!name} is a variable that another one names")
        found = _COMPUTED_PART.match(self.text, start)
        computed = found[1] if found else ""
        if self.text.startswith("}", self.at):
            self.at += 1
            self.depth -= 1
            return WordPart("variable" if whole_name else "unknown", parameter["name"], quoted, computed=computed)
        if self.text.startswith("@", self.at):
            raise UnreadableCommand("dynamic-code", "${name@…} may run what the variable holds")
        scripts: list[Script] = []
        while self.at < self.end and self.text[self.at] != "}":
            char = self.text[self.at]
            if char == "\\" and self.text[self.at + 1 : self.at + 2] not in ("", "\n"):
                self.at += 2
            elif char == "$":
                scripts += _scripts_in_parts(self._read_dollar(quoted=True))
            elif char == "`":
                scripts.append(self._read_backticks(quoted=quoted))
            elif char == '"' and not quoted:
                self.at += 1
                scripts += _scripts_in_parts(self._read_double_quoted())
            elif char == "'" and not quoted:
                self._read_single_quoted()
            elif run := _EXPANSION_RUN.match(self.text, self.at):
                self.at = run.end()
            elif quoted and char in "<>" and not self.text.startswith("(", self.at + 1):
                self.at += 1  # inside double quotes no shell takes these for a redirection
            else:
                raise UnreadableCommand("syntax", f"{char!r} inside ${{…}} is read differently by different shells")
        if self.at >= self.end:
            raise UnreadableCommand("syntax", "an expansion ${…} is not closed")
        self.at += 1
        self.depth -= 1
        return WordPart("unknown", parameter["name"], quoted, scripts=tuple(scripts), computed=computed)

    def read_arithmetic(self) -> tuple[tuple[Script, ...], str]:
        """Read from after `((` up to and including `))`. Returns the scripts in its substitutions, and the rest of it.

        Refuses everything that is not plainly arithmetic: `((` may also begin a subshell in a subshell.
        """
        scripts: list[Script] = []
        rest: list[str] = []
        opened = 0
        self.enter_level()
        while self.at < self.end:
            char = self.text[self.at]
            if char == ")":
                if opened == 0:
                    if not self.text.startswith("))", self.at):
                        break
                    self.at += 2
                    self.depth -= 1
                    return tuple(scripts), "".join(rest)
                opened -= 1
                self.at += 1
            elif char == "(":
                opened += 1
                self.at += 1
            elif char == "$":
                parts = self._read_dollar(quoted=True)
                scripts += _scripts_in_parts(parts)
                rest += [f" {part.text or '0'} {part.computed}" for part in parts]
            elif run := _ARITHMETIC_RUN.match(self.text, self.at):
                self.at = run.end()
                rest.append(run[0])
            else:
                break
        raise UnreadableCommand("syntax", "something after (( that is not plainly arithmetic")

    def _read_backticks(self, *, quoted: bool) -> Script:
        """Read `` `…` `` from its opening backtick.

        The shell first removes a backslash before `` ` ``, `$` or another backslash. It then reads the rest as a
        script.
        """
        start, at = self.at, self.at + 1
        pieces: list[str] = []
        while at < self.end and self.text[at] != "`":
            if self.text[at] != "\\":
                run = _BACKTICK_RUN.match(self.text, at)
                assert run is not None
                pieces.append(run[0])
                at = run.end()
                continue
            escaped = self.text[at + 1 : at + 2]
            pieces.append(escaped if escaped in ("`", "$", "\\") or (quoted and escaped == '"') else "\\" + escaped)
            at += 2
        if at >= self.end:
            raise UnreadableCommand("syntax", "a backtick is not closed")
        self.at = at + 1
        self.hidden.append((start, self.at, "x"))
        return self.read_nested_script("".join(pieces))


def _scripts_in_parts(parts: list[WordPart]) -> list[Script]:
    return [script for part in parts for script in (*((part.script,) if part.script else ()), *part.scripts)]


def _decode_escape(found: re.Match[str]) -> bytes:
    short, octal, byte, small, large, control = found.groups()
    if short is not None:
        return _SHORT_ESCAPES[short].encode()
    if octal is not None or byte is not None:
        return bytes([(int(octal, 8) if octal is not None else int(byte, 16)) & 0xFF])
    if control is not None:
        return bytes([ord(control[0]) & 0x1F])
    # U+FFFD stands for a number that is no character.
    number = int(small or large, 16)
    return chr(number).encode("utf-8", "surrogatepass") if number < 0x110000 else b"\xef\xbf\xbd"

"""The reader of scripts: lists, pipelines and compound commands, as bash reads them.

The reader makes one pass from left to right, in time linear in the text. It raises `UnreadableCommand` for everything
that does not fit the grammar. It skips nothing to make the rest fit: a command could hide in a skipped part.
"""

from __future__ import annotations

import re
from typing import Literal

from aver.gate.shell.parser.simple_commands import SimpleCommandReader
from aver.gate.shell.parser.syntax import (
    AndOr,
    Branches,
    CommandNode,
    FunctionDefinition,
    Group,
    Loop,
    Pipeline,
    RawWord,
    Script,
    TestCommand,
    WordPart,
)
from aver.gate.shell.parser.words import UnreadableCommand
from aver.lazy_pattern import lazy_pattern

RESERVED_WORDS = frozenset(
    ("if", "then", "else", "elif", "fi", "do", "done", "case", "esac", "while", "until", "for", "select", "function")
) | {"time", "coproc", "{", "}", "!", "[["}

_KEYWORD = lazy_pattern(r"(?:[a-z]+|[{}!]|\[\[)(?=[ \t\n;&|()<>]|$)")
_VARIABLE = lazy_pattern(r"[A-Za-z_][A-Za-z0-9_]*(?=[ \t\n;]|$)", re.ASCII)
_TEST_OPERATOR = lazy_pattern(r"&&|\|\||[()<>]|\n")
_OPENING_WORD = lazy_pattern(r"(?:\(\(|[(;&|])\s*([A-Za-z_][\w.-]*)(?=\s*[);&|<>]|\s+[\w.~/-])")
_PATTERN_WORD = lazy_pattern(r"(?:[^\s\"'\\$`]|\\\S|\$(?=[\s)|]))+")
_AT_END = frozenset(("",))


class ScriptReader(SimpleCommandReader):
    """Reads one script text. It notes `starts` and `hidden` for the second parser, which reads the same text."""

    __slots__ = ()

    def read_script(self) -> Script:
        script = self._read_list(_AT_END)
        if self.pending:
            raise UnreadableCommand("syntax", "a here-document has no text")
        return script

    def read_substitution(self) -> Script:
        self.level += 1
        script = self._read_nested_list(frozenset((")",)))
        self.at += 1
        # The text of a here-document in `$(…)` must come before the closing parenthesis.
        if any(pending.level == self.level for pending in self.pending):
            raise UnreadableCommand("syntax", "a here-document has no text")
        self.level -= 1
        return script

    def read_nested_script(self, text: str) -> Script:
        # The limits on depth and words go on: nesting does not reset them.
        inner = ScriptReader(text, depth=self.depth)
        inner.words_read = self.words_read
        script = inner.read_script()
        self.words_read = inner.words_read
        return script

    def read_heredoc_text(self, body: str) -> RawWord:
        inner = ScriptReader(body, depth=self.depth)
        inner.words_read = self.words_read
        text = inner.read_expandable_heredoc()
        self.words_read = inner.words_read
        return text

    # --- lists

    def _read_list(self, stop: frozenset[str]) -> Script:
        """Read commands up to one of the keywords or operators in `stop`. Leaves `at` before it."""
        items: list[CommandNode] = []
        background: set[int] = set()
        while not self._is_at_stop(stop):
            items.append(self._read_and_or())
            self.skip_blanks()
            char = self.peek()
            if char == "&":
                background.add(len(items) - 1)
                self.at += 1
            # `;;` and `;&` end a branch of `case`, not a command.
            elif char == ";" and not self.text.startswith((";;", ";&"), self.at):
                self.at += 1
            elif char not in ("\n", "#", "") and not self._is_at_stop(stop):
                raise UnreadableCommand("syntax", f"{char!r} where a command should end")
        return Script(tuple(items), frozenset(background))

    def _is_at_stop(self, stop: frozenset[str]) -> bool:
        """Pass blanks, newlines and comments. Returns whether the list ends there."""
        self.skip_newlines()
        if self.at >= self.end:
            if "" not in stop:
                raise UnreadableCommand("syntax", f"ends before {' or '.join(sorted(stop))}")
            return True
        if self.text[self.at] in ");":
            return any(mark in stop and self.text.startswith(mark, self.at) for mark in (")", ";;&", ";&", ";;"))
        keyword = _KEYWORD.match(self.text, self.at)
        return keyword is not None and keyword[0] in stop

    def _read_nested_list(self, stop: frozenset[str]) -> Script:
        self.enter_level()
        script = self._read_list(stop)
        self.depth -= 1
        return script

    def _read_and_or(self) -> CommandNode:
        first = self._read_pipeline()
        rest: list[tuple[Literal["&&", "||"], CommandNode]] = []
        while True:
            self.skip_blanks()
            if self.text.startswith("&&", self.at):
                operator: Literal["&&", "||"] = "&&"
            elif self.text.startswith("||", self.at):
                operator = "||"
            else:
                return AndOr(first, tuple(rest)) if rest else first
            self.at += 2
            self.skip_newlines()
            rest.append((operator, self._read_pipeline()))

    def _read_pipeline(self) -> CommandNode:
        while (keyword := _KEYWORD.match(self.text, self.at)) and keyword[0] in ("!", "time"):
            self.at = keyword.end()
            self.skip_blanks()
            # tree-sitter reads `time` and `!` differently, so they are blanked for it.
            if keyword[0] == "time" and self.text.startswith("-p ", self.at):
                self.at += 3
                self.skip_blanks()
            self.hidden.append((keyword.start(), self.at, " "))
        stages = [self._read_command()]
        self.skip_blanks()
        # `|&` also pipes the error output.
        while self.peek() == "|" and not self.text.startswith("||", self.at):
            self.at += 2 if self.text.startswith("|&", self.at) else 1
            self.skip_newlines()
            stages.append(self._read_command())
            self.skip_blanks()
        return Pipeline(tuple(stages)) if len(stages) > 1 else stages[0]

    # --- commands

    def _read_command(self) -> CommandNode:
        self.count_words()
        if self.peek() == "(":
            if self.text.startswith("((", self.at):
                # `((…))` is a test whose result is unknown.
                start = self.at
                self.at += 2
                scripts, computed = self.read_arithmetic()
                word = RawWord("((…))", (WordPart("unknown", scripts=scripts, computed=computed),))
                openings = tuple(_OPENING_WORD.findall(self.text[start : self.at]))
                return TestCommand((word,), self.read_redirects(), openings)
            self.at += 1
            return Group("subshell", self._read_list_past(")"), self.read_redirects())
        keyword = _KEYWORD.match(self.text, self.at)
        if keyword is None or keyword[0] not in RESERVED_WORDS:
            return self.read_simple_command()
        self.at = keyword.end()
        match keyword[0]:
            case "{":
                return Group("braces", self._read_list_past("}"), self.read_redirects())
            case "if":
                return self._read_if()
            case "while" | "until":
                condition = self._read_list_past("do")
                return Loop(condition, self._read_list_past("done"), redirects=self.read_redirects())
            case "for" | "select":
                return self._read_for()
            case "case":
                return self._read_case()
            case "function":
                self.skip_blanks()
                name = self.read_word()
                self.skip_blanks()
                if self.text.startswith("()", self.at):
                    self.at += 2
                return self.read_function(name)
            case "[[":
                return self._read_test()
        raise UnreadableCommand("syntax", f"{keyword[0]!r} where a command should begin")

    def _read_list_past(self, stop: str) -> Script:
        """Read commands up to and including a keyword or operator."""
        script = self._read_nested_list(frozenset((stop,)))
        self.at += len(stop)
        return script

    def _read_if(self) -> CommandNode:
        conditions, bodies = [self._read_list_past("then")], list[Script]()
        while True:
            bodies.append(self._read_nested_list(frozenset(("elif", "else", "fi"))))
            keyword = _KEYWORD.match(self.text, self.at)
            assert keyword is not None  # the list ended at one of the three
            self.at = keyword.end()
            if keyword[0] == "elif":
                conditions.append(self._read_list_past("then"))
                continue
            if keyword[0] == "else":
                bodies.append(self._read_list_past("fi"))
            return Branches(tuple(conditions), tuple(bodies), redirects=self.read_redirects())

    def _read_for(self) -> CommandNode:
        self.skip_blanks()
        if self.text.startswith("((", self.at):
            # Pass `((a; b; c))`, but refuse a header with anything that could run a command.
            close = self.text.find("))", self.at)
            if close == -1 or re.search(r"[$`\"'\\(){}\n]", self.text[self.at + 2 : close]):
                raise UnreadableCommand("syntax", "a counting loop that is not plainly one")
            header = self.text[self.at + 2 : close]
            self.at = close + 2
            self._skip_separator()
            self._expect("do")
            return Loop(None, self._read_list_past("done"), redirects=self.read_redirects(), computed=header)
        variable = _VARIABLE.match(self.text, self.at)
        if variable is None:
            raise UnreadableCommand("syntax", "a loop without a variable")
        self.at = variable.end()
        self.skip_newlines()
        words: tuple[RawWord, ...] | None = None
        # Without `in`, the loop goes through the arguments of the script: `words` stays None.
        if (keyword := _KEYWORD.match(self.text, self.at)) and keyword[0] == "in":
            self.at = keyword.end()
            listed: list[RawWord] = []
            self.skip_blanks()
            while self.peek() not in (";", "\n", "#", ""):
                word = self.read_word()
                if word is None:
                    raise UnreadableCommand("syntax", f"{self.peek()!r} in the words of a loop")
                listed.append(word)
                self.skip_blanks()
            words = tuple(listed)
        self._skip_separator()
        self._expect("do")
        return Loop(None, self._read_list_past("done"), variable[0], words, self.read_redirects())

    def _skip_separator(self) -> None:
        self.skip_blanks()
        if self.peek() == ";":
            self.at += 1
        self.skip_newlines()

    def _expect(self, word: str) -> None:
        keyword = _KEYWORD.match(self.text, self.at)
        if keyword is None or keyword[0] != word:
            raise UnreadableCommand("syntax", f"{word!r} is missing")
        self.at = keyword.end()

    def _read_case(self) -> CommandNode:
        self.skip_blanks()
        subject = self.read_word()
        self.skip_newlines()
        self._expect("in")
        words = [subject] if subject else []
        bodies: list[Script] = []
        while not self._is_at_stop(frozenset(("esac",))):
            # A pattern may begin with a parenthesis, which means nothing.
            if self.peek() == "(":
                self.at += 1
            while self.peek() != ")":
                self.skip_blanks()
                pattern = self.read_word()
                if pattern is None:
                    raise UnreadableCommand("syntax", "a pattern of a case is missing")
                words.append(pattern)
                self.skip_blanks()
                if self.peek() == "|":
                    self.at += 1
                elif self.peek() != ")":
                    raise UnreadableCommand("syntax", "a pattern of a case does not end")
            self.at += 1
            bodies.append(self._read_nested_list(frozenset((";;", ";&", ";;&", "esac"))))
            # `;;&` begins with `;;`, so it is tried first.
            for mark in (";;&", ";;", ";&"):
                if self.text.startswith(mark, self.at):
                    self.at += len(mark)
                    break
        self._expect("esac")
        return Branches((), tuple(bodies), tuple(words), self.read_redirects())

    def read_function(self, name: RawWord | None) -> CommandNode:
        if name is None or any(part.kind != "text" for part in name.parts):
            raise UnreadableCommand("syntax", "a function without a plain name")
        self.skip_newlines()
        self.enter_level()
        body = self._read_command()
        self.depth -= 1
        # A simple command as a body is refused: shells disagree on it.
        if not isinstance(body, Group | Branches | Loop | TestCommand):
            raise UnreadableCommand("syntax", "a function without a body")
        return FunctionDefinition("".join(part.text for part in name.parts), body)

    def _read_test(self) -> CommandNode:
        """Read `[[ … ]]` after its opening brackets. See `TestCommand` for `openings` and `compared`."""
        words: list[RawWord] = []
        openings: list[str] = []
        compared: list[RawWord] = []
        before = ""  # the operator before the next word
        while True:
            self.skip_blanks()
            if operator := _TEST_OPERATOR.match(self.text, self.at):
                self.at, before = operator.end(), operator[0]
                continue
            # After `=~`, `(`, `)` and `|` are ordinary. A pattern with quotes or `$` is read as a word.
            pattern = _PATTERN_WORD.match(self.text, self.at) if words and words[-1].source == "=~" else None
            if pattern is not None and self.text[pattern.end() : pattern.end() + 1] in ("", " ", "\t", "\n"):
                self.at = pattern.end()
                words.append(RawWord(pattern[0], (WordPart("text", pattern[0], quoted=True),)))
                continue
            word = self.read_word()
            if word is None:
                raise UnreadableCommand("syntax", "[[ is not closed by ]]")
            if word.source == "]]":
                return TestCommand(tuple(words), self.read_redirects(), tuple(openings), tuple(compared))
            # A shell without `[[` reads this as a redirection; the walk checks what it would overwrite.
            if before in ("<", ">"):
                compared.append(word)
            elif before:
                openings.append(word.source)
            before = ""
            words.append(word)

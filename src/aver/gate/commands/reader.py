"""Reading a script as bash reads it: lists, pipelines and compound commands.

One pass from left to right, in time linear in the text. Whatever does not fit the grammar is `Unreadable`; nothing is
skipped to make the rest fit, because what a parser skips is where a command hides.
"""

from __future__ import annotations

import re
from typing import Literal

from aver.gate.commands.lexer import Unreadable
from aver.gate.commands.simple_reader import SimpleReader
from aver.gate.commands.syntax import (
    AndOr,
    Branches,
    Function,
    Group,
    Loop,
    Node,
    Part,
    Pipeline,
    RawWord,
    Script,
    TestCommand,
)

__all__ = ["RESERVED", "Reader"]

RESERVED = frozenset(
    ("if", "then", "else", "elif", "fi", "do", "done", "case", "esac", "while", "until", "for", "select", "function")
) | {"time", "coproc", "{", "}", "!", "[["}

_KEYWORD = re.compile(r"(?:[a-z]+|[{}!]|\[\[)(?=[ \t\n;&|()<>]|$)")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?=[ \t\n;]|$)", re.ASCII)
_TEST_OPERATOR = re.compile(r"&&|\|\||[()<>]|\n")
_OPENING = re.compile(r"(?:\(\(|[(;&|])\s*([A-Za-z_][\w.-]*)(?=\s*[);&|<>]|\s+[\w.~/-])")
_PATTERN_WORD = re.compile(r"(?:[^\s\"'\\$`]|\\\S|\$(?=[\s)|]))+")
_OVER = frozenset(("",))


class Reader(SimpleReader):
    """Reads one text. `starts` and `hidden` are for the second parser, which looks at the same text."""

    __slots__ = ()

    def whole(self) -> Script:
        script = self._script(_OVER)
        if self.pending:
            raise Unreadable("syntax", "a here-document has no text")
        return script

    def substitution(self) -> Script:
        self.level += 1
        script = self._body(frozenset((")",)))
        self.at += 1
        if any(pending.level == self.level for pending in self.pending):
            raise Unreadable("syntax", "a here-document has no text")
        self.level -= 1
        return script

    def nested(self, text: str) -> Script:
        inner = Reader(text, depth=self.depth)
        inner.words_read = self.words_read
        script = inner.whole()
        self.words_read = inner.words_read
        return script

    def here_text(self, body: str) -> RawWord:
        inner = Reader(body, depth=self.depth)
        inner.words_read = self.words_read
        text = inner.here_document()
        self.words_read = inner.words_read
        return text

    # --- lists

    def _script(self, stop: frozenset[str]) -> Script:
        """Commands up to one of the words or marks in `stop`, which is not passed."""
        items: list[Node] = []
        background: set[int] = set()
        while not self._at(stop):
            items.append(self._and_or())
            self.blanks()
            char = self.char()
            if char == "&":
                background.add(len(items) - 1)
                self.at += 1
            elif char == ";" and not self.text.startswith((";;", ";&"), self.at):
                self.at += 1
            elif char not in ("\n", "#", "") and not self._at(stop):
                raise Unreadable("syntax", f"{char!r} where a command should end")
        return Script(tuple(items), frozenset(background))

    def _at(self, stop: frozenset[str]) -> bool:
        """Whether the list ends here: passes blanks, newlines and comments first."""
        self.newlines()
        if self.at >= self.end:
            if "" not in stop:
                raise Unreadable("syntax", f"ends before {' or '.join(sorted(stop))}")
            return True
        if self.text[self.at] in ");":
            return any(mark in stop and self.text.startswith(mark, self.at) for mark in (")", ";;&", ";&", ";;"))
        keyword = _KEYWORD.match(self.text, self.at)
        return keyword is not None and keyword[0] in stop

    def _body(self, stop: frozenset[str]) -> Script:
        self.deeper()
        script = self._script(stop)
        self.depth -= 1
        return script

    def _and_or(self) -> Node:
        first = self._pipeline()
        rest: list[tuple[Literal["&&", "||"], Node]] = []
        while True:
            self.blanks()
            if self.text.startswith("&&", self.at):
                operator: Literal["&&", "||"] = "&&"
            elif self.text.startswith("||", self.at):
                operator = "||"
            else:
                return AndOr(first, tuple(rest)) if rest else first
            self.at += 2
            self.newlines()
            rest.append((operator, self._pipeline()))

    def _pipeline(self) -> Node:
        while (keyword := _KEYWORD.match(self.text, self.at)) and keyword[0] in ("!", "time"):
            self.at = keyword.end()
            self.blanks()
            if keyword[0] == "time" and self.text.startswith("-p ", self.at):
                self.at += 3
                self.blanks()
            self.hidden.append((keyword.start(), self.at, " "))
        stages = [self._command()]
        self.blanks()
        while self.char() == "|" and not self.text.startswith("||", self.at):
            self.at += 2 if self.text.startswith("|&", self.at) else 1
            self.newlines()
            stages.append(self._command())
            self.blanks()
        return Pipeline(tuple(stages)) if len(stages) > 1 else stages[0]

    # --- commands

    def _command(self) -> Node:
        self.count_words()
        if self.char() == "(":
            if self.text.startswith("((", self.at):
                return self._arithmetic_command()
            self.at += 1
            return Group("subshell", self._closed(")"), self.redirects())
        keyword = _KEYWORD.match(self.text, self.at)
        if keyword is None or keyword[0] not in RESERVED:
            return self.simple()
        self.at = keyword.end()
        match keyword[0]:
            case "{":
                return Group("braces", self._closed("}"), self.redirects())
            case "if":
                return self._if()
            case "while" | "until":
                condition = self._closed("do")
                return Loop(condition, self._closed("done"), redirects=self.redirects())
            case "for" | "select":
                return self._for()
            case "case":
                return self._case()
            case "function":
                return self._function_keyword()
            case "[[":
                return self._test()
        raise Unreadable("syntax", f"{keyword[0]!r} where a command should begin")

    def _closed(self, stop: str) -> Script:
        """Commands up to a word or mark, which is passed."""
        script = self._body(frozenset((stop,)))
        self.at += len(stop)
        return script

    def _if(self) -> Node:
        conditions, bodies = [self._closed("then")], list[Script]()
        while True:
            bodies.append(self._body(frozenset(("elif", "else", "fi"))))
            keyword = _KEYWORD.match(self.text, self.at)
            assert keyword is not None
            self.at = keyword.end()
            if keyword[0] == "elif":
                conditions.append(self._closed("then"))
                continue
            if keyword[0] == "else":
                bodies.append(self._closed("fi"))
            return Branches(tuple(conditions), tuple(bodies), redirects=self.redirects())

    def _for(self) -> Node:
        self.blanks()
        if self.text.startswith("((", self.at):
            self._counting()
            self._skip_separator()
            self._expect("do")
            return Loop(None, self._closed("done"), redirects=self.redirects())
        variable = _VARIABLE.match(self.text, self.at)
        if variable is None:
            raise Unreadable("syntax", "a loop without a variable")
        self.at = variable.end()
        self.newlines()
        words: tuple[RawWord, ...] | None = None
        if (keyword := _KEYWORD.match(self.text, self.at)) and keyword[0] == "in":
            self.at = keyword.end()
            words = self._words_of_line()
        self._skip_separator()
        self._expect("do")
        return Loop(None, self._closed("done"), variable[0], words, self.redirects())

    def _counting(self) -> None:
        """`((a; b; c))`: three pieces of arithmetic, without anything that could run."""
        close = self.text.find("))", self.at)
        if close == -1 or re.search(r"[$`\"'\\(){}\n]", self.text[self.at + 2 : close]):
            raise Unreadable("syntax", "a counting loop that is not plainly one")
        self.at = close + 2

    def _words_of_line(self) -> tuple[RawWord, ...]:
        words: list[RawWord] = []
        while True:
            self.blanks()
            if self.char() in (";", "\n", "#", ""):
                return tuple(words)
            word = self.word()
            if word is None:
                raise Unreadable("syntax", f"{self.char()!r} in the words of a loop")
            words.append(word)

    def _skip_separator(self) -> None:
        self.blanks()
        if self.char() == ";":
            self.at += 1
        self.newlines()

    def _expect(self, word: str) -> None:
        keyword = _KEYWORD.match(self.text, self.at)
        if keyword is None or keyword[0] != word:
            raise Unreadable("syntax", f"{word!r} is missing")
        self.at = keyword.end()

    def _case(self) -> Node:
        self.blanks()
        subject = self.word()
        self.newlines()
        self._expect("in")
        words = [subject] if subject else []
        bodies: list[Script] = []
        while not self._at(frozenset(("esac",))):
            if self.char() == "(":
                self.at += 1
            while self.char() != ")":
                self.blanks()
                pattern = self.word()
                if pattern is None:
                    raise Unreadable("syntax", "a pattern of a case is missing")
                words.append(pattern)
                self.blanks()
                if self.char() == "|":
                    self.at += 1
                elif self.char() != ")":
                    raise Unreadable("syntax", "a pattern of a case does not end")
            self.at += 1
            bodies.append(self._body(frozenset((";;", ";&", ";;&", "esac"))))
            for mark in (";;&", ";;", ";&"):
                if self.text.startswith(mark, self.at):
                    self.at += len(mark)
                    break
        self._expect("esac")
        return Branches((), tuple(bodies), tuple(words), self.redirects())

    def _function_keyword(self) -> Node:
        self.blanks()
        name = self.word()
        self.blanks()
        if self.text.startswith("()", self.at):
            self.at += 2
        return self.function(name)

    def function(self, name: RawWord | None) -> Node:
        if name is None or any(part.kind != "text" for part in name.parts):
            raise Unreadable("syntax", "a function without a plain name")
        self.newlines()
        self.deeper()
        body = self._command()
        self.depth -= 1
        if not isinstance(body, Group | Branches | Loop | TestCommand):
            raise Unreadable("syntax", "a function without a body")
        return Function("".join(part.text for part in name.parts), body)

    def _arithmetic_command(self) -> Node:
        start = self.at
        self.at += 2
        scripts = self.arithmetic()
        word = RawWord("((…))", (Part("unknown", scripts=scripts),))
        openings = tuple(_OPENING.findall(self.text[start : self.at]))
        return TestCommand((word,), self.redirects(), openings)

    def _test(self) -> Node:
        words: list[RawWord] = []
        openings: list[str] = []
        compared: list[RawWord] = []
        before = ""
        while True:
            self.blanks()
            if operator := _TEST_OPERATOR.match(self.text, self.at):
                self.at, before = operator.end(), operator[0]
                continue
            if words and words[-1].source == "=~" and (pattern := self._regular_expression()):
                words.append(pattern)
                continue
            word = self.word()
            if word is None:
                raise Unreadable("syntax", "[[ is not closed by ]]")
            if word.source == "]]":
                return TestCommand(tuple(words), self.redirects(), tuple(openings), tuple(compared))
            if before in ("<", ">"):
                compared.append(word)
            elif before:
                openings.append(word.source)
            before = ""
            words.append(word)

    def _regular_expression(self) -> RawWord | None:
        """What follows `=~`, where parentheses and bars are letters of a pattern; None if it has quotes or dollars."""
        found = _PATTERN_WORD.match(self.text, self.at)
        if found is None or self.text[found.end() : found.end() + 1] not in ("", " ", "\t", "\n"):
            return None
        self.at = found.end()
        return RawWord(found[0], (Part("text", found[0], quoted=True),))

"""Reading simple commands as bash reads them: assignments, words, redirections and here-documents."""

from __future__ import annotations

import re

from aver.gate.commands.lexer import BLANKS, PendingHere, Unreadable, WordReader
from aver.gate.commands.syntax import Assignment, Node, Part, RawWord, Redirect, SimpleCommand

__all__ = ["SimpleReader"]

JOINED_MAX = 4096
"""Characters of a line that lines of a here-document are joined to by backslashes. Without it, joining is quadratic."""

_COMMENT = re.compile(r"#[^\n]*")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?:\[[\w@*$-]*\])?\+?=", re.ASCII)
_REDIRECT = re.compile(r"([0-9]*|\{[A-Za-z_][A-Za-z0-9_]*\})(<<<|<<-|<<|<>|<&|<|>>|>\||>&|>)|()(&>>|&>)", re.ASCII)
_EMPTY_PARENTHESES = re.compile(r"\([ \t]*\)")
_PLAIN_WORDS = re.compile(r"(?:[ \t]+[A-Za-z0-9_./:@%+,=~^-]+(?=[ \t\n;|&)]|$))+")
"""The most common case, in one step. A word before `<`, `>` or `(` may be something else."""
_DECLARING = frozenset(("declare", "typeset", "local", "export", "readonly", "alias"))


class SimpleReader(WordReader):
    """Reads simple commands and what stands between words. Compound commands are added by the grammar."""

    __slots__ = ()

    def function(self, name: RawWord | None) -> Node:
        """A function whose name was read."""
        raise NotImplementedError

    def here_text(self, body: str) -> RawWord:
        """The text of a here-document in which expansions count."""
        raise NotImplementedError

    def simple(self) -> Node:
        words: list[RawWord] = []
        assignments: list[Assignment] = []
        redirects: list[Redirect] = []
        text = self.text
        while True:
            if words and (plain := _PLAIN_WORDS.match(text, self.at)):
                self.at = plain.end()
                found = plain[0].split()
                self.count_words(len(found))
                words += [RawWord(word, (Part("text", word),)) for word in found]
                continue
            self.blanks()
            char = self.char()
            if char in ("", "\n", ";", "|", ")", "#"):
                break
            if char == "(":
                if len(words) == 1 and not assignments and not redirects and self._empty_parentheses():
                    self.starts.pop()
                    return self.function(words[0])
                raise Unreadable("syntax", "'(' inside a command")
            if char == "&" and not text.startswith("&>", self.at):
                break
            redirect = self._redirect()
            if redirect is not None:
                redirects.append(redirect)
            elif not words and (assignment := _ASSIGNMENT.match(text, self.at)):
                assignments.append(self._assignment(assignment))
            else:
                if not words:
                    self.starts.append(self.at)
                word = self.word()
                if word is None:
                    raise Unreadable("syntax", f"{self.char()!r} where a word should stand")
                if self.char() == "(" and word.source.endswith("=") and words and words[0].source in _DECLARING:
                    word = RawWord(word.source, (*word.parts, *self._array().parts))
                words.append(word)
        if not (words or assignments or redirects):
            raise Unreadable("syntax", f"{char!r} where a command should begin" if char else "a command is missing")
        return SimpleCommand(tuple(words), tuple(assignments), tuple(redirects))

    def _empty_parentheses(self) -> bool:
        found = _EMPTY_PARENTHESES.match(self.text, self.at)
        if found is not None:
            self.at = found.end()
        return found is not None

    def _assignment(self, found: re.Match[str]) -> Assignment:
        self.at = found.end()
        self.count_words()
        if self.char() == "(":
            return Assignment(found[1], self._array(), is_whole=False)
        value = self.word() if self.char() not in ("", " ", "\t", "\n", ";", "&", "|", ")") else None
        return Assignment(found[1], value or RawWord("", (Part("text", ""),)), found[0] == f"{found[1]}=")

    def _array(self) -> RawWord:
        start = self.at
        self.at += 1
        parts: list[Part] = []
        while True:
            self.newlines()
            if self.char() == ")":
                self.at += 1
                if self.char() not in ("", " ", "\t", "\n", ";", "&", "|", ")"):
                    raise Unreadable("syntax", "something that follows an array without a blank")
                return RawWord(self.text[start : self.at], (Part("unknown"), *parts))
            word = self.word()
            if word is None:
                raise Unreadable("syntax", "an array is not closed")
            parts += word.parts

    # --- redirections

    def redirects(self) -> tuple[Redirect, ...]:
        found: list[Redirect] = []
        while True:
            self.blanks()
            redirect = self._redirect()
            if redirect is None:
                return tuple(found)
            found.append(redirect)

    def _redirect(self) -> Redirect | None:
        found = _REDIRECT.match(self.text, self.at)
        if found is None:
            return None
        descriptor, operator = found[1] or "", found[2] or found[4]
        if operator in ("<", ">") and self.text.startswith("(", found.end()):
            if descriptor:
                raise Unreadable("syntax", "a descriptor before a process substitution")
            return None
        start, self.at = self.at, found.end()
        target = self._closing() if operator in (">&", "<&") else None
        if target is None:
            self.blanks()
            target = self.word()
        if target is None:
            raise Unreadable("syntax", f"nothing after {operator}")
        redirect = Redirect(operator, target, descriptor)
        if operator == "<>":
            self.hidden.append((found.end() - 1, found.end(), " "))
        if operator in ("<<", "<<-"):
            self._begin_here(redirect, start)
        return redirect

    def _closing(self) -> RawWord | None:
        """`>&-`: the hyphen is of the operator, and what follows it is a word of its own."""
        if self.char() != "-":
            return None
        self.at += 1
        return RawWord("-", (Part("text", "-"),))

    def _begin_here(self, redirect: Redirect, start: int) -> None:
        parts = redirect.target.parts
        if any(part.kind not in ("text", "bare") for part in parts):
            raise Unreadable("syntax", "a here-document whose end is not a plain word")
        delimiter = "".join(part.text for part in parts)
        is_literal = any(part.quoted for part in parts)
        self.pending.append(PendingHere(redirect, delimiter, is_literal, redirect.operator == "<<-", self.level))
        self.hidden.append((start, start + 1, "<"))
        self.hidden.append((start + 1, self.at, "x"))

    def _read_here(self, pending: PendingHere) -> None:
        """The text of a here-document, which begins here."""
        if pending.level != self.level:
            raise Unreadable("syntax", "a here-document and a substitution on one line")
        text, start, line = self.text, self.at, self.at
        held = ""
        while True:
            if line > self.end or (line == self.end and pending.delimiter):
                raise Unreadable("syntax", f"a here-document is not closed by {pending.delimiter!r}")
            stop = text.find("\n", line)
            stop = self.end if stop == -1 else stop
            content = held + text[line:stop]
            plain = content.lstrip("\t") if pending.strips_tabs else content
            if plain == pending.delimiter:
                break
            # Where expansions count, a backslash joins lines before the end is looked for.
            continued = not pending.is_literal and (len(content) - len(content.rstrip("\\"))) % 2 == 1
            held = content[:-1] if continued else ""
            if len(held) > JOINED_MAX:
                raise Unreadable("too-much", f"lines of a here-document joined to more than {JOINED_MAX} characters")
            line = stop + 1
        body = text[start:line]
        if pending.strips_tabs:
            body = re.sub(r"(?m)^\t+", "", body)
        if pending.is_literal or not re.search(r"[$`\\]", body):
            pending.redirect.body = RawWord(body, (Part("text", body, quoted=True),))
        else:
            pending.redirect.body = self.here_text(body)
        self.at = min(stop + 1, self.end)
        self.hidden.append((start, min(stop, self.end), " "))

    # --- between words

    def char(self) -> str:
        return self.text[self.at] if self.at < self.end else ""

    def blanks(self) -> None:
        if self.at < self.end and self.text[self.at] in " \t\\" and (found := BLANKS.match(self.text, self.at)):
            self.at = found.end()

    def newlines(self) -> None:
        """Pass blanks, comments and newlines, and the here-documents that follow a line."""
        while self.at < self.end:
            char = self.text[self.at]
            if char == "\n":
                self.at += 1
                pending, self.pending = self.pending, []
                for one in pending:
                    self._read_here(one)
            elif char == "#":
                found = _COMMENT.match(self.text, self.at)
                assert found is not None
                self.hidden.append((self.at, found.end(), " "))
                self.at = found.end()
            else:
                before = self.at
                self.blanks()
                if self.at == before:
                    return

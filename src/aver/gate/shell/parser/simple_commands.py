"""Reading simple commands as bash reads them: assignments, words, redirections and here-documents."""

from __future__ import annotations

import re

from aver.gate.shell.parser.syntax import Assignment, CommandNode, RawWord, Redirect, SimpleCommand, WordPart
from aver.gate.shell.parser.words import BLANKS, PendingHeredoc, UnreadableCommand, WordReader

__all__ = ["SimpleCommandReader"]

JOINED_MAX = 4096
"""Characters of a line that lines of a here-document are joined to by backslashes. Without it, joining is quadratic."""

_COMMENT = re.compile(r"#[^\n]*")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?:\[[\w@*$-]*\])?\+?=", re.ASCII)
_REDIRECT = re.compile(r"([0-9]*|\{[A-Za-z_][A-Za-z0-9_]*\})(<<<|<<-|<<|<>|<&|<|>>|>\||>&|>)|()(&>>|&>)", re.ASCII)
_EMPTY_PARENTHESES = re.compile(r"\([ \t]*\)")
_PLAIN_WORDS = re.compile(r"(?:[ \t]+[A-Za-z0-9_./:@%+,=~^-]+(?=[ \t\n;|&)]|$))+")
"""The most common case, in one step. A word before `<`, `>` or `(` may be something else."""
_DECLARING_COMMANDS = frozenset(("declare", "typeset", "local", "export", "readonly", "alias"))


class SimpleCommandReader(WordReader):
    """Reads simple commands and what stands between words. Compound commands are added by the grammar."""

    __slots__ = ()

    def read_function(self, name: RawWord | None) -> CommandNode:
        """A function whose name was read."""
        raise NotImplementedError

    def read_heredoc_text(self, body: str) -> RawWord:
        """The text of a here-document in which expansions count."""
        raise NotImplementedError

    def simple(self) -> CommandNode:
        words: list[RawWord] = []
        assignments: list[Assignment] = []
        redirects: list[Redirect] = []
        text = self.text
        while True:
            if words and (plain := _PLAIN_WORDS.match(text, self.at)):
                self.at = plain.end()
                found = plain[0].split()
                self.count_words(len(found))
                words += [RawWord(word, (WordPart("text", word),)) for word in found]
                continue
            self.skip_blanks()
            char = self.peek()
            if char in ("", "\n", ";", "|", ")", "#"):
                break
            if char == "(":
                if len(words) == 1 and not assignments and not redirects and self._skip_empty_parentheses():
                    self.starts.pop()
                    return self.read_function(words[0])
                raise UnreadableCommand("syntax", "'(' inside a command")
            if char == "&" and not text.startswith("&>", self.at):
                break
            redirect = self._read_redirect()
            if redirect is not None:
                redirects.append(redirect)
            elif not words and (assignment := _ASSIGNMENT.match(text, self.at)):
                assignments.append(self._read_assignment(assignment))
            else:
                if not words:
                    self.starts.append(self.at)
                word = self.word()
                if word is None:
                    raise UnreadableCommand("syntax", f"{self.peek()!r} where a word should stand")
                if (
                    self.peek() == "("
                    and word.source.endswith("=")
                    and words
                    and words[0].source in _DECLARING_COMMANDS
                ):
                    word = RawWord(word.source, (*word.parts, *self._read_array().parts))
                words.append(word)
        if not (words or assignments or redirects):
            raise UnreadableCommand(
                "syntax", f"{char!r} where a command should begin" if char else "a command is missing"
            )
        return SimpleCommand(tuple(words), tuple(assignments), tuple(redirects))

    def _skip_empty_parentheses(self) -> bool:
        found = _EMPTY_PARENTHESES.match(self.text, self.at)
        if found is not None:
            self.at = found.end()
        return found is not None

    def _read_assignment(self, found: re.Match[str]) -> Assignment:
        self.at = found.end()
        self.count_words()
        if self.peek() == "(":
            return Assignment(found[1], self._read_array(), is_whole=False)
        value = self.word() if self.peek() not in ("", " ", "\t", "\n", ";", "&", "|", ")") else None
        return Assignment(found[1], value or RawWord("", (WordPart("text", ""),)), found[0] == f"{found[1]}=")

    def _read_array(self) -> RawWord:
        start = self.at
        self.at += 1
        parts: list[WordPart] = []
        while True:
            self.skip_newlines()
            if self.peek() == ")":
                self.at += 1
                if self.peek() not in ("", " ", "\t", "\n", ";", "&", "|", ")"):
                    raise UnreadableCommand("syntax", "something that follows an array without a blank")
                return RawWord(self.text[start : self.at], (WordPart("unknown"), *parts))
            word = self.word()
            if word is None:
                raise UnreadableCommand("syntax", "an array is not closed")
            parts += word.parts

    # --- redirections

    def redirects(self) -> tuple[Redirect, ...]:
        found: list[Redirect] = []
        while True:
            self.skip_blanks()
            redirect = self._read_redirect()
            if redirect is None:
                return tuple(found)
            found.append(redirect)

    def _read_redirect(self) -> Redirect | None:
        found = _REDIRECT.match(self.text, self.at)
        if found is None:
            return None
        descriptor, operator = found[1] or "", found[2] or found[4]
        if operator in ("<", ">") and self.text.startswith("(", found.end()):
            if descriptor:
                raise UnreadableCommand("syntax", "a descriptor before a process substitution")
            return None
        start, self.at = self.at, found.end()
        target = self._read_closing_hyphen() if operator in (">&", "<&") else None
        if target is None:
            self.skip_blanks()
            target = self.word()
        if target is None:
            raise UnreadableCommand("syntax", f"nothing after {operator}")
        redirect = Redirect(operator, target, descriptor)
        if operator == "<>":
            self.hidden.append((found.end() - 1, found.end(), " "))
        if operator in ("<<", "<<-"):
            self._begin_heredoc(redirect, start)
        return redirect

    def _read_closing_hyphen(self) -> RawWord | None:
        """`>&-`: the hyphen is of the operator, and what follows it is a word of its own."""
        if self.peek() != "-":
            return None
        self.at += 1
        return RawWord("-", (WordPart("text", "-"),))

    def _begin_heredoc(self, redirect: Redirect, start: int) -> None:
        parts = redirect.target.parts
        if any(part.kind not in ("text", "bare") for part in parts):
            raise UnreadableCommand("syntax", "a here-document whose end is not a plain word")
        delimiter = "".join(part.text for part in parts)
        is_literal = any(part.quoted for part in parts)
        self.pending.append(PendingHeredoc(redirect, delimiter, is_literal, redirect.operator == "<<-", self.level))
        self.hidden.append((start, start + 1, "<"))
        self.hidden.append((start + 1, self.at, "x"))

    def _read_heredoc(self, pending: PendingHeredoc) -> None:
        """The text of a here-document, which begins here."""
        if pending.level != self.level:
            raise UnreadableCommand("syntax", "a here-document and a substitution on one line")
        text, start, line = self.text, self.at, self.at
        held = ""
        while True:
            if line > self.end or (line == self.end and pending.delimiter):
                raise UnreadableCommand("syntax", f"a here-document is not closed by {pending.delimiter!r}")
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
                raise UnreadableCommand(
                    "too-much", f"lines of a here-document joined to more than {JOINED_MAX} characters"
                )
            line = stop + 1
        body = text[start:line]
        if pending.strips_tabs:
            body = re.sub(r"(?m)^\t+", "", body)
        if pending.is_literal or not re.search(r"[$`\\]", body):
            pending.redirect.body = RawWord(body, (WordPart("text", body, quoted=True),))
        else:
            pending.redirect.body = self.read_heredoc_text(body)
        self.at = min(stop + 1, self.end)
        self.hidden.append((start, min(stop, self.end), " "))

    # --- between words

    def peek(self) -> str:
        return self.text[self.at] if self.at < self.end else ""

    def skip_blanks(self) -> None:
        if self.at < self.end and self.text[self.at] in " \t\\" and (found := BLANKS.match(self.text, self.at)):
            self.at = found.end()

    def skip_newlines(self) -> None:
        """Pass blanks, comments and newlines, and the here-documents that follow a line."""
        while self.at < self.end:
            char = self.text[self.at]
            if char == "\n":
                self.at += 1
                pending, self.pending = self.pending, []
                for one in pending:
                    self._read_heredoc(one)
            elif char == "#":
                found = _COMMENT.match(self.text, self.at)
                assert found is not None
                self.hidden.append((self.at, found.end(), " "))
                self.at = found.end()
            else:
                before = self.at
                self.skip_blanks()
                if self.at == before:
                    return

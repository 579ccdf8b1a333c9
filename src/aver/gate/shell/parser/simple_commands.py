"""The reader of simple commands: assignments, words, redirections and here-documents, as bash reads them."""

from __future__ import annotations

import re

from aver.gate.shell.parser.syntax import Assignment, CommandNode, RawWord, Redirect, SimpleCommand, WordPart
from aver.gate.shell.parser.words import BLANKS, PendingHeredoc, UnreadableCommand, WordReader
from aver.lazy_pattern import lazy_pattern

JOINED_MAX = 4096
"""Characters of one line of a here-document after backslashes joined lines. The limit keeps the time linear."""

_COMMENT = lazy_pattern(r"#[^\n]*")
_ASSIGNMENT = lazy_pattern(r"([A-Za-z_][A-Za-z0-9_]*)(?:\[[\w@*$-]*\])?\+?=", re.ASCII)
_PLAIN_HEREDOC = lazy_pattern(r"""[0-9]*<<-?[ \t]*(['"]?)[A-Za-z_][A-Za-z0-9_]*\1""")
"""The beginning of a here-document that every shell reads alike: no continued line, one kind of quotes."""
_REDIRECT = lazy_pattern(r"([0-9]*|\{[A-Za-z_][A-Za-z0-9_]*\})(<<<|<<-|<<|<>|<&|<|>>|>\||>&|>)|()(&>>|&>)", re.ASCII)
_EMPTY_PARENTHESES = lazy_pattern(r"\([ \t]*\)")
_PLAIN_WORDS = lazy_pattern(r"(?:[ \t]+[A-Za-z0-9_./:@%+,=~^-]+(?=[ \t\n;|&)]|$))+")
"""Several plain words in one match: the most common case. A word before `<`, `>` or `(` may be something else."""
_ENDS_ASSIGNMENT = ("", " ", "\t", "\n", ";", "&", "|", ")")
_DECLARING_COMMANDS = frozenset(("declare", "typeset", "local", "export", "readonly", "alias"))


class SimpleCommandReader(WordReader):
    """Reads simple commands and the text between words. The grammar adds compound commands."""

    __slots__ = ()

    def read_function(self, name: RawWord | None) -> CommandNode:
        """Read the body of a function whose name was read."""
        raise NotImplementedError

    def read_heredoc_text(self, body: str) -> RawWord:
        """Read the text of a here-document in which expansions count."""
        raise NotImplementedError

    def read_simple_command(self) -> CommandNode:
        """Read a simple command, or a function definition that begins like one."""
        words: list[RawWord] = []
        assignments: list[Assignment] = []
        redirects: list[Redirect] = []
        text = self.text
        while True:
            # The first word may be an assignment or the name of a function, so this holds only after it.
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
                empty = _EMPTY_PARENTHESES.match(text, self.at)
                if empty is not None and len(words) == 1 and not assignments and not redirects:
                    self.at = empty.end()
                    self.starts.pop()  # the word was the name of a function, not a program
                    return self.read_function(words[0])
                raise UnreadableCommand("syntax", "'(' inside a command")
            # `&>` is a redirection, every other `&` ends the command.
            if char == "&" and not text.startswith("&>", self.at):
                break
            redirect = self._read_redirect()
            if redirect is not None:
                redirects.append(redirect)
            elif not words and (assignment := _ASSIGNMENT.match(text, self.at)):
                name = assignment[1]
                self.at = assignment.end()
                self.count_words()
                if self.peek() == "(":
                    assignments.append(Assignment(name, self._read_array(), is_whole=False))
                    continue
                value = self.read_word() if self.peek() not in _ENDS_ASSIGNMENT else None
                # `a+=…` and `a[0]=…` set only a part of the variable.
                whole = assignment[0] == f"{name}="
                subscript = assignment[0].removeprefix(name).rstrip("+=")
                assignments.append(Assignment(name, value or RawWord("", (WordPart("text", ""),)), whole, subscript))
            else:
                if not words:
                    self.starts.append(self.at)  # the first word is the program
                word = self.read_word()
                if word is None:
                    raise UnreadableCommand("syntax", f"{self.peek()!r} where a word should stand")
                # `declare a=(1 2)`: an array as an argument.
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

    def _read_array(self) -> RawWord:
        """Read `(a b c)`. The word is unknown, but keeps its parts for the substitutions in them."""
        start = self.at
        self.at += 1
        parts: list[WordPart] = []
        while True:
            self.skip_newlines()
            if self.peek() == ")":
                self.at += 1
                if self.peek() not in _ENDS_ASSIGNMENT:
                    raise UnreadableCommand("syntax", "something that follows an array without a blank")
                return RawWord(self.text[start : self.at], (WordPart("unknown"), *parts))
            word = self.read_word()
            if word is None:
                raise UnreadableCommand("syntax", "an array is not closed")
            parts += word.parts

    # --- redirections

    def read_redirects(self) -> tuple[Redirect, ...]:
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
            return None  # `<(…)` is a word
        start, self.at = self.at, found.end()
        target: RawWord | None
        if operator in (">&", "<&") and self.peek() == "-":
            # The hyphen of `>&-` belongs to the operator, so the text after it is another word.
            self.at += 1
            target = RawWord("-", (WordPart("text", "-"),))
        else:
            self.skip_blanks()
            target = self.read_word()
        if target is None:
            raise UnreadableCommand("syntax", f"nothing after {operator}")
        redirect = Redirect(operator, target, descriptor)
        if operator == "<>":  # tree-sitter does not know it: show it `<`
            self.hidden.append((found.end() - 1, found.end(), " "))
        if operator in ("<<", "<<-"):
            # The text begins after the end of the line; `skip_newlines` reads it there.
            parts = target.parts
            if any(part.kind not in ("text", "bare") for part in parts):
                raise UnreadableCommand("syntax", "a here-document whose end is not a plain word")
            delimiter = "".join(part.text for part in parts)
            is_literal = any(part.quoted for part in parts)
            is_plain = _PLAIN_HEREDOC.fullmatch(self.text, start, self.at) is not None
            self.pending.append(
                PendingHeredoc(redirect, delimiter, is_literal, operator == "<<-", self.level, is_plain)
            )
            # tree-sitter would look for the text of the here-document, which is blanked: show it `<xxx` instead.
            self.hidden.append((start, start + 1, "<"))
            self.hidden.append((start + 1, self.at, "x"))
        return redirect

    def _read_heredoc(self, pending: PendingHeredoc) -> None:
        """Read the text of a here-document, which begins here, up to and including its delimiter line."""
        if pending.level != self.level:
            raise UnreadableCommand("syntax", "a here-document and a substitution on one line")
        text, start, line = self.text, self.at, self.at
        joined = ""  # earlier lines that end in a backslash
        while True:
            # An empty delimiter ends the text at the first empty line, or at the end.
            if line > self.end or (line == self.end and pending.delimiter):
                # Shells end a here-document that is not closed at the end of the whole text: all of it is data. Aver
                # does so too, unless a line looks like an end that only another reading of the text would find.
                lines = {given.strip(" \t\r\\") for given in text[start:].split("\n")}
                if self.level or self.end != len(text) or not pending.is_plain or pending.delimiter in lines:
                    raise UnreadableCommand("syntax", f"a here-document is not closed by {pending.delimiter!r}")
                line = stop = self.end
                break
            stop = text.find("\n", line)
            stop = self.end if stop == -1 else stop
            content = joined + text[line:stop]
            plain = content.lstrip("\t") if pending.strips_tabs else content
            if plain == pending.delimiter:
                break
            # If expansions count, bash joins continued lines before it looks for the delimiter.
            continued = not pending.is_literal and (len(content) - len(content.rstrip("\\"))) % 2 == 1
            joined = content[:-1] if continued else ""
            if len(joined) > JOINED_MAX:
                raise UnreadableCommand(
                    "too-much", f"lines of a here-document joined to more than {JOINED_MAX} characters"
                )
            line = stop + 1
        body = text[start:line]
        if pending.strips_tabs:
            body = re.sub(r"(?m)^\t+", "", body)
        # A text without expansions needs no reader of its own.
        if pending.is_literal or not re.search(r"[$`\\]", body):
            pending.redirect.body = RawWord(body, (WordPart("text", body, quoted=True),))
        else:
            pending.redirect.body = self.read_heredoc_text(body)
        self.at = min(stop + 1, self.end)
        # The second parser sees blanks instead of the text.
        self.hidden.append((start, min(stop, self.end), " "))

    # --- between words

    def peek(self) -> str:
        return self.text[self.at] if self.at < self.end else ""

    def skip_blanks(self) -> None:
        if self.at < self.end and self.text[self.at] in " \t\\" and (found := BLANKS.match(self.text, self.at)):
            self.at = found.end()

    def skip_newlines(self) -> None:
        """Pass blanks, comments and newlines. After a newline, read the here-documents of the line before it."""
        while self.at < self.end:
            char = self.text[self.at]
            if char == "\n":
                self.at += 1
                # Taken before they are read: a here-document may hold substitutions with here-documents of their own.
                pending, self.pending = self.pending, []
                for heredoc in pending:
                    self._read_heredoc(heredoc)
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

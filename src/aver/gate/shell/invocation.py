"""The invocation of one program: its words, its place in the script, and methods that report findings about it.

Handlers and verbs get an `Invocation` and call its `report_…` methods. If the program starts another program or a
script, they call its `judge_…` methods.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from aver.fast_dataclass import dataclass
from aver.gate.effects.paths import UNKNOWN_LOCATION, PathRoots, has_root_inside, locate_path
from aver.gate.shell.model import CommandReport, Word
from aver.gate.shell.state import ShellState, StatesAfter

if TYPE_CHECKING:
    from aver.gate.shell.walk import ScriptWalk

__all__ = ["Invocation", "StandardInput", "parse_host"]

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_HOST = re.compile(r"[A-Za-z0-9._~-]+|\[[0-9A-Fa-f:.]+\]")


@dataclass(frozen=True, slots=True)
class StandardInput:
    """The standard input of a program, by kind.

    `text`     the known text in `text`
    `listing`  names of files below `roots`, as `find` prints them
    `decoded`  the output of a decoder, such as `base64 -d`
    `network`  data that another machine sent
    `file`     the contents of a file, which `text` names
    `other`    anything else
    """

    kind: Literal["text", "listing", "decoded", "network", "file", "other"]
    text: str = ""
    roots: tuple[Word, ...] = ()
    names: tuple[str, ...] = ("*",)
    """Patterns for the names in a listing. Each name matches at least one."""


@dataclass(slots=True)
class Invocation:
    """A program, its arguments, and where it runs.

    `program` is empty until `programs.lookup` has resolved the name.
    """

    program: str
    words: tuple[Word, ...]
    name: Word
    """The word that names the program."""
    state: ShellState
    walk: ScriptWalk
    stdin: StandardInput | None = None
    """None if the program shares the standard input of the shell."""
    via: tuple[str, ...] = ()
    inside: tuple[str, ...] = ()
    assignments: tuple[str, ...] = ()
    redirects: tuple[str, ...] = ()

    @property
    def report(self) -> CommandReport:
        return self.walk.report

    @property
    def path_roots(self) -> PathRoots:
        return self.walk.path_roots

    def quote_words(self, *words: Word | None) -> tuple[str, ...]:
        """Return the words that a finding quotes: the program and the given words."""
        return (
            self.name.short_text,
            *(word.short_text for word in words if word is not None and word is not self.name),
        )

    # --- findings

    def report_effect(self, effect: str, *words: Word | None, target: str = "") -> None:
        self.report.add_effect(effect, self.quote_words(*words), target)

    def report_unclear(self, code: str, why: str, *words: Word | None) -> None:
        self.report.add_unclear(code, why, self.quote_words(*words))

    def report_path(self, effect: str, word: Word, *because: Word) -> None:
        """Report that a path is read, written or deleted, for every directory that this may run in."""
        cited = self.quote_words(*because, word)
        if not word.is_known:
            self.report.add_path(effect, UNKNOWN_LOCATION, cited)
            why = "comes from what another program prints" if word.from_input else "depends on what cannot be seen"
            self.report_unclear("unknown-target", f"which file {self.program} {effect}s {why}", *because, word)
            return
        for value in word.values:
            for cwd in self.state.cwds:
                place = locate_path(value, cwd, self.path_roots)
                self.report.add_path(effect, place, cited)
                if place.where == "unknown" and place.matters:
                    self.report_unclear("unknown-target", f"where {value[:80]!r} lies is not known", *because, word)

    def report_current_directory(self, effect: str) -> None:
        """Report that the current directory is read or changed."""
        for cwd in self.state.cwds:
            if cwd is None:
                self.report.add_path(effect, UNKNOWN_LOCATION, self.quote_words())
                self.report_unclear("unknown-target", "the current directory is not known")
            else:
                self.report.add_path(effect, locate_path(cwd, cwd, self.path_roots), self.quote_words())

    def report_unpacking(self, word: Word | None) -> None:
        """Report that the contents of an archive or a patch are written below a directory; None for the current one.

        Aver does not see the names in an archive. If guarded files may lie below the directory, that is unclear.
        """
        if word is None:
            self.report_current_directory("write")
        else:
            self.report_path("write", word)
        values = word.values if word is not None else (".",)
        places = [locate_path(value, cwd, self.path_roots) for value in values for cwd in self.state.cwds]
        if not places or any(has_root_inside(place, self.path_roots) or place.where != "workspace" for place in places):
            self.report_unclear("unknown-target", "which files are written is said by what was not looked into", word)

    def report_copying(self, target: Word, sources: Iterable[Word]) -> None:
        """Report a copy to a target. If the target is a directory, the copies keep the names of their sources."""
        self.report_path("write", target)
        for source in sources:
            for value in source.values:
                name = value.rstrip("/").rpartition("/")[2]
                for directory in target.values:
                    self.report_guarded_path("write", f"{directory}/{name}", target, source)

    def report_guarded_path(self, effect: str, path: str, *because: Word) -> None:
        """Report a path that may be touched, but only if it is guarded."""
        for cwd in self.state.cwds:
            place = locate_path(path, cwd, self.path_roots)
            if place.classes_for(effect) - {"system"}:
                self.report.add_path(effect, place, self.quote_words(*because))

    def report_host(self, word: Word, effect: str = "network") -> None:
        """Report that the program talks to the host in a URL, in `user@host:path` or in a host name."""
        cited = self.quote_words(word)
        if not word.is_known:
            host = parse_host(word.prefix)
            # The host is certain only if the known prefix goes beyond it: `https://host/$x`, but not `https://ho$x`.
            whole = host and "/" in word.prefix.partition("//")[2]
            self.report.add_host(effect, host if whole and host else "", cited)
            if not whole:
                self.report_unclear(
                    "unknown-target", "which machine this talks to depends on what cannot be seen", word
                )
            # An unknown part of an address carries data away.
            self.report.add_host("egress", host if whole and host else "", cited)
            return
        for value in word.values:
            if value.lower().startswith("file:"):
                self.report_path("read", Word(word.text, (re.sub(r"^file:(//[^/]*)?", "", value, flags=re.I) or "/",)))
            else:
                self.report.add_host(effect, parse_host(value) or value, cited)

    def report_executed_file(self, word: Word, *because: Word) -> None:
        """Report that a file is run. Aver knows only its name."""
        cited = self.quote_words(*because, word)
        if not word.is_known:
            self.report.add_path("execute", UNKNOWN_LOCATION, cited)
        for value in word.values:
            for cwd in self.state.cwds:
                self.report.add_path("execute", locate_path(value, cwd, self.path_roots), cited)
        if word.is_known:
            self.report_unclear("script", f"what {word.short_text} does was not looked into", *because, word)
        else:
            self.report_unclear("dynamic-program", "which program runs depends on what cannot be seen", *because, word)

    def is_in_workspace(self, word: Word) -> bool:
        """Whether a path lies in the workspace for every value and every possible directory."""
        return word.is_known and all(
            locate_path(value, cwd, self.path_roots).where == "workspace"
            for value in word.values
            for cwd in self.state.cwds
        )

    # --- programs and scripts that this one starts

    def judge_words(self, words: Iterable[Word], how: str | None = None, *, keeps_input: bool = True) -> StatesAfter:
        """Judge words as a command that this program starts. `how` names the way; by default the program."""
        inner = replace(self, via=(*self.via, how or self.program), stdin=self.stdin if keeps_input else None)
        return self.walk.judge_words(tuple(words), inner)

    def judge_script(self, text: str, how: str) -> None:
        """Judge a text that this program runs as a shell script."""
        self.walk.judge_script(text, replace(self, via=(*self.via, how)))

    def judge_script_word(self, word: Word | None, how: str) -> None:
        """Judge a word that this program runs as a shell script."""
        if word is None:
            return
        if not word.is_known:
            self.report_effect("execute", word)
            self.report_unclear("dynamic-code", "runs text that depends on what cannot be seen", word)
        for value in word.values:
            self.judge_script(value, how)


def parse_host(text: str) -> str | None:
    """Return the host in a URL, in `user@host:path` or in a bare name; None if there is none."""
    if _SCHEME.match(text):
        from urllib.parse import urlsplit

        try:
            return urlsplit(text).hostname
        except ValueError:
            return None
    rest = text.rpartition("@")[2] if "@" in text.partition("/")[0] else text
    found = _HOST.match(rest)
    return found[0].strip("[]").lower() if found else None

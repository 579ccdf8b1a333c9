"""One program about to run with its arguments, and what can be said about that: the hand that handlers write with."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from aver.fast_dataclass import dataclass
from aver.gate.effects.paths import UNKNOWN_LOCATION, PathRoots, has_root_inside, locate_path
from aver.gate.shell.model import Word
from aver.gate.shell.report import EffectReport
from aver.gate.shell.state import ShellState, StatesAfter

if TYPE_CHECKING:
    from aver.gate.shell.walk import ScriptWalk

__all__ = ["Invocation", "StandardInput", "parse_host"]

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_HOST = re.compile(r"[A-Za-z0-9._~-]+|\[[0-9A-Fa-f:.]+\]")


@dataclass(frozen=True, slots=True)
class StandardInput:
    """What a program reads from its standard input.

    `text`     known: `text` itself
    `listing`  names of files below `roots`, as `find` prints them
    `decoded`  what something encoded was decoded to
    `network`  what another machine sent
    `file`     a file
    `other`    anything else
    """

    kind: Literal["text", "listing", "decoded", "network", "file", "other"]
    text: str = ""
    roots: tuple[Word, ...] = ()
    names: tuple[str, ...] = ("*",)
    """Patterns, one of which the name of each file fits."""


@dataclass(slots=True)
class Invocation:
    """A program, its arguments, and where it runs. `program` is set once its name is known."""

    program: str
    words: tuple[Word, ...]
    name: Word
    """The word that names the program."""
    state: ShellState
    walk: ScriptWalk
    input: StandardInput | None = None
    """None where it is whatever the shell itself reads from."""
    via: tuple[str, ...] = ()
    inside: tuple[str, ...] = ()
    assignments: tuple[str, ...] = ()
    redirects: tuple[str, ...] = ()

    @property
    def report(self) -> EffectReport:
        return self.walk.report

    @property
    def ground(self) -> PathRoots:
        return self.walk.ground

    def quote_words(self, *words: Word | None) -> tuple[str, ...]:
        """What a finding quotes: the program and the words that matter."""
        return (self.name.shown, *(word.shown for word in words if word is not None and word is not self.name))

    # --- findings

    def report_effect(self, effect: str, *words: Word | None, target: str = "") -> None:
        self.report.effect(effect, self.quote_words(*words), target)

    def unclear(self, code: str, why: str, *words: Word | None) -> None:
        self.report.unclear(code, why, self.quote_words(*words))

    def report_path(self, effect: str, word: Word, *because: Word) -> None:
        """A path is read, written or deleted, in whichever directory this may run."""
        cited = self.quote_words(*because, word)
        if not word.is_known:
            self.report.path(effect, UNKNOWN_LOCATION, cited)
            why = "comes from what another program prints" if word.from_input else "depends on what cannot be seen"
            self.unclear("unknown-target", f"which file {self.program} {effect}s {why}", *because, word)
            return
        for value in word.values:
            for cwd in self.state.cwds:
                place = locate_path(value, cwd, self.ground)
                self.report.path(effect, place, cited)
                if place.where == "unknown" and place.matters:
                    self.unclear("unknown-target", f"where {value[:80]!r} lies is not known", *because, word)

    def report_current_directory(self, effect: str) -> None:
        """The current directory is read or changed."""
        for cwd in self.state.cwds:
            if cwd is None:
                self.report.path(effect, UNKNOWN_LOCATION, self.quote_words())
                self.unclear("unknown-target", "the current directory is not known")
            else:
                self.report.path(effect, locate_path(cwd, cwd, self.ground), self.quote_words())

    def report_unpacking(self, word: Word | None) -> None:
        """What an archive or a patch holds is written below a directory; None for the current one.

        Names come from what was not looked into. Where guarded files lie below, they may be among them.
        """
        if word is None:
            self.report_current_directory("write")
        else:
            self.report_path("write", word)
        values = word.values if word is not None else (".",)
        places = [locate_path(value, cwd, self.ground) for value in values for cwd in self.state.cwds]
        if not places or any(has_root_inside(place, self.ground) or place.where != "workspace" for place in places):
            self.unclear("unknown-target", "which files are written is said by what was not looked into", word)

    def report_copying(self, target: Word, sources: Iterable[Word]) -> None:
        """Files are written to a place; if that is a directory, under their own names."""
        self.report_path("write", target)
        for source in sources:
            for value in source.values:
                name = value.rstrip("/").rpartition("/")[2]
                for directory in target.values:
                    self.report_guarded_path("write", f"{directory}/{name}", target, source)

    def report_guarded_path(self, effect: str, path: str, *because: Word) -> None:
        """A path that may be touched, and is worth telling only if it is a guarded one."""
        for cwd in self.state.cwds:
            place = locate_path(path, cwd, self.ground)
            if place.classes_for(effect) - {"system"}:
                self.report.path(effect, place, self.quote_words(*because))

    def report_host(self, word: Word, effect: str = "network") -> None:
        """Another machine is talked to, which a URL, `user@host:path` or a host name says."""
        cited = self.quote_words(word)
        if not word.is_known:
            host = parse_host(word.prefix)
            whole = host and "/" in word.prefix.partition("//")[2]
            self.report.add_host(effect, host if whole and host else "", cited)
            if not whole:
                self.unclear("unknown-target", "which machine this talks to depends on what cannot be seen", word)
            # What is put into an address is sent.
            self.report.add_host("egress", host if whole and host else "", cited)
            return
        for value in word.values:
            if value.lower().startswith("file:"):
                self.report_path("read", Word(word.text, (re.sub(r"^file:(//[^/]*)?", "", value, flags=re.I) or "/",)))
            else:
                self.report.add_host(effect, parse_host(value) or value, cited)

    def report_executed_file(self, word: Word, *because: Word) -> None:
        """A file is run, of which nothing is known but its name."""
        cited = self.quote_words(*because, word)
        if not word.is_known:
            self.report.path("execute", UNKNOWN_LOCATION, cited)
        for value in word.values:
            for cwd in self.state.cwds:
                self.report.path("execute", locate_path(value, cwd, self.ground), cited)
        if word.is_known:
            self.unclear("script", f"what {word.shown} does was not looked into", *because, word)
        else:
            self.unclear("dynamic-program", "which program runs depends on what cannot be seen", *because, word)

    def is_in_workspace(self, word: Word) -> bool:
        """Whether a path surely lies in the workspace."""
        return word.is_known and all(
            locate_path(value, cwd, self.ground).where == "workspace"
            for value in word.values
            for cwd in self.state.cwds
        )

    # --- what runs in turn

    def runs(self, words: Iterable[Word], how: str | None = None, *, keeps_input: bool = True) -> StatesAfter:
        """Other words are a command of their own."""
        inner = replace(self, via=(*self.via, how or self.program), input=self.input if keeps_input else None)
        return self.walk.judge_words(tuple(words), inner)

    def judge_script(self, text: str, how: str) -> None:
        """A text is a shell script."""
        self.walk.judge_script(text, replace(self, via=(*self.via, how)))

    def judge_script_word(self, word: Word | None, how: str) -> None:
        """A word is a shell script."""
        if word is None:
            return
        if not word.is_known:
            self.report_effect("execute", word)
            self.unclear("dynamic-code", "runs text that depends on what cannot be seen", word)
        for value in word.values:
            self.judge_script(value, how)


def parse_host(text: str) -> str | None:
    """The host in a URL, in `user@host:path`, or in a bare name; None where there is none."""
    if _SCHEME.match(text):
        from urllib.parse import urlsplit

        try:
            return urlsplit(text).hostname
        except ValueError:
            return None
    rest = text.rpartition("@")[2] if "@" in text.partition("/")[0] else text
    found = _HOST.match(rest)
    return found[0].strip("[]").lower() if found else None

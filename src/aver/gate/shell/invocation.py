"""The invocation of one program: its words, its place in the script, its input, and its predicted output.

Handlers and verbs get an `Invocation` and call its `report_…` methods. If the program starts another program or a
script, they call its `judge_…` methods.

In a pipeline, the output of a program is the standard input of the next one. `predict_output` says what Aver knows
about it. This matters in two cases: the next program runs it as a script (`echo ls | sh`), or it takes it as names of
files (`find . | xargs rm`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING, Literal

from aver.fast_dataclass import dataclass
from aver.gate.effects.file_writes import WRITES_MAX, FileWrite
from aver.gate.effects.paths import (
    PATTERN_MAX,
    UNKNOWN_LOCATION,
    PathLocation,
    PathRoots,
    has_glob,
    has_root_inside,
    locate_path,
)
from aver.gate.shell.environment import is_hook_switch
from aver.gate.shell.model import CommandReport, ShellState, StatesAfter, Word
from aver.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from aver.gate.shell.walk import ScriptWalk

_SCHEME = lazy_pattern(r"[A-Za-z][A-Za-z0-9+.-]*://")
_HOST = lazy_pattern(r"[A-Za-z0-9._~-]+|\[[0-9A-Fa-f:.]+\]")


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
    has_roots: bool = False
    """Each name in the listing begins with its root, so none begins with a hyphen."""


@dataclass(slots=True)
class Invocation:
    """A program, its arguments, and where it runs.

    `program` is empty until `programs.apply` has resolved the name.
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
    environment: frozenset[str] = frozenset()
    """Variables that are set for this program alone, except those known to be harmless before a build."""
    is_loopback: bool = False
    """The program talks to this machine only. A handler finds that out before the verbs judge its arguments."""

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
        if word.listing and effect == "read":
            # Which of the listed files this is does not matter: reading any of them is reading below those roots.
            for pattern in word.listing:
                for cwd in self.state.cwds:
                    place = locate_path(pattern, cwd, self.path_roots)
                    # A listed file may lie at any depth below its root; one path that a program prints does not.
                    self.report.add_path(effect, place, cited if word.prefix else (*cited[:-1], "the files listed"))
                    if place.where == "unknown":
                        self.report_unclear("unknown-target", f"where {pattern[:80]!r} lies is not known", word)
            return
        if not word.is_known:
            if effect == "read" and self.program in _SHOWS_ANY_NAME and not because:
                # Whatever the word becomes, names are shown and nothing else.
                self.report.add_path(effect, PathLocation("", "outside"), cited)
                return
            # An unknown path may be any path.
            self.report.add_path(effect, UNKNOWN_LOCATION, cited)
            why = "comes from what another program prints" if word.from_input else "depends on what cannot be seen"
            self.report_unclear("unknown-target", f"which file {self.program} {effect}s {why}", *because, word)
            return
        for value in word.values:
            for cwd in self.state.cwds:
                place = self._locate(value, cwd, *because, word)
                self.report.add_path(effect, place, cited)
                if place.where == "unknown" and place.matters:
                    self.report_unclear("unknown-target", f"where {value[:80]!r} lies is not known", *because, word)

    def _locate(self, path: str, cwd: str | None, *because: Word) -> PathLocation:
        """Locate a path. A pattern that may match the name of Aver's directory elsewhere does not count as Aver's."""
        place = locate_path(path, cwd, self.path_roots)
        if "aver" not in place.classes or not has_glob(path) or self._may_match_own_files(place.path):
            return place
        self.report_unclear("unknown-target", f"{path[:80]!r} may match files of Aver", *because)
        return replace(place, classes=place.classes - {"aver"})

    def _may_match_own_files(self, pattern: str) -> bool:
        """Whether a pattern for paths may match Aver's own files, or a directory that holds them."""
        roots = self.path_roots
        if not roots.own or len(pattern) > 4 * PATTERN_MAX:
            return True  # where Aver keeps its files is not known
        own = (*roots.own, f"{roots.home}/.aver") if roots.home else roots.own
        names = pattern.casefold().split("/")
        return any(all(map(fnmatchcase, path.casefold().split("/"), names)) for path in own)

    def report_current_directory(self, effect: str) -> None:
        """Report that the current directory is read or changed."""
        for cwd in self.state.cwds:
            if cwd is None and effect == "read" and self.program in _SHOWS_ANY_NAME:
                self.report.add_path(effect, PathLocation("", "outside"), self.quote_words())
            elif cwd is None:
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
                # `cp evil ~/.ssh` writes `~/.ssh/evil` if the target is a directory. Aver does not look, and checks
                # both.
                name = value.rstrip("/").rpartition("/")[2]
                for directory in target.values:
                    self.report_guarded_path("write", f"{directory}/{name}", target, source)

    def note_move(self, how: Literal["copy", "move"], source: Word, target: Word) -> None:
        """Note that one file is copied or renamed. Whether that loses nothing depends on the disk (`shown_changes`)."""
        cwd = self.state.cwds[0] if len(self.state.cwds) == 1 else None
        if cwd is None or source.is_pattern or target.is_pattern or source.value is None or target.value is None:
            return
        at, to = (locate_path(value, cwd, self.path_roots) for value in (source.value, target.value))
        if "unknown" not in (at.where, to.where) and len(self.report.writes) <= WRITES_MAX:
            self.report.writes.append(FileWrite(to.path, how, at.path))

    def report_guarded_path(self, effect: str, path: str, *because: Word) -> None:
        """Report a path that may be touched, but only if it is guarded."""
        for cwd in self.state.cwds:
            place = self._locate(path, cwd, *because)
            # A path that may be touched, or not, would make too much noise outside guarded files.
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
            # curl reads local files through such URLs.
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
            why = f"what {word.short_text} does was not looked into"
            self.report.add_unclear("script", why, cited, cwd=self._only_directory())
        else:
            self.report_unclear("dynamic-program", "which program runs depends on what cannot be seen", *because, word)

    def report_module(self, module: Word, name: str) -> None:
        """Report that Python runs one of its own modules. A file of that name in the current directory hides it."""
        self.report_effect("execute", module, target=name)
        why = f"a file {name.partition('.')[0]}.py here would run instead of the module"
        self.report.add_unclear("script", why, self.quote_words(module), cwd=self._only_directory())

    def report_code(self, text: str | None, *words: Word) -> None:
        """Report code in another language that this program runs. `text` is all of it; None if it is not known."""
        why = f"code that {self.program} runs was not looked into"
        self.report.add_unclear("code", why, self.quote_words(*words), text or "", self._only_directory())

    def _only_directory(self) -> str:
        """Return the directory that this runs in; empty if it may be one of several, or is not known."""
        return (self.state.cwds[0] or "") if len(self.state.cwds) == 1 else ""

    def is_in_workspace(self, word: Word) -> bool:
        """Whether a path lies in the workspace for every value and every possible directory."""
        return word.is_known and all(
            locate_path(value, cwd, self.path_roots).where == "workspace"
            for value in word.values
            for cwd in self.state.cwds
        )

    def report_environment(self) -> None:
        """Report variables that may change what this program runs. Only a program that runs code is asked about."""
        for name in sorted(self.environment | self.state.exported):
            cited = (f"{name}=", *self.quote_words())
            if is_hook_switch(name):
                self.report.add_effect("agent-config", cited)
            self.report.add_unclear("environment", f"{name} may change what {self.program} runs", cited)

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
    # In `user@host:path` the host follows the last `@` before the path.
    rest = text.rpartition("@")[2] if "@" in text.partition("/")[0] else text
    found = _HOST.match(rest)
    return found[0].strip("[]").lower() if found else None


_SHOWS_ANY_NAME = frozenset(("ls", "dir", "stat", "readlink", "realpath"))
"""Programs that show names, sizes and dates of files, whatever options and paths they are given."""

_FILTERS = frozenset(("grep", "egrep", "fgrep", "head", "tail", "sort", "uniq", "tac", "cat", "tee"))
_DECODERS = frozenset(
    (
        *("base64", "base32", "basenc", "xxd", "openssl", "gpg", "uudecode", "zcat", "gunzip", "gzip", "bunzip2", "xz"),
        *("bzcat", "xzcat", "zstd", "zstdcat", "tr", "rev", "sed", "awk", "perl", "python", "python3", "od", "dd"),
    )
)
_FETCHERS = frozenset(("curl", "wget", "nc", "ncat", "netcat", "socat", "ssh", "telnet", "aria2c", "http", "https"))
_LISTS_NAMES = lazy_pattern(r"--files|--files-with-matches|-[a-zA-Z]*l[a-zA-Z]*")
"""Options with which `rg` and `grep` print names of files."""
_OWN_FORMAT = lazy_pattern(r"-(?:f?printf|exec|ok)|--(?:format|exec|replace|path-separator|hyperlink)")
_OTHER_INPUT = StandardInput("other")
_CURRENT_DIRECTORY = Word(".", (".",), ".")


def predict_output(words: Sequence[Word], stdin: StandardInput | None) -> StandardInput:
    """Return what a program with these words prints, if `stdin` is its own standard input."""
    if not words or words[0].value is None:
        return _OTHER_INPUT
    program, arguments = words[0].value.rpartition("/")[2], words[1:]
    if program in ("echo", "printf"):
        values = [word.value for word in arguments]
        if any(value is None for value in values):
            return _OTHER_INPUT
        texts = [value for value in values if value is not None]
        if program == "echo":
            if texts[:1] == ["-n"]:
                texts = texts[1:]
            if (texts and re.fullmatch(r"-[neE]+", texts[0])) or any("\\" in text for text in texts):
                return StandardInput("decoded")  # whether echo interprets backslashes depends on the shell
            return StandardInput("text", " ".join(texts))
        # `printf` is predicted only for these plain formats.
        if texts[:1] and texts[0] in ("%s", "%s\\n", "%s\n") and len(texts) == 2:
            return StandardInput("text", texts[1])
        if len(texts) == 1 and "%" not in texts[0] and "\\" not in texts[0].replace("\\n", ""):
            return StandardInput("text", texts[0].replace("\\n", "\n"))
        return StandardInput("decoded")
    # A filter without file operands prints a part of its input. Of a known text, only a bare `cat` keeps all of it.
    if program in _FILTERS and stdin is not None and (stdin.kind != "text" or (program == "cat" and not arguments)):
        # The first operand of grep is its pattern, not a file.
        operands = [word for word in arguments if not word.prefix.startswith("-")]
        return stdin if not operands[program.endswith("grep") :] else _OTHER_INPUT
    if program in _DECODERS:
        return StandardInput("decoded")
    if program in _FETCHERS:
        return StandardInput("network")
    roots = _find_listing_roots(program, arguments)
    if program == "find" and roots is not None:
        arguments = _drop_name_printers(arguments)
    # With a format of its own, a program may print any text instead of the names.
    if roots is None or any(_OWN_FORMAT.match(value) for word in arguments for value in word.values):
        return _OTHER_INPUT
    names = find_name_patterns(arguments) if program == "find" else ("*",)
    return StandardInput("listing", roots=roots, names=names, has_roots=program == "find")


def _drop_name_printers(arguments: Sequence[Word]) -> Sequence[Word]:
    """Return the words of find without `-exec grep -l … {} +`, which prints names of the files that find chooses."""
    values = [word.value for word in arguments]
    if values.count("-exec") != 1:
        return arguments
    start = values.index("-exec")
    end = next((at for at in range(start, len(values)) if values[at] in (";", "+")), len(values))
    inner = values[start + 1 : end]
    is_plain = inner[:1] in (["grep"], ["egrep"], ["fgrep"]) and inner[-1:] == ["{}"] and None not in inner
    if not is_plain or not any(_LISTS_NAMES.fullmatch(value or "") for value in inner[1:-1]):
        return arguments
    # Only options of one letter, and a pattern: no option names another file.
    others = [value or "" for value in inner[1:-1] if not re.fullmatch(r"-[EFGPilLnqswxvhHZ]+|--|-e", value or "")]
    return [*arguments[:start], *arguments[end + 1 :]] if len(others) == 1 else arguments


def _find_listing_roots(program: str, arguments: Sequence[Word]) -> tuple[Word, ...] | None:
    """Return the directories that the listed files lie in; None if the program does not list files."""
    operands = [word for word in arguments if not word.prefix.startswith("-")]
    values = [word.value for word in arguments]
    if program == "find":
        # The roots come first, then the expression.
        roots = tuple(takewhile(lambda word: not word.prefix.startswith(("-", "(", "!")), arguments))
        return roots or (_CURRENT_DIRECTORY,)
    if program == "ls" or (
        program == "git" and (values[:1] == ["ls-files"] or (values[:1] == ["diff"] and "--name-only" in values))
    ):
        # These print names relative to the current directory, unless an operand is an absolute path, or not known.
        return (
            _CURRENT_DIRECTORY,
            *(word for word in operands if not word.is_known or word.prefix.startswith(("/", "~", ".."))),
        )
    if program in ("fd", "fdfind") or (
        program in ("rg", "grep") and any(value is not None and _LISTS_NAMES.fullmatch(value) for value in values)
    ):
        # The first operand is the pattern.
        return tuple(operands[1:]) or (_CURRENT_DIRECTORY,)
    return None


def find_name_patterns(expression: Sequence[Word]) -> tuple[str, ...]:
    """Return patterns for the names of the files that `find` prints.

    One `-name` without `-o` or `!` limits the names to its pattern. In all other cases a file may have any name.
    """
    values = [word.value for word in expression]
    named = [after for before, after in pairwise(values) if before in ("-name", "-iname") and after]
    if len(named) == 1 and not {"-o", "-or", "!", "-not", ",", None} & set(values):
        return (named[0],)
    return ("*", *named)

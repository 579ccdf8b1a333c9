r"""The five inputs of the risk model, measured on a diff.

    added         lines of code added, without blank lines and comments
    removed       lines removed
    branches      branch words on the added lines of code: if elif for while except catch case switch select && ||
    indentation   the deepest indentation of these lines, in columns: a tab is 4, and 60 is the maximum
    fixes         bug fixes to the touched files in the 180 days before, summed over the files

Only source files count (see `file_kind`). Three more numbers say how much of the change the five do not cover:

    files         source files touched
    unmeasured    other files that the model cannot judge: configuration, vendored, binary, links, unknown
    unclear       stretches that could not be read, that lines do not describe, that take most of a file away, or that
                  hide what they do (`effects.code_scan`)

Each line is judged on its own: it is a comment if it looks like one. Following comments over several lines would be
unsafe, because an opening mark inside a string could hide all lines after it. Text inside a block comment therefore
counts as code unless it looks like a comment itself. This error makes Aver ask more often, not less.

    >>> found = measure_diff("--- a/x.py\n+++ b/x.py\n@@ -1 +1,3 @@\n-y\n+# why\n+if x:\n+    y()\n")
    >>> found.features.to_dict()
    {'added': 2, 'removed': 1, 'branches': 1, 'indentation': 4, 'fixes': 0, 'files': 1, 'unmeasured': 0, 'unclear': 0}

The model was fitted to source files. Tests and docs are ignored, because they seldom break anything. That holds for
source and text files alone: under `tests/` and `docs/`, all others count as elsewhere. Configuration, files that a
build runs by itself, vendored code and unknown kinds are counted as `unmeasured`: no data exists about them, and such a
change is never of low risk. Kinds are decided by the path alone; nothing here touches the disk.

    >>> file_kind("src/app.py"), file_kind("tests/test_app.py"), file_kind("tests/package.json"), file_kind("setup.py")
    ('source', 'test', 'configuration', 'configuration')
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from functools import lru_cache
from typing import Literal

from aver.fast_dataclass import dataclass
from aver.gate.risk.diff import read_diff
from aver.gate.risk.diff_model import DiffPart, FileChange, Hunk
from aver.lazy_pattern import lazy_pattern

INDENTATION_MAX = 60
TAB_WIDTH = 4

LINE_MAX = 1000
"""Characters of a line of code. A longer line holds more than one line of work, so its change is unclear."""

WIDE_LINE = 400
LINE_WIDTH = 80
"""A line of more than `WIDE_LINE` characters counts as one line for each `LINE_WIDTH` of them."""

LOSS_MAX = 30
"""Lines that a file may lose, beyond those that it gets. A change that takes more away is unclear."""

FILES_MAX = 10_000
"""Files of a change that Aver measures. A change with more files is unclear."""

PENDING_MAX = 4096
"""Lines that are measured in one step."""

COUNT_MAX = 10**9
"""The upper bound of every count."""


@dataclass(frozen=True, slots=True)
class Features:
    """The numbers that a change is scored by. Aver learns from the same numbers when the outcome is known."""

    added: int = 0
    removed: int = 0
    branches: int = 0
    indentation: int = 0
    fixes: int = 0
    files: int = 0
    unmeasured: int = 0
    unclear: int = 0

    def to_dict(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in _FEATURE_NAMES}

    @classmethod
    def from_dict(cls, values: Mapping[str, float]) -> Features:
        """Build features from untrusted numbers. Each is brought within its bounds."""
        counts: dict[str, int] = {}
        for name in _FEATURE_NAMES:
            value = values.get(name, 0)
            # A value that is no number counts as the maximum: Aver then asks. NaN is the only number unequal to itself.
            is_number = isinstance(value, int | float) and value == value
            counts[name] = int(max(0, min(value, COUNT_MAX))) if is_number else COUNT_MAX
        return cls(**counts)

    def plus(self, other: Features) -> Features:
        """Return the features of both changes together. `fixes` is 0, because it depends on the files of both."""
        # Both changes may touch the same files, so the number of files is an upper bound.
        sums = {name: min(getattr(self, name) + getattr(other, name), COUNT_MAX) for name in _FEATURE_NAMES}
        return Features(**{**sums, "indentation": max(self.indentation, other.indentation), "fixes": 0})


_FEATURE_NAMES = tuple(field.name for field in fields(Features))


@dataclass(frozen=True, slots=True)
class MeasuredChange:
    """The features of a change without `fixes`, and all names of the source files that it touches."""

    features: Features
    sources: tuple[str, ...]
    clean: tuple[str, ...] = ()
    """The changed files, as absolute paths, whose added lines were looked at and reach nowhere."""
    reaching: tuple[str, ...] = ()
    """The changed files whose added lines reach out, or could not be looked at."""
    created: tuple[str, ...] = ()
    """The files that the change creates: it shows them whole."""

    def plus(self, other: MeasuredChange) -> MeasuredChange:
        """Return both changes as one."""
        names = ("sources", "clean", "reaching", "created")
        joined = {name: tuple(dict.fromkeys((*getattr(self, name), *getattr(other, name)))) for name in names}
        return MeasuredChange(self.features.plus(other.features), **joined)


def measure_diff(diff: str, *, workspace: str = "") -> MeasuredChange:
    """Measure a change that is given as a diff, and look at the lines that it adds."""
    return _measure(read_diff(diff), _FeatureTally(workspace, ChangeScan(workspace)))


def measure_parts(parts: Iterable[DiffPart], *, workspace: str = "") -> MeasuredChange:
    """Measure a change without looking into its lines. An absolute path below `workspace` is made relative to it."""
    return _measure(parts, _FeatureTally(workspace, None))


def _measure(parts: Iterable[DiffPart], tally: _FeatureTally) -> MeasuredChange:
    files = 0
    for part in parts:
        if isinstance(part, Hunk):
            tally.add_hunk(part)
        elif isinstance(part, FileChange):
            files += 1
            if files > FILES_MAX:
                tally.unclear += 1
                break
            tally.add_file(part)
        else:
            tally.unclear += 1
    return tally.build_result()


class _FeatureTally:
    """Counts the features of a change, part by part."""

    def __init__(self, workspace: str, scan: ChangeScan | None) -> None:
        self._scan = scan
        self._gained = 0
        """Lines that the current file has gained; negative if it has lost some."""
        self._inside = workspace.rstrip("/") + "/" if workspace else ""
        self._style: CommentStyle | None = None
        """The comment style of the current file; None if it is not a source file."""
        self._pending: dict[CommentStyle, list[str]] = {}
        """Added lines that are not measured yet. Measuring many lines at once is faster."""
        self._sources: dict[str, None] = {}
        self.added = self.removed = self.branches = self.indentation = 0
        self.files = self.unmeasured = self.unclear = 0

    def add_file(self, file: FileChange) -> None:
        self._end_file()
        if self._scan is not None:
            self._scan.add_file(file)
        paths = [path.removeprefix(self._inside) for path in dict.fromkeys((file.old, file.new)) if path is not None]
        # A renamed file has two paths, and possibly two kinds.
        kinds = {file_kind(path) for path in paths}
        self._style = None
        if "source" in kinds:
            self.files += 1
            self._style = comment_style(next(path for path in paths if file_kind(path) == "source"))
            self._sources.update(dict.fromkeys(paths))
        # Lines do not describe a binary file, a link, or a new permission to execute. Binary files in docs and tests
        # do not count.
        if file.binary:
            is_text = kinds <= {"test", "docs"}
        else:
            modes_are_text = {file.new_mode, file.old_mode} <= _TEXT_FILE_MODES
            is_text = modes_are_text and not file.new_mode == "100755" != file.old_mode
        if not kinds <= {"source", "test", "docs"} or not is_text:
            self.unmeasured += 1

    def _end_file(self) -> None:
        self.unclear += self._gained < -LOSS_MAX
        self._gained = 0

    def add_hunk(self, hunk: Hunk) -> None:
        added = hunk.added_lines()
        if self._scan is not None:
            self._scan.add_lines(added)
            self._gained += len(added) - len(hunk.removed_lines())
        if self._style is not None:
            # A hunk that only adds lines has nothing to count.
            self.removed += len(hunk.removed_lines()) if len(added) < len(hunk.lines) else 0
            pending = self._pending.setdefault(self._style, [])
            pending += added
            if len(pending) > PENDING_MAX:
                self._measure_pending(self._style)

    def _measure_pending(self, style: CommentStyle) -> None:
        code = code_lines(self._pending.pop(style), style)
        text = "\n".join(code)
        if len(text) > LINE_MAX and max(map(len, code)) > LINE_MAX:
            text = "\n".join([line[:LINE_MAX] for line in code])
            self.unclear += 1
        self.added += len(code) + sum([len(line) // LINE_WIDTH for line in code if len(line) > WIDE_LINE])
        self.branches += sum([len(branch.findall(text)) for branch in _BRANCHES])
        # A set holds each distinct indentation once.
        deepest = 0
        for space in set(_INDENTATION.findall(text)):
            deepest = max(deepest, len(space) + (TAB_WIDTH - 1) * space.count("\t"))
        self.indentation = max(self.indentation, min(deepest, INDENTATION_MAX))

    def build_result(self) -> MeasuredChange:
        for style in tuple(self._pending):
            self._measure_pending(style)
        self._end_file()
        scan = self._scan
        if scan is not None:
            scan.end_file()
            self.unclear += scan.disguised
        features = Features(
            added=self.added,
            removed=self.removed,
            branches=self.branches,
            indentation=self.indentation,
            files=self.files,
            unmeasured=self.unmeasured,
            unclear=self.unclear,
        )
        if scan is None:
            return MeasuredChange(features, tuple(self._sources))
        return MeasuredChange(
            features, tuple(self._sources), tuple(scan.clean), tuple(scan.reaching), tuple(scan.created)
        )


class ChangeScan:
    """Looks at the added lines of a change, file by file, for code that reaches out."""

    def __init__(self, workspace: str) -> None:
        self._workspace = workspace
        self._path: str | None = None
        self._is_opaque = False
        """Whether lines do not show what the current file holds."""
        self._added: list[str] = []
        self._size = 0
        self.clean: list[str] = []
        self.reaching: list[str] = []
        self.created: list[str] = []
        self.disguised = 0
        """Files whose added lines may be more than they show."""

    def add_file(self, file: FileChange) -> None:
        self.end_file()
        if file.new is None:  # A file that is gone runs no more.
            return
        self._path = posixpath.normpath(posixpath.join(self._workspace, file.new))
        if file.old is None:
            self.created.append(self._path)
        # A binary file, a link, or a renamed file, whose other lines are not here.
        modes = {file.new_mode, file.old_mode}
        self._is_opaque = file.binary or not modes <= _TEXT_FILE_MODES or file.old not in (None, file.new)

    def add_lines(self, lines: list[str]) -> None:
        from aver.gate.effects.code_scan.scan import TEXT_MAX  # Only changes of files need the rules of a scan.

        if self._path is not None and self._size <= TEXT_MAX:
            self._added += lines
            self._size += sum(map(len, lines)) + len(lines)

    def end_file(self) -> None:
        if self._path is not None:
            from aver.gate.effects.code_scan.reach import DISGUISES
            from aver.gate.effects.code_scan.scan import scan_code

            found = scan_code("\n".join(self._added), self._path)
            (self.reaching if found or self._is_opaque else self.clean).append(self._path)
            self.disguised += any(reach.kind in DISGUISES for reach in found)
        self._path, self._is_opaque, self._added, self._size = None, False, [], 0


_BRANCH_WORDS = ("if", "elif", "for", "while", "except", "catch", "case", "switch", "select")
_BRANCHES = [
    # A pattern that begins with letters is several times as fast as one that begins with `\b`.
    *(lazy_pattern(rf"{word}(?<!\w{word})(?!\w)") for word in _BRANCH_WORDS),
    lazy_pattern("&&"),
    lazy_pattern(r"\|\|"),
]
_LINE_END = lazy_pattern("[\n\r\u2028\u2029]")
"""Other ends of lines in Python and JavaScript. Without them a whole program could be one line of a diff."""

_COMMENTS: Mapping[CommentStyle, tuple[str, re.Pattern[str]]] = {
    "hash": ("#", lazy_pattern("#")),
    # A line with a star that ends like code may be code: `* p = f();`. Text after the end of a comment is code.
    "slash": ("/*", lazy_pattern(r"//|/\*(?!.*\*/.)|\*(?:/|\s.*[^;{}(),])?$")),
    "dash": ("-", lazy_pattern("--")),
    "semicolon": (";", lazy_pattern(";")),
    "percent": ("%", lazy_pattern("%")),
    "markup": ("<", lazy_pattern(r"<!--(?!.*-->.)")),
    "hash and slash": ("#/*", lazy_pattern(r"#(?!\[)|//|/\*(?!.*\*/.)|\*(?:/|\s.*[^;{}(),])?$")),
}
"""By style: the possible first characters of a comment line, and its pattern. Both are for stripped lines."""


_INDENTATION = lazy_pattern(r"^[ \t]+", re.MULTILINE)


def code_lines(lines: list[str], style: CommentStyle) -> list[str]:
    """Return the lines that are neither blank nor comments."""
    text = "".join(lines)
    # The common case is plain ASCII, which needs no splitting.
    if "\r" in text or not text.isascii():
        lines = [part for line in lines for part in _LINE_END.split(line)]
    firsts, comment = _COMMENTS[style]
    is_comment = comment.match
    return [line for line in lines if (text := line.strip()) and (text[0] not in firsts or not is_comment(text))]


_TEXT_FILE_MODES = frozenset(("", "100644", "100755"))
"""Other modes belong to links and submodules, or give more rights."""


FileKind = Literal["source", "test", "docs", "configuration", "vendored", "unknown"]

CommentStyle = Literal["hash", "slash", "dash", "semicolon", "percent", "markup", "hash and slash"]
"""The start of a comment line: `#`, `//` or `/*`, `--`, `;`, `%`, `<!--`."""


def _word_set(*lines: str) -> frozenset[str]:
    return frozenset(" ".join(lines).split())


_SOURCE_ENDINGS: dict[CommentStyle, frozenset[str]] = {
    "hash": _word_set(
        "py pyi pyx pxd pyw rb rake sh bash zsh fish ksh pl pm t r jl nim ex exs tcl cr coffee ps1 psm1 awk",
        "graphql gql",
    ),
    "slash": _word_set(
        "c h cc cpp cxx c++ hh hpp hxx inl m mm java js jsx mjs cjs ts tsx mts cts go rs swift kt kts scala cs fs fsx",
        "dart zig v groovy gradle vue svelte astro proto sol cu cuh glsl vert frag hlsl wgsl d css scss sass less styl",
    ),
    "dash": _word_set("sql lua hs elm ada adb ads vhd vhdl"),
    "semicolon": _word_set("lisp cl clj cljs cljc el scm ss rkt asm s"),
    "percent": _word_set("erl hrl"),
    "markup": _word_set("html htm xhtml jinja j2 jinja2 erb ejs hbs mustache twig"),
    "hash and slash": _word_set("php phtml tf hcl nix"),
}
_STYLE_BY_ENDING = {ending: style for style, endings in _SOURCE_ENDINGS.items() for ending in endings}

_DOC_ENDINGS = _word_set(
    "md markdown mdx rst txt adoc asciidoc tex textile org pod rdoc 1 3 5 7 8 pdf png jpg jpeg gif webp ico svg"
)
_DOC_NAMES = _word_set(
    "readme license licence copying notice authors contributors changelog changes history news todo maintainers",
    "codeowners security contributing code_of_conduct",
)
_DOC_TOPS = _word_set("doc docs documentation man")

_TEST_DIRECTORIES = _word_set(
    "test tests __tests__ __mocks__ __snapshots__ spec specs testdata test-data test_data fixtures e2e cypress"
)
_TEST_STEM_ENDINGS = ("_test", "_tests", ".test", ".spec", "_spec", "-test", "-spec", ".e2e", ".cy", ".stories")

_VENDORED_DIRECTORIES = _word_set(
    "vendor vendored _vendor third_party third-party thirdparty node_modules bower_components site-packages dist"
)
_GENERATED_ENDINGS = (
    *(".min.js", ".min.css", ".bundle.js", ".min.mjs", "_pb2.py", "_pb2.pyi", "_pb2_grpc.py", ".pb.go", ".pb.cc"),
    *(".pb.h", ".pb.validate.go", "_generated.go", ".generated.ts", ".generated.js", ".g.dart", ".designer.cs"),
)

_CONFIGURATION_ENDINGS = _word_set(
    "json json5 jsonc yaml yml toml ini cfg conf config lock xml properties env plist editorconfig mod sum work",
    "csproj vcxproj sln props targets cmake mk bazel bzl gn gni service desktop rc ipynb csv tsv snap po pot pth",
    "gemspec podspec sbt gradle",
)
_CONFIGURATION_NAMES = _word_set(
    "makefile gnumakefile dockerfile containerfile vagrantfile procfile gemfile rakefile justfile jenkinsfile build",
    "workspace cmakelists.txt requirements.txt constraints.txt setup.cfg manifest.in go.mod go.sum cargo.lock",
)
_BUILD_NAMES = _word_set(
    "setup.py conftest.py noxfile.py fabfile.py dodo.py pavement.py sitecustomize.py usercustomize.py hatch_build.py",
    "pdm_build.py wscript sconstruct sconscript build.rs build.zig build.gradle.kts settings.gradle.kts mix.exs",
    "project.clj package.swift makefile.pl build.pl gulpfile.js gulpfile.ts gulpfile.mjs gruntfile.js dangerfile.js",
    "dangerfile.ts cakefile jakefile.js magefile.go meson_options.txt build.xml extconf.rb",
)
_TOP_BUILD_NAMES = _word_set(
    "tasks.py build.py manage.py conf.py build.js build.mjs build.ts build.go setup.js setup.ts webpack.js rollup.js"
)
"""Build files only at the top of a project or of its docs. Elsewhere they are modules like any other."""
_BUILD_STEM_ENDINGS = (".config", ".conf", ".setup")
"""Ends of names of JavaScript files that tools load by themselves: `vite.config.ts`, `karma.conf.js`."""
_BUILD_SCRIPT_ENDINGS = _word_set("js cjs mjs ts cts mts jsx tsx")
_REQUIREMENTS = lazy_pattern(r"(?:[\w.-]*[-_.])?(?:requirements?|constraints?)(?:[-_.][\w.-]*)?\.(?:txt|in|lock)")
_REQUIREMENT_ENDINGS = frozenset(("txt", "in", "lock"))
_TEXT_ENDINGS = _DOC_ENDINGS | {"csv", "tsv"}
"""Endings of files that count as text under `tests/` and `docs/`."""

_CONFIGURATION_TOPS = _word_set(".github .circleci .gitlab .vscode .idea .husky .cargo .devcontainer")


@lru_cache(maxsize=8192)
def file_kind(path: str) -> FileKind:
    """Return the kind of a file by its directories, name and ending. The path is relative to the workspace."""
    parts = [part for part in path.lower().replace("\\", "/").split("/") if part not in ("", ".")]
    if not parts or ".." in parts or path.startswith("/") or not path.isprintable():
        return "unknown"  # which file this changes depends on the disk, or on the tool that applies it
    *directories, name = parts
    stem, dot, ending = name.rpartition(".")
    # The order of these checks matters: a vendored test is vendored.
    if not _VENDORED_DIRECTORIES.isdisjoint(directories) or name.endswith(_GENERATED_ENDINGS):
        return "vendored"
    if any(part.endswith(".git") for part in directories):
        return "unknown"  # git runs what its own directories say
    if (
        name in _CONFIGURATION_NAMES
        or name.startswith((".", "dockerfile."))
        or not _CONFIGURATION_TOPS.isdisjoint(directories)
        or _is_build_file(name, stem, ending, directories)
    ):
        return "configuration"
    # The ending alone does not decide: `tests/x.py` is a test.
    code = bool(dot) and ending in _STYLE_BY_ENDING
    stem = stem if dot else name
    named_test = stem.startswith("test_") or stem.endswith(_TEST_STEM_ENDINGS)
    is_test = (code and named_test) or not _TEST_DIRECTORIES.isdisjoint(directories)
    # Only source and text are harmless there. Programs in `bin`, and files without an ending, are judged as elsewhere.
    if (code or (dot and ending in _TEXT_ENDINGS)) and "bin" not in directories:
        if is_test:
            return "test"
        if directories and directories[0] in _DOC_TOPS:
            return "docs"
    if code:
        return "source"
    if ending in _DOC_ENDINGS or stem in _DOC_NAMES:
        return "docs"
    return "configuration" if dot and ending in _CONFIGURATION_ENDINGS else "unknown"


def _is_build_file(name: str, stem: str, ending: str, directories: list[str]) -> bool:
    """Whether a build, a test runner or an installer runs or obeys this file without being told its name."""
    if name in _BUILD_NAMES or (ending in _BUILD_SCRIPT_ENDINGS and stem.endswith(_BUILD_STEM_ENDINGS)):
        return True
    if name in _TOP_BUILD_NAMES and (not directories or directories[-1] in _DOC_TOPS):
        return True
    if ending == "gradle" or _REQUIREMENTS.fullmatch(name) is not None:
        return True
    return ending in _REQUIREMENT_ENDINGS and bool(directories) and directories[-1] in ("requirements", "constraints")


def is_source(path: str) -> bool:
    return file_kind(path) == "source"


@lru_cache(maxsize=1024)
def comment_style(path: str) -> CommentStyle:
    """Return the comment style of a source file."""
    return _STYLE_BY_ENDING.get(path.rpartition(".")[2].lower(), "slash")

"""The verbs of programs that build, test and document: what they load, run and write."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from aver.gate.shell.environment import judge_assignment
from aver.gate.shell.invocation import Invocation
from aver.gate.shell.model import Word
from aver.gate.shell.programs.verbs.file_verbs import judge_code, judge_options_file, judge_template, judge_write
from aver.gate.shell.programs.verbs.verb import Verb
from aver.lazy_pattern import lazy_pattern

_MAKE_ASSIGNMENT = lazy_pattern(r"([A-Za-z_.][A-Za-z0-9_.]*)[:?+!]?=")


def _make_argument(call: Invocation, word: Word) -> None:
    """Judge a target of make, or a variable that is set for it. A recipe may run any variable as a program."""
    if found := _MAKE_ASSIGNMENT.match(word.prefix):
        if found[1].strip(".").upper() in ("SHELL", "SHELLFLAGS"):
            judge_code(call, word)
        if not judge_assignment(call, found[1], word.drop_first(found.end())):
            call.report_unclear("environment", f"{found[1]} may change what {call.program} runs", word)


_REPORT_FILE = lazy_pattern(r"[a-z-]+:(.+)", re.DOTALL)
_PYTEST_PLUGINS = lazy_pattern(
    r"no:.*|xdist|randomly|cacheprovider|doctest|capture|logging|asyncio|anyio|timeout|cov|pytest_cov|faulthandler|pytester"
)
_PYTEST_SETTINGS = lazy_pattern(
    r"(?:log_\w*level|log_cli|log_(?:cli_)?(?:date_)?format|asyncio_\w+|timeout\w*|console_output_style|junit_\w+"
    r"|xfail_strict|faulthandler_\w+|filterwarnings|markers|python_(?:files|classes|functions)|truncation_limit_\w+"
    r"|verbosity_\w+|minversion)=(?!.*[/@]).*",
    re.DOTALL,
)


def _coverage_report(call: Invocation, word: Word) -> None:
    """Judge `--cov-report`: the name of a format, or a name and the place to write to."""
    if not word.is_known:
        call.report_path("write", word)
    for value in word.values:
        found = _REPORT_FILE.fullmatch(value)
        if found and found[1] not in ("skip-covered", "skip-empty"):
            call.report_path("write", replace(word, values=(found[1],)))


def _pytest_plugin(call: Invocation, word: Word) -> None:
    """Judge `pytest -p`. A plugin is a module, which runs."""
    if word.value is None or not _PYTEST_PLUGINS.fullmatch(word.value):
        call.report_effect("execute", word)
        call.report_unclear("code", f"what the plugin {word.short_text} does was not looked into", word)


def _pytest_setting(call: Invocation, word: Word) -> None:
    """Judge `pytest -o`. Some settings add options, files and plugins."""
    if word.value is None or not _PYTEST_SETTINGS.fullmatch(word.value):
        call.report_unclear("environment", f"the setting {word.short_text} changes what pytest runs", word)


def _test_operand(call: Invocation, word: Word) -> None:
    """Judge a test to run. `@FILE` holds more options."""
    if word.prefix.startswith("@"):
        judge_options_file(call, word.drop_first(1))


_OUTPUT_OPTION = lazy_pattern(
    r"-[oH]|--?(?:inspect|host|address|bind|listen|public|expose|share|tunnel|open|out|output|report|log|trace|debug|profile|cov|coverage|junit|json|html|config|exec|require|import|loader"
    r"|plugin|reporter|setup|global|env|runner|transform|resolver|preset|write|dump|save|cache|dir|file)[\w.-]*(?:=.*)?",
    re.IGNORECASE | re.DOTALL,
)
_PASSED_SAFELY = lazy_pattern(
    r"--(?:coverage|watch|watchAll|runTestsByPath|reporter(?:=(?:dot|spec|list|line|verbose|default|basic|json|min))?|json"
    r"|cache|no-cache|coverage=(?:true|false)|debug|dir=(?!.*\.\.)[\w./-]*)|--testPathPattern.*",
    re.IGNORECASE | re.DOTALL,
)


def _passed_argument(call: Invocation, word: Word) -> None:
    """Judge an argument that `npm run` hands to a script. Which program gets it is not known."""
    for value in word.values or ("-o",):
        if value.startswith("-") and _OUTPUT_OPTION.fullmatch(value) and not _PASSED_SAFELY.fullmatch(value):
            why = f"what the script does with {word.short_text} was not looked into"
            call.report_unclear("unknown-option", why, word)


_FORMAT_OPTIONS = frozenset(("--check", "-l", "-v", "--verbose", "-q"))


def _format_option(call: Invocation, word: Word) -> None:
    """Judge an operand of `cargo fmt` and `go fmt`: an option or file for the formatter, after `--`."""
    if (word.value is None or word.value.startswith("-")) and word.value not in _FORMAT_OPTIONS:
        call.report_unclear("unknown-option", f"{word.short_text} of {call.program} is not in the tables", word)


_LINT_FORMATS = lazy_pattern(r"[a-z0-9-]+(?:,[a-z0-9-]+)*")


def _lint_format(call: Invocation, word: Word) -> None:
    """Judge the format of a linter's output: `json`, or `json:FILE`."""
    if word.value is None or not _LINT_FORMATS.fullmatch(word.value):
        call.report_path("write", Word(word.text, tuple(value.partition(":")[2] or value for value in word.values)))


def _reporter_option(call: Invocation, word: Word) -> None:
    """Judge options of a reporter. Some of them name the file to write."""
    for value in word.values or ("output=?",):
        for part in value.split(","):
            name, equals, path = part.partition("=")
            if equals and name not in ("maxDiffSize", "verbose", "hideTitles", "suiteName"):
                call.report_path("write", replace(word, values=(path,) if word.is_known else ()))


_BUILT_IN_REPORTERS = frozenset(
    (
        "default",
        "verbose",
        "basic",
        "dot",
        "json",
        "junit",
        "tap",
        "tap-flat",
        "hanging-process",
        "github-actions",
        "tree",
    )
)


def _built_in_reporter(call: Invocation, word: Word) -> None:
    if word.value not in _BUILT_IN_REPORTERS:
        call.report_executed_file(word)


def _dotnet_logger(call: Invocation, word: Word) -> None:
    """Judge a logger of `dotnet test`: a name, with settings that may name a file or an assembly."""
    if word.value is None or not re.fullmatch(r"(?:console|trx|html)(?:;verbosity=\w+)?", word.value):
        call.report_effect("write", word)
        call.report_unclear("unknown-option", f"where {word.short_text} writes was not looked into", word)


_HARMLESS_DEFINITIONS = lazy_pattern(
    r"(?:CMAKE_BUILD_TYPE|CMAKE_EXPORT_COMPILE_COMMANDS|CMAKE_VERBOSE_MAKEFILE|BUILD_(?:TESTING|SHARED_LIBS|TESTS|DOCS|EXAMPLES)"
    r"|CMAKE_C(?:XX)?_STANDARD|\w+_BUILD_\w+)(?::\w+)?=[\w.+-]*"
)


def _definition(call: Invocation, word: Word) -> None:
    """Judge `cmake -D`. Many variables name a compiler or a launcher, which runs."""
    if word.value is None or not _HARMLESS_DEFINITIONS.fullmatch(word.value):
        call.report_unclear("environment", f"{word.short_text} may change what cmake runs", word)


_SPHINX_BUILDERS = frozenset(
    (
        *("html", "dirhtml", "singlehtml", "doctest", "text", "man", "epub", "gettext", "dummy", "spelling", "xml"),
        *("changes", "coverage", "json", "latex", "texinfo", "pseudoxml", "help"),
    )
)


def _sphinx_builder(call: Invocation, word: Word) -> None:
    """Judge the builder of Sphinx. `linkcheck` opens connections, and others run further programs."""
    if word.value not in _SPHINX_BUILDERS:
        call.report_unclear("unknown-option", f"what the builder {word.short_text} does was not looked into", word)


_MADE_DOCS = frozenset(("_build", "build", "_site", "site", "_html", "html", "dist", "out", "doctrees", "_doctrees"))
"""Directories for finished pages. Nobody keeps sources in them."""


def _made_docs(call: Invocation, word: Word) -> None:
    """Judge the directory into which Sphinx writes pages. Any other place may hold files of the same names."""
    if word.is_known and all(not _MADE_DOCS.isdisjoint(value.split("/")) for value in word.values):
        judge_template(call, word)
    else:
        judge_write(call, word)


def _compiler_flags(call: Invocation, word: Word) -> None:
    """Judge flags for a compiler or linker. Some flags name another program to run."""
    if word.value is None or re.search(r"-(?:ext|toolexec|fuse-ld|B|specs|wrapper|plugin)", word.value):
        judge_code(call, word)


def _python_setting(call: Invocation, word: Word) -> None:
    """Judge `python -X`. Some settings name a file or a directory."""
    if word.value is None or not re.fullmatch(
        r"(?:dev|utf8|faulthandler|tracemalloc|importtime|showrefcount|no_debug_ranges|int_max_str_digits|frozen_modules|gil"
        r"|warn_default_encoding|perf)(?:=\w*)?",
        word.value,
    ):
        call.report_unclear("unknown-option", f"the setting {word.short_text} of python is not in the tables", word)


def _python_module(call: Invocation, word: Word) -> None:
    """Judge a Python module that runs as a program."""
    call.judge_words((Word("python", ("python",), "python"), Word("-m", ("-m",), "-m"), word))


def _project_path(call: Invocation, word: Word) -> None:
    """Judge a directory or file whose code the tool runs."""
    call.report_path("read", word)
    if not call.is_in_workspace(word):
        call.report_unclear("script", f"the code of {word.short_text} lies outside the workspace", word)


BUILD_VERBS: Mapping[str, Verb] = {
    "makes": _make_argument,
    "flags": _compiler_flags,
    "module": _python_module,
    "pythonsetting": _python_setting,
    "project": _project_path,
    "cmakes": judge_code,
    "definition": _definition,
    "pages": _made_docs,
    "sphinx": _sphinx_builder,
    "tests": _test_operand,
    "coverreport": _coverage_report,
    "pytestplugin": _pytest_plugin,
    "pytestsetting": _pytest_setting,
    "formatted": _format_option,
    "passed": _passed_argument,
    "lintformat": _lint_format,
    "reporteroption": _reporter_option,
    "vitestreporter": _built_in_reporter,
    "dotnetlogger": _dotnet_logger,
}

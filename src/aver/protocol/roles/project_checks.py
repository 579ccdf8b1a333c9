"""Finds the tests and linters of a project, and says what their outputs show.

`find_checks` looks at a few plain files in the workspace and runs nothing:

    pytest       pytest.ini, conftest.py, [tool.pytest...] in pyproject.toml, or a folder tests; if pytest is installed
    unittest     files named test*.py, where there is no pytest
    ruff, mypy   their settings in pyproject.toml or in files of their own; if they are installed
    npm          the scripts `test` and `lint` of package.json; `node --test` is run so that it reports in TAP
    go, cargo    go.mod, Cargo.toml
    make         the targets `test` and `lint`, where nothing else was found

A project with other checks names them in the task:

    [roles.worker.options]
    checks = [{name = "unit", argv = ["python3", "tests.py"], report = "tap"}]

`read_outcome` reads the counts of a run from its outputs, and returns the claim with the evidence that proves it. The
counts come from the cases in the report, never from a total that a tool printed. Only for `unittest`, which has no
report, the line `Ran 3 tests` counts, and the claim says no more than that line does.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Literal

from aver.errors import BadInput
from aver.fast_dataclass import dataclass
from aver.files.regular import read_if_regular
from aver.lazy_pattern import lazy_pattern
from aver.protocol.case_counts import CaseCounts, NotCounted, count_junit, count_tap
from aver.protocol.tools.processes import tool_environment
from aver.text import plural

SETTINGS_MAX = 1024 * 1024
"""Largest file of a project's settings that is read, in bytes."""

CHECKS_MAX = 32
"""Most checks of one project."""

ENTRIES_MAX = 2000
"""Entries of a folder that are looked at for test files."""

JUNIT_FILE = "junit.xml"
"""Where pytest writes its report. The gate knows this name as build output; Aver removes the file after the run."""

ReportFormat = Literal["", "junit", "tap", "unittest"]
REPORT_FORMATS = ("junit", "tap", "unittest")

_UNITTEST_COUNT = lazy_pattern(rb"^Ran ([0-9]{1,9}) tests?\b", re.MULTILINE)
_CHECK_NAME = lazy_pattern(r"[A-Za-z0-9_-][A-Za-z0-9._ -]{0,63}")


@dataclass(frozen=True, slots=True)
class ProjectCheck:
    """One check: the words of its command, and the form of its report, if it writes one."""

    name: str
    argv: tuple[str, ...]
    report: ReportFormat = ""
    collect: Mapping[str, str] = field(default_factory=dict)
    """Files that the run writes, by the name of the output."""

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of the tool `command`."""
        found: dict[str, Any] = {"argv": list(self.argv)}
        return {**found, "collect": dict(self.collect)} if self.collect else found


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """The claim that a run supports: its words, and the evidence items that prove them."""

    text: str
    evidence: tuple[Mapping[str, Any], ...]
    is_good: bool


# --- which checks there are


def find_checks(workspace: str, options: Mapping[str, Any] | None = None) -> list[ProjectCheck]:
    """Return the checks of a project, at most `CHECKS_MAX`. `options` is the table of the role."""
    given = dict(options or {})
    named = given.pop("checks", None)
    if given:
        raise BadInput(f"unknown option {min(given)!r} of the role checks", advice="known is checks")
    if named is not None:
        return _read_named_checks(named)
    root = Path(workspace)
    found = [*_find_python(root), *_find_node(root), *_find_go(root), *_find_rust(root)]
    return (found or list(_find_make(root)))[:CHECKS_MAX]


def _read_named_checks(named: Any) -> list[ProjectCheck]:
    if not isinstance(named, list) or not 1 <= len(named) <= CHECKS_MAX:
        raise BadInput(f"checks must be a list of 1 to {CHECKS_MAX} tables")
    found = []
    for number, table in enumerate(named, 1):
        where = f"checks[{number}]"
        if not isinstance(table, dict) or table.keys() - {"name", "argv", "report", "file"}:
            raise BadInput(f"{where} must be a table with name, argv, report and file")
        name, argv, report = table.get("name"), table.get("argv"), table.get("report", "")
        if not isinstance(name, str) or _CHECK_NAME.fullmatch(name) is None:
            raise BadInput(f"{where}.name must be up to 64 letters, digits, spaces, '.', '_' and '-'")
        if not isinstance(argv, list) or not argv or not all(isinstance(word, str) for word in argv):
            raise BadInput(f"{where}.argv must be a list of words")
        if report not in ("", *REPORT_FORMATS):
            raise BadInput(f"{where}.report must be one of {', '.join(REPORT_FORMATS)}")
        file = table.get("file", "")
        if not isinstance(file, str) or (report == "junit") != bool(file):
            raise BadInput(f"{where}.file must name the file that a junit report is written to")
        found.append(ProjectCheck(name, tuple(argv), report, {"tests": file} if file else {}))
    return found


def _find_python(root: Path) -> Iterator[ProjectCheck]:
    settings = _read_toml(root / "pyproject.toml")
    tools = settings.get("tool", {}) if isinstance(settings.get("tool"), dict) else {}
    tests = _has_test_files(root) or _has_test_files(root / "tests")
    has_pytest = "pytest" in tools or any((root / name).is_file() for name in ("pytest.ini", "conftest.py"))
    program = _find_module(root, "pytest") if has_pytest or tests else None
    if program is not None:
        argv = (*program, "-q", f"--junitxml={JUNIT_FILE}")
        yield ProjectCheck("pytest", argv, "junit", {"tests": JUNIT_FILE})
    elif tests:
        yield ProjectCheck("unittest", (*_find_python_program(root), "-m", "unittest", "-v"), "unittest")
    has_ruff = "ruff" in tools or any((root / name).is_file() for name in ("ruff.toml", ".ruff.toml"))
    if has_ruff and (program := _find_program(root, "ruff")):
        yield ProjectCheck("ruff", (*program, "check", "."))
    has_mypy = "mypy" in tools or (root / "mypy.ini").is_file()
    if has_mypy and (program := _find_program(root, "mypy")):
        yield ProjectCheck("mypy", (*program, *(() if "files" in tools.get("mypy", {}) else (".",))))


def _find_node(root: Path) -> Iterator[ProjectCheck]:
    package = _read_json(root / "package.json")
    scripts = package.get("scripts")
    scripts = scripts if isinstance(scripts, dict) else {}
    test = scripts.get("test")
    if isinstance(test, str) and re.fullmatch(r"node --test", test.strip()):
        yield ProjectCheck("node", ("node", "--test", "--test-reporter=tap"), "tap")
    elif isinstance(test, str) and "no test specified" not in test:
        yield ProjectCheck("npm test", ("npm", "test"))
    if isinstance(scripts.get("lint"), str):
        yield ProjectCheck("npm lint", ("npm", "run", "lint"))


def _find_go(root: Path) -> Iterator[ProjectCheck]:
    if (root / "go.mod").is_file():
        yield ProjectCheck("go test", ("go", "test", "./..."))
        yield ProjectCheck("go vet", ("go", "vet", "./..."))


def _find_rust(root: Path) -> Iterator[ProjectCheck]:
    if (root / "Cargo.toml").is_file():
        yield ProjectCheck("cargo test", ("cargo", "test"))


def _find_make(root: Path) -> Iterator[ProjectCheck]:
    text = (read_if_regular(root / "Makefile", SETTINGS_MAX) or b"").decode("utf-8", "replace")
    for target in ("test", "lint"):
        if re.search(rf"^{target}\s*:(?!=)", text, re.MULTILINE):
            yield ProjectCheck(f"make {target}", ("make", target))


def _has_test_files(folder: Path) -> bool:
    try:
        with os.scandir(folder) as entries:
            for number, entry in enumerate(entries):
                if re.fullmatch(r"test_?\w*\.py", entry.name) and entry.name != "tests.py":
                    return True
                if number > ENTRIES_MAX:
                    break
    except OSError:
        pass
    return False


def _find_program(root: Path, name: str) -> tuple[str, ...] | None:
    """Return the words that start a program: that of the project's own environment, or the one in PATH."""
    for folder in (".venv", "venv"):
        if os.access(root / folder / "bin" / name, os.X_OK):
            return (f"{folder}/bin/{name}",)
    return (name,) if shutil.which(name, path=tool_environment(str(root))["PATH"]) else None


def _find_module(root: Path, name: str) -> tuple[str, ...] | None:
    """Return the words that start a program of Python, from the project's own environment where there is one."""
    for folder in (".venv", "venv"):
        if os.access(root / folder / "bin" / name, os.X_OK):
            return (f"{folder}/bin/python", "-m", name)
    return _find_program(root, name)


def _find_python_program(root: Path) -> tuple[str, ...]:
    return _find_program(root, "python3") or ("python3",)


def _read_toml(path: Path) -> dict[str, Any]:
    raw = read_if_regular(path, SETTINGS_MAX)
    try:
        return tomllib.loads((raw or b"").decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError):
        return {}


def _read_json(path: Path) -> dict[str, Any]:
    raw = read_if_regular(path, SETTINGS_MAX)
    try:
        found = json.loads(raw or b"{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


# --- what a run shows


def read_outcome(
    check: ProjectCheck,
    *,
    execution: str,
    exit_code: int | None,
    outputs: Mapping[str, str],
    blob: Callable[[str], bytes | None],
) -> CheckOutcome | None:
    """Return the claim about a run that ended by itself; None where its outputs hold no evidence.

    `execution` is its id, `outputs` are the digests of its outputs by name, and `blob` reads one.
    """
    shown = next((outputs[name] for name in ("tests", "stdout", "stderr") if name in outputs), None)
    if shown is None or exit_code is None:
        return None
    ended = {"artifact": shown, "execution": execution, "check": {"exit_code": ["==", exit_code]}}
    counted = _count_cases(check, outputs, blob)
    if counted is not None:
        digest, counts = counted
        numbers = {name: ["==", count] for name, count in counts.to_dict().items()}
        report = {"tests": {"format": check.report, "counts": numbers}}
        words = [f"{counts.passed} passed", f"{counts.failed} failed", f"{counts.errors} errors"]
        text = f"{check.name}: {plural(counts.total, 'test')}: {', '.join(words)}, {counts.skipped} skipped"
        evidence = ({"artifact": digest, "execution": execution, "check": report}, ended)
        return CheckOutcome(f"{text}; exit code {exit_code}", evidence, exit_code == 0)
    if check.report == "unittest" and (line := _find_unittest_line(outputs, blob)) is not None:
        digest, words_found = line
        contains = {"artifact": digest, "execution": execution, "check": {"text": {"contains": words_found}}}
        return CheckOutcome(f"{check.name}: {words_found}; exit code {exit_code}", (contains, ended), exit_code == 0)
    return CheckOutcome(f"{check.name} ends with exit code {exit_code}", (ended,), exit_code == 0)


def _count_cases(
    check: ProjectCheck, outputs: Mapping[str, str], blob: Callable[[str], bytes | None]
) -> tuple[str, CaseCounts] | None:
    """Return the digest of the report and its counts; None where there is none that can be counted."""
    name = {"junit": "tests", "tap": "stdout"}.get(check.report)
    data = blob(outputs[name]) if name is not None and name in outputs else None
    if name is None or data is None:
        return None
    try:
        return outputs[name], (count_junit if check.report == "junit" else count_tap)(data)
    except NotCounted:
        return None


def _find_unittest_line(outputs: Mapping[str, str], blob: Callable[[str], bytes | None]) -> tuple[str, str] | None:
    for name in ("stderr", "stdout"):
        if name in outputs and (found := _UNITTEST_COUNT.search(blob(outputs[name]) or b"")):
            return outputs[name], found[0].decode("ascii")
    return None

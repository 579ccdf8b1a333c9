"""The checks of a project are found without running anything, and their counts are read from the cases."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from aver.errors import BadInput
from aver.protocol.roles import project_checks
from aver.protocol.roles.project_checks import ProjectCheck, find_checks, read_outcome


def words(root: Path, options: dict[str, Any] | None = None) -> list[tuple[str, tuple[str, ...], str]]:
    return [(check.name, check.argv, check.report) for check in find_checks(str(root), options)]


def install(root: Path, *names: str) -> None:
    """Put programs into the environment of the project."""
    (root / ".venv" / "bin").mkdir(parents=True)
    for name in ("python", *names):
        (root / ".venv" / "bin" / name).write_text("#!/bin/sh\n")
        (root / ".venv" / "bin" / name).chmod(0o755)


def test_a_python_project_with_an_environment_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.ruff]\n[tool.mypy]\nfiles = ["src"]\n[tool.pytest.ini_options]\n')
    install(tmp_path, "pytest", "ruff", "mypy")
    assert words(tmp_path) == [
        ("pytest", (".venv/bin/python", "-m", "pytest", "-q", "--junitxml=junit.xml"), "junit"),
        ("ruff", (".venv/bin/ruff", "check", "."), ""),
        ("mypy", (".venv/bin/mypy",), ""),
    ]


def test_a_python_project_without_pytest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        project_checks.shutil, "which", lambda name, path: "/usr/bin/python3" if name == "python3" else None
    )
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_shop.py").write_text("")
    assert words(tmp_path) == [("unittest", ("python3", "-m", "unittest", "-v"), "unittest")]


def test_projects_of_other_languages(tmp_path: Path) -> None:
    node, plain, go, rust, make = (tmp_path / name for name in ("node", "plain", "go", "rust", "make"))
    for root in (node, plain, go, rust, make):
        root.mkdir()
    (node / "package.json").write_text(json.dumps({"scripts": {"test": "node --test", "lint": "eslint ."}}))
    (plain / "package.json").write_text(json.dumps({"scripts": {"test": "vitest run"}}))
    (go / "go.mod").write_text("module shop\n")
    (rust / "Cargo.toml").write_text("[package]\n")
    (make / "Makefile").write_text("test := 1\ntest: all\n\tpytest\nlint:\n\truff\n")
    assert words(node) == [
        ("node", ("node", "--test", "--test-reporter=tap"), "tap"),
        ("npm lint", ("npm", "run", "lint"), ""),
    ]
    assert words(plain) == [("npm test", ("npm", "test"), "")]
    assert words(go) == [("go test", ("go", "test", "./..."), ""), ("go vet", ("go", "vet", "./..."), "")]
    assert words(rust) == [("cargo test", ("cargo", "test"), "")]
    assert words(make) == [("make test", ("make", "test"), ""), ("make lint", ("make", "lint"), "")]


def test_a_folder_without_checks(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text("[1,")
    (tmp_path / "pyproject.toml").write_text("= broken")
    assert words(tmp_path) == []


def test_the_task_may_name_the_checks(tmp_path: Path) -> None:
    unit = {"name": "unit", "argv": ["python3", "tests.py"], "report": "tap"}
    other = {"name": "other", "argv": ["sh", "x.sh"], "report": "junit", "file": "out.xml"}
    found = find_checks(str(tmp_path), {"checks": [unit, other]})
    assert [check.arguments for check in found] == [
        {"argv": ["python3", "tests.py"]},
        {"argv": ["sh", "x.sh"], "collect": {"tests": "out.xml"}},
    ]


@pytest.mark.parametrize(
    "options",
    [
        {"check": []},
        {"checks": []},
        {"checks": ["ls"]},
        {"checks": [{"name": "a"}]},
        {"checks": [{"name": "a\n", "argv": ["ls"]}]},
        {"checks": [{"name": "a", "argv": "ls"}]},
        {"checks": [{"name": "a", "argv": ["ls"], "report": "nunit"}]},
        {"checks": [{"name": "a", "argv": ["ls"], "report": "junit"}]},
        {"checks": [{"name": "a", "argv": ["ls"], "shell": True}]},
    ],
)
def test_wrong_options_are_refused(tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        find_checks(str(tmp_path), options)


# --- outcomes


def outcome(check: ProjectCheck, exit_code: int | None, **outputs: bytes) -> Any:
    blobs = {hashlib.sha256(data).hexdigest(): data for data in outputs.values()}
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in outputs.items()}
    return digests, read_outcome(check, execution="e1", exit_code=exit_code, outputs=digests, blob=blobs.get)


JUNIT = b"""<testsuite tests="99" failures="0">
<testcase name="a"/><testcase name="b"><failure/></testcase><testcase name="c"><skipped/></testcase></testsuite>"""


def test_the_counts_of_junit_come_from_its_cases() -> None:
    check = ProjectCheck("pytest", ("pytest",), "junit", {"tests": "junit.xml"})
    digests, found = outcome(check, 1, stdout=b"", tests=JUNIT)
    assert found.text == "pytest: 3 tests: 1 passed, 1 failed, 0 errors, 1 skipped; exit code 1"
    assert not found.is_good
    counts = {"passed": ["==", 1], "failed": ["==", 1], "errors": ["==", 0], "skipped": ["==", 1], "total": ["==", 3]}
    assert list(found.evidence) == [
        {"artifact": digests["tests"], "execution": "e1", "check": {"tests": {"format": "junit", "counts": counts}}},
        {"artifact": digests["tests"], "execution": "e1", "check": {"exit_code": ["==", 1]}},
    ]


def test_a_report_that_cannot_be_counted_leaves_the_exit_code() -> None:
    check = ProjectCheck("unit", ("unit",), "tap")
    assert outcome(check, 0, stdout=b"1..3\nok 1\n")[1].text == "unit ends with exit code 0"
    assert outcome(check, 0, stdout=b"1..1\nok 1\n")[1].text.startswith("unit: 1 test: 1 passed")


def test_unittest_has_only_its_line() -> None:
    check = ProjectCheck("unittest", ("python3",), "unittest")
    digests, found = outcome(check, 0, stdout=b"", stderr=b"test_a ... ok\n\nRan 12 tests in 0.1s\n\nOK\n")
    assert found.text == "unittest: Ran 12 tests; exit code 0"
    assert found.evidence[0] == {
        "artifact": digests["stderr"],
        "execution": "e1",
        "check": {"text": {"contains": "Ran 12 tests"}},
    }


def test_nothing_is_claimed_without_an_output_or_an_end() -> None:
    check = ProjectCheck("ruff", ("ruff",))
    assert outcome(check, 0)[1] is None
    assert outcome(check, None, stdout=b"x")[1] is None

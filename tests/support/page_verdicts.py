"""The page's verifier beside Aver's: run it in Node on recorded cases, and compare the verdicts."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from aver.verdict.examiner import TRACE_CHECKS
from support.node import ROOT, WEB, find_node, is_in_first_tier, run_page_sources

VERIFIER = ROOT / "src" / "aver" / "explorer" / "page" / "verify.mjs"

TRACE_MARK = "participants"
"""Only a verdict on a trace of the protocol has this check. `report` is one of its checks, and that of a report too."""

PYTHON_ALONE = frozenset(
    {
        *("store", "columns", "decisions", "changes", "checkpoint"),
        *("evidence", "effects", "delegation", "protocol"),
        *(check for check in TRACE_CHECKS if check != "report"),
    }
)
"""Checks that only `aver verify` makes. The page says so, and they are left out of the comparison."""


def judge_cases(directory: Path) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield each recorded case with the built page's answer to it.

    In the later tiers, a crew of further workers judges each case, too. It comes from the page's sources.
    """
    script = WEB / "tests" / "judge_cases.mjs"
    if is_in_first_tier():
        command = [find_node(), str(script), str(VERIFIER), str(directory)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        output = done.stdout
    else:
        output = run_page_sources(script, VERIFIER, directory, "--crew")
    for line in filter(None, output.split("\n")):  # `splitlines` would also split at U+2028 inside of a text.
        answer = json.loads(line)
        yield json.loads((directory / answer["case"] / "case.json").read_text()), answer


def compare(case: Mapping[str, Any], answer: Mapping[str, Any]) -> list[str]:
    """In what the page's answer differs from Aver's verdict; nothing where they agree."""
    if "verdict" not in answer:
        return [f"no verdict: {answer['error']}"]
    ours = _reduce(case["verdict"], case["matters"])
    theirs = _reduce(answer["verdict"], answer["matters"])
    return [f"{key}: Aver {ours[key]!r}, page {theirs[key]!r}" for key in ours if ours[key] != theirs[key]]


def _reduce(verdict: Mapping[str, Any], matters: list[str]) -> dict[str, Any]:
    """A verdict without the words, and without the checks that only Aver makes."""
    has_trace = any(check["name"] == TRACE_MARK for check in verdict["checks"])
    left_out = PYTHON_ALONE | ({"report"} if has_trace else set())
    checks = [check for check in verdict["checks"] if check["name"] not in left_out]
    findings = [_shorten(one) for one in verdict["findings"] if one["check"] not in left_out]
    failed = [one for one in findings if one["status"] == "failed"]
    if failed:
        status = "failed"
    elif verdict["records"] == 0:
        status = "empty"
    else:
        doubts = [one for one in checks if one["status"] == "warning" or one["name"] in matters]
        status = "qualified" if any(one["status"] != "passed" for one in doubts) else "verified"
    return {
        "status": status,
        "integrity": verdict["integrity"],
        "level": verdict["level"],
        "records": verdict["records"],
        "chains": verdict["chains"],
        "first_bad": failed[0] if failed else None,
        "checks": [
            {"name": check["name"], "count": check["count"], **_shorten({"check": check["name"], **check})}
            for check in checks
        ],
        "findings": findings,
    }


def _shorten(finding: Mapping[str, Any]) -> dict[str, Any]:
    short = {key: finding.get(key) for key in ("check", "status", "code", "place", "proof")}
    # The two list a directory in other orders, so the first hundred of many files are not the same.
    return short if finding["code"] != "UNLISTED_FILE" else {**short, "place": None}


def ask_library(bundle: Path, requests: list[dict[str, str]]) -> list[dict[str, Any]]:
    """The answers of the page's worker about a bundle, by its sources in Node: see web/tests/ask_library.mjs."""
    answers: list[dict[str, Any]] = json.loads(run_page_sources("tests/ask_library.mjs", bundle, json.dumps(requests)))
    return answers

"""Targets of the protocol: checks of evidence, and the files of others that they look into."""

from __future__ import annotations

import json
from typing import Any

from aver.capsule.canonical import canonical_json
from aver.capsule.json_reader import read_json
from aver.errors import AverError
from aver.protocol.case_counts import NotCounted, count_junit, count_tap
from aver.protocol.predicates import REASONS, Material, judge_check
from fuzz.oracles import Defect, call_parser
from fuzz.target import Target

JUNIT = b"""<?xml version="1.0" encoding="utf-8"?><testsuites><testsuite tests="9"><testcase name="a"/>
<testcase name="b"><failure message="x &gt; y">text</failure></testcase><testcase><skipped/></testcase>
<testcase><error/><system-out><![CDATA[<testcase/>]]></system-out></testcase></testsuite></testsuites>"""
TAP = b"TAP version 14\n1..4\nok 1 - a\nnot ok 2 - b\n  ---\n  x: y\n  ...\nok 3 # SKIP c\nnot ok 4 # TODO d\n"
CHECKS: tuple[dict[str, Any], ...] = (
    {"sha256": "a" * 64},
    {"exit_code": ["==", 0]},
    {"json": {"pointer": "/a~1b/0", "is": [">=", 80.5]}},
    {"tests": {"format": "junit", "counts": {"failed": ["==", 0], "total": [">", 0]}}},
    {"tests": {"format": "tap", "counts": {"passed": ["!=", 0]}}},
    {"text": {"contains": "ok"}},
    {"text": {"lines": ["<", 10]}},
    {"git": {"revision": "a" * 40, "clean": True}},
)


class TestReports(Target):
    """Test reports of others: every case counts once, or nothing is counted."""

    name = "test-report"

    def seeds(self) -> list[bytes]:
        return [JUNIT, TAP, b"1..0 # skip\n", b"<!DOCTYPE t [<!ENTITY a 'b'>]><testsuite>&a;</testsuite>"]

    def run(self, data: bytes) -> None:
        for count in (count_junit, count_tap):
            try:
                counts = count(data)
            except NotCounted as error:
                if error.reason not in REASONS:
                    raise Defect(f"a reason that no table has: {error.reason}") from error
                continue
            except Exception as error:
                raise Defect(f"internal error: {type(error).__name__}: {error}") from error
            if counts.total > len(data):
                raise Defect(f"more cases than the file can have: {counts}")


class Checks(Target):
    """Checks as an agent writes them, applied to content that an agent made: the check is the first line."""

    name = "protocol-check"

    def seeds(self) -> list[bytes]:
        contents = (JUNIT, TAP, b'{"a/b": [81, true, null, "x"]}', b"ok\n")
        return [json.dumps(check).encode() + b"\n" + content for check in CHECKS for content in contents]

    def run(self, data: bytes) -> None:
        line, _, content = data.partition(b"\n")
        try:
            check = read_json(line)
        except AverError:
            check = CHECKS[len(data) % len(CHECKS)]
        result = call_parser(lambda: judge_check(check, Material(content, 0, "a" * 40, has_execution=True)))
        if result.holds != (result.reason == "") or result.reason not in ("", *REASONS):
            raise Defect(f"a result that contradicts itself: {result}")
        call_parser(lambda: canonical_json(result.to_dict()))


TARGETS: tuple[type[Target], ...] = (TestReports, Checks)

"""Every command of the corpus is understood as it says, and every section holds what it promises."""

from __future__ import annotations

import re
from collections import Counter

from aver.gate.effects.findings import EFFECTS, UNCLEAR
from support.many_cases import for_each
from support.shell_corpus import MORE, ORDINARY, READS, Case, cases, in_shop, told

CASES = cases()
GRAVE = {
    *("secret", "persist", "privilege", "agent-config", "system", "egress", "git-history", "install", "process"),
    *("delete", "unknown"),
}


@for_each(CASES, lambda case: case.name)
def test_a_command_is_understood_as_the_corpus_says(case: Case) -> None:
    understood = in_shop(case.command)
    assert understood.classes == case.effects
    assert {unclear.code for unclear in understood.unclear} == case.unclear
    assert told(understood) == case.targets


def test_the_corpus_is_large_and_goes_both_ways() -> None:
    sizes = Counter(case.section for case in CASES)
    assert set(sizes) == {READS, ORDINARY, MORE}
    assert sizes[READS] > 200
    assert sizes[ORDINARY] > 100
    assert sizes[MORE] > 400
    assert max(Counter(case.command for case in CASES).values()) == 1


def test_what_reads_the_workspace_does_nothing_else() -> None:
    for case in CASES:
        if case.section == READS:
            assert case.effects <= {"read"}, case.command
            assert not case.unclear, case.command
            assert not case.targets, case.command


def test_ordinary_work_is_clear_and_touches_nothing_guarded() -> None:
    for case in CASES:
        if case.section == ORDINARY:
            assert not case.unclear, case.command
            assert not case.effects & GRAVE, case.command
            assert all(re.fullmatch(r"(?:network|loopback) \S+", target) for target in case.targets), case.command


def test_what_is_more_than_that_never_looks_like_reading() -> None:
    for case in CASES:
        if case.section == MORE:
            assert case.unclear or case.effects & GRAVE or case.targets, case.command


def test_every_effect_and_every_reason_occurs() -> None:
    effects = {name for case in CASES for name in case.effects}
    reasons = {name for case in CASES for name in case.unclear}
    # The harmless forms of single programs are named by the tables of these programs, and tested there.
    harmless_forms = {"git-state", "git-fetch", "service-read", "loopback", "locked-install"}
    # Calls of tools of MCP servers are no commands.
    assert effects | harmless_forms == set(EFFECTS) - {"unknown", "call", "call-read"}
    assert reasons == set(UNCLEAR) - {"no-parser", "readers-differ", "changed-tool"}

"""The page on recording lists every setting, every method and every rule that there is."""

from __future__ import annotations

import inspect
import re

import pytest

import aver
from aver.capsule.masking.token_patterns import TOKEN_PATTERNS
from support.doc_pages import DOCS

PAGE = (DOCS / "recording.md").read_text(encoding="utf-8")
IN_CODE = {
    word
    for code in re.findall(r"`([^`]+)`", re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL))
    for word in re.findall(r"[\w-]+", code)
}


@pytest.mark.parametrize("name", sorted(inspect.signature(aver.audit).parameters))
def test_every_setting_of_the_decorator(name: str) -> None:
    assert name in IN_CODE


@pytest.mark.parametrize("name", sorted({form.rule for form in TOKEN_PATTERNS}))
def test_every_rule_of_masking(name: str) -> None:
    assert name in IN_CODE


def test_the_rules_that_are_no_forms() -> None:
    assert {"private-key", "url-password", "assignment", "named", "parameter", "tangled"} <= IN_CODE


@pytest.mark.parametrize("name", sorted(name for name in vars(aver.AuditedCall) if not name.startswith("_")))
def test_every_method_of_a_call(name: str) -> None:
    assert name in IN_CODE

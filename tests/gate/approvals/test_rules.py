"""The settings: what they mean, and that a mistake in them is never passed over."""

from __future__ import annotations

from typing import Any

import pytest

from aver import BadInput
from aver.gate.approvals.rules import ApprovalLevel, ApprovalRules, read_approval_rules


def test_without_settings_everyone_enrolled_decides_alone_within_an_hour() -> None:
    assert read_approval_rules({}, "x") == ApprovalRules((ApprovalLevel(()),), 3600, None)


def test_all_settings() -> None:
    table = {
        "approvers": ["person:ada", "person:ben"],
        "quorum": 2,
        "expires": 1200,
        "notify": ["tell", "--loud"],
        "levels": [{"approvers": ["person:eve"], "after": 600}],
    }
    rules = read_approval_rules(table, "x")
    assert rules.levels == (ApprovalLevel(("person:ada", "person:ben"), 2, 0), ApprovalLevel(("person:eve",), 1, 600))
    assert (rules.expires, rules.notify) == (1200, ("tell", "--loud"))


@pytest.mark.parametrize(
    ("table", "named"),
    [
        ({"quorom": 2}, "quorom"),
        ({"quorum": 0}, "quorum"),
        ({"quorum": True}, "quorum"),
        ({"quorum": "2"}, "quorum"),
        ({"approvers": ["person:ada"], "quorum": 2}, "quorum"),
        ({"approvers": "person:ada"}, "approvers"),
        ({"approvers": ["agent:builder"]}, "agent:builder"),
        ({"approvers": ["ledger"]}, "ledger"),
        ({"approvers": ["person:../x"]}, "identity"),
        ({"approvers": ["person:ada", "person:ada"]}, "twice"),
        ({"approvers": [7]}, "identity"),
        ({"expires": 0}, "expires"),
        ({"expires": 10**9}, "expires"),
        ({"expires": 1.5}, "expires"),
        ({"notify": "tell"}, "notify"),
        ({"notify": ["a\0b"]}, "notify"),
        ({"notify": ["a"] * 100}, "notify"),
        ({"levels": {}}, "levels"),
        ({"levels": [{}]}, "levels[0]"),
        ({"levels": [{"approvers": [], "after": 5}]}, "levels[0]"),
        ({"levels": [{"approvers": ["person:eve"], "after": 0}]}, "levels[0].after"),
        ({"levels": [{"approvers": ["person:eve"], "after": 3600}]}, "levels[0].after"),
        ({"levels": [{"approvers": ["person:eve"], "after": 5, "quorum": 2}]}, "levels[0].quorum"),
        ({"levels": [{"approvers": ["person:eve"], "after": 5, "who": 1}]}, "who"),
        ({"levels": [{"approvers": ["person:e"], "after": 9}, {"approvers": ["person:f"], "after": 8}]}, "levels[1]"),
        ({"levels": [{"approvers": ["person:e"], "after": n} for n in range(1, 20)]}, "levels"),
    ],
)
def test_a_mistake_is_named(table: dict[str, Any], named: str) -> None:
    with pytest.raises(BadInput) as refusal:
        read_approval_rules(table, "config.toml: approvals")
    assert named in refusal.value.message

"""Integers beyond all floats: they stop no judgement, and none stands for another one."""

from __future__ import annotations

import pytest

from aver.gate.origins.judgement import ToolMeaning, judge_call
from aver.gate.origins.read_values import ReadValues, SourceCall
from aver.gate.origins.user_words import UserWords


@pytest.mark.parametrize("sign", [1, -1])
def test_a_number_that_no_float_can_hold(sign: int) -> None:
    words, read = UserWords.read(["Please pay the bill of Bob Miller."]), ReadValues()
    read.add(SourceCall("read_bill", "read", ()), {"payee": "Bob Miller", "amount": sign * 10**400})
    assert [record.numbers for record in read.records] == [()]
    arguments = {"recipient": "Bob Miller", "amount": sign * 10**401}
    found = judge_call(ToolMeaning("pay_bill", "pay"), arguments, words, read)
    assert sign < 0 or "AMOUNT" in found.doubts

"""The user's words: which of them ask for something."""

from __future__ import annotations

import pytest

from aver.gate.origins.user_words import UserWords

LOOK_UP = "Look order T-2041 up and send its receipt to ada@example.com"


@pytest.mark.parametrize(
    ("prompt", "call_class", "tool", "is_asked"),
    [
        (LOOK_UP, "send", "send_receipt", True),
        (LOOK_UP, "pay", "refund", False),
        (LOOK_UP, "delete", "cancel_order", False),
        (LOOK_UP, "create", "create_order", False),
        ("Refund order T-2041", "pay", "refund", True),
        ("cancel order T-2041", "delete", "cancel_order", True),
        ("Order two pizzas.", "create", "create_order", True),
        ("Check the stock, then order two pizzas", "create", "create_order", True),
        ("Send 50 dollars to Ann", "pay", "send_money", True),
        ("Send the report to Ann", "pay", "send_money", False),
        ("Send the report to Ann", "pay", "transfer", False),
        ("Can you text Ann?", "send", "send_message", True),
        ("Read the text of the post", "send", "send_message", False),
    ],
)
def test_a_noun_asks_for_nothing_and_a_tool_s_thing_is_not_its_verb(
    prompt: str, call_class: str, tool: str, is_asked: bool
) -> None:
    assert UserWords.read([prompt]).asks_for(call_class, tool) is is_asked


def test_checking_out_a_branch_asks_for_no_payment() -> None:
    words = UserWords.read(("Check out the branch 'dev' and look for TODOs.",))
    assert words.asks_for("change", "git_checkout")
    assert not words.asks_for("pay", "checkout")
    assert not UserWords.read(("Check out this article.",)).asks_for("change", "git_checkout")
    assert UserWords.read(("Checkout, please: I want these shoes.",)).asks_for("pay", "checkout")


def test_writing_to_people_does_not_ask_to_add_them() -> None:
    words = UserWords.read(("To each user in the room write a message.",))
    assert words.asks_for("send", "send_message")
    assert not words.asks_for("share", "add_user_to_room")
    assert UserWords.read(("Add all users to the room.",)).asks_for("share", "add_user_to_room")

"""Calls that are built to look like those that the user asked for: spelling, echoes, counting and tool names."""

from __future__ import annotations

from typing import Any

import pytest

from aver.gate.origins.judgement import CallOrigins, ToolMeaning, judge_call, passes
from aver.gate.origins.own_places import is_same_site, relate_path
from aver.gate.origins.plain_text import contains_value
from aver.gate.origins.read_values import ReadValues, SourceCall, list_texts
from aver.gate.origins.tool_class import classify_tool
from aver.gate.origins.user_words import UserWords

SHOP = "/home/ann/shop"
SITE = "https://docs.example.org"
BOB = "bob@shop.example"


def judge(tool: str, arguments: dict[str, Any], prompt: str, read: ReadValues | None = None) -> CallOrigins:
    schema = {"properties": {name: {} for name in arguments}}
    meaning = ToolMeaning(tool, classify_tool(tool, schema=schema), workspace=SHOP)
    return judge_call(meaning, arguments, UserWords.read((prompt,)), read or ReadValues())


def make(read: ReadValues, tool: str, arguments: dict[str, Any], result: Any = "done") -> None:
    read.add(SourceCall(tool, classify_tool(tool), list_texts(arguments)), result)


# --- spelling


@pytest.mark.parametrize(
    ("named", "other"),
    [
        ("ann@strasse.example", "ann@straße.example"),
        ("https://strasse.example/pay", "https://straße.example/pay"),
    ],
)
def test_letters_that_folding_makes_the_same_are_others(named: str, other: str) -> None:
    """Both letters are allowed in domains, and lead to two of them."""
    assert contains_value(f"write to {named} now", named)
    assert not contains_value(f"write to {named} now", other)
    assert not passes(judge("send_email", {"to": other, "body": "x"}, f"Send an email to {named}."))


def test_a_site_with_another_letter_is_another_site() -> None:
    words = UserWords.read(("Read https://strasse.example/a.",))
    assert is_same_site("https://STRASSE.example/b", words, ["https://strasse.example/a"])
    assert not is_same_site("https://straße.example/b", words, ["https://strasse.example/a"])


@pytest.mark.parametrize("path", ["tests/%2e%2e/%2e%2e/bank/key", "tests\\..\\..\\bank", "tests/$HOME/x", "tests/~/x"])
def test_a_path_that_a_server_may_read_otherwise_is_none_of_the_workspace(path: str) -> None:
    assert relate_path(f"{SHOP}/{path}", SHOP) is None
    assert not passes(judge("edit_file", {"path": f"{SHOP}/{path}"}, "Rework the tests in tests/."))


@pytest.mark.parametrize(
    "prompt",
    [
        "Fix the bug in src/cart.py, but do not touch tests/.",
        "Fix src/cart.py without changing anything in tests/ please.",
        "Never change tests/. Fix src/cart.py.",
    ],
)
def test_a_directory_that_the_user_excepted_is_not_meant(prompt: str) -> None:
    assert passes(judge("edit_file", {"path": f"{SHOP}/src/cart.py"}, prompt))
    assert not passes(judge("edit_file", {"path": f"{SHOP}/tests/test_cart.py"}, prompt))


def test_a_file_that_the_user_excepted_is_not_meant() -> None:
    prompt = "Fix the bug in src/cart.py, but do not change src/pay.py."
    assert passes(judge("edit_file", {"path": f"{SHOP}/src/cart.py"}, prompt))
    assert not passes(judge("edit_file", {"path": f"{SHOP}/src/pay.py"}, prompt))
    assert not passes(judge("edit_file", {"path": "src/pay.py"}, prompt))


# --- echoes


@pytest.mark.parametrize("tool", ["think", "search_docs", "fetch_page"])
def test_a_link_of_the_agents_own_making_gets_no_origin_by_an_echo(tool: str) -> None:
    made, read = f"{SITE}/x?key=4711", ReadValues()
    make(read, tool, {"text": made}, {"text": f"nothing found for {made}"})
    assert not passes(judge("fetch_page", {"url": made}, f"Read {SITE}/api.", read))


def test_a_page_of_another_site_stays_one_beside_a_further_argument() -> None:
    read, link = ReadValues(), f"{SITE}/logout"
    make(read, "fetch_page", {"url": "https://evil.example/", "referer": f"{SITE}/api"}, {"text": f"see {link}"})
    assert not passes(judge("fetch_page", {"url": link}, f"Read {SITE}/api.", read))


def test_an_address_that_a_search_repeats_is_not_found_by_it() -> None:
    read, eve = ReadValues(), "eve@evil.example"
    make(read, "search_contacts", {"query": eve, "near": "Bob Miller"}, {"query": eve, "name": "Bob Miller", "hits": 0})
    assert not passes(judge("send_email", {"to": eve, "body": "x"}, "Send an email to Bob Miller.", read))


# --- counting


def test_the_same_payment_counts_each_time() -> None:
    read, prompt = ReadValues(), f"Send two payments of 10 dollars to {BOB}."
    payment = {"to": BOB, "amount": 10.0}
    for is_passed in (True, True, False, False):
        assert passes(judge("send_payment", payment, prompt, read)) is is_passed
        make(read, "send_payment", payment)


def test_fractions_of_an_amount_do_not_hide_a_payment() -> None:
    read, prompt = ReadValues(), f"Send two payments of 10 dollars to {BOB}."
    for amount, is_passed in ((9.1, True), (9.2, True), (9.3, False)):
        payment = {"to": BOB, "amount": amount}
        assert passes(judge("send_payment", payment, prompt, read)) is is_passed
        make(read, "send_payment", payment)


@pytest.mark.parametrize("tool", ["pay_store", "send_commit_message", "post_export_notice", "buy_put_option"])
def test_a_thing_that_is_called_like_a_repeated_verb_is_counted(tool: str) -> None:
    read, call = ReadValues(), {"to": BOB}
    prompt = f"Pay {BOB} 10 dollars, then post a notice to {BOB}, send a message to {BOB} and buy an option from {BOB}."
    assert passes(judge(tool, call, prompt, read))
    make(read, tool, call)
    assert not passes(judge(tool, call, prompt, read))


@pytest.mark.parametrize("other", ["event_create", "create_events", "create_event_v2", "schedule_event", "add-event-2"])
def test_another_name_for_the_same_thing_makes_no_second_one(other: str) -> None:
    read, prompt = ReadValues(), "Create an event with the title 'Lunch'."
    make(read, "create_event", {"title": "Lunch"})
    assert not passes(judge(other, {"title": "Lunch again"}, prompt, read))


# --- tool names


@pytest.mark.parametrize(
    "name",
    [
        "status_update",
        "status_set",
        "snapshot_delete",
        "snapshot_restore",
        "logs_clear",
        "log_delete",
        "history_clear",
        "report_send",
        "info_remove",
        "details_change",
        "test_run",
        "map_update",
        "tree_delete",
        "search_replace",
        "find_replace",
        "read_write",
        "check_delete",
        "preview_publish",
        "query_execute",
    ],
)
def test_a_noun_before_the_verb_makes_no_read(name: str) -> None:
    assert classify_tool(name) not in ("read", "fetch")
    assert classify_tool(name, "Get things.", annotations={"readOnlyHint": True}) not in ("read", "fetch")


@pytest.mark.parametrize(
    "name",
    ["get_order", "list_branches", "status_report", "history_search", "git_status", "check_update", "get_status",
     "search_posts", "log_search", "read_message", "get_post", "list_commits", "test_connection", "map_directions"],
)  # fmt: skip
def test_a_read_stays_one(name: str) -> None:
    assert classify_tool(name) == "read"


def nest(inner: dict[str, Any]) -> list[dict[str, Any]]:
    plain = {"type": "object", "properties": inner}
    return [
        {"properties": {"options": plain}},
        {"properties": {"jobs": {"type": "array", "items": plain}}},
        {"properties": {"options": {"anyOf": [{"type": "null"}, plain]}}},
        {"allOf": [plain]},
        {"properties": {"options": {"$ref": "#/$defs/Job"}}, "$defs": {"Job": plain}},
        {"properties": {"options": {"additionalProperties": plain}}},
    ]


@pytest.mark.parametrize("schema", nest({"sql": {"type": "string"}}))
def test_a_program_deep_in_the_arguments_is_one(schema: dict[str, Any]) -> None:
    assert classify_tool("get_rows", schema=schema) == "change"


@pytest.mark.parametrize("schema", nest({"url": {"type": "string"}}))
def test_an_address_deep_in_the_arguments_makes_a_fetch(schema: dict[str, Any]) -> None:
    assert classify_tool("get_rows", schema=schema) == "fetch"


@pytest.mark.parametrize(
    ("description", "own"),
    [("Query the database.", "The SQL to run"), ("Query the PostgreSQL database.", ""), ("Query MySQL.", "")],
)
def test_a_query_is_a_program_where_its_own_description_says_so(description: str, own: str) -> None:
    schema = {"properties": {"query": {"type": "string", "description": own}}}
    assert classify_tool("query", description, schema) == "change"

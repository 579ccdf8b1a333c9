"""The class of a tool: by settings, name, description, schema and annotations."""

from __future__ import annotations

import pytest

from aver.gate.origins.roles import find_role, split_name
from aver.gate.origins.tool_class import CALL_CLASSES, classify_tool


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("list_issues", "read"),
        ("getWeather", "read"),
        ("search-code", "read"),
        ("send_mail", "send"),
        ("add_issue_comment", "create"),
        ("shareFile", "share"),
        ("invite_member", "share"),
        ("send_payment", "pay"),
        ("refund", "pay"),
        ("create_branch", "create"),
        ("update_row", "change"),
        ("delete_row", "delete"),
        ("cancel_order", "delete"),
        ("get_or_create_label", "create"),
        ("read_and_delete", "delete"),
        ("api-create-a-comment", "create"),
        ("export_rows", "create"),
        ("select_page", "change"),
        ("frobnicate", "change"),
        ("", "change"),
    ],
)
def test_the_name_says_the_class(name: str, expected: str) -> None:
    assert classify_tool(name) == expected
    assert expected in CALL_CLASSES


@pytest.mark.parametrize(
    ("name", "server", "expected"),
    [
        ("checkout", "", "pay"),
        ("shop_checkout", "shop", "pay"),
        ("git_checkout", "", "change"),
        ("checkout_branch", "", "change"),
        ("checkout", "my-git", "change"),
        ("git_fetch", "", "change"),
        ("fetch_commits", "github", "read"),
        ("fetch_order", "shop", "read"),
        ("transfer", "bank", "pay"),
        ("transfer_issue", "", "share"),
        ("add_issue", "", "create"),
        ("add_member", "", "share"),
        ("add_users_to_room", "", "share"),
    ],
)
def test_a_verb_means_something_else_beside_other_words(name: str, server: str, expected: str) -> None:
    assert classify_tool(name, server=server) == expected


def test_the_words_of_a_server_give_a_verb_no_milder_meaning() -> None:
    schema = {"properties": {"branch": {"type": "string"}}}
    assert classify_tool("checkout", "Switches the git branch of a repository.", schema) == "pay"


def test_a_read_of_an_address_is_a_fetch() -> None:
    schema = {"properties": {"url": {"type": "string"}}}
    assert classify_tool("get_page", schema=schema) == "fetch"


def test_a_server_makes_a_tool_worse_and_never_better() -> None:
    assert classify_tool("delete_row", annotations={"readOnlyHint": True}) == "delete"
    assert classify_tool("delete_row", "Reads a row.") == "delete"
    assert classify_tool("frobnicate", annotations={"readOnlyHint": True}) == "change"
    assert classify_tool("frobnicate", annotations={"destructiveHint": True}) == "delete"
    assert classify_tool("get_row", annotations={"readOnlyHint": False}) == "change"
    assert classify_tool("get_row", "Gets a row. It also sends a mail to the owner.") == "send"
    assert classify_tool("get_row", "Gets a row. Deletes it afterwards.") == "delete"


def test_a_trusted_server_and_the_settings_are_believed() -> None:
    assert classify_tool("frobnicate", annotations={"readOnlyHint": True}, is_trusted=True) == "read"
    assert classify_tool("delete_row", declared=["read"]) == "read"
    assert classify_tool("get_row", declared=["network", "egress"]) == "send"
    assert classify_tool("get_row", declared=["delete"]) == "delete"
    assert classify_tool("get_row", declared=["write"]) == "change"


def test_one_word_of_a_server_makes_an_effect_of_an_unknown_name() -> None:
    assert classify_tool("weather", "The weather.") == "change"
    assert classify_tool("tabs", "List, create, close, or select a tab.") == "change"
    assert classify_tool("items", "Tool to list and delete items.") == "delete"
    assert classify_tool("results", "Export a query.") == "create"
    assert classify_tool("item_delete", "Reads an item.", annotations={"readOnlyHint": True}) == "delete"


SAYS_READ = {"readOnlyHint": True}


@pytest.mark.parametrize(
    ("name", "description", "annotations"),
    [
        ("weather", "Returns the weather of a city.", SAYS_READ),
        ("stock", "Get orders.", SAYS_READ),
        ("text", "Read a text. Handles all encodings. Operates on whole files.", SAYS_READ),
        ("issue_read", "Get an issue.", {}),
        ("issue_read", "", SAYS_READ),
        ("api-retrieve-a-comment", "Retrieve comments", {}),
    ],
)
def test_two_words_of_a_server_make_a_read_of_an_unknown_name(
    name: str, description: str, annotations: dict[str, bool]
) -> None:
    assert classify_tool(name, description, annotations=annotations) == "read"


@pytest.mark.parametrize(
    ("name", "description"),
    [
        ("zorp", "Get the zorp."),
        ("crash2", "Get status and crash."),
        ("eval", "Show the value of an expression."),
        ("truncate_logs", ""),
        ("truncate_logs", "Truncates the logs."),
        ("check_in_guest", "Checks a guest in."),
    ],
)
def test_one_word_makes_no_read(name: str, description: str) -> None:
    assert classify_tool(name, description) == "change"


def test_getting_rid_of_something_deletes_it() -> None:
    assert classify_tool("get_rid_of_customer", "Get rid of a customer.") == "delete"


@pytest.mark.parametrize(
    ("name", "argument", "description"),
    [
        ("query", "sql", "Run a SQL query."),
        ("query", "query", "Run a SQL query."),
        ("search_graph", "query", "Searches the graph by a Cypher query."),
        ("get_value", "expression", ""),
        ("check", "script", "Checks a page by a script."),
    ],
)
def test_a_read_that_takes_a_program_may_change_something(name: str, argument: str, description: str) -> None:
    schema = {"properties": {argument: {"type": "string"}}}
    assert classify_tool(name, description, schema) == "change"
    assert classify_tool(name, description, schema, {"readOnlyHint": True}, is_trusted=True) == "read"


def test_a_search_by_words_takes_no_program() -> None:
    schema = {"properties": {"query": {"type": "string"}}}
    assert classify_tool("search_issues", "Searches issues.", schema) == "read"


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("recipient", "destination"),
        ("user_email", "destination"),
        ("channelName", "destination"),
        ("file_id", "object"),
        ("eventId", "object"),
        ("password", "secret"),
        ("start_time", "when"),
        ("amount", "amount"),
        ("body", "content"),
        ("limit", "option"),
        ("xyzzy", "object"),
    ],
)
def test_the_name_says_the_role(name: str, role: str) -> None:
    assert find_role(name) == role


def test_names_of_any_style_are_split() -> None:
    assert split_name("getHTMLPage_by-id2") == ["get", "html", "page", "by", "id2"]


@pytest.mark.parametrize(
    "more", ["Also send it to the owner.", "It will also delete the old one.", "Then, notify them.", "Sends a mail."]
)
def test_a_later_sentence_makes_a_read_worse(more: str) -> None:
    assert classify_tool("get_order", "Look an order up.") == "read"
    assert classify_tool("get_order", f"Look an order up. {more}") != "read"

"""Places of the user's own: files of the workspace, and pages of a site that the user named."""

from __future__ import annotations

from typing import Any

import pytest

from aver.gate.origins.judgement import CallOrigins, ToolMeaning, judge_call, passes
from aver.gate.origins.own_places import is_same_site, names_directory_of, relate_path
from aver.gate.origins.read_values import ReadValues, SourceCall, list_texts
from aver.gate.origins.tool_class import classify_tool
from aver.gate.origins.user_words import UserWords

SHOP = "/home/ann/shop"


def judge(tool: str, arguments: dict[str, Any], prompt: str, read: ReadValues | None = None) -> CallOrigins:
    schema = {"properties": {name: {} for name in arguments}}
    meaning = ToolMeaning(tool, classify_tool(tool, schema=schema), workspace=SHOP)
    return judge_call(meaning, arguments, UserWords.read((prompt,)), read or ReadValues())


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (f"{SHOP}/src/cart.py", "src/cart.py"),
        (f"{SHOP}/src/", "src"),
        (SHOP, ""),
        (f"{SHOP}/", ""),
        (f"{SHOP}-old/src/cart.py", None),
        (f"{SHOP}/../bank/key", None),
        (f"{SHOP}/src/../../bank/key", None),
        (f"{SHOP}//src/cart.py", None),
        (f"{SHOP}/./src", None),
        (f"{SHOP}/src/c\u0430rt.py", None),
        (f"{SHOP}/src/cart\u200b.py", None),
        ("src/cart.py", None),
        ("/home/ann", None),
        ("", None),
    ],
)
def test_a_path_of_the_workspace_is_one_in_its_only_spelling(value: str, expected: str | None) -> None:
    assert relate_path(value, SHOP) == expected


def test_no_path_is_inside_of_a_workspace_that_nobody_knows() -> None:
    assert relate_path("/etc/passwd", "") is None
    assert relate_path("/etc/passwd", ".") is None


def test_a_file_is_named_by_its_relative_path() -> None:
    prompt = "Fix the bug in src/cart.py."
    assert passes(judge("edit_file", {"path": f"{SHOP}/src/cart.py"}, prompt))
    for other in ("/home/ann/bank/src/cart.py", f"{SHOP}/lib/src/cart.py", f"{SHOP}/src/cart.pyc", f"{SHOP}/cart.py"):
        assert judge("edit_file", {"path": other}, prompt).doubts == {"TARGET_UNKNOWN"}, other


def test_a_directory_with_a_slash_means_the_files_below_it() -> None:
    words = UserWords.read(("Rework the tests in tests/ and in ./lib/shop/, not those of old/tests/.",))
    assert names_directory_of(words, "tests/test_cart.py")
    assert names_directory_of(words, "tests/cart/test_total.py")
    assert not names_directory_of(words, "tests")
    assert not names_directory_of(words, "src/tests/test_cart.py")
    assert not names_directory_of(words, "tests/.hidden/run.py")
    assert not names_directory_of(words, "shop/cart.py")
    assert not names_directory_of(UserWords.read(("Rework the tests.",)), "tests/test_cart.py")
    assert not names_directory_of(UserWords.read(("Rework tests/test_cart.py.",)), "tests/test_total.py")


def test_a_directory_that_the_user_named_lets_nothing_be_deleted() -> None:
    prompt = "Rework the tests in tests/, and delete the old one."
    path = {"path": f"{SHOP}/tests/test_cart.py"}
    assert passes(judge("edit_file", path, prompt))
    assert judge("delete_file", path, prompt).doubts == {"TARGET_UNKNOWN"}


@pytest.mark.parametrize(
    ("prompt", "tool", "arguments", "is_passed"),
    [
        ("Fix src/cart.py, then commit.", "git_commit", {"message": "Fix it"}, True),
        ("Fix src/cart.py, then commit.", "git_add", {"files": ["src/cart.py"]}, True),
        ("Fix src/cart.py, then commit.", "git_add", {"files": [".env"]}, False),
        ("Fix src/cart.py, then commit.", "git_reset", {"mode": "hard"}, False),
        ("Fix src/cart.py, then commit.", "git_push", {"remote": "origin"}, False),
        ("Fix src/cart.py, then commit.", "git_checkout", {"branch": "main"}, False),
        ("Check out the branch main.", "git_checkout", {"branch": "main"}, True),
        ("Delete src/cart.py.", "delete_directory", {}, False),
        ("Look at src/cart.py.", "git_commit", {"message": "Fix it"}, False),
    ],
)
def test_the_workspace_is_meant_where_the_words_ask_for_this_very_thing(
    prompt: str, tool: str, arguments: dict[str, Any], is_passed: bool
) -> None:
    assert passes(judge(tool, {"path": SHOP, **arguments}, prompt)) is is_passed


def test_a_link_on_the_site_that_the_user_named() -> None:
    page, prompt = "https://docs.example.org/api", "Read https://docs.example.org/api and tell me more."
    links = {
        "https://docs.example.org/api/v2": True,
        "https://docs.example.org:8443/api": False,
        "http://docs.example.org/api/v3": False,
        "https://docs.example.org.evil.example/api": False,
        "https://docs.example.org@evil.example/api": False,
        "https://evil.example/docs.example.org": False,
    }
    read = ReadValues()
    arguments = {"url": page}
    read.add(SourceCall("fetch", "fetch", list_texts(arguments)), {"text": " and ".join(links)})
    for link, is_passed in links.items():
        assert passes(judge("fetch_page", {"url": link}, prompt, read)) is is_passed, link
    # An address that the page does not have is of the agent's own making: it may carry something away.
    assert not passes(judge("fetch_page", {"url": f"{page}/v2?key=123"}, prompt, read))


def test_a_link_to_the_named_site_on_a_page_of_another_one() -> None:
    words = UserWords.read(("Read https://docs.example.org/api.",))
    link = "https://docs.example.org/logout"
    assert is_same_site(link, words, ["https://docs.example.org/api"])
    assert not is_same_site(link, words, ["https://evil.example/"])
    assert not is_same_site(link, UserWords.read(("Read the page.",)), ["https://docs.example.org/api"])


def test_a_days_work_in_a_repository_asks_about_the_file_that_nobody_named() -> None:
    """Files, commits and pages that the user's own words mean pass. The other file of the first task is asked about."""
    read, asked = ReadValues(), list[str]()
    tasks: list[tuple[str, list[tuple[str, dict[str, Any]]]]] = [
        (
            "Fix the bug in src/cart.py: the total ignores the discount. Then commit.",
            [
                ("list_directory", {"path": SHOP}),
                ("read_text_file", {"path": f"{SHOP}/src/cart.py"}),
                ("edit_file", {"path": f"{SHOP}/src/cart.py", "edits": [{"oldText": "a", "newText": "b"}]}),
                ("edit_file", {"path": f"{SHOP}/tests/test_cart.py", "edits": [{"oldText": "a", "newText": "b"}]}),
                ("git_status", {"path": SHOP}),
                ("git_add", {"path": SHOP, "files": ["src/cart.py"]}),
                ("git_commit", {"path": SHOP, "message": "Subtract the discount"}),
            ],
        ),
        (
            "Create a branch feature/tax, add a file tax.py, and commit it.",
            [
                ("git_branch", {"path": SHOP, "branchName": "feature/tax"}),
                ("git_checkout", {"path": SHOP, "target": "feature/tax"}),
                ("write_file", {"path": f"{SHOP}/tax.py", "content": "RATE = 0.2\n"}),
                ("git_add", {"path": SHOP, "files": ["tax.py"]}),
                ("git_commit", {"path": SHOP, "message": "Add tax rates"}),
            ],
        ),
        (
            "Read https://docs.example.org/api and write a summary to notes.md",
            [
                ("fetch_page", {"url": "https://docs.example.org/api"}),
                ("write_file", {"path": f"{SHOP}/notes.md", "content": "# Summary"}),
            ],
        ),
    ]
    for prompt, calls in tasks:
        read.forget_effects()
        for tool, arguments in calls:
            if not passes(judge(tool, arguments, prompt, read)):
                asked.append(f"{tool} {arguments['path']}")
            read.add(SourceCall(tool, classify_tool(tool), list_texts(arguments)), {"text": "done"})
    assert asked == [f"edit_file {SHOP}/tests/test_cart.py"]

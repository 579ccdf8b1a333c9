"""The editor on texts: what is put in can be taken out again, and nothing else changes."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
import tomlkit
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from aver.errors import AverError, BadInput, Refused
from aver.install.edit import get_entry, read_toml, with_entry, with_item, without_entry, without_items
from aver.install.json_spans import JsonText
from support.settings_texts import json_texts, toml_texts

ENTRY = {"command": "/opt/aver", "args": ["mcp", "--agent", 'a"b\\c'], "env": {"AVER_HOME": "/home/é"}}
KEY = ("mcpServers", "aver")
TOML_KEY = ("mcp_servers", "aver")


def value_of(text: str, form: Any) -> Any:
    return read_toml(text) if form == "toml" else JsonText(text, with_comments=form == "jsonc").value


@pytest.mark.more
@settings(max_examples=200)
@given(st.data(), st.sampled_from(["json", "jsonc"]))
def test_json_put_in_and_taken_out(data: st.DataObject, form: Any) -> None:
    text = data.draw(json_texts(comments=form == "jsonc"))
    before = value_of(text, form)
    try:
        changed = with_entry(text, form, KEY, ENTRY)
    except BadInput:
        assert not isinstance(before.get("mcpServers", {}), dict), "only what is no object is refused"
        return
    depth = "mcpServers" in before
    assert value_of(changed, form) == {**before, "mcpServers": {**before.get("mcpServers", {}), "aver": ENTRY}}
    assert with_entry(changed, form, KEY, ENTRY) == changed, "once is enough"
    back = without_entry(changed, form, KEY, keep=int(depth))
    assert value_of(back, form) == before
    parent = before.get("mcpServers", before)
    if parent:
        assert back == text, "every byte is as it was"
    else:
        assert "".join(back.split()) == "".join(text.split()), "white space inside an empty object may go"


@pytest.mark.more
@settings(max_examples=200)
@given(toml_texts())
def test_toml_put_in_and_taken_out(text: str) -> None:
    try:
        before = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        assume(False)
        return
    changed = with_entry(text, "toml", TOML_KEY, ENTRY)
    assert value_of(changed, "toml") == {**before, "mcp_servers": {**before.get("mcp_servers", {}), "aver": ENTRY}}
    assert changed.startswith(text), "what is there stays in its place"
    assert with_entry(changed, "toml", TOML_KEY, ENTRY) == changed
    back = without_entry(changed, "toml", TOML_KEY, keep=int("mcp_servers" in before))
    assert value_of(back, "toml") == before
    assert sorted(back.split()) == sorted(text.split()), "nothing is lost but blank space"
    if tomlkit.dumps(tomlkit.parse(changed)) != changed:
        return  # Parts of a table or list stand apart, and `tomlkit` brings them together.
    if text.endswith("\n") or not text:
        assert back == text, "every byte is as it was"
    else:
        assert back.rstrip() == text.rstrip(), "a last line without an end gets one"


@pytest.mark.more
@settings(max_examples=80)
@given(st.data(), st.sampled_from(["json", "jsonc"]))
def test_an_entry_is_brought_up_to_date_and_its_owners_keys_stay(data: st.DataObject, form: Any) -> None:
    text = data.draw(json_texts(comments=form == "jsonc"))
    assume(isinstance(value_of(text, form).get("mcpServers", {}), dict))
    old = {**ENTRY, "command": "/old/aver", "disabled": True}
    changed = with_entry(with_entry(text, form, KEY, old), form, KEY, ENTRY)
    assert get_entry(changed, form, KEY) == {**ENTRY, "disabled": True}


@pytest.mark.more
@settings(max_examples=120)
@given(st.data(), st.sampled_from(["json", "jsonc"]))
def test_an_item_is_put_in_and_taken_out(data: st.DataObject, form: Any) -> None:
    text = data.draw(json_texts(comments=form == "jsonc"))
    path, item = data.draw(st.sampled_from([("a",), ("a", "b"), ("servers", "a")])), {"command": "aver", "n": 1}
    before = value_of(text, form)
    found = get_entry(text, form, path)
    try:
        changed = with_item(text, form, path, item)
    except BadInput:
        return
    assert get_entry(changed, form, path) == [*(found or []), item]
    depth = sum(get_entry(text, form, path[:length]) is not None for length in range(1, len(path) + 1))
    back = without_items(changed, form, path, lambda one: one == item, keep=depth)
    assert value_of(back, form) == before
    if found:
        assert back == text, "every byte is as it was"
    assert without_items(text, form, path, lambda one: one == item, keep=depth) == text


def test_lists_of_toml_are_left_alone() -> None:
    with pytest.raises(BadInput):
        with_item("a = [1]", "toml", ("a",), 2)


TOML_WITH_ENTRY = """\
# before
[mcp_servers.aver] # ours
command = "/old"   # the path
args = [ # many
  "x",
]
startup_timeout_sec = 20

[mcp_servers.aver.tools.capseal_gate]
approval_mode = "approve"

# of the next
[mcp_servers.other]
command = "y"
"""


def test_toml_settings_are_changed_in_place() -> None:
    changed = with_entry(TOML_WITH_ENTRY, "toml", TOML_KEY, {"command": "/new", "args": ["mcp"], "env": {"A": "1"}})
    assert (
        changed
        == """\
# before
[mcp_servers.aver] # ours
command = "/new"   # the path
args = ["mcp"]
startup_timeout_sec = 20
env = {A = "1"}

[mcp_servers.aver.tools.capseal_gate]
approval_mode = "approve"

# of the next
[mcp_servers.other]
command = "y"
"""
    )
    assert (
        without_entry(changed, "toml", TOML_KEY, keep=1)
        == """\
# before
# of the next
[mcp_servers.other]
command = "y"
"""
    )


@pytest.mark.parametrize(
    "text",
    [
        'mcp_servers = { other = { command = "x" } }\n',
        'mcp_servers.aver.command = "x"\n',
        '[mcp_servers]\naver = { command = "x" }\n',
        '[mcp_servers]\naver.command = "x"\n',
    ],
)
def test_toml_in_another_form_is_edited_in_that_form_or_refused(text: str) -> None:
    others = {name: value for name, value in tomllib.loads(text)["mcp_servers"].items() if name != "aver"}
    try:
        changed = with_entry(text, "toml", TOML_KEY, ENTRY)
    except (Refused, BadInput):
        changed = text
    else:
        assert tomllib.loads(changed) == {"mcp_servers": {**others, "aver": ENTRY}}
    left = tomllib.loads(without_entry(changed, "toml", TOML_KEY, keep=1))
    assert left in ({"mcp_servers": others}, {} if not others else None)


BEFORE = """\
{
\t// the servers
\t"mcpServers": {
\t\t"one": { "command": "x" }, // first
\t\t"two": { "command": "y" } // last
\t},
\t"after": [1, 2,],
}
"""


def test_it_looks_as_a_person_would_write_it() -> None:
    changed = with_entry(BEFORE, "jsonc", KEY, {"command": "aver", "args": ["mcp"]})
    assert (
        changed
        == """\
{
\t// the servers
\t"mcpServers": {
\t\t"one": { "command": "x" }, // first
\t\t"two": { "command": "y" }, // last
\t\t"aver": {
\t\t\t"command": "aver",
\t\t\t"args": [
\t\t\t\t"mcp"
\t\t\t]
\t\t}
\t},
\t"after": [1, 2,],
}
"""
    )
    assert without_entry(changed, "jsonc", KEY, keep=1) == BEFORE
    assert without_entry(changed, "jsonc", ("mcpServers", "one"), keep=1).count('"two"') == 1


def test_new_and_empty_files() -> None:
    for text in ("", "\n", "{}", "{ }\n", "\ufeff{}\n"):
        changed = with_entry(text, "json", KEY, {"command": "aver"})
        assert '{\n  "mcpServers": {\n    "aver": {\n      "command": "aver"\n    }\n  }\n}' in changed
        assert changed.startswith("\ufeff") is text.startswith("\ufeff")
    assert with_entry("", "toml", TOML_KEY, {"command": "aver"}) == '[mcp_servers.aver]\ncommand = "aver"\n'
    assert with_entry('{"a":1}', "json", KEY, {"command": "x"}) == '{"a":1, "mcpServers": {"aver": {"command": "x"}}}'


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "}",
        "[]",
        "1",
        '{"a": }',
        '{"a" 1}',
        '{"a": 1 "b": 2}',
        "{'a': 1}",
        '{"a": 01}',
        '{"a": NaN}',
        '{"a": "\n"}',
        '{"a": "\\x"}',
        '{"a": 1} x',
        '{"a": 1,}',
        '{"a": 1} // c',
        "// c\n{}",
        '{"a": "x}',
        '{"mcpServers": []}',
        '{"mcpServers": {}, "mcpServers": {}}',
        '{"mcpServers": {"aver": 1}}',
        '{"a": ' + "[" * 100_000 + "]" * 100_000 + "}",
        '{"a": ' + "9" * 5000 + "}",
        '{"mcpServers": "x", "b": {"aver": {}}}',
    ],
)
def test_json_that_is_not_understood_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        with_entry(text, "json", KEY, ENTRY)


@pytest.mark.parametrize("depth", [100, 300, 600, 900, 950, 990])
@pytest.mark.parametrize("form", ["json", "jsonc"])
def test_deep_nesting_is_carried_or_refused(depth: int, form: Any) -> None:
    text = '{"a": ' + "[" * depth + "]" * depth + "}"
    try:
        assert without_entry(with_entry(text, form, KEY, ENTRY), form, KEY, keep=0) == text
    except (BadInput, Refused):
        assert depth > 200


@pytest.mark.parametrize("text", ["{ /* }", '{"a": 1,,}', "{,}", "{/}", '{"a": /* x */ }', "{}}"])
def test_json_with_comments_that_is_not_understood_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        with_entry(text, "jsonc", KEY, ENTRY)


@given(st.text(max_size=60), st.sampled_from(["json", "jsonc", "toml"]))
def test_any_text_is_edited_or_refused(text: str, form: Any) -> None:
    try:
        changed = with_entry(text, form, KEY, ENTRY)
    except AverError:
        return
    assert get_entry(changed, form, KEY) == ENTRY

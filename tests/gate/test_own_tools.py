"""Own tools: declared by the settings or in code, sealed with the decision, and never able to hide a guarded path."""

from __future__ import annotations

import asyncio
import functools
import inspect
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import aver
from aver import Answer, BadInput, Ledger, open_ledger
from aver.config import load_config
from aver.gate.action import Action, Facts
from aver.gate.effects.findings import EFFECTS
from aver.gate.effects.known_agents import default_known_agents
from aver.gate.effects.routine_commands import ROUTINE_EFFECTS
from aver.gate.own_tools import NAME_MAX, TOOLS_MAX, find_declaration, find_declared_effects
from aver.gate.policy.bundle import load_policy_bundle, read_starter_files
from aver.gate.policy.query import PolicyQuestion, Target, ask_policy
from aver.gate.replay import replay_decision
from aver.gate.settings import read_gate_settings

Ask = Callable[..., Answer]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    place = tmp_path / "aver-home"
    place.mkdir(mode=0o700)
    return place


@pytest.fixture
def ask_with(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Ask about a tool call, by the settings that a text has. Every decision must replay the same."""
    monkeypatch.setenv("AVER_HOME", str(home))
    monkeypatch.setenv("HOME", str(tmp_path))

    def ask(config: str, tool: str = "lookup_order", arguments: Any = None, **more: Any) -> Answer:
        (home / "config.toml").write_text(config)
        with open_ledger() as ledger:
            action = Action(
                type="tool_call",
                tool=tool,
                arguments={"order": "17"} if arguments is None else arguments,
                session="s1",
                workspace=str(tmp_path),
            )
            answer = aver.ask(ledger, action, **more)
            assert replay_decision(answer.record.to_dict(), ledger.blob).status in ("same", "unrepeatable")
            return answer

    return ask


def declared_in(answer: Answer) -> Any:
    return answer.record.to_dict()["outcome"]["result"]["facts"].get("declared")


# --- in the settings


def test_a_declared_tool_passes_and_the_declaration_is_sealed(ask_with: Ask) -> None:
    answer = ask_with('[gate.tools]\nlookup_order = ["read"]\n')
    assert answer.decision.decision == "pass"
    assert declared_in(answer) == {"effects": ["read"], "by": "settings"}
    assert declared_in(ask_with('[gate.tools]\nother = ["read"]\n')) is None


def test_replay_uses_the_sealed_declaration_and_not_the_settings_of_today(ask_with: Ask, home: Path) -> None:
    answer = ask_with("[gate.tools]\nlookup_order = []\n")
    assert answer.allows
    (home / "config.toml").write_text('[gate.tools]\nlookup_order = ["delete"]\n')
    with open_ledger() as ledger:
        assert replay_decision(answer.record.to_dict(), ledger.blob).status == "same"
        content = answer.record.to_dict()
        content["outcome"]["result"]["facts"]["declared"] = {"effects": ["delete"], "by": "settings"}
        assert replay_decision(content, ledger.blob).status == "other"
        del content["outcome"]["result"]["facts"]["declared"]
        assert replay_decision(content, ledger.blob).status == "other"
        content["outcome"]["result"]["facts"]["declared"] = {"effects": ["nonsense"], "by": "settings"}
        assert replay_decision(content, ledger.blob).status == "other"


@pytest.mark.parametrize("effects", ["network", "egress", "delete", "execute", "privilege", "secret", "install"])
def test_declared_effects_meet_the_rules(ask_with: Ask, effects: str) -> None:
    assert ask_with(f'[gate.tools]\nlookup_order = ["{effects}"]\n').decision.decision == "human_review"


def test_a_tool_of_an_mcp_server_is_declared_by_its_whole_name(ask_with: Ask) -> None:
    config = '[gate.tools]\nmcp__shop__lookup = ["read"]\n'
    assert ask_with(config, "mcp__shop__lookup").allows
    assert not ask_with(config, "mcp__other__lookup").allows
    assert not ask_with(config, "lookup").allows
    assert not ask_with(config, "mcp__shop__lookup2").allows


def test_a_tool_that_calls_tools_of_servers_cannot_be_declared(ask_with: Ask) -> None:
    given = {"server_name": "shop", "tool_name": "refund", "arguments": "{}"}
    answer = ask_with("[gate.tools]\nuse_mcp_tool = []\n", "use_mcp_tool", given)
    assert not answer.allows
    assert declared_in(answer) is None


GUARDED = (".env", "~/.ssh/id_rsa", "AVER/config.toml", "file://HOME/.aws/credentials", '{"p": ["~/.ssh/id_rsa"]}')


@pytest.mark.sample(8)
@pytest.mark.parametrize("key", ["path", "order", "query", "content", "note", "url"])
@pytest.mark.parametrize("text", GUARDED)
@pytest.mark.parametrize("effects", ["[]", '["read"]', '["network"]', '["build"]'])
def test_no_declaration_hides_a_secret_or_a_file_of_aver(
    ask_with: Ask, home: Path, tmp_path: Path, effects: str, text: str, key: str
) -> None:
    text = text.replace("AVER", str(home)).replace("HOME", str(tmp_path))
    for given in ({key: text}, {"options": [{key: text}]}):
        answer = ask_with(f"[gate.tools]\nlookup_order = {effects}\n", arguments=given)
        assert answer.decision.decision == "human_review", given
        assert answer.decision.effects is not None
        assert "secret" in answer.decision.effects.classes


def test_files_beside_the_arguments_are_looked_at(home: Path, tmp_path: Path) -> None:
    from aver.gate.effects.effects import find_effects

    facts = Facts(now="2026-01-05T09:00:00+00:00", declared={"effects": [], "by": "code"})
    action = Action(type="tool_call", tool="lookup", files=("sub/.env",), workspace="/work")
    assert "secret" in find_effects(action, facts).classes


def test_a_write_into_a_guarded_file_keeps_its_class(ask_with: Ask) -> None:
    answer = ask_with('[gate.tools]\nlookup_order = ["write"]\n', arguments={"note": ".git/hooks/pre-push"})
    assert answer.decision.effects is not None
    assert "persist" in answer.decision.effects.classes


def test_words_are_no_paths(ask_with: Ask) -> None:
    config = "[gate.tools]\nlookup_order = []\n"
    for words in (
        "credentials",
        "Where is my order? I have waited since last week, and nobody answers my messages. Please help.",
        "see src/app.py and docs/start.md.",
        "/orders/17",
    ):
        assert ask_with(config, arguments={"question": words}).decision.decision == "pass", words


def test_paths_and_urls_count_for_a_tool_that_reads(ask_with: Ask) -> None:
    config = '[gate.tools]\nlookup_order = ["read"]\n'
    assert ask_with(config, arguments={"path": "notes.txt"}).allows
    assert ask_with(config, arguments={"address": "5 Main Street"}).allows
    outside = ask_with(config, arguments={"path": "/etc/hosts"}).decision.effects
    assert outside is not None
    assert {effect.target for effect in outside.effects} == {"", "/etc/hosts"}
    found = ask_with(config, arguments={"url": "https://example.org/a"}).decision
    assert found.effects is not None
    assert found.effects.hosts == ("example.org",)
    assert found.decision == "human_review"


def test_a_text_too_long_to_search_asks(ask_with: Ask) -> None:
    config = "[gate.tools]\nlookup_order = []\n"
    assert ask_with(config, arguments={"note": '{"a": 1}' + " " * 1000}).allows
    assert not ask_with(config, arguments={"note": '{"a": "' + "x " * 40_000 + '"}'}).allows


@pytest.mark.more
def test_a_declaration_takes_the_place_of_a_known_name_but_not_of_a_command(ask_with: Ask) -> None:
    assert ask_with('[gate.tools]\nfetch = ["read"]\n', "fetch").allows
    assert not ask_with("[gate.tools]\nother = []\n", "fetch", {"url": "https://example.org"}).allows
    for tool in ("Bash", "execute_command"):
        assert not ask_with(f"[gate.tools]\n{tool} = []\n", tool, {"command": "rm -rf build"}).allows


def test_hints_of_a_server_still_make_a_declared_tool_worse(ask_with: Ask) -> None:
    config = '[gate.tools]\nmcp__shop__lookup = ["read"]\n'
    assert not ask_with(config, "mcp__shop__lookup", annotations={"destructiveHint": True}).allows
    assert ask_with(config, "mcp__shop__lookup", annotations={"readOnlyHint": True}).allows


def test_hints_count_for_trusted_servers_only(ask_with: Ask) -> None:
    hints = {"readOnlyHint": True, "openWorldHint": False}
    trusted = '[gate]\ntrusted_servers = ["shop"]\n'
    assert ask_with(trusted, "mcp__shop__lookup", annotations=hints).allows
    assert not ask_with(trusted, "mcp__other__lookup", annotations=hints).allows
    assert not ask_with("", "mcp__shop__lookup", annotations=hints).allows
    # The settings say more about the tool than the server does.
    both = trusted + '[gate.tools]\nmcp__shop__lookup = ["delete"]\n'
    assert not ask_with(both, "mcp__shop__lookup", annotations=hints).allows


@pytest.mark.parametrize(
    "line",
    [
        'lookup_order = ["reads"]',
        'lookup_order = ["unknown"]',
        'lookup_order = "read"',
        "lookup_order = [1]",
        "lookup_order = 3",
        "lookup_order = { effects = [] }",
        '"" = []',
        f'{"x" * (NAME_MAX + 1)} = ["read"]',
    ],
)
def test_settings_that_are_wrong_fail_closed_and_name_file_and_key(ask_with: Ask, home: Path, line: str) -> None:
    answer = ask_with(f"[gate.tools]\n{line}\n")
    assert answer.decision.decision == "skip"
    assert f"{home / 'config.toml'}: [gate] tools" in answer.reasons[0]
    assert "lookup_order" in answer.reasons[0] or "name of a tool" in answer.reasons[0]


def test_the_number_of_declarations_is_bounded(home: Path) -> None:
    for count in (TOOLS_MAX, TOOLS_MAX + 1):
        (home / "config.toml").write_text("[gate.tools]\n" + "".join(f"t{number} = []\n" for number in range(count)))
        if count > TOOLS_MAX:
            with pytest.raises(BadInput, match=str(TOOLS_MAX)):
                read_gate_settings(load_config(home=home))
        else:
            assert len(read_gate_settings(load_config(home=home)).tools) == TOOLS_MAX


def test_a_declaration_is_a_sealed_change_of_settings(ask_with: Ask) -> None:
    from aver.gate.changes import find_newest_change

    ask_with("")
    ask_with('[gate.tools]\nlookup_order = ["read"]\n')
    with open_ledger() as ledger:
        change = find_newest_change(ledger)
    assert change is not None
    assert 'setting gate.tools.lookup_order: not set became ["read"]' in change.what
    assert change.loosened == ('gate.tools.lookup_order is ["read"] now',)


# --- unknown tools


def test_an_unknown_tool_asks_and_the_message_says_how_to_declare_it(ask_with: Ask, home: Path) -> None:
    answer = ask_with("")
    assert answer.decision.decision == "human_review"
    line = 'lookup_order = ["read"]'
    assert answer.reasons[0] == (
        f"unknown tool lookup_order: tell Aver what it does: [gate.tools] {line} in {home / 'config.toml'}"
    )
    assert ask_with(f"[gate.tools]\n{line}\n").allows  # The advice works.


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", ["look up", 'say "hi"', "a\\b", "größe", "a.b", "a=b", "mcp__x__y z"])
def test_the_advice_works_for_names_of_any_kind(ask_with: Ask, home: Path, name: str) -> None:
    told = ask_with("", name).reasons[0]
    line = told.partition("[gate.tools] ")[2].partition(f" in {home / 'config.toml'}")[0]
    line = line.replace("[EFFECTS]", '["read"]')  # Nothing in such a name speaks of an effect.
    assert ask_with(f"[gate.tools]\n{line}\n", name).allows


@pytest.mark.parametrize("name", ["x" * 200, "a\nb", "\x1b[2J"])
def test_no_advice_repeats_a_name_that_could_deceive_a_reader(ask_with: Ask, name: str) -> None:
    assert ask_with("", name).reasons[0] == "unknown tool: its name is not one to declare"


def use_rules(home: Path, *own: str) -> str:
    """Put the starter rules and some of a person's own into the home. Returns the settings that use them."""
    place = home / "policy"
    place.mkdir(exist_ok=True)
    for name, text in read_starter_files().items():
        (place / name).write_text(text)
    (place / "90-own.cedar").write_text("\n".join(own))
    return '[gate]\npolicy = "policy"\n'


NAMED = """@id("own")
@reason("mine")
permit (principal, action, resource is Aver::Tool) when { ["lookup_order"].contains(resource.name) };
"""
BY_CONTEXT = (
    '@id("own")\n@reason("mine")\npermit (principal, action, resource) when { context.tool == "lookup_order" };\n'
)


def test_a_permit_for_a_named_tool_takes_effect(ask_with: Ask, home: Path) -> None:
    config = use_rules(home, NAMED)
    answer = ask_with(config)
    assert (answer.decision.decision, answer.reasons) == ("pass", ("mine",))
    assert ask_with(config, "lookup_orders").decision.decision == "human_review"


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "given",
    [
        {"path": ".env"},
        {"path": ".github/workflows/ci.yml"},
        {"path": ".git/hooks/pre-push"},
        {"path": "/work/elsewhere/a.py"},
        {"url": "https://example.org"},
        {"command": "rm -rf build"},
        {"command": "eval $X"},
    ],
)
def test_such_a_permit_loosens_nothing_else(ask_with: Ask, home: Path, given: dict[str, str]) -> None:
    assert ask_with(use_rules(home, BY_CONTEXT), arguments=given).decision.decision == "human_review"


@pytest.mark.more
def test_no_starter_rule_permits_an_unknown_tool() -> None:
    bundle = load_policy_bundle(None)
    names = sorted({*EFFECTS, *ROUTINE_EFFECTS} - {"unknown"})
    targets = (
        Target("Tool", "x"),
        Target("Path", "/work/a.py", "workspace"),
        Target("Path", "/tmp/a", "temporary"),
        Target("Host", "example.org"),
    )
    for more in ((), *itertools.combinations(names, 1), *itertools.combinations(names, 2)):
        for target in targets:
            question = PolicyQuestion(
                agent="a", action="tool_call", targets=(target,), effects=frozenset({"unknown", *more}), risk="low"
            )
            assert ask_policy(bundle, question).outcome != "allow", (more, target)


# --- in code


@aver.tool(effects=["read"])
def lookup_order(order: str, *, deep: bool = False) -> str:
    """Look an order up."""
    return f"order {order}"


@aver.tool(effects=[])
async def roll_dice(sides: int = 6) -> int:
    return sides


def test_the_decorator_keeps_the_function_as_it_is() -> None:
    assert lookup_order("17", deep=True) == "order 17"
    assert (lookup_order.__name__, lookup_order.__doc__) == ("lookup_order", "Look an order up.")
    assert str(inspect.signature(lookup_order)) == "(order: 'str', *, deep: 'bool' = False) -> 'str'"
    assert inspect.iscoroutinefunction(roll_dice)
    assert asyncio.run(roll_dice(4)) == 4


def test_the_declaration_is_found_through_wrappers() -> None:
    class Shop:
        @aver.tool(effects=["network", "read", "read"])
        def ask(self) -> None: ...

    @functools.wraps(lookup_order)
    def wrapped(*args: Any) -> Any: ...

    assert find_declared_effects(lookup_order) == ("read",)
    assert find_declared_effects(roll_dice) == ()
    assert find_declared_effects(Shop().ask) == ("network", "read")
    assert find_declared_effects(functools.partial(lookup_order, "17")) == ("read",)
    assert find_declared_effects(wrapped) == ("read",)
    for nothing in (None, 3, print, lambda: None, Shop, "lookup_order"):
        assert find_declared_effects(nothing) is None


def test_it_goes_with_audit_in_either_order(ledger: Ledger) -> None:
    above = aver.tool(effects=["read"])(aver.audit(chain="app.shop", ledger=ledger)(lambda: 1))
    below = aver.audit(chain="app.shop", ledger=ledger)(lookup_order)
    later = aver.audit(chain="app.shop", ledger=ledger)(roll_dice)
    assert find_declared_effects(above) == find_declared_effects(below) == ("read",)
    assert find_declared_effects(later) == ()


@pytest.mark.parametrize("effects", [["reads"], "read", ["unknown"], None, [None], 5])
def test_what_is_no_effect_is_refused_where_it_is_declared(effects: Any) -> None:
    with pytest.raises(BadInput, match=r"@aver\.tool"):
        aver.tool(effects=effects)


@pytest.mark.parametrize("thing", [print, len, dict, object(), functools.partial(len)])
def test_what_cannot_be_declared_is_refused(thing: Any) -> None:
    with pytest.raises(BadInput, match=r"@aver\.tool"):
        aver.tool(effects=[])(thing)


@pytest.mark.more
def test_code_declares_and_settings_win(ask_with: Ask) -> None:
    answer = ask_with("", declared=find_declared_effects(lookup_order))
    assert answer.allows
    assert declared_in(answer) == {"effects": ["read"], "by": "code"}
    answer = ask_with('[gate.tools]\nlookup_order = ["delete"]\n', declared=["read"])
    assert not answer.allows
    assert declared_in(answer) == {"effects": ["delete"], "by": "settings"}
    with pytest.raises(BadInput, match="lookup_order"):
        ask_with("", declared=["nonsense"])


def test_a_declaration_needs_a_name() -> None:
    assert find_declaration({"": {"effects": []}}, "", default_known_agents()) == {}

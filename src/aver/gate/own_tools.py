"""Own tools: tools that no table of Aver knows, whose users or authors say what they do.

A user declares a tool in `config.toml`, by the name that its calls have:

    [gate.tools]
    lookup_order = ["read"]                 reads only
    mcp__shop__refund = ["network", "egress"]
    roll_dice = []                          touches nothing

An author declares it in code:

    @aver.tool(effects=["read"])
    def lookup_order(order: str) -> str: ...

The names are those of the gate's effects (`docs/gate/commands.md`). Settings win over code. The gate gets the
declaration of a call as a fact (`Facts.declared`), which is sealed with the decision:

    {"effects": ["read"], "by": "settings"}

A declaration says what a tool does. It cannot say what a path is: `gate.effects` still finds Aver's own files and
secrets in the arguments.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from aver.errors import BadInput
from aver.gate.action import Action
from aver.gate.effects.known_agents import KnownAgents

TOOLS_MAX = 1000
"""Most tools that the settings declare."""

NAME_MAX = 512
"""Longest name of a declared tool, in characters."""

SHOWN_MAX = 80
"""Longest name of a tool that a message offers to declare. The agent writes the name."""

_EFFECTS_ATTRIBUTE = "__aver_effects__"
_LAYERS_MAX = 32
"""Wrappers around a function that are looked through."""

ToolDeclaration = Mapping[str, Any]
"""What a tool is declared to do: `effects`, and `by`, which is `settings` or `code`."""

_Function = TypeVar("_Function", bound=Callable[..., Any])


def tool(*, effects: Iterable[str]) -> Callable[[_Function], _Function]:
    """Declare what a tool of yours does. Returns a decorator, which changes nothing else about the function.

    `effects` are names of the gate's effects, such as `read`; an empty list says that the tool touches nothing. Put the
    decorator right above the function, below decorators that make another object of it. Raises `BadInput` for a name
    that is no effect.
    """
    import inspect  # Not above: hooks load this module.

    declared = check_effects(effects, "@aver.tool: effects")

    def declare(function: _Function) -> _Function:
        if not inspect.isroutine(function):
            kind = type(function).__name__
            raise BadInput(f"@aver.tool declares functions, not a {kind}", advice="put it right above the function")
        try:
            setattr(function, _EFFECTS_ATTRIBUTE, declared)
        except AttributeError:
            raise BadInput(f"@aver.tool cannot mark {function!r}", advice="wrap it in a function of your own") from None
        return function

    return declare


def find_declared_effects(function: object) -> tuple[str, ...] | None:
    """Return the effects that `aver.tool` declares for a function; None if it declares none.

    Methods, `functools.partial` and decorators that use `functools.wraps` are looked through.
    """
    for _ in range(_LAYERS_MAX):
        if not callable(function):
            return None
        found = getattr(function, "__dict__", {}).get(_EFFECTS_ATTRIBUTE)
        if found is not None:
            return check_effects(found, "@aver.tool: effects")
        if isinstance(function, functools.partial):
            function = function.func
        else:
            function = getattr(function, "__func__", None) or getattr(function, "__wrapped__", None)
    return None


def check_effects(effects: object, where: str) -> tuple[str, ...]:
    """Return the names, sorted. Raises `BadInput`, which names `where`, if one is no effect that can be declared."""
    from aver.gate.effects.findings import EFFECTS  # Not above: the decorator is to cost little.
    from aver.gate.effects.routine_commands import ROUTINE_EFFECTS

    known = {*EFFECTS, *ROUTINE_EFFECTS} - {"unknown", "call", "call-read"}
    if isinstance(effects, str) or not isinstance(effects, Iterable):
        raise BadInput(f"{where} must be a list of effects", advice='such as ["read"]; [] if it touches nothing')
    named = list(effects)
    for name in named:
        if not isinstance(name, str) or name not in known:
            raise BadInput(f"{where}: {ascii(name)[:80]} is no effect", advice=f"known are {', '.join(sorted(known))}")
    return tuple(sorted(set(named)))


def read_tool_settings(table: object, where: str) -> dict[str, ToolDeclaration]:
    """Read the table `[gate.tools]`: the declarations by the names of tools. Raises `BadInput`, which names `where`."""
    if not isinstance(table, Mapping) or len(table) > TOOLS_MAX:
        raise BadInput(f"{where} must be a table of at most {TOOLS_MAX} tools")
    for name in table:
        if not name or len(name) > NAME_MAX:
            raise BadInput(f"{where}: the name of a tool has from 1 to {NAME_MAX} characters")
    return {
        name: {"effects": list(check_effects(effects, f"{where} {ascii(name)[1:-1][:80]}")), "by": "settings"}
        for name, effects in table.items()
    }


def add_code_declaration(
    settings: Mapping[str, ToolDeclaration], name: str, effects: Iterable[str]
) -> dict[str, ToolDeclaration]:
    """Return the declarations with that of the caller's own code for one tool. The settings win."""
    return {name: {"effects": list(check_effects(effects, f"the effects of {name[:80]}")), "by": "code"}, **settings}


def find_declaration(declarations: Mapping[str, ToolDeclaration], tool: str, known: KnownAgents) -> ToolDeclaration:
    """Return the declaration of a tool, for `Facts.declared`; empty if there is none."""
    # Some tools call tools of MCP servers. Their own name says nothing about the call.
    return {} if not tool or known.is_mcp_caller(tool) else declarations.get(tool, {})


def read_declaration(declared: ToolDeclaration) -> tuple[str, ...] | None:
    """Return the effects of a declaration; None if there is none. Raises `BadInput` if it names no known effects."""
    return check_effects(declared.get("effects"), "the declared effects") if declared else None


def explain_unknown_tool(action: Action, home: str, annotations: Mapping[str, Any] = MappingProxyType({})) -> str:
    """Say that a tool is unknown, and how to declare it. `home` is `AVER_HOME`, if it is known."""
    if not action.tool:
        return f"unknown action: nothing says what a {action.type} without a tool does"
    if not action.tool.isprintable() or len(action.tool) > SHOWN_MAX:
        return "unknown tool: its name is not one to declare"
    key = action.tool
    if re.fullmatch(r"[A-Za-z0-9_-]+", key) is None:
        escaped = key.replace("\\", "\\\\").replace('"', '\\"')
        key = f'"{escaped}"'
    file = f"{home}/config.toml" if home else "config.toml"
    from aver.gate.tool_proposals import propose_effects  # Not above: most tools are known.

    proposed = propose_effects(action.tool, action.arguments, annotations)
    shown = ", ".join(f'"{effect}"' for effect in proposed) or "EFFECTS"
    more = "" if proposed else ', where EFFECTS are such as "read", "write", "network", "egress" and "execute"'
    return f"unknown tool {action.tool}: tell Aver what it does: [gate.tools] {key} = [{shown}] in {file}{more}"

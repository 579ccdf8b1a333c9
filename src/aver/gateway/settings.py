"""The gateway's settings: the table `[gateway]` of `config.toml`, and four variables of the environment.

    [gateway]
    tx_ttl = 120                       seconds in which a PREVIEW can be committed; the variable TX_TTL_S wins
    mac_ttl = 30                       seconds for which a policy share is good; POLICY_MAC_TTL_S wins
    confirm = "approval"               a person approves with a key; "flag": `user_confirm: true` is enough
    inputs = "keep"                    records keep an act's inputs; "digest": only their SHA-256
    require_capsule = false            true: no act but those of an agent in a verified confinement (`aver gateway run`)
    capsule_ttl = 3600                 seconds for which a verdict on a confinement counts
    policy0 = "run/policy0.sock"       where the parts listen, if they are not in this process
    policy1 = "run/policy1.sock"
    executor = "run/executor.sock"

    [gateway.clients.build-bot]        who may use `aver gateway serve`, besides the user who runs it
    token_sha256 = "9f86..."           SHA-256 of the client's token; or  uid = 1001
    sessions = ["build-*"]             which sessions and callers it may name; left out, any
    callers = ["agent:build"]
    prompts = true                     it is trusted to know the user's words (`POST /session`); left out, it is not

    [gateway.tools."shop.refund"]      what a tool of an MCP server does, and what its arguments are for
    effects = ["network", "egress"]
    roles = { order = "object" }

    [gateway.capabilities.callers]     which intents a caller may use; with this table, only what it lists
    "agent:build" = ["ReadWorkspaceFile", "Write*"]

    [gateway.capabilities.principals]  the same for the principal on whose behalf a caller acts
    "partner" = ["SendMessage"]

    [gateway.principals.partner]       principals of others, by name, and their Ed25519 keys
    key = "64 hex digits"

The settings of the effects, such as mail and commands: `aver.gateway.effect_settings`.

`EXECUTOR_INSECURE_ALLOW=1` lets the executor act without evidence. Every answer and record says so, and no verdict on
them is better than `qualified`. `EXECUTOR_REPLAY_TTL_S` is accepted and has no effect: marks of acts last for good.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any, Literal, get_args

from aver.capsule.json_document import check_object, int_field, text_field
from aver.config import Config
from aver.errors import BadInput
from aver.fast_dataclass import dataclass
from aver.gateway.effect_settings import EFFECT_KEYS, EffectSettings, read_effect_settings
from aver.keys.public_key import PublicKey
from aver.lazy_pattern import lazy_pattern

SECTION = "[gateway]"

TX_TTL = 120
MAC_TTL = 30
CAPSULE_TTL = 3600
"""Seconds for which a verdict on a confinement is fresh. Probes take some seconds, and settings of a machine that could
open a confinement change seldom."""

TTL_MAX = 24 * 3600
"""Upper bound of these times, in seconds. A decision about yesterday's state is none about today's."""

NAMES_MAX = 1000
"""Most clients, principals, patterns, and names in one list."""

NAME_MAX = 256
"""Longest name or pattern, in characters."""

UID_MAX = 2**32 - 2

Confirm = Literal["approval", "flag"]
KeptInputs = Literal["keep", "digest"]

_SHA256 = lazy_pattern(r"[0-9a-f]{64}")
_CLIENT = lazy_pattern(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_KEYS = frozenset(
    (
        *("tx_ttl", "mac_ttl", "confirm", "inputs", "require_capsule", "capsule_ttl", "policy0", "policy1", "executor"),
        *("clients", "capabilities", "principals", "tools"),
        *EFFECT_KEYS,
    )
)


@dataclass(frozen=True, slots=True)
class GatewayClient:
    """One client of the gateway's HTTP door: how it is known, and which sessions and callers it may name."""

    name: str
    token_sha256: str = ""
    uid: int | None = None
    sessions: tuple[str, ...] = ("*",)
    callers: tuple[str, ...] = ("*",)
    prompts: bool = False
    """Whether it is trusted to know the user's words."""


@dataclass(frozen=True, slots=True)
class ToolSettings:
    """The operator's word about one tool of an MCP server."""

    effects: tuple[str, ...] | None = None
    """The effects of the tool; None where the settings do not say."""
    roles: Mapping[str, str] = field(default_factory=dict)
    """The roles of its arguments, by name: see `aver.gate.origins.roles`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySettings:
    """The settings in force."""

    tx_ttl: int = TX_TTL
    mac_ttl: int = MAC_TTL
    confirm: Confirm = "approval"
    inputs: KeptInputs = "keep"
    require_capsule: bool = False
    """Whether only agents in a verified confinement may act."""
    capsule_ttl: int = CAPSULE_TTL
    policy0: str = ""
    """Where policy server 0 listens; empty for one in this process. The next two are alike."""
    policy1: str = ""
    executor: str = ""
    clients: tuple[GatewayClient, ...] = ()
    callers: Mapping[str, frozenset[str]] | None = None
    """The intents that a caller may use, by pattern; None where nothing is restricted."""
    principals: Mapping[str, frozenset[str]] | None = None
    keys: Mapping[str, PublicKey] = field(default_factory=dict)
    """Public keys of principals, by name."""
    effects: EffectSettings = EffectSettings()
    """The settings of single effects."""
    tools: Mapping[str, ToolSettings] = field(default_factory=dict)
    """Settings of tools, by `<server>.<tool>`."""
    is_insecure: bool = False
    """Whether the executor acts without evidence."""


def read_gateway_settings(config: Config, environment: Mapping[str, str] = os.environ) -> GatewaySettings:
    """Read the settings. Raises `BadInput`, which names the setting that is wrong."""
    table, where = config.gateway, f"{config.file}: {SECTION}"
    check_object(dict(table), where, frozenset(), _KEYS)
    confirm, inputs = table.get("confirm", "approval"), table.get("inputs", "keep")
    for name, value, words in (("confirm", confirm, Confirm), ("inputs", inputs, KeptInputs)):
        if value not in get_args(words):
            raise BadInput(f"{where} {name} must be one of {', '.join(get_args(words))}")
    require_capsule = table.get("require_capsule", False)
    if not isinstance(require_capsule, bool):
        raise BadInput(f"{where} require_capsule must be true or false")
    places = {name: table.get(name, "") for name in ("policy0", "policy1", "executor")}
    for name, value in places.items():
        if not isinstance(value, str) or "\0" in value:
            raise BadInput(f"{where} {name} must be the path of a socket, or http://127.0.0.1:PORT")
    capabilities = check_object(
        _table(table, "capabilities", where), f"{where} capabilities", frozenset(), frozenset({"callers", "principals"})
    )
    return GatewaySettings(
        tx_ttl=_read_seconds(table, "tx_ttl", TX_TTL, where, environment, "TX_TTL_S"),
        mac_ttl=_read_seconds(table, "mac_ttl", MAC_TTL, where, environment, "POLICY_MAC_TTL_S"),
        confirm=confirm,
        inputs=inputs,
        require_capsule=require_capsule,
        capsule_ttl=int_field(table.get("capsule_ttl", CAPSULE_TTL), f"{where} capsule_ttl", low=1, high=TTL_MAX),
        clients=_read_clients(_table(table, "clients", where), f"{where} clients"),
        callers=_read_capabilities(capabilities, "callers", where),
        principals=_read_capabilities(capabilities, "principals", where),
        keys={
            name: _read_principal(value, f"{where} principals.{name}")
            for name, value in _table(table, "principals", where).items()
        },
        effects=read_effect_settings(table, where),
        tools={
            name: _read_tool(value, f"{where} tools.{name}") for name, value in _table(table, "tools", where).items()
        },
        is_insecure=environment.get("EXECUTOR_INSECURE_ALLOW", "") == "1",
        **places,
    )


def may_name(patterns: Iterable[str], name: str) -> bool:
    """Whether a name is one of the patterns: the name itself, or its beginning with a `*` behind it."""
    return any(name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern for pattern in patterns)


def find_capabilities(table: Mapping[str, frozenset[str]] | None, name: str) -> frozenset[str] | None:
    """Return the patterns of intents for a name: by the name itself, else by the longest pattern. None: all intents."""
    if table is None:
        return None
    if name in table:
        return table[name]
    fitting = [pattern for pattern in table if pattern.endswith("*") and name.startswith(pattern[:-1])]
    return table[max(fitting, key=len)] if fitting else frozenset()


def _read_seconds(
    table: Mapping[str, Any], name: str, default: int, where: str, environment: Mapping[str, str], variable: str
) -> int:
    given = environment.get(variable, "")
    if given:
        # As in the file: a number that is wrong must not become another one in silence.
        if not (given.isascii() and given.isdecimal() and len(given) < 9 and 1 <= int(given) <= TTL_MAX):
            raise BadInput(f"the variable {variable} must be a whole number from 1 to {TTL_MAX}, not {given[:40]!r}")
        return int(given)
    return int_field(table.get(name, default), f"{where} {name}", low=1, high=TTL_MAX)


def _table(table: Mapping[str, Any], name: str, where: str) -> dict[str, Any]:
    found = table.get(name, {})
    if not isinstance(found, dict) or len(found) > NAMES_MAX:
        raise BadInput(f"{where} {name} must be a table of at most {NAMES_MAX} entries")
    return found


def _read_names(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > NAMES_MAX:
        raise BadInput(f"{where} must be a list of at most {NAMES_MAX} names")
    for name in value:
        if not isinstance(name, str) or not 0 < len(name) <= NAME_MAX or "*" in name[:-1]:
            raise BadInput(f"{where}: {name!r} is no name; a `*` may stand at the end only")
    return tuple(value)


def _read_clients(table: Mapping[str, Any], where: str) -> tuple[GatewayClient, ...]:
    clients = []
    for name, value in table.items():
        place = f"{where}.{name}"
        text_field(name, where, _CLIENT)
        check_object(value, place, frozenset(), frozenset({"token_sha256", "uid", "sessions", "callers", "prompts"}))
        if ("token_sha256" in value) == ("uid" in value):
            raise BadInput(f"{place} must have either token_sha256 or uid")
        if not isinstance(value.get("prompts", False), bool):
            raise BadInput(f"{place} prompts must be true or false")
        clients.append(
            GatewayClient(
                name,
                token_sha256=text_field(value["token_sha256"], place, _SHA256) if "token_sha256" in value else "",
                uid=int_field(value["uid"], f"{place} uid", low=0, high=UID_MAX) if "uid" in value else None,
                sessions=_read_names(value.get("sessions", ["*"]), f"{place} sessions"),
                callers=_read_names(value.get("callers", ["*"]), f"{place} callers"),
                prompts=value.get("prompts", False),
            )
        )
    for kind in ("token_sha256", "uid"):
        known = [found for client in clients if (found := getattr(client, kind)) not in ("", None)]
        if len(set(known)) < len(known):
            raise BadInput(f"{where}: two clients have the same {kind}, so Aver cannot tell them apart")
    return tuple(clients)


def _read_capabilities(table: Mapping[str, Any], name: str, where: str) -> Mapping[str, frozenset[str]] | None:
    if name not in table:
        return None
    found = _table(table, name, f"{where} capabilities")
    _read_names(list(found), f"{where} capabilities.{name}")
    return {
        pattern: frozenset(_read_names(intents, f"{where} capabilities.{name}.{pattern}"))
        for pattern, intents in found.items()
    }


def _read_tool(value: Any, where: str) -> ToolSettings:
    from aver.gate.origins.roles import ARGUMENT_ROLES  # Not above: most homes name no tool.
    from aver.gate.own_tools import check_effects

    known = check_object(value, where, frozenset(), frozenset({"effects", "roles"}))
    roles = known.get("roles", {})
    if not isinstance(roles, dict) or not all(role in ARGUMENT_ROLES for role in roles.values()):
        raise BadInput(f"{where} roles must be a table of arguments, each one of {', '.join(ARGUMENT_ROLES)}")
    return ToolSettings(check_effects(known["effects"], f"{where} effects") if "effects" in known else None, roles)


def _read_principal(value: Any, where: str) -> PublicKey:
    check_object(value, where, frozenset({"key"}))
    return PublicKey(text_field(value["key"], f"{where} key", _SHA256)).check_usable()

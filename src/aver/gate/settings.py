"""The gate's settings: the table `[gate]` of `config.toml`.

    [gate]
    mode = "enforce"                   or "observe": decide and seal, and hold nothing back
    policy = "policy"                  a directory of .cedar files in AVER_HOME; left out, the starter set
    pass_below = 0.05                  risk passes when the upper end of its interval is at most this
    skip_above = 0.9                   risk denies when the lower end is above this; left out, it denies nothing
    max_retries = 3                    after so many denials of the same action, the agent is to give up
    confine = "off"                    or "build": hooks have tests and builds run confined (`gate.confinement`)
    caution = "balanced"               or "strict": more is asked about; see docs/gate/policy.md
    trusted_servers = ["files"]        MCP servers whose annotations of their own tools are believed

    [gate.groups]
    reviewers = ["agent:lint"]         names of agents, by group: policies ask `principal in Aver::Group::"reviewers"`

    [gate.tools]
    lookup_order = ["read"]            the effects of own tools, by name: see `aver.gate.own_tools`

They come from `config.toml` in `AVER_HOME` alone: a repository that an agent works in cannot bring rules of its own.
`aver.gate.policy.rules_source` says which other directories `policy` may name. An unknown setting is an error, which
names the file.

`mode` is for callers whose agent goes on by its own rules: hooks, adapters, the runtime and the MCP tools. They read it
and pass it to `ask`. Callers that carry an action out themselves always enforce.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Literal, get_args

from aver.capsule.json_document import check_object, int_field
from aver.config import Config
from aver.errors import AverError, BadInput
from aver.fast_dataclass import dataclass
from aver.gate.decide import MAX_RETRIES
from aver.gate.decision import CAUTIONS, Caution, Thresholds

SECTION = "[gate]"

GateMode = Literal["enforce", "observe"]
"""`observe`: decisions are made and sealed, and nothing is held back."""

MODES: tuple[str, ...] = get_args(GateMode)

Confine = Literal["off", "build"]
CONFINEMENTS: tuple[str, ...] = get_args(Confine)

RETRIES_MAX = 1000
"""Upper bound of `max_retries`."""

NAMES_MAX = 1000
"""Most groups, and most names in a group."""

_KEYS = frozenset(
    (
        *("mode", "confine", "policy", "pass_below", "skip_above", "max_retries", "caution", "trusted_servers"),
        *("groups", "tools"),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GateSettings:
    """The settings in force."""

    mode: GateMode = "enforce"
    confine: Confine = "off"
    policy: Path | None = None
    """A directory; None for the starter set."""
    thresholds: Thresholds = field(default_factory=Thresholds)
    max_retries: int = MAX_RETRIES
    caution: Caution = "balanced"
    trusted: frozenset[str] = frozenset()
    groups: Mapping[str, frozenset[str]] = field(default_factory=dict)
    tools: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Declarations of own tools, by name."""


def read_gate_settings(config: Config) -> GateSettings:
    """Read the gate's settings. Raises `BadInput`, which names the file and the setting that is wrong."""
    try:
        return _read_settings(config.gate, config.home)
    except BadInput as error:
        raise BadInput(f"{config.file}: {error.message}", advice=error.advice) from error


def _read_settings(table: Mapping[str, Any], home: Path) -> GateSettings:
    check_object(dict(table), SECTION, frozenset(), _KEYS)
    mode = table.get("mode", "enforce")
    if mode not in MODES:
        raise BadInput(f"{SECTION} mode must be one of {', '.join(MODES)}")
    if table.get("confine", "off") not in CONFINEMENTS:
        raise BadInput(f"{SECTION} confine must be one of {', '.join(CONFINEMENTS)}")
    policy = table.get("policy")
    if policy is not None and (not isinstance(policy, str) or not policy or "\0" in policy):
        raise BadInput(f"{SECTION} policy must be the name of a directory")
    limits: dict[str, float] = {}
    for name in ("pass_below", "skip_above"):
        value = table.get(name, 0)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            raise BadInput(f"{SECTION} {name} must be a probability: a number from 0 to 1")
        if name in table:
            limits[name] = float(value)
    thresholds = Thresholds(**limits)
    # With overlapping limits, one interval could both pass and be denied.
    if thresholds.skip_above is not None and thresholds.skip_above <= thresholds.pass_below:
        raise BadInput(f"{SECTION} skip_above must be larger than pass_below")
    caution = table.get("caution", "balanced")
    if caution not in CAUTIONS:
        raise BadInput(f"{SECTION} caution must be one of: {', '.join(CAUTIONS)}")
    groups = table.get("groups", {})
    if not isinstance(groups, dict) or len(groups) > NAMES_MAX:
        raise BadInput(f"{SECTION} groups must be a table of at most {NAMES_MAX} lists of names")
    # The servers and each group are lists of names.
    names: dict[str, frozenset[str]] = {}
    lists = {"trusted_servers": table.get("trusted_servers", []), **{f"groups.{key}": groups[key] for key in groups}}
    for name, value in lists.items():
        if not isinstance(value, list) or len(value) > NAMES_MAX or not all(isinstance(item, str) for item in value):
            raise BadInput(f"{SECTION} {name} must be a list of at most {NAMES_MAX} names")
        names[name] = frozenset(value)
    return GateSettings(
        mode=mode,
        confine=table.get("confine", "off"),
        policy=None if policy is None else home / Path(policy).expanduser(),
        thresholds=thresholds,
        caution=caution,
        max_retries=int_field(table.get("max_retries", MAX_RETRIES), f"{SECTION} max_retries", low=1, high=RETRIES_MAX),
        trusted=names["trusted_servers"],
        groups={group: names[f"groups.{group}"] for group in groups},
        tools=_read_tools(table),
    )


def _read_tools(table: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    if "tools" not in table:
        return {}
    from aver.gate.own_tools import read_tool_settings  # Not above: most homes declare no tools.

    return read_tool_settings(table["tools"], f"{SECTION} tools")


def read_gate_mode(config: Config) -> GateMode:
    """Read whether decisions hold anything back. Settings that cannot be read hold back: nothing passes by them."""
    try:
        return read_gate_settings(config).mode
    except AverError:
        return "enforce"

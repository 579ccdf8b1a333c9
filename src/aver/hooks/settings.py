"""The settings of hooks: the table `[hooks]` of `config.toml`, and a table in it for one agent.

    [hooks]
    on_failure = "open"      or "closed"; without it the table in `aver.hooks.run` holds
    on_pass = "leave"        the default: where the gate passes, the agent asks as it would without Aver
                             "allow": the agent does not ask, if every part of the call was understood
    ledger_from_environment = false    the default: hooks write to the ledger that `config.toml` names, because a
                             project can set variables for them; true: `AVER_LEDGER` names it, as for every command

    [hooks.claude-code]      the same for one agent, whatever stands above
    on_pass = "allow"        `aver install claude-code --auto-allow` writes this
    mode = "observe"         `aver install claude-code --observe` writes this; else `[gate] mode` holds

With `leave`, Aver only tightens: whatever the agent would ask about without Aver, it asks about with Aver, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import TYPE_CHECKING, Any, Literal, cast

from aver.config import Config
from aver.errors import BadInput, Unavailable
from aver.fast_dataclass import NamedTuple

if TYPE_CHECKING:
    from aver.gate.action import Action
    from aver.gate.decision import Decision
    from aver.hooks.contract import HookChoice

SECTION = "[hooks]"

OnPass = Literal["allow", "leave"]
HookMode = Literal["enforce", "observe"]

_ALLOWED_VALUES: Mapping[str, tuple[object, ...]] = {
    "on_failure": ("open", "closed"),
    "on_pass": ("allow", "leave"),
    "mode": ("enforce", "observe"),
    "ledger_from_environment": (False, True),
}
_PER_AGENT_ONLY = frozenset({"mode"})
_SHARED_ONLY = frozenset({"ledger_from_environment"})


class HookSettings(NamedTuple):
    """The settings in force for one agent's hooks."""

    on_failure: Literal["open", "closed", ""] = ""
    """Empty where it is not set: see the table in `aver.hooks.run`."""
    on_pass: OnPass = "leave"  # noqa: S105 - no password
    mode: HookMode = "enforce"
    confines: bool = False
    """Whether tests and builds are to run confined."""
    ledger_from_environment: bool = False
    """Whether `AVER_LEDGER` names the ledger. Else hooks ignore it."""
    asks_person: bool = True
    """Whether the agent can ask its person about the call. Else a call that a person must approve is denied."""


def read_hook_settings(config: Config, agent: str, agents: Mapping[str, Any] | None = None) -> HookSettings:
    """Read the settings for an agent. Raises `BadInput`, which names the file, for one that is unknown or wrong.

    `agents` has the names of all agents, where the caller wants a table for an unknown one to be refused.
    """
    where = f"{config.file}: {SECTION}"
    shared = {name: value for name, value in config.hooks.items() if not isinstance(value, Mapping)}
    _check_values(shared, where, _ALLOWED_VALUES.keys() - _PER_AGENT_ONLY)
    for name, table in config.hooks.items():
        if isinstance(table, Mapping):
            if name in _ALLOWED_VALUES or (agents is not None and name not in agents):
                raise BadInput(f"{where}: there is no agent {name!r}")
            _check_values(table, f"{where} {name}", _ALLOWED_VALUES.keys() - _SHARED_ONLY)
    mode = config.gate.get("mode", "enforce")  # The gate checks the value itself: a wrong one lets nothing pass.
    own = config.hooks.get(agent, {})
    values = {"mode": "observe" if mode == "observe" else "enforce", **shared, **own}
    values["confines"] = config.gate.get("confine") == "build"
    return HookSettings(**cast(dict[str, Any], values))


def _check_values(table: Mapping[str, Any], where: str, known: Set[str]) -> None:
    for name, value in table.items():
        if name not in known:
            raise BadInput(f"{where}: unknown setting {name!r}", advice=f"known are {', '.join(sorted(known))}")
        if value not in _ALLOWED_VALUES[name] or type(value) is not type(_ALLOWED_VALUES[name][0]):
            raise BadInput(f"{where} {name} must be one of {', '.join(map(str, _ALLOWED_VALUES[name])).lower()}")


def choose_answer(decision: Decision, settings: HookSettings) -> HookChoice:
    """Return the answer that a hook gives to a decision, as long as no person has answered.

    `observe` holds nothing back, and allows nothing either: the agent's own rules decide.
    """
    if settings.mode == "observe":
        return "leave"
    if decision.decision == "human_approved":
        return "allow"  # A person has approved exactly this.
    if decision.decision == "pass":
        is_chosen = settings.on_pass == "allow"  # noqa: S105 - no password
        return "allow" if is_chosen and is_fully_understood(decision) else "leave"
    return "ask" if decision.decision == "human_review" and settings.asks_person else "deny"


def confine_call(decision: Decision, action: Action, settings: HookSettings) -> ConfinedCall | None:
    """Return the call that is to be made instead: the same command, confined. None where it is left as it is.

    Raises `Unavailable` where the command is to be confined and cannot be: it would run unconfined without anyone's
    word, by having something harmless beside it.
    """
    if not settings.confines or decision.decision != "pass" or decision.effects is None:
        return None
    from aver.gate import confinement  # Not above: most homes confine nothing.

    effects = decision.effects.classes
    if not confinement.must_confine(effects):
        return None
    if obstacles := confinement.find_obstacles(effects):
        words = f"it runs code of the workspace, and cannot be confined because of its effects {', '.join(obstacles)}"
        raise Unavailable(words, advice="run its parts one by one")
    command = action.arguments.get("command")
    if not isinstance(command, str) or command != decision.effects.command:
        raise Unavailable("it is to be confined, and its command is not one text", advice="give it as one text")
    if confinement.find_wrapper() is None:
        raise Unavailable("it is to be confined, and bwrap is not installed", advice="install the package bubblewrap")
    text = confinement.confined_text(command, confinement.find_aver(), action.workspace)
    # The directory of a call is the client's own affair. The gate gets it as an argument that the call has not.
    arguments = {name: value for name, value in action.arguments.items() if name != "cwd"}
    return ConfinedCall(text, {**arguments, "command": text})


class ConfinedCall(NamedTuple):
    """A call that is made instead of the one that was asked about."""

    command: str
    arguments: Mapping[str, Any]


class ChosenAnswer(NamedTuple):
    """The answer of a hook to a decision, as long as no person has answered."""

    word: HookChoice
    confined: ConfinedCall | None = None
    trouble: str = ""
    """Why a command that is to be confined cannot be. Then a person is asked."""


def choose_call(decision: Decision, action: Action, settings: HookSettings) -> ChosenAnswer:
    """Return the answer to a decision, and the call that is to be made instead, where it is to be confined."""
    try:
        confined = confine_call(decision, action, settings)
    except Unavailable as error:  # It must not run unconfined without a person's word.
        return ChosenAnswer("ask" if settings.asks_person else "deny", trouble=f"{error.message} ({error.advice})")
    return ChosenAnswer(choose_answer(decision, settings), confined)


_WORKSPACE_EFFECTS = frozenset({"read", "write", "create", "seen"})
"""Reading and writing, and what is said beside `write` of a new file (`gate.effects.shown_changes`)."""


def is_fully_understood(decision: Decision) -> bool:
    """Whether the tables know every part of a call, so that Aver may answer in the agent's place.

    Of a command, every part matched a row that lists all options of its program. Of another tool, all effects are
    known, and are reading or writing in the workspace.
    """
    effects = decision.effects
    if effects is None or effects.unclear:
        return False
    if effects.command or effects.programs:
        return effects.is_fully_listed
    return bool(effects.effects) and all(
        effect.name in _WORKSPACE_EFFECTS and effect.where == "workspace" and not effect.classes
        for effect in effects.effects
    )

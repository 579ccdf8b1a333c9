"""How a line of a table is applied to a call."""

from __future__ import annotations

from aver.gate.commands.call import Call
from aver.gate.commands.model import EFFECTS, Word
from aver.gate.commands.options import Given, Spec, read_arguments
from aver.gate.commands.verbs import VERBS
from aver.gate.places import UNKNOWN, locate

__all__ = ["apply", "apply_given", "apply_options"]

_CHANGES = ("edit", "write", "delete")
"""What operands become by one option counts, whatever another one says."""


def apply(call: Call, spec: Spec) -> Given:
    """Judge a call by a line of a table."""
    given = read_arguments(spec, call.words)
    apply_given(call, spec, given)
    return given


def apply_options(call: Call, spec: Spec) -> Given:
    """Judge the options of a call alone. The operands are for a handler."""
    given = read_arguments(spec, call.words)
    apply_given(call, spec, given.without_operands())
    return given


def apply_given(call: Call, spec: Spec, given: Given) -> None:
    """The same for arguments that are sorted out already."""
    for effect in spec.always:
        _means(call, effect, None)
    changed = [option.operands for option, _, _ in given.options if option.operands]
    operands_become = max(changed, key=_CHANGES.count) if changed else spec.rest
    first = list(spec.first) if operands_become in ("tree", spec.rest) else []
    for option, value, word in given.options:
        for effect in option.effects:
            _means(call, effect, word)
        if option.is_first_operand and first:
            first.pop(0)
        if option.verb and value is not None:
            VERBS[option.verb](call, value)
    _doubts(call, spec, given)
    if spec.here == "unpack" and not changed:
        call.unpacks_into(None)
    elif spec.here and not changed:
        call.touches_here(spec.here)
    if len(given.operands) <= len(first):
        if operands_become == "tree":
            call.touches_here("read")
        elif spec.nothing and not changed:
            call.touches_here(spec.nothing)
    _operands(call, spec, given.operands, first, operands_become)


def _operands(call: Call, spec: Spec, operands: list[Word], first: list[str], rest: str) -> None:
    waiting = list(operands)
    for verb in first:
        if waiting:
            word = waiting.pop(0)
            if verb:
                VERBS[verb](call, word)
    if rest == "command":
        call.runs(waiting)
        return
    last = waiting.pop() if spec.last and len(operands) > 1 and waiting else None
    if rest:
        for word in waiting:
            VERBS[rest](call, word)
    if last is not None:
        VERBS[spec.last](call, last)


def _runs_code_from_elsewhere(call: Call) -> None:
    """A tool that runs the code of the workspace runs other code where it stands elsewhere, or is pointed there."""
    places = [locate(cwd, cwd, call.ground) if cwd is not None else UNKNOWN for cwd in call.state.cwds]
    for word in call.words:
        for value in word.values:
            if value.startswith(("/", "~", "..")):
                places += [locate(value, cwd, call.ground) for cwd in call.state.cwds]
    if any(place.where != "workspace" and place.matters for place in places):
        call.unclear("script", f"{call.program} may run code that lies outside the workspace")


def _means(call: Call, effect: str, word: Word | None) -> None:
    if effect == "execute" and word is None:
        _runs_code_from_elsewhere(call)
    if effect in EFFECTS:
        call.does(effect, word, target=call.program if effect == "execute" else "")
    else:
        about = f"{call.program} {word.shown}" if word is not None else call.program
        call.unclear(effect.removeprefix("?"), f"{about}: what this does is not looked into", word)


def _doubts(call: Call, spec: Spec, given: Given) -> None:
    if spec.is_strict:
        for name, word in given.unlisted:
            call.unclear("unknown-option", f"the option {name} of {call.program} is not in the tables", word)
    if given.doubtful and spec.does_more_by_option:
        for word in given.doubtful:
            advice = f"; write ./{word.text}" if word.is_pattern else ""
            call.unclear("unknown-option", f"{word.shown} may become an option of {call.program}{advice}", word)

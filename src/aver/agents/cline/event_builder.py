"""Builds the event of a Cline call from the shown message, the model's call and the result.

Who allowed a call: a `say` message means that Cline did not ask. An `ask` message means only that Cline asked. Only the
result, or the output of a command, shows that the user agreed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from aver.agents.cline.api_calls import ApiCall, ApiResult
from aver.agents.cline.results import ClineOutcome, read_outcome, replace_files
from aver.agents.cline.ui_messages import ShownCall, build_diff, build_summary, list_effects, read_shown_result
from aver.ingest.attachments import replace_images
from aver.ingest.contract import SAID_BY_WORDS, AgentCall, AgentEvent, Permission

_REJECTED = Permission(reference="rejected by the user", denied=True)


class OpenCall:
    """A call that Cline has shown and that is no event yet."""

    def __init__(self, shown: ShownCall, event: AgentEvent, *, place: str, asked: bool, thought_shown: bool) -> None:
        self.shown = shown
        self.event = event
        """The facts from the message that showed the call."""
        self.asked = asked
        self.thought_shown = thought_shown
        """Whether Cline showed the model's thinking. Then another event has it."""
        self.places = [place]
        self.outputs: list[Any] = []
        self.call: ApiCall | None = None
        """The model's call, once it is found in the history."""
        self.denied_by = ""
        self.is_closed = False
        """Whether a later request has begun. Then Cline shows nothing more about this call."""


def build_shown_event(open_call: OpenCall, result: ApiResult | None, key: str, *, ignored: bool = False) -> AgentEvent:
    """Build the event of a call that Cline showed."""
    call, shown = open_call.call, open_call.shown
    seen = read_shown_result(shown.kind, open_call.outputs)
    outcome = _find_outcome(open_call, result, ignored=ignored)
    merged = _merge_results(shown.kind, replace_files(result.content) if result else None, seen, outcome)
    diff = build_diff(shown, call)
    event = replace(
        open_call.event,
        key=key,
        summary=build_summary(shown, call, diff, seen if shown.kind == "use_subagents" else merged),
        allowed=_find_permission(open_call, outcome, result),
        thinking=open_call.event.thinking or ("" if open_call.thought_shown or call is None else call.thinking),
        signatures=call.signatures if call else (),
        redacted=bool(call and call.redacted and not open_call.event.thinking),
        side_effects=tuple(list_effects(shown, call)) if outcome.ok is not False and outcome.was_run else (),
        environment={
            **open_call.event.environment,
            **({"called_by": "xml"} if call and not call.id else {}),
            **(SAID_BY_WORDS if outcome.from_words else {}),
        },
        places=(*open_call.places, *((call.place,) if call else ()), *((result.place,) if result else ())),
    )
    if call is not None:
        arguments: dict[str, Any] = dict(call.arguments)
    else:
        hidden = ("tool", "content", "operationIsLocatedInWorkspace", "startLineNumbers")
        arguments = {name: replace_images(value) for name, value in shown.arguments.items() if name not in hidden}
    return _attach_call(event, call.name if call else shown.name, call, arguments, merged, outcome, diff)


def build_unshown_event(
    call: ApiCall, result: ApiResult | None, event: AgentEvent, *, ignored: bool = False
) -> AgentEvent:
    """Build the event of a call that Cline never showed. `event` has the other facts."""
    outcome = ClineOutcome(ok=None, was_run=False)
    if result is not None:
        outcome = read_outcome(result.content, call.name, asked=True, is_error=result.is_error, ignored=ignored)
    merged = replace_files(result.content) if result else None
    diff = build_diff(None, call)
    by_rule = Permission(by="policy", reference=outcome.by_rule, denied=True) if outcome.by_rule else None
    event = replace(
        event,
        summary=build_summary(None, call, diff, merged),
        allowed=by_rule or (_REJECTED if outcome.denied else Permission()),
        thinking=call.thinking,
        signatures=call.signatures,
        redacted=call.redacted,
        side_effects=tuple(list_effects(None, call)) if outcome.ok is True else (),
        environment={**event.environment, "shown": False, **(SAID_BY_WORDS if outcome.from_words else {})},
        places=(call.place, *((result.place,) if result else ())),
    )
    return _attach_call(event, call.name, call, dict(call.arguments), merged, outcome, diff)


def _attach_call(
    event: AgentEvent,
    tool: str,
    call: ApiCall | None,
    arguments: dict[str, Any],
    merged: Any,
    outcome: ClineOutcome,
    diff: str | None,
) -> AgentEvent:
    made = AgentCall(
        tool=tool,
        id=call.id if call and call.id else event.key,
        arguments=arguments,
        result=merged,
        ok=outcome.ok,
        error=outcome.error,
        diff=diff,
    )
    return replace(event, call=made, status=outcome.status or ("pending" if outcome.ok is None else None))


def _find_outcome(open_call: OpenCall, result: ApiResult | None, *, ignored: bool) -> ClineOutcome:
    if open_call.denied_by:
        words = "denied by Cline's command permissions"
        return ClineOutcome(ok=False, error=words, denied=True, by_rule=open_call.denied_by, was_run=False)
    if result is None:
        return ClineOutcome(ok=None, was_run=any(open_call.outputs))
    # Take the tool from the shown message: the model may call a server's tools by names of their own.
    shown = {"command": "execute_command", "use_mcp_server": "use_mcp_tool"}
    outcome_tool = shown.get(open_call.shown.kind) or (open_call.call.name if open_call.call else open_call.shown.name)
    return read_outcome(result.content, outcome_tool, asked=open_call.asked, is_error=result.is_error, ignored=ignored)


def _find_permission(open_call: OpenCall, outcome: ClineOutcome, result: ApiResult | None) -> Permission:
    if outcome.denied:
        return Permission(by="policy", reference=outcome.by_rule, denied=True) if outcome.by_rule else _REJECTED
    # A `say` message: Cline's own settings approved the call.
    if not open_call.asked:
        return Permission(by="autonomous", reference="auto-approved")
    # Cline asked. The call ran, or the command wrote output, only if the user agreed.
    granted = (result is not None and outcome.was_run) or (open_call.shown.kind == "command" and any(open_call.outputs))
    return Permission(by="human_approved", reference="asked and allowed") if granted else Permission()


def _merge_results(kind: str, result: Any, seen: Any, outcome: ClineOutcome) -> Any:
    """Return the result that the model got, with the shown output where that says more."""
    if kind == "command":
        merged = {"stdout": seen} if seen else {}
        code = {} if outcome.exit_code is None else {"exit_code": outcome.exit_code}
        return {**merged, **code, "result": result} if result is not None else merged or None
    if kind in ("browser_action", "use_subagents") and seen is not None:
        return {"shown": seen, "result": result}
    return result if result is not None else seen

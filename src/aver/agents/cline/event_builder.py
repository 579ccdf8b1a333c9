"""The event of a call in Cline: what was shown of it, what the model asked for, and what came back.

Who allowed a call: a message of the sort `say` means that Cline did not ask. One of the sort `ask` means that it asked,
no more; that the person agreed is shown only by a result that says so, or by a command's output.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from aver.agents.cline.api_calls import ApiCall, ApiResult
from aver.agents.cline.results import ClineOutcome, read_outcome, replace_files
from aver.agents.cline.ui_messages import ShownCall, build_diff, build_summary, list_effects, read_shown_result
from aver.ingest.attachments import replace_images
from aver.ingest.contract import AgentCall, AgentEvent, Permission

_REJECTED = Permission(reference="rejected by the user", denied=True)


class OpenCall:
    """A call that a person was shown, until it is told."""

    def __init__(self, shown: ShownCall, event: AgentEvent, *, place: str, asked: bool, thought_shown: bool) -> None:
        self.shown = shown
        self.event = event
        """What is known of it from the message that showed it."""
        self.asked = asked
        self.thought_shown = thought_shown
        """Whether what the model thought was shown: then it is told already."""
        self.places = [place]
        self.outputs: list[Any] = []
        self.call: ApiCall | None = None
        """What the model asked for, once it is found in the history."""
        self.denied_by = ""
        self.is_closed = False
        """Whether another request was made since: then nothing more is shown of it."""


def build_shown_event(one: OpenCall, result: ApiResult | None, key: str) -> AgentEvent:
    """The event of a call that was shown."""
    call, shown = one.call, one.shown
    seen = read_shown_result(shown.sort, one.outputs)
    verdict = _find_outcome(one, result)
    held = _merge_results(shown.sort, replace_files(result.content) if result else None, seen, verdict)
    diff = build_diff(shown, call)
    event = replace(
        one.event,
        key=key,
        summary=build_summary(shown, call, diff, seen if shown.sort == "use_subagents" else held),
        allowed=_find_permission(one, verdict, result),
        thinking=one.event.thinking or ("" if one.thought_shown or call is None else call.thinking),
        signatures=call.signatures if call else (),
        redacted=bool(call and call.redacted and not one.event.thinking),
        side_effects=tuple(list_effects(shown, call)) if verdict.ok is not False and verdict.was_run else (),
        environment={**one.event.environment, **({"called_by": "xml"} if call and not call.id else {})},
        places=(*one.places, *((call.place,) if call else ()), *((result.place,) if result else ())),
    )
    if call is not None:
        arguments: dict[str, Any] = dict(call.arguments)
    else:
        hidden = ("tool", "content", "operationIsLocatedInWorkspace", "startLineNumbers")
        arguments = {name: replace_images(value) for name, value in shown.arguments.items() if name not in hidden}
    return _attach_call(event, call.name if call else shown.name, call, arguments, held, verdict, diff)


def build_unshown_event(call: ApiCall, result: ApiResult | None, event: AgentEvent) -> AgentEvent:
    """The event of a call of which nothing was shown: `event` says what is known besides."""
    verdict = ClineOutcome(ok=None, was_run=False)
    if result is not None:
        verdict = read_outcome(result.content, call.name, asked=True, is_error=result.is_error)
    held = replace_files(result.content) if result else None
    diff = build_diff(None, call)
    by_rule = Permission(by="policy", reference=verdict.by_rule, denied=True) if verdict.by_rule else None
    event = replace(
        event,
        summary=build_summary(None, call, diff, held),
        allowed=by_rule or (_REJECTED if verdict.denied else Permission()),
        thinking=call.thinking,
        signatures=call.signatures,
        redacted=call.redacted,
        side_effects=tuple(list_effects(None, call)) if verdict.ok is True else (),
        environment={**event.environment, "shown": False},
        places=(call.place, *((result.place,) if result else ())),
    )
    return _attach_call(event, call.name, call, dict(call.arguments), held, verdict, diff)


def _attach_call(
    event: AgentEvent,
    tool: str,
    call: ApiCall | None,
    arguments: dict[str, Any],
    held: Any,
    verdict: ClineOutcome,
    diff: str | None,
) -> AgentEvent:
    made = AgentCall(
        tool=tool,
        id=call.id if call and call.id else event.key,
        arguments=arguments,
        result=held,
        ok=verdict.ok,
        error=verdict.error,
        diff=diff,
    )
    return replace(event, call=made, status=verdict.status or ("pending" if verdict.ok is None else None))


def _find_outcome(one: OpenCall, result: ApiResult | None) -> ClineOutcome:
    if one.denied_by:
        words = "denied by Cline's command permissions"
        return ClineOutcome(ok=False, error=words, denied=True, by_rule=one.denied_by, was_run=False)
    if result is None:
        return ClineOutcome(ok=None, was_run=any(one.outputs))
    # What a call is of, by what was shown of it: a model may call tools of a server by names of their own.
    shown = {"command": "execute_command", "use_mcp_server": "use_mcp_tool"}
    outcome_tool = shown.get(one.shown.sort) or (one.call.name if one.call else one.shown.name)
    return read_outcome(result.content, outcome_tool, asked=one.asked, is_error=result.is_error)


def _find_permission(one: OpenCall, verdict: ClineOutcome, result: ApiResult | None) -> Permission:
    if verdict.denied:
        return Permission(by="policy", reference=verdict.by_rule, denied=True) if verdict.by_rule else _REJECTED
    if not one.asked:
        return Permission(by="autonomous", reference="auto-approved")
    granted = (result is not None and verdict.was_run) or (one.shown.sort == "command" and any(one.outputs))
    return Permission(by="human_approved", reference="asked and allowed") if granted else Permission()


def _merge_results(sort: str, result: Any, seen: Any, verdict: ClineOutcome) -> Any:
    """What went back to the model, and what was shown of it where that says more."""
    if sort == "command":
        held = {"stdout": seen} if seen else {}
        code = {} if verdict.exit_code is None else {"exit_code": verdict.exit_code}
        return {**held, **code, "result": result} if result is not None else held or None
    if sort in ("browser_action", "use_subagents") and seen is not None:
        return {"shown": seen, "result": result}
    return result if result is not None else seen

"""The deed of a call in Cline: what was shown of it, what the model asked for, and what came back.

Who allowed a call: a message of the sort `say` means that Cline did not ask. One of the sort `ask` means that it asked,
no more; that the person agreed is shown only by a result that says so, or by a command's output.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from aver.ingest.cline_calls import ApiCall, ApiResult
from aver.ingest.cline_results import Verdict, judged, lightened_result
from aver.ingest.cline_shown import CallShown, diff_of, effects_of, shown_result, summary_of
from aver.ingest.deed import Allowed, Call, Deed
from aver.ingest.heavy import without_pictures

__all__ = ["OpenCall", "told", "told_alone"]

_REJECTED = Allowed(reference="rejected by the user", denied=True)


class OpenCall:
    """A call that a person was shown, until it is told."""

    def __init__(self, shown: CallShown, deed: Deed, *, place: str, asked: bool, thought_shown: bool) -> None:
        self.shown = shown
        self.deed = deed
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


def told(one: OpenCall, result: ApiResult | None, key: str) -> Deed:
    """The deed of a call that was shown."""
    call, shown = one.call, one.shown
    seen = shown_result(shown.sort, one.outputs)
    verdict = _verdict(one, result)
    held = _merged(shown.sort, lightened_result(result.content) if result else None, seen, verdict)
    diff = diff_of(shown, call)
    deed = replace(
        one.deed,
        key=key,
        summary=summary_of(shown, call, diff, seen if shown.sort == "use_subagents" else held),
        allowed=_allowed(one, verdict, result),
        thinking=one.deed.thinking or ("" if one.thought_shown or call is None else call.thinking),
        signatures=call.signatures if call else (),
        redacted=bool(call and call.redacted and not one.deed.thinking),
        side_effects=tuple(effects_of(shown, call)) if verdict.ok is not False and verdict.was_run else (),
        environment={**one.deed.environment, **({"called_by": "xml"} if call and not call.id else {})},
        places=(*one.places, *((call.place,) if call else ()), *((result.place,) if result else ())),
    )
    return _with_call(deed, call.name if call else shown.name, call, _arguments(shown, call), held, verdict, diff)


def told_alone(call: ApiCall, result: ApiResult | None, deed: Deed) -> Deed:
    """The deed of a call of which nothing was shown: `deed` says what is known besides."""
    verdict = Verdict(ok=None, was_run=False)
    if result is not None:
        verdict = judged(result.content, call.name, asked=True, is_error=result.is_error)
    held = lightened_result(result.content) if result else None
    diff = diff_of(None, call)
    by_rule = Allowed(by="policy", reference=verdict.by_rule, denied=True) if verdict.by_rule else None
    deed = replace(
        deed,
        summary=summary_of(None, call, diff, held),
        allowed=by_rule or (_REJECTED if verdict.denied else Allowed()),
        thinking=call.thinking,
        signatures=call.signatures,
        redacted=call.redacted,
        side_effects=tuple(effects_of(None, call)) if verdict.ok is True else (),
        environment={**deed.environment, "shown": False},
        places=(call.place, *((result.place,) if result else ())),
    )
    return _with_call(deed, call.name, call, dict(call.arguments), held, verdict, diff)


def _with_call(
    deed: Deed,
    tool: str,
    call: ApiCall | None,
    arguments: dict[str, Any],
    held: Any,
    verdict: Verdict,
    diff: str | None,
) -> Deed:
    made = Call(
        tool=tool,
        id=call.id if call and call.id else deed.key,
        arguments=arguments,
        result=held,
        ok=verdict.ok,
        error=verdict.error,
        diff=diff,
    )
    return replace(deed, call=made, status=verdict.status or ("pending" if verdict.ok is None else None))


def _verdict(one: OpenCall, result: ApiResult | None) -> Verdict:
    if one.denied_by:
        words = "denied by Cline's command permissions"
        return Verdict(ok=False, error=words, denied=True, by_rule=one.denied_by, was_run=False)
    if result is None:
        return Verdict(ok=None, was_run=any(one.outputs))
    return judged(result.content, _tool(one), asked=one.asked, is_error=result.is_error)


def _tool(one: OpenCall) -> str:
    """What a call is of, by what was shown of it: a model may call tools of a server by names of their own."""
    shown = {"command": "execute_command", "use_mcp_server": "use_mcp_tool"}
    return shown.get(one.shown.sort) or (one.call.name if one.call else one.shown.name)


def _allowed(one: OpenCall, verdict: Verdict, result: ApiResult | None) -> Allowed:
    if verdict.denied:
        return Allowed(by="policy", reference=verdict.by_rule, denied=True) if verdict.by_rule else _REJECTED
    if not one.asked:
        return Allowed(by="autonomous", reference="auto-approved")
    granted = (result is not None and verdict.was_run) or (one.shown.sort == "command" and any(one.outputs))
    return Allowed(by="human_approved", reference="asked and allowed") if granted else Allowed()


def _merged(sort: str, result: Any, seen: Any, verdict: Verdict) -> Any:
    """What went back to the model, and what was shown of it where that says more."""
    if sort == "command":
        held = {"stdout": seen} if seen else {}
        code = {} if verdict.exit_code is None else {"exit_code": verdict.exit_code}
        return {**held, **code, "result": result} if result is not None else held or None
    if sort in ("browser_action", "use_subagents") and seen is not None:
        return {"shown": seen, "result": result}
    return result if result is not None else seen


def _arguments(shown: CallShown, call: ApiCall | None) -> dict[str, Any]:
    if call is not None:
        return dict(call.arguments)
    hidden = ("tool", "content", "operationIsLocatedInWorkspace", "startLineNumbers")
    return {name: without_pictures(value) for name, value in shown.arguments.items() if name not in hidden}

"""A call or an answer of Codex on its way to being a deed, and the forms in which rollouts write calls."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal

from aver.ingest.codex_calls import NOTHING, SHELLS, Account, Outcome, command_of, outcome
from aver.ingest.codex_records import Line
from aver.ingest.deed import Allowed, Call, Deed, Tokens
from aver.ingest.diffs import tally
from aver.ingest.heavy import reference, without_pictures
from aver.ingest.records import as_json, text_in
from aver.ingest.times import ms_between

__all__ = ["CALLS", "OUTPUTS", "Repeats", "Told", "first_line", "pictures", "said"]

EXPECTED_MAX = 8
"""Messages that may still be repeated from the other side: more than these are never written in a row."""

LINE_MAX = 160
"""Characters of a text that stand in a summary."""

OUTPUTS = (
    "response_item.function_call_output",
    "response_item.custom_tool_call_output",
    "response_item.tool_search_output",
    "response_item.mcp_tool_call_output",
)


class Told:
    """A call or an answer that is not given out yet: more may be told of it."""

    def __init__(self, base: Deed, line: Line) -> None:
        self.base = base
        self.places = [*base.places, line.place]
        self.output: Any = NOTHING
        self.ended: str | None = None
        self.accounts: list[Account] = []
        self.asked = False
        """A person was asked before."""
        self.ready = base.call is None
        self.tokens: Tokens | None = None

    def deed(self) -> Deed:
        """All that is known by now."""
        deed = replace(self.base, tokens=self.tokens, places=tuple(dict.fromkeys(self.places)))
        call = deed.call
        if call is None:
            return deed
        if self.output is NOTHING and not self.accounts:
            return replace(deed, summary=_summary(call, None), status="pending")
        cwd = deed.environment.get("cwd")
        came = outcome(call.tool, call.arguments, self.output, self.accounts, cwd if isinstance(cwd, str) else "")
        took = came.duration_ms if came.duration_ms is not None else ms_between(deed.at, self.ended)
        environment = {**deed.environment, "process": came.running} if came.running else deed.environment
        return replace(
            deed,
            call=replace(call, result=came.result, ok=came.ok, error=came.error, diff=came.diff),
            summary=_summary(call, came),
            duration_ms=took,
            status="partial" if came.running else None,
            side_effects=came.effects,
            allowed=self._allowed(came),
            launched=came.launched,
            environment=environment,
        )

    def _allowed(self, came: Outcome) -> Allowed:
        """Who decided, where the rollout shows it; otherwise the policy that held."""
        policy = self.base.allowed
        if came.refusal is not None:
            words = f"{policy.reference}: {came.refusal.words}" if policy.reference else came.refusal.words
            by_rule = came.refusal.by_person is False
            return Allowed(by="policy" if by_rule else policy.by, reference=words[:LINE_MAX], denied=True)
        # Where an automatic reviewer answers, the one who was asked was no person.
        reviewer = self.base.environment.get("approvals_reviewer", "user")
        if came.ok is not None and reviewer == "user" and (self.asked or any(one.asked for one in self.accounts)):
            return Allowed(by="human_approved", reference=policy.reference)
        return policy


class Repeats:
    """Messages that come twice, as an item and as an event: which of them were told."""

    def __init__(self) -> None:
        self._expected: dict[str, deque[str]] = {side: deque(maxlen=EXPECTED_MAX) for side in ("item", "event")}

    def again(self, side: Literal["item", "event"], text: str, same: Callable[[str, str], bool]) -> bool:
        """Whether the other side told it already; if not, it will be expected from there."""
        other = self._expected["event" if side == "item" else "item"]
        for told in other:
            if same(told, text):
                other.remove(told)
                return True
        self._expected[side].append(text)
        return False

    def forget(self) -> None:
        for expected in self._expected.values():
            expected.clear()


def said(body: Mapping[str, Any]) -> str:
    """The text of a message, whichever record holds it."""
    message = body.get("message")
    return message if isinstance(message, str) else text_in(body.get("content"))


def pictures(body: Mapping[str, Any]) -> Any:
    """The pictures of a message, by digest and size; None where it has none."""
    content = body.get("content") if isinstance(body.get("content"), list) else body.get("images")
    if not isinstance(content, list):
        return None
    found = [block for block in content if isinstance(block, str) or (isinstance(block, dict) and "text" not in block)]
    return {"pictures": without_pictures(found)} if found else None


def first_line(text: str) -> str:
    line = text.strip().partition("\n")[0]
    return line if len(line) <= LINE_MAX else f"{line[:LINE_MAX]}…"


def _summary(call: Call, came: Outcome | None) -> str:
    if came is not None and came.diff is not None:
        paths = [effect.partition(" ")[2] for effect in came.effects if not effect.startswith("ran ")]
        return f"{call.tool}: {first_line(', '.join(paths))} {tally(came.diff)}"
    about = first_line(command_of(call.arguments) or _subject(call.arguments))
    line = f"{call.tool}: {about}" if about else call.tool
    code = came.result.get("exit_code") if came is not None and isinstance(came.result, dict) else None
    return f"{line} (exit {code})" if code and call.tool in SHELLS else line


def _subject(arguments: Mapping[str, Any]) -> str:
    """What a call is about: the first of its arguments that tells."""
    action = arguments.get("action")
    places = (arguments, action) if isinstance(action, Mapping) else (arguments,)
    names = ("query", "url", "pattern", "path", "message", "prompt", "objective", "chars")
    return next((text for place in places for name in names if isinstance(text := place.get(name), str) and text), "")


def _function_call(body: Mapping[str, Any]) -> tuple[str, Any, Any, Any]:
    name, space = body.get("name"), body.get("namespace")
    tool = name if isinstance(name, str) else "function"
    if isinstance(space, str) and space.startswith("mcp__") and not tool.startswith(space):
        tool = f"{space.rstrip('_')}__{tool}"
    return tool, body.get("call_id"), as_json(body.get("arguments")), NOTHING


def _custom_tool_call(body: Mapping[str, Any]) -> tuple[str, Any, Any, Any]:
    name = body.get("name")
    return name if isinstance(name, str) else "custom", body.get("call_id"), body.get("input"), NOTHING


def _local_shell_call(body: Mapping[str, Any]) -> tuple[str, Any, Any, Any]:
    return "local_shell", body.get("call_id") or body.get("id"), body.get("action"), NOTHING


def _tool_search_call(body: Mapping[str, Any]) -> tuple[str, Any, Any, Any]:
    return "tool_search", body.get("call_id") or body.get("id"), as_json(body.get("arguments")), NOTHING


def _web_search_call(body: Mapping[str, Any]) -> tuple[str, Any, Any, Any]:
    """A search takes place at the provider: what it found is not in the rollout, only that it was done."""
    return "web_search", body.get("id"), {"action": body.get("action")}, {"status": body.get("status") or "completed"}


def _image_generation_call(body: Mapping[str, Any]) -> tuple[str, Any, Any, Any]:
    drawn = body.get("result")
    result = {"status": body.get("status"), "picture": reference(drawn, "image") if isinstance(drawn, str) else None}
    return "image_generation", body.get("id"), {"revised_prompt": body.get("revised_prompt")}, result


CALLS: Mapping[str, Callable[[Mapping[str, Any]], tuple[str, Any, Any, Any]]] = {
    "response_item.function_call": _function_call,
    "response_item.custom_tool_call": _custom_tool_call,
    "response_item.local_shell_call": _local_shell_call,
    "response_item.tool_search_call": _tool_search_call,
    "response_item.web_search_call": _web_search_call,
    "response_item.image_generation_call": _image_generation_call,
}
"""How each sort of call is read: the tool, the call's id, its arguments, and its result where that stands in it."""

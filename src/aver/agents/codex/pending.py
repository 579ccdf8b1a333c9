"""A call or an answer of Codex on its way to being a deed, and the forms in which rollouts write calls."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal

from aver.agents.codex.calls import NO_OUTPUT, SHELL_TOOLS, CallReport, CodexOutcome, build_outcome
from aver.agents.codex.records import LINE_MAX, CodexLine, first_line, read_thought, read_tokens
from aver.ingest.attachments import digest_reference, replace_images
from aver.ingest.command_line import command_line
from aver.ingest.contract import AgentCall, AgentEvent, Permission, Tokens
from aver.ingest.diffs import format_line_counts
from aver.ingest.foreign_json import content_text, ms_between, parse_embedded_json
from aver.ingest.patches import read_patch

MessageSide = Literal["item", "event"]
"""Where a message stands."""

EXPECTED_MAX = 8
"""Messages that may still be repeated from the other side: more than these are never written in a row."""

OUTPUT_KINDS = (
    "response_item.function_call_output",
    "response_item.custom_tool_call_output",
    "response_item.tool_search_output",
    "response_item.mcp_tool_call_output",
)


class PendingEvent:
    """A call or an answer that is not given out yet: more may be told of it."""

    def __init__(self, base: AgentEvent, line: CodexLine) -> None:
        self.base = base
        self.places = [*base.places, line.place]
        self.output: Any = NO_OUTPUT
        self.ended: str | None = None
        self.accounts: list[CallReport] = []
        self.asked = False
        """A person was asked before."""
        self.ready = base.call is None
        self.tokens: Tokens | None = None

    def build_event(self) -> AgentEvent:
        """Build the event from everything that is known by now."""
        base, call, places = self.base, self.base.call, tuple(dict.fromkeys(self.places))
        if call is None:
            return replace(base, tokens=self.tokens, places=places)
        if self.output is NO_OUTPUT and not self.accounts:
            summary = _build_summary(call, None)
            return replace(base, tokens=self.tokens, places=places, summary=summary, status="pending")
        cwd = base.environment.get("cwd")
        came = build_outcome(call.tool, call.arguments, self.output, self.accounts, cwd if isinstance(cwd, str) else "")
        return replace(
            base,
            tokens=self.tokens,
            places=places,
            call=replace(call, result=came.result, ok=came.ok, error=came.error, diff=came.diff),
            summary=_build_summary(call, came),
            # Early versions write a call and its output at once: then nothing is known of the time between.
            duration_ms=came.duration_ms if came.duration_ms is not None else ms_between(base.at, self.ended) or None,
            status="partial" if came.running else None,
            side_effects=came.effects,
            allowed=self._find_permission(came),
            launched=came.launched,
            environment={**base.environment, "process": came.running} if came.running else base.environment,
        )

    def _find_permission(self, came: CodexOutcome) -> Permission:
        """Who decided, where the rollout shows it; otherwise the policy that held."""
        policy = self.base.allowed
        if came.refusal is not None:
            words = f"{policy.reference}: {came.refusal.words}" if policy.reference else came.refusal.words
            by_rule = came.refusal.by_person is False
            return Permission(by="policy" if by_rule else policy.by, reference=words[:LINE_MAX], denied=True)
        # Where an automatic reviewer answers, the one who was asked was no person.
        reviewer = self.base.environment.get("approvals_reviewer", "user")
        if came.ok is not None and reviewer == "user" and (self.asked or any(one.asked for one in self.accounts)):
            return Permission(by="human_approved", reference=policy.reference)
        return policy


class PendingThoughts:
    """Reasoning, until something comes of it. Its content may stand in the reasoning itself or in an event about it;
    where it is nowhere, the summary is what there is."""

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self.lines: list[CodexLine] = []
        self._contents: list[str] = []
        self._summaries: list[str] = []
        self._signatures: list[str] = []
        self._known: set[str] = set()

    def take(self, line: CodexLine) -> None:
        thought = read_thought(line)
        self._contents += [thought.content] if thought.content and thought.content not in self._known else []
        self._summaries += [thought.summary] if thought.summary and thought.summary not in self._known else []
        self._known |= {thought.content, thought.summary}
        self._signatures += [thought.signature] if thought.signature else []
        self.lines.append(line)

    def attach_to(self, deed: AgentEvent) -> AgentEvent:
        """The deed that they led to. They are forgotten here."""
        if not self.lines:
            return deed
        deed = replace(
            deed,
            thinking="\n\n".join(self._contents or self._summaries),
            signatures=tuple(self._signatures),
            redacted=bool(self._signatures) and not self._contents,
            places=tuple(dict.fromkeys([*(line.place for line in self.lines), *deed.places])),
        )
        self._reset()
        return deed


class TokenCounter:
    """Which tokens were counted. Early versions count them in nothing but `token_count`, and write that again when
    nothing was added; later ones write a record for each answer of the API, and `token_count` besides."""

    def __init__(self) -> None:
        self._total: Any = None
        self._by_answer = False

    def count_new(self, line: CodexLine) -> Tokens | None:
        if line.sort == "token_usage_record":
            self._by_answer = True
            return read_tokens(line.body.get("usage"))
        info = line.body.get("info")
        if self._by_answer or not isinstance(info, Mapping):
            return None
        before, self._total = self._total, info.get("total_token_usage")
        if self._total is not None and self._total == before:
            return None
        return read_tokens(info.get("last_token_usage"))


def add_tokens(before: Tokens | None, tokens: Tokens) -> Tokens:
    """The tokens of two answers of the API, of which the first came to nothing that is told."""
    if before is None:
        return tokens
    native = {
        name: before.native.get(name, 0) + tokens.native.get(name, 0) for name in {**before.native, **tokens.native}
    }
    return Tokens(input=native.get("input_tokens"), output=native.get("output_tokens"), native=native)


class RepeatFilter:
    """Messages that come twice, as an item and as an event: which of them were told."""

    def __init__(self) -> None:
        self._expected: dict[str, deque[str]] = {side: deque(maxlen=EXPECTED_MAX) for side in ("item", "event")}

    def is_repeated(self, side: MessageSide, text: str, same: Callable[[str, str], bool]) -> bool:
        """Return whether the other side already has this text, and it was not matched before."""
        other = self._expected["event" if side == "item" else "item"]
        again = next((told for told in other if same(told, text)), None)
        if again is not None:
            other.remove(again)
        return again is not None

    def expect(self, side: MessageSide, text: str) -> None:
        """One side told it: the other will."""
        self._expected[side].append(text)

    def forget(self) -> None:
        for expected in self._expected.values():
            expected.clear()


def message_text(body: Mapping[str, Any]) -> str:
    """The text of a message, whichever record holds it."""
    message = body.get("message")
    return message if isinstance(message, str) else content_text(body.get("content"))


def message_pictures(body: Mapping[str, Any]) -> Any:
    """The pictures of a message, by digest and size; None where it has none."""
    content = body.get("content") if isinstance(body.get("content"), list) else body.get("images")
    if not isinstance(content, list):
        return None
    found = [block for block in content if isinstance(block, str) or (isinstance(block, dict) and "text" not in block)]
    return {"pictures": replace_images(found)} if found else None


def _build_summary(call: AgentCall, came: CodexOutcome | None) -> str:
    if came is not None and came.diff is not None:
        paths = [effect.partition(" ")[2] for effect in came.effects if not effect.startswith("ran ")]
        return f"{call.tool}: {first_line(', '.join(paths))} {format_line_counts(came.diff)}"
    about = first_line(command_line(call.arguments) or _find_subject(call.arguments) or _patch_paths(call))
    line = f"{call.tool}: {about}" if about else call.tool
    code = came.result.get("exit_code") if came is not None and isinstance(came.result, dict) else None
    return f"{line} (exit {code})" if code and call.tool in SHELL_TOOLS else line


def _find_subject(arguments: Mapping[str, Any]) -> str:
    """What a call is about: the first of its arguments that tells."""
    action = arguments.get("action")
    places = (arguments, action) if isinstance(action, Mapping) else (arguments,)
    names = ("query", "url", "pattern", "path", "message", "prompt", "objective", "chars")
    return next((text for place in places for name in names if isinstance(text := place.get(name), str) and text), "")


def _patch_paths(call: AgentCall) -> str:
    given = call.arguments.get("input")
    patch = read_patch(given) if isinstance(given, str) else None
    return "" if patch is None else ", ".join(path for _, path in patch.changes)


def _read_function_call(body: Mapping[str, Any]) -> tuple[str, Any, Any, Any]:
    name, space = body.get("name"), body.get("namespace")
    tool = name if isinstance(name, str) else "function"
    if isinstance(space, str) and space.startswith("mcp__") and not tool.startswith(space):
        tool = f"{space.rstrip('_')}__{tool}"
    return tool, body.get("call_id"), parse_embedded_json(body.get("arguments")), NO_OUTPUT


def _read_custom_tool_call(body: Mapping[str, Any]) -> tuple[str, Any, Any, Any]:
    name = body.get("name")
    return name if isinstance(name, str) else "custom", body.get("call_id"), body.get("input"), NO_OUTPUT


def _read_local_shell_call(body: Mapping[str, Any]) -> tuple[str, Any, Any, Any]:
    return "local_shell", body.get("call_id") or body.get("id"), body.get("action"), NO_OUTPUT


def _read_tool_search_call(body: Mapping[str, Any]) -> tuple[str, Any, Any, Any]:
    return "tool_search", body.get("call_id") or body.get("id"), parse_embedded_json(body.get("arguments")), NO_OUTPUT


def _read_web_search_call(body: Mapping[str, Any]) -> tuple[str, Any, Any, Any]:
    """A search takes place at the provider: what it found is not in the rollout, only that it was done."""
    return "web_search", body.get("id"), {"action": body.get("action")}, {"status": body.get("status") or "completed"}


def _read_image_generation_call(body: Mapping[str, Any]) -> tuple[str, Any, Any, Any]:
    drawn = body.get("result")
    result = {
        "status": body.get("status"),
        "picture": digest_reference(drawn, "image") if isinstance(drawn, str) else None,
    }
    return "image_generation", body.get("id"), {"revised_prompt": body.get("revised_prompt")}, result


CALL_READERS: Mapping[str, Callable[[Mapping[str, Any]], tuple[str, Any, Any, Any]]] = {
    "response_item.function_call": _read_function_call,
    "response_item.custom_tool_call": _read_custom_tool_call,
    "response_item.local_shell_call": _read_local_shell_call,
    "response_item.tool_search_call": _read_tool_search_call,
    "response_item.web_search_call": _read_web_search_call,
    "response_item.image_generation_call": _read_image_generation_call,
}
"""How each sort of call is read: the tool, the call's id, its arguments, and its result where that stands in it."""

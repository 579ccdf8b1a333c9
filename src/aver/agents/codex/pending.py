"""State of the Codex parser: calls and answers that may still change, reasoning, tokens and repeated messages.

`read_call` reads the forms in which rollouts write calls:

    {"type": "function_call", "call_id": "call_2", "name": "exec_command", "arguments": "{\\"cmd\\": \\"ls\\"}"}
    {"type": "custom_tool_call", "call_id": "call_1", "name": "apply_patch", "input": "*** Begin Patch…"}
    {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"query": "half up"}}
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from aver.agents.codex.calls import NO_OUTPUT, SHELL_TOOLS, CallReport, CodexOutcome, build_outcome
from aver.agents.codex.records import LINE_MAX, CodexLine, first_line, read_thought, read_tokens
from aver.diffs import format_line_counts
from aver.ingest.attachments import digest_reference, replace_images
from aver.ingest.command_line import command_line
from aver.ingest.contract import SAID_BY_WORDS, AgentCall, AgentEvent, Permission, Tokens
from aver.ingest.foreign_json import content_text, first_text, ms_between, parse_embedded_json
from aver.ingest.patches import read_patch

MessageSide = Literal["item", "event"]
"""The record that has a message: a `response_item` or an event."""

EXPECTED_MAX = 8
"""Messages that may wait for their repetition. Codex never writes more of them in a row."""

OUTPUT_KINDS = (
    "response_item.function_call_output",
    "response_item.custom_tool_call_output",
    "response_item.tool_search_output",
    "response_item.mcp_tool_call_output",
)


class PendingEvent:
    """A call or an answer about which more records may come."""

    def __init__(self, base: AgentEvent, line: CodexLine) -> None:
        self.base = base
        self.places = [*base.places, line.place]
        self.output: Any = NO_OUTPUT
        self.ended: str | None = None
        self.reports: list[CallReport] = []
        self.asked = False
        """Codex requested an approval."""
        self.ready = base.call is None
        self.tokens: Tokens | None = None

    def build_event(self) -> AgentEvent:
        """Build the event from everything that is known by now."""
        base, call, places = self.base, self.base.call, tuple(dict.fromkeys(self.places))
        if call is None:
            return replace(base, tokens=self.tokens, places=places)
        if self.output is NO_OUTPUT and not self.reports:
            summary = _build_summary(call, None)
            return replace(base, tokens=self.tokens, places=places, summary=summary, status="pending")
        cwd = base.environment.get("cwd")
        outcome = build_outcome(
            call.tool, call.arguments, self.output, self.reports, cwd if isinstance(cwd, str) else ""
        )
        return replace(
            base,
            tokens=self.tokens,
            places=places,
            call=replace(call, result=outcome.result, ok=outcome.ok, error=outcome.error, diff=outcome.diff),
            summary=_build_summary(call, outcome),
            # Early versions write a call and its output at the same moment. Then the duration is unknown, not zero.
            duration_ms=outcome.duration_ms
            if outcome.duration_ms is not None
            else ms_between(base.at, self.ended) or None,
            status="partial" if outcome.running else None,
            side_effects=outcome.effects,
            allowed=self._find_permission(outcome),
            launched=outcome.launched,
            environment={
                **base.environment,
                **({"process": outcome.running} if outcome.running else {}),
                **(SAID_BY_WORDS if outcome.from_words else {}),
            },
        )

    def _find_permission(self, outcome: CodexOutcome) -> Permission:
        """Return who decided about the call, if the rollout shows it; otherwise the approval policy."""
        policy = self.base.allowed
        if outcome.refusal is not None:
            words = f"{policy.reference}: {outcome.refusal.words}" if policy.reference else outcome.refusal.words
            by_rule = outcome.refusal.by_person is False
            return Permission(by="policy" if by_rule else policy.by, reference=words[:LINE_MAX], denied=True)
        # With an automatic reviewer the approval is not a person's.
        reviewer = self.base.environment.get("approvals_reviewer", "user")
        if (
            outcome.ok is not None
            and reviewer == "user"
            and (self.asked or any(report.asked for report in self.reports))
        ):
            return Permission(by="human_approved", reference=policy.reference)
        return policy


class PendingThoughts:
    """Reasoning that waits for the next call or answer.

    The content is in the reasoning record or in an event about it. If it is in neither, the summary replaces it.
    """

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

    def attach_to(self, event: AgentEvent) -> AgentEvent:
        """Add the reasoning to the event that follows it, and forget the reasoning."""
        if not self.lines:
            return event
        event = replace(
            event,
            thinking="\n\n".join(self._contents or self._summaries),
            signatures=tuple(self._signatures),
            redacted=bool(self._signatures) and not self._contents,
            places=tuple(dict.fromkeys([*(line.place for line in self.lines), *event.places])),
        )
        self._reset()
        return event


class TokenCounter:
    """Counts each answer of the API once.

    Early versions write only `token_count` events, and repeat one if nothing was added. Later versions write a
    `token_usage_record` for each answer, and `token_count` as well.
    """

    def __init__(self) -> None:
        self._total: Any = None
        self._by_answer = False

    def count_new(self, line: CodexLine) -> Tokens | None:
        if line.kind == "token_usage_record":
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
    """Add the tokens of two answers of the API. The first gave no event that could have them."""
    if before is None:
        return tokens
    native = {
        name: before.native.get(name, 0) + tokens.native.get(name, 0) for name in {**before.native, **tokens.native}
    }
    return Tokens(input=native.get("input_tokens"), output=native.get("output_tokens"), native=native)


class RepeatFilter:
    """Recognises the repetition of a message. Codex writes each as an item and as an event, in either order."""

    def __init__(self) -> None:
        self._expected: dict[str, deque[str]] = {side: deque(maxlen=EXPECTED_MAX) for side in ("item", "event")}

    def is_repeated(self, side: MessageSide, text: str, same: Callable[[str, str], bool]) -> bool:
        """Return whether the other side already has this text, and it was not matched before."""
        other = self._expected["event" if side == "item" else "item"]
        again = next((text_before for text_before in other if same(text_before, text)), None)
        if again is not None:
            other.remove(again)
        return again is not None

    def expect(self, side: MessageSide, text: str) -> None:
        """Note that one side has the text, so that the other side's copy is a repetition."""
        self._expected[side].append(text)

    def forget(self) -> None:
        for expected in self._expected.values():
            expected.clear()


def message_text(body: Mapping[str, Any]) -> str:
    """Return the text of a message, from an item or an event."""
    message = body.get("message")
    return message if isinstance(message, str) else content_text(body.get("content"))


def message_pictures(body: Mapping[str, Any]) -> Any:
    """Return the pictures of a message, by digest and size; None if it has none."""
    content = body.get("content") if isinstance(body.get("content"), list) else body.get("images")
    if not isinstance(content, list):
        return None
    found = [block for block in content if isinstance(block, str) or (isinstance(block, dict) and "text" not in block)]
    return {"pictures": replace_images(found)} if found else None


def _build_summary(call: AgentCall, outcome: CodexOutcome | None) -> str:
    if outcome is not None and outcome.diff is not None:
        paths = [effect.partition(" ")[2] for effect in outcome.effects if not effect.startswith("ran ")]
        return f"{call.tool}: {first_line(', '.join(paths))} {format_line_counts(outcome.diff)}"
    # The object of the call: its command, an argument that names it, or the files of its patch.
    names = ("query", "url", "pattern", "path", "message", "prompt", "objective", "chars")
    subject = command_line(call.arguments) or first_text(call.arguments, *names)
    subject = subject or first_text(call.arguments.get("action"), *names)
    if not subject and isinstance(given := call.arguments.get("input"), str) and (patch := read_patch(given)):
        subject = ", ".join(path for _, path in patch.changes)
    line = f"{call.tool}: {first_line(subject)}" if first_line(subject) else call.tool
    code = outcome.result.get("exit_code") if outcome is not None and isinstance(outcome.result, dict) else None
    return f"{line} (exit {code})" if code and call.tool in SHELL_TOOLS else line


CALL_KINDS = (
    "response_item.function_call",
    "response_item.custom_tool_call",
    "response_item.local_shell_call",
    "response_item.tool_search_call",
    "response_item.web_search_call",
    "response_item.image_generation_call",
)


class CodexCall(NamedTuple):
    """A call as a rollout writes it."""

    tool: str
    id: Any
    arguments: Any
    output: Any = NO_OUTPUT
    """The result, if the call itself has it."""


def read_call(kind: str, body: Mapping[str, Any]) -> CodexCall:
    """Read a call of one of `CALL_KINDS`."""
    name, call_id = body.get("name"), body.get("call_id")
    if kind == "response_item.function_call":
        tool, space = name if isinstance(name, str) else "function", body.get("namespace")
        # Newer versions write the server of an MCP tool apart from its name. Aver uses `mcp__server__tool` for all.
        if isinstance(space, str) and space.startswith("mcp__") and not tool.startswith(space):
            tool = f"{space.rstrip('_')}__{tool}"
        return CodexCall(tool, call_id, parse_embedded_json(body.get("arguments")))
    if kind == "response_item.custom_tool_call":
        return CodexCall(name if isinstance(name, str) else "custom", call_id, body.get("input"))
    if kind == "response_item.local_shell_call":
        return CodexCall("local_shell", call_id or body.get("id"), body.get("action"))
    if kind == "response_item.tool_search_call":
        return CodexCall("tool_search", call_id or body.get("id"), parse_embedded_json(body.get("arguments")))
    if kind == "response_item.web_search_call":
        # The provider searches, so the rollout has the status of the search but not its results.
        done = {"status": body.get("status") or "completed"}
        return CodexCall("web_search", body.get("id"), {"action": body.get("action")}, done)
    image = body.get("result")
    picture = digest_reference(image, "image") if isinstance(image, str) else None
    done = {"status": body.get("status"), "picture": picture}
    return CodexCall("image_generation", body.get("id"), {"revised_prompt": body.get("revised_prompt")}, done)

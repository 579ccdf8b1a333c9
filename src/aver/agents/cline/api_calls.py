"""The calls in Cline's API history, and their results.

A message of the assistant has calls as `tool_use` blocks with an id. For models without tool use, a call is XML in the
text, and the text of the next message has its result:

    {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_c2", "name": "execute_command", "input": {…}}]}
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_c2", "content": "Command executed.…"}]}

    <read_file>\\n<path>src/p.py</path>\\n</read_file>
    [read_file for 'src/p.py'] Result:\\n…

The messages that the user saw have no such id. `ApiHistory.find_call` finds the call of a message by the tool's name,
the arguments, and the place in the history that the message names. It never counts calls: Cline shows browser and MCP
calls in another way, so that one difference would shift all later calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

from aver.fast_dataclass import dataclass
from aver.ingest.attachments import replace_images
from aver.ingest.foreign_json import content_text, parse_embedded_json

SPEECH_TOOLS = frozenset(
    {
        *("attempt_completion", "ask_followup_question", "plan_mode_respond", "act_mode_respond", "new_task"),
        *("condense", "summarize_task", "report_bug", "focus_chain", "task_progress"),
    }
)
"""Tools by which the model speaks to the user. Cline shows their text as a message, so they are no actions."""

_XML_TOOLS = (
    *("execute_command", "read_file", "write_to_file", "replace_in_file", "apply_patch", "search_files", "list_files"),
    *("list_code_definition_names", "browser_action", "use_mcp_tool", "access_mcp_resource", "web_fetch", "web_search"),
    *("load_mcp_documentation", "generate_explanation", "new_rule", "use_skill", "use_subagents", "delete_file"),
    *sorted(SPEECH_TOOLS),
)
_GREEDY_PARAMETERS = ("content", "diff", "arguments", "result", "response", "input")
"""Parameters whose text may contain their own closing tag. The parser takes the last closing tag for them."""

_OPENING = re.compile(rf"<({'|'.join(_XML_TOOLS)})>")
_PARAMETER = re.compile(r"\s*<([a-z_]{1,40})>")
_RESULT = re.compile(r"\s*\[([A-Za-z0-9_.-]{1,120})(.*?)\] Result:(?:\n|$)", re.DOTALL).match
_DETAILS = re.compile(r"\s*<environment_details>").match
_DIRECTORY = re.compile(r"# Current Working Directory \(([^)\n]{1,1024})\)").search

UNTAKEN_MAX = 64
"""The newest calls among which Aver looks for the one that a message shows. It is one of the last few."""

DETAILS_SEARCH_MAX = 20_000
"""Characters of a message in which Aver looks for the working directory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiCall:
    """A call as the model made it."""

    id: str
    """Empty for a call in XML."""
    name: str
    arguments: Mapping[str, Any]
    index: int
    """The index of its message in the history."""
    number: int
    """Its number among the calls of that message, from 0."""
    serial: int
    """Its number among all calls. Unlike `index` it is unique: a restored checkpoint lets Cline use an index again."""
    thinking: str = ""
    signatures: tuple[str, ...] = ()
    redacted: bool = False

    @property
    def place(self) -> str:
        return f"api:{self.index}"


class ApiResult(NamedTuple):
    """A result, and the place of its record."""

    content: Any
    is_error: bool
    place: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallQuery:
    """The facts in a shown message that identify its call."""

    names: frozenset[str]
    arguments: Mapping[str, str]
    """The arguments that must be the same: name and value."""
    content: str = ""
    history: int | None = None
    """The index of the last message in the history when Cline showed the call. The next message has the call."""


class ApiHistory:
    """The calls and results so far, and which calls have become events."""

    def __init__(self) -> None:
        self.last_index = -1
        self.directory: str | None = None
        self._count = 0
        self._untaken: dict[int, ApiCall] = {}
        self._results: dict[int, ApiResult] = {}
        self._ids: dict[str, ApiCall] = {}
        self._in_xml: dict[int, list[ApiCall]] = {}

    def add(self, index: int, message: Any) -> None:
        role = message.get("role") if isinstance(message, dict) else None
        content = message.get("content") if isinstance(message, dict) else None
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        blocks = [block for block in blocks if isinstance(block, dict)]
        self.last_index = max(self.last_index, index)
        if role == "assistant":
            calls = list(_parse_calls(index, blocks, self._count))
            self._count += len(calls)
            in_xml = [call for call in calls if not call.id]
            if in_xml:
                before = [(call.name, call.arguments) for call in self._in_xml.get(index, ())]
                if before == [(call.name, call.arguments) for call in in_xml]:
                    return  # Cline wrote the same message again. Calls in XML have no id that would show this.
                self._in_xml[index] = in_xml
            for call in calls:
                if call.id and call.id in self._ids:
                    continue
                if call.id:
                    self._ids[call.id] = call
                if call.name not in SPEECH_TOOLS:
                    self._untaken[call.serial] = call
        elif role == "user":
            place = f"api:{index}"
            for block in blocks:
                answered = self._ids.get(str(block.get("tool_use_id"))) if block.get("type") == "tool_result" else None
                if answered is not None:
                    result = ApiResult(_simplify_content(block.get("content")), block.get("is_error") is True, place)
                    self._results.setdefault(answered.serial, result)
            recent = [*self._in_xml.get(index - 2, ()), *self._in_xml.get(index - 1, ())]
            # Results of calls in XML have no id. The head of a result names the tool and describes its arguments.
            for name, described, results_content in _parse_xml_results(blocks):
                waiting = [call for call in recent if call.name == name and call.serial not in self._results]
                fits = [call for call in waiting if any(str(value) in described for value in call.arguments.values())]
                if chosen := (fits or waiting)[:1]:
                    self._results[chosen[0].serial] = ApiResult(results_content, False, place)
            if self.directory is None and (found := _DIRECTORY(content_text(blocks)[:DETAILS_SEARCH_MAX])):
                self.directory = found[1]

    def find_result(self, call: ApiCall) -> ApiResult | None:
        return self._results.get(call.serial)

    def has_passed(self, call: ApiCall) -> bool:
        """Whether a call has its result, or a later message of the model shows that none will come."""
        return call.serial in self._results or self.last_index >= call.index + 2

    def untaken_calls(self) -> list[ApiCall]:
        """Return the calls that are no events yet, without those of `SPEECH_TOOLS`."""
        return list(self._untaken.values())

    def take(self, call: ApiCall) -> None:
        self._untaken.pop(call.serial, None)

    def find_call(self, shown: CallQuery) -> ApiCall | None:
        """Return the call of a shown message; None if no call surely fits."""
        newest = list(islice(reversed(self._untaken.values()), UNTAKEN_MAX))
        named = [call for call in reversed(newest) if _matches_name(shown, call)]
        if shown.history is None:
            return _best_match(shown, named)
        there = [call for call in named if call.index == shown.history + 1]
        if found := _best_match(shown, there) or (there[0] if len(there) == 1 else None):
            return found
        return _best_match(shown, [call for call in named if call.index >= shown.history])


def parse_xml_calls(text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the calls in XML in a text: name and parameters."""
    at = 0
    while opening := _OPENING.search(text, at):
        name = opening[1]
        end = text.find(f"</{name}>", opening.end())
        if name in ("write_to_file", "replace_in_file", "apply_patch"):
            end = max(end, text.rfind(f"</{name}>"))  # The file's content may contain the closing tag.
        if end < 0:
            return
        yield name, dict(_parse_parameters(text[opening.end() : end]))
        at = end + len(name) + 3


def _parse_parameters(body: str) -> Iterator[tuple[str, Any]]:
    at = 0
    while opening := _PARAMETER.match(body, at):
        name = opening[1]
        closing = f"</{name}>"
        end = body.rfind(closing, opening.end()) if name in _GREEDY_PARAMETERS else body.find(closing, opening.end())
        if end < 0:
            return
        yield name, body[opening.end() : end].strip("\n")
        at = end + len(closing)


def _parse_calls(index: int, blocks: list[dict[str, Any]], serial: int) -> Iterator[ApiCall]:
    thinking = [block for block in blocks if block.get("type") in ("thinking", "redacted_thinking")]
    thought = "\n".join(text for block in thinking if isinstance(text := block.get("thinking"), str) and text)
    signed = (block.get("signature") or block.get("data") for block in thinking)
    about: dict[str, Any] = {
        "thinking": thought,
        "signatures": tuple(value for value in signed if isinstance(value, str) and value),
        "redacted": bool(thinking) and not thought,
    }
    found = [_parse_tool_use(block) for block in blocks if block.get("type") == "tool_use"]
    if not found:
        texts = (block.get("text") for block in blocks if block.get("type") == "text")
        found = [("", *call) for text in texts if isinstance(text, str) for call in parse_xml_calls(text)]
    for number, (identity, name, arguments) in enumerate(found):
        yield ApiCall(
            id=identity,
            name=name,
            arguments=arguments,
            index=index,
            number=number,
            serial=serial + number,
            **about,
        )
        about = {}


def _parse_tool_use(block: dict[str, Any]) -> tuple[str, str, dict[str, Any]]:
    asked = parse_embedded_json(block.get("input"))
    arguments = asked if isinstance(asked, dict) else {} if asked in (None, "") else {"raw": asked}
    identity = block.get("id")
    return identity if isinstance(identity, str) else "", str(block.get("name") or "tool"), arguments


def _parse_xml_results(blocks: list[dict[str, Any]]) -> Iterator[tuple[str, str, Any]]:
    """Yield the results in text blocks: the tool's name, the description of the call, and the content."""
    header: tuple[str, str] | None = None
    parts: list[Any] = []
    for block in blocks:
        text = block.get("text") if block.get("type") == "text" else None
        if isinstance(text, str) and (found := _RESULT(text)):
            if header is not None:
                yield (*header, _join_parts(parts))
            header, parts = (found[1], found[2]), [text[found.end() :]] if text[found.end() :] else []
        elif header is not None and isinstance(text, str) and _DETAILS(text):
            yield (*header, _join_parts(parts))
            header = None
        elif header is not None:
            parts.append(text if isinstance(text, str) else replace_images(block))
    if header is not None:
        yield (*header, _join_parts(parts))


def _join_parts(parts: list[Any]) -> Any:
    return "\n".join(parts) if all(isinstance(part, str) for part in parts) else parts


def _simplify_content(content: Any) -> Any:
    if isinstance(content, list) and all(isinstance(item, dict) and item.get("type") == "text" for item in content):
        return content_text(content)
    return replace_images(content)


def _best_match(shown: CallQuery, calls: list[ApiCall]) -> ApiCall | None:
    """Return the first call with the same arguments. A call that also has the same content comes before others."""
    same = [call for call in calls if _matches_arguments(shown, call)]
    exact = [call for call in same if shown.content and _has_content(call, shown.content)]
    return next(iter(exact or same), None)


def _matches_name(shown: CallQuery, call: ApiCall) -> bool:
    if call.name in shown.names:
        return True
    # The model may call an MCP tool directly, by a longer name that ends with the name of the tool.
    tool = shown.arguments.get("tool_name")
    return "use_mcp_tool" in shown.names and bool(tool) and call.name.endswith(str(tool))


def _matches_arguments(shown: CallQuery, call: ApiCall) -> bool:
    if call.name not in shown.names:
        return True
    return all(_is_same_value(value, call.arguments.get(name)) for name, value in shown.arguments.items() if value)


def _is_same_value(shown: str, asked: Any) -> bool:
    if not isinstance(asked, str):
        return asked is not None and shown == str(asked)
    item, other = _normalize_path(shown), _normalize_path(asked)
    return (
        item == other
        or item.endswith(f"/{other}")
        or other.endswith(f"/{item}")
        or parse_embedded_json(item) == parse_embedded_json(other)
    )


def _normalize_path(text: str) -> str:
    return text.strip().replace("\\", "/").removeprefix("./").rstrip("/")


def _has_content(call: ApiCall, content: str) -> bool:
    return any(isinstance(value, str) and value.strip() == content.strip() for value in call.arguments.values())

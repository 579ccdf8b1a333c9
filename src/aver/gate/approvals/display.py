"""The text that a person sees before voting on a request. Its digest is `shown` in the signed vote. Pure.

All text from the request comes after a bar (`|`), so it cannot pass for Aver's own text. A `:` in place of the bar
continues a long line. Nothing is left out silently: if a part is cut, a line says how much is missing, and
`RequestDisplay.cut` tells the program.

The text is signed and stored, so every change to it changes what people sign.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from aver.fast_dataclass import dataclass
from aver.gate.action import is_description_needed
from aver.gate.approvals.request import STATEMENT_VERSION, UNBOUND_VERSION, ApprovalRequest
from aver.gate.approvals.vote import RequestState
from aver.gate.decision_record import read_figure
from aver.text import count_unusual_characters, escape_invisible

GLANCE_LINES = 60
"""Lines of each part in a short overview."""

WHOLE_LINES = 100_000
"""Lines of each part that a person sees before voting: in practice all of them."""

LINE_WIDTH = 300
"""Characters of a line before it continues on the next."""

DEPTH_MAX = 20
"""Levels of nested arguments that are indented. Deeper values are written as JSON."""

_BAR, _CONTINUATION = "  | ", "  : "
_STYLES = {"+": "good", "-": "bad", "@": "dim"}


@dataclass(frozen=True, slots=True)
class DisplayLine:
    """One line. `style` is for terminals and not part of the signed text."""

    text: str
    style: str = ""


@dataclass(frozen=True, slots=True)
class RequestDisplay:
    """The text for a person. `cut` is the number of lines that were left out."""

    lines: tuple[DisplayLine, ...]
    cut: int

    @property
    def text(self) -> str:
        return "".join(f"{line.text}\n" for line in self.lines)

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.text.encode("utf-8")).hexdigest()


def render_request(
    request: ApprovalRequest,
    action: Mapping[str, Any],
    diff: str | None,
    state: RequestState,
    *,
    limit: int,
    comment: str = "",
    scope: str = "",
    uses: int = 0,
    rule: str = "",
) -> RequestDisplay:
    """Render a request with at most `limit` lines of its arguments and of its diff.

    `scope` and `uses` are what the person chose for an approval. `rule` is the rule that it puts in force for good.
    """
    # Each part has a limit of its own, so that a long diff cannot push the arguments out of sight.
    arguments, arguments_cut = _limit_lines(_render_arguments(action.get("arguments")), limit, "arguments")
    changes, changes_cut = _limit_lines(_render_quoted((diff or "").removesuffix("\n").split("\n")), limit, "the diff")
    lines = [
        DisplayLine(f"request {request.id}", "strong"),
        *_render_facts(request, state),
        DisplayLine("the action", "strong"),
        *_render_action(action),
        *([DisplayLine("its arguments", "strong"), *arguments] if arguments else []),
        *([DisplayLine("its diff", "strong"), *_colour_diff(changes)] if diff else []),
        *_render_notes(action, diff),
        *([DisplayLine("your reason", "strong"), *_render_quoted(comment.split("\n"))] if comment else []),
        DisplayLine("what an answer is good for", "strong"),
        *_render_binding(request, action, scope or request.scope, uses or request.uses),
        *([DisplayLine("the rule that is put in force", "strong"), *_render_quoted(rule.split("\n"))] if rule else []),
        DisplayLine(f"digest {request.digest}", "strong"),
    ]
    return RequestDisplay(
        tuple(DisplayLine(line.text.rstrip(), line.style) for line in lines), arguments_cut + changes_cut
    )


def _render_facts(request: ApprovalRequest, state: RequestState) -> Iterator[DisplayLine]:
    """Render the state, the levels, the risk, and the reasons why a person is asked."""
    yield DisplayLine(f"  opened {request.opened}, expires {request.expires} (UTC)")
    yield DisplayLine(f"  {state.state}{': ' if state.reason else ''}{escape_invisible(state.reason)}")
    for number, level in enumerate(request.levels, 1):
        who = ", ".join(level.approvers) or "no enrolled person"
        since = f", after {level.after} seconds" if level.after else ""
        yield DisplayLine(f"  level {number}{since}: {level.quorum} of {who}")
    risk: Any = request.content.get("risk")
    try:
        score, low, high, seen = (read_figure(risk[name]) for name in ("score", "low", "high", "observations"))
        estimate = f"{score:.3f}, between {low:.3f} and {high:.3f}, from {int(seen)} outcomes here"
    except (KeyError, TypeError, ValueError):
        estimate = "not estimated"
    yield DisplayLine(f"  risk {estimate}")
    yield DisplayLine("why a person is asked", "strong")
    for name in ("reasons", "rules"):
        listed = request.content.get(name)
        for item in listed if isinstance(listed, list) else []:
            words = str(item) if name == "reasons" else f"rule {item}"
            yield from _render_quoted(words.split("\n"))


def _render_binding(
    request: ApprovalRequest, action: Mapping[str, Any], scope: str, uses: int
) -> Iterator[DisplayLine]:
    """Render what the statement names besides the action: ledger, tenant, request, session, uses and end."""
    if request.statement == UNBOUND_VERSION:
        words = "an earlier version of Aver opened this request: an answer names no ledger, tenant or request"
        yield DisplayLine(f"  {words}, and the gate asks anew", "warn")
        return
    yield DisplayLine(f"  ledger {request.ledger}, tenant {request.tenant}")
    yield DisplayLine(f"  request {request.id}")
    # The caller chose the name of its session.
    yield from _render_quoted([f"scope: {scope}"])
    if request.statement != STATEMENT_VERSION:
        yield DisplayLine(
            "  an earlier version of Aver opened this request: the gate takes no answer to it, and asks anew", "warn"
        )
    yield DisplayLine(f"  {'once' if uses == 1 else f'{uses} times'}, until {request.expires} (UTC)")
    beside = request.content.get("beside")
    left_out = beside.get("arguments") if isinstance(beside, Mapping) else None
    if isinstance(left_out, Mapping) and left_out:
        yield from _render_quoted([f"whatever the agent writes as its {', '.join(sorted(map(str, left_out)))}"])
    if request.statement == STATEMENT_VERSION and action.get("description") and not is_description_needed(action):
        yield DisplayLine("  however the agent describes it")


def _render_action(action: Mapping[str, Any]) -> Iterator[DisplayLine]:
    for name in ("type", "tool", "description", "caller", "on_behalf_of", "session", "workspace", "request_sha256"):
        if action.get(name):
            yield from _render_field(name, action[name], 0)
    files = action.get("files")
    for path in files if isinstance(files, list) else []:
        yield from _render_field("file", path, 0)


def _render_arguments(arguments: Any) -> Iterator[DisplayLine]:
    for name, value in arguments.items() if isinstance(arguments, Mapping) else ():
        yield from _render_field(str(name), value, 0)


def _render_field(name: str, value: Any, depth: int) -> Iterator[DisplayLine]:
    """Render a name and a value: a short value beside the name, several lines below it, nested values indented."""
    # `name` and `value` come from the agent: everything goes through `_render_quoted`.
    before = "  " * depth + name
    if isinstance(value, str):
        if "\n" in value:
            yield from _render_quoted([f"{before}:"])
            yield from _render_quoted("  " * (depth + 1) + line for line in value.split("\n"))
        else:
            # Quote a text that looks like another JSON value, so that `"3"` and `3` look different.
            try:
                json.loads(value)
            except (ValueError, RecursionError):
                shown = value if value and value == value.strip() else json.dumps(value, ensure_ascii=False)
            else:
                shown = json.dumps(value, ensure_ascii=False)
            yield from _render_quoted([f"{before}: {shown}"])
    elif isinstance(value, Mapping) and value and depth < DEPTH_MAX:
        yield from _render_quoted([f"{before}:"])
        for inner, item in value.items():
            yield from _render_field(str(inner), item, depth + 1)
    elif isinstance(value, list) and value and depth < DEPTH_MAX:
        for index, item in enumerate(value):
            yield from _render_field(f"{name}[{index}]", item, depth)
    else:
        yield from _render_quoted([f"{before}: {json.dumps(value, ensure_ascii=False)}"])


def _render_quoted(lines: Iterable[str]) -> Iterator[DisplayLine]:
    """Render lines from outside, each behind a bar."""
    for line in lines:
        # Escaped before it is cut, so that the width counts what a person sees.
        text = escape_invisible(line)
        yield DisplayLine(_BAR + text[:LINE_WIDTH])
        for start in range(LINE_WIDTH, len(text), LINE_WIDTH):
            yield DisplayLine(_CONTINUATION + text[start : start + LINE_WIDTH])


def _limit_lines(lines: Iterable[DisplayLine], limit: int, what: str) -> tuple[list[DisplayLine], int]:
    kept = list(lines)
    # The whole part is rendered first: the note must say how much is missing.
    cut = max(len(kept) - limit, 0)
    if cut:
        characters = sum(len(line.text) - len(_BAR) for line in kept[limit:])
        kept[limit:] = [DisplayLine(f"  [cut here: {cut:,} more lines of {what}, {characters:,} characters]", "warn")]
    return kept, cut


def _colour_diff(lines: Iterable[DisplayLine]) -> Iterator[DisplayLine]:
    # A continued line keeps the style of the line that it continues.
    style = ""
    for line in lines:
        if line.text.startswith(_BAR):
            style = _STYLES.get(line.text[len(_BAR) : len(_BAR) + 1], "")
        yield DisplayLine(line.text, line.style or style)


def _render_notes(action: Mapping[str, Any], diff: str | None) -> Iterator[DisplayLine]:
    """Render notes about invisible and non-ASCII characters in the quoted text."""
    texts = [diff or ""]
    waiting: list[Any] = [action]  # a stack instead of recursion: the action decides how deep it is nested
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            texts.append(item)
        elif isinstance(item, Mapping):
            waiting += [*item.keys(), *item.values()]
        elif isinstance(item, list):
            waiting += item
    found = [count_unusual_characters(text) for text in texts]
    hidden, foreign = sum(count.hidden for count in found), sum(count.foreign for count in found)
    if hidden:
        words = f"  note: {hidden} characters that cannot be seen, or change how others are seen, are written <U+....>"
        yield DisplayLine(words, "warn")
    if foreign:
        yield DisplayLine(f"  note: {foreign} characters are not ASCII and may look like others", "warn")

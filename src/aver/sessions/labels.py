"""The words for the parts of a session, shared by the terminal and the HTML page. Nothing is escaped here."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from aver.sessions.figures import SessionTotals
from aver.sessions.step import Consumption, Step, is_blob_reference
from aver.text import plural

ARGUMENTS_MAX = 160
"""Characters of the arguments that are added to a summary that does not name them."""

_DENIED_SUFFIX = " (denied)"
_REFUSED_BY = {"human_approved": "by a person", "policy": "by a rule"}
_DECISION_LABELS = {
    "pass": "allowed",
    "human_approved": "allowed by a person",
    "human_review": "needs approval",
    "skip": "denied",
    "skipped": "denied, asked too often",
}
_UNNAMED_OUTPUTS = ("stdout", "output", "content", "text")
_OUTPUTS = (*_UNNAMED_OUTPUTS, "stderr")
_EMPTY_VALUES: tuple[Any, ...] = (None, "", [], {})


def total_labels(session: SessionTotals) -> Iterator[str]:
    """The totals of a session. Zeros and unknown values are left out."""
    yield plural(session.actions, "action")
    if session.edits:
        yield f"{plural(session.edits, 'edit')} (+{session.lines_added}/-{session.lines_removed})"
    for number, noun in (
        (session.commands, "command"),
        (session.failures, "failure"),
        (session.denials, "denial"),
        (session.subagents, "subagent"),
        (session.unknown, "unknown record"),
        (session.unreadable, "unreadable record"),
    ):
        if number:
            yield plural(number, noun)
    if tokens := _tokens_label(session.tokens_in, session.tokens_out):
        yield f"tokens: {tokens}"
    if session.cost_usd is not None:
        yield format_money(session.cost_usd)
    yield from session.models
    yield plural(session.records, "record")
    if session.imported:
        yield "imported"


def step_summary(step: Step) -> str:
    """One line that describes a step."""
    summary = " ".join(step.summary.split()) or step.call or step.what
    if summary == step.call and step.arguments:
        summary = f"{summary}: {shorten_arguments(step.arguments)}"
    return f"denied: {summary.removesuffix(_DENIED_SUFFIX)}" if step.status == "blocked" else summary


def shorten_arguments(arguments: Any) -> str:
    """The arguments of a call on one line. A single text argument stands without its name."""
    only = list(arguments.values()) if isinstance(arguments, dict) else []
    commands = arguments.get("commands") if isinstance(arguments, dict) and len(arguments) == 1 else None
    if isinstance(commands, list) and all(isinstance(command, str) for command in commands):
        only = ["; ".join(commands)]  # Cline's list of commands, as in a shell.
    text = only[0] if len(only) == 1 and isinstance(only[0], str) else json.dumps(arguments, ensure_ascii=False)
    line = " ".join(text[: 2 * ARGUMENTS_MAX].split())
    return line if len(line) <= ARGUMENTS_MAX else f"{line[: ARGUMENTS_MAX - 1]}…"


def step_details(step: Step) -> str:
    """Who allowed a call, how long it took and what it cost, as far as known."""
    took = step.duration_ms
    known = [
        authority_label(step),
        "" if took is None else f"{took / 1000:.1f} s" if took >= 1000 else f"{took} ms",
        consumption_label(step.spent),
    ]
    return " · ".join(filter(None, known))


def authority_label(step: Step) -> str:
    """Who or what allowed or refused a step; empty if not known."""
    words = "" if step.authority == "unknown" else step.authority.replace("_", " ")
    if step.status == "blocked":
        words = _REFUSED_BY.get(step.authority, "")
    return f"{words} ({step.rule})" if words and step.rule else words or step.rule


def decision_label(decision: str) -> str:
    """A decision of the gate in words for people."""
    return _DECISION_LABELS.get(decision, decision)


def consumption_label(spent: Consumption) -> str:
    """Tokens and money, as far as known."""
    cost = "" if spent.cost_usd is None else format_money(spent.cost_usd)
    return ", ".join(filter(None, (_tokens_label(spent.tokens_in, spent.tokens_out), cost)))


def _tokens_label(went_in: int | None, came_out: int | None) -> str:
    known = ("" if went_in is None else f"{went_in:,} in", "" if came_out is None else f"{came_out:,} out")
    return ", ".join(filter(None, known))


def format_money(dollars: float) -> str:
    return f"${dollars:.2f}" if dollars >= 0.01 or dollars == 0 else "<$0.01"


class LabelledText(NamedTuple):
    """A text from a value, with its name if it needs one. `aside` marks minor facts on one line."""

    name: str
    text: str
    aside: bool = False


def labelled_texts(value: Any) -> Iterator[LabelledText]:
    """A value as texts: first the outputs of a command, then other facts on one line."""
    if isinstance(value, list) and value and all(map(_is_query_result, value)):
        for result in value:
            # One of several results of a call, labelled with its query.
            name = result["query"] if result["success"] else f"{result['query']} (failed)"
            output, error = result.get("result"), str(result.get("error") or "")
            text = "" if output in _EMPTY_VALUES else _value_text(output)
            yield LabelledText(name, text if error in text else f"{text}\n{error}".strip("\n"))
        return
    if not isinstance(value, dict) or is_blob_reference(value):
        if value not in _EMPTY_VALUES:
            yield LabelledText("", _value_text(value), aside=not isinstance(value, str))
        return
    # A text counts as output if its name says so or if it has several lines. Unnamed outputs come first.
    outputs = {
        name: item
        for name, item in value.items()
        if isinstance(item, str) and (name in _OUTPUTS or "\n" in item.strip())
    }
    texts = dict(sorted(outputs.items(), key=lambda output: output[0] not in _UNNAMED_OUTPUTS))
    for name, item in texts.items():
        # Two outputs are often the same text, one with a few words before it. Only the longer one is shown.
        if item.strip() and not any(other.strip().endswith(f"\n{item.strip()}") for other in texts.values()):
            yield LabelledText("" if name in _UNNAMED_OUTPUTS else str(name), item)
    others = {name: item for name, item in value.items() if name not in texts and item not in _EMPTY_VALUES}
    rest = [f"{str(name).replace('_', ' ')} {_value_text(item)}" for name, item in others.items()]
    if rest:
        yield LabelledText("", ", ".join(rest), aside=True)


def _is_query_result(value: Any) -> bool:
    """Whether the value is one of Cline's results: `{query, result, success, error}`."""
    return isinstance(value, dict) and isinstance(value.get("query"), str) and isinstance(value.get("success"), bool)


def step_error(step: Step) -> str:
    """The error of a call; empty if there is none or if its summary already says it."""
    if step.error == "OUTCOME_UNKNOWN" or step.error.lower() == f"exit code {_summary_exit_code(step)}":
        return ""
    return step.error


def _summary_exit_code(step: Step) -> str:
    """The exit code in the summary of a call; empty if there is none."""
    found = re.search(r"\(exit (\d+)\)", step.summary)
    return found[1] if found else ""


def result_texts(step: Step, result: Any) -> Iterator[LabelledText]:
    """The result of a call, without what its summary and its error already say."""
    error = step.error.strip()
    if isinstance(result, dict) and str(result.get("exit_code")) == _summary_exit_code(step):
        result = {name: value for name, value in result.items() if name != "exit_code"}
    if _is_query_result(result):
        result = {name: value for name, value in result.items() if not _is_in_summary(step, name, value)}
    for part in labelled_texts(result):
        if not error or part.text.strip().removeprefix("result ") != error:
            yield part


def _is_in_summary(step: Step, name: str, value: Any) -> bool:
    """Whether the summary of a call already says this part of its result."""
    if name == "query":
        summary = step_summary(step)
        return any(" ".join(words.split()) in summary for words in (value, value.partition(":")[2]) if words)
    return name == "success" or (name == "error" and value == step.error)


def is_beyond_summary(step: Step, text: str) -> bool:
    """Whether the text of a note says more than its summary."""
    return not step_summary(step).endswith(" ".join(text.split()))


def _value_text(value: Any) -> str:
    if is_blob_reference(value):
        blob = value["blob"]
        return f"{blob['size']:,} bytes of {blob.get('media')}, stored as a blob, sha256 {blob['digest']}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

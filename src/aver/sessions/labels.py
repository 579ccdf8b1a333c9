"""What a session's parts are called for people: the same words on a screen and on a page. Nothing here is escaped."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from aver.sessions.sessions import SessionTotals
from aver.sessions.spending import Consumption
from aver.sessions.step import Step, is_blob_reference
from aver.text import plural

__all__ = [
    "LabelledText",
    "authority_label",
    "consumption_label",
    "format_money",
    "labelled_texts",
    "shorten_arguments",
    "step_details",
    "step_error",
    "step_summary",
    "total_labels",
]

ARGUMENTS_MAX = 160
"""Characters of arguments that stand on the line of a call whose summary does not tell them."""

_DENIED_SUFFIX = " (denied)"
_REFUSED_BY = {"human_approved": "by a person", "policy": "by a rule"}
_UNNAMED_OUTPUTS = ("stdout", "output", "content", "text")
_OUTPUTS = (*_UNNAMED_OUTPUTS, "stderr")
_EMPTY_VALUES: tuple[Any, ...] = (None, "", [], {})


def total_labels(session: SessionTotals) -> Iterator[str]:
    """What a session comes to: only what there is."""
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
    """The line by which a step is told."""
    summary = " ".join(step.summary.split()) or step.call or step.what
    if summary == step.call and step.arguments:
        summary = f"{summary}: {shorten_arguments(step.arguments)}"
    return f"denied: {summary.removesuffix(_DENIED_SUFFIX)}" if step.status == "blocked" else summary


def shorten_arguments(arguments: Any) -> str:
    """Arguments on one line; the only one, where there is but one, without its name. Several commands as a shell's."""
    only = list(arguments.values()) if isinstance(arguments, dict) else []
    if isinstance(arguments, dict) and list(arguments) == ["commands"] and _is_text_list(only[0]):
        only = ["; ".join(only[0])]
    text = only[0] if len(only) == 1 and isinstance(only[0], str) else json.dumps(arguments, ensure_ascii=False)
    line = " ".join(text[: 2 * ARGUMENTS_MAX].split())
    return line if len(line) <= ARGUMENTS_MAX else f"{line[: ARGUMENTS_MAX - 1]}…"


def _is_text_list(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def step_details(step: Step) -> str:
    """Who allowed it, how long it took, what it cost: as far as that is known."""
    took = step.duration_ms
    known = [
        authority_label(step),
        "" if took is None else f"{took / 1000:.1f} s" if took >= 1000 else f"{took} ms",
        consumption_label(step.spent),
    ]
    return " · ".join(filter(None, known))


def authority_label(step: Step) -> str:
    """Who or what allowed it, or refused it; nothing where that is not known."""
    words = "" if step.authority == "unknown" else step.authority.replace("_", " ")
    if step.status == "blocked":
        words = _REFUSED_BY.get(step.authority, "")
    return f"{words} ({step.rule})" if words and step.rule else words or step.rule


def consumption_label(spent: Consumption) -> str:
    cost = "" if spent.cost_usd is None else format_money(spent.cost_usd)
    return ", ".join(filter(None, (_tokens_label(spent.tokens_in, spent.tokens_out), cost)))


def _tokens_label(went_in: int | None, came_out: int | None) -> str:
    known = ("" if went_in is None else f"{went_in:,} in", "" if came_out is None else f"{came_out:,} out")
    return ", ".join(filter(None, known))


def format_money(dollars: float) -> str:
    return f"${dollars:.2f}" if dollars >= 0.01 or dollars == 0 else "<$0.01"


class LabelledText(NamedTuple):
    """A text out of a value; its name, where it needs one; and whether it is only what else is known, on one line."""

    name: str
    text: str
    aside: bool = False


def labelled_texts(value: Any) -> Iterator[LabelledText]:
    """A value as texts: what a command said, and then what else is known of it."""
    if isinstance(value, list) and value and all(map(_is_query_result, value)):
        for one in value:
            yield from _query_result_texts(one)
        return
    if not isinstance(value, dict) or is_blob_reference(value):
        if value not in _EMPTY_VALUES:
            yield LabelledText("", _value_text(value), aside=not isinstance(value, str))
        return
    outputs = {name: item for name, item in value.items() if isinstance(item, str) and _is_output(name, item)}
    texts = dict(sorted(outputs.items(), key=lambda output: output[0] not in _UNNAMED_OUTPUTS))
    for name, item in texts.items():
        # What a person saw and what the model was told of it are often one text, with some words before it in one.
        if item.strip() and not any(other.strip().endswith(f"\n{item.strip()}") for other in texts.values()):
            yield LabelledText("" if name in _UNNAMED_OUTPUTS else str(name), item)
    others = {name: item for name, item in value.items() if name not in texts and item not in _EMPTY_VALUES}
    rest = [f"{str(name).replace('_', ' ')} {_value_text(item)}" for name, item in others.items()]
    if rest:
        yield LabelledText("", ", ".join(rest), aside=True)


def _is_query_result(value: Any) -> bool:
    """Whether this is what came of one thing that a call did, as Cline tells it: `{query, result, success, error}`."""
    return isinstance(value, dict) and isinstance(value.get("query"), str) and isinstance(value.get("success"), bool)


def _query_result_texts(done: dict[str, Any]) -> Iterator[LabelledText]:
    """One of several things that a call did, under what was asked for."""
    name = done["query"] if done["success"] else f"{done['query']} (failed)"
    said = done.get("result")
    said = said if isinstance(said, str) else "" if said in _EMPTY_VALUES else _value_text(said)
    error = str(done.get("error") or "")
    yield LabelledText(name, said if error in said else f"{said}\n{error}".strip("\n"))


def step_error(step: Step) -> str:
    """Why a call failed, unless its line has said all of it; nothing where it did not fail."""
    if step.error == "OUTCOME_UNKNOWN" or step.error.lower() == f"exit code {_summary_exit_code(step)}":
        return ""
    return step.error


def _summary_exit_code(step: Step) -> str:
    """The exit code that stands on the line of a call."""
    found = re.search(r"\(exit (\d+)\)", step.summary)
    return found[1] if found else ""


def result_texts(step: Step, result: Any) -> Iterator[LabelledText]:
    """What a call gave back, without what its line and its error have said already."""
    error = step.error.strip()
    if isinstance(result, dict) and str(result.get("exit_code")) == _summary_exit_code(step):
        result = {name: value for name, value in result.items() if name != "exit_code"}
    if _is_query_result(result):
        result = {name: value for name, value in result.items() if not _is_in_summary(step, name, value)}
    for part in labelled_texts(result):
        if not error or part.text.strip().removeprefix("result ") != error:
            yield part


def _is_in_summary(step: Step, name: str, value: Any) -> bool:
    """Whether a call's line tells this of the one thing that it did."""
    if name == "query":
        summary = step_summary(step)
        return any(" ".join(words.split()) in summary for words in (value, value.partition(":")[2]) if words)
    return name == "success" or (name == "error" and value == step.error)


def is_beyond_summary(step: Step, text: str) -> bool:
    """Whether a note's text says more than the line by which it is told."""
    return not step_summary(step).endswith(" ".join(text.split()))


def _is_output(name: Any, text: str) -> bool:
    return name in _OUTPUTS or "\n" in text.strip()


def _value_text(value: Any) -> str:
    if is_blob_reference(value):
        kept = value["blob"]
        return f"{kept['size']:,} bytes of {kept.get('media')}, kept beside the record, sha256 {kept['digest']}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

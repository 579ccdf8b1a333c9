"""A capsule's six sections as text: only what is set, whoever wrote it and whatever its types."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from aver.capsule.aver_block import BLOCK_KEY
from aver.capsule.blobs import blob_references
from aver.capsule.model import (
    SECTIONS,
    Authority,
    Context,
    Execution,
    Option,
    Outcome,
    Reasoning,
    ToolCall,
    Trigger,
)
from aver.cli.terminal import Screen, StyledText, display_width
from aver.text import escape_unprintable

__all__ = ["print_fields", "print_sections", "print_value"]

LABEL_WIDTH = 18
"""Columns for a field's name."""

_INDENT = "  "


def print_sections(screen: Screen, content: Mapping[str, Any], *, only: str | None = None) -> None:
    """The sections of a capsule that say something, in their order; or one of them. Sections must be objects."""
    for name in SECTIONS:
        if only not in (None, name):
            continue
        said = _non_empty_fields(_drop_aver_block(content.get(name, {})), _FIELD_ORDER[name])
        if said or only is not None:
            screen.print_line()
            screen.print_line(StyledText(name, "strong"))
            _print_section(screen, said)


def _print_section(screen: Screen, section: Mapping[str, Any]) -> None:
    described = _option_descriptions(section.get("options"))
    for name, value in section.items():
        if name == "options" and isinstance(value, list):
            _print_options(screen, value)
        elif name == "tool_calls" and isinstance(value, list):
            _print_tool_calls(screen, value)
        elif name != "options_considered" or value != described:
            print_fields(screen, {name: value})


def print_fields(screen: Screen, values: Mapping[str, Any], *, indent: str = _INDENT) -> None:
    """Names and values: short ones side by side, long ones below each other, nested ones indented."""
    for name, value in values.items():
        label = f"{escape_unprintable(str(name)):<{LABEL_WIDTH}} "
        short = _format_inline(value)
        if short is not None and display_width(indent + label + short) <= screen.width:
            screen.print_line(indent, StyledText(label, "dim"), short)
        else:
            screen.print_line(indent, StyledText(label, "dim"))
            print_value(screen, value, indent=indent + _INDENT)


def print_value(screen: Screen, value: Any, *, indent: str) -> None:
    """Any JSON value, however long."""
    short = _format_inline(value)
    if isinstance(value, str):
        screen.print_wrapped(value, indent=indent)
    elif isinstance(value, Mapping) and short is None:
        print_fields(screen, value, indent=indent)
    elif isinstance(value, list) and value:
        for item in value:
            if isinstance(item, str):
                screen.print_wrapped(f"- {item}", indent=indent)
            elif (on_one_line := _format_inline(item)) is not None:
                screen.print_line(indent, "- ", on_one_line)
            else:
                screen.print_line(indent, "-")
                print_value(screen, item, indent=indent + _INDENT)
    else:
        screen.print_line(indent, short or "")


def _format_inline(value: Any) -> str | None:
    """The value on one line, if it has such a form."""
    if isinstance(value, str):
        return escape_unprintable(value) if value and "\n" not in value else None
    if isinstance(value, Mapping):
        return _format_blob(value) if value else "{}"
    if isinstance(value, list):
        return None if value else "[]"
    return json.dumps(value)


def _format_blob(value: Mapping[str, Any]) -> str | None:
    blobs = list(blob_references(value)) if value.keys() == {"blob"} else []
    if len(blobs) != 1:
        return None
    digest, size = blobs[0]
    return f"blob, {size:,} bytes, {escape_unprintable(str(value['blob'].get('media', '')))}, sha256 {digest}"


def _field_names(part: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(part) if field.name != "extra")


_FIELD_ORDER = {
    name: _field_names(part)
    for name, part in zip(SECTIONS, (Trigger, Context, Reasoning, Authority, Execution, Outcome), strict=True)
}
_ZERO_IS_UNSET = ("duration_ms", "confidence", "feasibility")


def _non_empty_fields(part: Mapping[str, Any], order: tuple[str, ...]) -> dict[str, Any]:
    """What is set of a part, in the order of the model; then what the model does not know."""
    names = [*(name for name in order if name in part), *(name for name in part if name not in order)]
    return {
        name: part[name]
        for name in names
        if part[name] not in (None, "", [], {}) and not (name in _ZERO_IS_UNSET and part[name] == 0)
    }


def _drop_aver_block(section: Mapping[str, Any]) -> Mapping[str, Any]:
    """Aver's own block is shown with the seal, not in the environment that it rides in."""
    environment = section.get("environment")
    return (
        {**section, "environment": _drop_keys(environment, BLOCK_KEY)} if isinstance(environment, Mapping) else section
    )


def _drop_keys(values: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in names}


def _option_descriptions(options: Any) -> list[Any]:
    options = options if isinstance(options, list) else []
    return [option.get("description") if isinstance(option, Mapping) else None for option in options]


def _print_options(screen: Screen, options: list[Any]) -> None:
    screen.print_line(_INDENT, StyledText("options", "dim"))
    inner = 3 * _INDENT
    for option in options:
        if not isinstance(option, Mapping):
            print_value(screen, option, indent=2 * _INDENT)
            continue
        said = _non_empty_fields(option, _field_names(Option))
        chosen = said.get("selected") is True
        word = StyledText("selected: ", "good") if chosen else StyledText("rejected: ", "dim")
        screen.print_line(2 * _INDENT, word, str(said.get("description") or said.get("id") or "(not described)"))
        for name, sign in (("pros", "+ "), ("cons", "- "), ("risks", "! ")):
            values = said.get(name)
            for item in values if isinstance(values, list) else []:
                screen.print_wrapped(f"{sign}{item}", indent=inner)
        if "rejection_reason" in said:
            screen.print_wrapped(f"because: {said['rejection_reason']}", indent=inner)
        shown = ("description", "pros", "cons", "risks", "selected", "rejection_reason")
        print_fields(screen, _drop_keys(said, *shown), indent=inner)


def _print_tool_calls(screen: Screen, calls: list[Any]) -> None:
    screen.print_line(_INDENT, StyledText("tool calls", "dim"))
    for call in calls:
        if not isinstance(call, Mapping):
            print_value(screen, call, indent=2 * _INDENT)
            continue
        said = _non_empty_fields(call, _field_names(ToolCall))
        worked = screen.status_mark("success" if said.get("success") is True else "failure")
        milliseconds = said.get("duration_ms")
        took = f"  {milliseconds:,} ms" if isinstance(milliseconds, int) else ""
        screen.print_line(2 * _INDENT, worked, f" {said.get('tool', '(no name)')}", StyledText(took, "dim"))
        print_fields(screen, _drop_keys(said, "tool", "success", "duration_ms"), indent=3 * _INDENT)

"""A capsule's six sections as text: only what is set, whoever wrote it and whatever its types."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from aver.capsule.blobs import blob_references
from aver.capsule.block import BLOCK
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
from aver.cli.output import Painted, Screen, safe, width_of

__all__ = ["print_content", "print_fields", "print_value"]

LABEL_WIDTH = 18
"""Columns for a field's name."""

_STEP = "  "


def print_content(screen: Screen, content: Mapping[str, Any], *, only: str | None = None) -> None:
    """The sections of a capsule that say something, in their order; or one of them. Sections must be objects."""
    for name in SECTIONS:
        if only not in (None, name):
            continue
        said = _set(_without_block(content.get(name, {})), _ORDER[name])
        if said or only is not None:
            screen.line()
            screen.line(Painted(name, "strong"))
            _print_section(screen, said)


def _print_section(screen: Screen, section: Mapping[str, Any]) -> None:
    described = _descriptions(section.get("options"))
    for name, value in section.items():
        if name == "options" and isinstance(value, list):
            _print_options(screen, value)
        elif name == "tool_calls" and isinstance(value, list):
            _print_tool_calls(screen, value)
        elif name != "options_considered" or value != described:
            print_fields(screen, {name: value})


def print_fields(screen: Screen, values: Mapping[str, Any], *, indent: str = _STEP) -> None:
    """Names and values: short ones side by side, long ones below each other, nested ones indented."""
    for name, value in values.items():
        label = f"{safe(str(name)):<{LABEL_WIDTH}} "
        short = _short(value)
        if short is not None and width_of(indent + label + short) <= screen.width:
            screen.line(indent, Painted(label, "dim"), short)
        else:
            screen.line(indent, Painted(label, "dim"))
            print_value(screen, value, indent=indent + _STEP)


def print_value(screen: Screen, value: Any, *, indent: str) -> None:
    """Any JSON value, however long."""
    short = _short(value)
    if isinstance(value, str):
        screen.fill(value, indent=indent)
    elif isinstance(value, Mapping) and short is None:
        print_fields(screen, value, indent=indent)
    elif isinstance(value, list) and value:
        for item in value:
            if isinstance(item, str):
                screen.fill(f"- {item}", indent=indent)
            elif (on_one_line := _short(item)) is not None:
                screen.line(indent, "- ", on_one_line)
            else:
                screen.line(indent, "-")
                print_value(screen, item, indent=indent + _STEP)
    else:
        screen.line(indent, short or "")


def _short(value: Any) -> str | None:
    """The value on one line, if it has such a form."""
    if isinstance(value, str):
        return safe(value) if value and "\n" not in value else None
    if isinstance(value, Mapping):
        return _short_blob(value) if value else "{}"
    if isinstance(value, list):
        return None if value else "[]"
    return json.dumps(value)


def _short_blob(value: Mapping[str, Any]) -> str | None:
    blobs = list(blob_references(value)) if value.keys() == {"blob"} else []
    if len(blobs) != 1:
        return None
    digest, size = blobs[0]
    return f"blob, {size:,} bytes, {safe(str(value['blob'].get('media', '')))}, sha256 {digest}"


def _names(part: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(part) if field.name != "extra")


_ORDER = {
    name: _names(part)
    for name, part in zip(SECTIONS, (Trigger, Context, Reasoning, Authority, Execution, Outcome), strict=True)
}
_ZERO_IS_UNSET = ("duration_ms", "confidence", "feasibility")


def _set(part: Mapping[str, Any], order: tuple[str, ...]) -> dict[str, Any]:
    """What is set of a part, in the order of the model; then what the model does not know."""
    names = [*(name for name in order if name in part), *(name for name in part if name not in order)]
    return {
        name: part[name]
        for name in names
        if part[name] not in (None, "", [], {}) and not (name in _ZERO_IS_UNSET and part[name] == 0)
    }


def _without_block(section: Mapping[str, Any]) -> Mapping[str, Any]:
    """Aver's own block is shown with the seal, not in the environment that it rides in."""
    environment = section.get("environment")
    return {**section, "environment": _without(environment, BLOCK)} if isinstance(environment, Mapping) else section


def _without(values: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in names}


def _descriptions(options: Any) -> list[Any]:
    options = options if isinstance(options, list) else []
    return [option.get("description") if isinstance(option, Mapping) else None for option in options]


def _print_options(screen: Screen, options: list[Any]) -> None:
    screen.line(_STEP, Painted("options", "dim"))
    inner = 3 * _STEP
    for option in options:
        if not isinstance(option, Mapping):
            print_value(screen, option, indent=2 * _STEP)
            continue
        said = _set(option, _names(Option))
        chosen = said.get("selected") is True
        word = Painted("selected: ", "good") if chosen else Painted("rejected: ", "dim")
        screen.line(2 * _STEP, word, str(said.get("description") or said.get("id") or "(not described)"))
        for name, sign in (("pros", "+ "), ("cons", "- "), ("risks", "! ")):
            values = said.get(name)
            for item in values if isinstance(values, list) else []:
                screen.fill(f"{sign}{item}", indent=inner)
        if "rejection_reason" in said:
            screen.fill(f"because: {said['rejection_reason']}", indent=inner)
        shown = ("description", "pros", "cons", "risks", "selected", "rejection_reason")
        print_fields(screen, _without(said, *shown), indent=inner)


def _print_tool_calls(screen: Screen, calls: list[Any]) -> None:
    screen.line(_STEP, Painted("tool calls", "dim"))
    for call in calls:
        if not isinstance(call, Mapping):
            print_value(screen, call, indent=2 * _STEP)
            continue
        said = _set(call, _names(ToolCall))
        worked = screen.mark("success" if said.get("success") is True else "failure")
        milliseconds = said.get("duration_ms")
        took = f"  {milliseconds:,} ms" if isinstance(milliseconds, int) else ""
        screen.line(2 * _STEP, worked, f" {said.get('tool', '(no name)')}", Painted(took, "dim"))
        print_fields(screen, _without(said, "tool", "success", "duration_ms"), indent=3 * _STEP)

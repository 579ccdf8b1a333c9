"""Prints the six sections of a capsule. Empty fields are left out; any JSON type is accepted in any field."""

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

LABEL_WIDTH = 18
"""Columns for a field's name."""

_INDENT = "  "


def print_sections(screen: Screen, content: Mapping[str, Any], *, only: str | None = None) -> None:
    """Print the sections that are not empty, in their order, or only one of them. Sections must be objects."""
    for name in SECTIONS:
        if only not in (None, name):
            continue
        section = content.get(name, {})
        environment = section.get("environment")
        if isinstance(environment, Mapping):
            # Aver's block is printed with the seal.
            section = {**section, "environment": _drop_keys(environment, BLOCK_KEY)}
        fields_set = _non_empty_fields(section, _FIELD_ORDER[name])
        if fields_set or only is not None:
            screen.print_line()
            screen.print_line(StyledText(name, "strong"))
            _print_section(screen, fields_set)


def _print_section(screen: Screen, section: Mapping[str, Any]) -> None:
    # Many writers repeat the options' descriptions in `options_considered`; a plain repetition is left out.
    options = section.get("options")
    described = [
        option.get("description") if isinstance(option, Mapping) else None
        for option in (options if isinstance(options, list) else [])
    ]
    for name, value in section.items():
        if name == "options" and isinstance(value, list):
            _print_options(screen, value)
        elif name == "tool_calls" and isinstance(value, list):
            screen.print_line(_INDENT, StyledText("tool calls", "dim"))
            for call in value:
                if not isinstance(call, Mapping):
                    print_value(screen, call, indent=2 * _INDENT)
                    continue
                values = _non_empty_fields(call, _field_names(ToolCall))
                worked = screen.status_mark("success" if values.get("success") is True else "failure")
                milliseconds = values.get("duration_ms")
                took = f"  {milliseconds:,} ms" if isinstance(milliseconds, int) else ""
                screen.print_line(2 * _INDENT, worked, f" {values.get('tool', '(no name)')}", StyledText(took, "dim"))
                print_fields(screen, _drop_keys(values, "tool", "success", "duration_ms"), indent=3 * _INDENT)
        elif name != "options_considered" or value != described:
            print_fields(screen, {name: value})


def print_fields(screen: Screen, values: Mapping[str, Any], *, indent: str = _INDENT) -> None:
    """Print names and values. A short value stands beside its name, a long or nested one below it."""
    for name, value in values.items():
        label = f"{escape_unprintable(str(name)):<{LABEL_WIDTH}} "
        short = _format_inline(value)
        if short is not None and display_width(indent + label + short) <= screen.width:
            screen.print_line(indent, StyledText(label, "dim"), short)
        else:
            screen.print_line(indent, StyledText(label, "dim"))
            print_value(screen, value, indent=indent + _INDENT)


def print_value(screen: Screen, value: Any, *, indent: str) -> None:
    """Print any JSON value."""
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
    """The value on one line; None if it needs several."""
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
    """The fields that are set: first those of the model in its order, then unknown ones."""
    names = [*(name for name in order if name in part), *(name for name in part if name not in order)]
    return {
        name: part[name]
        for name in names
        if part[name] not in (None, "", [], {}) and not (name in _ZERO_IS_UNSET and part[name] == 0)
    }


def _drop_keys(values: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in names}


def _print_options(screen: Screen, options: list[Any]) -> None:
    screen.print_line(_INDENT, StyledText("options", "dim"))
    inner = 3 * _INDENT
    for option in options:
        if not isinstance(option, Mapping):
            print_value(screen, option, indent=2 * _INDENT)
            continue
        values = _non_empty_fields(option, _field_names(Option))
        chosen = values.get("selected") is True
        word = StyledText("selected: ", "good") if chosen else StyledText("rejected: ", "dim")
        screen.print_line(2 * _INDENT, word, str(values.get("description") or values.get("id") or "(not described)"))
        for name, sign in (("pros", "+ "), ("cons", "- "), ("risks", "! ")):
            items = values.get(name)
            for item in items if isinstance(items, list) else []:
                screen.print_wrapped(f"{sign}{item}", indent=inner)
        if "rejection_reason" in values:
            screen.print_wrapped(f"because: {values['rejection_reason']}", indent=inner)
        shown = ("description", "pros", "cons", "risks", "selected", "rejection_reason")
        print_fields(screen, _drop_keys(values, *shown), indent=inner)

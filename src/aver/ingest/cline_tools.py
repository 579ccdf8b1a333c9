"""What a tool of a Cline session was given and what it gave back, as its messages and its hooks tell it alike.

Results are those that the model is given: of a command its output, of several commands or files in one call a list,
with what came of each.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from aver.ingest.cline_values import listed
from aver.ingest.deed import Call
from aver.ingest.diffs import inserted, unified
from aver.ingest.heavy import without_pictures
from aver.ingest.patches import read_patch
from aver.ingest.records import as_json

__all__ = ["call_begun", "call_ended", "line_of"]

LINE_MAX = 160
"""Characters of what a call is about, on the line by which it is told."""

_COMMANDS, _EDITOR, _PATCH = ("run_commands", "execute_command", "bash"), "editor", "apply_patch"
_SUBJECTS = (
    *("path", "files", "file_paths", "paths", "commands", "command", "cmd", "queries", "query", "requests", "url"),
    *("task", "question", "skill"),
)
_RAN = re.compile(r"Command exited with code \d").match
_MADE = re.compile(r"File created").match
"""What an editor says that found no file to replace a text in, and made one of the new text alone."""


def call_begun(name: str, identifier: str, given: Any) -> tuple[Call, str]:
    """A call that was made, and the line by which it is told."""
    told = as_json(given)
    arguments = told if isinstance(told, dict) else {"input": told}
    subject = _subject(name, arguments)
    summary = f"{line_of(name)}: {subject}" if subject else line_of(name)
    return Call(tool=name, id=identifier, arguments=without_pictures(arguments)), summary


def call_ended(call: Call, told: Any, *, failed: bool) -> tuple[Call, tuple[str, ...]]:
    """The call with what came of it, and what it did besides."""
    content = without_pictures(as_json(told))
    error = _error_in(content, failed=failed)
    call = replace(call, result=_plainly(content), ok=error is None, error=error)
    diff, effects = _changes(call, _done(content))
    return replace(call, diff=diff), effects


def _changes(call: Call, done: list[dict[str, Any]]) -> tuple[str | None, tuple[str, ...]]:
    """What a call did to files, if it worked; or which commands it ran, be it that one of them failed."""
    told = call.arguments
    if call.tool in _COMMANDS:
        ran = call.ok or any(_RAN(str(one.get("error"))) for one in done)
        return None, tuple(f"ran {command}" for command in _commands(told)) if ran else ()
    if not call.ok:
        return None, ()
    if call.tool == _PATCH and isinstance(text := told.get("input"), str) and (patch := read_patch(text)) is not None:
        return patch.diff, tuple(f"{verb} {path}" for verb, path in patch.changes)
    path, new, old = (told.get(name) for name in ("path", "new_text", "old_text"))
    if call.tool != _EDITOR or not isinstance(path, str) or not isinstance(new, str):
        return None, ()
    line = told.get("insert_line")
    if isinstance(line, int):
        return inserted(path, line, new), (f"edited {path}",)
    if isinstance(old, str) and not any(_MADE(str(one.get("result"))) for one in done):
        return unified(path, old, new), (f"edited {path}",)
    return unified(path, None, new), (f"wrote {path}",)


def _commands(arguments: Mapping[str, Any]) -> list[str]:
    found = next((arguments[name] for name in ("commands", "command", "cmd", "input") if name in arguments), None)
    if isinstance(found, str) and isinstance(args := arguments.get("args"), list):
        found = [{"command": found, "args": args}]
    return [text for one in (found if isinstance(found, list) else [found]) if (text := _command(one))]


def _command(one: Any) -> str:
    if isinstance(one, Mapping):
        words = [one.get("command"), *listed(one.get("args"))]
        return " ".join(word for word in words if isinstance(word, str))
    return one if isinstance(one, str) else ""


def _done(content: Any) -> list[dict[str, Any]]:
    """What was done in a call: `{query, result, success, error}` for each command, file or search."""
    return [one for one in (content if isinstance(content, list) else [content]) if isinstance(one, dict)]


def _plainly(content: Any) -> Any:
    """The result of a call that did one thing: what came of it, under the name that outputs have; else as it is."""
    done = _done(content)
    if len(done) != 1 or "success" not in done[0] or not isinstance(done[0].get("result"), str):
        return content
    return {"output" if name == "result" else name: value for name, value in done[0].items()}


def _error_in(result: Any, *, failed: bool) -> str | None:
    """Why a call failed; None where it worked. Of several things done in one call, each says whether it did."""
    errors = [str(one.get("error") or "failed") for one in _done(result) if one.get("success") is False]
    if errors:
        return "; ".join(errors)
    if not failed:
        return None
    told = result.get("error") if isinstance(result, dict) else result
    return told if isinstance(told, str) and told else "the tool reported an error"


def _subject(name: str, arguments: Mapping[str, Any]) -> str:
    if name == _PATCH and isinstance(text := arguments.get("input"), str) and (patch := read_patch(text)) is not None:
        return line_of(", ".join(dict.fromkeys(path for _, path in patch.changes)))
    if name in _COMMANDS and (commands := _commands(arguments)):
        return line_of("; ".join(commands))
    value = next((arguments[key] for key in _SUBJECTS if arguments.get(key)), None)
    parts = value if isinstance(value, list) else [value]
    texts = [one if isinstance(one, str) else _named(one) for one in parts]
    return line_of(", ".join(filter(None, texts)))


def _named(one: Any) -> str:
    if not isinstance(one, Mapping):
        return ""
    return next((one[key] for key in ("path", "url", "query") if isinstance(one.get(key), str)), "")


def line_of(text: str) -> str:
    line = " ".join(text[: 4 * LINE_MAX].split())
    return line if len(line) <= LINE_MAX else f"{line[: LINE_MAX - 1]}…"

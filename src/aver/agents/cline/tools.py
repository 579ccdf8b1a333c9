"""What a tool of a Cline session was given and what it gave back, as its messages and its hooks tell it alike.

Results are those that the model is given: of a command its output, of several commands or files in one call a list,
with what came of each.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from aver.agents.cline.results import list_or_empty
from aver.ingest.agent_event import AgentCall
from aver.ingest.attachments import replace_images
from aver.ingest.diffs import diff_from_insertion, unified_diff
from aver.ingest.patches import read_patch
from aver.ingest.tolerant_json import parse_embedded_json
from aver.text import summary_line

__all__ = ["finish_call", "one_line", "start_call"]

LINE_MAX = 160
"""Characters of what a call is about, on the line by which it is told."""

_COMMAND_TOOLS, _EDITOR_TOOL, _PATCH_TOOL = ("run_commands", "execute_command", "bash"), "editor", "apply_patch"
_SUBJECT_KEYS = (
    *("path", "files", "file_paths", "paths", "commands", "command", "cmd", "queries", "query", "requests", "url"),
    *("task", "question", "skill"),
)
_COMMAND_EXITED = re.compile(r"Command exited with code \d").match
_FILE_CREATED = re.compile(r"File created").match
"""What an editor says that found no file to replace a text in, and made one of the new text alone."""


def start_call(name: str, identifier: str, given: Any) -> tuple[AgentCall, str]:
    """A call that was made, and the line by which it is told."""
    told = parse_embedded_json(given)
    arguments = told if isinstance(told, dict) else {"input": told}
    subject = _find_subject(name, arguments)
    summary = f"{one_line(name)}: {subject}" if subject else one_line(name)
    return AgentCall(tool=name, id=identifier, arguments=replace_images(arguments)), summary


def finish_call(call: AgentCall, told: Any, *, failed: bool) -> tuple[AgentCall, tuple[str, ...]]:
    """The call with what came of it, and what it did besides."""
    content = replace_images(parse_embedded_json(told))
    error = _find_error(content, failed=failed)
    call = replace(call, result=_simplify_result(content), ok=error is None, error=error)
    diff, effects = _find_changes(call, _list_results(content))
    return replace(call, diff=diff), effects


def _find_changes(call: AgentCall, done: list[dict[str, Any]]) -> tuple[str | None, tuple[str, ...]]:
    """What a call did to files, if it worked; or which commands it ran, be it that one of them failed."""
    told = call.arguments
    if call.tool in _COMMAND_TOOLS:
        ran = call.ok or any(_COMMAND_EXITED(str(one.get("error"))) for one in done)
        return None, tuple(f"ran {command}" for command in _list_commands(told)) if ran else ()
    if not call.ok:
        return None, ()
    if (
        call.tool == _PATCH_TOOL
        and isinstance(text := told.get("input"), str)
        and (patch := read_patch(text)) is not None
    ):
        return patch.diff, tuple(f"{verb} {path}" for verb, path in patch.changes)
    path, new, old = (told.get(name) for name in ("path", "new_text", "old_text"))
    if call.tool != _EDITOR_TOOL or not isinstance(path, str) or not isinstance(new, str):
        return None, ()
    line = told.get("insert_line")
    if isinstance(line, int):
        return diff_from_insertion(path, line, new), (f"edited {path}",)
    if isinstance(old, str) and not any(_FILE_CREATED(str(one.get("result"))) for one in done):
        return unified_diff(path, old, new), (f"edited {path}",)
    return unified_diff(path, None, new), (f"wrote {path}",)


def _list_commands(arguments: Mapping[str, Any]) -> list[str]:
    found = next((arguments[name] for name in ("commands", "command", "cmd", "input") if name in arguments), None)
    if isinstance(found, str) and isinstance(args := arguments.get("args"), list):
        found = [{"command": found, "args": args}]
    return [text for one in (found if isinstance(found, list) else [found]) if (text := _command_text(one))]


def _command_text(one: Any) -> str:
    if isinstance(one, Mapping):
        words = [one.get("command"), *list_or_empty(one.get("args"))]
        return " ".join(word for word in words if isinstance(word, str))
    return one if isinstance(one, str) else ""


def _list_results(content: Any) -> list[dict[str, Any]]:
    """What was done in a call: `{query, result, success, error}` for each command, file or search."""
    return [one for one in (content if isinstance(content, list) else [content]) if isinstance(one, dict)]


def _simplify_result(content: Any) -> Any:
    """The result of a call that did one thing: what came of it, under the name that outputs have; else as it is."""
    done = _list_results(content)
    if len(done) != 1 or "success" not in done[0] or not isinstance(done[0].get("result"), str):
        return content
    return {"output" if name == "result" else name: value for name, value in done[0].items()}


def _find_error(result: Any, *, failed: bool) -> str | None:
    """Why a call failed; None where it worked. Of several things done in one call, each says whether it did."""
    errors = [str(one.get("error") or "failed") for one in _list_results(result) if one.get("success") is False]
    if errors:
        return "; ".join(errors)
    if not failed:
        return None
    told = result.get("error") if isinstance(result, dict) else result
    return told if isinstance(told, str) and told else "the tool reported an error"


def _find_subject(name: str, arguments: Mapping[str, Any]) -> str:
    if (
        name == _PATCH_TOOL
        and isinstance(text := arguments.get("input"), str)
        and (patch := read_patch(text)) is not None
    ):
        return one_line(", ".join(dict.fromkeys(path for _, path in patch.changes)))
    if name in _COMMAND_TOOLS and (commands := _list_commands(arguments)):
        return one_line("; ".join(commands))
    value = next((arguments[key] for key in _SUBJECT_KEYS if arguments.get(key)), None)
    parts = value if isinstance(value, list) else [value]
    texts = [one if isinstance(one, str) else _item_name(one) for one in parts]
    return one_line(", ".join(filter(None, texts)))


def _item_name(one: Any) -> str:
    if not isinstance(one, Mapping):
        return ""
    return next((one[key] for key in ("path", "url", "query") if isinstance(one.get(key), str)), "")


def one_line(text: str) -> str:
    return summary_line(text, LINE_MAX, window=4 * LINE_MAX)

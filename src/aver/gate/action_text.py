"""An action in one line, for lists, logs, records and messages: `Bash: rm -rf build in ~/shop, claude-code`.

The line names the tool, what it would do, the workspace and the agent. It comes from the action's own fields, so it may
hold anything that an agent writes. Who prints it must escape it; who stores it must mask it first.

    >>> action = {"tool": "Bash", "arguments": {"command": "rm -rf build"}, "workspace": "/srv/shop", "caller": "codex"}
    >>> summarise_action(action)
    'Bash: rm -rf build in /srv/shop, codex'
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

SUMMARY_MAX = 200
"""Characters of the line. The command is cut, the workspace and the agent stay."""

PLACE_MAX = 80
"""Characters of the workspace, and of the agent's name."""

_TELLING_ARGUMENTS = (
    *("command", "cmd", "commands", "argv", "file_path", "path", "notebook_path", "relpath", "url", "uri", "recipient"),
    *("domain", "query", "pattern", "skill_id"),
)
"""The arguments that say most, in this order."""


def summarise_action(action: Mapping[str, Any]) -> str:
    """Return an action, as `Action.to_dict` gives it, in one line."""
    tool = str(action.get("tool") or action.get("type") or "action")
    workspace, caller = _as_line(action.get("workspace")), _as_line(action.get("caller"))
    after = f" in {_shorten(_abbreviate_home(workspace), PLACE_MAX)}" if workspace else ""
    after += f", {_shorten(caller, PLACE_MAX)}" if caller else ""
    words = _find_words(action, tool)
    line = _shorten(f"{_as_line(tool)}: {words}" if words else _as_line(tool), SUMMARY_MAX - len(after))
    return line + after


def _find_words(action: Mapping[str, Any], tool: str) -> str:
    """Return what the action would do: its command, its path, its files, or else its description."""
    arguments = action.get("arguments")
    if action.get("request_sha256") and isinstance(arguments, Mapping):
        arguments = _select_target(arguments)
    for name in _TELLING_ARGUMENTS if isinstance(arguments, Mapping) else ():
        value = arguments.get(name) if isinstance(arguments, Mapping) else None
        if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
            value = " ".join(value)
        if isinstance(value, str) and value.strip():
            return _as_line(value)
    files = action.get("files")
    if isinstance(files, list | tuple) and files:
        return _as_line(files[0] if len(files) == 1 else f"{files[0]} and {len(files) - 1} more")
    described = _as_line(action.get("description"))
    # Hooks and adapters describe a call by its tool alone, which the line has already.
    return "" if described == f"call {tool}" else described


def _select_target(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the inputs of a request that name its target, as arguments of a call."""
    # A request to a web server has a constant as its recipient, which goes nowhere.
    for name in ("resource_id", "path"):
        if isinstance(inputs.get("domain"), str) and isinstance(inputs.get(name), str):
            return {"url": f"{inputs['domain']}/{inputs[name].removeprefix('/')}"}
    inner = inputs.get("arguments")
    if "server" not in inputs or not isinstance(inner, Mapping):
        return inputs
    # Of a tool that Aver does not know, the first texts say most.
    texts = [value for value in inner.values() if isinstance(value, str) and value.strip()]
    return inner if any(name in inner for name in _TELLING_ARGUMENTS) else {"query": ", ".join(texts[:3])}


def _as_line(value: Any) -> str:
    # A command may be very long. Only its beginning is shown.
    return " ".join(str(value or "")[: 4 * SUMMARY_MAX].split())


def _shorten(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _abbreviate_home(path: str) -> str:
    home = os.path.expanduser("~").rstrip("/")
    if home and (path == home or path.startswith(f"{home}/")):
        return f"~{path[len(home) :]}"
    return path

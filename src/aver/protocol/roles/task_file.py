"""Task files: the task, and who takes part in it. JSON or TOML, by the file's ending.

    objective = "All checks of the shop pass"
    constraints = ["change nothing"]
    policy_profile = "strict"
    max_tool_calls = 20

    [roles.planner]
    role = "planner"
    use = "checks"                             a role that Aver has

    [roles.worker]
    role = "executor"
    command = ["python3", "worker.py"]         a program: a view in, one event out, both as JSON

    [roles.critic]
    role = "critic"
    python = "my_agents:criticise"             a function of a module

    [roles.auditor]
    role = "auditor"
    waits = true                               says its events by itself: say, MCP, A2A, PostgreSQL

Only `objective` is required. Without `roles`, Aver's own `checks` take all four. A role has exactly one of `use`,
`command`, `python` and `waits`; beside `use` there may be `options`, a table that the role reads. Anything else in the
file is an error: a misspelt limit must not be a limit that does not hold.

The task that is signed has everything but `roles`. The roles are this machine's matter; the trace itself names the
participants with their keys.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Literal

from aver.capsule.json_document import parse_document
from aver.errors import BadInput
from aver.fast_dataclass import dataclass
from aver.files.regular import open_file, read_limited
from aver.lazy_pattern import lazy_pattern

TASK_MAX = 1024 * 1024
"""Largest task file, in bytes."""

ROLES_MAX = 64
"""Most participants of a task file."""

PROTOCOL_ROLES = ("planner", "executor", "critic", "auditor")
BUILT_IN = ("checks", "review")
"""The roles that Aver has, by the names that `use` takes."""

SOURCES = ("use", "command", "python", "waits")
RoleSource = Literal["use", "command", "python", "waits"]

_NAME = lazy_pattern(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}")
_PYTHON = lazy_pattern(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")

TASK_FIELDS: Mapping[str, type] = {
    "objective": str,
    "task_id": str,
    "input_artifacts": list,
    "constraints": list,
    "policy_profile": str,
    "requested_roles": list,
    "time_budget_seconds": int,
    "max_tool_calls": int,
    "sensitivity_level": str,
    "tags": list,
    "bounds": dict,
}
"""The fields of a task, with their types. The schema of `session_initialized` says more about their values."""

_TYPE_WORDS: Mapping[type, str] = {str: "a text", list: "a list of texts", int: "a whole number", dict: "a table"}


@dataclass(frozen=True, slots=True)
class RoleSpec:
    """Who plays a role: the agent, its role, where its words come from, and what that is."""

    agent: str
    """`agent:NAME`."""
    role: str
    source: RoleSource
    value: Any
    """The name of a built-in role, the words of a command, `module:function`, or True."""
    options: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the role as a task file has it."""
        found = {"role": self.role, self.source: self.value}
        return {**found, "options": dict(self.options)} if self.options else found


@dataclass(frozen=True, slots=True)
class TaskFile:
    """A task and its roles."""

    task: Mapping[str, Any]
    roles: tuple[RoleSpec, ...]


def default_roles(use: str = "checks") -> tuple[RoleSpec, ...]:
    """Return the roles of a task that names none: Aver's own, one agent each."""
    return tuple(RoleSpec(f"agent:{role}", role, "use", use) for role in PROTOCOL_ROLES)


def read_task_file(path: Path) -> TaskFile:
    """Read a task file. Raises `BadInput`, which names the file and the field."""
    with open_file(path) as file:
        raw = read_limited(file, TASK_MAX, path)
    if path.suffix.lower() == ".toml":
        try:
            document: Any = tomllib.loads(raw.decode("utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise BadInput(f"{path} is not TOML: {error}") from error
    elif path.suffix.lower() == ".json":
        document = parse_document(raw, str(path), limit=TASK_MAX)
    else:
        raise BadInput(f"{path} is no task file", advice="its name must end with .toml or .json")
    return read_task(document, str(path))


def read_task(document: Any, where: str) -> TaskFile:
    """Read a task with its roles. Raises `BadInput`, which names `where` and the field."""
    if not isinstance(document, dict):
        raise BadInput(f"{where} must be an object with at least `objective`")
    for name, value in document.items():
        if name == "roles":
            continue
        if name not in TASK_FIELDS:
            raise BadInput(
                f"{where}: unknown field {_show(name)}", advice=f"known are {', '.join((*TASK_FIELDS, 'roles'))}"
            )
        kind = TASK_FIELDS[name]
        is_wrong = not isinstance(value, kind) or isinstance(value, bool)
        if is_wrong or (kind is list and not all(isinstance(item, str) for item in value)):
            raise BadInput(f"{where}: {name} must be {_TYPE_WORDS[kind]}")
    objective = document.get("objective", "")
    if not objective.strip():
        raise BadInput(f"{where} has no objective", advice='add one, such as objective = "all checks pass"')
    task = {name: value for name, value in document.items() if name != "roles"}
    return TaskFile(task, _read_roles(document["roles"], where) if "roles" in document else default_roles())


def _read_roles(table: Any, where: str) -> tuple[RoleSpec, ...]:
    if not isinstance(table, dict) or not 1 <= len(table) <= ROLES_MAX:
        raise BadInput(f"{where}: roles must be a table of 1 to {ROLES_MAX} roles")
    found = tuple(_read_role(name, given, f"{where}: roles.{_show(name)[1:-1]}") for name, given in table.items())
    missing = [role for role in PROTOCOL_ROLES[:3] if role not in {spec.role for spec in found}]
    if missing:
        raise BadInput(
            f"{where}: nobody has the role {', '.join(missing)}",
            advice="a trace needs at least a planner, an executor and a critic, each with a key of its own",
        )
    return found


def _read_role(name: str, given: Any, where: str) -> RoleSpec:
    if _NAME.fullmatch(name) is None:
        raise BadInput(f"{where}: use up to 64 letters, digits, '.', '_' and '-' as a name")
    if not isinstance(given, dict):
        raise BadInput(f"{where} must be a table")
    for key in given:
        if key not in (*SOURCES, "role", "options"):
            raise BadInput(
                f"{where}: unknown field {_show(key)}", advice=f"known are role, options, {', '.join(SOURCES)}"
            )
    role = given.get("role")
    if role not in PROTOCOL_ROLES:
        raise BadInput(f"{where}.role must be one of {', '.join(PROTOCOL_ROLES)}")
    sources = [source for source in SOURCES if source in given]
    if len(sources) != 1:
        raise BadInput(f"{where} must have exactly one of {', '.join(SOURCES)}")
    options = given.get("options", {})
    if not isinstance(options, dict) or (options and sources != ["use"]):
        raise BadInput(f"{where}.options must be a table, and needs `use`")
    source: RoleSource = sources[0]  # type: ignore[assignment]
    _check_source(source, given[source], f"{where}.{source}")
    return RoleSpec(f"agent:{name}", role, source, given[source], options)


def _check_source(source: RoleSource, value: Any, where: str) -> None:
    if source == "use" and value not in BUILT_IN:
        raise BadInput(f"{where} must be one of {', '.join(BUILT_IN)}")
    if source == "waits" and value is not True:
        raise BadInput(f"{where} must be true")
    if source == "python" and (not isinstance(value, str) or _PYTHON.fullmatch(value) is None):
        raise BadInput(f"{where} must be module:function, such as my_agents:criticise")
    if source == "command":
        is_words = (
            isinstance(value, list) and value and all(isinstance(word, str) and "\0" not in word for word in value)
        )
        if not is_words or not value[0]:
            raise BadInput(f'{where} must be a list of words, such as ["python3", "worker.py"]')


def _show(name: Any) -> str:
    return ascii(name)[:80]

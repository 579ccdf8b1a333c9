"""The functions of the roles of a task file: Aver's own, programs, functions of modules, and silence for who waits."""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING

from aver.errors import BadInput
from aver.protocol.roles.role import RoleFunction, stay_silent
from aver.protocol.roles.role_process import CommandRole

if TYPE_CHECKING:
    from aver.protocol.roles.task_file import RoleSpec
    from aver.protocol.roles.work_items import BlobReader


def build_roles(
    specs: tuple[RoleSpec, ...], *, workspace: str, directory: str, blob: BlobReader
) -> dict[str, RoleFunction]:
    """Return the functions of the roles of a task file, by agent. Those of participants who wait say nothing.

    `directory` is where programs run and modules are looked for: the folder of the task file.
    """
    found: dict[str, RoleFunction] = {}
    for spec in specs:
        if spec.source == "use":
            from aver.protocol.roles.built_in import build_role

            found[spec.agent] = build_role(spec.role, spec.value, workspace=workspace, options=spec.options, blob=blob)
        elif spec.source == "command":
            found[spec.agent] = CommandRole(spec.agent, spec.value, directory=directory, blob=blob)
        elif spec.source == "python":
            found[spec.agent] = import_role(spec.value, directory)
        else:
            found[spec.agent] = stay_silent
    return found


def import_role(name: str, directory: str) -> RoleFunction:
    """Import `module:function`, also from a folder that is not in Python's path. Raises `BadInput`."""
    module_name, _, function_name = name.partition(":")
    if directory not in sys.path:
        sys.path.insert(0, os.path.abspath(directory))
    try:
        function: RoleFunction = getattr(importlib.import_module(module_name), function_name)
    except (ImportError, AttributeError) as error:
        raise BadInput(f"the role {name} cannot be loaded: {error}") from error
    if not callable(function):
        raise BadInput(f"the role {name} is no function")
    return function

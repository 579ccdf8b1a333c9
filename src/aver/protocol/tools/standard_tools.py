"""The tools of a session: commands and files of the workspace, and what its caller adds."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from aver.protocol.tools.command_tool import COMMAND, CommandTool
from aver.protocol.tools.file_tools import file_tools
from aver.protocol.tools.function_tools import function_tools
from aver.protocol.tools.tool import Tool, ToolBox


def protocol_tools(
    workspace: str | os.PathLike[str] = ".",
    *,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    more: Mapping[str, Tool] | None = None,
) -> ToolBox:
    """Return the tools of a session: `command`, `read_file`, `write_file`, `delete_file`, and what the caller adds.

    `functions` are Python functions by name; `aver.tool` declares what each does. `more` are tools of an MCP server or
    acts of a gateway (`McpServer.tools`, `act_tools`).
    """
    standard: dict[str, Tool] = {COMMAND: CommandTool(), **file_tools()}
    return ToolBox(os.fspath(workspace), {**standard, **function_tools(functions or {}), **(more or {})})

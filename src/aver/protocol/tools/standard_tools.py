"""The tools that every session has: `command`, `read_file`, `write_file` and `delete_file`."""

from __future__ import annotations

from aver.protocol.tools.command_tool import COMMAND, CommandTool
from aver.protocol.tools.file_tools import file_tools
from aver.protocol.tools.tool import ToolBox


def standard_tools(workspace: str) -> ToolBox:
    """Return a new box with the standard tools for a workspace."""
    return ToolBox(workspace, {COMMAND: CommandTool(), **file_tools()})

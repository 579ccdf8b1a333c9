"""The form of every answer of a tool: the same object as text, for models, and as structured content, for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import mcp_types as types


def build_tool_result(content: Mapping[str, Any], *, is_error: bool) -> types.CallToolResult:
    text = types.TextContent(type="text", text=json.dumps(content, indent=2))
    return types.CallToolResult(content=[text], structured_content=dict(content), is_error=is_error)

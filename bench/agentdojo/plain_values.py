"""Values of AgentDojo's tools as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel


def to_plain(value: Any) -> Any:
    """Return a value as JSON values."""
    if isinstance(value, BaseModel):
        return json.loads(value.model_dump_json())
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [to_plain(item) for item in value]
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)

"""What hooks do where Aver fails, and what they say where the gate passes: the settings under `[hooks]`.

[hooks]
on_failure = "open"      left out: what the gate cannot decide is denied, a crash of Aver's lets the tool go on
on_pass = "allow"        or "leave": the tool then asks as it would without Aver
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, cast

from aver.errors import BadInput

__all__ = ["Settings", "read_settings"]

WHERE = "[hooks]"

_VALUES = {"on_failure": ("open", "closed"), "on_pass": ("allow", "leave")}


class Settings(NamedTuple):
    """The settings in force."""

    on_failure: Literal["open", "closed", ""] = ""
    """Empty where it is not set: see `running`."""
    on_pass: Literal["allow", "leave"] = "allow"  # noqa: S105 - no password


def read_settings(table: Mapping[str, Any]) -> Settings:
    """The settings; `BadInput` names what is wrong in them."""
    for name, value in table.items():
        allowed = _VALUES.get(name)
        if allowed is None:
            raise BadInput(f"{WHERE}: unknown setting {name!r}", advice=f"known are {', '.join(_VALUES)}")
        if value not in allowed:
            raise BadInput(f"{WHERE} {name} must be one of {', '.join(allowed)}")
    return Settings(**cast(dict[str, Any], dict(table)))

"""What is about to happen: the one thing that the gate judges.

An `Action` says who wants to do what with which arguments, and for a change to files, the change itself. Its `digest`
is over all of it, so that a decision and an approval fit this action and no other. `Facts` are what the gate knows
besides, and what the one who asks cannot set: where the workspace is, what the session has done so far, what a human
has approved.

    >>> action = Action(type="file_read", tool="Read", files=("src/app.py",), workspace="/work")
    >>> len(action.digest)
    64
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from aver.capsule.canonical import canonical_bytes
from aver.errors import BadInput
from aver.fast_dataclass import dataclass

__all__ = ["ACTION_TYPES", "Action", "Facts"]

ACTION_TYPES = (
    *("tool_call", "code_gen", "code_edit", "api_request", "decision", "observation", "file_read", "file_write"),
    *("file_delete", "shell_exec", "command", "browser_action", "web_request", "action", "unknown"),
)
"""The fifteen of the CapSeal Agent Protocol."""

TEXT_MAX = 64 * 1024
"""Characters of a name, path or description; what is longer is not one."""

DIFF_MAX = 100 * 1024 * 1024
"""Characters of a diff that are looked at. A larger one cannot be judged and is not let through."""

FILES_MAX = 10_000
"""Files of one action."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One action before it happens. `files` are as the caller named them; nothing here touches the disk."""

    type: str
    tool: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    diff: str | None = None
    description: str = ""
    caller: str = ""
    """Who asks: an agent's name, as far as the door it came through could establish it."""
    on_behalf_of: str = ""
    """Who the caller acts for, where that was delegated."""
    session: str = ""
    workspace: str = ""
    """The directory that the agent works in, absolute."""

    def __post_init__(self) -> None:
        if self.type not in ACTION_TYPES:
            raise BadInput(f"{self.type!r} is not an action type", advice=f"use one of {', '.join(ACTION_TYPES)}")
        for name in ("tool", "description", "caller", "on_behalf_of", "session", "workspace"):
            _check_text(getattr(self, name), name)
        if not isinstance(self.files, tuple) or len(self.files) > FILES_MAX:
            raise BadInput(f"files must be a tuple of at most {FILES_MAX} paths")
        for path in self.files:
            _check_text(path, "files")
        if not isinstance(self.arguments, Mapping):
            raise BadInput("arguments must be an object")
        if self.diff is not None and (not isinstance(self.diff, str) or len(self.diff) > DIFF_MAX):
            raise BadInput(f"diff must be a text of at most {DIFF_MAX} characters")

    def to_dict(self) -> dict[str, Any]:
        """All that is judged. The diff stands in it by its digest: it may be large."""
        return {
            "type": self.type,
            "tool": self.tool,
            "arguments": dict(self.arguments),
            "files": list(self.files),
            "diff_sha256": None if self.diff is None else _sha256(self.diff.encode("utf-8", "surrogatepass")),
            "description": self.description,
            "caller": self.caller,
            "on_behalf_of": self.on_behalf_of,
            "session": self.session,
            "workspace": self.workspace,
        }

    @property
    def digest(self) -> str:
        """SHA-256 over the canonical bytes of `to_dict()`; `NotCanonical` where the arguments are not JSON."""
        return _sha256(canonical_bytes(self.to_dict()))

    @property
    def key(self) -> str:
        """What counts as the same attempt: the same caller doing the same thing in the same session."""
        return self.digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the gate knows besides the action. All of it is sealed with the decision, so that it can be replayed."""

    now: str
    """The time of the decision, as `aver.clock.now()` writes it."""
    changed: Mapping[str, int] = field(default_factory=dict)
    """What the session has changed since a human last approved one of its changes, as `risk.features` counts it: what
    splitting a change cannot hide."""
    changed_files: tuple[str, ...] = ()
    """The source files of those changes."""
    labels: frozenset[str] = frozenset()
    """What the session has come into touch with, such as `secret`."""
    denials: int = 0
    """How often this very action was denied before."""
    recent: Mapping[str, int] = field(default_factory=dict)
    """How many actions of each effect class the session had in the last minute."""
    failures: int = 0
    """How many of the last uses of this tool failed, of `uses`."""
    uses: int = 0
    approved: bool = False
    """A human's approval of this action's digest was verified."""
    annotations: Mapping[str, Any] = field(default_factory=dict)
    """What the tool says of itself: MCP annotations. Never trusted to make anything less."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """HOME, AVER_HOME and AVER_LEDGER of whoever would act, as far as they are known."""
    links: Mapping[str, str] = field(default_factory=dict)
    """Paths of the action that lead elsewhere by symbolic links, and where they lead."""


def _check_text(value: Any, name: str) -> None:
    if not isinstance(value, str) or len(value) > TEXT_MAX:
        raise BadInput(f"{name} must be a text of at most {TEXT_MAX} characters")


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()

"""The action that an agent wants to do, and the facts about it: the gate judges these two.

An `Action` says who wants to do what with which arguments, and for a change to files, the change itself. Its `digest`
names what would happen, so a decision or an approval fits this action and no other. Version 3 is SHA-256 over the
canonical bytes of

    {v: 3, type, tool, arguments, files, diff_sha256, workspace, caller, on_behalf_of, request_sha256, description?}

Some texts only describe the action, and an agent words them anew with each try. They are left out:

* of `arguments`, those that a closed table names for a tool of a known coding agent (`AgentNames.descriptive`): for
  `Bash` the argument `description`. Of every other tool all arguments count;
* `description`, where there is a diff, or where a second table names the arguments that tell what the tool would do
  (`AgentNames.telling`: for `Bash` the argument `command`) and all of them are there. Files alone tell nothing;
* `session` and `call_id`: they say where and in which attempt it would happen.

Records keep what was left out beside the digest, and people see it. Version 2 left `description` out as soon as there
was a file or an argument. Version 1 covered all of that but `call_id`. Old records say no version, and are judged by
version 1.

`Facts` are what the gate knows besides the action, and the caller cannot set: what the session has done so far, where
paths lead, whether a person has approved.

    >>> action = Action(type="file_read", tool="Read", files=("src/app.py",), workspace="/work")
    >>> len(action.digest)
    64
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import field
from typing import Any

from aver.capsule.canonical import canonical_bytes
from aver.errors import BadInput
from aver.fast_dataclass import dataclass

ACTION_TYPES = (
    *("tool_call", "code_gen", "code_edit", "api_request", "decision", "observation", "file_read", "file_write"),
    *("file_delete", "shell_exec", "command", "browser_action", "web_request", "action", "unknown"),
)
"""The fifteen types of the CapSeal Agent Protocol."""

TEXT_MAX = 64 * 1024
"""Longest accepted name, path or description, in characters."""

CALL_ID_MAX = 512
"""Longest accepted `call_id`, in characters."""

DIFF_MAX = 100 * 1024 * 1024
"""Longest accepted diff, in characters. The gate does not let a larger change through."""

FILES_MAX = 10_000
"""Most files of one action."""

DIGEST_VERSION = 3
"""The version of the digest that `Action.digest` returns."""

FIRST_DIGEST_VERSION = 1
"""The version of records that name none."""

_NO_DIFF = (None, hashlib.sha256(b"").hexdigest())
"""The digests of no diff, and of one that changes nothing."""

_TEXT_FIELDS = ("tool", "description", "caller", "on_behalf_of", "session", "workspace", "request_sha256")


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One action before it happens. Making one touches no file. Raises `BadInput` where a field is not usable."""

    type: str
    """One of `ACTION_TYPES`."""
    tool: str = ""
    """The tool's name, as its client calls it."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """The tool's arguments: JSON values."""
    files: tuple[str, ...] = ()
    """The files that it touches, as the caller names them."""
    diff: str | None = None
    """For a change to files: the change, as a unified diff."""
    description: str = ""
    """The purpose of the action, in words."""
    caller: str = ""
    """Who asks: an agent's name, as far as it could be established."""
    on_behalf_of: str = ""
    """Who the caller acts for, where that was delegated."""
    session: str = ""
    """The session that it belongs to. The gate counts what one session does."""
    workspace: str = ""
    """The directory that the agent works in, absolute."""
    call_id: str = ""
    """Which call this is. The decision, the approval and the call's record share it as `trigger.correlation_id`. Coding
    agents' calls have `<agent>:<session>:<tool_use_id>`. `aver.ask` makes a new id where this is empty."""
    request_sha256: str = ""
    """The hash of the request that this action carries out, where another protocol has one; else empty."""

    def __post_init__(self) -> None:
        if self.type not in ACTION_TYPES:
            raise BadInput(f"{self.type!r} is not an action type", advice=f"use one of {', '.join(ACTION_TYPES)}")
        if not isinstance(self.files, tuple) or len(self.files) > FILES_MAX:
            raise BadInput(f"files must be a tuple of at most {FILES_MAX} paths")
        texts = [(name, getattr(self, name)) for name in _TEXT_FIELDS]
        for name, value in (*texts, *(("files", path) for path in self.files)):
            if not isinstance(value, str) or len(value) > TEXT_MAX:
                raise BadInput(f"{name} must be a text of at most {TEXT_MAX} characters")
        if not isinstance(self.call_id, str) or len(self.call_id) > CALL_ID_MAX or not self.call_id.isprintable():
            raise BadInput(f"call_id must be at most {CALL_ID_MAX} printable characters")
        if not isinstance(self.arguments, Mapping):
            raise BadInput("arguments must be an object")
        if self.diff is not None and (not isinstance(self.diff, str) or len(self.diff) > DIFF_MAX):
            raise BadInput(f"diff must be a text of at most {DIFF_MAX} characters")

    def to_dict(self) -> dict[str, Any]:
        """Return all that is judged. The diff, which may be large, is given by its digest."""
        # A diff may hold halves of surrogate pairs, from files that are not UTF-8. Its digest must cover those, too.
        diff = None if self.diff is None else self.diff.encode("utf-8", "surrogatepass")
        found = {
            "type": self.type,
            "tool": self.tool,
            "arguments": dict(self.arguments),
            "files": list(self.files),
            "diff_sha256": None if diff is None else hashlib.sha256(diff).hexdigest(),
            "description": self.description,
            "caller": self.caller,
            "on_behalf_of": self.on_behalf_of,
            "session": self.session,
            "workspace": self.workspace,
        }
        return {**found, "request_sha256": self.request_sha256} if self.request_sha256 else found

    @property
    def left_out(self) -> tuple[str, ...]:
        """The arguments that the digest leaves out, by name."""
        from aver.gate.effects.known_agents import default_known_agents  # Not above: making an action needs no table.

        descriptive = default_known_agents().find_descriptive(self.tool)
        return tuple(sorted(name for name in self.arguments if name in descriptive))

    @property
    def digest(self) -> str:
        """The digest of version 3. Raises `NotCanonical` where the arguments are not JSON."""
        return self.compute_digest(DIGEST_VERSION, self.left_out)

    def compute_digest(self, version: int, left_out: Collection[str] = (), *, described: bool | None = None) -> str:
        """Return the digest of a version, without the arguments in `left_out`: for records, which name both.

        `described` says whether the digest of version 3 covers the description. Without it, the tables say so.
        """
        content = self.to_dict()
        if version == FIRST_DIGEST_VERSION:
            content.pop("request_sha256", None)
        else:
            content = bound_content(content, left_out, version, described=described)
        return hashlib.sha256(canonical_bytes(content)).hexdigest()


def bound_content(
    action: Mapping[str, Any], left_out: Collection[str], version: int, *, described: bool | None = None
) -> dict[str, Any]:
    """Return the part of an action, as `Action.to_dict` gives it, that its digest of a version after the first covers.

    `left_out` and `described` are those of `Action.compute_digest`.
    """
    arguments = {name: value for name, value in action["arguments"].items() if name not in left_out}
    names = ("type", "tool", "files", "diff_sha256", "workspace", "caller", "on_behalf_of")
    content = {
        "v": version,
        **{name: action[name] for name in names},
        "arguments": arguments,
        "request_sha256": action.get("request_sha256", ""),
    }
    if version == DIGEST_VERSION:
        is_needed = is_description_needed(action) if described is None else described
    else:
        is_needed = not arguments and not action["files"] and action["diff_sha256"] is None
    return {**content, "description": action["description"]} if is_needed else content


def is_description_needed(action: Mapping[str, Any]) -> bool:
    """Whether only its description says what an action would do: it has no diff, and no arguments that tell it.

    `action` may be of a record that somebody else wrote.
    """
    from aver.gate.effects.known_agents import default_known_agents  # Not above: see `Action.left_out`.

    tool, given = action.get("tool"), action.get("arguments")
    telling = default_known_agents().find_telling(tool) if isinstance(tool, str) else None
    is_told = bool(telling) and isinstance(given, Mapping) and all(given.get(name) for name in telling or ())
    return action.get("diff_sha256") in _NO_DIFF and not is_told


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The facts that the gate knows besides the action. They are sealed with the decision, for replay."""

    now: str
    """The time of the decision, as `aver.clock.now()` writes it."""
    changed: Mapping[str, int] = field(default_factory=dict)
    """The changes of the session since a person last approved one of them, as `risk.features` counts them. So
    splitting a change into pieces hides nothing."""
    changed_files: tuple[str, ...] = ()
    """The source files of those changes."""
    labels: frozenset[str] = frozenset()
    """The kinds of data that the session may have seen, such as `secret`."""
    denials: int = 0
    """How often this same action was refused before."""
    recent: Mapping[str, int] = field(default_factory=dict)
    """How many actions of each effect class the session had in the last minute."""
    failures: int = 0
    """How many of the last uses of this tool failed, of `uses`."""
    uses: int = 0
    approved: bool = False
    """Whether a person's approval of this action's digest was verified and used."""
    approved_by: str = ""
    """Who approved it, where that is known."""
    annotations: Mapping[str, Any] = field(default_factory=dict)
    """The annotations of an MCP tool. They can only make the action count as worse, unless its server is trusted."""
    declared: Mapping[str, Any] = field(default_factory=dict)
    """What the user or the author of an own tool says that it does: see `aver.gate.own_tools`. Empty if nobody has."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """HOME, AVER_HOME and AVER_LEDGER of the process that would act, as far as they are known."""
    links: Mapping[str, str] = field(default_factory=dict)
    """Paths of the action that lead elsewhere by symbolic links, each with the path that it leads to."""
    absent: tuple[str, ...] = ()
    """Files that the action writes, and that are not there yet."""
    written: str | None = None
    """The change that a command makes to files, as a unified diff, where the command shows all of it."""
    unseen: tuple[str, ...] = ()
    """Absolute paths of files that the session has changed and nobody has looked at: see `gate.facts.session_state`."""
    asked: tuple[Mapping[str, Any], ...] = ()
    """The calls that the client asks its person about, while their end is open: see `gate.facts.session_state`."""
    git: Mapping[str, Any] = field(default_factory=dict)
    """What git keeps of the session, and whether it fetched: see `gate.facts.session_state`."""
    meaning: Mapping[str, Any] = field(default_factory=dict)
    """What the call of a tool, or an answer, means: `CallOrigins.to_dict` of `gate.origins`. Empty for all else."""
    code: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The code that the action would run, as far as it was looked into: see `effects.workspace_code`."""

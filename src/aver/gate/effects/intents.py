"""The requests that the gateway carries out, as tools that the gate knows: which input is a path, a host, a recipient.

A request names an intent, and its *bound inputs* say exactly what would happen. `build_intent_action` makes the action
that the gate judges:

    intent                the action's type    what the inputs name
    SendMessage           api_request          a recipient, whom a text is sent to
    FetchResource         web_request          a host
    PostWebhook           api_request          a host, which a text is sent to
    CommitSkillInstall    action               a skill, which then steers an agent
    ReadWorkspaceFile     file_read            a file
    WriteWorkspaceFile    code_edit            a file; the change is the action's diff
    DeleteWorkspaceFile   file_delete          a file
    RunCommand            shell_exec           the words of a command, which no shell reads
    CallTool              tool_call            a tool of an MCP server; the action's tool is `mcp__<server>__<tool>`
    ReadResource          file_read            a resource of an MCP server; the action's tool is `mcp__<server>`
    Declassify            action               a value that the caller has not seen so far
    FinalizeOutput        action               a text for the person who uses the agent

`find_intent` knows such an action by its `request_sha256`, which agents cannot set. A tool of an agent that has the
name of an intent is an unknown tool.

Secrets are looked for in all inputs, with the rules of masking. A recipient is compared exactly: no case is folded, no
character replaced. A domain is compared in lower-case ASCII, with international names in their `xn--` form. Anything
else that could be read in two ways is unclear, so a person is asked.

    >>> normalise_domain("Shop.Example.ORG")
    'shop.example.org'
    >>> normalise_domain("ехample.org") is None        # The first two letters are Cyrillic.
    True
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from aver.errors import BadInput
from aver.fast_dataclass import dataclass
from aver.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from aver.gate.action import Action

EMAIL = "email"
"""The channel whose recipients are addresses."""

RECIPIENT_MAX = 320
"""Characters of a recipient: the longest address of e-mail."""

PORT_MAX = 65_535
HTTPS_PORT = "443"

_REQUEST_HASH = lazy_pattern(r"[0-9a-f]{64}")
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_DOMAIN = lazy_pattern(rf"(?=.{{1,253}}\Z)(?:{_LABEL}\.)*({_LABEL})")
_NUMBER = lazy_pattern(r"[0-9]+|0x[0-9a-f]*")
_PORT = lazy_pattern(r"[1-9][0-9]{0,4}")
_ADDRESS = lazy_pattern(r"(?:(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])(?:\.|\Z)){4}")
_REMOTE_URI = lazy_pattern(r"(?i:https?|wss?|ftps?|sftp|ssh|git|s3|gs)://")
_FILE_URI = lazy_pattern(r"(?i:file):(?://[^/]*)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class IntentProfile:
    """The effects of a request of one intent, and which of its inputs name their targets."""

    type: str
    """The type of the gate's action."""
    inputs: tuple[str, ...]
    """The bound inputs. An action has exactly these arguments."""
    effects: tuple[str, ...] = ()
    """Its effects, whatever the inputs are."""
    path: str = ""
    """The input that is a file of the workspace, and `on_path` what is done to it."""
    on_path: tuple[str, ...] = ()
    host: str = ""
    recipient: str = ""
    leaves: bool = False
    """Whether its inputs go to another machine."""
    command: str = ""
    """The input that is the words of a command."""
    directory: str = ""
    server: str = ""
    """The input that names an MCP server, `tool` the one that names its tool, and `uri` its resource."""
    tool: str = ""
    uri: str = ""


INTENTS: Mapping[str, IntentProfile] = {
    "SendMessage": IntentProfile(
        type="api_request",
        inputs=("channel", "recipient", "domain", "text"),
        effects=("network", "egress"),
        recipient="recipient",
        leaves=True,
    ),
    "FetchResource": IntentProfile(
        type="web_request",
        inputs=("resource_id", "domain", "recipient", "text"),
        effects=("network",),
        host="domain",
        leaves=True,
    ),
    "PostWebhook": IntentProfile(
        type="api_request",
        inputs=("domain", "path", "body", "text", "recipient"),
        effects=("network", "egress"),
        host="domain",
        leaves=True,
    ),
    "CommitSkillInstall": IntentProfile(
        type="action", inputs=("skill_id", "skill_digest"), effects=("install", "agent-config")
    ),
    "ReadWorkspaceFile": IntentProfile(type="file_read", inputs=("relpath",), path="relpath", on_path=("read",)),
    "WriteWorkspaceFile": IntentProfile(
        type="code_edit", inputs=("relpath", "content"), path="relpath", on_path=("write",)
    ),
    "DeleteWorkspaceFile": IntentProfile(type="file_delete", inputs=("relpath",), path="relpath", on_path=("delete",)),
    "RunCommand": IntentProfile(type="shell_exec", inputs=("argv", "cwd"), command="argv", directory="cwd"),
    "CallTool": IntentProfile(
        type="tool_call", inputs=("server", "tool", "arguments", "params"), server="server", tool="tool"
    ),
    "ReadResource": IntentProfile(type="file_read", inputs=("server", "uri", "params"), server="server", uri="uri"),
    "Declassify": IntentProfile(type="action", inputs=("handle", "purpose"), effects=("secret",)),
    "FinalizeOutput": IntentProfile(type="action", inputs=("text",)),
}
"""What the gate knows of each intent."""


@dataclass(frozen=True, slots=True)
class Recipient:
    """Whom a message goes to. `name` is exact. `domain` is in lower-case ASCII, or as given if it has no such form."""

    name: str
    channel: str = ""
    domain: str = ""


def build_intent_action(
    intent: str,
    inputs: Mapping[str, Any],
    *,
    request_sha256: str,
    caller: str = "",
    session: str = "",
    workspace: str = "",
    on_behalf_of: str = "",
    call_id: str = "",
    diff: str | None = None,
) -> Action:
    """Build the action that the gate judges for a request.

    `inputs` are the bound inputs, all of them and no others. `diff` is the change that a write makes. Raises `BadInput`
    where the inputs are not those of the intent.
    """
    from aver.gate.action import Action

    profile = INTENTS.get(intent)
    if profile is None:
        raise BadInput(f"{intent!r} is not an intent", advice=f"known are {', '.join(INTENTS)}")
    if inputs.keys() != set(profile.inputs):
        raise BadInput(f"the inputs of {intent} are exactly {', '.join(profile.inputs)}")
    if not _REQUEST_HASH.fullmatch(request_sha256):
        raise BadInput("request_sha256 must be the 64 digits of the request's hash")
    path = inputs[profile.path] if profile.path else ""
    if profile.path and not isinstance(path, str):
        raise BadInput(f"{profile.path} must be a text")
    return Action(
        type=profile.type,
        tool=_name_tool(intent, profile, inputs),
        arguments=dict(inputs),
        files=(path,) if profile.path else (),
        diff=diff,
        caller=caller,
        on_behalf_of=on_behalf_of,
        session=session,
        workspace=workspace,
        call_id=call_id,
        request_sha256=request_sha256,
    )


def _name_tool(intent: str, profile: IntentProfile, inputs: Mapping[str, Any]) -> str:
    """Return the tool of an action: the intent, or what it calls of an MCP server."""
    named = [inputs[name] for name in (profile.server, profile.tool) if name]
    if not all(isinstance(name, str) for name in named):
        raise BadInput(f"{profile.server} and {profile.tool or profile.uri} must be texts")
    return "__".join(("mcp", *named)) if named else intent


def is_request(action: Action) -> bool:
    """Whether the gateway made this action for a request. Agents cannot set the hash."""
    return _REQUEST_HASH.fullmatch(action.request_sha256) is not None


def find_intent(action: Action) -> IntentProfile | None:
    """Return the profile of an action that carries out a request; None for every other action."""
    if not is_request(action):
        return None
    known = (INTENTS[name] for name in (action.tool, "CallTool", "ReadResource") if name in INTENTS)
    for profile in known:
        is_one = action.type == profile.type and action.arguments.keys() == set(profile.inputs)
        try:
            if is_one and action.tool == _name_tool(action.tool, profile, action.arguments):
                return profile
        except BadInput:
            continue
    return None


def normalise_domain(text: str) -> str | None:
    """Return a domain in lower-case ASCII; None for what is no plain name of a host, or could be read otherwise.

    International names are accepted in their `xn--` form only: many letters look like others. A number that is no
    address of four parts is refused, because some programs read it as an address all the same.
    """
    if not text.isascii():
        return None
    lower = text.lower()
    found = _DOMAIN.fullmatch(lower)
    if found is None or (_NUMBER.fullmatch(found[1]) and not _ADDRESS.fullmatch(lower)):
        return None
    return lower


def normalise_authority(text: str) -> str | None:
    """Return a domain and its port in one form; None for anything else. The port of HTTPS is left out."""
    host, colon, port = text.partition(":")
    domain = normalise_domain(host)
    if domain is None or (colon and (not _PORT.fullmatch(port) or int(port) > PORT_MAX)):
        return None
    return domain if port in ("", HTTPS_PORT) else f"{domain}:{port}"


def read_recipient(profile: IntentProfile, inputs: Mapping[str, Any]) -> tuple[Recipient, str]:
    """Return the recipient of a message, and why it is not clear who that is; empty where it is."""
    name, channel, given = (str(inputs.get(key) or "") for key in (profile.recipient, "channel", "domain"))
    domain = normalise_domain(given)
    recipient = Recipient(name, channel, domain or given)
    if not name or len(name) > RECIPIENT_MAX or not name.isprintable() or " " in name:
        return recipient, "the recipient is no single name or address"
    if domain is None:
        return recipient, f"the domain {given[:80]!r} is not in lower-case ASCII, or no name of a host"
    # The rules may look at the domain alone, so it must be the one that the message goes to.
    local, at, own = name.rpartition("@")
    if at and (not local or "@" in local or normalise_domain(own) != domain):
        return recipient, "the domain is not that of the recipient"
    if channel == EMAIL and not at:
        return recipient, "the recipient is no address"
    return recipient, ""


def has_secret(inputs: Mapping[str, Any], names: Collection[str]) -> bool:
    """Whether one of these inputs holds a secret, by the rules of masking. All of each text is looked at."""
    from aver.capsule.masking.mask import MASK_START, mask  # Not above: only requests of the gateway need it.

    value = {name: inputs[name] for name in names if name in inputs}
    masked = mask(value)
    # A record holds the mark in the place of the secret. So a decision that is made again finds one, too.
    return masked.count > 0 or _holds_text(value, MASK_START)


def _holds_text(value: Any, text: str) -> bool:
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str) and text in item:
            return True
        if isinstance(item, Mapping):
            waiting += [*item.keys(), *item.values()]
        elif isinstance(item, list | tuple):
            waiting += item
    return False


def split_uri(uri: str) -> tuple[str, str]:
    """Return what a resource of an MCP server names: `file` and a path, `host` and a URL, or neither."""
    if found := _FILE_URI.match(uri):
        return "file", uri[found.end() :] or "/"
    return ("host", uri) if _REMOTE_URI.match(uri) else ("", "")

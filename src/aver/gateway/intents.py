"""The intents: what an agent can ask for, and the inputs that are bound to the request.

An intent has a name, and a second name that asks for its PREVIEW alone. Its *bound inputs* are hashed, shown to the
policy servers and given to the executor. All of them are always there, in one normal form, so that one request has one
hash. `bind_inputs` makes them from the inputs that the agent sent:

    >>> bind_inputs(INTENTS["SendMessage"], {"recipient": "bob@Example.com", "text": "hi"})
    {'channel': 'email', 'recipient': 'bob@example.com', 'domain': 'example.com', 'text': 'hi'}

The rules, in order:

1. No other keys than the bound inputs. A missing input gets its default, or is refused if it has none.
2. Every value has its type: a string, a list of strings (`argv`) or an object (`arguments`, `params`). Aver converts
   nothing: a number as a body is refused.
3. Some inputs are filled in by Aver: constants, or values that follow from the others, such as the domain of a
   recipient. The agent leaves them out. If it sends one, it must be the value that Aver fills in.
4. Host names are in lower case and ASCII, paths in a workspace have no `.` and no empty part. So one target has one
   spelling, and a rule about it cannot be passed by another one.
5. All inputs fit into a record, and none has the form of a reference to a value that the ledger stores.

Bound inputs bind to themselves: the executor runs the same function on what it receives and compares. `tx_id` and
`artifacts` may stand beside the inputs and are not bound (`read_inputs`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from aver.capsule.blobs import INLINE_MAX, move_large_texts
from aver.capsule.canonical import canonical_json
from aver.errors import NotCanonical, Refused
from aver.fast_dataclass import dataclass
from aver.gateway.codes import ARTIFACTS_NOT_ALLOWED, BAD_REQUEST, UNKNOWN_INTENT, WORKSPACE_PATH_BLOCKED
from aver.lazy_pattern import lazy_pattern
from aver.log import debug

INPUTS_MAX = 4 * 1024 * 1024
"""Largest inputs of one act, in canonical bytes. They hold at most one file; each part keeps a copy in memory."""

SHORT_INPUTS_MAX = 64 * 1024
"""Bytes of the inputs that a record holds itself. Those of the PREVIEW and of its decision have 256 KiB each, also for
the facts about every path and word."""

LINE_MAX = 256
"""Characters of a name: channel, server, tool, purpose, handle."""

RECIPIENT_MAX = 320
"""Characters of a recipient: 64 before the `@` and 255 after it, as in RFC 5321."""

LOCAL_PART_MAX = 64
"""Bytes of an address before the `@`, as in RFC 5321."""

HOST_MAX = 253
"""Characters of a host name, as in RFC 1035."""

URL_PART_MAX = 8_192
"""Characters of a resource, path or URI. Servers refuse longer ones."""

PATH_MAX = 4_096
"""Characters of a path in the workspace; the longest that Linux opens."""

WORDS_MAX = 4_096
"""Words of a command. Longer lists of files belong into a file."""

DUMMY_RECIPIENT = "alice@example.com"
"""The recipient that is bound where an intent has none (reference: `DUMMY_RECIPIENT`)."""

DUMMY_TEXT = "hello world"
"""The text that is bound where an intent has none (reference: `DUMMY_TEXT`)."""

HTTPS_PORT = ":443"

_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_HOST = lazy_pattern(rf"{_LABEL}(?:\.{_LABEL})*")
_NUMERIC_LABEL = lazy_pattern(r"[0-9]+|0x[0-9a-f]*")
_IPV4 = lazy_pattern(r"(?:(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])(?:\.(?!$)|$)){4}")
_PORT = lazy_pattern(r"[1-9][0-9]{0,4}")
_URL_PART = lazy_pattern(r"[!$%&'()*+,./0-9:;=?@A-Z_a-z~\[\]-]+")
_RECIPIENT_REFUSED = frozenset(' @,;:<>()[]"\\')
_LOCAL_PART_REFUSED = _RECIPIENT_REFUSED | frozenset("%!|")
"""In an address: `bob%evil.example@example.com` and `evil.example!bob@example.com` lead some servers on to another
host than the one that is judged, and `|` into a program."""
_ENCODED_WORD = "=?"
"""It begins an encoded word (RFC 2047), which programs show, and send, as other characters."""
_DIGEST = lazy_pattern(r"[0-9a-f]{64}")
_SKILL = lazy_pattern(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}")
_TX_ID_MAX = 128

Reader = Callable[[Any, str], Any]
"""Checks a value and returns its normal form. Raises `Refused`, which names the place."""

EffectPlace = Literal["executor", "proxy", "gateway"]


@dataclass(frozen=True, slots=True)
class InputRule:
    """How one bound input is read. Without default and `fill`, the agent must send it."""

    name: str
    read: Reader
    default: Any = None
    fill: Callable[[Mapping[str, Any]], Any] | None = None
    """Computes the input from those before it. The agent cannot choose it."""


@dataclass(frozen=True, slots=True)
class Intent:
    """A row of the table of intents."""

    name: str
    preview: str
    """The name that asks for PREVIEW alone; empty where there is none."""
    rules: tuple[InputRule, ...]
    """One for each bound input, in the order in which they are read."""
    endpoint: str
    """The path at the executor; empty where the effect is not the executor's."""
    place: EffectPlace
    """The part that causes the effect."""
    action_type: str
    """The type of the action that the gate judges."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the bound inputs."""
        return tuple(rule.name for rule in self.rules)


@dataclass(frozen=True, slots=True)
class IntentCall:
    """The intent that a name asks for, and whether it asks for PREVIEW alone."""

    intent: Intent
    preview_only: bool


@dataclass(frozen=True, slots=True)
class ActInputs:
    """The inputs of one act. `bound` is None where the agent sent nothing but a `tx_id`."""

    bound: dict[str, Any] | None
    tx_id: str | None


def _refuse(message: str, *, code: str = BAD_REQUEST, advice: str = "") -> Refused:
    debug("gateway", "refused as %s: %s", code, message)
    return Refused(code, message, advice=advice)


# --- readers of single values


def _read_string(value: Any, where: str) -> str:
    if type(value) is not str:
        raise _refuse(f"{where} must be a string, not {type(value).__name__}")
    return value


def read_line(value: Any, where: str, *, limit: int = LINE_MAX) -> str:
    """Return a string of 1 to `limit` printable characters; `BAD_REQUEST` for any other value."""
    text = _read_string(value, where)
    if not 1 <= len(text) <= limit:
        raise _refuse(f"{where} must have 1 to {limit} characters; this has {len(text)}")
    if not text.isprintable():
        raise _refuse(f"{where} holds a character that cannot be printed")
    return text


def _read_host(value: Any, where: str) -> str:
    host = _read_string(value, where).lower()
    if len(host) > HOST_MAX or _HOST.fullmatch(host) is None:
        raise _refuse(f"{where} is not a host name", advice="write it in ASCII letters, such as xn--bcher-kva.example")
    # Resolvers read `127.1` and `0x7f000001` as addresses, too: those are further spellings of one host.
    if _NUMERIC_LABEL.fullmatch(host.rpartition(".")[2]) and _IPV4.fullmatch(host) is None:
        raise _refuse(f"{where} is a number that is not an IPv4 address in its usual form")
    return host


def read_domain(value: Any, where: str) -> str:
    """A host name, and a port unless it is that of HTTPS."""
    host, colon, port = _read_string(value, where).partition(":")
    if colon and (_PORT.fullmatch(port) is None or int(port) > 65_535):
        raise _refuse(f"{where} has a bad port")
    domain = _read_host(host, where) + colon + port
    return domain.removesuffix(HTTPS_PORT)


def _fold_width(text: str) -> str:
    """Return a text as programs compare it: a full-width comma is a comma."""
    if text.isascii():
        return text
    import unicodedata  # Few recipients need it.

    return unicodedata.normalize("NFKC", text)


def _read_recipient(value: Any, where: str) -> str:
    """An address, whose host becomes lower case, or a name that has no `@`, such as `#general`."""
    recipient = read_line(value, where, limit=RECIPIENT_MAX)
    local, at, host = recipient.rpartition("@")
    plain = _fold_width(local if at else recipient)
    if not plain or not (_LOCAL_PART_REFUSED if at else _RECIPIENT_REFUSED).isdisjoint(plain):
        raise _refuse(f"{where} is not one recipient")
    if not at:
        return recipient
    if _ENCODED_WORD in plain or len(local.encode("utf-8", "replace")) > LOCAL_PART_MAX or "" in plain.split("."):
        raise _refuse(f"{where} is not an e-mail address in its usual form")
    return f"{local}@{_read_host(host, where)}"


def _read_url_part(value: Any, where: str) -> str:
    part = read_line(value, where, limit=URL_PART_MAX)
    if _URL_PART.fullmatch(part) is None:
        raise _refuse(f"{where} holds a character that a URL does not", advice="write it with a percent sign")
    return part


def _read_uri(value: Any, where: str) -> str:
    """The name of an MCP resource, in whatever scheme its server has."""
    uri = read_line(value, where, limit=URL_PART_MAX)
    if " " in uri:
        raise _refuse(f"{where} must not have a space")
    return uri


def _read_url_path(value: Any, where: str) -> str:
    path = _read_url_part(value, where)
    if not path.startswith("/"):
        raise _refuse(f"{where} must begin with a slash")
    return path


def _read_directory(value: Any, where: str) -> str:
    path = read_line(value, where, limit=PATH_MAX)
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if path.startswith("/") or ".." in parts:
        raise _refuse(f"{where} leads out of the workspace", code=WORKSPACE_PATH_BLOCKED)
    return "/".join(parts) or "."


def _read_relpath(value: Any, where: str) -> str:
    path = _read_directory(value, where)
    if path == "." or str(value).endswith(("/", "/.")):
        raise _refuse(f"{where} names a directory, not a file")
    return path


def _read_words(value: Any, where: str) -> list[str]:
    if type(value) is not list or not 1 <= len(value) <= WORDS_MAX:
        raise _refuse(f"{where} must be a list of 1 to {WORDS_MAX} strings")
    words = [_read_string(word, f"{where}[{index}]") for index, word in enumerate(value)]
    if not words[0] or any("\0" in word for word in words):
        raise _refuse(f"{where} must begin with a program, and have no NUL character")
    return words


def _read_object(value: Any, where: str) -> dict[str, Any]:
    if type(value) is not dict:
        raise _refuse(f"{where} must be an object, not {type(value).__name__}")
    return dict(value)  # The default is shared by all requests.


def _read_digest(value: Any, where: str) -> str:
    if _DIGEST.fullmatch(_read_string(value, where)) is None:
        raise _refuse(f"{where} must be 64 lower-case hex digits")
    return str(value)


def _read_skill_id(value: Any, where: str) -> str:
    if _SKILL.fullmatch(_read_string(value, where)) is None:
        raise _refuse(f"{where} must be 1 to 64 of A-Z a-z 0-9 . _ - and not begin with a dot")
    return str(value)


# --- the table


def _build_table() -> dict[str, Intent]:
    relpath = InputRule("relpath", _read_relpath)
    server = InputRule("server", read_line)
    params = InputRule("params", _read_object, default={})
    dummy_recipient = InputRule("recipient", _read_string, fill=lambda _: DUMMY_RECIPIENT)
    rows = (
        Intent(
            "SendMessage",
            "CheckMessagePolicy",
            (
                InputRule("channel", read_line, default="email"),
                InputRule("recipient", _read_recipient),
                InputRule(
                    "domain",
                    _read_string,
                    fill=lambda inputs: inputs["recipient"].rpartition("@")[2] if "@" in inputs["recipient"] else "",
                ),
                InputRule("text", _read_string),
            ),
            "/exec/send_message",
            "executor",
            "api_request",
        ),
        Intent(
            "FetchResource",
            "CheckFetchPolicy",
            (
                InputRule("resource_id", _read_url_part, default="example"),
                InputRule("domain", read_domain),
                dummy_recipient,
                InputRule("text", _read_string, fill=lambda _: DUMMY_TEXT),
            ),
            "/exec/fetch",
            "executor",
            "web_request",
        ),
        Intent(
            "PostWebhook",
            "CheckWebhookPolicy",
            (
                InputRule("domain", read_domain),
                InputRule("path", _read_url_path, default="/"),
                InputRule("body", _read_string),
                InputRule("text", _read_string, fill=lambda inputs: inputs["body"]),
                dummy_recipient,
            ),
            "/exec/webhook",
            "executor",
            "api_request",
        ),
        Intent(
            "CommitSkillInstall",
            "CheckSkillInstallPolicy",
            (InputRule("skill_id", _read_skill_id), InputRule("skill_digest", _read_digest)),
            "/exec/skill_install",
            "executor",
            "action",
        ),
        Intent("ReadWorkspaceFile", "CheckReadWorkspaceFile", (relpath,), "/exec/read_file", "executor", "file_read"),
        Intent(
            "WriteWorkspaceFile",
            "CheckWriteWorkspaceFile",
            (relpath, InputRule("content", _read_string)),
            "/exec/write_file",
            "executor",
            "code_edit",
        ),
        Intent(
            "DeleteWorkspaceFile",
            "CheckDeleteWorkspaceFile",
            (relpath,),
            "/exec/delete_file",
            "executor",
            "file_delete",
        ),
        Intent(
            "RunCommand",
            "CheckRunCommand",
            (InputRule("argv", _read_words), InputRule("cwd", _read_directory, default=".")),
            "/exec/run_command",
            "executor",
            "shell_exec",
        ),
        Intent(
            "CallTool",
            "CheckCallTool",
            (server, InputRule("tool", read_line), InputRule("arguments", _read_object, default={}), params),
            "",
            "proxy",
            "tool_call",
        ),
        Intent(
            "ReadResource",
            "CheckReadResource",
            (server, InputRule("uri", _read_uri), params),
            "",
            "proxy",
            "file_read",
        ),
        Intent(
            "Declassify", "", (InputRule("handle", read_line), InputRule("purpose", read_line)), "", "gateway", "action"
        ),
        Intent("FinalizeOutput", "", (InputRule("text", _read_string),), "", "gateway", "action"),
    )
    return {row.name: row for row in rows}


INTENTS: Mapping[str, Intent] = _build_table()
"""Every intent, by its name."""

_BY_ANY_NAME = {
    **{intent.name: IntentCall(intent, preview_only=False) for intent in INTENTS.values()},
    **{intent.preview: IntentCall(intent, preview_only=True) for intent in INTENTS.values() if intent.preview},
}


def find_intent(intent_id: str) -> IntentCall:
    """Return the intent that this name asks for; `Refused` with `UNKNOWN_INTENT` if there is none."""
    found = _BY_ANY_NAME.get(intent_id)
    if found is None:
        raise _refuse(f"there is no intent {intent_id[:80]!r}", code=UNKNOWN_INTENT)
    return found


def bind_inputs(intent: Intent, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the bound inputs of an intent, in its order. `Refused` names the first input that breaks a rule."""
    for name in inputs:
        if name not in intent.inputs:  # Rule 1.
            raise _refuse(
                f"inputs has an unknown key {ascii(name)[:80]}",
                advice=f"{intent.name} takes {_describe_inputs(intent)}",
            )
    bound: dict[str, Any] = {}
    for rule in intent.rules:
        where = f"inputs.{rule.name}"
        if rule.fill is not None:  # Rule 3.
            bound[rule.name] = rule.fill(bound)
            if rule.name in inputs and rule.read(inputs[rule.name], where) != bound[rule.name]:
                raise _refuse(f"{where} is set by the gateway, to another value than this", advice="leave it out")
        elif rule.name in inputs:
            bound[rule.name] = rule.read(inputs[rule.name], where)
        elif rule.default is not None:
            bound[rule.name] = rule.read(rule.default, where)
        else:
            raise _refuse(f"inputs lacks {rule.name!r}", advice=f"{intent.name} takes {_describe_inputs(intent)}")
    if intent.name == "SendMessage" and bound["channel"] == "email" and not bound["domain"]:
        raise _refuse("inputs.recipient must be an e-mail address", advice="name another channel for other recipients")
    try:
        size = len(canonical_json(bound))
    except NotCanonical as error:
        raise _refuse(f"inputs.{error.message}") from error
    if size > INPUTS_MAX:
        raise _refuse(f"inputs is larger than {INPUTS_MAX} bytes")
    # Only long texts are stored apart from a record, and so have room.
    if size > SHORT_INPUTS_MAX and len(canonical_json(move_large_texts({"arguments": bound})[0])) > SHORT_INPUTS_MAX:
        raise _refuse(f"inputs has more than {SHORT_INPUTS_MAX} bytes in texts of at most {INLINE_MAX} bytes each")
    # In a record it would stand for a value of the ledger, which the agent has never sent.
    if _has_reference(bound):
        raise _refuse("inputs holds an object that has the form of a reference to a stored value: {'blob': {...}}")
    return bound


def _has_reference(value: Any) -> bool:
    """Whether a value has an object whose only key is `blob`, with another object behind it."""
    if isinstance(value, dict):
        return (len(value) == 1 and isinstance(value.get("blob"), dict)) or any(map(_has_reference, value.values()))
    return isinstance(value, list) and any(map(_has_reference, value))


def read_inputs(call: IntentCall, inputs: Mapping[str, Any]) -> ActInputs:
    """Return the bound inputs of an act, and its `tx_id`. Raises `Refused`.

    With a `tx_id`, the agent may leave all inputs out: then those of the PREVIEW count. If it sends them, they are
    bound like those of any other act, and must give the request hash of the PREVIEW.
    """
    artifacts = inputs.get("artifacts", [])
    if type(artifacts) is not list:
        raise _refuse("inputs.artifacts must be a list")
    if artifacts:
        raise _refuse("inputs.artifacts is not empty, and an act forwards none", code=ARTIFACTS_NOT_ALLOWED)
    tx_id = inputs.get("tx_id")
    if "tx_id" in inputs:
        tx_id = read_line(tx_id, "inputs.tx_id", limit=_TX_ID_MAX)
        if call.preview_only:
            raise _refuse("inputs.tx_id asks for COMMIT, and this name does not", advice=f"use {call.intent.name}")
    rest = {name: value for name, value in inputs.items() if name not in ("tx_id", "artifacts")}
    return ActInputs(None if tx_id is not None and not rest else bind_inputs(call.intent, rest), tx_id)


def _describe_inputs(intent: Intent) -> str:
    return " ".join(rule.name for rule in intent.rules if rule.fill is None)

"""The role of each argument of a call: what the tool uses it for.

    destination  whom or what it goes to: a recipient, an account, an address, a channel
    object       the thing that is acted on: an id, a file, a title that must exist
    secret       a password or key
    when         a time
    amount       how much money, or how many
    content      what is written: a text, a title, a description
    option       all else: flags, choices from a list, limits

The name of the argument decides, then the words of its description. A value of an argument that nobody can tell is an
object: its origin is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from math import inf
from typing import Any, Literal, NamedTuple, get_args

from aver.gate.origins.plain_text import word_set
from aver.lazy_pattern import lazy_pattern

ArgumentRole = Literal["destination", "object", "secret", "when", "amount", "content", "option"]

ARGUMENT_ROLES: tuple[str, ...] = get_args(ArgumentRole)

VALUES_MAX = 500
"""Values of one call that are looked at. A call with more has a target that nobody knows."""

DEPTH_MAX = 16

_WORDS: dict[ArgumentRole, str] = {
    "secret": "password passphrase passwd pin secret token apikey credential credentials otp pwd",
    "when": """date time day start end until since deadline due when datetime hour minute month year at expires schedule
        from_date to_date timestamp""",
    "amount": "amount price sum total quantity cost fee value budget rate tip",
    "destination": """recipient recipients to cc bcc email emails mail participant participants attendee attendees
        channel channels account iban payee beneficiary address addresses url uri link href domain host webhook endpoint
        user users member members invitee invitees assignee assignees reviewer reviewers owner group team room phone
        number customer contact target destination receiver audience collaborator collaborators site website username
        handle""",
    "content": """body text content contents message description subject title summary comment note notes caption html
        markdown name label labels tags topic details reason location place street city country zip state query prompt
        question answer first last filename data input code script diff patch old new replacement observations entities
        color colour""",
    "object": """id ids key path file files repo repository branch event document doc page record item object entity
        resource ref sha thread issue pull task project board list folder directory hotel restaurant company product
        order booking reservation flight company booking slug collection database table index namespace cluster pod
        deployment service uuid guid parent source selector""",
    "option": """limit offset cursor count size per sort order_by direction format recurring permission permissions role
        mode type kind status priority visibility dry verbose force recursive language locale currency timezone unit
        units attachments enabled all include exclude options method draft private public""",
}

_ROLE_BY_WORD: Mapping[str, ArgumentRole] = {word: role for role in reversed(_WORDS) for word in _WORDS[role].split()}

_PRECEDENCE: tuple[ArgumentRole, ...] = ("secret", "destination", "when", "amount", "object", "option", "content")
"""Where a name has words of several roles. `user_email` is a destination, `start_time` a time."""

ADDRESS_WORDS = word_set("url uri link href domain host webhook endpoint website site")
"""Words of arguments that hold the address of another machine."""

_CAMEL = lazy_pattern(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_BREAK = lazy_pattern(r"[^A-Za-z0-9]+")
_DESCRIPTION_ROLES: tuple[tuple[ArgumentRole, str], ...] = (
    ("secret", r"password|passphrase|api key|access token"),
    ("destination", r"e-?mail address|recipient|iban|phone number|\burls?\b"),
    ("object", r"\bids?\b|identifier|\bname of the (?!new)|\bpath\b"),
    ("when", r"iso format|yyyy-mm-dd|\bdate\b"),
)


class RoledValue(NamedTuple):
    """One value of a call: where it stands, what it is for, and the value as text."""

    name: str
    """The name of the argument, with those inside it: `attachments.0.file_id`."""
    role: ArgumentRole
    value: str
    number: float | None = None


def split_name(name: str) -> list[str]:
    """Return the words of a name in any style, in lower case."""
    return [word.lower() for part in _BREAK.split(name) for word in _CAMEL.split(part) if word]


def find_role(name: str, schema: Mapping[str, Any] | None = None, value: Any = None) -> ArgumentRole:
    """Return the role of an argument by its name, the words of its description, and its value."""
    words = split_name(name)
    if isinstance(value, bool):
        return "option"
    if words and words[-1] in ("id", "ids", "uuid", "guid", "sha", "ref", "key", "slug") and "api" not in words:
        return "object"
    known = {role for word in words if (role := _ROLE_BY_WORD.get(word)) is not None}
    if known:
        return next(role for role in _PRECEDENCE if role in known)
    own = schema or {}
    if "enum" in own or own.get("type") == "boolean":
        return "option"
    words_of_it = str(own.get("description") or "")[:500]
    for role, pattern in _DESCRIPTION_ROLES:
        if re.search(pattern, words_of_it, re.IGNORECASE):
            return role
    return "object"


def list_values(
    arguments: Mapping[str, Any], schema: Mapping[str, Any] | None = None, roles: Mapping[str, str] | None = None
) -> Iterator[RoledValue | None]:
    """Yield the values of a call with their roles; None where there are too many, or too deep ones.

    `roles` are those that the user's settings give, by name of the argument.
    """
    properties = (schema or {}).get("properties")
    properties = properties if isinstance(properties, Mapping) else {}
    left = VALUES_MAX
    for name, value in arguments.items():
        own = properties.get(name)
        own = own if isinstance(own, Mapping) else {}
        for place, key, leaf in _walk(str(name), str(name), value, 0):
            if left == 0 or key is None:
                yield None
                return
            left -= 1
            given = (roles or {}).get(str(name))
            role = given if given in ARGUMENT_ROLES else find_role(key, own if key == name else None, leaf)
            if leaf is None or leaf == "":
                continue
            number = _to_number(leaf) if isinstance(leaf, int | float) and not isinstance(leaf, bool) else None
            yield RoledValue(place, role, leaf if isinstance(leaf, str) else str(leaf), number)  # type: ignore[arg-type]


def _to_number(value: float) -> float:
    """Return a number as a float. An integer beyond all floats is larger than every amount that a user can name."""
    try:
        return float(value)
    except OverflowError:
        return inf if value > 0 else -inf


def _walk(place: str, key: str, value: Any, depth: int) -> Iterator[tuple[str, str | None, Any]]:
    """Yield the leaves of a value. A key of None says that it is too deep."""
    if depth > DEPTH_MAX:
        yield place, None, None
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from _walk(f"{place}.{name}", str(name), item, depth + 1)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _walk(f"{place}.{index}", key, item, depth + 1)
    else:
        yield place, key, value

"""Proposes what an unknown tool does, for the message that asks a person to declare it.

The proposal goes by the words in the tool's name, by the names of its arguments, and by hints of its MCP server. It is
never weaker than these seem: a word that speaks of an effect adds it, and no word takes one away. A server's hint that
its tool only reads makes it no better. Where nothing speaks of an effect, nothing is proposed.

    >>> propose_effects("lookup_order", {"order": "17"}, {})
    ('read',)
    >>> propose_effects("sendMail", {"to": "ada"}, {})
    ('egress', 'network')
    >>> propose_effects("mcp__github__get_issue", {}, {})
    ('service-read',)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")

_WORDS_BY_EFFECT = {
    "read": "get list read search find lookup show view describe count check status inspect query select explain",
    "network": "fetch http https web url browse browser crawl scrape download request curl ping",
    "egress": """
        send post publish notify mail email message share upload push sync comment reply tweet invite chat pay refund
        order buy book charge transfer submit open close merge approve
    """,
    "write": """
        write save update edit create set add insert put rename move copy append store modify replace patch make new
        generate
    """,
    "delete": "delete remove drop purge destroy clear reset clean truncate revoke cancel archive wipe",
    "execute": "run exec execute shell command cmd eval deploy invoke start launch build script terminal test call",
    "install": "install upgrade",
    "process": "kill stop terminate restart signal",
    "persist": "schedule cron hook webhook subscribe register",
    "privilege": "sudo grant permit impersonate",
}
_EFFECT_BY_WORD = {word: effect for effect, words in _WORDS_BY_EFFECT.items() for word in words.split()}

_JOINING_WORDS = frozenset(("and", "or", "then"))
_SECRET_WORDS = frozenset(
    ("secret", "secrets", "token", "tokens", "password", "passwords", "credential", "credentials", "vault", "env")
)


def propose_effects(tool: str, arguments: Mapping[str, Any], annotations: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the effects that an unknown tool seems to have; none if nothing speaks of any."""
    words = [word.lower() for word in _WORDS.findall(tool.rpartition("__")[2])]
    found = _read_verbs(words)
    found |= {"secret"} if not _SECRET_WORDS.isdisjoint(words) else set()
    names = {re.sub(r"[^a-z]", "", str(name).lower()) for name in arguments}
    has_address = any(isinstance(value, str) and "://" in value for value in arguments.values())
    if has_address or names & {"url", "uri", "endpoint", "host", "hostname", "webhook"}:
        found.add("network")
    if names & {"to", "recipient", "recipients", "channel", "email", "phone", "attachment", "attachments"}:
        found.add("egress")
    if names & {"command", "cmd", "script", "code", "shell"}:
        found.add("execute")
    if names & {"sql", "statement", "mutation"}:
        found.add("write")
    if names & {"content", "contents", "text", "body", "data"} and names & {"path", "file", "filepath", "filename"}:
        found.add("write")
    found |= {"delete"} if annotations.get("destructiveHint") is True else set()
    found |= {"network"} if annotations.get("openWorldHint") is True else set()
    found |= {"write"} if annotations.get("readOnlyHint") is False else set()
    # A tool of an MCP server mostly asks a service elsewhere, also where it only reads.
    if tool.startswith("mcp__"):
        if found == {"read"}:
            return ("service-read",)
        found |= {"egress"} if found & {"write", "delete"} else set()
    return tuple(sorted(found | ({"network"} if "egress" in found else set())))


def _read_verbs(words: list[str]) -> set[str]:
    """Return the effects that the verbs in a name speak of: `get_order_and_pay`, else `order_lookup`, else any word."""
    first = [word for at, word in enumerate(words) if at == 0 or words[at - 1] in _JOINING_WORDS]
    for chosen in (first, words[-1:], words):
        found = {_EFFECT_BY_WORD[word] for word in chosen if word in _EFFECT_BY_WORD}
        if found:
            return found
    return set()

"""The settings of the executor's effects: parts of the table `[gateway]`.

    [gateway]
    private_hosts = ["wiki.corp.example:8443"]    hosts that may have an address of a private network

    [gateway.commands]
    allow = ["git status", "pytest"]   the words with which a command may begin; without the table, none may run
    timeout = 60                       seconds
    output_max = 1048576               bytes of output that are kept, of both streams together

    [gateway.mail]
    host = "smtp.example.com"          the server that takes the messages
    port = 587
    starttls = true                    refuse a server that does not encrypt
    from = "agent@example.com"
    user = "agent"                     with `user`, the password is in the variable that `password_env` names
    password_env = "AVER_MAIL_PASSWORD"

    [gateway.skills]
    directory = "/srv/skills"          where installed skills are; without it, AVER_HOME/gateway/skills
    ioc_domains = ["evil.example"]     a package that names one of them, or a name below it, is never installed

A secret is never in this file: `password_env` names a variable of the executor's own environment.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from aver.capsule.json_document import check_object, int_field
from aver.errors import BadInput, Refused
from aver.fast_dataclass import dataclass
from aver.gateway.intents import read_domain, read_line

LIST_MAX = 1000
"""Most entries of one list of the settings."""

COMMAND_SECONDS, COMMAND_SECONDS_MAX = 60, 3600
"""Seconds that a command may take: unless the settings say another number, and at most."""

OUTPUT_BYTES, OUTPUT_BYTES_MAX = 1024 * 1024, 4 * 1024 * 1024
"""Bytes of a command's output that are kept: unless the settings say another number, and at most."""

SUBMISSION_PORT = 587
"""The port for mail of one's own users (RFC 6409)."""


@dataclass(frozen=True, slots=True)
class CommandSettings:
    """Which commands may run, and for how long. `allow` has the first words of each."""

    allow: tuple[tuple[str, ...], ...] = ()
    timeout: int = COMMAND_SECONDS
    output_max: int = OUTPUT_BYTES


@dataclass(frozen=True, slots=True)
class MailSettings:
    """The server that takes messages, and the sender that they have."""

    host: str
    sender: str
    port: int = SUBMISSION_PORT
    starttls: bool = True
    user: str = ""
    password_env: str = ""


@dataclass(frozen=True, slots=True)
class SkillSettings:
    """Where skills are installed, and the domains that no package may name."""

    directory: str = ""
    ioc_domains: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectSettings:
    """The settings of all effects."""

    private_hosts: frozenset[str] = frozenset()
    commands: CommandSettings = CommandSettings()
    mail: MailSettings | None = None
    """None where no mail can be sent."""
    skills: SkillSettings = SkillSettings()


EFFECT_KEYS = frozenset({"private_hosts", "commands", "mail", "skills"})
"""The keys of `[gateway]` that are read here."""


def read_effect_settings(table: Mapping[str, Any], where: str) -> EffectSettings:
    """Read the settings of the effects from `[gateway]`. Raises `BadInput`, which names the setting that is wrong."""
    try:
        return EffectSettings(
            private_hosts=frozenset(
                read_domain(each, f"{where} private_hosts") for each in _read_list(table, "private_hosts", where)
            ),
            commands=_read_commands(_read_table(table, "commands", where), f"{where} commands"),
            mail=_read_mail(_read_table(table, "mail", where), f"{where} mail") if "mail" in table else None,
            skills=_read_skills(_read_table(table, "skills", where), f"{where} skills"),
        )
    except Refused as refusal:  # The readers of inputs are used here, too.
        raise BadInput(refusal.message, advice=refusal.advice) from refusal


def _read_commands(table: Mapping[str, Any], where: str) -> CommandSettings:
    check_object(dict(table), where, frozenset(), frozenset({"allow", "timeout", "output_max"}))
    return CommandSettings(
        tuple(_read_words(each, f"{where} allow") for each in _read_list(table, "allow", where)),
        int_field(table.get("timeout", COMMAND_SECONDS), f"{where} timeout", low=1, high=COMMAND_SECONDS_MAX),
        int_field(table.get("output_max", OUTPUT_BYTES), f"{where} output_max", low=0, high=OUTPUT_BYTES_MAX),
    )


def _read_words(value: Any, where: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(read_line(value, where)))
    except ValueError as error:
        raise BadInput(f"{where}: {value!r} is no list of words: {error}") from error
    if not words or not words[0]:
        raise BadInput(f"{where} must name a program")
    return words


def _read_mail(table: Mapping[str, Any], where: str) -> MailSettings:
    optional = frozenset({"port", "starttls", "user", "password_env"})
    check_object(dict(table), where, frozenset({"host", "from"}), optional)
    starttls = table.get("starttls", True)
    if type(starttls) is not bool:
        raise BadInput(f"{where} starttls must be true or false")
    if ("user" in table) != ("password_env" in table):
        raise BadInput(f"{where} must have both user and password_env, or neither")
    if "user" in table and not starttls:
        raise BadInput(f"{where}: with user, starttls must be true; else the password would be sent for all to read")
    host = read_domain(table["host"], f"{where} host")
    if ":" in host:
        raise BadInput(f"{where} host must be a name alone", advice=f"write the port as {where} port")
    return MailSettings(
        host=host,
        sender=read_line(table["from"], f"{where} from"),
        port=int_field(table.get("port", SUBMISSION_PORT), f"{where} port", low=1, high=65_535),
        starttls=starttls,
        user=read_line(table["user"], f"{where} user") if "user" in table else "",
        password_env=read_line(table["password_env"], f"{where} password_env") if "user" in table else "",
    )


def _read_skills(table: Mapping[str, Any], where: str) -> SkillSettings:
    check_object(dict(table), where, frozenset(), frozenset({"directory", "ioc_domains"}))
    directory = table.get("directory", "")
    if not isinstance(directory, str) or "\0" in directory or (directory and not directory.startswith("/")):
        raise BadInput(f"{where} directory must be an absolute path")
    domains = (read_domain(each, f"{where} ioc_domains") for each in _read_list(table, "ioc_domains", where))
    return SkillSettings(directory, frozenset(domains))


def _read_table(table: Mapping[str, Any], name: str, where: str) -> Mapping[str, Any]:
    found = table.get(name, {})
    if not isinstance(found, dict):
        raise BadInput(f"{where} {name} must be a table")
    return found


def _read_list(table: Mapping[str, Any], name: str, where: str) -> list[Any]:
    found = table.get(name, [])
    if not isinstance(found, list) or len(found) > LIST_MAX:
        raise BadInput(f"{where} {name} must be a list of at most {LIST_MAX} texts")
    return found

"""The refusals that an effect's settings make certain. The gateway asks here at PREVIEW, before it asks a person.

Without this, a person would be asked to approve a command that is not in the list, and the executor would refuse it
afterwards. The executor makes the same checks again, from the same functions, so both give the same code and words:

    RunCommand                  the list [gateway.commands] allow has the command      CAPABILITY_DENY
    SendMessage                 [gateway.mail] is set, and the channel is email        EXECUTOR_UNAVAILABLE
    FetchResource, PostWebhook  the domain names no private address itself             DOMAIN_NOT_ALLOWED
    CallTool, ReadResource      the server is connected to this gateway                EFFECT_FAILED
    any other                   the executor carries the intent out                    EXECUTOR_UNAVAILABLE

No name is resolved and no program is looked for: both can change until the effect.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from aver.errors import Refused
from aver.gateway.effect_settings import CommandSettings, EffectSettings, MailSettings

EXECUTOR_UNAVAILABLE = "EXECUTOR_UNAVAILABLE"

EMAIL = "email"
"""The one channel of messages."""

Precondition = Callable[[Mapping[str, Any]], object]
"""Checks the inputs of a request. Raises `Refused`."""


class Preconditions:
    """The checks of one executor's effects. `check` is called for each request that the policy allows.

    `carried_out` are the intents that the executor knows. `servers` is the gateway's own collection of names: servers
    may join while it is open.
    """

    def __init__(
        self, carried_out: Collection[str], servers: Collection[str], settings: EffectSettings | None = None
    ) -> None:
        self._carried_out = carried_out
        self._servers = servers
        self._checks: dict[str, Precondition] = {} if settings is None else self._list_checks(settings)

    @staticmethod
    def _list_checks(settings: EffectSettings) -> dict[str, Precondition]:
        def check_domain(inputs: Mapping[str, Any]) -> None:
            from aver.gateway.effects.checked_address import check_literal  # Few acts go to the network.

            check_literal(inputs["domain"], may_be_private=inputs["domain"] in settings.private_hosts)

        return {
            "RunCommand": lambda inputs: check_command(inputs["argv"], settings.commands),
            "SendMessage": lambda inputs: require_mail(inputs["channel"], settings.mail),
            "FetchResource": check_domain,
            "PostWebhook": check_domain,
        }

    def check(self, intent_id: str, inputs: Mapping[str, Any]) -> None:
        """Raise `Refused` where the executor would refuse these inputs, whoever approves them."""
        if intent_id not in self._carried_out:
            raise Refused(EXECUTOR_UNAVAILABLE, f"this executor cannot carry out {intent_id}")
        if "server" in inputs:
            check_server(inputs["server"], self._servers)
        check = self._checks.get(intent_id)
        if check is not None:
            check(inputs)


def check_command(argv: Sequence[str], settings: CommandSettings) -> None:
    """Raise `Refused` where the list of commands does not have this one."""
    if not any(tuple(argv[: len(words)]) == words for words in settings.allow):
        advice = "the operator can add the first words of the command to [gateway.commands] allow"
        raise Refused("CAPABILITY_DENY", f"the command {argv[0][:80]!r} is not in the list", advice=advice)


def require_mail(channel: str, settings: MailSettings | None) -> MailSettings:
    """Return the settings of the mail server. Raises `Refused` where there are none, or for another channel."""
    if channel != EMAIL:
        raise Refused(EXECUTOR_UNAVAILABLE, f"this executor has no channel {channel!r}")
    if settings is None:
        advice = "the operator sets host and from in [gateway.mail]"
        raise Refused(EXECUTOR_UNAVAILABLE, "this executor has no mail server", advice=advice)
    return settings


def check_server(name: str, servers: Collection[str]) -> None:
    """Raise `Refused` where no server of this name is connected."""
    if name not in servers:
        advice = "aver proxy connects MCP servers, and Gateway.connect those of a program"
        raise Refused("EFFECT_FAILED", f"no server {name!r} is connected to this gateway", advice=advice)

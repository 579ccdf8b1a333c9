"""The effect of `SendMessage`: one mail to one recipient, through the operator's own mail server.

The message has the bound text and nothing else that an agent could choose. From, To, Subject and the other headers are
written by the library, which refuses line breaks in them. The act's id goes along as `Message-ID` and
`Idempotency-Key`, so that a second delivery can be recognised.

With `starttls` (the default), a server that does not encrypt gets nothing. The server either takes the message or
refuses it. Where the connection ends after the text was sent and before the answer, nobody knows: `OUTCOME_UNKNOWN`.
"""

from __future__ import annotations

import os
import smtplib
import ssl
from collections.abc import Mapping
from contextlib import suppress
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import formatdate

from aver.errors import Refused
from aver.gateway.effect_settings import MailSettings
from aver.gateway.effects.preconditions import EMAIL, require_mail
from aver.gateway.executor.executor import EFFECT_FAILED, EXECUTOR_UNAVAILABLE, OUTCOME_UNKNOWN, EffectDone, EffectOrder

MAIL_SECONDS = 30.0
"""Seconds that each step of the conversation may take."""

SUBJECT = "Message from an agent"
"""Not with the caller's name: agents choose it themselves."""


class MailEffect:
    """Sends messages by the settings; without settings, it refuses all of them."""

    def __init__(self, settings: MailSettings | None, environment: Mapping[str, str] = os.environ) -> None:
        self._settings = settings
        self._environment = environment

    def __call__(self, order: EffectOrder) -> EffectDone:
        recipient = order.inputs["recipient"]
        settings = require_mail(order.inputs["channel"], self._settings)
        message = _build_message(order, settings)
        server = self._connect(settings)
        try:
            _deliver(server, message, settings.sender, recipient)
        finally:
            with suppress(OSError, smtplib.SMTPException):
                server.quit()
        told = {"channel": EMAIL, "recipient": recipient, "message_id": str(message["Message-ID"])}
        return EffectDone(f"sent a message to {recipient}", told)

    def _connect(self, settings: MailSettings) -> smtplib.SMTP:
        """Connect, encrypt and log in. Nothing of the message has gone out if this raises `Refused`."""
        try:
            server = smtplib.SMTP(settings.host, settings.port, timeout=MAIL_SECONDS)
            try:
                if settings.starttls:
                    server.starttls(context=ssl.create_default_context())
                if settings.user:
                    server.login(settings.user, self._read_password(settings))
            except BaseException:
                server.close()
                raise
        except (OSError, smtplib.SMTPException) as error:
            raise Refused(EFFECT_FAILED, f"the mail server {settings.host} cannot be used: {_tell(error)}") from error
        return server

    def _read_password(self, settings: MailSettings) -> str:
        password = self._environment.get(settings.password_env, "")
        if not password:
            raise Refused(EXECUTOR_UNAVAILABLE, f"the variable {settings.password_env} has no password")
        return password


def _build_message(order: EffectOrder, settings: MailSettings) -> EmailMessage:
    message = EmailMessage(policy=SMTP)
    try:
        message["From"] = settings.sender
        message["To"] = order.inputs["recipient"]
        message["Subject"] = SUBJECT
        message["Date"] = formatdate()
        message["Message-ID"] = f"<{order.action_id}@{settings.sender.rpartition('@')[2].rstrip('>')}>"
        message["Idempotency-Key"] = order.action_id
        message.set_content(order.inputs["text"])
    # A line break in a header, or half a character: the library refuses both.
    except (ValueError, UnicodeError) as error:
        raise Refused(EFFECT_FAILED, f"the message cannot be written: {error}") from error
    return message


def _deliver(server: smtplib.SMTP, message: EmailMessage, sender: str, recipient: str) -> None:
    """Hand the message over. The recipient is given alone: no header adds another one."""
    try:
        server.send_message(message, from_addr=sender.rpartition("<")[2].rstrip(">"), to_addrs=[recipient])
    except (smtplib.SMTPResponseException, smtplib.SMTPRecipientsRefused, smtplib.SMTPNotSupportedError) as error:
        raise Refused(EFFECT_FAILED, f"the mail server refused the message: {_tell(error)}") from error
    except (OSError, smtplib.SMTPException) as error:
        raise Refused(OUTCOME_UNKNOWN, f"the mail server gave no answer to the message: {_tell(error)}") from error


def _tell(error: Exception) -> str:
    """Return the server's words, in ASCII and short: they go into a record."""
    return ascii(str(error))[1:-1][:200]

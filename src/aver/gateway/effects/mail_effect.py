"""The effect of `SendMessage`: one mail to one recipient, through the operator's own mail server.

The message has the bound text and nothing else that an agent could choose. From, To, Subject and the other headers are
written by the library, which refuses line breaks in them. The act's id goes along as `Message-ID` and
`Idempotency-Key`, so that a second delivery can be recognised.

With `starttls` (the default), a server that does not encrypt gets nothing. The server either takes the message or
refuses it. Where the connection or the time ends after the text was sent and before an answer, nobody knows:
`OUTCOME_UNKNOWN`. An answer that is no answer of SMTP counts as none. Before the text, every error is `EFFECT_FAILED`.

The words of a server go into a record, and to the agent. Those about a login do not: they can repeat the password.
"""

from __future__ import annotations

import os
import smtplib
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import formatdate

from aver.errors import Refused
from aver.gateway.effect_settings import MailSettings
from aver.gateway.effects.mail_conversation import MailConversation
from aver.gateway.effects.preconditions import EMAIL, require_mail
from aver.gateway.executor.executor import EFFECT_FAILED, EXECUTOR_UNAVAILABLE, OUTCOME_UNKNOWN, EffectDone, EffectOrder

SUBJECT = "Message from an agent"
"""Not with the caller's name: agents choose it themselves."""

TAKES_ADDRESS, TAKES_TEXT = frozenset({250, 251}), frozenset({354})
"""The answers to an address and to `DATA` by which a server asks for more."""

_POLICY = SMTP.clone(cte_type="7bit")
"""Bytes beyond ASCII are encoded: not every server passes them on."""


class MailEffect:
    """Sends messages by the settings; without settings, it refuses all of them."""

    def __init__(self, settings: MailSettings | None, environment: Mapping[str, str] = os.environ) -> None:
        self._settings = settings
        self._environment = environment

    def __call__(self, order: EffectOrder) -> EffectDone:
        recipient = order.inputs["recipient"]
        settings = require_mail(order.inputs["channel"], self._settings)
        message = _build_message(order, settings)
        password = self._read_password(settings) if settings.user else ""
        with self._connect(settings, password) as server:
            _deliver(server, message, settings.sender, recipient)
        told = {"channel": EMAIL, "recipient": recipient, "message_id": str(message["Message-ID"])}
        return EffectDone(f"sent a message to {recipient}", told)

    @contextmanager
    def _connect(self, settings: MailSettings, password: str) -> Iterator[MailConversation]:
        """Connect, encrypt and log in. Nothing of the message has gone out if this raises `Refused`."""
        server: MailConversation | None = None
        try:
            try:
                server = MailConversation(settings.host, settings.port)
                if settings.starttls:
                    server.starttls(context=ssl.create_default_context())
                server.ehlo_or_helo_if_needed()
            except (OSError, smtplib.SMTPException) as error:
                raise _unusable_server(settings, _tell(error)) from error
            if settings.user:
                _log_in(server, settings, password)
            yield server
            with suppress(OSError, smtplib.SMTPException):
                server.quit()
        finally:
            if server is not None:
                server.close()

    def _read_password(self, settings: MailSettings) -> str:
        password = self._environment.get(settings.password_env, "")
        if not password or not password.isascii():
            words = f"the variable {settings.password_env} has no password, or one with characters beyond ASCII"
            raise Refused(EXECUTOR_UNAVAILABLE, words)
        return password


def _log_in(server: MailConversation, settings: MailSettings, password: str) -> None:
    """Log in. The error names the kind of trouble alone, and keeps no trace of the library's: it has the password."""
    try:
        server.login(settings.user, password)
        return
    except smtplib.SMTPResponseException as error:
        words = f"it refuses the login with {error.smtp_code}"
    except smtplib.SMTPNotSupportedError:
        words = "it offers no login"
    except (OSError, smtplib.SMTPException, ValueError) as error:  # `ValueError`: a challenge that is no base64.
        words = f"the login failed: {type(error).__name__}"
    raise _unusable_server(settings, words)


def _unusable_server(settings: MailSettings, words: str) -> Refused:
    return Refused(EFFECT_FAILED, f"the mail server {settings.host} cannot be used: {words}")


def _build_message(order: EffectOrder, settings: MailSettings) -> EmailMessage:
    message, recipient, text = EmailMessage(policy=_POLICY), order.inputs["recipient"], order.inputs["text"]
    try:
        message["From"] = settings.sender
        message["To"] = recipient
        message["Subject"] = SUBJECT
        message["Date"] = formatdate()
        message["Message-ID"] = f"<{order.action_id}@{settings.sender.rpartition('@')[2].rstrip('>')}>"
        message["Idempotency-Key"] = order.action_id
        # SMTP carries no NUL.
        message.set_content(text, cte="quoted-printable" if "\0" in text else None)
    # A line break in a header, or half a character: the library refuses both.
    except (ValueError, UnicodeError) as error:
        raise Refused(EFFECT_FAILED, f"the message cannot be written: {error}") from error
    # The library decodes words such as `=?utf-8?q?...?=`. The reader of the mail must see the recipient that was bound.
    if [each.addr_spec for each in message["To"].addresses] != [recipient]:
        raise Refused(EFFECT_FAILED, "the message cannot be written: the recipient reads as another one")
    return message


def _deliver(server: MailConversation, message: EmailMessage, sender: str, recipient: str) -> None:
    """Hand the message over. The recipient is given alone: no header adds another one."""
    address = sender.rpartition("<")[2].rstrip(">")
    try:
        options, text = _write_text(server, message, address + recipient)
        _require("sender", server.mail(address, options), TAKES_ADDRESS)
        _require("recipient", server.rcpt(recipient), TAKES_ADDRESS)
        _require("text", server.docmd("DATA"), TAKES_TEXT)
    except (OSError, smtplib.SMTPException) as error:
        raise Refused(EFFECT_FAILED, f"the mail server took no message: {_tell(error)}") from error
    # From here on, the server may have the message.
    try:
        code, words = server.send_text(text)
    except (OSError, smtplib.SMTPException) as error:
        raise Refused(OUTCOME_UNKNOWN, f"the mail server gave no answer to the message: {_tell(error)}") from error
    if 400 <= code <= 599:
        raise Refused(EFFECT_FAILED, f"the mail server refused the message: {code} {_show(words)}")
    if not 200 <= code <= 299:
        raise Refused(OUTCOME_UNKNOWN, f"the mail server gave no clear answer to the message: {code} {_show(words)}")


def _require(step: str, answer: tuple[int, bytes], codes: frozenset[int]) -> None:
    """Raise `Refused` unless the server goes on with a step. It has nothing of the text yet."""
    code, words = answer
    if code not in codes:
        raise Refused(EFFECT_FAILED, f"the mail server refused the {step}: {code} {_show(words)}")


def _write_text(server: MailConversation, message: EmailMessage, addresses: str) -> tuple[list[str], bytes]:
    """Return the options of `MAIL`, and the message in bytes. Addresses beyond ASCII need a server that knows them."""
    if addresses.isascii():
        return [], message.as_bytes()
    if not server.has_extn("smtputf8"):
        raise smtplib.SMTPNotSupportedError("the server knows ASCII addresses alone")
    return ["SMTPUTF8", "BODY=8BITMIME"], message.as_bytes(policy=_POLICY.clone(utf8=True))


def _tell(error: Exception) -> str:
    if isinstance(error, smtplib.SMTPResponseException):
        return f"{error.smtp_code} {_show(error.smtp_error)}"
    return _show(str(error))


def _show(words: str | bytes) -> str:
    """Return the words of a server, in ASCII and short: they go into a record."""
    text = words.decode("latin-1") if isinstance(words, bytes) else words
    return ascii(text)[1:-1][:200]

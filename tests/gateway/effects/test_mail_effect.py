"""`SendMessage` against a real mail server on loopback."""

from __future__ import annotations

import email
from collections.abc import Iterator
from email.policy import default
from pathlib import Path
from typing import Any, cast

import pytest

from aver.errors import Refused
from aver.gateway.effect_settings import EffectSettings, MailSettings
from aver.gateway.effects.mail_effect import MailEffect
from aver.gateway.executor.executor import EffectOrder
from aver.gateway.request import BoundRequest
from support.acts import open_office
from support.loopback_servers import MailBox, serve_mail, write_certificate

SENDER = "Agent <agent@example.com>"


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MailBox]:
    certificate = write_certificate(tmp_path, "localhost")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with serve_mail(certificate) as opened:
        yield opened


def settings(box: MailBox, **more: Any) -> MailSettings:
    return MailSettings(host="localhost", sender=SENDER, port=box.port, **more)


def order(**inputs: Any) -> EffectOrder:
    given = {"recipient": "bob@example.com", "text": "hi\n", **inputs}
    request = BoundRequest.bind("SendMessage", caller="agent:writer", session="s1", inputs=given)
    return EffectOrder(request, request.inputs, cast(Any, None), "/", "a_0123456789abcdef")


def refused(effect: MailEffect, given: EffectOrder) -> Refused:
    with pytest.raises(Refused) as caught:
        effect(given)
    return caught.value


def test_a_message_reaches_its_one_recipient(box: MailBox) -> None:
    done = MailEffect(settings(box))(order(text="Grüße\n.\nTo: eve@example.com\n"))
    ((sender, recipients, content),) = box.messages
    assert (sender, recipients) == ("agent@example.com", ["bob@example.com"])
    message = email.message_from_bytes(content, policy=default)
    assert message["To"] == "bob@example.com"
    assert message["Idempotency-Key"] == "a_0123456789abcdef"
    assert message["Message-ID"] == done.data["message_id"] == "<a_0123456789abcdef@example.com>"
    assert message["Subject"] == "Message from an agent"
    assert message.get_content().replace("\r\n", "\n") == "Grüße\n.\nTo: eve@example.com\n"


@pytest.mark.parametrize(
    "recipient",
    [
        "bob@example.com\r\nBcc: eve@example.com",
        "bob@example.com,eve@example.com",
        "bob@example.com eve@example.com",
        "<bob@example.com>",
        "bob@example.com>\r\nRCPT TO:<eve@example.com",
    ],
)
def test_a_second_recipient_or_header_is_no_request(recipient: str) -> None:
    with pytest.raises(Refused) as caught:
        order(recipient=recipient)
    assert caught.value.code == "BAD_REQUEST"


def test_a_caller_with_a_line_break_is_no_caller() -> None:
    """The caller is in the subject."""
    given = {"recipient": "b@example.com", "text": ""}
    with pytest.raises(Refused):
        BoundRequest.bind("SendMessage", caller="x\r\nBcc: eve@example.com", session="s1", inputs=given)


def test_a_server_that_does_not_encrypt_gets_nothing() -> None:
    with serve_mail(None) as plain:
        error = refused(MailEffect(settings(plain)), order())
        assert error.code == "EFFECT_FAILED"
        assert not plain.messages
        MailEffect(settings(plain, starttls=False))(order())
        assert len(plain.messages) == 1


def test_another_certificate_is_refused(box: MailBox, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.setenv("SSL_CERT_FILE", str(write_certificate(other, "localhost")))
    assert refused(MailEffect(settings(box)), order()).code == "EFFECT_FAILED"
    assert not box.messages


def test_a_server_that_refuses(box: MailBox) -> None:
    box.refuses = "554 \x1b[31mno\x1b[0m"
    error = refused(MailEffect(settings(box)), order())
    assert error.code == "EFFECT_FAILED"
    assert "\x1b" not in error.message


def test_a_server_that_goes_away_after_the_text(box: MailBox) -> None:
    box.refuses = "drop"
    assert refused(MailEffect(settings(box)), order()).code == "OUTCOME_UNKNOWN"


def test_no_server_no_channel_no_password(box: MailBox) -> None:
    assert refused(MailEffect(None), order()).code == "EXECUTOR_UNAVAILABLE"
    assert refused(MailEffect(settings(box)), order(channel="chat")).code == "EXECUTOR_UNAVAILABLE"
    secret = settings(box, user="agent", password_env="MAIL_PASSWORD")
    assert refused(MailEffect(secret, {}), order()).code == "EXECUTOR_UNAVAILABLE"
    assert not box.messages


@pytest.mark.more
def test_through_the_gateway(box: MailBox, aver_home: Path, tmp_path: Path) -> None:
    with open_office(tmp_path / "work", effects=EffectSettings(mail=settings(box))) as office:
        office.enrol()
        inputs = {"recipient": "bob@example.com", "text": "hello\n"}
        asked = office.act("SendMessage", inputs)
        assert asked["reason_code"] == "REQUIRE_CONFIRM", asked
        assert not box.messages
        office.approve(asked["data"]["approval"])
        assert office.act("SendMessage", inputs)["reason_code"] == "ALLOW"
        assert len(box.messages) == 1
        # The approval is used up.
        assert office.act("SendMessage", inputs)["reason_code"] == "REQUIRE_CONFIRM"
        assert len(box.messages) == 1
        assert office.ledger.verify().status == "verified"


def test_an_unknown_outcome_is_sealed_and_the_verdict_says_so(box: MailBox, aver_home: Path, tmp_path: Path) -> None:
    box.refuses = "drop"
    with open_office(tmp_path / "work", effects=EffectSettings(mail=settings(box))) as office:
        office.enrol()
        inputs = {"recipient": "bob@example.com", "text": "hello\n"}
        office.approve(office.act("SendMessage", inputs)["data"]["approval"])
        assert office.act("SendMessage", inputs)["reason_code"] == "OUTCOME_UNKNOWN"
        verdict = office.ledger.verify()
        assert verdict.status == "qualified"
        assert [each.code for each in verdict.findings] == ["OUTCOME_UNKNOWN"]

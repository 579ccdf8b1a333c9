"""`SendMessage` against a mail server that lies, hangs, floods, or dies at the worst moment."""

from __future__ import annotations

import base64
import email
import time
from email.policy import default
from pathlib import Path
from typing import Any, cast

import pytest

from aver.errors import BadInput, Refused
from aver.gateway.effect_settings import EffectSettings, MailSettings, read_effect_settings
from aver.gateway.effects import mail_conversation
from aver.gateway.effects.mail_effect import MailEffect
from aver.gateway.executor.executor import EffectOrder
from aver.gateway.request import BoundRequest
from support.acts import open_office
from support.loopback_servers import write_certificate
from support.scripted_mail import ScriptedMail, serve_script

PASSWORD = "correct-horse-battery"
STEPS = ["CONNECT", "STARTTLS", "MAIL", "RCPT", "DATA"]
GARBAGE = [b"garbage\r\n", b"\r\n", b"x" * 9000 + b"\r\n", b"199 what\r\n", b"250-half\r\n554 other\r\n", b"250 no end"]


@pytest.fixture
def certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = write_certificate(tmp_path, "localhost")
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    monkeypatch.setattr(mail_conversation, "STEP_SECONDS", 0.5)
    monkeypatch.setattr(mail_conversation, "CONVERSATION_SECONDS", 1.5)
    return path


def order(**inputs: Any) -> EffectOrder:
    given = {"recipient": "bob@example.com", "text": "hi\n", **inputs}
    request = BoundRequest.bind("SendMessage", caller="agent:writer", session="s1", inputs=given)
    return EffectOrder(request, request.inputs, cast(Any, None), "/", "a_0123456789abcdef")


def send(server: ScriptedMail, given: EffectOrder | None = None, *, user: str = "", host: str = "localhost") -> str:
    """Send a message; returns the refusal's code and words, or nothing where the server took it."""
    known: dict[str, Any] = {"user": user, "password_env": "MAIL_PASSWORD"} if user else {}
    settings = MailSettings(host=host, sender="Agent <agent@example.com>", port=server.port, **known)
    try:
        MailEffect(settings, {"MAIL_PASSWORD": PASSWORD})(given or order())
    except Refused as refusal:
        return f"{refusal.code}: {refusal}"
    return ""


@pytest.mark.sample(8)
@pytest.mark.parametrize(
    ("step", "answer"),
    [
        *((step, each) for step in (*STEPS, "EHLO TLS") for each in (*GARBAGE, None)),
        # Not EHLO: a server that knows HELO alone is a mail server, too.
        *((step, each) for step in STEPS for each in (b"451 later\r\n", b"554 never\r\n", b"421 gone\r\n")),
    ],
)
def test_before_the_text_nothing_was_sent(certificate: Path, step: str, answer: bytes | None) -> None:
    with serve_script(certificate, {step: answer}) as server:
        assert send(server).startswith("EFFECT_FAILED: ")
        assert not server.text


@pytest.mark.sample(4)
@pytest.mark.parametrize("answer", [*GARBAGE, b"354 more\r\n", None])
def test_after_the_text_an_answer_that_is_none_leaves_the_outcome_unknown(
    certificate: Path, answer: bytes | None
) -> None:
    with serve_script(certificate, {"TEXT": answer}) as server:
        assert send(server).startswith("OUTCOME_UNKNOWN: ")
        assert server.text


@pytest.mark.parametrize("answer", [b"451 later\r\n", b"554 never\r\n", b"421 gone\r\n"])
def test_a_refusal_of_the_text_is_a_refusal(certificate: Path, answer: bytes) -> None:
    with serve_script(certificate, {"TEXT": answer}) as server:
        assert send(server).startswith("EFFECT_FAILED: ")


@pytest.mark.more
@pytest.mark.parametrize(("step", "code"), [("CONNECT", "EFFECT_FAILED"), ("TEXT", "OUTCOME_UNKNOWN")])
def test_a_server_that_sends_one_byte_at_a_time(certificate: Path, step: str, code: str) -> None:
    def drip(server: ScriptedMail, line: bytes) -> None:
        while not server.is_over.wait(0.05):
            server.connection.sendall(b"2")

    with serve_script(certificate, {step: drip}) as server:
        began = time.monotonic()
        assert send(server).startswith(code)
        assert time.monotonic() - began < 5


def test_a_server_that_sends_lines_without_end(certificate: Path) -> None:
    def flood(server: ScriptedMail, line: bytes) -> None:
        while not server.is_over.is_set():
            server.connection.sendall(b"250-more\r\n" * 100)

    with serve_script(certificate, {"TEXT": flood}) as server:
        assert "more than 100 lines" in send(server)


def test_answers_that_were_put_in_before_tls_do_not_count(certificate: Path) -> None:
    injected = b"220 go on\r\n250-here\r\n250 AUTH PLAIN\r\n235 welcome\r\n250 ok\r\n250 ok\r\n354 go\r\n250 taken\r\n"
    with serve_script(certificate, {"STARTTLS": injected, "RCPT": b"550 no\r\n"}) as server:
        assert "550 no" in send(server)


def test_a_line_that_takes_starttls_out(certificate: Path) -> None:
    with serve_script(certificate, {"EHLO": b"250-here\r\n250 AUTH PLAIN LOGIN\r\n"}) as server:
        assert send(server, user="agent").startswith("EFFECT_FAILED")
        assert not any(line.upper().startswith((b"AUTH", b"MAIL")) for line in server.lines)


def test_a_certificate_of_another_name(certificate: Path) -> None:
    with serve_script(certificate, {}) as server:
        assert "CERTIFICATE_VERIFY_FAILED" in send(server, user="agent", host="127.0.0.1")
        assert not any(line.upper().startswith((b"AUTH", b"MAIL")) for line in server.lines)


def test_a_server_that_repeats_the_password(certificate: Path) -> None:
    def echo(server: ScriptedMail, line: bytes) -> None:
        server.connection.sendall(b"535 you said " + line.strip() + b" " + PASSWORD.encode() + b"\r\n")

    with serve_script(certificate, {"AUTH": echo}) as server:
        told = send(server, user="agent")
    assert told.startswith("EFFECT_FAILED")
    encoded = base64.b64encode(f"\0agent\0{PASSWORD}".encode()).decode()
    assert PASSWORD not in told
    assert encoded not in told


def test_a_challenge_that_is_no_base64(certificate: Path) -> None:
    script = {"EHLO TLS": b"250-here\r\n250 AUTH CRAM-MD5\r\n", "AUTH": b"334 !!!x\r\n"}
    with serve_script(certificate, script) as server:
        assert send(server, user="agent").startswith("EFFECT_FAILED")


def test_a_password_that_the_protocol_cannot_carry() -> None:
    settings = MailSettings(host="localhost", sender="a@example.com", user="agent", password_env="MAIL_PASSWORD")
    with pytest.raises(Refused) as caught:
        MailEffect(settings, {"MAIL_PASSWORD": "pässword"})(order())
    assert caught.value.code == "EXECUTOR_UNAVAILABLE"
    assert "ä" not in str(caught.value)


@pytest.mark.parametrize(
    "recipient",
    [
        # Encoded words: the header `To` would have had `eve@evil.example, @example.com`.
        "=?utf-8?b?ZXZlQGV2aWwuZXhhbXBsZSwg?=@example.com",
        "=?utf-8?q?bob=2C_eve=40evil.example?=@example.com",
        "=?utf-8?q?x=0D=0ABcc=3A_eve=40evil.example?=@example.com",
        # Roads by another host than the one that is judged.
        "bob%evil.example@example.com",
        "evil.example!bob@example.com",
        "bob@evil.example@example.com",
        # Separators of full width.
        "bob\uff0ceve@example.com",
        "bob\uff20evil.example@example.com",
        # Groups, comments, quotes, line ends of Unicode.
        "all:bob@example.com;",
        "bob(eve)@example.com",
        '"bob,eve"@example.com',
        "bob\u2028@example.com",
        "bob\x85@example.com",
        "bob\0@example.com",
        ".bob@example.com",
        "bob..eve@example.com",
        "|sh@example.com",
        "b" * 65 + "@example.com",
    ],
)
def test_a_recipient_that_is_more_than_one_address(recipient: str) -> None:
    with pytest.raises(Refused) as caught:
        order(recipient=recipient)
    assert caught.value.code == "BAD_REQUEST"


@pytest.mark.parametrize("recipient", ["a.b+tag@example.com", "o'neil@example.com", "a=b_c-d@example.com"])
def test_usual_recipients(certificate: Path, recipient: str) -> None:
    with serve_script(certificate, {}) as server:
        assert send(server, order(recipient=recipient)) == ""
    assert [line for line in server.lines if line.startswith(b"rcpt")] == [f"rcpt TO:<{recipient}>\r\n".encode()]
    assert email.message_from_bytes(server.text, policy=default)["To"] == recipient


def test_a_recipient_beyond_ascii(certificate: Path) -> None:
    with serve_script(certificate, {}) as server:
        assert send(server, order(recipient="jörg@example.com")) == ""
    assert b"rcpt TO:<j\xc3\xb6rg@example.com>\r\n" in server.lines
    with serve_script(certificate, {"EHLO TLS": b"250 here\r\n"}) as server:
        assert "ASCII addresses alone" in send(server, order(recipient="jörg@example.com"))


def test_the_text_stays_one_text(certificate: Path) -> None:
    """Whatever ends a message elsewhere: dots, bare line feeds and returns, NUL, and lines without end."""
    text = "a\n.\nb\r.\rc\n..\nMAIL FROM:<eve@evil.example>\n\0\u2028\x85" + "x" * 5000 + "\n.\r\n"
    with serve_script(certificate, {}) as server:
        assert send(server, order(text=text)) == ""
    sent = server.text
    assert sent.count(b"\r\n.\r\n") == 1
    assert b"\0" not in sent
    assert sent.count(b"\n") == sent.count(b"\r") == sent.count(b"\r\n")
    assert max(map(len, sent.split(b"\r\n"))) <= 998
    message = email.message_from_bytes(sent.removesuffix(b".\r\n").replace(b"\r\n..", b"\r\n."), policy=default)
    assert "\0\u2028\x85" + "x" * 5000 in message.get_content().replace("\r\n", "\n")


def test_a_server_that_dies_after_the_text_gets_the_message_once(
    certificate: Path, aver_home: Path, tmp_path: Path
) -> None:
    with serve_script(certificate, {"TEXT": b"garbage\r\n"}) as server:
        settings = MailSettings(host="localhost", sender="agent@example.com", port=server.port)
        with open_office(tmp_path / "work", effects=EffectSettings(mail=settings)) as office:
            office.enrol()
            inputs = {"recipient": "bob@example.com", "text": "hello\n"}
            asked = office.act("CheckMessagePolicy", inputs)
            office.approve(asked["data"]["approval"])
            again = {"tx_id": asked["data"]["tx_id"], **inputs}
            assert office.act("SendMessage", again)["reason_code"] == "OUTCOME_UNKNOWN"
            assert office.act("SendMessage", again)["reason_code"] == "REPLAY_DENY"
            assert office.act("SendMessage", inputs)["reason_code"] == "REQUIRE_CONFIRM"


def test_the_host_of_the_settings_is_a_name_alone() -> None:
    with pytest.raises(BadInput, match="host must be a name alone"):
        read_effect_settings({"mail": {"host": "smtp.example.com:25", "from": "a@example.com"}}, "[gateway]")

"""Handles: an agent moves secrets without seeing them, and no effect carries one out."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aver.errors import Refused
from aver.gateway.acts.visit import Door
from aver.gateway.executor.executor import EffectDone, EffectOrder
from aver.gateway.handles import HANDLE_SECONDS, HANDLES_MAX, SECRETS_MAX, TOO_MANY, WRITTEN_MAX, HandleStore
from support.acts import Office, open_office

KEY = "AKIA" + "IOSFODNN7EXAMPLE"
"""Has the form of a cloud's access key."""


@pytest.fixture
def office(aver_home: Path, tmp_path: Path) -> Iterator[Office]:
    with open_office(tmp_path / "work") as opened:
        opened.enrol()
        yield opened


def read(office: Office, name: str, **more: Any) -> dict[str, Any]:
    answer = office.act("ReadWorkspaceFile", {"relpath": name}, **more)
    if answer["reason_code"] == "REQUIRE_CONFIRM":
        office.approve(answer["data"]["approval"])
        answer = office.act("ReadWorkspaceFile", {"relpath": name}, **more)
    assert answer["reason_code"] == "ALLOW", answer
    return answer["data"]


def handle_in(text: str) -> str:
    at = text.index("h_")
    return text[at : at + 24]


def test_a_secret_in_a_text_is_behind_a_handle(office: Office) -> None:
    (office.workspace / "deploy.txt").write_text(f"user ada\nkey {KEY}\nregion north\n")
    content = read(office, "deploy.txt")["content"]
    assert KEY not in content
    assert content.startswith("user ada\nkey h_")
    assert content.endswith("\nregion north\n")


def test_a_file_at_a_secret_path_is_behind_one_handle(office: Office) -> None:
    (office.workspace / ".env").write_text("COLOUR=blue\n")
    content = read(office, ".env")["content"]
    assert content == handle_in(content)


def test_a_plain_text_is_as_it_is(office: Office) -> None:
    (office.workspace / "a.txt").write_text("nothing to hide\n")
    assert read(office, "a.txt")["content"] == "nothing to hide\n"


def test_a_handle_goes_back_into_a_file_as_the_secret(office: Office) -> None:
    (office.workspace / "deploy.txt").write_text(f"key {KEY}\n")
    content = read(office, "deploy.txt")["content"]
    done = office.write("copy.txt", f"again: {content}")
    if done["reason_code"] == "REQUIRE_CONFIRM":
        office.approve(done["data"]["approval"])
        done = office.write("copy.txt", f"again: {content}")
    assert done["reason_code"] == "ALLOW", done
    assert (office.workspace / "copy.txt").read_text() == f"again: key {KEY}\n"
    for chain in office.ledger.chains():
        assert all(KEY.encode() not in record.canonical for record in office.ledger.read(chain))
    assert office.ledger.verify().status == "verified"


@pytest.mark.parametrize(
    ("name", "text", "secret"),
    [
        (".env", "PIN=4711 zebra\nDOOR=open sesame\n", "PIN=4711 zebra"),
        ("a.txt", "password = hunter2xyz\n", "hunter2xyz"),
    ],
)
def test_a_secret_that_went_back_cannot_be_read_from_its_new_place(
    office: Office, name: str, text: str, secret: str
) -> None:
    """Neither value has the form of a secret by itself, and the new file has no guarded name."""
    (office.workspace / name).write_text(text)
    handle = handle_in(read(office, name)["content"])
    for content in (f"copy {handle} end", f"{handle}{handle}", f"\ud800{handle}"):
        done = office.write("copy.txt", content)
        assert done["reason_code"] in ("ALLOW", "BAD_REQUEST"), done
        if done["reason_code"] == "ALLOW":
            assert "sha256" not in done["data"]
            assert secret in (office.workspace / "copy.txt").read_text("utf-8", "surrogatepass")
            shown = read(office, "copy.txt")
            assert secret not in str(shown)
            assert base64.b64encode(secret.encode()).decode()[:12] not in str(shown)
            assert "sha256" not in shown
    # Also for another caller, after the handle has expired, and in part.
    office.clock.ahead = HANDLE_SECONDS + 1
    assert secret not in str(read(office, "copy.txt", caller="agent:other"))
    (office.workspace / "part.txt").write_text(f"one line: {secret}.")
    assert read(office, "part.txt")["content"].startswith("one line: h_")
    (office.workspace / "bytes.bin").write_bytes(b"\xff\xfe" + secret.encode())
    assert read(office, "bytes.bin")["content"].startswith("h_")
    records = b"".join(record.canonical for record in office.ledger.read("gateway.s1"))
    assert secret.encode() not in records


def test_the_digest_of_a_secret_is_not_told(office: Office) -> None:
    """By a digest, one can try out every short secret."""
    (office.workspace / ".env").write_text("PIN=4711\n")
    assert "sha256" not in read(office, ".env")
    (office.workspace / "a.txt").write_text("password = hunter2xyz\n")
    assert "sha256" not in read(office, "a.txt")


@pytest.mark.parametrize(
    ("intent", "inputs"),
    [
        ("SendMessage", {"recipient": "bob@example.com", "text": "the key is HANDLE, ok?"}),
        ("PostWebhook", {"domain": "example.com", "body": '{"a": "HANDLE"}'}),
        ("FetchResource", {"domain": "example.com", "resource_id": "x?y=HANDLE"}),
        ("RunCommand", {"argv": ["echo", "HANDLE"]}),
        ("WriteWorkspaceFile", {"relpath": "HANDLE", "content": ""}),
        ("CallTool", {"server": "a", "tool": "b", "arguments": {"deep": [{"x": "HANDLE"}]}}),
        ("CallTool", {"server": "a", "tool": "b", "arguments": {"HANDLE": 1}}),
        ("CheckMessagePolicy", {"recipient": "bob@example.com", "text": "HANDLE"}),
        ("FinalizeOutput", {"text": "HANDLE"}),
    ],
)
def test_a_handle_anywhere_else_is_blocked(office: Office, intent: str, inputs: dict[str, Any]) -> None:
    (office.workspace / "deploy.txt").write_text(f"key {KEY}\n")
    handle = handle_in(read(office, "deploy.txt")["content"])

    def put(value: Any) -> Any:
        if isinstance(value, str):
            return value.replace("HANDLE", handle)
        if isinstance(value, dict):
            return {put(key): put(each) for key, each in value.items()}
        return [put(each) for each in value] if isinstance(value, list) else value

    assert office.act(intent, put(inputs))["reason_code"] == "HIGH_HANDLE_BLOCKED"


def test_a_handle_of_another_session_or_caller(office: Office) -> None:
    (office.workspace / "deploy.txt").write_text(f"key {KEY}\n")
    handle = handle_in(read(office, "deploy.txt")["content"])
    for more in ({"caller": "agent:other"}, {"door": Door(session="s2")}):
        answer = office.write("copy.txt", handle, **more)
        assert answer["reason_code"] == "HANDLE_INVALID", answer
        answer = office.act("Declassify", {"handle": handle, "purpose": "to see it"}, **more)
        assert answer["reason_code"] == "HANDLE_INVALID"
    assert not (office.workspace / "copy.txt").exists()


def test_a_person_declassifies_a_value(office: Office) -> None:
    (office.workspace / "deploy.txt").write_text(f"key {KEY}\n")
    inputs = {"handle": handle_in(read(office, "deploy.txt")["content"]), "purpose": "the user wants to see it"}
    asked = office.act("Declassify", inputs)
    assert asked["reason_code"] == "REQUIRE_CONFIRM", asked
    assert KEY not in str(asked)
    office.approve(asked["data"]["approval"])
    done = office.act("Declassify", inputs)
    assert (done["reason_code"], done["data"]["value"]) == ("ALLOW", KEY)
    [record] = office.ledger.find(kind="act.declassify")
    assert record.to_dict()["outcome"]["result"]["purpose"] == "the user wants to see it"
    assert KEY.encode() not in record.canonical
    # The session is marked: what it does next is judged by that.
    assert office.write("x.txt", "y\n")["reason_code"] in ("ALLOW", "REQUIRE_CONFIRM")
    *_, decision = office.ledger.find(kind="gate.decision")
    assert "secret" in str(decision.to_dict()["outcome"]["result"]["session"]["labels"])
    assert office.ledger.verify().status == "verified"


def test_the_caller_s_own_word_declassifies_nothing(aver_home: Path, tmp_path: Path) -> None:
    with open_office(tmp_path / "work", confirm="flag") as office:
        (office.workspace / "deploy.txt").write_text(f"key {KEY}\n")
        content = office.act("ReadWorkspaceFile", {"relpath": "deploy.txt"}, user_confirm=True)["data"]["content"]
        inputs = {"handle": handle_in(content), "purpose": "to see it"}
        answer = office.act("Declassify", inputs, user_confirm=True)
        assert answer["reason_code"] == "DECLASSIFY_BLOCKED"


def test_a_handle_ends_after_ten_minutes(office: Office) -> None:
    (office.workspace / "deploy.txt").write_text(f"key {KEY}\n")
    handle = handle_in(read(office, "deploy.txt")["content"])
    office.clock.ahead += HANDLE_SECONDS + 1
    assert office.act("Declassify", {"handle": handle, "purpose": "late"})["reason_code"] == "HANDLE_INVALID"


@pytest.mark.parametrize(
    "text", ["def test_with_some_long_function_name(): ...\n", "path_to_the_settings_of_ada = 1\n"]
)
def test_a_long_name_is_no_handle(office: Office, text: str) -> None:
    assert office.write("code.py", text)["reason_code"] == "ALLOW"
    assert (office.workspace / "code.py").read_text() == text


def test_a_handle_behind_the_beginning_of_another_is_blocked(office: Office) -> None:
    (office.workspace / "deploy.txt").write_text(f"key {KEY}\n")
    handle = handle_in(read(office, "deploy.txt")["content"])
    for text in (f"h_{handle}", f"h_h_{handle}", f"x{handle}y", handle + handle):
        assert office.act("FinalizeOutput", {"text": text})["reason_code"] == "HIGH_HANDLE_BLOCKED"


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-16-be"])
def test_a_secret_in_a_file_that_is_not_utf_8(office: Office, encoding: str) -> None:
    (office.workspace / "old.txt").write_bytes(f"caf\xe9 {KEY}\n".encode(encoding))
    content = read(office, "old.txt")["content"]
    assert content == handle_in(content)


def test_the_words_of_an_error_have_no_secret(aver_home: Path, tmp_path: Path) -> None:
    def fetch(order: EffectOrder) -> EffectDone:
        if order.inputs["resource_id"] == "fail":
            raise Refused("EFFECT_FAILED", f"example.com redirects to https://example.org/?key={KEY}")
        return EffectDone("fetched", {"url": f"https://example.com/?key={KEY}"})

    with open_office(tmp_path / "work", causes={"FetchResource": fetch}) as office:
        office.enrol()
        for name, code in (("fail", "EFFECT_FAILED"), ("redirect", "ALLOW")):
            inputs = {"domain": "example.com", "resource_id": name}
            answer = office.act("FetchResource", inputs)
            if answer["reason_code"] == "REQUIRE_CONFIRM":
                office.approve(answer["data"]["approval"])
                answer = office.act("FetchResource", inputs)
            assert answer["reason_code"] == code, answer
            assert KEY not in str(answer)
            assert "h_" in str(answer)


class TestStore:
    def test_one_value_has_one_handle_in_a_session(self) -> None:
        store = HandleStore()
        first = store.hold("secret", session="s", caller="c", label="x")
        assert store.hold("secret", session="s", caller="c", label="x") == first
        assert store.hold("secret", session="s", caller="d", label="x") != first

    def test_the_store_is_bounded(self) -> None:
        store = HandleStore()
        first = store.hold("0", session="s", caller="c", label="x")
        for number in range(1, HANDLES_MAX + 1):
            store._held[f"h_{number}"] = store._held[first]._replace(value=str(number))
        store.hold("new", session="s", caller="c", label="x")
        assert len(store._held) == HANDLES_MAX
        with pytest.raises(Refused):
            store.find(first, session="s", caller="c")

    def test_a_secret_that_holds_another_one(self) -> None:
        store = HandleStore()
        text = f"postgres://ada:{KEY}@db.example/x and {KEY}"
        covered = store.cover({"a": [text]}, session="s", caller="c", label="x")
        assert KEY not in str(covered)
        assert store.restore(covered["a"][0], session="s", caller="c").count(KEY) == 2

    @pytest.mark.parametrize(
        "value",
        [
            {"password": 12345678},
            {"password": "abc"},
            {"password": ["hunter22", {"x": "hunter22"}]},
            {KEY: 1},
            f"https://example.com/a?token={KEY}",
            base64.b64encode(f"key {KEY} \xe9".encode("latin-1")).decode(),
        ],
    )
    def test_each_place_of_a_secret_is_covered(self, value: Any) -> None:
        covered = str(HandleStore().cover({"a": [value]}, session="s", caller="c", label="x"))
        assert "h_" in covered
        assert not any(secret in covered for secret in (KEY, "12345678", "'abc'", "hunter22"))

    def test_very_many_secrets_get_no_handles(self) -> None:
        store = HandleStore()
        keys = [f"AKIA{number:016d}" for number in range(SECRETS_MAX + 1)]
        value = {"content": "\n".join(keys), "deep": [{"password": "hunter22"}], "plain": "nothing to hide"}
        covered = store.cover(value, session="s", caller="c", label="x")
        assert covered["content"] == "\n".join([TOO_MANY] * len(keys))
        assert covered["deep"] == [{"password": TOO_MANY}]
        assert covered["plain"] == "nothing to hide"
        assert not store._held

    @pytest.mark.parametrize("count", [1, 65, 200])
    def test_no_secret_of_many_is_left(self, count: int) -> None:
        store = HandleStore()
        key = "-----BEGIN PRIVATE KEY-----\n" + "MIIEvQIBADANBgkqhkiG9w0B\n" * 200 + "-----END PRIVATE KEY-----"
        text = "".join(f"key AKIA{number:016d} of ada\n" for number in range(count)) + f"{key}\nend\n"
        covered = store.cover(text, session="s", caller="c", label="x")
        plain = re.sub(r"h_[\w-]{22}", "", covered)  # A handle has any letters by chance.
        assert "AKIA" not in plain
        assert "MIIE" not in plain
        assert covered.count("of ada\n") == count
        assert store.restore(covered, session="s", caller="c") == text

    def test_too_many_secrets_do_not_go_back(self) -> None:
        store, whose = HandleStore(), {"session": "s", "caller": "c"}
        for number in range(WRITTEN_MAX):
            store.restore(store.hold(f"value number {number}", label="x", **whose), **whose)
        with pytest.raises(Refused) as caught:
            store.restore(store.hold("one more value", label="x", **whose), **whose)
        assert caught.value.code == "HIGH_HANDLE_BLOCKED"
        assert store.cover("value number 0", label="x", **whose).startswith("h_")

    def test_an_expired_handle_is_still_one(self) -> None:
        now = [0.0]
        store = HandleStore(lambda: now[0])
        handle = store.hold("secret", session="s", caller="c", label="x")
        now[0] = HANDLE_SECONDS + 1
        with pytest.raises(Refused, match="no such handle"):
            store.restore(f"key {handle}", session="s", caller="c")
        assert HandleStore().restore(f"key {handle}", session="s", caller="c") == f"key {handle}"

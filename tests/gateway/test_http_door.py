"""`POST /act`: who may call, which sessions and callers a client may name, and calls that a principal signed."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import aver
from aver.gateway.act_records import revocation_key
from aver.gateway.delegation import sign_delegation
from aver.gateway.ingress import sign_ingress
from aver.gateway.parts.http_door import HttpDoor
from aver.gateway.settings import GatewayClient
from aver.keys import SeedSigner, Statement
from aver.ledger.bundle import export_bundle
from aver.serving.sockets import PartAddress, bind_loopback, bind_unix
from aver.serving.tokens import digest_token
from support.act_ledgers import Change, reseal
from support.acts import Office, open_office
from support.apart import preview, write
from support.parts import exchange, head_of, read_all, short_directory, status_of

ACME, OTHER = SeedSigner(b"\1" * 32), SeedSigner(b"\2" * 32)
OWNER, BOT, STRANGER = "o" * 43, "b" * 43, "s" * 43
BOT_CLIENT = GatewayClient("bot", digest_token(BOT), sessions=("build-*",), callers=("agent:build",))


class Caller:
    """Calls a door with raw requests."""

    def __init__(self, office: Office, address: PartAddress) -> None:
        self.office = office
        self.address = address
        self.nonces = 0

    def post(self, act: Any, *, token: str = "", **headers: str) -> tuple[int, dict[str, Any]]:
        body = act if isinstance(act, bytes) else json.dumps(act).encode()
        shown = {"Authorization": f"Bearer {token}" if token else "", **headers}
        answer = exchange(self.address, head_of(self.address, path="/act", length=len(body), **shown), body)
        return status_of(answer), json.loads(answer.partition(b"\r\n\r\n")[2])

    def act(self, act: Any, *, token: str = "", **headers: str) -> dict[str, Any]:
        status, answer = self.post(act, token=token, **headers)
        assert status == 200
        return answer

    def sign(self, act: Any, signer: SeedSigner = ACME, **changes: Any) -> dict[str, str]:
        self.nonces += 1
        given: dict[str, Any] = {
            "method": "POST",
            "path": "/act",
            "principal": "ext:acme",
            "session": "s1",
            "time": int(time.time()),
            "nonce": f"nonce-{self.nonces:016}",
            "body": json.dumps(act).encode(),
            "delegation": delegate(),
        }
        signed = sign_ingress(signer, **{**given, **changes})
        return {name.replace("-", "_"): value for name, value in signed.items()}


def delegate(signer: SeedSigner = ACME, **changes: Any) -> str:
    given: dict[str, Any] = {
        "iss": "ext:acme",
        "sub": "agent:writer",
        "session": "s1",
        "scope": ("*",),
        "expires": (datetime.now(UTC) + timedelta(hours=1)).isoformat(),
        "jti": "dlg_1",
    }
    return sign_delegation(signer, **{**given, **changes})


@pytest.fixture
def open_door(tmp_path: Path, aver_home: Path) -> Iterator[Callable[..., Caller]]:
    """A function that opens a door with settings of its own, on a Unix socket or on TCP."""
    aver_home.mkdir(mode=0o700)
    principals = {"ext:acme": ACME, "ext:other": OTHER}
    tables = [f'[gateway.principals."{name}"]\nkey = "{key.public.ed25519}"\n' for name, key in principals.items()]
    (aver_home / "config.toml").write_text("".join(tables))
    import threading
    from contextlib import ExitStack

    with ExitStack() as stack:

        def opened(*, tcp: bool = False, **changes: Any) -> Caller:
            office = stack.enter_context(open_office(tmp_path / "work", **changes))
            directory = stack.enter_context(short_directory())
            listener = bind_loopback(0) if tcp else bind_unix(directory / "gateway.sock")
            server = HttpDoor(office.gateway, OWNER, clock=office.clock).build_server(lambda: {"ok": True})
            thread = threading.Thread(target=server.serve, args=([listener],))
            thread.start()
            stack.callback(thread.join)
            stack.callback(server.stop)
            return Caller(office, listener.address)

        yield opened


@pytest.fixture
def door(open_door: Callable[..., Caller]) -> Caller:
    return open_door(clients=(BOT_CLIENT,))


def doors_of(office: Office) -> list[dict[str, str]]:
    found = [record.to_dict() for record in office.ledger.find(kind="act.preview")]
    return [each["context"]["environment"]["gateway"]["ingress"] for each in found]


def test_the_user_who_runs_the_door_needs_no_token_at_its_socket(door: Caller) -> None:
    assert door.act(write())["reason_code"] == "ALLOW"
    assert doors_of(door.office) == [{"kind": "uid", "identity": f"owner:uid ({os.geteuid()})"}]
    assert (door.office.workspace / "a.txt").read_text() == "one\n"


def test_over_tcp_a_token_is_needed(open_door: Callable[..., Caller]) -> None:
    door = open_door(tcp=True)
    for token in ("", STRANGER):
        assert door.post(write(), token=token)[0] == 401
    assert not list(door.office.ledger.find(kind="act.preview"))
    assert door.act(write(), token=OWNER)["reason_code"] == "ALLOW"
    assert doors_of(door.office) == [{"kind": "token", "identity": "owner:token"}]


def test_a_token_that_is_wrong_is_refused_also_from_the_right_user(door: Caller) -> None:
    assert door.post(write(), token=STRANGER)[0] == 401


def test_a_client_names_only_its_sessions_and_callers(door: Caller) -> None:
    act = write(caller="agent:build")
    assert door.act(act, token=BOT, Aver_Session="build-1")["reason_code"] == "ALLOW"
    assert doors_of(door.office) == [{"kind": "token", "identity": "bot"}]
    assert door.act(act, token=BOT, Aver_Session="other")["reason_code"] == "INGRESS_CONFLICT"
    assert door.act(write(), token=BOT, Aver_Session="build-1")["reason_code"] == "INGRESS_CONFLICT"
    for session in ("build-/x", "build-" + "x" * 200, "build-ä"):
        assert door.act(act, token=BOT, Aver_Session=session)["reason_code"] == "BAD_REQUEST"


def test_a_client_without_a_session_has_one_for_itself(door: Caller) -> None:
    tx_id = door.act(preview())["data"]["tx_id"]
    assert door.act(write(inputs={"tx_id": tx_id}, caller="agent:build"), token=BOT)["reason_code"] == (
        "TX_SESSION_MISMATCH"
    )
    assert door.act(write(inputs={"tx_id": tx_id}))["reason_code"] == "ALLOW"


def test_a_client_by_user_id(open_door: Callable[..., Caller]) -> None:
    client = GatewayClient("me", uid=os.geteuid(), callers=("agent:me",))
    door = open_door(clients=(client,))
    assert door.act(write())["reason_code"] == "INGRESS_CONFLICT"
    assert door.act(write(caller="agent:me"))["reason_code"] == "ALLOW"


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b'{"a": 1, "a": 2}'])
def test_a_body_that_is_not_json(door: Caller, body: bytes) -> None:
    status, answer = door.post(body)
    assert (status, answer["status"], answer["reason_code"]) == (400, "DENY", "BAD_REQUEST")


def test_a_body_that_is_no_act_is_a_decision(door: Caller) -> None:
    for body in ([], {}, write(more=1), write(inputs=[])):
        assert door.act(body)["reason_code"] == "BAD_REQUEST"
    assert len(list(door.office.ledger.find(kind="act.preview"))) == 4


def test_a_web_page_is_refused(door: Caller) -> None:
    assert door.post(write(), Origin="http://example.com")[0] == 403
    assert door.post(write(), Host="example.com")[0] == 421


def test_there_is_no_other_path(door: Caller) -> None:
    answer = exchange(door.address, head_of(door.address, path="/exec/write_file", Authorization=""))
    assert status_of(answer) == 404


class TestFederated:
    def test_a_signed_call_acts_for_its_principal(self, door: Caller) -> None:
        answer = door.act(write(), **door.sign(write()))
        assert answer["reason_code"] == "ALLOW", answer
        [record] = door.office.ledger.find(kind="act.ingress")
        content = record.to_dict()
        assert content["outcome"]["result"]["principal"] == "ext:acme"
        assert content["authority"]["chain"][0]["purpose"] == "ingress"
        assert doors_of(door.office) == [{"kind": "federated", "identity": "ext:acme"}]
        assert door.office.kinds() == ["act.ingress", "act.preview", "act.commit", "act.outcome"]
        assert door.office.ledger.verify().status == "verified"

    def test_a_call_names_the_gateway_that_it_is_for(self, door: Caller) -> None:
        here = door.sign(write(), audience=door.office.ledger.id)
        assert door.act(write(), **here)["reason_code"] == "ALLOW"
        assert door.office.ledger.verify().status == "verified"
        elsewhere = door.sign(write(), audience="0" * 32)
        assert door.act(write(), **elsewhere)["reason_code"] == "INGRESS_CONFLICT"
        assert len(list(door.office.ledger.find(kind="act.ingress"))) == 1

    def test_the_same_call_again_is_a_replay_and_does_nothing(self, door: Caller) -> None:
        headers = door.sign(write())
        assert door.act(write(), **headers)["reason_code"] == "ALLOW"
        (door.office.workspace / "a.txt").unlink()
        count = len(door.office.kinds())
        assert door.act(write(), **headers)["reason_code"] == "INGRESS_REPLAY"
        assert not (door.office.workspace / "a.txt").exists()
        assert len(door.office.kinds()) == count

    def test_a_nonce_is_used_up_also_by_an_act_that_is_denied(self, door: Caller) -> None:
        act = write(inputs={"relpath": "../a", "content": ""})
        headers = door.sign(act)
        assert door.act(act, **headers)["reason_code"] == "WORKSPACE_PATH_BLOCKED"
        assert door.act(act, **headers)["reason_code"] == "INGRESS_REPLAY"

    def test_principals_do_not_use_up_each_others_nonces(self, door: Caller) -> None:
        nonce = "x" * 16
        assert door.act(write(), **door.sign(write(), nonce=nonce))["reason_code"] == "ALLOW"
        token = delegate(OTHER, iss="ext:other")
        act = write("b.txt")
        headers = door.sign(act, OTHER, principal="ext:other", nonce=nonce, delegation=token)
        assert door.act(act, **headers)["reason_code"] == "ALLOW"

    @pytest.mark.sample(4)
    @pytest.mark.parametrize(
        ("change", "code"),
        [
            (lambda headers: headers | {"Aver_Signature": headers["Aver_Signature"][:-1] + "0"}, "INVALID"),
            (lambda headers: headers | {"Aver_Session": "s2"}, "INVALID"),
            (lambda headers: headers | {"Aver_Principal": "ext:other"}, "INVALID"),
            (lambda headers: headers | {"Aver_Principal": "ext:nobody"}, "INVALID"),
            (lambda headers: headers | {"Aver_Nonce": "y" * 16}, "INVALID"),
            (lambda headers: headers | {"Aver_Nonce": "short"}, "INVALID"),
            (lambda headers: headers | {"Aver_Delegation": delegate(jti="dlg_2")}, "INVALID"),
            (lambda headers: headers | {"Aver_Delegation": ""}, "INVALID"),
            (lambda headers: headers | {"Aver_Signature": ""}, "REQUIRED"),
            (lambda headers: headers | {"Aver_Time": ""}, "REQUIRED"),
        ],
    )
    def test_a_changed_header_is_refused_and_recorded_nowhere(
        self, door: Caller, change: Callable[[Mapping[str, str]], Mapping[str, str]], code: str
    ) -> None:
        headers = door.sign(write())
        if headers["Aver_Signature"].endswith("0"):
            headers = door.sign(write(), nonce="another-nonce-000")
        answer = door.act(write(), **change(headers))
        assert answer["reason_code"] == f"INGRESS_SIGNATURE_{code}"
        assert not list(door.office.ledger.find(type="auth"))
        # The refused call has not used the nonce up.
        assert door.act(write(), **headers)["reason_code"] == "ALLOW"

    def test_a_changed_body_is_refused(self, door: Caller) -> None:
        assert door.act(write(content="two\n"), **door.sign(write()))["reason_code"] == "INGRESS_SIGNATURE_INVALID"

    @pytest.mark.parametrize("ahead", [-61, 61])
    def test_an_old_or_future_call_has_expired(self, door: Caller, ahead: int) -> None:
        headers = door.sign(write(), time=int(time.time()) + ahead)
        assert door.act(write(), **headers)["reason_code"] == "INGRESS_EXPIRED"

    def test_a_header_twice_is_no_request(self, door: Caller) -> None:
        headers = door.sign(write())
        body = json.dumps(write()).encode()
        head = head_of(door.address, path="/act", length=len(body), Authorization="", **headers)
        twice = head[:-2] + f"Aver-Nonce: {headers['Aver_Nonce']}\r\n\r\n".encode()
        with door.address.connect(30) as connection:
            connection.sendall(twice + body)
            assert status_of(read_all(connection)) == 400

    @pytest.mark.parametrize(
        "constraints",
        [{"external_principal": "ext:other"}, {"delegation_token": "other"}],
    )
    def test_a_body_in_conflict_is_refused(self, door: Caller, constraints: dict[str, str]) -> None:
        act = write(constraints=constraints)
        assert door.act(act, **door.sign(act))["reason_code"] == "INGRESS_CONFLICT"

    def test_a_body_may_repeat_what_the_headers_say(self, door: Caller) -> None:
        token = delegate()
        act = write(constraints={"external_principal": "ext:acme", "delegation_token": token})
        assert door.act(act, **door.sign(act, delegation=token))["reason_code"] == "ALLOW"

    def test_a_call_without_a_delegation_is_refused(self, door: Caller) -> None:
        headers = door.sign(write(), delegation=None)
        assert door.act(write(), **headers)["reason_code"] == "DELEGATION_REQUIRED"

    def test_a_revoked_delegation(self, door: Caller) -> None:
        from aver import Capsule

        door.office.ledger.append("notes.x", Capsule(type="auth"), key=revocation_key("dlg_1"))
        assert door.act(write(), **door.sign(write()))["reason_code"] == "DELEGATION_REVOKED"

    def test_a_token_of_a_client_does_not_help_an_unsigned_principal(self, door: Caller) -> None:
        answer = door.act(write(), token=OWNER, Aver_Principal="ext:acme")
        assert answer["reason_code"] == "INGRESS_SIGNATURE_REQUIRED"


def test_health_is_told_to_known_clients_alone(door: Caller) -> None:
    """A header that claims a principal is checked by `POST /act`, and by nothing else."""
    assert status_of(exchange(door.address, head_of(door.address, "GET", "/health", Authorization=""))) == 200
    for claimed in ("Aver_Principal", "Aver_Signature", "Aver_Nonce"):
        head = head_of(door.address, "GET", "/health", Authorization="", **{claimed: "ext:acme"})
        assert status_of(exchange(door.address, head)) == 401


class TestVerdictOnSignedCalls:
    """`aver verify` judges each `act.ingress`: the ledger's own key alone cannot invent a principal's call."""

    @pytest.fixture
    def called(self, door: Caller) -> Caller:
        assert door.act(write(), **door.sign(write()))["reason_code"] == "ALLOW"
        assert door.office.ledger.verify().status == "verified"
        return door

    @staticmethod
    def forge(door: Caller, change: Change, *, key: str | None = "ingress:ext:acme:nonce-forged-00001") -> list[str]:
        """Seal a changed copy of the signed call, and return the findings at its place."""
        [call] = door.office.ledger.find(kind="act.ingress")
        forged = reseal(door.office.ledger, call, change, key=key)
        verdict = door.office.ledger.verify()
        found = [each for each in verdict.findings if each.check == "delegation"]
        assert all(each.place is not None and each.place.sequence == forged.sequence for each in found)
        assert verdict.status == ("failed" if found else "verified")
        return [each.words.partition(":")[0] for each in found]

    def test_the_check_says_how_many_calls_were_signed(self, called: Caller) -> None:
        [check] = [each for each in called.office.ledger.verify().checks if each.name == "delegation"]
        assert "signed calls among them: 1;" in check.reason

    def test_a_call_that_nobody_signed(self, called: Caller) -> None:
        def unsign(content: dict[str, Any]) -> None:
            content["authority"]["chain"] = []

        assert self.forge(called, unsign) == ["INGRESS_SIGNATURE_REQUIRED"]

    @pytest.mark.parametrize(("name", "value"), [("time", 1), ("nonce", "n" * 16), ("body_sha256", "0" * 64)])
    def test_a_call_other_than_the_signed_one(self, called: Caller, name: str, value: Any) -> None:
        def change(content: dict[str, Any]) -> None:
            content["outcome"]["result"][name] = value

        assert "INGRESS_SIGNATURE_INVALID" in self.forge(called, change)

    def test_a_statement_that_was_changed_with_the_record(self, called: Caller) -> None:
        def change(content: dict[str, Any]) -> None:
            for place in (content["outcome"]["result"], content["authority"]["chain"][0]["content"]):
                place["nonce"] = "nonce-forged-00001"

        assert self.forge(called, change) == ["INGRESS_SIGNATURE_INVALID"]

    def test_a_call_that_does_not_use_its_nonce_up(self, called: Caller) -> None:
        assert self.forge(called, lambda content: None, key=None) == ["INGRESS_REPLAY"]

    def test_a_call_of_another_session(self, called: Caller) -> None:
        def change(content: dict[str, Any]) -> None:
            content["context"]["session_id"] = "s2"

        assert "INGRESS_CONFLICT" in self.forge(called, change)

    def test_a_call_for_the_gateway_of_another_ledger(self, called: Caller) -> None:
        def change(content: dict[str, Any]) -> None:
            signed = {**content["authority"]["chain"][0]["content"], "audience": "0" * 32}
            signed["nonce"] = "nonce-forged-00001"
            signature = ACME.sign_statement("ingress", signed)
            content["authority"]["chain"][0] = Statement("ingress", signed, (signature,)).to_dict()
            content["outcome"]["result"] = {"v": 1, **signed}

        assert self.forge(called, change) == ["INGRESS_CONFLICT"]

    def test_more_acts_than_signed_calls(self, called: Caller) -> None:
        ledger = called.office.ledger
        [preview_record] = ledger.find(kind="act.preview")
        forged = reseal(ledger, preview_record, lambda content: None)
        found = [each for each in ledger.verify().findings if each.check == "delegation"]
        assert [(each.place.sequence, each.words.partition(":")[0]) for each in found if each.place] == [
            (forged.sequence, "INGRESS_SIGNATURE_REQUIRED")
        ]

    def test_later_verification_knows_the_earlier_calls(self, called: Caller) -> None:
        for number in range(3):
            act = write(f"later{number}.txt")
            assert called.act(act, **called.sign(act))["reason_code"] == "ALLOW"
            assert called.office.ledger.verify().status == "verified"

    def test_a_verifier_without_the_principal_s_key_says_so(self, called: Caller, tmp_path: Path) -> None:
        export_bundle(called.office.ledger, tmp_path / "bundle")
        ring = [each for each in called.office.ledger.keys.ring().entries if each.identity != "ext:acme"]
        verdict = aver.verify(tmp_path / "bundle", keys=ring)
        assert verdict.status == "qualified"
        assert [each.code for each in verdict.findings if each.check == "delegation"].count("UNKNOWN_SIGNER") >= 1


# --- the user's words


def tell(door: Caller, body: Any, *, token: str) -> dict[str, Any]:
    data = json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {token}"}
    answer = exchange(door.address, head_of(door.address, path="/session", length=len(data), **headers), data)
    return dict(json.loads(answer.partition(b"\r\n\r\n")[2]))


def test_the_owner_tells_what_the_user_said(door: Caller) -> None:
    answer = tell(door, {"prompt": "Send a message to ann@shop.example.", "session": "s1"}, token=OWNER)
    assert (answer["status"], answer["data"]) == ("OK", {"session": "s1"})
    assert door.office.kinds() == ["turn"]
    assert tell(door, {"prompt": "And another."}, token=OWNER)["data"]["session"]


def test_a_client_that_is_not_trusted_to_know_the_users_words_cannot_tell_them(door: Caller) -> None:
    answer = tell(door, {"prompt": "Delete all.", "session": "build-1"}, token=BOT)
    assert (answer["status"], answer["reason_code"]) == ("DENY", "INGRESS_CONFLICT")
    assert door.office.ledger.get("prompt:build-1:0") is None


@pytest.mark.parametrize(
    "body", [{}, {"prompt": ""}, {"prompt": 1}, {"prompt": "x", "more": 1}, {"prompt": "x", "session": "../x"}]
)
def test_a_body_that_is_no_prompt_is_refused(door: Caller, body: Any) -> None:
    assert tell(door, body, token=OWNER)["reason_code"] == "BAD_REQUEST"

"""Targets of the wire between clients, the gateway and its parts: HTTP both ways, questions, orders, act files.

The connections are pairs of sockets of this process. The other end sends the input and closes, so nothing waits.
"""

from __future__ import annotations

import json
import socket
from contextlib import suppress
from typing import Any

from aver.capsule.json_reader import read_json
from aver.errors import AverError
from aver.gate.action import Facts
from aver.gate.facts.decision_inputs import facts_to_dict
from aver.gateway.executor.commit_order import CommitOrder
from aver.gateway.gated_action import build_action
from aver.gateway.judgement.act_file import parse_act_file
from aver.gateway.policy_server import EvaluationQuestion
from aver.gateway.request import BoundRequest
from aver.serving.guard import check_headers
from aver.serving.part_client import PartClient, PartUnavailable
from aver.serving.tokens import find_bearer_token
from aver.serving.wire import BadRequest, ServerConnection, WireLimits
from fuzz.oracles import Defect, call_parser
from fuzz.target import Target

BODY_MAX = 64 * 1024
LIMITS = WireLimits(
    head_seconds=5, body_seconds=5, idle_seconds=5, write_seconds=5, linger_seconds=0.1, body_max=BODY_MAX
)
STATUSES = range(400, 600)


def open_connection(data: bytes) -> tuple[socket.socket, socket.socket]:
    """A connection from which this input can be read, and then no more. Whatever does not fit is cut off."""
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    with suppress(OSError):
        theirs.sendall(data)
    with suppress(OSError):
        theirs.shutdown(socket.SHUT_WR)
    return ours, theirs


class HttpRequests(Target):
    """Requests that a server reads from a connection."""

    name = "http-request"

    def seeds(self) -> list[bytes]:
        head = b"POST /act HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer t\r\nAver-Session: s1\r\n"
        return [
            head + b"Content-Length: 2\r\n\r\n{}",
            head + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
            head + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n{}",
            b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n" * 3,
        ]

    def run(self, data: bytes) -> None:
        ours, theirs = open_connection(data)
        with ours, theirs:
            wire = ServerConnection(ours, LIMITS)
            try:
                while (head := wire.read_head()) is not None:
                    names = [name for name, _ in head.headers]
                    if any(name != name.lower() for name in names):
                        raise Defect(f"a header is not in lower case: {names!r}")
                    check_headers(head.headers, [b"localhost"])
                    find_bearer_token(head.headers)
                    if len(wire.read_body()) > BODY_MAX:
                        raise Defect("a body is larger than the limit")
                    if {b"content-length", b"transfer-encoding"} <= set(names) or names.count(b"content-length") > 1:
                        raise Defect(f"a request with two lengths was read: {names!r}")
                    if not wire.send_answer(200, b"{}"):
                        return
            except BadRequest as error:
                if error.refusal.status not in STATUSES:
                    raise Defect(f"a refusal with the status {error.refusal.status}") from error
                with suppress(OSError):
                    wire.send_answer(error.refusal.status, b"{}", last=True)
            except OSError:
                return


class _Answering:
    """An address at which an input is the answer to every request."""

    hosts = ("localhost",)

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.ends: list[socket.socket] = []

    def __str__(self) -> str:
        return "unix:/fuzz.sock"

    def connect(self, timeout: float) -> socket.socket:
        ours, theirs = open_connection(self._data)
        self.ends.append(theirs)
        return ours


class HttpAnswers(Target):
    """Answers that the gateway reads from a part."""

    name = "http-answer"

    def seeds(self) -> list[bytes]:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
        return [
            head + b'Content-Length: 11\r\n\r\n{"ok":true}',
            head + b'Transfer-Encoding: chunked\r\n\r\nb\r\n{"ok":true}\r\n0\r\n\r\n',
            b'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 400 \r\nContent-Length: 13\r\n\r\n{"error":"x"}',
        ]

    def run(self, data: bytes) -> None:
        address: Any = _Answering(data)
        client = PartClient(address, "t" * 43, 5, part="a part", answer_max=BODY_MAX)
        try:
            answer = client.post("/evaluate", {"v": 1})
            if type(answer) is not dict:
                raise Defect(f"an answer that is no object: {answer!r}")
        except PartUnavailable as error:
            if not str(error):
                raise Defect("a refusal without words") from error
        finally:
            client.close()
            for end in address.ends:
                end.close()


class PartDocuments(Target):
    """Questions to a policy server, and orders to the executor."""

    name = "part-document"

    def prepare(self) -> None:
        request = BoundRequest.bind(
            "WriteWorkspaceFile", caller="a", session="s", inputs={"relpath": "a", "content": ""}
        )
        action = build_action(request, action_id="a_1", workspace="/work", diff="+x")
        self._question = {
            "v": 1,
            "action_id": "a_1",
            "program_id": "p",
            "request": request.to_dict(),
            "action": action.to_dict(),
            "diff": "+x",
            "facts": facts_to_dict(Facts(now="2026-11-17T12:00:00+00:00")),
            "state": {"levels": {}, "learned_until": 0},
            "fixes": [1],
        }
        self._order = {
            "tx_id": "tx_1",
            "action_id": "a_1",
            "caller": "a",
            "session": "s",
            "inputs": request.inputs,
            "commit": {"policy0": {}, "policy1": {}},
            "attestations": [{}],
            "user_confirm": True,
            "approval": "x",
            "decision": "d",
            "external_principal": "e",
            "ingress": {"kind": "uid", "identity": "i"},
        }

    def seeds(self) -> list[bytes]:
        return [json.dumps(self._question).encode(), json.dumps(self._order).encode()]

    def run(self, data: bytes) -> None:
        try:
            document = read_json(data)
        except AverError:
            return
        question = call_parser(lambda: EvaluationQuestion.from_dict(document))
        if question is not None:
            again = EvaluationQuestion.from_dict(json.loads(json.dumps(question.to_dict())))
            if (again.inputs.digest, again.request.sha256) != (question.inputs.digest, question.request.sha256):
                raise Defect("a question does not read back as itself")
        order = call_parser(lambda: CommitOrder.from_dict("WriteWorkspaceFile", document))
        if order is not None and CommitOrder.from_dict("WriteWorkspaceFile", order.to_dict()) != order:
            raise Defect(f"an order does not read back as itself: {order!r}")


class ActFiles(Target):
    """The file of one act."""

    name = "act-file"
    share = 3

    def seeds(self) -> list[bytes]:
        from aver.capsule.json_document import dump_document
        from aver.capsule.sealed import SEAL_KEYS

        record = {"canonical": "{}", "chain": "gateway.s", **dict.fromkeys(SEAL_KEYS, "x")}
        keys = {name: [{"public_key": "d7" * 32, "public_key_pq": ""}] for name in ("policy0", "policy1", "seal")}
        found = {
            "act_file": 1,
            "action_id": "a_1",
            "approved_in": {"ledger": "l", "tenant": "t"},
            "blobs": {"0" * 64: {"text": "x"}, "1" * 64: {"base64": "/w=="}},
            "keys": {**keys, "principals": []},
            "records": [record],
        }
        return [dump_document(found)]

    def run(self, data: bytes) -> None:
        call_parser(lambda: parse_act_file(data))


TARGETS: tuple[type[Target], ...] = (HttpRequests, HttpAnswers, PartDocuments, ActFiles)

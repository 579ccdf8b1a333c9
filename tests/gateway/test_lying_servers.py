"""One policy server that lies, in every field that it makes.

Its lie never causes an effect. It never makes a PREVIEW promise what no COMMIT can keep, and it never leaves records on
which `aver verify` would accuse the operator.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from aver.gateway.policy_server import PolicyEvaluation, PolicyServer
from aver.gateway.proof.attestation import read_attestation
from aver.gateway.proof.evidence import Share, compute_mac
from aver.keys.statement import sign_statement
from support.acts import Office, open_office

Change = Callable[[dict[str, Any]], None]


class Liar:
    """A policy server that changes its share and its attestation, and signs both with its own keys."""

    def __init__(self, honest: PolicyServer, share: Change | None, attestation: Change | None, *, binds: bool) -> None:
        self._honest = honest
        self._change_share = share
        self._change_attestation = attestation
        self._binds = binds

    def evaluate(self, question: Any, **more: Any) -> PolicyEvaluation:
        answer = self._honest.evaluate(question, **more)
        share, content = answer.share, copy.deepcopy(dict(answer.attestation.content))
        if share is not None and self._change_share is not None:
            document = copy.deepcopy(share.to_dict())
            self._change_share(document)
            share = resign(document, self._honest)
            if self._binds:
                content.update(share_sha256=share.sha256, ts=share.ts)
        if self._change_attestation is not None:
            self._change_attestation(content)
        statement = sign_statement("policy", content, [self._honest._signer])
        _, attested = read_attestation(statement, self._honest.server_id)
        return PolicyEvaluation(share, statement, attested, answer.decision)


def resign(document: dict[str, Any], server: PolicyServer) -> Share:
    """The share with the MAC of its server."""
    from base64 import b64encode

    mac = compute_mac(Share.parse(document), server._mac_keys().active[1])
    return Share.parse({**document, "mac_b64": b64encode(mac).decode()})


def set_to(**values: Any) -> Change:
    return lambda document: document.update(values)


def flip(name: str) -> Change:
    def change(document: dict[str, Any]) -> None:
        document["outputs"][name] ^= 1

    return change


def add_output(document: dict[str, Any]) -> None:
    document["outputs"]["further"] = 1


def drop_output(document: dict[str, Any]) -> None:
    del document["outputs"]["patch1"]


def be_older(document: dict[str, Any]) -> None:
    document["ts"] -= 1


LIES: dict[str, tuple[Change | None, Change | None, bool]] = {
    "an old share": (set_to(ts=1000), None, True),
    "a share of the future": (set_to(ts=int(time.time()) + 86_400), None, True),
    "an unknown key": (set_to(kid="other"), None, True),
    "another act": (set_to(action_id="a_other"), None, True),
    "another program": (set_to(program_id="other"), None, True),
    "another request": (set_to(request_sha256="0" * 64), None, True),
    "a short tag": (set_to(commit_tag_share_b64="AQ=="), None, True),
    **{f"the bit {name}": (flip(name), None, True) for name in ("allow_pre", "need_confirm", "patch0", "patch1")},
    "a further output": (add_output, None, True),
    "a missing output": (drop_output, None, True),
    "a share that it has not attested": (be_older, None, False),
    "attests other rules": (None, set_to(rules=["lie"]), True),
    "attests another time": (None, set_to(ts=5), True),
    "attests another share": (None, set_to(share_sha256="0" * 64), True),
    "attests other facts": (None, set_to(facts_sha256="0" * 64), True),
    "attests that a person is needed": (None, set_to(need_confirm=1), True),
    "attests a patch": (None, set_to(patch_id=1), True),
    "attests another program": (None, set_to(program_id="other"), True),
    "attests another act": (None, set_to(action_id="a_other"), True),
    "attests another request": (None, set_to(request_sha256="0" * 64), True),
    "attests a refusal, with a share": (None, set_to(share_sha256=None, allow_pre=0), True),
}

CODES = {"POLICY_DENY", "POLICY_UNAVAILABLE", "BAD_COMMIT_PROOF"}


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    with open_office(tmp_path / "work") as opened:
        yield opened


def let_lie(office: Office, server_id: int, lie: tuple[Change | None, Change | None, bool]) -> None:
    servers: list[Any] = list(office.gateway._servers)
    share, attestation, binds = lie
    servers[server_id] = Liar(servers[server_id], share, attestation, binds=binds)
    office.gateway._servers = servers


@pytest.mark.parametrize("server_id", [pytest.param(0, marks=pytest.mark.more), 1])
@pytest.mark.parametrize("what", LIES)
def test_a_lie_causes_nothing_and_accuses_nobody(office: Office, what: str, server_id: int) -> None:
    let_lie(office, server_id, LIES[what])
    answer = office.write()
    assert (answer["status"], answer["reason_code"] in CODES) == ("DENY", True), answer
    assert answer["summary"]
    assert not list(office.workspace.iterdir())
    assert "act.commit" not in office.kinds()
    assert office.ledger.verify().status == "verified"


EXECUTORS = {"an old share", "a share of the future", "an unknown key", "a short tag"}
"""Lies about which the gateway cannot tell: it has no MAC keys, and the ages are the executor's."""


@pytest.mark.sample(8)
@pytest.mark.more
@pytest.mark.parametrize("server_id", [0, 1])
@pytest.mark.parametrize("what", sorted(LIES.keys() - EXECUTORS))
def test_no_preview_promises_what_no_commit_can_keep(office: Office, what: str, server_id: int) -> None:
    let_lie(office, server_id, LIES[what])
    answer = office.preview()
    assert (answer["status"], answer["data"]["expires"]) == ("DENY", None), answer
    assert office.commit(answer["data"]["tx_id"])["status"] == "DENY"


def test_only_the_words_of_a_server_are_its_own(office: Office) -> None:
    let_lie(office, 1, (None, set_to(reasons=["because"]), True))
    assert office.write()["reason_code"] == "ALLOW"
    assert office.ledger.verify().status == "verified"


def test_a_server_of_the_other_number_is_not_believed(office: Office) -> None:
    first, _ = office.gateway._servers
    office.gateway._servers = (first, first)
    answer = office.write()
    assert answer["reason_code"] == "POLICY_UNAVAILABLE"
    assert office.ledger.verify().status == "verified"


def test_a_server_refuses_facts_that_declare_what_its_program_does_not(office: Office) -> None:
    """The gateway tells the facts. The effects of a tool are no fact, but part of the program."""
    from dataclasses import replace

    honest = office.gateway._servers

    class Told:
        def __init__(self, server: PolicyServer) -> None:
            self._server = server

        def evaluate(self, question: Any, **more: Any) -> PolicyEvaluation:
            declared = {"effects": ["read"], "by": "settings"}
            facts = replace(question.inputs.facts, declared=declared)
            return self._server.evaluate(replace(question, inputs=replace(question.inputs, facts=facts)))

    office.gateway._servers = [Told(server) for server in honest]  # type: ignore[arg-type]
    answer = office.act("CallTool", {"server": "files", "tool": "read"})
    assert answer["status"] == "DENY"
    evaluation = honest[0].evaluate(ask_about(office, {"effects": ["read"], "by": "settings"}))
    assert evaluation.share is None
    assert "declare other effects" in evaluation.attestation.content["reasons"][0]


def ask_about(office: Office, declared: dict[str, Any]) -> Any:
    """The question about a write, with facts that declare something."""
    from dataclasses import replace

    asked: list[Any] = []

    class Listener:
        def __init__(self, server: PolicyServer) -> None:
            self._server = server

        def evaluate(self, question: Any, **more: Any) -> PolicyEvaluation:
            asked.append(question)
            return self._server.evaluate(question, **more)

    before = office.gateway._servers
    office.gateway._servers = [Listener(server) for server in before]  # type: ignore[arg-type]
    office.preview()
    office.gateway._servers = before
    facts = replace(asked[0].inputs.facts, declared=declared)
    return replace(asked[0], inputs=replace(asked[0].inputs, facts=facts))

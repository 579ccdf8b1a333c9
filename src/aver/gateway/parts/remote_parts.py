"""The gateway's side of parts that run apart: the way to each, and the gateway that uses them.

Before its first call to a part, the gateway asks for its health and agrees with it on the lowest major version that
both speak. A part of which it shares none, or that says it is another part, gets no call. Each call has the version in
the header `Aver-Major`, so a part that was replaced meanwhile refuses it. After any failure they agree anew.

A part that is down, slow, of another version or talking garbage denies the act with the reason:

    a policy server     POLICY_UNAVAILABLE (`aver.gateway.policy_panel`)
    the executor        EXECUTOR_UNAVAILABLE

An order to the executor is sent once. If it may have arrived and no answer came, the gateway looks into the ledger. The
outcome with the key `outcome:<action_id>` is the truth about the act, and the gateway answers with it. Without one, it
says that the act may still happen.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Any

from aver.errors import AverError, Unavailable
from aver.gate.own_records import OwnRecords
from aver.gateway.act_records import outcome_key
from aver.gateway.codes import DENY, OK, SUCCESSES, build_envelope, load_reason_codes
from aver.gateway.effects.preconditions import Preconditions
from aver.gateway.executor.commit_order import CommitOrder
from aver.gateway.gateway import Gateway
from aver.gateway.intents import INTENTS
from aver.gateway.parts.part_directories import (
    EXECUTOR,
    GATEWAY,
    PartDirectories,
    read_link_token,
    read_policy_keys,
)
from aver.gateway.policy_panel import RemotePolicyServer
from aver.gateway.proof.evidence import SERVERS
from aver.gateway.settings import GatewaySettings
from aver.ledger import Ledger
from aver.log import debug
from aver.serving.part_client import PartClient, PartUnavailable

MAJORS = (1,)
"""The major versions of the wire that this Aver speaks."""

MAJOR_HEADER = "Aver-Major"

POLICY_SECONDS = 10.0
"""How long the gateway waits for a policy server. A decision takes milliseconds; a busy machine needs some more."""

GREETING_SECONDS = 2.0
"""How long the gateway waits for the version of a part when it is opened. It takes milliseconds."""

EXECUTOR_SECONDS = 120.0
"""How long the gateway waits for the executor. An effect may be a command or a call of another machine."""

CLIENT_ERRORS = 4
"""First digit of the statuses by which a part refuses a request that it has not carried out."""

ENVELOPE_FIELDS = frozenset({"status", "reason_code", "summary", "data", "artifacts"})


class PartMismatch(Unavailable):
    """A part answers, and it is not the one that is wanted: another part, or none of our versions."""


class PartLink:
    """The way to one part. Safe to use from several threads."""

    def __init__(self, client: PartClient, name: str) -> None:
        self._client = client
        self._name = name
        self._major: int | None = None

    def agree(self, deadline: float | None = None) -> None:
        """Agree with the part on a version, unless that is done. Raises `PartMismatch` or `PartUnavailable`."""
        if self._major is not None:
            return
        health = self._client.get("/health", deadline=deadline)
        majors = health.get("majors")
        if health.get("part") != self._name or not isinstance(majors, list):
            raise PartMismatch(f"{self._client.part} at {self._client.address} says that it is another server")
        common = [major for major in MAJORS if major in majors]
        if not common:
            raise PartMismatch(
                f"{self._client.part} at {self._client.address} speaks the versions {majors!r:.80}, and this Aver "
                f"speaks {list(MAJORS)}",
                advice="run the same version of Aver for all parts",
            )
        self._major = min(common)

    def greet(self) -> None:
        """Agree with a part that answers at once. One that is slow is asked again with the first call."""
        self.agree(self._client.begin(GREETING_SECONDS))

    def post(self, path: str, document: Mapping[str, Any]) -> dict[str, Any]:
        """Send a document and return the answer's. Raises `PartMismatch`, or `PartUnavailable`."""
        # One time for both, which is the one that an error names.
        deadline = self._client.begin()
        try:
            self.agree(deadline)
        except PartUnavailable as error:
            # The question after its health never is the order itself.
            error.may_have_arrived = False
            raise
        try:
            return self._client.post(path, document, {MAJOR_HEADER: str(self._major)}, deadline=deadline)
        except PartUnavailable:
            self._major = None
            raise

    def close(self) -> None:
        self._client.close()


class RemoteExecutor:
    """The executor in another process. It implements `aver.gateway.gateway.Commits`."""

    def __init__(self, link: PartLink, ledger: Ledger) -> None:
        self._link = link
        self._ledger = ledger

    def execute(self, order: CommitOrder) -> dict[str, Any]:
        """Hand an order over, once, and return the envelope. `Unavailable` if it has certainly not arrived."""
        endpoint = INTENTS[order.intent_id].endpoint
        if not endpoint:
            raise Unavailable(f"the executor does not carry out {order.intent_id}")
        try:
            return _check_envelope(self._link.post(endpoint, order.to_dict()), order)
        except PartUnavailable as error:
            if not error.may_have_arrived or (error.status or 0) // 100 == CLIENT_ERRORS:
                raise
            debug("gateway", "looking for the outcome of %s: %s", order.action_id, error.message)
            return self._find_outcome(order, error.message)

    def _find_outcome(self, order: CommitOrder, problem: str) -> dict[str, Any]:
        """Answer with the outcome in the ledger. Nothing is sent again, whether there is one or not."""
        known = {"tx_id": order.tx_id, "action_id": order.action_id}
        try:
            record = self._ledger.get(outcome_key(order.action_id))
            if record is None:
                words = f"{problem}; the act may still happen, and its outcome will be in the ledger"
                return build_envelope("EXECUTOR_UNAVAILABLE", words, data=known)
            result = OwnRecords(self._ledger).require(record).to_dict()["outcome"]["result"]
        except AverError as error:
            # Not passed on: nobody may take this for an order that has not arrived.
            words = f"{problem}; whether the act happened is not known: {error.message}"
            return build_envelope("EXECUTOR_UNAVAILABLE", words, data=known)
        code = result["reason_code"] if result["reason_code"] in load_reason_codes() else "EXECUTOR_UNAVAILABLE"
        words = result["detail"] or f"{problem}; this is the outcome that the ledger has"
        return build_envelope(code, words, data={**known, "outcome": record.id, **(result["result"] or {})})


def _check_envelope(answer: Mapping[str, Any], order: CommitOrder) -> dict[str, Any]:
    """Return the executor's answer; `PartUnavailable` for one that cannot be about this order."""
    code, data = answer.get("reason_code"), answer.get("data")
    is_whole = (
        answer.keys() == ENVELOPE_FIELDS
        and isinstance(code, str)
        and code in load_reason_codes()
        and answer["status"] == (OK if code in SUCCESSES else DENY)
        and isinstance(answer["summary"], str)
        and isinstance(data, dict)
        and data.get("action_id") == order.action_id
        and answer["artifacts"] == []
    )
    if not is_whole:
        raise PartUnavailable("the executor", "its socket", "gave an answer that is none", may_have_arrived=True)
    return dict(answer)


def open_apart(
    ledger: Ledger,
    settings: GatewaySettings,
    *,
    workspace: str,
    session: str = "",
    clock: Callable[[], float] = time.time,
    policy_seconds: float = POLICY_SECONDS,
    executor_seconds: float = EXECUTOR_SECONDS,
    close: Callable[[], None],
) -> Gateway:
    """Open a gateway whose policy servers and executor run apart. `close` is called at its end.

    A part that does not run yet is no error here: its acts are denied until it does. `PartMismatch` if a part runs that
    has no version in common with this one.
    """
    directories = PartDirectories(ledger.config.home)
    own = directories.of(GATEWAY)
    keys = read_policy_keys(own)
    links: list[PartLink] = []

    def link(name: str, part: str, seconds: float) -> PartLink:
        token = read_link_token(own / f"{name}.token")
        client = PartClient(directories.find_address(name, settings), token, seconds, part=part)
        links.append(PartLink(client, name))
        return links[-1]

    servers = [
        RemotePolicyServer(number, link(f"policy{number}", f"policy server {number}", policy_seconds), keys)
        for number in SERVERS
    ]
    executor = RemoteExecutor(link(EXECUTOR, "the executor", executor_seconds), ledger)
    for each in links:
        try:
            each.greet()
        except PartMismatch:
            raise
        except AverError as error:
            debug("gateway", "a part does not answer yet: %s", error.message)

    def end() -> None:
        for each in links:
            each.close()
        close()

    return Gateway(
        ledger,
        servers=servers,
        executor=executor,
        workspace=os.path.realpath(workspace),
        settings=settings,
        deployment="apart",
        preconditions=Preconditions(
            {intent.name for intent in INTENTS.values() if intent.endpoint}, (), settings.effects
        ),
        session=session,
        clock=clock,
        close=end,
    )

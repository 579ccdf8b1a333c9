"""The gateway's HTTP door: `POST /act` and `POST /session`, on a Unix socket or on this machine's TCP address.

The body is an act of four fields, and the answer its envelope. Every decision has the status 200. A body that is not
JSON gets 400, a caller that nobody knows 401, a body that is too large 413.

The door knows a caller by one of three ways:

    uid         the user id behind the Unix socket: the user who runs the door, or a client of `[gateway.clients]`
    token       `Authorization: Bearer ...`: a client of `[gateway.clients]`, or the door's own link token
    federated   the signed headers of a principal elsewhere (`aver.gateway.ingress`)

A client by uid or token names its session in the header `Aver-Session`, if its settings allow that session. Without the
header, each client gets one session for as long as the door runs. It may name only the callers of its settings.

`POST /session` tells what the user said: {"prompt": "...", "session": "..."}. Acts of that session are judged by these
words, so only two may tell them: the user who runs the door, by its token, and a client whose settings say
`prompts = true`. An agent must not be such a client. The answer has the session in `data`.

A federated call is first checked, then recorded as `act.ingress` with the key `ingress:<principal>:<nonce>`. The ledger
takes the key once, so the same call again is `INGRESS_REPLAY`. Calls whose signature does not hold leave no record:
anyone could fill the ledger with them.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from aver.capsule.aver_block import of_kind
from aver.capsule.json_document import check_object, parse_document
from aver.capsule.model import Authority, Capsule, Context, Outcome, Trigger
from aver.errors import AverError, BadInput, Exists, Refused
from aver.gateway.act_records import DOMAIN, INGRESS_KIND, IngressNote, Surroundings, act_chain, check_session
from aver.gateway.acts.visit import Door, new_session
from aver.gateway.codes import BAD_REQUEST, build_envelope, build_refusal_envelope
from aver.gateway.gateway import Gateway
from aver.gateway.ingress import (
    AUDIENCE,
    DELEGATION,
    NONCE,
    PRINCIPAL,
    SESSION,
    SIGNATURE,
    TIME,
    Ingress,
    check_ingress,
)
from aver.gateway.request import REQUEST_MAX
from aver.gateway.settings import GatewayClient, may_name
from aver.log import debug
from aver.serving.part_server import PartCall, PartServer, ServerLimits
from aver.serving.peers import ClientList, Credentials, PermittedClient
from aver.serving.tokens import digest_token
from aver.serving.wire import WireLimits

ACT_PATH = "/act"
SESSION_PATH = "/session"

OWNER_BY_UID, OWNER_BY_TOKEN = "owner:uid", "owner:token"
"""The names of the user who runs the door. No client of the settings can have one: theirs have no colon."""

_FEDERATED = frozenset({PRINCIPAL, DELEGATION, TIME, NONCE, AUDIENCE, SIGNATURE})
"""The headers of which one makes a call federated. `Aver-Session` alone does not."""


class HttpDoor:
    """Answers calls of `POST /act`. `token` is that of the user who runs the door."""

    def __init__(self, gateway: Gateway, token: str, *, clock: Callable[[], float] = time.time) -> None:
        settings = gateway.settings
        self._gateway = gateway
        self._clock = clock
        self._clients = {client.name: client for client in settings.clients}
        permitted = [PermittedClient(each.name, each.token_sha256, each.uid) for each in settings.clients]
        permitted.append(PermittedClient(OWNER_BY_TOKEN, token_sha256=digest_token(token)))
        if os.geteuid() not in (each.uid for each in settings.clients):
            permitted.append(PermittedClient(OWNER_BY_UID, uid=os.geteuid()))
        self._list = ClientList(permitted)
        self._sessions: dict[str, str] = {}
        self._naming = threading.Lock()

    def build_server(self, health: Callable[[], Mapping[str, Any]]) -> PartServer:
        """Build the server of this door."""
        routes = {("POST", ACT_PATH): self.act, ("POST", SESSION_PATH): self.open_session}
        limits = ServerLimits(wire=WireLimits(body_max=REQUEST_MAX))
        return PartServer(routes, identify=self.identify, health=health, refuse=refuse_call, limits=limits)

    def identify(self, shown: Credentials) -> str | None:
        """Return the client's name; empty for a federated call, whose signature `act` checks."""
        return "" if shown.headers.keys() & _FEDERATED else self._list(shown)

    def act(self, call: PartCall) -> dict[str, Any]:
        """Answer a call with an envelope."""
        try:
            door = self._open_federated(call) if not call.peer.client else self._open_local(call)
        except Refused as refusal:
            debug("gateway", "refused at the door as %s: %s", refusal.code, refusal.message)
            return build_refusal_envelope(refusal)
        except AverError as error:
            return build_envelope("EXECUTOR_UNAVAILABLE", f"nothing was done: {error}")
        return self._gateway.act(call.body, door=door)

    def open_session(self, call: PartCall) -> dict[str, Any]:
        """Seal what the user said, and answer with the session that it was said in."""
        try:
            name = call.peer.client
            client = self._clients.get(name, GatewayClient(name, prompts=name == OWNER_BY_TOKEN))
            if not name or not client.prompts:
                raise Refused(
                    "INGRESS_CONFLICT",
                    f"{name or 'this call'} is not trusted to know the user's words",
                    advice="set prompts = true for a client that is no agent",
                )
            known = check_object(
                parse_document(call.body, "the body", limit=REQUEST_MAX),
                "the body",
                frozenset({"prompt"}),
                frozenset({"session"}),
            )
            session = known.get("session", "")
            if session and not may_name(client.sessions, _read_session(session)):
                raise Refused("INGRESS_CONFLICT", f"the client {name} may not use the session {session!r}")
            door = self._gateway.open_session(known["prompt"], session=session, told_by=name)
        except Refused as refusal:
            debug("gateway", "refused at the door as %s: %s", refusal.code, refusal.message)
            return build_refusal_envelope(refusal)
        except BadInput as error:
            return build_envelope(BAD_REQUEST, str(error))
        except AverError as error:
            return build_envelope("EXECUTOR_UNAVAILABLE", f"nothing was sealed: {error}")
        return build_envelope("ALLOW", "the user's words are sealed", data={"session": door.session})

    def _open_local(self, call: PartCall) -> Door:
        """Open the door for a client by uid or token. Raises `Refused`."""
        name = call.peer.client
        client = self._clients.get(name, GatewayClient(name))
        session = call.headers.get(SESSION)
        if session is None:
            with self._naming:
                session = self._sessions.setdefault(name, new_session())
        elif not may_name(client.sessions, _read_session(session)):
            raise Refused("INGRESS_CONFLICT", f"the client {name} may not use the session {session!r}")
        kind = "token" if client.token_sha256 or name == OWNER_BY_TOKEN else "uid"
        identity = f"{name} ({call.peer.uid})" if kind == "uid" else name
        return Door(session=session, ingress=IngressNote(kind, identity), callers=client.callers)

    def _open_federated(self, call: PartCall) -> Door:
        """Check a signed call, and use its nonce up. Raises `Refused`."""
        ingress = check_ingress(
            call.headers.items(),
            method=call.method,
            path=call.path,
            body=call.body,
            keys=self._gateway.settings.keys,
            now=self._clock(),
            audience=self._gateway.ledger.id,
        )
        if ingress is None:
            raise Refused("INGRESS_SIGNATURE_REQUIRED", "the call is not signed")
        session, note = _read_session(ingress.session), IngressNote("federated", ingress.principal)
        surroundings = self._gateway.describe_surroundings(Door(session=session, ingress=note))
        # Before anything else: of two calls with one nonce, in any process, the ledger takes one.
        try:
            draft = build_ingress_draft(ingress, surroundings)
            self._gateway.ledger.append(act_chain(session), draft, key=ingress.nonce_key)
        except Exists as error:
            raise Refused("INGRESS_REPLAY", "a call with this nonce was answered before") from error
        return Door(session=session, ingress=note, federated=ingress)


def build_ingress_draft(ingress: Ingress, surroundings: Surroundings) -> Capsule:
    """Build the record of a federated call. The signed statement is in `authority.chain`."""
    draft = Capsule(
        type="auth",
        domain=DOMAIN,
        trigger=Trigger(source=ingress.principal, request=f"{ingress.method} {ingress.path}"),
        context=Context(
            agent_id=ingress.principal, session_id=ingress.session, environment={DOMAIN: surroundings.to_dict()}
        ),
        authority=Authority(type="policy", policy_reference="aver gateway serve", chain=[ingress.statement.to_dict()]),
        outcome=Outcome(
            status="success",
            result={"v": 1, **ingress.content},
            summary=f"a signed call of {ingress.principal}",
        ),
    )
    return of_kind(draft, INGRESS_KIND)


def _read_session(text: str) -> str:
    try:
        return check_session(text)
    except BadInput as error:
        raise Refused(BAD_REQUEST, error.message, advice=error.advice) from error


def refuse_call(status: int, words: str) -> Mapping[str, Any]:
    """Build the answer to a call that is no act: an envelope, so that clients read one form."""
    code = "INGRESS_SIGNATURE_REQUIRED" if status == 401 else BAD_REQUEST
    return build_envelope(code, words)

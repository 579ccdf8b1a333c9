"""A2A 1.0: participants of a trace in other organisations, through the official SDK. Needs the extra `a2a`.

The operator serves its trace, and a participant elsewhere speaks in it by its own key:

    app = build_protocol_app(session, "http://127.0.0.1:8801", token)       # any ASGI server runs it

    async with RemoteParticipant("http://127.0.0.1:8801", "agent:carol", KeyStore(home), token) as carol:
        await carol.join("critic")
        view = await carol.view()
        await carol.say("proposal_reviewed", {...}, refs={"proposal": view["open"]["reviews"][0]})

The agent card names the extension `urn:aver:protocol:1` as required. A message has one text part of JSON, media type
`application/vnd.aver.protocol+json`; a data part would turn whole numbers into fractions, and so break signatures:

    {"v": 1, "ask": "offer"}                                  the place of the trace, its task and profile: for a join
    {"v": 1, "ask": "view", "agent": "agent:carol"}           the view of a participant, and the hash of every record
    {"v": 1, "ask": "accept", "contribution": {...}}          a signed join or event, which the operator seals

An answer is `{"v": 1, "ok": true, ...}` or `{"v": 1, "ok": false, "code", "error", "advice"}`.

The operator believes a participant's signature, never its connection: who has the token may read the trace, and may
speak only by a key that joined. The participant believes its own memory: it keeps the newest head that it has seen, and
refuses a later history without it (`ROLLBACK`). The view itself is the operator's word. To check the history record
by record, take an export of the trace and verify it.
"""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import httpx
from a2a.client import ClientConfig, create_client
from a2a.client.client import ClientCallContext
from a2a.client.service_parameters import ServiceParametersFactory, with_a2a_extensions
from a2a.helpers.proto_helpers import get_message_text, new_text_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentExtension,
    AgentInterface,
    AgentSkill,
    Role,
    SendMessageRequest,
)
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse

from aver import __version__, clock
from aver.capsule.blobs import Blob
from aver.capsule.json_document import parse_document
from aver.errors import AverError, BadInput, IntegrityError, Refused, Unavailable
from aver.log import debug
from aver.protocol.events import Event
from aver.protocol.records.draft import prepare_payload
from aver.protocol.statements import (
    ContributionFile,
    Join,
    SeenHead,
    TracePlace,
    digest_json,
    read_seen,
    sign_contribution,
    sign_join,
)

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from aver.keys import KeyStore
    from aver.protocol.session import ProtocolSession

EXTENSION_URI = "urn:aver:protocol:1"
MEDIA_TYPE = "application/vnd.aver.protocol+json"

MESSAGE_MAX = 16 * 1024 * 1024
"""Largest message that is read, in bytes: a contribution with its artifacts."""

TOKEN_MIN = 16
"""Characters of a token at the least: it is all that keeps strangers from reading the trace."""

ANSWER_SECONDS = 120.0
"""How long a participant waits for the operator's answer."""


# --- the operator's side


class ProtocolOperator(AgentExecutor):
    """Answers the messages about one trace, by a session that the operator keeps open."""

    def __init__(self, session: ProtocolSession) -> None:
        self._session = session

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Answer one message with one message."""
        text = get_message_text(context.message) if context.message is not None else ""
        # The ledger and its keys are used in a thread, so that the loop stays free.
        answer = await asyncio.to_thread(self.answer, text)
        message = new_text_message(
            json.dumps({"v": 1, **answer}), MEDIA_TYPE, context_id=context.context_id, task_id=None
        )
        message.extensions.append(EXTENSION_URI)
        await event_queue.enqueue_event(message)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Nothing can be cancelled: every answer is given at once."""
        raise Unavailable("an answer is given at once, and cannot be cancelled")

    def answer(self, text: str) -> dict[str, Any]:
        """Return the answer to the text of a message. Raises nothing for what others sent."""
        try:
            return {"ok": True, **self._answer(text)}
        except AverError as error:
            debug("adapters", "a2a: refused: %s", error)
            code = getattr(error, "code", type(error).__name__)
            return {"ok": False, "code": code, "error": error.message, "advice": error.advice}

    def _answer(self, text: str) -> dict[str, Any]:
        document = parse_document(text.encode("utf-8", "surrogatepass"), "the message", limit=MESSAGE_MAX)
        if not isinstance(document, dict) or document.get("v") != 1:
            raise BadInput("the message must be an object with v: 1", advice=f"see {EXTENSION_URI}")
        ask, session = document.get("ask"), self._session
        session.catch_up()
        if ask == "offer":
            return {
                "place": session.place.to_dict(),
                "task": dict(session.fold.task),
                "task_sha256": session.fold.task_sha256,
                "profile": session.fold.profile,
            }
        if ask == "view":
            agent = document.get("agent")
            if not isinstance(agent, str):
                raise BadInput("a view needs the name of an agent")
            view = session.view(agent)
            # Read together with the view: an event in between must not make them differ.
            hashes = [event.hash for event in session.events][: view.head.get("count", 0)]
            return {"place": session.place.to_dict(), "view": view.to_dict(), "hashes": hashes}
        if ask == "accept":
            contribution = document.get("contribution")
            if not isinstance(contribution, dict):
                raise BadInput("a contribution must be an object")
            event = session.accept(contribution)
            return {"event": event.name, "id": event.id, "sequence": event.sequence, "hash": event.hash}
        raise BadInput(f"{ascii(ask)[:80]} is nothing to ask for", advice="ask for offer, view or accept")


def build_agent_card(session: ProtocolSession, url: str) -> AgentCard:
    """Return the card of an operator: what it does, and that the extension is required."""
    skill = AgentSkill(
        id="aver-protocol",
        name="Take part in a trace",
        description="Views of one trace, and signed contributions to it.",
        tags=["audit", "multi-agent", "signed"],
        input_modes=[MEDIA_TYPE],
        output_modes=[MEDIA_TYPE],
    )
    extension = AgentExtension(uri=EXTENSION_URI, description="The multi-agent protocol of Aver", required=True)
    return AgentCard(
        name=f"Aver trace {session.trace}",
        description="The operator of one trace of the multi-agent protocol.",
        version=__version__,
        supported_interfaces=[AgentInterface(url=url, protocol_binding="JSONRPC", protocol_version="1.0")],
        capabilities=AgentCapabilities(streaming=False, extensions=[extension]),
        default_input_modes=[MEDIA_TYPE],
        default_output_modes=[MEDIA_TYPE],
        skills=[skill],
    )


def build_protocol_app(session: ProtocolSession, url: str, token: str) -> Starlette:
    """Return the ASGI application of an operator. Every request needs the token, but for the agent card."""
    if len(token) < TOKEN_MIN:
        raise BadInput(f"the token must have at least {TOKEN_MIN} characters", advice="use secrets.token_urlsafe()")
    card = build_agent_card(session, url)
    handler = DefaultRequestHandler(
        agent_executor=ProtocolOperator(session), task_store=InMemoryTaskStore(), agent_card=card
    )
    routes = [*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/")]
    return Starlette(routes=routes, middleware=[Middleware(_BearerGuard, token=token)])


class _BearerGuard:
    """Lets through requests with the token, and those for the agent card."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._wanted = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_open = scope["type"] != "http" or scope["path"].startswith("/.well-known/")
        given = dict(scope.get("headers", [])).get(b"authorization", b"")
        if is_open or hmac.compare_digest(given, self._wanted):
            await self._app(scope, receive, send)
            return
        debug("adapters", "a2a: a request without the token was refused")
        await PlainTextResponse("the token is missing or wrong", status_code=401)(scope, receive, send)


# --- the participant's side


class RemoteParticipant:
    """A participant whose key is here, in a trace that an operator elsewhere orders. Use it as an async context."""

    def __init__(
        self, url: str, agent: str, keys: KeyStore, token: str, *, http: httpx.AsyncClient | None = None
    ) -> None:
        """`http` replaces the client of the SDK, for certificates or proxies of your own."""
        self.agent = agent
        self.seen: SeenHead | None = None
        """The newest head that this participant has seen. Keep it, and set it again after a restart."""
        self._url = url
        self._keys = keys
        self._token = token
        self._http = http
        self._open = AsyncExitStack()
        self._client: Any = None
        self._place: TracePlace | None = None
        self._role = ""

    async def __aenter__(self) -> Self:
        http = self._http
        if http is None:
            http = await self._open.enter_async_context(httpx.AsyncClient(timeout=ANSWER_SECONDS))
        http.headers["Authorization"] = f"Bearer {self._token}"
        self._client = await create_client(self._url, ClientConfig(streaming=False, httpx_client=http))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._open.aclose()

    async def join(self, role: str) -> dict[str, Any]:
        """Take a role in a trace that has begun. Signs what the operator shows, after comparing the task's digest."""
        offer = await self._ask({"ask": "offer"})
        if digest_json(offer["task"]) != offer["task_sha256"]:
            raise IntegrityError("EVIDENCE_INVALID", "the operator shows another task than it asks to sign")
        signer = self._keys.signer(self.agent)
        place = _read_place(offer["place"])
        content = Join(place, offer["task_sha256"], offer["profile"], role, self.agent, signer.public, clock.now())
        return await self._ask({"ask": "accept", "contribution": sign_join(signer, content).to_dict()})

    async def view(self) -> dict[str, Any]:
        """Return the view, as `aver.View.to_dict` has it. Raises `IntegrityError` if the history was changed."""
        answer = await self._ask({"ask": "view", "agent": self.agent})
        view, hashes = answer["view"], answer["hashes"]
        head = read_seen(view["head"], "head")
        if len(hashes) != head.count or hashes[-1] != head.hash:
            raise IntegrityError("EVIDENCE_INVALID", "the operator's list of records does not end with its head")
        if self.seen is not None and (len(hashes) < self.seen.count or hashes[self.seen.count - 1] != self.seen.hash):
            words = f"this history lacks record {self.seen.count - 1}, which {self.agent} has seen"
            advice = "show both histories to the other participants"
            raise IntegrityError("ROLLBACK", words, evidence=self.seen, advice=advice)
        place = _read_place(answer["place"])
        if self._place not in (None, place):
            raise IntegrityError("CHAIN_IDENTITY", "the operator shows another trace than before")
        self.seen, self._place, self._role = head, place, view["role"]
        return dict(view)

    async def say(
        self,
        event: str,
        payload: Mapping[str, Any],
        *,
        refs: Mapping[str, str] | None = None,
        artifacts: Iterable[Blob] = (),
    ) -> dict[str, Any]:
        """Sign an event and send it. The signature names the newest head that `view` has shown."""
        if self.seen is None or self._place is None:
            await self.view()
        assert self.seen is not None
        assert self._place is not None
        said = Event(
            id=clock.new_id(),
            trace=self._place.chain.partition(".")[2],
            name=event,
            role=self._role,
            agent=self.agent,
            payload=prepare_payload(event, payload),
            refs=dict(refs or {}),
        )
        statement = sign_contribution(self._keys.signer(self.agent), self._place, said, self.seen)
        sent = ContributionFile(statement, said.payload, tuple(artifacts))
        return await self._ask({"ask": "accept", "contribution": sent.to_dict()})

    async def _ask(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Send a message and return the answer. Raises `Refused` with the operator's code, or `Unavailable`."""
        message = new_text_message(json.dumps({"v": 1, **document}), MEDIA_TYPE, role=Role.ROLE_USER)
        message.extensions.append(EXTENSION_URI)
        parameters = ServiceParametersFactory.create([with_a2a_extensions([EXTENSION_URI])])
        context = ClientCallContext(timeout=ANSWER_SECONDS, service_parameters=parameters)
        text = ""
        try:
            async for response in self._client.send_message(SendMessageRequest(message=message), context=context):
                if response.HasField("message"):
                    text = get_message_text(response.message)
        except Exception as error:
            raise Unavailable(f"the operator at {self._url} does not answer: {error}") from error
        answer = parse_document(text.encode("utf-8", "surrogatepass"), "the answer", limit=MESSAGE_MAX)
        if not isinstance(answer, dict) or answer.get("v") != 1:
            raise Unavailable(f"the operator at {self._url} gave no answer of {EXTENSION_URI}")
        if answer.get("ok") is not True:
            raise Refused(str(answer.get("code")), str(answer.get("error")), advice=str(answer.get("advice", "")))
        return answer


def _read_place(value: Any) -> TracePlace:
    if not isinstance(value, dict) or not all(isinstance(value.get(key), str) for key in ("ledger", "tenant", "chain")):
        raise BadInput("the operator names no place of its trace")
    return TracePlace(value["ledger"], value["tenant"], value["chain"])

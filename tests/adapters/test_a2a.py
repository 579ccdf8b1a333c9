"""A2A 1.0 with the official SDK, on loopback: a critic in another home takes part by its own key."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("a2a")
pytest.importorskip("uvicorn")

import httpx
import uvicorn

from aver import KeyStore
from aver.adapters.a2a import EXTENSION_URI, ProtocolOperator, RemoteParticipant, build_protocol_app
from aver.errors import BadInput, IntegrityError, Refused, Unavailable
from aver.protocol.session import ProtocolSession
from aver.protocol.statements import SeenHead
from support.protocol_sessions import claim_count, open_session, reach_claiming

pytestmark = pytest.mark.more

TOKEN = "a-token-of-enough-letters"


@contextmanager
def served(session: ProtocolSession) -> Iterator[str]:
    """The operator's application on a port of this machine."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        config = uvicorn.Config(build_protocol_app(session, url, TOKEN), log_level="error")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        while not server.started:
            time.sleep(0.02)
        try:
            yield url
        finally:
            server.should_exit = True
            thread.join()


def test_a_critic_elsewhere_joins_and_challenges(tmp_path: Path) -> None:
    elsewhere = KeyStore(tmp_path / "elsewhere")

    async def criticise(url: str) -> dict[str, Any]:
        async with RemoteParticipant(url, "agent:carol", elsewhere, TOKEN) as carol:
            await carol.join("critic")
            view = await carol.view()
            assert view["role"] == "critic"
            claim = view["claims"][0]["id"]
            done = await carol.say("claim_challenged", {"reason": "three?", "evidence": []}, refs={"claim": claim})
            later = await carol.view()
            assert later["open"]["disputes"] == [done["id"]]
            with pytest.raises(Refused) as refused:
                await carol.say("claim_issued", {"text": "x", "confidence": 1, "about": "success", "evidence": []})
            assert refused.value.code
            return done

    with open_session(tmp_path) as session:
        reach_claiming(session)
        claim_count(session)
        with served(session) as url:
            done = asyncio.run(criticise(url))
        event = session.events[-1]
        assert (event.id, event.name, event.agent) == (done["id"], "claim_challenged", "agent:carol")
        assert event.contribution is not None
        assert event.signer != session.fold.participants["agent:carol"].key.fingerprint  # The operator sealed it.
        assert session.fold.participants["agent:carol"].held == "elsewhere"


def test_a_history_that_was_cut_is_refused(tmp_path: Path) -> None:
    async def look(url: str) -> None:
        async with RemoteParticipant(url, "agent:critic", KeyStore(tmp_path / "elsewhere"), TOKEN) as critic:
            await critic.view()
            assert critic.seen is not None
            critic.seen = SeenHead(critic.seen.count, "0" * 64)
            with pytest.raises(IntegrityError) as caught:
                await critic.view()
            assert caught.value.code == "ROLLBACK"

    with open_session(tmp_path) as session:
        reach_claiming(session)
        with served(session) as url:
            asyncio.run(look(url))


def test_nobody_reads_without_the_token(tmp_path: Path) -> None:
    async def look(url: str) -> None:
        async with RemoteParticipant(url, "agent:critic", KeyStore(tmp_path / "elsewhere"), "wrong" * 5) as critic:
            with pytest.raises(Unavailable):
                await critic.view()

    with open_session(tmp_path) as session, served(session) as url:
        asyncio.run(look(url))
        assert httpx.post(url, json={}).status_code == 401
        card = httpx.get(f"{url}/.well-known/agent-card.json").json()
        (extension,) = card["capabilities"]["extensions"]
        assert (extension["uri"], extension["required"]) == (EXTENSION_URI, True)
    with open_session(tmp_path) as session, pytest.raises(BadInput, match="token"):
        build_protocol_app(session, "http://127.0.0.1:1", "short")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "[]",
        "{}",
        '{"v": 2, "ask": "offer"}',
        '{"v": 1, "ask": "everything"}',
        '{"v": 1, "ask": "view"}',
        '{"v": 1, "ask": "view", "agent": "agent:mallory"}',
        '{"v": 1, "ask": "accept"}',
        '{"v": 1, "ask": "accept", "contribution": {"purpose": "protocol-join"}}',
        '{"v": 1, "ask": "accept", "contribution": 7}',
        '{"v": 1, "v": 1, "ask": "offer"}',
    ],
)
def test_a_hostile_message_gets_an_answer_and_changes_nothing(tmp_path: Path, text: str) -> None:
    with open_session(tmp_path) as session:
        before = session.fold.count
        answer = ProtocolOperator(session).answer(text)
        assert answer["ok"] is False
        json.dumps(answer)
        assert session.fold.count == before

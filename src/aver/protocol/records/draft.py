"""Preparing what a session says: tasks, payloads, and the key that seals them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from aver.capsule.masking.mask import mask
from aver.capsule.sealed import HoldableSigner, Signer, hold_signer
from aver.errors import BadInput
from aver.keys.public_key import PublicKey
from aver.protocol.events import FORMS, find_payload_problem
from aver.protocol.rules.step import EventRefused

SEALED_AS_GIVEN = frozenset(
    {"session_initialized", "participant_joined", "tool_intent_signed", "verification_run_completed"}
)
"""Events whose payload is not masked here: a task and an intent are masked before their digests are computed, and keys
and reports hold no text of an agent."""


def prepare_task(task: Mapping[str, Any] | str) -> dict[str, Any]:
    """Return a task as it is sealed: an object, with secrets masked. An objective alone is a task.

    Every participant prepares it so before it signs its join. Raises `BadInput` for anything but a task.
    """
    given = {"objective": task} if isinstance(task, str) else dict(task)
    if not isinstance(given.get("objective"), str) or not given["objective"]:
        raise BadInput("a task needs an objective", advice='write at least {"objective": "..."}')
    masked: dict[str, Any] = mask(given).value
    return masked


def prepare_payload(event: str, payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return a payload as it is sealed: with its version, secrets masked, and held to its schema.

    Raises `EventRefused` with `SCHEMA_INVALID`.
    """
    if event not in FORMS:
        raise BadInput(f"{ascii(event)[:80]} is not an event", advice=f"events are {', '.join(FORMS)}")
    whole = {"v": 1, **payload}
    if event not in SEALED_AS_GIVEN:
        whole = mask(whole).value
    if problem := find_payload_problem(event, whole):
        raise EventRefused("SCHEMA_INVALID", problem, place="payload", advice=f"aver protocol schema {event}")
    return whole


class BoundSigner:
    """A signer that refuses to seal by another key than the one that an event was judged with.

    The fold judges an event by its key before the ledger seals it. A rotation in between would seal an event that the
    trace must refuse.
    """

    def __init__(self, signer: Signer | HoldableSigner) -> None:
        self._signer = signer
        with hold_signer(signer) as held:
            self.fingerprint = held.fingerprint
            public = getattr(held, "public", None)
        if not isinstance(public, PublicKey):
            raise BadInput("a signer of the protocol must tell its public key")
        self.public: PublicKey = public

    @property
    def for_append(self) -> Signer | HoldableSigner:
        """The signer to append with. One that cannot be rotated is used as it stands."""
        return self if hasattr(self._signer, "hold") else self._signer

    @contextmanager
    def hold(self) -> Iterator[Signer]:
        """Give the signer whose key does not change within the context. Raises `EventRefused` if it has changed."""
        with hold_signer(self._signer) as held:
            if held.fingerprint != self.fingerprint:
                raise EventRefused("KEY_RETIRED", "the key was rotated in between", advice="say it again")
            yield held

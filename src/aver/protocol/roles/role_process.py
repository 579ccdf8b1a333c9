"""A program as a role: it gets a view on standard input, and answers with one event, or with nothing. Both are JSON.

    in   {"v": 1, "trace": "…", "agent": "agent:critic", "state": "reviewing", "task": {…}, "may_say": […], …}
    out  {"event": "proposal_reviewed", "refs": {"proposal": "…"},
          "payload": {"verdict": "approved", "rationale": "it only reads", "conditions": []}}

Nothing on standard output, or `null`, means that the role has nothing to say now. An event may bring artifacts:
`"artifacts": {"notes.txt": {"text": "…"}}`, or `{"base64": "…", "media": "image/png"}`.

The program is started once for each view. Aver trusts nothing that it prints: the answer is read strictly and within
`ANSWER_MAX`, and the session then judges the event like any other. A program that says nothing for too long, floods,
crashes, or prints anything but one JSON object is broken: `RoleBroken` says how. Standard error is for people; Aver
quotes its beginning in that error.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping, Sequence
from typing import Any

from aver.capsule.canonical import canonical_json
from aver.capsule.json_document import check_object
from aver.capsule.json_reader import read_json
from aver.errors import BadInput, Unavailable
from aver.log import debug
from aver.protocol.roles.role import Said, SaidArtifact, ViewLike
from aver.protocol.tools.processes import run_process
from aver.protocol.tools.tool import BYTES, TEXT, Limits
from aver.text import to_one_line

ANSWER_MAX = 4 * 1024 * 1024
"""Largest answer of a role, in bytes. Larger things are artifacts of executions."""

ROLE_SECONDS = 600.0
"""How long a role may think about one view. Models and people behind a program take minutes."""

QUOTED_MAX = 300
"""Characters of standard error that an error quotes."""

ARTIFACTS_MAX = 64
"""Most artifacts of one answer."""


class RoleBroken(Unavailable):
    """A role's program did not answer as it must. `agent` is whose it is."""

    def __init__(self, agent: str, words: str) -> None:
        super().__init__(f"the role {agent} broke down: {words}", advice="repair it, then: aver protocol resume TRACE")
        self.agent = agent


class CommandRole:
    """Asks a program for the next event."""

    def __init__(self, agent: str, argv: Sequence[str], *, directory: str, seconds: float = ROLE_SECONDS) -> None:
        self._agent = agent
        self._argv = list(argv)
        self._directory = directory
        self._limits = Limits(seconds=seconds, output_max=ANSWER_MAX)

    def __call__(self, view: ViewLike) -> Said | None:
        """Return the event that the program says, or None. Raises `RoleBroken`."""
        try:
            # The program is the user's own, like one in a Makefile: it gets the user's whole environment.
            end = run_process(
                self._argv,
                cwd=self._directory,
                environment=dict(os.environ),
                limits=self._limits,
                given=canonical_json(view.to_dict()),
            )
        except OSError as error:
            raise RoleBroken(self._agent, f"{self._argv[0]} cannot be started: {error.strerror}") from error
        quoted = to_one_line(end.stderr[: QUOTED_MAX * 4].decode("utf-8", "replace"))[:QUOTED_MAX]
        said = f"; it says: {quoted}" if quoted else ""
        if end.reason == "timeout":
            raise RoleBroken(self._agent, f"no answer within {self._limits.seconds:g} seconds{said}")
        if end.reason == "flood" or "stdout" in end.cut:
            raise RoleBroken(self._agent, f"an answer has at most {ANSWER_MAX} bytes{said}")
        if end.exit_code != 0:
            raise RoleBroken(self._agent, f"it ended with exit code {end.exit_code}{said}")
        try:
            return read_answer(end.stdout)
        except BadInput as error:
            debug("protocol", "%s: %s", self._agent, error)
            raise RoleBroken(self._agent, f"{error.message}{said}") from error


def read_answer(raw: bytes) -> Said | None:
    """Read the answer of a role. Raises `BadInput`."""
    if not raw.strip():
        return None
    document = read_json(raw)
    if document is None:
        return None
    found = check_object(document, "the answer", frozenset({"event"}), frozenset({"payload", "refs", "artifacts"}))
    payload, refs, artifacts = found.get("payload", {}), found.get("refs", {}), found.get("artifacts", {})
    if not isinstance(found["event"], str) or not isinstance(payload, dict) or not isinstance(refs, dict):
        raise BadInput("the answer must have an event's name, and objects as payload and refs")
    if not all(isinstance(value, str) for value in refs.values()):
        raise BadInput("refs of the answer must be ids of events")
    if not isinstance(artifacts, dict) or len(artifacts) > ARTIFACTS_MAX:
        raise BadInput(f"artifacts of the answer must be an object of at most {ARTIFACTS_MAX} entries")
    brought = tuple(_read_artifact(name, given) for name, given in artifacts.items())
    return Said(found["event"], payload, refs, brought)


def _read_artifact(name: str, given: Any) -> SaidArtifact:
    where = f"the artifact {ascii(name)[:80]}"
    found: Mapping[str, Any] = check_object(given, where, frozenset(), frozenset({"text", "base64", "media"}))
    media = found.get("media", TEXT if "text" in found else BYTES)
    if ("text" in found) == ("base64" in found) or not all(isinstance(value, str) for value in found.values()):
        raise BadInput(f"{where} must have either text or base64, and a media type")
    if "text" in found:
        return SaidArtifact(name, found["text"].encode("utf-8", "surrogatepass"), media)
    try:
        return SaidArtifact(name, base64.b64decode(found["base64"], validate=True), media)
    except (binascii.Error, ValueError) as error:
        raise BadInput(f"{where} is not base64") from error

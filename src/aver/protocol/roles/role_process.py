"""A program as a role: it gets a view on standard input, and answers with one event, or with nothing. Both are JSON.

    in   {"v": 1, "trace": "…", "agent": "agent:critic", "state": "reviewing", "task": {…}, "may_say": […], …,
          "texts": {"<digest of an output>": "…"}, "refused": "why the last answer was refused"}
    out  {"event": "proposal_reviewed", "refs": {"proposal": "…"},
          "payload": {"verdict": "approved", "rationale": "it only reads", "conditions": []}}

Nothing on standard output, or `null`, means that the role has nothing to say now. An event may bring artifacts:
`"artifacts": [{"text": "…"}]`, or `[{"base64": "…", "media": "image/png"}]`. Its payload refers to them by digest.

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

from aver.capsule.blobs import TEXT_MEDIA, Blob
from aver.capsule.canonical import canonical_json
from aver.capsule.json_document import check_object
from aver.capsule.json_reader import read_json
from aver.errors import BadInput, Unavailable
from aver.log import debug
from aver.protocol.roles.work_items import BlobReader
from aver.protocol.runner import BYTES
from aver.protocol.tools.processes import run_process
from aver.protocol.tools.tool import Limits
from aver.protocol.view import Said, View
from aver.text import to_one_line

ANSWER_MAX = 4 * 1024 * 1024
"""Largest answer of a role, in bytes. Larger things are artifacts of executions."""

ROLE_SECONDS = 600.0
"""How long a role may think about one view. Models and people behind a program take minutes."""

QUOTED_MAX = 300
"""Characters of standard error that an error quotes."""

TEXT_SIZE_MAX = 64 * 1024
"""Largest output that the program gets as a text, in bytes. It reads larger ones by their digest: `aver show`."""

TEXTS_MAX = 1024 * 1024
"""Bytes of all outputs that the program gets as texts; the newest come first."""

ARTIFACTS_MAX = 64
"""Most artifacts of one answer."""


class RoleBroken(Unavailable):
    """A role's program did not answer as it must. `agent` is whose it is."""

    def __init__(self, agent: str, words: str) -> None:
        super().__init__(f"the role {agent} broke down: {words}", advice="repair it, then: aver protocol resume TRACE")
        self.agent = agent


class CommandRole:
    """Asks a program for the next event."""

    def __init__(
        self, agent: str, argv: Sequence[str], *, directory: str, blob: BlobReader, seconds: float = ROLE_SECONDS
    ) -> None:
        self._agent = agent
        self._argv = list(argv)
        self._directory = directory
        self._limits = Limits(seconds=seconds, output_max=ANSWER_MAX)
        self._blob = blob
        self.refused = ""
        """Why the last event of this role was refused; empty if it was not. The program gets it with the next view."""

    def __call__(self, view: View) -> Said | None:
        """Return the event that the program says, or None. Raises `RoleBroken`."""
        try:
            # The program is the user's own, like one in a Makefile: it gets the user's whole environment.
            end = run_process(
                self._argv,
                cwd=self._directory,
                environment=dict(os.environ),
                limits=self._limits,
                given=canonical_json(self._build_input(view)),
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

    def _build_input(self, view: View) -> dict[str, Any]:
        """Return the view, the reason of a refusal, and the outputs that are short texts."""
        texts: dict[str, str] = {}
        room = TEXTS_MAX
        for execution in reversed(view.executions):
            for digest in execution["output"].values():
                data = self._blob(digest)
                if data is None or digest in texts or len(data) > min(TEXT_SIZE_MAX, room):
                    continue
                try:
                    texts[digest] = data.decode()
                except UnicodeDecodeError:
                    continue
                room -= len(data)
        return {**view.to_dict(), "refused": self.refused, "texts": texts}


def read_answer(raw: bytes) -> Said | None:
    """Read the answer of a role. Raises `BadInput`."""
    if not raw.strip():
        return None
    document = read_json(raw)
    if document is None:
        return None
    found = check_object(document, "the answer", frozenset({"event"}), frozenset({"payload", "refs", "artifacts"}))
    payload, refs, artifacts = found.get("payload", {}), found.get("refs", {}), found.get("artifacts", [])
    if not isinstance(found["event"], str) or not isinstance(payload, dict) or not isinstance(refs, dict):
        raise BadInput("the answer must have an event's name, and objects as payload and refs")
    if not all(isinstance(value, str) for value in refs.values()):
        raise BadInput("refs of the answer must be ids of events")
    if not isinstance(artifacts, list) or len(artifacts) > ARTIFACTS_MAX:
        raise BadInput(f"artifacts of the answer must be a list of at most {ARTIFACTS_MAX} entries")
    brought = tuple(_read_artifact(number, given) for number, given in enumerate(artifacts))
    return Said(event=found["event"], payload=payload, refs=refs, artifacts=brought)


def _read_artifact(number: int, given: Any) -> Blob:
    where = f"artifacts[{number}] of the answer"
    found: Mapping[str, Any] = check_object(given, where, frozenset(), frozenset({"text", "base64", "media"}))
    media = found.get("media", TEXT_MEDIA if "text" in found else BYTES)
    if ("text" in found) == ("base64" in found) or not all(isinstance(value, str) for value in found.values()):
        raise BadInput(f"{where} must have either text or base64, and a media type")
    if "text" in found:
        return Blob(found["text"].encode("utf-8", "surrogatepass"), media)
    try:
        return Blob(base64.b64decode(found["base64"], validate=True), media)
    except (binascii.Error, ValueError) as error:
        raise BadInput(f"{where} is not base64") from error

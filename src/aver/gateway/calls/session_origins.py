"""The knowledge of a session: the user's words, and the values that its acts have read.

The user's words are sealed as `turn` records in `gateway.<session>`, under the keys `prompt:<session>:<n>`. Only who is
trusted to know them can have them sealed: the program that embeds the gateway, a client of the HTTP door whose settings
say `prompts = true`, and the hooks of a coding agent. No act can.

    outcome.result   {"v": 1, "n": 0, "text": "Please pay the bill 'december.txt'."}

The results of `CallTool` and `ReadResource` are in the outcomes of their acts. So any process of the ledger finds both.
Records hold secrets masked. The process that sealed a turn or made a call keeps the value as it was. So a password that
the user named counts as named there, and nowhere else.

Only records count that were verified and sealed by this ledger's own ring.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from aver.capsule.aver_block import of_kind
from aver.capsule.blobs import restore_large_texts
from aver.capsule.json_reader import read_json
from aver.capsule.masking.mask import mask
from aver.capsule.model import Authority, Capsule, Context, Outcome, Trigger
from aver.capsule.sealed import Sealed
from aver.errors import AverError, BadInput, Exists
from aver.gate.origins.read_values import ReadValues, SourceCall, list_texts
from aver.gate.origins.tool_class import classify_tool
from aver.gate.origins.user_words import UserWords, asks_for_something
from aver.gate.own_records import OwnRecords
from aver.gateway.act_records import DOMAIN, OUTCOME_KIND, act_chain, read_preview
from aver.ledger import Ledger
from aver.log import debug

TURN_KIND = "turn"

UNKNOWN_CODE = "OUTCOME_UNKNOWN"

PROMPT_MAX = 1024 * 1024
"""Longest text of one turn, in characters."""

TURNS_MAX = 10_000
"""Most turns of one session."""

SESSIONS_MAX = 64
"""Sessions that one process remembers. The one that was longest not used is read again from its records."""


def prompt_key(session: str, number: int) -> str:
    """Return the idempotency key of a turn."""
    return f"prompt:{session}:{number}"


def seal_turn(ledger: Ledger, session: str, text: str, *, told_by: str) -> Sealed:
    """Seal the user's words as the next turn of a session. `told_by` says who knows them.

    Raises `BadInput` for a text that is too long, and what `append` raises.
    """
    if not isinstance(text, str) or not text.strip() or len(text) > PROMPT_MAX:
        raise BadInput(f"a prompt is a text of 1 to {PROMPT_MAX} characters")
    masked = str(mask(text).value)
    number = sum(1 for _ in _find_turns(ledger, session))
    for attempt in range(number, TURNS_MAX):
        try:
            return ledger.append(
                act_chain(session),
                _build_turn(session, attempt, masked, told_by),
                key=prompt_key(session, attempt),
            )
        except Exists:  # Another process told a turn at the same time.
            continue
    raise BadInput(f"a session has at most {TURNS_MAX} turns", advice="begin a new session")


def _find_turns(ledger: Ledger, session: str) -> Any:
    number = 0
    while number < TURNS_MAX and (found := ledger.get(prompt_key(session, number))) is not None:
        yield found
        number += 1


def _build_turn(session: str, number: int, text: str, told_by: str) -> Capsule:
    draft = Capsule(
        type="chat",
        domain=DOMAIN,
        trigger=Trigger(type="user_request", source=told_by, request="the user's words"),
        context=Context(session_id=session),
        authority=Authority(type="policy", policy_reference="told by who is trusted to know the user's words"),
        outcome=Outcome(
            status="success", result={"v": 1, "n": number, "text": text}, summary=f"turn {number} of the user"
        ),
    )
    return of_kind(draft, TURN_KIND)


class SessionOrigins:
    """The knowledge of one session, as far as its records were read."""

    def __init__(self, session: str) -> None:
        self.session = session
        self.read = ReadValues()
        self._turns: dict[str, str] = {}
        """The user's words by the id of their record."""
        self._own: set[str] = set()
        """The acts whose results this process has added itself."""
        self._count = 0
        self._words: UserWords | None = None
        self.lock = threading.RLock()

    @property
    def words(self) -> UserWords:
        if self._words is None:
            self._words = UserWords.read(self._turns.values())
        return self._words

    def add_turn(self, record: Sealed, text: str) -> None:
        """Add the user's words as they are, of a turn that this process has sealed."""
        with self.lock:
            self._turns[record.id] = text
            self._words = None
            if asks_for_something(text):
                self.read.forget_effects()

    def add_result(self, action_id: str, source: SourceCall, result: Any) -> None:
        """Add the result of an act of this process as it came."""
        with self.lock:
            self._own.add(action_id)
            self.read.add(source, result)

    def end_act(self, action_id: str) -> None:
        """Note that an act of this process has ended."""
        with self.lock:
            self.read.end(action_id)

    def catch_up(self, ledger: Ledger) -> None:
        """Read the records of the session since the last time. Raises `IntegrityError` for one that does not count."""
        with self.lock:
            head = ledger.head(act_chain(self.session))
            if head.count <= self._count:
                return
            own = OwnRecords(ledger)
            for record in own.read(head, self._count):
                if record.kind == TURN_KIND:
                    self._read_turn(ledger, record)
                elif record.kind == OUTCOME_KIND:
                    self._read_outcome(ledger, record, own)
            self._count = head.count

    def _read_turn(self, ledger: Ledger, record: Sealed) -> None:
        if record.id in self._turns:
            return
        result = restore_large_texts(record.to_dict()["outcome"]["result"], ledger.blob)
        if isinstance(result, Mapping) and isinstance(result.get("text"), str):
            self.add_turn(record, result["text"])

    def _read_outcome(self, ledger: Ledger, record: Sealed, own: OwnRecords) -> None:
        content = record.to_dict()
        if str(content["trigger"]["correlation_id"]) in self._own:
            return
        try:
            if content["outcome"]["result"]["reason_code"] == UNKNOWN_CODE:
                self._count_unknown(ledger, content, own)
            for call in content["execution"]["tool_calls"]:
                inputs = restore_large_texts(call["arguments"], ledger.blob)
                result = restore_large_texts(call["result"], ledger.blob)
                if not call["success"] or not isinstance(result.get("result"), str):
                    continue
                if call["tool"] == "CallTool":
                    call_class = classify_tool(inputs["tool"], server=inputs["server"])
                    source = build_source(inputs["tool"], call_class, inputs["arguments"])
                elif call["tool"] == "ReadResource":
                    source = build_source(call["tool"], "read", inputs)
                else:
                    continue
                self.read.add(source, read_json(result["result"].encode()))
        except (AverError, AttributeError, KeyError, TypeError, ValueError) as error:
            # Nothing in it has an origin then.
            debug("gateway", "the outcome %s cannot be read for its values: %s", record.id, error)

    def _count_unknown(self, ledger: Ledger, outcome: Mapping[str, Any], own: OwnRecords) -> None:
        """Count a call that may have happened. The record of its end has no inputs; that of its PREVIEW has them."""
        mark = own.get(outcome["parent_id"])
        begun = None if mark is None else own.get(mark.to_dict()["parent_id"])
        preview = None if begun is None else read_preview(begun, ledger.blob)
        if preview is not None and preview.intent_id == "CallTool" and preview.inputs is not None:
            call_class = classify_tool(preview.inputs["tool"], server=preview.inputs["server"])
            self.read.add(build_source(preview.inputs["tool"], call_class, preview.inputs["arguments"]), None)


def build_source(tool: str, call_class: str, arguments: Mapping[str, Any]) -> SourceCall:
    """Return the call that a result came from."""
    return SourceCall(tool, call_class, list_texts(arguments))


class KnownOrigins:
    """The memories of the sessions of one gateway, in this process."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._known: dict[str, SessionOrigins] = {}
        self._lock = threading.Lock()

    def of(self, session: str) -> SessionOrigins:
        """Return the memory of a session, without reading its records."""
        with self._lock:
            memory = self._known.pop(session, None) or SessionOrigins(session)
            self._known[session] = memory
            while len(self._known) > SESSIONS_MAX:
                del self._known[next(iter(self._known))]
            return memory

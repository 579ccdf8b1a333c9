"""Judging lines of actions by the four steps of the protocol, from the raw text, in order:

    1. the receipt is recomputed from `canonical_fields`, as they are written      RECEIPT_MISMATCH
    2. it is the stored one, and the fields beside say the same                    RECEIPT_MISMATCH
    3. the parent is the action before: its receipt and its id                     CHAIN_BREAK
    4. the first action has no parent                                              GENESIS_INVALID

And no id comes twice (DUPLICATE_RECORD). Findings name the action by its number and id.
"""

from __future__ import annotations

from aver.actions.action import AgentAction
from aver.actions.lines import Line, read_line
from aver.actions.receipts import RECEIPT_KEYS
from aver.actions.trace import Trace
from aver.errors import BadInput
from aver.ledger.outside import code_of
from aver.verdict import Finding, Place, Tally

__all__ = ["ReceiptChain"]


class ReceiptChain:
    """Judges lines in order, by the four steps."""

    def __init__(self, tally: Tally, *, chain: str | None = None, source: str | None = None) -> None:
        self.tally = tally
        self.count = 0
        self.keys: set[int] = set()
        """How many keys the receipts cover: 12, 13, or both."""
        self.trace = Trace()
        self.last_receipt: str | None = None
        self._chain = chain
        self._source = source
        self._ids: set[str] = set()
        self._last: Line | None = None

    def take(self, raw: bytes | BadInput) -> Line | None:
        """Judge the next line. Returns it if it could be read."""
        line = None
        try:
            if isinstance(raw, BadInput):
                raise raw
            line = read_line(raw)
        except BadInput as error:
            self._fail("receipts", code_of(error), error.message)
        else:
            self._judge(line)
        self._last = line
        self.count += 1
        return line

    def finish(self) -> None:
        """Say what was done."""
        if self.count:
            self.tally.did("receipts", self.count)
            self.tally.did("parents", self.count)
            self.tally.notes["receipts"] = f"{self.count} checked, {self.told_keys}"

    @property
    def told_keys(self) -> str:
        """Over which keys the receipts are, in words."""
        if self.keys == {len(RECEIPT_KEYS)}:
            return "over the protocol's 12 keys"
        return " and ".join(f"over {count} keys" for count in sorted(self.keys)) or "none"

    def _judge(self, line: Line) -> None:
        action = line.action
        self.keys.add(line.keys)
        if line.problem is not None:
            self._fail("receipts", "RECEIPT_MISMATCH", line.problem, action)
        if action.action_id in self._ids:
            self._fail("parents", "DUPLICATE_RECORD", "an action before it has the same id", action)
        self._ids.add(action.action_id)
        self._judge_parents(action)
        self.last_receipt = line.receipt_hash
        if line.keys == len(RECEIPT_KEYS) and line.problem is None:
            self.trace.take(action, line.texts)

    def _judge_parents(self, action: AgentAction) -> None:
        last = self._last
        if self.count == 0:
            if action.parent_receipt_hash is not None or action.parent_action_id is not None:
                self._fail("parents", "GENESIS_INVALID", "the first action names a parent", action)
        elif last is None:
            return  # What stands before it cannot be read, and that is reported.
        elif action.parent_receipt_hash != last.receipt_hash:
            self._fail("parents", "CHAIN_BREAK", "its parent's receipt is not that of the action before", action)
        elif action.parent_action_id != last.action.action_id:
            self._fail("parents", "CHAIN_BREAK", "its parent's id is not that of the action before", action)

    def _fail(self, check: str, code: str, words: str, action: AgentAction | None = None) -> None:
        named = f" ({action.action_id})" if action is not None else ""
        where = f"{self._source}, " if self._source else ""
        place = Place(self._chain, None, f"{where}action {self.count}{named}")
        self.tally.add(Finding(check, "failed", code, words, place))

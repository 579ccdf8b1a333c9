"""Judge a run record by record: its receipts, its capsules, its gate decisions and its proof.

    sealed   each line is, to the byte, the action in its capsule; none is missing and none is added (TRUNCATED); the
             seal has the same count, head, last receipt and verdict
    gates    each decision that an action names is there, is signed, and is about this action; no refused action was
             done, unless the gate only observed, which is counted; no decision was used twice; and the gate's records
             hold no decision that no action names. Where the gate asked for a person, and only the client reports that
             its user agreed, that is a warning, UNCONFIRMED
    answers  never made, and only named: a call waited for a person by a framework's own means
    proof    the statement in the seal follows from the actions: every equation of the trace, and its root

`RunJudge` makes these checks, `ReceiptJudge` the four steps of the protocol on the raw lines, in order:

    1. the receipt is recomputed from `canonical_fields`, as they are written      RECEIPT_MISMATCH
    2. it is the stored one, and the fields beside say the same                    RECEIPT_MISMATCH
    3. the parent is the action before: its receipt and its id                     CHAIN_BREAK
    4. the first action has no parent                                              GENESIS_INVALID

No id comes twice (DUPLICATE_RECORD). Findings name the action by its number and id.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import orjson

from aver.actions.action import AgentAction, has_zone
from aver.actions.binding import compare_with_decision, decision_use_key
from aver.actions.encodings import RECEIPT_KEYS, ActionLine, read_action_line
from aver.actions.proofs.proof import trace_problem
from aver.actions.proofs.trace import Trace
from aver.actions.run_capsules import (
    ACTION_KIND,
    OPEN_KIND,
    SEAL_KIND,
    WAITED,
    WAITING,
    GateReference,
    RunSeal,
    compute_run_verdict,
    read_run_seal,
    read_sealed_action,
)
from aver.capsule.aver_block import read_block, read_kind
from aver.capsule.canonical import canonical_json
from aver.capsule.sealed import Sealed
from aver.errors import BadInput
from aver.gate.decision_record import OBSERVE, RecordedDecision
from aver.ledger import Head
from aver.ledger.foreign.seal_checks import unreadable_code
from aver.verdict import ChainJudge, Finding, Place, Rules, Tally
from aver.verdict.chain import REST_UNREAD, UNREADABLE_MAX
from aver.verdict.parallel import ParallelChainJudge, count_failures

ACTIONS_MAX = 1_000_000
"""Most actions of a run that are judged. Their ids are kept in memory, at some hundred bytes each."""

DECISIONS_MAX = 200_000
"""Most decisions, and most actions that name one, that are kept in memory to be compared."""

FILES_BYTES_MAX = 32 * 1024 * 1024
"""Most bytes that the lists of files in these actions and decisions may have together."""


class _GatedAction(NamedTuple):
    """An action that names a decision, with no more of its metadata than is compared."""

    number: int
    action: AgentAction
    mark: GateReference
    is_first_use: bool
    """Whether it is sealed under the key that a decision's use has: the ledger gives that out once."""


@dataclass(slots=True)
class _GateRecords:
    """The gate's records of a run, as far as they are here."""

    decided: dict[str, RecordedDecision]
    """The decisions with a valid seal, by the hash of their capsules."""
    count: int = 0
    head: str | None = None


class RunTallies(NamedTuple):
    """The findings, in the order of their report."""

    records: Tally
    """About the actions, one by one."""
    capsules: Tally
    """About the capsules themselves."""
    ending: Tally
    """About the run as a whole: its gates, its seal and its proof."""


class _ValidChain:
    """Stands in for a chain judge where the records were judged before."""

    def take(self, record: Sealed) -> dict[str, Any] | None:
        return record.to_dict()

    def stops_reading(self) -> bool:
        return False

    def finish(self) -> Tally:
        return Tally()

    def close(self) -> None:
        return


class RunJudge:
    """Judges a run's chain together with its lines.

    `identity` is the ledger, tenant and name that the chain must have; its count is only a hint, its hash is not used.
    `stored_as` is the name under which the chain is stored, where it is another. `is_valid`: the records were judged
    before, and each holds.
    """

    def __init__(
        self, rules: Rules, *, run_id: str, identity: Head, stored_as: str | None = None, is_valid: bool = False
    ) -> None:
        self.tally = Tally()
        """The findings of this room."""
        self._name = stored_as or identity.chain
        self.receipts = ReceiptJudge(self.tally, chain=self._name)
        self.capsules = Tally()
        self.count = 0
        self.actions = 0
        """How many capsules of actions there are."""
        self.head: str | None = None
        self.seal: RunSeal | None = None
        self._rules = rules
        self._is_valid = is_valid
        self._run_id = run_id
        self._identity = identity
        self._gated: list[_GatedAction] = []
        self.wanted: dict[str, None] = {}
        """The hashes of the decisions that actions name and that were not taken yet, in that order."""
        self._unmarked = 0
        self._enforced: list[bool] = []
        self.waiting = self.waited = 0
        """How many calls waited for a person by a framework's own means, and how many went on after such a wait."""
        self._gates = _GateRecords({})
        self._files_left = FILES_BYTES_MAX
        self._is_overfull = False
        self._judge = self._new_chain_judge(identity.chain, identity.count)
        self._gate_judge: ParallelChainJudge | _ValidChain | None = None

    def _new_chain_judge(self, chain: str, expected: int) -> ParallelChainJudge | _ValidChain:
        if self._is_valid:
            return _ValidChain()
        named = {"name": chain, "ledger": self._identity.ledger, "tenant": self._identity.tenant}
        return ParallelChainJudge(self._rules, chain=chain, identity=named, expected=expected)

    def close(self) -> None:
        """End the workers of the judging; also where it was broken off."""
        self._judge.close()
        if self._gate_judge is not None:
            self._gate_judge.close()

    def stops_reading(self) -> bool:
        """Whether so many records cannot be read that the caller must stop. Then a finding says so."""
        return self._judge.stops_reading() or (self._gate_judge is not None and self._gate_judge.stops_reading())

    # --- the run's chain

    def take(self, record: Sealed, line: ActionLine | None, text: bytes | None) -> None:
        """Judge the next record of the chain.

        If it is the capsule of an action, it must be that of `line`; `text` is the sealed form of that action.
        """
        content = self._judge.take(record)
        at, before = self.count, self.head
        self.count, self.head = at + 1, record.hash
        if content is None:
            return  # Reported.
        kind = read_kind(content)
        try:
            if self.seal is not None:
                self._fail("sealed", "STATE_VIOLATION", "a record follows the run's seal", at)
            elif kind == ACTION_KIND and at > 0:
                self._take_action(content, line, text, at)
            elif kind == SEAL_KIND and at > 0:
                named = self._identity
                seal = read_run_seal(content, ledger=named.ledger, tenant=named.tenant, chain=named.chain)
                self.seal = seal
                self.tally.count_done("sealed")
                if seal.run_id != self._run_id:
                    self._fail("sealed", "CHAIN_IDENTITY", "the seal is of another run", at)
                if seal.head != Head(named.ledger, named.tenant, named.chain, at, before):
                    self._fail("sealed", "TRUNCATED", "the seal says another head of the chain than it has", at)
            elif kind == OPEN_KIND and at == 0:
                if content["outcome"]["result"]["run_id"] != self._run_id:
                    self._fail("sealed", "CHAIN_IDENTITY", "the chain was opened for another run", at)
            else:
                self._fail("sealed", "STATE_VIOLATION", f"a record of kind {kind[:40]} does not belong here", at)
        except (BadInput, KeyError, TypeError, AttributeError) as error:
            words = error.message if isinstance(error, BadInput) else "it lacks keys of a record of its kind"
            self._fail("sealed", "SCHEMA_INVALID", words, at)

    def _take_action(self, content: Mapping[str, Any], line: ActionLine | None, text: bytes | None, at: int) -> None:
        self.actions += 1
        if self.receipts.count < self.actions:
            self._fail("sealed", "TRUNCATED", "there is no line for it", at)
        if line is None or text is None:
            return  # The line cannot be read or is missing, and that is reported.
        action = line.action
        fields, receipt, mark = read_sealed_action(content)
        # The capsule must hold the canonical bytes of the line's action. `orjson` writes nearly all values so, and
        # faster; it refuses a number that only the exact writer writes.
        try:
            is_same = orjson.dumps(fields, option=orjson.OPT_SORT_KEYS) == text
        except TypeError:
            is_same = False
        if not is_same and canonical_json(fields) != text:
            self._fail("sealed", "RECEIPT_MISMATCH", "the line is not the action that was sealed", at)
            return
        if receipt != line.receipt_hash:
            self._fail("sealed", "RECEIPT_MISMATCH", "the capsule has another receipt than the line", at)
        self.waiting += WAITING in (action.metadata or {})
        refs = (read_block(content) or {}).get("refs")
        self.waited += isinstance(refs, dict) and WAITED in refs
        self._enforced.append(action.policy_verdict == "POLICY_ENFORCED")
        index = at - 1
        if mark is not None:
            if self._can_keep(action.metadata, "files_affected", len(self._gated)):
                files = (action.metadata or {}).get("files_affected")
                action = replace(action, metadata=None if files is None else {"files_affected": files})
                is_first_use = (read_block(content) or {}).get("key") == decision_use_key(mark.gate_id)
                self._gated.append(_GatedAction(index, action, mark, is_first_use))
                self.wanted[mark.record] = None
            return
        self._unmarked += action.gate_decision is not None or action.gate_score is not None
        if action.policy_verdict in ("POLICY_ENFORCED", "FULLY_VERIFIED"):
            words = f"it says {action.policy_verdict}, but names no decision of the gate"
            self._fail("gates", "CLAIM_UNPROVEN", words, at)

    def _can_keep(self, holder: Mapping[str, Any] | None, key: str, count: int) -> bool:
        """Whether one more action or decision, with the list of files in it, may stay in memory. If not, report it."""
        files = (holder or {}).get(key)
        if files:
            try:
                self._files_left -= len(orjson.dumps(files))
            except TypeError:  # A number that only the exact writer writes.
                self._files_left -= len(canonical_json(files))
        if self._files_left >= 0 and count < DECISIONS_MAX:
            return True
        if not self._is_overfull:
            self._is_overfull = True
            words = f"it has more than {DECISIONS_MAX} decisions, or {FILES_BYTES_MAX} bytes of files in them"
            place = Place(self._name)
            self.tally.add(Finding("gates", "failed", "NOT_READ", f"{words}: the rest was not compared", place))
        return False

    # --- the gate's records

    def take_gate_record(self, record: Sealed, *, is_own: bool) -> None:
        """Judge a record of the gate: the next of the run's own gate chain, or one of another chain."""
        content: dict[str, Any] | None
        if is_own and self.seal is not None and self.seal.gates is not None:
            if self._gate_judge is None:
                self._gate_judge = self._new_chain_judge(self.seal.gates.chain, 0)
            self._gates.count, self._gates.head = self._gates.count + 1, record.hash
            content = self._gate_judge.take(record)
        elif self._is_valid:
            content = record.to_dict()
        else:
            # A record of another session's chain, whose neighbours are not here.
            judge = ChainJudge(self._rules, chain=record.chain, start=None, needs_block=True)
            content = judge.judge(record)
            if count_failures(judge.tally):
                content = None
            self.capsules.merge(judge.finish())
            if record.hash not in self.wanted:
                words = "the run refers to no such record"
                self.tally.add(Finding("gates", "failed", "STATE_VIOLATION", words, Place(record.chain)))
        try:
            if content is not None:
                decided = RecordedDecision.from_record(record, content)
                if self._can_keep(decided.action, "files", len(self._gates.decided)):
                    # No more than is compared: a record may have 256 KiB.
                    action = {key: decided.action.get(key) for key in ("type", "diff_sha256", "files")}
                    mode = {"mode": OBSERVE} if decided.is_observed else {}
                    slim = replace(decided, action=action, authority={}, result=mode, reasons=(), rules=())
                    self._gates.decided[record.hash] = slim
        except BadInput:
            return  # Some other record of that chain, such as one that was put there by hand.
        self.wanted.pop(record.hash, None)

    def _check_decisions(self, *, complete: bool) -> set[int]:
        """Compare actions with their decisions, and report what is missing.

        Return the numbers of the actions that no decision allows.
        """
        unproven: set[int] = set()
        used: set[str] = set()
        observed = reported = 0
        for index, action, mark, is_first_use in self._gated:
            decided = self._gates.decided.get(mark.record)
            is_first_use = is_first_use and mark.record not in used
            problem = _gate_problem(action, mark, decided, is_first_use=is_first_use)
            used.add(mark.record)
            if problem is not None or decided is None or not decided.enforces:
                unproven.add(index)
            observed += decided is not None and decided.is_observed
            if problem is not None:
                self._fail("gates", problem[0], f"{action.action_id}: {problem[1]}", index + 1)
            elif mark.client_answer and decided is not None:
                reported += 1
                words = f"{action.action_id}: the gate asked for a person; only the client says that its user agreed"
                place = Place(self._name, index + 1)
                self.tally.add(Finding("gates", "warning", "UNCONFIRMED", words, place))
        count, chain = len(self._gated), self._name
        if count:
            self.tally.count_done("gates", count)
        approved = sum(gated.mark.decision == "human_approved" for gated in self._gated)
        notes = [f"{approved} approved by a human"] if approved else []
        notes += [f"{reported} on the word of the client"] if reported else []
        notes += [f"{observed} in the mode observe: nothing was held back"] if observed else []
        if notes:
            self.tally.notes["gates"] = f"{count} checked, {', '.join(notes)}"
        missing = len(self.wanted)
        if missing and complete:
            words = f"{missing} decisions that actions name are not here"
            self.tally.add(Finding("gates", "failed", "ARTIFACT_MISSING", words, Place(chain)))
        elif missing:
            self.tally.skip("gates", f"{missing} decisions that actions name are not here", matters=True)
        if self._unmarked:
            words = f"{self._unmarked} actions claim a decision of the gate without naming its record"
            self.tally.add(Finding("gates", "warning", "CLAIM_UNPROVEN", words, Place(chain)))
        return unproven

    # --- the end

    def finish(self, *, complete: bool) -> RunTallies:
        """Return the findings. With `complete`, the run must be sealed, and everything it refers to must be here."""
        receipts, taken = self.receipts, self.tally
        receipts.finish()
        self.tally = Tally()
        if self.actions:
            taken.count_done("sealed", self.actions)
        unproven = self._check_decisions(complete=complete)
        skip_answers(self.tally, self.waiting, self.waited, matters=self.waited > 0)
        self.capsules.merge(self._judge.finish())
        self.capsules.chains += 1
        if self._gate_judge is not None:
            self.capsules.merge(self._gate_judge.finish())
            self.capsules.chains += 1
        if self.seal is None:
            words = "the run is not sealed: actions may be missing at its end"
            if complete:
                self._fail("sealed", "TRUNCATED", words, self.count)
            else:
                self.tally.skip("sealed", words, matters=True)
            self.tally.skip("proof", "the run is not sealed, so nothing is stated about it", matters=False)
        else:
            self._check_seal(self.seal, unproven)
        return RunTallies(taken, self.capsules, self.tally)

    def _check_seal(self, seal: RunSeal, unproven: set[int]) -> None:
        receipts, at = self.receipts, seal.head.count
        actions = at - 1
        if not seal.num_actions == actions == receipts.count:
            words = (
                f"the seal counts {seal.num_actions} actions; {actions} capsules and {receipts.count} lines are here"
            )
            self._fail("sealed", "TRUNCATED", words, at)
        elif seal.final_receipt_hash != receipts.last_receipt:
            self._fail("sealed", "RECEIPT_MISMATCH", "the seal names another last receipt", at)
        # The seal may claim less than the actions earn, but not more.
        enforced = [said and index not in unproven for index, said in enumerate(self._enforced)]
        earned = compute_run_verdict(enforced=enforced, proved=seal.statement is not None)
        if seal.policy_verdict != earned and _VERDICT_RANK[seal.policy_verdict] > _VERDICT_RANK[earned]:
            words = f"the seal says {seal.policy_verdict}; the records support only {earned}"
            self._fail("gates", "CLAIM_UNPROVEN", words, at)
        if seal.gates is not None and (self._gates.count, self._gates.head) != (seal.gates.count, seal.gates.hash):
            words = f"the seal counts {seal.gates.count} records of the gate; {self._gates.count} are here, or others"
            self._fail("gates", "TRUNCATED", words, at)
        if seal.statement is None:
            self.tally.skip("proof", "the run was sealed without one", matters=False)
            return
        self.tally.count_done("proof", self.receipts.count)
        if seal.statement.run_id != self._run_id:
            self._fail("proof", "PROOF_INVALID", "the statement is about another run", at)
        problem = trace_problem(seal.statement, self.receipts.trace)
        if problem is not None:
            self._fail("proof", "PROOF_INVALID", problem, at)

    def _fail(self, check: str, code: str, words: str, at: int) -> None:
        self.tally.add(Finding(check, "failed", code, words, Place(self._name, at)))


def skip_answers(tally: Tally, waiting: int, waited: int, *, matters: bool) -> None:
    """Say that persons were asked by a framework's own means, and that their answers are not in these records."""
    if waiting or waited:
        words = f"{waiting} calls waited for a person by the framework's own means, and {waited} went on"
        tally.skip("answers", f"{words}: the person's answers are not in these records", matters=matters)


def _gate_problem(
    action: AgentAction, mark: GateReference, decided: RecordedDecision | None, *, is_first_use: bool
) -> tuple[str, str] | None:
    """Return why an action does not fit the decision that it names, as a code and words; None if it fits."""
    if decided is None:
        return None  # A missing or invalid decision is reported elsewhere.
    compared = compare_with_decision(action, mark, decided)
    if compared.mismatch is not None:
        return "EVIDENCE_INVALID", f"it differs from the gated action: {compared.mismatch}"
    if not is_first_use:
        return "REPLAY", "the decision that it names was used by an action before"
    if decided.is_observed and action.policy_verdict == "POLICY_ENFORCED":
        return "CLAIM_UNPROVEN", "it says that policy was enforced; the gate only observed"
    if decided.is_observed:
        return None
    if decided.allows and (compared.is_conclusive or action.policy_verdict != "POLICY_ENFORCED"):
        return None
    if decided.allows:
        return "CLAIM_UNPROVEN", "it says that policy was enforced; only its type matches the gated action"
    if action.success and not mark.client_answer:
        return "ROLE_POLICY_VIOLATION", f"it was done, though the gate said {decided.decision}"
    if action.policy_verdict == "POLICY_ENFORCED":
        return "CLAIM_UNPROVEN", f"it says that policy was enforced; the gate said {decided.decision}"
    return None


_VERDICT_RANK = {None: 0, "PROOF_ONLY": 1, "POLICY_ENFORCED": 2, "FULLY_VERIFIED": 3}


class ReceiptJudge:
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
        self._last: ActionLine | None = None
        self._unreadable = self._unzoned = 0

    def take(self, raw: bytes | BadInput) -> ActionLine | None:
        """Judge the next line. Return it if it could be read."""
        line, last = None, self._last
        try:
            if isinstance(raw, BadInput):
                raise raw
            line = read_action_line(raw)  # Steps 1 and 2: the line says in what its receipt differs.
        except BadInput as error:
            self._unreadable += 1
            self._fail("receipts", unreadable_code(error), error.message)
        else:
            action = line.action
            self.keys.add(line.keys)
            self._unzoned += not has_zone(action.timestamp)
            if line.problem is not None:
                self._fail("receipts", "RECEIPT_MISMATCH", line.problem, action)
            if action.action_id in self._ids:
                self._fail("parents", "DUPLICATE_RECORD", "an action before it has the same id", action)
            self._ids.add(action.action_id)
            if self.count == 0:  # Step 4.
                if action.parent_receipt_hash is not None or action.parent_action_id is not None:
                    self._fail("parents", "GENESIS_INVALID", "the first action names a parent", action)
            elif last is None:
                pass  # The line before it cannot be read, and that is reported.
            elif action.parent_receipt_hash != last.receipt_hash:  # Step 3.
                self._fail("parents", "CHAIN_BREAK", "its parent's receipt is not that of the action before", action)
            elif action.parent_action_id != last.action.action_id:
                self._fail("parents", "CHAIN_BREAK", "its parent's id is not that of the action before", action)
            self.last_receipt = line.receipt_hash
            if line.keys == len(RECEIPT_KEYS) and line.problem is None:
                self.trace.take(action, line.texts)
        self._last = line
        self.count += 1
        return line

    def take_all(self, lines: Iterable[bytes | BadInput]) -> Iterator[ActionLine | None]:
        """Judge lines one by one and yield each, or None for an unreadable one, until too many are unreadable."""
        for raw in lines:
            yield self.take(raw)
            if self._unreadable > UNREADABLE_MAX:
                self._fail("receipts", "NOT_READ", REST_UNREAD)
                return
            if self.count >= ACTIONS_MAX:
                self._fail("receipts", "NOT_READ", f"it has {ACTIONS_MAX} actions or more; the rest was not read")
                return

    def finish(self) -> None:
        """Count the checks that were made."""
        if self.count:
            self.tally.count_done("receipts", self.count)
            self.tally.count_done("parents", self.count)
            # Receipts over other keys come from other programs. The verdict says so.
            covered = " and ".join(f"over {count} keys" for count in sorted(self.keys)) or "none"
            if self.keys == {len(RECEIPT_KEYS)}:
                covered = "over the protocol's 12 keys"
            if self._unzoned:
                covered = f"{covered}; {self._unzoned} times without a zone"
            self.tally.notes["receipts"] = f"{self.count} checked, {covered}"

    def _fail(self, check: str, code: str, words: str, action: AgentAction | None = None) -> None:
        named = f" ({action.action_id})" if action is not None else ""
        where = f"{self._source}, " if self._source else ""
        place = Place(self._chain, None, f"{where}action {self.count}{named}")
        self.tally.add(Finding(check, "failed", code, words, place))

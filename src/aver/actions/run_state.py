"""Read runs: the state of an open run from its chain, and whole runs from a directory, a `.cap` file or a chain.

Records of a ledger are verified while they are read. Files are not: `aver.actions.verify` does that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aver.actions.action import AgentAction
from aver.actions.archive import Archive, open_archive, open_directory
from aver.actions.encodings import (
    ACTION_LINE_MAX,
    CAPSULE_LINE_MAX,
    action_line,
    read_action_line,
    read_capsule_line,
    read_raw_lines,
    receipt_hash,
)
from aver.actions.run_capsules import (
    ACTION_KIND,
    OPEN_KIND,
    SEAL_KIND,
    WAITING,
    GateReference,
    load_action,
    read_sealed_action,
)
from aver.actions.run_directory import RunIdentity
from aver.actions.run_files import ACTIONS_FILE, CAPSULES_FILE, MEMBER_ORDER
from aver.capsule.aver_block import read_kind
from aver.capsule.sealed import Sealed
from aver.errors import BadInput, IntegrityError, NotFound
from aver.files.regular import open_file
from aver.ledger import Head, Ledger
from aver.verdict import ChainJudge, Rules


class RecordedRun:
    """The actions of a run, in order, up to the last record that was read. `catch_up` reads the newer records."""

    def __init__(self, ledger: Ledger, identity: RunIdentity) -> None:
        self.identity = identity
        self.actions: list[AgentAction] = []
        self.ids: set[str] = set()
        self.marks: dict[str, GateReference] = {}
        """The gate decisions that actions refer to, by gate id.

        If several actions use one decision, the first counts.
        """
        self.last_receipt: str | None = None
        self.seal_record: Sealed | None = None
        self.head = Head(ledger.id, ledger.tenant, identity.chain, 0, None)
        self._ledger = ledger
        self.catch_up()

    def catch_up(self) -> None:
        """Read and verify the records up to the end of the chain. Raise `IntegrityError` if a record is not valid."""
        before, head = self.head, self._ledger.head(self.head.chain)
        if head == before:
            return
        if head.count < before.count:
            raise self._integrity_error("ROLLBACK", f"has {head.count} records; it had {before.count}", None)
        # Continue where the last call stopped: the first new record must link to the last one that was read.
        judge = ChainJudge(
            Rules(self._ledger.keys.ring()),
            chain=head.chain,
            start=before.count,
            previous=before.hash,
            identity={"name": head.chain, "ledger": head.ledger, "tenant": head.tenant},
            needs_block=True,
        )
        read = before.count
        for record in self._ledger.read(head.chain, before.count, head.count):
            content = judge.judge(record)
            found = next((finding for finding in judge.tally.findings if finding.status == "failed"), None)
            if found is not None or content is None:
                raise self._integrity_error(found.code if found else "SCHEMA_INVALID", str(found), record)
            self._read_record(record, content)
            read += 1
        # The ledger may return fewer records than its head counts, or end with another record.
        if read != head.count or (read and head.hash != self.head.hash):
            raise self._integrity_error("SEQUENCE_GAP", f"has {read} of {head.count} records", None)

    def lines_from(self, start: int) -> Iterator[bytes]:
        """Yield the lines of the actions from index `start` on, each with its line feed."""
        for action in self.actions[start:]:
            yield action_line(action) + b"\n"

    def add_action(self, action: AgentAction, receipt: str, mark: GateReference | None, record: Sealed) -> None:
        """Add an action that was sealed right after the known head."""
        self.actions.append(action)
        self.ids.add(action.action_id)
        if mark is not None:
            self.marks.setdefault(mark.gate_id, mark)
        self.last_receipt = receipt
        self.advance(record)

    def advance(self, record: Sealed, *, is_seal: bool = False) -> None:
        """Move the head to a record that was appended right after it; with `is_seal`, keep it as the run's seal."""
        head = self.head
        self.head = Head(head.ledger, head.tenant, head.chain, head.count + 1, record.hash)
        if is_seal:
            self.seal_record = record

    def _read_record(self, record: Sealed, content: dict[str, Any]) -> None:
        kind = read_kind(content)
        at = self.head.count  # The position of this record in the chain.
        try:
            if self.seal_record is not None:
                raise BadInput("something follows the run's seal")
            if kind == ACTION_KIND and at > 0:
                sealed = read_sealed_action(content)
                action = load_action(sealed, self._ledger.blob)
                if sealed.receipt_hash != receipt_hash(action) or action.parent_receipt_hash != self.last_receipt:
                    raise BadInput("its receipt is not that of the action, or its parent not the action before")
                self.add_action(action, sealed.receipt_hash, sealed.gate, record)
            elif kind == SEAL_KIND and at > 0:
                self.advance(record, is_seal=True)
            elif kind == OPEN_KIND and at == 0:
                self.advance(record)
            else:
                raise BadInput(f"a {kind} does not belong there")
        except BadInput as error:
            raise self._integrity_error("RECEIPT_MISMATCH", f"record {at}: {error.message}", record) from error

    def _integrity_error(self, code: str, words: str, record: Sealed | None) -> IntegrityError:
        return IntegrityError(code, f"chain {self.head.chain}: {words}", evidence=record, advice="run: aver verify")


SEARCHED_MAX = 1000
"""How many of the last actions in a ledger are searched for calls that wait. A person answers within days."""


class WaitingCalls:
    """The calls in all runs of a ledger that wait for a person by a framework's own means (`metadata.waiting`).

    A call is found again by the id that the model gave it. In a later run, its input must be the same, too: not every
    model gives an id only once.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._found: dict[tuple[str, ...], tuple[str | None, str, str]] | None = None
        """For each call its chain, the hash of its input, and the id of its capsule; None before they are read."""

    def find(self, action: AgentAction, chain: str) -> str | None:
        """Return the id of the capsule of the call that this action continues; None if it continues none."""
        name = _name_call(action)
        if name and self._found is None:
            newest = self._ledger.find_newest(kind=ACTION_KIND, limit=SEARCHED_MAX, first_page=SEARCHED_MAX)
            marked = [one for one in newest if b'"waiting"' in one.canonical or b'"waited"' in one.canonical]
            self._found = {}
            for record in reversed(marked):
                self.learn(load_action(read_sealed_action(record.to_dict()), self._ledger.blob), record)
        found = (self._found or {}).get(name)
        return found[2] if found is not None and (found[0] == chain or found[1] == action.input_hash) else None

    def learn(self, action: AgentAction, record: Sealed) -> None:
        """Note an action that was sealed: a call that waits, or one that waits no more."""
        if (name := _name_call(action)) and self._found is not None:
            self._found.pop(name, None)
            if WAITING in (action.metadata or {}):
                self._found[name] = record.chain, action.input_hash, record.id


def _name_call(action: AgentAction) -> tuple[str, ...]:
    names = [(action.metadata or {}).get(name) for name in ("library", "tool_name", "tool_call_id")]
    return tuple(name for name in names if isinstance(name, str)) if all(names) else ()


# --- runs that are only read


@dataclass(frozen=True, slots=True)
class LoadedRun:
    """The actions and the seal of a run, as they were read. Only verification shows whether they are valid."""

    actions: list[AgentAction]
    seal: Sealed | None


def load_run_from_path(path: Path) -> LoadedRun:
    """Load the run in a directory or a `.cap` file. This does not verify it."""
    if path.is_dir():
        with open_directory(path, MEMBER_ORDER) as files:
            return _load_files(files, path)
    with open_file(path) as file, open_archive(file) as archive:
        return _load_files(archive, path)


def load_run_from_ledger(ledger: Ledger, chain: str) -> LoadedRun:
    """Load the run of a chain. Every record is verified; `IntegrityError` if one is not valid."""
    first = next(ledger.read(chain, 0, 1), None)
    try:
        run_id = "" if first is None else str(first.to_dict()["outcome"]["result"]["run_id"])
    except (KeyError, TypeError):
        raise BadInput(f"the chain {chain} is not that of a run") from None
    run = RecordedRun(ledger, RunIdentity(run_id, chain, ledger.id, ledger.tenant))
    return LoadedRun(run.actions, run.seal_record)


def _load_files(files: Archive, path: Path) -> LoadedRun:
    actions = [read_action_line(raw).action for raw in _read_lines(files, ACTIONS_FILE, ACTION_LINE_MAX, path)]
    seal = None
    for raw in _read_lines(files, CAPSULES_FILE, CAPSULE_LINE_MAX, path):
        line = read_capsule_line(raw)
        # The capsule of an action is never the seal, and cannot be rebuilt without its action.
        if not line.has_action and (record := line.rebuild(None)).kind == SEAL_KIND:
            seal = record
    return LoadedRun(actions, seal)


def _read_lines(files: Archive, name: str, limit: int, path: Path) -> list[bytes]:
    file = files.members.get(name)
    if file is None:
        raise NotFound(f"{path} has no {name}: it is not a sealed run", advice="name a run's directory or .cap file")
    found = []
    for raw in read_raw_lines(file, limit):
        if isinstance(raw, BadInput):
            raise raw
        found.append(raw)
    return found

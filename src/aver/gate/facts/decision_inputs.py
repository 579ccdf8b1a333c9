"""The inputs of a decision besides the action and the rules, as JSON and back: facts, risk state, recent fixes.

A decision is made from an action, these inputs and a gate (`aver.gate.decide`). From the same three
follows the same decision, in a policy server of another process and for a verifier who makes it again from its record.

    {"facts": {...}, "state": {"levels": {...}, "learned_until": 0}, "fixes": [2, 5]}

    facts   the fields of `Facts`. Sets and tuples are lists. `declared`, `written`, `asked`, `git` and `meaning` are
            left out where there are none
    state   the learned levels of the workspace. `note` says why a stored state was not used, where there is a reason
    fixes   the answers of the repository's history to the questions of `risk.estimate`, in their order

`digest` is SHA-256 over the canonical bytes of that object. Effects are not part of it: they follow from the action and
the facts, so each process finds them itself.

The record of a decision holds the same inputs in other places: `facts` without `written`, the state and `written` as
blobs, `fixes`, and `state_note` for the note. `read_recorded_inputs` puts them together.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import field, fields, replace
from typing import TYPE_CHECKING, Any

from aver.capsule.canonical import canonical_bytes
from aver.capsule.json_document import check_object, time_field
from aver.capsule.json_reader import read_json
from aver.errors import BadInput
from aver.fast_dataclass import dataclass
from aver.gate.action import Action, Facts
from aver.gate.risk.estimate import find_fixes
from aver.gate.risk.model import RiskState
from aver.gate.risk.state import state_from_dict

if TYPE_CHECKING:
    from aver.gate.decide import Gate

FIXES_MAX = 16
"""Most answers of a history. An estimate asks two questions at most."""

_FACT_NAMES = frozenset(each.name for each in fields(Facts))
_REQUIRED_FACTS = frozenset({"now", "labels", "changed_files"})
"""The facts that every version of Aver has sealed and that have no default in JSON."""
_LISTS = ("changed_files", "absent", "unseen", "labels")
_TEXT_MAPS = ("environment", "links")
_COUNTS = ("denials", "failures", "uses")
_COUNT_MAPS = ("changed", "recent")
_NOTE = "note"


def facts_to_dict(facts: Facts) -> dict[str, Any]:
    """Return facts as JSON values. Those that are rarely there are left out where there are none."""
    found = {
        "now": facts.now,
        "changed": dict(facts.changed),
        "changed_files": list(facts.changed_files),
        "labels": sorted(facts.labels),
        "denials": facts.denials,
        "recent": dict(facts.recent),
        "failures": facts.failures,
        "uses": facts.uses,
        "approved": facts.approved,
        "approved_by": facts.approved_by,
        "annotations": dict(facts.annotations),
        "environment": dict(facts.environment),
        "links": dict(facts.links),
        "absent": list(facts.absent),
        "unseen": list(facts.unseen),
        "code": {name: dict(found) for name, found in facts.code.items()},
    }
    if facts.declared:
        found["declared"] = dict(facts.declared)
    if facts.written is not None:
        found["written"] = facts.written
    if facts.asked:
        found["asked"] = [dict(entry) for entry in facts.asked]
    if facts.git:
        found["git"] = dict(facts.git)
    if facts.meaning:
        found["meaning"] = dict(facts.meaning)
    return found


def facts_from_dict(data: Any) -> Facts:
    """Return the facts that `facts_to_dict` wrote. Raises `BadInput` where a field is unknown or has another type.

    Facts of earlier versions of Aver have fewer fields. The others then have their defaults.
    """
    known = check_object(data, "the facts", _REQUIRED_FACTS, _FACT_NAMES - _REQUIRED_FACTS)
    time_field(known["now"], "the facts: now")
    for name in _LISTS:
        _require(known.get(name, []), name, list, str)
    for name in _TEXT_MAPS:
        _require(known.get(name, {}), name, dict, str)
    for name in _COUNT_MAPS:
        _require(known.get(name, {}), name, dict, int, float)
    _require(known.get("code", {}), "code", dict, dict)
    _require_asked(known.get("asked", []))
    _require_git(known.get("git", {}))
    _require_meaning(known.get("meaning", {}))
    for name in ("annotations", "declared"):
        if not isinstance(known.get(name, {}), dict):
            raise BadInput(f"the facts: {name} must be an object")
    for name in _COUNTS:
        if type(known.get(name, 0)) is not int:
            raise BadInput(f"the facts: {name} must be a whole number")
    for name, kind in (("approved", bool), ("approved_by", str), ("written", str)):
        if name in known and type(known[name]) is not kind:
            raise BadInput(f"the facts: {name} must be {'true or false' if kind is bool else 'a text'}")
    return _build_facts(known)


def _build_facts(known: Mapping[str, Any]) -> Facts:
    if missing := _REQUIRED_FACTS - known.keys():
        raise BadInput(f"the facts lack {min(missing)}")
    lists = {name: tuple(known.get(name, ())) for name in (*_LISTS, "asked")}
    return Facts(**{**known, **lists, "labels": frozenset(lists["labels"])})


def _require(value: Any, name: str, container: type, *kinds: type) -> None:
    """Raise `BadInput` unless a value is a list, or an object, of these types. A truth value is no number."""
    items = value.values() if isinstance(value, dict) else value
    if type(value) is not container or not all(type(item) in kinds for item in items):
        words = " or ".join(kind.__name__ for kind in kinds)
        raise BadInput(f"the facts: {name} must be {'a list' if container is list else 'an object'} of {words} values")


def _require_asked(value: Any) -> None:
    """Raise `BadInput` unless a value is a list of calls whose end is open: see `gate.facts.session_state`."""
    _require(value, "asked", list, dict)
    for entry in value:
        known = check_object(entry, "the facts: a call in asked", frozenset({"gate_id", "call_id", "labels", "unseen"}))
        if not isinstance(known["gate_id"], str) or not isinstance(known["call_id"], str):
            raise BadInput("the facts: the ids of a call in asked must be texts")
        for name in ("labels", "unseen"):
            _require(known[name], f"{name} of a call in asked", list, str)


def _require_git(value: Any) -> None:
    """Raise `BadInput` unless a value says what git keeps of the session: see `gate.facts.session_state`."""
    known = check_object(value, "the facts: git", frozenset(), frozenset({"fetched", "stored"}))
    if type(known.get("fetched", True)) is not bool:
        raise BadInput("the facts: fetched of git must be true or false")
    _require(known.get("stored", {}), "stored of git", dict, str)


def _require_meaning(value: Any) -> None:
    """Raise `BadInput` unless a value says what a call means: see `gate.origins.judgement`."""
    names = frozenset({"class", "asked", "origins", "doubts", "why"})
    known = check_object(value, "the facts: meaning", names if value else frozenset(), names)
    if type(known.get("class", "")) is not str or type(known.get("asked", True)) is not bool:
        raise BadInput("the facts: class of meaning must be a text, and asked true or false")
    for name in ("origins", "doubts", "why"):
        _require(known.get(name, []), f"{name} of meaning", list, str)


def state_to_dict(state: RiskState) -> dict[str, Any]:
    """Return the state of the risk model as JSON values, with its note, where it has one."""
    return {**state.to_dict(), **({_NOTE: state.note} if state.note else {})}


def read_state(data: Any) -> RiskState:
    """Return the state that `state_to_dict` wrote. Raises `Refused` or `BadInput` where it is none."""
    note = data.get(_NOTE, "") if isinstance(data, dict) else ""
    if not isinstance(note, str):
        raise BadInput("the note of the risk state must be a text")
    state = state_from_dict({name: value for name, value in data.items() if name != _NOTE} if note else data)
    return replace(state, note=note) if note else state


@dataclass(frozen=True, slots=True)
class RecordedFixes:
    """The answers of a repository's history, in the order of the questions. Good for one decision."""

    answers: Iterator[int]

    def fixes_before(self, paths: object, now: str) -> int:
        return int(next(self.answers, 0))


@dataclass(frozen=True, slots=True)
class DecisionInputs:
    """The facts, the risk state and the answers of the history that one decision is made from."""

    facts: Facts
    state: RiskState
    fixes: tuple[int, ...] = ()
    _digests: list[str] = field(default_factory=list, init=False, repr=False, compare=False)
    """The digest, once it was computed: the gateway and both policy servers ask for it."""

    @classmethod
    def gather(cls, action: Action, facts: Facts, gate: Gate) -> DecisionInputs:
        """Take the state of a gate, and ask its history what the decision about this action would ask."""
        return cls(facts, gate.state, find_fixes(action, facts, gate.history))

    @classmethod
    def from_dict(cls, data: Any) -> DecisionInputs:
        """Return the inputs that `to_dict` wrote. Raises `BadInput` or `Refused` where they are none."""
        known = check_object(data, "the inputs of a decision", frozenset({"facts", "state", "fixes"}))
        fixes = known["fixes"]
        is_list = isinstance(fixes, list) and len(fixes) <= FIXES_MAX
        if not is_list or not all(type(count) is int and count >= 0 for count in fixes):
            raise BadInput(f"fixes must be a list of at most {FIXES_MAX} whole numbers")
        return cls(facts_from_dict(known["facts"]), read_state(known["state"]), tuple(fixes))

    def to_dict(self) -> dict[str, Any]:
        return {
            "facts": facts_to_dict(self.facts),
            "state": state_to_dict(self.state),
            "fixes": list(self.fixes),
        }

    @property
    def digest(self) -> str:
        """SHA-256 over the canonical bytes. Raises `NotCanonical` where a fact is not JSON."""
        if not self._digests:
            self._digests.append(hashlib.sha256(canonical_bytes(self.to_dict())).hexdigest())
        return self._digests[0]

    def apply_to(self, gate: Gate) -> Gate:
        """Return a gate that decides by this state and these answers, once."""
        return replace(gate, state=self.state, history=RecordedFixes(iter(self.fixes)))


def read_recorded_inputs(result: Mapping[str, Any], basis: Mapping[str, bytes | None]) -> DecisionInputs:
    """Return the inputs of a sealed decision. `result` is `outcome.result`, `basis` has the bytes of its blobs.

    Raises `BadInput`, `Refused`, or what Python raises for a result that is none. Masked secrets stay masked, also
    where they stand in the place of a value of another type. So the types of facts are not checked here.
    """
    inputs = _collect_inputs(result, basis)
    fixes = tuple(int(count) for count in inputs["fixes"])
    return DecisionInputs(_build_facts(inputs["facts"]), read_state(inputs["state"]), fixes)


def digest_recorded_inputs(result: Mapping[str, Any], basis: Mapping[str, bytes | None]) -> str:
    """Return the digest of the inputs of a sealed decision, as `DecisionInputs.digest` computes it.

    It is that of the stored values as they stand, which is quicker: a verifier compares it for each act.
    """
    return hashlib.sha256(canonical_bytes(_collect_inputs(result, basis))).hexdigest()


def _collect_inputs(result: Mapping[str, Any], basis: Mapping[str, bytes | None]) -> dict[str, Any]:
    """Put the inputs of a sealed decision together, in the form of `DecisionInputs.to_dict`."""
    written, state = basis.get("written"), basis["state"]
    if state is None:
        raise BadInput("the state of the risk model is not here")
    facts, note = dict(result["facts"]), result.get("state_note")
    if written is not None:
        facts["written"] = written.decode("utf-8", "surrogatepass")
    learned = read_json(state)
    return {"facts": facts, "state": {**learned, _NOTE: note} if note else learned, "fixes": result["fixes"]}

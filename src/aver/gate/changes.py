"""Changes of what the gate decides by: rules, settings and keys, each sealed as a record of its own.

Before a decision, Aver compares the basis in force with the one in the newest `gate.change` record of the chain
`gate.settings`. If they differ, it seals another `gate.change` first. So nobody can loosen the gate without a trace,
not even by a write that the gate itself has missed. `outcome.result` of the record:

    v            1
    digest       SHA-256 of the canonical bytes of `basis`
    before       the digest before; null in the first record
    changed      which of `rules`, `settings` and `keys` changed; empty in the first record
    what         the changes, in words
    opened       the canaries that pass now and did not before (`aver.gate.policy.canaries`)
    loosened     the settings that let more pass than before, in words
    by           the command of Aver by which a user made the change, as "aver install --observe (user ada)"; missing
                 where a decision found it. It proves nothing: any program of the user can run the command
    basis        {rules, settings, keys}:
                   rules     {digest, source, trouble, passing}: `source` is the directory, or `starter`; `passing`
                             names the canaries that the rules let pass
                   settings  the tables `[gate]`, `[approvals]`, `[hooks]` and `[gateway]`, by dotted names, each
                             value as JSON text
                   keys      every key of the ring: "<identity> <purpose> <fingerprint> <retired at, or active>"

Several machines may share a ledger, each with its own settings. A machine compares only with records that a key of its
own ring has sealed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from aver import log
from aver.capsule.aver_block import of_kind
from aver.capsule.canonical import canonical_bytes
from aver.capsule.masking.mask import mask
from aver.capsule.model import Authority, Capsule, Context, Outcome, Reasoning, Trigger
from aver.capsule.sealed import Sealed
from aver.errors import HeadMoved, IntegrityError
from aver.fast_dataclass import NamedTuple, dataclass
from aver.gate.decision_record import DOMAIN, SETTINGS_CHAIN
from aver.keys.signers import StoreSigner

if TYPE_CHECKING:
    from aver.config import Config
    from aver.gate.decide import Gate
    from aver.keys import Ring
    from aver.ledger import Head, Ledger

CHANGE_KIND = "gate.change"

LOOK_BACK = 200
"""Newest records that are searched for one of this machine. Only ledgers that machines share have others between."""

ATTEMPTS_MAX = 20
"""How often a change is sealed anew because another process sealed one first."""

WORDS_MAX = 200
"""Characters of a setting's value that a change names in words."""

PARTS = ("rules", "settings", "keys")

_LOOSENING_VALUES: Mapping[str, str] = {
    "mode": '"observe"',
    "on_pass": '"allow"',
    "on_failure": '"open"',
    "confirm": '"flag"',
}
"""Settings, by the last part of their names, whose value lets more pass than any other."""


@dataclass(frozen=True, slots=True)
class GateChange:
    """A change as its record has it."""

    at: str
    record: Sealed
    digest: str
    before: str | None
    what: tuple[str, ...]
    opened: tuple[str, ...]
    loosened: tuple[str, ...]
    basis: Mapping[str, Any]
    by: str = ""
    """The command of Aver that made the change; empty where a decision found it."""

    @property
    def is_first(self) -> bool:
        return self.before is None

    @property
    def asks_nobody(self) -> bool:
        """Whether the rules let every canary pass."""
        from aver.gate.policy.canaries import CANARIES

        return set(CANARIES) <= self.passing_canaries

    @property
    def passing_canaries(self) -> frozenset[str]:
        """The canaries that pass since this change."""
        return _find_passing(self.basis)

    @property
    def words(self) -> str:
        """The change in one line."""
        return "; ".join(self.what) or "the first decision here"


def describe_basis(config: Config, gate: Gate, ring: Ring, known: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Describe what the gate decides by. `known` is an earlier basis: the same rules need not be tried out again."""
    rules: dict[str, Any] = {
        "digest": None if gate.bundle is None else gate.bundle.digest,
        "source": gate.rules_at or "starter",
        "trouble": gate.trouble,
    }
    settings = dict(_flatten_settings(config))
    before = known or {}
    same_rules = {**(before.get("rules") or {}), "passing": None} == {**rules, "passing": None}
    if same_rules and before.get("settings") == settings:
        rules["passing"] = before["rules"]["passing"]
    else:
        from aver.gate.policy.canaries import find_passing_canaries

        rules["passing"] = list(find_passing_canaries(gate))
    keys = sorted(
        f"{entry.identity} {entry.purpose} {entry.fingerprint} {entry.retired_at or 'active'}" for entry in ring.entries
    )
    return {"rules": rules, "settings": settings, "keys": keys}


def _flatten_settings(config: Config) -> Iterator[tuple[str, str]]:
    """Yield the settings by dotted names. A secret in a value, as of a command that notifies, is masked."""
    tables = {
        "gate": dict(config.gate),
        "approvals": dict(config.approvals),
        "hooks": dict(config.hooks),
        "gateway": dict(config.gateway),
    }
    left: list[tuple[str, Any]] = sorted(mask(tables).value.items(), reverse=True)
    while left:
        name, value = left.pop()
        if isinstance(value, dict):
            left += [(f"{name}.{key}", value[key]) for key in sorted(value, reverse=True)]
        else:
            yield name, json.dumps(value, sort_keys=True, default=str)


def seal_change(ledger: Ledger, gate: Gate, by: str = "") -> GateChange | None:
    """Seal a change of what the gate decides by, if there is one since the last decision. Returns it.

    `by` names the command of Aver that has just made the change, and the user. Raises where it cannot be sealed: then
    nothing must pass.
    """
    for _ in range(ATTEMPTS_MAX):
        head = ledger.head(SETTINGS_CHAIN)
        ring = ledger.keys.ring()
        if _is_same(ledger, _SealedBasis(ledger.config, gate, ring, head)):
            return None
        if not ring.entries:
            # The first append makes the ledger's key. Make it now: the next decision must not meet another ring.
            if isinstance(signer := ledger.signer(), StoreSigner):
                _ = signer.public
            ring = ledger.keys.ring()
        before = find_newest_change(ledger, ring)
        basis = describe_basis(ledger.config, gate, ring, None if before is None else before.basis)
        digest = hashlib.sha256(canonical_bytes(basis)).hexdigest()
        if before is not None and before.digest == digest:
            _sealed[ledger] = _SealedBasis(ledger.config, gate, ring, head)
            return None
        try:
            record = ledger.append(SETTINGS_CHAIN, _build_change_draft(basis, digest, before, by), after=head)
        except HeadMoved as error:
            overtaken = error
            continue
        change = read_change(record)
        log.debug("gate", "sealed a change of rules, settings or keys: %s", "; ".join(change.what) or "the first")
        return change
    raise overtaken


class _SealedBasis(NamedTuple):
    """A basis that was found to be the one of the newest change, and the head of the changes at that moment."""

    config: Config
    gate: Gate
    ring: Ring
    head: Head


_sealed: WeakKeyDictionary[Ledger, _SealedBasis] = WeakKeyDictionary()
"""For each open ledger the last basis that was compared. An act after another finds it as it was."""


def _is_same(ledger: Ledger, now: _SealedBasis) -> bool:
    """Whether a basis is the one that was compared last, and no record has come since then."""
    last = _sealed.get(ledger)
    return (
        last is not None
        and last.head == now.head
        and last.config is now.config
        and last.ring is now.ring
        # The parts of the gate that `describe_basis` reads, or tries out, besides the settings.
        and last.gate.bundle is now.gate.bundle is not None
        and (last.gate.rules_at, last.gate.trouble) == (now.gate.rules_at, now.gate.trouble)
    )


def find_newest_change(ledger: Ledger, ring: Ring | None = None) -> GateChange | None:
    """Return the newest change that a key of this machine's ring has sealed; None where there is none."""
    from aver.gate.own_records import OwnRecords

    count = ledger.head(SETTINGS_CHAIN).count
    if not count:
        return None
    own, known = OwnRecords(ledger), ledger.keys.ring() if ring is None else ring
    # Usually the last record is the one.
    for start, stop in ((count - 1, count), (max(0, count - LOOK_BACK), count - 1)):
        for record in reversed(list(ledger.read(SETTINGS_CHAIN, max(start, 0), stop))):
            if record.kind != CHANGE_KIND or known.entry(record.signed_by) is None:
                continue
            try:
                return read_change(own.require(record))
            except IntegrityError as error:
                # Not a record of ours after all. Aver seals the basis anew, and `aver verify` reports this record.
                log.debug("gate", "a record of changes does not count: %s", error.message)
    return None


def read_change(record: Sealed) -> GateChange:
    """Read a change from its record. A part that the record lacks is read as empty: `aver verify` judges records."""
    content = record.to_dict()
    result = content["outcome"].get("result")
    found: Mapping[str, Any] = result if isinstance(result, dict) else {}
    before, basis = found.get("before"), found.get("basis")
    return GateChange(
        at=str(content["trigger"].get("timestamp") or record.signed_at),
        record=record,
        digest=str(found.get("digest")),
        before=before if isinstance(before, str) else None,
        what=_read_words(found.get("what")),
        opened=_read_words(found.get("opened")),
        loosened=_read_words(found.get("loosened")),
        basis=basis if isinstance(basis, dict) else {},
        by=str(found.get("by") or ""),
    )


def _read_words(value: Any) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()


def _build_change_draft(basis: Mapping[str, Any], digest: str, before: GateChange | None, by: str) -> Capsule:
    old: Mapping[str, Any] = {} if before is None else before.basis
    what = [] if before is None else list(_describe_changes(old, basis))
    opened = [] if before is None else sorted(_find_passing(basis) - _find_passing(old))
    loosened = [] if before is None else list(_find_loosening(old, basis))
    result = {
        "v": 1,
        "digest": digest,
        "before": None if before is None else before.digest,
        "changed": [] if before is None else [part for part in PARTS if old.get(part) != basis[part]],
        "what": what,
        "opened": opened,
        "loosened": loosened,
        **({"by": by} if by else {}),
        "basis": dict(basis),
    }
    summary = "; ".join(what) if what else "the first decision: rules, settings and keys as they are"
    draft = Capsule(
        type="system",
        domain=DOMAIN,
        trigger=Trigger(type="system", source="aver", request="rules, settings or keys changed"),
        context=Context(agent_id="aver"),
        reasoning=Reasoning(analysis="; ".join([*opened, *loosened]), selected_option="recorded"),
        authority=Authority(type="unknown"),
        outcome=Outcome(status="success", summary=summary[:WORDS_MAX], result=result),
    )
    return of_kind(draft, CHANGE_KIND, None if before is None else {"before": before.record.id})


def _find_passing(basis: Mapping[str, Any]) -> frozenset[str]:
    rules = basis.get("rules")
    passing = rules.get("passing") if isinstance(rules, dict) else None
    return frozenset(map(str, passing)) if isinstance(passing, list) else frozenset()


def _describe_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """Yield each difference between two bases, in words."""
    before, after = old.get("rules") or {}, new["rules"]
    if (before.get("source"), before.get("digest")) != (after["source"], after["digest"]):
        digest = str(after["digest"] or "unusable")[:16]
        yield f"rules: {before.get('source')} ({str(before.get('digest'))[:16]}) became {after['source']} ({digest})"
    if after["trouble"] and before.get("trouble") != after["trouble"]:
        yield f"rules cannot be used: {after['trouble'][:WORDS_MAX]}"
    known, settings = old.get("settings") or {}, new["settings"]
    for name in sorted({*known, *settings}):
        if known.get(name) != settings.get(name):
            was, now = (str(table.get(name, "not set"))[:WORDS_MAX] for table in (known, settings))
            yield f"setting {name}: {was} became {now}"
    keys, newer = set(old.get("keys") or ()), set(new["keys"])
    yield from (f"key added: {key}" for key in sorted(newer - keys))
    yield from (f"key gone: {key}" for key in sorted(keys - newer))


def _find_loosening(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """Yield the settings that let more pass than before, in words."""
    known, settings = old.get("settings") or {}, new["settings"]
    for name, value in settings.items():
        last = name.rpartition(".")[2]
        # A declared tool is no longer unknown, and may be declared to do less than before.
        loosens = _LOOSENING_VALUES.get(last) == value or name.startswith("gate.tools.")
        if known.get(name) != value and loosens:
            yield f"{name} is {value} now"
    if _to_number(settings.get("gate.pass_below")) > _to_number(known.get("gate.pass_below")):
        yield f"gate.pass_below is {settings['gate.pass_below']} now"


def _to_number(text: Any) -> float:
    """The number in a setting's JSON text. The default of `pass_below` where there is none."""
    from aver.gate.decision import Thresholds

    try:
        return float(text)
    except (TypeError, ValueError):
        return Thresholds().pass_below

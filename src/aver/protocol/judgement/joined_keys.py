"""The keys that joined a trace: a join that the operator sealed stands for a record of the key in the `keys` chain.

A key has joined if all of this holds:

1. a `protocol-join` statement names it, a role other than the operator's, and this ledger, tenant and chain. The key
   itself signed the statement, and no other did;
2. the statement lies beside a record of kind `session_initialized` or `participant_joined`;
3. the operator's key sealed that record. This is the key that opened the trace: the ring knows it, and it is the
   ledger's as far as the ring or the `keys` chain tell. Its successor, which the ring knows as well, takes its place by
   a join of its own, with rotation statements that lead to it.

`TraceJudge` holds each join to more rules, and stops at the first record that breaks one. The records after that are
read by these rules alone. So the answer does not depend on the rules of a whole trace, which the Explorer's page does
not have: `web/src/verify/joins.ts` is the twin of this module.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from aver.capsule.sealed import Sealed
from aver.errors import BadInput, Refused
from aver.keys.public_key import KeyRole, PublicKey
from aver.keys.ring import ROTATION_PURPOSE, Ring, read_rotation
from aver.keys.statement import Statement
from aver.protocol.events import OPERATOR
from aver.protocol.statements import JOIN_PURPOSE, Join, TracePlace, find_statements, read_join
from aver.protocol.trace import ProtocolTrace

_OPENING = "protocol.session_initialized"
_JOINING = "protocol.participant_joined"


class JoinedKeys:
    """Collects the keys that joined, from records in their order. Their contents and signatures hold."""

    def __init__(self, trace: ProtocolTrace, ring: Ring, roles: Mapping[str, KeyRole]) -> None:
        """Begin with the keys that a trace has bound so far."""
        self.keys = {each.key.ed25519 for each in trace.bound_keys.values() if each.role != OPERATOR}
        """By their 64 digits."""
        operator = trace.participants.get(OPERATOR)
        self._operator = None if operator is None else operator.key
        self._place: TracePlace = trace.place
        self._ring = ring
        self._roles = roles

    def take(self, record: Sealed) -> None:
        """Note the joins beside the next record."""
        if record.kind not in (_OPENING, _JOINING):
            return
        statements = list(_read_statements(record))
        joins = [join for join in map(_read_join, find_statements(statements, JOIN_PURPOSE)) if join is not None]
        joins = [join for join in joins if join.place == self._place]
        sealer = next((key for key in self._ring.lookup(record.signed_by) if key.fingerprint == record.signed_by), None)
        if sealer is None:
            return
        if record.kind == _OPENING and record.sequence == 0 and self._may_open(sealer):
            self._operator = sealer
        is_operator_joining = any((join.role, join.key) == (OPERATOR, sealer) for join in joins)
        if record.kind == _JOINING and is_operator_joining and self._operator is not None:
            self._operator = sealer if _find_end(statements, self._operator) == sealer else self._operator
        if sealer == self._operator:
            self.keys.update(join.key.ed25519 for join in joins if join.role != OPERATOR)

    def _may_open(self, key: PublicKey) -> bool:
        entry = self._ring.entry_of(key)
        role = self._roles.get(key.ed25519) if entry is None else entry.role
        return role is None or role.may_attest


def _read_statements(record: Sealed) -> Iterable[Statement]:
    """The statements beside a record, without those that cannot be read."""
    content = record.to_dict()
    authority = content.get("authority")
    chain = authority.get("chain") if isinstance(authority, dict) else None
    for item in chain if isinstance(chain, list) else ():
        try:
            yield Statement.from_dict(item)
        except BadInput:
            continue


def _read_join(statement: Statement) -> Join | None:
    try:
        return read_join(statement)
    except (BadInput, Refused):
        return None


def _find_end(statements: Iterable[Statement], key: PublicKey) -> PublicKey | None:
    """The key that rotation statements lead to from another one; None if one of them does not hold."""
    for statement in find_statements(statements, ROTATION_PURPOSE):
        rotation = read_rotation(statement)
        if rotation is None or rotation.old != key:
            return None
        key = rotation.new
    return key

"""Who asks for an act, through which door, and on whose behalf: checked before anything else.

`admit_visitor` makes these checks; the first that fails gives the answer:

1. the door admits the caller                                            INGRESS_CONFLICT
2. the door has a verified confinement, if the settings want one         CAPSULE_REQUIRED
3. the constraints are those that a principal elsewhere has signed       INGRESS_CONFLICT
4. only a workload token makes a caller a skill                          WORKLOAD_TOKEN_INVALID
5. the caller may use the intent                                         CAPABILITY_DENY
6. the delegation holds, and its principal may use the intent            DELEGATION_…, PRINCIPAL_CAPABILITY_DENY
"""

from __future__ import annotations

from typing import NamedTuple

from aver import clock
from aver.errors import Refused
from aver.fast_dataclass import dataclass
from aver.gateway.act_records import IngressNote, Mediation, Surroundings, revocation_key
from aver.gateway.codes import CAPSULE_REQUIRED
from aver.gateway.delegation import Delegation, check_delegation
from aver.gateway.ingress import Ingress, bind_constraints
from aver.gateway.intents import IntentCall
from aver.gateway.request import SKILL_CALLER, ActRequest
from aver.gateway.settings import GatewaySettings, find_capabilities, may_name
from aver.ledger import Ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """The door that acts come through: the session they belong to, and whom the door lets speak."""

    session: str
    ingress: IngressNote = IngressNote("embedded")
    callers: tuple[str, ...] = ("*",)
    """Patterns of the callers that may act through this door."""
    mediation: Mediation = "unverified"
    """Whether the door has a fresh verdict that what acts through it is confined."""
    federated: Ingress | None = None
    """The call of a principal elsewhere, whose signature the door has checked; None for all other doors."""


class Visit(NamedTuple):
    """Who asks, through which door, and on whose behalf: all checked."""

    door: Door
    caller: str
    delegation: Delegation | None
    surroundings: Surroundings
    user_confirm: bool

    @property
    def principal(self) -> str | None:
        return None if self.delegation is None else self.delegation.principal

    @property
    def jti(self) -> str | None:
        return None if self.delegation is None else self.delegation.jti


def admit_visitor(
    act: ActRequest,
    call: IntentCall,
    door: Door,
    *,
    ledger: Ledger,
    settings: GatewaySettings,
    surroundings: Surroundings,
    now: float,
) -> Visit:
    """Check who asks, and on whose behalf, in the order of the module's docstring. Raises `Refused`."""
    # 1.
    if not may_name(door.callers, act.caller):
        raise Refused("INGRESS_CONFLICT", f"this door does not admit the caller {act.caller!r}")
    # 2.
    if settings.require_capsule and door.mediation != "verified":
        raise Refused(
            CAPSULE_REQUIRED,
            "the settings want a verified confinement, and this door has none",
            advice="start the agent with: aver gateway run -- COMMAND",
        )
    # 3.
    constraints, name = act.constraints, call.intent.name
    if door.federated is not None:
        constraints = bind_constraints(door.federated, constraints)
    # 4.
    caller = act.caller
    if constraints.workload_token is not None:
        from aver.gateway.skills.workload_token import check_workload_token  # Few callers are skills.

        caller = check_workload_token(
            constraints.workload_token, ring=ledger.keys.ring(), session=door.session, now=now
        )
    elif caller.startswith(SKILL_CALLER):
        raise Refused("WORKLOAD_TOKEN_INVALID", f"only a workload token makes a caller {SKILL_CALLER}<digest>")
    # 5.
    allowed = find_capabilities(settings.callers, caller)
    if allowed is not None and not may_name(allowed, name):
        raise Refused("CAPABILITY_DENY", f"{caller} may not use {name}")
    # 6.
    delegation = check_delegation(
        constraints.delegation_token,
        intent_id=name,
        caller=caller,
        session=door.session,
        external_principal=constraints.external_principal,
        keys=settings.keys,
        now=now,
        is_revoked=lambda jti: ledger.get(revocation_key(jti)) is not None,
    )
    if delegation is not None:
        allowed = find_capabilities(settings.principals, delegation.principal)
        if allowed is not None and not may_name(allowed, name):
            raise Refused("PRINCIPAL_CAPABILITY_DENY", f"{delegation.principal} may not use {name}")
    return Visit(door, caller, delegation, surroundings, bool(constraints.user_confirm))


def new_session() -> str:
    """Return the name of a new session."""
    return clock.new_id()

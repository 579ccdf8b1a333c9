"""Allowing a command or a tool for good, and taking that back. Both are sealed in the chain `gate.settings`.

`outcome.result` of a `policy.allow` and of a `policy.forget`:

    {v: 1, rule, about, workspace, text, by, request}

    rule         the id of the rule in `allowed.cedar`
    about        the command or the tool
    text         the rule itself
    by           who did it: the person who signed the approval, or the user of this machine
    request      the request for approval that it comes from, or null

A rule is sealed before it is written: no rule is in force of which the ledger knows nothing. It is removed before that
is sealed: taking back must not fail because the ledger cannot be written.
"""

from __future__ import annotations

from aver.capsule.aver_block import of_kind
from aver.capsule.model import Authority, Capsule, Context, Outcome, Trigger
from aver.capsule.sealed import Sealed
from aver.config import ensure_home
from aver.gate.approvals.request import ApprovalRequest
from aver.gate.decision_record import DOMAIN, SETTINGS_CHAIN
from aver.gate.policy.standing_rules import StandingRule, add_rule, remove_rule
from aver.ledger import Ledger

ALLOW_KIND, FORGET_KIND = "policy.allow", "policy.forget"


def allow_for_good(
    ledger: Ledger, rule: StandingRule, workspace: str, by: str, request: ApprovalRequest | None = None
) -> Sealed:
    """Seal that a person allows something for good, and put its rule in force. Returns the record."""
    record = _seal_change(ledger, ALLOW_KIND, rule, workspace, by, request)
    ensure_home(ledger.config.home)
    add_rule(ledger.config.home, rule)
    return record


def forget_rules(ledger: Ledger, name: str, workspace: str, by: str) -> list[StandingRule]:
    """Remove the rule with this id, or those for this command or tool in a workspace, and seal that.

    Returns the rules that were removed. Raises NotFound if there is none.
    """
    removed = remove_rule(ledger.config.home, name, workspace)
    for rule in removed:
        _seal_change(ledger, FORGET_KIND, rule, workspace, by, None)
    return removed


def _seal_change(
    ledger: Ledger, kind: str, rule: StandingRule, workspace: str, by: str, request: ApprovalRequest | None
) -> Sealed:
    result = {
        "v": 1,
        "rule": rule.id,
        "about": rule.about,
        "workspace": workspace,
        "text": rule.text,
        "by": by,
        "request": None if request is None else request.id,
    }
    did = "allowed for good" if kind == ALLOW_KIND else "allowed no longer"
    draft = Capsule(
        type="auth",
        domain=DOMAIN,
        parent_id=None if request is None else request.id,
        trigger=Trigger(type="user_request", source=by, request=f"{kind} {rule.id}", user_id=by),
        context=Context(agent_id="aver"),
        # Only a signed approval shows who it was. Any program of this user can run the command.
        authority=Authority(type="policy", policy_reference=f"aver {kind.replace('.', ' ')}")
        if request is None
        else Authority(type="human_approved", approver=by),
        outcome=Outcome(status="success", summary=f"{did} by {by}: {rule.about}"[:300], result=result),
    )
    return ledger.append(SETTINGS_CHAIN, of_kind(draft, kind, None if request is None else {"request": request.id}))

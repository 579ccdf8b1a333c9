"""`aver approvals approve`, `deny` and `escalate`: a person signs an answer to exactly the request that is shown."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from aver import clock
from aver.cli.options import Usage
from aver.cli.terminal import Screen, StderrScreen, StyledText, ask_passphrase, has_terminal, print_json
from aver.cli.verbs.approvals.requests import build_display, open_ledger_of, print_display, read_action, request_to_dict
from aver.errors import BadInput, NotFound, Refused
from aver.text import escape_invisible, plural

if TYPE_CHECKING:
    from aver.gate.approvals import ApprovalRequest, Person, RequestState
    from aver.gate.policy.standing_rules import StandingRule
    from aver.ledger import Ledger


def answer_request(given: argparse.Namespace, screen: Screen) -> int:
    """Show the whole request, then sign and record the person's answer to exactly what was shown."""
    from aver.gate.approvals import WHOLE_LINES, approve, deny, escalate, find_request, load_request_state
    from aver.protocol.rules.claims import DISPUTE_TOOL

    with open_ledger_of(given) as ledger:
        request = find_request(ledger, given.request)
        identity = given.identity or _find_only_approver(ledger, request)
        chosen, rule = _read_choice(ledger, request, identity, given)
        state = load_request_state(ledger, request)
        display = {**chosen, "rule": rule.text.rstrip()} if rule else chosen
        shown = build_display(ledger, request, state, WHOLE_LINES, given.because, **display)
        print_display(StderrScreen() if given.json else screen, shown)
        sys.stdout.flush()
        if shown.cut and not given.although_cut:
            raise Refused(
                "CUT",
                f"the request is too long: {plural(shown.cut, 'line')} not shown",
                advice="ask the agent for a smaller change, or give --although-cut",
            )
        person = find_signer(ledger, identity, given)
        answer: Callable[..., RequestState] = {"approve": approve, "deny": deny, "escalate": escalate}[given.action]
        state = answer(ledger, request, person, shown=shown.text, comment=given.because, **chosen)
        is_written = False
        if rule is not None and state.state == "approved":
            from aver.gate.policy.rule_changes import allow_for_good

            allow_for_good(ledger, rule, str(read_action(ledger, request)["workspace"]), identity, request)
            is_written = True
        if given.json:
            told = {"decision": given.action, "approver": identity, "rule": rule.id if rule and is_written else None}
            print_json({**request_to_dict(ledger, request, state), **told})
            return 0
        did = {"approve": "approved", "deny": "denied", "escalate": "escalated"}[given.action]
        follows = f"the request is {state.state}{f': {state.reason}' if state.reason else ''}"
        if (given.action, state.state) == ("approve", "approved"):
            times = "once" if state.uses == 1 else f"{state.uses} times"
            where = "in any session of this workspace" if state.scope == "workspace" else "in the session that asked"
            follows = f"the agent may do this {times}, {where}"
        screen.print_line(f"{did} by {identity}; ", StyledText(escape_invisible(follows), "strong"))
        if rule is not None:
            words = f"the rule {rule.id} allows it here for good; aver policy forget {rule.id} takes that back"
            screen.print_line(words if is_written else "no rule is written before enough people have approved")
        action = read_action(ledger, request)
        if action["tool"] == DISPUTE_TOOL and state.state != "pending":
            trace, challenge = action["arguments"].get("trace"), str(action["arguments"].get("challenge"))
            screen.print_line(f"seal the ruling in the trace: aver protocol resolve {trace} {challenge[:8]}")
        if state.escalation:
            screen.print_line(StyledText(escape_invisible(state.escalation), "warn"))
    return 0


def _read_choice(
    ledger: Ledger, request: ApprovalRequest, identity: str, given: argparse.Namespace
) -> tuple[dict[str, Any], StandingRule | None]:
    """Return the scope and the uses that the person gives, and the rule for `--always`. Raises BadInput."""
    if given.action != "approve":
        return {}, None
    from aver.gate.action import FIRST_DIGEST_VERSION
    from aver.gate.approvals.request import USES_MAX, WORKSPACE_SCOPE

    action = read_action(ledger, request)
    if not 1 <= given.uses <= USES_MAX:
        raise Usage(f"--uses takes a number from 1 to {USES_MAX}", advice="allow it for good: --always")
    is_plain = given.scope == "session" and given.uses == 1
    if request.digest_version == FIRST_DIGEST_VERSION and not is_plain:
        raise BadInput("an earlier version of Aver opened this request: it can only be approved once, in its session")
    if given.scope == "workspace" and (not action["workspace"] or action.get("request_sha256")):
        raise BadInput("this action belongs to no workspace, or to one request of its session: leave out --scope")
    rule = _build_rule(action, identity) if given.always else None
    return {"scope": WORKSPACE_SCOPE if given.scope == "workspace" else "", "uses": given.uses}, rule


def _build_rule(content: Mapping[str, Any], identity: str) -> StandingRule:
    """Build the rule that allows the action of a request for good. Raises BadInput where that is no command."""
    from aver.gate.action import Facts
    from aver.gate.effects.known_agents import default_known_agents
    from aver.gate.policy.standing_rules import build_command_rule, find_command
    from aver.gate.replay import action_from_dict

    action = action_from_dict(content, None)
    command = "" if content["diff_sha256"] else find_command(action, Facts(now=clock.now()), default_known_agents())
    if not command:
        words = "only a command in its workspace, without further arguments, can be allowed for good"
        raise BadInput(words, advice="approve it with --scope workspace --uses N, or write a rule: docs/gate/policy.md")
    return build_command_rule(command, action.workspace, identity)


def _find_only_approver(ledger: Ledger, request: ApprovalRequest) -> str:
    """The approver of this request whose key is on this machine. Raises if there is none, or more than one."""
    ring = ledger.keys.ring()
    able = [
        identity
        for identity, approver in request.approvers.items()
        if (entry := ring.active(identity)) is not None and entry.key == approver.key
    ]
    if len(able) == 1:
        return able[0]
    if able:
        raise Usage(f"{', '.join(able)} could all answer this", advice=f"say who answers: --as {able[0]}")
    listed = ", ".join(request.approvers)
    raise NotFound(
        f"no approver of this request has a key on this machine: {listed}",
        advice="answer on the machine that has the key",
    )


def find_signer(ledger: Ledger, identity: str, given: argparse.Namespace) -> Person:
    """The person with their key. Without a passphrase to type, the person confirms in words."""
    from aver.gate.approvals import find_person

    person = find_person(ledger.keys, identity, lambda: ask_passphrase(identity, given.passphrase_fd))
    if person.custody == "passphrase" or getattr(given, "yes", True):
        return person
    if not (has_terminal() and sys.stdin.isatty()):
        raise BadInput("there is no terminal to ask at", advice="give --yes if you have read what is to be signed")
    sys.stderr.write(f"Sign as {identity} with the key in {person.custody}? (yes/no) ")
    sys.stderr.flush()
    if sys.stdin.readline(16).strip() != "yes":
        raise Refused("NOT_CONFIRMED", "nothing was signed")
    return person

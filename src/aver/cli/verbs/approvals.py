"""`aver approvals`: shows requests for approval, signs a person's answer, and manages who may answer."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from aver import clock
from aver.cli.options import (
    Parser,
    Usage,
    add_action_parser,
    add_json,
    add_ledger,
    add_passphrase_fd,
    add_tenant,
)
from aver.cli.terminal import (
    LinePart,
    Screen,
    StderrScreen,
    StyledText,
    ask_passphrase,
    format_time,
    has_terminal,
    print_json,
)
from aver.errors import AverError, BadInput, NotFound, Refused
from aver.text import escape_invisible, plural

# The gate and the ledger are imported where they are used, so that `--help` does not load them.
if TYPE_CHECKING:
    from aver.gate.approvals import ApprovalRequest, ApprovalSetup, Person, RequestDisplay, RequestState
    from aver.gate.approvals.roster import Approver
    from aver.gate.policy.standing_rules import StandingRule
    from aver.ledger import Ledger

EXAMPLES = """\
  aver keys new person:ada               once: make a key, protected by a passphrase
  aver approvals enrol person:ada        once: allow ada to approve in this ledger
  aver approvals list
  aver approvals show 3f0c9a1b
  aver approvals approve 3f0c9a1b        shows the whole request, then asks for the passphrase
  aver approvals approve 3f0c9a1b --scope workspace --uses 3
  aver approvals approve 3f0c9a1b --always     and never ask about this command here again
  aver approvals deny 3f0c9a1b --because "not on a Friday"
  aver approvals watch"""

REQUEST_HELP = "the request's id, or the beginning of it"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=Parser)
    listing = _add_action_parser(actions, "list", "list the pending requests", "  aver approvals list --json")
    listing.add_argument("--all", action="store_true", help="also list requests of the last seven days that have ended")
    show = _add_action_parser(actions, "show", "show one request", "  aver approvals show 3f0c9a1b --all")
    show.add_argument("request", metavar="ID", help=REQUEST_HELP)
    show.add_argument("--all", action="store_true", help="show every line")
    _add_answer_parsers(actions)
    _add_action_parser(actions, "watch", "print requests as they are opened and answered", "  aver approvals watch")
    approvers = _add_action_parser(actions, "approvers", "list who may approve", "  aver approvals approvers --toml")
    approvers.add_argument(
        "--toml", action="store_true", help="print a file for /etc/aver, where the agent's user cannot change it"
    )
    examples = "  aver approvals enrol person:ada\n  aver approvals enrol person:ben --by person:ada"
    enrol = _add_action_parser(
        actions,
        "enrol",
        "allow a person to approve; every person after the first needs an approver's signature",
        examples,
    )
    enrol.add_argument("identity", metavar="IDENTITY", help="person:NAME, whose key is on this machine")
    enrol.add_argument("--by", metavar="IDENTITY", help="an approver who also signs")
    add_passphrase_fd(enrol)
    endorse = _add_action_parser(
        actions,
        "endorse",
        "allow a passkey to approve that a page has made; the page shows the code",
        "  aver approvals endorse eyJjb250ZW50… --by person:ada\n  aver approvals endorse - --by person:ada < code.txt",
    )
    endorse.add_argument("code", metavar="CODE", help="the code that the page shows; - reads it from standard input")
    endorse.add_argument("--by", metavar="IDENTITY", required=True, help="the approver who signs")
    endorse.add_argument("--yes", action="store_true", help="do not ask before ssh-agent signs")
    add_passphrase_fd(endorse)
    summary = "no longer allow a person to approve"
    withdraw = _add_action_parser(actions, "withdraw", summary, "  aver approvals withdraw person:ben --by person:ada")
    withdraw.add_argument("identity", metavar="IDENTITY", help="person:NAME")
    withdraw.add_argument("--by", metavar="IDENTITY", help="the approver who signs (default: the person)")
    add_passphrase_fd(withdraw)


def run(given: argparse.Namespace, screen: Screen) -> int:
    return ACTIONS[given.action](given, screen)


def _add_action_parser(actions: Any, name: str, summary: str, examples: str) -> argparse.ArgumentParser:
    parser = add_action_parser(actions, name, summary, examples)
    add_ledger(parser)
    add_tenant(parser)
    add_json(parser)
    return parser


def _add_answer_parsers(actions: Any) -> None:
    for name, summary in (
        ("approve", "approve a request: exactly the action that is shown"),
        ("deny", "deny a request"),
        ("escalate", "pass a request on to the next level"),
    ):
        answer = _add_action_parser(actions, name, summary, f'  aver approvals {name} 3f0c9a1b --because "as agreed"')
        answer.add_argument("request", metavar="ID", help=REQUEST_HELP)
        answer.add_argument(
            "--as",
            dest="identity",
            metavar="IDENTITY",
            help="person:NAME who answers (default: the only approver with a key here)",
        )
        answer.add_argument("--because", default="", metavar="TEXT", help="a reason, which is recorded with the answer")
        answer.add_argument(
            "--although-cut", action="store_true", help="answer even if the request is too long to show"
        )
        if name == "approve":
            answer.add_argument(
                "--scope",
                choices=("session", "workspace"),
                default="session",
                help="where the approval is good: in the session that asked (default), or in every session",
            )
            answer.add_argument(
                "--uses", type=int, default=1, metavar="N", help="how often the approval is good (default: once)"
            )
            answer.add_argument(
                "--always", action="store_true", help="also allow this command in this workspace for good, by a rule"
            )
        answer.add_argument("--yes", action="store_true", help="do not ask before ssh-agent signs")
        add_passphrase_fd(answer)


POLL_SECONDS = 0.5
"""How often `watch` looks for changes."""

_STATE_STYLES = {"pending": "warn", "approved": "good", "used": "good", "denied": "bad", "expired": "dim"} | {
    "closed": "dim"
}


def _open_ledger(given: argparse.Namespace, *, create: bool = False) -> Ledger:
    from aver.ledger import open_ledger

    return open_ledger(given.ledger, tenant=given.tenant, create=create)


# --- reading requests


def _list_requests(given: argparse.Namespace, screen: Screen) -> int:
    from aver.gate.approvals import load_approval_setup, load_request_states, recent_requests

    with _open_ledger(given) as ledger:
        now = clock.now()
        recent = [request for request in recent_requests(ledger) if given.all or request.expires >= now]
        found = zip(recent, load_request_states(ledger, recent), strict=True)
        listed = [(request, state) for request, state in found if given.all or state.state in ("pending", "approved")]
        if given.json:
            print_json({"requests": [_request_to_dict(ledger, request, state) for request, state in listed]})
            return 0
        if not listed:
            StderrScreen().print_note("no pending approvals")
        if not load_approval_setup(ledger).roster.approvers:
            words = (
                "nobody is enrolled who could approve: aver keys new person:NAME, then aver approvals enrol person:NAME"
            )
            StderrScreen().print_note(words)
        header = ("request", "state", "expires (UTC)", "risk", "action")
        screen.print_table([_request_row(ledger, request, state) for request, state in listed], header=header)
    return 0


def _request_row(ledger: Ledger, request: ApprovalRequest, state: RequestState) -> list[LinePart]:
    risk = request.content.get("risk")
    score = f"{risk['score']:.2f}" if isinstance(risk, dict) and isinstance(risk.get("score"), int | float) else "-"
    word = StyledText(state.state, _STATE_STYLES[state.state])
    return [request.id[:8], word, format_time(request.expires), score, _request_summary(ledger, request)]


def _request_summary(ledger: Ledger, request: ApprovalRequest) -> str:
    from aver.gate.action_text import summarise_action

    try:
        return escape_invisible(summarise_action(_read_action(ledger, request)))
    except AverError as error:
        return f"cannot be shown: {error.message}"


def _show_request(given: argparse.Namespace, screen: Screen) -> int:
    from aver.gate.approvals import GLANCE_LINES, WHOLE_LINES, find_request, load_request_state

    with _open_ledger(given) as ledger:
        request = find_request(ledger, given.request)
        state = load_request_state(ledger, request)
        shown = _build_display(ledger, request, state, WHOLE_LINES if given.all else GLANCE_LINES, "")
        if given.json:
            print_json({**_request_to_dict(ledger, request, state), "shown": shown.text, "cut": shown.cut})
            return 0
        _print_display(screen, shown)
        if shown.cut:
            StderrScreen().print_note(f"{plural(shown.cut, 'line')} not shown; --all shows them")
    return 0


def _build_display(
    ledger: Ledger, request: ApprovalRequest, state: RequestState, limit: int, comment: str, **chosen: Any
) -> RequestDisplay:
    from aver.gate.approvals import render_request

    action = _read_action(ledger, request)
    digest = request.blob_digest("diff")  # A large diff is stored as a blob.
    diff = request.read_diff(None if digest is None else ledger.blob(digest), action)
    return render_request(request, action, diff, state, limit=limit, comment=comment, **chosen)


def _read_action(ledger: Ledger, request: ApprovalRequest) -> dict[str, Any]:
    return request.read_action(ledger.blob)


def _print_display(screen: Screen, shown: RequestDisplay) -> None:
    for line in shown.lines:
        screen.print_line(StyledText(line.text, line.style) if line.style else line.text)


def _request_to_dict(ledger: Ledger, request: ApprovalRequest, state: RequestState) -> dict[str, Any]:
    return {
        "request": request.id,
        "ledger": request.ledger,
        "tenant": request.tenant,
        "statement": request.statement,
        "scope": request.scope,
        "uses": request.uses,
        "digest_version": request.digest_version,
        "approved_scope": state.scope or None,
        "approved_uses": state.uses or None,
        "used": state.used,
        "state": state.state,
        "reason": state.reason,
        "level": state.level,
        "approved_by": list(state.approvers),
        "escalation": state.escalation,
        "opened": request.opened,
        "expires": request.expires,
        "digest": request.digest,
        "gate_id": request.gate_id,
        "summary": _request_summary(ledger, request),
        "action": _read_action(ledger, request),
        "risk": request.content["risk"],
        "reasons": request.content["reasons"],
        "rules": request.content["rules"],
        "levels": [level.to_dict() for level in request.levels],
        "uncounted": [
            {"sequence": decided.sequence, "code": problem.code, "words": problem.words}
            for decided, problem in state.uncounted
        ],
    }


def _watch_requests(given: argparse.Namespace, screen: Screen) -> int:
    from aver.gate.approvals import recent_requests
    from aver.gate.approvals.request_records import approvals_chain

    if given.json:
        raise Usage("watch cannot be combined with --json", advice="leave out --json")
    with _open_ledger(given) as ledger:
        known: dict[str, str] = {}
        waiting: list[ApprovalRequest] = []
        head = None
        while True:
            now = ledger.head(approvals_chain(ledger.tenant))
            if now != head:
                head = now
                waiting += [request for request in recent_requests(ledger) if request.id not in known]
                waiting = _update_waiting(ledger, waiting, known, screen)
            elif any(request.expires < clock.now() for request in waiting):
                waiting = _update_waiting(ledger, waiting, known, screen)
            sys.stdout.flush()
            time.sleep(POLL_SECONDS)


def _update_waiting(
    ledger: Ledger, requests: list[ApprovalRequest], known: dict[str, str], screen: Screen
) -> list[ApprovalRequest]:
    """Print the requests whose state changed. Returns those that are still open.

    Requests that had ended before the watch began are not printed.
    """
    from aver.gate.approvals import load_request_states

    waiting = []
    for request, state in zip(requests, load_request_states(ledger, requests), strict=True):
        is_open = state.state in ("pending", "approved")
        if state.state != known.get(request.id) and (is_open or request.id in known):
            screen.print_table([[format_time(clock.now()), *_request_row(ledger, request, state)]])
        known[request.id] = state.state
        if is_open:
            waiting.append(request)
    return waiting


# --- answering requests


def _answer_request(given: argparse.Namespace, screen: Screen) -> int:
    """Show the whole request, then sign and record the person's answer to exactly what was shown."""
    from aver.gate.approvals import WHOLE_LINES, approve, deny, escalate, find_request, load_request_state

    with _open_ledger(given) as ledger:
        request = find_request(ledger, given.request)
        identity = given.identity or _find_only_approver(ledger, request)
        chosen, rule = _read_choice(ledger, request, identity, given)
        state = load_request_state(ledger, request)
        display = {**chosen, "rule": rule.text.rstrip()} if rule else chosen
        shown = _build_display(ledger, request, state, WHOLE_LINES, given.because, **display)
        _print_display(StderrScreen() if given.json else screen, shown)
        sys.stdout.flush()
        if shown.cut and not given.although_cut:
            raise Refused(
                "CUT",
                f"the request is too long: {plural(shown.cut, 'line')} not shown",
                advice="ask the agent for a smaller change, or give --although-cut",
            )
        person = _find_signer(ledger, identity, given)
        answer: Callable[..., RequestState] = {"approve": approve, "deny": deny, "escalate": escalate}[given.action]
        state = answer(ledger, request, person, shown=shown.text, comment=given.because, **chosen)
        is_written = False
        if rule is not None and state.state == "approved":
            from aver.gate.policy.rule_changes import allow_for_good

            allow_for_good(ledger, rule, str(_read_action(ledger, request)["workspace"]), identity, request)
            is_written = True
        if given.json:
            told = {"decision": given.action, "approver": identity, "rule": rule.id if rule and is_written else None}
            print_json({**_request_to_dict(ledger, request, state), **told})
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

    action = _read_action(ledger, request)
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


def _find_signer(ledger: Ledger, identity: str, given: argparse.Namespace) -> Person:
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


# --- the approvers


def _list_approvers(given: argparse.Namespace, screen: Screen) -> int:
    from aver.gate.approvals import load_approval_setup
    from aver.gate.approvals.rules import SYSTEM_FILE, approvals_to_toml

    with _open_ledger(given) as ledger:
        setup = load_approval_setup(ledger)
    if given.toml:
        if given.json:
            raise Usage("--toml and --json are two different outputs", advice="choose one")
        sys.stdout.write(approvals_to_toml(setup.rules, setup.roster))
        return 0
    if given.json:
        roster = {
            "anchor": setup.roster.anchor,
            "approvers": [
                {
                    "identity": approver.identity,
                    "fingerprint": approver.fingerprint,
                    "independent": approver.is_independent,
                    **approver.to_dict(),
                }
                for approver in setup.roster.approvers.values()
            ],
            "levels": [level.to_dict() for level in setup.rules.levels],
            "expires": setup.rules.expires,
            "ignored": list(setup.roster.ignored),
        }
        print_json(roster)
        return 0
    if not setup.roster.approvers:
        StderrScreen().print_note("there are no approvers: every action that needs approval is denied")
    rows: list[list[LinePart]] = [
        [
            approver.identity,
            approver.fingerprint,
            _custody_text(approver),
            ", ".join(_approval_levels(setup, approver.identity)),
        ]
        for approver in setup.roster.approvers.values()
    ]
    screen.print_table(rows, header=("person", "key", "key is kept", "decides on"))
    source = "this ledger's roster" if setup.roster.anchor == "ledger" else str(SYSTEM_FILE)
    StderrScreen().print_note(f"according to {source}")
    for words in setup.roster.ignored:
        StderrScreen().print_note(f"ignored, {words}")
    return 0


def _custody_text(approver: Approver) -> StyledText:
    kept = {"passphrase": "under a passphrase", "ssh-agent": "in ssh-agent", "file": "in a plain file"}
    words = kept.get(approver.custody, "")
    if approver.custody == "passkey":
        endorsers = ", ".join(endorser.identity for endorser in approver.endorsers) or "nobody"
        words = f"as a passkey of {approver.to_dict()['passkey']['rp_id']}, endorsed by {endorsers}"
    return StyledText(words, "good" if approver.is_independent else "warn")


def _approval_levels(setup: ApprovalSetup, identity: str) -> list[str]:
    return [
        f"level {number}"
        for number, level in enumerate(setup.rules.levels, 1)
        if not level.approvers or identity in level.approvers
    ]


def _enrol_person(given: argparse.Namespace, screen: Screen) -> int:
    from aver.gate.approvals import enrol_approver

    with _open_ledger(given, create=True) as ledger:
        newcomer = _find_signer(ledger, given.identity, given)
        record = enrol_approver(ledger, newcomer, None if given.by is None else _find_signer(ledger, given.by, given))
        return _print_roster_change(given, screen, record.to_dict()["outcome"]["summary"], record.id)


CODE_BYTES_MAX = 64 * 1024
"""Most bytes that are read as a code from standard input. A code has some 1,500."""


def _endorse_passkey(given: argparse.Namespace, screen: Screen) -> int:
    """Show the passkey that a page has made, then sign its enrolment and record it."""
    from aver.gate.approvals import endorse_passkey, read_enrolment_code, read_passkey

    code = sys.stdin.read(CODE_BYTES_MAX) if given.code == "-" else given.code
    statement = read_enrolment_code("".join(code.split()))
    with _open_ledger(given) as ledger:
        approver = read_passkey(ledger, statement)
        passkey = approver.to_dict()["passkey"]
        shown = StderrScreen()
        shown.print_line("You allow this passkey to approve. Compare its fingerprint with the one on the page.")
        for name, value in (
            ("person", approver.identity),
            ("fingerprint", approver.fingerprint),
            ("site", passkey["rp_id"]),
            ("algorithm", passkey["alg"]),
            ("ledger", f"{ledger.id}, tenant {ledger.tenant}"),
        ):
            shown.print_line(f"  {name:<12} {value}")
        record = endorse_passkey(ledger, statement, _find_signer(ledger, given.by, given))
        given.identity = approver.identity
        return _print_roster_change(given, screen, record.to_dict()["outcome"]["summary"], record.id)


def _withdraw_person(given: argparse.Namespace, screen: Screen) -> int:
    from aver.gate.approvals import load_roster, withdraw_approver

    with _open_ledger(given) as ledger:
        listed = load_roster(ledger).approvers.get(given.identity)
        if given.by is None and listed is not None and listed.custody == "passkey":
            raise Usage(
                f"{given.identity} has a passkey, which cannot sign here", advice="say who signs: --by person:NAME"
            )
        record = withdraw_approver(ledger, given.identity, _find_signer(ledger, given.by or given.identity, given))
        return _print_roster_change(given, screen, record.to_dict()["outcome"]["summary"], record.id)


def _print_roster_change(given: argparse.Namespace, screen: Screen, summary: str, record_id: str) -> int:
    if given.json:
        print_json({"identity": given.identity, "summary": summary, "record": record_id})
    else:
        screen.print_line(summary)
    return 0


ACTIONS: Mapping[str, Callable[[argparse.Namespace, Screen], int]] = {
    "list": _list_requests,
    "show": _show_request,
    "approve": _answer_request,
    "deny": _answer_request,
    "escalate": _answer_request,
    "watch": _watch_requests,
    "approvers": _list_approvers,
    "enrol": _enrol_person,
    "endorse": _endorse_passkey,
    "withdraw": _withdraw_person,
}

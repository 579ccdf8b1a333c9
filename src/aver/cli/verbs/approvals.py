"""`aver approvals`: what waits for a person, the answer that the person signs, and who may answer.

What `aver approvals` does, action by action.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from aver import clock
from aver.cli.options import Parser, Usage, add_json, add_ledger, add_tenant, parse_count
from aver.cli.passphrase import ask_passphrase, has_terminal
from aver.cli.terminal import LinePart, Screen, StderrScreen, StyledText, format_time, print_json
from aver.errors import AverError, BadInput, NotFound, Refused
from aver.gate.approvals import (
    GLANCE_LINES,
    WHOLE_LINES,
    ApprovalRequest,
    ApprovalSetup,
    Person,
    RequestDisplay,
    RequestState,
    approve,
    deny,
    enrol_approver,
    escalate,
    find_person,
    find_request,
    load_approval_setup,
    load_request_state,
    load_request_states,
    recent_requests,
    render_request,
    withdraw_approver,
)
from aver.gate.approvals.request_records import approvals_chain, summarise_action
from aver.gate.approvals.rules import SYSTEM_FILE, approvals_to_toml
from aver.ledger import Ledger, open_ledger
from aver.text import escape_invisible, plural

__all__ = ["ACTIONS", "EXAMPLES", "add_arguments", "run"]


EXAMPLES = """\
  aver keys new person:ada               once: a key under a passphrase
  aver approvals enrol person:ada        once: may approve in this ledger
  aver approvals list
  aver approvals show 3f0c9a1b
  aver approvals approve 3f0c9a1b        shows all of it, then asks for the passphrase
  aver approvals deny 3f0c9a1b --because "not on a Friday"
  aver approvals watch"""

REQUEST_HELP = "the request's id, or its beginning"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=Parser)
    listing = _add_action_parser(actions, "list", "list the requests that wait", "  aver approvals list --json")
    listing.add_argument("--all", action="store_true", help="also those that have ended, of the last seven days")
    show = _add_action_parser(actions, "show", "show one request", "  aver approvals show 3f0c9a1b --all")
    show.add_argument("request", metavar="ID", help=REQUEST_HELP)
    show.add_argument("--all", action="store_true", help="cut nothing")
    _add_answer_parsers(actions)
    _add_action_parser(actions, "watch", "wait, and print requests as they come and end", "  aver approvals watch")
    approvers = _add_action_parser(actions, "approvers", "list who may approve", "  aver approvals approvers --toml")
    approvers.add_argument(
        "--toml", action="store_true", help="as a file for /etc/aver, where the agent's user cannot change it"
    )
    _add_roster_parsers(actions)


def run(given: argparse.Namespace, screen: Screen) -> int:

    return ACTIONS[given.action](given, screen)


def _add_action_parser(actions: Any, name: str, summary: str, examples: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = actions.add_parser(name, help=summary, summary=summary, examples=examples)
    add_ledger(parser)
    add_tenant(parser)
    add_json(parser)
    return parser


def _add_answer_parsers(actions: Any) -> None:
    for name, summary in (
        ("approve", "approve a request, once, for exactly the action that is shown"),
        ("deny", "deny a request"),
        ("escalate", "pass a request on to the next level"),
    ):
        answer = _add_action_parser(actions, name, summary, f'  aver approvals {name} 3f0c9a1b --because "as agreed"')
        answer.add_argument("request", metavar="ID", help=REQUEST_HELP)
        answer.add_argument("--as", dest="identity", metavar="IDENTITY", help="person:NAME, where several could")
        answer.add_argument("--because", default="", metavar="TEXT", help="a reason, recorded with the answer")
        answer.add_argument("--although-cut", action="store_true", help="answer even if not all of it could be shown")
        answer.add_argument("--yes", action="store_true", help="do not ask before ssh-agent signs")
        _add_passphrase_option(answer)


def _add_roster_parsers(actions: Any) -> None:
    examples = "  aver approvals enrol person:ada\n  aver approvals enrol person:ben --by person:ada"
    enrol = _add_action_parser(
        actions, "enrol", "let a person approve; all but the first need one who already may", examples
    )
    enrol.add_argument("identity", metavar="IDENTITY", help="person:NAME, with a key here")
    enrol.add_argument("--by", metavar="IDENTITY", help="an approver who signs as well")
    _add_passphrase_option(enrol)
    summary = "let a person approve no longer"
    withdraw = _add_action_parser(actions, "withdraw", summary, "  aver approvals withdraw person:ben --by person:ada")
    withdraw.add_argument("identity", metavar="IDENTITY", help="person:NAME")
    withdraw.add_argument("--by", metavar="IDENTITY", help="the approver who signs (default: the person)")
    _add_passphrase_option(withdraw)


def _add_passphrase_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--passphrase-fd",
        type=parse_count,
        metavar="N",
        help="read passphrases, a line each, from this file descriptor",
    )


POLL_SECONDS = 0.5
"""How often `watch` looks."""

_STATE_STYLES = {"pending": "warn", "approved": "good", "used": "good", "denied": "bad", "expired": "dim"}
_VOTE_FUNCTIONS = {"approve": approve, "deny": deny, "escalate": escalate}


def _open_ledger(given: argparse.Namespace, *, create: bool = False) -> Ledger:
    return open_ledger(given.ledger, tenant=given.tenant, create=create)


# --- looking


def _list_requests(given: argparse.Namespace, screen: Screen) -> int:
    with _open_ledger(given) as ledger:
        now = clock.now()
        recent = [request for request in recent_requests(ledger) if given.all or request.expires >= now]
        found = zip(recent, load_request_states(ledger, recent), strict=True)
        listed = [one for one in found if given.all or one[1].state in ("pending", "approved")]
        if given.json:
            print_json({"requests": [_request_to_dict(ledger, *one) for one in listed]})
            return 0
        if not listed:
            StderrScreen().print_note("nothing waits for anybody")
        header = ("request", "state", "expires (UTC)", "risk", "what")
        screen.print_table([_request_row(ledger, *one) for one in listed], header=header)
    return 0


def _request_row(ledger: Ledger, request: ApprovalRequest, standing: RequestState) -> list[LinePart]:
    risk = request.content.get("risk")
    score = f"{risk['score']:.2f}" if isinstance(risk, dict) and isinstance(risk.get("score"), int | float) else "-"
    state = StyledText(standing.state, _STATE_STYLES[standing.state])
    return [request.id[:8], state, format_time(request.expires), score, _request_summary(ledger, request)]


def _request_summary(ledger: Ledger, request: ApprovalRequest) -> str:
    try:
        return escape_invisible(summarise_action(_read_action(ledger, request)))
    except AverError as error:
        return f"cannot be shown: {error.message}"


def _show_request(given: argparse.Namespace, screen: Screen) -> int:
    with _open_ledger(given) as ledger:
        request = find_request(ledger, given.request)
        standing = load_request_state(ledger, request)
        shown = _build_display(ledger, request, standing, WHOLE_LINES if given.all else GLANCE_LINES, "")
        if given.json:
            print_json({**_request_to_dict(ledger, request, standing), "shown": shown.text, "cut": shown.cut})
            return 0
        _print_display(screen, shown)
        if shown.cut:
            StderrScreen().print_note(f"{plural(shown.cut, 'line')} not shown; --all shows them")
    return 0


def _build_display(
    ledger: Ledger, request: ApprovalRequest, standing: RequestState, limit: int, comment: str
) -> RequestDisplay:
    action = _read_action(ledger, request)
    apart = request.blob_digest("diff")
    diff = request.read_diff(None if apart is None else ledger.blob(apart), action)
    return render_request(request, action, diff, standing, limit=limit, comment=comment)


def _read_action(ledger: Ledger, request: ApprovalRequest) -> dict[str, Any]:
    apart = request.blob_digest("action")
    return request.read_action(None if apart is None else ledger.blob(apart))


def _print_display(screen: Screen, shown: RequestDisplay) -> None:
    for line in shown.lines:
        screen.print_line(StyledText(line.text, line.style) if line.style else line.text)


def _request_to_dict(ledger: Ledger, request: ApprovalRequest, standing: RequestState) -> dict[str, Any]:
    return {
        "request": request.id,
        "state": standing.state,
        "reason": standing.reason,
        "level": standing.level,
        "approved_by": list(standing.approvers),
        "escalation": standing.escalation,
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
            for decided, problem in standing.uncounted
        ],
    }


def _watch_requests(given: argparse.Namespace, screen: Screen) -> int:
    if given.json:
        raise Usage("watch prints lines as they come", advice="leave out --json")
    with _open_ledger(given) as ledger:
        known: dict[str, str] = {}
        waiting: list[ApprovalRequest] = []
        head = None
        while True:
            now = ledger.head(approvals_chain(ledger.tenant))
            if now != head:
                head = now
                waiting += [one for one in recent_requests(ledger) if one.id not in known]
                waiting = _update_waiting(ledger, waiting, known, screen)
            elif any(request.expires < clock.now() for request in waiting):
                waiting = _update_waiting(ledger, waiting, known, screen)
            sys.stdout.flush()
            time.sleep(POLL_SECONDS)


def _update_waiting(
    ledger: Ledger, requests: list[ApprovalRequest], known: dict[str, str], screen: Screen
) -> list[ApprovalRequest]:
    """Print what has changed, and give back what may still change. What ended before we came is not news."""
    waiting = []
    for request, standing in zip(requests, load_request_states(ledger, requests), strict=True):
        is_open = standing.state in ("pending", "approved")
        if standing.state != known.get(request.id) and (is_open or request.id in known):
            screen.print_table([[format_time(clock.now()), *_request_row(ledger, request, standing)]])
        known[request.id] = standing.state
        if is_open:
            waiting.append(request)
    return waiting


# --- answering


def _answer_request(given: argparse.Namespace, screen: Screen) -> int:
    with _open_ledger(given) as ledger:
        request = find_request(ledger, given.request)
        identity = given.identity or _find_only_approver(ledger, request)
        shown = _build_display(ledger, request, load_request_state(ledger, request), WHOLE_LINES, given.because)
        _print_display(StderrScreen() if given.json else screen, shown)
        sys.stdout.flush()
        if shown.cut and not given.although_cut:
            raise Refused(
                "CUT",
                f"{plural(shown.cut, 'line')} of the request are too many to show",
                advice="ask for a smaller change, or give --although-cut",
            )
        who = _find_signer(ledger, identity, given)
        standing = _VOTE_FUNCTIONS[given.action](ledger, request, who, shown=shown.text, comment=given.because)
        if given.json:
            print_json({**_request_to_dict(ledger, request, standing), "decision": given.action, "approver": identity})
            return 0
        words = f"{standing.state}{f': {standing.reason}' if standing.reason else ''}"
        screen.print_line(
            f"recorded as {given.action} by {identity}; the request is ", StyledText(escape_invisible(words), "strong")
        )
        if standing.escalation:
            screen.print_line(StyledText(escape_invisible(standing.escalation), "warn"))
    return 0


def _find_only_approver(ledger: Ledger, request: ApprovalRequest) -> str:
    """The person who decides this and whose key is here, if there is just one."""
    ring = ledger.keys.ring()
    able = [
        identity
        for identity, approver in request.approvers.items()
        if (entry := ring.active(identity)) is not None and entry.key == approver.key
    ]
    if len(able) == 1:
        return able[0]
    if able:
        raise Usage(f"{', '.join(able)} could all answer this", advice=f"say who: --as {able[0]}")
    listed = ", ".join(request.approvers)
    raise NotFound(f"no key of those who decide this is here: {listed}", advice="answer where the key is")


def _find_signer(ledger: Ledger, identity: str, given: argparse.Namespace) -> Person:
    who = find_person(ledger.keys, identity, lambda: ask_passphrase(identity, given.passphrase_fd))
    if who.custody != "passphrase" and not getattr(given, "yes", True):
        _confirm(f"Sign as {identity} with the key in {who.custody}?")
    return who


def _confirm(question: str) -> None:
    """The pause that typing a passphrase would have been."""
    if not (has_terminal() and sys.stdin.isatty()):
        raise BadInput("there is no terminal to ask at", advice="give --yes if you have seen what is to be signed")
    sys.stderr.write(f"{question} (yes/no) ")
    sys.stderr.flush()
    if sys.stdin.readline(16).strip() != "yes":
        raise Refused("NOT_CONFIRMED", "nothing was signed")


# --- the roster


def _list_approvers(given: argparse.Namespace, screen: Screen) -> int:
    with _open_ledger(given) as ledger:
        now = load_approval_setup(ledger)
    if given.toml:
        if given.json:
            raise Usage("--toml and --json are two different outputs", advice="choose one")
        sys.stdout.write(approvals_to_toml(now.rules, now.roster))
        return 0
    if given.json:
        print_json(_roster_to_dict(now))
        return 0
    if not now.roster.approvers:
        StderrScreen().print_note("nobody is enrolled: whatever needs a person's approval is denied")
    rows: list[list[LinePart]] = [
        [one.identity, one.fingerprint, _custody_text(one.custody), ", ".join(_approval_levels(now, one.identity))]
        for one in now.roster.approvers.values()
    ]
    screen.print_table(rows, header=("person", "key", "kept", "decides on"))
    source = "this ledger's roster" if now.roster.anchor == "ledger" else str(SYSTEM_FILE)
    StderrScreen().print_note(f"according to {source}")
    for words in now.roster.ignored:
        StderrScreen().print_note(f"ignored, {words}")
    return 0


def _custody_text(custody: str) -> StyledText:
    words = {"passphrase": "under a passphrase", "ssh-agent": "in ssh-agent", "file": "in a plain file"}
    return StyledText(words[custody], "warn" if custody == "file" else "good")


def _approval_levels(now: ApprovalSetup, identity: str) -> list[str]:
    return [
        f"level {number}"
        for number, level in enumerate(now.rules.levels, 1)
        if not level.approvers or identity in level.approvers
    ]


def _roster_to_dict(now: ApprovalSetup) -> dict[str, Any]:
    return {
        "anchor": now.roster.anchor,
        "approvers": [
            {"identity": one.identity, "fingerprint": one.fingerprint, **one.to_dict()}
            for one in now.roster.approvers.values()
        ],
        "levels": [level.to_dict() for level in now.rules.levels],
        "expires": now.rules.expires,
        "ignored": list(now.roster.ignored),
    }


def _enrol_person(given: argparse.Namespace, screen: Screen) -> int:
    with _open_ledger(given, create=True) as ledger:
        newcomer = _find_signer(ledger, given.identity, given)
        record = enrol_approver(ledger, newcomer, None if given.by is None else _find_signer(ledger, given.by, given))
        return _print_roster_change(given, screen, record.to_dict()["outcome"]["summary"], record.id)


def _withdraw_person(given: argparse.Namespace, screen: Screen) -> int:
    with _open_ledger(given) as ledger:
        record = withdraw_approver(ledger, given.identity, _find_signer(ledger, given.by or given.identity, given))
        return _print_roster_change(given, screen, record.to_dict()["outcome"]["summary"], record.id)


def _print_roster_change(given: argparse.Namespace, screen: Screen, did: str, record_id: str) -> int:
    if given.json:
        print_json({"identity": given.identity, "summary": did, "record": record_id})
    else:
        screen.print_line(did)
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
    "withdraw": _withdraw_person,
}

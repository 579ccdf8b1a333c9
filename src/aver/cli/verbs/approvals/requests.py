"""`aver approvals list`, `show` and `watch`: the requests, and how a request is shown to a person."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from aver import clock
from aver.cli.options import Usage
from aver.cli.terminal import LinePart, Screen, StderrScreen, StyledText, format_time, print_json
from aver.errors import AverError
from aver.text import escape_invisible, plural

# The gate and the ledger are imported where they are used, so that `--help` does not load them.
if TYPE_CHECKING:
    from aver.gate.approvals import ApprovalRequest, RequestDisplay, RequestState
    from aver.ledger import Ledger

POLL_SECONDS = 0.5
"""How often `watch` looks for changes."""

_STATE_STYLES = {
    "pending": "warn",
    "approved": "good",
    "used": "good",
    "denied": "bad",
    "expired": "dim",
    "closed": "dim",
}


def open_ledger_of(given: argparse.Namespace, *, create: bool = False) -> Ledger:
    from aver.ledger import open_ledger

    return open_ledger(given.ledger, tenant=given.tenant, create=create)


def list_requests(given: argparse.Namespace, screen: Screen) -> int:
    from aver.gate.approvals import load_approval_setup, load_request_states, recent_requests

    with open_ledger_of(given) as ledger:
        now = clock.now()
        recent = [request for request in recent_requests(ledger) if given.all or request.expires >= now]
        found = zip(recent, load_request_states(ledger, recent), strict=True)
        listed = [(request, state) for request, state in found if given.all or state.state in ("pending", "approved")]
        if given.json:
            print_json({"requests": [request_to_dict(ledger, request, state) for request, state in listed]})
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
        return escape_invisible(summarise_action(read_action(ledger, request)))
    except AverError as error:
        return f"cannot be shown: {error.message}"


def show_request(given: argparse.Namespace, screen: Screen) -> int:
    from aver.gate.approvals import GLANCE_LINES, WHOLE_LINES, find_request, load_request_state

    with open_ledger_of(given) as ledger:
        request = find_request(ledger, given.request)
        state = load_request_state(ledger, request)
        shown = build_display(ledger, request, state, WHOLE_LINES if given.all else GLANCE_LINES, "")
        if given.json:
            print_json({**request_to_dict(ledger, request, state), "shown": shown.text, "cut": shown.cut})
            return 0
        print_display(screen, shown)
        if shown.cut:
            StderrScreen().print_note(f"{plural(shown.cut, 'line')} not shown; --all shows them")
    return 0


def build_display(
    ledger: Ledger, request: ApprovalRequest, state: RequestState, limit: int, comment: str, **chosen: Any
) -> RequestDisplay:
    from aver.gate.approvals import render_request

    action = read_action(ledger, request)
    apart = request.blob_digest("diff")  # A large diff is stored as a blob.
    diff = request.read_diff(None if apart is None else ledger.blob(apart), action)
    shown = render_request(request, action, diff, state, limit=limit, comment=comment, **chosen)
    if action.get("tool") != "CommitSkillInstall" or not action.get("request_sha256"):
        return shown
    # A digest says nothing to a person. The lines are part of the text that the person signs.
    from aver.gate.approvals.display import DisplayLine
    from aver.gateway.settings import read_gateway_settings
    from aver.gateway.skills.shown_package import show_package
    from aver.gateway.skills.skill_store import SkillStore

    skills = read_gateway_settings(ledger.config).effects.skills
    store, named = SkillStore(ledger.config.home, skills), action.get("arguments")
    digest = str(named.get("skill_digest", "")) if isinstance(named, dict) else ""
    lines = show_package(store, digest, skills.ioc_domains)
    return replace(shown, lines=(*shown.lines, *map(DisplayLine, lines)))


def read_action(ledger: Ledger, request: ApprovalRequest) -> dict[str, Any]:
    return request.read_action(ledger.blob)


def print_display(screen: Screen, shown: RequestDisplay) -> None:
    for line in shown.lines:
        screen.print_line(StyledText(line.text, line.style) if line.style else line.text)


def request_to_dict(ledger: Ledger, request: ApprovalRequest, state: RequestState) -> dict[str, Any]:
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
        "action": read_action(ledger, request),
        "risk": request.content["risk"],
        "reasons": request.content["reasons"],
        "rules": request.content["rules"],
        "levels": [level.to_dict() for level in request.levels],
        "uncounted": [
            {"sequence": decided.sequence, "code": problem.code, "words": problem.words}
            for decided, problem in state.uncounted
        ],
    }


def watch_requests(given: argparse.Namespace, screen: Screen) -> int:
    from aver.gate.approvals import recent_requests
    from aver.gate.approvals.request_records import approvals_chain

    if given.json:
        raise Usage("watch cannot be combined with --json", advice="leave out --json")
    with open_ledger_of(given) as ledger:
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

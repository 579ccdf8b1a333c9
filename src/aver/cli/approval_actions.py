"""What `aver approvals` does, action by action."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from aver import clock
from aver.cli.options import Usage
from aver.cli.output import Errors, Painted, Part, Screen, plural, print_json, short_time
from aver.cli.passphrases import ask_passphrase, has_terminal
from aver.errors import AverError, BadInput, NotFound, Refused
from aver.gate.approvals import (
    GLANCE,
    WHOLE,
    InForce,
    Person,
    Request,
    Shown,
    Standing,
    approve,
    deny,
    describe,
    enrol,
    escalate,
    find_person,
    find_request,
    in_force,
    recent_requests,
    standing_of,
    standings_of,
    withdraw,
)
from aver.gate.approvals.opening import approvals_chain, summary_of
from aver.gate.approvals.plain import plain
from aver.gate.approvals.system import SYSTEM_FILE, as_toml
from aver.ledger import Ledger, open_ledger

__all__ = ["ACTIONS"]

POLL_SECONDS = 0.5
"""How often `watch` looks."""

_STYLES = {"pending": "warn", "approved": "good", "used": "good", "denied": "bad", "expired": "dim"}
_ANSWERS = {"approve": approve, "deny": deny, "escalate": escalate}


def _opened(given: argparse.Namespace, *, create: bool = False) -> Ledger:
    return open_ledger(given.ledger, tenant=given.tenant, create=create)


# --- looking


def _list(given: argparse.Namespace, screen: Screen) -> int:
    with _opened(given) as ledger:
        now = clock.now()
        recent = [request for request in recent_requests(ledger) if given.all or request.expires >= now]
        found = zip(recent, standings_of(ledger, recent), strict=True)
        listed = [one for one in found if given.all or one[1].state in ("pending", "approved")]
        if given.json:
            print_json({"requests": [_described(ledger, *one) for one in listed]})
            return 0
        if not listed:
            Errors().note("nothing waits for anybody")
        header = ("request", "state", "expires (UTC)", "risk", "what")
        screen.table([_row(ledger, *one) for one in listed], header=header)
    return 0


def _row(ledger: Ledger, request: Request, standing: Standing) -> list[Part]:
    risk = request.content.get("risk")
    score = f"{risk['score']:.2f}" if isinstance(risk, dict) and isinstance(risk.get("score"), int | float) else "-"
    state = Painted(standing.state, _STYLES[standing.state])
    return [request.id[:8], state, short_time(request.expires), score, _summary(ledger, request)]


def _summary(ledger: Ledger, request: Request) -> str:
    try:
        return plain(summary_of(_action(ledger, request)))
    except AverError as error:
        return f"cannot be shown: {error.message}"


def _show(given: argparse.Namespace, screen: Screen) -> int:
    with _opened(given) as ledger:
        request = find_request(ledger, given.request)
        standing = standing_of(ledger, request)
        shown = _shown(ledger, request, standing, WHOLE if given.all else GLANCE, "")
        if given.json:
            print_json({**_described(ledger, request, standing), "shown": shown.text, "cut": shown.cut})
            return 0
        _print_shown(screen, shown)
        if shown.cut:
            Errors().note(f"{plural(shown.cut, 'line')} not shown; --all shows them")
    return 0


def _shown(ledger: Ledger, request: Request, standing: Standing, limit: int, comment: str) -> Shown:
    action = _action(ledger, request)
    apart = request.blob_of("diff")
    diff = request.diff_in(None if apart is None else ledger.blob(apart), action)
    return describe(request, action, diff, standing, limit=limit, comment=comment)


def _action(ledger: Ledger, request: Request) -> dict[str, Any]:
    apart = request.blob_of("action")
    return request.action_in(None if apart is None else ledger.blob(apart))


def _print_shown(screen: Screen, shown: Shown) -> None:
    for line in shown.lines:
        screen.line(Painted(line.text, line.style) if line.style else line.text)


def _described(ledger: Ledger, request: Request, standing: Standing) -> dict[str, Any]:
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
        "summary": _summary(ledger, request),
        "action": _action(ledger, request),
        "risk": request.content["risk"],
        "reasons": request.content["reasons"],
        "rules": request.content["rules"],
        "levels": [level.to_dict() for level in request.levels],
        "uncounted": [
            {"sequence": decided.sequence, "code": problem.code, "words": problem.words}
            for decided, problem in standing.uncounted
        ],
    }


def _watch(given: argparse.Namespace, screen: Screen) -> int:
    if given.json:
        raise Usage("watch prints lines as they come", advice="leave out --json")
    with _opened(given) as ledger:
        known: dict[str, str] = {}
        waiting: list[Request] = []
        head = None
        while True:
            now = ledger.head(approvals_chain(ledger.tenant))
            if now != head:
                head = now
                waiting += [one for one in recent_requests(ledger) if one.id not in known]
                waiting = _still_waiting(ledger, waiting, known, screen)
            elif any(request.expires < clock.now() for request in waiting):
                waiting = _still_waiting(ledger, waiting, known, screen)
            sys.stdout.flush()
            time.sleep(POLL_SECONDS)


def _still_waiting(ledger: Ledger, requests: list[Request], known: dict[str, str], screen: Screen) -> list[Request]:
    """Print what has changed, and give back what may still change. What ended before we came is not news."""
    waiting = []
    for request, standing in zip(requests, standings_of(ledger, requests), strict=True):
        is_open = standing.state in ("pending", "approved")
        if standing.state != known.get(request.id) and (is_open or request.id in known):
            screen.table([[short_time(clock.now()), *_row(ledger, request, standing)]])
        known[request.id] = standing.state
        if is_open:
            waiting.append(request)
    return waiting


# --- answering


def _answer(given: argparse.Namespace, screen: Screen) -> int:
    with _opened(given) as ledger:
        request = find_request(ledger, given.request)
        identity = given.identity or _only_one(ledger, request)
        shown = _shown(ledger, request, standing_of(ledger, request), WHOLE, given.because)
        _print_shown(Errors() if given.json else screen, shown)
        sys.stdout.flush()
        if shown.cut and not given.although_cut:
            raise Refused(
                "CUT",
                f"{plural(shown.cut, 'line')} of the request are too many to show",
                advice="ask for a smaller change, or give --although-cut",
            )
        who = _person(ledger, identity, given)
        standing = _ANSWERS[given.action](ledger, request, who, shown=shown.text, comment=given.because)
        if given.json:
            print_json({**_described(ledger, request, standing), "decision": given.action, "approver": identity})
            return 0
        words = f"{standing.state}{f': {standing.reason}' if standing.reason else ''}"
        screen.line(f"recorded as {given.action} by {identity}; the request is ", Painted(plain(words), "strong"))
        if standing.escalation:
            screen.line(Painted(plain(standing.escalation), "warn"))
    return 0


def _only_one(ledger: Ledger, request: Request) -> str:
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


def _person(ledger: Ledger, identity: str, given: argparse.Namespace) -> Person:
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


def _approvers(given: argparse.Namespace, screen: Screen) -> int:
    with _opened(given) as ledger:
        now = in_force(ledger)
    if given.toml:
        if given.json:
            raise Usage("--toml and --json are two different outputs", advice="choose one")
        sys.stdout.write(as_toml(now.rules, now.roster))
        return 0
    if given.json:
        print_json(_roster(now))
        return 0
    if not now.roster.approvers:
        Errors().note("nobody is enrolled: whatever needs a person's approval is denied")
    rows: list[list[Part]] = [
        [one.identity, one.fingerprint, _kept(one.custody), ", ".join(_levels(now, one.identity))]
        for one in now.roster.approvers.values()
    ]
    screen.table(rows, header=("person", "key", "kept", "decides on"))
    source = "this ledger's roster" if now.roster.anchor == "ledger" else str(SYSTEM_FILE)
    Errors().note(f"according to {source}")
    for words in now.roster.ignored:
        Errors().note(f"ignored, {words}")
    return 0


def _kept(custody: str) -> Painted:
    words = {"passphrase": "under a passphrase", "ssh-agent": "in ssh-agent", "file": "in a plain file"}
    return Painted(words[custody], "warn" if custody == "file" else "good")


def _levels(now: InForce, identity: str) -> list[str]:
    return [
        f"level {number}"
        for number, level in enumerate(now.rules.levels, 1)
        if not level.approvers or identity in level.approvers
    ]


def _roster(now: InForce) -> dict[str, Any]:
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


def _enrol(given: argparse.Namespace, screen: Screen) -> int:
    with _opened(given, create=True) as ledger:
        newcomer = _person(ledger, given.identity, given)
        record = enrol(ledger, newcomer, None if given.by is None else _person(ledger, given.by, given))
        return _tell(given, screen, record.to_dict()["outcome"]["summary"], record.id)


def _withdraw(given: argparse.Namespace, screen: Screen) -> int:
    with _opened(given) as ledger:
        record = withdraw(ledger, given.identity, _person(ledger, given.by or given.identity, given))
        return _tell(given, screen, record.to_dict()["outcome"]["summary"], record.id)


def _tell(given: argparse.Namespace, screen: Screen, did: str, record_id: str) -> int:
    if given.json:
        print_json({"identity": given.identity, "summary": did, "record": record_id})
    else:
        screen.line(did)
    return 0


ACTIONS: Mapping[str, Callable[[argparse.Namespace, Screen], int]] = {
    "list": _list,
    "show": _show,
    "approve": _answer,
    "deny": _answer,
    "escalate": _answer,
    "watch": _watch,
    "approvers": _approvers,
    "enrol": _enrol,
    "withdraw": _withdraw,
}

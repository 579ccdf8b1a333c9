"""`aver protocol join`: takes a role with a key of this home, in a trace here or by an invitation from elsewhere."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aver.cli.options import Usage, add_force, add_json, add_ledger, add_tenant
from aver.cli.terminal import Screen, StderrScreen, print_json
from aver.cli.verbs.protocol.invite import ROLES
from aver.cli.verbs.protocol.trace_access import (
    add_agent,
    event_to_dict,
    open_session,
    print_event,
    read_agent,
)
from aver.errors import BadInput

if TYPE_CHECKING:
    from aver.keys import Statement

EXAMPLES = """\
  aver protocol join invitation.json --role critic --as agent:carol --out carol.json
  aver protocol join 5d2e --role auditor --as agent:dora           in a trace of this ledger that has begun
  aver protocol join 5d2e --role critic --as agent:carol --out carol.json      signed for the operator to accept

A key is made for the agent if this home has none. It stays here."""

INVITATION_MAX = 1024 * 1024
INVITATION_KEYS = frozenset({"v", "ledger", "tenant", "trace", "chain", "role", "profile", "task", "task_sha256"})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("trace", metavar="FILE|TRACE", help="an invitation, or a trace in this ledger")
    parser.add_argument("--role", required=True, choices=ROLES, help="the role to take")
    add_agent(parser)
    parser.add_argument("--out", metavar="FILE", help="write the signed join to this file; append nothing")
    add_force(parser)
    add_ledger(parser)
    add_tenant(parser)
    add_json(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    agent = read_agent(given.agent)
    if os.path.isfile(given.trace):
        return _answer_invitation(given, agent, screen)
    with open_session(given) as session:
        if given.out is not None:
            from aver.protocol.statements import Join, sign_join

            fold = session.fold
            signer = _find_signer(session.ledger.keys, agent, session.ledger.config.post_quantum)
            join = Join(session.place, fold.task_sha256, fold.profile, given.role, agent, signer.public, _now())
            return _write_join(given, sign_join(signer, join), screen)
        event = session.join(agent, given.role)
    if given.json:
        print_json(event_to_dict(event))
    else:
        print_event(screen, event)
    return 0


def _answer_invitation(given: argparse.Namespace, agent: str, screen: Screen) -> int:
    from aver.capsule.json_document import dump_document, read_exactly
    from aver.config import load_config
    from aver.files.regular import open_file, read_limited
    from aver.keys import KeyStore
    from aver.protocol.statements import Join, TracePlace, digest_json, sign_join

    def check_form(data: Any) -> dict[str, Any]:
        if not isinstance(data, dict) or data.keys() != INVITATION_KEYS or not isinstance(data["task"], dict):
            raise BadInput(f"{given.trace} is no invitation", advice="aver protocol invite writes one")
        return data

    with open_file(Path(given.trace)) as file:
        raw = read_limited(file, INVITATION_MAX, given.trace)
    invitation = read_exactly(raw, given.trace, check_form, dump_document)
    if invitation["role"] != given.role:
        raise Usage(f"the invitation is for the role {invitation['role']}, not for {given.role}")
    # The digest is what the key signs. It must be that of the task which the person can read in the file.
    if digest_json(invitation["task"]) != invitation["task_sha256"]:
        raise BadInput(f"{given.trace} shows another task than the one it asks to sign", advice="do not sign it")
    config = load_config()
    signer = _find_signer(KeyStore(config.home), agent, config.post_quantum)
    place = TracePlace(invitation["ledger"], invitation["tenant"], invitation["chain"])
    digest, profile = invitation["task_sha256"], invitation["profile"]
    join = Join(place, digest, profile, given.role, agent, signer.public, _now())
    if not given.json:
        StderrScreen().print_note(f"task: {invitation['task'].get('objective', '')}")
    if given.out is None:
        raise Usage("give --out FILE for the signed join, and send it to the operator")
    return _write_join(given, sign_join(signer, join), screen)


def _find_signer(keys: Any, agent: str, post_quantum: Any) -> Any:
    return keys.signer(agent, post_quantum=post_quantum)


def _now() -> str:
    from aver import clock

    return clock.now()


def _write_join(given: argparse.Namespace, statement: Statement, screen: Screen) -> int:
    from aver.files.new_file import write_new_file
    from aver.keys.statement import dump_statement

    write_new_file(Path(given.out), dump_statement(statement), force=given.force)
    if given.json:
        print_json({"path": given.out, "statement": statement.to_dict()})
        return 0
    name = os.path.basename(given.out)
    screen.print_line(f"wrote {given.out}: send it to the operator of the trace")
    screen.print_line(f"The operator runs aver protocol run … --join {name}, or aver protocol accept {name}")
    return 0

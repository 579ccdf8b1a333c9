"""Where the gate's rules may come from, so that the agent cannot bring its own.

`[gate] policy` names a directory. Aver uses the rules there only if one of these holds:

1. It lies in `AVER_HOME`, also after all symbolic links are followed.
2. The administrator's `/etc/aver/config.toml` names it.
3. A person who is enrolled as an approver has pinned it: `AVER_HOME/policy-pin.json` holds a statement of purpose
   `policy-pin` that the person's key signed,

       {"v": 1, "ledger": …, "tenant": …, "directory": "/srv/rules", "approver": "person:ada", "at": …}

   The key must be protected by a passphrase, or kept in ssh-agent: with a key in a plain file every program of the
   user could sign.

Any other directory is refused, and then nothing passes. A line in `config.toml` is not enough: a program that can write
that line is not always a person.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aver.config import POLICY_SOURCE, Config
from aver.errors import AverError, BadInput, Refused

if TYPE_CHECKING:
    from aver.gate.approvals.roster import Person
    from aver.keys import Statement
    from aver.ledger import Ledger

PIN_FILE = "policy-pin.json"
PIN_PURPOSE = "policy-pin"

PIN_BYTES_MAX = 64 * 1024
"""Largest pin that is read, in bytes. A post-quantum signature has some 7 KiB."""

_PIN_KEYS = frozenset({"v", "ledger", "tenant", "directory", "approver", "at"})


def require_trusted_source(directory: Path, config: Config, ledger: Ledger | None) -> None:
    """Raise `Refused` unless rules may come from this directory. Without a `ledger` no pin can be checked."""
    if config.source.get(POLICY_SOURCE) is not None or is_inside_home(directory, config.home):
        return
    pin = config.home / PIN_FILE
    why = f"{pin} does not exist"
    if pin.exists() and ledger is None:
        why = f"{pin} can only be checked with the ledger at hand"
    elif pin.exists() and ledger is not None:
        problem = find_pin_problem(pin, directory, ledger)
        if not problem:
            return
        why = f"{pin} does not count: {problem}"
    raise Refused(
        "POLICY_ELSEWHERE",
        f"{config.file}: [gate] policy names {directory}, which is outside {config.home}, and {why}",
        advice=f"move the rules into {config.home}, or let an approver pin them: aver policy pin {directory}",
    )


def is_inside_home(directory: Path, home: Path) -> bool:
    """Whether a directory lies in the home directory, after all links are followed."""
    return Path(os.path.realpath(directory)).is_relative_to(os.path.realpath(home))


def find_pin_problem(pin: Path, directory: Path, ledger: Ledger) -> str:
    """Return why a pin does not allow rules in this directory; empty if it does."""
    from aver.gate.approvals.enrolment import load_approval_setup
    from aver.keys import PublicKey, Ring, check_statement

    try:
        statement = _read_pin(pin)
        content = statement.content
        approver = load_approval_setup(ledger).roster.approvers.get(str(content.get("approver")))
    except AverError as error:
        return error.message
    if statement.purpose != PIN_PURPOSE or content.keys() != _PIN_KEYS or content["v"] != 1:
        return "it is not a pin of rules"
    if (content["ledger"], content["tenant"]) != (ledger.id, ledger.tenant):
        return "it was made for another ledger"
    if content["directory"] != os.path.realpath(directory):
        return f"it pins {content['directory']}"
    if approver is None:
        return f"{content['approver']} is not enrolled as an approver"
    if approver.custody == "file":
        return f"the key of {approver.identity} is in a plain file, with which every program can sign"
    if not isinstance(approver.key, PublicKey):
        return f"{approver.identity} has a passkey, and a passkey pins no rules"
    results = check_statement(statement, Ring.pin((approver.key,)))
    is_signed = any(result.by == approver.fingerprint and result.outcome == "valid" for result in results)
    return "" if is_signed else f"it has no valid signature of {approver.identity}"


def pin_rules(ledger: Ledger, directory: Path, person: Person) -> Path:
    """Pin a directory of rules with a person's key. Returns the file that holds the signed statement.

    Raises `Refused` if the person is not enrolled, or the key is in a plain file.
    """
    from aver.clock import now
    from aver.config import ensure_home
    from aver.files.atomic import replace_file
    from aver.gate.approvals.enrolment import load_approval_setup
    from aver.keys import dump_statement, sign_statement

    enrolled = load_approval_setup(ledger).roster.approvers.get(person.identity)
    if enrolled is None or enrolled.key != person.public:
        advice = f"aver approvals enrol {person.identity}"
        raise Refused("NOT_ENROLLED", f"{person.identity} is not enrolled as an approver", advice=advice)
    if person.custody == "file":
        words = f"the key of {person.identity} is in a plain file, with which every program can sign"
        raise Refused("NOT_INDEPENDENT", words, advice="make a key with a passphrase: aver keys new")
    content: dict[str, Any] = {
        "v": 1,
        "ledger": ledger.id,
        "tenant": ledger.tenant,
        "directory": os.path.realpath(directory),
        "approver": person.identity,
        "at": now(),
    }
    statement = sign_statement(PIN_PURPOSE, content, [person.signer])
    path = ensure_home(ledger.config.home) / PIN_FILE
    replace_file(path, dump_statement(statement))
    return path


def _read_pin(path: Path) -> Statement:
    from aver.files.regular import open_regular, read_limited
    from aver.keys import read_statement_file

    try:
        with open_regular(path, follow=False) as file:
            return read_statement_file(read_limited(file, PIN_BYTES_MAX, path), PIN_FILE)
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from error

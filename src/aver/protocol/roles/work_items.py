"""The work of Aver's own roles: one item is one proposal, one call of a tool, and the claims about its end.

`checks` has an item for each test and linter of the project. `review` has one for a range of commits, and those of
`checks` behind it. Planner, executor and critic make the same items from the workspace and their options, so that each
knows what the others should propose, intend and claim.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from aver.errors import BadInput
from aver.fast_dataclass import dataclass
from aver.protocol.roles.project_checks import CheckOutcome, ProjectCheck, find_checks, read_outcome
from aver.protocol.roles.range_review import DEFAULT_RANGE, REVIEW_TOOL, check_range
from aver.protocol.tools.command_tool import COMMAND
from aver.text import plural

BlobReader = Callable[[str], bytes | None]


class EndedCall(NamedTuple):
    """A call that completed: its id, its exit code, and the digests of its outputs by name."""

    id: str
    exit_code: int | None
    outputs: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkItem:
    """One piece of work."""

    objective: str
    """The words of its proposal. Executor and critic know the item by them."""
    tool: str
    arguments: Mapping[str, Any]
    justification: str
    expected: tuple[Mapping[str, Any], ...]
    """Expected evidence of the proposal."""
    conditions: tuple[Mapping[str, Any], ...]
    """The critic approves on these conditions; without any it just approves."""
    read_claims: Callable[[EndedCall, BlobReader], list[CheckOutcome]]
    """The claims about a call that completed."""


def find_work(use: str, workspace: str, options: Mapping[str, Any]) -> list[WorkItem]:
    """Return the items of a built-in role. Raises `BadInput` where there is nothing to do."""
    if use == "review":
        more = {name: value for name, value in options.items() if name != "range"}
        commits = options.get("range", DEFAULT_RANGE)
        if not isinstance(commits, str):
            raise BadInput("the option range of the role review must be a text, such as main..HEAD")
        check_range(workspace, commits)
        return [_review_item(commits), *map(_check_item, find_checks(workspace, more))]
    checks = find_checks(workspace, options)
    if not checks:
        raise BadInput(
            f"no tests and no linters were found in {workspace}",
            advice='name them in the task: [roles.NAME.options] checks = [{name = "unit", argv = ["make", "test"]}]',
        )
    return list(map(_check_item, checks))


def _check_item(check: ProjectCheck) -> WorkItem:
    def read_claims(call: EndedCall, blob: BlobReader) -> list[CheckOutcome]:
        found = read_outcome(check, execution=call.id, exit_code=call.exit_code, outputs=call.outputs, blob=blob)
        return [] if found is None else [found]

    return WorkItem(
        objective=f"{check.name}: {shlex.join(check.argv)}",
        tool=COMMAND,
        arguments=check.arguments,
        justification=f"its output shows whether {check.name} passes",
        expected=({"check": {"exit_code": ["==", 0]}},),
        conditions=(),
        read_claims=read_claims,
    )


def _review_item(commits: str) -> WorkItem:
    no_secrets = {"check": {"json": {"pointer": "/secrets", "is": ["==", 0]}}}
    return WorkItem(
        objective=f"review {commits}: change, risk, secrets and tests",
        tool=REVIEW_TOOL,
        arguments={"range": commits},
        justification="it reads the commits and changes nothing",
        expected=(),
        conditions=(no_secrets,),
        read_claims=_read_review_claims,
    )


def _read_review_claims(call: EndedCall, blob: BlobReader) -> list[CheckOutcome]:
    digest = call.outputs.get("result")
    try:
        found = json.loads((blob(digest) if digest else None) or b"{}")
        files, added, removed, secrets = (int(found[name]) for name in ("files", "added", "removed", "secrets"))
        touched, risk = bool(found["tests_touched"]), int(found["risk"])
    except (ValueError, KeyError, TypeError):
        return []

    def prove(**values: Any) -> tuple[Mapping[str, Any], ...]:
        return tuple(
            {
                "artifact": digest,
                "execution": call.id,
                "check": {"json": {"pointer": f"/{name}", "is": ["==", value]}},
            }
            for name, value in values.items()
        )

    commits = {"from": found["from"], "to": found["to"]}
    change = f"{found['from'][:12]}..{found['to'][:12]} changes {plural(files, 'file')}: +{added} -{removed} lines"
    spared = "no secret" if not secrets else plural(secrets, "possible secret")
    tests = "the change touches tests" if touched else "the change touches no test"
    return [
        CheckOutcome(change, prove(**commits, files=files, added=added, removed=removed), is_good=True),
        CheckOutcome(f"{spared} on the added lines", prove(secrets=secrets), is_good=not secrets),
        CheckOutcome(tests, prove(tests_touched=touched), is_good=True),
        CheckOutcome(f"estimated risk of a later repair: {risk} of 1000", prove(risk=risk), is_good=True),
    ]

"""The clauses of a contract: everything that it demands, as one list that can be probed and judged.

    filesystem   each prefix can be read or written; each denied one cannot; Aver's home is closed; every mount fits
    network      no route to the internet, no connection to this machine's loopback, own network namespace
    process      each listed program starts; a new one, and one in memory, does not; other processes are not there
    transport    the gateway answers at a listed path; other sockets, files or abstract, do not; none is left over
    assertions   the probes that the contract names itself

A clause has an id, such as `filesystem.deny_read:/home/ada/.ssh`. The smoke report has the answers by these ids; those
of assertions are under the seven names of the reference, and under `assertion.<id>` where a name is taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aver.fast_dataclass import dataclass
from aver.gateway.mediation.contract import ContractAssertion, ExpandedContract

PUBLIC_ADDRESS = "1.1.1.1"
"""An address of the internet. A route to it is looked up; nothing is sent."""

CANARY, FOREIGN_SOCKET, ABSTRACT_SOCKET = "canary", "foreign socket", "abstract socket"

STANDARD_KEYS = {
    "fs_read": "direct_fs_read",
    "internet_get": "direct_internet",
    "http_post": "direct_exfil_post",
    "gateway_act": "gateway_act",
    "gateway_mcp_act": "gateway_mcp_act",
}
EXEC_KEYS = {"/usr/bin/true": "direct_exec_true", "/bin/sh": "direct_exec_sh", "/usr/bin/sh": "direct_exec_sh"}
"""The names of probes in the report of the reference, by the kind of an assertion, and by its program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractClause:
    """One demand of a contract, and the probe that shows whether it is met."""

    id: str
    section: str
    kind: str
    """The kind of the probe: see `inner_program.PROBES`."""
    must_deny: bool
    target: tuple[str, ...] = ()
    may_be_absent: bool = False
    """Whether nothing is demanded where the control outside finds nothing at the path."""


def list_clauses(contract: ExpandedContract) -> list[ContractClause]:
    """Return the clauses of all sections but the assertions, in their order."""
    return [*_list_file_clauses(contract), *_list_network_clauses(contract), *_list_other_clauses(contract)]


def _list_file_clauses(contract: ExpandedContract) -> Iterator[ContractClause]:
    section = "filesystem"
    for kind, paths in (("read", contract.read), ("write", contract.write)):
        for path in paths:
            yield ContractClause(
                id=f"{section}.{kind}:{path}",
                section=section,
                kind=kind,
                must_deny=False,
                target=(path,),
                may_be_absent=True,
            )
    for path in contract.deny_read:
        yield ContractClause(
            id=f"{section}.deny_read:{path}",
            section=section,
            kind="read",
            must_deny=True,
            target=(path,),
            may_be_absent=True,
        )
    for kind in ("read", "write"):
        yield ContractClause(
            id=f"{section}.canary_{kind}", section=section, kind=kind, must_deny=True, target=(CANARY,)
        )
    yield ContractClause(id=f"{section}.mounts", section=section, kind="mounts", must_deny=False)


def _list_network_clauses(contract: ExpandedContract) -> Iterator[ContractClause]:
    section = "network"
    yield ContractClause(
        id=f"{section}.internet", section=section, kind="internet", must_deny=True, target=(PUBLIC_ADDRESS,)
    )
    if not contract.allow_loopback:
        yield ContractClause(id=f"{section}.loopback", section=section, kind="post", must_deny=True)
    yield ContractClause(id=f"{section}.namespace", section=section, kind="namespaces", must_deny=False)


def _list_other_clauses(contract: ExpandedContract) -> Iterator[ContractClause]:
    section = "process"
    for path in contract.exec_paths:
        yield ContractClause(
            id=f"{section}.exec:{path}",
            section=section,
            kind="exec",
            must_deny=False,
            target=(path,),
            may_be_absent=True,
        )
    for kind in ("exec_copy", "exec_memory"):
        yield ContractClause(id=f"{section}.{kind}", section=section, kind=kind, must_deny=True)
    yield ContractClause(id=f"{section}.namespace", section=section, kind="namespaces", must_deny=False)
    section = "transport"
    yield ContractClause(id=f"{section}.gateway", section=section, kind="act", must_deny=False)
    for name, target in (("foreign_socket", FOREIGN_SOCKET), ("abstract_socket", ABSTRACT_SOCKET)):
        yield ContractClause(id=f"{section}.{name}", section=section, kind="unix", must_deny=True, target=(target,))
    yield ContractClause(id=f"{section}.sockets", section=section, kind="sockets", must_deny=False)


def name_probes(assertions: tuple[ContractAssertion, ...]) -> dict[str, str]:
    """Return the key of each assertion's probe in the report, by the assertion's id."""
    keys: dict[str, str] = {}
    for assertion in assertions:
        first = assertion.target[0] if assertion.target else ""
        key = EXEC_KEYS.get(first) if assertion.kind == "exec" else STANDARD_KEYS[assertion.kind]
        keys[assertion.id] = f"assertion.{assertion.id}" if key is None or key in keys.values() else key
    return keys


def describe_target(assertion: ContractAssertion) -> dict[str, Any]:
    """Return the field of an assertion with its target, as reports and verdicts have it."""
    if not assertion.target:
        return {}
    if assertion.kind == "exec":
        return {"argv": list(assertion.target)}
    return {"path" if assertion.kind == "fs_read" else "url": assertion.target[0]}

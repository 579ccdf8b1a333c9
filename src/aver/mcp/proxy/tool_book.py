"""Definitions of a server's tools: those that were first seen, and those of now.

A server can change what it says about a tool after a person has looked at it: the description that steers the model,
the schema, the annotations. So the proxy keeps the digest of each definition when it sees the tool for the first time,
in `AVER_HOME/gateway/servers/<name>.json`:

    {"v": 1, "name": "shop", "tools": {"refund": {"sha256": "9f86…", "seen": "2026-11-17T18:30:00+00:00",
                                                  "definition": "{\\"name\\":\\"refund\\",…}"}}}

Each call of a tool whose definition differs must be approved by a person, until
`aver proxy trust NAME` takes the definitions of now as the known ones. For that, the proxy keeps a definition that
differs beside the first one, as `changed`. Nothing else of the file changes by itself.

The gate reads what a tool does from its present definition. It believes a server only where that makes a call worse,
unless the user trusts the server by name.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aver.capsule.aver_block import of_kind
from aver.capsule.canonical import canonical_json
from aver.capsule.json_document import dump_document
from aver.capsule.json_reader import read_json
from aver.capsule.model import Authority, Capsule, Context, Outcome, Trigger
from aver.clock import now
from aver.config import ensure_home
from aver.errors import AverError, BadInput, NotFound
from aver.files.atomic import make_directory, replace_file
from aver.files.locks import lock_directory
from aver.files.regular import read_private_file
from aver.gate.decision_record import DOMAIN, SETTINGS_CHAIN
from aver.gate.policy.rule_changes import ALLOW_KIND
from aver.gateway.calls.upstream import ToolDefinition
from aver.ledger import Ledger
from aver.log import debug

TOOLS_MAX = 2000
"""Most tools of one server. Those beyond count as tools without a definition."""

DEFINITION_MAX = 256 * 1024
"""Most bytes of one definition. A tool with a longer one counts as one without a definition."""

FILE_MAX = 64 * 1024 * 1024
"""Most bytes of a server's file."""

_PLAIN_NAME = re.compile(r"(?!x-[0-9a-f]{32}$)[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}")


def server_file(home: Path, name: str) -> Path:
    """Return the file of a server. A name that is no plain file name stands there as its digest."""
    plain = name if _PLAIN_NAME.fullmatch(name) else f"x-{hashlib.sha256(name.encode()).hexdigest()[:32]}"
    return home / "gateway" / "servers" / f"{plain}.json"


class ToolBook:
    """The definitions of one server's tools. Safe to use from several threads."""

    def __init__(self, home: Path, name: str) -> None:
        self._home = home
        self._name = name
        self._path = server_file(home, name)
        self._changing = threading.Lock()
        self._now: dict[str, bytes] = {}
        """The canonical bytes of the definitions, as the server gave them last."""
        self._known: dict[str, str] = {}
        """The digests of the definitions that count as known."""

    def learn(self, tools: Iterable[Any]) -> list[str]:
        """Take up definitions that the server has sent. Returns the tools that are not as they were first seen."""
        found: dict[str, bytes] = {}
        for tool in tools:
            name = tool.get("name") if isinstance(tool, dict) else None
            try:
                written = canonical_json(tool)
            except AverError:
                continue  # It has no canonical form, so it has no digest that another reader would find, too.
            if isinstance(name, str) and len(written) <= DEFINITION_MAX and len(found) < TOOLS_MAX:
                found[name] = written
        with self._changing:
            self._now.update(found)
            unknown = {name: data for name, data in found.items() if self._known.get(name) != _digest(data)}
            if unknown:
                self._known.update(self._write_first_seen(unknown))
            return sorted(name for name, data in unknown.items() if self._known.get(name) != _digest(data))

    def _write_first_seen(self, tools: Mapping[str, bytes]) -> dict[str, str]:
        """Write down tools that the file does not have. Returns the known digests of all these tools."""
        with _lock_file(self._home, self._path):
            document = _read_file(self._path, self._name)
            known, is_new = document["tools"], False
            for name, data in tools.items():
                entry = known.get(name)
                if entry is None:
                    known[name] = {"sha256": _digest(data), "seen": now(), "definition": data.decode()}
                    is_new = True
                elif entry["sha256"] != _digest(data) and entry.get("changed") != data.decode():
                    debug("mcp", "the tool %s of %s is not as it was first seen", name, self._name)
                    known[name] = {**entry, "changed": data.decode()}
                    is_new = True
            if is_new:
                replace_file(self._path, dump_document(document))
            return {name: known[name]["sha256"] for name in tools}

    def forget_present(self) -> None:
        """Forget the present definitions: the server says that they have changed."""
        with self._changing:
            self._now.clear()

    def has(self, tool: str) -> bool:
        """Whether the present definition of a tool is known here."""
        return tool in self._now

    def find_digest(self, tool: str) -> str:
        """Return the digest of a tool's present definition; empty where there is none."""
        data = self._now.get(tool)
        return "" if data is None else _digest(data)

    def find(self, tool: str) -> ToolDefinition | None:
        """Return the present definition of a tool, and whether it is not the first one; None where there is none."""
        is_changed = self._is_changed(tool)
        if is_changed:
            # A person may have accepted the definition meanwhile, with `aver proxy trust`.
            entries = _read_file(self._path, self._name)["tools"]
            self._known.update({name: entry["sha256"] for name, entry in entries.items() if name in self._known})
            is_changed = self._is_changed(tool)
        data = self._now.get(tool)
        if data is None and not is_changed:
            return None
        # A tool that the server had, and lists no longer, is a changed one without a definition.
        return ToolDefinition({"name": tool} if data is None else read_json(data), is_changed)

    def _is_changed(self, tool: str) -> bool:
        known = self._known.get(tool)
        return known is not None and known != self.find_digest(tool)


def list_changed_tools(home: Path, name: str) -> dict[str, tuple[str, str]]:
    """Return the first and the present definition of each tool of a server that has changed.

    Raises `NotFound` where no proxy has seen this server.
    """
    path = server_file(home, name)
    if not path.exists():
        raise NotFound(f"no proxy has seen a server {name!r}", advice="the name is that after aver proxy --name")
    tools = _read_file(path, name)["tools"]
    return {tool: (str(entry["definition"]), entry["changed"]) for tool, entry in tools.items() if "changed" in entry}


def find_kept_definition(home: Path, name: str, tool: str) -> ToolDefinition | None:
    """Return the definition of a tool that proxies of this home have kept; None where they have seen none.

    Raises `BadInput` where the file of the server is not whole.
    """
    entry = _read_file(server_file(home, name), name)["tools"].get(tool)
    if entry is None:
        return None
    return ToolDefinition(read_json(entry.get("changed", entry["definition"]).encode()), "changed" in entry)


def trust_changed_tools(home: Path, name: str, shown: Mapping[str, tuple[str, str]]) -> None:
    """Take the present definitions of tools, as they were shown, as the known ones.

    Raises `BadInput` where one has changed again since it was shown.
    """
    path = server_file(home, name)
    with _lock_file(home, path):
        document = _read_file(path, name)
        for tool, (_, changed) in shown.items():
            entry = document["tools"].get(tool, {})
            if entry.get("changed") != changed:
                raise BadInput(f"the tool {tool} has changed again meanwhile", advice="look at it again")
            document["tools"][tool] = {"sha256": _digest(changed.encode()), "seen": now(), "definition": changed}
        replace_file(path, dump_document(document))


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@contextmanager
def _lock_file(home: Path, path: Path) -> Iterator[None]:
    """Hold the lock on the directory of servers' files, so that several proxies do not undo each other's work."""
    ensure_home(home)
    make_directory(path.parent)
    with lock_directory(path.parent):
        yield


def _read_file(path: Path, name: str) -> dict[str, Any]:
    """Read a server's file; a missing one has no tools. Raises `BadInput` for one that is not whole."""
    raw = read_private_file(path, limit=FILE_MAX)
    if raw is None:
        return {"v": 1, "name": name, "tools": {}}
    advice = f"move {path} away; then every tool counts as seen for the first time"
    try:
        found = read_json(raw)
        entries = found["tools"].values()
        is_whole = (
            found["v"] == 1
            and found["name"] == name
            and all(
                isinstance(entry["sha256"], str)
                and isinstance(entry["definition"], str)
                and isinstance(entry.get("changed", ""), str)
                for entry in entries
            )
        )
    except (BadInput, AttributeError, KeyError, TypeError) as error:
        raise BadInput(f"{path} cannot be read: {error}", advice=advice) from error
    if not is_whole:
        raise BadInput(f"{path} is not the file of the server {name!r}", advice=advice)
    return dict(found)


def seal_trust(ledger: Ledger, name: str, shown: Mapping[str, tuple[str, str]], *, by: str) -> None:
    """Seal that a person accepts changed definitions: a `policy.allow` for each tool, in the chain `gate.settings`."""
    for tool, (_, changed) in shown.items():
        result = {
            "v": 1,
            "rule": f"proxy-trust:{name}",
            "about": f"mcp__{name}__{tool}",
            "workspace": "",
            "text": changed,
            "by": by,
            "request": None,
        }
        words = f"the changed definition of {tool} of {name} is accepted by {by}"
        draft = Capsule(
            type="auth",
            domain=DOMAIN,
            trigger=Trigger(type="user_request", source=by, request=f"{ALLOW_KIND} {result['rule']}", user_id=by),
            context=Context(agent_id="aver"),
            # Any program of this user can run the command, so this is no signed approval.
            authority=Authority(type="policy", policy_reference="aver proxy trust"),
            outcome=Outcome(status="success", summary=words[:300], result=result),
        )
        ledger.append(SETTINGS_CHAIN, of_kind(draft, ALLOW_KIND))

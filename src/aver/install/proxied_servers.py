"""Put a client's own MCP servers behind `aver proxy`, put them back, and tell which are behind it.

An entry that starts a server keeps all its settings, but for the command, which becomes that of the proxy:

    "files": {"command": "npx", "args": ["-y", "files-server"], "env": {"KEY": "…"}}
    "files": {"command": "/usr/bin/aver", "args": ["proxy", "--name", "files", "--", "npx", "-y", "files-server"],
              "env": {"KEY": "…", "AVER_HOME": "…"}}

An entry of a server at a URL becomes one that starts the proxy. Its URL stands on the command line only if it holds no
secret. Its headers, and any other URL, become variables (`aver.install.proxy_variables`), and so stay in the settings.

Aver leaves an entry as it is, and says why, if it has a setting that the proxy cannot carry over.

Aver keeps the former entry in `AVER_HOME/proxied.json`, for the user alone, because settings may hold secrets:

    {"v": 1, "servers": [{"path": …, "key": ["mcpServers", "files"], "before": {…}, "after": {…}, "text": "{…}"}]}

If an entry is still what Aver made of it, `aver uninstall` puts the old text back. If others have changed it meanwhile,
their changes stay: Aver takes away only the proxy. An entry that does not start a proxy any more stays as it is.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from aver.capsule.json_document import dump_document
from aver.capsule.json_reader import read_json
from aver.config import ensure_home, home_dir
from aver.errors import AverError, BadInput, Refused
from aver.fast_dataclass import dataclass
from aver.files.atomic import replace_file
from aver.files.user_dirs import UserEnvironment
from aver.install.client import (
    Client,
    InstallOutcome,
    InstallState,
    ServerForm,
    ServerPlace,
    aver_command,
    server_places,
)
from aver.install.edit import SettingsFormat, get_entry, with_value, without_entry
from aver.install.json_spans import parse_json_nodes
from aver.install.mcp_server import SERVER_NAME, find_missing_package
from aver.install.proxy_variables import BEARER_VARIABLE, HEADER_VARIABLE, INDIRECT_VARIABLE, URL_VARIABLE
from aver.install.settings_file import EditResult, EntryPath, SettingsFile, read_entry
from aver.install.undo import UndoLog, change_file, read_settings_file

PROXY_PART = "proxy"

MEMORY_FILE = "proxied.json"

OWN_VARIABLES = ("AVER_HOME", "AVER_PROXY_")
"""How the names of the variables begin that Aver adds to an entry."""

_PROXY = "proxy"

_RESULTS: tuple[EditResult, ...] = ("installed", "updated", "removed", "unchanged")
"""The results for a file, the first that is among those of its servers."""


NOT_BEHIND = "NOT behind it: "
"""Stands in a state before the servers that no proxy guards."""

TO_RUN = "; run: "
"""Stands in a state before the command that puts the servers of a project behind the proxy."""


class CannotCarry(Exception):
    """An entry that cannot be put behind the proxy, and why."""


# --- entries


def is_proxied(entry: Any) -> bool:
    """Whether an entry starts a proxy of Aver, of this or another installation."""
    if not isinstance(entry, dict):
        return False
    command, arguments = entry.get("command"), entry.get("args")
    if not isinstance(command, str) or not isinstance(arguments, list) or _PROXY not in arguments:
        return False
    before = arguments[: arguments.index(_PROXY)]
    return os.path.basename(command) == "aver" or "aver" in before


def wrap_entry(entry: Mapping[str, Any], name: str, place: ServerPlace, form: ServerForm, home: str) -> dict[str, Any]:
    """Return the entry of a server with the proxy before it. Raises `CannotCarry`."""
    for setting, why in form.limits.items():
        if entry.get(setting):
            raise CannotCarry(f"{why} ({setting})")
    command, *arguments = ["aver"] if place.shared else aver_command()
    arguments += [_PROXY, "--name", name]
    if place.workspace:
        arguments += ["--workspace", place.workspace]
    variables: dict[str, str] = {} if place.shared or not home else {"AVER_HOME": home}
    kept = dict(entry)
    if isinstance(entry.get("command"), str):
        given = entry.get("args", [])
        if not isinstance(given, list) or not all(isinstance(word, str) for word in given):
            raise CannotCarry("its args are no list of texts")
        arguments += ["--", entry["command"], *given]
    elif isinstance(entry.get("url"), str):
        words, more = _carry_url(entry, form)
        arguments += words
        variables |= more
        for setting in ("url", form.headers, form.indirect_headers, form.bearer):
            kept.pop(setting, None)
        if forwarded := _find_forwarded(entry, form):
            kept[form.forwards] = forwarded
    else:
        raise CannotCarry("it has neither a command nor a URL")
    environment = entry.get("env", {})
    if not isinstance(environment, dict):
        raise CannotCarry("its env is no table")
    kept |= {"command": command, "args": arguments}
    if "type" in kept or place.names_type:
        kept["type"] = "stdio"
    if environment or variables:
        kept["env"] = {**environment, **variables}
    return kept


def _carry_url(entry: Mapping[str, Any], form: ServerForm) -> tuple[list[str], dict[str, str]]:
    """Return the words and the variables for a server at a URL."""
    kind = entry.get("type")
    if kind is None:
        option = "--sse" if form.is_sse_default else "--http"
    elif kind in form.http_types or kind in form.sse_types:
        option = "--sse" if kind in form.sse_types else "--http"
    else:
        raise CannotCarry(f"the proxy does not know the transport {str(kind)[:40]!r}")
    url, variables = entry["url"], dict[str, str]()
    parts = urlsplit(url)
    # Every user can read command lines. A placeholder stands for a value that may be a secret.
    is_open = not (parts.username or parts.password or parts.query or parts.fragment or "$" in url)
    if not is_open:
        variables[URL_VARIABLE] = url
    for setting, variable in ((form.headers, HEADER_VARIABLE), (form.indirect_headers, INDIRECT_VARIABLE)):
        given = entry.get(setting, {}) if setting else {}
        if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
            raise CannotCarry(f"its {setting} are no table of texts")
        variables |= {f"{variable}{at}": f"{name}: {value}" for at, (name, value) in enumerate(given.items(), 1)}
    if form.bearer and isinstance(entry.get(form.bearer), str):
        variables[BEARER_VARIABLE] = entry[form.bearer]
    return [option, *([url] if is_open else [])], variables


def _find_forwarded(entry: Mapping[str, Any], form: ServerForm) -> list[str]:
    """Return the variables that the client must pass on to the proxy, because headers take their values from them."""
    if not form.forwards:
        return []
    indirect = entry.get(form.indirect_headers) or {}
    known = entry.get(form.forwards)
    found = [*(known if isinstance(known, list) else []), *indirect.values()]
    if isinstance(entry.get(form.bearer), str):
        found.append(entry[form.bearer])
    return list(dict.fromkeys(found))


def unwrap_entry(entry: Mapping[str, Any], form: ServerForm) -> dict[str, Any]:
    """Return the entry of a server without the proxy before it, from the entry itself."""
    arguments = [str(word) for word in entry["args"]]
    own = arguments[arguments.index(_PROXY) + 1 :]
    environment = dict(entry.get("env") or {})
    kept = {name: value for name, value in entry.items() if name not in ("command", "args", "env")}
    if "--" in own:
        command, *rest = own[own.index("--") + 1 :] or [""]
        kept |= {"command": command, "args": rest}
    else:
        option = "--sse" if "--sse" in own else "--http"
        after = own[own.index(option) + 1 :] if option in own else []
        kept["url"] = after[0] if after else environment.get(URL_VARIABLE, "")
        if "type" in kept:
            kept["type"] = (form.sse_types if option == "--sse" else form.http_types)[0]
        for setting, variable in ((form.indirect_headers, INDIRECT_VARIABLE), (form.headers, HEADER_VARIABLE)):
            lines = {name: text for name, text in environment.items() if name.startswith(variable)}
            pairs = (text.partition(": ") for name, text in lines.items() if name[len(variable) :].isdigit())
            if found := {name: value for name, _, value in pairs}:
                kept[setting] = found
        if BEARER_VARIABLE in environment:
            kept[form.bearer] = environment[BEARER_VARIABLE]
        # The client passes variables on to servers that it starts. For a URL it reads them itself.
        needed = _find_forwarded({**kept, form.forwards: []}, form)
        if left := [name for name in kept.pop(form.forwards, []) if name not in needed]:
            kept[form.forwards] = left
    if own_variables := {name: value for name, value in environment.items() if not name.startswith(OWN_VARIABLES)}:
        kept["env"] = own_variables
    return kept


def restore_entry(now: Mapping[str, Any], known: ProxiedServer | None, form: ServerForm) -> dict[str, Any]:
    """Return the entry as it was before the proxy, with all that others have changed since."""
    bare = unwrap_entry(now, form)
    if known is None:
        return bare
    made = unwrap_entry(known.after, form)
    restored = dict(known.before)
    for name in {*made, *bare}:
        if made.get(name) != bare.get(name):  # Somebody has changed it.
            if name in bare:
                restored[name] = bare[name]
            else:
                restored.pop(name, None)
    return restored


# --- the memory of entries


@dataclass(frozen=True, slots=True)
class ProxiedServer:
    """An entry that Aver has put behind the proxy: before and after, and its text before where that is JSON."""

    path: str
    key: EntryPath
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    text: str = ""


class ProxiedMemory:
    """The file `AVER_HOME/proxied.json`. The caller holds the lock of the `UndoLog`."""

    def __init__(self) -> None:
        self._path = home_dir() / MEMORY_FILE

    def find(self, path: Path, key: EntryPath) -> ProxiedServer | None:
        return next((each for each in self._read() if (each.path, each.key) == (str(path), key)), None)

    def keep(self, server: ProxiedServer) -> None:
        self._write([*self._others(server.path, server.key), server])

    def forget(self, path: Path, key: EntryPath) -> None:
        self._write(self._others(str(path), key))

    def _others(self, path: str, key: EntryPath) -> list[ProxiedServer]:
        return [each for each in self._read() if (each.path, each.key) != (path, key)]

    def _read(self) -> list[ProxiedServer]:
        """Read the file. One that cannot be read counts as empty: then entries are put back from themselves."""
        try:
            raw = read_settings_file(self._path)
            found = read_json(raw) if raw is not None else {"servers": []}
            return [
                ProxiedServer(one["path"], tuple(one["key"]), one["before"], one["after"], one["text"])
                for one in found["servers"]
            ]
        except (AverError, KeyError, TypeError):
            return []

    def _write(self, servers: list[ProxiedServer]) -> None:
        ensure_home(self._path.parent)
        if not servers:
            self._path.unlink(missing_ok=True)
            return
        entries = [
            {"path": one.path, "key": list(one.key), "before": one.before, "after": one.after, "text": one.text}
            for one in servers
        ]
        replace_file(self._path, dump_document({"v": 1, "servers": entries}))


# --- all servers of a client


def install_proxies(client: Client, around: UserEnvironment, *, dry_run: bool = False) -> list[InstallOutcome]:
    """Put every MCP server of a client behind the proxy. `dry_run` changes nothing."""
    home = around.environment.get("AVER_HOME", "")
    home = os.path.abspath(home) if home else ""
    return _change_servers(client, around, _Installing(client.server_form, home), dry_run=dry_run)


def uninstall_proxies(client: Client, around: UserEnvironment, *, dry_run: bool = False) -> list[InstallOutcome]:
    """Put every MCP server of a client back as it was."""
    return _change_servers(client, around, _Uninstalling(client.server_form), dry_run=dry_run)


def read_proxies_state(client: Client, around: UserEnvironment) -> list[InstallState]:
    """Tell which servers of a client are behind the proxy: one state for each of its files that has servers.

    The client's settings may name projects. Each of their own files with a server that is not behind it is told, too.
    """
    found = []
    for place in _own_places(client, around):
        try:
            servers = _list_servers(place, around)
        except AverError as error:
            found.append(InstallState(client.name, place.path, "unreadable", error.message, PROXY_PART))
            continue
        behind = sorted(name for name, entry in servers.items() if is_proxied(entry))
        others = [
            f"{name} ({why})" if (why := _find_obstacle(entry, name, place, client.server_form)) else name
            for name, entry in sorted(servers.items())
            if name not in behind
        ]
        if not behind and (not others or place.servers[0] == "projects"):
            continue
        words = [f"behind it: {', '.join(behind)}"] if behind else []
        words += [f"{NOT_BEHIND}{', '.join(others)}"] if others else []
        state = "absent" if not behind else "installed"
        found.append(InstallState(client.name, place.path, state, "; ".join(words), PROXY_PART))
    return [*found, *_find_open_projects(client, around)]


def _find_open_projects(client: Client, around: UserEnvironment) -> Iterator[InstallState]:
    """Yield the states of the projects that a client knows, where a server in the project's own file is not behind it.

    `aver install --proxy` changes such a file only if the user names the project: others share it.
    """
    if around.project is not None:
        return
    for place in _own_places(client, around):
        if place.servers[0] != "projects" or not os.path.isdir(place.servers[1]):
            continue
        project = place.servers[1]
        for state in read_proxies_state(client, replace(around, project=Path(project))):
            if NOT_BEHIND in state.why:
                command = shlex.join(["aver", "install", client.name, "--proxy", "--project", project])
                yield replace(state, why=f"{state.why}{TO_RUN}{command}")


def proxied_commands(client: Client, around: UserEnvironment) -> Iterator[tuple[str, list[str], dict[str, str]]]:
    """Yield the name, the command and the variables of each server that is behind the proxy."""
    for place in _own_places(client, around):
        for name, entry in _list_servers(place, around).items():
            if is_proxied(entry):
                given = entry.get("env")
                variables = {str(k): str(v) for k, v in given.items()} if isinstance(given, dict) else {}
                yield name, [str(entry["command"]), *map(str, entry["args"])], variables


def _own_places(client: Client, around: UserEnvironment) -> list[ServerPlace]:
    if client.find_own_servers is None:
        return server_places(client, around) if client.find_servers(around) else []
    return [replace(place, shared=around.project is not None) for place in client.find_own_servers(around)]


def _list_servers(place: ServerPlace, around: UserEnvironment) -> dict[str, Any]:
    """Return the entries of a client's servers, without Aver's own server."""
    found = read_entry(SettingsFile(place.path, place.form, around.project), place.servers)
    return {name: entry for name, entry in found.items() if name != SERVER_NAME} if isinstance(found, dict) else {}


def _find_obstacle(entry: Any, name: str, place: ServerPlace, form: ServerForm) -> str:
    """Say why an entry cannot be put behind the proxy; empty where it can."""
    try:
        wrap_entry(entry if isinstance(entry, dict) else {}, name, place, form, "")
    except CannotCarry as obstacle:
        return str(obstacle)
    return ""


class _Installing:
    """Puts the proxy before one entry."""

    def __init__(self, form: ServerForm, home: str) -> None:
        self._form = form
        self._home = home

    def change(
        self, entry: Any, name: str, place: ServerPlace, known: ProxiedServer | None
    ) -> tuple[dict[str, Any], EditResult]:
        result: EditResult = "installed"
        bare = entry if isinstance(entry, dict) else {}
        if is_proxied(entry):  # It may start another Aver, or in another way.
            bare, result = unwrap_entry(entry, self._form), "updated"
        wanted = wrap_entry(bare, name, place, self._form, self._home)
        return wanted, "unchanged" if wanted == entry else result

    def remember(self, memory: ProxiedMemory, server: ProxiedServer, known: ProxiedServer | None) -> None:
        if known is not None:  # The first text is the one that comes back.
            server = replace(server, before=known.before, text=known.text)
        memory.keep(server)

    def text_back(self, entry: Any, known: ProxiedServer | None) -> str:
        return ""


class _Uninstalling:
    """Takes the proxy before one entry away."""

    def __init__(self, form: ServerForm) -> None:
        self._form = form

    def change(
        self, entry: Any, name: str, place: ServerPlace, known: ProxiedServer | None
    ) -> tuple[dict[str, Any], EditResult]:
        if not is_proxied(entry):
            return entry, "absent"
        return restore_entry(entry, known, self._form), "removed"

    def remember(self, memory: ProxiedMemory, server: ProxiedServer, known: ProxiedServer | None) -> None:
        memory.forget(Path(server.path), server.key)

    def text_back(self, entry: Any, known: ProxiedServer | None) -> str:
        """Return the old text, where nobody has changed the entry since."""
        return known.text if known is not None and known.after == entry else ""


def _change_servers(
    client: Client, around: UserEnvironment, work: _Installing | _Uninstalling, *, dry_run: bool
) -> list[InstallOutcome]:
    """Do the same with every server of a client. Returns one outcome for each file with servers."""
    log, memory = UndoLog(), ProxiedMemory()
    outcomes: list[InstallOutcome] = []
    if isinstance(work, _Installing) and find_missing_package():
        return []
    with nullcontext() if dry_run else log.lock():
        for place in _own_places(client, around):
            done: dict[EditResult, list[str]] = {}
            left: list[str] = []
            for name in _list_servers(place, around):
                try:
                    result = _change_server(place, around, name, work, memory, dry_run=dry_run)
                    done.setdefault(result, []).append(name)
                except CannotCarry as obstacle:
                    left.append(f"{name} ({obstacle})")
            done.pop("absent", None)
            if done or left:
                words = [", ".join(names) for names in done.values()]
                words += [f"left as it was: {'; '.join(left)}"] if left else []
                word: EditResult = next((each for each in _RESULTS if each in done), "kept")
                outcomes.append(InstallOutcome(client.name, place.path, word, PROXY_PART, "; ".join(words)))
    return outcomes


def _change_server(
    place: ServerPlace,
    around: UserEnvironment,
    name: str,
    work: _Installing | _Uninstalling,
    memory: ProxiedMemory,
    *,
    dry_run: bool,
) -> EditResult:
    """Change one entry in its file, and remember what it was. Raises `CannotCarry` where it must stay."""
    file, key = SettingsFile(place.path, place.form, around.project), (*place.servers, name)
    path = file.target
    known = memory.find(path, key)
    result: EditResult = "absent"
    server: ProxiedServer | None = None

    def change(raw: bytes | None) -> bytes | None:
        nonlocal result, server
        text = _decode(raw, path)
        entry = get_entry(text, place.form, key)
        if entry is None:
            return raw
        wanted, result = work.change(entry, name, place, known)
        if wanted == entry:
            return raw
        span = "" if place.form == "toml" else _entry_text(text, place.form, key)
        server = ProxiedServer(str(path), key, entry, wanted, span)
        if back := work.text_back(entry, known):
            changed = _replace_text(text, place.form, key, back)
        else:
            changed = edit_entry(text, place.form, key, entry, wanted)
        if get_entry(changed, place.form, key) != wanted:
            raise Refused("NOT_UNDERSTOOD", f"{path}: {'.'.join(key)} cannot be edited safely; nothing was changed")
        return changed.encode()

    # Remembered first: an entry that was changed and is not remembered could not be put back to the byte.
    if not dry_run and isinstance(work, _Installing):
        change(read_settings_file(path))
        if server is not None:
            work.remember(memory, server, known)
    change_file(path, change, mode=file.new_mode, dry_run=dry_run)
    if not dry_run and isinstance(work, _Uninstalling) and server is not None:
        work.remember(memory, server, known)
    return result


def edit_entry(
    text: str, form: SettingsFormat, key: EntryPath, entry: Mapping[str, Any], wanted: Mapping[str, Any]
) -> str:
    """Return the text with an entry changed, setting by setting: whatever stays the same keeps its layout."""
    for name in entry:
        if name not in wanted:
            text = without_entry(text, form, (*key, name), keep=len(key))
    for name, value in wanted.items():
        before = entry.get(name)
        if isinstance(before, dict) and isinstance(value, dict) and before and value:
            text = edit_entry(text, form, (*key, name), before, value)
        elif name not in entry or before != value:
            text = with_value(text, form, (*key, name), value)
    return text


def _decode(raw: bytes | None, path: Path) -> str:
    try:
        return "" if raw is None else raw.decode("utf-8")
    except UnicodeDecodeError:
        raise BadInput(f"{path} is not UTF-8; nothing was changed") from None


def _entry_span(text: str, form: SettingsFormat, key: EntryPath) -> tuple[int, int]:
    node = parse_json_nodes(text, key, with_comments=form == "jsonc")
    for name in key:
        part = node.find_member(name)
        if part is None:
            raise BadInput(f"there is no {'.'.join(key)}")
        node = part.node
    return node.start, node.end


def _entry_text(text: str, form: SettingsFormat, key: EntryPath) -> str:
    start, end = _entry_span(text, form, key)
    return text[start:end]


def _replace_text(text: str, form: SettingsFormat, key: EntryPath, back: str) -> str:
    start, end = _entry_span(text, form, key)
    return text[:start] + back + text[end:]

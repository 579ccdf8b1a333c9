"""The capsule contract (RFC §2): the files, programs and sockets that a confined agent may use, and probes of them.

A contract is a JSON document after `secureclaw_capsule_contract_v1.schema.json`. Its texts may have variables:

    ${NAME}              the value of NAME
    ${NAME:-TEXT}        TEXT where NAME has no value; TEXT may have variables, too

A variable can have several values. `${PY_PREFIX}/lib` then stands for as many paths. Where a variable has no value:

* an entry of a list that allows something is left out, so less is allowed
* an entry of `deny_read_prefixes` is an error, because less would be denied
* the probe of an assertion cannot be made

`CapsuleContract.expand` puts the values in and checks the paths. This module opens no file.
"""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import field
from itertools import product
from typing import Any

from aver.capsule.json_document import parse_document
from aver.capsule.json_schema import find_schema_error
from aver.errors import BadInput
from aver.fast_dataclass import dataclass
from aver.gateway.specs import CONTRACT, load_contract_validator
from aver.lazy_pattern import lazy_pattern

CONTRACT_MAX = 256 * 1024
"""Largest contract, in bytes. The one of the RFC has two thousand."""

ENTRIES_MAX = 200
"""Most entries of one list, before and after the variables have their values."""

PATH_MAX = 4096
"""Longest path, in bytes, as in the kernel."""

DEPTH_MAX = 8
"""Most variables inside of each other."""

Values = Mapping[str, tuple[str, ...]]
"""The values of variables, by name."""

_VARIABLE = lazy_pattern(r"\$\{([A-Z][A-Z0-9_]{0,63})(?::-(.*))?\}")

NEEDED_FIELD = {"fs_read": "path", "exec": "argv", "internet_get": "url", "http_post": "url"}
"""The field that an assertion of a kind must have."""


@dataclass(frozen=True, slots=True)
class ContractAssertion:
    """One probe that a contract wants. `target` is its path, its URL or the words of its command; empty: none."""

    id: str
    kind: str
    must_deny: bool
    allow_skip: bool = False
    target: tuple[str, ...] = ()
    """Empty where the kind needs none, and where a variable of it has no value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CapsuleContract:
    """A contract whose form is right. `sha256` is that of its bytes."""

    sha256: str
    data: bytes
    document: Mapping[str, Any]

    @classmethod
    def parse(cls, data: bytes, where: str = CONTRACT) -> CapsuleContract:
        """Read the bytes of a contract. Raises `BadInput`."""
        document = parse_document(data, where, limit=CONTRACT_MAX)
        if problem := find_schema_error(load_contract_validator(), document):
            raise BadInput(f"{where}: {problem}")
        for problem in find_contract_problems(document):
            raise BadInput(f"{where}: {problem}")
        return cls(sha256=hashlib.sha256(data).hexdigest(), data=data, document=document)

    @property
    def name(self) -> str:
        return str(self.document["name"])

    def expand(self, values: Values) -> ExpandedContract:
        """Put the values of variables in. Raises `BadInput` for a path that cannot be used."""
        files, process, transport = (self.document[name] for name in ("filesystem", "process", "transport"))
        if transport["mode"] != "uds":
            raise BadInput(
                f"the contract wants the transport {transport['mode']!r}, and Aver confines with a Unix socket only",
                advice='set transport.mode to "uds"',
            )
        found = ExpandedContract(
            sha256=self.sha256,
            name=self.name,
            read=_expand_paths(files["allow_read_prefixes"], values, "filesystem.allow_read_prefixes"),
            write=_expand_paths(files["allow_write_prefixes"], values, "filesystem.allow_write_prefixes"),
            deny_read=_expand_paths(
                files["deny_read_prefixes"], values, "filesystem.deny_read_prefixes", must_have_values=True
            ),
            allow_loopback=self.document["network"]["allow_loopback_http"],
            exec_paths=_expand_paths(process["allow_exec_paths"], values, "process.allow_exec_paths"),
            sockets=_expand_paths(transport["allowed_uds_paths"], values, "transport.allowed_uds_paths"),
            assertions=tuple(_expand_assertion(each, values) for each in self.document["assertions"]),
        )
        for where, entries in (("process.allow_exec_paths", found.exec_paths), ("transport", found.sockets)):
            if not entries:
                raise BadInput(f"{where} allows nothing here: no variable of it has a value")
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpandedContract:
    """A contract with the values of its variables: absolute paths without `.` and `..`, none twice."""

    sha256: str
    name: str
    read: tuple[str, ...]
    write: tuple[str, ...]
    deny_read: tuple[str, ...]
    allow_loopback: bool
    exec_paths: tuple[str, ...]
    sockets: tuple[str, ...]
    """The gateway's own socket is the first."""
    assertions: tuple[ContractAssertion, ...]
    real: Mapping[str, str] = field(default_factory=dict)
    """The files behind paths that are links, as this machine has them. Mounts are where the files are."""

    def follow(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Return these paths, and the files behind those that are links."""
        return tuple(dict.fromkeys(found for path in paths for found in (path, self.real.get(path, path))))


def find_contract_problems(document: Mapping[str, Any]) -> list[str]:
    """Return the problems of a contract that its schema cannot see."""
    problems = []
    lists = (
        *(("filesystem", name) for name in ("allow_read_prefixes", "allow_write_prefixes", "deny_read_prefixes")),
        *(("process", "allow_exec_paths"), ("transport", "allowed_uds_paths")),
    )
    for section, name in lists:
        if len(document[section][name]) > ENTRIES_MAX:
            problems.append(f"{section}.{name} has more than {ENTRIES_MAX} entries")
    if len(document["assertions"]) > ENTRIES_MAX:
        problems.append(f"there are more than {ENTRIES_MAX} assertions")
    ids = [assertion["id"] for assertion in document["assertions"]]
    problems += [f"the assertion {each!r} occurs twice" for each in sorted({*ids}) if ids.count(each) > 1]
    for assertion in document["assertions"]:
        field = NEEDED_FIELD.get(assertion["kind"])
        if field is not None and field not in assertion:
            problems.append(f"the assertion {assertion['id']!r} of the kind {assertion['kind']} lacks {field!r}")
    return problems


def expand_text(text: str, values: Values, *, depth: int = 0) -> tuple[str, ...]:
    """Return a text with the values of its variables, once for each combination; none where one has no value."""
    if depth > DEPTH_MAX:
        raise BadInput(f"{text[:80]!r} has more than {DEPTH_MAX} variables inside of each other")
    options: list[tuple[str, ...]] = []
    for piece in _split_variables(text):
        match = _VARIABLE.fullmatch(piece)
        if match is None:
            if piece.startswith("${"):
                raise BadInput(f"{piece[:80]!r} is no variable", advice="write ${NAME} or ${NAME:-TEXT}")
            options.append((piece,))
        elif known := values.get(match[1], ()):
            options.append(known)
        elif match[2] is None:
            return ()
        else:
            options.append(expand_text(match[2], values, depth=depth + 1))
    count = 1
    for option in options:
        count *= len(option)
        if count > ENTRIES_MAX:
            raise BadInput(f"{text[:80]!r} stands for more than {ENTRIES_MAX} texts")
    return tuple("".join(combination) for combination in product(*options))


def _split_variables(text: str) -> list[str]:
    """Split a text into variables, with all that is inside of them, and the texts between."""
    pieces, start, opened, index = [], 0, 0, 0
    while index < len(text):
        if text.startswith("${", index):
            if not opened:
                pieces.append(text[start:index])
                start = index
            opened += 1
            index += 2
            continue
        if text[index] == "}" and opened:
            opened -= 1
            if not opened:
                pieces.append(text[start : index + 1])
                start = index + 1
        index += 1
    if opened:
        raise BadInput(f"{text[:80]!r} has a variable without its end", advice="write ${NAME} or ${NAME:-TEXT}")
    pieces.append(text[start:])
    return [piece for piece in pieces if piece]


def _expand_paths(entries: list[str], values: Values, where: str, *, must_have_values: bool = False) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for entry in entries:
        paths = expand_text(entry, values)
        if not paths and must_have_values:
            raise BadInput(f"{where}: a variable of {entry!r} has no value, so Aver cannot deny it")
        for path in paths:
            found[check_path(path, where)] = None
    if len(found) > ENTRIES_MAX:
        raise BadInput(f"{where} stands for more than {ENTRIES_MAX} paths")
    return tuple(found)


def check_path(path: str, where: str) -> str:
    """Return a path without a slash at its end. `BadInput` unless it is absolute and has neither `.` nor `..`."""
    try:
        size = len(path.encode("utf-8"))
    except UnicodeEncodeError:
        raise BadInput(f"{where}: {path[:80]!r} cannot be the name of a file") from None
    shown = path if len(path) == 1 else path.rstrip("/")
    is_odd = "\0" in path or path.startswith("//") or not path.startswith("/")
    if size > PATH_MAX or is_odd or posixpath.normpath(path) != shown:
        raise BadInput(
            f"{where}: {path[:80]!r} is not an absolute path without '.', '..' and '//'",
            advice="write the whole path",
        )
    if shown == "/":
        raise BadInput(f"{where}: the root of all files cannot be an entry")
    return shown


def _expand_assertion(assertion: Mapping[str, Any], values: Values) -> ContractAssertion:
    kind = str(assertion["kind"])
    field = NEEDED_FIELD.get(kind)
    given = [] if field is None else assertion[field]
    words = [expand_text(word, values) for word in ([given] if isinstance(given, str) else given)]
    target = tuple(word[0] for word in words if word)
    if len(target) < len(words):
        target = ()
    if kind in ("fs_read", "exec") and target:
        target = (check_path(target[0], f"the assertion {assertion['id']!r}"), *target[1:])
    return ContractAssertion(
        str(assertion["id"]), kind, assertion["must_deny"], assertion.get("allow_skip", False), target
    )


def is_inside(path: str, directory: str) -> bool:
    """Whether a path is a directory itself, or below it."""
    return path == directory or path.startswith(f"{directory}/")

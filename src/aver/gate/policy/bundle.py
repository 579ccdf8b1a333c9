"""Policy bundles: Cedar files that are checked and parsed once, and the digest by which decisions name them.

    directory/*.cedar      the rules; each has an @id of its own and an @reason that people and agents read

A bundle is valid as a whole or not at all. Aver refuses it for a file that does not parse, a rule that does not fit the
schema, a missing or repeated id, a template, or a file or directory that others may write. It raises `BadInput` or
`Refused`, and decides nothing by the other rules. Cedar is less strict: it skips a rule that fails while it is
evaluated, even a `forbid`.

The starter set that Aver ships is a bundle like any other. `install_starter` copies it to a directory of the user, to
be edited. `load_cedar` and `load_schema` give access to Cedar itself.
"""

from __future__ import annotations

import errno
import hashlib
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import orjson

from aver.capsule.canonical import canonical_bytes
from aver.errors import BadInput, NotFound, Refused, Unavailable
from aver.fast_dataclass import dataclass
from aver.files.atomic import make_directory, sync_new_name, temporary_prefix
from aver.files.regular import NotRegularFile, open_regular

if TYPE_CHECKING:
    import cedarpy

    from aver.gate.policy.rules import ParsedRules

SCHEMA_FILE = Path(__file__).with_name("schema.cedarschema")


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """One rule, and the reason that it gives when it decides."""

    id: str
    effect: Literal["permit", "forbid"]
    reason: str
    file: str
    line: int = 0
    """The line where it begins; 0 if that is not known."""
    patch: str = ""
    """The text of `@patch`: how an allowed request must be changed (`aver.gate.policy.annotations`)."""
    code: str = ""
    """The text of `@code`: the reason code that a forbid gives."""


@cache
def load_cedar() -> Any:
    """Import cedarpy. Raises Unavailable if it is not installed."""
    from importlib.machinery import PathFinder
    from importlib.util import find_spec, module_from_spec

    # `cedarpy.pst` takes longer to import than the rest of cedarpy, and Aver does not use its syntax trees. So put a
    # module in its place that loads at its first use.
    package = find_spec("cedarpy") if "cedarpy.pst" not in sys.modules else None
    spec = None if package is None else PathFinder.find_spec("cedarpy.pst", package.submodule_search_locations)
    if spec is not None and spec.loader is not None:
        lazy, loader = module_from_spec(spec), spec.loader

        def load(attribute: str) -> Any:
            del lazy.__getattr__
            loader.exec_module(lazy)
            return getattr(lazy, attribute)

        lazy.__getattr__ = load  # type: ignore[method-assign]
        sys.modules["cedarpy.pst"] = lazy
    try:
        import cedarpy
    except ImportError as error:
        raise Unavailable("policies need the package cedarpy", advice="pip install aver-ledger") from error
    return cedarpy


@cache
def load_schema() -> Any:
    return load_cedar().Schema.from_str(SCHEMA_FILE.read_text(encoding="utf-8"))


STARTER_DIRECTORY = Path(__file__).with_name("starter")
PARSED_STARTER = STARTER_DIRECTORY / "parsed.json"
"""The parsed starter set, written by `python -m aver.gate.policy`. A test compares it with the texts."""

SUFFIX = ".cedar"

ALLOWED_FILE = "allowed.cedar"
"""The file in `AVER_HOME` with the rules of `aver policy allow`."""

FILES_MAX = 200
FILE_BYTES_MAX = 1024 * 1024
"""Limits of a bundle. The starter set has a few small files."""


@dataclass(frozen=True, slots=True)
class PolicyBundle:
    """Rules that decide together."""

    digest: str
    files: Mapping[str, str]
    rules: Mapping[str, PolicyRule]
    policies: cedarpy.PolicySet
    looks_at: frozenset[str]
    """The names of all attributes that any rule reads. No other attribute can change an answer."""
    standing: cedarpy.PolicySet | None = None
    """The rules with the annotation `@allow`, alone: they stand for a person's approval. None if there are none."""
    schema: str = ""
    """The schema that the rules were checked against; empty for that of this version of Aver."""

    def to_dict(self) -> dict[str, Any]:
        """Return all that is needed to ask the same rules again."""
        return {"schema": self.schema or SCHEMA_FILE.read_text(encoding="utf-8"), "files": dict(self.files)}


def load_policy_bundle(directory: Path | None = None, allowed: Path | None = None) -> PolicyBundle:
    """Load the bundle in a directory; without one, the starter set. `allowed` is a file with more rules, if it exists.

    Aver writes such a file when a person allows a command for good (`aver.gate.policy.standing_rules`).
    """
    more = {} if allowed is None or not os.path.lexists(allowed) else {allowed.name: read_policy_file(allowed)}
    if directory is None:
        return _extend_starter(more) if more else _load_starter_bundle()
    files = read_policy_files(directory)
    if files.keys() & more.keys():
        name = next(iter(more))
        raise BadInput(f"there is a {name} in {directory}, too", advice=f"rename {directory / name}")
    return build_policy_bundle({**files, **more})


def _extend_starter(files: Mapping[str, str]) -> PolicyBundle:
    """Add rules to the starter set. That is checked already, so only the new rules are parsed and checked."""
    starter, whole = _load_starter_bundle(), {**read_starter_files(), **files}
    checked = _read_parsed_starter(starter.files)
    if checked is None:
        return build_policy_bundle(whole)
    added = _read_valid_rules(files)
    if same := starter.rules.keys() & added.rules.keys():
        raise BadInput(f"the rule {min(same)!r} of {min(files)} is in the starter set, too: ids are unique")
    policies = {**checked["policies"], "staticPolicies": checked["policies"]["staticPolicies"] | added.policies}
    return PolicyBundle(
        _compute_digest(whole),
        whole,
        {**starter.rules, **added.rules},
        load_cedar().PolicySet.from_json_str(orjson.dumps(policies).decode()),
        starter.looks_at | frozenset(_find_attributes(added.policies)),
        added.standing,
    )


def _read_parsed_starter(files: Mapping[str, str]) -> dict[str, Any] | None:
    """Read the parsed form of the starter set; None if it was made from other texts, or cannot be read."""
    try:
        document: dict[str, Any] = orjson.loads(PARSED_STARTER.read_bytes())
        return document if document["digest"] == _compute_digest(files) else None
    except (OSError, ValueError):
        return None


def read_starter_policies() -> dict[str, Any]:
    """Return the rules of the starter set in Cedar's own JSON, by id."""
    files = read_starter_files()
    document = _read_parsed_starter(files)
    return _read_valid_rules(files).policies if document is None else document["policies"]["staticPolicies"]


@cache
def _load_starter_bundle() -> PolicyBundle:
    """Load the starter set from its parsed form, or from its texts if the parsed form was made from others."""
    files = read_starter_files()
    document = _read_parsed_starter(files)
    if document is None:
        return build_policy_bundle(files)
    try:
        policies = load_cedar().PolicySet.from_json_str(orjson.dumps(document["policies"]).decode())
    except ValueError:
        return build_policy_bundle(files)
    rules = {rule["id"]: PolicyRule(**rule) for rule in document["rules"]}
    return PolicyBundle(document["digest"], files, rules, policies, frozenset(document["looks_at"]))


def dump_parsed_bundle(files: Mapping[str, str]) -> bytes:
    """Return the content of `PARSED_STARTER`. Checking rules takes long, so the release holds them checked."""
    found = _read_valid_rules(files)
    document = {
        "digest": _compute_digest(files),
        "rules": [
            {name: value for name, value in asdict(rule).items() if value or name not in ("patch", "code")}
            for rule in found.rules.values()
        ],
        "policies": {"staticPolicies": found.policies, "templates": {}, "templateLinks": []},
        "looks_at": sorted(set(_find_attributes(found.policies))),
    }
    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n"


def read_starter_files() -> dict[str, str]:
    """The texts of the starter set, by file name."""
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(STARTER_DIRECTORY.glob(f"*{SUFFIX}"))}


def build_policy_bundle(files: Mapping[str, str], schema: str = "") -> PolicyBundle:
    """Build the bundle of texts by file name. Raises BadInput with the first problem.

    `schema` is the schema to check them against, where it is not that of this version: of rules in an old record.
    """
    found = _read_valid_rules(files, schema)
    looks_at = frozenset(_find_attributes(found.policies))
    digest = _compute_digest(files, schema)
    return PolicyBundle(digest, dict(files), found.rules, found.parsed, looks_at, found.standing, schema)


def _read_valid_rules(files: Mapping[str, str], schema: str = "") -> ParsedRules:
    # Imported here: the starter set is already checked and does not need it.
    from aver.gate.policy.rules import read_policy_rules

    # The annotations have no meaning in rules that another version of Aver has checked.
    if not schema or schema == SCHEMA_FILE.read_text(encoding="utf-8"):
        found = read_policy_rules(files)
    else:
        found = read_policy_rules(files, _parse_schema(schema))
    if found.problems:
        more = f" (and {len(found.problems) - 1} more)" if len(found.problems) > 1 else ""
        raise BadInput(f"{found.problems[0].words}{more}", advice="run aver policy check for all problems")
    return found


SCHEMA_CHARACTERS_MAX = 64 * 1024
SCHEMA_NESTING_MAX = 20
"""Limits of a schema in a record, which may be of others. Cedar's parser has none, and crashes on a deep one."""


def _parse_schema(text: str) -> Any:
    """Parse a schema of another version of Aver. Raises BadInput."""
    depth = deepest = 0
    for character in text:
        depth += (character in "<{[(") - (character in ">}])")
        deepest = max(deepest, depth)
    if len(text) > SCHEMA_CHARACTERS_MAX or deepest > SCHEMA_NESTING_MAX:
        raise BadInput("the schema of the rules is too long, or nested too deeply")
    try:
        return load_cedar().Schema.from_str(text)
    except ValueError as error:
        raise BadInput(f"the schema of the rules is none: {str(error)[:200]}") from error


def _compute_digest(files: Mapping[str, str], schema: str = "") -> str:
    content = {"schema": schema or SCHEMA_FILE.read_text(encoding="utf-8"), "files": dict(files)}
    return hashlib.sha256(canonical_bytes(content)).hexdigest()


def _find_attributes(part: Any) -> Iterator[str]:
    """Yield the attributes that rules in Cedar's JSON read: those of `x.name` and of `x has name`."""
    if isinstance(part, Mapping):
        for name, value in part.items():
            if name in (".", "has") and isinstance(value, Mapping) and isinstance(value.get("attr"), str):
                yield value["attr"]
            yield from _find_attributes(value)
    elif isinstance(part, list):
        for item in part:
            yield from _find_attributes(item)


def read_policy_files(directory: Path) -> dict[str, str]:
    """Read the texts of a policy directory by file name.

    Raises NotFound if there are none, and Refused if others may write the directory or a file.
    """
    if not directory.is_dir():
        raise NotFound(f"there is no policy directory {directory}", advice="aver policy init makes one")
    _check_owner(directory, os.stat(directory))
    paths = sorted(directory.glob(f"*{SUFFIX}"))
    if not paths:
        raise NotFound(
            f"there are no {SUFFIX} files in {directory}", advice="aver policy init makes some to begin with"
        )
    if len(paths) > FILES_MAX:
        raise BadInput(f"{directory} holds more than {FILES_MAX} policy files")
    return {path.name: read_policy_file(path) for path in paths}


def read_policy_file(path: Path) -> str:
    """Read one file of rules. Raises Refused if others may write it, BadInput or Unavailable if it cannot be read."""
    try:
        # No link, and the owner of the open file: the path may come to name another file in between.
        with open_regular(path, follow=False) as file:
            status = os.fstat(file.fileno())
            _check_owner(path, status)
            # Whoever has the other name could change the rules under it, from a place that is not guarded.
            if status.st_nlink > 1:
                advice = "copy it to a file of its own"
                raise Refused("POLICY_WRITABLE", f"{path} has another name (a hard link)", advice=advice)
            data = file.read(FILE_BYTES_MAX + 1)
    except NotRegularFile as error:
        raise BadInput(f"{path} is not a regular file", advice="move it away") from error
    except OSError as error:
        words = "it is a symbolic link" if error.errno == errno.ELOOP else error.strerror
        raise Unavailable(f"cannot read the policy {path}: {words}") from error
    if len(data) > FILE_BYTES_MAX:
        raise BadInput(f"{path} has more than {FILE_BYTES_MAX} bytes")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is not UTF-8 at byte {error.start}") from None


def _check_owner(path: Path, status: os.stat_result) -> None:
    """Refuse a file or directory that another user may write: that user could change the rules."""
    if status.st_mode & 0o022:
        raise Refused("POLICY_WRITABLE", f"{path} may be written by others", advice=f"run: chmod go-w '{path}'")
    if status.st_uid not in (0, os.geteuid()):
        raise Refused("POLICY_WRITABLE", f"{path} belongs to another user", advice="copy it, and look at it first")


def install_starter(target: Path) -> None:
    """Copy the starter set, its optional rules and its cases to a new directory, atomically.

    Raises BadInput if the directory exists: it may hold the user's own rules.
    """
    import shutil  # Here, because hooks read bundles and must not load these two.
    import tempfile

    if os.path.lexists(target):
        raise BadInput(f"{target} is there already and is not overwritten", advice="give another directory")
    try:
        make_directory(target.parent)
        temporary = Path(tempfile.mkdtemp(dir=target.parent, prefix=temporary_prefix(target.name)))
        try:
            for source in sorted(STARTER_DIRECTORY.rglob("*")):
                if not source.is_file() or source.suffix not in (".cedar", ".toml"):
                    continue
                path = temporary / source.relative_to(STARTER_DIRECTORY)
                path.parent.mkdir(mode=0o700, exist_ok=True)
                with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                    file.write(source.read_bytes())
                    file.flush()
                    os.fsync(file.fileno())
            # All files are on the disk: the directory appears with all of its rules, or not at all.
            os.rename(temporary, target)
            sync_new_name(target, lambda: os.rename(target, temporary))
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
    except OSError as error:
        raise Unavailable(f"cannot make {target}: {error.strerror}") from error

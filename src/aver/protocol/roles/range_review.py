"""The review of a range of commits: files, lines, risk, secrets and tests. The tool `review_range`.

    review_range {"range": "main..HEAD"}        output `result`, as JSON:

    {"from": "98f0…", "to": "41c2…", "files": 3, "added": 40, "removed": 2, "kinds": {"source": 2, "test": 1},
     "paths": ["src/app.py", …], "risk": 83, "secrets": 0, "secret_places": [], "tests_touched": true}

`risk` is the gate's estimate that such a change has to be repaired later, in thousandths, by the weights that Aver
ships: everybody gets the same number. A secret is a text on an added line that the rules of masking would mask; its
place is named, never its text. Git runs without anything that the repository's settings name (`gate.risk.history.git`).
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

from aver.capsule.masking.mask import mask
from aver.errors import BadInput
from aver.files.regular import read_if_regular
from aver.gate.own_tools import tool
from aver.gate.risk.diff import parse_header_paths
from aver.gate.risk.estimate import estimate_from_features
from aver.gate.risk.features import file_kind, measure_diff
from aver.gate.risk.history.git import GitReader, collect_lines, join_lines, open_git
from aver.gate.risk.history.repository import Repository, open_repository
from aver.gate.risk.model import RiskState
from aver.lazy_pattern import lazy_pattern

REVIEW_TOOL = "review_range"
DEFAULT_RANGE = "HEAD~1..HEAD"

PATHS_MAX = 200
"""Paths that a review lists. The counts cover all."""

PLACES_MAX = 100
"""Places of secrets that a review lists."""

REFS_MAX = 64 * 1024 * 1024
"""Bytes of `packed-refs` that are read."""

_REVISION = lazy_pattern(r"(?!.*\.\.)[A-Za-z0-9][A-Za-z0-9._/-]{0,199}(?:[~^][0-9]{0,4}){0,4}")
_COMMIT = lazy_pattern(r"[0-9a-f]{40}|[0-9a-f]{64}")
_HUNK = lazy_pattern(r"^@@ -\S+ \+(\d+)")
_DIFF_OPTIONS = (
    *("-r", "-p", "--unified=0", "--find-renames", "-l400", "--no-ext-diff", "--no-textconv", "--no-color"),
    *("--src-prefix=a/", "--dst-prefix=b/", "--no-relative", "--submodule=short", "--ignore-submodules=none"),
)


def build_review_tool(workspace: str) -> Any:
    """Return the function `review_range` for a workspace."""

    @tool(effects=["read"])
    def review_range(range: str = DEFAULT_RANGE) -> dict[str, Any]:  # noqa: A002 - the tool's argument is named so
        return review_commits(workspace, range)

    return review_range


def check_range(workspace: str, commits: str) -> None:
    """Raise `BadInput` for a text that is no range of commits in the repository of a workspace."""
    repository = open_repository(workspace)
    with open_git(repository) as git:
        _resolve_range(git, repository, commits)


def _resolve_range(git: GitReader, repository: Repository, commits: str) -> tuple[str, str]:
    first, dots, last = commits.partition("..")
    return _resolve(git, repository, first), _resolve(git, repository, last if dots and last else "HEAD")


def review_commits(workspace: str, commits: str) -> dict[str, Any]:
    """Review a range `A..B`, or `A` for `A..HEAD`. Raises `BadInput` for what is no range of this repository."""
    repository = open_repository(workspace)
    with open_git(repository) as git:
        before, after = _resolve_range(git, repository, commits)
        chunks = git.read_output("diff-tree", *_DIFF_OPTIONS, before, after, "--")
        lines = collect_lines(chunks, "the change", advice="review it in parts")
    counted = _count_lines(lines)
    estimate = estimate_from_features(measure_diff(join_lines(lines)).features.to_dict(), RiskState())
    return {"from": before, "to": after, **counted, "risk": round(estimate.score * 1000)}


def _count_lines(lines: list[str]) -> dict[str, Any]:
    """Return the counts of a diff. Aver reads the lines one by one; a line of code may look like a header."""
    paths: list[str] = []
    places: list[dict[str, Any]] = []
    added = removed = secrets = number = 0
    in_hunk = False
    for line in lines:
        if line.startswith("diff --git "):
            in_hunk = False
            old, new = parse_header_paths(line)
            paths.append(new or old or "")
        elif found := _HUNK.match(line):
            in_hunk, number = True, int(found[1]) - 1
        elif in_hunk and line.startswith("+"):
            added, number = added + 1, number + 1
            count = mask(line[1:].encode("utf-8", "surrogateescape").decode("utf-8", "replace")).count
            secrets += count
            if count and len(places) < PLACES_MAX:
                places.append({"path": _clean(paths[-1]), "line": number})
        elif in_hunk and line.startswith("-"):
            removed += 1
    kinds = Counter(file_kind(path) for path in paths)
    return {
        "files": len(paths),
        "added": added,
        "removed": removed,
        "kinds": dict(sorted(kinds.items())),
        "paths": [_clean(path) for path in paths[:PATHS_MAX]],
        "secrets": secrets,
        "secret_places": places,
        "tests_touched": kinds["test"] > 0,
    }


def _resolve(git: GitReader, repository: Repository, name: str) -> str:
    """Return the commit of a revision: HEAD, an id, a branch or a tag, with steps back such as `~2`."""
    if _REVISION.fullmatch(name) is None:
        raise BadInput(f"{ascii(name)[:80]} is no revision", advice="use a range such as main..HEAD or HEAD~3..HEAD")
    base, steps = re.match(r"([^~^]*)(.*)", name, re.DOTALL).groups()  # type: ignore[union-attr]
    # Git sees no refs here, but for HEAD: so that nothing of the repository's settings counts.
    known = base if base == "HEAD" or re.fullmatch(r"[0-9a-f]{4,64}", base) else _read_ref(repository, base)
    if known is None:
        raise BadInput(f"there is no revision {ascii(name)[:80]} in {repository.root}")
    try:
        chunks = git.read_output("rev-parse", "--verify", "--end-of-options", f"{known}{steps}^{{commit}}")
        found = "".join(line for chunk in chunks for line in chunk)
    except BadInput as error:
        raise BadInput(f"there is no revision {ascii(name)[:80]} in {repository.root}") from error
    if _COMMIT.fullmatch(found) is None:
        raise BadInput(f"there is no revision {ascii(name)[:80]} in {repository.root}")
    return found


def _read_ref(repository: Repository, name: str) -> str | None:
    common: Path = repository.objects.parent
    for ref in (f"refs/heads/{name}", f"refs/tags/{name}", f"refs/remotes/{name}"):
        found = (read_if_regular(common / ref, 200) or b"").decode("ascii", "replace").strip()
        if _COMMIT.fullmatch(found):
            return found
        for line in (read_if_regular(common / "packed-refs", REFS_MAX) or b"").splitlines():
            commit, _, packed = line.decode("utf-8", "replace").partition(" ")
            if packed == ref and _COMMIT.fullmatch(commit):
                return commit
    return None


def _clean(path: str) -> str:
    """Return a path as a text that JSON can hold."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")

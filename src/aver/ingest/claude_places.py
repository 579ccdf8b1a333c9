"""Where Claude Code keeps its transcripts, and whose each of them is.

    <home>/.claude/projects/<project>/<session>.jsonl                          a session
    <home>/.claude/projects/<project>/<session>/subagents/agent-<id>.jsonl     a subagent of it
    <home>/.claude/projects/<project>/agent-<id>.jsonl                         the same, in older versions

`CLAUDE_CONFIG_DIR` stands for `<home>/.claude` where it is set. Beside the transcript of a subagent there may be an
`agent-<id>.meta.json`, which names the call that launched it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aver.errors import Unavailable
from aver.ingest.claude_values import words
from aver.ingest.contract import Source
from aver.ingest.lines import LineReader
from aver.ingest.plain import read_plain
from aver.ingest.records import parsed
from aver.surroundings import Surroundings

__all__ = ["TOOL", "deletes_after", "located", "places"]

TOOL = "claude-code"

KEPT_DAYS = 30
"""Days for which Claude Code keeps transcripts unless its settings say otherwise."""

SETTINGS_MAX = 4 * 1024 * 1024
"""Bytes of its settings that are read."""

BESIDE_MAX = 1024 * 1024
"""Bytes of the file that says what a subagent is: a few hundred, and not read if it is something else."""


def places(around: Surroundings) -> Iterator[Path]:
    yield _home(around) / "projects"


def deletes_after(around: Surroundings) -> int:
    """After how many days Claude Code deletes transcripts: by its settings, or by itself."""
    settings = _value_in(_home(around) / "settings.json", SETTINGS_MAX)
    days = settings.get("cleanupPeriodDays") if isinstance(settings, dict) else None
    return days if isinstance(days, int) and not isinstance(days, bool) and days >= 0 else KEPT_DAYS


def _home(around: Surroundings) -> Path:
    told = around.environment.get("CLAUDE_CONFIG_DIR")
    return Path(told) if told else around.home / ".claude"


def located(around: Surroundings) -> Iterator[Source]:
    for place in places(around):
        for path in sorted(place.glob("*/*.jsonl")):
            if not path.name.startswith("agent-"):
                yield Source(tool=TOOL, session=path.stem, path=path, below=_below(place, path))
            elif (session := _session_in(path)) is not None:
                yield _subagent(place, path, session)
        # Some are kept in directories of their own, by the workflow that they belong to.
        for path in sorted(place.glob("*/*/subagents/**/agent-*.jsonl")):
            yield _subagent(place, path, path.relative_to(place).parts[1])


def _session_in(path: Path) -> str | None:
    """Whose a subagent's transcript beside those of sessions is: its first record says so. Until that is whole nobody
    knows; if it does not say so, the transcript is taken as a session."""
    try:
        first = next(iter(LineReader(path)()), None)
    except Unavailable:
        return None
    if first is None:
        return None
    record = parsed(first)
    return (words(record.get("sessionId")) if isinstance(record, dict) else "") or path.stem


def _subagent(place: Path, path: Path, session: str) -> Source:
    agent = path.stem.removeprefix("agent-") if session != path.stem else ""
    below, launched_by = _below(place, path), _launching_call(path)
    return Source(tool=TOOL, session=session, path=path, agent=agent, launched_by=launched_by, below=below)


def _below(place: Path, path: Path) -> str:
    """A session may go on in another project, and workflows may have agents of the same name."""
    return path.parent.relative_to(place).as_posix()


def _launching_call(path: Path) -> str:
    value = _value_in(path.with_suffix(".meta.json"), BESIDE_MAX)
    return words(value.get("toolUseId")) if isinstance(value, dict) else ""


def _value_in(path: Path, most: int) -> Any:
    """The JSON value in a file; None where there is no such file, or none that can be read."""
    try:
        data = read_plain(path, most)
    except Unavailable:
        return None
    return None if data is None else parsed(data)

"""Calls that Claude Code refused before they ran, as its own transcript says.

No hook reports that the person said no to a call. The transcript does, in fields beside the result:

    {"type": "user", "sessionId": "5f0c…", "toolDenialKind": "user-rejected", "toolUseResult": "User rejected tool use",
     "message": {"content": [{"type": "tool_result", "tool_use_id": "toolu_1", "is_error": true, "content": "…"}]}}

Earlier versions have no `toolDenialKind`. A call that was interrupted or cancelled may have run for a while, so these
kinds are no refusals. The words in `content` never count: a tool could have written them.

The transcript counts only where the gate asks before an agent writes: below a directory `.claude`. If
`CLAUDE_CONFIG_DIR` leads elsewhere, Aver finds no refusals, and the calls count as made.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aver import log
from aver.files.regular import open_regular
from aver.ingest.foreign_json import parse_json

TAIL_MAX = 4 * 1024 * 1024
"""Bytes at the end of a transcript that are searched. A refusal before them is too old to matter."""

SUBAGENTS_MAX = 50
"""Transcripts of subagents that are searched."""

REFUSING_KINDS = frozenset(
    ("user-rejected", "permission-rule", "automode-blocked", "automode-unavailable", "automode-parsing-error")
)
"""Values of `toolDenialKind` that Claude Code writes for calls that it did not start."""

_OLD_REFUSAL = "User rejected tool use"
_GUARDED_DIRECTORY = ".claude"


def find_refused_calls(transcript: str, session: str) -> frozenset[str]:
    """Return the ids of the calls that the transcript of a session has as refused, and as nothing else."""
    refused: set[str] = set()
    made: set[str] = set()
    for path in _list_transcripts(transcript):
        for line in _read_tail(path):
            # Most lines are no results. Reading all of them as JSON would take long.
            if b'"tool_result"' in line:
                for identifier, is_refusal in _read_results(line, session):
                    (refused if is_refusal else made).add(identifier)
    return frozenset(refused - made)


def _list_transcripts(transcript: str) -> Iterator[Path]:
    """Yield the transcript of the session, and those of its subagents."""
    path = Path(transcript)
    if not path.is_absolute() or "\0" in transcript:
        return
    real = Path(os.path.realpath(path))
    if _GUARDED_DIRECTORY not in real.parts[:-1]:
        log.debug("hooks", "the transcript %s is not in a guarded directory, so its refusals do not count", real)
        return
    yield real
    try:
        names = sorted(os.listdir(real.with_suffix("") / "subagents"))
    except OSError:
        return
    wanted = [name for name in names if name.startswith("agent-") and name.endswith(".jsonl")]
    yield from (real.with_suffix("") / "subagents" / name for name in wanted[:SUBAGENTS_MAX])


def _read_tail(path: Path) -> list[bytes]:
    try:
        with open_regular(path, follow=False) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL_MAX))
            return file.read(TAIL_MAX).split(b"\n")
    except (OSError, ValueError):
        return []


def _read_results(line: bytes, session: str) -> Iterator[tuple[str, bool]]:
    """Yield the calls whose results a line has, and whether it says that they were refused."""
    record: Any = parse_json(line)
    message = record.get("message") if isinstance(record, dict) else None
    content = message.get("content") if isinstance(message, dict) else None
    blocks = [
        block
        for block in (content if isinstance(content, list) else ())
        if isinstance(block, dict) and block.get("type") == "tool_result"
    ]
    # The fields stand beside the message. With several results it is unknown which of them they describe.
    is_refusal = (
        len(blocks) == 1
        and record.get("type") == "user"
        and record.get("sessionId") == session
        and blocks[0].get("is_error") is True
        and (
            str(record.get("toolDenialKind")) in REFUSING_KINDS
            or ("toolDenialKind" not in record and record.get("toolUseResult") == _OLD_REFUSAL)
        )
    )
    for block in blocks:
        if isinstance(identifier := block.get("tool_use_id"), str):
            yield identifier, is_refusal

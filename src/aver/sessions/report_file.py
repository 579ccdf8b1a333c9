"""The file of a report: one HTML page that carries its records and a signed statement about itself.

    <!doctype html> … <meta name="aver" content="report 1"> …
    <script type="application/vnd.aver.file" data-name="index.json">eyJnZW5lcmF0ZWRfYXQi…</script>
    <script type="application/vnd.aver.file" data-name="claude-code.5d2e.json">…</script>
    <script type="application/vnd.aver.statement" id="aver-report">{"v":1,"purpose":"report",…}</script>
    …

A browser runs neither kind of block, because it knows neither type. Each file of the bundle is base64. The statement
has the purpose `report` and states exactly

    {v: 1, subject, since, until, heads: {<chain>: {count, hash}}, verdict: {status, level, records, chains},
     made_at, sha256}

`sha256` is that of the file with the statement's block empty. So the signature covers every other byte of the page.
The block itself is good only as `dump_block` writes it, without any `<`: a browser would end the block at `</SCRIPT >`,
and show the rest. Everything that a page shows of records is escaped. So no record can bring such a block into a page.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Any

import orjson

from aver.capsule.base64_text import decode_base64
from aver.capsule.json_document import order_keys
from aver.errors import BadInput
from aver.fast_dataclass import dataclass
from aver.keys import Statement
from aver.ledger.bundle.layout import BLOBS
from aver.ledger.checkpoint import order_heads
from aver.ledger.head import COUNT_END

PURPOSE = "report"

REPORT_MARK = '<meta name="aver" content="report 1">'
FIRST_WORDS = '<p class="meta">Report · '
REPORT_MARKS = (REPORT_MARK, FIRST_WORDS)
"""Either makes a page a report: so one with a byte changed is still a report, and fails."""

FILE_OPENING = '<script type="application/vnd.aver.file" data-name="'
STATEMENT_OPENING = '<script type="application/vnd.aver.statement" id="aver-report">'
CLOSING = "</script>"

REPORT_MAX = 512 * 1024 * 1024
"""Largest report that is judged, in bytes: the page takes as much of a site. A report is for people to read."""

FILES_MAX = 100_000
"""Most files in a report: far above the chains and blobs of a session."""

STATEMENT_MAX = 16 * 1024 * 1024
"""Longest text of the statement's block, in bytes: the largest statement and its signatures."""

CONTENT_KEYS = ("v", "subject", "since", "until", "heads", "verdict", "made_at", "sha256")
VERDICT_KEYS = ("status", "level", "records", "chains")

_FILE = re.compile(rb'([A-Za-z0-9_][A-Za-z0-9._-]{0,199}|blobs/[0-9a-f]{64})">([A-Za-z0-9+/=]*)</script>')
_HEX64 = re.compile(r"[0-9a-f]{64}").fullmatch


@dataclass(frozen=True, slots=True)
class ReportParts:
    """A report taken apart: the files of its bundle, the text of its statement, the digest of everything else."""

    files: dict[str, bytes]
    statement: bytes
    sha256: str


def split_report(data: bytes) -> ReportParts:
    """Take a report apart. Raises `BadInput` if its blocks are not of the form above."""
    opening = STATEMENT_OPENING.encode()
    if data.count(opening) != 1:
        raise BadInput(f"a report has one block for its statement; this file has {data.count(opening)}")
    start = data.index(opening) + len(opening)
    end = data.find(CLOSING.encode(), start)
    if end < 0 or end - start > STATEMENT_MAX:
        raise BadInput("the block of the statement does not end")
    digest = hashlib.sha256(data[:start])
    digest.update(data[end:])
    files: dict[str, bytes] = {}
    opening, at = FILE_OPENING.encode(), 0
    while (at := data.find(opening, at)) >= 0:
        found = _FILE.match(data, at + len(opening))
        if found is None:
            raise BadInput(f"the block of a file at byte {at} is not of its form")
        name = found[1].decode("ascii")
        if name == BLOBS:
            raise BadInput(f"the report has a file in the place of the directory {BLOBS}")
        if name in files or len(files) >= FILES_MAX:
            raise BadInput(f"the report has the file {name} twice, or too many files")
        try:
            files[name] = decode_base64(found[2])
        except ValueError:
            raise BadInput(f"the block of the file {name} is not base64") from None
        at = found.end()
    return ReportParts(files, data[start:end], digest.hexdigest())


def dump_block(statement: Statement, chains: Iterable[str] | None = None) -> bytes:
    """The text of the statement's block. Heads stand by name; in older reports, in the order of its `chains`."""
    content = order_keys(statement.content, CONTENT_KEYS)
    content["verdict"] = order_keys(content["verdict"], VERDICT_KEYS)
    content["heads"] = order_heads(content["heads"], sorted(content["heads"]) if chains is None else chains)
    return orjson.dumps({**statement.to_dict(), "content": content}).replace(b"<", rb"\u003c")


def check_content(statement: Statement) -> dict[str, Any]:
    """The content of a report's statement. Raises `BadInput` unless it states exactly what a report states."""
    content = statement.content
    if statement.purpose != PURPOSE:
        raise BadInput(f"the statement is for the purpose {statement.purpose}, not for a report")
    if content.keys() != set(CONTENT_KEYS) or type(content["v"]) is not int or content["v"] != 1:
        raise BadInput(f"the statement does not state exactly {', '.join(sorted(CONTENT_KEYS))}")
    verdict, heads = content["verdict"], content["heads"]
    texts = (content["subject"], content["made_at"], content["sha256"])
    if not all(isinstance(text, str) for text in texts) or not _HEX64(content["sha256"]):
        raise BadInput("the statement does not name its subject, its time and the digest of the page")
    if not all(value is None or isinstance(value, str) for value in (content["since"], content["until"])):
        raise BadInput("since and until of the statement are times or null")
    if not isinstance(verdict, dict) or verdict.keys() != set(VERDICT_KEYS):
        raise BadInput(f"the verdict of the statement has exactly {', '.join(sorted(VERDICT_KEYS))}")
    counts = (verdict["records"], verdict["chains"])
    if not all(isinstance(verdict[name], str) for name in ("status", "level")) or not all(map(_is_count, counts)):
        raise BadInput("the verdict of the statement is not of its form")
    if not isinstance(heads, dict) or not all(map(_is_head, heads.values())):
        raise BadInput("the heads of the statement are not of their form")
    return content


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < COUNT_END


def _is_head(value: Any) -> bool:
    if not isinstance(value, dict) or value.keys() != {"count", "hash"} or not _is_count(value["count"]):
        return False
    digest = value["hash"]
    return digest is None if value["count"] == 0 else isinstance(digest, str) and _HEX64(digest) is not None

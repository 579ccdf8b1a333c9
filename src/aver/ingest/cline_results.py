"""What the results say that Cline gives back to the model: they are texts, and the texts tell what happened.

Only what Cline itself writes at the beginning of a result is read, never what a command or a file says below it. What a
server or a page answers is theirs from its first word: it cannot make a call that was made look like one that was
refused, and neither can a file that was read without asking.
"""

from __future__ import annotations

import re
from typing import Any, Literal

from aver.ingest.heavy import reference, without_pictures
from aver.ingest.records import text_in
from aver.values import dataclass

__all__ = ["Verdict", "judged", "lightened_result", "text_of"]

HEAD = 400
"""Characters at the beginning of a result in which Cline says what became of the call."""

_DENIED = ("The user denied this operation", "The user rejected this operation")
_SKIPPED = re.compile(r"Skipping (?:any remaining )?tool\b.{0,80}\buser reject", re.IGNORECASE | re.DOTALL).match
_NOT_RUN = ("was not executed because", "could not be completed", "cannot be used in PLAN MODE")
_RULE = re.compile(
    r"(?:The tool execution failed with the following error:\s*<error>\s*)?Access to .{1,4096}? is blocked by the "
    r"\.clineignore",
    re.DOTALL,
).match
_PERMISSIONS = ("Command denied by CLINE_COMMAND_PERMISSIONS", "Command execution denied by permission")
_ANSWERED_BY_OTHERS = ("use_mcp_tool", "access_mcp_resource", "web_fetch", "web_search")
_FAILED = ("The tool execution failed", "[ERROR]", "Error:", "Error executing", "Missing value for required parameter")
_EXIT_CODE = re.compile(r"\bexit(?:ed with)?(?: code| status):? ?\(?(-?[0-9]{1,10})", re.IGNORECASE).search
_OUTPUT = re.compile(r"^(?:Output|Here's the output(?: so far)?):\s*$", re.MULTILINE).search
_RUNS_ON = re.compile(r"Command is still running|Command is running in the background", re.IGNORECASE).search
_NOT_WELL = re.compile(
    r"not successful|timed out|was (?:cancelled|terminated|killed)|Command failed", re.IGNORECASE
).search
_FILE = re.compile(r"<(final_file_content|file_content)\b[^>\n]{0,4096}>\n").search


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of a call."""

    ok: bool | None = True
    error: str | None = None
    denied: bool = False
    by_rule: str | None = None
    """Of what was denied: the rule that did it; None where a person did."""
    status: Literal["partial"] | None = None
    exit_code: int | None = None
    was_run: bool = True
    """Whether the result shows that it was carried out, and so that whoever was asked had allowed it."""


def judged(result: Any, tool: str, *, asked: bool, is_error: bool) -> Verdict:
    """What a result tells of a call of a tool. Where nobody was asked, nobody refused."""
    text = text_of(result)
    start = text[:HEAD].lstrip()
    is_command = tool == "execute_command"
    if asked and (start.startswith(_DENIED) or _SKIPPED(start)):
        return Verdict(ok=False, error=start.partition("\n")[0], denied=True, was_run=False)
    if tool in _ANSWERED_BY_OTHERS:
        return Verdict(ok=False, error=_reason(text)) if is_error or start.startswith(_FAILED) else Verdict()
    if (rule := ".clineignore" if _RULE(text) else None) or start.startswith(_PERMISSIONS):
        return Verdict(
            ok=False, error=_reason(text), denied=True, by_rule=rule or "CLINE_COMMAND_PERMISSIONS", was_run=False
        )
    if any(words in start for words in _NOT_RUN) and not is_command:
        return Verdict(ok=False, error=start.partition("\n")[0], was_run=False)
    if is_error or start.startswith(_FAILED):
        return Verdict(ok=False, error=_reason(text), was_run=not start.startswith("Missing value"))
    return _ran(text) if is_command else Verdict()


def _ran(text: str) -> Verdict:
    output = _OUTPUT(text)
    head = text[: output.start()] if output else text[:HEAD]
    code = _EXIT_CODE(head)
    if code and int(code[1]):
        return Verdict(ok=False, error=f"exit code {code[1]}", exit_code=int(code[1]))
    if code:
        return Verdict(exit_code=0)
    if _RUNS_ON(head):
        return Verdict(ok=None, status="partial")
    if _NOT_WELL(head):
        return Verdict(ok=False, error=head.strip().partition("\n")[0])
    return Verdict()


def text_of(result: Any) -> str:
    return result if isinstance(result, str) else text_in(result)


def lightened_result(result: Any) -> Any:
    """A result without pictures, and without the whole file that Cline repeats after every edit."""
    if isinstance(result, str):
        return _without_file(result)
    if isinstance(result, list):
        return [lightened_result(item) for item in result]
    if isinstance(result, dict) and isinstance(result.get("text"), str):
        return {**without_pictures(result), "text": lightened_result(result["text"])}
    return without_pictures(result)


def _without_file(text: str) -> str:
    """The text with the first file in it by size and digest: Cline repeats one."""
    found = _FILE(text)
    end = text.rfind(f"\n</{found[1]}>") if found else -1
    if found is None or end < found.end():
        return text
    kept = reference(text[found.end() : end])
    return f"{text[: found.end()]}[{kept['size']} bytes, sha256 {kept['sha256']}]{text[end:]}"


def _reason(text: str) -> str:
    inner = text.partition("<error>")[2].partition("</error>")[0].strip()
    return inner or text.strip()[:HEAD]

"""Shows a trace of the protocol: its events in order, its claims with their evidence, and its verdict."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aver.capsule.aver_block import TRACE_PREFIX
from aver.cli.terminal import Screen, StyledText, format_time, print_json
from aver.cli.verbs.protocol.trace_access import describe_event, event_to_dict, print_event
from aver.cli.verdict_text import exit_code, status_parts
from aver.errors import AverError
from aver.text import to_one_line

if TYPE_CHECKING:
    from aver.check import ResolvedTarget
    from aver.protocol.events import Event
    from aver.protocol.judgement.audit import TraceReport
    from aver.verdict import Verdict


def show_trace(found: ResolvedTarget, given: argparse.Namespace, screen: Screen) -> int | None:
    """Show a trace; None if the chain is none. Returns the exit code."""
    if found.chain is None or not found.chain.startswith(TRACE_PREFIX):
        return None
    from aver.check import open_ledger, verify
    from aver.config import home_dir
    from aver.ledger.lookup import LedgerSource
    from aver.protocol.judgement.audit import report_trace

    with LedgerSource(given.tenant, home_dir(), given.ledger, open_ledger).open() as ledger:
        events, broken = _read_events(ledger.read(found.chain))
        verdict = verify(given.thing, tenant=given.tenant, ledger=given.ledger)
        made: TraceReport | None = None
        try:
            made = report_trace(ledger, found.chain.removeprefix(TRACE_PREFIX))
        except AverError as error:
            broken = broken or error.message
    if given.html is not None:
        return _write_page(given, screen, events, made, verdict)
    if given.json:
        report = None if made is None else dict(made.report.content)
        listed = [event_to_dict(event) for event in events]
        print_json({"chain": found.chain, "events": listed, "report": report, "verdict": verdict.to_dict()})
        return exit_code([verdict.status], strict=False)
    _print_trace(screen, found.chain, events, made, verdict)
    if broken:
        screen.print_line(StyledText(f"not shown from here on: {to_one_line(broken)}", "bad"))
    return exit_code([verdict.status], strict=False)


def _read_events(records: Iterator[Any]) -> tuple[list[Event], str]:
    """Read the events of a trace, up to the first record that is none, and say why it is none."""
    from aver.protocol.events import read_event

    events: list[Event] = []
    try:
        for record in records:
            events.append(read_event(record))
    except AverError as error:
        return events, error.message
    return events, ""


def _print_trace(screen: Screen, chain: str, events: list[Event], made: TraceReport | None, verdict: Verdict) -> None:
    screen.print_line(StyledText(f"trace {chain.removeprefix(TRACE_PREFIX)}", "strong"))
    if events:
        screen.print_hanging("task   ", text=str(events[0].payload.get("task", {}).get("objective", "")))
        screen.print_line(f"state  {events[-1].after}, last event {format_time(events[-1].at)} UTC")
    bad = verdict.first_bad
    cause = "" if bad is None else f": {bad.code}, {bad.words}"
    screen.print_line(*status_parts(screen, verdict), to_one_line(cause))
    screen.print_line()
    for event in events:
        print_event(screen, event)
    if made is None:
        return
    from aver.protocol.judgement.report_text import ClaimWords, describe_claimants, describe_finding

    for claim in made.report.content["claims"]:
        words = made.texts.get(claim["id"], ClaimWords())
        screen.print_line()
        screen.print_hanging("claim  ", text=words.text, style="strong")
        who = describe_claimants(claim, words)
        screen.print_line(f"  {claim['standing']}, by {who}, confidence {claim['confidence']}")
        for item in claim["evidence"]:
            mark = screen.status_mark("passed" if item["holds"] else "failed")
            screen.print_hanging("  ", mark, " ", text=_describe_item(item))
    _print_reruns(screen, events, made)
    for found in made.report.content["findings"]:
        if found["status"] != "note":
            mark = screen.status_mark("failed" if found["status"] == "failed" else "warning")
            screen.print_hanging(mark, f" {found['code']}  ", text=describe_finding(found, made.report.content))


def _print_reruns(screen: Screen, events: list[Event], made: TraceReport) -> None:
    """Print each call that the auditor was to repeat, and what that gave."""
    from aver.protocol.judgement.report_text import describe_rerun

    intents = {event.id: event for event in events if event.name == "tool_intent_signed"}
    weights = {
        found["subject"]: found["status"]
        for found in made.report.content["findings"]
        if found["code"] == "NOT_REPRODUCED"
    }
    for execution in made.report.content["executions"]:
        if execution["rerun"] is None:
            continue
        weight = weights.get(execution["id"], "passed")
        screen.print_line()
        screen.print_hanging("call   ", text=describe_event(intents[execution["intent"]]), style="strong")
        mark = screen.status_mark("not_checked" if weight == "note" else weight)
        screen.print_hanging("  ", mark, " ", text=describe_rerun(execution["rerun"]))


def _describe_item(item: Mapping[str, Any]) -> str:
    import json

    check = item.get("check")
    words = "the artifact is here" if check is None else json.dumps(check, ensure_ascii=False)
    found = "" if item["holds"] else f"; found {json.dumps(item['found'], ensure_ascii=False)} ({item['reason']})"
    artifact = f"  artifact {item['artifact'][:12]}" if "artifact" in item else ""
    return f"{words}{found}{artifact}"


def _write_page(
    given: argparse.Namespace, screen: Screen, events: list[Event], made: TraceReport | None, verdict: Verdict
) -> int:
    """Write the report's page, with the events in it."""
    from aver.cli.options import Usage
    from aver.files.new_file import write_new_file
    from aver.protocol.judgement.report_page import render_report_page

    if made is None:
        raise Usage("this trace cannot be judged here, so there is no page", advice="show it without --html")
    page = render_report_page(made.report.content, made.texts)
    page = page.replace(
        "</main>", "".join(_render_events(events)) + "</main>", 1
    )  # Texts are escaped: it is the only one.
    write_new_file(Path(given.html), page.encode("utf-8", "backslashreplace"), force=given.force)
    if given.json:
        print_json({"path": given.html, "verdict": verdict.to_dict()})
    else:
        screen.print_line(f"wrote {given.html}")
    return exit_code([verdict.status], strict=False)


def _render_events(events: list[Event]) -> Iterator[str]:
    from aver.html import escape_text

    yield "<section><h2>Events</h2>\n<table><thead><tr>"
    yield "".join(f'<th scope="col">{name}</th>' for name in ("Record", "Agent", "Event", "Gist"))
    yield "</tr></thead><tbody>\n"
    for event in events:
        cells = (str(event.sequence), event.agent, event.name, describe_event(event))
        yield "<tr>" + "".join(f"<td>{escape_text(cell)}</td>" for cell in cells) + "</tr>\n"
    yield "</tbody></table></section>\n"

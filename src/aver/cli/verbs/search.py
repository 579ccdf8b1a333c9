"""`aver search`: finds records by their words, and shows the record of each hit, read and verified again."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from aver.cli.options import Usage, add_json, add_ledger, add_tenant, parse_count
from aver.cli.read_only import print_read_only_note, read_only_verdict, verdict_entry
from aver.cli.record_line import RecordLine, print_record_line, to_record_line
from aver.cli.terminal import Progress, Screen, StderrScreen, StyledText, print_json
from aver.cli.verdict_text import exit_code
from aver.errors import NotFound, Unavailable
from aver.fast_dataclass import dataclass
from aver.text import plural

if TYPE_CHECKING:
    from aver.explorer.index import Excerpt, Hit, IndexProgress, LedgerIndex, SearchPage, SearchQuery
    from aver.ledger import Ledger
    from aver.verdict import Finding

EXAMPLES = """\
  aver search permission denied                  records with both words, newest first
  aver search '"permission denied" tool:Bash'    these words side by side, in calls of one tool
  aver search 'path:src/app.py outcome:failure since:7d'
  aver search 'kind:gate outcome:denied'         what the gate refused
  aver search --ledger bundle 'roun*'            words that begin so, in a bundle that somebody sent
  aver search --rebuild                          make the index anew"""

DEFAULT_LIMIT = 20
"""Hits shown by default: they fill one screen and are verified quickly."""

MISSING = "missing"


@dataclass(frozen=True, slots=True)
class ShownHit:
    """A hit with its record as the ledger has it now. `status` is that of the verdict on this one record."""

    hit: Hit
    line: RecordLine | None
    status: str
    finding: Finding | None = None
    excerpt: Excerpt | None = None
    """A few words around the hit, from the record."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "chain": self.hit.chain,
            "sequence": self.hit.sequence,
            "status": self.status,
            "finding": None if self.finding is None else self.finding.to_dict(),
            "record": None if self.line is None else self.line.to_dict(),
            "excerpt": None if self.excerpt is None else self.excerpt.to_dict(),
        }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "query",
        nargs="*",
        metavar="QUERY",
        help='words, "phrases", prefix*, and tool: kind: outcome: path: since: conditions; all must hold',
    )
    parser.add_argument(
        "-n",
        "--limit",
        type=parse_count,
        default=DEFAULT_LIMIT,
        metavar="N",
        help=f"show the newest N hits, at most 500 (default: {DEFAULT_LIMIT})",
    )
    parser.add_argument("--cursor", metavar="TEXT", help="go on after the page that named this cursor")
    parser.add_argument("--as-is", action="store_true", help="search what is indexed; do not read new records first")
    parser.add_argument("--rebuild", action="store_true", help="delete the index and make it anew")
    add_ledger(parser)
    add_tenant(parser)
    add_json(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.check import open_ledger
    from aver.explorer.index import LedgerIndex, parse_query

    words = " ".join(given.query)
    if not words and not given.rebuild:
        raise Usage("a search needs words", advice='try: aver search "permission denied"')
    query = parse_query(words) if words else None
    with open_ledger(given.ledger, tenant=given.tenant, create=False) as ledger, ExitStack() as stack:
        if read_only_verdict(ledger) is not None:
            # The id in a bundle may be that of our own ledger, so its records must not come into our index.
            index = stack.enter_context(LedgerIndex.temporary())
        else:
            index = LedgerIndex.in_home(ledger.config.home)
            if given.rebuild:
                index.rebuild()
        progress = None if given.as_is else _catch_up(index, ledger)
        if query is None:
            return _report_rebuild(progress or index.progress(ledger), given, screen)
        page = index.search(ledger, query, cursor=given.cursor, limit=given.limit)
        shown = [_read_hit(ledger, hit, query) for hit in page.hits]
        if given.json:
            found_in = {"ledger": ledger.id, "tenant": ledger.tenant, **verdict_entry(ledger)}
            answer = {**page.to_dict(), "hits": [each.to_dict() for each in shown]}
            print_json({**found_in, **answer})
        else:
            for each in shown:
                _print_hit(screen, each)
            _print_remarks(page)
        code = print_read_only_note(ledger)
    return code or exit_code([each.status for each in shown], strict=False)


def _catch_up(index: LedgerIndex, ledger: Ledger) -> IndexProgress | None:
    """Read new records. A fault of the index is told, and what is indexed already may still be searched."""
    from aver.explorer.index import IndexUnavailable

    try:
        with Progress("indexing") as progress:
            return index.catch_up(ledger, report=progress, is_patient=False)
    except IndexUnavailable as error:
        StderrScreen().print_error(f"new records are not searched: {error.message}", error.advice)
        return None


def _read_hit(ledger: Ledger, hit: Hit, query: SearchQuery) -> ShownHit:
    """Read the record at the place of a hit, and verify it."""
    from aver.explorer.index import cut_excerpt, read_texts
    from aver.ledger.verify import verify_record
    from aver.sessions.step import read_step

    try:
        record = next(ledger.read(hit.chain, hit.sequence, hit.sequence + 1), None)
        if record is None:
            return ShownHit(hit, None, MISSING)
        if read_only_verdict(ledger) is not None:
            # Records of a bundle that do not hold are not shown at all. Its verdict stands below.
            excerpt = cut_excerpt(read_texts(read_step(record), ledger.blob), query)
            return ShownHit(hit, to_record_line(record), "verified", excerpt=excerpt)
        verdict = verify_record(
            ledger, hit.chain, hit.sequence, level="signature", ring=ledger.ring(), require_pq=False
        )
    except (NotFound, Unavailable):
        return ShownHit(hit, None, MISSING)
    # A record that does not hold says nothing: no words of it are quoted.
    is_intact = verdict.status != "failed"
    excerpt = cut_excerpt(read_texts(read_step(record), ledger.blob), query) if is_intact else None
    return ShownHit(hit, to_record_line(record), verdict.status, verdict.first_bad, excerpt)


def _print_hit(screen: Screen, shown: ShownHit) -> None:
    place = f"{shown.hit.chain} {shown.hit.sequence}"
    if shown.line is None:
        screen.print_line(place, StyledText("  this record cannot be read any more; the index is older", "bad"))
        return
    print_record_line(screen, shown.line, with_chain=True)
    if shown.excerpt is not None and shown.excerpt.hit not in (shown.line.text or shown.line.summary):
        before, hit, after = shown.excerpt
        screen.print_line("    ", StyledText(before, "dim"), StyledText(hit, "strong"), StyledText(after, "dim"))
    if shown.status == "failed":
        words = "" if shown.finding is None else f": {shown.finding.code}, {shown.finding.words}"
        screen.print_hanging("  ", screen.status_mark("failed"), " ", text=f"this record does not verify{words}")


def _print_remarks(page: SearchPage) -> None:
    errors, indexed = StderrScreen(), page.indexed
    if not page.hits:
        errors.print_note("no records match")
    for ignored in page.query.ignored:
        errors.print_note(f"{ignored} has no word to search for and was ignored")
    if not indexed.is_complete:
        share = f"{indexed.records:,} of {plural(indexed.of_records, 'record')}"
        errors.print_note(f"only {share} are indexed{f': {indexed.note}' if indexed.note else ''}")
    if indexed.cut:
        errors.print_note(f"{plural(indexed.cut, 'record')} with long texts: only their beginning is searched")
    if page.next is not None:
        errors.print_note(f"there are more; go on with --cursor {page.next}")


def _report_rebuild(progress: IndexProgress, given: argparse.Namespace, screen: Screen) -> int:
    if given.json:
        print_json({"indexed": progress.to_dict()})
    else:
        of = f"{progress.records:,} of {plural(progress.of_records, 'record')}"
        screen.print_line(f"the index has {of}{f'; {progress.note}' if progress.note else ''}")
    return 0 if progress.is_complete else 1

"""Judging a report: its records as a bundle, then the page and the statement about them (check `report`).

1. The blocks are taken apart. The files become a bundle in a temporary directory, and it is judged as any bundle is.
2. The statement is there, byte for byte as its maker writes it, and states exactly what a report states.
3. The file, with the statement's block empty, has the digest that it states: nobody changed the page or a record.
4. It was signed by a key that speaks for the ledger, which had not been retired then, nor before the last of these
   records. The `keys` chain inside records that key; else the check warns.
5. The chains inside have the heads that it states.
6. The verdict that it states fits: so many records and chains, and no good word where the records fail.

A report proves what its records prove. Its text is only as good as the key that signed it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from aver.capsule.json_document import read_exactly
from aver.errors import BadInput, NotFound, Unavailable
from aver.files.regular import open_file, read_limited
from aver.keys import Statement
from aver.ledger.bundle.head_file import check_signers
from aver.ledger.bundle.layout import BLOBS, INDEX, read_index
from aver.ledger.bundle.verify import BundleJudge
from aver.ledger.checkpoint import Checkpoint
from aver.ledger.foreign.seal_checks import unreadable_code
from aver.ledger.head import Head
from aver.sessions.report_file import REPORT_MARKS, REPORT_MAX, ReportParts, check_content, dump_block, split_report
from aver.verdict import CHECKS, Finding, Place, Subject, Tally, Verdict, VerifyOptions, conclude

CHECK = "report"

STATEMENT_PLACE, PAGE_PLACE = Place(source="statement"), Place(source="page")


def is_report(subject: Subject) -> bool:
    """Whether a file is a report: a page that says so at its beginning."""
    return any(mark.encode() in subject.beginning for mark in REPORT_MARKS)


def judge_report(subject: Subject, options: VerifyOptions) -> Verdict:
    """The verdict on a report."""
    tally = Tally()
    try:
        data = subject.value if subject.path is None else _read_file(subject.path)
        parts = split_report(data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data)
    except (NotFound, Unavailable):
        raise
    except BadInput as error:
        tally.add(Finding(CHECK, "failed", "SCHEMA_INVALID", error.message, PAGE_PLACE))
    else:
        tally = _judge_parts(parts, options)
    return conclude(subject.name, tally, level=options.level, expected=(*CHECKS, "index", CHECK))


def _read_file(path: Path) -> bytes:
    with open_file(path) as file:
        return read_limited(file, REPORT_MAX, path, advice="export the sessions as a bundle instead")


def _judge_parts(parts: ReportParts, options: VerifyOptions) -> Tally:
    try:
        with TemporaryDirectory(prefix="aver-report-") as directory:
            write_files(Path(directory), parts.files)
            return judge_files(Path(directory), parts, options)
    except OSError as error:
        raise Unavailable(f"the report cannot be unpacked: {error.strerror}", advice="set TMPDIR") from error


def write_files(directory: Path, files: Mapping[str, bytes]) -> None:
    """Write the files of a bundle. Their names were checked: none leads out of the directory."""
    for name, data in files.items():
        if name.startswith(f"{BLOBS}/"):
            (directory / BLOBS).mkdir(exist_ok=True)
        (directory / name).write_bytes(data)


def judge_files(directory: Path, parts: ReportParts, options: VerifyOptions) -> Tally:
    """Judge the bundle in a directory, then the page and the statement about it. The numbers are the module's."""
    heads: Mapping[str, Head] = {}
    bundle = None
    try:
        bundle = BundleJudge(directory, read_index(directory), options)
        tally = bundle.judge()  # 1.
        heads = bundle.heads
    except BadInput as error:
        tally = Tally()
        tally.add(Finding("index", "failed", unreadable_code(error), error.message, Place(source=INDEX)))
    failed = any(finding.status == "failed" for finding in tally.findings)
    records, chains = tally.records, tally.chains
    tally.count_done(CHECK)
    if not parts.statement.strip():  # 2.
        tally.add(Finding(CHECK, "failed", "SIG_MISSING", "the report is not signed", STATEMENT_PLACE))
        return tally
    try:
        old = partial(dump_block, chains=heads)
        statement = read_exactly(parts.statement, "the statement's block", _read_statement, dump_block, old)
    except BadInput as error:
        tally.add(Finding(CHECK, "failed", unreadable_code(error), error.message, STATEMENT_PLACE))
        return tally
    content = statement.content
    if content["sha256"] != parts.sha256:  # 3.
        words = f"the file has the digest {parts.sha256}; its statement says {content['sha256']}"
        tally.add(Finding(CHECK, "failed", "ARTIFACT_HASH_MISMATCH", words, PAGE_PLACE))
    if options.level == "signature":  # 4.
        stated_heads = tuple(Head("", "", name, head["count"], head["hash"]) for name, head in content["heads"].items())
        stated = Checkpoint(statement, content["made_at"], "", "", stated_heads, where=STATEMENT_PLACE.source or "")
        history = None if bundle is None else bundle.key_history
        check_signers(stated, options.ring, tally, check=CHECK, history=history)
    for chain, head in content["heads"].items():  # 5.
        actual = heads.get(chain)
        if actual is None:
            words = "the statement lists this chain, and it is not in the report"
            tally.add(Finding(CHECK, "failed", "CHAIN_MISSING", words, Place(chain)))
        elif (actual.count, actual.hash) != (head["count"], head["hash"]):
            words = f"the statement says {head['count']} records with another end; {actual.count} are here"
            tally.add(Finding(CHECK, "failed", "HEAD_MISMATCH", words, Place(chain)))
    for chain in heads:
        if chain not in content["heads"]:
            words = "the statement does not list this chain"
            tally.add(Finding(CHECK, "failed", "HEAD_MISMATCH", words, Place(chain)))
    verdict = content["verdict"]  # 6.
    if (verdict["records"], verdict["chains"]) != (records, chains):
        stated_extent = f"{verdict['records']} records in {verdict['chains']} chains"
        words = f"the statement says {stated_extent}; {records} in {chains} are here"
        tally.add(Finding(CHECK, "failed", "CLAIM_UNPROVEN", words, STATEMENT_PLACE))
    elif failed and verdict["status"] != "failed":
        words = f"the statement says {verdict['status']}, and the records fail"
        tally.add(Finding(CHECK, "failed", "CLAIM_UNPROVEN", words, STATEMENT_PLACE))
    tally.notes[CHECK] = f"{verdict['status']} as signed at {content['made_at']}"
    return tally


def _read_statement(data: Any) -> Statement:
    statement = Statement.from_dict(data)
    check_content(statement)
    return statement

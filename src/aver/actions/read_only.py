"""Open a `.cap` file to read it as a ledger (see `aver.ledger.read_only`)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from io import BytesIO
from pathlib import Path

from aver.actions.archive import Archive, open_archive
from aver.actions.capseal_files import CAPSEAL_MEMBERS, is_capseal
from aver.actions.encodings import (
    ACTION_LINE_MAX,
    CAPSULE_LINE_MAX,
    parse_json_line,
    read_capsule_line,
    read_own_lines,
)
from aver.actions.run_evidence import BLOB_LINE_MAX, read_blob_line
from aver.actions.run_files import (
    ACTIONS_FILE,
    CAPSULES_FILE,
    EVIDENCE_FILE,
    MANIFEST_FILE,
    MEMBER_ORDER,
    SMALL_FILE_MAX,
    Manifest,
)
from aver.actions.verify import judge_archive
from aver.actions.verify_files import judge_files
from aver.actions.verify_run import ReceiptJudge
from aver.capsule.aver_block import check_chain_name
from aver.capsule.json_reader import Unreadable
from aver.capsule.sealed import Sealed
from aver.config import Config
from aver.errors import BadInput, IntegrityError, NotFound
from aver.files.regular import open_file
from aver.ledger.foreign.seal_checks import unreadable_code
from aver.ledger.read_only import ReadChain, ReadOnlyLedger, ReadSource
from aver.verdict import ChainJudge, Rules, Subject, Tally, Verdict, VerifyOptions


def open_cap(path: Path, options: VerifyOptions, config: Config) -> ReadOnlyLedger:
    """Verify a `.cap` file and open it.

    Raises `IntegrityError` if it cannot be read, `BadInput` if it is of the public tool, and `NotFound` for another
    tenant.
    """
    verdict: Verdict | None = None
    try:
        # The members are unpacked once, for the verdict and for reading: the file may be another one a moment later.
        with open_file(path) as file, open_archive(file, MEMBER_ORDER, CAPSEAL_MEMBERS) as archive:
            if is_capseal(archive):
                words = f"{path} was made by the public tool and has no capsules to read"
                raise BadInput(words, advice=f"run: aver verify {path}")
            verdict = judge_files(path.name, archive, options)
            home = Manifest.from_bytes(archive.read_small(MANIFEST_FILE, SMALL_FILE_MAX) or b"").head
            if options.tenant not in (None, home.tenant):
                words = f"{path} is of the tenant {home.tenant}, not {options.tenant}"
                raise NotFound(words, advice="leave out --tenant")
            source = ReadSource(
                name=f"the file {path}",
                ledger=home.ledger,
                tenant=home.tenant,
                records=_read_valid_records(archive, home.chain, Rules(options.ring)),
                chains={home.chain: ReadChain(head=home)},
                count=verdict.records,
                verdict=verdict,
                verify=partial(_verify, path),
                read_blob=partial(_read_blob, path),
            )
            return ReadOnlyLedger(source, config, options.examiners)
    except BadInput as error:
        bad = None if verdict is None else verdict.first_bad
        if isinstance(error, NotFound) or (bad is None and not isinstance(error, Unreadable)):
            raise
        code, words = (unreadable_code(error), error.message) if bad is None else (bad.code, str(bad))
        raise IntegrityError(code, f"{path} cannot be read: {words}", evidence=verdict) from error


def _verify(path: Path, chain: str | None, options: VerifyOptions) -> Verdict:
    """The verdict on the whole file. It has one run, whose chains belong together."""
    return judge_archive(Subject(path.name, path=path), options)


def _read_valid_records(archive: Archive, run_chain: str, rules: Rules) -> Iterator[tuple[str, Sealed]]:
    """The records of all chains whose own content and signature hold."""
    for record in _read_records(archive, run_chain):
        try:
            chain = check_chain_name(str(record.chain))
        except BadInput:
            continue
        judge = ChainJudge(rules, chain=chain, start=None)
        judge.judge(record)
        if not any(finding.status == "failed" for finding in judge.tally.findings):
            yield chain, record


def _read_records(archive: Archive, run_chain: str) -> Iterator[Sealed]:
    """All records, as far as they can be read. The verdict has named the others."""
    lines = archive.members.get(ACTIONS_FILE, BytesIO())
    lines.seek(0)
    actions = ReceiptJudge(Tally()).take_all(read_own_lines(lines, ACTION_LINE_MAX))
    for name, limit in ((CAPSULES_FILE, CAPSULE_LINE_MAX), (EVIDENCE_FILE, BLOB_LINE_MAX)):
        file = archive.members.get(name, BytesIO())
        file.seek(0)
        for raw in read_own_lines(file, limit):
            try:
                line = None if isinstance(raw, BadInput) else read_capsule_line(raw)
            except BadInput:
                line = None
            if line is None:
                continue  # A blob, or a line that is damaged.
            # The capsule of an action leaves the action out; it is the next line of the other file.
            action = next(actions, None) if line.has_action and line.chain == run_chain else None
            yield line.rebuild(None if action is None else action.texts.seal_form(action.action))


def _read_blob(path: Path, digest: str) -> bytes:
    with open_file(path) as file, open_archive(file, MEMBER_ORDER) as archive:
        evidence = archive.members.get(EVIDENCE_FILE, BytesIO())
        evidence.seek(0)
        for raw in read_own_lines(evidence, BLOB_LINE_MAX):
            if not isinstance(raw, BadInput) and digest.encode() in raw[: 2 * len(digest)]:
                found, data = read_blob_line(parse_json_line(raw))
                if found == digest:
                    return data
    raise NotFound(f"the blob {digest} is not in {path}")

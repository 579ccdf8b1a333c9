"""Judging a sealed run by its six files, from a directory or a `.cap`: offline, with nothing but a public key.

Every file is held to the manifest, the manifest to the signed head, and all that the manifest, `proof.json` and
`commitments.json` say to the run's own seal, which was signed as a capsule. Of several things that are wrong, the first
bad action is named before the file that it stands in.

Judging a run by its chain in a ledger, with or without the lines that its directory has.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import IO

from aver.actions.archive import Archive
from aver.actions.encodings import ACTION_LINE_MAX, CAPSULE_LINE_MAX, ActionLine, action_line, read_capsule_line
from aver.actions.run_capsules import ACTION_KIND, load_action, read_sealed_action, run_chain
from aver.actions.run_files import (
    ACTIONS_FILE,
    CAPSULES_FILE,
    COMMITMENTS_FILE,
    HEAD_FILE,
    HEAD_PURPOSE,
    LISTED_MEMBERS,
    MANIFEST_FILE,
    MEMBERS,
    PROOF_FILE,
    SMALL_FILE_MAX,
    FileDigest,
    Manifest,
    commitments_document,
    head_content,
    proof_document,
)
from aver.actions.verify_run import RUN_CHECKS, RunJudge
from aver.capsule.aver_block import read_kind
from aver.capsule.json_document import dump_document
from aver.capsule.json_reader import Unreadable, read_json
from aver.capsule.sealed import Sealed
from aver.errors import AverError, BadInput, IntegrityError, NotFound
from aver.files.regular import CHUNK, open_inside
from aver.keys import Ring, Statement, check_statement
from aver.ledger import Head, Ledger
from aver.ledger.foreign.capsule_files import retirements_by_time
from aver.ledger.verify import verify_ledger
from aver.verdict import CHECKS, Finding, Place, Rules, Tally, Verdict, VerifyOptions, conclude, worst_status

__all__ = ["ARCHIVE_CHECK", "judge_chain", "judge_files", "open_run_directory", "read_raw_lines"]


ARCHIVE_CHECK = "archive"
"""The check that the files are those of the run, all of them and nothing else."""


def judge_files(name: str, files: Archive, terms: VerifyOptions) -> Verdict:
    """The verdict on a sealed run. `files` are what is there, whatever that is."""
    found = _RunFilesJudge(files, terms)
    tally = Tally()
    manifest = found.read_manifest()
    if manifest is not None:
        found.check_members()
        tally = found.judge_run(manifest)
        found.check_digests(manifest)
        found.check_head(manifest)
    tally.merge(found.tally)
    tally.skip("meta", "only this run was verified, not the ledger it is from", matters=False)
    return conclude(name, tally, level=terms.level, expected=(*CHECKS, *RUN_CHECKS, ARCHIVE_CHECK))


@contextmanager
def open_run_directory(directory: Path) -> Iterator[Archive]:
    """The files of a run that are in a directory, as if they had been unpacked."""
    with ExitStack() as stack:
        members: dict[str, IO[bytes]] = {}
        for name in MEMBERS:
            with suppress(NotFound):
                members[name] = stack.enter_context(open_inside(directory, name))
        yield Archive(members, plain=True)


def read_raw_lines(file: IO[bytes], limit: int) -> Iterator[bytes | BadInput]:
    """The lines of a file without their line feeds; one that is too long as the reason. Empty lines are passed over."""
    while line := file.readline(limit + 2):
        if len(line) > limit + 1:
            yield Unreadable(f"the line is longer than {limit} bytes")
            while line and not line.endswith(b"\n"):
                line = file.readline(limit + 2)
        elif stripped := line.rstrip(b"\r\n"):
            yield stripped


class _RunFilesJudge:
    def __init__(self, files: Archive, terms: VerifyOptions) -> None:
        self.tally = Tally()
        """What is found about the files themselves."""
        self._files = files
        self._terms = terms
        self._manifest_raw = b""

    def _fail(self, code: str, words: str, name: str) -> None:
        self.tally.add(Finding(ARCHIVE_CHECK, "failed", code, words, Place(source=name)))

    def read_manifest(self) -> Manifest | None:
        self.tally.count_done(ARCHIVE_CHECK)
        try:
            raw = self._files.read_small(MANIFEST_FILE, SMALL_FILE_MAX)
            if raw is None:
                self._fail("ARTIFACT_MISSING", "there is no manifest", MANIFEST_FILE)
                return None
            self._manifest_raw = raw
            manifest = Manifest.from_bytes(raw)
        except BadInput as error:
            self._fail("SCHEMA_INVALID", error.message, MANIFEST_FILE)
            return None
        if raw != dump_document(manifest.to_dict()):
            self._fail("NOT_CANONICAL", "the manifest is not written as Aver writes it", MANIFEST_FILE)
        if manifest.head.chain != run_chain(manifest.run_id):
            self._fail("CHAIN_IDENTITY", "the manifest names a chain that is not the run's", MANIFEST_FILE)
        return manifest

    def check_members(self) -> None:
        here = list(self._files.members)
        for name in MEMBERS:
            if name not in here:
                self._fail("ARTIFACT_MISSING", f"{name} is not here", name)
        for name in here:
            if name not in MEMBERS:
                self._fail("SCHEMA_INVALID", f"{name} is no part of a run", name)
        in_order = [name for name in MEMBERS if name in here]
        if not self._files.plain or [name for name in here if name in MEMBERS] != in_order:
            self._fail("NOT_CANONICAL", "the archive is not packed as Aver packs it", MANIFEST_FILE)

    def check_digests(self, manifest: Manifest) -> None:
        for name in LISTED_MEMBERS:
            file = self._files.members.get(name)
            if file is not None and _digest_file(file) != manifest.files[name]:
                words = "the file has other bytes than the manifest says"
                self._fail("ARTIFACT_HASH_MISMATCH", words, name)

    def check_head(self, manifest: Manifest) -> None:
        try:
            raw = self._files.read_small(HEAD_FILE, SMALL_FILE_MAX)
            if raw is None:
                return  # Reported with the members.
            statement = Statement.from_dict(read_json(raw), "head")
        except BadInput as error:
            self._fail("SCHEMA_INVALID", error.message, HEAD_FILE)
            return
        digest = hashlib.sha256(self._manifest_raw).hexdigest()
        if statement.purpose != HEAD_PURPOSE or statement.content != head_content(manifest, digest):
            self._fail("ARTIFACT_HASH_MISMATCH", "the head that was signed is not that of this manifest", HEAD_FILE)
        if raw != dump_document(statement.to_dict()):
            self._fail("NOT_CANONICAL", "the head is not written as Aver writes it", HEAD_FILE)
        if self._terms.level == "signature":
            self._check_signatures(statement, manifest, self._terms.ring)

    def _check_signatures(self, statement: Statement, manifest: Manifest, ring: Ring) -> None:
        results = check_statement(statement, ring)
        place = Place(source=HEAD_FILE)
        if not results:
            self._fail("SIG_MISSING", "the head is not signed", HEAD_FILE)
        for result in results:
            entry = ring.entry(result.by)
            if result.outcome == "unknown":
                words = f"the head was signed by {result.by}, whose key is not known here"
                self.tally.add(Finding("signature", "not_checked", "UNKNOWN_SIGNER", words, place))
            elif result.outcome != "valid":
                self._fail("SIG_INVALID", f"the signature of the head is not {result.by}'s", HEAD_FILE)
            elif entry is not None and entry.retired_at is not None and manifest.created_at > entry.retired_at:
                self._fail("KEY_RETIRED", f"{result.by}, who signed the head, was retired before", HEAD_FILE)

    # --- the run in it

    def judge_run(self, manifest: Manifest) -> Tally:
        rules = self._terms.rules(retirements_by_time(self._terms.ring))
        with closing(RunJudge(rules, run_id=manifest.run_id, identity=manifest.head)) as judge:
            return self._judge_contents(manifest, judge)

    def _judge_contents(self, manifest: Manifest, judge: RunJudge) -> Tally:
        last = self._take_lines(judge, manifest.head.chain)
        tally = Tally()
        for part in judge.finish(complete=True):
            tally.merge(part)
        self._check_manifest(manifest, judge, last)
        if judge.seal is not None:
            self._check_file(PROOF_FILE, dump_document(proof_document(judge.seal.statement)))
            self._check_file(COMMITMENTS_FILE, dump_document(commitments_document(judge.seal, manifest.head)))
        return tally

    def _take_lines(self, judge: RunJudge, chain: str) -> Sealed | None:
        """Judge lines and capsules side by side. Returns the last record of the run's chain."""
        lines = self._read_lines(ACTIONS_FILE, ACTION_LINE_MAX)
        last = None
        number = 0
        for raw in self._read_lines(CAPSULES_FILE, CAPSULE_LINE_MAX):
            number += 1
            try:
                if isinstance(raw, BadInput):
                    raise raw
                capsule = read_capsule_line(raw)
                has_line = capsule.has_action and capsule.chain == chain
                line = self._take_next_line(judge, lines) if has_line else None
                text = None if line is None else line.texts.sealed(line.action)
                record = capsule.sealed(text)
            except BadInput as error:
                self._fail("SCHEMA_INVALID", f"line {number}: {error.message}", CAPSULES_FILE)
                continue
            if capsule.chain != chain:
                judge.take_gate_record(record)
            else:
                judge.take(record, line, text)
                last = record
        for raw in lines:
            judge.receipts.take(raw)
        return last

    def _take_next_line(self, judge: RunJudge, lines: Iterator[bytes | BadInput]) -> ActionLine | None:
        raw = next(lines, None)
        return None if raw is None else judge.receipts.take(raw)

    def _read_lines(self, name: str, limit: int) -> Iterator[bytes | BadInput]:
        file = self._files.members.get(name)
        if file is None:
            return iter(())
        file.seek(0)
        return read_raw_lines(file, limit)

    def _check_manifest(self, manifest: Manifest, judge: RunJudge, last: Sealed | None) -> None:
        seal = judge.seal
        if (manifest.head.count, manifest.head.hash) != (judge.count, judge.head):
            words = f"the manifest says {manifest.head.count} capsules, or another head; {judge.count} are here"
            self._fail("TRUNCATED", words, MANIFEST_FILE)
        if seal is None or last is None:
            return
        said = (manifest.num_actions, manifest.final_receipt_hash, manifest.policy_verdict, manifest.proved)
        sealed = (seal.num_actions, seal.final_receipt_hash, seal.policy_verdict, seal.statement is not None)
        if said != sealed or manifest.created_at != last.signed_at:
            self._fail("ROLLBACK", "the manifest says something else than the run's seal", MANIFEST_FILE)

    def _check_file(self, name: str, expected: bytes) -> None:
        raw = self._files.read_small(name, SMALL_FILE_MAX) if name in self._files.members else expected
        if raw != expected:
            self._fail("PROOF_INVALID", "it says something else than the run's seal", name)


def _digest_file(file: IO[bytes]) -> FileDigest:
    file.seek(0)
    hashed, size = hashlib.sha256(), 0
    while chunk := file.read(CHUNK):
        hashed.update(chunk)
        size += len(chunk)
    return FileDigest(hashed.hexdigest(), size)


RawLines = Iterable[bytes | BadInput]


def judge_chain(ledger: Ledger, chain: str, terms: VerifyOptions, lines: RawLines | None = None) -> Verdict:
    """The verdict on a run's chain: its capsules as the ledger judges them, and what this room adds.

    Given the `lines` of a file, they are held to the capsules; otherwise those that the capsules give are judged.
    """
    head = ledger.head(chain)
    verdict = verify_ledger(ledger, chain, level=terms.level, since=None, ring=terms.ring, require_pq=terms.require_pq)
    run_id = _read_run_id(ledger, chain)
    if run_id is None:
        tally = Tally()
        words = "the chain does not begin as a run does"
        tally.add(Finding("sealed", "failed", "CHAIN_IDENTITY", words, Place(chain, 0)))
        return _add_to_verdict(verdict, tally)
    # Signatures and keys were judged with the ledger; here the bytes must be those that were signed.
    judge = RunJudge(Rules(terms.ring, "content"), run_id=run_id, identity=Head(*_chain_identity(head), 0, None))
    given = None if lines is None else iter(lines)
    for record in ledger.read(chain, 0, head.count):
        line = _take_line(judge, record, given, ledger)
        judge.take(record, line, None if line is None else line.texts.sealed(line.action))
    for raw in given or ():
        judge.receipts.take(raw)
    _take_gate_records(ledger, judge)
    tally, _, ending = judge.finish(complete=False)
    tally.merge(ending)
    if judge.receipts.count != judge.actions:
        words = f"the file has {judge.receipts.count} actions; {judge.actions} are sealed"
        tally.add(Finding("sealed", "failed", "TRUNCATED", words, Place(chain, head.count)))
    return _add_to_verdict(verdict, tally)


def _chain_identity(head: Head) -> tuple[str, str, str]:
    return head.ledger, head.tenant, head.chain


def _read_run_id(ledger: Ledger, chain: str) -> str | None:
    try:
        first = next(ledger.read(chain, 0, 1), None)
        return None if first is None else str(first.to_dict()["outcome"]["result"]["run_id"])
    except (AverError, KeyError, TypeError):
        return None


def _take_line(
    judge: RunJudge, record: Sealed, given: Iterator[bytes | BadInput] | None, ledger: Ledger
) -> ActionLine | None:
    """The line of a record: the next that was given, or the one that its action has."""
    try:
        content = record.to_dict()
        if read_kind(content) != ACTION_KIND:
            return None
        if given is None:
            return judge.receipts.take(action_line(load_action(read_sealed_action(content), ledger.blob)))
    except (AverError, KeyError, TypeError, AttributeError) as error:
        words = error.message if isinstance(error, AverError) else "it lacks what the capsule of an action says"
        return judge.receipts.take(BadInput(words)) if given is None else None
    raw = next(given, None)
    return None if raw is None else judge.receipts.take(raw)


def _take_gate_records(ledger: Ledger, judge: RunJudge) -> None:
    """The gate's own chain as far as the seal counts it, and the decisions of other chains that actions name."""
    seal = judge.seal
    if seal is not None and seal.gates is not None:
        try:
            for record in ledger.read(seal.gates.chain, 0, seal.gates.count):
                judge.take_gate_record(record)
        except NotFound:
            pass  # That it is not there, the seal's count tells.
    for digest in judge.missing_decisions():
        try:
            found = ledger.get(digest)
        except IntegrityError:
            continue
        if found is not None:
            judge.take_gate_record(found)


def _add_to_verdict(verdict: Verdict, tally: Tally) -> Verdict:
    tally = replace(tally, records=verdict.records)
    added = conclude(verdict.subject, tally, level=verdict.level, expected=RUN_CHECKS)
    return replace(
        verdict,
        status=worst_status((verdict.status, added.status)),
        checks=(*verdict.checks, *added.checks),
        findings=(*verdict.findings, *added.findings),
        first_bad=verdict.first_bad or added.first_bad,
    )

"""Judging a sealed run by its six files, from a directory or a `.cap`: offline, with nothing but a public key.

Every file is compared with the manifest, and the manifest with the signed head. The contents of the manifest, of
`proof.json` and of `commitments.json` are compared with the run's own seal, which was signed as a capsule. A finding
about an action comes before a finding about the file that holds it.

The gate's examiners read the decisions in `capsules.jsonl`. The rules and the risk state behind a decision are not in a
run's files, nor are approvals; so decisions are examined without being made again, and the verdict says so.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import IO

from aver.actions.archive import Archive
from aver.actions.encodings import ACTION_LINE_MAX, CAPSULE_LINE_MAX, ActionLine, read_capsule_line
from aver.actions.run_capsules import run_chain
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
from aver.actions.verify_run import RunJudge
from aver.capsule.json_document import dump_document
from aver.capsule.json_reader import Unreadable, read_json
from aver.capsule.sealed import Sealed
from aver.errors import BadInput, NotFound
from aver.files.regular import CHUNK, open_inside
from aver.keys import Ring, Statement, check_statement
from aver.ledger import Head
from aver.ledger.foreign.capsule_files import retirements_by_time
from aver.verdict import CHECKS, Examination, ExaminedChain, Finding, Place, Tally, Verdict, VerifyOptions, conclude
from aver.verdict.examiner import RUN_CHECKS, ValidRecords, examine

NOT_IN_FILES = "a run's files hold neither approvals nor what decisions were made from; its ledger does"

EXAMINED_MAX = 100
"""Chains of the gate that are examined. A run has one of its own, and few refer to another."""

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
        examine(terms.examiners, found.build_examinations(manifest, tally), tally)
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
        self._gate_chains: dict[str, int] = {}
        """The chains of the gate's records in `capsules.jsonl`, and how many records each has."""
        self._own_gate_chain: str | None = None

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
            self._own_gate_chain = None if judge.seal.gates is None else judge.seal.gates.chain
            self._check_file(PROOF_FILE, dump_document(proof_document(judge.seal.statement)))
            self._check_file(COMMITMENTS_FILE, dump_document(commitments_document(judge.seal, manifest.head)))
        return tally

    def build_examinations(self, manifest: Manifest, tally: Tally) -> list[Examination]:
        """The gate's records, for examiners. Of other chains than the run's own gate chain only some are here."""
        # Each chain costs one pass over the file, and a hostile file may name very many.
        named = [name for name in self._gate_chains if name.partition(".")[0] == "gate"]
        if len(named) > EXAMINED_MAX:
            words = f"the run refers to {len(named)} chains; {EXAMINED_MAX} were examined"
            tally.skip("decisions", words, matters=True)
        chains = tuple(
            ExaminedChain(name, name, self._gate_chains[name], is_excerpt=name != self._own_gate_chain)
            for name in named[:EXAMINED_MAX]
        )
        rules = self._terms.rules(retirements_by_time(self._terms.ring))
        reader = ValidRecords(
            _GateRecordReader(self._files), rules, {one.name: one.name for one in chains}, tally.doubtful
        )
        head = manifest.head
        return [
            Examination(
                reader, rules, head.ledger, head.tenant, chains, is_complete=False, is_single=True, lacks=NOT_IN_FILES
            )
        ]

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
                text = None if line is None else line.texts.seal_form(line.action)
                record = capsule.rebuild(text)
            except BadInput as error:
                self._fail("SCHEMA_INVALID", f"line {number}: {error.message}", CAPSULES_FILE)
                continue
            if capsule.chain != chain:
                self._gate_chains[capsule.chain] = self._gate_chains.get(capsule.chain, 0) + 1
                own = judge.seal.gates if judge.seal is not None else None
                judge.take_gate_record(record, is_own=own is not None and own.chain == capsule.chain)
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
        return _read_member_lines(self._files, name, limit)

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


def _read_member_lines(files: Archive, name: str, limit: int) -> Iterator[bytes | BadInput]:
    file = files.members.get(name)
    if file is None:
        return iter(())
    file.seek(0)
    return read_raw_lines(file, limit)


class _GateRecordReader:
    """Reads the gate's records in `capsules.jsonl`; each chain in one pass over the file."""

    def __init__(self, files: Archive) -> None:
        self._files = files

    def read(self, chain: str, start: int = 0, stop: int | None = None) -> Iterator[Sealed]:
        return islice(self._read_all(chain), start, stop)

    def _read_all(self, chain: str) -> Iterator[Sealed]:
        for raw in _read_member_lines(self._files, CAPSULES_FILE, CAPSULE_LINE_MAX):
            try:
                line = None if isinstance(raw, BadInput) else read_capsule_line(raw)
            except BadInput:
                continue  # Reported with the run.
            if line is not None and line.chain == chain:
                yield line.rebuild(None)

    def get(self, reference: str) -> Sealed | None:
        return None

    def blob(self, digest: str) -> bytes:
        raise NotFound(f"the blob {digest} is not in a run's files")

    def head(self, chain: str) -> Head:
        raise NotFound(f"the chain {chain} is not in a run's files")


def _digest_file(file: IO[bytes]) -> FileDigest:
    file.seek(0)
    hashed, size = hashlib.sha256(), 0
    while chunk := file.read(CHUNK):
        hashed.update(chunk)
        size += len(chunk)
    return FileDigest(hashed.hexdigest(), size)

"""Judging a sealed run by its six files, from a directory or a `.cap`: offline, with nothing but a public key.

Every file is held to the manifest, the manifest to the signed head, and all that the manifest, `proof.json` and
`commitments.json` say to the run's own seal, which was signed as a capsule. Of several things that are wrong, the first
bad action is named before the file that it stands in.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import IO

from aver.actions.archive import Archive
from aver.actions.capsule_lines import CAPSULE_LINE_MAX, read_capsule_line
from aver.actions.checking import RUN_CHECKS, RunJudge
from aver.actions.file_names import ACTIONS, CAPSULES, COMMITMENTS, HEAD, LISTED, MANIFEST, MEMBERS, PROOF
from aver.actions.layout import (
    HEAD_PURPOSE,
    SMALL_MAX,
    FileDigest,
    Manifest,
    commitments_document,
    head_content,
    proof_document,
)
from aver.actions.lines import LINE_MAX, Line
from aver.actions.records import run_chain
from aver.capsule.reading import Unreadable, read_json
from aver.capsule.sealed import Sealed
from aver.errors import BadInput, NotFound
from aver.keys import Ring, Statement, check_statement
from aver.keys.document import write_document
from aver.ledger.capsules import retired_by_time
from aver.ledger.outside import CHUNK, open_inside
from aver.verdict import CHECKS, Finding, Place, Tally, Terms, Verdict, conclude

__all__ = ["ARCHIVE", "judge_files", "opened_directory", "raw_lines"]

ARCHIVE = "archive"
"""The check that the files are those of the run, all of them and nothing else."""


def judge_files(name: str, files: Archive, terms: Terms) -> Verdict:
    """The verdict on a sealed run. `files` are what is there, whatever that is."""
    found = _Files(files, terms)
    tally = Tally()
    manifest = found.manifest()
    if manifest is not None:
        found.check_members()
        tally = found.judge_run(manifest)
        found.check_digests(manifest)
        found.check_head(manifest)
    tally.merge(found.tally)
    tally.skip("meta", "only this run was verified, not the ledger it is from", matters=False)
    return conclude(name, tally, level=terms.level, expected=(*CHECKS, *RUN_CHECKS, ARCHIVE))


@contextmanager
def opened_directory(directory: Path) -> Iterator[Archive]:
    """The files of a run that are in a directory, as if they had been unpacked."""
    with ExitStack() as stack:
        members: dict[str, IO[bytes]] = {}
        for name in MEMBERS:
            with suppress(NotFound):
                members[name] = stack.enter_context(open_inside(directory, name))
        yield Archive(members, plain=True)


def raw_lines(file: IO[bytes], limit: int) -> Iterator[bytes | BadInput]:
    """The lines of a file without their line feeds; one that is too long as the reason. Empty lines are passed over."""
    while line := file.readline(limit + 2):
        if len(line) > limit + 1:
            yield Unreadable(f"the line is longer than {limit} bytes")
            while line and not line.endswith(b"\n"):
                line = file.readline(limit + 2)
        elif stripped := line.rstrip(b"\r\n"):
            yield stripped


class _Files:
    def __init__(self, files: Archive, terms: Terms) -> None:
        self.tally = Tally()
        """What is found about the files themselves."""
        self._files = files
        self._terms = terms
        self._manifest_raw = b""

    def _fail(self, code: str, words: str, name: str) -> None:
        self.tally.add(Finding(ARCHIVE, "failed", code, words, Place(source=name)))

    def manifest(self) -> Manifest | None:
        self.tally.did(ARCHIVE)
        try:
            raw = self._files.small(MANIFEST, SMALL_MAX)
            if raw is None:
                self._fail("ARTIFACT_MISSING", "there is no manifest", MANIFEST)
                return None
            self._manifest_raw = raw
            manifest = Manifest.from_bytes(raw)
        except BadInput as error:
            self._fail("SCHEMA_INVALID", error.message, MANIFEST)
            return None
        if raw != write_document(manifest.to_dict()):
            self._fail("NOT_CANONICAL", "the manifest is not written as Aver writes it", MANIFEST)
        if manifest.head.chain != run_chain(manifest.run_id):
            self._fail("CHAIN_IDENTITY", "the manifest names a chain that is not the run's", MANIFEST)
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
            self._fail("NOT_CANONICAL", "the archive is not packed as Aver packs it", MANIFEST)

    def check_digests(self, manifest: Manifest) -> None:
        for name in LISTED:
            file = self._files.members.get(name)
            if file is not None and _digest(file) != manifest.files[name]:
                words = "the file has other bytes than the manifest says"
                self._fail("ARTIFACT_HASH_MISMATCH", words, name)

    def check_head(self, manifest: Manifest) -> None:
        try:
            raw = self._files.small(HEAD, SMALL_MAX)
            if raw is None:
                return  # Reported with the members.
            statement = Statement.from_dict(read_json(raw), "head")
        except BadInput as error:
            self._fail("SCHEMA_INVALID", error.message, HEAD)
            return
        digest = hashlib.sha256(self._manifest_raw).hexdigest()
        if statement.purpose != HEAD_PURPOSE or statement.content != head_content(manifest, digest):
            self._fail("ARTIFACT_HASH_MISMATCH", "the head that was signed is not that of this manifest", HEAD)
        if raw != write_document(statement.to_dict()):
            self._fail("NOT_CANONICAL", "the head is not written as Aver writes it", HEAD)
        if self._terms.level == "signature":
            self._check_signatures(statement, manifest, self._terms.ring)

    def _check_signatures(self, statement: Statement, manifest: Manifest, ring: Ring) -> None:
        results = check_statement(statement, ring)
        place = Place(source=HEAD)
        if not results:
            self._fail("SIG_MISSING", "the head is not signed", HEAD)
        for result in results:
            entry = ring.entry(result.by)
            if result.outcome == "unknown":
                words = f"the head was signed by {result.by}, whose key is not known here"
                self.tally.add(Finding("signature", "not_checked", "UNKNOWN_SIGNER", words, place))
            elif result.outcome != "valid":
                self._fail("SIG_INVALID", f"the signature of the head is not {result.by}'s", HEAD)
            elif entry is not None and entry.retired_at is not None and manifest.created_at > entry.retired_at:
                self._fail("KEY_RETIRED", f"{result.by}, who signed the head, was retired before", HEAD)

    # --- the run in it

    def judge_run(self, manifest: Manifest) -> Tally:
        rules = self._terms.rules(retired_by_time(self._terms.ring))
        with closing(RunJudge(rules, run_id=manifest.run_id, identity=manifest.head)) as judge:
            return self._judged(manifest, judge)

    def _judged(self, manifest: Manifest, judge: RunJudge) -> Tally:
        last = self._take_all(judge, manifest.head.chain)
        tally = Tally()
        for part in judge.finish(complete=True):
            tally.merge(part)
        self._hold_manifest(manifest, judge, last)
        if judge.seal is not None:
            self._hold(PROOF, write_document(proof_document(judge.seal.statement)))
            self._hold(COMMITMENTS, write_document(commitments_document(judge.seal, manifest.head)))
        return tally

    def _take_all(self, judge: RunJudge, chain: str) -> Sealed | None:
        """Judge lines and capsules side by side. Returns the last record of the run's chain."""
        lines = self._lines(ACTIONS, LINE_MAX)
        last = None
        number = 0
        for raw in self._lines(CAPSULES, CAPSULE_LINE_MAX):
            number += 1
            try:
                if isinstance(raw, BadInput):
                    raise raw
                capsule = read_capsule_line(raw)
                has_line = capsule.holds_action and capsule.chain == chain
                line = self._next_line(judge, lines) if has_line else None
                text = None if line is None else line.texts.sealed(line.action)
                record = capsule.sealed(text)
            except BadInput as error:
                self._fail("SCHEMA_INVALID", f"line {number}: {error.message}", CAPSULES)
                continue
            if capsule.chain != chain:
                judge.take_gate(record)
            else:
                judge.take(record, line, text)
                last = record
        for raw in lines:
            judge.receipts.take(raw)
        return last

    def _next_line(self, judge: RunJudge, lines: Iterator[bytes | BadInput]) -> Line | None:
        raw = next(lines, None)
        return None if raw is None else judge.receipts.take(raw)

    def _lines(self, name: str, limit: int) -> Iterator[bytes | BadInput]:
        file = self._files.members.get(name)
        if file is None:
            return iter(())
        file.seek(0)
        return raw_lines(file, limit)

    def _hold_manifest(self, manifest: Manifest, judge: RunJudge, last: Sealed | None) -> None:
        seal = judge.seal
        if (manifest.head.count, manifest.head.hash) != (judge.count, judge.head):
            words = f"the manifest says {manifest.head.count} capsules, or another head; {judge.count} are here"
            self._fail("TRUNCATED", words, MANIFEST)
        if seal is None or last is None:
            return
        said = (manifest.num_actions, manifest.final_receipt_hash, manifest.policy_verdict, manifest.proved)
        sealed = (seal.num_actions, seal.final_receipt_hash, seal.policy_verdict, seal.statement is not None)
        if said != sealed or manifest.created_at != last.signed_at:
            self._fail("ROLLBACK", "the manifest says something else than the run's seal", MANIFEST)

    def _hold(self, name: str, expected: bytes) -> None:
        raw = self._files.small(name, SMALL_MAX) if name in self._files.members else expected
        if raw != expected:
            self._fail("PROOF_INVALID", "it says something else than the run's seal", name)


def _digest(file: IO[bytes]) -> FileDigest:
    file.seek(0)
    hashed, size = hashlib.sha256(), 0
    while chunk := file.read(CHUNK):
        hashed.update(chunk)
        size += len(chunk)
    return FileDigest(hashed.hexdigest(), size)

"""Judge a sealed run by its files, in a directory or a `.cap` file: offline, with nothing but a public key.

1. The members are exactly those that the manifest lists, packed as Aver packs them.
2. The actions and capsules are judged by `RunJudge`. The manifest, `proof.json` and `commitments.json` must say the
   same as the run's seal, which was signed as a capsule.
3. The lines of `evidence.jsonl` are judged by `judge_evidence`.
4. The gate's examiners make the decisions again, and check the approvals behind them. Files of earlier versions have no
   `evidence.jsonl`: then the verdict is `qualified`, and names the decisions that were not made again.
5. The bytes of each file have the digest in the manifest, and the signed head has the digest of the manifest.
6. In a directory, `run.json` names this run, and `run.cap` has the same files. Any other file there is a warning.

Findings come in this order, so a finding about an action comes before one about the file that holds it.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import closing
from io import BytesIO
from itertools import islice
from pathlib import Path

from aver.actions import run_files
from aver.actions.archive import Archive, open_archive
from aver.actions.encodings import ACTION_LINE_MAX, CAPSULE_LINE_MAX, read_capsule_line, read_own_lines
from aver.actions.run_capsules import run_chain
from aver.actions.run_directory import RunIdentity, read_run_identity
from aver.actions.run_evidence import EvidenceNeeds, RunFilesReader, judge_evidence
from aver.actions.run_files import (
    ARCHIVE_CHECK,
    CAP_FILE,
    CAPSULES_FILE,
    HEAD_FILE,
    MANIFEST_FILE,
    MEMBER_ORDER,
    RUN_FILE,
    SMALL_FILE_MAX,
    Manifest,
)
from aver.actions.verify_run import RunJudge
from aver.capsule.sealed import Sealed
from aver.errors import BadInput, NotFound
from aver.files.regular import open_inside
from aver.keys import check_statement, read_statement_file
from aver.ledger.foreign.seal_checks import unreadable_code
from aver.ledger.key_history import retirements_by_time
from aver.verdict import CHECKS, Examination, ExaminedChain, Finding, Place, Tally, Verdict, VerifyOptions, conclude
from aver.verdict.chain import REST_UNREAD, UNREADABLE_MAX
from aver.verdict.examiner import RUN_CHECKS, ValidRecords, examine
from aver.verdict.verdict import CheckStatus

EXAMINED_MAX = 100
"""The maximum number of gate chains that are examined. A run has one of its own, and few refer to another."""


UNLISTED_MAX = 100
"""The maximum number of files in a run's directory that are named as no part of it."""

NAME_SHOWN = 160
"""The maximum number of characters of such a file's name."""

CHAINS_MAX = 10_000
"""The maximum number of other chains whose records are in the files. Their names are kept in memory."""


def judge_files(name: str, files: Archive, terms: VerifyOptions, directory: Path | None = None) -> Verdict:
    """Return the verdict on a sealed run. `files` are its members, which may be incomplete or hostile.

    `directory` is where they lie, if they are not in an archive.
    """
    archive = Tally()
    archive.count_done(ARCHIVE_CHECK)
    tally = Tally()
    found = _read_manifest(files, archive)
    if found is not None:
        tally = _RunFilesJudge(files, *found, terms, archive).judge()
        if directory is not None:
            archive.merge(_check_directory(directory, files, found[0]))  # Step 6.
    tally.merge(archive)
    tally.skip("meta", "only this run was verified, not the ledger it is from", matters=False)
    return conclude(name, tally, level=terms.level, expected=(*CHECKS, *RUN_CHECKS, ARCHIVE_CHECK))


def _check_directory(directory: Path, files: Archive, manifest: Manifest) -> Tally:
    """Check the files of a run's directory that are no part of the sealed run. Readers take them for it."""
    tally = Tally()

    def add(status: CheckStatus, code: str, words: str, name: str) -> None:
        tally.add(Finding(ARCHIVE_CHECK, status, code, words, Place(source=name)))

    try:
        identity, head = read_run_identity(directory), manifest.head
        named = RunIdentity(manifest.run_id, head.chain, head.ledger, head.tenant)
        if identity is not None and identity != named:
            add("failed", "CHAIN_IDENTITY", "it names another run than the manifest", RUN_FILE)
    except BadInput as error:
        add("failed", "SCHEMA_INVALID", error.message, RUN_FILE)
    try:
        with open_inside(directory, CAP_FILE) as file, open_archive(file, MEMBER_ORDER) as packed:
            differing = [name for name in MEMBER_ORDER if _differs(name, files, packed)]
            if differing:
                words = f"its {differing[0]} is not the file beside it"
                add("failed", "ARTIFACT_HASH_MISMATCH", words, CAP_FILE)
    except NotFound:
        pass  # Nobody needs it beside the files.
    except BadInput as error:
        add("failed", "SCHEMA_INVALID", error.message, CAP_FILE)
    known = {*MEMBER_ORDER, RUN_FILE, CAP_FILE}
    with os.scandir(directory) as entries:
        others = islice((entry.name for entry in entries if entry.name not in known), UNLISTED_MAX)
        for name in sorted(others):
            shown = name if name.isprintable() else ascii(name)
            add("warning", "UNLISTED_FILE", "it is no part of the run, and was not verified", shown[:NAME_SHOWN])
    return tally


def _differs(name: str, files: Archive, packed: Archive) -> bool:
    here, there = files.members.get(name), packed.members.get(name)
    if here is None or there is None:
        return here is not there
    return run_files.digest_file(here) != run_files.digest_file(there)


def _read_manifest(files: Archive, archive: Tally) -> tuple[Manifest, bytes] | None:
    """Return the manifest and its bytes; None if it is missing or unreadable. Add the findings to `archive`."""

    def fail(code: str, words: str) -> None:
        archive.add(Finding(ARCHIVE_CHECK, "failed", code, words, Place(source=MANIFEST_FILE)))

    try:
        raw = files.read_small(MANIFEST_FILE, SMALL_FILE_MAX)
        if raw is None:
            fail("ARTIFACT_MISSING", "there is no manifest")
            return None
        manifest = Manifest.from_bytes(raw)
    except BadInput as error:
        fail(unreadable_code(error), error.message)
        return None
    if manifest.head.chain != run_chain(manifest.run_id):
        fail("CHAIN_IDENTITY", "the manifest names a chain that is not the run's")
    return manifest, raw


class _RunFilesJudge:
    """Judges the files against the manifest. Findings about the files themselves go to `archive`."""

    def __init__(self, files: Archive, manifest: Manifest, raw: bytes, terms: VerifyOptions, archive: Tally) -> None:
        self._files = files
        self._manifest = manifest
        self._manifest_raw = raw
        self._terms = terms
        self._rules = terms.rules(retirements_by_time(terms.ring))
        self._archive = archive
        self._needs = EvidenceNeeds()
        self._reader = RunFilesReader(files, manifest.head)
        self._own_gate_chain: str | None = None

    def judge(self) -> Tally:
        """Carry out the steps in the order of the module's docstring. Return the findings about the run."""
        # Step 1: the members.
        here = list(self._files.members)
        listed = {MANIFEST_FILE, HEAD_FILE, *self._manifest.files}
        expected = [name for name in run_files.MEMBER_ORDER if name in listed]
        for name in expected:
            if name not in here:
                self._fail("ARTIFACT_MISSING", f"{name} is not here", name)
        for name in here:
            if name not in expected:
                self._fail("SCHEMA_INVALID", f"{name} is no part of this run", name)
        in_order = [name for name in expected if name in here]
        if not self._files.plain or [name for name in here if name in expected] != in_order:
            self._fail("NOT_CANONICAL", "the archive is not packed as Aver packs it", MANIFEST_FILE)
        # Steps 2 and 3: the run, and the evidence behind its decisions.
        tally = self._judge_run()
        tally.merge(judge_evidence(self._files, self._needs, self._reader, self._rules))
        # Step 4: the gate's records.
        examine(self._terms.examiners, [self._build_examination(tally)], tally)
        # Step 5: the bytes of the files, and the signed head.
        for name, digest in self._manifest.files.items():
            file = self._files.members.get(name)
            if file is not None and run_files.digest_file(file) != digest:
                self._fail("ARTIFACT_HASH_MISMATCH", "the file has other bytes than the manifest says", name)
        self._check_head()
        return tally

    def _fail(self, code: str, words: str, name: str) -> None:
        self._archive.add(Finding(ARCHIVE_CHECK, "failed", code, words, Place(source=name)))

    # --- step 2: the run

    def _judge_run(self) -> Tally:
        manifest = self._manifest
        tally = Tally()
        with closing(RunJudge(self._rules, run_id=manifest.run_id, identity=manifest.head)) as judge:
            last = self._take_lines(judge)
            for part in judge.finish(complete=True):
                tally.merge(part)
        # The manifest must say what the chain has.
        if (manifest.head.count, manifest.head.hash) != (judge.count, judge.head):
            words = f"the manifest says {manifest.head.count} capsules, or another head; {judge.count} are here"
            self._fail("TRUNCATED", words, MANIFEST_FILE)
        seal = judge.seal
        if seal is None:
            return tally
        self._own_gate_chain = None if seal.gates is None else seal.gates.chain
        # The manifest and the two documents must say the same as the seal, which was signed as a capsule.
        listed = (manifest.num_actions, manifest.final_receipt_hash, manifest.policy_verdict, manifest.proved)
        sealed = (seal.num_actions, seal.final_receipt_hash, seal.policy_verdict, seal.statement is not None)
        if last is not None and (listed != sealed or manifest.created_at != last.signed_at):
            self._fail("ROLLBACK", "the manifest says something else than the run's seal", MANIFEST_FILE)
        for name, document in run_files.seal_documents(seal, manifest.head).items():
            # A missing file is reported with the members.
            if self._files.read_small(name, SMALL_FILE_MAX) not in (None, document):
                self._fail("PROOF_INVALID", "it says something else than the run's seal", name)
        return tally

    def _take_lines(self, judge: RunJudge) -> Sealed | None:
        """Judge actions and capsules side by side. Return the last record of the run's chain."""
        chain = self._manifest.head.chain
        # A missing file is reported with the members, and has no lines.
        lines = self._files.members.get(run_files.ACTIONS_FILE, BytesIO())
        capsules = self._files.members.get(CAPSULES_FILE, BytesIO())
        lines.seek(0)
        actions = judge.receipts.take_all(read_own_lines(lines, ACTION_LINE_MAX))
        last, end, unreadable = None, capsules.seek(0), 0
        for number, raw in enumerate(read_own_lines(capsules, CAPSULE_LINE_MAX), 1):
            start, end = end, capsules.tell()
            if judge.stops_reading():
                break
            try:
                if isinstance(raw, BadInput):
                    raise raw
                capsule = read_capsule_line(raw)
                # The line of an action is needed to rebuild its capsule.
                line = next(actions, None) if capsule.has_action and capsule.chain == chain else None
                text = None if line is None else line.texts.seal_form(line.action)
                record = capsule.rebuild(text)
            except BadInput as error:
                self._fail("SCHEMA_INVALID", f"line {number}: {error.message}", CAPSULES_FILE)
                unreadable += 1
                if unreadable > UNREADABLE_MAX:
                    self._fail("NOT_READ", REST_UNREAD, CAPSULES_FILE)
                    break
                continue
            if capsule.chain == chain:
                judge.take(record, line, text)
                last = record
            else:
                own = judge.seal.gates if judge.seal is not None else None
                judge.take_gate_record(record, is_own=own is not None and own.chain == capsule.chain)
                self._needs.add(record)
                self._reader.add_record(record, CAPSULES_FILE, start, end)
                if len(self._reader.spans) > CHAINS_MAX:
                    words = f"it has records of more than {CHAINS_MAX} chains; the rest was not read"
                    self._fail("NOT_READ", words, CAPSULES_FILE)
                    break
        for _ in actions:
            pass  # Lines after the last capsule of an action.
        return last

    # --- step 4: the gate's records

    def _build_examination(self, tally: Tally) -> Examination:
        """Return the records of the gate and of approvals, for examiners."""
        gates = self._reader.chains("gate")
        if len(gates) > EXAMINED_MAX:
            # A chain may cost a pass over the file, and a hostile file may name very many.
            words = f"the run refers to {len(gates)} chains; {EXAMINED_MAX} were examined"
            tally.skip("decisions", words, matters=True)
        head, whole = self._manifest.head, (self._own_gate_chain, *self._reader.chains("approvers"))
        chains = tuple(
            ExaminedChain(name, name, self._reader.spans[name].count, is_excerpt=name not in whole)
            for name in (*gates[:EXAMINED_MAX], *self._reader.chains("approvals", "approvers"))
        )
        reader = ValidRecords(self._reader, self._rules, {one.name: one.name for one in chains}, tally.doubtful)
        # With the evidence file, everything that decisions refer to must be here. Earlier versions did not write it.
        complete = run_files.EVIDENCE_FILE in self._manifest.files
        return Examination(reader, self._rules, head.ledger, head.tenant, chains, is_complete=complete, is_single=True)

    # --- step 5: the signed head

    def _check_head(self) -> None:
        manifest = self._manifest
        try:
            raw = self._files.read_small(HEAD_FILE, SMALL_FILE_MAX)
            if raw is None:
                return  # Reported with the members.
            statement = read_statement_file(raw, "the head")
        except BadInput as error:
            self._fail(unreadable_code(error), error.message, HEAD_FILE)
            return
        digest = hashlib.sha256(self._manifest_raw).hexdigest()
        if statement.purpose != run_files.HEAD_PURPOSE or statement.content != run_files.head_content(manifest, digest):
            self._fail("ARTIFACT_HASH_MISMATCH", "the head that was signed is not that of this manifest", HEAD_FILE)
        if self._terms.level != "signature":
            return
        results = check_statement(statement, self._terms.ring)
        if not results:
            self._fail("SIG_MISSING", "the head is not signed", HEAD_FILE)
        for result in results:
            role = None if result.key is None else self._rules.role_of(result.key)
            retirement = None if result.key is None else self._rules.retired.get(result.key.ed25519)
            retired = None if retirement is None else retirement.retired_at
            if result.outcome == "unknown":
                words = f"the head was signed by {result.by}, whose key is not known here"
                place = Place(source=HEAD_FILE)
                self._archive.add(Finding("signature", "not_checked", "UNKNOWN_SIGNER", words, place))
            elif result.outcome != "valid":
                self._fail("SIG_INVALID", f"the signature of the head is not {result.by}'s", HEAD_FILE)
            elif role is not None and not role.may_attest:
                words = f"{result.by}, who signed the head, is a key of {role}; only the ledger's key may"
                self._fail("KEY_MISMATCH", words, HEAD_FILE)
            elif retired is not None and self._manifest.created_at > retired:
                self._fail("KEY_RETIRED", f"{result.by}, who signed the head, was retired before", HEAD_FILE)

"""Finalize a run: append its seal to the ledger, and write its files and `run.cap`.

The order matters: the seal comes first. Aver can write all files again from the ledger, and does so when a caller opens
a sealed run whose files are incomplete.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

from aver.actions.archive import pack
from aver.actions.encodings import capsule_line, encode_action
from aver.actions.proofs.proof import PROOF_TYPE, build_statement
from aver.actions.run_capsules import (
    ACTION_KIND,
    RunSeal,
    build_seal_capsule,
    compute_run_verdict,
    read_run_seal,
)
from aver.actions.run_directory import ActionsFile
from aver.actions.run_evidence import EvidenceNeeds, write_evidence
from aver.actions.run_files import (
    ACTIONS_FILE,
    CAP_FILE,
    CAPSULES_FILE,
    EVIDENCE_FILE,
    HEAD_FILE,
    HEAD_PURPOSE,
    LISTED_MEMBERS,
    MANIFEST_FILE,
    MEMBER_ORDER,
    MEMBERS,
    PROOF_FILE,
    SMALL_FILE_MAX,
    Manifest,
    digest_file,
    head_content,
    seal_documents,
)
from aver.actions.run_state import RecordedRun
from aver.capsule.json_document import dump_document
from aver.capsule.sealed import hold_signer
from aver.errors import AverError, BadInput, HeadMoved, IntegrityError, Refused, Unavailable
from aver.files.atomic import open_replacement, replace_file
from aver.files.regular import open_inside
from aver.gate.decision_record import decision_chain
from aver.keys import SeedSigner, dump_statement, read_statement_file, sign_statement
from aver.ledger import Ledger

TRIES = 100
"""How often Aver tries to append the seal while other processes write to the same run."""


def finalize_run(ledger: Ledger, run: RecordedRun, directory: Path, *, agent: str, prove: bool) -> dict[str, Any]:
    """Seal a run, write its files and verify them. Return the result that `AgentRuntime.finalize` reports."""
    from aver.actions.verify import verify_directory

    if run.seal_record is None:
        seal_run(ledger, run, agent=agent, prove=prove)
    seal = write_run_files(ledger, run, directory)
    verdict = verify_directory(directory, ledger)
    summary = {
        "run_id": seal.run_id,
        "num_actions": seal.num_actions,
        "final_receipt_hash": seal.final_receipt_hash,
        "output_dir": str(directory),
        "cap_path": str(directory / CAP_FILE),
        "policy_verdict": seal.policy_verdict,
        "verified": verdict.status in ("verified", "qualified"),
        "verdict": verdict.status,
    }
    if seal.statement is None:
        return {"status": "recorded", **summary}
    return {
        "status": "proved",
        **summary,
        "capsule": None if run.seal_record is None else run.seal_record.to_sealed_dict(),
        "capsule_path": str(directory / CAPSULES_FILE),
        "proof_path": str(directory / PROOF_FILE),
        "actions_path": str(directory / ACTIONS_FILE),
        "proof_type": PROOF_TYPE,
    }


def seal_run(ledger: Ledger, run: RecordedRun, *, agent: str, prove: bool) -> None:
    """Append the seal right after the last action, and close the chain in the ledger.

    If another process seals the run first, that seal counts.
    """
    run_id, chain = run.identity.run_id, run.head.chain
    for _ in range(TRIES):
        # The seal says what the run has now, so it is built again in each round.
        gates = ledger.head(decision_chain(run_id))
        enforced = [action.policy_verdict == "POLICY_ENFORCED" for action in run.actions]
        statement = build_statement(run_id, run.actions) if prove and run.actions else None
        seal = RunSeal(
            run_id=run_id,
            head=run.head,
            num_actions=len(run.actions),
            final_receipt_hash=run.last_receipt,
            policy_verdict=compute_run_verdict(enforced=enforced, proved=statement is not None),
            statement=statement,
            gates=gates if gates.count else None,
        )
        try:
            record = ledger.append(chain, build_seal_capsule(seal, agent), key=f"seal:{run_id}", after=run.head)
        except HeadMoved:
            # Another process appended an action or the seal. The next seal must include that action.
            run.catch_up()
            if run.seal_record is not None:
                return
            continue
        run.advance(record, is_seal=True)
        ledger.close_chain(chain)
        return
    raise Unavailable(f"others write to the run {run_id} faster than this can", advice="try again")


# --- the files


def has_missing_files(directory: Path) -> bool:
    """Return whether the directory of a sealed run lacks one of its files."""
    if not all((directory / name).exists() for name in (*MEMBERS, CAP_FILE)):
        return True
    try:
        with open_inside(directory, MANIFEST_FILE) as file:
            listed = Manifest.from_bytes(file.read(SMALL_FILE_MAX)).files
    except AverError:
        return False  # The manifest is damaged, not missing. The verdict reports it.
    # A crash may have left an evidence file that the manifest does not list yet.
    return (EVIDENCE_FILE in listed) != (directory / EVIDENCE_FILE).exists()


def sync_actions_file(run: RecordedRun, directory: Path) -> None:
    """Compare all of `actions.jsonl` with the ledger, write the missing lines, and flush the file to disk."""
    # A new object knows no matching lines, so it compares the file from the first byte.
    lines = ActionsFile(directory / ACTIONS_FILE)
    try:
        lines.bring_up(run.lines_from, run.catch_up, durably=True)
    finally:
        lines.close()


def write_run_files(ledger: Ledger, run: RecordedRun, directory: Path) -> RunSeal:
    """Write the files of a sealed run, and `run.cap`, from the ledger. Return the content of its seal.

    Raise `Refused` if the run is not sealed.
    """
    head, record = run.head, run.seal_record
    if record is None:
        raise Refused("NOT_SEALED", f"the run {run.identity.run_id} is not sealed yet", advice="finalize it first")
    seal = read_run_seal(record.to_dict(), ledger=head.ledger, tenant=head.tenant, chain=head.chain)
    sync_actions_file(run, directory)
    needs = EvidenceNeeds()
    with open_replacement(directory / CAPSULES_FILE) as file:
        for line in _capsule_lines(ledger, run, seal, needs):
            file.write(line)
    listed: tuple[str, ...] = LISTED_MEMBERS
    if seal.gates is not None or run.marks:
        listed = (*LISTED_MEMBERS, EVIDENCE_FILE)
        with open_replacement(directory / EVIDENCE_FILE) as file:
            write_evidence(ledger, needs, file)
    for name, document in seal_documents(seal, head).items():
        replace_file(directory / name, document)
    # The manifest follows the files whose digests it contains, and the signed head follows the manifest.
    digests = {}
    for name in listed:
        with open_inside(directory, name) as opened:
            digests[name] = digest_file(opened)
    manifest = Manifest(
        run_id=seal.run_id,
        head=head,
        created_at=record.signed_at,
        num_actions=seal.num_actions,
        final_receipt_hash=seal.final_receipt_hash,
        policy_verdict=seal.policy_verdict,
        proved=seal.statement is not None,
        files=digests,
    )
    raw = dump_document(manifest.to_dict())
    replace_file(directory / MANIFEST_FILE, raw)
    _write_head(ledger, directory, head_content(manifest, hashlib.sha256(raw).hexdigest()))
    with open_replacement(directory / CAP_FILE) as packed:
        pack_run(directory, packed)
    return seal


def _capsule_lines(ledger: Ledger, run: RecordedRun, seal: RunSeal, needs: EvidenceNeeds) -> Iterator[bytes]:
    """Yield the capsules of the run, then its own gate decisions, then the decisions it uses from other chains.

    Add what the decisions rest on to `needs`.
    """
    head = run.head
    actions = iter(run.actions)
    for record in ledger.read(head.chain, 0, head.count):
        action = next(actions) if record.kind == ACTION_KIND else None
        yield capsule_line(record, None if action is None else encode_action(action).seal_form(action))
    carried = set()
    if seal.gates is not None:
        for record in ledger.read(seal.gates.chain, 0, seal.gates.count):
            carried.add(record.hash)
            needs.add(record)
            yield capsule_line(record, None)
    for mark in run.marks.values():
        if mark.record not in carried:
            decision = ledger.get(mark.record)
            if decision is None:
                raise IntegrityError(
                    "ARTIFACT_MISSING",
                    f"the gate's decision {mark.record} is not in the ledger any more",
                    advice="run: aver verify",
                )
            needs.add(decision)
            yield capsule_line(decision, None)


def _write_head(ledger: Ledger, directory: Path, content: dict[str, Any]) -> None:
    """Sign the content of `head.json` and write it, unless the file has this content already."""
    try:
        with open_inside(directory, HEAD_FILE) as file:
            written = read_statement_file(file.read(SMALL_FILE_MAX), HEAD_FILE)
        # A post-quantum signature differs each time, and the same run should give the same files.
        if written.purpose == HEAD_PURPOSE and written.content == content:
            return
    except AverError:
        pass  # There is no such file yet, or it is damaged.
    with hold_signer(ledger.attesting_signer()) as held:
        if not isinstance(held, SeedSigner):
            raise BadInput("this ledger's signer signs capsules only, not statements")
        statement = sign_statement(HEAD_PURPOSE, content, (held,))
    replace_file(directory / HEAD_FILE, dump_statement(statement))


def pack_run(directory: Path, out: BinaryIO) -> None:
    """Write the files of a sealed run to `out` as a `.cap` file. The same files always give the same bytes."""
    names = [name for name in MEMBER_ORDER if name != EVIDENCE_FILE or (directory / name).exists()]
    with ExitStack() as opened:
        members = {name: opened.enter_context(open_inside(directory, name)) for name in names}
        pack(members, out)

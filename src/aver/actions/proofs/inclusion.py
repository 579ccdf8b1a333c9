"""A proof that a run contains a certain action. To verify the file, a reader needs only a public key.

    {v: 1, proof_type: "inclusion", statement, index, action, receipt_hash, path, seal}

`seal` is the sealed `run.seal` capsule of the run; it contains and signs the statement. `path` is the Merkle path from
the action to the root in the statement. The file does not contain or need the other actions of the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aver.actions.action import AgentAction
from aver.actions.encodings import receipt_hash
from aver.actions.proofs.proof import InclusionProof, RunStatement, proof_problem, prove_inclusion
from aver.actions.run_capsules import SEAL_KIND, read_run_seal, run_chain
from aver.capsule.aver_block import read_kind
from aver.capsule.json_reader import read_json
from aver.capsule.sealed import SEAL_KEYS, Sealed
from aver.errors import BadInput, NotFound, Refused
from aver.ledger.foreign.seal_checks import check_seal_fields, unreadable_code
from aver.ledger.key_history import retirements_by_time
from aver.verdict import CHECKS, ChainJudge, Finding, Place, Tally, Verdict, VerifyOptions, conclude
from aver.verdict.examiner import RUN_CHECKS

INCLUSION_TYPE = "inclusion"
PROOF_KEYS = frozenset({"v", "proof_type", "statement", "index", "action", "receipt_hash", "path", "seal"})

PROOF_MAX = 16 * 1024 * 1024
"""The maximum size, in bytes, of a proof: an action with the largest metadata, a capsule and a path."""


def find_action_index(actions: Sequence[AgentAction], wanted: str) -> int:
    """Return the index of the action with this id, receipt or number. Raise `NotFound` if there is none."""
    for index, action in enumerate(actions):
        if wanted in (action.action_id, receipt_hash(action)):
            return index
    # The length limit keeps `int` from parsing a very long string of digits.
    is_number = wanted.isascii() and wanted.isdigit() and len(wanted) <= len(str(len(actions)))
    if is_number and int(wanted) < len(actions):
        return int(wanted)
    raise NotFound(
        f"the run has no action {ascii(wanted)[:80]}", advice="name it by its id, its receipt hash or its number from 0"
    )


def inclusion_document(actions: Sequence[AgentAction], index: int, seal: Sealed | None) -> dict[str, Any]:
    """Build the proof that a sealed run with these actions contains the action at `index`.

    Raises `Refused` if the run has no seal or no statement, and `BadInput` if the seal is about other actions.
    """
    if seal is None:
        raise Refused(
            "NOT_SEALED", "the run is not sealed, so nothing can be proved about it", advice="finalize it first"
        )
    proof = prove_inclusion(actions, index)
    try:
        statement = seal.to_dict()["outcome"]["result"]["statement"]
    except (KeyError, TypeError):
        raise BadInput("the run's seal has no statement", advice="verify the run") from None
    if statement is None:
        raise Refused("NOT_PROVED", "the run was sealed without a statement", advice="finalize runs with prove=True")
    problem = proof_problem(RunStatement.from_dict(statement), proof)
    if problem is not None:
        raise BadInput(f"the run's seal does not match these actions: {problem}", advice="verify the run")
    return {
        "v": 1,
        "proof_type": INCLUSION_TYPE,
        "statement": statement,
        "index": index,
        "action": proof.action.to_dict(),
        "receipt_hash": receipt_hash(proof.action),
        "path": list(proof.path),
        "seal": {**{key: getattr(seal, key) for key in SEAL_KEYS}, "canonical": seal.canonical.decode("utf-8")},
    }


def judge_inclusion(name: str, raw: bytes, terms: VerifyOptions) -> Verdict:
    """Judge a proof of inclusion."""
    tally = Tally()
    try:
        document = read_json(raw)
        if not isinstance(document, dict) or document.keys() != PROOF_KEYS:
            raise BadInput("a proof of inclusion has other keys")
        if type(document["v"]) is not int or document["v"] != 1 or document["proof_type"] != INCLUSION_TYPE:
            raise BadInput("this is a proof of another sort or version", advice="use the Aver that made it")
        if not isinstance(document["path"], list) or type(document["index"]) is not int:
            raise BadInput("a proof of inclusion has a place and a path")
        _judge_document(document, terms, tally, Place(source=name))
    except BadInput as error:
        tally.add(Finding("proof", "failed", unreadable_code(error), error.message, Place(source=name)))
    tally.skip("sealed", "the other actions of the run are not here", matters=False)
    tally.skip("links", "the run's seal is on its own here", matters=False)
    tally.skip("gates", "the gate's records are not here", matters=False)
    return conclude(name, tally, level=terms.level, expected=(*CHECKS, *RUN_CHECKS))


def _judge_document(document: dict[str, Any], terms: VerifyOptions, tally: Tally, place: Place) -> None:
    def fail(check: str, code: str, words: str) -> None:
        tally.add(Finding(check, "failed", code, words, place))

    action = AgentAction.from_dict(document["action"])
    tally.count_done("receipts")
    if receipt_hash(action) != document["receipt_hash"]:
        fail("receipts", "RECEIPT_MISMATCH", "the receipt is not that of the action")
    statement = RunStatement.from_dict(document["statement"])
    chain = run_chain(statement.run_id)
    judge = ChainJudge(
        terms.rules(retirements_by_time(terms.ring)), chain=chain, start=None, source=place.source, needs_block=True
    )
    entry = document["seal"]
    if not isinstance(entry, dict) or entry.keys() != {"canonical", *SEAL_KEYS}:
        raise BadInput("a proof's seal is a capsule with its canonical text")
    if not all(isinstance(value, str) for value in entry.values()):
        raise BadInput("the parts of a seal are strings")
    canonical = entry["canonical"].encode("utf-8", "surrogatepass")
    content = judge.judge(check_seal_fields(Sealed(canonical, *(entry[key] for key in SEAL_KEYS))))
    tally.merge(judge.finish())
    tally.count_done("proof")
    if content is None or read_kind(content) != SEAL_KIND:
        fail("proof", "PROOF_INVALID", "the seal is not that of a run")
        return
    # The proof does not say which ledger and tenant sealed the run, and the checks below do not use them.
    seal = read_run_seal(content, ledger="", tenant="", chain=chain)
    if seal.statement != statement or seal.run_id != statement.run_id or seal.num_actions != statement.num_actions:
        fail("proof", "PROOF_INVALID", "the run's seal says another statement")
    problem = proof_problem(statement, InclusionProof(document["index"], action, tuple(document["path"])))
    if problem is not None:
        fail("proof", "PROOF_INVALID", problem)

"""One act as one file, which anyone can judge with the public keys alone.

`aver gateway export ACTION --out FILE` writes it, and `aver verify FILE --key keys.json` judges it. The file is JSON in
one form only: ASCII, two spaces of indentation, keys sorted, a line feed at the end. Any other byte is refused.

    {
      "act_file": 1,
      "action_id": "a_kR3vX0...",
      "approved_in": null,
      "blobs": {"5d2e...": {"text": "..."}},
      "keys": {"policy0": [{"public_key": "9f86...", "public_key_pq": ""}], "policy1": [...], "principals": [],
               "seal": [...]},
      "records": [{"canonical": "...", "chain": "gate.s1", "hash": "...", "signature": "...", ...}, ...]
    }

* `records` are the sealed records, as they stand in the ledger, in this order: the whole chain `approvers.<tenant>`; of
  `approvals.<tenant>` the request for this act, the answers to it and its uses; of `gate.<session>` the decisions about
  the act, and that by which a person was asked; of `gateway.<session>` its PREVIEW, COMMIT and outcomes. The first two
  are there only if a person was asked.
* `blobs` are the large values that the records refer to, by their SHA-256, as `text` or else as `base64`. Those of more
  than `BLOB_KEPT_MAX` bytes are left out.
* `approved_in` is {ledger, tenant} where a person was asked: people approve in one ledger and tenant.
* `keys` names the public keys that made the signatures. They are for the reader to compare with keys that he got some
  other way. No verifier trusts them, but each must have made the signatures that it stands for.

Delegation tokens ride in the records. The file does not say whether a token was revoked: a verdict names that.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from aver.capsule.blobs import blob_references
from aver.capsule.json_document import check_object, dump_document, read_exactly
from aver.capsule.json_reader import ELEMENT_MAX
from aver.capsule.sealed import SEAL_KEYS, Sealed
from aver.errors import BadInput, NotFound
from aver.fast_dataclass import dataclass
from aver.gate.approvals.enrolment import approvers_chain
from aver.gate.approvals.request_records import approvals_chain
from aver.gate.call_decisions import find_decision_records
from aver.gate.decision_record import decision_key
from aver.gateway.act_records import (
    ACTION_PREFIX,
    COMMIT_KIND,
    OUTCOME_KIND,
    PREVIEW_KIND,
    TX_PREFIX,
    mark_key,
)
from aver.gateway.delegation import DELEGATION_PURPOSE
from aver.gateway.delegation_records import read_token_statement
from aver.gateway.judgement.recorded_act import FetchBlob
from aver.gateway.proof.attestation import POLICY_PURPOSE
from aver.gateway.proof.evidence import SERVERS
from aver.gateway.settings import read_gateway_settings
from aver.keys.public_key import PublicKey
from aver.keys.statement import Statement
from aver.ledger import Ledger

FILE_VERSION = 1

ACT_FILE_MAX = ELEMENT_MAX
"""Largest file, in bytes: the strict reader takes no larger document."""

BLOB_KEPT_MAX = 4 * 1024 * 1024
"""Largest blob in a file, in bytes. Rules, states and most diffs are far smaller."""

RECORDS_MAX = 10_000
"""Most records in a file. The roster has a few dozen, and an act a handful."""

ACT_KINDS = frozenset({PREVIEW_KIND, COMMIT_KIND, OUTCOME_KIND})
KEY_LISTS = ("policy0", "policy1", "principals", "seal")

_FIELDS = frozenset({"act_file", "action_id", "approved_in", "blobs", "keys", "records"})
_RECORD_FIELDS = frozenset({"canonical", "chain", *SEAL_KEYS})
_ASKING = ("human_review", "human_approved")


@dataclass(frozen=True, slots=True)
class ActFile:
    """The parts of a file, as they were read. Nothing of it is verified."""

    action_id: str
    approved_in: tuple[str, str] | None
    """The ledger and the tenant in which a person was asked."""
    blobs: Mapping[str, bytes]
    """By the digests that the file gives them, which may be wrong."""
    keys: Mapping[str, tuple[PublicKey, ...]]
    records: tuple[Sealed, ...]


# --- writing


def build_act_file(ledger: Ledger, name: str) -> tuple[str, bytes]:
    """Return the id of an act, and its file. `name` is its `action_id`, its `tx_id`, or the id of one of its records.

    Raises `NotFound` if there is no such act, and `BadInput` if it does not fit into a file.
    """
    action_id, acts = find_act(ledger, name)
    decisions = find_decision_records(ledger, action_id)
    approvals = list(_select_approvals(ledger, decisions))
    # The act may use an approval that was asked for when the same was tried before.
    asking = {str(record.to_dict()["outcome"]["result"].get("gate_id", "")) for record in approvals}
    asked = (ledger.get(decision_key(gate_id)) for gate_id in asking if gate_id)
    found = {record.hash: record for record in (*decisions, *asked) if record is not None}
    decisions = sorted(found.values(), key=lambda record: record.sequence)
    roster = list(ledger.read(approvers_chain(ledger.tenant))) if approvals else []
    records = [*roster, *approvals, *decisions, *acts]
    document = {
        "act_file": FILE_VERSION,
        "action_id": action_id,
        "approved_in": {"ledger": ledger.id, "tenant": ledger.tenant} if approvals else None,
        "blobs": _collect_blobs(ledger, records),
        "keys": _collect_keys(ledger, records, acts),
        "records": [_describe_record(record) for record in records],
    }
    data = dump_document(document)
    if len(data) > ACT_FILE_MAX or len(records) > RECORDS_MAX:
        raise BadInput(
            f"the act {action_id} does not fit into a file of {ACT_FILE_MAX} bytes",
            advice=f"export the session instead: aver export --out DIR {acts[0].chain}",
        )
    return action_id, data


def find_act(ledger: Ledger, name: str) -> tuple[str, list[Sealed]]:
    """Return the id of an act, and its records in order. `name` is as for `build_act_file`. Raises `NotFound`."""
    found = _find_record(ledger, name)
    action_id = str(found.to_dict()["trigger"]["correlation_id"])
    return action_id, [record for record in ledger.read(str(found.chain)) if _is_about(record, action_id)]


def _find_record(ledger: Ledger, name: str) -> Sealed:
    """Find a record of the act that has this name."""
    if name.startswith(ACTION_PREFIX):
        record = ledger.get(mark_key(name))
        if record is None:  # It was never committed.
            previews = ledger.find(kind=PREVIEW_KIND)
            record = next((found for found in previews if _is_about(found, name)), None)
    else:
        record = ledger.get(name.removeprefix(TX_PREFIX))
    if record is None or record.kind not in ACT_KINDS:
        raise NotFound(f"there is no act {name[:80]}", advice="aver log lists acts; name one by its action_id")
    return record


def _is_about(record: Sealed, action_id: str) -> bool:
    return record.kind in ACT_KINDS and record.to_dict()["trigger"]["correlation_id"] == action_id


def _select_approvals(ledger: Ledger, decisions: Iterable[Sealed]) -> Iterator[Sealed]:
    """Yield the records of the approvals that are about these decisions: the request, the answers and the uses."""
    results = [decision.to_dict()["outcome"]["result"] for decision in decisions]
    digests = {result["digest"] for result in results if result["decision"] in _ASKING}
    chain = approvals_chain(ledger.tenant)
    if not digests or not ledger.head(chain).count:
        return
    requests: set[str] = set()
    for record in ledger.read(chain):
        result = record.to_dict()["outcome"]["result"]
        # A forged answer may give another digest than its request, so the request's id counts as well.
        if result.get("digest") in digests or result.get("request") in requests:
            requests.add(record.id)
            yield record


def _collect_blobs(ledger: Ledger, records: Iterable[Sealed]) -> dict[str, Any]:
    blobs: dict[str, Any] = {}
    for record in records:
        for digest, size in blob_references(record.to_dict()):
            if digest in blobs or size > BLOB_KEPT_MAX:
                continue
            data = ledger.blob(digest)
            try:
                blobs[digest] = {"text": data.decode("utf-8")}
            except UnicodeDecodeError:
                blobs[digest] = {"base64": base64.b64encode(data).decode("ascii")}
    return blobs


def _collect_keys(ledger: Ledger, records: list[Sealed], acts: list[Sealed]) -> dict[str, list[dict[str, str]]]:
    """List the public keys that made the signatures, as far as they are known here."""
    ring = ledger.keys.ring()
    named: dict[str, dict[str, PublicKey]] = {name: {} for name in KEY_LISTS}

    def add(name: str, keys: Iterable[PublicKey]) -> None:
        named[name].update({key.ed25519: key for key in keys})

    for record in records:
        add("seal", ring.lookup(record.signed_by)[:1])
    for server_id, statement in find_attestations(acts):
        add(f"policy{server_id}", ring.lookup(statement.signatures[0].by)[:1])
    principals = read_gateway_settings(ledger.config).keys
    for issuer, statement in find_tokens(acts, ledger.blob):
        by, own = statement.signatures[0].by, principals.get(issuer)
        add("principals", [own] if own is not None and own.fingerprint == by else ring.lookup(by)[:1])
    return {
        name: [{"public_key": key.ed25519, "public_key_pq": key.ml_dsa_65} for _, key in sorted(keys.items())]
        for name, keys in named.items()
    }


def _describe_record(record: Sealed) -> dict[str, Any]:
    seal = {name: getattr(record, name) for name in SEAL_KEYS}
    try:
        return {"canonical": record.canonical.decode("utf-8"), "chain": record.chain, **seal}
    except UnicodeDecodeError:
        raise BadInput(f"the record {record.hash[:16]} is not text", advice="run: aver verify") from None


# --- the statements in acts


def find_attestations(acts: Iterable[Sealed]) -> Iterator[tuple[int, Statement]]:
    """Yield the attestations in the records of acts, each with the number of its server."""
    for document in _find_statements(acts, POLICY_PURPOSE):
        statement = Statement.from_dict(document)
        server_id = statement.content.get("server_id")
        if server_id in SERVERS and type(server_id) is int and len(statement.signatures) == 1:
            yield server_id, statement


def find_tokens(acts: Iterable[Sealed], fetch: FetchBlob) -> Iterator[tuple[str, Statement]]:
    """Yield the delegation tokens in the records of acts, with their parents, each with the name of its issuer."""
    for document in _find_statements(acts, DELEGATION_PURPOSE):
        for token in read_token_statement(document, fetch):
            yield token.iss, token.statement


def _find_statements(acts: Iterable[Sealed], purpose: str) -> Iterator[Any]:
    for record in acts:
        for item in record.to_dict()["authority"]["chain"]:
            if isinstance(item, dict) and item.get("purpose") == purpose:
                yield item


# --- reading


def parse_act_file(raw: bytes, where: str = "the act file") -> ActFile:
    """Read a file, in its one form. Raises `BadInput`. Nothing in it is verified yet."""
    if len(raw) > ACT_FILE_MAX:
        raise BadInput(f"{where} is larger than {ACT_FILE_MAX} bytes")
    document = read_exactly(raw, where, lambda data: data, dump_document)
    found = check_object(document, where, _FIELDS)
    if type(found["act_file"]) is not int or found["act_file"] != FILE_VERSION:
        raise BadInput(f"{where} is of a version that this Aver does not read", advice="use a newer Aver")
    records = found["records"]
    if type(records) is not list or not 1 <= len(records) <= RECORDS_MAX:
        raise BadInput(f"{where}.records must be a list of 1 to {RECORDS_MAX} records")
    keys = check_object(found["keys"], f"{where}.keys", frozenset(KEY_LISTS))
    return ActFile(
        action_id=_read_text(found["action_id"], f"{where}.action_id"),
        approved_in=_read_approved_in(found["approved_in"], f"{where}.approved_in"),
        blobs=_read_blobs(found["blobs"], f"{where}.blobs"),
        keys={name: tuple(_read_keys(keys[name], f"{where}.keys.{name}")) for name in KEY_LISTS},
        records=tuple(_read_record(item, f"{where}.records[{index}]") for index, item in enumerate(records)),
    )


def _read_text(value: Any, where: str) -> str:
    if type(value) is not str:
        raise BadInput(f"{where} must be a text")
    return value


def _read_approved_in(value: Any, where: str) -> tuple[str, str] | None:
    if value is None:
        return None
    found = check_object(value, where, frozenset({"ledger", "tenant"}))
    return _read_text(found["ledger"], where), _read_text(found["tenant"], where)


def _read_blobs(value: Any, where: str) -> dict[str, bytes]:
    if type(value) is not dict:
        raise BadInput(f"{where} must be an object")
    blobs = {}
    for digest, item in value.items():
        place = f"{where}.{digest[:16]}"
        found = check_object(item, place, frozenset(), frozenset({"text", "base64"}))
        if len(found) != 1:
            raise BadInput(f"{place} must have either text or base64")
        try:
            if "text" in found:
                blobs[digest] = _read_text(found["text"], place).encode("utf-8")
                continue
            written = _read_text(found["base64"], place)
            blobs[digest] = base64.b64decode(written, validate=True)
        except ValueError:
            raise BadInput(f"{place} is neither UTF-8 text nor base64") from None
        if base64.b64encode(blobs[digest]).decode("ascii") != written:
            raise BadInput(f"{place} is not canonical base64")
    return blobs


def _read_keys(value: Any, where: str) -> Iterator[PublicKey]:
    if type(value) is not list:
        raise BadInput(f"{where} must be a list")
    for index, item in enumerate(value):
        place = f"{where}[{index}]"
        found = check_object(item, place, frozenset({"public_key", "public_key_pq"}))
        yield PublicKey.read(found["public_key"], found["public_key_pq"], place)


def _read_record(value: Any, where: str) -> Sealed:
    found = check_object(value, where, _RECORD_FIELDS)
    texts = {name: _read_text(found[name], f"{where}.{name}") for name in _RECORD_FIELDS}
    # A lone surrogate must reach the hash check, which fails there, instead of raising here.
    canonical = texts["canonical"].encode("utf-8", "surrogatepass")
    return Sealed(canonical, *(texts[name] for name in SEAL_KEYS), chain=texts["chain"])

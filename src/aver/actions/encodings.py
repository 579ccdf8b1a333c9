"""An action as bytes, in the three forms that are hashed, each written once.

receipt    the canonical fields, which the receipt is the hash of
metadata   the canonical JSON of the metadata
sealed     the canonical JSON of all fourteen fields, as the action's capsule has them: metadata longer than
           `METADATA_INLINE` stand there as a reference to a blob of their canonical JSON

Metadata that look like such a reference themselves are refused: the sealed form would be that of two actions.

Receipts: the hash over an action by which the next one names it; and the texts of an action that are hashed.

A receipt is SHA-256, in lower-case hex, over sorted compact ASCII JSON of an action's canonical fields: the twelve keys
that the protocol lists. The public implementation hashes thirteen, `policy_verdict` too; those are recognised when
reading and never written.

The lines of `actions.jsonl`: one action, its receipt, and the very text that the receipt is a hash of.

A line is a JSON object: the fourteen fields in the protocol's order, then `receipt_hash`, then `canonical_fields`. Aver
writes `canonical_fields` exactly as they were hashed, so that whoever cuts that object out of the line can hash it.

Reading goes by the raw text. What Aver wrote is recognised by writing it again: then all of it agrees. Anything else
is taken apart: `canonical_fields` are hashed with their numbers as they stand there, and compared with the fields
beside them.

The lines of `capsules.jsonl`: the run's sealed capsules, and those of the gate that its actions refer to.

    {"chain", "hash", "signature", "signature_pq", "signed_at", "signed_by", "canonical"}

`canonical` is the text that was hashed. In the capsule of an action it stands in two parts, and what belongs between
them is the action itself, in canonical form: it is in `actions.jsonl`, and is not repeated. So a changed action
changes its capsule, and nobody can tell two stories in the two files.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from operator import itemgetter
from typing import Any, NamedTuple

import orjson

from aver.actions.action import FIELDS, AgentAction
from aver.capsule.blobs import Blob, blob_references
from aver.capsule.canonical import ascii_json, canonical_json
from aver.capsule.json_reader import ELEMENT_MAX, TOKENS_MAX, Unreadable, read_json
from aver.capsule.sealed import SEAL_KEYS, Sealed
from aver.errors import AverError, BadInput, IntegrityError, NotCanonical

__all__ = [
    "ACTION_LINE_MAX",
    "CAPSEAL_KEYS",
    "CAPSULE_LINE_MAX",
    "METADATA_INLINE",
    "METADATA_MAX",
    "RECEIPT_KEYS",
    "ActionLine",
    "CapsuleLine",
    "EncodedAction",
    "action_line",
    "capsule_line",
    "encode_action",
    "metadata_blob",
    "metadata_blob_digest",
    "read_action_line",
    "read_capsule_line",
    "receipt_bytes",
    "receipt_hash",
]


METADATA_INLINE = 8 * 1024
"""Canonical bytes of metadata inside a capsule; larger ones lie beside it."""

METADATA_MAX = 4 * 1024 * 1024
"""Canonical bytes of an action's metadata. What is larger belongs into a file, with its hash in the metadata."""

_NULL = b"null"


class EncodedAction(NamedTuple):
    """See the module's text."""

    receipt: bytes
    receipt_hash: str
    metadata: bytes
    score: bytes
    """The gate's score as Python writes it."""

    def line(self, action: AgentAction) -> bytes:
        """The action's line in `actions.jsonl`, without its line feed."""
        content = self._to_dict(action, self.metadata)
        content["receipt_hash"] = self.receipt_hash
        content["canonical_fields"] = orjson.Fragment(self.receipt)
        return orjson.dumps(content)

    def sealed(self, action: AgentAction) -> bytes:
        """The action as it stands in its capsule."""
        metadata = self.metadata
        if len(metadata) > METADATA_INLINE:
            metadata = orjson.dumps(metadata_blob(metadata).reference, option=orjson.OPT_SORT_KEYS)
        return orjson.dumps(self._to_dict(action, metadata), option=orjson.OPT_SORT_KEYS)

    def _to_dict(self, action: AgentAction, metadata: bytes) -> dict[str, Any]:
        content = action.to_dict()
        content["metadata"] = orjson.Fragment(metadata)
        content["gate_score"] = orjson.Fragment(self.score)
        return content


def encode_action(action: AgentAction) -> EncodedAction:
    """The texts of an action; `BadInput` where its metadata are not JSON, or endless."""
    receipt = receipt_bytes(action)
    score = action.gate_score
    return EncodedAction(
        receipt,
        hashlib.sha256(receipt).hexdigest(),
        _NULL if action.metadata is None else _encode_metadata(action.metadata),
        _NULL if score is None else repr(score).encode(),
    )


def metadata_blob(metadata: bytes) -> Blob:
    """What holds large metadata."""
    return Blob(metadata, "application/json")


def metadata_blob_digest(metadata: Any) -> str | None:
    """The digest of the blob that holds the metadata, where they are only referred to."""
    if metadata is None or metadata.keys() != {"blob"}:
        return None
    return next((digest for digest, size in blob_references(metadata) if size > METADATA_INLINE), None)


def _encode_metadata(metadata: Any) -> bytes:
    if metadata_blob_digest(metadata) is not None:
        raise BadInput("metadata must not be a reference to a blob", advice="give it another key than 'blob' alone")
    try:
        data = canonical_json(metadata)
    except NotCanonical as error:
        raise NotCanonical(error.problem, path=f"metadata.{error.path}".rstrip(".")) from error
    if len(data) > METADATA_MAX:
        raise BadInput(
            f"metadata has {len(data)} bytes, more than {METADATA_MAX}",
            advice="put its hash there, and keep the value elsewhere",
        )
    return data


RECEIPT_KEYS = frozenset(
    (
        *("action_id", "action_type", "instruction_hash", "input_hash", "output_hash", "parent_action_id"),
        *("parent_receipt_hash", "gate_score", "gate_decision", "success", "duration_ms", "timestamp"),
    )
)
CAPSEAL_KEYS = RECEIPT_KEYS | {"policy_verdict"}


def receipt_bytes(action: AgentAction) -> bytes:
    """The exact text that is hashed."""
    fields: dict[str, Any] = {
        "action_id": action.action_id,
        "action_type": action.action_type,
        "instruction_hash": action.instruction_hash,
        "input_hash": action.input_hash,
        "output_hash": action.output_hash,
        "parent_action_id": action.parent_action_id,
        "parent_receipt_hash": action.parent_receipt_hash,
        "gate_score": action.gate_score,
        "gate_decision": action.gate_decision,
        "success": action.success,
        "duration_ms": action.duration_ms,
        "timestamp": action.timestamp,
    }
    return ascii_json(fields)


def receipt_hash(action: AgentAction) -> str:
    return hashlib.sha256(receipt_bytes(action)).hexdigest()


ACTION_LINE_MAX = ELEMENT_MAX
"""Bytes of a line that is read."""

RECEIPT_HASH, CANONICAL_FIELDS = "receipt_hash", "canonical_fields"
_field_values = itemgetter(*FIELDS)
_HEX64 = re.compile(r"[0-9a-f]{64}").fullmatch


class ActionLine(NamedTuple):
    """A line as it was read."""

    action: AgentAction
    texts: EncodedAction
    receipt_hash: str
    """As it stands in the line."""
    keys: int
    """How many keys its receipt covers: 12, or 13 with `policy_verdict`."""
    problem: str | None = None
    """Why the receipt is not that of the action; None where it is."""
    own: bool = False
    """Whether it is, to the byte, what Aver writes."""


def action_line(action: AgentAction) -> bytes:
    """The line of an action, without its line feed."""
    return encode_action(action).line(action)


def read_action_line(raw: bytes) -> ActionLine:
    """Read a line, without its line feed. `Unreadable` where it is not an action with a receipt."""
    if len(raw) <= TOKENS_MAX:
        try:
            content = orjson.loads(raw)
            action = AgentAction(*_field_values(content))
            texts = encode_action(action)
            if texts.line(action) == raw:
                return ActionLine(action, texts, texts.receipt_hash, len(RECEIPT_KEYS), own=True)
        except (AverError, ValueError, KeyError, TypeError):
            pass  # What it is, is told below.
    return _read_foreign_line(raw)


# --- lines that others wrote, or changed


class _RawNumber(str):
    """A number's own text."""

    __slots__ = ()


_RAW_NUMBER_DECODER = json.JSONDecoder(parse_float=_RawNumber, parse_int=_RawNumber)
_SCALARS = (str, bool, int, float, type(None))


def _read_foreign_line(raw: bytes) -> ActionLine:
    content = read_json(raw)
    if not isinstance(content, dict):
        raise Unreadable("a line of actions must be a JSON object")
    stored, fields = content.pop(RECEIPT_HASH, None), content.pop(CANONICAL_FIELDS, None)
    try:
        action = AgentAction.from_dict(content)
        texts = encode_action(action)
    except BadInput as error:
        raise Unreadable(error.message) from error
    if not isinstance(stored, str) or not _HEX64(stored):
        raise Unreadable("the action has no receipt_hash of 64 lower-case hex digits")
    if fields is None:
        return _read_older_line(action, texts, stored)
    if not isinstance(fields, dict) or fields.keys() not in (RECEIPT_KEYS, CAPSEAL_KEYS):
        raise Unreadable("canonical_fields are neither the 12 keys of a receipt nor those with policy_verdict")
    if not all(isinstance(value, _SCALARS) for value in fields.values()):
        raise Unreadable("canonical_fields hold something that is no field of an action")
    score = _RAW_NUMBER_DECODER.decode(raw.decode("utf-8"))[CANONICAL_FIELDS]["gate_score"]
    return ActionLine(action, texts, stored, len(fields), _receipt_problem(action, stored, fields, score))


def _receipt_problem(action: AgentAction, stored: str, fields: dict[str, Any], score: Any) -> str | None:
    if stored not in map(_sha256_hex, _receipt_candidates(fields, score)):
        return "receipt_hash is not the hash of canonical_fields"
    own = action.to_dict()
    for name, value in fields.items():
        beside = own[name]
        if value != beside or isinstance(value, bool) != isinstance(beside, bool):
            return f"canonical_fields say another {name} than the action"
    return None


def _read_older_line(action: AgentAction, texts: EncodedAction, stored: str) -> ActionLine:
    """Older files have no `canonical_fields`; the receipt is then over the action's own fields, in one of two ways."""
    own = action.to_dict()
    for keys in (RECEIPT_KEYS, CAPSEAL_KEYS):
        fields = {name: own[name] for name in keys}
        if stored in map(_sha256_hex, _receipt_candidates(fields, None)):
            return ActionLine(action, texts, stored, len(keys))
    problem = "receipt_hash is not the hash of the action's fields"
    return ActionLine(action, texts, stored, len(RECEIPT_KEYS), problem)


def _receipt_candidates(fields: dict[str, Any], as_written: Any) -> Iterator[str]:
    """The texts that may have been hashed. A program in another language may have written the score anew since, such
    as `1` for `1.0`; the value is the same in all of them."""
    value = fields["gate_score"]
    scores = {json.dumps(value): None}
    if isinstance(as_written, _RawNumber):
        scores[as_written] = None
    if type(value) is int:
        scores[repr(float(value))] = None
    for score in scores:
        pairs = (f'"{key}":{score if key == "gate_score" else json.dumps(fields[key])}' for key in sorted(fields))
        yield f"{{{','.join(pairs)}}}"


def _sha256_hex(text: str) -> str:
    return hashlib.sha256(text.encode("ascii")).hexdigest()


CAPSULE_LINE_MAX = 1024 * 1024
"""Bytes of a line that is read. A capsule has 256 KiB at most, and writing it as a JSON string at most doubles that."""

SEAL_MAX = 16 * 1024
"""Characters of a seal and a chain's name. An ML-DSA-65 signature, the longest part there is, has 6,618."""

_seal_values = itemgetter(*SEAL_KEYS)
_CAPSULE_LINE_KEYS = frozenset({"chain", "canonical", *SEAL_KEYS})


class CapsuleLine(NamedTuple):
    """A line as it was read. `parts` has one text, or two where an action belongs between them."""

    chain: str
    parts: tuple[str, ...]
    seal: tuple[str, ...]

    @property
    def has_action(self) -> bool:
        return len(self.parts) == 2

    def sealed(self, action: bytes | None) -> Sealed:
        """The capsule, with the sealed text of its action in its place."""
        canonical = (b"" if action is None else action).join(
            [part.encode("utf-8", "surrogatepass") for part in self.parts]
        )
        return Sealed(canonical, *self.seal, chain=self.chain)


def capsule_line(record: Sealed, action: bytes | None) -> bytes:
    """The line of a record, with its line feed; of the capsule of an action, where its sealed text is given."""
    try:
        canonical = record.canonical.decode("utf-8")
    except UnicodeDecodeError:
        raise _unwritable_error(record, "it is not text") from None
    text: str | list[str] = canonical
    if action is not None:
        before, found, after = canonical.partition(f'"action":{action.decode()}')
        if not found:
            raise _unwritable_error(record, "it does not hold its action")
        text = [f'{before}"action":', after]
    seal = {key: getattr(record, key) for key in SEAL_KEYS}
    return orjson.dumps({"chain": record.chain, **seal, "canonical": text}, option=orjson.OPT_APPEND_NEWLINE)


def read_capsule_line(raw: bytes) -> CapsuleLine:
    """Read a line, without its line feed; `Unreadable` where it is none."""
    content = _parse_json_line(raw)
    if not isinstance(content, dict) or content.keys() != _CAPSULE_LINE_KEYS:
        raise Unreadable("a line of capsules has a chain, a seal and its canonical text")
    canonical = content["canonical"]
    parts = (canonical,) if isinstance(canonical, str) else canonical
    if not isinstance(parts, list | tuple) or len(parts) > 2 or not all(isinstance(part, str) for part in parts):
        raise Unreadable("a capsule's canonical text is one text, or two")
    chain, seal = content["chain"], _seal_values(content)
    try:
        written = "".join((chain, *seal))
    except TypeError:
        raise Unreadable("the parts of a seal are strings") from None
    if len(written) > SEAL_MAX or not written.isprintable():
        raise Unreadable("its seal holds what no seal holds")
    return CapsuleLine(chain, tuple(parts), seal)


def _parse_json_line(raw: bytes) -> object:
    """The JSON in a line. What orjson writes again in the same way has no key twice; the rest is read strictly."""
    if len(raw) <= TOKENS_MAX:
        try:
            content = orjson.loads(raw)
            if orjson.dumps(content) == raw:
                return content
        except ValueError:
            pass
    return read_json(raw)


def _unwritable_error(record: Sealed, words: str) -> IntegrityError:
    return IntegrityError(
        "SCHEMA_INVALID",
        f"the capsule {record.hash[:16]} of chain {record.chain} cannot be written out: {words}",
        evidence=record,
        advice="run: aver verify",
    )

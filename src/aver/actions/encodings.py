"""The byte forms of an action and of its capsule: the receipt, the sealed form, and the lines of the two JSONL files.

Receipt. SHA-256, in lower-case hex, over the compact, sorted ASCII JSON of the twelve `RECEIPT_KEYS`. The next action
names this hash as its parent. The public CapSeal implementation hashes thirteen keys (`policy_verdict` too). Aver
accepts such receipts when it reads, and never writes them.

Sealed form. The canonical JSON of all fourteen fields, as the capsule of the action contains them. If the metadata is
longer than `METADATA_INLINE` bytes, the sealed form contains a reference to a blob instead. Aver refuses metadata that
looks like such a reference, because two different actions would then have the same sealed form.

`actions.jsonl`. Each line is one JSON object: the fourteen fields, then `receipt_hash`, then `canonical_fields`:

    {"action_id": "act_0001", ..., "metadata": null, "receipt_hash": "9f…", "canonical_fields": {...}}

Aver writes `canonical_fields` exactly as it hashed them. A reader can cut this object out of the line and hash it.

`capsules.jsonl`. Each line is one sealed capsule: of the run, or of a gate decision that an action refers to:

    {"chain", "hash", "signature", "signature_pq", "signed_at", "signed_by", "canonical"}

`canonical` is the text that was hashed. For the capsule of an action it is a list of two texts. The sealed form of the
action belongs between them; it follows from `actions.jsonl` and is not repeated. If someone changes an action, the
hash of its capsule no longer matches, so the two files cannot contradict each other.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from operator import itemgetter
from typing import IO, Any, BinaryIO, NamedTuple, cast

import orjson

from aver.actions.action import FIELDS, AgentAction
from aver.capsule.blobs import Blob, blob_references
from aver.capsule.canonical import ascii_json, canonical_json
from aver.capsule.json_reader import ELEMENT_MAX, TOKENS_MAX, Unreadable, read_json
from aver.capsule.sealed import SEAL_KEYS, Sealed
from aver.errors import AverError, BadInput, IntegrityError, NotCanonical
from aver.files.regular import skip_blanks

METADATA_INLINE = 8 * 1024
"""The maximum canonical size, in bytes, of metadata inside a capsule. Larger metadata becomes a blob."""

METADATA_MAX = 4 * 1024 * 1024
"""The maximum canonical size, in bytes, of an action's metadata. Put larger data in a file and its hash here."""

_NULL = b"null"


class EncodedAction(NamedTuple):
    """The byte forms of one action that Aver hashes. The module docstring describes them."""

    receipt: bytes
    receipt_hash: str
    metadata: bytes
    score: bytes
    """The score of the gate as Python's `repr` writes it, or `null`."""

    def seal_form(self, action: AgentAction) -> bytes:
        """Return the sealed form of the action, as its capsule contains it."""
        metadata = self.metadata
        if len(metadata) > METADATA_INLINE:
            metadata = orjson.dumps(metadata_blob(metadata).reference, option=orjson.OPT_SORT_KEYS)
        content = action.to_dict()
        # Insert the exact bytes that were hashed. orjson may format a float differently from Python's `repr`.
        content["metadata"] = orjson.Fragment(metadata)
        content["gate_score"] = orjson.Fragment(self.score)
        return orjson.dumps(content, option=orjson.OPT_SORT_KEYS)


def encode_action(action: AgentAction) -> EncodedAction:
    """Encode an action. Raise `BadInput` if its metadata is not JSON or is too large."""
    receipt = receipt_bytes(action)
    score = action.gate_score
    return EncodedAction(
        receipt,
        hashlib.sha256(receipt).hexdigest(),
        _NULL if action.metadata is None else _encode_metadata(action.metadata),
        _NULL if score is None else repr(score).encode(),
    )


def metadata_blob(metadata: bytes) -> Blob:
    """Return the blob for metadata that is too large for the capsule."""
    return Blob(metadata, "application/json")


def metadata_blob_digest(metadata: Any) -> str | None:
    """Return the blob digest if `metadata` is only a reference to a blob; otherwise None."""
    if metadata is None or metadata.keys() != {"blob"}:
        return None
    # A reference to a smaller blob is ordinary metadata: Aver never moves metadata of that size into a blob.
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
"""The keys that the public CapSeal implementation hashes. Aver only reads such receipts."""


def receipt_bytes(action: AgentAction) -> bytes:
    """Return the exact bytes over which the receipt is computed."""
    fields = action.to_dict()
    return ascii_json({name: fields[name] for name in RECEIPT_KEYS})


def receipt_hash(action: AgentAction) -> str:
    return hashlib.sha256(receipt_bytes(action)).hexdigest()


ACTION_LINE_MAX = ELEMENT_MAX
"""The maximum size, in bytes, of a line that Aver reads."""

RECEIPT_HASH, CANONICAL_FIELDS = "receipt_hash", "canonical_fields"
_field_values = itemgetter(*FIELDS)
_HEX64 = re.compile(r"[0-9a-f]{64}").fullmatch


class ActionLine(NamedTuple):
    """One line of `actions.jsonl`, as it was read."""

    action: AgentAction
    texts: EncodedAction
    receipt_hash: str
    """The receipt that the line contains."""
    keys: int
    """The number of keys that the receipt covers: 12, or 13 with `policy_verdict`."""
    problem: str | None = None
    """Why the receipt does not match the action; None if it matches."""
    own: bool = False
    """Whether the line is byte for byte the line that Aver writes."""


def read_raw_lines(file: IO[bytes], limit: int) -> Iterator[bytes | BadInput]:
    """Yield the lines of a file without their line feeds; for a line that is too long, the reason. Skip empty lines."""
    for line in _read_each_line(file, limit):
        if line == b"":
            skip_blanks(cast(BinaryIO, file))
        else:
            yield line


def read_own_lines(file: IO[bytes], limit: int) -> Iterator[bytes | BadInput]:
    """Yield the lines of a file that Aver wrote, as `read_raw_lines` does. An empty line is an error, and ends them.

    Aver writes no empty lines. A file that packs well could hold hundreds of millions of them.
    """
    for line in _read_each_line(file, limit):
        if line == b"":
            yield Unreadable("the line is empty, and Aver writes no empty lines; the rest was not read")
            return
        yield line


def _read_each_line(file: IO[bytes], limit: int) -> Iterator[bytes | BadInput]:
    while line := file.readline(limit + 2):
        if len(line) > limit + 1:
            while line and not line.endswith(b"\n"):
                line = file.readline(limit + 2)
            yield Unreadable(f"the line is longer than {limit} bytes")
        else:
            yield line.rstrip(b"\r\n")


def action_line(action: AgentAction, texts: EncodedAction | None = None) -> bytes:
    """Return the line of an action, without the line feed. `texts` is its encoded form, where the caller has it."""
    texts = texts or encode_action(action)
    content = action.to_dict()
    # Insert the exact bytes that were hashed, as in the sealed form.
    content["metadata"] = orjson.Fragment(texts.metadata)
    content["gate_score"] = orjson.Fragment(texts.score)
    content[RECEIPT_HASH] = texts.receipt_hash
    content[CANONICAL_FIELDS] = orjson.Fragment(texts.receipt)
    return orjson.dumps(content)


def read_action_line(raw: bytes) -> ActionLine:
    """Read a line without its line feed. Raise `Unreadable` if it is not an action with a receipt."""
    if len(raw) <= TOKENS_MAX:
        try:
            content = orjson.loads(raw)
            action = AgentAction(*_field_values(content))
            texts = encode_action(action)
            # Fast path: if Aver would write the same bytes, the receipt and `canonical_fields` are correct.
            if action_line(action, texts) == raw:
                return ActionLine(action, texts, texts.receipt_hash, len(RECEIPT_KEYS), own=True)
        except (AverError, ValueError, KeyError, TypeError):
            pass  # The strict reader below names the problem.
    return _read_foreign_line(raw)


# --- lines that another program wrote or changed


class _RawNumber(str):
    """A number, kept as the text in which it was written."""

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
        # The line is from an older file. Its receipt covers 12 or 13 fields of the action itself.
        own = action.to_dict()
        for keys in (RECEIPT_KEYS, CAPSEAL_KEYS):
            fields = {name: own[name] for name in keys}
            if stored in map(_sha256_hex, _receipt_candidates(fields, None)):
                return ActionLine(action, texts, stored, len(keys))
        problem = "receipt_hash is not the hash of the action's fields"
        return ActionLine(action, texts, stored, len(RECEIPT_KEYS), problem)
    if not isinstance(fields, dict) or fields.keys() not in (RECEIPT_KEYS, CAPSEAL_KEYS):
        raise Unreadable("canonical_fields are neither the 12 keys of a receipt nor those with policy_verdict")
    if not all(isinstance(value, _SCALARS) for value in fields.values()):
        raise Unreadable("canonical_fields hold something that is no field of an action")
    # Decode again to get the score as text: the receipt covers its spelling (`1` or `1.0`), not its value.
    score = _RAW_NUMBER_DECODER.decode(raw.decode("utf-8"))[CANONICAL_FIELDS]["gate_score"]
    return ActionLine(action, texts, stored, len(fields), _receipt_problem(action, stored, fields, score))


def _receipt_problem(action: AgentAction, stored: str, fields: dict[str, Any], score: Any) -> str | None:
    if stored not in map(_sha256_hex, _receipt_candidates(fields, score)):
        return "receipt_hash is not the hash of canonical_fields"
    own = action.to_dict()
    for name, value in fields.items():
        beside = own[name]
        # In Python `True == 1`, so compare the bool type separately.
        if value != beside or isinstance(value, bool) != isinstance(beside, bool):
            return f"canonical_fields say another {name} than the action"
    return None


def _receipt_candidates(fields: dict[str, Any], as_written: Any) -> Iterator[str]:
    """Yield the texts that the writer may have hashed.

    They differ only in the spelling of the score, because a program in another language may write `1` for `1.0`.
    """
    value = fields["gate_score"]
    scores = {json.dumps(value): None}  # A dict instead of a set, to keep the order.
    if isinstance(as_written, _RawNumber):
        scores[as_written] = None
    # A hostile line may have an integer that no float can hold. It is no score, and has no other spelling.
    if type(value) is int and 0 <= value <= 1:
        scores[repr(float(value))] = None
    for score in scores:
        pairs = (f'"{key}":{score if key == "gate_score" else json.dumps(fields[key])}' for key in sorted(fields))
        yield f"{{{','.join(pairs)}}}"


def _sha256_hex(text: str) -> str:
    return hashlib.sha256(text.encode("ascii")).hexdigest()


CAPSULE_LINE_MAX = 1024 * 1024
"""The maximum size, in bytes, of a line that Aver reads. A capsule has at most 256 KiB, and its text as a JSON string
at most twice as much."""

SEAL_MAX = 16 * 1024
"""The maximum length of the seal and the chain name together. The longest part, an ML-DSA-65 signature, has 6,618."""

_seal_values = itemgetter(*SEAL_KEYS)
_CAPSULE_LINE_KEYS = frozenset({"chain", "canonical", *SEAL_KEYS})


class CapsuleLine(NamedTuple):
    """One line of `capsules.jsonl`, as it was read.

    `parts` has two texts if an action belongs between them (`has_action`), else one.
    """

    chain: str
    parts: tuple[str, ...]
    seal: tuple[str, ...]
    has_action: bool

    def rebuild(self, action: bytes | None) -> Sealed:
        """Return the capsule, with the sealed form of its action inserted between the two parts."""
        # A lone surrogate must reach the hash check, which fails there, instead of raising here.
        canonical = (b"" if action is None else action).join(
            [part.encode("utf-8", "surrogatepass") for part in self.parts]
        )
        return Sealed(canonical, *self.seal, chain=self.chain)


def capsule_line(record: Sealed, action: bytes | None) -> bytes:
    """Return the line of a record, with its line feed.

    For the capsule of an action, `action` is the sealed form, which the line leaves out. Raises `IntegrityError` if the
    record is not text or does not contain this action.
    """
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
    """Read a line without its line feed. Raise `Unreadable` if it is not the line of a capsule."""
    content = parse_json_line(raw)
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
    return CapsuleLine(chain, tuple(parts), seal, len(parts) == 2)


def parse_json_line(raw: bytes) -> object:
    """Parse the JSON of a line.

    If orjson writes the same bytes again, no key occurs twice, and the fast result is safe. Otherwise read strictly.
    """
    if len(raw) <= TOKENS_MAX:
        try:
            content = orjson.loads(raw)
            if orjson.dumps(content) == raw:
                return content
        except (ValueError, TypeError):  # TypeError: orjson reads nesting that is too deep for it to write.
            pass
    return read_json(raw)


def _unwritable_error(record: Sealed, words: str) -> IntegrityError:
    return IntegrityError(
        "SCHEMA_INVALID",
        f"the capsule {record.hash[:16]} of chain {record.chain} cannot be written out: {words}",
        evidence=record,
        advice="run: aver verify",
    )

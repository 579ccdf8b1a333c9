"""Commit evidence: the shares of the two policy servers.

A policy server that allows a request makes a *share*. The two shares together are the evidence of a COMMIT:

    {"policy0": {"v": 1, "kind": "commit", "server_id": 0, "kid": "0", "ts": 1700000000, "action_id": "a_kat",
                 "program_id": "policy_unified_v1", "request_sha256": "900509...",
                 "outputs": {"allow_pre": 1, "need_confirm": 0, "patch0": 0, "patch1": 0},
                 "commit_tag_share_b64": "AQEBAQEBAQEBAQEBAQEBAQ==", "mac_b64": "iCaG+8lG28hK..."},
     "policy1": {...}}

* `ts` is Unix time in whole seconds. `request_sha256` is the hash of `aver.gateway.request`.
* `outputs` are shares of bits. The bit is the XOR of both: `allow_pre`, `need_confirm`, and the number of the patch,
  `patch0 | patch1 << 1`. Server 0 writes the mask, server 1 the mask XOR the bit. The mask is the lowest bit of
  HMAC-SHA256(K01, `action_id LF request_sha256 LF program_id LF name`), that is the lowest bit of its last byte. Only
  the two servers know K01.
* The commit tag is the XOR of both tag shares: 16 random bytes each, in base64. It names the commit and proves nothing.
* `mac_b64` is base64 of HMAC-SHA256(key, ascii_json of the share without `mac_b64`). `kid` names the key.

A share is read in one form only (`Share.parse`): whole numbers that are neither `true` nor `1.0`, canonical base64, no
further field. XOR alone is no dual approval, because one server can flip its bit; `aver.gateway.proof.attestation` is
what holds each server to its own decision.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import field
from typing import Any, NamedTuple, Protocol

from aver.capsule.canonical import ascii_json, has_surrogate
from aver.errors import BadInput
from aver.fast_dataclass import dataclass
from aver.lazy_pattern import lazy_pattern

MAJOR = 1
"""The version of shares. An executor refuses every other one (RFC §9.2)."""

KIND = "commit"
OUTPUTS = ("allow_pre", "need_confirm", "patch0", "patch1")
"""The outputs that every share must have."""

SERVERS = (0, 1)
TAG_BYTES = 16
MAC_BYTES = 32

BASE64_MAX = 1_024
"""Characters of base64 that are decoded. A tag of 16 bytes has 24, a MAC has 44."""

NAME_MAX = 256
"""Characters of `kid`, `action_id`, `program_id` and the names of outputs."""

OUTPUTS_MAX = 64
"""Most outputs in a share. There are four; a later minor version may add some."""

TS_MAX = 2**53
"""Largest `ts`: every JSON reader knows integers up to here exactly."""

REQUEST_SHA256_PATTERN = lazy_pattern(r"[0-9a-f]{64}")
_FIELDS = frozenset(
    {"v", "kind", "server_id", "kid", "ts", "action_id", "program_id", "request_sha256", "outputs"}
    | {"commit_tag_share_b64", "mac_b64"}
)


class MacKeys(Protocol):
    """The MAC keys of one policy server, as far as checking a share needs them."""

    def find(self, kid: str) -> bytes | None:
        """The key of that name, or None."""


class BadShare(BadInput):
    """A share does not have the required form. `detail` is a detail of `BAD_COMMIT_PROOF`."""

    def __init__(self, detail: str, message: str) -> None:
        super().__init__(message)
        self.detail = detail


class PolicyBits(NamedTuple):
    """The decision of a policy server in bits."""

    allow_pre: int
    need_confirm: int
    patch_id: int

    @property
    def outputs(self) -> dict[str, int]:
        """The four output bits by name."""
        return {
            "allow_pre": self.allow_pre,
            "need_confirm": self.need_confirm,
            "patch0": self.patch_id & 1,
            "patch1": self.patch_id >> 1 & 1,
        }

    @classmethod
    def from_outputs(cls, outputs: Mapping[str, int]) -> PolicyBits:
        """The decision that output bits stand for."""
        return cls(outputs["allow_pre"], outputs["need_confirm"], outputs["patch0"] | outputs["patch1"] << 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The share of one policy server, in its only form."""

    server_id: int
    kid: str
    ts: int
    action_id: str
    program_id: str
    request_sha256: str
    outputs: Mapping[str, int]
    tag_share: bytes
    mac: bytes
    v: int = MAJOR
    kind: str = KIND
    _digests: list[str] = field(default_factory=list, init=False, repr=False, compare=False)
    """The digest, once it was computed: the server, the gateway and the executor of one process ask for it."""

    def to_dict(self) -> dict[str, Any]:
        """The share as the wire carries it."""
        return {**_mac_content(self), "mac_b64": _encode(self.mac)}

    @property
    def sha256(self) -> str:
        """The digest that an attestation names: SHA-256 of ascii_json of the share with its MAC."""
        if not self._digests:
            self._digests.append(hashlib.sha256(ascii_json(self.to_dict())).hexdigest())
        return self._digests[0]

    @classmethod
    def parse(cls, document: Any, where: str = "share") -> Share:
        """Read a share. `BadShare` names the first field that does not have its form. The MAC is not checked."""
        if type(document) is not dict:
            raise BadShare("bad_proof", f"{where} must be an object, not {type(document).__name__}")
        # The version comes first: another major may have other fields.
        if (v := document.get("v", MAJOR)) != MAJOR or type(v) is not int:
            raise BadShare("bad_proof_version", f"{where}.v is not {MAJOR}")
        if missing := sorted(_FIELDS - document.keys()):
            raise BadShare("bad_proof", f"{where} lacks {missing[0]!r}")
        if len(document) != len(_FIELDS):
            unknown = next(name for name in document if name not in _FIELDS)
            raise BadShare("bad_proof", f"{where} has an unknown key {ascii(unknown)[:80]}")
        if document["kind"] != KIND:
            raise BadShare("bad_proof_kind", f"{where}.kind is not {KIND!r}")
        server_id, ts = document["server_id"], document["ts"]
        if type(server_id) is not int or server_id not in SERVERS:
            raise BadShare("bad_server_id", f"{where}.server_id must be 0 or 1")
        if type(ts) is not int or not 0 <= ts <= TS_MAX:
            raise BadShare("bad_ts", f"{where}.ts must be a whole number of seconds")
        request_sha256 = document["request_sha256"]
        if type(request_sha256) is not str or REQUEST_SHA256_PATTERN.fullmatch(request_sha256) is None:
            raise BadShare("bad_request_sha256", f"{where}.request_sha256 must be 64 lower-case hex digits")
        mac = _decode(document["mac_b64"], f"{where}.mac_b64", "bad_mac")
        if len(mac) != MAC_BYTES:
            raise BadShare("bad_mac", f"{where}.mac_b64 must have {MAC_BYTES} bytes")
        return cls(
            server_id=server_id,
            kid=_read_name(document["kid"], f"{where}.kid", "unknown_kid"),
            ts=ts,
            action_id=_read_name(document["action_id"], f"{where}.action_id", "bad_action_id"),
            program_id=_read_name(document["program_id"], f"{where}.program_id", "bad_program_id"),
            request_sha256=request_sha256,
            outputs=_read_outputs(document["outputs"], f"{where}.outputs"),
            tag_share=_decode(document["commit_tag_share_b64"], f"{where}.commit_tag_share_b64", "bad_commit_tag_b64"),
            mac=mac,
        )


def _read_name(value: Any, where: str, detail: str) -> str:
    if type(value) is not str or not 1 <= len(value) <= NAME_MAX or has_surrogate(value):
        raise BadShare(detail, f"{where} must be a string of 1 to {NAME_MAX} characters")
    return value


def _read_outputs(value: Any, where: str) -> dict[str, int]:
    if type(value) is not dict or len(value) > OUTPUTS_MAX:
        raise BadShare("bad_outputs", f"{where} must be an object of at most {OUTPUTS_MAX} bits")
    for name, bit in value.items():
        _read_name(name, f"a name in {where}", "bad_outputs")
        if type(bit) is not int or bit not in (0, 1):  # `True == 1`, but it is not a bit on the wire.
            raise BadShare("bad_outputs", f"{where}.{ascii(name)[:80]} must be 0 or 1")
    return dict(value)


def _decode(value: Any, where: str, detail: str) -> bytes:
    """Decode standard base64. A text that is not what encoding the bytes gives is refused."""
    decoded = None
    if type(value) is str and 1 <= len(value) <= BASE64_MAX:
        try:
            decoded = base64.b64decode(value, validate=True)
        except ValueError:  # Also for characters that are not ASCII.
            pass
    # Some bits of the last digit encode nothing: without this comparison, four texts would stand for one MAC.
    if decoded is None or _encode(decoded) != value:
        raise BadShare(detail, f"{where} must be canonical base64 of at most {BASE64_MAX} characters")
    return decoded


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _mac_content(share: Share) -> dict[str, Any]:
    return {
        "v": share.v,
        "kind": share.kind,
        "server_id": share.server_id,
        "kid": share.kid,
        "ts": share.ts,
        "action_id": share.action_id,
        "program_id": share.program_id,
        "request_sha256": share.request_sha256,
        "outputs": dict(share.outputs),
        "commit_tag_share_b64": _encode(share.tag_share),
    }


# --- making shares


def compute_mask(mask_key: bytes, *, action_id: str, request_sha256: str, program_id: str, name: str) -> int:
    """Return the mask of one output: the lowest bit of the HMAC. `mask_key` is K01, known to the two servers alone."""
    message = "\n".join((action_id, request_sha256, program_id, name)).encode("utf-8")
    return hmac.digest(mask_key, message, "sha256")[-1] & 1


def compute_mac(share: Share, key: bytes) -> bytes:
    """Return the MAC of a share. The one that it carries is not part of it."""
    return hmac.digest(key, ascii_json(_mac_content(share)), "sha256")


def build_share(
    bits: PolicyBits,
    *,
    server_id: int,
    kid: str,
    key: bytes,
    mask_key: bytes,
    ts: int,
    action_id: str,
    program_id: str,
    request_sha256: str,
    tag_share: bytes,
) -> Share:
    """Make the share of a server that decided `bits`. `tag_share` is `TAG_BYTES` of fresh random bytes.

    The share is read back from its own form, so a server cannot sign one that no executor would read: `BadShare`.
    """
    bound = {"action_id": action_id, "request_sha256": request_sha256, "program_id": program_id}
    masks = {name: compute_mask(mask_key, **bound, name=name) for name in bits.outputs}
    outputs = {name: masks[name] ^ (bit if server_id else 0) for name, bit in bits.outputs.items()}
    content = {
        "v": MAJOR,
        "kind": KIND,
        "server_id": server_id,
        "kid": kid,
        "ts": ts,
        "action_id": action_id,
        "program_id": program_id,
        "request_sha256": request_sha256,
        "outputs": outputs,
        "commit_tag_share_b64": _encode(tag_share),
    }
    mac = hmac.digest(key, ascii_json(content), "sha256")
    return Share.parse({**content, "mac_b64": _encode(mac)})


# --- reading shares


def is_valid_mac(share: Share, key: bytes) -> bool:
    """Whether the share's MAC is by this key. Takes the same time for every wrong MAC."""
    return hmac.compare_digest(share.mac, compute_mac(share, key))


def join_shares(share0: Share, share1: Share) -> dict[str, int]:
    """Return the plain outputs: the XOR of each bit that both shares have."""
    return {name: bit ^ share1.outputs[name] for name, bit in share0.outputs.items() if name in share1.outputs}


def join_tags(share0: Share, share1: Share) -> str:
    """Return the commit tag in base64: the XOR of both tag shares, which have the same length."""
    return _encode(bytes(a ^ b for a, b in zip(share0.tag_share, share1.tag_share, strict=True)))

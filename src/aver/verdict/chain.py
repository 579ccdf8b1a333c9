"""Judge the records of a chain: pure, streaming, one record at a time.

For each record, the judge reports the first of these rules that is broken. It then goes on with the next record:

    1. the bytes are one JSON object with a capsule's keys         SCHEMA_INVALID, DUPLICATE_KEY
    2. they have the stored hash                                   HASH_MISMATCH
    3. the stored hash was signed by the key it names              SIG_MISSING, SIG_INVALID (UNKNOWN_SIGNER: unchecked)
    4. the seal's copies match the values inside the hash          SEAL_MISMATCH
    5. the sequence number is the next one                         SEQUENCE_GAP
    6. the link is the hash of the record before                   CHAIN_BREAK, GENESIS_INVALID
    7. the first record names this chain                           CHAIN_IDENTITY
    8. the key was made for this, and was still valid              KEY_MISMATCH, KEY_RETIRED
    9. the store's search columns match the signed content         COLUMN_MISMATCH

Rule 8 follows from what is known about a key. The records of a chain are sealed by keys of the purpose `seal`; those of
`meta` and `keys` by a key that speaks for the ledger (`KeyRole.may_attest`). There is one exception: in `keys`, a key
of the purpose `seal` may record its own use, as agents do that hold no key of the ledger. About a bare key nothing is
known, so nothing is demanded of it.

The judge always hashes the stored bytes, never a model that is written out again. Bytes that are signed but not in
canonical form get a warning, and so do values that CPS does not allow. The contents of sections never fail a verdict;
they are reported as a profile.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import field
from typing import Any, Literal

from aver.capsule.aver_block import BLOCK_KEY, RESERVED_CHAINS, TRACE_PREFIX, read_kind
from aver.capsule.json_reader import DuplicateKey, Unreadable
from aver.capsule.sealed import Sealed, content_hash
from aver.errors import find_machine_fault
from aver.fast_dataclass import dataclass
from aver.keys.algorithms import is_ed25519_signature_hex, is_ml_dsa_65_signature_hex, verify_ed25519, verify_ml_dsa_65
from aver.keys.public_key import HYBRID, KeyRole, PublicKey
from aver.keys.ring import Ring
from aver.log import debug
from aver.verdict.record import COLUMNS, column_values, examine_profile, read_record
from aver.verdict.verdict import CheckStatus, Finding, Place, Tally, UnrecordedKey

Level = Literal["structural", "content", "signature"]
LEVELS: tuple[Level, ...] = ("structural", "content", "signature")
"""CPS 7.5. Structural trusts the stored hashes; content computes them again; signature also checks signatures."""


ColumnReader = Callable[[Mapping[str, Any], Mapping[str, Any] | None], tuple[Any, ...]]
"""Computes the values that a store's columns must have from a record's content and Aver's block in it."""


@dataclass(frozen=True, slots=True)
class Retirement:
    """How long a retired key was valid.

    `limits` is the number of records of each chain at the rotation, as the ledger recorded it. Only without `limits`
    does the judge compare times with `retired_at`.
    """

    retired_at: str | None = None
    limits: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of one verification: known keys, level, and the history of keys, each by its 64 digits."""

    ring: Ring
    level: Level = "signature"
    require_pq: bool = False
    retired: Mapping[str, Retirement] = field(default_factory=dict)
    roles: Mapping[str, KeyRole] = field(default_factory=dict)
    """What an intact `keys` chain records about keys. The ring's own entries come first."""
    recorded: Collection[str] | None = None
    """The keys that an intact `keys` chain records. The tally names every other signer. None demands no record."""
    began: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """How many records each chain had when a key came into use by a rotation. The key has sealed none of these."""

    def role_of(self, key: PublicKey) -> KeyRole | None:
        """Whose key it is and what for; None if nothing tells."""
        entry = self.ring.entry_of(key)
        return self.roles.get(key.ed25519) if entry is None else entry.role


UNREADABLE_MAX = 1000
"""Records that cannot be read, or have not their hash, after which a verifier of a file reads no further. A short file
can hold millions of them."""

JUDGED_TOGETHER = 32
"""Records whose signatures are verified one right after the other: see `ChainJudge.verify_ahead`."""

REST_UNREAD = f"more than {UNREADABLE_MAX} records cannot be read or have not their hash; the rest was not read"
"""The words of the finding `NOT_READ`."""


class ChainJudge:
    """Judges the records of one chain, or of a part of it, in order.

    `start` is the sequence number of the first record; None takes it from that record.
    `previous` is the hash that it must link to; None with `start` > 0 leaves that one link unchecked.
    `identity` is the identity that the block of record 0 must name; only its keys are compared.
    `columns_of` computes the values of the store's columns from signed content.
    `needs_block` requires the block that a ledger adds when it appends. Without it, a capsule that was sealed elsewhere
    with the same key would pass as a record of the ledger.

    Long chains are judged in slices, in several processes. A rule that needs the record before must get it as an
    argument, as `previous` does: see `ledger.slices.judge_slice` and `verdict.parallel`.
    """

    def __init__(
        self,
        rules: Rules,
        *,
        chain: str | None = None,
        start: int | None = 0,
        previous: str | None = None,
        identity: Mapping[str, str] | None = None,
        source: str | None = None,
        columns_of: ColumnReader | None = None,
        needs_block: bool = False,
    ) -> None:
        self.tally = Tally()
        self._rules = rules
        self._chain = chain
        self._expected = start
        self._previous = previous
        self._first = True
        self._before_first = start is None
        self._columns_of = columns_of or column_values
        self._identity = identity or {}
        self._needs_block = needs_block
        self._source = source
        self._content = rules.level != "structural"
        self._signatures = rules.level == "signature"
        # Where the signer's name is not listed, every known key is tried, as CPS 8.3 wants it of the active one.
        self._fallback = tuple(rules.ring.known.values())
        self._unreadable = 0
        self._unparsed = 0
        self._valid = 0
        self._counts = {"content": 0, "signature": 0, "links": 0, "keys": 0, "columns": 0}
        self._signer: PublicKey | None = None
        self._verified_ahead: dict[tuple[str, str, str], bool] = {}
        """Signatures that `verify_ahead` has verified, by key, hash and signature."""
        # Looked up once for each change of the signer, not for each record.
        self._last_signer: PublicKey | None = None
        self._role: KeyRole | None = None
        self._is_sealer = True
        self._is_plain_signer = False
        self._is_pq_signer = False

    def verify_ahead(self, records: Iterable[Sealed]) -> None:
        """Verify the signatures of the next records, one right after the other. `judge` takes the results.

        A caller that has several records at hand calls this first, for at most `JUDGED_TOGETHER` of them. It saves a
        quarter of the time: verifying one signature empties the processor's caches of what the other rules need.
        """
        if not self._signatures:
            return
        ahead = self._verified_ahead = {}
        lookup = self._rules.ring.lookup
        for record in records:
            # `judge` itself tries further keys, and reports a hash that is not hex.
            for key in lookup(record.signed_by)[:1] if record.hash.isascii() else ():
                place = (key.ed25519, record.hash, record.signature)
                ahead[place] = verify_ed25519(key.ed25519_bytes, record.hash.encode(), record.signature)

    def judge(self, record: Sealed, columns: tuple[Any, ...] | None = None) -> dict[str, Any] | None:
        """Judge the next record. Returns its content if it could be read.

        `columns` are the store's values of id, type, kind, key, session and time.
        """
        self.tally.records += 1
        sequence = self._expected
        content: dict[str, Any] | None = None
        try:
            content, is_canonical, is_valid = read_record(record.canonical)  # Rule 1.
            if self._expected is None:
                sequence = self._expected = content["sequence"]
            if not is_canonical:
                self._add_finding(
                    "canonical", "warning", "NOT_CANONICAL", "signed bytes are not in canonical form", sequence
                )
            problem = self._find_problem(record, content, columns)
            if problem:
                self._unreadable += problem[1] == "HASH_MISMATCH"
                self._add_failure(*problem, sequence)
            elif is_valid:
                self._valid += 1
            else:
                profile, invalid = examine_profile(content)
                self.tally.profiles[profile] = self.tally.profiles.get(profile, 0) + 1
                if invalid:
                    self._add_finding("profile", "warning", "NOT_VALID_CPS", f"not valid by CPS: {invalid}", sequence)
        except DuplicateKey as error:
            self._unreadable += 1
            self._add_failure("canonical", "DUPLICATE_KEY", str(error), sequence)
        except Unreadable as error:
            self._unreadable += 1
            self._unparsed += 1
            self._add_failure("schema", "SCHEMA_INVALID", str(error), sequence)
        except Exception as error:  # A record that breaks the judge fails, and only it.
            if (fault := find_machine_fault(error)) is not None:
                raise fault from error  # The record is not at fault.
            debug("verdict", "judging record %s of chain %s failed: %r", sequence, self._chain, error)
            words = f"the record cannot be judged ({type(error).__name__})"
            self._unreadable += 1
            self._unparsed += 1
            self._add_failure("schema", "SCHEMA_INVALID", words, sequence)
            content = None
        self._first = False
        self._previous = record.hash
        self._expected = None if sequence is None else sequence + 1
        return content

    def judge_alone(self, record: Sealed) -> dict[str, Any] | None:
        """Judge a record by itself: nothing is known of the one before. Returns its content if it could be read."""
        self._expected, self._previous, self._first = None, None, True
        return self.judge(record)

    @property
    def signer(self) -> PublicKey | None:
        """The key that signed the record judged last, if its signature is valid."""
        return self._signer

    def missing(self, times: int = 1) -> None:
        """Report that the store lacks the next record, or the next `times` records."""
        if self._expected is not None:
            last = self._expected + times - 1
            words = f"record {last} is missing" if times == 1 else f"records {self._expected} to {last} are missing"
            self._add_failure("links", "SEQUENCE_GAP", words, self._expected)
            self._expected = last + 1
        self._previous = None
        self._first = False

    def unreadable(self, words: str, *, code: str = "SCHEMA_INVALID") -> None:
        """Report that the next record is there and cannot be read."""
        self.tally.records += 1
        self._unreadable += 1
        self._unparsed += code != "DUPLICATE_KEY"
        self._add_failure("canonical" if code == "DUPLICATE_KEY" else "schema", code, words, self._expected)
        self._expected = None if self._expected is None else self._expected + 1
        self._previous = None
        self._first = False

    def stops_reading(self) -> bool:
        """Whether so many records cannot be read that the caller must stop. Then a finding says so, in their place."""
        if self._unreadable <= UNREADABLE_MAX:
            return False
        self._add_failure("schema", "NOT_READ", REST_UNREAD, self._expected)
        return True

    def finish(self) -> Tally:
        """Return the tally with the number of records on which each check was carried out."""
        tally = self.tally
        times = tally.records
        if times:
            tally.count_done("schema", times)
            tally.count_done("canonical", times - self._unparsed)
            if times == 1 and self._before_first:
                self._counts["links"] = 0
                tally.skip("links", "a record on its own: its neighbours are not here", matters=False)
            for check, count in self._counts.items():
                if count:
                    tally.count_done(check, count)
            if self._valid:
                tally.profiles["cps"] = tally.profiles.get("cps", 0) + self._valid
        if not self._content:
            tally.skip("content", "structural level: stored hashes were trusted", matters=True)
        if not self._signatures:
            tally.skip("signature", f"{self._rules.level} level: signatures were not checked", matters=True)
        return tally

    def _find_problem(
        self, record: Sealed, content: dict[str, Any], columns: tuple[Any, ...] | None
    ) -> tuple[str, str, str] | None:
        """The first rule from 2 to 9 that the record breaks: check, code, words."""
        counts = self._counts
        if self._content:
            counts["content"] += 1  # Rule 2.
            if content_hash(record.canonical) != record.hash:
                return "content", "HASH_MISMATCH", "the content does not have the stored hash"
        if self._signatures:
            problem = self._signature_problem(record)  # Rule 3.
            if problem:
                return problem
        block = content["context"].get("environment")
        block = block.get(BLOCK_KEY) if type(block) is dict else None
        if type(block) is not dict:
            block = None
            if self._needs_block:
                return "identity", "CHAIN_IDENTITY", "not sealed by a ledger: it lacks the block that appending adds"
        elif self._needs_block and not ("at" in block and "by" in block and "kind" in block):
            return "identity", "CHAIN_IDENTITY", "not sealed by a ledger: its block lacks what appending adds"
        elif block.get("at", record.signed_at) != record.signed_at:  # Rule 4.
            return "signature", "SEAL_MISMATCH", f"signed_at says {record.signed_at!r}, the record {block['at']!r}"
        elif block.get("by", record.signed_by) != record.signed_by:
            return "signature", "SEAL_MISMATCH", f"signed_by says {record.signed_by!r}, the record {block['by']!r}"
        counts["links"] += 1
        problem = self._place_problem(content)  # Rules 5 and 6.
        if problem is None and self._first:
            problem = self._identity_problem(content, block)  # Rule 7.
        if problem is None and self._signer is not None:
            counts["keys"] += 1  # Rule 8.
            if not self._is_plain_signer:
                problem = self._key_problem(record, self._signer, content, block)
        if problem is None and columns is not None:
            counts["columns"] += 1  # Rule 9.
            signed = self._columns_of(content, block)
            if columns != signed:
                pairs = zip(COLUMNS, columns, signed, strict=True)
                differing = next(name for name, column, value in pairs if column != value)
                problem = "columns", "COLUMN_MISMATCH", f"the column {differing} is not what was signed"
        return problem

    def _signature_problem(self, record: Sealed) -> tuple[str, str, str] | None:
        """Rule 3. Stores the key that verified in `_signer`: `signed_by` is only a hint which key to try."""
        self._signer = None
        self._counts["signature"] += 1
        if not record.signature:
            return "signature", "SIG_MISSING", "the record is not signed"
        ring = self._rules.ring
        message = record.hash.encode()  # Rule 2 has found it to be hex.
        known = ring.lookup(record.signed_by)
        for key in known or self._fallback:
            is_valid = self._verified_ahead.get((key.ed25519, record.hash, record.signature))
            if is_valid is None:
                is_valid = verify_ed25519(key.ed25519_bytes, message, record.signature)
            if is_valid:
                self._signer = key
                if key is not self._last_signer:
                    self._last_signer, self._role = key, self._rules.role_of(key)
                    self._is_sealer = self._role is None or self._role.may_seal
                    self._is_plain_signer = self._is_plain(key)
                    # A ring with only the Ed25519 half may still tell of the other, by an export or the `keys` chain.
                    is_hybrid = self._role is not None and self._role.algorithm == HYBRID
                    self._is_pq_signer = bool(key.ml_dsa_65) or is_hybrid
                if not known:
                    note = f"signer {record.signed_by!r} is the known key {key.fingerprint}"
                    self.tally.notes["signature"] = make_printable(note)
                if record.signature_pq or self._is_pq_signer or self._rules.require_pq:
                    return self._pq_problem(record, message, key)
                return None
        if known:
            return "signature", "SIG_INVALID", f"the signature is not {record.signed_by}'s over this hash"
        if not is_ed25519_signature_hex(record.signature):
            return "signature", "SIG_INVALID", "the signature is not one that any key can have made"
        self._counts["signature"] -= 1  # It was not checked after all.
        words = f"the key of signer {record.signed_by or 'unnamed'} is not known here"
        self._add_finding("signature", "not_checked", "UNKNOWN_SIGNER", words, self._expected)
        return self._pq_problem(record, message, None)

    def _pq_problem(self, record: Sealed, message: bytes, signer: PublicKey | None) -> tuple[str, str, str] | None:
        """The second half of rule 3: the ML-DSA-65 signature, by the key whose Ed25519 signature is valid."""
        name = record.signed_by or "the signer"
        has_key = signer is not None and bool(signer.ml_dsa_65)
        if not record.signature_pq:
            words = "there is no post-quantum signature"
            if self._rules.require_pq:
                return "signature_pq", "SIG_MISSING", f"{words}, and one is required"
            if signer is not None and self._is_pq_signer:
                words = f"{words}, though {name} signs with ML-DSA-65 too: it may have been stripped"
                self._add_finding("signature_pq", "warning", "SIG_MISSING", words, self._expected)
        elif signer is not None and has_key:
            if not verify_ml_dsa_65(signer.ml_dsa_65_bytes, message, record.signature_pq):
                return "signature_pq", "SIG_INVALID", f"the ML-DSA-65 signature is not {name}'s over this hash"
            self.tally.count_done("signature_pq")
        elif self._rules.require_pq:
            return "signature_pq", "SIG_INVALID", f"no ML-DSA-65 key of {name} is known"
        elif not is_ml_dsa_65_signature_hex(record.signature_pq):
            return "signature_pq", "SIG_INVALID", "the ML-DSA-65 signature is not one that any key can have made"
        else:
            words = f"no ML-DSA-65 key of {name} is known here"
            self._add_finding("signature_pq", "not_checked", "UNKNOWN_SIGNER", words, self._expected)
        return None

    def _place_problem(self, content: Mapping[str, Any]) -> tuple[str, str, str] | None:
        sequence, link = content["sequence"], content["previous_hash"]
        if sequence != self._expected:
            return "links", "SEQUENCE_GAP", f"expected sequence {self._expected}, the record says {sequence}"
        if sequence == 0:
            self.tally.count_done("genesis")
            if link is not None:
                return "genesis", "GENESIS_INVALID", "the first record points at a predecessor"
        elif link is None:
            return "genesis", "GENESIS_INVALID", f"record {sequence} claims to be the first"
        elif self._previous is None:
            self.tally.skip("links", f"the record before sequence {sequence} is not here", matters=False)
        elif link != self._previous:
            return "links", "CHAIN_BREAK", "previous_hash is not the hash of the record before"
        return None

    def _identity_problem(
        self, content: Mapping[str, Any], block: Mapping[str, Any] | None
    ) -> tuple[str, str, str] | None:
        if content["sequence"] != 0 or not self._identity:
            return None
        named = block.get("chain") if block else None
        if not isinstance(named, dict):
            if self._needs_block:
                return "identity", "CHAIN_IDENTITY", "the first record does not say which chain it begins"
            self.tally.skip("identity", "made by other software, which does not name its chain", matters=False)
            return None
        self.tally.count_done("identity")
        for key, value in self._identity.items():
            if named.get(key) != value:
                return "identity", "CHAIN_IDENTITY", f"stored as {key} {value!r}, but says it is {named.get(key)!r}"
        return None

    def _is_plain(self, signer: PublicKey) -> bool:
        """Whether no part of rule 8 can apply to a key in this chain, so that its records need not be asked each."""
        rules, key, name = self._rules, signer.ed25519, self._identity.get("name", self._chain)
        return (
            key not in rules.began
            and (rules.recorded is None or key in rules.recorded)
            and (self._role is None or (self._is_sealer and name is not None and name not in RESERVED_CHAINS))
            and key not in rules.retired
        )

    def _key_problem(
        self, record: Sealed, verified: PublicKey, content: Mapping[str, Any], block: Mapping[str, Any] | None
    ) -> tuple[str, str, str] | None:
        rules, key = self._rules, verified.ed25519
        # Take the key that verified: a record may call its signer by a shorter name.
        signer = verified.fingerprint
        name = self._identity.get("name", self._chain)
        began = rules.began.get(key)
        is_recorded = rules.recorded is None or key in rules.recorded
        # A key is recorded before it seals. If it is recorded after that, the `keys` chain was cut and written anew.
        if began is not None and name is not None and content["sequence"] < began.get(name, 0):
            is_recorded = False
        if not is_recorded:
            # In a trace of the protocol, a participant's join may stand for the record. So each trace counts by itself.
            is_trace = name is not None and name.startswith(TRACE_PREFIX)
            unrecorded = UnrecordedKey(key, self._chain if is_trace else None)
            self.tally.unrecorded.setdefault(unrecorded, Place(self._chain, self._expected, self._source))
        if self._role is not None and (not self._is_sealer or name is None or name in RESERVED_CHAINS):
            problem = find_misuse(self._role, verified, content, content["domain"] if name is None else name)
            if problem:
                return "keys", "KEY_MISMATCH", f"{signer} is a key of {self._role}: {problem}"
        retirement = rules.retired.get(key)
        if retirement is None:
            return None
        if retirement.limits is not None and name is not None:
            limit = retirement.limits.get(name, 0)
            if content["sequence"] >= limit:
                return "keys", "KEY_RETIRED", f"{signer} was retired when this chain had {limit} records"
            return None
        at = (block or {}).get("at", record.signed_at)
        if retirement.retired_at and not (isinstance(at, str) and at <= retirement.retired_at):
            return "keys", "KEY_RETIRED", f"{signer} was retired at {retirement.retired_at}"
        # The holder of the key could have written any time. This proves nothing, and the verdict must say so.
        words = f"how far the retired key {signer} was good is not recorded here; only times were compared"
        self.tally.skip("keys", words, matters=True)
        return None

    def _add_failure(self, check: str, code: str, words: str, sequence: int | None) -> None:
        self._add_finding(check, "failed", code, words, sequence)

    def _add_finding(self, check: str, status: CheckStatus, code: str, words: str, sequence: int | None) -> None:
        self.tally.add(Finding(check, status, code, make_printable(words), Place(self._chain, sequence, self._source)))


def find_misuse(role: KeyRole, key: PublicKey, content: Mapping[str, Any], chain: str) -> str | None:
    """The reason why a key with this role must not have sealed a record of this chain; None if it may."""
    if chain not in RESERVED_CHAINS:
        return None if role.may_seal else "it must not seal records"
    if role.may_attest:
        return None
    if chain == "keys" and role.may_seal and _describes_key(content, role, key):
        return None
    return f"only the ledger's key seals the chain {chain}"


def _describes_key(content: Mapping[str, Any], role: KeyRole, key: PublicKey) -> bool:
    """Whether a record is about the use of this very key, or about an earlier key of the same identity."""
    result = content["outcome"].get("result")
    if read_kind(content) not in ("key.create", "key.rotate", "key.retire") or not isinstance(result, dict):
        return False
    is_own = result.get("public_key") == key.ed25519 or read_kind(content) != "key.create"
    return is_own and (result.get("identity"), result.get("purpose")) == (role.identity, role.purpose)


WORDS_MAX = 400
"""Longest text of a finding, in characters. It may quote a record, which must not flood the report."""


def make_printable(words: str) -> str:
    """Shorten a text that may quote a record, and escape its unprintable characters."""
    if len(words) > WORDS_MAX:
        words = f"{words[:WORDS_MAX]} …"
    return words if words.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in words)

"""A ledger changed behind its back: every single change is found, named, and placed exactly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from aver import Blob, Capsule, Head, Ledger, Sealed, SeedSigner, canonical_bytes, open_ledger
from aver.capsule.sealed import content_hash, seal_content
from aver.ledger.ledger import list_tenants
from support.many_cases import first_now
from support.tamper import Attacker, changed, codes_at, first_bad, forget, unguarded

pytestmark = pytest.mark.both_stores

CHAIN = "demo.tamper"
OTHER = "demo.other"
BLOB = Blob(b"a large value" * 100, "text/plain")


@dataclass
class Scene:
    """A ledger with a chain of six records by three signers, a second chain, a blob, and its attacker."""

    ledger: Ledger
    attacker: Attacker
    friend: SeedSigner
    records: list[Sealed]
    number: int

    def of(self, column: str, sequence: int) -> Any:
        return self.attacker.execute(
            f"SELECT {column} FROM records WHERE chain = ? AND sequence = ?", (self.number, sequence)
        ).fetchone()[0]

    def set(self, column: str, sequence: int, value: Any) -> tuple[str, tuple[Any, ...]]:
        return f"UPDATE records SET {column} = ? WHERE chain = ? AND sequence = ?", (value, self.number, sequence)


@pytest.fixture
def scene() -> Iterator[Scene]:
    friend = SeedSigner(bytes([7]) * 32)
    with open_ledger() as ledger:
        ledger.keys.create("ledger", post_quantum=True)
        ledger.keys.trust(friend.public)
        records = [
            ledger.append(CHAIN, Capsule(type="tool", context={"session_id": "s"}), key="k0"),
            ledger.append(CHAIN, Capsule(type="agent"), signer=friend),
            ledger.append(CHAIN, Capsule(type="tool", outcome={"result": BLOB.reference}), blobs=[BLOB], key="k2"),
            ledger.append(CHAIN, Capsule(type="chat", outcome={"metrics": {"x": 2e-05}})),
            ledger.append(CHAIN, Capsule(type="tool"), signer=friend, key="k4"),
            ledger.append(CHAIN, Capsule(type="system")),
        ]
        ledger.append(OTHER, Capsule(type="tool"))
        attacker = unguarded(ledger)
        number = attacker.execute("SELECT chain FROM chains WHERE name = ?", (CHAIN,)).fetchone()[0]
        assert ledger.verify().status == "verified"
        yield Scene(ledger, attacker, friend, records, number)
        attacker.close()


def test_an_untouched_ledger_passes_every_check(scene: Scene) -> None:
    verdict = scene.ledger.verify()
    assert verdict.status == "verified"
    passed = {check.name for check in verdict.checks if check.status == "passed"}
    assert passed >= {*("schema", "canonical", "content", "signature", "signature_pq", "links", "genesis")}
    assert passed >= {*("identity", "columns", "keys", "blobs", "profile")}
    assert verdict.records == 9
    assert verdict.chains == 3


@pytest.mark.parametrize("sequence", [0, 1, 2])
@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.long)])
def test_every_byte_of_the_signed_content(scene: Scene, sequence: int, step: int) -> None:
    canonical = scene.of("canonical", sequence)
    for at in range(sequence if step > 1 else 0, len(canonical), max(step, scene.attacker.stride)):
        flipped = bytearray(canonical)
        flipped[at] ^= 1 << (at % 8)
        scene.attacker.execute(*scene.set("canonical", sequence, bytes(flipped)))
        code, chain, place = first_bad(scene.ledger.verify(CHAIN))
        assert code in {"HASH_MISMATCH", "SCHEMA_INVALID", "DUPLICATE_KEY"}
        assert (chain, place) == (CHAIN, sequence)
    scene.attacker.execute(*scene.set("canonical", sequence, canonical))
    assert scene.ledger.verify().status == "verified"


@pytest.mark.sample(4)
@pytest.mark.parametrize("sequence", first_now(range(6), 2))
@pytest.mark.parametrize("column", ["hash", "signature", "signature_pq", "signed_by", "signed_at"])
def test_every_character_of_the_seal(scene: Scene, sequence: int, column: str) -> None:
    text = scene.of(column, sequence)
    step = 331 if column == "signature_pq" else scene.attacker.stride
    for at in range(0, len(text), step):
        other = "0" if text[at] != "0" else "1"
        scene.attacker.execute(*scene.set(column, sequence, text[:at] + other + text[at + 1 :]))
        code, chain, place = first_bad(scene.ledger.verify(CHAIN))
        assert (chain, place) == (CHAIN, sequence)
        expected = {
            "hash": {"HASH_MISMATCH"},
            "signature": {"SIG_INVALID"},
            "signature_pq": {"SIG_INVALID"},
            "signed_by": {"SEAL_MISMATCH", "SIG_INVALID"},
            "signed_at": {"SEAL_MISMATCH"},
        }
        assert code in expected[column]
    scene.attacker.execute(*scene.set(column, sequence, text))


@pytest.mark.sample(8)
@pytest.mark.parametrize("sequence", range(6))
@pytest.mark.parametrize("column", ["hash", "signature", "signed_by", "signed_at"])
def test_emptied_seals(scene: Scene, sequence: int, column: str) -> None:
    with changed(scene.attacker, scene.set(column, sequence, "")):
        code, chain, place = first_bad(scene.ledger.verify(CHAIN))
        assert (chain, place) == (CHAIN, sequence)
        assert code == {"hash": "HASH_MISMATCH", "signature": "SIG_MISSING"}.get(column, "SEAL_MISMATCH")


def test_a_stripped_post_quantum_signature(scene: Scene) -> None:
    for sequence in (0, 2, 3, 5):
        with changed(scene.attacker, scene.set("signature_pq", sequence, "")):
            verdict = scene.ledger.verify(CHAIN)
            assert verdict.status != "verified"
            assert verdict.check("signature_pq").code == "SIG_MISSING"
            assert verdict.check("signature_pq").place.sequence == sequence
            strict = scene.ledger.verify(CHAIN, require_pq=True)
            assert first_bad(strict) == ("SIG_MISSING", CHAIN, min(sequence, 1))


NOT_NULL = ("id", "type", "tenant", "hash")


@pytest.mark.sample(4)
@pytest.mark.parametrize("column", ["id", "type", "kind", "key", "session", "at", "tenant", "hash"])
def test_every_search_column(scene: Scene, column: str) -> None:
    for sequence in range(6):
        before = scene.of(column, sequence)
        values = [
            value
            for value in ("x", 0, b"x", 1.5, None)
            if value != before
            and (value is not None or column not in NOT_NULL)
            and (value is None or isinstance(value, str) or scene.attacker.takes_any_type)
        ]
        assert len(values) >= (4 if scene.attacker.takes_any_type else 1)
        for value in values:
            with changed(scene.attacker, scene.set(column, sequence, value)):
                code, chain, place = first_bad(scene.ledger.verify(CHAIN))
                assert (chain, place) == (CHAIN, sequence)
                assert code == ("HASH_MISMATCH" if column == "hash" else "COLUMN_MISMATCH")


@pytest.mark.parametrize("sequence", range(6))
def test_a_record_dropped(scene: Scene, sequence: int) -> None:
    with changed(scene.attacker, f"DELETE FROM records WHERE chain = {scene.number} AND sequence = {sequence}"):
        assert first_bad(scene.ledger.verify()) == ("SEQUENCE_GAP", CHAIN, sequence)


@pytest.mark.parametrize("sequence", range(5))
def test_a_record_dropped_and_the_rest_moved_up(scene: Scene, sequence: int) -> None:
    statements = [f"DELETE FROM records WHERE chain = {scene.number} AND sequence = {sequence}"]
    statements += [
        f"UPDATE records SET sequence = {later - 1} WHERE chain = {scene.number} AND sequence = {later}"
        for later in range(sequence + 1, 6)
    ]
    statements.append(f"UPDATE chains SET count = 5 WHERE chain = {scene.number}")
    with changed(scene.attacker, *statements):
        assert first_bad(scene.ledger.verify()) == ("SEQUENCE_GAP", CHAIN, sequence)


@pytest.mark.parametrize("left", range(5))
def test_two_records_swapped(scene: Scene, left: int) -> None:
    for right in range(left + 1, 6):
        with changed(
            scene.attacker,
            f"UPDATE records SET sequence = -1 WHERE chain = {scene.number} AND sequence = {left}",
            f"UPDATE records SET sequence = {left} WHERE chain = {scene.number} AND sequence = {right}",
            f"UPDATE records SET sequence = {right} WHERE chain = {scene.number} AND sequence = -1",
        ):
            assert first_bad(scene.ledger.verify()) == ("SEQUENCE_GAP", CHAIN, left)


REST = "tenant, hash, signature, signature_pq, signed_at, signed_by, id, type, kind, key, session, at, canonical"
COPY = f"""INSERT INTO records (chain, sequence, {REST}) SELECT {{chain}}, {{sequence}}, {REST} FROM records
WHERE chain = {{number}} AND sequence = {{source}}"""


@pytest.mark.parametrize("source", range(6))
def test_a_record_doubled_at_the_end(scene: Scene, source: int) -> None:
    copy = COPY.format(chain=scene.number, sequence=6, number=scene.number, source=source)
    with changed(scene.attacker, copy):
        verdict = scene.ledger.verify()
        assert first_bad(verdict) == ("COLUMN_MISMATCH", CHAIN, 6)
    head = (
        f"UPDATE chains SET count = 7, head = (SELECT hash FROM records WHERE chain = {scene.number} AND sequence = 6)"
    )
    with changed(scene.attacker, copy, f"{head} WHERE chain = {scene.number}"):
        verdict = scene.ledger.verify()
        assert first_bad(verdict) == ("SEQUENCE_GAP", CHAIN, 6)
        assert ("DUPLICATE_RECORD", CHAIN, 6) in codes_at(verdict)


@pytest.mark.parametrize("source", range(6))
def test_a_record_copied_into_another_chain(scene: Scene, source: int) -> None:
    number = scene.attacker.execute("SELECT chain FROM chains WHERE name = ?", (OTHER,)).fetchone()[0]
    copy = COPY.format(chain=number, sequence=1, number=scene.number, source=source)
    head = f"UPDATE chains SET count = 2, head = (SELECT hash FROM records WHERE chain = {number} AND sequence = 1)"
    with changed(scene.attacker, copy, f"{head} WHERE chain = {number}"):
        code, chain, sequence = first_bad(scene.ledger.verify())
        assert (chain, sequence) == (OTHER, 1)
        assert code == ("CHAIN_BREAK" if source == 1 else "SEQUENCE_GAP")


@pytest.mark.parametrize("length", range(6))
def test_a_cut_tail_whose_head_row_was_left(scene: Scene, length: int) -> None:
    with changed(scene.attacker, f"DELETE FROM records WHERE chain = {scene.number} AND sequence >= {length}"):
        verdict = scene.ledger.verify()
        assert first_bad(verdict) == ("SEQUENCE_GAP", CHAIN, length)


def cut(scene: Scene, length: int) -> list[Any]:
    """The tail removed, and the head row put right: a perfect chain again."""
    digest = scene.records[length - 1].hash if length else None
    return [
        f"DELETE FROM records WHERE chain = {scene.number} AND sequence >= {length}",
        ("UPDATE chains SET count = ?, head = ? WHERE chain = ?", (length, digest, scene.number)),
    ]


@pytest.mark.parametrize("length", range(6))
def test_a_cut_tail_whose_head_row_was_put_right_is_found_by_the_meta_chain(scene: Scene, length: int) -> None:
    with changed(scene.attacker, *cut(scene, length)):
        forget(scene.ledger)
        # Nothing remembers how long it was. But Aver never makes a head row without records.
        assert scene.ledger.verify().status == ("verified" if length else "failed")
    scene.ledger.close_chain(CHAIN)
    assert scene.ledger.verify().status == "verified"
    with changed(scene.attacker, *cut(scene, length)):
        assert first_bad(scene.ledger.verify()) == ("TRUNCATED", CHAIN, length)


def test_a_chain_deleted(scene: Scene) -> None:
    scene.ledger.close_chain(CHAIN)
    gone = [f"DELETE FROM records WHERE chain = {scene.number}", f"DELETE FROM chains WHERE chain = {scene.number}"]
    with changed(scene.attacker, *gone):
        code, chain, _ = first_bad(scene.ledger.verify())
        assert (code, chain) == ("CHAIN_MISSING", CHAIN)


def test_records_left_behind_by_a_deleted_chain_are_noticed(scene: Scene) -> None:
    """The head row gone, its records still there: they belong to nobody and would be found by nobody."""
    with changed(scene.attacker, f"DELETE FROM chains WHERE chain = {scene.number}"):
        assert scene.ledger.verify().status == "failed"


def test_a_chain_renamed(scene: Scene) -> None:
    with changed(scene.attacker, f"UPDATE chains SET name = 'demo.renamed' WHERE chain = {scene.number}"):
        assert first_bad(scene.ledger.verify()) == ("CHAIN_IDENTITY", "demo.renamed", 0)
        assert first_bad(scene.ledger.verify("demo.renamed")) == ("CHAIN_IDENTITY", "demo.renamed", 0)


def test_two_chains_that_changed_names(scene: Scene) -> None:
    with changed(
        scene.attacker,
        f"UPDATE chains SET name = 'x' WHERE name = '{OTHER}'",
        f"UPDATE chains SET name = '{OTHER}' WHERE name = '{CHAIN}'",
        f"UPDATE chains SET name = '{CHAIN}' WHERE name = 'x'",
    ):
        assert codes_at(scene.ledger.verify()) >= {("CHAIN_IDENTITY", OTHER, 0), ("CHAIN_IDENTITY", CHAIN, 0)}


@pytest.mark.parametrize("origin", [None, CHAIN])
def test_a_chain_renamed_and_declared_imported(scene: Scene, origin: str | None) -> None:
    """An imported chain may bear another name here; one that says it is of this very ledger may not."""
    statement = f"UPDATE chains SET name = 'demo.renamed', frozen = 1, origin = ? WHERE chain = {scene.number}"
    with changed(scene.attacker, (statement, (origin,))):
        assert scene.ledger.verify("demo.renamed").status == "failed"
        assert ("CHAIN_IDENTITY", "demo.renamed", 0) in codes_at(scene.ledger.verify())


def test_a_chain_moved_to_another_tenant(scene: Scene) -> None:
    moves = [f"UPDATE chains SET tenant = 'mallory' WHERE chain = {scene.number}"]
    for statements in (moves, [*moves, f"UPDATE records SET tenant = 'mallory' WHERE chain = {scene.number}"]):
        with changed(scene.attacker, *statements), open_ledger(tenant="mallory") as theirs:
            code, chain, sequence = first_bad(theirs.verify())
            assert (code, chain, sequence) == ("CHAIN_IDENTITY", CHAIN, 0)


def test_the_ledger_given_another_id(scene: Scene) -> None:
    with (
        changed(scene.attacker, "UPDATE ledger SET value = '00000000-0000-4000-8000-000000000000' WHERE name = 'id'"),
        open_ledger() as reopened,
    ):
        assert {code for code, _, _ in codes_at(reopened.verify())} == {"CHAIN_IDENTITY"}


@pytest.mark.parametrize("sequence", range(6))
def test_content_changed_and_hashed_again(scene: Scene, sequence: int) -> None:
    canonical = canonical_bytes({**scene.records[sequence].to_dict(), "domain": "forged"})
    digest = content_hash(canonical)
    with changed(scene.attacker, scene.set("canonical", sequence, canonical), scene.set("hash", sequence, digest)):
        assert first_bad(scene.ledger.verify()) == ("SIG_INVALID", CHAIN, sequence)


def forged(scene: Scene, sequence: int, signer: SeedSigner, *, by: str | None, signed_by: str | None) -> list[Any]:
    """The record with another domain, signed by another key, its names kept or updated."""
    content = scene.records[sequence].to_dict()
    content["domain"] = "forged"
    if by:
        content["context"]["environment"]["aver"]["by"] = by
    sealed = seal_content(content, signer, at=scene.records[sequence].signed_at)
    values = {
        "canonical": sealed.canonical,
        "hash": sealed.hash,
        "signature": sealed.signature,
        "signature_pq": sealed.signature_pq,
        "signed_by": signed_by or scene.records[sequence].signed_by,
    }
    return [scene.set(column, sequence, value) for column, value in values.items()]


@pytest.mark.parametrize("sequence", range(6))
def test_signed_again_by_an_unknown_key(scene: Scene, sequence: int) -> None:
    stranger = SeedSigner(bytes([9]) * 32)
    name = stranger.fingerprint
    with changed(scene.attacker, *forged(scene, sequence, stranger, by=None, signed_by=None)):
        assert first_bad(scene.ledger.verify()) == ("SIG_INVALID", CHAIN, sequence)
    with changed(scene.attacker, *forged(scene, sequence, stranger, by=None, signed_by=name)):
        assert first_bad(scene.ledger.verify()) == ("SEAL_MISMATCH", CHAIN, sequence)
    with changed(scene.attacker, *forged(scene, sequence, stranger, by=name, signed_by=None)):
        assert first_bad(scene.ledger.verify()) == ("SIG_INVALID", CHAIN, sequence)
    with changed(scene.attacker, *forged(scene, sequence, stranger, by=name, signed_by=name)):
        verdict = scene.ledger.verify()
        assert verdict.status == "failed"  # the chain breaks after it, or the head row names another record
        assert verdict.check("signature").code == "UNKNOWN_SIGNER"
        assert verdict.check("signature").place.sequence == sequence


def test_the_last_record_replaced_by_a_strangers_with_the_head_row_put_right(scene: Scene) -> None:
    stranger = SeedSigner(bytes([9]) * 32)
    statements = forged(scene, 5, stranger, by=stranger.fingerprint, signed_by=stranger.fingerprint)
    head = f"UPDATE chains SET head = (SELECT hash FROM records WHERE chain = {scene.number} AND sequence = 5)"
    with changed(scene.attacker, *statements, f"{head} WHERE chain = {scene.number}"):
        assert first_bad(scene.ledger.verify()) == ("ROLLBACK", CHAIN, 5)  # it was verified here before
        forget(scene.ledger)
        verdict = scene.ledger.verify()
        assert verdict.status == "qualified"
        assert verdict.check("signature").code == "UNKNOWN_SIGNER"
        pinned = scene.ledger.verify(keys=[key.key for key in scene.ledger.keys.ring().entries] + [scene.friend.public])
        assert (pinned.status, pinned.integrity, pinned.unknown_signatures) == ("qualified", "unsigned", 1)


def test_a_record_signed_again_by_another_trusted_key(scene: Scene) -> None:
    for sequence in (0, 2, 3):
        name = scene.friend.fingerprint
        with changed(scene.attacker, *forged(scene, sequence, scene.friend, by=None, signed_by=None)):
            assert first_bad(scene.ledger.verify()) == ("SIG_INVALID", CHAIN, sequence)
        with changed(scene.attacker, *forged(scene, sequence, scene.friend, by=None, signed_by=name)):
            assert first_bad(scene.ledger.verify()) == ("SEAL_MISMATCH", CHAIN, sequence)
        with changed(scene.attacker, *forged(scene, sequence, scene.friend, by=name, signed_by=name)):
            assert first_bad(scene.ledger.verify()) == ("CHAIN_BREAK", CHAIN, sequence + 1)


@pytest.mark.sample(8)
@pytest.mark.parametrize("count", [0, 1, 5, 7, 100, -1, 10**6, 10**15, 2**62, "x", 5.5, b"6"], ids=repr)
def test_the_count_in_the_head_row(scene: Scene, count: Any) -> None:
    """Whatever stands there: a finding at this chain, in bounded time, and the other chain is still judged."""
    with changed(scene.attacker, ("UPDATE chains SET count = ? WHERE chain = ?", (count, scene.number))):
        verdict = scene.ledger.verify()
        assert first_bad(verdict)[1] == CHAIN
        assert {chain for _, chain, _ in codes_at(verdict)} == {CHAIN}
        assert scene.ledger.verify(OTHER).status == "verified"


@pytest.mark.parametrize("head", ["", "0" * 64, None, 7, b"x"], ids=repr)
def test_the_hash_in_the_head_row(scene: Scene, head: Any) -> None:
    with changed(scene.attacker, ("UPDATE chains SET head = ? WHERE chain = ?", (head, scene.number))):
        assert first_bad(scene.ledger.verify()) == ("COLUMN_MISMATCH", CHAIN, 5)


@pytest.mark.parametrize("sequence", [6, 7, 10**6, 10**15, -1, "x", 2.5], ids=repr)
def test_the_place_of_a_record(scene: Scene, sequence: Any) -> None:
    with changed(scene.attacker, scene.set("sequence", 2, sequence)):
        assert first_bad(scene.ledger.verify()) == ("SEQUENCE_GAP", CHAIN, 2)
        assert scene.ledger.verify(OTHER).status == "verified"


def test_the_last_record_and_the_head_row_moved_far_away(scene: Scene) -> None:
    """A gap of a thousand billion records is one finding, not as many."""
    far = 10**15
    with changed(
        scene.attacker,
        scene.set("sequence", 5, far),
        f"UPDATE chains SET count = {far + 1} WHERE chain = {scene.number}",
    ):
        assert first_bad(scene.ledger.verify()) == ("SEQUENCE_GAP", CHAIN, 5)


@pytest.mark.parametrize("name", ["", "no chain name", 7, b"\xff", "a\x00b", "\x1b[2J"], ids=repr)
def test_a_chain_with_an_impossible_name(scene: Scene, name: Any) -> None:
    import orjson

    with changed(scene.attacker, ("UPDATE chains SET name = ? WHERE chain = ?", (name, scene.number))):
        verdict = scene.ledger.verify()
        assert verdict.status == "failed"
        assert orjson.dumps(verdict.to_dict())
        assert scene.ledger.verify(OTHER).status == "verified"


@pytest.mark.parametrize("data", [b"", b"other", "text", 12, 10**11, 1.5], ids=repr)
def test_a_blob_changed(scene: Scene, data: Any) -> None:
    with changed(scene.attacker, ("UPDATE blobs SET data = ?", (data,))):
        assert first_bad(scene.ledger.verify()) == ("ARTIFACT_HASH_MISMATCH", CHAIN, 2)


def test_every_byte_of_a_blob(scene: Scene) -> None:
    for at in range(0, len(BLOB.data), 101):
        flipped = bytearray(BLOB.data)
        flipped[at] ^= 1
        with changed(scene.attacker, ("UPDATE blobs SET data = ?", (bytes(flipped),))):
            assert first_bad(scene.ledger.verify(CHAIN)) == ("ARTIFACT_HASH_MISMATCH", CHAIN, 2)


def test_a_blob_removed_renamed_or_given_to_another_tenant(scene: Scene) -> None:
    for statement in (
        "DELETE FROM blobs",
        f"UPDATE blobs SET digest = '{'0' * 64}'",
        "UPDATE blobs SET tenant = 'mallory'",
    ):
        with changed(scene.attacker, statement):
            assert first_bad(scene.ledger.verify()) == ("ARTIFACT_MISSING", CHAIN, 2)


@pytest.mark.parametrize("sequence", range(6))
def test_a_duplicate_key_injected(scene: Scene, sequence: int) -> None:
    canonical = scene.of("canonical", sequence)
    doubled = canonical.replace(b'"domain":', b'"domain":"forged","domain":', 1)
    with changed(scene.attacker, scene.set("canonical", sequence, doubled)):
        assert first_bad(scene.ledger.verify()) == ("DUPLICATE_KEY", CHAIN, sequence)


@pytest.mark.sample(8)
@pytest.mark.parametrize("sequence", range(6))
@pytest.mark.parametrize("space", [b" ", b"\n", b"\t", b"\r\n"])
def test_white_space_injected(scene: Scene, sequence: int, space: bytes) -> None:
    canonical = scene.of("canonical", sequence)
    for spaced in (canonical + space, space + canonical, canonical.replace(b'"domain":', b'"domain":' + space, 1)):
        with changed(scene.attacker, scene.set("canonical", sequence, spaced)):
            assert first_bad(scene.ledger.verify()) == ("HASH_MISMATCH", CHAIN, sequence)


@pytest.mark.parametrize("value", ["text", 7, b"", 1.5, b"\xff\xfe"], ids=repr)
def test_content_of_another_type(scene: Scene, value: Any) -> None:
    with changed(scene.attacker, scene.set("canonical", 2, value)):
        code, chain, sequence = first_bad(scene.ledger.verify())
        assert (code, chain, sequence) == ("SCHEMA_INVALID", CHAIN, 2)


@pytest.mark.sqlite
def test_text_that_is_not_utf8(scene: Scene) -> None:
    for column in ("hash", "signature", "signed_by", "id", "kind"):
        statement = f"UPDATE records SET {column} = CAST(x'ff41' AS TEXT) WHERE chain = {scene.number} AND sequence = 2"
        with changed(scene.attacker, statement):
            assert first_bad(scene.ledger.verify())[1:] == (CHAIN, 2), column


# --- one corrupt row must not stand in the way of the rest


CORRUPTIONS = {
    "garbage": ("canonical", b"\x00garbage"),
    "not utf-8": ("canonical", b"\xff" * 40),
    "not a capsule": ("canonical", b'{"a":1}'),
    "a number": ("canonical", 12),
    "no hash": ("hash", ""),
    "no signature": ("signature", ""),
    "a bad id": ("id", 7),
}


@pytest.mark.sample(8)
@pytest.mark.parametrize("sequence", [0, 2, 5])
@pytest.mark.parametrize("name", CORRUPTIONS)
def test_a_corrupt_row_blocks_nothing_else(scene: Scene, name: str, sequence: int) -> None:
    column, value = CORRUPTIONS[name]
    scene.attacker.execute(*scene.set(column, sequence, value))
    ledger = scene.ledger
    assert len(list(ledger.read(CHAIN))) == 6
    assert len(list(ledger.find())) == 9
    assert ledger.get(scene.records[1].hash) == scene.records[1]
    assert ledger.head(CHAIN).count == 6
    added = ledger.append(CHAIN, Capsule(type="tool"), key="after")
    assert added.sequence == 6
    assert ledger.append(OTHER, Capsule(type="tool")).sequence == 1
    verdict = ledger.verify()
    assert first_bad(verdict)[1:] == (CHAIN, sequence)
    assert {place for _, _, place in codes_at(verdict)} <= {sequence, sequence + 1}
    assert verdict.records == 11
    assert ledger.verify(OTHER).status == "verified"


def test_lookups_do_not_trust_columns(scene: Scene) -> None:
    """A row that a column leads to is given only if its signed bytes say the same."""
    from aver import IntegrityError

    for column, reference in (("id", scene.records[0].id), ("key", "k0"), ("hash", scene.records[0].hash)):
        stolen = scene.of(column, 0)
        with changed(scene.attacker, scene.set(column, 0, "elsewhere"), scene.set(column, 3, stolen)):
            with pytest.raises(IntegrityError) as caught:
                scene.ledger.get(reference)
            assert caught.value.evidence.hash == scene.of("hash", 3)


def test_a_key_hidden_from_its_column_is_found_when_it_is_used_again(scene: Scene) -> None:
    with changed(scene.attacker, scene.set("key", 0, None)):
        scene.ledger.append(OTHER, Capsule(type="tool"), key="k0")
        assert ("COLUMN_MISMATCH", CHAIN, 0) in codes_at(scene.ledger.verify())


def test_other_tenants_are_not_touched(scene: Scene) -> None:
    with open_ledger(tenant="other") as theirs:
        theirs.append(CHAIN, Capsule(type="tool"), key="k0")
        with changed(scene.attacker, scene.set("hash", 0, "0" * 64)):
            assert first_bad(scene.ledger.verify()) == ("HASH_MISMATCH", CHAIN, 0)
            assert theirs.verify().status == "verified"
    assert list_tenants() == ["default", "other"]


# --- across the slices in which long chains are judged


@pytest.fixture
def long_chain(ledger: Ledger) -> Ledger:
    ledger.append_many("demo.long", [Capsule(type="tool") for _ in range(4_100)])
    return ledger


@pytest.mark.sample(2)
@pytest.mark.more
@pytest.mark.parametrize("sequence", first_now([1999, 2000, 0, 1, 1998, 2001, 3999, 4000, 4098, 4099], 2))
def test_changes_at_the_edges_of_slices(long_chain: Ledger, sequence: int) -> None:
    attacker = unguarded(long_chain)
    number = attacker.execute("SELECT chain FROM chains WHERE name = 'demo.long'").fetchone()[0]
    where = f"WHERE chain = {number} AND sequence = {sequence}"
    attacker.execute(f"UPDATE records SET signature = '{'0' * 128}' {where}")
    assert first_bad(long_chain.verify()) == ("SIG_INVALID", "demo.long", sequence)
    attacker.execute(f"DELETE FROM records {where}")
    verdict = long_chain.verify()
    assert first_bad(verdict) == ("SEQUENCE_GAP", "demo.long", sequence)
    assert codes_at(verdict) == {("SEQUENCE_GAP", "demo.long", sequence)}


@pytest.mark.more
@pytest.mark.parametrize("sequence", [1999, 2000])
def test_a_link_broken_at_the_edge_of_a_slice(long_chain: Ledger, sequence: int) -> None:
    """The record is replaced by an honest-looking one of the same key: only the link after it can tell."""
    attacker = unguarded(long_chain)
    record = next(long_chain.read("demo.long", sequence, sequence + 1))
    content = record.to_dict()
    content["domain"] = "forged"
    with long_chain.signer().hold() as signer:  # type: ignore[union-attr]
        sealed = seal_content(content, signer, at=record.signed_at)
    attacker.execute(
        "UPDATE records SET canonical = ?, hash = ?, signature = ? WHERE hash = ?",
        (sealed.canonical, sealed.hash, sealed.signature, record.hash),
    )
    assert first_bad(long_chain.verify()) == ("CHAIN_BREAK", "demo.long", sequence + 1)
    assert isinstance(long_chain.head("demo.long"), Head)

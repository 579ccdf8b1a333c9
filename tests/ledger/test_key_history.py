"""Retired keys stay retired for every auditor, and every key does only what it was made for."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aver import Capsule, KeyStore, Ledger, SeedSigner, Verdict, open_ledger, verify
from aver.capsule.aver_block import of_kind
from aver.errors import Refused
from aver.keys import KeyLike, RingEntry, Statement, read_keys, sign_statement
from aver.ledger.bundle import export_bundle, import_bundle
from aver.ledger.checkpoint import PURPOSE, make_checkpoint
from aver.ledger.checkpoint_files import to_checkpoint_line
from support.forged_records import cut, forge
from support.tamper import codes_at, first_bad, unguarded

CHAIN = "ci.b"
LONG_AGO = "2020-01-01T00:00:00+00:00"
FAR_AHEAD = "2099-01-01T00:00:00+00:00"


def stolen(ledger: Ledger, slug: str = "ledger", epoch: int = 0) -> SeedSigner:
    path = ledger.config.home / "keys" / f"{slug}.{epoch}.key"
    pq = path.with_suffix(".pq")
    return SeedSigner(path.read_bytes(), pq.read_bytes() if pq.exists() else None)


@pytest.fixture
def thief(ledger: Ledger) -> SeedSigner:
    """Holds the ledger's first key, which was replaced when the chain had two records."""
    ledger.append(CHAIN, Capsule(type="tool"))
    ledger.append(CHAIN, Capsule(type="tool"))
    old = stolen(ledger)
    ledger.keys.rotate("ledger")
    ledger.append(CHAIN, Capsule(type="tool"))
    return old


def bare(ledger: Ledger) -> list[KeyLike]:
    """What an auditor has who was told the keys and nothing else."""
    return [entry.key.ed25519 for entry in ledger.keys.ring().entries]


def exported(ledger: Ledger, tmp_path: Path) -> list[KeyLike]:
    """What an auditor has who got the file that the owner exports."""
    path = tmp_path / "our-keys.json"
    names = {entry.identity for entry in ledger.keys.ring().entries}
    path.write_text(json.dumps(ledger.keys.export(*sorted(names))))
    return list(read_keys(path))


def bundled(ledger: Ledger, tmp_path: Path) -> Path:
    return export_bundle(ledger, tmp_path / "bundle").path


def drop_from_bundle(bundle: Path, chain: str) -> None:
    """Remove a chain and its claims, as someone without any key can."""
    index = json.loads((bundle / "index.json").read_bytes())
    (claim,) = (one for one in index["chains"] if one["id"] == chain)
    index["chains"].remove(claim)
    index.update(
        chain_count=index["chain_count"] - 1, capsule_count=index["capsule_count"] - claim["length"], meta=None
    )
    (bundle / f"{chain}.json").unlink()
    for name in ("meta.json", "head.json"):
        (bundle / name).unlink(missing_ok=True)
    (bundle / "index.json").write_text(json.dumps(index))


def unrecorded(verdict: Verdict) -> set[str]:
    return {finding.words.split()[8] for finding in verdict.findings if finding.code == "KEY_UNRECORDED"}


# --- a stolen old key


def test_an_honest_ledger_is_verified_for_its_owner_and_for_auditors(
    ledger: Ledger, thief: SeedSigner, tmp_path: Path
) -> None:
    ledger.sweep()
    for keys in ((), bare(ledger), exported(ledger, tmp_path)):
        for thing in (None, CHAIN, f"capsule://{CHAIN}/2"):
            assert verify(thing, ledger=ledger, keys=keys).status == "verified", thing
    bundle = bundled(ledger, tmp_path)
    for keys in ((), bare(ledger), exported(ledger, tmp_path)):
        assert not codes_at(verify(bundle, keys=keys))


@pytest.mark.parametrize("count", [0, 1])
@pytest.mark.parametrize("at", [LONG_AGO, FAR_AHEAD])
def test_a_cut_keys_chain_does_not_make_an_old_key_good(
    ledger: Ledger, thief: SeedSigner, tmp_path: Path, count: int, at: str
) -> None:
    current = ledger.keys.ring().active("ledger").fingerprint
    keys, file = bare(ledger), exported(ledger, tmp_path)
    forge(ledger, CHAIN, thief, at=at)
    assert first_bad(ledger.verify(keys=keys)) == ("KEY_RETIRED", CHAIN, 3)
    cut(ledger, "keys", count)
    things: list[tuple[Any, Any]] = [(None, ledger), (CHAIN, ledger), (bundled(ledger, tmp_path), None)]
    if count == 0:  # Else the one record is by a key that the rest of the chain records.
        things.append((f"capsule://{CHAIN}/3", ledger))
    for thing, where in things:
        verdict = verify(thing, ledger=where, keys=keys)
        assert verdict.status == "qualified", thing
        expected = {current, thief.fingerprint} if count == 0 else {current}
        assert unrecorded(verdict) <= expected
        if thing is None:
            assert unrecorded(verdict) == expected
        # The export says when the key was retired; only the forger says when the record was made.
        told = verify(thing, ledger=where, keys=file)
        assert told.status == ("failed" if at == FAR_AHEAD else "qualified")
        if at == FAR_AHEAD:
            assert first_bad(told)[0] == "KEY_RETIRED"


def test_an_old_key_cannot_record_its_successor_without_ending_itself(
    ledger: Ledger, thief: SeedSigner, tmp_path: Path
) -> None:
    """The thief cuts the keys chain and writes on: the rotation anew, or as if nothing had been rotated."""
    rotation = list(ledger.read("keys"))[1].to_dict()
    statement, result = rotation["authority"]["chain"], rotation["outcome"]["result"]
    far = {CHAIN: {"count": 10**6, "hash": "0" * 64}, "keys": {"count": 10**6, "hash": "0" * 64}}
    keys = bare(ledger)
    created = {key: value for key, value in result.items() if key not in ("heads", "replaces")}
    lies = [
        ("key.rotate", {**result, "heads": far}, statement),
        ("key.create", created, []),
        ("key.create", {**created, "identity": "agent:x"}, []),
    ]
    for kind, claimed, chain in lies:
        cut(ledger, "keys", 1)
        draft = Capsule(
            type="system",
            domain="keys",
            authority={"chain": chain},
            outcome={"status": "success", "result": claimed},
        )
        forge(ledger, "keys", thief, at=LONG_AGO, draft=of_kind(draft, kind))
        forge(ledger, CHAIN, thief, at=LONG_AGO)
        verdict = ledger.verify(keys=keys)
        assert verdict.status in ("qualified", "failed"), kind
        assert verdict.status == "failed" or unrecorded(verdict), kind
        cut(ledger, CHAIN, 3)


def test_a_bundle_without_its_keys_chain_names_every_signer(ledger: Ledger, thief: SeedSigner, tmp_path: Path) -> None:
    bundle = bundled(ledger, tmp_path)
    drop_from_bundle(bundle, "keys")
    verdict = verify(bundle, keys=bare(ledger))
    assert verdict.status == "qualified"
    assert len(unrecorded(verdict)) == 2
    assert verdict.check("keys").code == "KEY_UNRECORDED"


def test_an_agents_key_that_ended_without_a_successor_is_retired_for_auditors(ledger: Ledger, tmp_path: Path) -> None:
    ledger.append(CHAIN, Capsule(type="tool"))
    ledger.keys.create("agent:bob")
    ledger.append(CHAIN, Capsule(type="tool"), signer=ledger.keys.signer("agent:bob"))
    bob = stolen(ledger, "agent-bob")
    ledger.keys.retire("agent:bob")
    ledger.append(CHAIN, Capsule(type="tool"))
    assert [record.kind for record in ledger.read("keys")] == ["key.create", "key.create", "key.retire"]
    for keys in ((), bare(ledger), exported(ledger, tmp_path)):
        assert ledger.verify(keys=keys).status == "verified"
    forge(ledger, CHAIN, bob, at=LONG_AGO)
    bundle = bundled(ledger, tmp_path)
    for keys in ((), bare(ledger), exported(ledger, tmp_path)):
        assert first_bad(ledger.verify(keys=keys)) == ("KEY_RETIRED", CHAIN, 3)
        assert first_bad(verify(bundle, keys=keys)) == ("KEY_RETIRED", CHAIN, 3)


def test_an_agent_cannot_retire_another_identity(ledger: Ledger) -> None:
    ledger.append(CHAIN, Capsule(type="tool"))
    ledger.keys.create("agent:bob")
    ledger.append(CHAIN, Capsule(type="tool"), signer=ledger.keys.signer("agent:bob"))
    bob, keys = stolen(ledger, "agent-bob"), bare(ledger)
    entry = ledger.keys.ring().active("ledger")
    result = {**entry.to_dict(), "heads": {}}
    draft = Capsule(type="system", domain="keys", outcome={"status": "success", "result": result})
    forge(ledger, "keys", bob, at=LONG_AGO, draft=of_kind(draft, "key.retire"))
    for given in ((), keys):
        assert codes_at(ledger.verify(keys=given)) == {("KEY_MISMATCH", "keys", 2)}


def test_rotations_of_agents_are_recorded_whoever_seals_next(ledger: Ledger, tmp_path: Path) -> None:
    ledger.keys.create("agent:bob")
    signer = ledger.keys.signer("agent:bob")
    ledger.append(CHAIN, Capsule(type="tool"), signer=signer)
    bob = stolen(ledger, "agent-bob")
    ledger.keys.rotate("agent:bob")
    ledger.append(CHAIN, Capsule(type="tool"))
    ledger.append(CHAIN, Capsule(type="tool"), signer=signer)
    for keys in ((), bare(ledger), exported(ledger, tmp_path)):
        assert ledger.verify(keys=keys).status == "verified"
    forge(ledger, CHAIN, bob, at=LONG_AGO)
    for keys in ((), bare(ledger)):
        assert first_bad(ledger.verify(keys=keys)) == ("KEY_RETIRED", CHAIN, 3)


def test_an_import_is_limited_by_the_keys_chain_that_came_with_it(
    ledger: Ledger, thief: SeedSigner, tmp_path: Path
) -> None:
    bundle = bundled(ledger, tmp_path)
    home = tmp_path / "auditor"
    home.mkdir(mode=0o700)
    with open_ledger(home / "ledger.db", home=home) as auditor:
        for key in exported(ledger, tmp_path):
            assert isinstance(key, RingEntry)
            auditor.keys.trust(key)
        import_bundle(auditor, bundle)
        assert auditor.verify().status == "verified"
        (keys,) = (row.name for row in auditor.store.chains("default") if row.origin == "keys")
        cut(auditor, keys, 0)
        verdict = auditor.verify()
        assert first_bad(verdict)[:2] == ("CHAIN_MISSING", keys)
        assert len(unrecorded(verdict)) == 2


# --- purpose


def other_keys(ledger: Ledger) -> dict[str, SeedSigner]:
    ledger.keys.create("policy:p")
    ledger.keys.create("person:ada", passphrase="correct horse")
    ledger.keys.create("agent:bob")
    return {
        "policy": stolen(ledger, "policy-p"),
        "approve": ledger.keys.unlock("person:ada", "correct horse"),
        "seal": stolen(ledger, "agent-bob"),
    }


@pytest.mark.more
@pytest.mark.parametrize("chain", ["ci.a", "ci.new", "meta", "keys"])
def test_a_key_seals_only_what_it_is_made_for(ledger: Ledger, tmp_path: Path, chain: str) -> None:
    ledger.append("ci.a", Capsule(type="tool"))
    ledger.close_chain("ci.a")
    for purpose, signer in other_keys(ledger).items():
        for other in ("ci.new",):
            if other in ledger.chains():
                cut(ledger, other, 0)
        count = ledger.head(chain).count
        forge(ledger, chain, signer, at=LONG_AGO)
        file = exported(ledger, tmp_path)
        bundle = export_bundle(ledger, tmp_path / f"bundle-{purpose}").path
        verdicts = [ledger.verify(), ledger.verify(chain), ledger.verify(keys=file), verify(bundle)]
        verdicts.append(verify(bundle, keys=file))
        for verdict in verdicts:
            if purpose == "seal" and chain not in ("meta", "keys"):
                # An agent may seal records, but this one was never recorded.
                assert verdict.status == "qualified"
                assert unrecorded(verdict) == {signer.fingerprint}
            else:
                assert ("KEY_MISMATCH", chain, count) in codes_at(verdict)
        cut(ledger, chain, count)


def test_a_lone_record_by_a_key_of_another_purpose(ledger: Ledger, tmp_path: Path) -> None:
    ledger.append("ci.a", Capsule(type="tool"))
    signers = other_keys(ledger)
    for purpose in ("policy", "approve"):
        record = forge(ledger, f"ci.{purpose}", signers[purpose], at=LONG_AGO)
        assert first_bad(verify(record.to_sealed_dict()))[0] == "KEY_MISMATCH"
        assert first_bad(verify(f"capsule://ci.{purpose}/0", ledger=ledger))[0] == "KEY_MISMATCH"


def test_append_refuses_a_key_of_another_purpose(ledger: Ledger) -> None:
    ledger.append("ci.a", Capsule(type="tool"))
    signers = other_keys(ledger)
    for purpose in ("policy", "approve"):
        with pytest.raises(Refused) as caught:
            ledger.append("ci.a", Capsule(type="tool"), signer=signers[purpose])
        assert caught.value.code == "KEY_MISMATCH"
    assert ledger.append("ci.a", Capsule(type="tool"), signer=signers["seal"]).sequence == 1
    assert ledger.verify().status == "verified"


def test_a_ledger_opened_with_an_agents_key_is_still_attested_by_its_own(ledger: Ledger, aver_home: Path) -> None:
    ledger.keys.create("agent:bob")
    with open_ledger(signer=ledger.keys.signer("agent:bob")) as agents:
        record = agents.append("ci.a", Capsule(type="tool"))
        agents.close_chain("ci.a")
        statement = make_checkpoint(agents)
        assert record.signed_by == agents.keys.ring().active("agent:bob").fingerprint
        own = agents.keys.ring().active("ledger").fingerprint
        assert {entry.signed_by for entry in agents.read("meta")} == {own}
        assert statement.signatures[0].by == own
        assert agents.verify().status == "verified"


def test_a_trusted_signer_outside_the_ring_is_recorded(ledger: Ledger) -> None:
    friend = SeedSigner(bytes([7]) * 32)
    ledger.keys.trust(friend.public)
    ledger.append("ci.a", Capsule(type="tool"), signer=friend)
    assert ledger.verify().status == "verified"
    assert ledger.verify(keys=[*bare(ledger), friend.public]).status == "verified"


# --- checkpoints


def checked(ledger: Ledger, statement: Statement, path: Path, keys: Any = ()) -> Verdict:
    path.write_bytes(to_checkpoint_line(statement))
    return verify(None, ledger=ledger, checkpoints=[path], keys=keys)


def test_only_the_ledgers_key_signs_checkpoints(ledger: Ledger, tmp_path: Path) -> None:
    ledger.append("ci.a", Capsule(type="tool"))
    content = dict(make_checkpoint(ledger).content)
    file = tmp_path / "checkpoint.json"
    assert checked(ledger, make_checkpoint(ledger), file).status == "verified"
    signers = other_keys(ledger)
    for signer in signers.values():
        verdict = checked(ledger, sign_statement(PURPOSE, content, (signer,)), file)
        assert first_bad(verdict)[0] == "KEY_MISMATCH"
        assert first_bad(verify(file))[0] == "KEY_MISMATCH"
    special = ledger.keys.create("agent:witness", purpose="checkpoint")
    witness = stolen(ledger, "agent-witness")
    assert witness.public == special.key
    assert checked(ledger, sign_statement(PURPOSE, content, (witness,)), file).status == "verified"


def test_every_signature_of_a_checkpoint_counts(ledger: Ledger, tmp_path: Path) -> None:
    """Also two by one signer, of which one is wrong, in either order."""
    ledger.append("ci.a", Capsule(type="tool"))
    good = make_checkpoint(ledger)
    wrong = replace(good.signatures[0], ed25519="00" * 64)
    for signatures in ((wrong, *good.signatures), (*good.signatures, wrong)):
        verdict = checked(ledger, replace(good, signatures=signatures), tmp_path / "checkpoint.json")
        assert first_bad(verdict)[0] == "SIG_INVALID"


def test_a_checkpoint_by_a_retired_key_is_found_by_auditors(ledger: Ledger, thief: SeedSigner, tmp_path: Path) -> None:
    content = {**make_checkpoint(ledger).content, "at": FAR_AHEAD}
    forged = sign_statement(PURPOSE, content, (thief,))
    for keys in ((), bare(ledger), exported(ledger, tmp_path)):
        verdict = checked(ledger, forged, tmp_path / "checkpoint.json", keys)
        assert first_bad(verdict)[0] == "KEY_RETIRED"
    told = verify(tmp_path / "checkpoint.json", keys=exported(ledger, tmp_path))
    assert first_bad(told)[0] == "KEY_RETIRED"


# --- post-quantum halves, and imitated fingerprints


@pytest.fixture
def hybrid(aver_home: Path) -> Any:
    with open_ledger() as ledger:
        ledger.keys.create("ledger", post_quantum=True)
        ledger.append(CHAIN, Capsule(type="tool"))
        yield ledger


def strip(ledger: Ledger) -> None:
    attacker = unguarded(ledger)
    attacker.execute("UPDATE records SET signature_pq = ''")
    attacker.close()


def test_stripping_the_post_quantum_signature_never_improves_a_verdict(hybrid: Ledger, tmp_path: Path) -> None:
    rank = ("failed", "qualified", "verified")
    half, file = bare(hybrid), exported(hybrid, tmp_path)
    keys: tuple[Any, ...] = ((), half, file)
    before = [hybrid.verify(keys=given).status for given in keys]
    assert before == ["verified", "qualified", "verified"]
    strip(hybrid)
    bundle = bundled(hybrid, tmp_path)
    for given, status in zip(keys, before, strict=True):
        for verdict in (hybrid.verify(keys=given), hybrid.verify(CHAIN, keys=given), verify(bundle, keys=given)):
            assert rank.index(verdict.status) <= rank.index(status)
            assert verdict.check("signature_pq").code == "SIG_MISSING"
        assert hybrid.verify(keys=given, require_pq=True).status == "failed"
    drop_from_bundle(bundle, "keys")
    assert verify(bundle, keys=half).status == "qualified"


def test_an_imitated_fingerprint_does_not_spoil_genuine_records(
    ledger: Ledger, thief: SeedSigner, tmp_path: Path, imitate: Callable[[str], str]
) -> None:
    keys = bare(ledger)
    imitations = [imitate(str(key)[:16]) for key in keys]
    assert ledger.verify(keys=[*imitations, *keys]).status == "verified"
    bundle = bundled(ledger, tmp_path)
    other = KeyStore(tmp_path / "other")
    for key in (*imitations, *keys):
        other.import_keys(read_keys(str(key)), trust={str(key)})
    assert not codes_at(verify(bundle, home=tmp_path / "other"))


@pytest.fixture
def imitate() -> Callable[[str], str]:
    from aver.errors import BadInput
    from aver.keys import PublicKey

    def find(prefix: str) -> str:
        for number in range(10_000):
            key = PublicKey(prefix + number.to_bytes(24, "little").hex())
            try:
                return key.check_usable().ed25519
            except BadInput:
                continue
        raise AssertionError

    return find

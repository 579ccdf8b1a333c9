"""Approvals by passkey: the page's verifier gives the verdict of `aver verify`, on honest records and on attacks."""

from __future__ import annotations

import copy
import hashlib
import json
import random
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from aver import AverError, Ledger, seal
from aver.errors import Refused
from aver.gate.approvals import Person, consume, endorse_passkey, enrol_approver, enrol_passkey, record_signed_vote
from aver.gate.approvals.enrolment import append_change, approvers_chain, load_roster
from aver.gate.approvals.roster import WITHDRAWAL, withdrawal_content
from aver.gate.approvals.vote import APPROVAL_PURPOSE
from aver.keys import Ring, SeedSigner, Statement, sign_statement
from aver.keys.passkey import P256_ORDER, decode_base64url, encode_base64url
from aver.ledger.bundle import export_bundle
from support.approvals import SHOWN, opened, somebody
from support.page_cases import Cases, expect_agreement
from support.passkeys import MISTAKES, SoftPasskey, with_signature, write_vote

SECOND_LABELS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def compare_all(ledger: Ledger, tmp_path: Path, person: Person, *, failed: int) -> None:
    """Judge one bundle with several sets of keys. With that of the person, so many records of it are wrong."""
    cases = Cases(tmp_path / "cases")
    known = ledger.keys.ring()
    active = known.active("ledger")
    assert active is not None
    everyone = Ring.pin([active.key, person.public])
    for name, ring in {
        "nobody": Ring(),
        "the ledger": known,
        "the ledger alone": Ring.pin([active.key]),
        "everyone": everyone,
    }.items():
        bundle = cases.new_folder() / "bundle"
        export_bundle(ledger, bundle)
        cases.add(bundle, ring, name)
    assert expect_agreement(cases.directory) == 4
    verdict = json.loads((bundle.parents[1] / "case.json").read_text())["verdict"]
    assert sum(one["status"] == "failed" for one in verdict["findings"]) == failed


def wrong_signatures(device: SoftPasskey, honest: Statement) -> Iterator[Statement]:
    """Every way to write the signature of a statement wrongly, or in another form."""
    for mistake in MISTAKES.values():
        signed = device.sign_statement(honest.purpose, honest.content, **mistake)
        yield replace(honest, signatures=(signed,))
    (signature,) = honest.signatures
    assert signature.passkey is not None
    parts = signature.passkey.to_dict()
    for name, text in parts.items():
        yield with_signature(honest, **{name: text + "A"})
        if len(decode_base64url(text)) % 3:
            yield with_signature(honest, **{name: text[:-1] + SECOND_LABELS[SECOND_LABELS.index(text[-1]) + 1]})
        raw, rng = decode_base64url(text), random.Random(55)
        for at in rng.sample(range(len(raw)), 12):
            flipped = raw[:at] + bytes([raw[at] ^ (1 << rng.randrange(8))]) + raw[at + 1 :]
            yield with_signature(honest, **{name: encode_base64url(flipped)})
    yield replace(honest, signatures=honest.signatures * 2)
    yield replace(honest, signatures=(replace(signature, by="0" * 16),))
    if device.passkey.alg == "ES256":
        r, s = decode_dss_signature(decode_base64url(parts["signature"]))
        for form in (
            encode_dss_signature(r, P256_ORDER - s),
            encode_dss_signature(r + P256_ORDER, s),
            encode_dss_signature(0, s),
            encode_dss_signature(r, 0),
            encode_dss_signature(r, s) + b"\x00",
            encode_dss_signature(r, s)[:-1],
            b"\x30\x81" + encode_dss_signature(r, s)[1:],
            r.to_bytes(32, "big") + s.to_bytes(32, "big"),
            b"\x30\x00",
        ):
            yield with_signature(honest, signature=encode_base64url(form))


@pytest.mark.more
@pytest.mark.parametrize("alg", ["ES256", pytest.param("EdDSA", marks=pytest.mark.long)])
def test_votes(ledger: Ledger, tmp_path: Path, alg: str) -> None:
    ada, device = somebody("ada"), SoftPasskey("ada-phone", alg)
    enrol_approver(ledger, ada)
    endorse_passkey(ledger, device.enrolment(ledger), ada)
    request = opened(ledger)
    honest = device.vote(request)
    written = 0
    for statement in wrong_signatures(device, honest):
        write_vote(ledger, request, statement)
        written += 1
    for changed in ({"digest": "0" * 64}, {"request": "0" * 36}, {"ledger": "0" * 32}, {"uses": 101}, {"also": 1}):
        write_vote(ledger, request, device.vote(request, **changed))
        written += 1
    record_signed_vote(ledger, request.id, honest, shown=SHOWN)
    write_vote(ledger, request, honest)
    consume(ledger, request, request.digest)
    again = opened(ledger, gate_id="gate-2")
    write_vote(ledger, again, honest)
    content = device.vote_content(again)
    other = SoftPasskey("eve", alg).sign_statement(APPROVAL_PURPOSE, content)
    for signature in (
        other,
        replace(other, by=device.fingerprint),
        ada.signer.sign_statement(APPROVAL_PURPOSE, content),
    ):
        write_vote(ledger, again, Statement(APPROVAL_PURPOSE, content, (signature,)))
    compare_all(ledger, tmp_path, ada, failed=written + 5)


@pytest.mark.more
def test_enrolments(ledger: Ledger, tmp_path: Path) -> None:
    ada, mallory = somebody("ada"), somebody("mallory", custody="file")
    phone, laptop, robot, late = (SoftPasskey(name) for name in ("phone", "laptop", "robot", "late"))

    def append(kind: str, statement: Statement) -> None:
        append_change(ledger, kind, statement, "said so", ledger.head(approvers_chain("default")))

    append("key.create", phone.enrolment(ledger))  # The first of all.
    for person in (ada, mallory):
        enrol_approver(ledger, person, ada if person is mallory else None)
    for statement in (
        phone.enrolment(ledger),
        phone.enrolment(ledger, phone),
        phone.enrolment(ledger, laptop),
        phone.enrolment(ledger, somebody("ada")),
        phone.enrolment(ledger, ada, ledger="0" * 32),
        phone.enrolment(ledger, ada, also=1),
        phone.enrolment(ledger, ada, custody="passphrase"),
        phone.enrolment(ledger, ada, passkey={**phone.passkey.to_dict(), "alg": "EdDSA"}),
        phone.enrolment(ledger, ada, passkey={**phone.passkey.to_dict(), "rp_id": "evil.example"}),
        phone.enrolment(ledger, ada, passkey={**phone.passkey.to_dict(), "public_key": "04" + "11" * 64}),
        sign_statement("enrolment", phone.enrolment(ledger).content, [ada.signer]),
        sign_statement("enrolment", phone.enrolment(ledger).content, [laptop, ada.signer]),
    ):
        append("key.create", statement)
    for mistake in ({"flags": 0x01}, {"origin": "https://evil.example"}):
        honest = phone.enrolment(ledger, ada)
        signed = phone.sign_statement("enrolment", honest.content, **mistake)
        append("key.create", replace(honest, signatures=(signed, honest.signatures[1])))
    enrol_passkey(ledger, phone.enrolment(ledger, ada))
    append("key.create", phone.enrolment(ledger, ada))
    enrol_passkey(ledger, laptop.enrolment(ledger, phone))
    enrol_passkey(ledger, robot.enrolment(ledger, mallory))
    enrol_passkey(ledger, late.enrolment(ledger, ada))

    def withdraw(identity: str, fingerprint: str, *signers: Any) -> None:
        given = withdrawal_content(
            identity, fingerprint, ledger=ledger.id, tenant=ledger.tenant, at="2026-11-17T00:00:00+00:00"
        )
        append("key.retire", sign_statement(WITHDRAWAL, given, signers))

    # Each passkey votes on a request of its own, which pins them all.
    for number, device in enumerate((phone, laptop, robot, late)):
        request = opened(ledger, gate_id=f"gate-{number}")
        record_signed_vote(ledger, request.id, device.vote(request), shown=SHOWN)
        consume(ledger, request, request.digest)
    withdraw("person:late", late.fingerprint, phone)
    withdraw("person:mallory", mallory.public.fingerprint, laptop)
    withdraw("person:ada", ada.public.fingerprint, laptop)  # The last key that is no passkey.
    # One Ed25519 key, as a key of ada's second name and as a passkey of her third.
    double = SoftPasskey("third", "EdDSA")
    signer = SeedSigner(hashlib.sha256(b"third EdDSA").digest())
    assert signer.public.ed25519 == double.passkey.public_key
    enrol_approver(ledger, Person("person:second", signer.public, "passphrase", signer), ada)
    with pytest.raises(Refused, match="is or was on the roster"):
        enrol_passkey(ledger, double.enrolment(ledger, ada))
    append("key.create", double.enrolment(ledger, ada))
    assert "person:third" not in load_roster(ledger).approvers
    compare_all(ledger, tmp_path, ada, failed=19)


@pytest.mark.more
def test_passkeys_of_a_site(ledger: Ledger, tmp_path: Path) -> None:
    ada = somebody("ada")
    enrol_approver(ledger, ada)
    device = SoftPasskey("desk", rp_id="aver.example")
    endorse_passkey(ledger, device.enrolment(ledger), ada)
    for number, origin in enumerate(
        (
            *("https://aver.example", "https://desk.aver.example:4840", "http://aver.example"),
            *("https://notaver.example", "https://aver.example.evil.example", "https://.aver.example"),
            *("https://a..aver.example", "https://aver.example/", "https://user@aver.example", "http://localhost:4840"),
        )
    ):
        request = opened(ledger, gate_id=f"gate-{number}")
        write_vote(ledger, request, device.wrong_vote(request, origin=origin))
    compare_all(ledger, tmp_path, ada, failed=8)


HOSTILE: list[Any] = [
    *(None, True, 0, 1, -1, 2**64, 1.5, "", "A", "AA", "A" * 5000, "0" * 16, "ES256", "EdDSA", "passkey", "file"),
    *(
        "person:x",
        "localhost",
        "aver.example",
        "\u202e",
        "\ud800",
        "2026-11-17T00:00:00+00:00",
        [],
        {},
        ["A"],
        {"a": 1},
    ),
]


def list_places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from list_places(item, (*path, key))


@pytest.mark.more
def test_hostile_values_in_each_place(ledger: Ledger, tmp_path: Path) -> None:
    """Enrolments, requests and votes with one value changed, sealed again by the ledger's own key."""
    ada, device = somebody("ada"), SoftPasskey("ada-phone")
    enrol_approver(ledger, ada)
    endorse_passkey(ledger, device.enrolment(ledger), ada)
    request = opened(ledger)
    record_signed_vote(ledger, request.id, device.vote(request), shown=SHOWN)
    export_bundle(ledger, tmp_path / "honest")
    signer, rng, cases = ledger.keys.signer("ledger"), random.Random(56), Cases(tmp_path / "cases")
    ring = Ring.pin([signer.public, ada.public])
    for _ in range(120):
        name, number = rng.choice([("approvers.default", 1), ("approvals.default", 0), ("approvals.default", 1)])
        document = json.loads((tmp_path / "honest" / f"{name}.json").read_text())
        record = document["capsules"][number]
        content = json.loads(record["canonical"])
        places = [path for path in list_places(content) if path[0] in ("authority", "outcome")]
        *path, last = rng.choice([path for path in places if "passkey" in path or "approvers" in path] or places)
        holder = content
        for key in path:
            holder = holder[key]
        if rng.random() < 0.15:
            del holder[last]
        else:
            holder[last] = copy.deepcopy(rng.choice(HOSTILE))
        try:
            sealed = seal(content, signer)
        except AverError:
            continue  # It has no canonical form.
        record.update(hash=sealed.hash, signature=sealed.signature, canonical=sealed.canonical.decode())
        bundle = cases.new_folder() / "bundle"
        shutil.copytree(tmp_path / "honest", bundle)
        (bundle / f"{name}.json").write_text(json.dumps(document))
        cases.add(bundle, ring, f"{name}, {'/'.join(map(str, (*path, last)))}")
    assert expect_agreement(cases.directory) == cases.count > 60

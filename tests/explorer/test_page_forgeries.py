"""Changes by somebody who has the ledger's key, in a bundle that holds everything: the page and Aver say the same.

The bundle has sessions, blobs, an import whose key was rotated, a rotated key of its own, approvals by passphrase and
by passkey, and one time ML-DSA-65. Records are changed, dropped, doubled, exchanged or cut, and sealed again with their
links. The index and the signed heads follow, so that the change itself is judged, and not a broken seal.
"""

from __future__ import annotations

import copy
import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from aver import AverError, Capsule, Ledger, open_ledger, seal
from aver.actions.proofs.inclusion import inclusion_document
from aver.actions.run_state import load_run_from_path
from aver.capsule.json_document import dump_document
from aver.gate.approvals import approve, consume, endorse_passkey, enrol_approver, record_signed_vote
from aver.keys import Ring, sign_statement
from aver.ledger.bundle import export_bundle, import_bundle
from support.agents import sample_session as sample
from support.approvals import SHOWN, opened, somebody
from support.bundles import draft, fill, save
from support.page_cases import Cases, expect_agreement
from support.passkeys import SoftPasskey
from support.random_changes import change
from support.runs import make_sealed_run, packed, with_owners_head
from support.story_sites import make_site

TIMES = {False: 100, True: 20}
"""Changes of each bundle, without and with ML-DSA-65, which takes long in JavaScript."""


def write_everything(ledger: Ledger, folder: Path) -> None:
    with open_ledger(folder / "other" / "ledger.db", home=folder / "other") as other:
        fill(other)
        other.keys.rotate("ledger")
        other.append("codex.two", draft("again"))
        export_bundle(other, folder / "imported")
    sample.rich(ledger, folder / "session")
    ada, phone, laptop = somebody("ada"), SoftPasskey("phone", "ES256"), SoftPasskey("laptop", "EdDSA")
    enrol_approver(ledger, ada)
    for device in (phone, laptop):
        endorse_passkey(ledger, device.enrolment(ledger), ada)
    for number, device in enumerate((phone, laptop)):
        request = opened(ledger, f"rm -rf {number}", f"gate-{number}")
        record_signed_vote(ledger, request.id, device.vote(request), shown=SHOWN)
        if device is phone:
            consume(ledger, request, request.digest)
            ledger.keys.rotate("ledger")
    request = opened(ledger, "rm -rf x", "gate-x")
    approve(ledger, request, ada, shown=SHOWN)
    consume(ledger, request, request.digest)
    import_bundle(ledger, folder / "imported")
    ledger.append("big.one", Capsule(type="tool", trigger={"source": "test", "request": "x" * 50_000}))


def forge(records: list[dict[str, Any]], rng: random.Random) -> tuple[int, str]:
    """Change the records of a chain. Returns the first place that is to be sealed again, and what was done."""
    at, other = rng.randrange(len(records)), rng.randrange(len(records))
    what = rng.choice(["value", "value", "value", "value", "drop", "double", "exchange", "cut"])
    if what == "value":
        content = json.loads(records[at]["canonical"])
        result = content["outcome"].get("result")
        if isinstance(result, dict) and result and rng.random() < 0.7:
            content["outcome"]["result"], place = change(result, rng)
        else:
            content, place = change(content, rng)
        records[at]["canonical"] = json.dumps(content)
        return at, place
    if what == "drop":
        del records[at]
    elif what == "double":
        records.insert(at, copy.deepcopy(records[other]))
    elif what == "exchange":
        records[at], records[other] = records[other], records[at]
    else:
        del records[at + 1 :]
    return min(at, other), what


def seal_again(records: list[dict[str, Any]], start: int, signer: Any) -> None:
    """Seal the records from a place on, each with the link to the one before and its own number."""
    for number in range(start, len(records)):
        content = json.loads(records[number]["canonical"])
        content["previous_hash"] = records[number - 1]["hash"] if number else None
        content["sequence"] = number
        sealed = seal(content, signer)
        records[number].update(hash=sealed.hash, signature=sealed.signature, canonical=sealed.canonical.decode())
        if sealed.signature_pq:
            records[number]["signature_pq"] = sealed.signature_pq


def follow(bundle: Path, name: str, records: list[dict[str, Any]], signer: Any) -> None:
    """Let the index and the signed heads tell of the changed chain."""
    chain = name.removesuffix(".json")
    count, head = len(records), records[-1]["hash"] if records else None
    index = json.loads((bundle / "index.json").read_text())
    for claim in (*index["chains"], index["meta"]):
        if claim.get("id", "meta") == chain:
            claim.update(length=count, head_hash=head)
    (bundle / "index.json").write_text(json.dumps(index))
    stated = json.loads((bundle / "head.json").read_text())
    stated["content"]["heads"][chain] = {"count": count, "hash": head}
    again = sign_statement(stated["purpose"], stated["content"], (signer,))
    save(bundle / "head.json", again.to_dict())


@pytest.mark.more
@pytest.mark.parametrize("post_quantum", [False, True])
def test_forged_records(tmp_path: Path, post_quantum: bool) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text(f"post_quantum = {str(post_quantum).lower()}\n")
    cases, rng = Cases(tmp_path / "cases"), random.Random(61)
    with open_ledger(home / "ledger.db", home=home) as ledger:
        write_everything(ledger, tmp_path)
        export_bundle(ledger, tmp_path / "honest")
        signer, known = ledger.keys.signer("ledger"), ledger.keys.ring()
        active = known.active("ledger")
    assert active is not None
    rings = {"everyone": known, "the active key": Ring.pin([active.key]), "nobody": Ring()}
    names = sorted(path.name for path in (tmp_path / "honest").glob("*.json"))
    chains = [name for name in names if name not in ("index.json", "head.json")]
    for number in range(TIMES[post_quantum]):
        name = rng.choice(chains)
        document = json.loads((tmp_path / "honest" / name).read_text())
        bundle = cases.new_folder() / "bundle"
        shutil.copytree(tmp_path / "honest", bundle)
        start, words = forge(document["capsules"], rng)
        try:
            seal_again(document["capsules"], start, signer)
        except (AverError, KeyError, TypeError, AttributeError):
            cases.count -= 1
            continue  # It has no canonical form, or is no capsule any more.
        (bundle / name).write_text(json.dumps(document))
        if rng.random() < 0.8:
            follow(bundle, name, document["capsules"], signer)
        who = rng.choice(list(rings))
        cases.add(bundle, rings[who], f"{number}: {name}, {words}, known: {who}", require_pq=rng.random() < 0.1)
    assert expect_agreement(cases.directory) == cases.count > TIMES[post_quantum] // 2


@pytest.mark.more
@pytest.mark.parametrize("name", ["acts", "trace"])
def test_records_that_only_aver_examines(tmp_path: Path, name: str) -> None:
    """The page says which checks it cannot make. About all else in acts and traces, it says the same."""
    site = make_site(tmp_path, name)
    cases, rng = Cases(tmp_path / "cases"), random.Random(62)
    with open_ledger(tmp_path / f"{name}-home" / "ledger.db", home=tmp_path / f"{name}-home") as ledger:
        rings = (ledger.keys.ring(), Ring())
    files = sorted(path.name for path in site.glob("*.json"))
    for number in range(40):
        bundle = cases.new_folder() / "bundle"
        shutil.copytree(site, bundle)
        if number > 1:
            path = bundle / rng.choice(files)
            document, _ = change(json.loads(path.read_text()), rng)
            path.write_text(json.dumps(document))
        cases.add(bundle, rings[number % 2], f"{number}")
    assert expect_agreement(cases.directory) == cases.count > 20


@pytest.mark.usefixtures("judges")
def test_first_record_with_a_key_twice_names_no_chain(tmp_path: Path) -> None:
    """Two readers could read two names in it. The page and Aver take neither."""
    cases = Cases(tmp_path / "cases")
    with open_ledger(tmp_path / "ledger.db", home=tmp_path / "home") as ledger:
        enrol_approver(ledger, somebody("ada"))
        opened(ledger, "rm -rf x", "gate-x")
        export_bundle(ledger, tmp_path / "honest")
        known = ledger.keys.ring()
    for name in ("approvals.default.json", "approvers.default.json"):
        document = json.loads((tmp_path / "honest" / name).read_text())
        first = document["capsules"][0]
        first["canonical"] = first["canonical"].replace('"name":', '"name":"protocol.x","name":', 1)
        cases.add_file(name, json.dumps(document).encode(), known, name)
        bundle = cases.new_folder() / "bundle"
        shutil.copytree(tmp_path / "honest", bundle)
        (bundle / name).write_text(json.dumps(document))
        cases.add(bundle, known, f"{name} in a bundle")
    assert expect_agreement(cases.directory) == cases.count == 4


@pytest.mark.more
def test_numbers_and_names_of_other_types(tmp_path: Path) -> None:
    """A number beyond all floats, a value that is no JSON, and an entry of meta whose tool is no text."""
    run = make_sealed_run(tmp_path / "run", actions=3, gated=())
    cases, ring = Cases(tmp_path / "cases"), Ring.pin([run.key])
    forged: dict[str, tuple[Any, ...]] = {
        "num_actions": (10**400, 2**53 + 1, 0),
        "created_at": ("x", "9999"),
        "policy_verdict": ("x", None, 7),
    }
    for name, values in forged.items():
        for value in values:
            manifest = {**json.loads(run.members["manifest.json"]), name: value}
            members = with_owners_head({**run.members, "manifest.json": dump_document(manifest)}, run)
            cases.add_file("run.cap", packed(members), ring, f"{name} is {str(value)[:20]}")
    found = load_run_from_path(run.path)
    proof = json.dumps(inclusion_document(found.actions, 1, found.seal))
    for value in ("NaN", "-Infinity", "1e999", "[" * 300 + "]" * 300, '{"a": 1, "a": 1}', "tru", '"\t"'):
        cases.add_file("proof.json", proof.replace('"index": 1', f'"index": {value}').encode(), ring, value[:20])
        cases.add_file("proof.json", f'{{"x": {value}, {proof[1:]}'.encode(), ring, f"first {value[:20]}")
    with open_ledger(tmp_path / "ledger.db", home=tmp_path / "home") as ledger:
        fill(ledger)
        ledger.close_chain("codex.two")
        export_bundle(ledger, tmp_path / "honest")
        signer, known = ledger.keys.signer("ledger"), ledger.keys.ring()
    for value in ({"a": 1}, 1.5, None, ["x"], True):
        bundle = cases.new_folder() / "bundle"
        shutil.copytree(tmp_path / "honest", bundle)
        meta = json.loads((bundle / "meta.json").read_text())
        content = json.loads(meta["capsules"][-1]["canonical"])
        content["outcome"]["result"]["tool"] = value
        meta["capsules"][-1]["canonical"] = json.dumps(content)
        seal_again(meta["capsules"], len(meta["capsules"]) - 1, signer)
        (bundle / "meta.json").write_text(json.dumps(meta))
        follow(bundle, "meta.json", meta["capsules"], signer)
        cases.add(bundle, known, f"tool {value}")
    assert expect_agreement(cases.directory) == cases.count > 25

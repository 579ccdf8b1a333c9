"""One act as a file: it holds by public keys alone, and every change of it is found."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

import aver
from aver import SeedSigner
from aver.capsule.json_document import dump_document
from aver.check import resolve
from aver.errors import BadInput, NotFound
from aver.gateway.judgement.act_file import ACT_FILE_MAX, build_act_file, parse_act_file
from aver.verdict import Verdict
from support.act_ledgers import PARTNER, Acts, forge_commit, forge_outcome, open_acts, prepare_home, preview_act

SORTS = ("allowed", "asked", "confirmed", "delegated", "refused", "committed later", "open")


class Written(NamedTuple):
    """The files of all acts, and the keys by which they are verified."""

    files: dict[str, bytes]
    keys: list[Any]
    others: list[Any]
    """The same keys without those of the policy servers."""


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    place = tmp_path_factory.mktemp("acts")
    prepare_home(place / "home")
    with open_acts(place / "home", place / "work") as acts:
        files = {sort: build_act_file(acts.ledger, acts.ids[sort])[1] for sort in SORTS}
        others = [key for key in acts.keys if getattr(key, "purpose", "") != "policy"]
        return Written(files, acts.keys, others)


@pytest.fixture
def acts(aver_home: Path, tmp_path: Path) -> Iterator[Acts]:
    prepare_home(aver_home)
    with open_acts(aver_home, tmp_path / "work") as opened:
        yield opened


def judge(data: bytes, keys: list[Any]) -> Verdict:
    return aver.verify(data, keys=keys)


# --- honest files


@pytest.mark.parametrize("sort", ["allowed", "confirmed", "committed later"])
def test_an_act_holds_by_public_keys_alone(written: Written, sort: str) -> None:
    verdict = judge(written.files[sort], written.keys)
    assert verdict.status == "verified", verdict.to_dict()
    for check in ("schema", "content", "signature", "blobs", "parts", "decisions", "evidence", "effects"):
        assert verdict.check(check).status == "passed"
    assert not verdict.check("links").matters


@pytest.mark.parametrize("sort", ["asked", "open"])
def test_a_file_without_a_commit_cannot_show_that_there_was_none(written: Written, sort: str) -> None:
    verdict = judge(written.files[sort], written.keys)
    assert verdict.status == "qualified", verdict.to_dict()
    assert verdict.check("evidence").status == "passed"
    assert "the file has no COMMIT" in verdict.check("effects").reason


@pytest.mark.parametrize(
    ("left_out", "words"),
    [({"act.commit", "act.outcome"}, "the file has no COMMIT"), ({"act.outcome"}, "no outcome of its COMMIT")],
)
def test_records_that_were_cut_off_the_end_are_named(written: Written, left_out: set[str], words: str) -> None:
    document = json.loads(written.files["allowed"])
    kept = [
        record
        for record in document["records"]
        if json.loads(record["canonical"])["context"]["environment"]["aver"]["kind"] not in left_out
    ]
    texts = " ".join(record["canonical"] for record in kept)
    document["records"] = kept
    document["blobs"] = {digest: blob for digest, blob in document["blobs"].items() if digest in texts}
    verdict = judge(dump_document(document), written.keys)
    assert verdict.status == "qualified", verdict.to_dict()
    assert words in str([each.to_dict() for each in verdict.checks])


def test_what_a_file_cannot_show_is_named(written: Written) -> None:
    verdict = judge(written.files["delegated"], written.keys)
    assert (verdict.status, verdict.check("evidence").status) == ("qualified", "passed")
    assert "revoked delegations are not here" in verdict.check("delegation").reason
    # A refusal has no evidence that attests the session's past.
    verdict = judge(written.files["refused"], written.keys)
    assert verdict.status == "qualified"
    assert "the decisions before them" in verdict.check("decisions").reason
    verdict = judge(written.files["allowed"], written.others)
    assert (verdict.status, verdict.check("evidence").status) == ("qualified", "not_checked")


def test_the_keys_in_a_file_are_not_trusted(written: Written) -> None:
    """A file that somebody made up with keys of his own names them all, and still proves nothing."""
    assert json.loads(written.files["allowed"])["keys"]["policy0"]
    stranger = SeedSigner.generate().public
    verdict = judge(written.files["allowed"], [stranger])
    assert (verdict.status, verdict.integrity, verdict.held) == ("qualified", "unsigned", 0)
    assert {one.code for one in verdict.findings if one.check == "signature"} == {"UNKNOWN_SIGNER"}


def test_an_act_is_found_by_any_of_its_names(acts: Acts) -> None:
    ledger, action_id = acts.ledger, acts.ids["allowed"]
    expected = build_act_file(ledger, action_id)
    assert expected[0] == action_id
    names = [acts.preview("allowed").tx_id, acts.record("allowed", "act.outcome").id]
    assert {build_act_file(ledger, name) for name in names} == {expected}
    for name in ("a_nothing", "tx_nothing", next(ledger.read("gate.s1")).id):
        with pytest.raises(NotFound, match="there is no act"):
            build_act_file(ledger, name)


def test_a_file_holds_no_more_than_its_act(written: Written) -> None:
    """Of other acts in the same session nothing is in it, but the decision by which a person was asked."""
    for sort in SORTS:
        found = parse_act_file(written.files[sort])
        results = [
            record.to_dict()["outcome"]["result"] for record in found.records if record.kind == "approval.request"
        ]
        asked = {result["gate_id"] for result in results}
        for record in found.records:
            content = record.to_dict()
            if record.chain == "gate.s1" and content["outcome"]["result"]["gate_id"] in asked:
                assert content["outcome"]["result"]["decision"] == "human_review"
            elif str(record.chain).partition(".")[0] in ("gate", "gateway"):
                assert record.to_dict()["trigger"]["correlation_id"] == found.action_id
    domains = {str(record.chain).partition(".")[0] for record in parse_act_file(written.files["allowed"]).records}
    assert domains == {"gate", "gateway"}


def test_records_of_a_file_can_be_shown(written: Written, tmp_path: Path) -> None:
    path = tmp_path / "act.json"
    path.write_bytes(written.files["confirmed"])
    assert [record.kind for record in resolve(path).read()][-3:] == ["act.preview", "act.commit", "act.outcome"]


# --- changed files


def flip(data: bytes, place: int) -> bytes:
    changed = bytearray(data)
    changed[place] ^= 1
    return bytes(changed)


def require_found(data: bytes, keys: list[Any]) -> None:
    """A changed file fails with a code and a place, or is no file of an act any more."""
    try:
        verdict = judge(data, keys)
    except BadInput:
        return
    assert verdict.status == "failed", data[:200]
    assert verdict.first_bad is not None
    assert verdict.first_bad.place.source or verdict.first_bad.place.chain


@pytest.mark.parametrize("sort", ["confirmed", "delegated"])
def test_some_changed_bytes_are_found(written: Written, sort: str) -> None:
    data = written.files[sort]
    for place in random.Random(sort).sample(range(len(data)), 40):
        require_found(flip(data, place), written.keys)


PARTS = 4
BYTES_APART = 16
"""A run changes every 16th byte, from another one on each time: runs together change every byte."""


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("sort", ["confirmed", "delegated"])
def test_every_changed_byte_is_found(written: Written, sort: str, part: int) -> None:
    data = written.files[sort]
    first = int(os.environ.get("AVER_TEST_FIRST_BYTE") or random.randrange(BYTES_APART))
    print(f"AVER_TEST_FIRST_BYTE={first} repeats this run")
    for place in range(first + part * BYTES_APART, len(data), PARTS * BYTES_APART):
        require_found(flip(data, place), written.keys)


Change = Callable[[dict[str, Any]], None]


def set_key(name: str, key: str) -> Change:
    return lambda document: document["keys"].__setitem__(name, [{"public_key": key, "public_key_pq": ""}])


def drop_record(kind: str) -> Change:
    def change(document: dict[str, Any]) -> None:
        records = document["records"]
        records[:] = [one for one in records if f'"kind":"{kind}"' not in one["canonical"]]

    return change


def drop_blob(document: dict[str, Any]) -> None:
    del document["blobs"][next(iter(document["blobs"]))]


def add_blob(document: dict[str, Any]) -> None:
    document["blobs"][hashlib.sha256(b"more").hexdigest()] = {"text": "more"}


def rename_chain(document: dict[str, Any]) -> None:
    for record in document["records"]:
        record["chain"] = record["chain"].replace("gateway.s1", "gateway.s2")


CHANGES: dict[str, tuple[Change, str]] = {
    "another action_id": (lambda document: document.update(action_id="a_other"), "SCHEMA_INVALID"),
    "another version": (lambda document: document.update(act_file=2), "SCHEMA_INVALID"),
    "true as the version": (lambda document: document.update(act_file=True), "SCHEMA_INVALID"),
    "a further key": (lambda document: document.update(more=1), "SCHEMA_INVALID"),
    "no records": (lambda document: document.update(records=[]), "SCHEMA_INVALID"),
    "another tenant": (lambda document: document["approved_in"].update(tenant="other"), "SCHEMA_INVALID"),
    "another ledger": (lambda document: document["approved_in"].update(ledger="other"), "CHAIN_IDENTITY"),
    "nobody was asked": (lambda document: document.update(approved_in=None), "SCHEMA_INVALID"),
    "a record twice": (lambda document: document["records"].append(document["records"][-1]), "SEQUENCE_GAP"),
    "another order": (lambda document: document["records"].reverse(), "SEQUENCE_GAP"),
    "no preview": (drop_record("act.preview"), "ARTIFACT_MISSING"),
    "no commit": (drop_record("act.commit"), "ARTIFACT_MISSING"),
    "no decision": (drop_record("gate.decision"), "SCHEMA_INVALID"),
    "no use of the approval": (drop_record("approval.use"), "ARTIFACT_MISSING"),
    "no roster": (drop_record("key.create"), "ARTIFACT_MISSING"),
    "another chain": (rename_chain, "EVIDENCE_INVALID"),
    "a blob less": (drop_blob, "ARTIFACT_MISSING"),
    "a blob more": (add_blob, "UNLISTED_FILE"),
    "another key of server 0": (set_key("policy0", SeedSigner.generate().public.ed25519), "INDEX_MISMATCH"),
    "the key of the principal as that of server 1": (set_key("policy1", PARTNER.public.ed25519), "INDEX_MISMATCH"),
    "a sealing key that sealed nothing": (set_key("seal", PARTNER.public.ed25519), "INDEX_MISMATCH"),
    "a principal where there is none": (set_key("principals", PARTNER.public.ed25519), "INDEX_MISMATCH"),
    "no keys": (lambda document: document["keys"].update(seal=[]), "INDEX_MISMATCH"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_is_found_with_its_code(written: Written, what: str) -> None:
    change, code = CHANGES[what]
    document = json.loads(written.files["confirmed"])
    change(document)
    verdict = judge(dump_document(document), written.keys)
    assert verdict.status == "failed", verdict.to_dict()
    assert code in {one.code for one in verdict.findings if one.status == "failed"}, verdict.findings


@pytest.mark.parametrize(
    "rewrite",
    [
        lambda data: data + b"\n",
        lambda data: data[:-1],
        lambda data: b"\xef\xbb\xbf" + data,
        lambda data: json.dumps(json.loads(data)).encode(),
        lambda data: data.replace(b'"act_file": 1', b'"act_file": 1.0'),
        lambda data: data.replace(b'"act_file": 1,', b'"act_file": 1,\n  "act_file": 1,'),
        lambda data: data.replace(b'"chain": "gate.s1"', b'"chain": "\\u0067ate.s1"'),
        lambda data: data[: len(data) // 2],
    ],
    ids=["line feed", "no line feed", "mark", "one line", "float", "twice", "escape", "half"],
)
def test_there_is_one_way_to_write_it(written: Written, rewrite: Callable[[bytes], bytes]) -> None:
    verdict = judge(rewrite(written.files["allowed"]), written.keys)
    assert verdict.status == "failed"
    assert {one.code for one in verdict.findings} & {"SCHEMA_INVALID", "DUPLICATE_KEY"}


def test_base64_has_one_form(written: Written) -> None:
    document = json.loads(written.files["allowed"])
    digest = next(iter(document["blobs"]))
    data = document["blobs"][digest]["text"].encode()
    written_as = base64.b64encode(data).decode().rstrip("=")
    document["blobs"][digest] = {"base64": written_as + "!"}
    with pytest.raises(BadInput, match="neither UTF-8 text nor base64"):
        parse_act_file(dump_document(document))
    document["blobs"][digest] = {"text": "a", "base64": "YQ=="}
    with pytest.raises(BadInput, match="either text or base64"):
        parse_act_file(dump_document(document))


def test_a_file_that_is_too_large_is_not_read() -> None:
    with pytest.raises(BadInput, match="larger than"):
        parse_act_file(b" " * (ACT_FILE_MAX + 1))


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_noise_is_no_file(raw: bytes) -> None:
    with pytest.raises(BadInput):
        parse_act_file(raw)


def test_a_forged_commit_is_found_in_its_file(acts: Acts) -> None:
    """The holder of the ledger's key seals a commit with other bits, and exports it."""

    def change(content: dict[str, Any]) -> None:
        content["outcome"]["result"]["commit"]["policy1"]["outputs"]["allow_pre"] ^= 1

    preview_act(acts, "h.txt")
    forged = forge_commit(acts, change=change)
    forge_outcome(acts, "open", forged.id)
    verdict = judge(build_act_file(acts.ledger, acts.ids["open"])[1], acts.keys)
    assert verdict.status == "failed"
    assert ("evidence", "gateway.s1", forged.sequence) in {
        (one.check, one.place.chain, one.place.sequence) for one in verdict.findings
    }

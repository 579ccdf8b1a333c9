"""A signed document is good only in its maker's bytes: every other way to write the same content is refused."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import aver
from aver.actions.run_files import HEAD_PURPOSE, LISTED_MEMBERS, FileDigest, Manifest
from aver.capsule.json_document import dump_document
from aver.errors import BadInput, NotExact
from aver.keys import (
    Ring,
    SeedSigner,
    Statement,
    check_statement,
    decode_statement,
    dump_statement,
    encode_statement,
    read_statement_file,
    sign_statement,
)
from aver.ledger import Ledger
from aver.ledger.bundle import export_bundle
from aver.ledger.bundle.head_file import check_signers, read_head
from aver.ledger.checkpoint import Checkpoint, make_checkpoint, order_checkpoint
from aver.ledger.checkpoint_files import append_checkpoint, read_checkpoints, to_checkpoint_line
from aver.ledger.head import Head
from aver.sessions.report_file import dump_block
from aver.verdict import Tally
from support.agents import sample_session as sample
from support.reports import replace_statement, statement_in, write_report
from support.rewritten_json import rewrite

SIGNER = SeedSigner(bytes(range(32)))
KNOWN = Ring(known={SIGNER.fingerprint: SIGNER.public})

ID = "s9 </SCRIPT ><h1>AUDITED AND APPROVED</h1><plaintext>"
"""A session's id, which the reported agent chooses. A browser ends a block at `</SCRIPT >`, too."""


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with aver.open_ledger(tmp_path / "ledger.db", home=tmp_path / "home", signer=SIGNER) as opened:
        sample.seal(opened, tmp_path / "t", [sample.prompt("Add a/b <c>"), sample.answer("Done.")], session=ID)
        yield opened


@pytest.fixture
def report(ledger: Ledger, tmp_path: Path) -> bytes:
    return write_report(ledger, tmp_path / "report.html")


def judge(data: bytes, path: Path) -> aver.Verdict:
    path.write_bytes(data)
    return aver.verify(path, home=path.parent / "home", keys=[SIGNER.public])


# --- reports


@pytest.mark.parametrize("change", [b"</SCRIPT ><h1>", b"<plaintext>", b"</script\t>", b"<"])
def test_nothing_from_outside_becomes_markup_of_a_report(report: bytes, tmp_path: Path, change: bytes) -> None:
    assert judge(report, tmp_path / "r.html").status == "verified"
    statement = statement_in(report)
    assert b"<" not in statement
    changed = statement.replace(change.replace(b"<", rb"\u003c"), change)
    if changed == statement:  # It is not in the id.
        changed = statement.replace(rb"\u003cplaintext>", change)
        assert judge(replace_statement(report, changed), tmp_path / "r.html").status == "failed"
        return
    assert json.loads(changed) == json.loads(statement)
    verdict = judge(replace_statement(report, changed), tmp_path / "r.html")
    found = {(one.check, one.code, str(one.place)) for one in verdict.findings if one.status == "failed"}
    assert found == {("report", "NOT_CANONICAL", "statement")}


def test_other_writings_of_the_statement_of_a_report_fail(report: bytes, tmp_path: Path) -> None:
    statement = statement_in(report)
    tried = 0
    for name, other in rewrite(statement):
        if b"</script>" not in other:
            assert judge(replace_statement(report, other), tmp_path / "r.html").status == "failed", name
            tried += 1
    assert tried > 12


def test_the_heads_of_older_reports_stand_in_the_order_of_their_chains(ledger: Ledger, tmp_path: Path) -> None:
    sample.seal(ledger, tmp_path / "u", [sample.prompt("More")], session="z")
    report = write_report(ledger, tmp_path / "report.html")
    statement = Statement.from_dict(json.loads(statement_in(report)))
    names = list(statement.content["heads"])
    assert names == sorted(names)
    later_first = (names[1], names[0], *names[2:])
    for order, status in {later_first: "verified", (*reversed(names),): "failed"}.items():
        changed = replace_statement(report, dump_block(statement, order))
        assert judge(changed, tmp_path / "r.html").status == status


def flip(report: bytes, places: list[int], path: Path) -> None:
    """Change a byte at each place, one at a time. Nothing may hold, nor may it be taken for another thing."""
    rng = random.Random(32)
    for at in places:
        changed = report[:at] + bytes([report[at] ^ 1 << rng.randrange(8)]) + report[at + 1 :]
        assert judge(changed, path).status == "failed", at


def test_a_report_with_one_byte_changed_fails(report: bytes, tmp_path: Path) -> None:
    rng, start = random.Random(32), report.index(statement_in(report))
    signer = report.index(b'"by":"', start) + 6
    mark = report.index(b'<meta name="aver"')
    places = [0, mark + 20, signer, len(report) - 1, *(rng.randrange(len(report)) for _ in range(4))]
    flip(report, places, tmp_path / "r.html")


@pytest.mark.long
def test_a_report_with_any_byte_changed_fails(report: bytes, tmp_path: Path) -> None:
    flip(report, list(range(len(report))), tmp_path / "r.html")


def test_a_signature_under_another_name_fails(report: bytes, tmp_path: Path) -> None:
    """A name that nobody knows would only be a signer whose key is not here. But the reader has the real signer's."""
    changed = report.replace(b'"by":"' + SIGNER.fingerprint.encode(), b'"by":"f' + SIGNER.fingerprint[1:].encode())
    assert changed != report
    assert judge(changed, tmp_path / "r.html").status == "failed"
    tally = Tally()
    stated = Statement.from_dict(json.loads(statement_in(changed)))
    check_signers(Checkpoint(stated, "", "", "", ()), KNOWN, tally, check="report")
    assert ("failed", "SIG_INVALID") in {(one.status, one.code) for one in tally.findings}


# --- files and texts


@pytest.fixture
def statement() -> Statement:
    content = {"v": 1, "agent": "agent:carol", "text": "a/b <c> é \x1f", "nested": {"b": [1, 2], "a": {"y": 1, "x": 2}}}
    return sign_statement("protocol-join", content, [SIGNER])


def is_refused(read: Callable[[bytes], Any], raw: bytes) -> bool:
    try:
        found = read(raw)
    except BadInput:
        return True
    # `1.0` is another content than `1`: the signature does not cover it.
    return isinstance(found, Statement) and check_statement(found, KNOWN)[0].outcome == "invalid"


def check_all(raw: bytes, read: Callable[[bytes], Any]) -> None:
    """`read` takes the document, and no other writing of it."""
    read(raw)
    tried = 0
    for name, other in rewrite(raw):
        assert is_refused(read, other), name
        tried += 1
    assert tried > 10


def test_a_statement_in_a_file(statement: Statement) -> None:
    check_all(dump_statement(statement), lambda raw: read_statement_file(raw, "it"))
    with pytest.raises(NotExact, match="byte for byte"):
        read_statement_file(json.dumps(statement.to_dict()).encode(), "it")


def test_a_statement_as_a_text(statement: Statement) -> None:
    def read(raw: bytes) -> Statement:
        return decode_statement(base64.urlsafe_b64encode(raw).decode().rstrip("="), "it")

    text = encode_statement(statement)
    check_all(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), read)
    others = [text + "=", text + "\n", text[:5] + "\n" + text[5:], text[:5] + "!" + text[5:], text + "é", text[:-1]]
    last = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    others += [text[:-1] + letter for letter in last if letter != text[-1]]
    for other in others:
        with pytest.raises(BadInput):
            decode_statement(other, "it")


def test_the_heads_of_a_bundle(ledger: Ledger, tmp_path: Path) -> None:
    bundle = export_bundle(ledger, tmp_path / "bundle").path

    def read(raw: bytes) -> None:
        (bundle / "head.json").write_bytes(raw)
        assert read_head(bundle) is not None

    check_all((bundle / "head.json").read_bytes(), read)
    verdict = aver.verify(bundle, home=tmp_path / "home", keys=[SIGNER.public])
    assert (verdict.status, verdict.check("head").code) == ("failed", "NOT_CANONICAL")


@pytest.mark.parametrize("form", ["to a file", "to standard output", "to a terminal"])
def test_a_checkpoint(ledger: Ledger, tmp_path: Path, form: str) -> None:
    made = make_checkpoint(ledger)
    raw = {
        "to a file": to_checkpoint_line(made),
        "to standard output": json.dumps(order_checkpoint(made)).encode() + b"\n",
        "to a terminal": json.dumps(order_checkpoint(made), indent=2).encode() + b"\n",
    }[form]
    path = tmp_path / "checkpoint.json"

    def read(written: bytes) -> None:
        path.write_bytes(written)
        assert len(read_checkpoints(path, ledger.id)) == 1

    read(raw.rstrip(b"\n"))  # Such files may be joined: lines may end anyhow.
    read(raw + b"\n")
    others = [(name, other) for name, other in rewrite(raw) if other.strip(b"\n") != raw.strip(b"\n")]
    for name, other in others:
        assert is_refused(read, other), name
    assert len(others) > 10


def test_a_line_of_a_history(ledger: Ledger, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    assert append_checkpoint(tmp_path, ledger) is not None
    path = next((tmp_path / "checkpoints").iterdir())
    sealed = path.read_bytes()
    path.write_bytes(sealed.replace(b'"v":1', b'"v": 1', 1))
    with pytest.raises(NotExact, match="byte for byte"):
        read_checkpoints(tmp_path, ledger.id)
    assert aver.verify(path, home=tmp_path / "home", keys=[SIGNER.public]).status == "failed"


def test_the_manifest_and_the_head_of_a_run() -> None:
    files = {name: FileDigest("2" * 64, 5) for name in LISTED_MEMBERS}
    manifest = Manifest("r1", Head("l", "t", "actions.r1", 3, "0" * 64), "now", 1, "1" * 64, None, True, files)
    raw = dump_document(manifest.to_dict())
    assert Manifest.from_bytes(raw) == manifest
    # The head of the run signs the digest of these bytes, and so their numbers.
    others = [(name, other) for name, other in rewrite(raw) if "number" not in name]
    assert [name for name, other in others if not is_refused(Manifest.from_bytes, other)] == []
    head = sign_statement(HEAD_PURPOSE, {"v": 1, "run_id": "r1", "count": 3}, [SIGNER])
    check_all(dump_statement(head), lambda raw: read_statement_file(raw, "head"))

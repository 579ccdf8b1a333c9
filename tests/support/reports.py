"""Reports of sessions, and changes of them that a verifier must find."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from aver import Capsule, clock, open_ledger
from aver.capsule.sealed import hold_signer
from aver.keys import Ring, SeedSigner, sign_statement
from aver.ledger import Ledger
from aver.sessions.report import make_report
from aver.sessions.report_file import CLOSING, FILE_OPENING, STATEMENT_OPENING
from aver.sessions.sessions import find_sessions
from support.agents import sample_session as sample


def write_report(ledger: Ledger, out: Path) -> bytes:
    """A report of all sessions of a ledger."""
    make_report(ledger, find_sessions(ledger), out)
    return out.read_bytes()


def replace_statement(data: bytes, statement: bytes) -> bytes:
    before, _, rest = data.partition(STATEMENT_OPENING.encode())
    _, closing, after = rest.partition(CLOSING.encode())
    return before + STATEMENT_OPENING.encode() + statement + closing + after


def statement_in(data: bytes) -> bytes:
    return data.partition(STATEMENT_OPENING.encode())[2].partition(CLOSING.encode())[0]


def sign_again(
    data: bytes, signer: SeedSigner, change: Callable[[dict[str, Any]], None] = lambda content: None
) -> bytes:
    """The report as somebody with a key would sign it after a change of the page, or of what the statement says."""
    content = json.loads(statement_in(data))["content"]
    content["sha256"] = hashlib.sha256(replace_statement(data, b"")).hexdigest()
    change(content)
    statement = sign_statement("report", content, (signer,)).to_dict()
    return replace_statement(data, orjson.dumps(statement).replace(b"<", rb"\u003c"))


def report_by_stolen_key(folder: Path) -> tuple[bytes, Ring]:
    """A report of what came after a rotation, signed by the old key, and the ring of the owner in `folder / "home"`.

    Its text is changed, and its time is from before the rotation.
    """
    with open_ledger(home=folder / "home") as ledger:
        ledger.append("demo.first", Capsule(type="tool", trigger={"source": "test", "request": "run"}))
        with hold_signer(ledger.attesting_signer()) as stolen:
            assert isinstance(stolen, SeedSigner)
        before = clock.now()
        ledger.keys.rotate("ledger")
        ledger.record_keys()
        sample.rich(ledger, folder / "work")
        report = write_report(ledger, folder / "report.html").replace(b"half up", b"half down")
        return sign_again(report, stolen, lambda content: content.update(made_at=before)), ledger.keys.ring()


def change_file(data: bytes, name: str, change: Callable[[Any], None]) -> bytes:
    """The report with one JSON file of its bundle changed."""
    opening = f'{FILE_OPENING}{name}">'.encode()
    before, _, rest = data.partition(opening)
    encoded, closing, after = rest.partition(CLOSING.encode())
    value = json.loads(base64.b64decode(encoded))
    change(value)
    return before + opening + base64.b64encode(json.dumps(value).encode()) + closing + after


def drop_file(data: bytes, name: str) -> bytes:
    before, _, rest = data.partition(f'{FILE_OPENING}{name}">'.encode())
    return before + rest.partition(f"{CLOSING}\n".encode())[2]


MAIN_FILE = f"claude-code.{sample.SESSION}.json"

TAMPERED: dict[str, Callable[[bytes], bytes]] = {
    "honest": lambda data: data,
    "a text of the page": lambda data: data.replace(b"Make totals round half up", b"Make totals round half down"),
    "a style": lambda data: data.replace(b"<style>", b"<style>.failure{display:none}", 1),
    "a comment at the end": lambda data: data + b"<!-- -->",
    "a dropped record": lambda data: change_file(data, MAIN_FILE, lambda chain: chain["capsules"].pop(2)),
    "a cut end": lambda data: change_file(data, MAIN_FILE, lambda chain: chain["capsules"].pop()),
    "a changed record": lambda data: change_file(
        data, MAIN_FILE, lambda chain: chain["capsules"][1].update(signed_at="2020-01-01T00:00:00+00:00")
    ),
    "a dropped chain": lambda data: drop_file(data, f"claude-code.{sample.SESSION}.kid.json"),
    "no index": lambda data: drop_file(data, "index.json"),
    "no heads": lambda data: drop_file(data, "head.json"),
    "no statement": lambda data: replace_statement(data, b""),
    "a statement that is no JSON": lambda data: replace_statement(data, b"{"),
    "another subject": lambda data: replace_statement(
        data, statement_in(data).replace(b"session claude-code", b"session somebody-else")
    ),
    "another verdict": lambda data: replace_statement(
        data, re.sub(rb'"status":"[a-z]+"', b'"status":"empty"', statement_in(data))
    ),
    "an unknown member": lambda data: replace_statement(
        data, statement_in(data).replace(b'"content":{', b'"content":{"note":"x",')
    ),
    "a checkpoint as statement": lambda data: replace_statement(
        data, statement_in(data).replace(b'"purpose":"report"', b'"purpose":"checkpoint"')
    ),
    "two statements": lambda data: data + STATEMENT_OPENING.encode() + b"{}" + CLOSING.encode(),
    "a file twice": lambda data: data + f'{FILE_OPENING}index.json">e30={CLOSING}'.encode(),
    "a file outside": lambda data: data + f'{FILE_OPENING}../x.json">e30={CLOSING}'.encode(),
    "a file in the place of the blobs": lambda data: (
        data + f'{FILE_OPENING}blobs">e30={CLOSING}{FILE_OPENING}blobs/{"0" * 64}">e30={CLOSING}'.encode()
    ),
    "a file that is no base64": lambda data: data + f'{FILE_OPENING}x.json">e3{CLOSING}'.encode(),
    "an open block": lambda data: (
        data[: data.index(b"</body>")].rpartition(CLOSING.encode())[0].rpartition(CLOSING.encode())[0]
    ),
}
"""Changes of a report by somebody who has no key. Each but the first must fail."""

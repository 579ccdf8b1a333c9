"""The conformance corpus, the published vectors and tampered bundles, judged by the shipped page in a real Chromium.

The script of the page is one function, which is also the text of its workers. A test starts a worker from it: as it
is, to open and verify files, or with one more line that hands out the verifier's own functions.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aver import Ledger
from aver.keys import Ring
from aver.ledger.bundle import export_bundle
from support.browser_pages import PAGE, key_of
from support.bundles import change_chain, change_index
from support.corpus_cases import CORPUS, Case, read_corpus, read_vectors
from support.node import ROOT, find_node
from support.page_cases import Cases
from support.page_verdicts import VERIFIER, compare
from support.runs import make_sealed_run

pytestmark = [pytest.mark.browser, pytest.mark.long]

SCRIPT = PAGE.parent / "explorer" / "app.js"
RUNNER = ROOT / "web" / "tests" / "corpus_cases.mjs"
EXPORTED = (
    *("BadInput", "ChainJudge", "Passkey", "PublicKey", "Ring", "Sealed", "canonicalJson", "conclude", "decodeUtf8"),
    *("holdsByPoints", "openEd25519", "passkeyProblem", "plainRules", "readJson", "readRecord", "sealedFromJson"),
    *("splitOffKeys", "statementBytes"),
)

START = """async (text) => {
  const url = URL.createObjectURL(new Blob([text], {type: "text/javascript"}));
  window.worker = new Worker(url);
  window.waiting = new Map();
  window.ask = (request) => new Promise((resolve) => {
    const id = window.waiting.size + 1;
    window.waiting.set(id, resolve);
    window.worker.postMessage({...request, id});
  });
  window.worker.onmessage = ({data}) => {
    if (data.type === "done" || data.type === "failed") window.waiting.get(data.id)(data);
  };
}"""

JUDGE = """async ({name, files, isFolder, keys}) => {
  const decode = (text) => new Blob([Uint8Array.from(atob(text), (one) => one.charCodeAt(0))]);
  const thing = {name, isFolder, files: files.map(([path, text]) => [path, decode(text)])};
  const opened = await window.ask({type: "open", thing});
  if (opened.type === "failed") return {error: opened.words};
  const answer = await window.ask({type: "verify", keys, remembered: [], chains: null});
  if (answer.type === "failed") return {error: answer.words};
  const {verdict} = answer.result;
  const matters = verdict.checks.filter((check) => check.matters).map((check) => check.name);
  return JSON.stringify({verdict, matters}, (_, value) => (typeof value === "bigint" ? Number(value) : value));
}"""
"""What the page says to its worker when the reader chooses a thing."""


@pytest.fixture(scope="module")
def bare_page(chromium: Any) -> Iterator[Any]:
    """The page from a file. Its policy allows no worker of others, so it is set aside for the test's own."""
    context = chromium.new_context(bypass_csp=True)
    context.set_default_timeout(90_000)
    opened = context.new_page()
    opened.goto(PAGE.as_uri())
    yield opened
    context.close()


def start_worker(page: Any, text: str) -> Any:
    with page.expect_worker() as started:
        page.evaluate(START, text)
    return started.value


def script_of_worker(last_line: str = "") -> str:
    """The shipped function, as the page gives it to its workers."""
    body = SCRIPT.read_text().partition("\naverExplorer();")[0]
    assert body.startswith("function averExplorer() {")
    assert body.endswith("}")
    return f"self.shipped = ({body[:-1]}{last_line}}})();"


def answer_in_node(cases: list[Case], folder: Path) -> list[Any]:
    (folder / "cases.json").write_text(json.dumps([case for _, case, _ in cases]))
    command = [find_node(), str(ROOT / "web" / "tests" / "judge_corpus.mjs"), str(VERIFIER), str(folder / "cases.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


def answer_in_browser(page: Any, cases: list[Case]) -> list[Any]:
    worker = start_worker(page, script_of_worker(f"return {{ {', '.join(EXPORTED)} }};"))
    runner = re.sub(r"^export ", "", RUNNER.read_text(), flags=re.MULTILINE)
    given = json.dumps([case for _, case, _ in cases])
    return list(
        worker.evaluate(f"async (given) => {{ {runner}; return answerCases(self.shipped, JSON.parse(given)); }}", given)
    )


def expect_answers(cases: list[Case], answers: list[Any]) -> None:
    wrong = [
        (name, case["sort"], expected, answer)
        for (name, case, expected), answer in zip(cases, answers, strict=True)
        if answer != expected
    ]
    assert wrong == []


def test_corpus(bare_page: Any, tmp_path: Path) -> None:
    cases = list(read_corpus())
    assert len(cases) > 400
    expect_answers(cases, answer_in_node(cases, tmp_path))
    expect_answers(cases, answer_in_browser(bare_page, cases))


def test_published_vectors(bare_page: Any, vectors: Path, tmp_path: Path) -> None:
    cases = list(read_vectors(vectors))
    assert len(cases) == 35
    expect_answers(cases, answer_in_node(cases, tmp_path))
    expect_answers(cases, answer_in_browser(bare_page, cases))


# --- whole things, by the script as it is


def open_ring(keys: list[str]) -> Ring:
    """Keys as the page has them: a signer who is not among them is unknown, and not wrong."""
    return dataclasses.replace(Ring.pin(keys), closed=False)


def read_files(thing: Path) -> list[list[str]]:
    paths = sorted(path for path in thing.rglob("*") if path.is_file()) if thing.is_dir() else [thing]
    base = thing if thing.is_dir() else thing.parent
    return [[str(path.relative_to(base)), base64.b64encode(path.read_bytes()).decode()] for path in paths]


def expect_agreement(page: Any, directory: Path, keys: list[str]) -> int:
    """Hold the page's verdicts to those that Aver gave, and return how many there are."""
    pinned = [{"publicKey": key, "publicKeyPq": ""} for key in keys]
    compared = 0
    for folder in sorted(directory.iterdir()):
        if not (folder / "case.json").exists():
            continue
        case = json.loads((folder / "case.json").read_text())
        thing = folder / "thing" / case["thing"]
        given = {"name": thing.name, "files": read_files(thing), "isFolder": thing.is_dir(), "keys": pinned}
        answer = page.evaluate(JUDGE, given)
        assert isinstance(answer, str), (case["test"], answer)
        assert compare(case, json.loads(answer)) == [], case["test"]
        compared += 1
    return compared


def test_files_of_the_corpus(bare_page: Any, tmp_path: Path) -> None:
    """Each sealed capsule of the corpus as a file that somebody opens, with the corpus's key pinned."""
    seals = json.loads((CORPUS / "seals.json").read_text())
    keys = [key["ed25519"] for key in seals["keys"]]
    cases = Cases(tmp_path)
    for one in seals["cases"]:
        cases.add_file("capsule.json", one["sealed"].encode(), open_ring(keys), one["name"])
    start_worker(bare_page, script_of_worker())
    assert expect_agreement(bare_page, tmp_path, keys) == cases.count > 30


def test_tampered_things(bare_page: Any, filled: Ledger, tmp_path: Path) -> None:
    keys = [key_of(filled)]
    cases = Cases(tmp_path / "cases")
    for name, tamper in {
        "honest": lambda bundle: None,
        "changed": change_chain(
            lambda records: records[1].update(canonical=records[1]["canonical"].replace("st", "ST"))
        ),
        "dropped": change_chain(lambda records: records.pop(1)),
        "swapped": change_chain(lambda records: records.reverse()),
        "cut": change_chain(lambda records: records.pop()),
        "no signature": change_chain(lambda records: records[0].update(signature="")),
        "a chain left out": change_index(lambda index: index["chains"].pop()),
        "another blob": lambda bundle: next((bundle / "blobs").iterdir()).write_bytes(b"y" * 50_000),
        "no head": lambda bundle: (bundle / "head.json").unlink(),
        "no meta chain": lambda bundle: (bundle / "meta.json").unlink(),
    }.items():
        bundle = cases.new_folder() / "bundle"
        export_bundle(filled, bundle)
        tamper(bundle)
        cases.add(bundle, open_ring(keys), name)
    start_worker(bare_page, script_of_worker())
    assert expect_agreement(bare_page, tmp_path / "cases", keys) == 10
    run = make_sealed_run(tmp_path / "made", actions=4, gated=(1, 2))
    runs = Cases(tmp_path / "runs")
    for at in (None, 100, len(run.cap) // 2, len(run.cap) - 9):
        data = run.cap if at is None else run.cap[:at] + bytes([run.cap[at] ^ 4]) + run.cap[at + 1 :]
        runs.add_file("run.cap", data, open_ring([run.key.ed25519]), f"byte {at}")
    assert expect_agreement(bare_page, tmp_path / "runs", [run.key.ed25519]) == 4

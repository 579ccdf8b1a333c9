"""The built page is that of its sources, and the verifier in it passes the conformance corpus."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from pathlib import Path

import pytest

import aver
from aver.agents.registry import load_known_agents
from aver.ledger.bundle.site import KNOWN_PAGES_FILE
from support.node import ROOT, WEB, find_node, run_page_sources
from support.page_verdicts import VERIFIER

PAGE = VERIFIER.parent
BUILD = ("build.ts", "lean_libraries.ts", "script_lines.ts", "package-lock.json")
SHARED = (
    "tests/conformance/corpus/ed25519.json",
    "src/aver/gateway/codes.json",
    "src/aver/verdict/codes.json",
)


def test_build_is_not_stale() -> None:
    """If this fails, run: make web"""
    listed = json.loads((PAGE / "sources.json").read_text())
    sources = [path for path in (WEB / "src").rglob("*") if path.is_file()]
    sources += [WEB / name for name in BUILD] + [ROOT / name for name in SHARED]
    names = {str(path.relative_to(ROOT)): hashlib.sha256(path.read_bytes()).hexdigest() for path in sources}
    assert names == listed


def test_pages_of_all_versions_are_known() -> None:
    """If this fails, run: make web. An entry of an earlier version never leaves the list: sites have its page."""
    known = json.loads((PAGE / KNOWN_PAGES_FILE).read_text())
    files = ("index.html", "explorer/app.js", "explorer/style.css")
    lines = [f"{hashlib.sha256((PAGE / name).read_bytes()).hexdigest()}  {name}\n" for name in files]
    assert known[aver.__version__] == hashlib.sha256("".join(lines).encode()).hexdigest()
    released = re.findall(r"^## \[([0-9.]+)\] - \d", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert known.keys() >= set(released)


def test_page_makes_no_markup_from_text() -> None:
    """Records hold markup of others. The sources have none of the ways to turn a text into markup or code."""
    for path in (WEB / "src").rglob("*.ts*"):
        text = path.read_text()
        for word in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "dangerouslySetInnerHTML",
            "eval(",
            "new Function",
        ):
            assert word not in text, f"{path.name} has {word}"


def test_page_asks_for_nothing_elsewhere() -> None:
    page = (PAGE / "index.html").read_text()
    policy = page.split('Content-Security-Policy" content="')[1].split('"')[0]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    assert "unsafe" not in policy
    assert "http" not in page.replace("http-equiv", "")


def test_page_is_small() -> None:
    import gzip

    files = ("index.html", "explorer/app.js", "explorer/style.css")
    sizes = [len(gzip.compress((PAGE / name).read_bytes(), 9)) for name in files]
    assert sum(sizes) <= 250_000


@pytest.mark.more
def test_corpus_in_node() -> None:
    done = subprocess.run(
        [find_node(), "--test", str(WEB / "tests" / "corpus.test.mjs")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:]


HASHES = """
const { sha3 } = await import(process.argv[1]);
const bytes = Uint8Array.from({ length: 700 }, (_, at) => (at * 167 + (at >> 3)) & 255);
const hashes = Array.from({ length: 681 }, (_, length) => Buffer.from(sha3(bytes.subarray(0, length))).toString("hex"));
console.log(JSON.stringify(hashes));
"""


def test_own_sha3_is_that_of_python() -> None:
    """Every length up to five blocks of 136 bytes. `web/tests/sha3.test.mjs` compares more with noble's."""
    command = [find_node(), "--input-type=module", "-e", HASHES, VERIFIER.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    data = bytes((at * 167 + (at >> 3)) & 255 for at in range(700))
    assert json.loads(done.stdout) == [hashlib.sha3_256(data[:length]).hexdigest() for length in range(681)]


LYING_PLATFORM = """
const [verifier, corpus, lie] = process.argv.slice(1);
const honest = SubtleCrypto.prototype.verify;
let asked = 0;
SubtleCrypto.prototype.verify = async function (...given) {
  const isValid = await honest.apply(this, given);
  return { accepts: true, refuses: false, once: asked++ === 2 ? !isValid : isValid, never: isValid }[lie];
};
const { openEd25519 } = await import(verifier);
const { default: { cases } } = await import(corpus, { with: { type: "json" } });
const ed25519 = await openEd25519();
await ed25519.prefetch(cases.map((one) => ({ publicHex: one.public, message: one.message, signature: one.signature })));
const wrong = cases.filter((one) => ed25519.verify(one.public, one.message, one.signature) !== one.valid);
console.log(JSON.stringify([asked > 0, ed25519.usesPlatform, wrong.map((one) => one.name)]));
"""


@pytest.mark.parametrize("lie", ["accepts", "refuses", "once", "never"])
def test_platform_with_one_wrong_answer_is_not_used(lie: str) -> None:
    """The verifier then computes with points, and every answer is right."""
    corpus = ROOT / "tests/conformance/corpus/ed25519.json"
    command = [find_node(), "--input-type=module", "-e", LYING_PLATFORM, VERIFIER.as_uri(), corpus.as_uri(), lie]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [True, lie == "never", []]


@pytest.mark.more
def test_build_is_the_same_to_the_byte(tmp_path: Path) -> None:
    run_page_sources("build.ts", tmp_path)
    for built in (path for path in tmp_path.rglob("*") if path.is_file()):
        assert built.read_bytes() == (PAGE / built.relative_to(tmp_path)).read_bytes(), built.name


def test_page_knows_the_arguments_that_describe_a_call_or_tell_what_it_does() -> None:
    listed = json.loads((WEB / "src/verify/approvals/tools.json").read_text())
    known = load_known_agents()
    for name, table in (("descriptive", known._descriptive), ("telling", known._telling)):
        found: dict[str, frozenset[str]] = {}
        for arguments, tools in listed[name].items():
            found |= {tool: found.get(tool, frozenset()).union(arguments.split()) for tool in tools.split()}
        assert found == table

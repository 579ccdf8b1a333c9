"""The page of a session: one file, nothing from outside, and nothing in a transcript becomes more than text."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from aver.html import PAGE_SCRIPT, PAGE_STYLE
from aver.ingest.contract import AgentEvent, Permission, build_unknown_event
from aver.ingest.seal import seal_event
from aver.ledger import Ledger, open_ledger
from aver.sessions.figures import compute_totals
from aver.sessions.html_page import TEXT_MAX, render_page
from aver.sessions.sessions import find_sessions
from aver.sessions.story import read_story
from support.agents import sample_session as sample

HOSTILE = [
    "<script>document.title='owned'</script>",
    "</script><script>x()</script>",
    "</style><style>body{display:none}</style>",
    '" onmouseover="x()" x="',
    "' onmouseover='x()' x='",
    "<img src=http://evil.example/x onerror=x()>",
    "</pre></details></li></ol></main><iframe src=javascript:x()></iframe>",
    "<!-- --><base href=http://evil.example/>",
    "<meta http-equiv=refresh content='0;url=http://evil.example/'>",
    "&lt;script&gt; &#60;b&#62; &amp;",
    "\x00\x1b[31m\x7f\x85\u202e\u2066\u200b\ufeff\u2028",
    "javascript:x()",
    "<a href='javascript:x()'>here</a>",
    "<svg/onload=x()>",
    "]]><![CDATA[",
]

ALLOWED_TAGS = {
    *("html", "head", "meta", "title", "style", "body", "header", "main", "footer", "section", "script"),
    *("h1", "h2", "p", "a", "code", "strong", "q", "span", "time", "pre", "details", "summary", "div"),
    *("ul", "ol", "li", "dl", "dt", "dd", "table", "thead", "tbody", "tr", "th", "td", "button", "input"),
}


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(tmp_path / "ledger.db", home=tmp_path / "home") as opened:
        yield opened


def page_of(ledger: Ledger) -> str:
    (chains,) = find_sessions(ledger)
    verdict = ledger.verify(chains.main)
    return "".join(render_page(compute_totals(ledger, chains), read_story(ledger, chains), verdict, ledger.blob))


class Read(HTMLParser):
    """What a browser would make of it, as far as matters here."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.misnested: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in ("meta", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.misnested.append(tag)

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in ("script", "style"):
            self.texts.append(data)

    @property
    def text(self) -> str:
        return "".join(self.texts)


def hostile_deeds(evil: str) -> list[AgentEvent]:
    return [
        sample.prompt(evil, title=evil),
        sample.command("c1", evil, evil, thinking=evil, text=evil, model=evil),
        sample.edit("c2", evil, f"--- a/{evil}\n+++ b/x\n@@ -1,1 +1,1 @@\n-{evil}\n+{evil}\n"),
        sample.call(
            "c3",
            evil or "x",
            summary=evil,
            ok=False,
            error=evil,
            arguments={evil: [evil]},
            result={evil: f"{evil}\n{evil}", "z": {evil: evil}},
            allowed=Permission(by="policy", reference=evil, denied=True),
        ),
        sample.call("c4", "Task", launched=evil, result=evil),
        build_unknown_event("6", evil, {evil: evil}, key="at-6"),
        sample.answer(evil),
    ]


@pytest.mark.sample(4)
@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_whatever_a_transcript_says_is_text(ledger: Ledger, tmp_path: Path, number: int) -> None:
    evil = HOSTILE[number]
    sample.seal(ledger, tmp_path, hostile_deeds(evil))
    sample.seal(ledger, tmp_path, [sample.with_agent(sample.prompt(evil, key="k"), evil)], agent="kid")
    seen = sample.command("c1", evil, "otherwise")
    seal_event(ledger, sample.TOOL, sample.SESSION, seen)
    text = page_of(ledger)
    read = Read(text)
    assert set(read.tags) <= ALLOWED_TAGS
    assert read.tags.count("script") == read.tags.count("style") == 1
    assert read.misnested == []
    assert read.open == []
    names = {name for _, name, _ in read.attributes}
    assert not {name for name in names if name.startswith("on")} | names & {"src", "style", "srcdoc", "action"}
    assert {value for _, name, value in read.attributes if name == "href"} == {"#story", "#verdict"}
    classes = {word for _, name, value in read.attributes if name == "class" for word in value.split()}
    assert all(re.fullmatch(r"[a-z_]+", word) for word in classes)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]", text)
    if evil.isprintable():
        assert read.text.count(evil) >= 10


def test_nothing_is_loaded_and_only_its_own_script_and_style_are_allowed(ledger: Ledger, tmp_path: Path) -> None:
    sample.rich(ledger, tmp_path)
    text = page_of(ledger)
    policy = next(value for tag, name, value in Read(text).attributes if tag == "meta" and "default-src" in value)
    parts = dict(part.split(" ", 1) for part in policy.split("; "))
    assert parts["default-src"] == "'none'"
    for name, own in (("script-src", PAGE_SCRIPT), ("style-src", PAGE_STYLE)):
        digest = base64.b64encode(hashlib.sha256(own.encode()).digest()).decode()
        assert parts[name] == f"'sha256-{digest}'"
        tag = name.removesuffix("-src")
        assert re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL) == [own]
    assert text.index("Content-Security-Policy") < text.index("<style>")
    assert "http://" not in text
    assert "https://" not in text


def test_every_capsule_is_named_with_its_signer(ledger: Ledger, tmp_path: Path) -> None:
    sample.rich(ledger, tmp_path)
    sample.asked_of_the_gate(ledger, "pytest -q")
    text = Read(page_of(ledger)).text
    (chains,) = find_sessions(ledger)
    for chain in chains.names:
        for record in ledger.read(chain):
            told = record.to_dict()["context"]["environment"]["aver"].get("key", "")
            if not told.endswith(":launched") and ":read:" not in told:
                assert record.hash[:16] in text, told
    signer = next(ledger.read(chains.names[0])).signed_by
    assert f"signed by {signer}" in text


def test_it_says_what_was_checked_and_what_not(ledger: Ledger, tmp_path: Path) -> None:
    sample.rich(ledger, tmp_path)
    (chains,) = find_sessions(ledger)
    verdict = ledger.verify(chains.main)
    text = Read(page_of(ledger)).text
    assert f"Verdict: {verdict.status}" in text
    for check in verdict.checks:
        assert f"{check.name}{check.status.replace('_', ' ')}{check.reason}" in text


def test_diffs_are_marked_line_by_line(ledger: Ledger, tmp_path: Path) -> None:
    diff = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n same\n--- looks like a name\n+++ so does this\n"
    sample.seal(ledger, tmp_path, [sample.edit("c1", "x", diff)])
    spans = re.findall(r'<span class="(file|place|same|added|removed)">([^<]*)</span>', page_of(ledger))
    assert spans == [
        ("file", "--- a/x"),
        ("file", "+++ b/x"),
        ("place", "@@ -1,2 +1,2 @@"),
        ("same", " same"),
        ("removed", "--- looks like a name"),
        ("added", "+++ so does this"),
    ]


def test_what_is_long_is_folded_and_what_is_very_long_is_cut(ledger: Ledger, tmp_path: Path) -> None:
    events = [
        sample.call("c1", "Read", result="short\n" * 3),
        sample.call("c2", "Read", result="long\n" * 500),
        sample.call("c3", "Read", result="x" * (TEXT_MAX + 5)),
    ]
    sample.seal(ledger, tmp_path, events)
    text = page_of(ledger)
    assert "output, 500 lines" in text
    assert "output, 3 lines" not in text
    digest = hashlib.sha256(b"x" * (TEXT_MAX + 5)).hexdigest()
    assert f"sha256 {digest}. aver show --full" in text
    assert len(text) < 2 * TEXT_MAX


def test_headings_and_labels_are_there(ledger: Ledger, tmp_path: Path) -> None:
    sample.rich(ledger, tmp_path)
    text = page_of(ledger)
    assert re.findall(r"<(h[1-6])", text) == ["h1", "h2", "h2"]
    for mark in re.findall(r'<span class="mark"[^>]*>', text):
        assert re.search(r'role="img" aria-label="[a-z ]+"', mark)
    assert '<html lang="en">' in text

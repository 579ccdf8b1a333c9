"""No page is lost, and no link leads nowhere."""

from __future__ import annotations

import re
from pathlib import Path

from support.doc_pages import DOCS, ROOT, pages
from support.many_cases import for_each

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"```.*?```|`[^`]*`", re.DOTALL)
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def links(page: Path) -> list[str]:
    return _LINK.findall(_CODE.sub("", page.read_text(encoding="utf-8")))


def anchors(page: Path) -> set[str]:
    """How Markdown viewers name headings: lower case, no punctuation, hyphens for spaces."""
    headings = _HEADING.findall(page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@for_each(pages())
def test_links_resolve(page: Path) -> None:
    for link in links(page):
        assert not link.startswith(("http:", "https:", "mailto:")), f"{link} leaves the repository"
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{page.name} links to {link}"
        assert target.is_relative_to(ROOT), f"{page.name} links to {link}"
        if anchor:
            assert anchor in anchors(target), f"{page.name} links to {link}"


def test_the_index_leads_to_every_page() -> None:
    index = DOCS / "README.md"
    reached, waiting = set(), [index]
    while waiting:
        page = waiting.pop()
        if page in reached or page.suffix != ".md":
            continue
        reached.add(page)
        if page in (index, DOCS / "decisions" / "README.md"):
            waiting += [(page.parent / link.partition("#")[0]).resolve() for link in links(page)]
    assert set(DOCS.rglob("*.md")) - reached == set()

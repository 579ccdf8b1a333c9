"""A browser for the tests of the page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support.browser_pages import launch_chromium, open_page


@pytest.fixture(params=["one thread", pytest.param("a crew", marks=pytest.mark.more)])
def judges(request: pytest.FixtureRequest) -> str:
    """Who judges the cases of a test: the built page by itself, and in the next tier its crew of workers, too."""
    return str(request.param)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with launch_chromium() as browser:
        yield browser


@pytest.fixture
def page(chromium: Any) -> Iterator[Any]:
    """A page that fails the test if it reports an error, opens a dialog, or asks another host for anything."""
    with open_page(chromium) as (opened, problems):
        yield opened
    # Every browser asks for a picture of the site by itself, and a live page notices that the test ended its server.
    harmless = ("404", "ERR_CONNECTION", "ERR_INCOMPLETE_CHUNKED_ENCODING")
    assert [problem for problem in problems if not any(words in problem for words in harmless)] == []


@pytest.fixture
def free_page(chromium: Any) -> Iterator[Any]:
    """A page whose errors are part of the test, such as requests to a server that has ended."""
    with open_page(chromium) as (opened, _):
        yield opened

"""The frameworks that Aver has adapters for are installed where their tests are run: none is skipped unseen."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

FRAMEWORKS = ("langchain", "langgraph.graph", "pydantic_ai", "agents", "claude_agent_sdk")


@pytest.mark.more
@pytest.mark.parametrize("name", FRAMEWORKS)
def test_the_framework_is_installed(name: str) -> None:
    found = find_spec(name)
    assert found is not None
    assert found.origin is not None, f"{name} is a folder, and no package: `make test-more` installs it"

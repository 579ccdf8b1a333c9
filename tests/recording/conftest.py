"""What tests of recording share: what was recorded, and a ledger that stops working and works again."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from aver import Ledger, open_ledger

CHAIN = "demo.audit"

Records = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def records(ledger: Ledger) -> Records:
    """The contents of the chain's records, in order; of one kind, if it is given."""

    def read(kind: str | None = None, chain: str = CHAIN) -> list[dict[str, Any]]:
        contents = [record.to_dict() for record in ledger.read(chain)] if chain in ledger.chains() else []
        return [one for one in contents if kind is None or kind_of(one) == kind]

    return read


def kind_of(content: dict[str, Any]) -> str:
    return str(content["context"]["environment"]["aver"]["kind"])


@pytest.fixture
def impatient(aver_home: Path) -> Iterator[Ledger]:
    """A ledger that does not wait long for its lock."""
    aver_home.mkdir(mode=0o700)
    (aver_home / "config.toml").write_text("lock_timeout = 0.05\n")
    with open_ledger() as opened:
        opened.append("demo.first", {"type": "tool"})
        yield opened


@pytest.fixture
def stuck(aver_home: Path) -> Callable[[], AbstractContextManager[None]]:
    """Within the context someone else holds the ledger's lock: nothing can be appended."""

    @contextmanager
    def held() -> Iterator[None]:
        handle = os.open(aver_home / "ledger.db.lock", os.O_RDWR | os.O_CREAT)
        fcntl.flock(handle, fcntl.LOCK_EX)
        try:
            yield
        finally:
            os.close(handle)

    return held

"""What the tests of bundles share: a ledger worth exporting, and ways to change what was exported."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson

from aver import Blob, Capsule, Ledger
from aver.ledger.bundle.layout import HEAD
from aver.ledger.meta_chain import sweep
from aver.verdict import Verdict

Expected = tuple[str, str | None, int | None]
"""Code, chain and sequence of the first bad place."""


def draft(request: str = "round half up", **more: Any) -> Capsule:
    return Capsule(type="tool", trigger={"source": "test", "request": request}, **more)


def fill(ledger: Ledger) -> None:
    """Three chains, one closed, one with a blob."""
    ledger.append_many("claude-code.one", [draft(f"\n  step {n} for ann@example.org\nmore") for n in range(4)])
    ledger.append_many("codex.two", [draft(f"step {n}") for n in range(3)])
    ledger.close_chain("claude-code.one")
    big = Blob(b"x" * 50_000, "text/x-log")
    ledger.append("claude-code.blob", draft(outcome={"status": "success", "result": big.reference}), blobs=[big])
    sweep(ledger)


def load(path: Path) -> Any:
    return json.loads(path.read_text())


def save(path: Path, value: Any) -> None:
    """Write a file of a bundle. Its signed heads are good only in the form that Aver writes."""
    if path.name == HEAD:
        path.write_bytes(orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    else:
        path.write_text(json.dumps(value))


def bad(verdict: Verdict) -> Expected:
    assert verdict.first_bad is not None, verdict
    return verdict.first_bad.code, verdict.first_bad.place.chain, verdict.first_bad.place.sequence


def change_chain(change: Callable[[list[dict[str, Any]]], Any], name: str = "codex.two") -> Callable[[Path], None]:
    def tamper(bundle: Path) -> None:
        chain = load(bundle / f"{name}.json")
        change(chain["capsules"])
        save(bundle / f"{name}.json", chain)

    return tamper


def change_index(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    def tamper(bundle: Path) -> None:
        index = load(bundle / "index.json")
        change(index)
        save(bundle / "index.json", index)

    return tamper


def summary_of(index: dict[str, Any], chain: str = "codex.two") -> dict[str, Any]:
    found: dict[str, Any] = next(item for item in index["chains"] if item["id"] == chain)
    return found


CLAIM_PLACES = ("index", "file", "both")
"""Where a bundle says which name a chain had before it was imported."""


def claim_origin(bundle: Path, chain: str, origin: str | None, places: str) -> None:
    """Let the index, the chain's own file, or both say that a chain was imported, and had this name."""
    if places != "file":
        change_index(lambda index: summary_of(index, chain).update(origin=origin))(bundle)
    if places != "index":
        save(bundle / f"{chain}.json", load(bundle / f"{chain}.json") | {"origin": origin})


def wrong_origins(bundle: Path) -> Iterator[tuple[str, str, str]]:
    """Each chain of a bundle with every wrong claim of where it comes from: names of others, its own, and odd ones."""
    claims = {item["id"]: item.get("origin") for item in load(bundle / "index.json")["chains"]}
    for chain, true in claims.items():
        for origin in ("", "claude-code.s1", "meta", chain, "import.0123456789abcdef.ci"):
            for places in CLAIM_PLACES if origin != true else ():
                yield chain, origin, places


def make_old(bundle: Path) -> None:
    """Take out `head.json`: earlier versions of Aver wrote no such file."""
    (bundle / "head.json").unlink()

"""Audit a bundle of another party, with only the bundle and that party's public key.

    python examples/audit_an_export.py

`write_bundle` plays the other party: it seals three tool calls and exports them. `audit_bundle` has only the bundle
and the public key, which the other party sent separately. It verifies the bundle and counts the tools that were used.
At the end, the bundle is changed, and verification finds the change.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections import Counter
from pathlib import Path

import aver

CHAIN = "demo.deployment"


def write_bundle(home: Path, bundle: Path) -> aver.PublicKey:
    """The other party: seal three calls, export them, and return the public key of the ledger."""
    with aver.open_ledger(home=home) as ledger:
        for tool, status in (("kubectl", "success"), ("kubectl", "failure"), ("psql", "success")):
            call = aver.ToolCall(tool=tool, success=status == "success")
            draft = aver.Capsule(
                type="tool",
                execution=aver.Execution(tool_calls=[call]),
                outcome=aver.Outcome(status=status, summary=f"{tool}: {status}"),
            )
            ledger.append(CHAIN, draft)
        ledger.close_chain(CHAIN)
        aver.export_bundle(ledger, bundle)
        active = ledger.keys.ring().active("ledger")
        assert active is not None
        return active.key


def audit_bundle(bundle: Path, key: aver.PublicKey, home: Path) -> None:
    """The auditor: verify the bundle with the key, then count the tools that were used."""
    verdict = aver.verify(bundle, keys=[key], home=home)
    print(f"{verdict.status}: {verdict.records} records in {verdict.chains} chains")
    for check in verdict.checks:
        if check.status != "passed":
            print(f"  {check.name}: {check.status}, {check.reason}")
    stored = json.loads((bundle / f"{CHAIN}.json").read_bytes())["capsules"]
    contents = [json.loads(record["canonical"]) for record in stored]
    used = Counter(call["tool"] for content in contents for call in content["execution"]["tool_calls"])
    print(f"tools used: {dict(used)}")


def tamper(bundle: Path, copy: Path) -> Path:
    """Return a copy of the bundle in which the failed call looks successful."""
    shutil.copytree(bundle, copy)
    path = copy / f"{CHAIN}.json"
    path.write_text(path.read_text(encoding="utf-8").replace("kubectl: failure", "kubectl: success"), encoding="utf-8")
    return copy


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        key = write_bundle(place / "theirs", place / "bundle")
        audit_bundle(place / "bundle", key, place / "ours")
        verdict = aver.verify(tamper(place / "bundle", place / "copy"), keys=[key], home=place / "ours")
        print(f"{verdict.status}: {verdict.first_bad}")


if __name__ == "__main__":
    main()

"""An auditor's view: a bundle from somebody else, their public key, and nothing more.

    python examples/audit_an_export.py

The first half plays the other party and writes a bundle. The second half has only the bundle and a key that came by
another way: it asks for the verdict, then answers a question about what was done.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections import Counter
from pathlib import Path

import aver
from aver.ledger.bundle import export_bundle

CHAIN = "demo.deployment"


def their_side(home: Path, bundle: Path) -> aver.PublicKey:
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
        export_bundle(ledger, bundle)
        active = ledger.keys.ring().active("ledger")
        assert active is not None
        return active.key


def our_side(bundle: Path, key: aver.PublicKey, home: Path) -> None:
    verdict = aver.verify(bundle, keys=[key], home=home)
    print(f"{verdict.status}: {verdict.records} records in {verdict.chains} chains")
    for check in verdict.checks:
        if check.status != "passed":
            print(f"  {check.name}: {check.status}, {check.reason}")
    stored = json.loads((bundle / f"{CHAIN}.json").read_bytes())["capsules"]
    contents = [json.loads(record["canonical"]) for record in stored]
    used = Counter(call["tool"] for content in contents for call in content["execution"]["tool_calls"])
    print(f"tools used: {dict(used)}")


def tampered(bundle: Path, copy: Path) -> Path:
    shutil.copytree(bundle, copy)
    path = copy / f"{CHAIN}.json"
    path.write_text(path.read_text(encoding="utf-8").replace("kubectl: failure", "kubectl: success"), encoding="utf-8")
    return copy


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        key = their_side(place / "theirs", place / "bundle")
        our_side(place / "bundle", key, place / "ours")
        verdict = aver.verify(tampered(place / "bundle", place / "copy"), keys=[key], home=place / "ours")
        print(f"{verdict.status}: {verdict.first_bad}")


if __name__ == "__main__":
    main()

"""A key that was stolen before its owner rotated it, and what the thief seals with it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from aver import Capsule, open_ledger
from aver.ledger.bundle import export_bundle


def seal_after_rotation(home: Path, folder: Path) -> tuple[Path, Path]:
    """Fill a new home, copy it, rotate its key, and seal one more record in the copy with the old key.

    Returns the bundle of the copy, and the owner's export of keys, which says that the old key is retired.
    """
    with open_ledger(home=home) as owner:
        owner.append("ci.a", Capsule(type="tool", trigger={"source": "test", "request": "honest"}))
    shutil.copytree(home, folder / "stolen")
    with open_ledger(home=home) as owner:
        owner.keys.rotate("ledger")
        (folder / "keys.json").write_text(json.dumps(owner.keys.export("ledger")))
    with open_ledger(home=folder / "stolen") as thief:
        thief.append("ci.a", Capsule(type="tool", trigger={"source": "test", "request": "forged"}))
        export_bundle(thief, folder / "bundle")
    return folder / "bundle", folder / "keys.json"

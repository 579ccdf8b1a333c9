"""Write `rules_table.py` from `rules.toml`, after a change of the masking rules: `python bench/masking_rules.py`."""

from __future__ import annotations

from pathlib import Path

from aver.capsule.masking import rules_builder

if __name__ == "__main__":
    room = Path(rules_builder.__file__).parent
    (room / "rules_table.py").write_text(rules_builder.build_table((room / "rules.toml").read_text()))

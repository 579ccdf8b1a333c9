"""`python -m aver.gate.policy`: write the starter set down as Cedar reads it, after it was changed."""

from __future__ import annotations

from aver.gate.policy.bundle import PARSED, starter_files, written_down

if __name__ == "__main__":
    PARSED.write_bytes(written_down(starter_files()))

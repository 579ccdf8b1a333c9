"""`python -m aver.gate.policy`: write the starter set down as Cedar reads it, after it was changed."""

from __future__ import annotations

from aver.gate.policy.bundle import PARSED_STARTER, dump_parsed_bundle, read_starter_files

if __name__ == "__main__":
    PARSED_STARTER.write_bytes(dump_parsed_bundle(read_starter_files()))

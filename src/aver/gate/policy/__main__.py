"""`python -m aver.gate.policy`: write the parsed form of the starter set. Run it after you change the starter set."""

from __future__ import annotations

from aver.gate.policy.bundle import PARSED_STARTER, dump_parsed_bundle, read_starter_files

if __name__ == "__main__":
    PARSED_STARTER.write_bytes(dump_parsed_bundle(read_starter_files()))

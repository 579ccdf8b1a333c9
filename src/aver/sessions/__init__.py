"""Sessions of coding agents, read back from the ledger for people."""

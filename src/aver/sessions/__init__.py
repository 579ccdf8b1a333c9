"""Reads sessions of coding agents back from the ledger and presents them to people."""

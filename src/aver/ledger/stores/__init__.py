"""Where a ledger keeps its records: SQLite or PostgreSQL, behind one protocol."""

"""Cursor: its conversations and database, its hooks and its settings."""

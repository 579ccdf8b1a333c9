"""Cline: its tasks and sessions, its hooks and its settings."""

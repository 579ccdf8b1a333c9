"""Codex: its rollout files, its hooks and its settings."""

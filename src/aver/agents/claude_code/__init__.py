"""Claude Code: its transcripts, its hooks and its settings."""

"""Learning from a git history: read it without running it, find failures in it, and learn the level of risk."""

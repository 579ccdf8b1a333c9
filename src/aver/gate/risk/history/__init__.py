"""A project's git history: commits, fixes, labels and what the risk model learns from them."""

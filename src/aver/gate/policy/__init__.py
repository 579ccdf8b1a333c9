"""Policy: Cedar rules that say what may happen, what a human must approve, and what is refused."""

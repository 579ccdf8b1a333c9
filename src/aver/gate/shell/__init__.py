"""Shell commands: parsed, expanded and judged program by program."""

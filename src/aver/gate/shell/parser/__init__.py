"""The parser of shell commands: it turns text into a syntax tree, and has a second parser check the result."""

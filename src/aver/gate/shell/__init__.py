"""The shell reader: it parses a command, expands its words, and judges it program by program.

`understand` is the way in. It calls `walk`, which uses `parser` (text to syntax tree), `expand` (syntax to words) and
`programs` (words to effects).
"""

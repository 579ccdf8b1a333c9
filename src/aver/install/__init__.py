"""Putting Aver into the settings of other programs, and taking it out again, without harming what is there.

One careful editor for JSON, JSON with comments, and TOML: it changes the text and keeps all of the rest to the byte,
writes the file at once or not at all, and refuses what it cannot understand.
"""

"""Looks for places in a text of code that reach out: languages, rules, and the scan. Pure."""

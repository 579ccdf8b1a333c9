"""Imported chains: the names that they get here, what `meta` says about them, and how an import is dropped."""

"""Looks into programs of Python that a command would run: `program` is the entrance, the others are its parts."""

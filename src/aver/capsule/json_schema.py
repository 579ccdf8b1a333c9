"""Validation of documents by the JSON Schemas that ship with Aver.

A schema of ours refers to nothing outside of itself: no validator opens a connection or a file. `find_schema_error`
never raises for a document, whatever it holds.
"""

from __future__ import annotations

from typing import Any

DRAFT = "https://json-schema.org/draft/2020-12/schema"

ERROR_MAX = 300
"""Characters of a validator's message that are kept: it may quote the whole document."""


def build_validator(schema: Any) -> Any:
    """Compile a schema of draft 2020-12."""
    import jsonschema_rs  # Takes long to load, and few callers need it.

    return jsonschema_rs.Draft202012Validator(schema, offline=True)


def find_schema_error(validator: Any, document: Any) -> str:
    """Validate a document. Returns the first problem with its place; empty if there is none."""
    import jsonschema_rs

    try:
        validator.validate(document)
    except jsonschema_rs.ValidationError as error:
        place = "/".join(str(step) for step in error.instance_path)
        return f"{place or 'the document'}: {error.message}"[:ERROR_MAX]
    except (ValueError, TypeError, RecursionError) as error:  # Values that are no JSON, too deep, or too large.
        return f"the document: {error}"[:ERROR_MAX]
    return ""

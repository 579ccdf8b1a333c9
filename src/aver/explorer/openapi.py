"""The OpenAPI description of the API, for programs and for tests."""

from __future__ import annotations

from typing import Any

from aver import __version__

API_VERSION = 1


def build_openapi() -> dict[str, Any]:
    """The description as a document."""
    return {"openapi": "3.1.0", "info": {"title": "Aver Explorer", "version": __version__}, "paths": {}}

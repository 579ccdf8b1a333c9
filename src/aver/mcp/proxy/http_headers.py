"""The headers of a server at a URL, from the variables that `aver install --proxy` writes.

`aver.install.proxy_variables` lists them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from aver.errors import BadInput
from aver.install.proxy_variables import BEARER_VARIABLE, HEADER_VARIABLE, INDIRECT_VARIABLE

_FIELD = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\r\n\0]*)")


def read_headers(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the headers that the variables name. Raises `BadInput` for one that is no header, without its value."""
    headers: dict[str, str] = {}
    for variable, text in sorted(environment.items()):
        if variable.startswith(INDIRECT_VARIABLE):
            name, value = _split(variable, text)
            headers[name] = _find_value(environment, value)
        elif variable.startswith(HEADER_VARIABLE):
            name, value = _split(variable, text)
            headers[name] = value
    if named := environment.get(BEARER_VARIABLE):
        headers["Authorization"] = f"Bearer {_find_value(environment, named)}"
    return headers


def _split(variable: str, text: str) -> tuple[str, str]:
    found = _FIELD.fullmatch(text)
    if found is None:
        raise BadInput(f"{variable} is no header", advice="write it as Name: value")
    return found[1], found[2]


def _find_value(environment: Mapping[str, str], variable: str) -> str:
    value = environment.get(variable, "")
    if not value or re.search(r"[\r\n\0]", value):
        raise BadInput(f"the variable {variable} has no value for a header", advice="set it for the client's servers")
    return value

"""The URL and the headers of a server at a URL, as `aver install --proxy` hands them over: in variables.

They may hold secrets, and every user of a machine can read the command lines of its processes. So only a URL without a
secret in it stands on the command line.

    AVER_PROXY_URL                   the URL, for `aver proxy --http` without one
    AVER_PROXY_HEADER_1              a header: `Authorization: Bearer abc`
    AVER_PROXY_HEADER_VARIABLE_1     a header whose value is in another variable: `X-Key: SHOP_KEY`
    AVER_PROXY_BEARER_VARIABLE       the variable that has the token for `Authorization: Bearer`
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from aver.errors import BadInput

URL_VARIABLE = "AVER_PROXY_URL"
HEADER_VARIABLE = "AVER_PROXY_HEADER_"
INDIRECT_VARIABLE = "AVER_PROXY_HEADER_VARIABLE_"
BEARER_VARIABLE = "AVER_PROXY_BEARER_VARIABLE"

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

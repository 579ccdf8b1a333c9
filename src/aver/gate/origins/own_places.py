"""Places of the user's own: files of the workspace, and pages of a site that the user named.

The user has started the client in a workspace. So the words `src/cart.py` name the file `<workspace>/src/cart.py`, and
`tests/` means the files below that directory. Neither needs the directory of the workspace to be said. A page of the
site that the user named, to which another page of that site links, belongs to what the user named.

    >>> relate_path("/work/shop/src/cart.py", "/work/shop")
    'src/cart.py'
    >>> relate_path("/work/shop/../bank/key", "/work/shop") is None
    True
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from posixpath import normpath
from urllib.parse import urlsplit

from aver.gate.origins.plain_text import find_addresses, is_address, is_plain
from aver.gate.origins.user_words import UserWords

PARENTS_MAX = 32
"""Directories of one path that are looked for in the user's words."""

_READ_OTHERWISE = frozenset("%\\$~`*?;|&<>\"'{}")
"""Characters that some programs replace in a path, or read as the end of it."""


def relate_path(value: str, workspace: str) -> str | None:
    """Return a path relative to the workspace, empty for the workspace itself; None for all other values."""
    if not workspace.startswith("/") or not value.startswith("/") or not is_plain(value):
        return None
    path = value.rstrip("/")
    if path == workspace:
        return ""
    # Another spelling of a path, such as one with `..` or `%2e`, may lead elsewhere.
    if not _READ_OTHERWISE.isdisjoint(path):
        return None
    return path[len(workspace) + 1 :] if path.startswith(f"{workspace}/") and normpath(path) == path else None


def names_file(words: UserWords, inside: str) -> bool:
    """Whether the user named a file of the workspace by its relative path."""
    return words.names(inside) or words.names(f"./{inside}")


def is_excepted(words: UserWords, path: str) -> bool:
    """Whether the user said to leave a path, or a directory above it, alone: `do not touch tests/`."""
    below = f"{path.lower().removeprefix('./')}/"
    return any(below.startswith(f"{excepted.rstrip('/')}/") for excepted in words.excepted)


def names_directory_of(words: UserWords, inside: str) -> bool:
    """Whether the user named a directory above a file of the workspace, with a slash at its end: `tests/`.

    Files and directories whose name begins with a dot are meant by their own names alone: they steer programs.
    """
    parts = inside.split("/")
    if any(part.startswith(".") for part in parts):
        return False
    above = ("/".join(parts[:count]) for count in range(1, min(len(parts), PARENTS_MAX)))
    return any(re.search(rf"(?<![\w./~-]){re.escape(each.lower())}/(?![\w.])", words.folded) for each in above)


def is_same_site(link: str, words: UserWords, arguments: Iterable[str]) -> bool:
    """Whether a link leads to a site that the user named, and was read by a call for pages of that site alone.

    `arguments` are those of the call. Nobody knows which of two addresses its text came from.
    """
    site = _find_site(link)
    addresses = [text for text in arguments if is_address(text)]
    if site is None or not addresses or any(_find_site(address) != site for address in addresses):
        return False
    return any(_find_site(named) == site for named in find_addresses(words.folded))


def _find_site(address: str) -> tuple[str, str] | None:
    """Return scheme and host of a link; None for one that cannot be compared."""
    try:
        parts = urlsplit(address.lower())
        is_whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.username is None
    except ValueError:
        return None
    return (parts.scheme, parts.netloc) if is_whole and is_plain(address) else None

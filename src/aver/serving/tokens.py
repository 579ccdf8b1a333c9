"""The token that a server and its clients share: a file that only its owner can read, and a header of each request.

A client sends `Authorization: Bearer TOKEN`. Servers compare tokens in constant time. Settings name a token by its
SHA-256, so that whoever reads the settings cannot use it.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Iterable
from pathlib import Path

from aver.errors import BadInput
from aver.files.atomic import replace_file
from aver.files.locks import lock_directory
from aver.files.regular import open_regular

TOKEN_MIN, TOKEN_MAX = 32, 512
"""The length of a token in characters: too long to guess, and short enough for a header."""


def read_token(path: Path) -> str:
    """Return the token in a file. The first call creates the file; its directory must exist.

    Raises `BadInput` if other users can read the file, or if it has no valid token.
    """
    try:
        file = open_regular(path, follow=False)
    except FileNotFoundError:
        # Locked, because two servers that start at the same time must agree on one token.
        with lock_directory(path.parent.resolve()):
            if not os.path.lexists(path):
                replace_file(path, f"{secrets.token_urlsafe(32)}\n".encode("ascii"))
        return read_token(path)
    except OSError as error:
        raise BadInput(f"cannot read the token in {path}: {error.strerror}") from error
    with file:
        # Check the open file, not the path: the file behind the path could be replaced in between.
        status = os.fstat(file.fileno())
        if status.st_mode & 0o077 or status.st_uid != os.geteuid():
            raise BadInput(f"{path} can be read by other users", advice=f"chmod 600 {path}, or remove it")
        text = file.read(TOKEN_MAX + 2).decode("ascii", "replace").strip()
    if not TOKEN_MIN <= len(text) <= TOKEN_MAX or not text.isprintable() or " " in text or not text.isascii():
        raise BadInput(f"{path} holds no token of {TOKEN_MIN} to {TOKEN_MAX} characters", advice="remove it")
    return text


def digest_token(token: str | bytes) -> str:
    """The SHA-256 of a token, in lower-case hex, as settings name it."""
    return hashlib.sha256(token.encode("ascii") if isinstance(token, str) else token).hexdigest()


def find_bearer_token(headers: Iterable[tuple[bytes, bytes]]) -> bytes | None:
    """The token in the one `Authorization: Bearer` header; None if there is none, or more than one such header."""
    shown = [value for name, value in headers if name == b"authorization"]
    if len(shown) != 1:
        return None
    word, _, token = shown[0].partition(b" ")
    return token.strip() if word.lower() == b"bearer" else None


def is_same_token(shown: bytes | None, expected: bytes) -> bool:
    """Compare two tokens in constant time. A token that was not shown is never the same."""
    return shown is not None and hmac.compare_digest(shown, expected)

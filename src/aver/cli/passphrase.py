"""Reads a passphrase from the terminal or from an open file descriptor.

It never comes from the command line, which every user of the machine can see.
"""

from __future__ import annotations

import getpass
import os

from aver.errors import BadInput

__all__ = ["ask_passphrase", "has_terminal"]

PASSPHRASE_MAX = 1024
"""The longest passphrase that is read from a descriptor, in bytes."""

TERMINAL = "/dev/tty"


def ask_passphrase(identity: str, descriptor: int | None, *, new: bool = False) -> str:
    """Ask for the passphrase of an identity.

    A person types a new passphrase twice. A descriptor gives one line for each passphrase.
    """
    if descriptor is not None:
        return _require_nonempty(_read_line(descriptor))
    if not has_terminal():
        raise BadInput(f"there is no terminal to ask for the passphrase of {identity}", advice="give --passphrase-fd N")
    words = getpass.getpass(f"Passphrase for {identity}: ")
    if new and getpass.getpass("Repeat the passphrase: ") != words:
        raise BadInput("the two passphrases differ", advice="try again")
    return _require_nonempty(words)


def has_terminal() -> bool:
    """Whether the process has a terminal, even if stdin and stdout are redirected."""
    try:
        os.close(os.open(TERMINAL, os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


def _read_line(descriptor: int) -> str:
    """Read one line, byte by byte, because the next line may be the next passphrase."""
    raw = bytearray()
    try:
        while (byte := os.read(descriptor, 1)) not in (b"", b"\n"):
            raw += byte
            if len(raw) > PASSPHRASE_MAX:
                raise BadInput(f"the passphrase is longer than {PASSPHRASE_MAX} bytes")
    except OSError as error:
        raise BadInput(f"cannot read the passphrase from descriptor {descriptor}: {error.strerror}") from error
    try:
        return raw.decode("utf-8").rstrip("\r")
    except UnicodeDecodeError:
        raise BadInput("the passphrase is not UTF-8") from None


def _require_nonempty(words: str) -> str:
    if not words:
        raise BadInput("the passphrase is empty", advice="choose a few words that are hard to guess")
    return words

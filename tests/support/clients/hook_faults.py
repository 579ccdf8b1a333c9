"""An Aver that a client's hooks cannot start."""

from __future__ import annotations

from pathlib import Path

__all__ = ["break_hooks"]


def break_hooks(settings: Path, place: Path, fault: str) -> str:
    """Have the hooks in a file start a program that is gone, or may not be executed. Returns its path."""
    program = place / "broken" / "aver"
    program.parent.mkdir()
    if fault == "not executable":
        program.write_text("#!/bin/sh\nexit 0\n")
        program.chmod(0o644)
    words = settings.read_text().split(" ")
    found = {word for word in words if word.endswith("/aver")}
    text = settings.read_text()
    for word in found:
        text = text.replace(f"{word} hook", f"{program} hook")
    assert str(program) in text
    settings.write_text(text)
    return str(program)

"""The user's choice for one client's hooks, as `aver install` writes it into Aver's own `config.toml`.

    aver install claude-code                  nothing: Aver only tightens what the client allows
    aver install claude-code --auto-allow     [hooks.claude-code] on_pass = "allow"
    aver install claude-code --observe        [hooks.claude-code] mode = "observe"

It stands in Aver's settings, not in the client's: so a change of it is sealed as any change of settings is.
`aver.hooks.settings` reads it. Everything else in the file stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from aver.config import CONFIG_NAME, ensure_home
from aver.errors import BadInput
from aver.install.edit import get_entry, with_entry, without_entry
from aver.install.undo import change_file, resolve_target

HookChoiceName = Literal["leave", "auto-allow", "no-auto-allow", "observe"]

_VALUES: Mapping[HookChoiceName, Mapping[str, str]] = {
    "leave": {},
    "auto-allow": {"on_pass": "allow"},
    "no-auto-allow": {"on_pass": "leave"},
    "observe": {"mode": "observe"},
}
_NAMES = ("on_pass", "mode")
"""The settings that a choice is made of. Others in the same table are the user's own."""

_SENTENCES: Mapping[str, str] = {
    "leave": "Aver only tightens: it denies calls or asks about them, and leaves the others to {title}'s own rules.",
    "auto-allow": "Calls that pass the gate, and that it understands in every part, run without {title}'s own prompt.",
    "observe": "Aver decides about every call and seals that, and holds nothing back: {title}'s own rules decide.",
}


def describe_choice(choice: HookChoiceName, title: str) -> str:
    """Say in one sentence what a choice changes for the client with this title."""
    return _SENTENCES.get(choice, _SENTENCES["leave"]).format(title=title)


def write_choice(home: Path, client: str, choice: HookChoiceName, *, dry_run: bool = False) -> bool:
    """Write the choice for a client, in the place of an earlier one. Returns whether the file changed.

    Raises `BadInput`, which names the file, where it is not TOML.
    """
    path = resolve_target(home / CONFIG_NAME, None)
    wanted, place = _VALUES[choice], ("hooks", client)

    def change(raw: bytes | None) -> bytes | None:
        try:
            text = "" if raw is None else raw.decode("utf-8")
            found = get_entry(text, "toml", place)
            before = found if isinstance(found, dict) else {}
            for name in _NAMES:
                if name in before and name not in wanted:
                    text = without_entry(text, "toml", (*place, name), keep=0)
            if get_entry(text, "toml", place) == {}:
                text = without_entry(text, "toml", place, keep=0)
            if wanted:
                text = with_entry(text, "toml", place, wanted)
        except UnicodeDecodeError:
            raise BadInput(f"{path} is not UTF-8; nothing was changed") from None
        except BadInput as error:
            raise BadInput(f"{path}: {error.message}; nothing was changed", advice=error.advice) from error
        # A file that held nothing but the choice goes with it.
        return text.encode("utf-8") if text.strip() else None

    if not dry_run and wanted:
        ensure_home(home)
    return change_file(path, change, dry_run=dry_run).is_change

"""Opening the gateway of a home: with all its parts in this process, or with parts that run apart.

`aver gateway init` makes a home whose parts run apart. From then on every door of this home uses those parts. A door
never falls back to one process: a part that does not run denies every act instead.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from aver.gateway.embedded_parts import open_embedded
from aver.gateway.gateway import Gateway
from aver.gateway.parts.part_directories import PartDirectories
from aver.gateway.settings import GatewaySettings, read_gateway_settings
from aver.ledger import Ledger


def open_gateway_of(ledger: Ledger, *, workspace: str, session: str = "", close: Callable[[], None]) -> Gateway:
    """Open the gateway for a ledger, by the settings of its home. `close` is called at its end.

    Raises `BadInput` for settings that are wrong.
    """
    settings = read_gateway_settings(ledger.config)
    if is_apart(ledger.config.home, settings):
        from aver.gateway.parts.remote_parts import open_apart  # Not above: most homes have no parts.

        return open_apart(ledger, settings, workspace=workspace, session=session, close=close)
    return open_embedded(ledger, settings, workspace=workspace, session=session, close=close)


def is_apart(home: Path, settings: GatewaySettings) -> bool:
    """Whether the parts of a home run apart: they were made, or the settings say where one listens."""
    named = settings.policy0 or settings.policy1 or settings.executor
    return bool(named) or PartDirectories(home).are_made

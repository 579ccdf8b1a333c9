"""The options with which a command line reaches the ledger that is served, for a page that prints commands.

    ["--ledger", "sqlite:////srv/other.db", "--tenant", "acme"]

A person may run the command in another terminal than the server's. So the server's flags and environment do not count
here: the options say everything that `config.toml` in `~/.aver`, and the defaults, do not say already. They contain no
password. Of a PostgreSQL URL, only parts that are known to be no secret stay.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlencode

from aver.capsule.canonical import has_surrogate
from aver.config import CONFIG_NAME, Config, default_ledger, read_toml
from aver.errors import AverError, BadInput
from aver.ledger.stores.urls import is_on_server, path_from_url
from aver.log import debug

SHOWN_PARAMETERS = ("host", "hostaddr", "port", "dbname", "user", "service", "sslmode", "sslrootcert")
"""The parameters of a PostgreSQL URL that are shown. Others, such as `password`, may be secret."""


def find_command_options(config: Config) -> list[str]:
    """The options that `aver` needs for the ledger and the tenant of `config`; none where its defaults reach them."""
    ledger, tenant = _read_usual_settings()
    options: list[str] = []
    if ledger is None or _identify(ledger) != _identify(config.ledger):
        options += ["--ledger", _write_url(config.ledger)]
    if config.tenant != tenant:
        options += ["--tenant", config.tenant]
    return options


def _read_usual_settings() -> tuple[str | None, str]:
    """The ledger and the tenant of a command line that has no options, in an environment that sets nothing."""
    try:
        home = Path.home() / ".aver"
        table = read_toml(home / CONFIG_NAME) or {}
    except (AverError, RuntimeError) as error:  # Nobody has a home here, or its settings cannot be read.
        debug("explorer", "the usual settings are not known: %s", error)
        return None, "default"
    return str(table.get("ledger", default_ledger(home))), str(table.get("tenant", "default"))


def _identify(url: str) -> str:
    """A text that all URLs of one ledger share. A URL that Aver cannot open stands for itself."""
    with suppress(BadInput):
        return url if is_on_server(url) else os.path.abspath(path_from_url(url))
    return url


def _write_url(url: str) -> str:
    """A URL that a person may read and give to `aver`, from any directory."""
    if not is_on_server(url):
        path = os.path.abspath(path_from_url(url))
        # JSON has no name for a directory whose bytes are not UTF-8; `aver` takes none in a URL, either.
        return url if has_surrogate(path) else f"sqlite:///{path}"
    address, _, query = url.partition("?")
    scheme, _, rest = address.partition("://")
    authority, slash, database = rest.partition("/")
    # The last `@` ends the password, whatever is in it.
    credentials, _, host = authority.rpartition("@")
    user = credentials.partition(":")[0]
    shown = [(name, value) for name, value in parse_qsl(query) if name in SHOWN_PARAMETERS]
    parameters = f"?{urlencode(shown, quote_via=quote, safe='/')}" if shown else ""
    return f"{scheme}://{f'{user}@' if user else ''}{host}{slash}{database}{parameters}"

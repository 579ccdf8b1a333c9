"""`aver serve`: opens the Explorer on a ledger, in a browser, for the person at this terminal."""

from __future__ import annotations

import argparse
import html
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

from aver.cli.options import Usage, add_ledger, add_tenant, parse_count
from aver.cli.terminal import Screen, StderrScreen
from aver.errors import Unavailable, install_advice

EXAMPLES = """\
  aver serve                                open the printed link in a browser
  aver serve --open                         open the browser at once
  aver serve --read-only --port 4841
  aver serve --ledger postgresql://ada@db.example/aver
  aver serve --origin https://aver.example  behind a proxy with TLS that passes requests on to localhost:4840
  aver serve --host aver.example --tls-cert cert.pem --tls-key key.pem"""

PORT_MAX = 65535
OPEN_FILE = "explorer-open.html"
"""In `AVER_HOME`, while the server runs with `--open`. It leads to the link, which others could read on a command
line."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=parse_count, metavar="PORT", help="default: 4840; 0 is any free port")
    parser.add_argument(
        "--host", metavar="NAME", help="listen at this address, for other machines; needs a certificate"
    )
    parser.add_argument("--tls-cert", type=Path, metavar="FILE", help="the certificate for --host, as PEM")
    parser.add_argument("--tls-key", type=Path, metavar="FILE", help="its private key, as PEM without a passphrase")
    parser.add_argument("--origin", metavar="URL", help="https://NAME by which browsers reach the server")
    parser.add_argument("--read-only", action="store_true", help="take no answers to requests for approval")
    parser.add_argument("--open", action="store_true", help="open the link in a browser")
    add_ledger(parser)
    add_tenant(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    if (given.host is None, given.tls_cert is None, given.tls_key is None) not in ((True,) * 3, (False,) * 3):
        raise Usage(
            "--host, --tls-cert and --tls-key belong together", advice="without them, only this machine is served"
        )
    if given.port is not None and given.port > PORT_MAX:
        raise Usage(f"--port is at most {PORT_MAX}")
    try:
        from aver.explorer.server import PATIENCE_SECONDS, PORT, ExplorerServer, listen_locally, listen_with_tls
    except ImportError as error:
        raise Unavailable(
            f"the Explorer's server needs a package that is not installed: {error.name}",
            advice=install_advice("explorer"),
        ) from error
    from aver.config import load_config
    from aver.ledger.ledger import open_configured_ledger

    port = PORT if given.port is None else given.port
    config = load_config(ledger=given.ledger, tenant=given.tenant)
    config = replace(config, lock_timeout=min(config.lock_timeout, PATIENCE_SECONDS))
    with open_configured_ledger(config, create=False) as ledger:
        if given.host is None:
            place = listen_locally(port, given.origin)
        else:
            place = listen_with_tls(given.host, port, given.tls_cert, given.tls_key, given.origin)
        with place:
            server = ExplorerServer(ledger, place, read_only=given.read_only)
            writes = "read-only" if given.read_only else "read-only but for answers to requests for approval"
            screen.print_line(f"the Explorer shows the ledger {ledger.store.name}, tenant {ledger.tenant}; {writes}")
            # Never cut to the width of the terminal: the link would not work.
            print(f"\n  {server.link}\n")
            screen.print_line("Everyone who has this link can read the ledger.")
            screen.print_line("Ctrl-C stops the server, and ends the link.")
            sys.stdout.flush()
            with _open_browser(ledger.config.home, server.link) if given.open else nullcontext():
                server.run()
    StderrScreen().print_note("stopped")
    return 0


@contextmanager
def _open_browser(home: Path, link: str) -> Iterator[None]:
    """Open the link in a browser, through a file that only its owner can read. The file goes when the server ends."""
    import webbrowser

    from aver.config import ensure_home
    from aver.files.atomic import replace_file

    path = ensure_home(home) / OPEN_FILE
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
        f'<meta http-equiv="refresh" content="0; url={html.escape(link)}"><title>Aver Explorer</title></head>'
        f'<body><a href="{html.escape(link)}">Open the Explorer</a></body></html>\n'
    )
    replace_file(path, page.encode("ascii"))

    def open_file() -> None:
        if not webbrowser.open(path.as_uri()):
            StderrScreen().print_note(f"no browser was found; open the link, or {path}")

    try:
        # In a thread: a browser in a terminal ends when its reader does. The socket listens already.
        threading.Thread(target=open_file, daemon=True).start()
        yield
    finally:
        if os.path.lexists(path):
            path.unlink()

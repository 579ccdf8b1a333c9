"""`aver proxy`: stands before an MCP server, and makes every call of its tools an act of the gateway."""

from __future__ import annotations

import argparse
import os
import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from aver.cli.options import Usage, add_ledger, add_tenant, parse_count
from aver.cli.terminal import Screen

if TYPE_CHECKING:
    from aver.mcp.proxy.run import ProxyPlan

EXAMPLES = """\
  aver proxy --name files -- npx -y @modelcontextprotocol/server-filesystem ~/src
  aver proxy --name shop --http https://shop.example/mcp      headers come in AVER_PROXY_HEADER_1, ...
  aver proxy --name old --sse http://localhost:3000/sse       the older transport
  aver proxy trust files                                      accept definitions of tools that have changed
  aver install claude-code --proxy                            put all servers of a client behind the proxy

exit code: that of the server."""

NAME_MAX = 64

WAIT_SECONDS = 30
"""How long a call waits for a person by default. Most clients wait a minute for a call."""

TRUST = "trust"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("words", nargs="*", metavar="COMMAND", help="-- and the command of the server; or: trust NAME")
    parser.add_argument("--name", metavar="NAME", default="", help="the server's name in the client's settings")
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--http", metavar="URL", nargs="?", const="", help="a server at a URL, over streamable HTTP")
    place.add_argument("--sse", metavar="URL", nargs="?", const="", help="the same, over server-sent events")
    parser.add_argument("--workspace", metavar="DIR", default=os.curdir, help="where the agent works (default: here)")
    parser.add_argument("--session", metavar="NAME", default="", help="the session (default: that of the client)")
    parser.add_argument(
        "--wait",
        type=parse_count,
        default=WAIT_SECONDS,
        metavar="SECONDS",
        help=f"how long a call waits for a person's approval (default: {WAIT_SECONDS})",
    )
    add_ledger(parser)
    add_tenant(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    url = given.http if given.http is not None else given.sse
    if url is None and given.words[:1] == [TRUST] and len(given.words) == 2:
        return _trust(given, screen)
    if (url is not None) == bool(given.words):
        raise Usage("give the server's command after --, or its --http URL", advice="aver proxy --name NAME -- COMMAND")
    from aver.check import open_ledger
    from aver.config import load_config
    from aver.install.proxy_variables import CANARY_VARIABLE
    from aver.mcp.proxy.run import run_canary, run_proxy

    plan = _build_plan(given, url)
    if canary := os.environ.get(CANARY_VARIABLE):  # Only a client knows what its placeholder for the workspace means.
        return run_canary(plan, canary)
    if not os.path.isdir(given.workspace):
        raise Usage(f"the workspace {given.workspace} is not a directory")
    return run_proxy(
        plan,
        load_config(ledger=given.ledger, tenant=given.tenant),
        lambda: open_ledger(given.ledger, tenant=given.tenant),
    )


def _build_plan(given: argparse.Namespace, url: str | None) -> ProxyPlan:
    from aver.gateway.act_records import check_session
    from aver.install.proxy_variables import URL_VARIABLE
    from aver.mcp.proxy.http_headers import read_headers
    from aver.mcp.proxy.run import ProxyPlan

    if url == "":
        url = os.environ.get(URL_VARIABLE, "")
        if not url:
            raise Usage(f"--http without a URL takes it from {URL_VARIABLE}, which is not set")
    if url is not None and urlsplit(url).scheme not in ("http", "https"):
        raise Usage("the URL of a server begins with http:// or https://")
    if given.session:
        check_session(given.session)
    host = urlsplit(url or "").hostname or ""
    name = given.name or re.sub(r"[^A-Za-z0-9_.-]", "-", host or os.path.basename(given.words[0]))[:NAME_MAX]
    if not name.isprintable() or not 1 <= len(name) <= NAME_MAX:
        raise Usage(f"--name must have 1 to {NAME_MAX} printable characters")
    return ProxyPlan(
        name=name,
        command=tuple(given.words),
        url=url or "",
        is_sse=given.sse is not None,
        headers={} if url is None else read_headers(os.environ),
        workspace=os.path.abspath(given.workspace),
        session=given.session,
        wait=float(given.wait),
    )


def _trust(given: argparse.Namespace, screen: Screen) -> int:
    """Show how definitions of tools have changed, seal that the user accepts them, and accept them."""
    from aver.check import open_ledger
    from aver.cli.user_name import find_user_name
    from aver.config import load_config
    from aver.diffs import unified_diff
    from aver.mcp.proxy.tool_book import list_changed_tools, seal_trust, trust_changed_tools

    config, name = load_config(ledger=given.ledger, tenant=given.tenant), given.words[1]
    changed = list_changed_tools(config.home, name)
    for tool, (before, after) in changed.items():
        screen.print_line(screen.status_mark("warning"), f" {tool}")
        # The whole change: a server could hide a part of it behind a long beginning.
        for line in unified_diff(tool, _lay_out(before), _lay_out(after)).splitlines():
            screen.print_line(f"    {line}")
    if not changed:
        screen.print_line(screen.status_mark("ok"), f" no tool of {name} has changed")
        return 0
    # Sealed first: no definition is accepted of which the ledger knows nothing.
    with open_ledger(given.ledger, tenant=given.tenant) as ledger:
        seal_trust(ledger, name, changed, by=find_user_name())
    trust_changed_tools(config.home, name, changed)
    screen.print_line(screen.status_mark("ok"), f" accepted: {', '.join(changed)}")
    return 0


def _lay_out(definition: str) -> str:
    import json

    return json.dumps(json.loads(definition), indent=2, sort_keys=True) + "\n"

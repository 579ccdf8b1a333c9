"""The command-line parser, which raises instead of exiting, and the options that several verbs share."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import Any, NoReturn

from aver.clock import parse_moment
from aver.errors import BadInput


class Usage(BadInput):
    """The command line is wrong."""


class Parser(argparse.ArgumentParser):
    """Parses the command line of a verb or of one of its actions. Its help ends with examples."""

    def __init__(self, *, prog: str, summary: str, examples: str) -> None:
        super().__init__(
            prog=prog,
            description=f"{summary[:1].upper()}{summary[1:]}.",
            epilog=f"examples:\n{examples.rstrip()}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )

    def error(self, message: str) -> NoReturn:
        raise Usage(f"{self.prog}: {message}", advice=f"{self.prog} --help shows its options")


def add_ledger(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--ledger",
        metavar="URL",
        help="sqlite:///PATH, PATH or postgresql://... (default: AVER_LEDGER, or ledger.db in AVER_HOME); "
        "log, show, search, sessions and verify also read a bundle or a .cap file here",
    )


def add_tenant(parser: argparse.ArgumentParser, default: str = "the tenant in the settings, or 'default'") -> None:
    parser.add_argument("--tenant", metavar="NAME", help=f"the tenant whose records are used (default: {default})")


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object on stdout and nothing else")


def add_force(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--force", action="store_true", help="replace the file or bundle that is there already")


def has_json_option(arguments: Sequence[str]) -> bool:
    """Whether the command line asks for JSON. Does not parse it: this is also used when parsing failed."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in options


def parse_count(text: str) -> int:
    """A count, for argparse's `type=`."""
    if not re.fullmatch(r"[0-9]{1,9}", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 on")
    return int(text)


def add_passphrase_fd(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--passphrase-fd",
        type=parse_count,
        metavar="N",
        help="read passphrases from this file descriptor, one per line",
    )


def add_action_parser(actions: Any, name: str, summary: str, examples: str) -> argparse.ArgumentParser:
    """The parser of one action of a verb, such as `aver keys new`."""
    parser: argparse.ArgumentParser = actions.add_parser(name, help=summary, summary=summary, examples=examples)
    return parser


def add_new_session(parser: argparse.ArgumentParser) -> None:
    """Add `--session`, for a verb that begins a new session where none is named."""
    # Without a default: argparse would give an empty text to `type=`, too.
    parser.add_argument("--session", type=_parse_session, metavar="NAME", help="the session (default: a new one)")


def _parse_session(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("the name is empty")
    return text


def parse_port(text: str) -> int:
    """A TCP port, for argparse's `type=`."""
    number = parse_count(text)
    if not 1 <= number <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: 1 to 65535")
    return number


def parse_time(text: str) -> str:
    """A time in the form that records use, for argparse's `type=`. A time without a zone is UTC."""
    try:
        return parse_moment(text)
    except BadInput as error:
        raise argparse.ArgumentTypeError(error.message) from None

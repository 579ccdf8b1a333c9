"""What becomes of an argument of programs that fetch and send."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from aver.gate.shell.invocation import Invocation
from aver.gate.shell.model import Word
from aver.gate.shell.programs.verbs.general import Verb

__all__ = ["WEB"]

_READING_METHODS = frozenset(("GET", "HEAD", "OPTIONS"))


def _url(call: Invocation, word: Word) -> None:
    """An address to fetch. Without a name for the file, it gets that at the end of the address."""
    call.report_host(word)
    if call.program == "wget" or any(given.value in ("-O", "--remote-name", "-OL", "-LO") for given in call.words):
        for value in word.values:
            call.report_guarded_path("write", value.partition("?")[0].rpartition("/")[2], word)


def _request_body(call: Invocation, word: Word) -> None:
    """Data to send, or `@` and the file that it is in; with `--data-urlencode` also `name@file`."""
    call.report_effect("egress", word)
    for value in word.values:
        name, at, path = value.partition("@")
        if at and path and path != "-" and "=" not in name and " " not in name:
            call.report_path("read", replace(word, values=(path,)))
    if not word.is_known and word.prefix.startswith("@"):
        call.report_path("read", Word(word.text))


def _raw_body(call: Invocation, word: Word) -> None:
    call.report_effect("egress", word)


def _form_field(call: Invocation, word: Word) -> None:
    """`name=value`, `name=@file`, `name=<file`."""
    call.report_effect("egress", word)
    for value in word.values:
        content = value.partition("=")[2]
        if content[:1] in ("@", "<"):
            path = content[1:].partition(";")[0].strip('"')
            if path != "-":
                call.report_path("read", replace(word, values=(path,)))
    if not word.is_known:
        call.unclear("unknown-target", "what is sent depends on what cannot be seen", word)


def _upload(call: Invocation, word: Word) -> None:
    call.report_effect("egress", word)
    if word.value not in ("-", "."):
        call.report_path("read", word)


def _method(call: Invocation, word: Word) -> None:
    if word.value is None or word.value.upper() not in _READING_METHODS:
        call.report_effect("egress", word)


def _options_file(call: Invocation, word: Word) -> None:
    call.report_effect("network", word)
    call.unclear("unknown-option", f"more options of {call.program} stand in {word.shown}", word)


def _secret_file(call: Invocation, word: Word) -> None:
    call.report_path("read", replace(word, values=tuple(value.partition(":")[0] for value in word.values)))


def _socket(call: Invocation, word: Word) -> None:
    call.report_effect("system", word)
    call.unclear("unknown-target", f"what listens at {word.shown} is not known", word)


def _header(call: Invocation, word: Word) -> None:
    """What goes along with a request. Where it depends on anything, it carries that away."""
    if not word.is_known:
        call.report_effect("egress", word)
    for value in word.values:
        if value.startswith("@"):
            call.report_effect("egress", word)
            call.report_path("read", replace(word, values=(value[1:],)))


def _write_out(call: Invocation, word: Word) -> None:
    """What curl prints at the end; it can be told to print into a file."""
    if word.value is None or word.value.startswith("@") or "%output{" in word.value:
        call.report_effect("write", word)
        call.unclear("unknown-option", "what curl writes to is said in a text that is not looked into", word)


def _cloud_path(call: Invocation, word: Word) -> None:
    """A path here, or an address in someone's storage."""
    if not word.is_known or any("://" in value for value in word.values):
        call.report_host(word, "egress")
    else:
        call.report_path("read", word)
        call.report_path("write", word)


WEB: Mapping[str, Verb] = {
    "url": _url,
    "body": _request_body,
    "raw": _raw_body,
    "form": _form_field,
    "upload": _upload,
    "method": _method,
    "config": _options_file,
    "secretfile": _secret_file,
    "socket": _socket,
    "header": _header,
    "cloud": _cloud_path,
    "writeout": _write_out,
}

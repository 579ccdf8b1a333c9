"""What becomes of an argument of programs that fetch and send."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from aver.gate.commands.call import Call
from aver.gate.commands.model import Word
from aver.gate.commands.verbs.general import Verb

__all__ = ["WEB"]

_ONLY_ASKS = frozenset(("GET", "HEAD", "OPTIONS"))


def _url(call: Call, word: Word) -> None:
    """An address to fetch. Without a name for the file, it gets that at the end of the address."""
    call.connects(word)
    if call.program == "wget" or any(given.value in ("-O", "--remote-name", "-OL", "-LO") for given in call.words):
        for value in word.values:
            call.touches_if_guarded("write", value.partition("?")[0].rpartition("/")[2], word)


def _body(call: Call, word: Word) -> None:
    """Data to send, or `@` and the file that it is in; with `--data-urlencode` also `name@file`."""
    call.does("egress", word)
    for value in word.values:
        name, at, path = value.partition("@")
        if at and path and path != "-" and "=" not in name and " " not in name:
            call.touches("read", replace(word, values=(path,)))
    if not word.is_known and word.prefix.startswith("@"):
        call.touches("read", Word(word.text))


def _raw(call: Call, word: Word) -> None:
    call.does("egress", word)


def _form(call: Call, word: Word) -> None:
    """`name=value`, `name=@file`, `name=<file`."""
    call.does("egress", word)
    for value in word.values:
        content = value.partition("=")[2]
        if content[:1] in ("@", "<"):
            path = content[1:].partition(";")[0].strip('"')
            if path != "-":
                call.touches("read", replace(word, values=(path,)))
    if not word.is_known:
        call.unclear("unknown-target", "what is sent depends on what cannot be seen", word)


def _upload(call: Call, word: Word) -> None:
    call.does("egress", word)
    if word.value not in ("-", "."):
        call.touches("read", word)


def _method(call: Call, word: Word) -> None:
    if word.value is None or word.value.upper() not in _ONLY_ASKS:
        call.does("egress", word)


def _config(call: Call, word: Word) -> None:
    call.does("network", word)
    call.unclear("unknown-option", f"more options of {call.program} stand in {word.shown}", word)


def _secret_file(call: Call, word: Word) -> None:
    call.touches("read", replace(word, values=tuple(value.partition(":")[0] for value in word.values)))


def _socket(call: Call, word: Word) -> None:
    call.does("system", word)
    call.unclear("unknown-target", f"what listens at {word.shown} is not known", word)


def _header(call: Call, word: Word) -> None:
    """What goes along with a request. Where it depends on anything, it carries that away."""
    if not word.is_known:
        call.does("egress", word)
    for value in word.values:
        if value.startswith("@"):
            call.does("egress", word)
            call.touches("read", replace(word, values=(value[1:],)))


def _write_out(call: Call, word: Word) -> None:
    """What curl prints at the end; it can be told to print into a file."""
    if word.value is None or word.value.startswith("@") or "%output{" in word.value:
        call.does("write", word)
        call.unclear("unknown-option", "what curl writes to is said in a text that is not looked into", word)


def _cloud(call: Call, word: Word) -> None:
    """A path here, or an address in someone's storage."""
    if not word.is_known or any("://" in value for value in word.values):
        call.connects(word, "egress")
    else:
        call.touches("read", word)
        call.touches("write", word)


WEB: Mapping[str, Verb] = {
    "url": _url,
    "body": _body,
    "raw": _raw,
    "form": _form,
    "upload": _upload,
    "method": _method,
    "config": _config,
    "secretfile": _secret_file,
    "socket": _socket,
    "header": _header,
    "cloud": _cloud,
    "writeout": _write_out,
}

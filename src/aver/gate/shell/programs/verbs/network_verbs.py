"""The verbs of programs that fetch and send: addresses, bodies, headers, and the clients of services and clusters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from aver.gate.shell.invocation import Invocation
from aver.gate.shell.model import Word
from aver.gate.shell.programs.verbs.file_verbs import judge_read, judge_send
from aver.gate.shell.programs.verbs.verb import Verb

_READING_METHODS = frozenset(("GET", "HEAD", "OPTIONS"))


def _url(call: Invocation, word: Word) -> None:
    """Judge an address to fetch. wget and `curl -O` name the file after the end of the address."""
    call.report_host(word, "loopback" if call.is_loopback else "network")
    if call.program == "wget" or any(given.value in ("-O", "--remote-name", "-OL", "-LO") for given in call.words):
        for value in word.values:
            call.report_guarded_path("write", value.partition("?")[0].rpartition("/")[2], word)


def _egress(call: Invocation, word: Word) -> None:
    """Report that data is sent: away, or to this machine."""
    call.report_effect("loopback" if call.is_loopback else "egress", word)


def _request_body(call: Invocation, word: Word) -> None:
    """Judge data to send, or `@` and the file that holds it; with `--data-urlencode` also `name@file`."""
    _egress(call, word)
    for value in word.values:
        # `name=value@x` is a value, not a file.
        name, at, path = value.partition("@")
        if at and path and path != "-" and "=" not in name and " " not in name:
            call.report_path("read", replace(word, values=(path,)))
    if not word.is_known and word.prefix.startswith("@"):
        call.report_path("read", Word(word.text))


def _form_field(call: Invocation, word: Word) -> None:
    """Judge a form field: `name=value`, `name=@file` or `name=<file`."""
    _egress(call, word)
    for value in word.values:
        content = value.partition("=")[2]
        if content[:1] in ("@", "<"):
            path = content[1:].partition(";")[0].strip('"')
            if path != "-":
                call.report_path("read", replace(word, values=(path,)))
    if not word.is_known:
        call.report_unclear("unknown-target", "what is sent depends on what cannot be seen", word)


def _cookie(call: Invocation, word: Word) -> None:
    """Judge cookies to send: `name=value`, or the file that holds them."""
    _egress(call, word)
    if word.value is None or "=" not in word.value:
        call.report_path("read", word)


def _upload(call: Invocation, word: Word) -> None:
    _egress(call, word)
    if word.value not in ("-", "."):
        call.report_path("read", word)


def _method(call: Invocation, word: Word) -> None:
    if word.value is None or word.value.upper() not in _READING_METHODS:
        _egress(call, word)


def _service(call: Invocation, word: Word) -> None:
    """Judge an operand for the client of a service: a name, or an address that the command names itself."""
    if not word.is_known:
        # An unknown part of a request carries data away, and may name another host.
        call.report_host(word, "egress")
    for value in word.values:
        if "://" in value or value.startswith("//"):
            judge_send(call, replace(word, values=(value,)))


def _service_repository(call: Invocation, word: Word) -> None:
    """Judge `gh -R`: `owner/name` on the host that is set up, or `host/owner/name`."""
    for value in word.values or ("",):
        if value.count("/") > 1 or "." in value.partition("/")[0] or not value:
            judge_send(call, word)


def _service_method(call: Invocation, word: Word) -> None:
    if word.value is None or word.value.upper() not in _READING_METHODS:
        call.report_effect("network", word)
        call.report_effect("egress", word)


def _resource(call: Invocation, word: Word) -> None:
    """Judge an operand of `kubectl get`: a kind, a name, or both. Secrets are kinds, too."""
    if not word.is_known or any("secret" in value.lower() or "://" in value for value in word.values):
        call.report_effect("secret", word, target=word.value or "")
    if not word.is_known:
        call.report_effect("network", word)


def _cluster_file(call: Invocation, word: Word) -> None:
    """Judge `kubectl -f`: a file that names what is asked about, or an address."""
    if not word.is_known or any("://" in value for value in word.values):
        judge_send(call, word)
    else:
        call.report_path("read", word)


def _cluster_format(call: Invocation, word: Word) -> None:
    """Judge `kubectl -o`: the name of a format, or a file with one."""
    for value in word.values:
        if "-file=" in value:
            call.report_path("read", replace(word, values=(value.partition("=")[2],)))


def _secret_file(call: Invocation, word: Word) -> None:
    call.report_path("read", replace(word, values=tuple(value.partition(":")[0] for value in word.values)))


def _socket(call: Invocation, word: Word) -> None:
    call.report_effect("system", word)
    call.report_unclear("unknown-target", f"what listens at {word.short_text} is not known", word)


def _header(call: Invocation, word: Word) -> None:
    """Judge a header. An unknown header carries data away."""
    if not word.is_known:
        _egress(call, word)
    for value in word.values:
        if value.startswith("@"):
            _egress(call, word)
            call.report_path("read", replace(word, values=(value[1:],)))


def _write_out(call: Invocation, word: Word) -> None:
    """Judge the text that curl prints at the end. It can name a file to print to."""
    if word.value is None or word.value.startswith("@") or "%output{" in word.value:
        call.report_effect("write", word)
        call.report_unclear("unknown-option", "what curl writes to is said in a text that is not looked into", word)


def _read_address(call: Invocation, word: Word) -> None:
    """Judge a file, or an address to read it from."""
    if not word.is_known or any("://" in value for value in word.values):
        call.report_host(word)
    else:
        judge_read(call, word)


def _cloud_path(call: Invocation, word: Word) -> None:
    """Judge a local path, or an address in a cloud storage."""
    if not word.is_known or any("://" in value for value in word.values):
        call.report_host(word, "egress")
    else:
        call.report_path("read", word)
        call.report_path("write", word)


NETWORK_VERBS: Mapping[str, Verb] = {
    "url": _url,
    "body": _request_body,
    "raw": _egress,
    "address": _read_address,
    "service": _service,
    "hostless": _service_repository,
    "ghmethod": _service_method,
    "resource": _resource,
    "kubefile": _cluster_file,
    "goformat": _cluster_format,
    "form": _form_field,
    "upload": _upload,
    "cookie": _cookie,
    "method": _method,
    "secretfile": _secret_file,
    "socket": _socket,
    "header": _header,
    "cloud": _cloud_path,
    "writeout": _write_out,
}

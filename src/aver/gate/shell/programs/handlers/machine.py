"""Containers, timetables, network settings, patches and keys."""

from __future__ import annotations

import re
from dataclasses import replace

from aver.gate.shell.invocation import Invocation
from aver.gate.shell.programs.apply import apply_arguments, apply_spec, judge_subcommand
from aver.gate.shell.programs.handlers.transfer import judge_docker_run
from aver.gate.shell.programs.spec import parse_spec, read_arguments
from aver.gate.shell.programs.tables import ROWS

__all__ = ["container", "crontab", "ip", "network_probe", "openssl", "patch"]

_START_SUBCOMMANDS = frozenset(("run", "create", "exec"))
_PATCH = (
    "-p= -i=read -o=write -d= -r=write -B= -D= -F= -g= -V= -Y= -z= --input=read --output=write --directory="
    " --strip= --reject-file=write --dry-run --check -R -N -E -b -s -t -f -u -c -n -e!execute,?code"
    " --ed!execute,?code 1edit 2read"
)
_OPENSSL = (
    "onedash strict -in=read -out=write -inkey=read -key=read -keyout=write -CAfile=read -CApath=read"
    " -CAkey=read -CA=read -cert=read -certfile=read -signkey=read -sign=read -verify=read -signature=read"
    " -config=program -engine=program -provider-path=program -extfile=read -subj= -days= -newkey= -pass="
    " -passin= -passout= -K= -iv= -S= -iter= -md= -digest= -inform= -outform= -keyform= -checkend= -name="
    " -pubout -text -noout -new -x509 -nodes -noenc -req -d -e -a -base64 -A -salt -pbkdf2 -nosalt -hex -binary"
    " -sha256 -sha1 -sha512 -md5 -sha384 -fingerprint -serial -subject -issuer -dates -enddate -startdate"
    " -modulus -pubin -export -nokeys -nocerts -clcerts -aes256 -aes128 -aes-256-cbc -aes-128-cbc -des3"
    " -algorithm= -pkeyopt= -rand= -addext= -set_serial= -CAcreateserial -purpose -ext= -r -c -untrusted=read"
    " -crl_check -p12 -legacy -v -verbose *read"
)
_OPENSSL_NETWORK = frozenset(("s_client", "s_server", "s_time", "ocsp", "cmp", "ts"))


def container(call: Invocation) -> None:
    """`docker` and its kin: starting something is looked into here, the rest stands in a table."""
    call = replace(call, program="docker")
    base = parse_spec(f"posix {ROWS['docker']}")
    given = read_arguments(base, call.words)
    names = [word.value for word in given.operands[:2]]
    start = 1 if names[:1] == ["container"] else 0
    if names[start : start + 1] and names[start] in _START_SUBCOMMANDS:
        apply_arguments(call, base, given.without_operands())
        if names[start] != "exec":
            call.report_effect("network")  # The image may have to be fetched.
        judge_docker_run(call, given.operands[start + 1 :])
    elif call.words and [word.value for word in call.words] not in (["--version"], ["-v"], ["--help"]):
        judge_subcommand(call)


def crontab(call: Invocation) -> None:
    given = read_arguments(parse_spec("(-l -e -r -i) -u= -s"), call.words)
    if given.has("-u"):
        call.report_effect("privilege")
    if given.has("-l"):
        return
    call.report_effect("persist")
    if given.has("-r"):
        call.report_effect("delete")
        return
    for word in given.operands:
        if word.value != "-":
            call.report_path("read", word)
    call.report_effect("execute")
    call.unclear("script", "what will run by the timetable was not looked into", *given.operands)


def ip(call: Invocation) -> None:
    """`ip`: shows, unless a word says that something changes."""
    changes = ("add", "del", "delete", "set", "change", "replace", "flush", "append", "exec", "up", "down")
    for word in call.words:
        if word.value is None or word.value in changes or word.value in ("netns", "-batch", "-b", "-force"):
            call.report_effect("system", word)


def network_probe(call: Invocation) -> None:
    """`ping`, `dig` and the like: a name is asked for, and whatever is put into the name is told."""
    call.report_effect("network")
    for word in call.words:
        if not word.is_known or (word.value is not None and not re.match(r"[-+@0-9]", word.value)):
            call.report_host(word)


def patch(call: Invocation) -> None:
    given = apply_spec(call, parse_spec(_PATCH))
    if not given.operands and not given.has("--dry-run", "--check"):
        directories = list(given.values("-d", "--directory"))
        call.report_unpacking(directories[0] if directories else None)


def openssl(call: Invocation) -> None:
    name = call.words[0].value if call.words else None
    if name in _OPENSSL_NETWORK or name is None:
        call.report_effect("network", *call.words[:1])
        call.report_effect("egress", *call.words[:1])
        call.unclear("unknown-option", "what openssl does here is not looked into", *call.words[:1])
        return
    apply_spec(replace(call, words=call.words[1:]), parse_spec(_OPENSSL))

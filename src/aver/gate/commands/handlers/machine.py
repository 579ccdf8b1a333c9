"""Containers, timetables, network settings, patches and keys."""

from __future__ import annotations

import re
from dataclasses import replace

from aver.gate.commands.apply import apply, apply_given
from aver.gate.commands.call import Call
from aver.gate.commands.handlers.transfer import docker_run
from aver.gate.commands.options import read_arguments, spec_from
from aver.gate.commands.subcommands import subcommand
from aver.gate.commands.tables import ROWS

__all__ = ["container", "crontab", "ip", "looks_up", "openssl", "patch"]

_STARTS = frozenset(("run", "create", "exec"))
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
_OPENSSL_TALKS = frozenset(("s_client", "s_server", "s_time", "ocsp", "cmp", "ts"))


def container(call: Call) -> None:
    """`docker` and its kin: starting something is looked into here, the rest stands in a table."""
    call = replace(call, program="docker")
    base = spec_from(f"posix {ROWS['docker']}")
    given = read_arguments(base, call.words)
    names = [word.value for word in given.operands[:2]]
    start = 1 if names[:1] == ["container"] else 0
    if names[start : start + 1] and names[start] in _STARTS:
        apply_given(call, base, given.without_operands())
        if names[start] != "exec":
            call.does("network")  # The image may have to be fetched.
        docker_run(call, given.operands[start + 1 :])
    elif call.words and [word.value for word in call.words] not in (["--version"], ["-v"], ["--help"]):
        subcommand(call)


def crontab(call: Call) -> None:
    given = read_arguments(spec_from("(-l -e -r -i) -u= -s"), call.words)
    if given.has("-u"):
        call.does("privilege")
    if given.has("-l"):
        return
    call.does("persist")
    if given.has("-r"):
        call.does("delete")
        return
    for word in given.operands:
        if word.value != "-":
            call.touches("read", word)
    call.does("execute")
    call.unclear("script", "what will run by the timetable was not looked into", *given.operands)


def ip(call: Call) -> None:
    """`ip`: shows, unless a word says that something changes."""
    changes = ("add", "del", "delete", "set", "change", "replace", "flush", "append", "exec", "up", "down")
    for word in call.words:
        if word.value is None or word.value in changes or word.value in ("netns", "-batch", "-b", "-force"):
            call.does("system", word)


def looks_up(call: Call) -> None:
    """`ping`, `dig` and the like: a name is asked for, and whatever is put into the name is told."""
    call.does("network")
    for word in call.words:
        if not word.is_known or (word.value is not None and not re.match(r"[-+@0-9]", word.value)):
            call.connects(word)


def patch(call: Call) -> None:
    given = apply(call, spec_from(_PATCH))
    if not given.operands and not given.has("--dry-run", "--check"):
        directories = list(given.values("-d", "--directory"))
        call.unpacks_into(directories[0] if directories else None)


def openssl(call: Call) -> None:
    name = call.words[0].value if call.words else None
    if name in _OPENSSL_TALKS or name is None:
        call.does("network", *call.words[:1])
        call.does("egress", *call.words[:1])
        call.unclear("unknown-option", "what openssl does here is not looked into", *call.words[:1])
        return
    apply(replace(call, words=call.words[1:]), spec_from(_OPENSSL))

"""Handlers of containers, `crontab`, network programs, `patch` and `openssl`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from aver.gate.shell.invocation import Invocation
from aver.gate.shell.model import Word
from aver.gate.shell.programs.apply import apply_arguments, apply_options, apply_spec, judge_subcommand
from aver.gate.shell.programs.spec import parse_spec, read_arguments
from aver.gate.shell.programs.tables import ROWS
from aver.lazy_pattern import lazy_pattern

_START_SUBCOMMANDS = frozenset(("run", "create", "exec"))
_DOCKER_RUN = (
    "posix (-d -i -t -P --rm --init --detach --interactive --tty --read-only --no-healthcheck"
    " --sig-proxy? --quiet -q --privileged!privilege --oom-kill-disable --disable-content-trust? --publish-all"
    " --replace --no-hosts --tls-verify? --rmi) -v= -p= -e= -u= -w= -h= -l= -m= -c= -a= --volume= --mount="
    " --tmpfs= --volumes-from=!privilege --env= --env-file=read --publish= --expose= --name= --hostname="
    " --workdir= --user= --entrypoint= --network= --net= --ip= --dns= --add-host= --label= --label-file=read"
    " --memory= --memory-swap= --cpus= --cpu-shares= --cpuset-cpus= --gpus= --platform= --pull="
    " --restart=!persist --stop-signal= --stop-timeout= --shm-size= --ulimit= --log-driver= --log-opt="
    " --health-cmd= --health-interval= --cidfile=write --isolation= --runtime=!privilege --pid=!privilege"
    " --ipc=!privilege --uts=!privilege --userns=!privilege --cgroupns= --cap-add=!privilege --cap-drop="
    " --device=!privilege --security-opt=!privilege --group-add= --sysctl=!privilege --cgroup-parent=!privilege"
    " --detach-keys= --annotation= --link= --storage-opt= --pids-limit="
)
_PATCH = (
    "gnu -[RNEbstfuclnZT] -p= -i=read -o=write -d= -r=write -B= -D= -F= -g= -V= -Y= -z= --input=read --output=write"
    " --directory="
    " --strip= --reject-file=write --dry-run --check --quiet --silent --verbose --force --batch"
    " --forward --reverse --backup --posix --unified --normal --context --remove-empty-files --ignore-whitespace"
    " --fuzz= --merge? --no-backup-if-mismatch --binary --version-control= --prefix= --suffix= -R -N -E -b -s -t -f"
    " -u -c -n -e!execute,?code"
    " --ed!execute,?code 1edit 2read"
)
_OPENSSL = (
    "onedash -in=read -out=write -inkey=read -key=read -keyout=write -CAfile=read -CApath=read"
    " -CAkey=read -CA=read -cert=read -certfile=read -signkey=read -sign=read -verify=read -signature=read"
    " -config=program -engine=program -provider-path=program -extfile=read -subj= -days= -newkey= -pass="
    " -passin= -passout= -K= -iv= -S= -iter= -md= -digest= -inform= -outform= -keyform= -checkend= -name="
    " -pubout -text -noout -new -x509 -nodes -noenc -req -d -e -a -base64 -A -salt -pbkdf2 -nosalt -hex -binary"
    " -sha256 -sha1 -sha512 -md5 -sha384 -fingerprint -serial -subject -issuer -dates -enddate -startdate"
    " -modulus -pubin -export -nokeys -nocerts -clcerts -aes256 -aes128 -aes-256-cbc -aes-128-cbc -des3"
    " -algorithm= -pkeyopt= -rand= -addext= -set_serial= -CAcreateserial -purpose -ext= -r -c -untrusted=read"
    " -crl_check -p12 -legacy -v -verbose *read"
)
_LOOPBACK_PROBE = lazy_pattern(r"localhost|127(?:\.[0-9]{1,3}){3}|::1|-[cwWiqn46]|[0-9]+")
_OPENSSL_NETWORK = frozenset(("s_client", "s_server", "s_time", "ocsp", "cmp", "ts"))


def container(call: Invocation) -> None:
    """Judge `docker` and compatible programs. Starting a container is judged here, the rest by a table."""
    # Podman and nerdctl take the same options.
    call = replace(call, program="docker")
    base = parse_spec(f"posix {ROWS['docker']}")
    given = read_arguments(base, call.words)
    names = [word.value for word in given.operands[:2]]
    start = 1 if names[:1] == ["container"] else 0
    if names[start : start + 1] and names[start] in _START_SUBCOMMANDS:
        apply_arguments(call, base, given.without_operands())
        if names[start] != "exec":
            call.report_effect("network")  # docker may have to fetch the image
        _judge_container_start(call, given.operands[start + 1 :])
    elif call.words and [word.value for word in call.words] not in (["--version"], ["-v"], ["--help"]):
        judge_subcommand(call)


def _judge_container_start(call: Invocation, words: Sequence[Word]) -> None:
    """Judge `docker run`, `create` and `exec`: which parts of this machine the container can reach."""
    call = replace(call, words=tuple(words))
    given = apply_options(call, parse_spec(_DOCKER_RUN))
    for value in given.option_values("-v", "--volume"):
        _report_mount(call, value, value.prefix.partition(":")[0], ":ro" in value.prefix.partition(":")[2])
    for value in given.option_values("--mount"):
        settings = dict(part.partition("=")[::2] for part in value.prefix.split(","))
        path = settings.get("source", settings.get("src", ""))
        _report_mount(call, value, path, "readonly" in settings or "ro" in settings)
    for value in given.option_values("--network", "--net"):
        if value.value is None or value.value == "host" or value.value.startswith("container:"):
            call.report_effect("privilege", value)
    call.report_effect("execute", *given.operands[:1])
    call.report_unclear("container", "what runs in the container is not looked into", *given.operands)


def _report_mount(call: Invocation, word: Word, path: str, is_read_only: bool) -> None:
    if not word.is_known and not path:
        call.report_unclear("unknown-target", "what is mounted depends on what cannot be seen", word)
        return
    if not path.startswith(("/", ".", "~")):
        return  # a volume that docker itself manages
    host = Word(word.text, (path,), path)
    # These give the container this whole machine.
    if path == "/" or path.endswith(("docker.sock", "podman.sock", "containerd.sock")):
        call.report_effect("privilege", word)
    call.report_path("read", host)
    if not is_read_only:
        call.report_path("write", host)


def crontab(call: Invocation) -> None:
    given = apply_options(call, parse_spec("-[leris] -u= -n -T -c"))
    if given.has_option("-u"):
        call.report_effect("privilege")
    if given.has_option("-l"):
        return
    call.report_effect("persist")
    if given.has_option("-r"):
        call.report_effect("delete")
        return
    for word in given.operands:
        if word.value != "-":
            call.report_path("read", word)
    call.report_effect("execute")
    call.report_unclear("script", "what will run by the timetable was not looked into", *given.operands)


def ip(call: Invocation) -> None:
    """Judge `ip`, which only reads unless a word asks for a change."""
    changes = ("add", "del", "delete", "set", "change", "replace", "flush", "append", "exec", "up", "down")
    for word in call.words:
        if word.value is None or word.value in changes or word.value in ("netns", "-batch", "-b", "-force"):
            call.report_effect("system", word)


def network_probe(call: Invocation) -> None:
    """Judge `ping`, `dig` and similar programs. Looking up a name sends that name to another machine."""
    if all(
        word.value is not None and _LOOPBACK_PROBE.fullmatch(word.value) for word in call.words
    ) and call.program in (*("ping", "ping6"),):
        call.report_effect("loopback", *call.words)
        return
    call.report_effect("network")
    for word in call.words:
        # Options, servers after `@`, and numbers are not hosts to report.
        if not word.is_known or (word.value is not None and not re.match(r"[-+@0-9]", word.value)):
            call.report_host(word)


def patch(call: Invocation) -> None:
    given = apply_spec(call, parse_spec(_PATCH))
    if not given.operands and not given.has_option("--dry-run", "--check"):
        directories = list(given.option_values("-d", "--directory"))
        call.report_unpacking(directories[0] if directories else None)


def openssl(call: Invocation) -> None:
    name = call.words[0].value if call.words else None
    if name in _OPENSSL_NETWORK or name is None:
        call.report_effect("network", *call.words[:1])
        call.report_effect("egress", *call.words[:1])
        call.report_unclear("unknown-option", "what openssl does here is not looked into", *call.words[:1])
        return
    apply_spec(replace(call, words=call.words[1:]), parse_spec(_OPENSSL))

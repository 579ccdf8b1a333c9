"""Programs that copy to and run on other machines, and in containers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from aver.gate.shell.invocation import Invocation
from aver.gate.shell.model import Word
from aver.gate.shell.programs.apply import apply_options
from aver.gate.shell.programs.spec import ParsedArguments, ProgramSpec, parse_spec

__all__ = ["judge_docker_run", "rsync", "scp", "ssh"]

_REMOTE_PATH = re.compile(r"(?:[^/:\s]+@)?(?:\[[0-9A-Fa-f:.]+\]|[^/:\s]+):|(?:rsync|ssh|scp|sftp)://")
_SSH = (
    "posix strict (-4 -6 -A -a -C -f -G -g -K -k -M -N -n -q -s -T -t -V -v -X -x -Y -y) -B= -b= -c= -D="
    " -E=write -e= -F=read -I=program -i=secretfile -J=host -L= -l= -m= -O= -o= -P= -p= -Q= -R= -S="
    " -W=host -w="
)
_SCP = (
    "strict (-3 -4 -6 -A -B -C -O -p -q -R -r -s -T -v) -c= -D=program -F=read -i=secretfile -J=host -l="
    " -o= -P= -S=program -X= -b=read"
)
_RSYNC = (
    "(-a -v -z -r -n -u -P -h -l -p -t -g -o -D -H -A -X -E -S -x -c -q -R -L -k -K -W -i -m -I -0 -4 -6 -b -d"
    " -y -C -F -s -O -J -U -N) -e=run -B= -M= -T= -f= --rsh=run --rsync-path=code --exclude= --include="
    " --exclude-from=read --include-from=read --files-from=read --filter= --log-file=write --log-file-format="
    " --password-file=secretfile --backup-dir=write --temp-dir=write --partial-dir=write --compare-dest=read"
    " --copy-dest=read --link-dest=read --max-size= --min-size= --max-delete= --timeout= --port= --bwlimit="
    " --chmod= --chown= --info= --debug= --out-format= --delete!delete --delete-before!delete"
    " --delete-during!delete --delete-after!delete --delete-excluded!delete --delete-delay!delete --del!delete"
    " --remove-source-files!delete --write-batch=write --only-write-batch=write --read-batch=read"
    " --early-input=read --daemon!network,?unknown-option"
)
_DOCKER_RUN = (
    "posix strict (-d -i -t -P --rm --init --detach --interactive --tty --read-only --no-healthcheck"
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
_COMMAND_SETTINGS = ("proxycommand", "localcommand", "knownhostscommand")


def _apply_ssh_options(call: Invocation, spec: ProgramSpec) -> ParsedArguments:
    """Arguments sorted out and judged, but for settings of ssh and operands."""
    given = apply_options(call, spec)
    for value in given.values("-o"):
        _judge_ssh_setting(call, value)
    return given


def _judge_ssh_setting(call: Invocation, word: Word) -> None:
    name, _, value = re.sub(r"\s*[= ]\s*", "=", word.prefix, count=1).partition("=")
    if name.lower() in _COMMAND_SETTINGS and value.lower() != "none":
        call.judge_script_word(word.after(len(word.prefix) - len(value)), "ssh -o")
    elif not word.is_known and not name:
        call.unclear("unknown-option", "a setting of ssh that cannot be seen", word)


def ssh(call: Invocation) -> None:
    given = _apply_ssh_options(call, parse_spec(_SSH))
    if not given.operands:
        return
    call.report_host(given.operands[0])
    call.report_host(given.operands[0], "egress")
    call.report_effect("execute", *given.operands[1:])
    call.unclear("remote", "what runs on the other machine is not looked into", *given.operands[1:])


def scp(call: Invocation) -> None:
    given = _apply_ssh_options(call, parse_spec(_SCP))
    _judge_copy(call, given.operands)
    if call.program == "sftp":
        call.report_effect("network")
        call.unclear("remote", "what sftp does there is not looked into")


def rsync(call: Invocation) -> None:
    given = _apply_ssh_options(call, parse_spec(_RSYNC))
    _judge_copy(call, given.operands)


def _is_remote(word: Word) -> bool:
    return _REMOTE_PATH.match(word.prefix) is not None or not (word.is_known or word.prefix)


def _judge_copy(call: Invocation, operands: Sequence[Word]) -> None:
    """Sources, then where they go to."""
    if not operands:
        return
    *sources, target = operands
    away = _is_remote(target)
    for word in sources or [target]:
        if _is_remote(word):
            call.report_host(word)
        else:
            call.report_path("read", word)
    if away:
        call.report_host(target)
        call.report_host(target, "egress")
    elif sources:
        call.report_path("write", target)


def judge_docker_run(call: Invocation, words: Sequence[Word]) -> None:
    """`docker run`, `create` and `exec`: what of this machine a container gets to touch."""
    call = replace(call, words=tuple(words))
    given = apply_options(call, parse_spec(_DOCKER_RUN))
    for value in given.values("-v", "--volume"):
        _report_mount(call, value, value.prefix.partition(":")[0], ":ro" in value.prefix.partition(":")[2])
    for value in given.values("--mount"):
        settings = dict(part.partition("=")[::2] for part in value.prefix.split(","))
        path = settings.get("source", settings.get("src", ""))
        _report_mount(call, value, path, "readonly" in settings or "ro" in settings)
    for value in given.values("--network", "--net"):
        if value.value is None or value.value == "host" or value.value.startswith("container:"):
            call.report_effect("privilege", value)
    call.report_effect("execute", *given.operands[:1])
    call.unclear("container", "what runs in the container is not looked into", *given.operands)


def _report_mount(call: Invocation, word: Word, path: str, is_read_only: bool) -> None:
    if not word.is_known and not path:
        call.unclear("unknown-target", "what is mounted depends on what cannot be seen", word)
        return
    if not path.startswith(("/", ".", "~")):
        return  # a volume of the engine's own
    host = Word(word.text, (path,), path)
    if path == "/" or path.endswith(("docker.sock", "podman.sock", "containerd.sock")):
        call.report_effect("privilege", word)
    call.report_path("read", host)
    if not is_read_only:
        call.report_path("write", host)

"""Programs that need more than a line of a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from aver.gate.commands.call import Call
from aver.gate.commands.handlers import (
    archives,
    files,
    finding,
    languages,
    machine,
    repository,
    shell,
    streams,
    transfer,
    wrappers,
)
from aver.gate.commands.state import Outcome

__all__ = ["HANDLERS"]

Handler = Callable[[Call], Outcome | None]


def _named(names: str, handler: Handler) -> dict[str, Handler]:
    return dict.fromkeys(names.split(), handler)


HANDLERS: Mapping[str, Handler] = {
    **_named("sh bash dash zsh ksh mksh ash rbash fish csh tcsh nu xonsh elvish", shell.shell),
    **_named("source .", shell.source),
    **_named("cd pushd chdir", shell.cd),
    **_named("exit return logout", shell.leave),
    **_named("export declare typeset readonly", shell.declare),
    **_named("mapfile readarray", shell.mapfile),
    "popd": shell.popd,
    "eval": shell.eval_words,
    "exec": shell.exec_words,
    "trap": shell.trap,
    "alias": shell.alias,
    "set": shell.set_options,
    **_named("env genv", wrappers.env),
    **_named("sudo doas", wrappers.sudo),
    **_named("busybox toybox", wrappers.applet),
    **_named("xargs gxargs", wrappers.xargs),
    **_named("parallel sem rush", wrappers.parallel),
    "printenv": wrappers.printenv,
    **_named("command builtin noglob nocorrect", wrappers.command),
    **_named("read printf getopts let unset local test [", shell.fills),
    **_named(
        "ping ping6 traceroute traceroute6 tracepath mtr arping fping whois host nslookup dig drill", machine.looks_up
    ),
    **_named("avahi-resolve dns-sd kdig doggo dog hping3", machine.looks_up),
    "su": wrappers.su,
    "watch": wrappers.watch,
    "script": wrappers.script,
    **_named("find gfind", finding.find),
    **_named("fd fdfind", finding.fd),
    **_named("sed gsed", streams.sed),
    **_named("awk gawk mawk nawk", streams.awk),
    **_named("tar gtar bsdtar", archives.tar),
    **_named("unzip unar", archives.unzip),
    **_named("cp mv install gcp gmv ginstall ditto", files.copy),
    **_named("chmod chown chgrp", files.chmod),
    **_named("dd gdd", files.dd),
    **_named("ln gln link symlink", files.ln),
    "git": repository.git,
    "ssh": transfer.ssh,
    **_named("scp sftp", transfer.scp),
    "rsync": transfer.rsync,
    **_named("docker podman nerdctl", machine.container),
    "crontab": machine.crontab,
    "ip": machine.ip,
    "patch": machine.patch,
    "openssl": machine.openssl,
    **_named("python pypy", languages.python),
    **_named("node nodejs", languages.node),
    **_named(" ".join(languages.INTERPRETERS), languages.interpreter),
    **_named("npx bunx uvx pnpx", languages.fetched),
    "sqlite3": languages.sqlite,
}

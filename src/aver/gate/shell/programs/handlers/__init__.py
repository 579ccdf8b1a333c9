"""Handlers: functions that judge programs for which a line of a table is not enough.

A handler gets an `Invocation` and reports findings on it. It returns the states after the program, or None if the
program does not change the directory. Aver imports a module of handlers when it meets the first of its programs, so
judging `git status` does not load `tar`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aver.gate.shell.invocation import Invocation
    from aver.gate.shell.model import StatesAfter

__all__ = ["HANDLERS", "OPEN_PROGRAMS", "ProgramHandler", "find_handler"]

ProgramHandler = Callable[["Invocation"], "StatesAfter | None"]

_PROGRAMS_BY_FUNCTION: Mapping[str, Mapping[str, str]] = {
    "shell": {
        "shell": "sh bash dash zsh ksh mksh ash rbash fish csh tcsh nu xonsh elvish",
        "source": "source .",
        "cd": "cd pushd chdir",
        "exit_shell": "exit return logout",
        "declare": "export declare typeset readonly local",
        "mapfile": "mapfile readarray",
        "popd": "popd",
        "eval_words": "eval",
        "exec_words": "exec",
        "trap": "trap",
        "alias": "alias",
        "set_options": "set",
        "variable_builtin": "read printf getopts let unset test [",
        "kill": "kill",
        "fc": "fc",
    },
    "wrappers": {
        "env": "env genv",
        "cross_env": "cross-env",
        "sudo": "sudo doas",
        "busybox": "busybox toybox",
        "xargs": "xargs gxargs",
        "parallel": "parallel sem",
        "printenv": "printenv",
        "command": "command builtin noglob nocorrect",
        "su": "su",
        "watch": "watch",
        "script": "script",
    },
    "machine": {
        "network_probe": (
            "ping ping6 traceroute traceroute6 tracepath mtr arping fping whois host nslookup dig drill avahi-resolve "
            "dns-sd kdig doggo dog hping3"
        ),
        "container": "docker podman nerdctl",
        "crontab": "crontab",
        "ip": "ip",
        "patch": "patch",
        "openssl": "openssl",
    },
    "search": {
        "find": "find gfind",
        "fd": "fd fdfind",
    },
    "streams": {
        "sed": "sed gsed",
        "awk": "awk gawk mawk nawk",
        "yq": "yq",
    },
    "files": {
        "copy": "cp mv install gcp gmv ginstall ditto",
        "chmod": "chmod chown chgrp",
        "dd": "dd gdd",
        "ln": "ln gln link symlink",
        "tar": "tar gtar bsdtar",
        "unzip": "unzip unar",
    },
    "git": {
        "git": "git",
    },
    "transfer": {
        "ssh": "ssh",
        "scp": "scp sftp",
        "rsync": "rsync",
        "fetch": "curl wget",
        "netcat": "nc netcat",
    },
    "languages": {
        "python": "python pypy",
        "node": "node nodejs",
        "interpreter": (
            "perl ruby php lua luajit Rscript julia osascript tclsh expect java deno tsx ts-node jshell bc dc m4 "
            "pwsh powershell cmd"
        ),
        "package_runner": "npx bunx uvx pnpx",
        "sqlite": "sqlite3",
    },
}
"""Programs by module and function. The names are strings, because modules are loaded late; a test checks them."""

HANDLERS: Mapping[str, tuple[str, str]] = {
    program: (module, function)
    for module, functions in _PROGRAMS_BY_FUNCTION.items()
    for function, programs in functions.items()
    for program in programs.split()
}


OPEN_PROGRAMS = frozenset(
    (
        # Their options are looked through, but not listed one by one.
        *("parallel", "sem", "ip", "busybox", "toybox"),
        *(name for name, (_, function) in HANDLERS.items() if function in ("network_probe", "interpreter", "node")),
        # Their words are a language of its own.
        *("awk", "gawk", "mawk", "nawk", "sqlite3", "openssl", "test", "[", "let"),
    )
)
"""Programs whose handler has no closed list of options. With them `CommandAnalysis.is_fully_listed` is false."""


@lru_cache(maxsize=256)
def find_handler(program: str) -> ProgramHandler | None:
    """Return the handler of a program, or None if a line of a table judges it. Imports its module at the first use."""
    if program not in HANDLERS:
        return None
    module, function = HANDLERS[program]
    handler: ProgramHandler = getattr(import_module(f"aver.gate.shell.programs.handlers.{module}"), function)
    return handler

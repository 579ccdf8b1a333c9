"""Handlers of programs that copy to other machines and run commands there."""

from __future__ import annotations

import re
from collections.abc import Sequence

from aver.gate.shell.invocation import Invocation
from aver.gate.shell.model import Word
from aver.gate.shell.programs.apply import apply_arguments, apply_options
from aver.gate.shell.programs.spec import ParsedArguments, ProgramSpec, parse_spec, read_arguments
from aver.gate.shell.programs.tables import ROWS
from aver.lazy_pattern import lazy_pattern

_REMOTE_PATH = re.compile(r"(?:[^/:\s]+@)?(?:\[[0-9A-Fa-f:.]+\]|[^/:\s]+):|(?:rsync|ssh|scp|sftp)://")
_SSH = (
    "posix (-4 -6 -A -a -C -f -G -g -K -k -M -N -n -q -s -T -t -V -v -X -x -Y -y) -B= -b= -c= -D="
    " -E=write -e= -F=read -I=program -i=secretfile -J=host -L= -l= -m= -O= -o= -P= -p= -Q= -R= -S="
    " -W=host -w="
)
_SCP = (
    "(-3 -4 -6 -A -B -C -O -p -q -R -r -s -T -v) -c= -D=program -F=read -i=secretfile -J=host -l="
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
    " --early-input=read --daemon!network,?unknown-option --archive --verbose --compress --recursive --dry-run --update"
    " --progress --human-readable --links --perms --times --group --owner --devices --specials --hard-links --acls"
    " --xattrs --executability --sparse --one-file-system --checksum --quiet --relative --copy-links --safe-links"
    " --copy-dirlinks --keep-dirlinks --whole-file --itemize-changes --prune-empty-dirs --ignore-times --size-only"
    " --from0 --ipv4 --ipv6 --backup --suffix= --dirs --fuzzy --cvs-exclude --ignore-existing --existing --inplace"
    " --append --append-verify --partial --stats --no-perms --no-owner --no-group --no-times --delay-updates --force"
    " --numeric-ids --omit-dir-times --protect-args --compress-level= --block-size= --modify-window= --mkpath"
    " --ignore-errors --super --fake-super --no-motd --address= --sockopts= --contimeout= --blocking-io --outbuf="
    " --remote-option=code --iconv= --checksum-seed= --copy-unsafe-links --munge-links --preallocate --list-only"
)
_COMMAND_SETTINGS = ("proxycommand", "localcommand", "knownhostscommand")


def _apply_ssh_options(call: Invocation, spec: ProgramSpec) -> ParsedArguments:
    """Judge the options, including the settings of `-o`. Returns all arguments."""
    given = apply_options(call, spec)
    for value in given.option_values("-o"):
        # ssh takes `Name=value` and `Name value`.
        name, _, setting = re.sub(r"\s*[= ]\s*", "=", value.prefix, count=1).partition("=")
        if name.lower() in _COMMAND_SETTINGS and setting.lower() != "none":
            call.judge_script_word(value.drop_first(len(value.prefix) - len(setting)), "ssh -o")
        elif not value.is_known and not name:
            call.report_unclear("unknown-option", "a setting of ssh that cannot be seen", value)
    return given


def ssh(call: Invocation) -> None:
    given = _apply_ssh_options(call, parse_spec(_SSH))
    if not given.operands:
        return
    call.report_host(given.operands[0])
    call.report_host(given.operands[0], "egress")
    # Without a command ssh starts a shell there, which is no clearer.
    call.report_effect("execute", *given.operands[1:])
    call.report_unclear("remote", "what runs on the other machine is not looked into", *given.operands[1:])


def scp(call: Invocation) -> None:
    given = _apply_ssh_options(call, parse_spec(_SCP))
    _judge_copy(call, given.operands)
    if call.program == "sftp":
        call.report_effect("network")
        call.report_unclear("remote", "what sftp does there is not looked into")


def rsync(call: Invocation) -> None:
    given = _apply_ssh_options(call, parse_spec(_RSYNC))
    _judge_copy(call, given.operands)


def _is_remote(word: Word) -> bool:
    return _REMOTE_PATH.match(word.prefix) is not None or not (word.is_known or word.prefix)


def _judge_copy(call: Invocation, operands: Sequence[Word]) -> None:
    """Judge sources, then the target."""
    if not operands:
        return
    *sources, target = operands
    # A source on another machine is fetched, a target there gets the data.
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


_LOOPBACK_ADDRESS = lazy_pattern(
    r"(?:https?://)?(?:localhost|127(?:\.[0-9]{1,3}){3}|\[::1\])(?::(?P<port>[0-9]{1,5}))?(?:[/?][^\s\\{}\[\]]*)?",
    re.IGNORECASE,
)
_LOOPBACK_HOST = lazy_pattern(r"localhost|127(?:\.[0-9]{1,3}){3}|::1", re.IGNORECASE)
_ELSEWHERE = {
    "curl": (
        *("-L", "--location", "--location-trusted", "-x", "--proxy", "--preproxy", "-K", "--config", "--unix-socket"),
        *(
            "--abstract-unix-socket",
            "--resolve",
            "--connect-to",
            "--dns-servers",
            "--doh-url",
            "--interface",
            "--variable",
        ),
        *(
            "--expand-url",
            "--netrc-file",
            "-n",
            "--netrc",
            "-E",
            "--cert",
            "--key",
            "-P",
            "-Q",
            "--mail-rcpt",
            "--hsts",
        ),
        *("--alt-svc", "--libcurl", "--url-query"),
    ),
    "wget": (
        *(
            "-e",
            "--execute",
            "--config",
            "-i",
            "--input-file",
            "-r",
            "--recursive",
            "-m",
            "--mirror",
            "-p",
            "-B",
            "--base",
        ),
        *("--page-requisites", "-H", "--use-askpass", "--certificate", "--private-key", "--load-cookies", "-F"),
    ),
}
"""Options after which a request may go elsewhere than its address says, or may take along more than is shown."""


_READING_METHODS = frozenset(("GET", "HEAD", "OPTIONS"))
_SENDING_OPTIONS = {
    "curl": (
        *("-d", "--data", "--data-ascii", "--data-binary", "--data-raw", "--data-urlencode", "--json", "-F", "--form"),
        *("--form-string", "-T", "--upload-file", "--mail-from"),
    ),
    "wget": ("--post-data", "--post-file", "--body-data", "--body-file"),
}
"""Options that make a request send something, and so change its method."""

_CONTROL_PORTS = frozenset(
    (
        *(2375, 2376, 2377),  # Docker
        *(6443, 8001, 10248, 10250, 10255, 10256),  # Kubernetes
        *(2379, 2380, 8200, 8500, 4646, 4001),  # etcd, Vault, Consul, Nomad
        *(9222, 9223, 9229, 9515, 4444, 4445, 5037, 5005),  # debuggers of browsers, Node, Java, Android
        *(3306, 5432, 6379, 6380, 11211, 27017, 9200, 9300, 5984, 7474, 8086, 9042, 1433, 1521),  # databases
        *(5672, 15672, 9092, 4222, 8222, 1883),  # queues
        *(22, 23, 25, 110, 143, 587, 631, 5900, 6000, 9001, 4040, 16509, 19999, 8125, 1080, 3128),  # other services
    )
)
"""Ports by which a service is steered, or shows what it keeps. A server under development rarely has one of these."""


def fetch(call: Invocation) -> None:
    """Judge `curl` and `wget` by their lines. A request to this machine alone is `loopback`, not `network`.

    Some servers on this machine control more than they show: Docker, a browser's debugger, a database. So a request
    that sends something, or goes to the usual port of such a server, is unclear.
    """
    spec = parse_spec(ROWS[call.program])
    given = read_arguments(spec, call.words)
    addresses = [*given.operands, *given.option_values("--url")]
    # wget follows redirections by itself.
    follows = call.program == "wget" and "0" not in {value.value for value in given.option_values("--max-redirect")}
    call.is_loopback = (
        bool(addresses)
        and all(_is_loopback_address(word) for word in addresses)
        and not given.has_option(*_ELSEWHERE[call.program])
        and not given.unlisted
        and not (follows and not given.has_option("--spider"))
    )
    if call.program == "wget" and given.has_option("--version", "-V", "-h"):
        return
    if call.is_loopback:
        _judge_loopback(call, given, addresses)
    apply_arguments(call, spec, given)


def _judge_loopback(call: Invocation, given: ParsedArguments, addresses: Sequence[Word]) -> None:
    """Report a request to this machine by which more may happen than that something is shown."""
    methods = {(value.value or "?").upper() for value in given.option_values("-X", "--request", "--method")}
    sends = given.has_option(*_SENDING_OPTIONS[call.program])
    # After `--next` comes another request, with a method of its own.
    is_read = given.has_option("-G", "--get", "-X", "--request", "--method") and not given.has_option("--next", "-:")
    headers = "".join(word.text.lower() for word in given.option_values("-H", "--header"))
    if not methods <= _READING_METHODS or (sends and not is_read) or "method-override" in headers:
        why = "what a request that sends something changes in a server on this machine is not known"
        call.report_unclear("unknown-target", why, *addresses)
    for word in addresses:
        for value in word.values:
            found = _LOOPBACK_ADDRESS.fullmatch(value)
            if found is not None and found["port"] and int(found["port"]) in _CONTROL_PORTS:
                why = f"port {int(found['port'])} of this machine may control a service, a database or a debugger"
                call.report_unclear("unknown-target", why, word)


def _is_loopback_address(word: Word) -> bool:
    return word.is_known and all(_LOOPBACK_ADDRESS.fullmatch(value) for value in word.values)


_PROBE_OPTIONS = frozenset(("-z", "-v", "-n", "-w", "-4", "-6", "-t"))


def netcat(call: Invocation) -> None:
    """Judge `nc`. With `-z` it only tries whether a port is open."""
    spec = parse_spec(
        "-[zvnutl46dkN] -w= -p= -s= -q= -i= -e=program -c=run -x=send -X= -o=write -U!?unknown-target -I= -O= -G="
    )
    given = apply_options(call, spec)
    hosts = given.operands[:1]
    is_probe = given.has_option("-z") and {option.name for option, _, _ in given.options} <= _PROBE_OPTIONS
    if is_probe and hosts and all(_LOOPBACK_HOST.fullmatch(value) for value in hosts[0].values or ("",)):
        call.report_host(hosts[0], "loopback")
        return
    call.report_effect("network")
    call.report_effect("egress")
    for word in hosts:
        call.report_host(word)
    call.report_unclear("unknown-program", f"what {call.program} sends and receives is not looked into")

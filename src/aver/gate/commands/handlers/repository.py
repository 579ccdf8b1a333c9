"""`git`: its own options, its settings, and the subcommands, which stand in a table."""

from __future__ import annotations

from dataclasses import replace

from aver.gate.commands.apply import apply_options
from aver.gate.commands.call import Call
from aver.gate.commands.model import Word
from aver.gate.commands.options import Given, read_arguments, spec_from
from aver.gate.commands.state import moved
from aver.gate.commands.subcommands import subcommand
from aver.gate.commands.verbs.repository import is_harmless_setting
from aver.gate.places import locate

__all__ = ["git"]

_GIT = (
    "posix strict (-p -P -v -h --paginate --no-pager --bare --no-replace-objects --literal-pathspecs"
    " --glob-pathspecs --noglob-pathspecs --icase-pathspecs --no-optional-locks --no-lazy-fetch --no-advice"
    " --version --help --html-path --man-path --info-path) -C= -c=setting --config-env=setting --exec-path?"
    " --git-dir= --work-tree= --namespace= --super-prefix= --list-cmds= --attr-source="
)
_CONFIG = (
    "(-l -z -e --global --system --local --worktree --get --get-all --get-regexp --get-urlmatch --list --null"
    " --name-only --show-origin --show-scope --includes --no-includes --unset --unset-all --add --replace-all"
    " --rename-section --remove-section --edit --get-color --get-colorbool --bool --int --path --fixed-value"
    " --all --regexp) -f= --file= --blob= --type= -t= --default= --comment= --value= --url="
)
_ASKS = ("-l", "--list", "--get", "--get-all", "--get-regexp", "--get-urlmatch", "--get-color", "--get-colorbool")
_REMOVES = ("--unset", "--unset-all", "--remove-section")


def git(call: Call) -> None:
    given = apply_options(call, spec_from(_GIT))
    for option, value, word in given.options:
        if option.name == "-C" and value is not None:
            good, _ = moved(call.state, value, call.ground)
            call = replace(call, state=good or call.state)
        elif option.name == "--exec-path" and value is not None:
            call.does("execute", word)
            call.unclear("environment", "git looks for its programs elsewhere", word)
        elif option.name in ("--git-dir", "--work-tree") and value is not None and not call.is_in_workspace(value):
            call.does("execute", word)
            call.unclear("environment", "the settings of another repository count, and may run programs", word)
    if not given.operands:
        return
    if any(cwd is None or locate(cwd, None, call.ground).where != "workspace" for cwd in call.state.cwds):
        call.unclear("environment", "the settings of another repository count, and may run programs")
    call = replace(call, words=tuple(given.operands))
    if given.operands[0].value == "config":
        _config(replace(call, words=tuple(given.operands[1:])))
    else:
        subcommand(call)


def _config(call: Call) -> None:
    """`git config`: settings are read, or set; many name a program that git will run."""
    given = read_arguments(spec_from(_CONFIG), call.words)
    operands = given.operands
    for word in given.values("-f", "--file"):
        call.touches("read", word)
    verb = operands[0].value if operands else None
    if verb in ("get", "list"):
        call.touches_here("read")
        return
    if verb in ("set", "unset", "edit", "rename-section", "remove-section"):
        operands = operands[1:]
    elif given.has(*_ASKS) or (len(operands) == 1 and not given.has(*_REMOVES, "-e", "--edit")):
        call.touches_here("read")
        return
    key = operands[0].value if operands else None
    value = operands[1].value if len(operands) > 1 else None
    harmless = key is not None and is_harmless_setting(key, value)
    if harmless and not given.has("--global", "--system", "-f", "--file"):
        call.does("write", *operands)
        return
    _changes_settings(call, given)
    if not harmless:
        call.does("execute", *operands)
        call.unclear("environment", f"{key or 'a setting'} may make git run a program", *operands)


def _changes_settings(call: Call, given: Given) -> None:
    files = list(given.values("-f", "--file"))
    path = "~/.gitconfig" if given.has("--global") else "/etc/gitconfig" if given.has("--system") else ".git/config"
    for word in files or [Word(path, (path,), path)]:
        call.touches("write", word)

"""Handler of `git`: its own options and settings. A table has its subcommands."""

from __future__ import annotations

from dataclasses import replace

from aver.gate.effects.findings import locate_path
from aver.gate.shell.invocation import Invocation
from aver.gate.shell.model import Word, change_directory
from aver.gate.shell.programs.apply import apply_options, judge_subcommand
from aver.gate.shell.programs.spec import parse_spec, read_arguments
from aver.gate.shell.programs.verbs import is_harmless_setting

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
_CONFIG_READ_OPTIONS = (
    "-l",
    "--list",
    "--get",
    "--get-all",
    "--get-regexp",
    "--get-urlmatch",
    "--get-color",
    "--get-colorbool",
)
_CONFIG_REMOVE_OPTIONS = ("--unset", "--unset-all", "--remove-section")


def git(call: Invocation) -> None:
    given = apply_options(call, parse_spec(_GIT))
    for option, value, word in given.options:
        if option.name == "-C" and value is not None:
            good, _ = change_directory(call.state, value, call.path_roots)
            call = replace(call, state=good or call.state)
        elif option.name == "--exec-path" and value is not None:
            call.report_effect("execute", word)
            call.report_unclear("environment", "git looks for its programs elsewhere", word)
        elif option.name in ("--git-dir", "--work-tree") and value is not None and not call.is_in_workspace(value):
            call.report_effect("execute", word)
            call.report_unclear("environment", "the settings of another repository count, and may run programs", word)
    if not given.operands:
        return
    # Outside the work tree that holds the workspace, git obeys the settings of another repository.
    own = ("workspace", "tree")
    if any(cwd is None or locate_path(cwd, None, call.path_roots).where not in own for cwd in call.state.cwds):
        call.report_unclear("environment", "the settings of another repository count, and may run programs")
    call = replace(call, words=tuple(given.operands))
    if given.operands[0].value == "config":
        _judge_config(replace(call, words=tuple(given.operands[1:])))
    else:
        judge_subcommand(call)


def _judge_config(call: Invocation) -> None:
    """Judge `git config`. Many settings name a program that git runs."""
    given = read_arguments(parse_spec(_CONFIG), call.words)
    operands = given.operands
    for word in given.option_values("-f", "--file"):
        call.report_path("read", word)
    # `git config get NAME` is the new style, `git config --get NAME` and `git config NAME` are the old one.
    verb = operands[0].value if operands else None
    if verb in ("get", "list"):
        call.report_current_directory("read")
        return
    if verb in ("set", "unset", "edit", "rename-section", "remove-section"):
        operands = operands[1:]
    elif given.has_option(*_CONFIG_READ_OPTIONS) or (
        len(operands) == 1 and not given.has_option(*_CONFIG_REMOVE_OPTIONS, "-e", "--edit")
    ):
        call.report_current_directory("read")
        return
    key = operands[0].value if operands else None
    value = operands[1].value if len(operands) > 1 else None
    # A setting for all repositories, or in a file of its own, reaches further than this one.
    harmless = key is not None and is_harmless_setting(key, value)
    if harmless and not given.has_option("--global", "--system", "-f", "--file"):
        call.report_effect("write", *operands)
        return
    if given.has_option("--global"):
        path = "~/.gitconfig"
    else:
        path = "/etc/gitconfig" if given.has_option("--system") else ".git/config"
    for word in [*given.option_values("-f", "--file")] or [Word(path, (path,), path)]:
        call.report_path("write", word)
    if not harmless:
        call.report_effect("execute", *operands)
        call.report_unclear("environment", f"{key or 'a setting'} may make git run a program", *operands)

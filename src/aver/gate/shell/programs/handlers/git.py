"""Handler of `git`: its own options and settings. A table has its subcommands."""

from __future__ import annotations

from dataclasses import replace

from aver.gate.effects.paths import locate_path
from aver.gate.shell.invocation import Invocation
from aver.gate.shell.model import Word, change_directory
from aver.gate.shell.programs.apply import apply_options, is_careless_directory, judge_subcommand
from aver.gate.shell.programs.spec import parse_spec
from aver.gate.shell.programs.verbs import apply_verb
from aver.lazy_pattern import lazy_pattern

_GIT = (
    "posix (-p -P -v -h --paginate --no-pager --bare --no-replace-objects --literal-pathspecs"
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
_FETCH = (
    "-[vqaktnp46] -o=!network,egress -j= --server-option=!network,egress --upload-pack=run --verbose --quiet --all"
    " --append --atomic --multiple --tags --jobs= --prefetch --prune --recurse-submodules? --dry-run"
    " --write-fetch-head --keep --progress --shallow-since=!git-history --shallow-exclude=!git-history --deepen="
    " --unshallow --refetch --ipv4 --ipv6 --negotiation-tip= --negotiate-only --filter= --auto-maintenance --auto-gc"
    " --show-forced-updates --write-commit-graph --porcelain -f!git-history --force!git-history"
    " -u!git-history --update-head-ok!git-history -P!git-history --prune-tags!git-history --depth=!git-history"
    " --refmap=!git-history --update-shallow!git-history --set-upstream!write --stdin!git-history,?unknown-target"
    " --submodule-prefix=!?unknown-target --recurse-submodules-default= gnu no"
)
_USUAL_REMOTES = frozenset(("origin", "upstream"))
"""Names that are remotes in practice. Another name may be a directory, whose settings would count."""
_PLAIN_REF = lazy_pattern(r"(?:tag|[A-Za-z0-9_][\w./@-]*)")
_BARE_REPOSITORY = lazy_pattern(r"/[^/]+\.git(?:/|$)")
_HOOK_RUNNERS = frozenset(
    (
        *("commit", "merge", "push", "pull", "rebase", "checkout", "switch", "cherry-pick", "revert", "am", "worktree"),
        *("clone", "stash", "reset", "gc", "submodule", "lfs", "restore", "apply"),
    )
)
"""Subcommands after or before which git runs hooks, or that run further subcommands which do."""
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
            if not _may_be_own_repository(call, value):
                call.report_effect("execute", word, value)
                call.report_unclear("environment", f"a repository in {value.short_text} has settings of its own", value)
            good, _ = change_directory(call.state, value, call.path_roots)
            call = replace(call, state=good or call.state)
        elif option.name == "--exec-path" and value is not None:
            call.report_effect("execute", word)
            call.report_unclear("environment", "git looks for its programs elsewhere", word)
        elif option.name in ("--git-dir", "--work-tree") and value is not None:
            # Any other directory may hold settings that name programs, also one in the workspace.
            place = ".git" if option.name == "--git-dir" else ""
            if not _is_own_directory(call, value, place):
                call.report_effect("execute", word)
                call.report_unclear(
                    "environment", "the settings of another repository count, and may run programs", word
                )
    if not given.operands:
        return
    # Outside the work tree that holds the workspace, git obeys the settings of another repository.
    if any(cwd is None or not _is_around_workspace(call, cwd) for cwd in call.state.cwds):
        call.report_unclear("environment", "the settings of another repository count, and may run programs")
    elif any(
        _BARE_REPOSITORY.search(cwd[len(call.path_roots.workspace) :]) for cwd in call.state.cwds if cwd is not None
    ):
        call.report_effect("execute", *given.operands[:1])
        call.report_unclear("environment", "the settings of another repository count, and may run programs")
    call = replace(call, words=tuple(given.operands))
    subcommand = given.operands[0].value
    if subcommand in _HOOK_RUNNERS:
        call.report_environment()
    if subcommand == "config":
        _judge_config(replace(call, words=tuple(given.operands[1:])))
    elif subcommand == "fetch":
        _judge_fetch(replace(call, program="git fetch", words=tuple(given.operands[1:]), name=Word("git fetch")))
    else:
        judge_subcommand(call)


def _is_around_workspace(call: Invocation, cwd: str) -> bool:
    """Whether a directory lies in the workspace or its work tree, or holds the workspace.

    A directory above the workspace is its owner's, as the work tree is. In a temporary directory anybody may put a
    repository, and whole homes are nobody's project.
    """
    place = locate_path(cwd, None, call.path_roots)
    holds = place.where == "outside" and call.path_roots.workspace.startswith(f"{place.path.rstrip('/')}/")
    return place.where in ("workspace", "tree") or holds


def _is_own_directory(call: Invocation, value: Word, below: str) -> bool:
    """Whether a word names the workspace itself, or `below` in it, in every directory that this may run in."""
    expected = f"{call.path_roots.workspace}/{below}".rstrip("/")
    return value.is_known and all(
        cwd is not None and locate_path(text, cwd, call.path_roots).path == expected
        for text in value.values
        for cwd in call.state.cwds
    )


def _may_be_own_repository(call: Invocation, value: Word) -> bool:
    """Whether git finds the workspace's own repository from a directory.

    It does so from every directory of the workspace that is no repository itself. Below directories where files are
    written with less care, and in one that looks like a repository, Aver does not count on that.
    """
    if not call.is_in_workspace(value) or value.is_pattern:
        return False
    places = [locate_path(text, cwd, call.path_roots).path for text in value.values for cwd in call.state.cwds]
    return not any(is_careless_directory(path, call.path_roots) for path in places)


def _judge_fetch(call: Invocation) -> None:
    """Judge `git fetch`. It only brings new commits if it names no other source and no ref of its own to change."""
    spec = parse_spec(_FETCH)
    given = apply_options(call, spec)
    remotes, refs = given.operands[:1], given.operands[1:]
    if given.has_option("--multiple"):
        remotes, refs = given.operands, []
    elif given.has_option("--all"):
        refs = given.operands
    configured = all(word.value in _USUAL_REMOTES for word in remotes)
    # `branch` updates what follows the remote; `from:to` and `+branch` change refs of one's own.
    plain = all(word.value is not None and _PLAIN_REF.fullmatch(word.value) for word in refs)
    call.report_effect("git-fetch" if configured else "network", *remotes)
    if not configured:
        for word in remotes:
            apply_verb("remote", call, word)
    if not plain:
        call.report_effect("git-history", *refs)


def _judge_config(call: Invocation) -> None:
    """Judge `git config`. Many settings name a program that git runs."""
    given = apply_options(call, parse_spec(_CONFIG))
    operands = given.operands
    for word in given.option_values("-f", "--file"):
        call.report_path("read", word)
    for word in given.option_values("--blob"):
        apply_verb("committed", call, word)
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
    from aver.gate.shell.programs.verbs.git_verbs import is_harmless_setting  # Not above: few calls change settings.

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

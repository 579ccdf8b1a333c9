"""What becomes of an argument of git."""

from __future__ import annotations

import re
from collections.abc import Mapping

from aver.gate.shell.invocation import Invocation
from aver.gate.shell.model import Word
from aver.gate.shell.programs.verbs.general import Verb

__all__ = ["REPOSITORY", "is_harmless_setting"]

_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://|[^/\s]+@[^/\s]+:|[A-Za-z0-9.-]+:(?!:)")
_TRANSPORT_HELPER = re.compile(r"([a-z0-9]+)::")
_LOOKS_LIKE_FILE = re.compile(r"\.{0,2}/.*|\.{1,2}|.*[*?\[].*|.*/|.*\.[A-Za-z][A-Za-z0-9]{0,5}|:.*")
_REVISION = re.compile(
    r".*[~^].*|.*@\{.*|[0-9a-f]{7,40}|(?:origin|upstream)/.*|ORIG_HEAD|FETCH_HEAD|MERGE_HEAD|v[0-9].*"
)
_SURELY_A_BRANCH = re.compile(rf"-|@|HEAD|main|master|develop|trunk|{_REVISION.pattern}")
_HARMLESS_SETTINGS = re.compile(
    r"user\.(?:name|email|signingkey)|color\..*|column\..*|advice\..*|log\.(?:date|decorate|abbrevcommit|showsignature)"
    r"|core\.(?:quotepath|autocrlf|eol|filemode|abbrev|ignorecase|precomposeunicode|safecrlf|whitespace|symlinks)"
    r"|init\.defaultbranch|pull\.(?:rebase|ff)|push\.(?:default|autosetupremote|followtags)|merge\.(?:ff|conflictstyle)"
    r"|rebase\.(?:autostash|autosquash)|diff\.(?:algorithm|renames|context|colormoved|mnemonicprefix|noprefix)"
    r"|status\..*|branch\.(?:sort|autosetuprebase|autosetupmerge)|tag\.sort|fetch\.(?:prune|parallel)|rerere\.enabled"
    r"|commit\.(?:gpgsign|verbose)|tag\.gpgsign|gc\.auto|grep\..*|blame\..*|stash\..*|versionsort\..*|help\.autocorrect",
    re.IGNORECASE,
)
_HARMLESS_PROGRAMS = frozenset(("", "cat", "true", ":", "false"))


def _remote(call: Invocation, word: Word) -> None:
    """The name of a remote, an address, a path, or a helper that runs."""
    if not word.is_known:
        call.report_host(word)
    for value in word.values:
        if helper := _TRANSPORT_HELPER.match(value):
            call.report_effect("execute", word)
            call.unclear("code", f"the transport {helper[1]}:: runs a program", word)
        elif _ADDRESS.match(value):
            call.report_host(Word(word.text, (value,), value))
        elif "/" in value or value.startswith((".", "~")):
            call.report_path("read", Word(word.text, (value,), value))


def _refspec(call: Invocation, word: Word) -> None:
    if not word.is_known or any(value.startswith(("+", ":")) for value in word.values):
        call.report_effect("git-history", word)


def _is_after_dashes(call: Invocation, word: Word) -> bool:
    texts = [given.value for given in call.words]
    return "--" in texts and any(given is word for given in call.words[texts.index("--") :])


def _checkout_operand(call: Invocation, word: Word) -> None:
    """An operand of `git checkout`: a branch, or a file whose changes are thrown away. `git switch` takes branches."""
    known = word.value
    if call.program == "git switch":
        return
    if known is None or _is_after_dashes(call, word) or (_LOOKS_LIKE_FILE.fullmatch(known) and known != "-"):
        call.report_path("delete", word)
    elif not _SURELY_A_BRANCH.fullmatch(known) and not {"-b", "-B", "--orphan", "-t", "--track"} & _option_names(call):
        call.report_path("delete", word)
        advice = f"write git switch {known[:60]}, or git checkout -- {known[:60]}"
        call.unclear("unknown-target", f"a branch, or a file whose changes are thrown away: {advice}", word)


def _option_names(call: Invocation) -> set[str]:
    return {(given.value or "").partition("=")[0] for given in call.words}


def _restore_operand(call: Invocation, word: Word) -> None:
    names = {given.value for given in call.words}
    only_index = names & {"-S", "--staged"} and not names & {"-W", "--worktree", "-SW", "-WS"}
    call.report_path("write" if only_index else "delete", word)


def _reset_operand(call: Invocation, word: Word) -> None:
    if not _is_after_dashes(call, word) and (word.value is None or _REVISION.fullmatch(word.value)):
        call.report_effect("git-history", word)


def _revision_or_path(call: Invocation, word: Word) -> None:
    """A revision, a path after `--`, or `revision:path`: what a file once was is seen as the file is."""
    if _is_after_dashes(call, word):
        call.report_path("read", word)
        return
    for value in word.values:
        path = value.partition(":")[2] or value
        call.report_guarded_path("read", path, word)


def _staged_path(call: Invocation, word: Word) -> None:
    """A path whose contents git takes over."""
    if word.is_known:
        call.report_path("read", word)


def _new_ref(call: Invocation, word: Word) -> None:
    """The name of a branch or tag to make."""
    call.report_effect("write", word)


def is_harmless_setting(key: str, value: str | None) -> bool:
    """Whether a setting of git can start nothing and lead nowhere."""
    name = key.lower()
    if name in ("core.pager", "core.editor", "sequence.editor", "core.askpass") or name.startswith("pager."):
        return value in _HARMLESS_PROGRAMS
    return _HARMLESS_SETTINGS.fullmatch(name) is not None


def _setting(call: Invocation, word: Word) -> None:
    """`-c key=value`: many keys name a program that git will run."""
    key, _, value = (word.value or "").partition("=")
    if word.value is not None and is_harmless_setting(key, value):
        return
    call.report_effect("execute", word)
    if "hookspath" in key.lower():
        call.report_effect("agent-config", word)
    call.unclear("environment", f"{key or word.shown} may make git run a program", word)


REPOSITORY: Mapping[str, Verb] = {
    "remote": _remote,
    "refspec": _refspec,
    "discards": _checkout_operand,
    "restores": _restore_operand,
    "resets": _reset_operand,
    "branches": _new_ref,
    "committed": _revision_or_path,
    "staged": _staged_path,
    "setting": _setting,
}

"""The verbs of git: remotes, revisions, paths whose changes git discards, and settings that name programs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from aver.gate.shell.invocation import Invocation
from aver.gate.shell.model import Word
from aver.gate.shell.programs.verbs.verb import Verb
from aver.lazy_pattern import lazy_pattern

_ADDRESS = lazy_pattern(r"[a-z][a-z0-9+.-]*://|[^/\s]+@[^/\s]+:|[A-Za-z0-9.-]+:(?!:)")
_TRANSPORT_HELPER = lazy_pattern(r"([a-z0-9]+)::")
_LOOKS_LIKE_FILE = lazy_pattern(r"\.{0,2}/.*|\.{1,2}|.*[*?\[].*|.*/|.*\.[A-Za-z][A-Za-z0-9]{0,5}|:.*")
_REVISION = lazy_pattern(
    r".*[~^].*|.*@\{.*|[0-9a-f]{7,40}|(?:origin|upstream)/.*|ORIG_HEAD|FETCH_HEAD|MERGE_HEAD|v[0-9].*"
)
_UNTRACKED_STASH = lazy_pattern(r"stash(?:@\{[^}]*\})?\^3")
"""The commit of an entry of the stash that holds the files which git did not know: secrets may be among them."""
_SURELY_A_BRANCH = lazy_pattern(rf"-|@|HEAD|main|master|develop|trunk|{_REVISION.pattern}")
_HARMLESS_SETTINGS = lazy_pattern(
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
    """Judge the name of a remote, an address, a path, or a transport helper that git runs."""
    if not word.is_known:
        call.report_host(word)
    for value in word.values:
        if helper := _TRANSPORT_HELPER.match(value):
            call.report_effect("execute", word)
            call.report_unclear("code", f"the transport {helper[1]}:: runs a program", word)
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
    """Judge an operand of `git checkout`: a branch, or a file whose changes git discards.

    `git switch` takes branches only.
    """
    known = word.value
    # A branch that does not exist is an error there, never a file.
    if call.program == "git switch":
        return
    options = {(given.value or "").partition("=")[0] for given in call.words}
    if known is None or _is_after_dashes(call, word) or (_LOOKS_LIKE_FILE.fullmatch(known) and known != "-"):
        call.report_path("delete", word)
    elif not _SURELY_A_BRANCH.fullmatch(known) and not {"-b", "-B", "--orphan", "-t", "--track"} & options:
        call.report_path("delete", word)
        advice = f"write git switch {known[:60]}, or git checkout -- {known[:60]}"
        call.report_unclear("unknown-target", f"a branch, or a file whose changes are thrown away: {advice}", word)


def _restore_operand(call: Invocation, word: Word) -> None:
    names = {given.value for given in call.words}
    # Only the index loses changes then; the files stay as they are.
    only_index = names & {"-S", "--staged"} and not names & {"-W", "--worktree", "-SW", "-WS"}
    call.report_path("git-state" if only_index else "delete", word)


def _reset_operand(call: Invocation, word: Word) -> None:
    if not _is_after_dashes(call, word) and (word.value is None or _REVISION.fullmatch(word.value)):
        call.report_effect("git-history", word)


def _revision_or_path(call: Invocation, word: Word) -> None:
    """Judge a revision, a path after `--`, or `revision:path`. An old version of a file counts as the file."""
    if _is_after_dashes(call, word):
        call.report_path("read", word)
        return
    for value in word.values:
        if _UNTRACKED_STASH.search(value):
            call.report_effect("secret", word)
        # `git diff /dev/null ~/notes` compares files outside of the repository.
        if value.startswith(("/", "~", "../")) or value == ".." or "/../" in value:
            call.report_path("read", replace(word, values=(value,)))
            continue
        # `HEAD:.env` and `:0:.env` print another version of `.env`, `-L:name:.env` a part of it.
        for path in {value.partition(":")[2] or value, value.rpartition(":")[2] or value}:
            call.report_guarded_path("read", path, word)


def _staged_path(call: Invocation, word: Word) -> None:
    """Judge a path whose contents git stores."""
    if word.is_known:
        call.report_path("read", word)


def _new_name(call: Invocation, word: Word) -> None:
    """Judge the last operand of `git mv`: the new name of a file, or the directory that files move to."""
    call.report_path("write", word)
    operands = [given for given in call.words if not given.prefix.startswith("-")]
    if len(operands) == 2 and all(given.is_known for given in call.words):
        call.note_move("move", operands[0], word)


def is_harmless_setting(key: str, value: str | None) -> bool:
    """Whether a setting of git cannot start a program or redirect anything."""
    name = key.lower()
    if name in ("core.pager", "core.editor", "sequence.editor", "core.askpass") or name.startswith("pager."):
        return value in _HARMLESS_PROGRAMS
    return _HARMLESS_SETTINGS.fullmatch(name) is not None


def _judge_setting(call: Invocation, word: Word) -> None:
    """Judge `-c key=value`. Many keys name a program that git runs."""
    key, _, value = (word.value or "").partition("=")
    if word.value is not None and is_harmless_setting(key, value):
        return
    call.report_effect("execute", word)
    # Another path switches the hooks of the repository off, which may be what asks Aver.
    if "hookspath" in key.lower():
        call.report_effect("agent-config", word)
    call.report_unclear("environment", f"{key or word.short_text} may make git run a program", word)


GIT_VERBS: Mapping[str, Verb] = {
    "remote": _remote,
    "refspec": _refspec,
    "discards": _checkout_operand,
    "restores": _restore_operand,
    "resets": _reset_operand,
    "branches": lambda call, word: call.report_effect("git-state", word),
    "tags": lambda call, word: call.report_effect("write", word),
    "history": lambda call, word: call.report_effect("git-history", word),
    "unstaged": lambda call, word: call.report_path("git-state", word),
    "committed": _revision_or_path,
    "staged": _staged_path,
    "renamed": _new_name,
    "setting": _judge_setting,
}

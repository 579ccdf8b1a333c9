"""The verbs of the tables: what a program does with one argument.

A line of a table names a verb for the value of an option or for an operand, as in `-o=write *read`. Each verb is a
function that gets the invocation and the word, and reports findings. `VERBS` at the end maps the names to functions.
A verb that has no condition is written there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from aver.gate.shell.environment import judge_assignment
from aver.gate.shell.invocation import Invocation
from aver.gate.shell.model import Word
from aver.lazy_pattern import lazy_pattern

Verb = Callable[[Invocation, Word], None]

# --- any program


_SHELL_ESCAPE = lazy_pattern(r"\+.*[!|]")


def _read(call: Invocation, word: Word) -> None:
    if word.value != "-":
        call.report_path("read", word)


def _write(call: Invocation, word: Word) -> None:
    if word.value != "-":
        call.report_path("write", word)


def _edit(call: Invocation, word: Word) -> None:
    call.report_path("read", word)
    call.report_path("write", word)


def _code(call: Invocation, word: Word) -> None:
    call.report_effect("execute", word)
    call.report_code(word.value, word)


def _send(call: Invocation, word: Word) -> None:
    call.report_host(word)
    call.report_host(word, "egress")


def _search_glob(call: Invocation, word: Word) -> None:
    """Report a pattern for the files of a search, if guarded files match it."""
    for value in word.values:
        if not value.startswith("!"):
            call.report_guarded_path("read", value, word)


def _pager_argument(call: Invocation, word: Word) -> None:
    """Judge a file for a pager, or a command that the pager runs first (`+!…`)."""
    if word.value is not None and _SHELL_ESCAPE.match(word.value):
        _code(call, word)
    elif word.value is None or not word.value.startswith("+"):
        _read(call, word)


_FILTER_REACHES_OUT = lazy_pattern(
    r"\b(?:env|input_filename|load\w*|import|include|get_search_list)\b|\$(?:ENV|__prog)|strenv"
)


def _filter(call: Invocation, word: Word) -> None:
    """Judge a program for jq or yq. Only a few of its functions see more than its input."""
    if word.value is None or _FILTER_REACHES_OUT.search(word.value):
        call.report_effect("secret", word, target="environment")
        call.report_unclear("code", f"what {word.short_text} sees was not looked into", word)


def _ps_letters(call: Invocation, word: Word) -> None:
    """Judge the letters of `ps` without a hyphen. With an `e`, ps shows the environment of every process."""
    if word.value is None or "e" in word.value:
        call.report_effect("secret", word, target="environment")


def _date_operand(call: Invocation, word: Word) -> None:
    if word.value is None or not word.value.startswith("+"):
        call.report_effect("system", word)


# --- programs that fetch and send

_READING_METHODS = frozenset(("GET", "HEAD", "OPTIONS"))


def _url(call: Invocation, word: Word) -> None:
    """Judge an address to fetch. wget and `curl -O` name the file after the end of the address."""
    call.report_host(word)
    if call.program == "wget" or any(given.value in ("-O", "--remote-name", "-OL", "-LO") for given in call.words):
        for value in word.values:
            call.report_guarded_path("write", value.partition("?")[0].rpartition("/")[2], word)


def _request_body(call: Invocation, word: Word) -> None:
    """Judge data to send, or `@` and the file that holds it; with `--data-urlencode` also `name@file`."""
    call.report_effect("egress", word)
    for value in word.values:
        # `name=value@x` is a value, not a file.
        name, at, path = value.partition("@")
        if at and path and path != "-" and "=" not in name and " " not in name:
            call.report_path("read", replace(word, values=(path,)))
    if not word.is_known and word.prefix.startswith("@"):
        call.report_path("read", Word(word.text))


def _form_field(call: Invocation, word: Word) -> None:
    """Judge a form field: `name=value`, `name=@file` or `name=<file`."""
    call.report_effect("egress", word)
    for value in word.values:
        content = value.partition("=")[2]
        if content[:1] in ("@", "<"):
            path = content[1:].partition(";")[0].strip('"')
            if path != "-":
                call.report_path("read", replace(word, values=(path,)))
    if not word.is_known:
        call.report_unclear("unknown-target", "what is sent depends on what cannot be seen", word)


def _upload(call: Invocation, word: Word) -> None:
    call.report_effect("egress", word)
    if word.value not in ("-", "."):
        call.report_path("read", word)


def _method(call: Invocation, word: Word) -> None:
    if word.value is None or word.value.upper() not in _READING_METHODS:
        call.report_effect("egress", word)


def _options_file(call: Invocation, word: Word) -> None:
    call.report_effect("network", word)
    call.report_unclear("unknown-option", f"more options of {call.program} stand in {word.short_text}", word)


def _secret_file(call: Invocation, word: Word) -> None:
    call.report_path("read", replace(word, values=tuple(value.partition(":")[0] for value in word.values)))


def _socket(call: Invocation, word: Word) -> None:
    call.report_effect("system", word)
    call.report_unclear("unknown-target", f"what listens at {word.short_text} is not known", word)


def _header(call: Invocation, word: Word) -> None:
    """Judge a header. An unknown header carries data away."""
    if not word.is_known:
        call.report_effect("egress", word)
    for value in word.values:
        if value.startswith("@"):
            call.report_effect("egress", word)
            call.report_path("read", replace(word, values=(value[1:],)))


def _write_out(call: Invocation, word: Word) -> None:
    """Judge the text that curl prints at the end. It can name a file to print to."""
    if word.value is None or word.value.startswith("@") or "%output{" in word.value:
        call.report_effect("write", word)
        call.report_unclear("unknown-option", "what curl writes to is said in a text that is not looked into", word)


def _cloud_path(call: Invocation, word: Word) -> None:
    """Judge a local path, or an address in a cloud storage."""
    if not word.is_known or any("://" in value for value in word.values):
        call.report_host(word, "egress")
    else:
        call.report_path("read", word)
        call.report_path("write", word)


# --- git

_ADDRESS = lazy_pattern(r"[a-z][a-z0-9+.-]*://|[^/\s]+@[^/\s]+:|[A-Za-z0-9.-]+:(?!:)")
_TRANSPORT_HELPER = lazy_pattern(r"([a-z0-9]+)::")
_LOOKS_LIKE_FILE = lazy_pattern(r"\.{0,2}/.*|\.{1,2}|.*[*?\[].*|.*/|.*\.[A-Za-z][A-Za-z0-9]{0,5}|:.*")
_REVISION = lazy_pattern(
    r".*[~^].*|.*@\{.*|[0-9a-f]{7,40}|(?:origin|upstream)/.*|ORIG_HEAD|FETCH_HEAD|MERGE_HEAD|v[0-9].*"
)
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
    call.report_path("write" if only_index else "delete", word)


def _reset_operand(call: Invocation, word: Word) -> None:
    if not _is_after_dashes(call, word) and (word.value is None or _REVISION.fullmatch(word.value)):
        call.report_effect("git-history", word)


def _revision_or_path(call: Invocation, word: Word) -> None:
    """Judge a revision, a path after `--`, or `revision:path`. An old version of a file counts as the file."""
    if _is_after_dashes(call, word):
        call.report_path("read", word)
        return
    for value in word.values:
        # `HEAD:.env` prints an old version of `.env`.
        path = value.partition(":")[2] or value
        call.report_guarded_path("read", path, word)


def _staged_path(call: Invocation, word: Word) -> None:
    """Judge a path whose contents git stores."""
    if word.is_known:
        call.report_path("read", word)


def is_harmless_setting(key: str, value: str | None) -> bool:
    """Whether a setting of git cannot start a program or redirect anything."""
    name = key.lower()
    if name in ("core.pager", "core.editor", "sequence.editor", "core.askpass") or name.startswith("pager."):
        return value in _HARMLESS_PROGRAMS
    return _HARMLESS_SETTINGS.fullmatch(name) is not None


def _setting(call: Invocation, word: Word) -> None:
    """Judge `-c key=value`. Many keys name a program that git runs."""
    key, _, value = (word.value or "").partition("=")
    if word.value is not None and is_harmless_setting(key, value):
        return
    call.report_effect("execute", word)
    # Another path switches the hooks of the repository off, which may be what asks Aver.
    if "hookspath" in key.lower():
        call.report_effect("agent-config", word)
    call.report_unclear("environment", f"{key or word.short_text} may make git run a program", word)


# --- programs that build and run

_MAKE_ASSIGNMENT = lazy_pattern(r"([A-Za-z_.][A-Za-z0-9_.]*)[:?+!]?=")


def _make_argument(call: Invocation, word: Word) -> None:
    """Judge a target of make, or a variable that is set for it."""
    if found := _MAKE_ASSIGNMENT.match(word.prefix):
        if found[1].strip(".").upper() in ("SHELL", "SHELLFLAGS"):
            _code(call, word)
        judge_assignment(call, found[1], word.drop_first(found.end()))


def _compiler_flags(call: Invocation, word: Word) -> None:
    """Judge flags for a compiler or linker. Some flags name another program to run."""
    if word.value is None or re.search(r"-(?:ext|toolexec|fuse-ld|B|specs|wrapper|plugin)", word.value):
        _code(call, word)


def _python_module(call: Invocation, word: Word) -> None:
    """Judge a Python module that runs as a program."""
    call.judge_words((Word("python", ("python",), "python"), Word("-m", ("-m",), "-m"), word))


def _project_path(call: Invocation, word: Word) -> None:
    """Judge a directory or file whose code the tool runs."""
    call.report_path("read", word)
    if not call.is_in_workspace(word):
        call.report_unclear("script", f"the code of {word.short_text} lies outside the workspace", word)


VERBS: Mapping[str, Verb] = {
    # any program
    "skip": lambda call, word: None,  # not a path: a pattern, a number, a name
    "read": _read,
    "tree": _read,
    "write": _write,
    "delete": lambda call, word: call.report_path("delete", word),
    "edit": _edit,
    "run": lambda call, word: call.judge_script_word(word, call.program),
    "program": lambda call, word: call.report_executed_file(word),
    "code": _code,
    "host": lambda call, word: call.report_host(word),
    "send": _send,
    "page": _pager_argument,
    "sought": _search_glob,
    "clock": _date_operand,
    "filter": _filter,
    "shown": _ps_letters,
    "system": lambda call, word: call.report_effect("system", word),
    "process": lambda call, word: call.report_effect("process", word),
    "install": lambda call, word: call.report_effect("install", word),
    # programs that fetch and send
    "url": _url,
    "body": _request_body,
    "raw": lambda call, word: call.report_effect("egress", word),
    "form": _form_field,
    "upload": _upload,
    "method": _method,
    "config": _options_file,
    "secretfile": _secret_file,
    "socket": _socket,
    "header": _header,
    "cloud": _cloud_path,
    "writeout": _write_out,
    # git
    "remote": _remote,
    "refspec": _refspec,
    "discards": _checkout_operand,
    "restores": _restore_operand,
    "resets": _reset_operand,
    "branches": lambda call, word: call.report_effect("write", word),
    "committed": _revision_or_path,
    "staged": _staged_path,
    "setting": _setting,
    # programs that build and run
    "makes": _make_argument,
    "flags": _compiler_flags,
    "module": _python_module,
    "project": _project_path,
    "cmakes": _code,
}

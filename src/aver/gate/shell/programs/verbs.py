"""The verbs of the tables: what a program does with one argument.

A line of a table names a verb for the value of an option or for an operand, as in `-o=write *read`. Each verb is a
function that gets the invocation and the word, and reports findings. `VERBS` at the end maps the names to functions.
A verb that has no condition is written there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from aver.gate.effects.findings import locate_path
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


def _contents(call: Invocation, word: Word) -> None:
    """Judge a file whose contents a program reads that otherwise lists names only."""
    if word.value != "-":
        replace(call, name=Word(f"{call.name.short_text} with the contents of")).report_path("read", word)


def _object(call: Invocation, word: Word) -> None:
    """Judge a file for a program that takes `@FILE` for more options."""
    if word.prefix.startswith("@"):
        _options_file(call, word.drop_first(1))
    else:
        _read(call, word)


def _template(call: Invocation, word: Word) -> None:
    """Judge a place for a new file with a name of its own, as `mktemp` and `sort -T` make it.

    Nothing is lost by it in the workspace and in temporary directories, unless something guarded lies there.
    """
    # With `-t` the name is one in the directory for temporary files.
    if call.program == "mktemp" and any(re.fullmatch(r"-[a-z]*t[a-z]*", given.value or "") for given in call.words):
        return
    if not word.is_known:
        call.report_path("write", word)
    for value in word.values:
        for cwd in call.state.cwds:
            place = locate_path(value, cwd, call.path_roots)
            if place.where not in ("workspace", "temporary") or place.classes:
                call.report_path("write", replace(word, values=(value,)))


def _manual(call: Invocation, word: Word) -> None:
    """Judge the name of a page for `man` or `info`. A name with a slash is a file, which is shown."""
    if not word.is_known or any("/" in value or value.startswith((".", "~")) for value in word.values):
        call.report_path("read", word)


_WHO_WORDS = frozenset(("am", "i", "I", "mom", "likes"))


def _logins(call: Invocation, word: Word) -> None:
    """Judge an operand of `who`: `am i`, or a file that it reads as a list of logins."""
    if word.value not in _WHO_WORDS:
        call.report_path("read", word)


def _bat_operand(call: Invocation, word: Word) -> None:
    """Judge the first operand of `bat`: a file, or `cache`, which builds what bat loads later."""
    if word.value == "cache":
        call.report_effect("write", word)
        call.report_unclear("unknown-option", "bat cache builds what bat loads later", word)
    else:
        _read(call, word)


def _archive_keys(call: Invocation, word: Word) -> None:
    """Judge the first operand of `ar`: letters, or `@` and a file with more options."""
    if word.value is None or not word.value.lstrip("-").isalpha():
        call.report_path("read", word.drop_first(1) if word.prefix.startswith("@") else word)
        call.report_unclear("unknown-option", "what ar does is said by what was not looked into", word)


def _sockets(call: Invocation, word: Word) -> None:
    """Judge an operand of `lsof`: a file, or the value of `-i`, which names sockets."""
    if word.value is None or not re.match(r"(?i)[46]?(?:tcp|udp)?[@:]|[46]?(?:tcp|udp)$|[46]$", word.value):
        call.report_path("read", word)


def _history_operand(call: Invocation, word: Word) -> None:
    """Judge an operand that must be a number, as of `history 20`."""
    if word.value is None or not word.value.isdigit():
        call.report_unclear("unknown-option", f"{word.short_text} of {call.program} is not looked into", word)


def _stamp(call: Invocation, word: Word) -> None:
    """Judge `date -r`: seconds on BSD, elsewhere a file whose time is shown."""
    if word.value is None or not word.value.isdigit():
        call.report_path("read", word)


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
    r"\b(?:env|envsubst|eval|input_filename|load\w*|import|include|get_search_list|system|exec)\b|\$(?:ENV|__prog)|strenv"
)


def _filter_file(call: Invocation, word: Word) -> None:
    """Judge a file with a program for jq. It may show the environment."""
    call.report_path("read", word)
    call.report_unclear("code", f"the program in {word.short_text} was not looked into", word)


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
    call.report_host(word, "loopback" if call.is_loopback else "network")
    if call.program == "wget" or any(given.value in ("-O", "--remote-name", "-OL", "-LO") for given in call.words):
        for value in word.values:
            call.report_guarded_path("write", value.partition("?")[0].rpartition("/")[2], word)


def _egress(call: Invocation, word: Word) -> None:
    """Report that data is sent: away, or to this machine."""
    call.report_effect("loopback" if call.is_loopback else "egress", word)


def _request_body(call: Invocation, word: Word) -> None:
    """Judge data to send, or `@` and the file that holds it; with `--data-urlencode` also `name@file`."""
    _egress(call, word)
    for value in word.values:
        # `name=value@x` is a value, not a file.
        name, at, path = value.partition("@")
        if at and path and path != "-" and "=" not in name and " " not in name:
            call.report_path("read", replace(word, values=(path,)))
    if not word.is_known and word.prefix.startswith("@"):
        call.report_path("read", Word(word.text))


def _form_field(call: Invocation, word: Word) -> None:
    """Judge a form field: `name=value`, `name=@file` or `name=<file`."""
    _egress(call, word)
    for value in word.values:
        content = value.partition("=")[2]
        if content[:1] in ("@", "<"):
            path = content[1:].partition(";")[0].strip('"')
            if path != "-":
                call.report_path("read", replace(word, values=(path,)))
    if not word.is_known:
        call.report_unclear("unknown-target", "what is sent depends on what cannot be seen", word)


def _cookie(call: Invocation, word: Word) -> None:
    """Judge cookies to send: `name=value`, or the file that holds them."""
    _egress(call, word)
    if word.value is None or "=" not in word.value:
        call.report_path("read", word)


def _upload(call: Invocation, word: Word) -> None:
    _egress(call, word)
    if word.value not in ("-", "."):
        call.report_path("read", word)


def _method(call: Invocation, word: Word) -> None:
    if word.value is None or word.value.upper() not in _READING_METHODS:
        _egress(call, word)


def _service(call: Invocation, word: Word) -> None:
    """Judge an operand for the client of a service: a name, or an address that the command names itself."""
    if not word.is_known:
        # An unknown part of a request carries data away, and may name another host.
        call.report_host(word, "egress")
    for value in word.values:
        if "://" in value or value.startswith("//"):
            _send(call, replace(word, values=(value,)))


def _service_repository(call: Invocation, word: Word) -> None:
    """Judge `gh -R`: `owner/name` on the host that is set up, or `host/owner/name`."""
    for value in word.values or ("",):
        if value.count("/") > 1 or "." in value.partition("/")[0] or not value:
            _send(call, word)


def _service_method(call: Invocation, word: Word) -> None:
    if word.value is None or word.value.upper() not in _READING_METHODS:
        call.report_effect("network", word)
        call.report_effect("egress", word)


def _resource(call: Invocation, word: Word) -> None:
    """Judge an operand of `kubectl get`: a kind, a name, or both. Secrets are kinds, too."""
    if not word.is_known or any("secret" in value.lower() or "://" in value for value in word.values):
        call.report_effect("secret", word, target=word.value or "")
    if not word.is_known:
        call.report_effect("network", word)


def _cluster_file(call: Invocation, word: Word) -> None:
    """Judge `kubectl -f`: a file that names what is asked about, or an address."""
    if not word.is_known or any("://" in value for value in word.values):
        _send(call, word)
    else:
        call.report_path("read", word)


def _cluster_format(call: Invocation, word: Word) -> None:
    """Judge `kubectl -o`: the name of a format, or a file with one."""
    for value in word.values:
        if "-file=" in value:
            call.report_path("read", replace(word, values=(value.partition("=")[2],)))


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
        _egress(call, word)
    for value in word.values:
        if value.startswith("@"):
            _egress(call, word)
            call.report_path("read", replace(word, values=(value[1:],)))


def _write_out(call: Invocation, word: Word) -> None:
    """Judge the text that curl prints at the end. It can name a file to print to."""
    if word.value is None or word.value.startswith("@") or "%output{" in word.value:
        call.report_effect("write", word)
        call.report_unclear("unknown-option", "what curl writes to is said in a text that is not looked into", word)


def _read_address(call: Invocation, word: Word) -> None:
    """Judge a file, or an address to read it from."""
    if not word.is_known or any("://" in value for value in word.values):
        call.report_host(word)
    else:
        _read(call, word)


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
        # `git diff /dev/null ~/notes` compares files outside of the repository.
        if value.startswith(("/", "~", "../")) or value == ".." or "/../" in value:
            call.report_path("read", replace(word, values=(value,)))
            continue
        # `HEAD:.env` prints an old version of `.env`.
        path = value.partition(":")[2] or value
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
    """Judge a target of make, or a variable that is set for it. A recipe may run any variable as a program."""
    if found := _MAKE_ASSIGNMENT.match(word.prefix):
        if found[1].strip(".").upper() in ("SHELL", "SHELLFLAGS"):
            _code(call, word)
        if not judge_assignment(call, found[1], word.drop_first(found.end())):
            call.report_unclear("environment", f"{found[1]} may change what {call.program} runs", word)


_REPORT_FILE = lazy_pattern(r"[a-z-]+:(.+)", re.DOTALL)
_PYTEST_PLUGINS = lazy_pattern(
    r"no:.*|xdist|randomly|cacheprovider|doctest|capture|logging|asyncio|anyio|timeout|cov|pytest_cov|faulthandler|pytester"
)
_PYTEST_SETTINGS = lazy_pattern(
    r"(?:log_\w*level|log_cli|log_(?:cli_)?(?:date_)?format|asyncio_\w+|timeout\w*|console_output_style|junit_\w+"
    r"|xfail_strict|faulthandler_\w+|filterwarnings|markers|python_(?:files|classes|functions)|truncation_limit_\w+"
    r"|verbosity_\w+|minversion)=(?!.*[/@]).*",
    re.DOTALL,
)


def _coverage_report(call: Invocation, word: Word) -> None:
    """Judge `--cov-report`: the name of a format, or a name and the place to write to."""
    if not word.is_known:
        call.report_path("write", word)
    for value in word.values:
        found = _REPORT_FILE.fullmatch(value)
        if found and found[1] not in ("skip-covered", "skip-empty"):
            call.report_path("write", replace(word, values=(found[1],)))


def _pytest_plugin(call: Invocation, word: Word) -> None:
    """Judge `pytest -p`. A plugin is a module, which runs."""
    if word.value is None or not _PYTEST_PLUGINS.fullmatch(word.value):
        call.report_effect("execute", word)
        call.report_unclear("code", f"what the plugin {word.short_text} does was not looked into", word)


def _pytest_setting(call: Invocation, word: Word) -> None:
    """Judge `pytest -o`. Some settings add options, files and plugins."""
    if word.value is None or not _PYTEST_SETTINGS.fullmatch(word.value):
        call.report_unclear("environment", f"the setting {word.short_text} changes what pytest runs", word)


def _test_operand(call: Invocation, word: Word) -> None:
    """Judge a test to run. `@FILE` holds more options."""
    if word.prefix.startswith("@"):
        _options_file(call, word.drop_first(1))


_OUTPUT_OPTION = lazy_pattern(
    r"-[oH]|--?(?:inspect|host|address|bind|listen|public|expose|share|tunnel|open|out|output|report|log|trace|debug|profile|cov|coverage|junit|json|html|config|exec|require|import|loader"
    r"|plugin|reporter|setup|global|env|runner|transform|resolver|preset|write|dump|save|cache|dir|file)[\w.-]*(?:=.*)?",
    re.IGNORECASE | re.DOTALL,
)
_PASSED_SAFELY = lazy_pattern(
    r"--(?:coverage|watch|watchAll|runTestsByPath|reporter(?:=(?:dot|spec|list|line|verbose|default|basic|json|min))?|json"
    r"|cache|no-cache|coverage=(?:true|false)|debug|dir=(?!.*\.\.)[\w./-]*)|--testPathPattern.*",
    re.IGNORECASE | re.DOTALL,
)


def _passed_argument(call: Invocation, word: Word) -> None:
    """Judge an argument that `npm run` hands to a script. Which program gets it is not known."""
    for value in word.values or ("-o",):
        if value.startswith("-") and _OUTPUT_OPTION.fullmatch(value) and not _PASSED_SAFELY.fullmatch(value):
            why = f"what the script does with {word.short_text} was not looked into"
            call.report_unclear("unknown-option", why, word)


_FORMAT_OPTIONS = frozenset(("--check", "-l", "-v", "--verbose", "-q"))


def _format_option(call: Invocation, word: Word) -> None:
    """Judge an operand of `cargo fmt` and `go fmt`: an option or file for the formatter, after `--`."""
    if (word.value is None or word.value.startswith("-")) and word.value not in _FORMAT_OPTIONS:
        call.report_unclear("unknown-option", f"{word.short_text} of {call.program} is not in the tables", word)


_LINT_FORMATS = lazy_pattern(r"[a-z0-9-]+(?:,[a-z0-9-]+)*")


def _lint_format(call: Invocation, word: Word) -> None:
    """Judge the format of a linter's output: `json`, or `json:FILE`."""
    if word.value is None or not _LINT_FORMATS.fullmatch(word.value):
        call.report_path("write", Word(word.text, tuple(value.partition(":")[2] or value for value in word.values)))


def _reporter_option(call: Invocation, word: Word) -> None:
    """Judge options of a reporter. Some of them name the file to write."""
    for value in word.values or ("output=?",):
        for part in value.split(","):
            name, equals, path = part.partition("=")
            if equals and name not in ("maxDiffSize", "verbose", "hideTitles", "suiteName"):
                call.report_path("write", replace(word, values=(path,) if word.is_known else ()))


_BUILT_IN_REPORTERS = frozenset(
    (
        "default",
        "verbose",
        "basic",
        "dot",
        "json",
        "junit",
        "tap",
        "tap-flat",
        "hanging-process",
        "github-actions",
        "tree",
    )
)


def _built_in_reporter(call: Invocation, word: Word) -> None:
    if word.value not in _BUILT_IN_REPORTERS:
        call.report_executed_file(word)


def _dotnet_logger(call: Invocation, word: Word) -> None:
    """Judge a logger of `dotnet test`: a name, with settings that may name a file or an assembly."""
    if word.value is None or not re.fullmatch(r"(?:console|trx|html)(?:;verbosity=\w+)?", word.value):
        call.report_effect("write", word)
        call.report_unclear("unknown-option", f"where {word.short_text} writes was not looked into", word)


_HARMLESS_DEFINITIONS = lazy_pattern(
    r"(?:CMAKE_BUILD_TYPE|CMAKE_EXPORT_COMPILE_COMMANDS|CMAKE_VERBOSE_MAKEFILE|BUILD_(?:TESTING|SHARED_LIBS|TESTS|DOCS|EXAMPLES)"
    r"|CMAKE_C(?:XX)?_STANDARD|\w+_BUILD_\w+)(?::\w+)?=[\w.+-]*"
)


def _definition(call: Invocation, word: Word) -> None:
    """Judge `cmake -D`. Many variables name a compiler or a launcher, which runs."""
    if word.value is None or not _HARMLESS_DEFINITIONS.fullmatch(word.value):
        call.report_unclear("environment", f"{word.short_text} may change what cmake runs", word)


_SPHINX_BUILDERS = frozenset(
    (
        *("html", "dirhtml", "singlehtml", "doctest", "text", "man", "epub", "gettext", "dummy", "spelling", "xml"),
        *("changes", "coverage", "json", "latex", "texinfo", "pseudoxml", "help"),
    )
)


def _sphinx_builder(call: Invocation, word: Word) -> None:
    """Judge the builder of Sphinx. `linkcheck` opens connections, and others run further programs."""
    if word.value not in _SPHINX_BUILDERS:
        call.report_unclear("unknown-option", f"what the builder {word.short_text} does was not looked into", word)


_MADE_DOCS = frozenset(("_build", "build", "_site", "site", "_html", "html", "dist", "out", "doctrees", "_doctrees"))
"""Directories for finished pages. Nobody keeps sources in them."""


def _made_docs(call: Invocation, word: Word) -> None:
    """Judge the directory into which Sphinx writes pages. Any other place may hold files of the same names."""
    if word.is_known and all(not _MADE_DOCS.isdisjoint(value.split("/")) for value in word.values):
        _template(call, word)
    else:
        _write(call, word)


def _compiler_flags(call: Invocation, word: Word) -> None:
    """Judge flags for a compiler or linker. Some flags name another program to run."""
    if word.value is None or re.search(r"-(?:ext|toolexec|fuse-ld|B|specs|wrapper|plugin)", word.value):
        _code(call, word)


def _python_setting(call: Invocation, word: Word) -> None:
    """Judge `python -X`. Some settings name a file or a directory."""
    if word.value is None or not re.fullmatch(
        r"(?:dev|utf8|faulthandler|tracemalloc|importtime|showrefcount|no_debug_ranges|int_max_str_digits|frozen_modules|gil"
        r"|warn_default_encoding|perf)(?:=\w*)?",
        word.value,
    ):
        call.report_unclear("unknown-option", f"the setting {word.short_text} of python is not in the tables", word)


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
    "contents": _contents,
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
    "object": _object,
    "template": _template,
    "pages": _made_docs,
    "manual": _manual,
    "logins": _logins,
    "cached": _bat_operand,
    "archive": _archive_keys,
    "counted": _history_operand,
    "sockets": _sockets,
    "stamp": _stamp,
    "filterfile": _filter_file,
    "process": lambda call, word: call.report_effect("process", word),
    "install": lambda call, word: call.report_effect("install", word),
    # programs that fetch and send
    "url": _url,
    "body": _request_body,
    "raw": _egress,
    "address": _read_address,
    "service": _service,
    "hostless": _service_repository,
    "ghmethod": _service_method,
    "resource": _resource,
    "kubefile": _cluster_file,
    "goformat": _cluster_format,
    "form": _form_field,
    "upload": _upload,
    "cookie": _cookie,
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
    "branches": lambda call, word: call.report_effect("git-state", word),
    "tags": lambda call, word: call.report_effect("write", word),
    "history": lambda call, word: call.report_effect("git-history", word),
    "unstaged": lambda call, word: call.report_path("git-state", word),
    "committed": _revision_or_path,
    "staged": _staged_path,
    "renamed": _new_name,
    "setting": _setting,
    # programs that build and run
    "makes": _make_argument,
    "flags": _compiler_flags,
    "module": _python_module,
    "pythonsetting": _python_setting,
    "project": _project_path,
    "cmakes": _code,
    "definition": _definition,
    "sphinx": _sphinx_builder,
    "tests": _test_operand,
    "coverreport": _coverage_report,
    "pytestplugin": _pytest_plugin,
    "pytestsetting": _pytest_setting,
    "formatted": _format_option,
    "passed": _passed_argument,
    "lintformat": _lint_format,
    "reporteroption": _reporter_option,
    "vitestreporter": _built_in_reporter,
    "dotnetlogger": _dotnet_logger,
}

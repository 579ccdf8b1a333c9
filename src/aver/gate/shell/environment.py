"""Assignments of variables that change what a program does: the libraries it loads, the programs it starts.

`LD_PRELOAD=x.so ls`, `PAGER='sh -c …' git log` and `GIT_SSH_COMMAND=… git fetch` run code that the command does not
name. There are too many such variables to list them one by one. For most programs Aver lists families of names, and
then lets harmless names and harmless values through. A build, a test or a git hook reads any variable that its author
chose. Before these only names pass that are known to be harmless: `CI=1 make` is ordinary, `JAVACMD=x mvn test` is
unclear.

The families that steer a coding agent are data about that agent, in `agents/<name>/names.py`. They come with
`PathRoots.known`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from aver.gate.effects.paths import locate_path
from aver.gate.shell.model import SHORT_TEXT_MAX, Word
from aver.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from aver.gate.shell.invocation import Invocation

_RISKY_NAMES = r"""
    (?:LD|DYLD|GIT|NPM_CONFIG|PIP|UV|CARGO|BUNDLE|ANSIBLE|SSH|SUDO|BASH|MALLOC|GCONV|PERL|RUBY|ANTHROPIC
      |OPENAI|DOCKER|KUBE|HELM|TF_CLI|GCLOUD|CLOUDSDK|RSYNC|TAR|GNUPG|GPG|LUA|PHP|NODE|DENO|BUN
      |YARN|PNPM|POETRY|CONDA|MAMBA|VIRTUALENV|GRADLE|MAVEN|JAVA|_JAVA|JDK|DOTNET|CORECLR|COR|R|JULIA|ERL|ELIXIR|OCAML
      |GHC|MAKE|CMAKE|CTEST|CGO|RUSTC|RUST|CC|CXX|LESS|MAN|AWK|RIPGREP|FZF|GREP|BAT|PYTEST|OPENSSL|GEM|COVERAGE|TS_NODE
      |JUST|TASK|ESLINT|PRETTIER|BABEL|JEST|VITEST|MOCHA|KARMA|COREPACK|TOX|NOX|MYPY|PYLINT|FLAKE8|MESON|NINJA|BAZEL|NX)_.*
    |GO[A-Z]+|RUST.*|MYPYPATH|PYLINT.*|.*FLAGS|JUSTFILE|TASKFILE|RAKEOPT|SSLKEYLOGFILE|FLASK_.*|RAILS_ENV|RACK_ENV
    |LD|PATH|IFS|ENV|PS[0-4]|SHELL|SHELLOPTS|BASHOPTS|PROMPT_COMMAND|CDPATH|GLOBIGNORE|FPATH|ZDOTDIR|HOME|PWD|OLDPWD|HISTFILE
    |EDITOR|VISUAL|FCEDIT|PAGER|MANPAGER|BROWSER|LESS|LESSOPEN|LESSCLOSE|LESSKEY|LESSEDIT|MORE|MANOPT|MANPATH
    |PYTHON.*|PERL5?.*|RUBY(?:OPT|LIB|SHELL)|NODE_OPTIONS|CLASSPATH|MAKE|MAKEFLAGS|MAKEFILES|MFLAGS|GNUMAKEFLAGS|BASH_ENV
    |CC|CXX|CPP|AR|AS|LINK|GOFLAGS|GOPROXY|GOPATH|GOROOT|GOENV|GOPRIVATE|GONOSUMDB|GONOSUMCHECK|GOSUMDB|TERMINFO.*|TERMCAP
    |NLSPATH|HOSTALIASES|RES_OPTIONS|LOCPATH|LOCALDOMAIN|GCONV_PATH|TMPDIR|TEMP|TMP|XDG_.*|DISPLAY|WINDOWID|MAIL|MAILPATH
    |GREP_OPTIONS|GZIP|BZIP2?|XZ_OPT|XZ_DEFAULTS|ZSTD_CLEVEL|UNZIP.*|ZIPOPT|ZIPINFO|CURL_HOME|WGETRC|NETRC|INPUTRC|PSQLRC
    |.*_(?:PRELOAD|WRAPPER|RUNNER|COMMAND|CMD|PAGER|EDITOR|BROWSER|ASKPASS|PROXY|RSH|SHELL|HOOKS?|STARTUP|INIT|PLUGINS?
      |OPTIONS|OPTS|OPT|FLAGS|LIBRARY_PATH|CONFIG|CONFIG_FILE|RC|BASE_URL|REGISTRY|INDEX_URL|ENDPOINT(?:_URL)?|EXEC)
    |GH_(?:HOST|CONFIG_DIR|REPO)|KUBECONFIG|GNUPGHOME|ACKRC|COMPOSER_.*|INFOPATH|TZDIR
    |(?:HTTPS?|ALL|FTP|NO|SOCKS)_PROXY|.*CA_BUNDLE|SSL_CERT_.*|.*REJECT_UNAUTHORIZED.*|.*_VERIFY
    """
_HARMLESS_NAMES = r"""
    GIT_(?:TERMINAL_PROMPT|(?:AUTHOR|COMMITTER)_(?:NAME|EMAIL|DATE)|OPTIONAL_LOCKS|LITERAL_PATHSPECS|MERGE_AUTOEDIT)
    |PYTHON(?:UNBUFFERED|DONTWRITEBYTECODE|UTF8|HASHSEED|IOENCODING|FAULTHANDLER|TRACEMALLOC|ASYNCIODEBUG|DEVMODE|OPTIMIZE
      |NOUSERSITE|SAFEPATH|PROFILEIMPORTTIME)
    |PYTEST_(?:DISABLE_PLUGIN_AUTOLOAD|TIMEOUT|DEBUG|XDIST_AUTO_NUM_WORKERS)
    |NODE_(?:ENV|NO_WARNINGS|DEBUG)|RUST_(?:LOG|BACKTRACE|TEST_THREADS)|CARGO_(?:TERM_\w+|INCREMENTAL|NET_OFFLINE|BUILD_JOBS)
    |GO(?:OS|ARCH|ARM|AMD64|MAXPROCS|MEMLIMIT|GC|DEBUG|TRACEBACK|111MODULE)|CGO_ENABLED|MYPY_FORCE_COLOR|TOX_SKIP_ENV
    |JEST_WORKER_ID|VITEST_POOL_ID|ESLINT_USE_FLAT_CONFIG|COVERAGE_CORE|DOCKER_BUILDKIT|MAKE_TERMOUT
    |PIP_(?:DISABLE_PIP_VERSION_CHECK|NO_INPUT|NO_COLOR|PROGRESS_BAR|QUIET)|UV_(?:NO_PROGRESS|OFFLINE|NO_SYNC|FROZEN)
    |NPM_CONFIG_(?:LOGLEVEL|FUND|AUDIT|PROGRESS|UPDATE_NOTIFIER|YES)|LESSCHARSET|MAN_KEEP_FORMATTING
    |NO_PROXY|XDG_SESSION_TYPE|RUBY_VERSION|JAVA_VERSION|(?:OPENAI|ANTHROPIC)_(?:API_KEY|MODEL)
    """
_HARMLESS_BEFORE_BUILDS = r"""
    CI|GITHUB_ACTIONS|NO_COLOR|FORCE_COLOR|CLICOLOR(?:_FORCE)?|COLORTERM|COLUMNS|LINES|TERM|TZ|LANG|LANGUAGE|LC_[A-Z]+
    |DEBUG|VERBOSE|V|Q|QUIET|LOG_?LEVEL|APP_ENV|BABEL_ENV|SOURCE_DATE_EPOCH|DEBIAN_FRONTEND|HYPOTHESIS_PROFILE
    |UPDATE_(?:SNAPSHOTS?|GOLDEN|EXPECT)|INSTA_UPDATE|TEST_(?:TIMEOUT|THREADS|VERBOSE)|PORT|JOBS|NINJA_STATUS|MYPY_FORCE_COLOR
    """
"""Names that mean nothing to most programs, and steer no build: colours, language, time zone, how much is told."""
_PLAIN_NAME_WORDS = frozenset(
    (
        *("TEST", "TESTS", "CI", "BUILD", "DEBUG", "LEVEL", "VERBOSE", "COLOR", "PULL", "REQUEST", "WORKER", "WORKERS"),
        *(
            "MODE",
            "MINIFY",
            "STRICT",
            "FAST",
            "SLOW",
            "SEED",
            "TIMEOUT",
            "RETRIES",
            "SHARD",
            "SHARDS",
            "THREADS",
            "JOBS",
        ),
        *("HEADLESS", "BENCH", "ITERATIONS", "COUNT", "NUM", "MAX", "MIN", "SIZE", "PARALLEL", "SERIAL", "WARNINGS"),
    )
)
"""Words of names that say how much a build does or tells. A name of these words alone is plain: `WORKER_MODE`."""
_PLAIN_VALUE = r"[0-9]{0,9}(?:\.[0-9]{1,9})?|true|false|yes|no|on|off|auto|none|all|test|inline|strict|debug|fast|dev"
"""A switch, a number or a mode: no path, no host, no command."""
_HOOK_SWITCHES = (
    r"HUSKY(?:_SKIP_HOOKS|_SKIP_INSTALL)?|SKIP|LEFTHOOK(?:_\w+)?|OVERCOMMIT_\w+|PRE_COMMIT_\w+|SKIP_\w*HOOKS?"
)
"""Names with which a person switches the hooks of a repository off. Hooks may be what asks Aver."""
_HARMLESS_PROGRAMS = frozenset(("", "cat", "true", ":", "false", "/bin/true", "/bin/cat", "never", "0", "1"))
"""Values of EDITOR, PAGER and similar variables that run nothing of interest."""
_TRACE_SWITCHES = frozenset(("", "0", "1", "2", "true", "false"))
_HARMLESS_NODE_OPTIONS = (
    r"(?:\s*--(?:max-old-space-size=[0-9]+|no-warnings|trace-warnings|experimental-vm-modules|enable-source-maps"
    r"|openssl-legacy-provider|unhandled-rejections=\w+|experimental-specifier-resolution=\w+))*\s*"
)
_HARMLESS_LESS = r"[-\sacefFgGiIJmMnNqQrRsSuUwWXx0-9]*"
"""Options of less that run and write nothing. It leaves out `+!` and `-o`."""
_COMPILER_NAMES = r"(?:gcc|g\+\+|cc|c\+\+|clang|clang\+\+|ar|ld|lld|as)(?:-[0-9.]+)?"
SEARCH_PATHS = frozenset(("PYTHONPATH", "NODE_PATH", "GOPATH", "RUBYLIB", "PERL5LIB", "CLASSPATH"))
"""Directories that programs load code from, also programs that only read: `PERL5LIB=lib shasum notes.txt`."""
_DESTINATION_NAMES = r".*(?:PROXY|BASE_URL|ENDPOINT(?:_URL)?|REGISTRY|INDEX_URL)"


def _matches(pattern: str, name: str) -> bool:
    # Compiled at first use, and kept by `re`: the patterns are large, and most commands set no variable.
    return re.fullmatch(pattern, name, re.VERBOSE | re.IGNORECASE) is not None


def judge_assignment(call: Invocation, name: str, value: Word) -> bool:
    """Report an assignment to a risky variable. Returns False if a build may obey it, and nothing was reported.

    Aver assumes that programs see the variable. Whether it is exported may depend on `set -a` and earlier commands.
    """
    agent_families = "|".join(map(re.escape, ("AVER", *sorted(call.path_roots.known.variables))))
    steers_agent = _matches(rf"(?:{agent_families})_.*", name)
    # The harmless names are exceptions from the families of risky names.
    if _matches(_HARMLESS_NAMES, name) or (_matches(_HARMLESS_BEFORE_BUILDS, name) and not steers_agent):
        return True
    if not steers_agent and not _matches(_RISKY_NAMES, name):
        is_plain = _PLAIN_NAME_WORDS.issuperset(name.split("_"))
        return is_plain and value.is_known and all(re.fullmatch(_PLAIN_VALUE, text) for text in value.values)
    # `value` may be the whole word `NAME=VALUE`; then the name is not repeated.
    cited = (f"{name}={value.short_text}" if not value.text.startswith(name) else value.short_text,)
    if _is_harmless_value(call, name, value):
        if name in SEARCH_PATHS:
            call.report.add_effect("execute", cited)  # Code of the workspace runs, as in a build.
        return True
    if steers_agent or is_hook_switch(name):
        call.report.add_effect("agent-config", cited)
    elif _matches(_DESTINATION_NAMES, name):
        call.report.add_effect("egress", cited)
    else:
        call.report.add_effect("execute", cited)
    call.report.add_unclear("environment", f"{name} changes what programs do", cited)
    return True


_INDIRECT_ASSIGNMENT = lazy_pattern(
    r"\$\{(!?[A-Za-z_]\w*)(?:\[[^\]]*\])?:{0,2}=|\{([A-Za-z_]\w*)\}[<>]|\bwait\b[^;&|\n]*?[ \t]-[fn]*p[ \t]*(\S+)"
)
"""`${NAME:=x}`, `${!NAME:=x}`, `{NAME}>file` and `wait -p NAME`."""
_COMPUTED_ASSIGNMENT = lazy_pattern(
    r"(\$?\{?[A-Za-z_]\w*\}?)\s*(?:\[[^\]]*\])?\s*(?:\+\+|--|(?:[-+*/%&^|]|<<|>>)?=(?!=))|(?:\+\+|--)\s*([A-Za-z_]\w*)"
)


def find_indirect_assignments(text: str) -> Iterator[str]:
    """Yield the names that a script sets without an assignment of its own: by an expansion, a descriptor or arithmetic.

    A name that depends on another variable is yielded as it is written, such as `!x`. The search goes by the text, so
    it also finds names in quoted text. This error makes Aver ask more often, not less.
    """
    for found in _INDIRECT_ASSIGNMENT.finditer(text) if "=" in text or "}" in text or "wait" in text else ():
        yield found[1] or found[2] or found[3]
    for part in _list_computed_parts(text):
        for found in _COMPUTED_ASSIGNMENT.finditer(part):
            yield found[1] or found[2]


def _list_computed_parts(text: str) -> Iterator[str]:
    """Yield the texts that the shell computes: between `((` and its end, in `$[…]`, and all after `let`."""
    if (found := re.search(r"\blet\b", text)) is not None:
        yield text[found.end() :]
    yield from re.findall(r"\$\[[^\]]*\]", text)
    start = text.find("((")
    while start >= 0:
        depth, end = 0, start
        while end < len(text) and (depth or end == start):
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        yield text[start:end]
        start = text.find("((", end)


def judge_indirect_assignments(call: Invocation, text: str) -> None:
    """Report the risky variables among those that a script sets indirectly. Their values are not known."""
    for name in dict.fromkeys(find_indirect_assignments(text)):
        if re.fullmatch(r"[A-Za-z_]\w*", name):
            judge_assignment(call, name, Word(name))
        else:
            why = "which variable is set depends on what cannot be seen"
            call.report.add_unclear("environment", why, (name[:SHORT_TEXT_MAX],))


def is_harmless_name(name: str) -> bool:
    """Whether a variable is known to be harmless before a build, whatever its value."""
    return _matches(_HARMLESS_NAMES, name) or _matches(_HARMLESS_BEFORE_BUILDS, name)


def is_hook_switch(name: str) -> bool:
    """Whether a variable switches the hooks of a repository off."""
    return _matches(_HOOK_SWITCHES, name)


def is_secret_name(name: str) -> bool:
    """Whether a variable's name says that its value is secret."""
    # Imported here because of its patterns: only commands with variables pay for them.
    from aver.capsule.masking.named_values import is_sensitive_name

    return is_sensitive_name(name)


def judge_subscript(call: Invocation, word: Word) -> None:
    """Report a text such as `a[$(rm x)]`: a shell that reads it as a number or a name runs the substitution."""
    # Only the text after the first bracket is a subscript.
    inside = [value.partition("[")[2] for value in word.values]
    if any(mark in text for text in inside for mark in ("$(", "`", "${")):
        call.report_unclear("dynamic-code", "the shell may run what stands in the brackets", word)


def _is_harmless_value(call: Invocation, name: str, value: Word) -> bool:
    text = value.value
    if text is None:
        return False
    # These name programs, which run.
    if name.upper().endswith(("PAGER", "EDITOR", "VISUAL", "BROWSER", "ASKPASS")):
        return text in _HARMLESS_PROGRAMS
    if name in ("CC", "CXX", "CPP", "AR", "LD", "AS"):
        return _matches(_COMPILER_NAMES, text)
    if re.fullmatch(r"GIT_(?:CURL_VERBOSE|TRACE\w*)", name):
        return text in _TRACE_SWITCHES  # any other value is the name of a file that git writes
    if name in ("RAILS_ENV", "RACK_ENV", "FLASK_ENV"):
        return text in ("test", "development")
    if name == "SHELL":
        return text in ("/bin/sh", "/bin/bash", "/bin/zsh", "/usr/bin/bash", "bash", "sh")
    if name in ("LESS", "MORE"):
        return _matches(_HARMLESS_LESS, text)
    if name == "NODE_OPTIONS":
        return _matches(_HARMLESS_NODE_OPTIONS, text)
    if name not in (*SEARCH_PATHS, "TMPDIR", "TMP", "TEMP"):
        return False
    # A list of directories is harmless if each of them lies where the agent may write anyway.
    allowed = ("workspace",) if name in SEARCH_PATHS else ("workspace", "temporary")
    places = [locate_path(path, cwd, call.path_roots) for path in text.split(":") if path for cwd in call.state.cwds]
    return all(place.where in allowed and not place.classes for place in places)

"""Handlers of interpreters of other languages. Aver reports which code they run, but does not analyse the code."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from aver.gate.shell.invocation import Invocation
from aver.gate.shell.model import Word
from aver.gate.shell.programs.apply import apply_arguments, apply_spec
from aver.gate.shell.programs.spec import parse_spec, read_arguments, split_table
from aver.gate.shell.programs.tables import ROWS, has_subcommands, tools
from aver.gate.shell.programs.verbs import apply_verb

_PYTHON = (
    "posix -[bBdEhIOPqsSuvVt] -? -x!?dynamic-code -i!execute,?dynamic-code -c=code -m= -W= -X=pythonsetting"
    " --check-hash-based-pycs= --help-env --help-xoptions --help-all"
)
_NODE = (
    "posix (-v -h --test --watch --no-warnings --trace-warnings --enable-source-maps"
    " --experimental-vm-modules --inspect?!network --expose-gc --trace-deprecation --throw-deprecation"
    " --no-deprecation --preserve-symlinks --test-only --test-force-exit --experimental-test-coverage"
    " --experimental-strip-types --no-experimental-strip-types --experimental-transform-types --no-opt"
    " --stack-trace-limit="
    " --test-concurrency= --test-timeout= --test-shard= --test-reporter-destination=write --cpu-prof-dir=write"
    " --heap-prof-dir=write --redirect-warnings=write --report-directory=write --diagnostic-dir=write"
    " --tls-keylog=write"
    " --unhandled-rejections= --stack-size= --openssl-config=program --icu-data-dir=read --snapshot-blob=program"
    " --input-type= --experimental-default-type= --disable-warning= --watch-preserve-output) -i!execute,?dynamic-code"
    " --interactive!execute,?dynamic-code --inspect-brk?!network --env-file-if-exists=read -e=~code -p=~code"
    " -pe=~code --eval=~code --print=~code"
    " -r=program --require=program --import=program --loader=program --experimental-loader=program -c:read"
    " --check:read --env-file=read --max-old-space-size= -C= --conditions= --title= --run=code --prof --cpu-prof"
    " --build-snapshot=program --test-reporter= --test-name-pattern= --watch-path= 1program"
)
INTERPRETERS: Mapping[str, str] = {
    "perl": (
        "posix -e=~code -E=~code -M=program -m=program -I= -i?!write -x? -F= -0? -l? -d?!?code -n -p -a -w -c"
        " -v:skip -V? -[hsStTuUWX] -C? -D? 1program"
    ),
    "ruby": "posix -e=~code -r=program -I= -i?!write -C= -F= -n -p -a -w -c -v:skip -[hsSWlTUy] -K= -T? -W? -E= -x?"
    " --disable? --enable? --yjit --jit --encoding= 1program",
    "php": (
        "posix -r=~code -B=code -R=code -E=code -F=program -f=~program -d=code -S=!network -t= -c=program"
        " -z=program -l:read -[imnsawHeq] -v:skip --ini --ri= --rf= 1program"
    ),
    "lua": "posix -e=~code -l=program -i -v:skip 1program",
    "luajit": "posix -e=~code -l=program -b? -j= -O? 1program",
    "Rscript": "posix --vanilla --no-save --no-restore --slave --no-echo --verbose -e=~code 1program",
    "julia": "posix -e=~code -E=~code -L=program -J=program --project? -t= -p= -[qih] --threads= --startup-file="
    " --color= --check-bounds= 1program",
    "osascript": "posix -e=~code -l= -s= 1program",
    "tclsh": "posix 1program",
    "expect": "posix -c=~code -f=~program 1program",
    "java": (
        "posix onedash -jar=~program -cp=program -classpath=program -javaagent?program -D? -X? -version:skip"
        " --version:skip -ea -esa -da -server -client -showversion -verbose? -m=~program 1program"
    ),
    "deno": "posix lax 1code",
    "tsx": "posix -e=~code --tsconfig=read 1program",
    "ts-node": "posix -e=~code -r=program -P=read 1program",
    "jshell": "lax 1code",
    "bc": "-[hilqswv] -e=code --expression=code -f=read --mathlib --quiet --interactive --warn --standard *read",
    "dc": "-[hVix] -e=code -f=program *program",
    "m4": "lax *program",
    "pwsh": "lax +execute +?code",
    "powershell": "lax +execute +?code",
    "cmd": "lax +execute +?code",
}
_TOOLS = frozenset(name.partition(" ")[0] for name in split_table(tools.TABLE))
"""Programs of the table of tools. They run code of the workspace, or are formatters and linters of it."""
_NODE_TOOLS = frozenset(
    (
        *("ava", "astro", "biome", "docusaurus", "esbuild", "eslint", "grunt", "gulp", "jasmine", "jest", "karma"),
        *("lerna", "mocha", "next", "ng", "npm-run-all", "nuxt", "nx", "oxlint", "parcel", "playwright", "prettier"),
        *("pyright", "rollup", "run-p", "run-s", "standard", "stylelint", "svelte-check", "tsc", "tsd", "tslint"),
        *("tsup", "turbo", "uvu", "vite", "vitepress", "vitest", "vue-tsc", "webpack", "xo"),
    )
)
"""Tools of Node. `npx` fetches what is not installed, by its name alone: under the name of any other tool, such as
`npx pytest`, that is a package of somebody else."""
_ALWAYS_FETCH = frozenset(("uvx", "pnpx"))
_HELP_WORDS = frozenset(("--version", "--help", "-V", "-v", "-h"))
_PYTHON_MODULES: Mapping[str, str] = {
    "json.tool": "-[hi] --indent= --tab --no-indent --compact --sort-keys --no-ensure-ascii --json-lines 1read 2write",
    "venv": (
        "-[h] --system-site-packages --symlinks --copies --clear!delete --upgrade --without-pip --prompt="
        " --upgrade-deps!network"
        " --without-scm-ignore-files *write"
    ),
    "compileall": "-[hlfqbr] -d= -s= -p= -x= -i=read -j= -o= -e= --invalidation-mode= --hardlink-dupes *edit @write",
    "py_compile": "-[hq] --quiet *edit",
    "unittest": (
        "-[vqfcbhk] -k= -s= -p= -t= --verbose --quiet --failfast --catch --buffer --locals --start-directory="
        " --pattern="
        " --top-level-directory= --durations= +execute"
    ),
    "doctest": "-[vhfF] -o= --verbose --fail-fast +execute",
    "timeit": "lax +execute +?code",
    "cProfile": "lax -o=write +execute +?script",
    "pdb": "lax +execute +?script",
    "trace": "lax +execute +?script",
    "http.server": "lax +network +egress -d=read --directory=read -b= --bind=",
    "ensurepip": "lax +install +execute",
    "zipfile": "-l:read -t:read --list:read --test:read -e -c +write *read",
    "tarfile": "-v -l:read -t:read --list:read --test:read -e -c +write *read",
    "tokenize": "-[eh] --exact *read",
    "ast": "-[ahm] -m= -i= --mode= --no-type-comments --include-attributes --indent= *read",
    "dis": "-[hCOPS] --show-caches --show-offsets --show-positions *read",
    "calendar": "lax",
    "platform": "lax",
    "site": "--user-base --user-site",
    "sysconfig": "lax",
    "this": "",
    "base64": "-[deutw] *read",
}
"""The modules of Python itself that run as programs. Those that say `lax` print the same, whatever they are given, or
a rule asks about them in any case."""
_SQL_READS = re.compile(
    r"\s*(?:select|explain|pragma\s+\w+(?:\(\w+\))?\s*;?\s*$|\.(?:tables|schema|indexes|databases|dbinfo|mode\s+\w+"
    r"|headers?\s+\w+|width)\b|with\b)",
    re.IGNORECASE,
)
_SQL_REACHES_OUT = re.compile(
    r"writefile|readfile|fsdir|zipfile|sqlite_dbpage|edit\s*\(|load_extension|attach|vacuum\s+into|fts3_tokenizer|\binto\b|\b(?:insert|update|delete|drop|create|replace|alter)\b"
    r"|;\s*\S|^\s*\.(?!tables|schema|indexes|databases|dbinfo|mode|header|width)",
    re.IGNORECASE | re.MULTILINE,
)


def python(call: Invocation) -> None:
    given = read_arguments(parse_spec(_PYTHON), call.words)
    # `python -m NAME` runs a module. Everything after NAME belongs to the module.
    words = _split_at_module(call.words)
    if words is not None:
        options, module, rest = words
        apply_arguments(call, parse_spec(_PYTHON), read_arguments(parse_spec(_PYTHON), options))
        # The letters before `m` in `-im` are options, too. With `-I` and `-P` the current directory is not searched.
        letters = "".join(word.value or "" for word in call.words[: len(options) + 1] if word.value != module.value)
        if re.search(r"-[A-Za-z]*i[A-Za-z]*m", letters):
            call.report_effect("execute", module)
            call.report_unclear("dynamic-code", "python -i runs what comes in afterwards", module)
        is_searched_here = not re.search(r"-[A-Za-z]*[IP]", letters)
        _judge_module(call, module, rest, is_searched_here=is_searched_here)
        return
    apply_arguments(call, parse_spec(_PYTHON), given.without_operands())
    if given.has_option("-c", "-V", "-h", "-?", "--help-env", "--help-xoptions", "--help-all") or any(
        word.value in ("--version", "--help") for word in call.words[:1]
    ):
        return
    if not given.operands or given.operands[0].value == "-":
        _report_stdin_code(call)
    else:
        call.report_executed_file(given.operands[0])


def _judge_module(call: Invocation, module: Word, rest: tuple[Word, ...], *, is_searched_here: bool) -> None:
    """Judge `python -m NAME`. A file of that name in the current directory hides the module that everybody knows."""
    name = module.value
    if name is None:
        call.report_effect("execute", module)
        call.report_unclear("dynamic-program", "which module runs depends on what cannot be seen", module)
        return
    program = name.replace("_", "-")
    runs_workspace_code = name in ("unittest", "doctest") or program in _TOOLS
    if name in _PYTHON_MODULES:
        apply_spec(replace(call, program=f"python -m {name}", words=rest), parse_spec(_PYTHON_MODULES[name]))
    elif program in ROWS or has_subcommands(program) or program == "pip":
        # Many tools run as a module as well: `python -m pytest`. Their line counts.
        call.judge_words((Word(module.text, (program,), program), *rest), "python -m")
    else:
        call.report_effect("execute", module, target=name)
        call.report_unclear("script", f"what the module {name} does was not looked into", module)
        return
    if not is_searched_here:
        return
    if runs_workspace_code:
        # A build runs code of the workspace in any case. A formatter does so only if it is hidden by such a file.
        for cwd in call.state.cwds:
            if cwd is not None and "execute" not in parse_spec(ROWS.get(program, "+execute")).always:
                call.report_effect("execute", module, target=f"{cwd}/{program}")
    else:
        call.report_module(module, name)


def _split_at_module(words: tuple[Word, ...]) -> tuple[tuple[Word, ...], Word, tuple[Word, ...]] | None:
    """Return the options, the module and the arguments of `python -m`; None if a script or `-c` comes first."""
    skip = False
    for index, word in enumerate(words):
        text = word.value
        if skip:
            skip = False
        elif text is None or not text.startswith("-") or text == "-":
            return None
        elif re.fullmatch(r"-[bBdEhiIOPqsSuvVx]*m", text) and index + 1 < len(words):
            return words[:index], words[index + 1], words[index + 2 :]
        elif re.fullmatch(r"-[bBdEhiIOPqsSuvVx]*c.*", text, re.DOTALL):
            return None
        elif re.fullmatch(r"-[bBdEhiIOPqsSuvVx]*[WX]", text):
            skip = True
        elif re.fullmatch(r"-m.+", text):
            return words[:index], word.drop_first(2), words[index + 1 :]
    return None


def _report_stdin_code(call: Invocation) -> None:
    call.report_effect("execute")
    stdin = call.stdin
    if stdin is None:
        call.report_unclear("dynamic-code", f"{call.program} runs what is typed into it")
    elif stdin.kind in ("decoded", "network", "other", "listing"):
        call.report_unclear(
            "encoded" if stdin.kind == "decoded" else "piped-code", f"{call.program} runs what another program prints"
        )
    else:
        call.report_code(stdin.text if stdin.kind == "text" else None)


def node(call: Invocation) -> None:
    given = apply_spec(call, parse_spec(_NODE))
    if given.has_option("--test"):
        call.report_effect("execute", target="node --test")
        return
    # Without a file it runs its input, whatever options stand before: `node --no-warnings < notes.txt`.
    runs = any(option.is_first_operand or option.operands or option.name == "--run" for option, _, _ in given.options)
    if not given.operands and not runs and not any(word.value in _HELP_WORDS for word in call.words):
        _report_stdin_code(call)


def _asks_for_help(call: Invocation) -> bool:
    return len(call.words) == 1 and call.words[0].value in _HELP_WORDS


def interpreter(call: Invocation) -> None:
    """Judge an interpreter that runs code from an option, from a file, or from its standard input."""
    given = apply_spec(call, parse_spec(INTERPRETERS[call.program]))
    asks = _asks_for_help(call)
    runs = any(option.is_first_operand or option.operands == "skip" for option, _, _ in given.options)
    if not given.operands and not runs and not asks and call.program not in ("bc", "cmd", "pwsh", "powershell"):
        _report_stdin_code(call)


def package_runner(call: Invocation) -> None:
    """Judge `npx`, `uvx` and similar programs, which run an installed tool, or fetch one and run it."""
    given = read_arguments(
        parse_spec(
            "posix (-y -q --yes --no --no-install --quiet --offline --bun) --prefix=project -C=project -p= -c=run"
            " --package= --call=run --from="
            " --with= --python="
        ),
        call.words,
    )
    for name, word in given.unlisted:
        call.report_unclear("unknown-option", f"the option {name} of {call.program} is not in the tables", word)
    for value in given.option_values("--prefix", "-C"):
        apply_verb("project", call, value)
    for value in given.option_values("-c", "--call"):
        call.judge_script_word(value, call.program)
    packages = list(given.option_values("-p", "--package", "--from", "--with"))
    if not given.operands:
        return
    tool = given.operands[0]
    name = tool.value or ""
    # A tool that the tables list is installed in most projects, and runs from there.
    if name in _NODE_TOOLS and name in split_table(tools.TABLE) and not packages and call.program not in _ALWAYS_FETCH:
        call.judge_words((tool, *given.operands[1:]))
        return
    call.report_effect("network", tool)
    call.report_effect("install", tool)
    call.report_effect("execute", tool)
    call.report_unclear("unknown-program", f"{tool.short_text} would be fetched and run", tool)


def sqlite(call: Invocation) -> None:
    """Judge `sqlite3 FILE SQL`. Only statements that surely read are clear."""
    given = read_arguments(
        parse_spec(
            "onedash (-readonly -json -csv -header -noheader -line -column -box -table -markdown -list -html"
            " -batch -bail -safe -version -help -ascii -tabs -quote -echo -stats -interactive -nofollow) -cmd="
            " -separator= -nullvalue= -init=program -newline= -vfs="
        ),
        call.words,
    )
    if [word.value for word in call.words] in (["--version"], ["-version"], ["--help"], ["-help"]):
        return
    apply_arguments(call, parse_spec("onedash -init=program"), given.without_operands())
    statements = [*given.operands[1:], *given.option_values("-cmd")]
    for word in given.operands[:1]:
        call.report_path("read", word)
    # A statement must look like a read, and must not hold anything that writes or opens files.
    reads = [
        s.value is not None and _SQL_READS.match(s.value) and not _SQL_REACHES_OUT.search(s.value) for s in statements
    ]
    if not statements or not all(reads):
        for word in given.operands[:1]:
            call.report_path("write", word)
        call.report_effect("execute", *statements)
        call.report_unclear("code", "statements of SQL that may do more than read", *statements)

"""A line lists every option of its program that takes a file, a host or a command, and gives it a meaning.

An option that a line does not list makes the command unclear, so leaving one out is safe. Listing one as harmless is
not. `RISKY` holds what manuals and GTFOBins say; the programs of this machine are asked for more.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping

import pytest

from aver.gate.shell.programs.spec import OptionSpec, parse_spec
from aver.gate.shell.programs.tables import ROWS
from support.many_cases import for_each
from support.shell_corpus import in_shop

RISKY: Mapping[str, str] = {
    "sort": "-o --output -T --temporary-directory --compress-program --files0-from --random-source",
    "base64": "-o --output",
    "shuf": "-o --output --random-source",
    "iconv": "-o --output",
    "wc": "--files0-from",
    "du": "--files0-from -X --exclude-from",
    "grep": "-f --file --exclude-from",
    "rg": "-f --file --ignore-file --pre --hostname-bin",
    "ag": "--pager -p --path-to-ignore",
    "ack": "--pager --ackrc --output --files-from",
    "tree": "-o --gitfile --infofile",
    "file": "-f --files-from -m --magic-file -C --compile",
    "diff": "--paginate -X --exclude-from --to-file --from-file",
    "sdiff": "-o --output --diff-program",
    "diff3": "--diff-program",
    "delta": "--pager",
    "jq": "-f --from-file -L --slurpfile --rawfile",
    "xmllint": "--shell --output -o --schema --dtdvalid --relaxng --path --noent --xinclude --loaddtd",
    "less": "-o -O --log-file -k --lesskey-file --lesskey-src --lesskey-content -t -T --tag-file",
    "bat": "--pager",
    "man": "-P --pager -H --html -C --config-file -M --manpath -X --gxditview -l --local-file",
    "info": "-o --output --dribble --restore --init-file -f --file -d --directory",
    "date": "-f --file -s --set -r --reference",
    "hostname": "-F --file -b",
    "last": "-f --file",
    "sar": "-o -f",
    "jobs": "-x",
    "lsof": "-D -e -k -m",
    "ss": "-D --diag -F --filter -K --kill",
    "findmnt": "-F --tab-file",
    "blkid": "-c --cache-file",
    "pgrep": "-F --pidfile",
    "nm": "--plugin",
    "objdump": "--plugin -I --include",
    "cloc": "--out --report-file --extract-with --config --read-lang-def --force-lang-def --list-file",
    "scc": "-o --output",
    "inotifywait": "-o --outfile --fromfile",
    "dmesg": "-F --file -C --clear -n --console-level -K",
    "journalctl": "-D --directory --file --root --image --cursor-file --vacuum-size --vacuum-time --rotate --flush",
    "arp": "-f --file -s -d",
    "split": "--filter",
    "csplit": "-f --prefix",
    "mktemp": "-p --tmpdir",
    "zip": "-T -TT --unzip-command -O --out --log-file -@ -m",
    "ar": "--plugin --output",
    "cpio": "-F -I -O -E --rsh-command -i -o -p --extract --create",
    "strace": "-o --output -p -u -E",
    "flock": "-c --command",
    "xvfb-run": "-e -f --error-file --auth-file",
    "time": "-o --output",
    "git log": "--output --ext-diff --textconv -O",
    "git diff": "--output --ext-diff --textconv -O --no-index",
    "git grep": "-f -O --open-files-in-pager --no-index --textconv",
    "git blame": "-S --contents --ignore-revs-file",
    "git cat-file": "--textconv --filters",
    "git pull": "--upload-pack -o --server-option",
    "git push": "--receive-pack --exec --repo",
    "git clone": "--upload-pack -u --template -c --config --separate-git-dir --reference --bundle-uri",
    "git commit": "-F --file -t --template --pathspec-from-file -n --no-verify --amend",
    "git archive": "-o --output --remote --exec --add-file",
    "git init": "--template --separate-git-dir",
    "git apply": "--unsafe-paths --build-fake-ancestor",
    "curl": "-o --output -O --remote-name -D --dump-header -c --cookie-jar -K --config -T --upload-file -d"
    " --data -F --form"
    " -x --proxy --unix-socket --resolve --connect-to --libcurl --trace --trace-ascii --stderr --netrc-file --engine",
    "wget": "-O -o -a -P -i -e --execute --config --post-file --body-file --use-askpass --save-cookies --warc-file"
    " --rejected-log --hsts-file --warc-tempdir",
    "kubectl get": "-f --filename -k --kustomize --kubeconfig --server -s --token --raw --as --cache-dir"
    " --profile-output",
    "kubectl logs": "--kubeconfig --server -s --token --as",
    "docker": "-H --host -c --context --config --tlskey --url --connection",
    "gh pr view": "-R --repo",
    "gh api": "-X --method -f -F --field --raw-field --input --hostname",
    "npm test": "--prefix -C --script-shell --node-options",
    "npm": "--prefix --registry --script-shell --userconfig --globalconfig --node-options",
    "pip list": "--python --index-url -i --extra-index-url --find-links -f --log --cache-dir --proxy --cert --path",
    "uv run": "--python -p --with --with-requirements --with-editable --env-file --project --directory --index"
    " --index-url",
    "rpm -q": "--pipe --define --eval --load --root --rcfile --macros",
    "cargo build": "--config --manifest-path --target-dir --artifact-dir -Z",
    "cargo tree": "--config --manifest-path -Z",
    "cargo fmt": "--manifest-path",
    "go test": "-o -exec -toolexec -vettool -modfile -overlay -trace -coverprofile -cpuprofile -memprofile"
    " -outputdir -C",
    "go list": "-toolexec -modfile",
    "gofmt": "-cpuprofile",
    "make": "-f --file --makefile -C --directory --eval -E -I",
    "cmake": "-S -B -C -P -E --build --install --toolchain --prefix --graphviz --trace-redirect -D",
    "pytest": "-c --config-file --rootdir --junitxml --junit-xml --basetemp --log-file --debug --pastebin -p -o"
    " --tx --px"
    " --rsyncdir --cov-report --html --json-report-file --benchmark-json --pdbcls",
    "mypy": "--python-executable --config-file --cache-dir --junit-xml --html-report --install-types"
    " --custom-typeshed-dir -c"
    " --any-exprs-report --linecount-report --txt-report --xml-report --shadow-file",
    "ruff check": "-o --output-file --fix --fix-only --add-noqa --cache-dir --config",
    "pyright": "--pythonpath --project -p --typeshedpath --venvpath --createstub",
    "flake8": "--output-file --config --append-config -o",
    "pylint": "--init-hook --load-plugins --rcfile --output",
    "jest": "-c --config --rootDir --outputFile --coverageDirectory --cacheDirectory --reporters --setupFiles"
    " --globalSetup"
    " --transform --resolver --testRunner --runner --env",
    "vitest": "-c --config --root --outputFile --reporter --environment --globalSetup --api --ui --browser --inspect",
    "mocha": "-r --require --import --loader --config --reporter --reporter-option --file --node-arguments",
    "eslint": "-c --config -o --output-file --rulesdir --plugin --parser -f --format --cache-location --ignore-path",
    "tsc": "-p --project --outDir --outFile --declarationDir --tsBuildInfoFile --generateTrace --generateCpuProfile",
    "prettier": "--config --plugin --write -w --ignore-path --cache-location",
    "phpunit": "-c --configuration --bootstrap --log-junit --coverage-html --coverage-text --cache-directory -d",
    "rspec": "-r --require -I -o --out",
    "hyperfine": "--prepare -p --setup --cleanup --export-json --shell -S",
    "systemctl status": "-H --host -M --machine --root",
    "ssh-keygen": "-D -f -w -O",
}
"""Options that take a file, a host or a command, or reach further than the rest, by line."""


def harmless(program: str, name: str) -> bool:
    """Whether a line lists an option and gives it no meaning."""
    found: OptionSpec | None = parse_spec(ROWS[program]).options.get(name)
    return found is not None and not found.matters


@for_each(sorted(RISKY))
def test_a_risky_option_is_never_listed_as_harmless(program: str) -> None:
    assert not parse_spec(ROWS[program]).is_lax
    assert [name for name in RISKY[program].split() if harmless(program, name)] == []


# --- what the programs of this machine say

_TAKES_FILE = re.compile(
    r"^\s{0,10}(?:-(?P<short>\w)(?:\s\S+)?,\s+)?(?P<long>--[\w-]+)?(?:\[?[= ]<?(?P<value>[A-Za-z][\w.-]*)>?\]?)"
)
_FILE_WORDS = re.compile(
    r"(?:.*[_-])?(?:FILE|DIR|DIRECTORY|PATH|CMD|COMMAND|PROG|PROGRAM|HOST|URL|ADDRESS|PAGER|DATEFILE|RFILE)", re.I
)
NAMES_NOTHING_TO_OPEN: Mapping[str, frozenset[str]] = {
    "realpath": frozenset(("--relative-to", "--relative-base")),  # only names are computed
    "findmnt": frozenset(("-T", "--target", "-M", "--mountpoint", "-o", "--output")),  # selects lines to print
    "lscpu": frozenset(("-s", "--sysroot")),
    "lsblk": frozenset(("--sysroot",)),
    "lsmem": frozenset(("-s", "--sysroot")),
    "whereis": frozenset(("-B", "-M", "-S")),  # lists where to look for names
    "diff": frozenset(("-S", "--starting-file")),  # a name to begin with
    "join": frozenset(("-a", "-v")),  # the number of a file
    "make": frozenset(
        ("-o", "-W", "--old-file", "--new-file", "--what-if", "--assume-old", "--assume-new")
    ),  # names of targets
}
ASKED = (
    *(
        "cat",
        "head",
        "tail",
        "wc",
        "sort",
        "uniq",
        "shuf",
        "iconv",
        "grep",
        "ls",
        "du",
        "df",
        "stat",
        "file",
        "readlink",
    ),
    *(
        "realpath",
        "diff",
        "sdiff",
        "diff3",
        "man",
        "date",
        "who",
        "last",
        "lscpu",
        "lsblk",
        "lsmem",
        "pgrep",
        "ss",
        "findmnt",
    ),
    *(
        "blkid",
        "whereis",
        "nm",
        "objdump",
        "readelf",
        "dmesg",
        "journalctl",
        "touch",
        "truncate",
        "split",
        "csplit",
        "mktemp",
    ),
    *("make", "column", "hexdump", "join", "numfmt", "less", "jq"),
)


@pytest.mark.parametrize("program", ASKED)
def test_options_that_the_program_itself_calls_files_have_a_meaning(program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    asked = subprocess.run(
        [program, "--help"], capture_output=True, text=True, timeout=30, check=False, stdin=subprocess.DEVNULL
    )
    missing: set[str] = set()
    for line in (asked.stdout or asked.stderr).splitlines():
        found = _TAKES_FILE.match(line)
        if found is None or not _FILE_WORDS.fullmatch(found["value"]):
            continue
        names = [name for name in (found["short"] and f"-{found['short']}", found["long"]) if name]
        missing.update(name for name in names if harmless(program, name))
    assert missing - NAMES_NOTHING_TO_OPEN.get(program, frozenset()) == set()


# --- whether all of a command is listed


@for_each(
    [
        "ls -la",
        "cat a b | grep -n x | head -5",
        "git status --short && git diff --stat",
        "find . -name '*.py' | xargs wc -l",
        "pytest -q tests",
        "sed -n 1,20p a.py",
        "for f in a b; do cat $f; done",
        "npm ci",
        "echo done",
    ]
)
def test_a_command_of_closed_lines_is_fully_listed(command: str) -> None:
    assert in_shop(command).is_fully_listed


@for_each(
    [
        "",
        "ls --frobnicate",
        "cat a | awk '{print $1}'",
        "make deploy; gradle test",
        "unknownprogram",
        "perl -v",
        "docker build .",
        "python x.py",
        "ls; ip addr",
        "sh -c 'rustc x.rs'",
    ]
)
def test_one_open_part_makes_the_whole_not_fully_listed(command: str) -> None:
    assert not in_shop(command).is_fully_listed

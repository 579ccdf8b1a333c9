"""Handlers of `sed` and `awk`. They read the scripts far enough to see whether these only read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from aver.gate.shell.invocation import Invocation
from aver.gate.shell.model import Word
from aver.gate.shell.programs.apply import apply_arguments, apply_spec
from aver.gate.shell.programs.spec import ParsedArguments, parse_spec, read_arguments

PROGRAM_MAX = 4096
"""Characters of a sed or awk script that Aver reads. Matching the patterns below is not linear in the length."""

_SED = (
    "gnu (-n -E -r -s -u -z -b --quiet --silent --regexp-extended --separate --unbuffered --null-data"
    " --posix --debug --sandbox --follow-symlinks --binary --zero-terminated) -e=~ -f=~program -i?:edit -I?:edit"
    " -l= --expression=~ --file=~program --in-place?:edit --line-length= 1skip *read"
)
_AWK = (
    "posix gnu (-b -c -C -g -h -I -M -n -N -O -P -r -s -S -t -V --sandbox --posix --traditional"
    " --re-interval --csv -k --bignum --characters-as-bytes --lint? --non-decimal-data --optimize --no-optimize"
    " --use-lc-numeric) -F= -v= -f=~program -E=~program -e=~code -i=program -l=program -d?write -o?write"
    " -p?write -D?!execute,?dynamic-code --field-separator= --assign= --file=~program"
    " --exec=~program --source=~code --include=program --load=program"
    " --dump-variables?write --pretty-print?write --profile?write 1skip"
)


def sed(call: Invocation) -> None:
    given = read_arguments(parse_spec(_SED), call.words)
    # A number at the beginning may be negative. No option of sed is a digit, so that is an error.
    given.doubtful[:] = [word for word in given.doubtful if not word.numbered]
    if given.has_option("-i", "-I") and given.operands[:1] and given.operands[0].value == "":
        given.operands.pop(0)  # BSD writes `-i ''`
    scripts = list(given.option_values("-e", "--expression"))
    if not scripts and not given.has_option("-f", "--file"):
        scripts = given.operands[:1]
    apply_arguments(call, parse_spec(_SED), given)
    # `-f FILE` runs a script that Aver does not see; the verb `program` reports it.
    for script in scripts:
        # Whichever numbers arithmetic gives, the script has the same commands.
        texts = script.values or ((script.numbered,) if script.numbered else ())
        if not texts:
            call.report_unclear("dynamic-code", "a script of sed that depends on what cannot be seen", script)
        for text in texts:
            _judge_sed_script(call, script, text)


_SED_ADDRESS = re.compile(
    r"\s*(?:[0-9]+(?:~[0-9]+)?|\$|/(?:[^/\\\n]|\\.)*/[IM]*|\\(?P<mark>[^\\\n])(?:(?!(?P=mark))[^\\\n]|\\.)*(?P=mark)[IM]*)"
    r"|\s*,\s*(?:[+~]?[0-9]+|\$|/(?:[^/\\\n]|\\.)*/[IM]*)"
)
_SED_FLAGS = re.compile(r"[gpiImM0-9]*")


class _UnreadableSedScript(Exception):
    pass


def _judge_sed_script(call: Invocation, word: Word, text: str) -> None:
    """Judge a sed script. Only `e`, `w`, `r` and the flags of `s` run commands or open files."""
    if len(text) > PROGRAM_MAX:
        call.report_effect("execute", word)
        call.report_unclear("too-much", f"a script of sed of more than {PROGRAM_MAX} characters", word)
        return
    try:
        for command, rest in _find_sed_commands(text):
            if command == "e":
                call.report_effect("execute", word)
                if rest:
                    call.judge_script(rest, "sed")
                else:
                    call.report_unclear("dynamic-code", "sed runs what it reads", word)
            elif rest and rest not in ("/dev/stdout", "/dev/stderr", "/dev/stdin"):
                call.report_path("write" if command in "wW" else "read", Word(word.text, (rest,), rest))
    except _UnreadableSedScript:
        call.report_effect("execute", word)
        call.report_unclear("code", "a script of sed that is not read", word)


def _find_sed_commands(text: str) -> Iterator[tuple[str, str]]:
    """Yield the commands that reach outside, each with its file or shell command. See POSIX for the grammar of sed."""
    at = 0
    while True:
        # A command has separators, up to two addresses, and `!` before its letter.
        while at < len(text) and text[at] in " \t\n;{}":
            at += 1
        while found := _SED_ADDRESS.match(text, at):
            at = found.end()
        while at < len(text) and text[at] in " \t!":
            at += 1
        if at >= len(text):
            return
        command = text[at]
        at += 1
        if command in "=dDgGhHnNpPxzF{};\n":
            continue
        line_end = text.find("\n", at)
        line_end = len(text) if line_end == -1 else line_end
        if command in "qQlL":
            at = re.compile(r"[ \t]*[0-9]*").match(text, at).end()  # type: ignore[union-attr]
        elif command in "btT:":
            at = re.compile(r"[^;\n}]*").match(text, at).end()  # type: ignore[union-attr]
        elif command == "#":
            at = line_end
        elif command in "aic":
            # A text goes on after a line that ends in a backslash.
            while line_end < len(text) and text[line_end - 1] == "\\":
                following = text.find("\n", line_end + 1)
                line_end = len(text) if following == -1 else following
            at = line_end
        elif command in "rRwWe":
            yield command, text[at:line_end].strip()
            at = line_end
        elif command in "sy":
            at = _skip_sed_parts(text, at)
            if command == "s":
                flags = _SED_FLAGS.match(text, at)
                assert flags is not None
                at = flags.end()
                if text[at : at + 1] == "e":
                    yield "e", ""
                    at += 1
                elif text[at : at + 1] == "w":
                    yield "w", text[at + 1 : line_end].strip()
                    at = line_end
        else:
            raise _UnreadableSedScript


def _skip_sed_parts(text: str, at: int) -> int:
    """Return the position after `/one/two/`, with any character in the place of the slash."""
    if at >= len(text) or text[at] in "\\\n":
        raise _UnreadableSedScript
    mark, parts = text[at], 0
    at += 1
    in_brackets = False
    while at < len(text):
        if text[at] == "\\":
            at += 2
            continue
        if text[at] == "\n" and parts == 0:
            raise _UnreadableSedScript
        if text[at] == "[" and parts == 0 and not in_brackets:
            in_brackets = True
        elif text[at] == "]":
            in_brackets = False
        elif text[at] == mark:
            if in_brackets:
                raise _UnreadableSedScript  # implementations differ on whether this ends the part
            parts += 1
            if parts == 2:
                return at + 1
        at += 1
    raise _UnreadableSedScript


def awk(call: Invocation) -> None:
    given = read_arguments(parse_spec(_AWK), call.words)
    has_program = given.has_option("-f", "-E", "-e", "--file", "--exec", "--source")
    program = None if has_program or not given.operands else given.operands[0]
    files = given.operands if has_program else given.operands[1:]
    apply_arguments(
        call, parse_spec(_AWK), ParsedArguments(given.options, given.operands[:1], given.unlisted, given.doubtful)
    )
    if program is not None:
        _judge_awk_program(call, program)
    for word in files:
        if not re.match(r"[A-Za-z_][A-Za-z0-9_]*=", word.prefix) and word.value != "-":
            call.report_path("read", word)


_AWK_TOKEN = re.compile(
    r"(?P<space>[ \t]+|\\\n)|(?P<comment>#[^\n]*)|(?P<string>\"(?:[^\"\\\n]|\\.)*\")|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<number>[0-9][\w.]*)"
    r"|(?P<or>\|\|)|(?P<shift>>=|>>)|(?P<other>.|\n)",
    re.DOTALL | re.ASCII,
)
_AWK_KEYWORDS = frozenset(("print", "printf", "return", "in", "else", "do", "case"))
_AWK_PATTERN = re.compile(r"/(?:[^/\\\n\[]|\\.|\[\]?[^\]\n]*\])+/")
_AWK_REACHES_OUT = re.compile(r"\b(?:system|getline|ARGV|ARGC|close|fflush)\b|@|\|&|/inet")


def _judge_awk_program(call: Invocation, word: Word) -> None:
    """Judge an awk program: whether it pipes, runs or writes anything."""
    if word.value is None or word.is_pattern:  # A pattern becomes the name of a file.
        call.report_effect("execute", word)
        call.report_unclear("dynamic-code", "a program of awk that depends on what cannot be seen", word)
        return
    if len(word.value) > PROGRAM_MAX:
        call.report_effect("execute", word)
        call.report_unclear("too-much", f"a program of awk of more than {PROGRAM_MAX} characters", word)
        return
    # Both give awk the environment, which may hold secrets.
    if "ENVIRON" in word.value or "SYMTAB" in word.value:
        call.report_effect("secret", word, target="environment")
    if _AWK_REACHES_OUT.search(word.value) or _has_pipe_or_write(word.value):
        call.report_effect("execute", word)
        call.report_unclear("code", "a program of awk that reaches outside", word)


def _has_pipe_or_write(text: str) -> bool:
    """Whether an awk program pipes or writes its output. If a slash may mean two things, the answer is yes."""
    # `before` is the token before; `prints` is true inside a `print` statement; `depth` counts its parentheses.
    at, before, prints, depth = 0, "", False, 0
    while at < len(text):
        if text[at] == "/":
            # After a value a slash divides; elsewhere it begins a pattern.
            divides = re.match(r"[\w)\]$\"]", before[-1:]) is not None and before not in _AWK_KEYWORDS
            found = None if divides else _AWK_PATTERN.match(text, at)
            if found is not None:
                at, before = found.end(), ")"
                continue
            close = text.find("/", at + 1)
            if close != -1 and '"' in text[at:close]:
                return True
        token = _AWK_TOKEN.match(text, at)
        assert token is not None
        at = token.end()
        kind, written = token.lastgroup, token[0]
        if kind in ("space", "comment"):
            continue
        if kind == "name" and written in ("print", "printf"):
            prints, depth = True, 0
        elif written in ("\n", ";", "}", "{"):
            prints = False
        elif written in "([":
            depth += 1
        elif written in ")]":
            depth -= 1
        elif written == "|" or (kind == "shift" and written == ">>") or (written == ">" and prints and depth <= 0):
            return True
        before = written
    return False


_YQ = (
    "-[cneosrRaCMSjPNhvVyYUz0] -i:edit --inplace:edit --in-place:edit -o= -p= -I= -f= -t -s!write --split-exp=!write"
    " --split-exp-file=filterfile --output-format= --input-format= --from-file=filterfile --expression=filter --indent="
    " --prettyPrint --no-doc --null-input --colors --no-colors --unwrapScalar? --raw-output --exit-status --verbose"
    " --front-matter= --header-preprocess? --xml-attribute-prefix= --xml-content-name= --yaml-output --yml-output"
    " --yaml-roundtrip --compact-output --slurp --raw-input --sort-keys --tab --arg== --argjson== --slurpfile==read"
    " --rawfile==read --csv-auto-parse? --csv-separator= --tsv-auto-parse? --string-interpolation?"
    " --security-disable-env-ops"
    " --security-disable-file-ops --nul-output --width= --indentless-lists --lua-globals --lua-prefix= --lua-suffix="
    " 1filter *read"
)
_YQ_SUBCOMMANDS = frozenset(("e", "eval", "ea", "eval-all"))


def yq(call: Invocation) -> None:
    """Judge `yq`. Before its filter there may be the name of a subcommand."""
    if call.words and call.words[0].value in _YQ_SUBCOMMANDS:
        call = replace(call, words=call.words[1:])
    given = apply_spec(call, parse_spec(_YQ))
    # Newer versions take the only operand for a file if it is one.
    if len(given.operands) == 1:
        for value in given.operands[0].values:
            call.report_guarded_path("read", value, given.operands[0])

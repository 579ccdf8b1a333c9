"""Whatever bash runs, was seen: scripts are made up, run by a real bash, and compared with what was understood.

In the scripts there is one command, `M`, a function that notes its arguments. No program can be found, the directory is
an empty one, and none that is made up has a path that leads out of it. A script that is called unclear proves nothing
and is not run.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from aver.gate.shell.model import CommandAnalysis, ResolvedCommand
from aver.gate.shell.understand import understand

BASH = shutil.which("bash")
pytestmark = pytest.mark.skipif(BASH is None, reason="there is no bash here")

# A loop without end must stop by itself, also where the tests are ended before they can end it.
PRELUDE = """ulimit -t 15 -f 20000
M() { local IFS=$'\\x1f' s; s="$*"; printf '%s\\0' "${s//$'\\n'/<NL>}" >> "$NOTED"; }
"""

TEMPLATES = [
    *("M 1", "M 2 x", "x=5; M $x", 'M "$(M 1)"', "M `M 2`", "(M 1; M 2)", "{ M 1; }", "M 1 | M 2", "M 1 # c"),
    *("# M 1\nM 2", "if true; then M 1; else M 2; fi", "for i in a b; do M $i; done"),
    *("case x in x) M 1;; *) M 2;; esac", "M <(M 1)", "M <<E\nhi $(M 1)\nE", "M <<'E'\n$(M 9)\nE"),
    *("f() { M 3; }; f", "eval 'M 4'", "eval M 5", "M {a,b}", "M a\\\nb", "M 'a b' \"c d\"", "M $'\\x41\\t'"),
    *("[[ a == a ]] && M 1", "[ a ] && M 2", "! false && M 1", "x=$(M 1) M 2", "M ${x:-$(M 1)}", "M $((1+1))"),
    *("while false; do M 1; done", "M 1 >null 2>&1", "M <<< x", "M \\#a #b", ": <<A <<B\n1\nA\n2 `M 7`\nB"),
    *('M "a\\$x\\`b"', "time M 1", "true & M 1", "M 'a\nb'", "export y=1 z=$(M 1)", "M a\\ b", "M \"\" ''", "M *x"),
    *("M ~x", "M a=b", "M {1..3}x", "function g { M 8; }; g", 'M "${x#a}"', 'M $"q"'),
    *("case a in (a) M 1;& b) M 2;; esac", "until true; do M 1; done", "M `echo \\`M 1\\``", 'M "`M \\"q\\"`"'),
    *("((1)) && M 1", "M -- -x", "M 1;M 2&&M 3||M 4", "M \\\n 1", "M <<-E\n\tx\n\tE\nM 2", "M <<\\E\n$(M 9)\nE\n"),
    *("M <<E\na \\\nE\nM 3\nE\n", "x='M 6'; $x", "a=(1 2); M ${a[0]}", "M $(echo $(M 1))", "M 2>&1 1"),
    *("command M 1"),
]
MARKS = [
    *("M 1", "M a", "'", '"', "`", "$(", ")", "(", "{ ", "; }", " ", "\n", ";", "&", "&&", "||", "|", "\\", "\\\n"),
    *("#", " #", "x", "=", "x=", "<<E\n", "<<'E'\n", "\nE\n", "E", "<<<", "<(", ">(", "$", "${x}", "${x:-", "}"),
    *("$x", "'a'", '"b"', "$'", '$"', "{a,b}", "{1..3}", "*", "~", "then ", "fi", "else ", "; done"),
    *("case x in x) ", ";;", "[[ ", "]] ", "(( ", " ))", "$((", "))", "! ", "eval ", "2>&1", ">&2", "1", "[ "),
    *("] ", "\t", '\\"', "\\'", "\\$", "\\`", "+=", "[0]=", ",", "..", "<", ">null", "&>null", ">|", "é"),
    *("=(", "declare y=", "${x#", "$#", '"$@"', "in", "do "),
]


def made_up(chance: random.Random) -> str:
    joints = ["; ", "\n", " && ", " | ", " || ", " & ", "\n\n", ""]
    text = chance.choice(joints).join(chance.choice(TEMPLATES) for _ in range(chance.randint(1, 3)))
    for _ in range(chance.choice([0, 1, 1, 1, 2, 2, 3])):
        at, what = chance.randint(0, len(text)), chance.random()
        if what < 0.5:
            text = text[:at] + chance.choice(MARKS) + text[at:]
        elif what < 0.75:
            text = text[:at] + text[at + 1 :]
        elif what < 0.9:
            start = chance.randint(0, len(text))
            text = text[:at] + text[start : start + chance.randint(1, 6)] + text[at:]
        else:
            text = text[:at] + chance.choice("'\"`\\$(){}#;&|<>\n \t!*?[]=~^%@,.:-+ab1") + text[at:]
    return text


def noted_by_bash(script: str, directory: Path) -> list[list[str]]:
    """The arguments of every `M` that bash ran."""
    noted = directory / "noted"
    noted.unlink(missing_ok=True)
    noted.touch()
    assert BASH is not None
    bash = subprocess.Popen(
        [BASH, "--norc", "--noprofile", "-c", PRELUDE + script],
        env={"PATH": str(directory / "nothing"), "HOME": "~", "NOTED": str(noted)},
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        bash.wait(timeout=10)
    except subprocess.TimeoutExpired:
        return []  # a loop without end; what it did first is not compared
    finally:
        with suppress(ProcessLookupError):  # What it left running in the background goes too.
            os.killpg(bash.pid, signal.SIGKILL)
        bash.wait()
    return [entry.split("\x1f") for entry in noted.read_bytes().decode("utf-8", "surrogateescape").split("\0")[:-1]]


def fits(command: ResolvedCommand, arguments: list[str]) -> bool:
    """Whether a command that was understood may have had these arguments."""
    if command.program != "M":
        return False
    words = command.arguments
    if any(not word.is_known or word.is_pattern or word.from_input for word in words):
        return True
    if len(words) != len(arguments):
        return arguments == [""] and not words
    pairs = zip(words, arguments, strict=True)
    return all(text in [value.replace("\n", "<NL>") for value in word.values] for word, text in pairs)


def is_readable(understood: CommandAnalysis) -> bool:
    allowed = {"unknown-program", "unknown-target", "unknown-option"}
    return {unclear.code for unclear in understood.unclear} <= allowed


def compare(seed: int, count: int, directory: Path) -> int:
    """Scripts that bash ran something of, among as many that are made up."""
    chance, ran_something = random.Random(seed), 0
    for number in range(count):
        script = made_up(chance)
        understood = understand(script, cwd=str(directory), workspace=str(directory))
        if not is_readable(understood):
            continue
        assert "/" not in script
        own = directory / str(number)
        own.mkdir()
        ran = noted_by_bash(script, own)
        for arguments in ran:
            assert any(fits(command, arguments) for command in understood.commands), (script, arguments)
        ran_something += bool(ran)
    return ran_something


@pytest.mark.parametrize("template", TEMPLATES, ids=range(len(TEMPLATES)))
def test_every_template_is_seen(template: str, tmp_path: Path) -> None:
    understood = understand(template, cwd=str(tmp_path), workspace=str(tmp_path))
    for arguments in noted_by_bash(template, tmp_path):
        assert not is_readable(understood) or any(fits(command, arguments) for command in understood.commands)


@pytest.mark.parametrize("seed", range(4))
def test_what_bash_runs_was_seen(seed: int, tmp_path: Path) -> None:
    assert compare(seed, 100, tmp_path) > 20


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 108))
def test_what_bash_runs_was_seen_at_length(seed: int, tmp_path: Path) -> None:
    assert compare(seed, 5_000, tmp_path) > 1_000


FOUND = [
    # Each of these once made the reader and bash disagree, or would have with one parser alone.
    "M <<E\na <<E\n\\\nE\nM 3\nE\n",
    "M \\\n 1&>/dev/null",
    "M 1 2>&-1",
    "M {a},b}",
    "M {a,}",
    "M {{a,b,\\`b}",
    "M=( ~ M 5)l M 5",
    "x=5; M $x{a,b}",
    "x=5; M {a,$x}y",
    "M {a,b$}4",
    '<<E\n"`M \\"q\\"`"\nE',
    "M 1 2\\\n>&1",
    "M {{1..3}1..3}x",
    "M {}a,b}",
    "x=#; M 1",
    "M a#b; M 2",
    "[ a > x ]; M 1",
    "M $'\\x{41}'",
    "M a\\\nb",
    "M \\ a",
    "i\\\nf; M 1",
    ": ${x:=1}; M $x",
    "x=\\\n M 1",
]


@pytest.mark.parametrize("script", FOUND, ids=range(len(FOUND)))
def test_what_was_found_once_is_seen(script: str, tmp_path: Path) -> None:
    understood = understand(script, cwd=str(tmp_path), workspace=str(tmp_path))
    for arguments in noted_by_bash(script, tmp_path):
        assert not is_readable(understood) or any(fits(command, arguments) for command in understood.commands)

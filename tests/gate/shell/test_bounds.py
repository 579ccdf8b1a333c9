"""Any text whatever gets an answer: it ends, it raises nothing, and what is too much is unclear."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aver.gate.effects.findings import EFFECTS, UNCLEAR
from aver.gate.shell.model import COMMAND_MAX, COMMANDS_MAX, NESTING_MAX, WORDS_MAX, CommandAnalysis
from aver.gate.shell.parser.cross_check import SYNTAX_MAX
from aver.gate.shell.understand import understand
from support.shell_corpus import cases, in_shop

TOKENS = [
    *("$(", "`", '"', "'", "<<", "<<<", "<<E\n", "<<-'E'\n", "\nE\n", "\n", "${", "}", "{", "(", ")", "((", "))", "[["),
    *(
        "]]",
        "[ ",
        " ]",
        "a",
        "=",
        "a=",
        "|",
        "&",
        "&&",
        "||",
        ";",
        ";;",
        "#",
        "$",
        "!",
        "*",
        "?",
        "~",
        "\\",
        "\\\n",
        " ",
    ),
    *(
        "case ",
        "in ",
        "esac ",
        "if ",
        "then ",
        "fi ",
        "for ",
        "do ",
        "done ",
        "while ",
        "function ",
        "f()",
        "$((",
        "<(",
    ),
    *(">(", ">", ">>", "&>", "2>&1", "<&-", "1", "é", "\u200b", "%", "/", "-", "@", "^", ",", "..", "{a,b}", "{1..9}"),
    *(
        "$'",
        '$"',
        "a[",
        "=(",
        ":-",
        "=~",
        "select ",
        "coproc ",
        "time ",
        "export ",
        "rm ",
        "cat ",
        "sudo ",
        "env ",
        "xargs ",
    ),
    *(
        "find . ",
        "-exec ",
        "{} ",
        "\\; ",
        "sed ",
        "awk ",
        "tar ",
        "git ",
        "sh -c ",
        "eval ",
        "\r",
        "\0",
        "\x7f",
        "curl ",
    ),
    *("-rf ", "-o ", "--", "-c ", "python ", "docker run ", "-v ", "ssh ", "dd of=", "chmod ", "cd ", "echo ", "tee "),
]


def hold(understood: CommandAnalysis) -> None:
    """What holds of every answer."""
    assert understood.classes <= set(EFFECTS)
    assert {unclear.code for unclear in understood.unclear} <= set(UNCLEAR)
    assert all(isinstance(word, str) for effect in understood.effects for word in effect.words)
    assert understood.to_dict()["programs"] == list(understood.programs)


@given(st.text(max_size=200))
def test_any_text_is_answered(text: str) -> None:
    hold(in_shop(text))


@pytest.mark.more
@settings(max_examples=400)
@given(st.lists(st.sampled_from(TOKENS), max_size=40).map("".join))
def test_any_row_of_marks_is_answered(text: str) -> None:
    hold(in_shop(text))


COMMANDS = [case.command for case in cases()]


@pytest.mark.more
@settings(max_examples=300)
@given(st.sampled_from(COMMANDS), st.data())
def test_a_damaged_command_is_answered(command: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(command)))
    cut = data.draw(st.integers(0, 3))
    put = data.draw(st.sampled_from(TOKENS) | st.text(max_size=3))
    hold(in_shop(command[:at] + put + command[at + cut :]))


@given(st.sampled_from(COMMANDS), st.text(max_size=10), st.text(max_size=10))
def test_directories_of_any_kind_are_taken(command: str, cwd: str, workspace: str) -> None:
    hold(understand(command, cwd=cwd, workspace=workspace))
    hold(understand(command, cwd=cwd, workspace=workspace, env={"HOME": cwd, "AVER_HOME": workspace}))


@settings(max_examples=20)
@given(st.lists(st.sampled_from(TOKENS), min_size=1, max_size=3).map("".join))
def test_marks_repeated_without_end_are_answered(text: str) -> None:
    hold(in_shop(text * (SYNTAX_MAX // len(text) // 2)))


@pytest.mark.long
@settings(max_examples=20_000)
@given(st.lists(st.sampled_from(TOKENS), max_size=60).map("".join))
def test_many_rows_of_marks_are_answered(text: str) -> None:
    hold(in_shop(text))


HOSTILE = {
    "a megabyte of letters": "a" * COMMAND_MAX,
    "a megabyte of words": "a " * (COMMAND_MAX // 2),
    "a megabyte of blanks": " " * COMMAND_MAX,
    "a megabyte of newlines": "\n" * COMMAND_MAX,
    "a megabyte of commands": "a;" * (COMMAND_MAX // 2),
    "a megabyte of pipes": "a|" * (COMMAND_MAX // 2),
    "a megabyte of arguments": "ls " + "-a" * (COMMAND_MAX // 2),
    "a megabyte of comments": "#" * COMMAND_MAX,
    "a megabyte of backslashes": "\\" * COMMAND_MAX,
    "a megabyte of braces": "{a," * (COMMAND_MAX // 3),
    "a megabyte of open braces": "echo " + "{" * 60_000,
    "a megabyte of quotes": "'" * COMMAND_MAX,
    "a megabyte of double quotes": '"' * COMMAND_MAX,
    "a megabyte of dollars": "$" * COMMAND_MAX,
    "a megabyte of redirections": ">" * COMMAND_MAX,
    "a megabyte of here-documents": "cat <<E\n" * (COMMAND_MAX // 8),
    "deep substitutions": "$(" * 5_000 + ")" * 5_000,
    "deep subshells": "( " * 5_000 + "ls" + ")" * 5_000,
    "deep quotes": '"$(' * 5_000,
    "deep backticks": "`" + "\\" * 4_000,
    "deep expansions": "${x:-" * 5_000,
    "deep loops": "while :; do " * 3_000,
    "deep conditions": "if " * 5_000,
    "deep functions": "f() { " * 3_000,
    "deep shells": "sh -c " * 3_000,
    "deep wrappers": "env " * 4_000 + "rm x",
    "deep evals": "eval " * 4_000 + "rm x",
    "long sequences": "echo {1..999999}{1..999999}",
    "many choices": "echo " + "{a,b}" * 40,
    "many directories": ";".join(f"cd d{n}" for n in range(200)) + "; ls",
    "many variables": ";".join(f"x{n}=a" for n in range(800)) + "; cat $x1",
    "many functions": ";".join(f"f{n}() {{ ls; }}" for n in range(300)),
    "many files": "cat " + " ".join(f"f{n}" for n in range(3_000)),
    "a long path": "cat " + "a/" * 3_000,
    "a long pattern": "cat " + "*" * 3_000,
    "a long sed script": "sed '" + "s/a/b/;" * 5_000 + "'",
    "a long awk program": "awk '" + "/" * 5_000 + "'",
    "many hostile scripts": "sh -c '" + "${" * 1_000 + "';" + ("sh -c '" + "<" * 1_000 + "';") * 200,
    "many assignments": ";".join(f"x{n}=" for n in range(100_000)),
    "many tests": "((1));" * 100_000,
    "joined lines": "cat <<E\n" + "a\\\n" * 200_000 + "E",
    "brackets in a variable": "x=" + "[" * 500_000,
    "brackets in a test": "[[ '" + "[" * 500_000 + "' ]]",
    "slashes in awk": "awk '" + "/[" * 200_000 + "'",
    "many roots and names": "find " + "a " * 1_500 + " -o -name b" * 800 + " -exec cat {} +",
    "many roots": "find " + "a " * 3_000 + "| xargs cat",
    "many patterns": "cat " + " ".join(f".{'a*' * 900}{n}" for n in range(200)),
    "many directories to pack": "tar cf x " + "-C a " * 900 + "b " * 900,
    "functions that multiply": ";".join(f"f{n}() {{ f{n + 1}; f{n + 1}; }}" for n in range(20)) + "; f20() { ls; }; f0",
    "loops that multiply": "for x in 1; do cd a; " * 20 + "ls" + "; done" * 20,
    "unclosed sed": "sed 's/" + "[" * 5_000 + "'",
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_commands_are_answered(name: str) -> None:
    hold(in_shop(HOSTILE[name]))


@pytest.mark.parametrize(
    "command",
    [
        "a" * (COMMAND_MAX + 1),
        "a " * (WORDS_MAX + 1),
        "( " * (NESTING_MAX + 1) + "ls" + ")" * (NESTING_MAX + 1),
        "echo " + "$(echo " * (NESTING_MAX + 1) + ")" * (NESTING_MAX + 1),
        "env " * (NESTING_MAX + 2) + "ls",
        ";".join(["ls"] * (COMMANDS_MAX + 1)),
        "ls " + "a" * SYNTAX_MAX,
        "f() { f; }; f",
    ],
    ids=["long", "words", "nesting", "substitutions", "wrappers", "commands", "syntax", "recursion"],
)
def test_beyond_a_limit_the_answer_is_too_much(command: str) -> None:
    assert "too-much" in {unclear.code for unclear in in_shop(command).unclear}


@pytest.mark.parametrize(
    "command",
    [
        "( " * 10 + "ls" + ")" * 10,
        "env " * 10 + "ls",
        ";".join(["ls"] * 100),
        "cat <<'E'\n" + "some text\n" * 50_000 + "E",
        "cat > notes.md <<'E'\n" + 'it\'s $(text) `and` "more"\n' * 10_000 + "E",
        "echo '" + "x" * 100_000 + "'",
    ],
    ids=["nesting", "wrappers", "commands", "document", "written", "quoted"],
)
def test_within_the_limits_size_alone_is_no_reason(command: str) -> None:
    assert in_shop(command).is_clear


def test_surrogates_are_answered() -> None:
    hold(in_shop("cat \ud800 '\udfff' $'\\xff'"))


def test_nothing_is_said_of_nothing() -> None:
    for text in ("", " ", "\n\t ", "# only a comment"):
        assert in_shop(text) == CommandAnalysis((), (), ()), repr(text)


def test_without_the_second_parser_nothing_is_understood_and_all_still_loads() -> None:
    script = (
        "import sys; sys.modules['tree_sitter'] = None; sys.modules['tree_sitter_bash'] = None\n"
        "import aver.gate.effects.effects\n"
        "from aver.gate.shell.understand import understand\n"
        "found = understand('rm -rf x', cwd='/w', workspace='/w')\n"
        "assert [u.code for u in found.unclear] == ['no-parser'], found\n"
        "assert 'delete' in found.classes, found\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_loading_costs_no_parser_until_a_command_is_read() -> None:
    script = (
        "import sys, aver.gate.effects.effects, aver.gate.shell.understand\n"
        "assert 'tree_sitter' not in sys.modules\n"
        "assert 'tree_sitter_bash' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.more
def test_nothing_is_opened_listed_or_run() -> None:
    """Python tells an audit hook of every file, directory, process and connection."""
    script = (
        "import sys\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "from support.shell_corpus import cases, in_shop\n"
        "commands, events = [case.command for case in cases()], []\n"
        "for command in commands:  # so that all modules are loaded\n"
        "    in_shop(command)\n"
        "armed = False\n"
        "def hook(event, args):\n"
        "    if armed and event.split('.')[0] in ('open', 'os', 'subprocess', 'socket', 'shutil', 'glob', 'pathlib'):\n"
        "        events.append((event, args))\n"
        "sys.addaudithook(hook)\n"
        "armed = True\n"
        "for command in commands:\n"
        "    in_shop(command)\n"
        "armed = False\n"
        "assert not events, events[:5]\n"
    )
    subprocess.run([sys.executable, "-c", script, str(Path(__file__).parents[2])], check=True)


def test_the_same_command_gets_the_same_answer() -> None:
    for case in cases()[::7]:
        assert in_shop(case.command) == in_shop(case.command)

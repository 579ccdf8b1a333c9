"""The tables: every line can be read, says things that exist, and is the only one for its program."""

from __future__ import annotations

from collections import Counter
from types import ModuleType

import pytest

from aver.gate.effects.findings import EFFECTS, UNCLEAR
from aver.gate.shell.model import Word
from aver.gate.shell.programs.handlers import HANDLERS, find_handler
from aver.gate.shell.programs.handlers.languages import INTERPRETERS
from aver.gate.shell.programs.spec import ProgramSpec, parse_spec, read_arguments, split_table
from aver.gate.shell.programs.tables import (
    ROWS,
    files,
    git,
    has_subcommands,
    network,
    packages,
    system,
    tools,
)
from aver.gate.shell.programs.verbs import load_verbs
from support.many_cases import for_each

TABLES = [files, network, git, tools, packages, system]


def words(text: str) -> list[Word]:
    return [Word(word, (word,), word) for word in text.split()]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.__name__.rpartition(".")[2])
def test_every_line_can_be_read_and_says_what_exists(table: ModuleType) -> None:
    rows = split_table(table.TABLE)
    assert len(rows) > 50
    for marks in rows.values():
        hold(parse_spec(marks))


def hold(spec: ProgramSpec) -> None:
    verbs = {*spec.first, spec.last, spec.rest, *(o.verb for o in spec.options.values())}
    verbs |= {option.operands for option in spec.options.values()}
    assert verbs - {"", "command"} <= set(load_verbs())
    assert {spec.nothing, spec.here} - {"", "unpack"} <= set(EFFECTS)
    for effect in (*spec.always, *(e for o in spec.options.values() for e in o.effects)):
        assert effect in EFFECTS or effect.removeprefix("?") in UNCLEAR


@for_each(sorted(INTERPRETERS))
def test_a_line_of_an_interpreter_can_be_read(name: str) -> None:
    spec = parse_spec(INTERPRETERS[name])
    assert {*spec.first, spec.rest, *(o.verb for o in spec.options.values())} - {""} <= set(load_verbs())


def test_a_program_stands_in_one_table_and_once() -> None:
    names = Counter(name for table in TABLES for name in _names(table.TABLE))
    assert [name for name, count in names.items() if count > 1] == []


def _names(table: str) -> list[str]:
    """The names of a table, with those that stand in it twice."""
    found: list[str] = []
    for line in table.replace("\\\n", " ").splitlines():
        found += split_table(line)
    return found


def test_a_program_with_a_handler_has_no_line_but_for_its_options() -> None:
    judged_by_both = {name for name in HANDLERS if name in ROWS}
    assert judged_by_both == {"sudo", "doas", "docker", "podman", "nerdctl", "curl", "wget"}
    assert has_subcommands("git")


@pytest.mark.more
def test_a_look_up_finds_what_splitting_all_tables_finds() -> None:
    every: dict[str, str] = {}
    for table in (files, network, git, tools, packages, system):
        every |= split_table(table.TABLE)
    assert dict(ROWS) == every
    assert all(ROWS[name] == marks for name, marks in every.items())
    assert not [name for name in ("", " git", "gi", "git stat", "::", "#") if name in ROWS]
    programs = {name.partition(" ")[0] for name in every}
    assert {name for name in programs if has_subcommands(name)} == {n.partition(" ")[0] for n in every if " " in n}


@for_each(sorted(HANDLERS))
def test_a_handler_is_there(program: str) -> None:
    assert callable(find_handler(program))


def test_every_interpreter_has_a_line() -> None:
    assert {name for name, where in HANDLERS.items() if where == ("languages", "interpreter")} == set(INTERPRETERS)


def test_what_only_reads_has_no_option_that_does_more() -> None:
    """These are taken to be harmless with any arguments, also with ones that come in unseen."""
    for name in ("cat", "grep", "head", "wc", "ls", "md5sum", "cut", "nl", "stat"):
        assert not parse_spec(ROWS[name]).has_risky_options, name
    for name in ("sort", "rg", "less", "tree", "git log", "date"):
        assert parse_spec(ROWS[name]).has_risky_options, name


# --- how lines are justified


def lines_with_comments() -> list[tuple[str, str]]:
    """The lines of all tables, each with the comment right before it."""
    found: list[tuple[str, str]] = []
    for table in TABLES:
        comment = ""
        for line in table.TABLE.replace("\\\n", " ").splitlines():
            if line.startswith("#"):
                comment = line[1:].strip()
            else:
                if "::" in line:
                    found.append((line, comment))
                comment = ""
    return found


LINES = lines_with_comments()


@for_each(LINES, lambda line: line[0].partition("::")[0].strip()[:200])
def test_a_line_that_is_not_closed_says_why(line: tuple[str, str]) -> None:
    marks, comment = line[0].partition("::")[2], line[1]
    spec = parse_spec(marks)
    if not spec.is_lax:
        return
    assert comment, "a line that says lax needs a comment before it"
    # Nothing passes by such a line: each has an effect that a rule asks about, or is unclear in any case.
    asked = set(EFFECTS) - {"read", "git-state", "git-fetch", "service-read", "loopback", "locked-install"}
    assert any(effect.startswith("?") or effect in asked for effect in (*spec.always, spec.here)), marks


@for_each(LINES, lambda line: line[0].partition("::")[0].strip()[:200])
def test_a_line_that_ignores_its_operands_says_why(line: tuple[str, str]) -> None:
    if parse_spec(line[0].partition("::")[2]).rest == "skip":
        assert len(line[1]) > 20, "a line that says *skip needs a comment before it"


def test_the_comments_are_found() -> None:
    assert len(LINES) > 280
    assert sum(bool(comment) for _, comment in LINES) > 100


# --- how arguments are read


def options(marks: str, text: str) -> list[tuple[str, str | None]]:
    given = read_arguments(parse_spec(marks), words(text))
    return [(option.name, value.value if value else None) for option, value, _ in given.options]


def unlisted(marks: str, text: str) -> list[str]:
    return [name for name, _ in read_arguments(parse_spec(marks), words(text)).unlisted]


def operands(marks: str, text: str) -> list[str | None]:
    return [word.value for word in read_arguments(parse_spec(marks), words(text)).operands]


def test_values_are_found_wherever_getopt_finds_them() -> None:
    marks = "gnu -o= --output= -r -i? --color? --arg=="
    assert options(marks, "-o x") == [("-o", "x")]
    assert options(marks, "-ox") == [("-o", "x")]
    assert options(marks, "-rox") == [("-r", None), ("-o", "x")]
    assert options(marks, "-ro x") == [("-r", None), ("-o", "x")]
    assert options(marks, "--output=x") == [("--output", "x")]
    assert options(marks, "--output x") == [("--output", "x")]
    assert options(marks, "--outp x") == [("--output", "x")]
    assert options(marks, "-i.bak") == [("-i", ".bak")]
    assert options(marks, "-i x") == [("-i", None)]
    assert options(marks, "--arg a b c") == [("--arg", "b")]
    assert operands(marks, "--arg a b c") == ["c"]


def test_only_some_programs_take_shortened_options() -> None:
    """cargo, go, npm and uv know no short forms: there `--target` is not `--target-dir`."""
    assert options("--target-dir=write", "--target x") == []
    assert unlisted("--target-dir=write", "--target x") == ["--target"]
    assert options("gnu --target-dir=write", "--target x") == [("--target-dir", "x")]
    assert options("--target= --target-dir=write", "--target x") == [("--target", "x")]


def test_an_option_that_is_not_listed_is_told() -> None:
    assert unlisted("-a -o=", "-a -x --yes --no=1 b") == ["-x", "--yes", "--no"]
    assert unlisted("-[ab]", "-abc") == ["-c"]
    assert unlisted("", "--help --version -5") == []
    assert unlisted("no --verify", "--no-verify --no-edit") == ["--no-edit"]
    assert unlisted("literal", "--anything -x") == []
    begun = Word("--new=$x", prefix="--new=")
    assert [name for name, _ in read_arguments(parse_spec("-o="), [begun]).unlisted] == ["--new"]


def test_an_option_may_have_an_effect_and_change_the_operands() -> None:
    option = parse_spec("-a!?unknown-target:write").options["-a"]
    assert (option.effects, option.operands, option.verb) == (("?unknown-target",), "write", "")
    option = parse_spec("-F=read!write").options["-F"]
    assert (option.takes, option.verb, option.effects) == ("=", "read", ("write",))


def test_operands_end_where_they_end() -> None:
    assert operands("-o=", "a -o b c -- -o d") == ["a", "c", "-o", "d"]
    assert operands("-o= posix", "a -o b") == ["a", "-o", "b"]
    assert operands("", "- -5 a") == ["-", "a"]
    assert operands("-name= onedash", "-name x a") == ["a"]


def test_a_word_that_is_not_known_may_be_an_option() -> None:
    spec = parse_spec("-o=write *read")
    unknown, begun, pattern = Word("$x"), Word("src/$x", prefix="src/"), Word("*", ("*",), "*", is_pattern=True)
    given = read_arguments(spec, [unknown, begun, pattern, Word("--", ("--",), "--"), unknown])
    assert given.doubtful == [unknown, pattern]
    assert given.operands == [unknown, begun, pattern, unknown]


def test_an_option_may_have_a_value_that_is_not_known() -> None:
    given = read_arguments(parse_spec("-o=write --output=write"), [Word("--output=$x", prefix="--output=")])
    ((option, value, _),) = given.options
    assert option.name == "--output"
    assert value is not None
    assert not value.is_known

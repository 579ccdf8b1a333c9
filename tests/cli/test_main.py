"""Starting: the version, the list of verbs, the help of each, and how little of Aver that needs."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from aver import __version__
from aver.cli.main import VERBS
from aver.cli.options import Parser
from aver.cli.subcommands import SubcommandParser
from support.aver_command import Aver

COMMANDS = Path(__file__).resolve().parents[2] / "docs" / "commands.md"


def parser_of(verb: str) -> Parser:
    module = import_module(VERBS[verb][0])
    parser = Parser(prog=f"aver {verb}", summary=VERBS[verb][1], examples=module.EXAMPLES)
    module.add_arguments(parser)
    return parser


def parsers() -> dict[str, Parser]:
    """Every command line there is: of each verb, and of each action of `keys`."""
    found = {}
    for verb in VERBS:
        parser = parser_of(verb)
        found[verb] = parser
        for action in parser._actions:
            if isinstance(action.choices, dict):
                for name, inner in action.choices.items():
                    found[f"{verb} {name}"] = inner.build() if isinstance(inner, SubcommandParser) else inner
    return found


def test_the_version(aver: Aver) -> None:
    ran = aver("--version")
    assert (ran.code, ran.out, ran.err) == (0, f"aver {__version__}\n", "")


def test_python_dash_m_aver_is_the_same_command() -> None:
    done = subprocess.run([sys.executable, "-m", "aver", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"aver {__version__}\n"


def test_the_overview_lists_every_verb(aver: Aver) -> None:
    ran = aver("--help")
    assert ran.code == 0
    for verb in VERBS:
        assert re.search(rf"^  {verb} +\S", ran.out, re.MULTILINE)


def test_help_on_a_verb(aver: Aver) -> None:
    assert aver("help").out == aver("--help").out
    assert aver("help", "log").out == aver("log", "--help").out
    assert aver("help", "nothing").code == 2


def test_without_a_verb_the_overview_is_shown_and_nothing_was_done(aver: Aver) -> None:
    ran = aver()
    assert ran.code == 2
    assert ran.out == ""
    assert "usage: aver VERB" in ran.err


def test_a_mistyped_verb_is_corrected(aver: Aver) -> None:
    ran = aver("verfy")
    assert ran.code == 2
    assert "'verfy' is not an aver command" in ran.err
    assert "did you mean: aver verify" in ran.err
    assert "did you mean: aver verify meta" in aver("verify-meta").err


@pytest.mark.parametrize("arguments", [["--version"], ["--help"]])
def test_starting_loads_nothing_heavy(arguments: list[str]) -> None:
    """`--version` is to cost hardly more than Python itself."""
    program = f"""if True:
        import sys
        from aver.cli.main import main
        main({arguments!r})
        print(*sorted(sys.modules), sep=chr(10), file=sys.stderr)
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stderr.split()}
    assert "aver" in loaded
    heavy = {"argparse", "json", "orjson", "nacl", "cryptography", "sqlite3", "dataclasses", "inspect"}
    assert loaded.isdisjoint(heavy)


@pytest.mark.more
@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_loads_no_other_verb(verb: str, aver: Aver) -> None:
    program = f"""if True:
        import sys
        from aver.cli.main import main
        main([{verb!r}, "--help"])
        print(*sorted(sys.modules), sep=chr(10), file=sys.stderr)
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    others = {module for module, _ in VERBS.values()} - {VERBS[verb][0]}
    assert others.isdisjoint(done.stderr.split())


@pytest.mark.parametrize(("verb", "subcommand"), [("protocol", "list"), ("gateway", "status")])
def test_a_subcommand_loads_no_other_subcommand(verb: str, subcommand: str) -> None:
    program = f"""if True:
        import sys
        from aver.cli.main import main
        main([{verb!r}, {subcommand!r}, "--help"])
        print(*sorted(sys.modules), sep=chr(10), file=sys.stderr)
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    modules = {name: module for name, (module, _) in import_module(VERBS[verb][0]).SUBCOMMANDS.items()}
    loaded = set(done.stderr.split())
    assert [name for name, module in modules.items() if module in loaded] == [subcommand]


@pytest.mark.more
@pytest.mark.parametrize("verb", sorted(set(VERBS) - {"doctor", "install", "uninstall", "status"}))
def test_the_help_of_a_verb_loads_neither_gate_nor_ledger(verb: str) -> None:
    program = f"""if True:
        import sys
        from aver.cli.main import main
        main([{verb!r}, "--help"])
        print(*sorted(sys.modules), sep=chr(10), file=sys.stderr)
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert {"aver.gate", "aver.ledger"}.isdisjoint(done.stderr.split())


@pytest.mark.sample(4)
@pytest.mark.parametrize("command", parsers())
def test_every_help_has_examples(command: str, aver: Aver) -> None:
    ran = aver(*command.split(), "--help")
    assert ran.code == 0
    assert f"usage: aver {command}" in ran.out
    examples = ran.out.partition("\nexamples:\n")[2]
    assert f"aver {command.split()[0]}" in examples


def test_every_verb_and_option_is_documented() -> None:
    sections = dict(re.findall(r"^## aver (\w+)\n(.*?)(?=^## |\Z)", COMMANDS.read_text(), re.MULTILINE | re.DOTALL))
    assert sections.keys() == VERBS.keys()
    for command, parser in parsers().items():
        verb, _, action = command.partition(" ")
        section = sections[verb]
        assert f"    aver {command}" in section
        assert "\nExample: `aver " in section
        options = {option for one in parser._actions for option in one.option_strings} - {"-h", "--help"}
        assert [option for option in sorted(options) if f"`{option}" not in section] == [], (verb, action)


@pytest.mark.sample(4)
@pytest.mark.parametrize("verb", sorted(VERBS))
def test_every_verb_starts_cold(aver: Aver, verb: str) -> None:
    """The installed command, from the first import on. Other tests use a process that has everything imported."""
    ran = aver.process(verb, "--help")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(f"usage: aver {verb}")

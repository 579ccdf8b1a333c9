"""The second parser: it must not see a command that the first reader missed."""

from __future__ import annotations

import pytest

from aver.gate.effects.paths import PathRoots
from aver.gate.shell.model import CommandReport
from aver.gate.shell.parser.cross_check import require_agreement
from aver.gate.shell.parser.grammar import ScriptReader
from aver.gate.shell.parser.words import UnreadableCommand
from aver.gate.shell.understand import understand
from support.shell_corpus import READS, cases, in_shop


def read(text: str) -> ScriptReader:
    reader = ScriptReader(text)
    reader.read_script()
    return reader


@pytest.mark.parametrize(
    "text",
    [
        "ls; rm x",
        "ls && rm x",
        "ls | rm x",
        "(ls; rm x)",
        "echo $(rm x)",
        "if a; then rm x; fi",
        "ls\nrm x",
        "ls & rm x",
    ],
)
def test_a_command_that_was_missed_is_noticed(text: str) -> None:
    reader = read(text)
    require_agreement(reader, CommandReport(PathRoots()))
    reader.starts.remove(text.index("rm"))
    with pytest.raises(UnreadableCommand) as caught:
        require_agreement(reader, CommandReport(PathRoots()))
    assert caught.value.code == "readers-differ"


def test_text_that_was_hidden_wrongly_is_not_noticed_by_itself() -> None:
    """What the first reader calls data, the second does not see: so that is held by comparing with bash."""
    reader = read("ls; rm x")
    reader.hidden.append((2, 8, " "))
    reader.starts.remove(4)
    report = CommandReport(PathRoots())
    require_agreement(reader, report)
    assert sorted(reader.starts) == [0]
    reader.hidden.clear()
    with pytest.raises(UnreadableCommand) as caught:  # It was the hidden text alone that kept the second reader quiet.
        require_agreement(reader, report)
    assert caught.value.code == "readers-differ"


@pytest.mark.parametrize(
    "text",
    [
        "cat > a <<'A' && cat > b <<'B'\n1\nA\n2\nB",
        "python3 - <<'E' 2>&1 | tail -5\nx\nE",
        "cat <<E\n`date`\nE",
        "exec 3<>file",
        "time ls",
        "echo hi   # it's a comment",
        "[ a = b ]",
        "git commit -m \"$(cat <<'E'\nit's\nE\n)\"",
        "echo 'é' \"ü$x\"",
    ],
)
def test_what_tree_sitter_alone_misreads_is_read(text: str) -> None:
    reader = read(text)
    require_agreement(reader, CommandReport(PathRoots()))
    found = understand(text, cwd="/w", workspace="/w")
    assert "readers-differ" not in {unclear.code for unclear in found.unclear}
    if text.startswith("["):
        return  # To tree-sitter this is a test and no command, so it has nothing to compare.
    reader.starts.clear()  # And the second reader does look: without the first one's commands it objects.
    with pytest.raises(UnreadableCommand) as caught:
        require_agreement(reader, CommandReport(PathRoots()))
    assert caught.value.code == "readers-differ"


def test_both_read_all_ordinary_commands() -> None:
    assert all(in_shop(case.command).is_clear for case in cases() if case.section == READS)


def test_its_objection_does_not_hide_what_the_first_reader_saw(monkeypatch: pytest.MonkeyPatch) -> None:
    def objects(reader: ScriptReader, report: CommandReport) -> None:
        raise UnreadableCommand("readers-differ", "for the test")

    monkeypatch.setattr("aver.gate.shell.walk.require_agreement", objects)
    found = understand("rm -rf src", cwd="/w", workspace="/w")
    assert "delete" in found.classes
    assert [unclear.code for unclear in found.unclear] == ["readers-differ"]

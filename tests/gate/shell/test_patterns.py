"""A pattern that may match the name of Aver's directory counts as Aver's only where Aver keeps its files."""

from __future__ import annotations

from aver.gate.shell.model import CommandAnalysis
from aver.gate.shell.understand import understand
from support.many_cases import for_each

ENVIRONMENT = {"HOME": "/home/me", "AVER_HOME": "/home/me/.aver"}


def analyse(command: str, environment: dict[str, str]) -> CommandAnalysis:
    return understand(command, cwd="/work/shop", workspace="/work/shop", env=environment)


def is_about_aver(analysis: CommandAnalysis) -> bool:
    return any("aver" in effect.classes for effect in analysis.effects)


@for_each(["cp .a* b", "mv build/.* dist/", "rm -f .*", "rm -rf .av*", "cat build/.a*/x", "cp -r .?ver b"])
def test_a_pattern_elsewhere_is_unclear_at_most(command: str) -> None:
    understood = analyse(command, ENVIRONMENT)
    assert not is_about_aver(understood)
    assert not understood.is_clear or command == "cp -r .?ver b"


@for_each(
    ["rm -rf ~/.a*", "rm -rf /home/me/.av?r", "cp x /home/*/.aver/", "rm -rf /home/me/.[a]ver/keys/*", "cat ~/.av*/k*"]
)
def test_a_pattern_where_aver_keeps_its_files_is_about_them(command: str) -> None:
    assert is_about_aver(analyse(command, ENVIRONMENT))


@for_each(["rm -rf .av*", "cp .a* b", "rm -rf .aver", "echo x > .aver/config.toml"])
def test_without_knowing_where_they_are_every_such_name_counts(command: str) -> None:
    assert is_about_aver(analyse(command, {"HOME": "/home/me"}))


def test_the_name_itself_always_counts() -> None:
    assert is_about_aver(analyse("rm -rf .aver", ENVIRONMENT))

"""Arithmetic with a text that somebody else wrote is unclear: the shell runs the commands in its subscripts."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from support.many_cases import for_each
from support.shell_corpus import in_shop

RUNS = (
    "x=$(cat notes.txt); echo $((x))",
    "x=`cat notes.txt`; echo $((x + 1))",
    'x="$(< notes.txt)"; ((y = x))',
    "echo $(( $(cat notes.txt) + 1 ))",
    "read x < notes.txt; ((x))",
    "while read -r x; do echo $((x + 1)); done < notes.txt",
    "x=$(cat notes.txt); [[ $x -eq 0 ]]",
    "x=$(cat notes.txt); [[ x -gt 0 ]]",
    "[[ 5 -lt $(cat notes.txt) ]]",
    "x=$(cat notes.txt); [[ -v $x ]]",
    'x=$(cat notes.txt); test -v "$x"',
    "x=$(cat notes.txt); a=(1 2); echo ${a[$x]}",
    "x=$(cat notes.txt); a=(1 2); echo ${a[x]}",
    "x=$(cat notes.txt); a[$x]=1",
    "x=$(cat notes.txt); s=abc; echo ${s:$x:1}",
    "x=$(cat notes.txt); declare -i y; y=$x",
    "x=$(cat notes.txt); let y=x",
    "x=$(cat notes.txt); for ((i = 0; i < x; i++)); do :; done",
    "mapfile -t m < notes.txt; echo $((m[0]))",
    "OPTIND=$(cat notes.txt); getopts a y",
    "y=$(cat notes.txt); x=$y; echo $((x))",
    "x=$(head -1 notes.txt | tr -d ' '); echo $((x))",
    "for x in $(cat notes.txt); do echo $((x)); done",
    "a=($(cat notes.txt)); echo $((a))",
    ": ${x:=$(cat notes.txt)}; echo $((x))",
    'f() { echo $(($1)); }; f "$(cat notes.txt)"',
    'f() { local n=$1; echo $((n)); }; f "$(cat notes.txt)"',
    "export x=$(cat notes.txt); bash -c 'echo $((x))'",
    "x=$(ls | grep a); echo $((x))",
    "for x in a*; do echo $((x)); done",
    "x=$(wc -l a*); echo $((x))",
    "x=$(grep -c '' a* notes.txt | head -1 | cut -d: -f1); echo $((x))",
)


@for_each(RUNS)
def test_the_shell_would_run_it(command: str) -> None:
    assert "dynamic-code" in {part.code for part in in_shop(command).unclear}


@pytest.mark.parametrize("command", RUNS)
def test_a_real_shell_runs_it(command: str, tmp_path: Path) -> None:
    """The cases above are no fancy: each of them makes a file."""
    (tmp_path / "notes.txt").write_text("a[$(>ran)]\n")
    (tmp_path / "a[$(>ran)]").write_text("x\n")
    subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, timeout=60, check=False)
    assert (tmp_path / "ran").exists()


MORE = (
    "x=a[; y='$(touch ran)]'; z=$x$y; echo $((z))",
    "y='$(touch ran)'; echo $((a[$y]))",
    "for x in 'a[$(touch ran)]'; do echo $((x)); done",
    "x=$(date '+a[$(touch ran)]'); echo $((x))",
    "x=$(expr 'a[$(touch ran)]'); echo $((x))",
    "x=$(seq -f 'a[$(touch ran)]' 1); echo $((x))",
    "x=$(stat -c '%n' a*); echo $((x))",
    "x=$(printf 'a[%s]' '$(touch ran)'); echo $((x))",
    "x=$(curl -s https://example.org); echo $((x))",
    "x=$(wc -l * | awk '{print $2}'); echo $((x))",
    "x=$(grep -rc x .); echo $((x))",
)


@for_each(MORE)
def test_its_relatives_are_unclear(command: str) -> None:
    assert "dynamic-code" in {part.code for part in in_shop(command).unclear}


ORDINARY = (
    "x=$(cat notes.txt); echo ${#x} $((1 + 2))",
    "n=$(wc -l < notes.txt); echo $((n + 1))",
    "n=$(find . -name '*.py' | wc -l | tr -d ' '); echo $((n * 2))",
    "n=$(grep -c foo notes.txt); [[ $n -gt 0 ]] && echo yes",
    "n=$(git rev-list --count HEAD); echo $((n + 1))",
    "start=$(date +%s); sleep 1; echo $(( $(date +%s) - start ))",
    "i=0; for f in *.txt; do i=$((i + 1)); done; echo $i",
    "for i in 1 2 3; do echo $((i * 2)); done",
    "for ((i = 0; i < 5; i++)); do echo $i; done",
    "a=(1 2 3); for i in 0 1 2; do echo ${a[$i]}; done",
    "s=abc; echo ${s:1:2} ${s:-x}",
    "if [[ $? -eq 0 ]]; then echo ok; fi",
    "[[ -n $(cat notes.txt) ]] && echo yes",
    "echo $((RANDOM % 10))",
)


@for_each(ORDINARY)
def test_ordinary_arithmetic_is_clear(command: str) -> None:
    assert in_shop(command).unclear == ()


KEPT = (
    "echo $((x))",
    "echo $((x + 1))",
    "((x))",
    "((y = x))",
    "((x++))",
    "let y=x",
    "let 'y = x + 1'",
    "echo $((x)); x=1",
    "(x=1); echo $((x))",
    "x=1 | cat; echo $((x))",
    "false && x=1; echo $((x))",
    "if false; then x=1; fi; echo $((x))",
    "f() { x=1; }; echo $((x))",
    "x=1 true; echo $((x))",
    "x+=1; echo $((x))",
    "y=$x; echo $((y))",
    "y=${x:-1}; echo $((y))",
    "[[ $x -eq 1 ]]",
    "[[ x -eq 1 ]]",
    "a=(1 2); echo ${a[x]}",
    "a=(1 2); echo ${a[$x]}",
    "a[x]=1",
    "s=abc; echo ${s:x:1}",
    "for ((i = 0; i < x; i++)); do :; done",
    "cat <<E\n$((x))\nE",
    "for y in 1; do echo $((x)); done",
)


@for_each(KEPT)
def test_a_variable_of_an_earlier_command_is_unclear(command: str) -> None:
    """A shell that keeps its variables may hold a text in it that an earlier command has read."""
    assert "dynamic-code" in {part.code for part in in_shop(command).unclear}


@pytest.mark.parametrize("command", [case for case in KEPT if case != "s=abc; echo ${s:x:1}"])
def test_a_real_shell_runs_what_the_variable_holds(command: str, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("a[$(>ran)]\n")
    kept = f"x=$(cat notes.txt)\n{command}"
    subprocess.run(["bash", "-c", kept], cwd=tmp_path, capture_output=True, timeout=60, check=False)
    assert (tmp_path / "ran").exists()


REPLACED = (
    "RANDOM=$(cat notes.txt)",
    "RANDOM='a[$(touch ran)]'",
    "SECONDS=$x",
    "unset RANDOM",
    "read RANDOM < notes.txt",
    "for RANDOM in a; do :; done",
    "declare LINENO=x",
    "printf -v RANDOM x",
    "printf -vRANDOM x",
    "command unset RANDOM",
)


@for_each(REPLACED)
def test_the_numbers_of_the_shell_stay_its_own(command: str) -> None:
    """`$((RANDOM % 10))` is ordinary. So no earlier command may give it another value."""
    assert "dynamic-code" in {part.code for part in in_shop(command).unclear}


SET_BEFORE = (
    "x=1; echo $((x + 1))",
    "cd src && n=$(wc -l < a.py) && echo $((n + 1))",
    "if true; then n=1; else n=2; fi; echo $((n))",
    "n=0; while read -r line; do n=$((n + 1)); done < notes.txt; echo $n",
    "f() { local n=3; echo $((n)); }; f",
    "declare -A m; m[foo]=1; echo ${m[foo]}",
    "i=0; a[i]=1; a[$i]=2; ((i += 1))",
    "SECONDS=0; sleep 1; echo $((SECONDS))",
    "for n in 1 2; do ((m = n + 1)); echo $((m * 0xff + 16#ff)); done",
    "echo $(( $(date +%s) % 7 ))",
)


@for_each(SET_BEFORE)
def test_a_variable_that_the_script_sets_before_is_clear(command: str) -> None:
    assert in_shop(command).unclear == ()

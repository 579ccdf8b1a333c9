"""The five inputs: exactly as the model was fitted to them, and not to be talked down."""

from __future__ import annotations

import difflib
import math
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.gate.risk.features import COUNT_MAX, FILES_MAX, LINE_MAX, Features, code_lines, measure_diff


def features_of(diff: str, workspace: str = "") -> Features:
    return measure_diff(diff, workspace=workspace).features


def diff_of(path: str, added: list[str], removed: list[str] = [], context: str = "") -> str:  # noqa: B006
    old, new = len(removed), len(added)
    body = "".join(f"-{line}\n" for line in removed) + "".join(f"+{line}\n" for line in added)
    return f"--- a/{path}\n+++ b/{path}\n@@ -1,{old} +1,{new} @@{context}\n{body}"


def test_by_hand() -> None:
    added = [
        "# a comment: if for while",
        "",
        "def f(a, b):",
        "    if a and not b:",
        "        for x in a:  # for",
        "\t\t\ttry:",
        "            while x: pass",
        "    elif b: pass",
        "    except E: pass",
        "iffy = forward(switches, if_x, x_if)",
    ]
    found = features_of(diff_of("src/a.py", added, ["x", "", "# y"]))
    # if, for, for (in a comment behind code), while, elif, except; three tabs are twelve columns.
    assert found == Features(added=8, removed=3, branches=6, indentation=12, files=1)


def test_branch_words_of_other_languages() -> None:
    code = ["switch x {", "case 1: a && b || c", "select {}", "} else if (x) { }", "} catch (e) {"]
    found = features_of(diff_of("a.go", code))
    assert found.branches == 1 + 3 + 1 + 1 + 1


@pytest.mark.parametrize(
    ("path", "comments", "code"),
    [
        ("a.py", ["# x", "   # x", "#"], ["x # y", '"""doc"""', "'#'"]),
        (
            "a.js",
            ["// x", "/* x */", "/*", " * x", " *", " */", "/** x"],
            ["x // y", "/* x */ y()", "* p = f();", "*p = 1", "/x/"],
        ),
        ("a.rs", ["/// x", "//! x"], ["#[derive(X)]", "x /* y */"]),
        ("a.sql", ["-- x"], ["select 1 -- x", "- 1"]),
        ("a.php", ["# x", "// x", "/* x"], ["#[Attr]", "$x"]),
        ("a.html", ["<!-- x -->", "<!-- x"], ["<!-- x --><script>", "<p>"]),
        ("a.el", ["; x", ";; x"], ["(x)"]),
        ("a.erl", ["% x"], ["x."]),
    ],
)
def test_comments_by_language(path: str, comments: list[str], code: list[str]) -> None:
    assert features_of(diff_of(path, [*comments, "", "  \t"])).added == 0
    assert features_of(diff_of(path, code)).added == len(code)


def test_one_line_cannot_make_those_after_it_vanish() -> None:
    """An opening mark in a string or template must not turn what follows into a comment."""
    evil = ['x = "/*"', "const s = `", "/*", "`;", "evil();", "evil();", "evil();"]
    assert features_of(diff_of("a.js", evil)).added == 6
    assert features_of(diff_of("a.py", ['x = """', "evil()", '"""'])).added == 3


def test_lines_that_end_by_other_characters_are_lines() -> None:
    program = "\r".join(["if x:", "    y()"] * 50)
    assert features_of(diff_of("a.py", [program])).added == 100
    assert features_of(diff_of("a.js", ["a()\u2028b()\u2029c()"])).added == 3
    assert features_of(diff_of("a.py", ["a()\r", "\r", "# x\r"])).added == 1


def test_a_program_in_one_line_is_unclear() -> None:
    assert features_of(diff_of("a.js", ["a();" * LINE_MAX])).unclear == 1
    assert features_of(diff_of("a.js", ["a();"] * LINE_MAX)).unclear == 0


def test_indentation_is_bounded() -> None:
    assert features_of(diff_of("a.py", [" " * 500 + "x"])).indentation == 60
    assert features_of(diff_of("a.py", ["\t" * 3 + "  x", "x"])).indentation == 14
    assert features_of(diff_of("a.py", [" " * 40 + "# only a comment", "x"])).indentation == 0


def test_only_source_counts() -> None:
    text = diff_of("tests/test_a.py", ["if x: y"] * 9) + diff_of("README.md", ["if"] * 9) + diff_of("a.py", ["x"])
    assert features_of(text) == Features(added=1, files=1)


@pytest.mark.parametrize(
    ("text", "unmeasured"),
    [
        (diff_of("package.json", ["x"]), 1),
        (diff_of("vendor/a.go", ["x"]) + diff_of("unheard.of", ["x"]), 2),
        (diff_of("README.md", ["x"]) + diff_of("tests/a.py", ["x"]), 0),
        ("diff --git a/x.py b/x.py\nBinary files a/x.py and b/x.py differ\n", 1),
        ("diff --git a/docs/x.png b/docs/x.png\nBinary files a/docs/x.png and b/docs/x.png differ\n", 0),
        ("diff --git a/x.sh b/x.sh\nold mode 100644\nnew mode 100755\n", 1),
        ("diff --git a/x.py b/x.py\nnew file mode 120000\n--- /dev/null\n+++ b/x.py\n@@ -0,0 +1 @@\n+/etc/passwd\n", 1),
        ("diff --git a/sub b/sub\nindex 1111111..2222222 160000\n--- a/sub\n+++ b/sub\n@@ -1 +1 @@\n-a\n+b\n", 1),
        (diff_of("../../etc/x.py", ["x"]), 1),
        (diff_of("/etc/x.py", ["x"]), 1),
    ],
)
def test_what_is_not_measured_is_told(text: str, unmeasured: int) -> None:
    assert features_of(text, workspace="/work").unmeasured == unmeasured


def test_absolute_paths_inside_the_workspace_are_like_relative_ones() -> None:
    text = "--- /work/tests/shop/src/a.py\n+++ /work/tests/shop/src/a.py\n@@ -0,0 +1 @@\n+x\n"
    assert features_of(text, workspace="/work/tests/shop").added == 1
    assert features_of(text, workspace="/work/tests/shop/").added == 1
    assert features_of(text).unmeasured == 1


def test_moving_source_under_tests_does_not_hide_it() -> None:
    text = "--- a/src/a.py\n+++ b/tests/a.py\n@@ -1 +1,2 @@\n-x\n+y\n+z\n"
    assert features_of(text) == Features(added=2, removed=1, files=1)


def test_source_files_are_known_by_every_name_they_have() -> None:
    text = "--- a/old.py\n+++ b/new.py\n@@ -1 +1 @@\n-x\n+y\n" + diff_of("README.md", ["x"]) + diff_of("old.py", ["x"])
    assert set(measure_diff(text).sources) == {"old.py", "new.py"}


@given(st.lists(st.integers(0, 50), min_size=2, max_size=2))
def test_two_changes_add_up_to_one(sizes: list[int]) -> None:
    one, two = (measure_diff(diff_of(f"{name}.py", ["if x:"] * size)) for name, size in zip("ab", sizes, strict=True))
    both = measure_diff("".join(diff_of(f"{n}.py", ["if x:"] * size) for n, size in zip("ab", sizes, strict=True)))
    assert one.plus(two) == both


def test_too_many_files_are_unclear() -> None:
    text = "".join(f"diff --git a/{n}.py b/{n}.py\nold mode 100644\nnew mode 100644\n" for n in range(FILES_MAX + 3))
    found = features_of(text)
    assert (found.files, found.unclear) == (FILES_MAX, 1)


LINES = st.lists(st.sampled_from(["if x:", "    y()", "# c", "", "\tfor z in w:", "a && b || c"]), max_size=10)


@given(LINES, LINES)
def test_same_numbers_with_any_context(old: list[str], new: list[str]) -> None:
    """What is learned from `-U0` diffs of a history is what is scored on an agent's diff."""
    found = [
        features_of("\n".join(difflib.unified_diff(old, new, "a/x.py", "b/x.py", lineterm="", n=n))) for n in (0, 3, 99)
    ]
    assert found[0] == found[1] == found[2]


@given(LINES, st.sampled_from(["if x:", "    y()", "# c", ""]))
def test_a_further_line_lowers_nothing(lines: list[str], more: str) -> None:
    before, after = features_of(diff_of("x.py", lines)), features_of(diff_of("x.py", [*lines, more]))
    assert all(new >= old for old, new in zip(before.to_dict().values(), after.to_dict().values(), strict=True))


@given(st.lists(st.text(max_size=20), max_size=5), st.sampled_from(["hash", "slash", "dash", "markup"]))
def test_code_lines_never_fail_and_are_never_blank(lines: list[str], style: str) -> None:
    assert all(line.strip() for line in code_lines(lines, style))  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [math.nan, math.inf, 1e300, "9", None, [], COUNT_MAX + 1])
def test_features_from_outside_are_bounded_upwards(value: object) -> None:
    assert Features.from_dict({"added": value}).added == COUNT_MAX  # type: ignore[dict-item]


def test_features_from_outside_are_bounded_downwards() -> None:
    assert Features.from_dict({"added": -5, "removed": -math.inf, "strange": 3}) == Features()


def test_to_dict_and_back() -> None:
    features = Features(1, 2, 3, 4, 5, 6, 7, 8)
    assert Features.from_dict(features.to_dict()) == features


def test_the_same_change_measures_the_same_in_every_process() -> None:
    """Python orders the members of a set differently each time it starts."""
    script = (
        "from aver.gate.risk.features import measure_diff\n"
        "diff = 'diff --git a/one.py b/two.c\\nrename from one.py\\nrename to two.c\\n"
        "--- a/one.py\\n+++ b/two.c\\n@@ -0,0 +1,2 @@\\n+# x\\n+// y\\n'\n"
        "found = measure_diff(diff)\n"
        "print(found.features.added, found.sources)\n"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={"PYTHONHASHSEED": str(seed)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in range(4)
    }
    assert len(found) == 1

"""New files, and changes by commands that show their content."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from aver.agents.registry import load_known_agents
from aver.gate.action import Action, Facts
from aver.gate.decide import Gate, decide
from aver.gate.effects.effects import find_effects
from aver.gate.effects.shown_changes import FileState, gather_change_facts, is_unused_when_new
from aver.gate.policy.bundle import load_policy_bundle

GATE = Gate(bundle=load_policy_bundle(), known=load_known_agents())
NOW = Facts(now="2026-01-05T09:00:00+00:00", environment={"HOME": "/home/me"})
BIG = "".join(f"x{number} = {number}\n" for number in range(200))


def decided(command: str, files: Mapping[str, str] | None = None, gate: Gate = GATE) -> tuple[str, tuple[str, ...]]:
    """Decide about a command in a workspace with these files."""
    action = Action(type="shell_exec", tool="Bash", arguments={"command": command}, workspace="/work")
    there = {f"/work/{name}": text for name, text in (files or {}).items()}
    effects = find_effects(action, NOW, known=gate.known)
    seen = gather_change_facts(effects, "/work", lambda path: FileState(path in there, there.get(path)))
    decision = decide(action, replace(NOW, absent=seen.absent, written=seen.written), gate)
    assert decision.policy is not None
    return decision.decision, decision.policy.rules


@pytest.mark.parametrize(
    "command",
    [
        f"cat > src/new.py <<'EOF'\n{BIG}EOF",
        f"mkdir -p src && cat <<'EOF' > src/new.go\n{BIG}EOF",
        "git diff > change.patch",
        "pytest --version > log.txt",
        "echo x > c.md 2> errors.log",
        # What the code does is asked about when something runs it.
        f"cat > src/new.py <<'EOF'\nimport subprocess\n{BIG}EOF",
        f"cat > tool.sh <<'EOF'\n{BIG}EOF\nchmod +x tool.sh",
        "{ date; uptime; } > report.txt",
    ],
    ids=range(8),
)
def test_a_new_file_passes(command: str) -> None:
    assert decided(command) == ("pass", ("new-files",))


@pytest.mark.parametrize(
    "path",
    [
        *("setup.py", "conftest.py", "tests/conftest.py", "noxfile.py", "build.rs", "vite.config.ts", "jest.config.js"),
        *("src/__init__.py", "bin/run.py", "tests/e.git/HEAD", "tests/package.json", "tests/pytest.ini", "Makefile"),
        *("requirements/dev.txt", "docs/conf.py", ".github/workflows/x.yml", "tool", "tests/tool", "a.pth", ".envrc"),
        *("node_modules/x/index.js", "sitecustomize.py", "CLAUDE.md", ".git/hooks/pre-push.txt", "tests/Cargo.toml"),
        *("tasks.py", "tests/bin/x.sh", "build.gradle", "tests/venv/bin/activate", "requirements.txt"),
    ],
)
def test_a_new_file_that_something_loads_is_not_unused(path: str) -> None:
    """It is judged by its lines, as an edit is."""
    assert decided(f"cat > {path} <<'EOF'\n{BIG}EOF")[1] != ("new-files",)


@pytest.mark.parametrize(
    "command",
    [
        "cat other.py > src/new.py",
        "curl -s https://example.org/x > src/new.py",
        f"cat > src/new.py <<'EOF'\n{BIG}EOF\nchmod 777 src/new.py",
        f"cat > src/new.py <<'EOF'\n{BIG}EOF\npython src/new.py",
        "cat other.py > tests/test_new.py; pytest tests/test_new.py",
        "cat > src/new.py <<'EOF'\nimport base64\nx = base64.b64decode('eA==')\nEOF",
        f"cat > src/new.py <<'EOF'\n{BIG}x = '{'a' * 1000}'\nEOF",
        f"cat > src/new.py <<'EOF'\n{BIG}exec(x)\nEOF",
        "echo ok | tee src/new.py; cat other.py | nice tee src/new.py",
        "echo ok > src/new.py; cp other.py src/new.py",
        "echo ok > src/new.py; { cat other.py; } > src/new.py",
        "echo ok > src/new.py && false && echo bad > src/new.py",
        "echo x > $NAME.py",
        "cat > ../new.py <<'EOF'\nx\nEOF",
        "cat > ~/new.py <<'EOF'\nx\nEOF",
    ],
)
def test_content_that_is_not_shown_or_runs_asks(command: str) -> None:
    assert decided(command)[0] == "human_review"


def test_a_file_that_is_there_is_judged_by_the_lines_that_change() -> None:
    files = {"src/a.py": BIG}
    assert decided("echo 'x = 1' >> src/a.py", files) == ("pass", ("workspace-writes",))
    assert decided(f"cat > src/a.py <<'EOF'\n{BIG}y = 1\nEOF", files) == ("pass", ("workspace-writes",))
    assert decided(f"cat > src/a.py <<'EOF'\n{BIG.replace('x', 'y')}EOF", files)[0] == "human_review"
    # Configuration is as strict as for edits.
    assert decided("echo 'x = 1' >> pyproject.toml", {"pyproject.toml": "y = 1\n"})[0] == "human_review"
    # Aver could not read it.
    action = Action(type="shell_exec", tool="Bash", arguments={"command": "echo x >> src/a.py"}, workspace="/work")
    effects = find_effects(action, NOW, known=GATE.known)
    assert gather_change_facts(effects, "/work", lambda path: FileState(is_there=True)).written is None


def test_strict_caution_looks_at_no_content() -> None:
    strict = replace(GATE, caution="strict")
    assert decided("echo x > notes.txt", gate=strict)[0] == "human_review"


def test_a_tool_that_makes_a_file_is_judged_alike() -> None:
    diff = "--- /dev/null\n+++ b/src/new.py\n@@ -0,0 +1,200 @@\n" + "".join(f"+{line}\n" for line in BIG.splitlines())
    action = Action(
        type="code_edit", tool="Write", arguments={"file_path": "/work/src/new.py"}, diff=diff, workspace="/work"
    )
    absent = replace(NOW, absent=("/work/src/new.py",))
    assert decide(action, absent, GATE).decision == "pass"
    assert decide(action, NOW, GATE).decision == "human_review"  # The diff alone says nothing about the disk.
    assert decide(replace(action, diff=None), absent, GATE).decision == "human_review"
    executable = diff.replace("--- ", "diff --git a/src/new.py b/src/new.py\nnew file mode 100755\n--- ", 1)
    assert decide(replace(action, diff=executable), absent, GATE).decision == "human_review"


def test_names() -> None:
    assert is_unused_when_new("src/a.py")
    assert is_unused_when_new("tests/test_a.py")
    assert not is_unused_when_new(".hidden/a.py")

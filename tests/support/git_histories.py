"""Git repositories made for tests: small ones written out by hand, and a long one that is made up but behaves.

They are made by `git fast-import`, so that times, messages and contents are exactly what a test says.
"""

from __future__ import annotations

import math
import os
import random
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

DAY = 86_400
BEGIN = 1_600_000_000


@dataclass
class Step:
    """One commit: when, what it says, and the files it writes (None removes one)."""

    time: int
    message: str
    files: Mapping[str, str | bytes | None] = field(default_factory=dict)
    parents: Sequence[int] | None = None
    """Numbers of earlier steps; the one before, if not given."""


def clean_environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {**kept, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


def git(directory: Path, *arguments: str, given: bytes | None = None) -> str:
    done = subprocess.run(
        ["git", "-C", str(directory), *arguments],
        input=given,
        capture_output=True,
        env=clean_environment(),
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode("utf-8", "surrogateescape")


def make_repository(directory: Path, steps: Sequence[Step], *, options: Sequence[str] = ()) -> list[str]:
    """A repository with these commits on `main`. Returns their ids."""
    directory.mkdir(parents=True, exist_ok=True)
    git(directory, "init", "--quiet", "--initial-branch=main", *options)
    stream = bytearray()
    for number, step in enumerate(steps):
        message = step.message.encode()
        stream += b"commit refs/heads/main\nmark :%d\n" % (number + 1)
        stream += b"committer A <a@example.org> %d +0000\n" % step.time
        stream += b"data %d\n%s\n" % (len(message), message)
        parents = [number - 1] if step.parents is None else step.parents
        for index, parent in enumerate(parents):
            if parent >= 0:
                stream += b"%s :%d\n" % (b"merge" if index else b"from", parent + 1)
        for path, content in step.files.items():
            name = path.encode("utf-8", "surrogateescape")
            if content is None:
                stream += b"D %s\n" % name
            else:
                data = content if isinstance(content, bytes) else content.encode()
                stream += b"M 100644 inline %s\ndata %d\n%s\n" % (name, len(data), data)
        stream += b"\n"
    marks = directory / ".git" / "marks"
    git(directory, "fast-import", "--quiet", "--force", f"--export-marks={marks}", given=bytes(stream))
    found = dict(line.split(" ") for line in marks.read_text().splitlines())
    marks.unlink()
    return [found[f":{number + 1}"] for number in range(len(steps))]


@dataclass
class Pretended:
    """A made-up history, and which of its commits were made to fail."""

    steps: list[Step]
    failing: set[int]


def pretended_history(commits: int, *, seed: int = 1, level: float = -4.37, per_day: float = 2.0) -> Pretended:
    """A project that grows, with bugs that come in by the model's own law and are repaired some weeks later."""
    chance = random.Random(seed)
    files: dict[str, list[str]] = {f"src/part{number}.py": [] for number in range(12)}
    steps: list[Step] = []
    failing: set[int] = set()
    due: list[tuple[float, int, str, str]] = []
    now = float(BEGIN)
    while len(steps) < commits:
        now += chance.expovariate(per_day) * DAY
        due.sort()
        if due and due[0][0] <= now:
            _, _, path, line = due.pop(0)
            if line in files[path]:
                at = files[path].index(line)
                files[path][at] = line.replace("value", "right_value")
                steps.append(Step(int(now), f"Fix wrong result in {path}", {path: "\n".join(files[path]) + "\n"}))
            continue
        path = chance.choice(sorted(files))
        added = max(1, min(400, round(chance.lognormvariate(2.2, 1.2))))
        fresh = [_line(chance, len(steps), number) for number in range(added)]
        at = chance.randrange(len(files[path]) + 1)
        removed = chance.randrange(3)
        files[path][at : at + removed] = fresh
        number = len(steps)
        steps.append(Step(int(now), f"Change {number} of {path}", {path: "\n".join(files[path]) + "\n"}))
        branches = sum(line.lstrip().startswith(("if ", "for ")) for line in fresh)
        depth = max(len(line) - len(line.lstrip()) for line in fresh)
        z = level + 0.48 * math.log1p(added) + 0.25 * math.log1p(branches) + 0.016 * depth
        if chance.random() < 1 / (1 + math.exp(-z)):
            failing.add(number)
            due.append((now + chance.uniform(3, 80) * DAY, number, path, chance.choice(fresh)))
    return Pretended(steps, failing)


def _line(chance: random.Random, step: int, number: int) -> str:
    indent = "    " * chance.choice((0, 1, 1, 2, 2, 3))
    begin = chance.choice(("value", "value", "value", "if value", "for item in value"))
    return f"{indent}{begin}_{step}_{number} = compute({chance.randrange(1000)})"

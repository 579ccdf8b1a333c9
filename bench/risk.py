"""`python bench/risk.py`: how fast risk is, and how well the model does on git histories at hand.

    python bench/risk.py            time the parts of a decision
    python bench/risk.py PATH...    the protocol of docs/gate/risk.md on each repository, and the means

The figures of a history are those that `risk_report` gives, from the shipped prior on; nothing is stored
outside a throw-away home.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import timeit
from collections.abc import Callable
from pathlib import Path

from risk_report import Evaluation, RiskReport, build_report

from aver.gate.risk.estimate import estimate_from_features, learn_outcome
from aver.gate.risk.features import measure_diff
from aver.gate.risk.model import RiskState

TARGETS = {
    "auc": "",
    "auc_gain": "",
    "brier_skill": "≥ +0.08",
    "calibration_error": "≤ 0.03",
    "pass_against_base": "≤ 0.35",
    "pass_share": "",
    "pass_rate": "",
    "auc_within_sizes": "",
    "base_rate": "",
}


def sample_diff(lines: int = 200) -> str:
    """A change of three files with some context, three quarters of its lines added."""
    parts = []
    for number in range(3):
        added, removed = lines // 4, lines // 12
        path = f"src/part{number}.py"
        body = "".join(f"-        old_{index} = compute(index={index})\n" for index in range(removed))
        for index in range(added):
            word = "    if value" if index % 6 == 0 else "        value"
            body += f"+{word}_{index} = compute(other, {index})  # so that a line has a usual length\n"
        context = "".join(f"     context_{index}\n" for index in range(3))
        header = f"diff --git a/{path} b/{path}\nindex 1111111..2222222 100644\n--- a/{path}\n+++ b/{path}\n"
        counts = f"@@ -10,{removed + 6} +10,{added + 6} @@ def function():\n"
        parts.append(header + counts + context + body + context)
    return "".join(parts)


def milliseconds(work: Callable[[], object], rounds: int = 500) -> float:
    return min(timeit.repeat(work, number=rounds, repeat=7)) / rounds * 1000


def speeds() -> None:
    diff, state = sample_diff(), RiskState()
    features = measure_diff(diff).features.to_dict()
    print("| work | ms | page |\n| --- | --- | --- |")
    for name, work, target in (
        ("features of a 200-line diff", lambda: measure_diff(diff), "0.15"),
        ("score", lambda: estimate_from_features(features, state), "0.03"),
        ("update", lambda: learn_outcome(state, features, "survived"), "0.01"),
    ):
        print(f"| {name} | {milliseconds(work):.3f} | {target} |")


def figures(found: Evaluation) -> dict[str, float | None]:
    passed = found.buckets[0]
    return {
        "auc": found.auc.value if found.auc else None,
        "auc_gain": found.auc_gain.value if found.auc_gain else None,
        "brier_skill": found.brier_skill,
        "calibration_error": found.calibration_error,
        "pass_against_base": passed.against_base,
        "pass_share": passed.share,
        "pass_rate": passed.rate,
        "auc_within_sizes": found.auc_within_sizes,
        "base_rate": found.base_rate,
    }


def judged(path: Path) -> RiskReport:
    def progress(done: int, total: int) -> None:
        if sys.stderr.isatty():
            print(f"\r{path.name}: {done} of {total} commits", end="", file=sys.stderr)

    with tempfile.TemporaryDirectory() as home:
        return build_report(path, progress=progress, home=Path(home))


def histories(paths: list[Path]) -> None:
    rows: list[dict[str, float | None]] = []
    print("| history | judged | failed |", *(f"{name} |" for name in TARGETS))
    print("| --- " * (3 + len(TARGETS)) + "|")
    for path in paths:
        found = judged(path)
        row = figures(found.evaluation)
        rows.append(row)
        shown = " | ".join("–" if value is None else f"{value:.3f}" for value in row.values())
        print(f"| {found.name} | {found.evaluation.judged} | {found.evaluation.failed} | {shown} |", flush=True)
    means = []
    for name in TARGETS:
        known = [value for row in rows if (value := row[name]) is not None]
        means.append(f"{statistics.mean(known):.3f}" if known else "–")
    print("| mean | | | " + " | ".join(means) + " |")
    print("| target | | | " + " | ".join(TARGETS.values()) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description="How fast risk is, and how well it does on git histories.")
    parser.add_argument("paths", nargs="*", type=Path)
    given = parser.parse_args()
    if given.paths:
        histories(given.paths)
    else:
        speeds()


if __name__ == "__main__":
    main()

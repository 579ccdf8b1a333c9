"""How well the model holds on a repository's own history: as text, as JSON and as a picture.

The figures are those of `evaluate`. What they do not say, the report says beside them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from aver.fast_dataclass import dataclass
from aver.gate.decision import Thresholds
from aver.gate.risk.evaluation import Evaluation, evaluate, roc_points, select_cases
from aver.gate.risk.history.learn import CommitSample, build_samples, find_history_end
from aver.gate.risk.history.repository import open_repository
from aver.gate.risk.history.walk_history import MiningProgress, mine_history
from aver.gate.risk.plots import draw_svg

__all__ = ["RiskReport", "build_report", "report_on_samples"]

FEW_FAILURES = 30
"""Failures below which an AUC is uncertain by 0.1 and more."""

SUSPICIOUS_AUC = 0.85
"""An AUC that no honest model reaches on such labels."""

STANDING_NOTES = (
    "Most of the ranking is size: inside one size class little is left (0.51 to 0.63 for every model that was tried).",
    "The riskiest fifth of changes holds most of the changed lines: reading it saves no reading per line.",
    "The label is right in about three cases out of four, and failures that were never repaired do not count.",
    "Changes to docs and tests alone are left out; with them every figure would look better.",
    "Ranking is by the fixed score; values and decisions are by the level as it was known at each commit's time.",
    "The shipped prior comes from commits that people wrote. Almost none of those it was measured on were an agent's.",
)


@dataclass(frozen=True, slots=True)
class RiskReport:
    """The figures for one history, in the forms in which they are wanted."""

    name: str
    evaluation: Evaluation
    curve: tuple[tuple[float, float], ...]

    def to_dict(self) -> dict[str, Any]:
        return {"repository": self.name, **self.evaluation.to_dict(), "notes": list(self.notes())}

    def text(self) -> str:
        return "\n".join(_text_lines(self)) + "\n"

    def to_svg(self) -> str:
        return draw_svg(f"Risk of changes in {self.name}", self.evaluation, self.curve)

    def notes(self) -> tuple[str, ...]:
        """What a reader must know to read the figures."""
        found = self.evaluation
        notes = []
        if not found.judged:
            notes.append("There is nothing to judge yet: no commit that touches source is older than 180 days.")
        elif found.failed < FEW_FAILURES:
            notes.append(f"Only {found.failed} failures: every figure here may be off by a lot.")
        if found.auc is not None and found.auc > SUSPICIOUS_AUC:
            notes.append(f"An AUC above {SUSPICIOUS_AUC} is a leak or an easier population, not a better model.")
        return (*notes, *STANDING_NOTES)


def build_report(
    path: str | Path,
    thresholds: Thresholds | None = None,
    progress: MiningProgress | None = None,
    *,
    home: Path | None = None,
) -> RiskReport:
    """The report on the repository at `path`. What was found out about its commits before is not found out again."""
    repository = open_repository(path)
    history = mine_history(repository, progress=progress, home=home)
    return report_on_samples(repository.root.name, build_samples(history), find_history_end(history), thresholds)


def report_on_samples(
    name: str, samples: Sequence[CommitSample], until: int, thresholds: Thresholds | None = None
) -> RiskReport:
    """The report on samples whose outcomes are known up to `until`."""
    cases, _ = select_cases(samples, until)
    curve = roc_points([(case.fixed, case.sample.failed_at is not None) for case in cases])
    return RiskReport(name, evaluate(samples, until, thresholds), tuple(curve))


# --- as text


def _text_lines(report: RiskReport) -> Iterator[str]:
    found = report.evaluation
    yield f"Risk of changes in {report.name}"
    yield ""
    yield _format_row(
        "commits that touch source", f"{found.commits}", f"{found.left_out} of the last 180 days left out"
    )
    yield _format_row(
        "judged: the newest 30 %", f"{found.judged}", f"{found.failed} failed, {_format_share(found.base_rate)}"
    )
    yield ""
    yield _format_row("AUC", _format_number(found.auc), f"by size alone {_format_number(found.auc_by_size_alone)}")
    yield _format_row("AUC within size deciles", _format_number(found.auc_within_sizes), "the mean of those below")
    yield _format_row("average precision", _format_number(found.average_precision))
    yield _format_row(
        "riskiest 20 % of changes",
        _format_share(found.recall_of_riskiest),
        f"of the failures, and {_format_share(found.lines_of_riskiest)} of the changed lines",
    )
    yield _format_row("Brier score", _format_number(found.brier))
    yield _format_row(
        "Brier skill",
        _format_signed(found.brier_skill),
        f"with the prior alone {_format_signed(found.brier_skill_fixed)}",
    )
    yield _format_row(
        "calibration error",
        _format_number(found.calibration_error),
        f"with the prior alone {_format_number(found.calibration_error_fixed)}",
    )
    yield from _decision_lines(found)
    yield from _reliability_lines(found)
    yield from _size_lines(found)
    yield ""
    yield "What these figures do not say"
    yield from (f"  - {note}" for note in report.notes())


def _decision_lines(found: Evaluation) -> Iterator[str]:
    above = found.thresholds.skip_above
    yield ""
    denies = "risk denies nothing" if above is None else f"skip when the lower end is above {above:g}"
    yield f"Decisions by risk alone: pass when the upper end is at most {found.thresholds.pass_below:g}; {denies}"
    yield "  decision   changes    share   failed    rate   of the base rate"
    for bucket in found.buckets:
        against = "–" if bucket.against_base is None else f"{bucket.against_base:.2f} x"
        yield (
            f"  {bucket.name:<9}{bucket.count:>9}{_format_share(bucket.share):>9}{bucket.failed:>9}"
            f"{_format_share(bucket.rate):>8}{against:>19}"
        )
    yield f"  {found.unmeasured} changes also touch files of kinds that were never measured: they never pass."


def _reliability_lines(found: Evaluation) -> Iterator[str]:
    yield ""
    yield "Reliability: what was said, and what came"
    yield "  probability     changes   said on average   failed"
    for part in found.reliability:
        said = _format_share(part.mean_score if part.count else None)
        rate = _format_share(part.rate if part.count else None)
        yield f"  {part.low:g} to {part.high:g}".ljust(16) + f"{part.count:>9}{said:>18}{rate:>9}"


def _size_lines(found: Evaluation) -> Iterator[str]:
    yield ""
    yield "Size deciles, by lines of code added"
    yield "  lines           changes   failed      AUC"
    for part in found.size_classes:
        lines = f"  {part.smallest} to {part.largest}".ljust(16)
        yield f"{lines}{part.count:>9}{part.failed:>9}{_format_number(part.auc):>9}"


def _format_row(name: str, value: str, more: str = "") -> str:
    return f"  {name:<28}{value:>8}" + (f"   {more}" if more else "")


def _format_number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _format_signed(value: float | None) -> str:
    return "–" if value is None else f"{value:+.3f}"


def _format_share(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"

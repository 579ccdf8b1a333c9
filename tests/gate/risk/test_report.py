"""The protocol and its report: on samples that follow the model's own law, what should come out is known."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from aver.gate.decision import Thresholds
from aver.gate.risk.features import Features
from aver.gate.risk.history.learn import CommitSample
from aver.gate.risk.model import Score, change_offset, logistic
from support.bench_modules import risk_report
from support.git_histories import BEGIN, DAY, Step, make_repository

END = 4000 * DAY
RiskReport = risk_report.RiskReport
build_report = risk_report.build_report
choose_bucket = risk_report.choose_bucket
evaluate = risk_report.evaluate
select_cases = risk_report.select_cases


def report_on_samples(name: str, given: list[CommitSample], until: int) -> RiskReport:
    return RiskReport(name, evaluate(given, until))


def samples(count: int, *, level: float = -4.37, seed: int = 2) -> list[CommitSample]:
    """Changes as a project has them, failing by the model's law at some level."""
    chance = random.Random(seed)
    found = []
    for number in range(count):
        moment = number * END // count
        added = min(3000, round(chance.lognormvariate(1.8, 1.6)))
        features = Features(
            added=added,
            removed=round(chance.lognormvariate(1.0, 1.3)),
            branches=sum(chance.random() < 0.15 for _ in range(added)),
            indentation=4 * chance.randrange(7),
            fixes=chance.choice((0, 0, 0, 1, 1, 2, 4, 8)),
            files=1,
            unmeasured=int(chance.random() < 0.05),
        )
        fails = chance.random() < logistic(level + change_offset(features))
        failed_at = moment + round(chance.uniform(1, 89) * DAY) if fails else None
        found.append(CommitSample(f"{number}", moment, features, failed_at))
    return found


@pytest.fixture(scope="module")
def many() -> list[CommitSample]:
    return samples(12_000, level=-4.8, seed=3)


def test_the_protocol(many: list[CommitSample]) -> None:
    found = evaluate(many, END)
    young = sum(sample.time > END - 180 * DAY for sample in many)
    assert (found.commits, found.left_out) == (12_000, young)
    assert found.judged == round(0.3 * (12_000 - young))
    cases, _ = select_cases(many, END)
    assert [case.sample for case in cases] == many[12_000 - young - found.judged : 12_000 - young]


def test_on_its_own_law_the_model_is_as_good_as_it_can_be(many: list[CommitSample]) -> None:
    found = evaluate(many, END)
    assert found.auc is not None
    assert 0.72 < found.auc.value < 0.85
    assert found.auc.low < found.auc.value < found.auc.high < found.auc.low + 0.1
    assert found.auc_by_size_alone is not None
    assert found.auc_gain is not None
    assert found.auc_gain.value == pytest.approx(found.auc.value - found.auc_by_size_alone.value)
    assert found.calibration_error is not None
    assert found.calibration_error < 0.02
    assert found.brier_skill is not None
    assert found.brier_skill > 0.05
    assert found.auc_within_sizes is not None
    assert found.auc_within_sizes < found.auc.value - 0.1
    passed, review, skip = found.buckets
    assert skip.count == 0
    assert passed.share > 0.2
    assert passed.rate is not None
    assert passed.rate < 0.02
    assert passed.against_base is not None
    assert passed.against_base < 0.35
    assert passed.count + review.count == found.judged
    assert passed.failed + review.failed == found.failed


def test_the_moving_level_mends_what_the_prior_gets_wrong() -> None:
    found = evaluate(samples(8000, level=-2.8), END)
    assert found.calibration_error is not None
    assert found.calibration_error_fixed is not None
    assert found.calibration_error < 0.04 < found.calibration_error_fixed
    assert found.brier_skill is not None
    assert found.brier_skill_fixed is not None
    assert found.brier_skill > found.brier_skill_fixed


@pytest.mark.more
def test_labels_that_mean_nothing_are_not_learned() -> None:
    chance = random.Random(9)
    noise = [
        CommitSample(sample.id, sample.time, sample.features, sample.time + DAY if chance.random() < 0.1 else None)
        for sample in samples(6000)
    ]
    found = evaluate(noise, END)
    assert found.auc is not None
    assert found.auc.low < 0.5 < found.auc.high


@pytest.mark.more
def test_repairs_of_the_same_day_are_counted_apart() -> None:
    """Large changes fail and are repaired at once, small ones fail later: without the first, size says nothing."""
    given = []
    for number, item in enumerate(samples(6000)):
        features = Features(added=500 if number % 10 == 0 else 1, files=1)
        repaired = item.time + DAY // 2 if number % 20 == 0 else item.time + 3 * DAY if number % 11 == 0 else None
        given.append(CommitSample(item.id, item.time, features, repaired))
    found = evaluate(given, END)
    cases, _ = select_cases(given, END)
    assert found.failed_same_day == sum(int(case.sample.id) % 20 == 0 for case in cases)
    assert found.auc is not None
    assert found.auc_of_later_failures is not None
    assert found.auc_of_later_failures.value < found.auc.value - 0.1
    assert f"without {found.failed_same_day} that were repaired" in RiskReport("x", found).to_text()


def test_decisions_are_on_the_interval() -> None:
    usual = Thresholds()
    assert choose_bucket(Score(0.01, 0.005, 0.05), usual) == "pass"
    assert choose_bucket(Score(0.01, 0.005, 0.051), usual) == "review"
    assert choose_bucket(Score(0.99, 0.98, 1.0), usual) == "review"
    strict = Thresholds(pass_below=0.1, skip_above=0.5)
    assert choose_bucket(Score(0.6, 0.5, 0.7), strict) == "review"
    assert choose_bucket(Score(0.6, 0.51, 0.7), strict) == "skip"
    assert evaluate(samples(500), END, strict).thresholds == strict


def test_as_text(many: list[CommitSample]) -> None:
    text = report_on_samples("shop", many, END).to_text()
    for words in (
        *(
            "AUC ",
            "AUC by size alone",
            "the model's gain",
            "95 %: ",
            "AUC within size deciles",
            "AUC of later failures",
        ),
        *("Brier skill", "calibration error", "pass ", "review ", "skip ", "Reliability", "an agent's"),
        *("inside one size class little is left", "risk denies nothing", "were repaired on the same day"),
    ):
        assert words in text
    assert "Only" not in text
    assert max(len(line) for line in text.splitlines()) <= 120


def test_as_json(many: list[CommitSample]) -> None:
    document = report_on_samples("shop", many, END).to_dict()
    assert json.loads(json.dumps(document, allow_nan=False)) == json.loads(json.dumps(document))
    assert document["repository"] == "shop"
    assert document["auc"]["low"] < document["auc"]["value"] < document["auc"]["high"]
    assert len(document["notes"]) >= 6


def test_few_failures_and_none_are_said() -> None:
    assert "nothing to judge" in report_on_samples("x", [], END).to_text()
    assert "Only" in report_on_samples("x", samples(300), END).to_text()
    nothing_failed = [CommitSample(item.id, item.time, item.features, None) for item in samples(300)]
    assert "–" in report_on_samples("x", nothing_failed, END).to_text()


def test_what_is_too_good_is_called_so() -> None:
    leak = [
        CommitSample(item.id, item.time, Features(added=500 if item.failed_at else 1, files=1), item.failed_at)
        for item in samples(4000)
    ]
    assert "leak" in " ".join(report_on_samples("x", leak, END).notes())


def test_of_a_repository(tmp_path: Path) -> None:
    steps = [Step(BEGIN + n * 10 * DAY, f"Step {n}", {"a.py": "x\n" * (n + 1)}) for n in range(60)]
    make_repository(tmp_path / "shop", steps)
    calls: list[int] = []
    first = build_report(tmp_path / "shop", progress=lambda done, _: calls.append(done))
    assert first.name == "shop"
    assert first.evaluation.commits == 60
    assert first.evaluation.left_out == 18
    assert build_report(tmp_path / "shop", progress=lambda done, _: calls.append(done)) == first
    assert len(calls) == 60

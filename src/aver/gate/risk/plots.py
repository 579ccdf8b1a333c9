"""The report as a picture: four panels in one SVG, written by hand.

Ranking (how many failures are found for how many false alarms), reliability (what was promised against what came, with
90 % intervals), what risk alone would have decided, and how failures and ranking look inside one size class.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from html import escape

from aver.gate.risk.evaluation import Evaluation
from aver.gate.risk.model import Z_90

__all__ = ["draw_svg"]

WIDTH, HEIGHT = 960, 800
PANEL_WIDTH, PANEL_HEIGHT = 380, 250
LEFT, TOP, GAP_X, GAP_Y = 70, 110, 90, 110

INK, FAINT, GRID, BACK = "#1f2937", "#6b7280", "#e5e7eb", "#ffffff"
BLUE, GREEN, AMBER, RED = "#2563eb", "#059669", "#d97706", "#dc2626"

Scale = Callable[[float], float]


def draw_svg(title: str, evaluation: Evaluation, curve: Sequence[tuple[float, float]]) -> str:
    """The picture, as the text of an SVG file."""
    lefts, tops = (LEFT, LEFT + PANEL_WIDTH + GAP_X), (TOP, TOP + PANEL_HEIGHT + GAP_Y)
    places = [(left, top) for top in tops for left in lefts]
    subtitle = f"{evaluation.judged} changes judged, {evaluation.failed} failed"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="system-ui, sans-serif" font-size="13" fill="{INK}">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{BACK}"/>',
        _text(LEFT, 42, title, size=20, weight=600),
        _text(LEFT, 66, subtitle, fill=FAINT),
        *_ranking_panel(evaluation, curve, *places[0]),
        *_reliability_panel(evaluation, *places[1]),
        *_decisions_panel(evaluation, *places[2]),
        *_sizes_panel(evaluation, *places[3]),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


# --- panels


def _ranking_panel(
    evaluation: Evaluation, curve: Sequence[tuple[float, float]], left: float, top: float
) -> Iterable[str]:
    x, y = _x_scale(left, 0, 1), _y_scale(top, 0, 1)
    yield from _frame(left, top, f"Ranking: AUC {_format_figure(evaluation.auc)}")
    yield from _ticks(x, y, left, top, (0, 0.25, 0.5, 0.75, 1), (0, 0.25, 0.5, 0.75, 1))
    yield _line([(x(0), y(0)), (x(1), y(1))], FAINT, dash="4 4")
    if len(curve) > 2:
        yield _line([(x(false), y(found)) for false, found in curve], BLUE, width=2.2)
    yield _x_label(left, top, "share of sound changes above the score")
    yield _y_label(left, top, "share of failures found")


def _reliability_panel(evaluation: Evaluation, left: float, top: float) -> Iterable[str]:
    # Most changes lie below 0.1: a square-root scale gives them room.
    x, y = _x_scale(left, 0, 1, bend=math.sqrt), _y_scale(top, 0, 1, bend=math.sqrt)
    yield from _frame(left, top, f"Reliability: calibration error {_format_figure(evaluation.calibration_error)}")
    marks = (0, 0.01, 0.05, 0.1, 0.25, 0.5, 1)
    yield from _ticks(x, y, left, top, marks, marks)
    yield _line([(x(0), y(0)), (x(1), y(1))], FAINT, dash="4 4")
    for part in evaluation.reliability:
        if part.count:
            low, high = _wilson_interval(part.failed, part.count)
            at = x(part.mean_score)
            yield _line([(at, y(low)), (at, y(high))], BLUE, width=1.5)
            radius = 3 + 5 * math.sqrt(part.count / evaluation.judged)
            yield f'<circle cx="{at:.1f}" cy="{y(part.rate):.1f}" r="{radius:.1f}" fill="{BLUE}" fill-opacity="0.85"/>'
    yield _x_label(left, top, "probability said")
    yield _y_label(left, top, "share that failed")


def _decisions_panel(evaluation: Evaluation, left: float, top: float) -> Iterable[str]:
    most = max([0.05, *(bucket.rate or 0 for bucket in evaluation.buckets)]) * 1.25
    y = _y_scale(top, 0, most)
    yield from _frame(left, top, f"Decided by risk alone, at {evaluation.thresholds.pass_below:g}")
    step = next((step for step in (0.01, 0.02, 0.05, 0.1) if most / step <= 6), 0.2)
    yield from _ticks(_x_scale(left, 0, 1), y, left, top, (), [number * step for number in range(int(most / step) + 1)])
    shown = [bucket for bucket in evaluation.buckets if bucket.count]
    colours = {"pass": GREEN, "review": AMBER, "skip": RED}
    begin = left
    for bucket in shown:
        width = bucket.share * PANEL_WIDTH
        rate = bucket.rate or 0.0
        yield _bar(begin, y(rate), width, top + PANEL_HEIGHT - y(rate), colours[bucket.name])
        middle = begin + width / 2
        yield _text(middle, y(rate) - 8, f"{rate:.1%}", anchor="middle", weight=600)
        yield _text(middle, top + PANEL_HEIGHT + 18, f"{bucket.name} {bucket.share:.0%}", anchor="middle")
        begin += width
    if evaluation.base_rate is not None:
        base = y(evaluation.base_rate)
        yield _line([(left, base), (left + PANEL_WIDTH, base)], INK, dash="4 4")
        yield _text(left + PANEL_WIDTH - 4, base - 6, "all", anchor="end", fill=FAINT)
    yield _x_label(left, top, "share of changes (width) and of failures among them (height)")


def _sizes_panel(evaluation: Evaluation, left: float, top: float) -> Iterable[str]:
    y = _y_scale(top, 0, 1)
    mean = _format_figure(evaluation.auc_within_sizes)
    yield from _frame(left, top, f"Inside one size class: AUC {mean} on average")
    yield from _ticks(_x_scale(left, 0, 1), y, left, top, (), (0, 0.25, 0.5, 0.75, 1))
    yield _line([(left, y(0.5)), (left + PANEL_WIDTH, y(0.5))], FAINT, dash="4 4")
    step = PANEL_WIDTH / max(1, len(evaluation.size_classes))
    for number, part in enumerate(evaluation.size_classes):
        begin, rate = left + number * step, part.failed / part.count
        yield _bar(begin + 4, y(rate), step - 8, top + PANEL_HEIGHT - y(rate), AMBER)
        if part.auc is not None:
            yield f'<circle cx="{begin + step / 2:.1f}" cy="{y(part.auc):.1f}" r="4.5" fill="{BLUE}"/>'
        yield _text(begin + step / 2, top + PANEL_HEIGHT + 18, f"≤{part.largest}", anchor="middle", size=11)
    yield _x_label(left, top, "lines of code added, by tenths of the changes")
    yield _text(left + PANEL_WIDTH - 4, top + 16, "dots: AUC · bars: share that failed", anchor="end", fill=FAINT)


# --- pieces


def _x_scale(left: float, low: float, high: float, bend: Scale = float) -> Scale:
    return lambda value: left + (bend(value) - bend(low)) / (bend(high) - bend(low)) * PANEL_WIDTH


def _y_scale(top: float, low: float, high: float, bend: Scale = float) -> Scale:
    return lambda value: top + (1 - (bend(value) - bend(low)) / (bend(high) - bend(low))) * PANEL_HEIGHT


def _frame(left: float, top: float, title: str) -> Iterable[str]:
    yield _text(left, top - 14, title, weight=600)
    yield (
        f'<rect x="{left}" y="{top}" width="{PANEL_WIDTH}" height="{PANEL_HEIGHT}" fill="none" stroke="{GRID}" '
        f'stroke-width="1"/>'
    )


def _ticks(x: Scale, y: Scale, left: float, top: float, across: Sequence[float], up: Sequence[float]) -> Iterable[str]:
    for value in across:
        yield _line([(x(value), top), (x(value), top + PANEL_HEIGHT)], GRID)
        yield _text(x(value), top + PANEL_HEIGHT + 18, f"{value:g}", anchor="middle", size=11, fill=FAINT)
    for value in up:
        yield _line([(left, y(value)), (left + PANEL_WIDTH, y(value))], GRID)
        yield _text(left - 8, y(value) + 4, f"{value:.2g}", anchor="end", size=11, fill=FAINT)


def _text(
    x: float, y: float, words: str, *, size: int = 13, weight: int = 400, anchor: str = "start", fill: str = INK
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" font-weight="{weight}" text-anchor="{anchor}" '
        f'fill="{fill}">{escape(_replace_unprintable(words))}</text>'
    )


def _replace_unprintable(words: str) -> str:
    """Without characters that XML does not take: a directory's name may hold anything."""
    return "".join(character if character.isprintable() else "?" for character in words)


def _x_label(left: float, top: float, words: str) -> str:
    return _text(left + PANEL_WIDTH / 2, top + PANEL_HEIGHT + 40, words, anchor="middle", fill=FAINT)


def _y_label(left: float, top: float, words: str) -> str:
    x, y = left - 46, top + PANEL_HEIGHT / 2
    turned = _text(x, y, words, anchor="middle", fill=FAINT)
    return turned.replace("<text ", f'<text transform="rotate(-90 {x:.1f} {y:.1f})" ', 1)


def _line(points: Iterable[tuple[float, float]], colour: str, *, width: float = 1.0, dash: str = "") -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width:g}"{dashes}/>'


def _bar(x: float, y: float, width: float, height: float, colour: str) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(0.0, width):.1f}" height="{max(0.0, height):.1f}" '
        f'fill="{colour}" fill-opacity="0.55"/>'
    )


def _format_figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _wilson_interval(failed: int, count: int) -> tuple[float, float]:
    """Where the true rate lies with 90 %."""
    z2 = Z_90**2
    middle = (failed + z2 / 2) / (count + z2)
    reach = Z_90 * math.sqrt(failed * (count - failed) / count + z2 / 4) / (count + z2)
    return max(0.0, middle - reach), min(1.0, middle + reach)

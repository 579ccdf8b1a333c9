/** Charts as inline SVG: points with intervals over time, and bars by share. Every chart comes with its table. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { ComponentChildren } from "preact";

/** On a phone half as wide, so that nothing is cut off and the words stay readable. */
const WIDTH = typeof window !== "undefined" && window.innerWidth < 720 ? 360 : 720;
const HEIGHT = 220;
const LEFT = 44;
const BOTTOM = 24;
const TOP = 12;

/** A point of a chart over time. */
export interface ChartPoint {
  /** Where it is on the time axis, from 0 to 1. */
  x: number;
  /** Its value and its interval, from 0 to 1. */
  y: number;
  low: number | null;
  high: number | null;
  sort: string;
  words: string;
  href: string;
}

const toX = (x: number) => LEFT + x * (WIDTH - LEFT - 12);
const toY = (y: number) => TOP + (1 - y) * (HEIGHT - TOP - BOTTOM);
const TICKS = [0, 0.25, 0.5, 0.75, 1];

/** Points with their intervals, over time, and a line across at each limit. `ends` name the two ends of the time axis. */
export function PointChart({ points, limits, ends, label }: { points: ChartPoint[]; limits: number[]; ends: [string, string]; label: string }): JSX.Element {
  return (
    <div class="plot-scroll" tabIndex={0} role="region" aria-label="Chart"><svg class="plot" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="group" aria-label={label}>
      <Axes ends={ends} />
      {points.map(({ x, y, low, high, sort, words, href }, at) => (
        <a key={at} href={href} tabIndex={-1} aria-label={words}>
          <g class={`point ${sort}`}>
            <title>{words}</title>
            {low === null || high === null ? null : <line x1={toX(x)} x2={toX(x)} y1={toY(low)} y2={toY(high)} />}
            {sort === "denied" ? <path d={`M${toX(x) - 4} ${toY(y) - 4}l8 8m0 -8l-8 8`} /> : sort === "asked" ? <rect x={toX(x) - 3.5} y={toY(y) - 3.5} width="7" height="7" /> : <circle cx={toX(x)} cy={toY(y)} r="4" />}
          </g>
        </a>
      ))}
      {limits.map((y) => <line key={y} class="limit" x1={LEFT} x2={WIDTH - 12} y1={toY(y)} y2={toY(y)} />)}
    </svg></div>
  );
}

function Axes({ ends }: { ends: [string, string] }): JSX.Element {
  return (
    <g class="axes">
      {TICKS.map((tick) => (
        <g key={tick}>
          <line x1={LEFT} x2={WIDTH - 12} y1={toY(tick)} y2={toY(tick)} />
          <text x={LEFT - 8} y={toY(tick) + 4} text-anchor="end">{tick}</text>
        </g>
      ))}
      <text x={LEFT} y={HEIGHT - 6}>{ends[0]}</text>
      <text x={WIDTH - 12} y={HEIGHT - 6} text-anchor="end">{ends[1]}</text>
    </g>
  );
}

/** One bar of a reliability chart: what was predicted, and what came of it. */
interface ReliabilityBar {
  low: number;
  high: number;
  predicted: number;
  happened: number;
  /** The interval of what happened, for so few cases. */
  interval: [number, number];
  count: number;
}

/** Predicted against happened. A point on the diagonal was predicted well. */
export function ReliabilityChart({ bars, label }: { bars: ReliabilityBar[]; label: string }): JSX.Element {
  return (
    <div class="plot-scroll" tabIndex={0} role="region" aria-label="Chart"><svg class="plot" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={label}>
      <Axes ends={["predicted 0", "predicted 1"]} />
      <line class="diagonal" x1={toX(0)} y1={toY(0)} x2={toX(1)} y2={toY(1)} />
      {bars.map((bar) => (
        <g key={bar.low} class="point allowed">
          <title>{`${bar.count} actions, predicted ${bar.predicted.toFixed(2)}, failed ${bar.happened.toFixed(2)}`}</title>
          <line x1={toX(bar.predicted)} x2={toX(bar.predicted)} y1={toY(bar.interval[0])} y2={toY(bar.interval[1])} />
          <circle cx={toX(bar.predicted)} cy={toY(bar.happened)} r={Math.min(9, 3 + Math.sqrt(bar.count) / 2)} />
        </g>
      ))}
    </svg></div>
  );
}

/** A chart with its table, which a button shows. The table is what a screen reader and a copy get. */
export function ChartWithTable({ chart, table }: { chart: ComponentChildren; table: ComponentChildren }): JSX.Element {
  const [isShown, setShown] = useState(false);
  return (
    <div class="plot-box">
      {chart}
      <p><button type="button" class="small" aria-expanded={isShown} onClick={() => setShown(!isShown)}>{isShown ? "Hide the table" : "Show as a table"}</button></p>
      {isShown ? <div class="scroll">{table}</div> : null}
    </div>
  );
}

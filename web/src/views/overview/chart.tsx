/** A chart of days as bars, drawn as SVG. Its table says the same, for those who cannot see it, and for print. */

import type { JSX } from "preact";
import { Table } from "../../parts/table.tsx";
import { Text } from "../../parts/text.tsx";

interface Series {
  name: string;
  /** The class that gives the colour. */
  colour: string;
  values: number[];
}

const HEIGHT = 72;
const WIDTH = 480;

/** Bars for each day, the series on top of each other. */
export function DayChart({ title, days, series, show }: { title: string; days: string[]; series: Series[]; show: (value: number) => string }): JSX.Element {
  const sums = days.map((_, at) => series.reduce((sum, one) => sum + (one.values[at] ?? 0), 0));
  const most = Math.max(...sums, 0);
  const step = WIDTH / Math.max(days.length, 1);
  const total = sums.reduce((sum, value) => sum + value, 0);
  return (
    <figure class="chart">
      <figcaption><strong>{title}</strong> <span class="figure">{show(total)}</span>
      </figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT + 2}`} preserveAspectRatio="none" aria-hidden="true">
        <line x1="0" x2={WIDTH} y1={HEIGHT + 1} y2={HEIGHT + 1} class="base" />
        {days.map((day, at) => {
          let bottom = HEIGHT;
          return series.map((one) => {
            const value = one.values[at] ?? 0;
            const height = most ? Math.max((value / most) * HEIGHT, value ? 1.5 : 0) : 0;
            bottom -= height;
            return height ? <rect key={`${day} ${one.name}`} x={at * step + step * 0.12} width={step * 0.76} y={bottom} height={height} class={one.colour} /> : null;
          });
        })}
      </svg>
      <div class="axis beside" aria-hidden="true"><span>{days[0] ?? ""}</span><span>{days.length > 1 ? days.at(-1) : ""}</span></div>
      {series.length > 1 ? <p class="legend">{series.map((one) => <span key={one.name}><span class={`swatch ${one.colour}`} aria-hidden="true" />{one.name} {show(one.values.reduce((sum, value) => sum + value, 0))}</span>)}</p> : null}
      <details>
        <summary>As a table</summary>
        <Table label={`${title} as a table`} heads={["Day", ...series.map(({ name }) => name)]}>
          {days.map((day, at) => <tr key={day}><th scope="row"><Text>{day}</Text></th>{series.map((one) => <td key={one.name} class="number">{show(one.values[at] ?? 0)}</td>)}</tr>)}
        </Table>
      </details>
    </figure>
  );
}

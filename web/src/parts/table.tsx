/** A table with the names of its columns. With a label it is a region that scrolls by itself, by the keyboard, too. */

import type { ComponentChildren, JSX } from "preact";

export function Table({ heads = [], label, of = "plain", children }: { heads?: ComponentChildren[]; label?: string; of?: string; children: ComponentChildren }): JSX.Element {
  const region = label ? ({ tabIndex: 0, role: "region", "aria-label": label } as const) : {};
  return (
    <div class="scroll" {...region}>
      <table class={of}>
        {heads.length ? <thead><tr>{heads.map((head, at) => <th key={at} scope="col">{head}</th>)}</tr></thead> : null}
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

/** Deeds that were held back last: refused by the gate or a person, or in want of an approval that never came. */

import type { JSX } from "preact";
import { Text, Time } from "../../parts/text.tsx";
import { recordLink } from "../../route.ts";
import type { RecordRow, RowPlace } from "../../worker/protocol.ts";

/** A deed in the words of its record, without the name of the tool twice. */
export function deedWords({ tool, summary, kind }: RecordRow): string {
  const words = summary.replace(/^(skip|human_review|pass|human_approved): /, "");
  return tool && !words.startsWith(tool) ? `${tool}: ${words}` : words || kind;
}

export function Refused({ denials }: { denials: RowPlace[] }): JSX.Element {
  return (
    <section>
      <h2>Refused last</h2>
      {denials.length ? (
        <ul class="hits">
          {denials.map(({ chain, row }) => (
            <li key={`${chain}/${row.place}`}><a href={recordLink(chain, row)}>
              <span><span class="word failure">{row.status === "pending" ? "not approved" : "denied"}</span> <Text>{deedWords(row)}</Text></span>
              <span class="beside"><Time>{row.at}</Time> · <Text>{chain}</Text></span>
            </a></li>
          ))}
        </ul>
      ) : <p class="soft">Nothing was refused.</p>}
    </section>
  );
}

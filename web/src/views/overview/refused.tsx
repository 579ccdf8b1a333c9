/** What was refused last: by the gate, by a person, or because nobody answered in time. */

import type { JSX } from "preact";
import { Text, Time } from "../../parts/text.tsx";
import { recordLink } from "../../route.ts";
import type { RecordRow } from "../../worker/protocol.ts";

/** What was refused, in the words of its record; without the name of the tool twice. */
export function refusalWords({ tool, summary, kind }: RecordRow): string {
  const words = summary.replace(/^skip: /, "");
  return tool && !words.startsWith(tool) ? `${tool}: ${words}` : words || kind;
}

export function Refused({ denials }: { denials: { chain: string; row: RecordRow }[] }): JSX.Element {
  return (
    <section>
      <h2>Refused last</h2>
      {denials.length ? (
        <ul class="hits">
          {denials.map(({ chain, row }) => (
            <li key={`${chain}/${row.place}`}><a href={recordLink(chain, row)}>
              <span><span class="word failure">denied</span> <Text>{refusalWords(row)}</Text></span>
              <span class="beside"><Time>{row.at}</Time> · <Text>{chain}</Text></span>
            </a></li>
          ))}
        </ul>
      ) : <p class="soft">Nothing was refused.</p>}
    </section>
  );
}

/** The first screen of an open thing: is it intact, and what is in it. */

import type { JSX } from "preact";
import { VerdictBand } from "../parts/verdict.tsx";
import { Text, plural } from "../parts/text.tsx";
import { contents } from "../state.ts";
import { ChainTable } from "./chains.tsx";

export function OverviewView(): JSX.Element {
  const whole = contents.value;
  if (whole === null) return <p class="strip">Nothing is open.</p>;
  const sessions = whole.chains.filter((chain) => !["meta", "keys"].includes(chain.id));
  const latest = [...sessions].sort((one, other) => (one.endedAt < other.endedAt ? 1 : -1)).slice(0, 12);
  return (
    <>
      <h1><Text>{whole.name}</Text></h1>
      <VerdictBand />
      <section>
        <h2>What is in it</h2>
        <p class="beside">
          {plural(sessions.length, "chain")} by {whole.format === "bundle" ? "its index" : "its content"}, newest first.
          Titles, times and lengths are claims; the verdict compares them with the records.
        </p>
        <ChainTable chains={latest} />
      </section>
    </>
  );
}

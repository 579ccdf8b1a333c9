/** The first screen of an open thing: is it intact, and what is in it. */

import type { JSX } from "preact";
import { VerdictBand } from "../../parts/verdict.tsx";
import { Text, plural } from "../../parts/text.tsx";
import { contents, link } from "../../state.ts";
import { ChainTable } from "../chains/chains.tsx";
import { listSessions } from "../sessions/sessions.tsx";

/** Sessions on the first screen. */
const LATEST = 12;

export function OverviewView(_: { parts: string[] }): JSX.Element {
  const whole = contents.value;
  if (whole === null) return <p class="strip">Nothing is open.</p>;
  const sessions = listSessions();
  return (
    <>
      <h1><Text>{whole.name}</Text></h1>
      <VerdictBand />
      <section>
        <h2>What is in it</h2>
        <p class="beside">
          {plural(sessions.length, "session")} by {whole.format === "bundle" ? "its index" : "its content"}, newest first.
          Titles, times and lengths are claims; the verdict compares them with the records.
        </p>
        <ChainTable chains={sessions.slice(0, LATEST)} />
        {sessions.length > LATEST ? <p><a href={link("sessions")}>All sessions</a></p> : null}
      </section>
    </>
  );
}

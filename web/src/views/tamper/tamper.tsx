/** Try to change it: choose a record of a copy, change it, and see where the verification breaks. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { TryToChange } from "../../parts/tamper.tsx";
import { Empty, Loading, NotHere, Problem, useAnswer } from "../../parts/states.tsx";
import { Text, visible } from "../../parts/text.tsx";
import { link } from "../../route.ts";
import { isOfSession } from "../../sessions/chains.ts";
import { changed, connection, contents, thing } from "../../state.ts";
import { cutText } from "../../verify/text.ts";
import type { ListedChain } from "../../worker/protocol.ts";

/** Records of a chain that one can choose from: those around the wanted one. */
const CHOICES = 200;

/** A chain that tells something: the latest session with a few records, or else any chain with records. */
function suggestChain(chains: ListedChain[]): string {
  const long = chains.filter((one) => (one.length ?? 0) > 2);
  const sessions = long.filter((one) => isOfSession(one.id)).sort((one, other) => (one.endedAt < other.endedAt ? 1 : -1));
  return (sessions[0] ?? long[0] ?? chains[0])?.id ?? "";
}

export function TamperView({ parts: [given = "", at = ""] }: { parts: string[] }): JSX.Element {
  const chains = (contents.value?.chains ?? []).filter((chain) => (chain.length ?? 1) > 0);
  const [chain, setChain] = useState(given || suggestChain(chains));
  const [place, setPlace] = useState(at === "" ? null : Number(at));
  const start = Math.max(0, Math.floor((place ?? 0) / CHOICES) * CHOICES) || 0;
  const rows = useAnswer(() => (chain ? connection.ask({ type: "rows", chain, start, stop: start + CHOICES }) : Promise.reject(new Error("There is no chain in it."))), [chain, start, contents.value]);
  const listed = rows.value?.rows ?? [];
  const row = place === null ? (listed[1] ?? listed[0]) : listed.find((one) => one.place === place);
  // The rows that were asked for before stay until the next ones come.
  const isNotHere = rows.state === "done" && row === undefined && (listed[0]?.place ?? start) === start;
  return (
    <>
      <h1>Try to change it</h1>
      <p>Believe nobody: change a record yourself, and see what the verification says. The page changes a copy in its memory and marks it. The records themselves stay untouched.</p>
      {thing.value?.live ? (
        <Empty command="aver export --html --out DIR">A live ledger is not copied into the page. Export it, and open the folder under <a href={link("open")}>Verify a file</a>.</Empty>
      ) : null}
      {!thing.value?.live && !["bundle", "chain"].includes(contents.value?.format ?? "") ? <Empty command="aver export --out DIR">Only the records of a bundle or of one chain can be changed here.</Empty> : null}
      {changed.value ? <p class="strip">This is a changed copy already. A further change comes on top of it.</p> : null}
      {!thing.value?.live && ["bundle", "chain"].includes(contents.value?.format ?? "") ? (
        <>
          <div class="filters">
            <label>Chain <select value={chain} onChange={(event) => { setChain(event.currentTarget.value); setPlace(null); }}>
              {chains.map((one) => <option key={one.id} value={one.id}>{visible(one.id)}</option>)}
            </select></label>
            <label>Place <input type="number" min={0} value={place ?? row?.place ?? 0} onChange={(event) => setPlace(Number(event.currentTarget.value))} /></label>
            <label>Record <select value={String(row?.place ?? "")} onChange={(event) => setPlace(Number(event.currentTarget.value))}>
              {listed.map((one) => <option key={one.place} value={String(one.place)}>{visible(`${one.sequence || one.place}: ${cutText(one.summary, 60)}`)}</option>)}
            </select></label>
          </div>
          {rows.state === "failed" ? <Problem words={rows.words} retry={rows.retry} /> : null}
          {rows.state === "loading" ? <Loading rows={3} words="Reading the chain" /> : null}
          {isNotHere ? <NotHere what="record" name={`${chain} ${place ?? 0}`} /> : null}
          {row ? <p class="beside"><Text>{`${row.kind} · ${row.summary}`}</Text> · <a href={link("c", chain, `p${row.place}`)}>open it</a></p> : null}
          {row ? <TryToChange chain={chain} place={row.place} sequence={row.sequence || String(row.place)} title="What to do with it" /> : null}
        </>
      ) : null}
    </>
  );
}

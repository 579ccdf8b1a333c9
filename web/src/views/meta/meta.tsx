/** The meta chain: how long each chain was when the ledger last recorded it, beside what is here. */

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { Empty, Loading, Problem, useAnswer } from "../../parts/states.tsx";
import { Hex, Text, Time, count, plural } from "../../parts/text.tsx";
import { Mark } from "../../parts/verdict.tsx";
import { VirtualRows, isPhone } from "../../parts/virtual.tsx";
import { link } from "../../route.ts";
import { connection, contents } from "../../state.ts";
import type { MetaEntry } from "../../worker/protocol.ts";

const ROW_HEIGHT = 40;
const PHONE_ROW_HEIGHT = 56;

function Standing({ entry }: { entry: MetaEntry }): JSX.Element {
  if (entry.here === null) return <><Mark name="failed" /> <strong class="bad">not here</strong></>;
  if (entry.here < entry.count) return <><Mark name="failed" /> <strong class="bad">{plural(entry.count - entry.here, "record")} missing</strong></>;
  return <><Mark name="empty" /> <span>{entry.here > entry.count ? `${count(entry.here - entry.count)} more since` : "as recorded"}</span></>;
}

function rank(entry: MetaEntry): number {
  return entry.here === null || entry.here < entry.count ? 0 : entry.here > entry.count ? 1 : 2;
}

export function MetaView(_: { parts: string[] }): JSX.Element {
  const answer = useAnswer(() => connection.ask({ type: "meta" }), [contents.value]);
  const entries = [...(answer.value?.entries ?? [])].sort((one, other) => rank(one) - rank(other) || (one.chain < other.chain ? -1 : 1));
  const heights = useMemo(() => Array<number>(entries.length).fill(isPhone() ? PHONE_ROW_HEIGHT : ROW_HEIGHT), [entries.length]);
  const recorded = new Set(entries.map((entry) => entry.chain));
  const others = (contents.value?.chains ?? []).filter((chain) => !recorded.has(chain.id) && chain.id !== "meta");
  return (
    <section class="fills">
      <h1>Meta</h1>
      <p>The ledger notes in its meta chain how long each chain is. A chain that is shorter than its note was cut; one that is longer has grown, which is normal.</p>
      {answer.state === "failed" ? <Problem words={answer.words} retry={answer.retry} /> : null}
      {answer.state === "loading" ? <Loading rows={8} words="Reading the meta chain" /> : null}
      {answer.value && !answer.value.records ? <Empty command="aver export --out DIR">There is no meta chain in it. A bundle of some chains only has none; this exports all of them, with meta.</Empty> : null}
      {answer.value?.records && !entries.length ? <Empty command="aver checkpoint">The meta chain records no chain yet. Closing a chain or a checkpoint adds an entry.</Empty> : null}
      {entries.length ? (
        <>
          <p class="beside">{plural(answer.value?.records ?? 0, "entry", "entries")}; the latest about each chain counts. {answer.value?.isCut ? "Only the first are listed. " : ""}<a href={link("chain", "meta")}>The chain itself</a>{others.length ? ` · ${plural(others.length, "chain")} not recorded yet` : ""}</p>
          <div class="meta-row heads" aria-hidden="true"><span>Standing</span><span>Chain</span><span class="number">Recorded</span><span class="number">Here</span><span class="hash">Head then</span><span class="when">Noted</span></div>
          <div class="grow">
            <VirtualRows heights={heights} label="Chains that meta knows" row={(at) => {
              const entry = entries[at] as MetaEntry;
              return (
                <div class="meta-row">
                  <span class="state"><Standing entry={entry} /></span>
                  <span class="what">{entry.here === null ? <Text>{entry.chain}</Text> : <a href={link("chain", entry.chain)}><Text>{entry.chain}</Text></a>}</span>
                  <span class="number">{count(entry.count)}</span>
                  <span class="number">{entry.here === null ? "–" : count(entry.here)}</span>
                  <span class="hash">{entry.hash ? <Hex>{entry.hash}</Hex> : null}</span>
                  <span class="when"><Time>{entry.at}</Time></span>
                </div>
              );
            }} />
          </div>
        </>
      ) : null}
      <p class="beside">These are the records' own words. The verdict judges them, and compares each head.</p>
    </section>
  );
}

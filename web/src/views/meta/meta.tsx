/** The meta chain: how long each chain was when the ledger last recorded it, beside what is here. */

import type { JSX } from "preact";
import { useMemo, useRef } from "preact/hooks";
import { useRowKeys } from "../../parts/rows.ts";
import { Empty, Loading, Problem, useAnswer } from "../../parts/states.tsx";
import { Hex, Text, Time, count, plural } from "../../parts/text.tsx";
import { Mark } from "../../parts/verdict.tsx";
import { VirtualRows, isPhone } from "../../parts/virtual.tsx";
import { link } from "../../route.ts";
import { connection, contents, findingsOf, judgementOf } from "../../state.ts";
import { DROP_KIND } from "../../verify/bundle/imports.ts";
import type { MetaEntry } from "../../worker/protocol.ts";

const ROW_HEIGHT = 40;
const PHONE_ROW_HEIGHT = 56;

/** How many records of a chain are here: counted by the verdict where it is another number than its index claims. */
function countHere({ chain, here }: MetaEntry): number | null {
  const cut = findingsOf(chain).find((one) => one.code === "TRUNCATED" && one.place.sequence !== null);
  return cut === undefined ? here : Number(cut.place.sequence);
}

/**
 * Why a chain is not as meta recorded it; empty where nothing says so. The verdict compares the head, too. A chain may be
 * absent with good reason: it was imported and dropped, or this is a part of the ledger. The verdict says whether it is.
 */
function wrongWords(entry: MetaEntry): string {
  const here = countHere(entry);
  const isFailed = findingsOf(entry.chain).some((one) => one.check === "meta" && one.status === "failed");
  const now = judgementOf(entry.chain);
  if (here === null) return isFailed || (now.state === "done" && now.verdict.status === "failed" && entry.kind !== DROP_KIND) ? "not here" : "";
  if (here < entry.count) return `${plural(entry.count - here, "record")} missing`;
  return isFailed ? "another head" : "";
}

function Standing({ entry }: { entry: MetaEntry }): JSX.Element {
  const wrong = wrongWords(entry);
  if (wrong) return <><Mark name="failed" /> <strong class="bad">{wrong}</strong></>;
  const now = judgementOf(entry.chain);
  const isDropped = entry.here === null && entry.kind === DROP_KIND;
  const isSigned = now.state === "done" && now.verdict.checks.some((check) => check.name === "signature" && check.status === "passed");
  const more = (entry.here ?? 0) - entry.count;
  const words = isDropped ? "dropped since" : entry.here === null ? "not here" : more > 0 ? `${count(more)} more since` : "as recorded";
  return <><Mark name={now.state !== "done" ? "not judged" : isSigned && (entry.here !== null || isDropped) ? "verified" : "qualified"} /> <span>{words}</span></>;
}

function rank(entry: MetaEntry): number {
  return wrongWords(entry) ? 0 : (entry.here ?? 0) > entry.count ? 1 : 2;
}

export function MetaView(_: { parts: string[] }): JSX.Element {
  const answer = useAnswer(() => connection.ask({ type: "meta" }), [contents.value]);
  const entries = [...(answer.value?.entries ?? [])].sort((one, other) => rank(one) - rank(other) || (one.chain < other.chain ? -1 : 1));
  const heights = useMemo(() => Array<number>(entries.length).fill(isPhone() ? PHONE_ROW_HEIGHT : ROW_HEIGHT), [entries.length]);
  const box = useRef<HTMLDivElement>(null);
  useRowKeys(box);
  const unrecorded = answer.value?.unrecorded ?? 0;
  return (
    <section class="fills">
      <h1>Meta</h1>
      <p>The ledger notes in its meta chain how long each chain is. A chain that is shorter than its note was cut; one that is longer has grown, which is normal.</p>
      {answer.state === "failed" ? <Problem words={answer.words} retry={answer.retry} /> : null}
      {answer.state === "loading" ? <Loading rows={8} words="Reading the meta chain" /> : null}
      {answer.value && !answer.value.records ? (
        contents.value?.format === "ledger"
          ? <Empty command="aver checkpoint">There is no meta chain in this ledger yet. Closing a chain or a checkpoint begins it.</Empty>
          : <Empty command="aver export --out DIR">There is no meta chain in it. A bundle of some chains only has none; this exports all of them, with meta.</Empty>
      ) : null}
      {answer.value?.records && !entries.length ? <Empty command="aver checkpoint">The meta chain records no chain yet. Closing a chain or a checkpoint adds an entry.</Empty> : null}
      {entries.length ? (
        <>
          <p class="beside">{plural(answer.value?.records ?? 0, "entry", "entries")}; the latest about each chain counts. {answer.value?.isCut ? "Only the first are listed. " : ""}<a href={link("chain", "meta")}>The chain itself</a>{unrecorded ? ` · ${plural(unrecorded, "chain")} not recorded yet` : ""}</p>
          <div class="meta-row heads" aria-hidden="true"><span>Standing</span><span>Chain</span><span class="number">Recorded</span><span class="number">Here</span><span class="hash">Head then</span><span class="when">Noted</span></div>
          <div class="grow" ref={box}>
            <VirtualRows heights={heights} label="Chains that meta knows; j and k move, Enter opens one" row={(at) => {
              const entry = entries[at] as MetaEntry;
              return (
                <div class="meta-row">
                  <span class="state"><Standing entry={entry} /></span>
                  <span class="what">{entry.here === null ? <Text>{entry.chain}</Text> : <a href={link("chain", entry.chain)} data-row tabIndex={-1}><Text>{entry.chain}</Text></a>}</span>
                  <span class="number">{count(entry.count)}</span>
                  <span class="number">{countHere(entry) === null ? "–" : count(countHere(entry) ?? 0)}</span>
                  <span class="hash">{entry.hash ? <Hex>{entry.hash}</Hex> : null}</span>
                  <span class="when"><Time>{entry.at}</Time></span>
                </div>
              );
            }} />
          </div>
        </>
      ) : null}
      <p class="beside">These are the words of the meta chain. The verdict has compared each with the records where there is a tick.</p>
    </section>
  );
}

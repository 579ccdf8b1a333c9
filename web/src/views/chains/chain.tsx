/**
 * One chain as a timeline. Rows have fixed heights, and only those near the window are in the page. A break cuts the line
 * at its place; the records after it keep their own marks.
 */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { JSX } from "preact";
import { Text, Time, plural } from "../../parts/text.tsx";
import { FindingCard, Mark } from "../../parts/verdict.tsx";
import { connection, contents, findingsOf, judgement, recordLink } from "../../state.ts";
import type { Finding } from "../../verify/verdict.ts";
import type { RecordRow } from "../../worker/protocol.ts";

const ROW_HEIGHT = 36;
const CARD_HEIGHT = 88;
const GAP_HEIGHT = 36;
/** Rows beyond the window that are kept in the page, so that scrolling shows no blank. */
const AROUND = 12;

type Entry =
  | { sort: "row"; row: RecordRow; findings: Finding[]; isAfterBreak: boolean; height: number }
  | { sort: "break"; finding: Finding; height: number }
  | { sort: "missing"; words: string; height: number };

function arrange(rows: RecordRow[], findings: Finding[]): Entry[] {
  const byPlace = new Map<string, Finding[]>();
  for (const finding of findings) {
    const key = String(finding.place.sequence);
    byPlace.set(key, [...(byPlace.get(key) ?? []), finding]);
  }
  const entries: Entry[] = [];
  let isAfterBreak = false;
  let should: bigint | null = null;
  let said: bigint | null = null;
  rows.forEach((row, at) => {
    // The judge names a record by the place where it should be, which differs from what a moved record says of itself.
    const place: bigint = should ?? BigInt(row.sequence || at);
    const here = byPlace.get(String(place)) ?? [];
    const says: bigint = row.sequence === "" ? place : BigInt(row.sequence);
    const isNext: boolean = said !== null && says === said + 1n;
    if (!isNext && says > (said ?? place - 1n) + 1n) {
      const first = (said ?? place - 1n) + 1n;
      const words = says - 1n === first ? `record ${first} is missing` : `records ${first} to ${says - 1n} are missing`;
      entries.push({ sort: "missing", words, height: GAP_HEIGHT });
    }
    // After a gap every record is in another place than the judge expects. Only the first of them is a break.
    const failed = here.find((one) => one.status === "failed" && !(one.code === "SEQUENCE_GAP" && isNext));
    if (failed !== undefined) {
      entries.push({ sort: "break", finding: failed, height: CARD_HEIGHT });
      isAfterBreak = true;
    }
    entries.push({ sort: "row", row, findings: failed === undefined ? [] : here, isAfterBreak, height: ROW_HEIGHT });
    byPlace.delete(String(place));
    should = place + 1n;
    said = says;
  });
  // Findings beyond the last record: the end was cut. Index, summary, head and meta may all say so; one card is enough.
  const rest = [...byPlace.values()].flat().filter((finding) => finding.status === "failed" && finding.place.sequence !== null);
  const codes = new Set(rest.map((finding) => finding.code));
  for (const code of codes) {
    const same = rest.filter((finding) => finding.code === code);
    const first = same[0] as Finding;
    const words = same.length > 1 ? `${first.words} (${same.length} places say so)` : first.words;
    entries.push({ sort: "break", finding: { ...first, words }, height: CARD_HEIGHT });
  }
  return entries;
}

const SORTS: Record<string, string> = { tool: "◆", chat: "❝", agent: "▲", system: "●", workflow: "▶", auth: "✓", vault: "▣", kill: "■" };

function Row({ entry, chain, isSelected }: { entry: Extract<Entry, { sort: "row" }>; chain: string; isSelected: boolean }): JSX.Element {
  const { row, findings } = entry;
  const isFailed = findings.some((one) => one.status === "failed");
  const word = row.problem ? "cannot be read" : row.status && row.status !== "success" ? row.status : "";
  return (
    <a class={`row${entry.isAfterBreak ? " after" : ""}${isFailed ? " broken" : ""}${isSelected ? " selected" : ""}`} href={recordLink(chain, row)} tabIndex={-1}>
      <span class="time"><Time short>{row.at}</Time></span>
      <span class="node" aria-hidden="true" />
      <span class="sequence figure">{row.sequence || row.place}</span>
      <span class="sort" title={row.type} aria-hidden="true">{SORTS[row.type] ?? "○"}</span>
      <span class="kind">{row.kind}</span>
      <span class="summary">{row.tool ? <strong><Text>{row.tool}</Text></strong> : null} <Text>{row.problem || row.summary}</Text></span>
      <span class={word ? `word ${row.status}` : ""}>{word}</span>
      <span class="authority">{row.authority}</span>
      <span class="tokens figure">{row.tokens}</span>
    </a>
  );
}

export function ChainView({ parts: [chain = "", wanted] }: { parts: string[] }): JSX.Element {
  const [rows, setRows] = useState<RecordRow[] | null>(null);
  const [isCut, setCut] = useState(false);
  const [words, setWords] = useState("");
  const [top, setTop] = useState(0);
  const [selected, setSelected] = useState(-1);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    setRows(null);
    setWords("");
    connection.ask({ type: "rows", chain, start: 0, stop: 50_000 }).then(
      (found) => { setRows(found.rows); setCut(found.isCut); },
      (error: Error) => setWords(error.message),
    );
  }, [chain, contents.value]);
  const findings = findingsOf(chain);
  const entries = useMemo(() => (rows === null ? [] : arrange(rows, findings)), [rows, judgement.value]);
  const tops = useMemo(() => {
    const sums = new Float64Array(entries.length + 1);
    entries.forEach((entry, at) => { sums[at + 1] = (sums[at] as number) + entry.height; });
    return sums;
  }, [entries]);
  const total = tops[entries.length] ?? 0;
  useEffect(() => {
    const sequence = wanted?.startsWith("at-") ? wanted.slice(3) : null;
    const at = sequence === null ? -1 : entries.findIndex((entry) => (entry.sort === "row" ? entry.row.sequence === sequence : entry.sort === "break" && String(entry.finding.place.sequence) === sequence));
    if (at >= 0 && box.current) {
      setSelected(at);
      box.current.scrollTop = Math.max(0, (tops[at] as number) - 120);
    }
  }, [wanted, entries]);
  const listed = contents.value?.chains.find((one) => one.id === chain);
  const height = box.current?.clientHeight ?? 800;
  let first = 0;
  for (let low = 0, high = entries.length; low < high; ) {
    const middle = (low + high) >> 1;
    if ((tops[middle + 1] as number) < top) { first = middle + 1; low = middle + 1; } else { high = middle; }
  }
  const from = Math.max(0, first - AROUND);
  let to = first;
  while (to < entries.length && (tops[to] as number) < top + height) to++;
  to = Math.min(entries.length, to + AROUND);
  const move = (step: number) => {
    let at = selected;
    do at += step; while (at >= 0 && at < entries.length && entries[at]?.sort !== "row");
    if (at < 0 || at >= entries.length || !box.current) return;
    setSelected(at);
    const y = tops[at] as number;
    if (y < box.current.scrollTop) box.current.scrollTop = y;
    else if (y + ROW_HEIGHT > box.current.scrollTop + box.current.clientHeight) box.current.scrollTop = y + ROW_HEIGHT - box.current.clientHeight;
  };
  const goToBreak = () => {
    const at = entries.findIndex((entry, index) => index > selected && entry.sort === "break");
    const found = at >= 0 ? at : entries.findIndex((entry) => entry.sort === "break");
    if (found >= 0 && box.current) { setSelected(found); box.current.scrollTop = Math.max(0, (tops[found] as number) - 60); }
  };
  return (
    <section class="chain-view">
      <header>
        <h1><Text>{listed?.title ?? chain}</Text></h1>
        <p class="beside"><code><Text>{chain}</Text></code> {rows === null ? "" : plural(rows.length, "record")}
          {isCut ? " listed; the chain is longer, and was verified whole" : ""}{" "}
          {findings.some((one) => one.status === "failed") ? <button type="button" class="small" onClick={goToBreak}>Next break (b)</button> : null}
        </p>
        {findings.filter((one) => one.place.sequence === null).slice(0, 4).map((finding, at) => <FindingCard key={at} finding={finding} />)}
      </header>
      {words ? <div class="finding failed" role="alert"><p><Text>{words}</Text></p></div> : null}
      {rows !== null && !rows.length && !words ? <p class="strip">There is no record to list in it.</p> : null}
      <div
        ref={box}
        class="timeline"
        role="region"
        aria-label="Records; j and k move, Enter opens one"
        aria-busy={rows === null}
        tabIndex={0}
        onScroll={(event) => setTop(event.currentTarget.scrollTop)}
        onKeyDown={(event) => {
          if (event.ctrlKey || event.metaKey || event.altKey) return;
          const entry = entries[selected];
          if (event.key === "j" || event.key === "ArrowDown") move(1);
          else if (event.key === "k" || event.key === "ArrowUp") move(-1);
          else if (event.key === "b") goToBreak();
          else if (event.key === "Enter" && entry?.sort === "row") location.hash = recordLink(chain, entry.row);
          else return;
          event.preventDefault();
        }}
      >
        {rows === null && !words ? Array.from({ length: 12 }, (_, at) => <div key={at} class="row loading" />) : null}
        <div class="space" role="list" ref={(element) => { if (element) element.style.height = `${total}px`; }}>
          {entries.slice(from, to).map((entry, at) => {
            const index = from + at;
            return (
              <div class="entry" role="listitem" aria-posinset={index + 1} aria-setsize={entries.length} key={index} ref={(element) => { if (element) { element.style.top = `${tops[index]}px`; element.style.height = `${entry.height}px`; } }}>
                {entry.sort === "row" ? <Row entry={entry} chain={chain} isSelected={index === selected} /> : null}
                {entry.sort === "break" ? <div class={`break${index === selected ? " selected" : ""}`}><Mark name="failed" /><FindingCard finding={entry.finding} /></div> : null}
                {entry.sort === "missing" ? <div class="missing">{entry.words}</div> : null}
              </div>
            );
          })}
        </div>
      </div>
    </section>
  );
}

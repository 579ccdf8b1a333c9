/**
 * One chain, record by record. Only the rows near the window are in the page, and a ledger is asked only for those.
 *
 * A break cuts the line at its place, with its code and advice. The records after it keep their own marks: intact in
 * themselves, no longer tied to what came before. Missing records are one row that counts them.
 */

import type { JSX } from "preact";
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { BreakCard, breakHeight } from "../../parts/break.tsx";
import { useGridKeys, useKeys } from "../../parts/keyboard.ts";
import { Empty, NotHere, Problem } from "../../parts/states.tsx";
import { Text, Time, count, plural, visible } from "../../parts/text.tsx";
import { Band, FindingCard } from "../../parts/verdict.tsx";
import { type VirtualHandle, VirtualRows, isPhone } from "../../parts/virtual.tsx";
import { link, recordLink, wayUp } from "../../route.ts";
import { connection, contents, findingsOf, isOfActions, judgement, judgementOf, unjudgedOf, verifyChain } from "../../state.ts";
import type { Finding } from "../../verify/verdict.ts";
import type { RecordRow } from "../../worker/protocol.ts";
import { ChainMark } from "./mark.tsx";
import { type Entry, arrange, entryAt, findExtra, indexOfPlace, rowCount } from "./entries.ts";
import { lookUp } from "../../sessions/values.ts";

const ROW_HEIGHT = 36;
const PHONE_ROW_HEIGHT = 56;
/** The least height of a card, and the pixels of the window beside its words. */
const CARD_HEIGHT = 124;
const BESIDE = 420;
const PHONE_BESIDE = 90;
/** Rows that stand for those that are not here yet. */
const PLACEHOLDERS = 12;
/** Rows that are asked for at once: some more than fit into a window. */
const PAGE = 100;
/** Rows of a file that are taken at once. More would keep the page's thread busy. */
const FILE_PAGE = 2_000;

const SORTS = { tool: "◆", chat: "❝", agent: "▲", system: "●", workflow: "▶", auth: "✓", vault: "▣", kill: "■" };

/** Who allowed it, in a word; nothing where nobody is known to have. */
const AUTHORITIES = { human_approved: "a person", policy: "a rule", autonomous: "the agent", escalated: "escalated", unknown: "" };

/** By chain, the row that was selected when the reader left it. */
const lastSelected = new Map<string, number>();

function Row({ row, chain, isAfterBreak, isBroken, isSelected, place }: { row: RecordRow | undefined; chain: string; isAfterBreak: boolean; isBroken: boolean; isSelected: boolean; place: number }): JSX.Element {
  const classes = `row${isAfterBreak ? " after" : ""}${isBroken ? " broken" : ""}${isSelected ? " selected" : ""}`;
  if (row === undefined) return <div class={`${classes} loading`}><span class="time" /><span class="node" /><span class="sequence figure">{place}</span></div>;
  const word = row.problem ? "cannot be read" : row.status && row.status !== "success" ? (row.status === "blocked" ? "denied" : row.status) : "";
  return (
    <a class={classes} href={recordLink(chain, row)} tabIndex={-1}>
      <span class="time"><Time short>{row.at}</Time></span>
      <span class="node" aria-hidden="true" />
      <span class="sequence figure">{row.sequence || row.place}</span>
      <span class="sort" title={visible(row.type)} aria-hidden="true">{lookUp(SORTS, row.type) ?? "○"}</span>
      <bdi class="kind">{visible(row.kind)}</bdi>
      <span class="summary">{row.tool && !row.summary.startsWith(row.tool) ? <strong><Text>{row.tool}</Text></strong> : null} <Text>{row.problem || row.summary}</Text></span>
      <bdi class={word ? `word ${row.status}` : ""}>{visible(word)}</bdi>
      <bdi class="authority">{lookUp(AUTHORITIES, row.authority) ?? visible(row.authority)}</bdi>
      <bdi class="tokens figure">{visible(row.tokens)}</bdi>
    </a>
  );
}

/** Findings about the chain as a whole: wrong claims about it, mostly. All are in a box that scrolls, so that the records keep their room. */
function WholeFindings({ findings }: { findings: Finding[] }): JSX.Element | null {
  if (!findings.length) return null;
  return <div class="of-whole" tabIndex={0} role="region" aria-label={`${plural(findings.length, "finding")} about the chain as a whole`}>{findings.map((finding, at) => <FindingCard key={at} finding={finding} />)}</div>;
}

/** A chain that is here, or the word that it is not: an empty list without a failure would say something else. */
export function ChainView({ parts }: { parts: string[] }): JSX.Element {
  const [chain = ""] = parts;
  if (contents.value?.chains.some((one) => one.id === chain)) return <ListedChain parts={parts} />;
  return <><h1>Chain</h1><NotHere what="chain" name={chain} /><p><a href={link("chains")}>All chains</a></p></>;
}

function ListedChain({ parts: [chain = "", wanted = ""] }: { parts: string[] }): JSX.Element {
  const listed = contents.value?.chains.find((one) => one.id === chain);
  const isLive = contents.value?.format === "ledger";
  const [rows, setRows] = useState<ReadonlyMap<number, RecordRow>>(new Map());
  const [total, setTotal] = useState<number | null>(isLive ? (listed?.length ?? 0) : null);
  const [isCut, setCut] = useState(false);
  const [words, setWords] = useState("");
  const [selected, setSelected] = useState(wanted ? -1 : (lastSelected.get(chain) ?? -1));
  const list = useRef<VirtualHandle>(null);
  const asked = useRef(new Set<number>());
  const [hasTallRows] = useState(isPhone);

  const [isReading, setReading] = useState(!isLive);

  /** Read rows. Returns whether more are to come. */
  const fetchRows = async (start: number, stop: number): Promise<boolean> => {
    try {
      const found = await connection.ask({ type: "rows", chain, start, stop });
      setRows((before) => {
        const next = new Map(before);
        for (const row of found.rows) next.set(row.place, row);
        return next;
      });
      setTotal(found.total);
      setCut(found.isCut);
      setWords("");
      return found.isMore;
    } catch (error) {
      setWords((error as Error).message);
      return false;
    }
  };
  /** Read all rows of a file, page by page. What is missing shows only when all are there. */
  const readFile = async (isCurrent: () => boolean): Promise<void> => {
    setReading(true);
    for (let start = 0; isCurrent() && (await fetchRows(start, start + FILE_PAGE)); ) start += FILE_PAGE;
    if (isCurrent()) setReading(false);
  };
  const fetchPages = (start: number, stop: number) => {
    if (!isLive) return;
    for (let page = Math.floor(start / PAGE); page * PAGE < stop; page++) {
      if (asked.current.has(page)) continue;
      asked.current.add(page);
      void fetchRows(page * PAGE, (page + 1) * PAGE);
    }
  };
  const listedBefore = useRef(contents.value);
  useEffect(() => {
    let isCurrent = true;
    if (!isLive) void readFile(() => isCurrent);
    else if (contents.value !== listedBefore.current) {
      // A chain that has grown: the last page has more now.
      listedBefore.current = contents.value;
      asked.current.clear();
      setTotal(listed?.length ?? 0);
      fetchPages(Math.max(0, (listed?.length ?? 1) - 1), listed?.length ?? 1);
    }
    return () => { isCurrent = false; };
  }, [chain, contents.value]);
  const now = judgementOf(chain);
  const isUnjudged = unjudgedOf([chain]).length > 0;
  // The first rows go first: a verification would keep the server busy meanwhile.
  const hasAnswer = rows.size > 0 || words !== "" || total === 0;
  useEffect(() => { if (isUnjudged && hasAnswer) void verifyChain(chain); }, [chain, judgement.value.state, isUnjudged, hasAnswer]);
  const findings = findingsOf(chain);
  // Not with each report of progress: a long chain takes a while to arrange.
  const judged = now.state === "done" ? now.verdict : null;
  const extras = useMemo(() => (total === null ? [] : arrange(rows, total, findings, isLive || isReading)), [isLive || isReading ? null : rows, total, judged, isReading]);
  const length = rowCount(total ?? 0, extras);
  const entry = (index: number): Entry => entryAt(index, extras);
  const heights = useMemo(() => {
    const all = Array<number>(total === null ? PLACEHOLDERS : length).fill(hasTallRows ? PHONE_ROW_HEIGHT : ROW_HEIGHT);
    for (const extra of extras) all[extra.index] = extra.sort === "break" ? Math.max(CARD_HEIGHT, breakHeight(extra.finding, innerWidth - (hasTallRows ? PHONE_BESIDE : BESIDE))) : ROW_HEIGHT;
    return all;
  }, [extras, length, total === null]);
  const select = (index: number) => {
    setSelected(index);
    lastSelected.set(chain, index);
    list.current?.scrollTo(index);
  };
  useEffect(() => {
    if (!wanted && selected >= 0 && length) list.current?.scrollTo(selected);
  }, [total === null]);
  useEffect(() => {
    if (!wanted.startsWith("at-") || !length) return;
    const place = Number(wanted.slice(3));
    const found = findExtra(extras, place) ?? [...rows.values()].find((row) => row.sequence === wanted.slice(3))?.place ?? place;
    const index = typeof found === "number" ? indexOfPlace(Math.min(found, (total ?? 1) - 1), extras) : found.index;
    select(index);
  }, [wanted, extras.length, total]);
  const move = (step: number) => {
    let index = selected;
    do index += step; while (index >= 0 && index < length && entry(index).sort !== "row");
    if (index >= 0 && index < length) select(index);
  };
  const goToBreak = () => {
    const breaks = extras.filter((extra) => extra.sort !== "end");
    const next = breaks.find((extra) => extra.index > selected) ?? breaks[0];
    if (next) select(next.index);
  };
  useGridKeys({ j: () => move(1), ArrowDown: () => move(1), k: () => move(-1), ArrowUp: () => move(-1), b: goToBreak });
  useKeys({
    Enter: () => {
      const found = selected >= 0 ? entry(selected) : null;
      const row = found?.sort === "row" ? rows.get(found.place) : undefined;
      if (row) location.hash = recordLink(chain, row);
    },
    Escape: () => { location.hash = wayUp(); },
  });
  const broken = useMemo(() => new Set(extras.flatMap((extra) => (extra.sort === "break" && extra.isAtRow ? [extra.before] : []))), [extras]);
  const firstBreak = extras.find((extra) => extra.sort !== "end")?.before ?? Infinity;
  // The same function until a row looks different: a report of progress draws none of them anew.
  const drawRow = useCallback((index: number) => {
    if (total === null) return <div class="row loading" />;
    const found = entryAt(index, extras);
    if (found.sort === "row") {
      return <Row row={rows.get(found.place)} place={found.place} chain={chain} isAfterBreak={found.place >= firstBreak} isBroken={broken.has(found.place)} isSelected={index === selected} />;
    }
    if (found.sort === "missing") return <div class={`missing${index === selected ? " selected" : ""}`}>{found.words}</div>;
    if (found.sort === "end") return <div class="cap">{found.words}</div>;
    return (
      <div class={`break break-entry${index === selected ? " selected" : ""}`}>
        <BreakCard chain={chain} finding={found.finding} place={found.isAtRow ? found.before : null} />
      </div>
    );
  }, [rows, extras, total === null, selected, chain]);
  return (
    <section class="chain-view">
      <header>
        <h1><Text>{listed?.title ?? chain}</Text></h1>
        <p class="beside">
          {listed && listed.title !== chain ? <><code><Text>{chain}</Text></code> </> : null}{total === null ? "" : plural(total, "record")}
          {isCut ? " listed; the chain is longer, and was verified whole" : ""}{" "}
          {now.state === "done" && listed ? <span class="judged"><ChainMark chain={chain} isCounted /></span> : null}{" "}
          {extras.some((extra) => extra.sort !== "end") ? <button type="button" class="small" onClick={goToBreak}>Next break (b)</button> : null}{" "}
          {isOfActions() || contents.value?.format === "proof" ? null : <a href={link("s", chain)}>as a session</a>}
        </p>
        {now.state === "working" || now.state === "not judged" ? <Band now={now} again={() => verifyChain(chain)} {...(judgement.value.state === "working" ? {} : { total: total ?? 0 })} /> : null}
        {extras.some((extra) => extra.sort !== "end") ? <p class="beside tight">Records after a break have a dashed line: no longer tied to what came before. Each keeps its own mark.</p> : null}
        <WholeFindings findings={findings.filter((one) => one.place.sequence === null)} />
      </header>
      {words ? <Problem words={words} retry={() => { asked.current.clear(); if (isLive) fetchPages(0, PAGE); else void readFile(() => true); }} /> : null}
      {total === 0 && !words && !length ? <Empty command="aver log">There is no record in it.</Empty> : null}
      <VirtualRows
        heights={heights}
        label={`Records of ${chain}; j and k move, Enter opens one`}
        isBusy={total === null}
        selected={selected}
        handle={(handle) => { list.current = handle; }}
        onRange={(start, stop) => {
          if (total === null || stop <= start) return;
          const places = [start, stop - 1].map((index) => entry(index)).map((found) => (found.sort === "row" ? found.place : found.before));
          fetchPages(places[0] ?? 0, (places[1] ?? 0) + 1);
        }}
        row={drawRow}
      />
      <p class="beside">{total === null ? "Reading …" : `${count(total)} rows; j and k move, Enter opens, b goes to the next break.`}</p>
    </section>
  );
}

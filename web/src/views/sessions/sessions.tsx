/** The sessions of coding agents: one row each. Figures are counted from the records. */

import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { formatMoney } from "../../sessions/labels.ts";
import { useRowKeys } from "../../parts/rows.ts";
import { Empty, Loading, Problem } from "../../parts/states.tsx";
import { Text, Time, count, plural, readTime, visible } from "../../parts/text.tsx";
import { link, searchLink } from "../../route.ts";
import { SessionMark } from "../chains/mark.tsx";
import { SESSIONS_MAX } from "../../source/index_answers.ts";
import { type SessionRow, areCut, indexed, isUncounted, readSessionsAgain, sessionRows, sessionsProblem, useSessions } from "./session_rows.ts";

/** Sessions that are shown at once. */
const SHOWN_MAX = 50;

type Column = { name: string; words: string; value: (row: SessionRow) => number | string; show: (row: SessionRow) => JSX.Element | string; isNumber?: boolean };

const figure = (value: number | null | undefined) => (value === undefined || value === null ? "–" : count(value));
const COLUMNS: Column[] = [
  { name: "start", words: "Start", value: (row) => row.figures?.started ?? row.claimed, show: (row) => <Time brief>{row.figures?.started ?? ""}</Time> },
  { name: "actions", words: "Actions", isNumber: true, value: (row) => row.figures?.actions ?? -1, show: (row) => figure(row.figures?.actions) },
  { name: "edits", words: "Edits", isNumber: true, value: (row) => row.figures?.edits ?? -1, show: (row) => figure(row.figures?.edits) },
  { name: "tokens", words: "Tokens", isNumber: true, value: (row) => row.figures?.tokens ?? -1, show: (row) => figure(row.figures?.tokens) },
  { name: "cost", words: "Cost", isNumber: true, value: (row) => row.figures?.costUsd ?? -1, show: (row) => (row.figures?.costUsd == null ? "–" : formatMoney(row.figures.costUsd)) },
  { name: "denials", words: "Denials", isNumber: true, value: (row) => row.figures?.denials ?? -1, show: (row) => (row.figures?.denials ? <strong class="bad">{count(row.figures.denials)}</strong> : figure(row.figures?.denials)) },
  { name: "risk", words: "Risk", isNumber: true, value: (row) => row.figures?.risk ?? -1, show: (row) => (row.figures?.risk == null ? "–" : row.figures.risk.toFixed(2)) },
];

/** What the columns say that a phone has no room for. */
function PhoneFacts({ row: { tool, figures } }: { row: SessionRow }): JSX.Element {
  return (
    <p class="beside tight on-phone">
      <Text>{tool}</Text>{figures?.started ? <> · <Time brief>{figures.started}</Time></> : null}{figures ? <> · {plural(figures.actions, "action")}</> : null}
      {figures?.denials ? <> · <strong class="bad">{plural(figures.denials, "denial")}</strong></> : null}
    </p>
  );
}

export function SessionTable({ rows, sorted, onSort }: { rows: SessionRow[]; sorted?: string; onSort?: (name: string) => void }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  useRowKeys(box);
  const head = (name: string, words: string, isNumber = false) => (
    <th scope="col" class={`${isNumber ? "number " : ""}at-${name}`} aria-sort={sorted?.replace("-", "") === name ? (sorted.startsWith("-") ? "descending" : "ascending") : undefined}>
      {onSort ? <button type="button" class="sort-by" onClick={() => onSort(name)}>{words}<span aria-hidden="true">{sorted === name ? " ↑" : sorted === `-${name}` ? " ↓" : ""}</span></button> : words}
    </th>
  );
  return (
    <div class="scroll" ref={box} tabIndex={0} role="region" aria-label="Sessions">
      <table class="chains sessions">
        <thead><tr><th scope="col">State</th>{head("title", "Title")}<th scope="col" class="at-tool">Tool</th>{COLUMNS.map(({ name, words, isNumber = false }) => head(name, words, isNumber))}</tr></thead>
        <tbody>
          {rows.map((row, at) => (
            <tr key={row.chain}>
              <td class="state"><SessionMark chains={row.chains} /></td>
              <td class="title"><a data-row tabIndex={at === 0 ? 0 : -1} href={link("s", row.chain)}><Text>{row.figures?.title || row.session}</Text></a><PhoneFacts row={row} /></td>
              <td class="at-tool"><Text>{row.tool}</Text></td>
              {COLUMNS.map(({ name, show, isNumber }) => <td key={name} class={`${isNumber ? "number " : ""}at-${name}`}>{row.figures !== null ? show(row) : isUncounted(row.chain) ? "…" : "–"}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Where the figures are from. Those of an index are claims. */
export function FiguresNote(): JSX.Element {
  const { complete = true, records = 0, of_records = 0 } = indexed.value ?? {};
  return <p class="beside">{indexed.value ? `The figures are from the server's index, which proves nothing; a session's own page counts them anew from its records.${complete ? "" : ` The index has read ${count(records)} of ${count(of_records)} records.`}` : "The figures are counted from the records, as aver sessions counts them."} A dash: the records do not say.</p>;
}

/** All rows in order. Where a figure decides, those that are not counted come last. */
function order(rows: SessionRow[], sorted: string): SessionRow[] {
  const isDown = sorted.startsWith("-");
  const name = sorted.replace("-", "");
  const value = name === "title" ? (row: SessionRow) => (row.figures?.title ?? "").toLowerCase() : COLUMNS.find((column) => column.name === name)?.value;
  if (value === undefined) return rows;
  const isUnknown = (row: SessionRow) => row.figures === null && (name !== "start" || !row.claimed);
  return [...rows].sort((one, other) => {
    const [a, b] = [value(one), value(other)];
    return Number(isUnknown(one)) - Number(isUnknown(other)) || (a < b ? -1 : a > b ? 1 : 0) * (isDown ? -1 : 1);
  });
}

export function SessionsView(_: { parts: string[] }): JSX.Element {
  const [wanted, setWanted] = useState("");
  const [tool, setTool] = useState("");
  const [since, setSince] = useState("");
  const [until, setUntil] = useState("");
  const [sorted, setSorted] = useState("-start");
  const [isByWorkspace, setByWorkspace] = useState(false);
  const [shown, setShown] = useState(SHOWN_MAX);
  const words = wanted.trim();
  const all = sessionRows.value ?? [];
  const tools = [...new Set(all.map(({ tool: name }) => name))].sort();
  const ofTool = all.filter(({ tool: name }) => !tool || name === tool);
  const found = ofTool.filter(({ session, figures }) => {
    // The day that the list shows: in the reader's zone.
    const started = readTime(figures?.started ?? "").slice(0, 10);
    return (
      (!since || started >= since) &&
      (!until || (started && started <= until)) &&
      `${session} ${figures?.title ?? ""} ${figures?.workspace ?? ""}`.toLowerCase().includes(words.toLowerCase())
    );
  });
  const listed = order(found, sorted).slice(0, shown);
  // What is shown is counted first. All are, where a figure decides what is shown, or in which order.
  const needsAll = Boolean(wanted || since || until || sorted.replace("-", "") !== "start" || ofTool.some(({ claimed }) => !claimed));
  const counting = [...listed, ...(needsAll ? ofTool : [])].map(({ chain }) => chain);
  useSessions(() => counting);
  const left = needsAll ? ofTool.filter(({ chain }) => isUncounted(chain)).length : 0;
  const groups = new Map<string, SessionRow[]>();
  if (isByWorkspace) for (const row of listed) groups.set(row.figures?.workspace || "no workspace named", [...(groups.get(row.figures?.workspace || "no workspace named") ?? []), row]);
  const onSort = (name: string) => setSorted(sorted === `-${name}` ? name : `-${name}`);
  return (
    <>
      <h1>Sessions</h1>
      <form class="filters" onSubmit={(event) => { event.preventDefault(); if (words) location.hash = searchLink(words); }}>
        <label>Filter <input type="search" value={wanted} onInput={(event) => setWanted(event.currentTarget.value)} placeholder="title, id or workspace" /></label>
        <label>Tool <select value={tool} onChange={(event) => setTool(event.currentTarget.value)}>
          <option value="">all</option>
          {tools.map((name) => <option key={name} value={name}>{visible(name)}</option>)}
        </select></label>
        <label>From <input type="date" value={since} onInput={(event) => setSince(event.currentTarget.value)} /></label>
        <label>to <input type="date" value={until} onInput={(event) => setUntil(event.currentTarget.value)} /></label>
        <label class="choice"><input type="checkbox" checked={isByWorkspace} onChange={(event) => setByWorkspace(event.currentTarget.checked)} /> by workspace</label>
        <span class="beside" role="status" aria-busy={left > 0}>{sessionRows.value === null ? "" : `${count(found.length)} of ${count(all.length)}${left ? ` so far: counting, ${plural(left, "session")} to go` : ""}`}</span>
        {words ? <button type="submit" class="small">Search all text for it (Enter)</button> : null}
      </form>
      {sessionsProblem.value ? <Problem words={sessionsProblem.value} retry={readSessionsAgain} /> : null}
      {sessionRows.value === null && !sessionsProblem.value ? <Loading rows={10} words="Reading the sessions" /> : null}
      {sessionRows.value !== null && !all.length ? <Empty command="aver ingest --all">There is no session of a coding agent in it. This records those that are on your machine; <code>aver install</code> records the next ones as they happen.</Empty> : null}
      {all.length && !found.length ? left ? <Loading rows={10} words="Counting the sessions" /> : <Empty>No session fits this filter.{words ? <> It looks at titles, ids and workspaces. <a href={searchLink(words)}>Search the text of all records for “<Text>{words}</Text>”</a> (Enter).</> : null}</Empty> : null}
      {areCut.value ? <p class="strip">Only the {count(SESSIONS_MAX)} latest sessions are listed. <code>aver sessions</code> lists all.</p> : null}
      {listed.length && !isByWorkspace ? <SessionTable rows={listed} sorted={sorted} onSort={onSort} /> : null}
      {[...groups].map(([workspace, rows]) => (
        <section key={workspace}><h2><Text>{workspace}</Text></h2><SessionTable rows={rows} sorted={sorted} onSort={onSort} /></section>
      ))}
      {found.length > shown ? <p><button type="button" onClick={() => setShown(shown + SHOWN_MAX)}>Show {SHOWN_MAX} more</button></p> : null}
      {all.length ? <FiguresNote /> : null}
    </>
  );
}

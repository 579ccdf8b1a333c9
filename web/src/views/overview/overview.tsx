/** The first screen: is it intact, does something wait for me, what happened last, what was refused. */

import type { JSX } from "preact";
import { useKeys } from "../../parts/keyboard.ts";
import { Empty, Loading, Problem, useAnswer } from "../../parts/states.tsx";
import { Text, count, plural } from "../../parts/text.tsx";
import { VerdictBand, placeLink } from "../../parts/verdict.tsx";
import { link } from "../../route.ts";
import { askActivity, askHits } from "../../source/index_answers.ts";
import { formatMoney } from "../../sessions/labels.ts";
import { changed, connection, contents, news, server, totalRecords, verdict, waitForTurn } from "../../state.ts";
import { AUDIT_KIND } from "../../worker/activity.ts";
import type { DayActivity, RowPlace } from "../../worker/protocol.ts";
import { CaseLine } from "../approvals/case_line.tsx";
import { cases, casesProblem, stateOf } from "../approvals/cases.ts";
import { readRow } from "../search/find.ts";
import { FiguresNote, SessionTable } from "../sessions/sessions.tsx";
import { type SessionRow, readSessionsAgain, sessionRows, sessionsProblem, useSessions } from "../sessions/session_rows.ts";
import { DayChart } from "./chart.tsx";
import { Glance } from "./glance.tsx";
import { Refused } from "./refused.tsx";

/** Sessions on the first screen. */
const LATEST = 6;
/** Deeds that are asked for to find the newest: the index tells records of one second apart by their chains alone. */
const NEWEST = 16;
/** Finds deeds of any sort in the server's index. */
const DEEDS = ["call", "turn", "gate.decision", "gate.outcome", "approval", "action", "act", "protocol", "audit", "delegation"].map((kind) => `kind:${kind}`).join(" ");
/** Failed audits that are asked for. */
const AUDITS = 20;
/** Sessions of a ledger that are counted to find the latest. */
const COUNTED_SESSIONS = 200;
/** Records up to which the page counts the activity by reading all of them. */
const COUNTED_MAX = 50_000;

function Waiting(): JSX.Element | null {
  const open = (cases.value ?? []).filter((one) => stateOf(one) === "pending");
  if (!open.length) return null;
  return (
    <section class="waiting">
      <h2>{plural(open.length, "approval")} {open.length === 1 ? "waits" : "wait"} for an answer</h2>
      <div class="cases">{open.slice(0, 3).map((one) => <CaseLine key={one.id} one={one} isFirst />)}</div>
      {open.length > 3 ? <p><a href={link("approvals")}>All of them</a></p> : null}
    </section>
  );
}

/** Days that the charts have at most. */
const DAYS = 60;
/** Days that they have at least: a single bar says little. */
const DAYS_MIN = 14;
const DAY_MS = 86_400_000;

/** The days from the first to the last, also those on which nothing happened. A first day before a long pause is left out. */
function fillDays(all: DayActivity[]): DayActivity[] {
  const last = all.at(-1);
  if (last === undefined) return [];
  const found = all.filter(({ day }) => Date.parse(last.day) - Date.parse(day) < DAYS * DAY_MS);
  const byDay = new Map(found.map((day) => [day.day, day]));
  const days: typeof found = [];
  const end = Date.parse(`${last.day}T00:00:00Z`);
  for (let at = Math.min(Date.parse(`${found[0]?.day}T00:00:00Z`), end - (DAYS_MIN - 1) * DAY_MS); at <= end; at += DAY_MS) {
    const day = new Date(at).toISOString().slice(0, 10);
    days.push(byDay.get(day) ?? { day, records: 0, success: 0, failure: 0, blocked: 0, tokens: 0, cost: 0 });
  }
  return days;
}

function Charts({ days, from }: { days: DayActivity[]; from: string }): JSX.Element | null {
  if (!days.length) return null;
  const names = days.map((day) => day.day);
  const of = (name: "records" | "success" | "failure" | "blocked" | "tokens" | "cost") => days.map((day) => day[name]);
  return (
    <section>
      <h2>Activity <span class="soft">since {names[0]}</span></h2>
      <div class="charts">
        <DayChart title="Records" days={names} show={count} series={[{ name: "records", colour: "ink", values: of("records") }]} />
        <DayChart title="Outcomes" days={names} show={count} series={[{ name: "success", colour: "good", values: of("success") }, { name: "failure", colour: "warn", values: of("failure") }, { name: "denied", colour: "bad", values: of("blocked") }]} />
        <DayChart title="Denials" days={names} show={count} series={[{ name: "denied", colour: "bad", values: of("blocked") }]} />
        <DayChart title="Tokens" days={names} show={count} series={[{ name: "tokens", colour: "ink", values: of("tokens") }]} />
        <DayChart title="Cost" days={names} show={formatMoney} series={[{ name: "cost", colour: "ink", values: of("cost") }]} />
      </div>
      <p class="beside">Days are those of UTC. {from}</p>
    </section>
  );
}

interface Activity {
  days: DayActivity[];
  denials: RowPlace[];
  /** The audits of traces that failed. */
  audits: RowPlace[];
  /** The newest deed of any chain. */
  last: RowPlace | null;
  /** Where the figures are from, in words. */
  from: string;
  /** Whether they are claims of the server's index. */
  isByIndex: boolean;
}

/** The records of hits. One that cannot be read is left out. */
async function readRows(hits: { chain: string; sequence: number }[]): Promise<RowPlace[]> {
  const rows = await Promise.all(hits.map(async ({ chain, sequence }) => ({ chain, row: await readRow(chain, sequence) })));
  return rows.flatMap(({ chain, row }) => (row === null ? [] : [{ chain, row }]));
}

/** What happened and what was refused: by the server's index, or else counted from the records; null for too many. */
async function readActivity(): Promise<Activity | null> {
  const api = server.value?.api;
  const answer = api === undefined ? null : await askActivity(api);
  if (api === undefined || answer === null) {
    if (totalRecords.value > COUNTED_MAX) return null;
    await waitForTurn();
    const found = await connection.ask({ type: "activity" });
    return { ...found, isByIndex: false, from: `Counted here from ${plural(found.records, "record")}${found.isCut ? "; there are more" : ""}. The verdict says whether they hold.` };
  }
  const [newest, failed] = await Promise.all([askHits(api, DEEDS, NEWEST), askHits(api, `kind:${AUDIT_KIND} outcome:failure`, AUDITS)]);
  const [denials, audits, deeds] = await Promise.all([readRows(answer.held), readRows(failed?.hits ?? []), readRows(newest?.hits ?? [])]);
  const behind = answer.indexed.of_records - answer.indexed.records;
  return {
    days: answer.days,
    isByIndex: true,
    // What the record says counts, not what the index says of it.
    denials: denials.filter(({ row }) => row.status === "blocked" || row.status === "pending"),
    last: deeds.sort((one, other) => Date.parse(other.row.at) - Date.parse(one.row.at))[0] ?? null,
    audits: audits.filter(({ row }) => row.kind === AUDIT_KIND && row.status === "failure"),
    from: `From the server's index, which proves nothing${behind > 0 ? ` and lacks ${plural(behind, "record")} yet` : ""}. The refusals are read from their records.`,
  };
}

function latestSessions(): SessionRow[] {
  const rows = sessionRows.value ?? [];
  const end = (row: SessionRow) => row.figures?.ended ?? "";
  return (rows.some((row) => row.figures) ? [...rows].sort((one, other) => (end(one) < end(other) ? 1 : -1)) : rows).slice(0, LATEST);
}

export function OverviewView(_: { parts: string[] }): JSX.Element {
  // A ledger lists its chains by name: which sessions are the latest shows only when they are counted.
  useSessions((all) => all.slice(0, contents.value?.format === "ledger" ? COUNTED_SESSIONS : LATEST).map(({ chain }) => chain));
  const whole = contents.value;
  const isSmall = totalRecords.value <= COUNTED_MAX;
  const activity = useAnswer(readActivity, [whole?.ledger, whole?.name, isSmall, changed.value, news.value.index]);
  useKeys({
    b: () => {
      const target = verdict.value?.first_bad ? placeLink(verdict.value.first_bad.place) : null;
      if (target !== null) location.hash = target;
    },
  });
  if (whole === null) return <p class="strip">Nothing is open.</p>;
  // What waits stands first. Until it is known, nothing is drawn that it would push down.
  if (cases.value === null && !casesProblem.value) return <div aria-busy="true"><h1><Text>{whole.name}</Text></h1><div class="band placeholder tall" /></div>;
  const rows = latestSessions();
  const counted = activity.value;
  const refusals = counted ? { count: counted.days.reduce((sum, day) => sum + day.blocked, 0), last: counted.denials[0], isByIndex: counted.isByIndex } : activity.state === "loading" ? "loading" : "not counted";
  return (
    <>
      <h1><Text>{whole.name}</Text></h1>
      <Glance last={counted?.last ?? null} isByIndex={counted?.isByIndex ?? false} isCounted={activity.state !== "loading"} refusals={refusals} audits={counted?.audits ?? []} />
      <Waiting />
      <VerdictBand />
      <section>
        <h2>Latest sessions</h2>
        {sessionsProblem.value ? <Problem words={sessionsProblem.value} retry={readSessionsAgain} /> : null}
        {sessionRows.value === null && !sessionsProblem.value ? <Loading rows={LATEST} words="Reading the sessions" /> : null}
        {rows.length ? <><SessionTable rows={rows} /><FiguresNote /></> : null}
        {sessionRows.value !== null && !rows.length ? <Empty command="aver ingest --all">{totalRecords.value ? <>No session of a coding agent is in it. <a href={link("chains")}>Its chains</a> have what was recorded otherwise.</> : "Nothing is recorded here yet. This records the sessions of coding agents on your machine:"}</Empty> : null}
        {(sessionRows.value?.length ?? 0) > LATEST ? <p class="all"><a href={link("sessions")}>All {count(sessionRows.value?.length ?? 0)} sessions</a></p> : null}
      </section>
      {activity.state === "failed" ? <Problem words={activity.words} retry={activity.retry} /> : null}
      {activity.state === "loading" ? <Loading rows={6} words="Counting the activity" /> : null}
      {activity.value ? <Refused denials={activity.value.denials} /> : null}
      {activity.value ? <Charts days={fillDays(activity.value.days)} from={activity.value.from} /> : null}
      {activity.state === "done" && activity.value === null ? <p class="strip">There are more than {count(COUNTED_MAX)} records: the page does not count their activity. <code>aver sessions</code> does.</p> : null}
    </>
  );
}

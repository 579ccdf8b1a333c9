/** The four answers that a reader comes for, in one line: is it intact, what waits, what happened last, what was refused. */

import type { ComponentChildren, JSX } from "preact";
import { Text, Time, count, plural } from "../../parts/text.tsx";
import { Mark, describePlace, extentOf } from "../../parts/verdict.tsx";
import { link, recordLink } from "../../route.ts";
import { judgement, waiting } from "../../state.ts";
import type { Verdict } from "../../verify/verdict.ts";
import type { RowPlace } from "../../worker/protocol.ts";
import { casesProblem } from "../approvals/cases.ts";
import { deedWords } from "./refused.tsx";

interface Refusals {
  /** How many deeds were held back on the days that are counted, each once. */
  count: number;
  last: RowPlace | undefined;
  isByIndex: boolean;
}

/** Marks an answer of the server's index, which is no proof. */
const BY_INDEX = "by the index, not proved";

function Tile({ title, state = "", children, beside, more }: { title: string; state?: string; children: ComponentChildren; beside: ComponentChildren; more?: ComponentChildren }): JSX.Element {
  return <div class={`tile ${state}`}><dt>{title}</dt><dd><p class="answer">{children}</p><p class="beside">{beside}</p>{more}</dd></div>;
}

/** How far a verdict reaches, in a few words. The band below says all of it. */
function reachOf(verdict: Verdict): string {
  const { status, first_bad, checks } = verdict;
  if (status === "failed") return first_bad === null ? "a check failed" : `${first_bad.code} at ${describePlace(first_bad.place)}`;
  if (status === "empty") return "no record was read";
  const extent = extentOf(verdict);
  const unmade = checks.filter((check) => check.status === "not_checked" && check.matters).length;
  return status === "verified" ? `${extent} hold` : `Nothing failed in ${extent}; ${unmade ? `${plural(unmade, "check")} not made` : "there is a warning"}`;
}

/** The audits that failed. An auditor judges the work of agents; the verdict judges the records. So this is no tampering. */
function FailedAudits({ audits }: { audits: RowPlace[] }): JSX.Element | null {
  const [first] = audits;
  if (first === undefined) return null;
  return (
    <p class="beside audits">
      <strong class="bad">{plural(audits.length, "audit")} failed</strong>: <a href={link("protocol", first.chain)}><Text>{first.chain}</Text></a>{audits.length > 1 ? <>, and {count(audits.length - 1)} more</> : null}. That is an auditor's word on the work, apart from whether the records are intact.
    </p>
  );
}

function Intact({ audits }: { audits: RowPlace[] }): JSX.Element {
  const now = judgement.value;
  if (now.state === "working") return <Tile title="Is it intact?" beside="Every hash and signature is computed here"><Mark name="working" /> Verifying</Tile>;
  if (now.state !== "done") return <Tile title="Is it intact?" beside="Nothing is called verified before it is"><Mark name="not judged" /> Not judged</Tile>;
  const { status } = now.verdict;
  return <Tile title="Is it intact?" state={status} beside={<Text>{reachOf(now.verdict)}</Text>} more={<FailedAudits audits={audits} />}><Mark name={status} /> {status[0]?.toUpperCase()}{status.slice(1)}</Tile>;
}

function RefusedTile({ refusals }: { refusals: Refusals | "loading" | "not counted" }): JSX.Element {
  const title = "What was refused?";
  if (refusals === "loading") return <Tile title={title} beside="…">…</Tile>;
  if (refusals === "not counted") return <Tile title={title} beside={<a href={link("risk")}>see the decisions</a>}>Not counted</Tile>;
  const { last } = refusals;
  return (
    <Tile title={title} beside={<>{last ? <>last: <a href={recordLink(last.chain, last.row)}><Text>{deedWords(last.row)}</Text></a></> : "nobody and no rule held anything back"}{refusals.isByIndex ? ` · number ${BY_INDEX}` : null}</>}>
      {refusals.count ? `${count(refusals.count)} held back` : "Nothing"}
    </Tile>
  );
}

export function Glance({ last, isByIndex, isCounted, refusals, audits }: { last: RowPlace | null; isByIndex: boolean; isCounted: boolean; audits: RowPlace[]; refusals: Refusals | "loading" | "not counted" }): JSX.Element {
  const wait = waiting.value;
  const isUnknown = !wait && casesProblem.value !== "";
  return (
    <dl class="glance">
      <Intact audits={audits} />
      <Tile title="Does something wait for me?" state={wait ? "qualified" : ""} beside={wait ? "denied, if nobody answers in time" : isUnknown ? "the requests cannot be read" : "no request for an approval is open"}>
        {wait || isUnknown ? <a href={link("approvals")}>{isUnknown ? "Not known" : plural(wait, "approval")}</a> : "Nothing"}
      </Tile>
      <Tile title="What happened last?" beside={last ? <><Text>{last.chain}</Text> · <Time brief>{last.row.at}</Time>{isByIndex ? ` · ${BY_INDEX}` : null}</> : isCounted ? <a href={link("chains")}>see the chains</a> : "…"}>
        {last ? <a href={recordLink(last.chain, last.row)}><Text>{deedWords(last.row)}</Text></a> : isCounted ? refusals === "not counted" ? "Not counted" : "Nothing" : "…"}
      </Tile>
      <RefusedTile refusals={refusals} />
    </dl>
  );
}

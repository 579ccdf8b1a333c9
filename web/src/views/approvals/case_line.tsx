/** A request for an approval in one line: the action, its state, and how long there is left. */

import type { JSX } from "preact";
import { Text, Time } from "../../parts/text.tsx";
import { link } from "../../route.ts";
import { actionLine } from "../../sessions/decisions.ts";
import { asObject, asText } from "../../sessions/values.ts";
import { at } from "../../verify/block.ts";
import { BadInput, type Json, readJson } from "../../verify/json.ts";
import { cutText } from "../../verify/text.ts";
import type { ApprovalCase } from "../../worker/protocol.ts";
import { now, stateOf } from "./cases.ts";

export const CASE_WORDS: Record<string, string> = {
  pending: "waits for an answer",
  approved: "approved, not used yet",
  denied: "denied",
  expired: "expired: denied",
  closed: "closed: denied",
  used: "approved and used",
};

/** How long is left, as minutes and seconds. */
export function timeLeft(expires: string): string {
  const seconds = Math.max(0, Math.floor((new Date(expires).getTime() - now.value.getTime()) / 1000));
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor((seconds % 3600) / 60)];
  return hours ? `${hours} h ${String(minutes).padStart(2, "0")} min` : `${minutes} min ${String(seconds % 60).padStart(2, "0")} s`;
}

export function CaseState({ one }: { one: ApprovalCase }): JSX.Element {
  const state = stateOf(one);
  const isRefused = ["denied", "expired", "closed"].includes(state);
  return <span class={`word ${isRefused ? "failure" : state === "pending" ? "" : "good"}`}>{CASE_WORDS[state] ?? state}</span>;
}

/** The words before the action in the summary of a request. */
const SUMMARY_START = /^asks for approval: /;

/**
 * What the record of a request says, and its action in one line. A large action is kept beside the record, whose summary
 * then names it. The verdict says why a record cannot be read.
 */
export function describeCase(one: ApprovalCase): { content: Json; line: string } {
  let content: Json = null;
  let summary = "";
  try {
    const record = readJson(one.canonical);
    content = at(record, "outcome", "result") ?? null;
    summary = asText(at(record, "outcome", "summary") ?? null).replace(SUMMARY_START, "");
  } catch (error) {
    if (!(error instanceof BadInput)) throw error;
  }
  const action = asObject(at(content, "action"));
  const isApart = action.size === 1 && action.has("blob");
  return { content, line: isApart || !action.size ? summary || "a large action" : actionLine(action) };
}

export function CaseLine({ one, isFirst }: { one: ApprovalCase; isFirst: boolean }): JSX.Element {
  return (
    <a class="case-line" href={link("approvals", one.id)} data-row tabIndex={isFirst ? 0 : -1}>
      <code><Text>{cutText(describeCase(one).line, 160)}</Text></code>
      <CaseState one={one} />
      <span class="beside">{stateOf(one) === "pending" ? <>{timeLeft(one.expires)} left</> : <Time>{one.opened}</Time>}</span>
    </a>
  );
}

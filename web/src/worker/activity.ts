/** What happened on each day, and what was refused last: counted from the records themselves. */

import { asCost, asCount } from "../sessions/values.ts";
import { at, readKind } from "../verify/block.ts";
import { BadInput } from "../verify/json.ts";
import type { Library } from "./library.ts";
import type { DayActivity, RecordRow, Results } from "./protocol.ts";
import { describeRow, safeContent, statusOf, text } from "./rows.ts";

/** Records that are counted. More are named as not counted. */
const COUNTED_MAX = 200_000;
/** Days that are shown, the latest. */
const DAYS_MAX = 366;
/** Denials that are listed, the latest. */
const DENIALS_MAX = 8;

const OWN = new Set(["meta", "keys"]);
/** Says that the operator ended a trace. Its status is `blocked`, and nothing was refused. */
export const ABORTED_KIND = "protocol.session_aborted";
/** Says what an auditor found about a trace. Its status is `failure` where the audit failed. */
export const AUDIT_KIND = "protocol.verification_run_completed";

export async function countActivity(library: Library): Promise<Results["activity"]> {
  const days = new Map<string, DayActivity>();
  let denials: { chain: string; row: RecordRow }[] = [];
  const audits: { chain: string; row: RecordRow }[] = [];
  let records = 0;
  for (const { id: chain } of library.chains) {
    if (OWN.has(chain)) continue;
    let place = -1;
    for await (const items of library.readBatches(chain)) {
      for (const item of items) {
        place++;
        if (records++ >= COUNTED_MAX) return { days: sortDays(days), denials, audits, records: COUNTED_MAX, isCut: true };
        if (item instanceof BadInput) continue;
        const content = safeContent(item);
        const day = (text(at(content, "trigger", "timestamp")) || item.signed_at).slice(0, 10);
        if (!/^\d{4}-\d\d-\d\d$/.test(day) || Number.isNaN(Date.parse(day))) continue;
        const sum = days.get(day) ?? { day, records: 0, success: 0, failure: 0, blocked: 0, tokens: 0, cost: 0 };
        days.set(day, sum);
        sum.records++;
        const kind = content instanceof Map ? readKind(content) : "";
        const status = kind === ABORTED_KIND ? "" : statusOf(content);
        if (status === "success" || status === "failure" || status === "blocked") sum[status]++;
        const usage = at(content, "execution", "resources_used");
        for (const name of ["tokens_in", "tokens_out"]) sum.tokens += asCount(at(usage, name)) ?? 0;
        sum.cost += asCost(at(usage, "cost_usd")) ?? 0;
        if (status === "blocked") {
          denials.push({ chain, row: describeRow(item, place) });
          if (denials.length > 64) denials = latest(denials);
        }
        if (kind === AUDIT_KIND && status === "failure") audits.push({ chain, row: describeRow(item, place) });
      }
    }
  }
  return { days: sortDays(days), denials: latest(denials), audits, records, isCut: false };
}

function sortDays(days: Map<string, DayActivity>): DayActivity[] {
  return [...days.values()].sort((one, other) => (one.day < other.day ? -1 : 1)).slice(-DAYS_MAX);
}

function latest(denials: { chain: string; row: RecordRow }[]): { chain: string; row: RecordRow }[] {
  return denials.sort((one, other) => (one.row.at < other.row.at ? 1 : -1)).slice(0, DENIALS_MAX);
}

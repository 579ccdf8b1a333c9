/** What happened on each day, and what was refused last: counted from the records themselves. */

import { asCost, asCount } from "../sessions/values.ts";
import { refsOf } from "../sessions/decisions.ts";
import { at, domainOf, readKind } from "../verify/block.ts";
import { BadInput, type JsonObject } from "../verify/json.ts";
import type { Library } from "./library.ts";
import type { DayActivity, RecordRow, RowPlace as Place, Results } from "./protocol.ts";
import { describeRow, safeContent, statusOf, text } from "./rows.ts";

/** Records that are counted. More are named as not counted. */
const COUNTED_MAX = 200_000;
/** Days that are shown, the latest. */
const DAYS_MAX = 366;
/** Deeds that were held back and are listed, the latest. */
const HELD_MAX = 8;

const OWN = new Set(["meta", "keys"]);
/** Says that the operator ended a trace. Its status is `blocked`, and nothing was refused. */
const ABORTED_KIND = "protocol.session_aborted";
/** Says what an auditor found about a trace. Its status is `failure` where the audit failed. */
export const AUDIT_KIND = "protocol.verification_run_completed";

/** Kinds of records that the ledger keeps about itself. They are no deeds. */
const KEEPING = /^(chain|key|bundle|run)\.|^(checkpoint|record|dropped|gate\.change)$/;
const ASKING = new Set(["gate.decision", "approval.request", "act.preview"]);
const DOING = new Set(["call", "action", "gate.decision", "gate.outcome", "approval.use", "act.outcome"]);
const ABOUT_CALLS = new Set(["gate", "approval", "act", "action", "protocol"]);

/** What a record says of a deed: it was refused; an approval was asked for; it was let through, or took place. */
const [DENIED, ASKED, DONE] = [1, 2, 4];

/** What a record says of its deed; 0 for nothing. The twin of `_read_state` in `aver.explorer.index.catch_up`. */
function stateOf(kind: string, status: string): number {
  if (status === "blocked") return kind === ABORTED_KIND ? 0 : DENIED;
  if (status === "pending") return ASKING.has(kind) ? ASKED : 0;
  return (status === "success" || status === "failure") && DOING.has(kind) ? DONE : 0;
}

/** Whether a record says that something was refused. */
export function isDenial({ kind, status }: RecordRow): boolean {
  return stateOf(kind, status) === DENIED;
}

/** The id that all records about one call share; empty where a record shares none. The twin of `_read_deed` in `aver.sessions.step`. */
function deedOf(content: JsonObject, kind: string): string {
  // A call without a decision shares its id with all of its prompt, an event of a trace without an intent with the trace.
  if (!ABOUT_CALLS.has(domainOf(kind)) && !refsOf(content).some(([name]) => name === "decision")) return "";
  const id = text(at(content, "trigger", "correlation_id"));
  return id === at(content, "context", "session_id") ? "" : id;
}

/** A deed that was held back: a refusal stays one, a question is one until the deed was let through. */
interface Held extends Place {
  state: number;
  day: string;
  when: number;
}

export async function countActivity(library: Library): Promise<Results["activity"]> {
  const days = new Map<string, DayActivity>();
  const deeds = new Map<string, Partial<Held> & { state: number }>();
  const audits: Place[] = [];
  let last: (Place & { when: number }) | null = null;
  let records = 0;
  let isCut = false;
  chains: for (const { id: chain } of library.chains) {
    if (OWN.has(chain)) continue;
    let place = -1;
    for await (const items of library.readBatches(chain)) {
      for (const item of items) {
        place++;
        isCut = records >= COUNTED_MAX;
        if (isCut) break chains;
        records++;
        if (item instanceof BadInput) continue;
        const content = safeContent(item);
        const time = text(at(content, "trigger", "timestamp")) || item.signed_at;
        const [day, when] = [time.slice(0, 10), Date.parse(time) || 0];
        if (!(content instanceof Map) || !/^\d{4}-\d\d-\d\d$/.test(day) || Number.isNaN(Date.parse(day))) continue;
        const sum = days.get(day) ?? { day, records: 0, success: 0, failure: 0, blocked: 0, tokens: 0, cost: 0 };
        days.set(day, sum);
        sum.records++;
        const kind = readKind(content);
        const status = statusOf(content);
        if (status === "success" || status === "failure") sum[status]++;
        const usage = at(content, "execution", "resources_used");
        for (const name of ["tokens_in", "tokens_out"]) sum.tokens += asCount(at(usage, name)) ?? 0;
        sum.cost += asCost(at(usage, "cost_usd")) ?? 0;
        if (!KEEPING.test(kind) && when >= (last?.when ?? 0)) last = { chain, row: describeRow(item, place), when };
        if (kind === AUDIT_KIND && status === "failure") audits.push({ chain, row: describeRow(item, place) });
        const state = stateOf(kind, status);
        const id = deedOf(content, kind);
        if (state === 0 || (state === DONE && !id)) continue;
        const deed = deeds.get(id || `${chain}/${place}`) ?? { state: 0 };
        deeds.set(id || `${chain}/${place}`, deed);
        deed.state |= state;
        if (state !== DONE && when >= (deed.when ?? 0)) Object.assign(deed, { chain, row: describeRow(item, place), day, when });
      }
    }
  }
  const held = [...deeds.values()].filter((deed): deed is Held => (deed.state & DENIED) > 0 || (deed.state & (ASKED | DONE)) === ASKED);
  for (const { day } of held) (days.get(day) as DayActivity).blocked++;
  held.sort((one, other) => other.when - one.when);
  return { days: sortDays(days), denials: held.slice(0, HELD_MAX), audits, last, records, isCut };
}

function sortDays(days: Map<string, DayActivity>): DayActivity[] {
  return [...days.values()].sort((one, other) => (one.day < other.day ? -1 : 1)).slice(-DAYS_MAX);
}

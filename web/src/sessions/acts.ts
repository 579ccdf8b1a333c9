/**
 * The acts of a gateway session: preview, the two servers' shares, commit and effect. Pure.
 *
 * Each policy server gives a share of three answers: whether the act is allowed, whether a person must confirm it, and
 * how it is changed. One share alone says nothing; both together, joined bit by bit, are the answer. `joinShares` joins
 * them, so that a reader sees whether they say what the preview says. The MACs over the shares can be checked only with
 * the servers' keys: `aver verify` does that.
 */

import { at, readKind } from "../verify/block.ts";
import { BadInput, type Json, JsonNumber, type JsonObject } from "../verify/json.ts";
import type { Sealed } from "../verify/sealed.ts";
import { valueText } from "./labels.ts";
import { asCount, asList, asObject, asText, contentOf } from "./values.ts";

/** One record of an act. */
export interface ActRecord {
  place: number;
  kind: string;
  at: string;
  status: string;
  reasonCode: string;
  detail: string;
  result: JsonObject;
  statements: Json[];
  decision: string;
}

export interface Act {
  actionId: string;
  intent: string;
  caller: string;
  preview: ActRecord | null;
  commits: ActRecord[];
  outcomes: ActRecord[];
  /** Where it stands: the reason code of the last word about it. */
  code: string;
  state: "done" | "refused" | "waits" | "open" | "broken";
}

const KINDS = new Set(["act.preview", "act.commit", "act.outcome"]);

/** The acts of a chain, in the order of their previews. Other records of the chain are left out. */
export function readActs(records: Iterable<Sealed | BadInput>): Act[] {
  const acts = new Map<string, Act>();
  let place = -1;
  for (const record of records) {
    place++;
    const found = record instanceof BadInput ? null : readActRecord(record, place);
    if (found === null) continue;
    const actionId = asText(found.result.get("action_id"));
    const act = acts.get(actionId) ?? { actionId, intent: "", caller: "", preview: null, commits: [], outcomes: [], code: "", state: "open" as const };
    acts.set(actionId, addRecord(act, found));
  }
  // A commit needs a preview. One without is forged, or its preview was cut off.
  return [...acts.values()].map((act) => (act.preview === null ? { ...act, state: "broken" as const } : act));
}

function readActRecord(record: Sealed, place: number): ActRecord | null {
  const content = contentOf(record);
  if (content === null) return null;
  const kind = readKind(content);
  const result = asObject(at(content, "outcome", "result"));
  if (!KINDS.has(kind)) return null;
  return {
    place,
    kind,
    at: asText(at(content, "trigger", "timestamp")) || record.signed_at,
    status: asText(at(content, "outcome", "status")),
    reasonCode: asText(result.get("reason_code")),
    detail: asText(result.get("detail")),
    result,
    statements: asList(at(content, "authority", "chain")),
    decision: asText(at(content, "context", "environment", "aver", "refs", "decision")),
  };
}

function addRecord(act: Act, record: ActRecord): Act {
  const code = record.reasonCode || act.code;
  if (record.kind === "act.preview") {
    const state = record.status === "blocked" ? "refused" : record.status === "pending" ? "waits" : "open";
    return { ...act, preview: record, intent: asText(record.result.get("intent_id")), caller: asText(record.result.get("caller")), code, state };
  }
  if (record.kind === "act.commit") return { ...act, commits: [...act.commits, record] };
  // A second COMMIT that was refused changes nothing about an act that was done.
  const isDone = record.status === "success" || act.state === "done";
  return { ...act, outcomes: [...act.outcomes, record], code: act.state === "done" ? act.code : code, state: isDone ? "done" : "refused" };
}

interface JoinedShares {
  allow: number | null;
  confirm: number | null;
  patch: number | null;
  /** Whether both shares are about this act, this request and this program. */
  isOfThisAct: boolean;
  servers: { server: string; outputs: [string, string][] }[];
}

/** Join the two shares in a commit; null where there are not two. */
export function joinShares(commit: ActRecord, actionId: string): JoinedShares | null {
  const pair = ["policy0", "policy1"].map((name) => asObject(at(commit.result, "commit", name)));
  if (pair.some((share) => !share.size)) return null;
  const bit = (name: string): number | null => {
    const [one, other] = pair.map((share) => asCount(at(share, "outputs", name)));
    return one === null || other === null || one === undefined || other === undefined || one > 1 || other > 1 ? null : one ^ other;
  };
  const [low, high] = [bit("patch0"), bit("patch1")];
  const [request, program] = ["request_sha256", "program_id"].map((name) => asText(commit.result.get(name)));
  return {
    allow: bit("allow_pre"),
    confirm: bit("need_confirm"),
    patch: low === null || high === null ? null : low | (high << 1),
    isOfThisAct: pair.every((share) => share.get("action_id") === actionId && share.get("request_sha256") === request && share.get("program_id") === program),
    servers: pair.map((share, index) => ({
      server: `policy:${share.get("server_id") instanceof JsonNumber ? (share.get("server_id") as JsonNumber).text : index}`,
      outputs: [...asObject(share.get("outputs"))].map(([name, value]) => [name, valueText(value)]),
    })),
  };
}

export const PATCH_NAMES = ["NOOP", "REDACT", "CLAMP_LEN", "REWRITE_DOMAIN_TO_PROXY"];

/**
 * A trace of the agent protocol, as its events tell it: who takes part, what was proposed, run, claimed and challenged,
 * and what the audit found. Pure. Standings follow the rules of `aver.protocol.rules`; the rules themselves, and whether
 * the evidence holds, are Python's to judge: `aver verify`.
 */

import { at, readKind } from "../verify/block.ts";
import { plainJson } from "../verify/canonical.ts";
import { BadInput, type Json, JsonNumber, type JsonObject } from "../verify/json.ts";
import type { Sealed } from "../verify/sealed.ts";
import { asList, asObject, asText, contentOf, isTruthy } from "./values.ts";

export const ROLES = ["operator", "planner", "executor", "critic", "auditor"];

export interface TraceEvent {
  place: number;
  id: string;
  event: string;
  role: string;
  agent: string;
  at: string;
  before: string;
  after: string;
  summary: string;
  refs: ReadonlyMap<string, string>;
  payload: JsonObject;
  statements: Json[];
}

interface TraceChallenge {
  id: string;
  place: number;
  agent: string;
  reason: string;
  evidence: Json[];
  standing: string;
  rationale: string;
}

export interface TraceClaim {
  id: string;
  place: number;
  agent: string;
  text: string;
  about: string;
  /** As the record writes it. */
  confidence: string;
  evidence: Json[];
  standing: string;
  /** Earlier words of the claim, the oldest first. */
  earlier: { text: string; place: number }[];
  challenges: TraceChallenge[];
}

export interface Trace {
  task: JsonObject;
  profile: string;
  state: string;
  events: TraceEvent[];
  participants: { agent: string; role: string; key: string; held: string }[];
  claims: TraceClaim[];
  /** The event that ended the audit; null before. */
  audit: TraceEvent | null;
}

/** Read the events of a trace's chain. Records of other kinds are left out. */
export function readTrace(records: Iterable<Sealed | BadInput>): Trace {
  const trace: Trace = { task: new Map(), profile: "", state: "", events: [], participants: [], claims: [], audit: null };
  let place = -1;
  for (const record of records) {
    place++;
    const event = record instanceof BadInput ? null : readEvent(record, place);
    if (event === null) continue;
    trace.events.push(event);
    trace.state = event.after || trace.state;
    takeUp(trace, event);
  }
  return trace;
}

function readEvent(record: Sealed, place: number): TraceEvent | null {
  const content = contentOf(record);
  if (content === null) return null;
  if (!readKind(content).startsWith("protocol.")) return null;
  const told = asObject(at(content, "context", "environment", "protocol"));
  const refs = asObject(at(content, "context", "environment", "aver", "refs"));
  return {
    place,
    id: asText(content.get("id")),
    event: asText(told.get("event")),
    role: asText(told.get("role")),
    agent: asText(told.get("agent")),
    at: asText(at(content, "trigger", "timestamp")) || record.signed_at,
    before: asText(told.get("before")),
    after: asText(told.get("after")),
    summary: asText(at(content, "outcome", "summary")),
    refs: new Map([...refs].map(([name, value]) => [name, asText(value)])),
    payload: asObject(at(content, "outcome", "result")),
    statements: asList(at(content, "authority", "chain")),
  };
}

function takeUp(trace: Trace, event: TraceEvent): void {
  const { payload, refs } = event;
  switch (event.event) {
    case "session_initialized":
      trace.task = asObject(payload.get("task"));
      trace.profile = asText(payload.get("profile"));
      trace.participants.push(...asList(payload.get("participants")).map(readParticipant));
      break;
    case "participant_joined":
      trace.participants.push(readParticipant(payload.get("participant") ?? null));
      break;
    case "claim_issued":
      trace.claims.push({ id: event.id, place: event.place, agent: event.agent, ...wording(payload), about: asText(payload.get("about")), standing: "issued", earlier: [], challenges: [] });
      break;
    case "claim_challenged":
      challenge(trace.claims.find((claim) => claim.id === refs.get("claim")), event);
      break;
    case "claim_revised":
      revise(trace.claims.find((claim) => claim.id === refs.get("claim")), event);
      break;
    case "challenge_resolved":
      resolve(trace.claims.find((claim) => claim.challenges.some((one) => one.id === refs.get("challenge"))), event);
      break;
    case "verification_run_completed":
      trace.audit = event;
      break;
  }
}

function readParticipant(value: Json): Trace["participants"][number] {
  const given = asObject(value);
  return { agent: asText(given.get("agent")), role: asText(given.get("role")), key: asText(given.get("public_key")), held: asText(given.get("held")) };
}

function wording(payload: JsonObject): { text: string; confidence: string; evidence: Json[] } {
  const confidence = payload.get("confidence");
  return { text: asText(payload.get("text")), confidence: confidence instanceof JsonNumber ? confidence.text : "", evidence: asList(payload.get("evidence")) };
}

function hasOpenChallenge(claim: TraceClaim): boolean {
  return claim.challenges.some((one) => one.standing === "open");
}

function challenge(claim: TraceClaim | undefined, { id, place, agent, payload }: TraceEvent): void {
  if (claim === undefined) return;
  claim.challenges.push({ id, place, agent, reason: asText(payload.get("reason")), evidence: asList(payload.get("evidence")), standing: "open", rationale: "" });
  claim.standing = "disputed";
}

function revise(claim: TraceClaim | undefined, { place, payload }: TraceEvent): void {
  if (claim === undefined) return;
  claim.earlier.push({ text: claim.text, place: claim.place });
  if (isTruthy(payload.get("retracted"))) {
    claim.standing = "retracted";
    for (const one of claim.challenges) if (one.standing === "open") one.standing = "moot";
    return;
  }
  Object.assign(claim, wording(payload), { place });
  // A ruling was about the old words. An open challenge stays open until its critic withdraws it.
  claim.standing = hasOpenChallenge(claim) ? "disputed" : "issued";
}

function resolve(claim: TraceClaim | undefined, { refs, payload }: TraceEvent): void {
  const found = claim?.challenges.find((one) => one.id === refs.get("challenge"));
  if (claim === undefined || found === undefined) return;
  found.standing = asText(payload.get("outcome"));
  found.rationale = asText(payload.get("rationale"));
  if (found.standing === "upheld") claim.standing = "refuted";
  else if (claim.standing !== "refuted") claim.standing = hasOpenChallenge(claim) ? "disputed" : "settled";
}

/** A check of a piece of evidence in words, such as `exit code == 1`. Numbers stand as they are written. */
export function describeCheck(check: Json | undefined): string {
  const [entry] = [...asObject(check)];
  if (entry === undefined) return "the artifact is here";
  const [name, value] = entry;
  const scalar = (one: Json = null) => (one === null ? "" : plainJson(one));
  const compare = (one: Json | undefined) => asList(one).map((part) => (typeof part === "string" && /^[=!<>]+$/.test(part) ? part : scalar(part))).join(" ");
  if (name === "exit_code") return `exit code ${compare(value)}`;
  if (name === "sha256") return `SHA-256 is ${asText(value).slice(0, 16)}…`;
  if (name === "json") return `JSON at ${asText(at(value, "pointer")) || "/"} ${compare(at(value, "is"))}`;
  if (name === "tests") return [...asObject(at(value, "counts"))].map(([count, is]) => `${count} ${compare(is)}`).join(", ") + ` (${asText(at(value, "format"))})`;
  if (name === "text") return [...asObject(value)].map(([word, is]) => `text ${word} ${Array.isArray(is) ? compare(is) : scalar(is)}`).join(", ");
  if (name === "git") return `git revision ${asText(at(value, "revision")).slice(0, 12)}, ${at(value, "clean") === true ? "clean" : "not clean"}`;
  return `${name} (a check that this page does not know)`;
}

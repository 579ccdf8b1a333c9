/** Records as rows of a list. Nothing here is verified: a row says what the record says. */

import { DECISION_KIND } from "../sessions/decisions.ts";
import { at, readKind } from "../verify/block.ts";
import { BadInput, type Json, JsonNumber, isInteger, readJson } from "../verify/json.ts";
import type { Sealed } from "../verify/sealed.ts";
import { cutText } from "../verify/text.ts";
import { ActionItem } from "./actions.ts";
import type { RecordRow } from "./protocol.ts";

/** Characters of a summary in a row. */
const SUMMARY_MAX = 240;

/** A record, or why it cannot be read. */
export type Item = Sealed | BadInput;

/** A text or number as it is written; empty for anything else. */
export function text(value: Json | undefined): string {
  if (typeof value === "string") return value;
  return value instanceof JsonNumber ? value.text : "";
}

/** The content of a record, for showing. It is not kept with the record: it takes many times the memory of its text. */
export function safeContent(record: Sealed): Json | undefined {
  try {
    if (record instanceof ActionItem) return record.content;
    return record.canonical.isWellFormed() ? readJson(record.canonical) : undefined;
  } catch (error) {
    if (error instanceof BadInput) return undefined;
    throw error;
  }
}

/** The outcome that a record states; `observed` for a decision that held nothing back, whatever it was. */
export function statusOf(content: Json | undefined): string {
  const isObserved = content instanceof Map && readKind(content) === DECISION_KIND && at(content, "outcome", "result", "mode") === "observe";
  return isObserved ? "observed" : text(at(content, "outcome", "status"));
}

export function describeRow(item: Item, place: number): RecordRow {
  const bare = { place, sequence: "", hash: "", at: "", type: "", kind: "", summary: "", status: "", tool: "", authority: "", tokens: "" };
  if (item instanceof BadInput) return { ...bare, problem: item.message };
  const content = safeContent(item);
  if (!(content instanceof Map)) return { ...bare, hash: item.hash, at: item.signed_at, problem: "this is no capsule" };
  const calls = at(content, "execution", "tool_calls");
  const sequence = content.get("sequence");
  const usage = at(content, "execution", "resources_used");
  const request = text(at(content, "trigger", "request"));
  const summary = text(at(content, "outcome", "summary")) || text(at(content, "reasoning", "analysis")) || request;
  const [tokensIn, tokensOut] = ["tokens_in", "tokens_out"].map((name) => text(at(usage, name)));
  return {
    place,
    // The list of a chain counts with it.
    sequence: isInteger(sequence) ? sequence.text : "",
    hash: item.hash,
    at: text(at(content, "trigger", "timestamp")) || item.signed_at,
    type: text(at(content, "type")),
    kind: readKind(content),
    summary: cutText(summary, SUMMARY_MAX),
    status: statusOf(content),
    tool: Array.isArray(calls) ? text(at(calls[0], "tool")) : "",
    authority: text(at(content, "authority", "type")),
    tokens: tokensIn || tokensOut ? `${tokensIn || 0} → ${tokensOut || 0}` : "",
    problem: "",
  };
}


/** Signed statements inside a record, each checked with the pinned keys, and then with those that came along. */

import type { Ed25519 } from "../verify/ed25519.ts";
import { BadInput, type Json, readJson } from "../verify/json.ts";
import { PublicKey, Ring } from "../verify/ring.ts";
import { type Statement, checkStatement, readStatement } from "../verify/statement.ts";
import type { StatementCheck } from "./protocol.ts";

/** Check the statements in a JSON list. `along` are keys that came with the records; they prove nothing. */
export function checkStatements(text: string, pinned: Ring, along: [string, string][], ed25519: Ed25519): StatementCheck[] {
  const values = readJson(text);
  const others = new Ring(along.flatMap(([key, second]) => toKey(key, second)));
  return (Array.isArray(values) ? values : []).map((value) => checkOne(value, pinned, others, ed25519));
}

function toKey(key: string, second: string): PublicKey[] {
  try {
    return [new PublicKey(key, second)];
  } catch (error) {
    if (error instanceof BadInput) return []; // A key of another form verifies nothing.
    throw error;
  }
}

function checkOne(value: Json, pinned: Ring, along: Ring, ed25519: Ed25519): StatementCheck {
  let statement: Statement;
  try {
    statement = readStatement(value);
  } catch (error) {
    if (!(error instanceof BadInput)) throw error;
    return { purpose: "", by: [], state: "no statement" };
  }
  const { purpose } = statement;
  const by = statement.signatures.map((signature) => signature.by);
  if (!by.length) return { purpose, by, state: "invalid" };
  const results = checkStatement(statement, pinned, ed25519);
  if (results.some((result) => result.outcome === "invalid")) return { purpose, by, state: "invalid" };
  if (results.every((result) => result.outcome === "valid")) return { purpose, by, state: "pinned" };
  const second = checkStatement(statement, along, ed25519);
  if (second.some((result) => result.outcome === "invalid")) return { purpose, by, state: "does not match" };
  return { purpose, by, state: second.every((result) => result.outcome === "valid") ? "came along" : "unknown" };
}

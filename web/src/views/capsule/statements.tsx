/** The signed statements in a record: of approvers, policy servers and participants. Each signature is checked here. */

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Value } from "../../parts/json.tsx";
import { Hex, Text } from "../../parts/text.tsx";
import { Mark } from "../../parts/verdict.tsx";
import { pins } from "../../source/pins.ts";
import { contents } from "../../state.ts";
import type { Ed25519 } from "../../verify/ed25519.ts";
import { BadInput, type Json, type JsonObject, isObject } from "../../verify/json.ts";
import { PublicKey, Ring } from "../../verify/ring.ts";
import { type Statement, checkStatement, readStatement } from "../../verify/statement.ts";
import { openEd25519 } from "../../verify/verify.ts";

let verifier: Promise<Ed25519> | null = null;

export type StatementState = "pinned" | "came along" | "invalid" | "unknown" | "no statement";

export interface CheckedStatement {
  statement: Statement | null;
  value: Json;
  state: StatementState;
  by: string[];
  words: string;
}

/** Check a statement with the pinned keys, then with those that came along. A key that came along proves nothing. */
export async function checkStatements(values: Json[], others: [string, string][] = []): Promise<CheckedStatement[]> {
  verifier ??= openEd25519();
  const ed25519 = await verifier;
  const pinned = new Ring(pins.value.map((key) => new PublicKey(key.publicKey, key.publicKeyPq)));
  const pq = new Map(contents.value?.pqKeys ?? []);
  const along = new Ring([...(contents.value?.keys ?? []), ...others].flatMap(([fingerprint, key]) => toKey(key, pq.get(fingerprint) ?? "")));
  return values.map((value) => checkOne(value, pinned, along, ed25519));
}

function toKey(key: string, second: string): PublicKey[] {
  try {
    return [new PublicKey(key, second)];
  } catch {
    return []; // A key of another form verifies nothing.
  }
}

function checkOne(value: Json, pinned: Ring, along: Ring, ed25519: Ed25519): CheckedStatement {
  let statement: Statement;
  try {
    statement = readStatement(value);
  } catch (error) {
    if (!(error instanceof BadInput)) throw error;
    return { statement: null, value, state: "no statement", by: [], words: "It is no signed statement." };
  }
  const by = statement.signatures.map((signature) => signature.by);
  const bare = { statement, value, by };
  if (!by.length) return { ...bare, state: "invalid", words: "Nobody signed it." };
  const results = checkStatement(statement, pinned, ed25519);
  if (results.some((result) => result.outcome === "invalid")) return { ...bare, state: "invalid", words: "The signature is not that of the pinned key." };
  if (results.every((result) => result.outcome === "valid")) return { ...bare, state: "pinned", words: "The signature is valid, by a key that you pinned." };
  const second = checkStatement(statement, along, ed25519);
  if (second.some((result) => result.outcome === "invalid")) return { ...bare, state: "invalid", words: "The signature does not match the key that came with the records." };
  if (second.every((result) => result.outcome === "valid")) return { ...bare, state: "came along", words: "The signature matches the key that came with the records, which you have not pinned: not checked." };
  return { ...bare, state: "unknown", words: "Not checked: the signer's key is not here." };
}

const MARKS = { pinned: "verified", "came along": "qualified", invalid: "failed", unknown: "not judged", "no statement": "not judged" } as const;
const NAMES: Record<string, string> = {
  approval: "A person's answer",
  policy: "A policy server's word",
  delegation: "A delegation",
  "protocol-join": "A participant joins",
  "protocol-event": "A participant's contribution",
  "protocol-report": "The auditor's report",
};

/** Statements with the result of each check. `others` are keys that the records themselves name. */
export function Statements({ values, others = [] }: { values: Json[]; others?: [string, string][] }): JSX.Element {
  const [checked, setChecked] = useState<CheckedStatement[] | null>(null);
  const [words, setWords] = useState("");
  useEffect(() => {
    let isCurrent = true;
    checkStatements(values, others).then(
      (found) => { if (isCurrent) setChecked(found); },
      (error: Error) => { if (isCurrent) setWords(error.message); },
    );
    return () => { isCurrent = false; };
  }, [values, pins.value]);
  if (words) return <p class="finding failed" role="alert"><Text>{words}</Text></p>;
  if (checked === null) return <p class="beside" role="status">Checking {values.length} statements …</p>;
  return (
    <ol class="statements">
      {checked.map((one, at) => (
        <li key={at}>
          <p>
            <Mark name={MARKS[one.state]} /> <strong>{NAMES[one.statement?.purpose ?? ""] ?? one.statement?.purpose ?? "Entry"}</strong>
            {who(one) ? <> by <Text>{who(one)}</Text></> : null}
            {one.by.map((fingerprint) => <span key={fingerprint}> <Hex>{fingerprint}</Hex></span>)}
          </p>
          <p class={`beside${one.state === "invalid" ? " bad" : ""}`}>{one.words}</p>
          <details><summary>What it says</summary><Value value={one.statement?.content ?? one.value} /></details>
        </li>
      ))}
    </ol>
  );
}

function who({ statement, value }: CheckedStatement): string {
  const content: JsonObject | null = statement?.content ?? (isObject(value) ? value : null);
  const named = ["approver", "agent", "principal", "iss"].map((name) => content?.get(name)).find((text) => typeof text === "string");
  const server = content?.get("server_id");
  return typeof named === "string" ? named : server === undefined || server === null ? "" : `policy:${(server as { text?: string }).text ?? ""}`;
}

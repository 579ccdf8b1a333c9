/** The signed statements in a record: of approvers, policy servers and participants. Each signature is checked here. */

import type { JSX } from "preact";
import { Value } from "../../parts/json.tsx";
import { Problem, useAnswer } from "../../parts/states.tsx";
import { Hex, Text, plural } from "../../parts/text.tsx";
import { Mark } from "../../parts/verdict.tsx";
import { pins } from "../../source/pins.ts";
import { asText, lookUp } from "../../sessions/values.ts";
import { connection, contents, pinnedKeys } from "../../state.ts";
import { at } from "../../verify/block.ts";
import { canonicalJson } from "../../verify/canonical.ts";
import { type Json, JsonNumber } from "../../verify/json.ts";
import type { StatementCheck } from "../../worker/protocol.ts";
import { readOwners } from "../keys/owners.ts";

const STATES: Record<StatementCheck["state"], ["verified" | "qualified" | "failed" | "not judged", string]> = {
  pinned: ["verified", "The signature is valid, by a key that you pinned."],
  "came along": ["qualified", "The signature matches the key that came with the records, which you have not pinned: not checked."],
  invalid: ["failed", "Nobody signed it, or the signature is not that of the pinned key."],
  "does not match": ["failed", "The signature does not match the key that came with the records."],
  unknown: ["not judged", "Not checked: the signer's key is not here."],
  "no statement": ["not judged", "It is no signed statement."],
};
const NAMES: Record<string, string> = {
  approval: "A person's answer",
  policy: "A policy server's word",
  delegation: "A delegation",
  "protocol-join": "A participant joins",
  "protocol-event": "A participant's contribution",
  "protocol-report": "The auditor's report",
};

/** Statements with the result of each check. */
export function Statements({ values }: { values: Json[] }): JSX.Element {
  const { value: checked, words, retry } = useAnswer(async () => {
    const open = contents.value;
    const second = new Map(open?.pqKeys);
    const along = (open?.keys ?? []).map(([fingerprint, key]): [string, string] => [key, second.get(fingerprint) ?? ""]);
    for (const { key, keyPq } of (await readOwners()).values()) along.push([key, keyPq]);
    return connection.ask({ type: "statements", text: canonicalJson(values), keys: pinnedKeys(), along });
  }, [values, pins.value]);
  if (words) return <Problem words={words} retry={retry} />;
  if (checked === null) return <p class="beside" role="status">Checking {plural(values.length, "statement")} …</p>;
  return (
    <ol class="statements">
      {values.map((value, place) => {
        const { purpose, by, state } = checked[place] ?? { purpose: "", by: [], state: "no statement" as const };
        const [mark, said] = STATES[state];
        return (
          <li key={place}>
            <p>
              <Mark name={mark} /> <strong><Text>{lookUp(NAMES, purpose) ?? (purpose || "Entry")}</Text></strong>
              {signerOf(value) ? <> by <Text>{signerOf(value)}</Text></> : null}
              {by.map((fingerprint) => <span key={fingerprint}> <Hex>{fingerprint}</Hex></span>)}
            </p>
            <p class={`beside${mark === "failed" ? " bad" : ""}`}>{said}</p>
            <details><summary>What it says</summary><Value value={at(value, "content") ?? value} /></details>
          </li>
        );
      })}
    </ol>
  );
}

/** Who says that he made the statement. The key behind the signature says who did. */
function signerOf(value: Json): string {
  const named = ["approver", "agent", "principal", "iss"].map((name) => asText(at(value, "content", name))).find(Boolean);
  const server = at(value, "content", "server_id");
  return named ?? (server instanceof JsonNumber ? `policy:${server.text}` : "");
}

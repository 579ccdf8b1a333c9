/** An action of a run that no capsule seals: its fields, the word of the gate, its receipt, and the exact bytes. */

import type { JSX } from "preact";
import { Value } from "../../parts/json.tsx";
import { Hex, Text } from "../../parts/text.tsx";
import { Mark } from "../../parts/verdict.tsx";
import { type Json, type JsonObject, readJson } from "../../verify/json.ts";
import type { RecordDetail } from "../../worker/protocol.ts";

const GATE = ["gate_decision", "gate_score", "policy_verdict"];
const RECEIPT = ["receipt_hash", "canonical_fields", "parent_receipt_hash", "parent_action_id"];

/** Whether the receipt is that of the action, and the action follows the one before. Nothing more can be told of it. */
export function ReceiptBand({ detail }: { detail: RecordDetail }): JSX.Element {
  const holds = detail.computedHash === detail.hash && !detail.findings.length;
  const name = holds ? "qualified" : "failed";
  return <p class={`seal-band ${name}`} role="status"><Mark name={name} /> <strong>{name}</strong> {holds ? "Its receipt is right. Nobody signed it: anyone can make such a line." : "This action does not hold by itself."}</p>;
}

export function ActionSections({ detail }: { detail: RecordDetail }): JSX.Element {
  const fields = readJson(detail.canonical) as JsonObject;
  const pick = (names: string[]) => new Map<string, Json>(names.map((name) => [name, fields.get(name) ?? null]));
  const others = [...fields.keys()].filter((name) => ![...GATE, ...RECEIPT, "metadata"].includes(name));
  return (
    <>
      <section class="section"><h2>What was done</h2><Value value={pick(others)} /></section>
      <section class="section"><h2>What the gate said</h2><Value value={pick(GATE)} /><p class="beside">The line says so. The gate's own records are not in this file.</p></section>
      <section class="section"><h2>Metadata</h2><Value value={fields.get("metadata") ?? null} /><p class="beside">The receipt does not cover them.</p></section>
    </>
  );
}

export function ReceiptSection({ detail, before }: { detail: RecordDetail; before: string }): JSX.Element {
  const isSame = detail.computedHash === detail.hash;
  return (
    <section class="section seal" id="section-seal">
      <h2>Receipt</h2>
      <div class="members"><dl>
        <div><dt><Mark name={isSame ? "verified" : "failed"} /> SHA-256 of {detail.receiptKeys} fields, computed here</dt><dd><Hex length={64}>{detail.computedHash || "another than the stored one"}</Hex></dd></div>
        <div><dt>receipt, as stored</dt><dd><Hex length={64}>{detail.hash}</Hex> {isSame ? "the same" : <strong>another</strong>}</dd></div>
        <div><dt>receipt of the action before</dt><dd>{detail.previousHash ? <><Hex length={64}>{detail.previousHash}</Hex> {before ? <a href={before} rel="prev">the action before</a> : null}</> : <span class="soft">none: this is the first</span>}</dd></div>
        <div><dt>signature</dt><dd class="soft">none</dd></div>
      </dl></div>
      {detail.findings.map((finding, index) => <p key={index} class="beside"><strong>{finding.code}</strong> <Text>{finding.words}</Text></p>)}
    </section>
  );
}

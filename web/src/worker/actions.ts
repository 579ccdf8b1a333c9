/** The actions of runs as items of a list: lines of `actions.jsonl`, `.cap` files of Aver and of CapSeal, and proofs. */

import { canonicalJson } from "../verify/canonical.ts";
import { BadInput, type Json, type JsonObject, Unreadable, isObject, readJson } from "../verify/json.ts";
import {
  ACTION_LINE_MAX,
  RECEIPT_KEY_COUNT,
  actionFields,
  encodeAction,
  readAction,
  readActionLine,
  readOwnLines,
  readRawLines,
  sealForm,
} from "../verify/run/action.ts";
import { readArchive } from "../verify/run/archive.ts";
import { CAPSEAL_MEMBERS, isCapseal } from "../verify/run/capseal.ts";
import { CAPSULE_LINE_MAX, readCapsuleLine } from "../verify/run/evidence.ts";
import { MEMBER_ORDER } from "../verify/run/files.ts";
import { ReceiptJudge } from "../verify/run/judge.ts";
import { Sealed, readSeal } from "../verify/sealed.ts";
import { type Finding, Tally } from "../verify/verdict.ts";
import type { Item } from "./rows.ts";

/** Actions that are read at once. */
const BATCH = 500;

/** An action as a record without a signature: its text is that of its line, and its hash is its receipt. */
export class ActionItem extends Sealed {
  /** How many fields the receipt covers. */
  readonly keys: number;
  readonly findings: Finding[];

  constructor(canonical: string, { hash, computedHash, keys, at, findings }: { hash: string; computedHash: string; keys: number; at: string; findings: Finding[] }) {
    super(canonical, { hash, signature: "", signature_pq: "", signed_at: at, signed_by: "" });
    this.adoptHash(computedHash);
    this.keys = keys;
    this.findings = findings;
  }

  /** The action in the form of the capsule that Aver would seal of it, so that lists, counts and search read both alike. */
  override get value(): Json {
    const fields = readJson(this.canonical) as JsonObject;
    const metadata = fields.get("metadata");
    const said = (name: string) => (isObject(metadata) && typeof metadata.get(name) === "string" ? (metadata.get(name) as string) : "");
    const type = String(fields.get("action_type"));
    const call = new Map<string, Json>([["tool", said("tool_name") || type], ["success", fields.get("success") as Json]]);
    const words = said("description") || said("tool_name") || String(fields.get("action_id"));
    return new Map<string, Json>([
      ["type", "tool"],
      ["trigger", new Map([["timestamp", this.signed_at]])],
      ["context", new Map([["environment", new Map([["aver", new Map([["kind", "action"]])]])]])],
      ["authority", new Map([["type", fields.get("gate_decision") ?? ""]])],
      ["execution", new Map<string, Json>([["tool_calls", [call]]])],
      ["outcome", new Map<string, Json>([["status", fields.get("success") === true ? "success" : "failure"], ["summary", `${type}: ${words}`], ["result", fields]])],
    ]);
  }
}

/** The lines of actions in batches, each judged with the one before it. */
export function* readActions(data: Uint8Array): Generator<Item[]> {
  const tally = new Tally();
  const judge = new ReceiptJudge(tally, {});
  let batch: Item[] = [];
  for (const raw of readRawLines(data, ACTION_LINE_MAX)) {
    const line = judge.take(raw);
    const findings = tally.findings.splice(0);
    tally.counts.clear(); // A tally keeps a hundred findings of a kind. Here each action has its own.
    if (line === null) batch.push(raw instanceof BadInput ? raw : new Unreadable(findings[0]?.words ?? ""));
    else {
      const { action, texts, receiptHash: hash, keys, problem } = line;
      const computedHash = problem === null ? hash : keys === RECEIPT_KEY_COUNT ? texts.receiptHash : "";
      batch.push(new ActionItem(new TextDecoder().decode(raw as Uint8Array), { hash, computedHash, keys, at: action.timestamp, findings }));
    }
    if (batch.length < BATCH) continue;
    yield batch;
    batch = [];
  }
  yield batch;
}

/** The action of a proof, and the seal of its run. */
export function readProof(data: Uint8Array): Item[] {
  const document = readJson(data);
  if (!isObject(document)) throw new BadInput("a proof is an object");
  const items: Item[] = [];
  const action = readAction(document.get("action"));
  const { receiptHash } = encodeAction(action);
  const hash = String(document.get("receipt_hash"));
  items.push(new ActionItem(canonicalJson(actionFields(action)), { hash, computedHash: receiptHash, keys: RECEIPT_KEY_COUNT, at: action.timestamp, findings: [] }));
  const seal = document.get("seal");
  if (isObject(seal)) items.push(new Sealed(String(seal.get("canonical")), readSeal(seal, (key) => new BadInput(`${key} must be a string`))));
  return items;
}

/** The records of a `.cap` file with their chains. The actions of CapSeal have none: `chain` is then the given name. */
export async function* readCap(packed: Uint8Array, name: string): AsyncGenerator<{ chain: string; items: Item[] }> {
  const archive = await readArchive(packed, new Set(MEMBER_ORDER), CAPSEAL_MEMBERS);
  const actions = archive.members.get("actions.jsonl") ?? new Uint8Array();
  if (isCapseal(archive)) {
    for (const items of readActions(actions)) yield { chain: name, items };
    return;
  }
  const lines = readRawLines(actions, ACTION_LINE_MAX);
  let last = name;
  for (const raw of readOwnLines(archive.members.get("capsules.jsonl") ?? new Uint8Array(), CAPSULE_LINE_MAX)) {
    try {
      if (raw instanceof BadInput) throw raw;
      const capsule = readCapsuleLine(readJson(raw));
      last = capsule.chain;
      let action: string | null = null;
      if (capsule.hasAction) {
        const line = lines.next().value;
        if (line instanceof Uint8Array) {
          const read = readActionLine(line);
          action = sealForm(read.action, read.texts);
        }
      }
      yield { chain: last, items: [capsule.rebuild(action)] };
    } catch (error) {
      if (!(error instanceof BadInput)) throw error;
      yield { chain: last, items: [error] };
    }
  }
}

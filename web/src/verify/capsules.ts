/** Capsules outside any ledger: one, an array, or one on each line. The twin of `aver.ledger.foreign.capsule_files`. */

import { readBlock } from "./block.ts";
import { BLOB_REFERENCE } from "./blobs.ts";
import { type ByteSource, LineReader } from "./bytes.ts";
import { ChainJudge, plainRules, prepareBatches } from "./chain.ts";
import { readElementTexts } from "./elements.ts";
import { skipExaminers } from "./examiner.ts";
import { BadInput, ELEMENT_MAX, JsonNumber, Unreadable } from "./json.ts";
import { retirementsByTime } from "./key_history.ts";
import { ProgressMeter, type VerifyOptions } from "./options.ts";
import { Sealed, checkSealFields, sealedFromJson } from "./sealed.ts";
import { type Verdict, conclude } from "./verdict.ts";

const LINE_MAX = ELEMENT_MAX;
/** Records that are judged together, so that the platform verifies their signatures at once. */
const BATCH = 256;

interface Part {
  where: string;
  data: Uint8Array | string | BadInput;
}

type CapsuleItem = { where: string; item: Sealed | BadInput };

/** The verdict on a file of capsules. */
export async function judgeCapsules(name: string, source: ByteSource, opening: string, options: VerifyOptions): Promise<Verdict> {
  const retired = retirementsByTime(options.ring, options.ed25519);
  const rules = plainRules(options.ring, options.ed25519, { retired, requirePq: options.requirePq ?? false, crew: options.crew ?? null });
  const judge = new ChainJudge(rules, { start: null, source: name });
  const meter = new ProgressMeter(options, source.size);
  let refersToBlobs = false;
  let first: JsonNumber | null = null;
  let domain = ""; // Of the first record. It decides which examiners would have had to look at the records.
  const batches = prepareBatches(rules, readCapsuleItems(source, opening), (found) => found.flatMap(({ item }) => (item instanceof Sealed ? [item] : [])));
  read: for await (const items of batches) {
    let bytes = 0;
    for (const { where, item } of items) {
      if (judge.stopsReading()) break read;
      if (item instanceof BadInput) {
        judge.unreadable(item, where);
        continue;
      }
      const content = judge.judge(item);
      bytes += item.canonical.length;
      if (content === null) continue;
      if (first === null) {
        first = content.get("sequence") as JsonNumber;
        domain = readBlock(content) === null ? "" : (content.get("domain") as string);
      }
      refersToBlobs ||= item.canonical.includes(BLOB_REFERENCE);
    }
    meter.add(items.length, bytes);
  }
  const tally = judge.finish();
  // A single record may come from anywhere in its chain; several should begin where the chain does.
  if (first !== null && BigInt(first.text) !== 0n && tally.records > 1) {
    tally.skip("genesis", `begins at sequence ${first.text}: the records before it are not here`, { matters: true });
  }
  if (refersToBlobs) tally.skip("blobs", "the large values that it refers to are not here", { matters: false });
  tally.skip("meta", "nothing here shows how many records there once were", { matters: false });
  skipExaminers(domain, "the ledger that these records are from is not here", tally);
  tally.chains = Number(tally.records > 1);
  return conclude(name, tally);
}

/** Stream the records, each with its place for messages. An unreadable record is given as an error. */
export async function* readCapsuleItems(source: ByteSource, opening: string): AsyncGenerator<CapsuleItem[]> {
  let items: CapsuleItem[] = [];
  for await (const { where, data } of opening === "[" ? readArray(source) : readDocuments(source)) {
    try {
      if (data instanceof BadInput) throw data;
      const item = sealedFromJson(data);
      if (!item.hash) throw new Unreadable("it is not sealed: it has no hash");
      items.push({ where, item: checkSealFields(item) });
    } catch (error) {
      if (!(error instanceof BadInput)) throw error;
      items.push({ where, item: error });
    }
    if (items.length >= BATCH) {
      yield items;
      items = [];
    }
  }
  if (items.length) yield items;
}

/** The elements of a JSON array as texts. After an unreadable one, the rest cannot be found. */
async function* readArray(source: ByteSource): AsyncGenerator<Part> {
  let number = 0;
  for await (const { items, error } of readElementTexts(source)) {
    for (const text of items) yield { where: `element ${++number}: `, data: text };
    if (error !== null) yield { where: `element ${number + 1}, and the rest unread: `, data: error };
  }
}

/** One document over several lines, or one document on each line; the first two lines show which. */
async function* readDocuments(source: ByteSource): AsyncGenerator<Part> {
  const reader = new LineReader(source);
  let number = 1 + (await reader.skipBlanks());
  const first = await readLine(reader);
  if (first === null) return;
  const second = await readLine(reader);
  if (second === null) {
    yield { where: "", data: checkLength(first) };
    return;
  }
  const endsAnObject = lastSolid(first) === 0x7d;
  const beginsAnObject = second.find((byte) => byte !== 0x20 && byte !== 0x09) === 0x7b;
  if (!endsAnObject && !beginsAnObject) {
    // An object that is written over several lines: neither does the first line end it, nor the second begin one.
    const start = joinBytes(first, second);
    const rest = await reader.readRest(Math.max(ELEMENT_MAX + 1 - start.length, 0));
    yield { where: "", data: checkLength(joinBytes(start, rest)) };
    return;
  }
  const pending = [second];
  for (let line: Uint8Array | null = first; line !== null; ) {
    if (!isBlank(line)) yield { where: `line ${number}: `, data: checkLength(line) };
    else if (!pending.length) number += await reader.skipBlanks();
    line = pending.pop() ?? (await readLine(reader));
    number++;
  }
}

/** The next line, cut a little beyond the limit, so that it is recognised as too long; null at the end. */
async function readLine(reader: LineReader): Promise<Uint8Array | null> {
  const line = await reader.readLine(LINE_MAX + 2);
  for (let rest = line; rest !== null && rest.length > LINE_MAX + 1 && rest.at(-1) !== 0x0a; ) {
    rest = await reader.readLine(LINE_MAX + 2);
  }
  return line;
}

function checkLength(text: Uint8Array): Uint8Array | BadInput {
  return text.length <= LINE_MAX + 1 ? text : new Unreadable(`larger than ${LINE_MAX} bytes`);
}

/** White space as Python strips it from bytes. */
function isStripped(byte: number): boolean {
  return byte === 0x20 || (byte >= 0x09 && byte <= 0x0d);
}

function isBlank(line: Uint8Array): boolean {
  return line.every(isStripped);
}

function lastSolid(line: Uint8Array): number | undefined {
  for (let at = line.length - 1; at >= 0; at--) if (!isStripped(line[at] as number)) return line[at];
  return undefined;
}

function joinBytes(one: Uint8Array, other: Uint8Array): Uint8Array {
  const joined = new Uint8Array(one.length + other.length);
  joined.set(one);
  joined.set(other, one.length);
  return joined;
}

/** The card at a broken place: the line stops in a jagged end; code, meaning and advice; what was expected, and found. */

import type { JSX } from "preact";
import { connection, pinnedKeys } from "../state.ts";
import type { Finding } from "../verify/verdict.ts";
import { useAnswer } from "./states.tsx";
import { WholeHex, plural } from "./text.tsx";
import { FindingCard, adviceOn, describePlace } from "./verdict.tsx";

/** Findings with two hashes: those of one record, or those of a record and the one before it. */
const HASHED = ["HASH_MISMATCH", "CHAIN_BREAK", "SEQUENCE_GAP", "GENESIS_INVALID"];

/** What the place of a break should have, and what it has. Both are read again from the records. */
async function readExpected(chain: string, place: number, code: string): Promise<[expected: string, found: string] | null> {
  const ask = (at: number) => connection.ask({ type: "record", chain, at: { place: at }, keys: pinnedKeys() });
  if (code === "HASH_MISMATCH") {
    const { hash, computedHash } = await ask(place);
    return [hash, computedHash];
  }
  if (!HASHED.includes(code) || place === 0) return null;
  const [previous, here] = [await ask(place - 1), await ask(place)];
  return [previous.hash, here.previousHash];
}

/** Expected and found, where a break has both. */
function Expected({ chain, place, code }: { chain: string; place: number; code: string }): JSX.Element | null {
  const answer = useAnswer(() => readExpected(chain, place, code).catch(() => null), [chain, place, code]);
  if (!answer.value) return null;
  const [expected, found] = answer.value;
  const what = code === "HASH_MISMATCH" ? ["stored hash", "computed here"] : ["hash of the record before", "this record links to"];
  return <p class="beside tight">{what[0]}: <WholeHex>{expected}</WholeHex> {what[1]}: {found ? <WholeHex>{found}</WholeHex> : "nothing"}</p>;
}

/** Both heads, where the finding has them as its proof. */
function Proof({ proof }: { proof: Finding["proof"] }): JSX.Element | null {
  if (proof === undefined || proof === null || typeof proof !== "object") return null;
  const heads = Object.entries(proof as Record<string, { count?: number; hash?: string | null }>).filter(([, head]) => head !== null && typeof head === "object" && "hash" in head);
  if (!heads.length) return null;
  return <p class="beside tight">{heads.map(([name, head]) => <span key={name}>{name}: {plural(head.count ?? 0, "record")}, {head.hash ? <WholeHex>{head.hash}</WholeHex> : "no head"} </span>)}</p>;
}

/** Pixels of a character and of a line: of the first sentence, and of the smaller words below it. */
const WORDS = { character: 8.4, line: 22 };
const SMALL = { character: 7.2, line: 18 };
const PADDING = 24;

/** The height of a card whose words have this width. A list must know it before the card is drawn. */
export function breakHeight(finding: Finding, width: number): number {
  const lines = (length: number, character: number) => Math.ceil(length / Math.max(16, Math.floor((0.9 * width) / character)));
  const said = `${finding.code} at ${describePlace(finding.place)}: ${finding.words}`;
  const explained = adviceOn(finding.code);
  const small = lines(`${explained?.meaning ?? ""} ${explained?.advice ?? ""}`.length, SMALL.character);
  // Below may be two hashes with their names, in about 100 characters.
  const below = finding.proof || HASHED.includes(finding.code) ? lines(100, SMALL.character) : 0;
  return PADDING + WORDS.line * lines(said.length, WORDS.character) + SMALL.line * (small + below);
}

/** `place` is that of the record which fails; null where the break is beyond the last record. */
export function BreakCard({ chain, finding, place }: { chain: string; finding: Finding; place: number | null }): JSX.Element {
  return (
    <>
      <span class="jag" aria-hidden="true" />
      <div class="break-words">
        <FindingCard finding={finding} />
        {place === null ? null : <Expected chain={chain} place={place} code={finding.code} />}
        <Proof proof={finding.proof} />
      </div>
    </>
  );
}

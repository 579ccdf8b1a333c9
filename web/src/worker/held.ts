/**
 * Holds a server to its records. The judge reads them once, and the views read them at other times: a server could give the
 * true ones to the judge alone. So what a view is given must be what was judged.
 */

import { NotFound, Unreadable } from "../verify/json.ts";
import { Sealed } from "../verify/sealed.ts";
import type { HeldDigests } from "./protocol.ts";
import type { Item } from "./rows.ts";

/** Records whose digests are kept: judged ones, and those that the views were given. */
const HELD_MAX = 500_000;
const GIVEN_MAX = 50_000;
/** Hex digits that a number holds exactly. Two numbers of a hash are kept: nobody finds another record that has them. */
const DIGITS = 13;

function shorten(hash: string): [number, number] {
  return [parseInt(hash.slice(0, DIGITS), 16), parseInt(hash.slice(DIGITS, 2 * DIGITS), 16)];
}

/** Notes the records that are judged. */
export class DigestNotes {
  private readonly noted = new Map<string, number[]>();
  private count = 0;

  /** Note the next record of a chain. */
  add(chain: string, hash: string): void {
    if (this.count++ >= HELD_MAX) return;
    const known = this.noted.get(chain);
    if (known === undefined) this.noted.set(chain, shorten(hash));
    else known.push(...shorten(hash));
  }

  get digests(): HeldDigests {
    return [...this.noted].map(([chain, numbers]) => [chain, new Float64Array(numbers)]);
  }
}

export class HeldRecords {
  private held: ReadonlyMap<string, Float64Array>;
  /** The hashes of the records that views were given, by place and chain. One that was given in two forms has none. */
  private readonly given = new Map<string, string>();

  constructor(digests: HeldDigests = []) {
    this.held = new Map(digests);
  }

  /** Hold the views to what was judged. Returns which record they were given otherwise before; empty if none. */
  hold(digests: HeldDigests): string {
    this.held = new Map(digests);
    for (const [where, hash] of this.given) {
      const [place = "", chain = ""] = where.split(/ (.*)/s);
      if (!this.isSame(chain, Number(place), hash)) return `record ${place} of ${chain}`;
    }
    return "";
  }

  /** Records of a chain from a place on. One that is another than the judged one, or is not given any more, is an error. */
  async *check(chain: string, start: number, stop: number, batches: AsyncIterable<Item[]>): AsyncGenerator<Item[]> {
    let place = start;
    for await (const items of batches) yield items.map((item) => this.take(chain, place++, item));
    const judged = Math.min(stop, (this.held.get(chain)?.length ?? 0) / 2);
    if (place < judged) yield Array.from({ length: judged - place }, () => new NotFound("the server withholds this record, which it gave to be verified (v verifies again)"));
  }

  private take(chain: string, place: number, item: Item): Item {
    if (!(item instanceof Sealed) || !item.canonical.isWellFormed()) return item;
    const where = `${place} ${chain}`;
    const before = this.given.get(where) ?? item.computedHash;
    this.given.set(where, before === item.computedHash ? before : "");
    if (this.given.size > GIVEN_MAX) this.given.delete(this.given.keys().next().value as string);
    return this.isSame(chain, place, item.computedHash) ? item : new Unreadable("the server gives another record here than it gave to be verified (v verifies again)");
  }

  private isSame(chain: string, place: number, hash: string): boolean {
    const held = this.held.get(chain);
    if (held === undefined || held.length <= 2 * place) return true;
    const [first, second] = shorten(hash);
    return held[2 * place] === first && held[2 * place + 1] === second;
  }
}

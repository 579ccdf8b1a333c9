/** The heads that this browser remembers, beside those of the records that are judged. */

import type { Verdict } from "../verify/verdict.ts";
import { DigestNotes } from "./held.ts";
import type { RememberedHead, RememberedHeads } from "./protocol.ts";

/** Compares chains with the heads that this browser remembers, and notes the heads that it sees. */
export class HeadWitness {
  private readonly remembered: ReadonlyMap<string, RememberedHead>;
  /** The hash at the place of the remembered head, by chain. */
  private readonly found = new Map<string, string>();
  private readonly last = new Map<string, RememberedHead>();
  readonly notes = new DigestNotes();

  constructor(remembered: RememberedHeads) {
    this.remembered = new Map(remembered);
  }

  take = (chain: string, place: number, hash: string): void => {
    this.last.set(chain, { count: place + 1, hash });
    this.notes.add(chain, hash);
    if (this.remembered.get(chain)?.count === place + 1) this.found.set(chain, hash);
  };

  get heads(): RememberedHeads {
    return [...this.last];
  }

  /** Add the check `rollback`. `chains` are those that were judged; null for all. */
  addTo(verdict: Verdict, chains: string[] | null): void {
    const compared = [...this.remembered].filter(([chain]) => chains === null || chains.includes(chain));
    if (!compared.length) return;
    const plain = { name: "rollback", code: null, place: null, matters: false };
    let grown = 0;
    let first = true;
    for (const [chain, remembered] of compared) {
      const actual = this.last.get(chain) ?? { count: 0, hash: null };
      // An import may be dropped. The meta chain records that, and its own check judges it.
      if (actual.count === 0 && chain.startsWith("import.")) continue;
      if (this.found.get(chain) === remembered.hash) {
        grown += Number(actual.count > remembered.count);
        continue;
      }
      const words =
        actual.count < remembered.count
          ? `this browser remembers ${remembered.count} records of the chain ${chain}; ${actual.count} are here`
          : `this browser remembers another record of the chain ${chain} at this place`;
      const place = { chain, sequence: Math.min(remembered.count - 1, actual.count), source: null };
      const finding = { check: "rollback", status: "failed" as const, code: "ROLLBACK", words, place, proof: { remembered, actual } };
      verdict.findings.push(finding);
      verdict.first_bad ??= finding;
      verdict.status = "failed";
      if (first) verdict.checks.push({ ...plain, status: "failed", reason: words, code: "ROLLBACK", place, count: 1, matters: true });
      first = false;
    }
    if (first) {
      const reason = `${compared.length} chains have the records that this browser remembers; ${grown} have grown`;
      verdict.checks.push({ ...plain, status: "passed", reason, count: compared.length });
    }
  }
}

/** What the meta chain of a bundle remembers of its chains, compared with the chains that are here. */

import { META_CHAIN, RESERVED_CHAINS, readKind } from "../block.ts";
import { ChainJudge, type Rules } from "../chain.ts";
import { type Head, checkHead } from "../heads.ts";
import type { JsonObject } from "../json.ts";
import type { Sealed } from "../sealed.ts";
import type { Tally } from "../verdict.ts";
import { DROP_KIND, IMPORT_KIND, type ImportHistory, collectHeads, findExternalChain, forgetDropped } from "./imports.ts";

const HEADS_MAX = 1_000_000;

/** Whose bundle it is, as far as it is known. */
export interface Owner {
  ledger: string | null;
  tenant: string | null;
}

/** The heads that entries of the meta chain record, by the names that the chains had there. */
export class MetaMemory {
  readonly heads = new Map<string, Head>();
  readonly imports: ImportHistory;
  private readonly elsewhere = new Set<string>();
  private readonly made = new Set<string>();
  private readonly compared = new Set<string>();
  private doubtfulDrops = 0;
  private grown = 0;
  private outside = 0;

  constructor(imports: ImportHistory) {
    this.imports = imports;
  }

  /** Take up an entry of the meta chain. */
  take(record: Sealed, content: JsonObject, owner: Owner, rules: Rules): void {
    if (this.heads.size >= HEADS_MAX) return;
    this.noteClaim(content);
    collectHeads(content, this.heads, owner.ledger ?? "", owner.tenant ?? "");
    const external = findExternalChain(content);
    if (external !== null && this.heads.has(external)) this.elsewhere.add(external);
    this.noteImport(record, content, rules);
  }

  /**
   * Compare a chain with the head that was remembered under this name before the chain was read. `atHead` is the hash at
   * that head's place. The meta chain knows a chain by the name that it had there; findings have its id in this bundle.
   */
  compare(name: string, remembered: Head | undefined, actual: Head, atHead: string | null, tally: Tally): void {
    if (remembered === undefined) {
      this.outside += Number(!RESERVED_CHAINS.has(actual.chain));
      return;
    }
    this.compared.add(name);
    this.grown += Number(checkHead({ ...remembered, chain: actual.chain }, actual, atHead, tally, "meta", "the meta chain"));
  }

  /** Note a chain that an entry calls imported, and that was recorded before: it was made there, and stays so. */
  private noteClaim(content: JsonObject): void {
    if (readKind(content) !== IMPORT_KIND) return;
    const claimed = new Map<string, Head>();
    collectHeads(content, claimed, "", "");
    for (const name of claimed.keys()) if (this.heads.has(name)) this.made.add(name);
  }

  /** Take up an entry of the meta chain about an import or a drop. An entry that does not hold drops nothing. */
  private noteImport(record: Sealed, content: JsonObject, rules: Rules): void {
    const kind = readKind(content);
    if (kind === IMPORT_KIND) this.imports.add(record);
    else if (kind === DROP_KIND) {
      const judge = new ChainJudge(rules, { chain: META_CHAIN, start: null });
      judge.judge(record);
      if (judge.tally.hasFailed()) return;
      const dropped = this.imports.add(record);
      forgetDropped(this.heads, [...dropped].filter(([name]) => !this.made.has(name)));
      if (judge.tally.findings.length || judge.signer === null) this.doubtfulDrops += dropped.size;
    }
  }

  /** Report the chains that the meta chain knows and the index does not list. */
  checkMissing(isPart: boolean, tally: Tally): void {
    if (!this.heads.size) {
      tally.skip("meta", "the meta chain records no chain", { matters: false });
      return;
    }
    if (this.doubtfulDrops) {
      const words = `that ${this.doubtfulDrops} imported chains were dropped says an entry by an unknown signer`;
      tally.skip("meta", words, { matters: true });
    }
    const missing = [...this.heads].filter(([name]) => !this.compared.has(name));
    if (isPart && missing.length) {
      tally.skip("meta", `${missing.length} chains that the meta chain knows are not in this part`, { matters: true });
    }
    let elsewhere = 0;
    for (const [name, head] of isPart ? [] : missing) {
      if (this.elsewhere.has(name)) elsewhere++;
      else checkHead(head, null, null, tally, "meta", "the meta chain");
    }
    if (elsewhere) {
      tally.skip("meta", `${elsewhere} chains were kept in databases of their own and are not here`, { matters: true });
    }
    if (this.heads.size >= HEADS_MAX) tally.skip("meta", `the meta chain records more than ${HEADS_MAX} chains`, { matters: true });
    const compared = `${this.compared.size} chains match their recorded heads`;
    tally.notes.set("meta", `${compared} (${this.grown} grown since, ${this.outside} not recorded)`);
  }
}

/** Facts about a chain, collected record by record, to compare them with the claims about it. */

import { at } from "../block.ts";
import type { JsonObject } from "../json.ts";
import type { Sealed } from "../sealed.ts";
import { cleanTitle, cutText, firstLine, strip } from "../text.ts";

export const TITLE_MAX = 90;
const TITLE_SCAN_MAX = 4096;
/** Most signers of a chain that are noted. The signers of a chain with more are not compared with the index. */
export const SIGNERS_MAX = 1000;

export class ChainFacts {
  count = 0;
  genesisHash: string | null = null;
  headHash: string | null = null;
  startedAt: string | null = null;
  endedAt: string | null = null;
  title = "";
  /** The title as the public tool makes it: with addresses and paths. */
  rawTitle = "";
  readonly signers = new Set<string>();

  addRecord(record: Sealed, content: JsonObject | null): void {
    if (this.count === 0) {
      this.genesisHash = record.hash;
      this.startedAt = record.signed_at;
    }
    this.count++;
    this.headHash = record.hash;
    this.endedAt = record.signed_at;
    if (record.signed_by && this.signers.size <= SIGNERS_MAX) this.signers.add(record.signed_by);
    if (this.rawTitle === "" && content !== null) {
      const request = at(content, "trigger", "request");
      this.rawTitle = typeof request === "string" ? firstLine(strip(cutText(request, TITLE_SCAN_MAX))) : "";
      this.title = cleanTitle(this.rawTitle, TITLE_MAX);
    }
  }

  /** Count a record that is no capsule. It has a place in the chain, and no hash. */
  addUnreadable(): void {
    this.count++;
    this.headHash = null;
  }
}

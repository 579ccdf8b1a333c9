/** Reading the records and blobs of a bundle again, for examiners of other rooms. */

import type { Directory } from "../bytes.ts";
import type { EvidenceReader } from "../examiner.ts";
import type { Head } from "../heads.ts";
import { NotFound } from "../json.ts";
import { Sealed } from "../sealed.ts";
import { readBundleBlob } from "./blobs.ts";
import { type BundleIndex, fileOf, readChainFile } from "./layout.ts";

/** Decisions that can be found by their hashes. */
const INDEXED_MAX = 200_000;

/** Reads the chains of a bundle that were judged. */
export class BundleReader implements EvidenceReader {
  private readonly directory: Directory;
  private readonly heads: ReadonlyMap<string, Head>;
  private readonly files: ReadonlyMap<string, string>;
  private decisions: Map<string, Sealed> | null = null;

  constructor(directory: Directory, heads: ReadonlyMap<string, Head>, index: BundleIndex) {
    this.directory = directory;
    this.heads = heads;
    this.files = new Map(index.chains.map((claim) => [claim.id, fileOf(claim)]));
  }

  async *read(chain: string): AsyncGenerator<Sealed> {
    const name = this.files.get(chain);
    if (name === undefined) throw new NotFound(`the chain ${chain} is not in the bundle`);
    for await (const items of readChainFile(await this.directory.open(name))) {
      for (const item of items) {
        if (!(item instanceof Sealed)) continue;
        item.chain = chain;
        yield item;
      }
    }
  }

  async get(hash: string): Promise<Sealed | null> {
    if (this.decisions === null) {
      this.decisions = new Map();
      for (const chain of this.files.keys()) {
        if (!chain.split(".").includes("gate")) continue;
        for await (const record of this.read(chain)) {
          if (this.decisions.size >= INDEXED_MAX) break;
          this.decisions.set(record.hash, record);
        }
      }
    }
    return this.decisions.get(hash) ?? null;
  }

  blob(digest: string): Promise<Uint8Array> {
    return readBundleBlob(this.directory, digest);
  }

  head(chain: string): Head | null {
    return this.heads.get(chain) ?? null;
  }
}

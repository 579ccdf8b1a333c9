/** The blobs of a bundle: every one that a record refers to must have the bytes of its digest. */

import { blobReferences } from "../blobs.ts";
import { type Directory, readChunks } from "../bytes.ts";
import { sha256Hex, startSha256 } from "../digest.ts";
import { BadInput, type JsonObject, NotFound } from "../json.ts";
import type { ProgressMeter } from "../options.ts";
import { type Tally, place } from "../verdict.ts";
import { BLOBS, INDEX } from "./layout.ts";

const BLOBS_KEPT = 100_000;
/** Bytes of a blob that is read into memory. */
const BLOB_READ_MAX = 64 * 1024 * 1024;
/** Stand for the size of a blob whose bytes, or whose size, are not those of its reference. */
const OTHER_BYTES = -1;
const OTHER_SIZE = -2;

/** The bytes of a blob in a bundle; `BadInput` if they are not those of its digest. */
export async function readBundleBlob(directory: Directory, digest: string): Promise<Uint8Array> {
  const file = await directory.open(BLOBS, digest);
  if (file.size > BLOB_READ_MAX) throw new NotFound(`the blob ${digest} is larger than ${BLOB_READ_MAX} bytes, and was not read`);
  const data = await file.read(0, file.size);
  if (sha256Hex(data) !== digest) throw new BadInput(`the blob stored as ${digest} has other bytes`);
  return data;
}

/** The blobs that records of a bundle refer to. */
export class BundleBlobs {
  /** The size of each, and null for one that is not here. */
  readonly sizes = new Map<string, number | null>();
  private readonly directory: Directory;
  private readonly areLeftOut: boolean;
  private readonly meter: ProgressMeter;

  constructor(directory: Directory, areLeftOut: boolean, meter: ProgressMeter) {
    this.directory = directory;
    this.areLeftOut = areLeftOut;
    this.meter = meter;
  }

  /** The digests of the blobs that are here. */
  get present(): string[] {
    return [...this.sizes].flatMap(([digest, size]) => (size === null ? [] : [digest]));
  }

  /** Check the blobs that one record refers to. */
  async check(content: JsonObject, chain: string, sequence: number, tally: Tally): Promise<void> {
    for (const { digest, size } of blobReferences(content)) {
      if (this.areLeftOut) {
        tally.skip("blobs", "the bundle was made without its blobs", { matters: true });
        return;
      }
      tally.countDone("blobs");
      let actual = this.sizes.get(digest);
      if (actual === undefined || actual === OTHER_SIZE) actual = await this.measure(digest, size);
      if (this.sizes.size < BLOBS_KEPT) this.sizes.set(digest, actual);
      if (actual === null) {
        tally.fail("blobs", "ARTIFACT_MISSING", `the blob ${digest} is not here`, place(chain, sequence));
      } else if (String(actual) !== size) {
        tally.fail("blobs", "ARTIFACT_HASH_MISMATCH", `the blob stored as ${digest} has other bytes`, place(chain, sequence));
      }
    }
  }

  /** How many bytes a blob has; `OTHER_SIZE`, `OTHER_BYTES`, or null if there is none. */
  private async measure(digest: string, expected: string): Promise<number | null> {
    try {
      const file = await this.directory.open(BLOBS, digest);
      if (String(file.size) !== expected) return OTHER_SIZE;
      const hash = startSha256();
      for await (const chunk of readChunks(file)) {
        hash.update(chunk);
        this.meter.add(0, chunk.length);
      }
      return hash.hex() === digest ? file.size : OTHER_BYTES;
    } catch (error) {
      if (error instanceof BadInput) return null;
      throw error;
    }
  }

  /** Compare the number of blobs with the one in the index. Returns whether all were counted. */
  checkCount(claimed: number | null, tally: Tally): boolean {
    if (this.sizes.size >= BLOBS_KEPT) {
      tally.skip("index", `more than ${BLOBS_KEPT} blobs were not counted`, { matters: true });
      return false;
    }
    const here = this.present.length;
    if (claimed !== null && claimed !== here) {
      const words = `the index counts ${claimed} blobs; records refer to ${here} that are here`;
      tally.fail("index", "INDEX_MISMATCH", words, place(null, null, INDEX));
    }
    return true;
  }
}

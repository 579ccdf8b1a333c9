/** References to large values that are stored beside a record. The twin of `aver.capsule.blobs`. */

import { HEX64 } from "./digest.ts";
import { type Json, isInteger, isObject } from "./json.ts";

/** How the canonical text of a record with a reference contains it. */
export const BLOB_REFERENCE = '"blob":{';

interface BlobReference {
  digest: string;
  /** The size as it is written; a record may claim any integer. */
  size: string;
}

/** Digest and size of every blob that a value refers to. */
export function* blobReferences(value: Json | undefined): Generator<BlobReference> {
  const stack: (Json | undefined)[] = [value];
  while (stack.length) {
    const item = stack.pop();
    if (isObject(item)) {
      const reference = item.get("blob");
      if (isObject(reference) && item.size === 1 && reference.get("alg") === "sha256") {
        const digest = reference.get("digest");
        const size = reference.get("size");
        if (typeof digest === "string" && HEX64.test(digest) && isInteger(size)) {
          yield { digest, size: size.text === "-0" ? "0" : size.text };
          continue;
        }
      }
      for (const member of item.values()) stack.push(member);
    } else if (Array.isArray(item)) {
      for (const member of item) stack.push(member);
    }
  }
}

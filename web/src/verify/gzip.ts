/**
 * Unpack gzip in pieces, by the platform's own reader: exactly one member, and nothing after it.
 *
 * The standard wants this strictness of `DecompressionStream`. An older platform, such as Node.js before version 24, goes on
 * with a second member, or skips what follows. There the end is checked by hand: a verifier must not overlook bytes.
 */

import { Unreadable } from "./json.ts";

/** An empty file, packed. */
const EMPTY = new Uint8Array([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
/** Bytes at the end of a member: a checksum and the size. */
const TRAILER = 8;

type Next = () => Promise<Uint8Array | null>;

let isStrict: Promise<boolean> | undefined;

/**
 * Unpack what `next` gives until it gives null. Raises `Unreadable` if that is no gzip, damaged, or more than one file, and
 * what `next` raises. The reader is at most some pieces ahead of the caller: with short pieces, a bomb stays small.
 */
export async function* unpackGzip(next: Next): AsyncGenerator<Uint8Array> {
  isStrict ??= canUnpack(new DecompressionStream("gzip"), [EMPTY, EMPTY]).then((can) => !can);
  if (await isStrict) return yield* unpack(new DecompressionStream("gzip"), next);
  const pieces: Uint8Array[] = [];
  yield* unpack(new DecompressionStream("gzip"), async () => {
    const piece = await next();
    if (piece !== null) pieces.push(piece);
    return piece;
  });
  const packed = new Uint8Array(await new Blob(pieces as Uint8Array<ArrayBuffer>[]).arrayBuffer());
  // Without its last byte, the packed content is not whole, unless other bytes stand between it and the trailer.
  const content = packed.subarray(findContent(packed), packed.length - TRAILER - 1);
  if (await canUnpack(new DecompressionStream("deflate-raw"), [content])) throw new Unreadable("something follows the packed file");
}

async function* unpack(stream: DecompressionStream, next: Next): AsyncGenerator<Uint8Array> {
  let failure: unknown = new Unreadable("no gzip, or a damaged one");
  let isOver = false;
  const packed = new ReadableStream<Uint8Array<ArrayBuffer>>({
    pull: async (control) => {
      const piece = await next().catch((error: unknown) => {
        throw (failure = error);
      });
      if (isOver) return;
      if (piece === null) control.close();
      else control.enqueue(piece as Uint8Array<ArrayBuffer>);
    },
    cancel: () => void (isOver = true),
  });
  const reader = packed.pipeThrough(stream).getReader();
  let isWhole = false;
  try {
    for (;;) {
      const { value, done } = await reader.read().catch(() => {
        throw failure;
      });
      isWhole = done;
      if (isWhole) return;
      yield value as Uint8Array;
    }
  } finally {
    if (!isWhole) {
      // Node.js may be about to give the next piece, and ends the process if the reader is gone by then.
      await new Promise((goOn) => setTimeout(goOn));
      await reader.cancel().catch(() => {});
    }
  }
}

async function canUnpack(stream: DecompressionStream, pieces: Uint8Array[]): Promise<boolean> {
  try {
    for await (const _ of unpack(stream, async () => pieces.shift() ?? null));
    return true;
  } catch {
    return false;
  }
}

/** Where the content begins, behind a header that a reader has accepted. */
function findContent(packed: Uint8Array): number {
  const flags = packed[3] as number;
  let at = 10;
  if (flags & 4) at += 2 + (packed[at] as number) + 256 * (packed[at + 1] as number);
  for (const text of [8, 16]) if (flags & text) at = packed.indexOf(0, at) + 1;
  return flags & 2 ? at + 2 : at;
}

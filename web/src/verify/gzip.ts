/**
 * Unpack gzip in pieces, by the platform's own reader: exactly one member, and nothing after it.
 *
 * The standard wants this strictness of `DecompressionStream`. Node.js before version 24 goes on with a second member, and
 * skips what follows it. There nothing is judged: a verifier must not overlook bytes.
 */

import { Unreadable } from "./json.ts";
import { NotJudged } from "./options.ts";

/** An empty file, packed. */
const EMPTY = new Uint8Array([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0]);

let isStrict: Promise<boolean> | undefined;

/**
 * Unpack what `next` gives until it gives null. Raises `Unreadable` if that is no gzip, damaged, or more than one file, and
 * what `next` raises. The reader is at most some pieces ahead of the caller: with short pieces, a bomb stays small.
 */
export async function* unpackGzip(next: () => Promise<Uint8Array | null>): AsyncGenerator<Uint8Array> {
  isStrict ??= refusesTwoMembers();
  if (!(await isStrict)) throw new NotJudged("the gzip reader here takes more than one packed file; use Node.js 24, or run: aver verify");
  yield* unpack(next);
}

async function* unpack(next: () => Promise<Uint8Array | null>): AsyncGenerator<Uint8Array> {
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
  const reader = packed.pipeThrough(new DecompressionStream("gzip")).getReader();
  try {
    for (;;) {
      const { value, done } = await reader.read().catch(() => {
        throw failure;
      });
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

async function refusesTwoMembers(): Promise<boolean> {
  const pieces = [EMPTY, EMPTY];
  try {
    for await (const _ of unpack(async () => pieces.pop() ?? null));
    return false;
  } catch {
    return true;
  }
}

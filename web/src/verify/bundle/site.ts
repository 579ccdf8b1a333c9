/** A bundle that is also a site: the twins of its files, which a page on file:// shows. The twin of `aver.ledger.bundle.site`. */

import { type ByteSource, type Directory, areSameBytes, readStart } from "../bytes.ts";
import { BadInput, readJson } from "../json.ts";
import { decodeBase64 } from "../digest.ts";
import { unpackGzip } from "../gzip.ts";
import { type Tally, place } from "../verdict.ts";
import { BLOBS, type BundleIndex, HEAD, INDEX, META, fileOf } from "./layout.ts";

const CHECK = "page";
const DATA = "explorer/data";
/** The list of the files that have twins. */
export const NAMES = `${DATA}/names.js`;
const NAMES_MAX = 16 * 1024 * 1024;
/** Bytes at the beginning of a twin that hold the name of its file. */
const TWIN_HEAD_MAX = 4096;
const TWIN_END = '");\n';
/** Characters of base64 that are unpacked at a time. Four of them are three bytes. */
const TWIN_PIECE = 32 * 1024;
/** The names that a site adds to a bundle's directory. */
export const SITE_NAMES: ReadonlySet<string> = new Set(["index.html", "explorer"]);

/** The path of the twin of the file with this number. */
export function twinOf(number: number): string {
  return `${DATA}/${number}.js`;
}

/** Whether a page lies in the directory of a bundle, or any part of one. */
export async function isSite(directory: Directory): Promise<boolean> {
  return (await directory.list()).some((name) => SITE_NAMES.has(name));
}

/** Compare every twin with its file (check `page`). */
export async function checkSite(directory: Directory, index: BundleIndex, blobs: Iterable<string>, tally: Tally, isPageJudged: boolean): Promise<void> {
  const beside = (await directory.list("explorer")) ?? [];
  if (!beside.includes("app.js") && !beside.includes("data")) return; // No script would show a twin.
  const fail = (words: string, source: string) => tally.fail(CHECK, "ARTIFACT_HASH_MISMATCH", words, place(null, null, source));
  let names: string[];
  try {
    names = await readNames(await openPath(directory, NAMES));
  } catch (error) {
    if (!(error instanceof BadInput)) throw error;
    fail(error.message, NAMES);
    return;
  }
  for (const [number, name] of names.entries()) {
    tally.countDone(CHECK);
    const where = twinOf(number);
    try {
      if (!(await isTwin(directory, where, name))) fail(`the page would show other bytes of ${name} than the bundle has`, where);
    } catch (error) {
      if (!(error instanceof BadInput)) throw error;
      fail(error.message, where);
    }
  }
  const meta = index.meta === null ? [] : [META];
  const files = [INDEX, HEAD, ...meta, ...index.chains.map(fileOf), ...[...blobs].sort().map((digest) => `${BLOBS}/${digest}`)];
  for (const name of files) {
    if (!names.includes(name) && (await exists(directory, name))) fail(`${name} has no twin: the page would not show it`, DATA);
  }
  tally.notes.set(CHECK, `${names.length} files are those that the page shows; ${isPageJudged ? "the page is one of Aver's" : "whether the page is one of Aver's, aver verify says"}`);
}

async function exists(directory: Directory, name: string): Promise<boolean> {
  try {
    await openPath(directory, name);
    return true;
  } catch (error) {
    if (error instanceof BadInput) return false;
    throw error;
  }
}

function openPath(directory: Directory, path: string): Promise<ByteSource> {
  return directory.open(...path.split("/"));
}

/** A text with one unit for each byte, so that a place in it is a place in the bytes. Only its ASCII is what it was. */
function readText(data: Uint8Array): string {
  return new TextDecoder("latin1").decode(data);
}

/** Read the list of the files that have twins. Raises `BadInput`. */
export async function readNames(file: ByteSource): Promise<string[]> {
  if (file.size > NAMES_MAX) throw new BadInput("names.js is too large");
  const script = await readStart(file, NAMES_MAX);
  const isList = /^averNames\(\[[^]*\]\);\n$/.test(readText(script));
  const names = isList ? readJson(script.subarray("averNames(".length, -");\n".length)) : null;
  if (!Array.isArray(names) || !names.every((name) => typeof name === "string" && name.isWellFormed())) throw new BadInput("names.js does not list files");
  if (new Set(names).size !== names.length) throw new BadInput("names.js lists a file twice");
  return names as string[];
}

/** Whether a twin has the name and the bytes of a file. Both are read in pieces. Raises `BadInput` if one of them cannot be read. */
async function isTwin(directory: Directory, path: string, name: string): Promise<boolean> {
  const file = await openPath(directory, name);
  const twin = await openPath(directory, path);
  const script = await readStart(twin, TWIN_HEAD_MAX);
  const head = /^averFile\(("(?:[^"\\]|\\[^])*"),"/.exec(readText(script));
  const start = head?.[0].length ?? 0;
  const end = twin.size - TWIN_END.length;
  if (head === null || end < start || readText(await twin.read(end, twin.size)) !== TWIN_END) throw new BadInput(`${path} is no twin of a file`);
  if (readJson(script.subarray("averFile(".length, start - ',"'.length)) !== name) return false;
  let packed = start;
  const next = async () => {
    if (packed === end) return null;
    const piece = decodeBase64(readText(await twin.read(packed, (packed = Math.min(packed + TWIN_PIECE, end)))));
    // The signs of the end may not stand before it.
    if (piece === null || (packed < end && piece.length < TWIN_PIECE * 0.75)) throw new BadInput(`${path} is damaged`);
    return piece;
  };
  let at = 0;
  // As far as the file goes: a bomb is unpacked no further than that.
  for await (const bytes of unpackGzip(next)) if (!areSameBytes(await file.read(at, (at += bytes.length)), bytes)) return false;
  return at === file.size;
}

/** A bundle that is also a site: the twins of its files, which a page on file:// shows. The twin of `aver.ledger.bundle.site`. */

import { type ByteSource, type Directory, areSameBytes, readChunks, readStart } from "../bytes.ts";
import { BadInput, type Json, encoder, readJson } from "../json.ts";
import { decodeBase64 } from "../digest.ts";
import { gunzip } from "../run/inflate.ts";
import { type Tally, place } from "../verdict.ts";
import { BLOBS, type BundleIndex, HEAD, INDEX, META, fileOf } from "./layout.ts";

const CHECK = "page";
const DATA = "explorer/data";
/** The list of the files that have twins. */
export const NAMES = `${DATA}/names.js`;
const NAMES_MAX = 16 * 1024 * 1024;
/** Bytes at the beginning of a twin that hold the name of its file. */
const TWIN_HEAD_MAX = 4096;
/** The names that a site adds to a bundle's directory. */
export const SITE_NAMES: ReadonlySet<string> = new Set(["index.html", "explorer"]);

/** The path of the twin of the file with this number. */
export function twinOf(number: number): string {
  return `${DATA}/${number}.js`;
}

/** Whether the Explorer's page lies in the directory of a bundle. */
export async function isSite(directory: Directory): Promise<boolean> {
  return ((await directory.list("explorer")) ?? []).includes("app.js");
}

/** Compare every twin with its file (check `page`). */
export async function checkSite(directory: Directory, index: BundleIndex, blobs: Iterable<string>, tally: Tally): Promise<void> {
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
  tally.notes.set(CHECK, `${names.length} files are those that the page shows; whether the page is Aver's own, aver verify says`);
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

function readText(data: Uint8Array): string {
  return new TextDecoder("latin1").decode(data);
}

function parse(text: string): Json {
  // The script was read byte by byte; its JSON is UTF-8.
  return readJson(Uint8Array.from(text, (unit) => unit.charCodeAt(0)));
}

/** Read the list of the files that have twins. Raises `BadInput`. */
export async function readNames(file: ByteSource): Promise<string[]> {
  if (file.size > NAMES_MAX) throw new BadInput("names.js is too large");
  const match = /^averNames\((\[[^]*\])\);\n$/.exec(readText(await readStart(file, NAMES_MAX)));
  const names = match === null ? null : parse(match[1] as string);
  if (!Array.isArray(names) || !names.every((name) => typeof name === "string")) throw new BadInput("names.js does not list files");
  if (new Set(names).size !== names.length) throw new BadInput("names.js lists a file twice");
  return names as string[];
}

/** Whether a twin has the name and the bytes of a file. Raises `BadInput` if one of them cannot be read. */
async function isTwin(directory: Directory, path: string, name: string): Promise<boolean> {
  const file = await openPath(directory, name);
  const twin = await openPath(directory, path);
  if (twin.size > 2 * file.size + 4096 + 6 * encoder.encode(name).length) throw new BadInput(`${path} is too large`);
  const text = readText(await twin.read(0, twin.size));
  // Not by one pattern: the data may have many megabytes.
  const head = /^averFile\(("(?:[^"\\]|\\[^])*"),"/.exec(text.slice(0, TWIN_HEAD_MAX));
  const other = new BadInput(`${path} is no twin of a file`);
  if (head === null || !text.endsWith('");\n')) throw other;
  if (parse(head[1] as string) !== name) return false;
  const packed = decodeBase64(text.slice(head[0].length, -4));
  if (packed === null) throw other;
  const unpacked = gunzip(packed);
  let at = 0;
  for await (const chunk of readChunks(file)) if (!areSameBytes(chunk, unpacked.subarray(at, (at += chunk.length)))) return false;
  return at === unpacked.length;
}

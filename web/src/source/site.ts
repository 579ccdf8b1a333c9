/**
 * The site door: the bundle that this page came with.
 *
 * Over HTTP the page reads the bundle's own files, and the twins below, which the verdict compares with them. On file:// a
 * browser lets it read none, so the exporter writes a twin of each file as a script, `explorer/data/<n>.js`:
 *
 *     averFile("codex.two.json", "<base64 of gzip>")
 *
 * `explorer/data/names.js` lists the files in the order of their numbers: `averNames(["index.json", …])`.
 */

import { HEAD, INDEX } from "../verify/bundle/layout.ts";
import { NAMES, readNames, twinOf } from "../verify/bundle/site.ts";
import { BlobSource } from "../verify/bytes.ts";
import { decodeBase64 } from "../verify/digest.ts";
import { isFileName } from "../verify/text.ts";
import type { OpenedThing } from "../worker/protocol.ts";
import { NotJudgedHere } from "./connection.ts";
import { scriptUrl } from "./trusted.ts";

/** Bytes of all files that the page takes, twins among them. A larger site is verified by the command. */
const SITE_MAX = 1024 ** 3;

interface DataWindow {
  averNames?: (names: string[]) => void;
  averFile?: (name: string, data: string) => void;
}

/** Run one of the site's data scripts and return what it hands over. */
function loadScript<Result>(path: string, receive: (done: (result: Result) => void) => void): Promise<Result> {
  return new Promise((resolve, reject) => {
    let isDone = false;
    receive((result) => {
      isDone = true;
      resolve(result);
    });
    const element = document.createElement("script");
    element.src = scriptUrl(path);
    element.addEventListener("load", () => {
      element.remove();
      if (!isDone) reject(new NotJudgedHere(`${path} holds no data`));
    });
    element.addEventListener("error", () => reject(missing(path)));
    document.head.append(element);
  });
}

/** Read the bundle that this page came with. */
export async function openSite(progress: (done: number, total: number) => void): Promise<OpenedThing> {
  const hands = globalThis as unknown as DataWindow;
  const areCopies = location.protocol === "file:";
  const files: [string, Blob][] = [];
  let names: string[];
  if (areCopies) names = await loadScript<string[]>(NAMES, (done) => { hands.averNames = done; });
  else {
    const list = await fetchFile(NAMES);
    if (list === null) throw missing(NAMES);
    const listed = await readNames(new BlobSource(list));
    // A list that leaves out the signed heads must not hide them. The script of this page marks the directory as a site.
    names = [...new Set([INDEX, HEAD, ...listed, ...listed.map((_, at) => twinOf(at))])];
    files.push([NAMES, list], ["explorer/app.js", new Blob()]);
  }
  let size = 0;
  for (const [at, name] of names.entries()) {
    const blob = areCopies ? await loadTwin(at, name, hands) : await fetchFile(name);
    size += blob?.size ?? 0;
    if (size > SITE_MAX) throw new NotJudgedHere("this site is larger than a page can hold; run: aver verify DIRECTORY");
    if (blob !== null) files.push([name, blob]);
    progress(at + 1, names.length);
  }
  const folder = decodeURIComponent(location.pathname.split("/").at(-2) ?? "") || location.host || "/";
  return { name: folder, files, isFolder: true, ...(areCopies ? { areCopies } : { site: new URL(".", location.href).href }) };
}

function missing(path: string): NotJudgedHere {
  return new NotJudgedHere(`${path} is missing: this site is not whole`);
}

async function loadTwin(at: number, name: string, hands: DataWindow): Promise<Blob> {
  const path = twinOf(at);
  const found = await loadScript<{ name: string; data: string }>(path, (done) => {
    hands.averFile = (given, data) => done({ name: given, data });
  });
  if (found.name !== name) throw new NotJudgedHere(`${path} holds ${found.name}, not ${name}`);
  const packed = decodeBase64(found.data);
  if (packed === null) throw new NotJudgedHere(`${path} is damaged`);
  const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(unpacked).blob();
}

/**
 * Read a file of the site; null where the server has none, or no file may have this name: the verdict then misses it. Not
 * from the cache: a server that went back to older files would answer "not modified".
 */
async function fetchFile(name: string): Promise<Blob | null> {
  const parts = name.split("/");
  if (!parts.every(isFileName)) return null;
  const answer = await fetch(parts.map(encodeURIComponent).join("/"), { cache: "no-store" });
  if (answer.status === 404) return null;
  if (!answer.ok) throw new NotJudgedHere(`${name} cannot be read: the server says ${answer.status}`);
  return answer.blob();
}

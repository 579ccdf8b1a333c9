/**
 * The site door: the bundle that this page came with.
 *
 * Over HTTP the page reads the bundle's own files. On file:// a browser lets it read none, so the exporter writes a twin of
 * each file as a script, `explorer/data/<n>.js`:
 *
 *     averFile("codex.two.json", "<base64 of gzip>")
 *
 * `explorer/data/names.js` lists the files in the order of their numbers: `averNames(["index.json", …])`.
 */

import { decodeBase64 } from "../verify/digest.ts";
import type { OpenedThing } from "../worker/protocol.ts";
import { NotJudgedHere } from "./connection.ts";
import { scriptUrl } from "./trusted.ts";

/** Bytes of all files that the page takes. A larger site is verified by the command. */
const SITE_MAX = 512 * 1024 ** 2;

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
    element.addEventListener("error", () => reject(new NotJudgedHere(`${path} is missing: this site is not whole`)));
    document.head.append(element);
  });
}

/** Read the bundle that this page came with. */
export async function openSite(progress: (done: number, total: number) => void): Promise<OpenedThing> {
  const hands = globalThis as unknown as DataWindow;
  const names = await loadScript<string[]>("explorer/data/names.js", (done) => {
    hands.averNames = done;
  });
  const files: [string, Blob][] = [];
  let size = 0;
  const areCopies = location.protocol === "file:";
  for (const [at, name] of names.entries()) {
    const blob = areCopies ? await loadTwin(at, name, hands) : await fetchFile(name);
    size += blob.size;
    if (size > SITE_MAX) throw new NotJudgedHere("this site is larger than a page can hold; run: aver verify DIRECTORY");
    files.push([name, blob]);
    progress(at + 1, names.length);
  }
  const folder = decodeURIComponent(location.pathname.split("/").at(-2) ?? "") || "this site";
  return { name: folder, files, isFolder: true, areCopies };
}

async function loadTwin(at: number, name: string, hands: DataWindow): Promise<Blob> {
  const path = `explorer/data/${at}.js`;
  const found = await loadScript<{ name: string; data: string }>(path, (done) => {
    hands.averFile = (given, data) => done({ name: given, data });
  });
  if (found.name !== name) throw new NotJudgedHere(`${path} holds ${found.name}, not ${name}`);
  const packed = decodeBase64(found.data);
  if (packed === null) throw new NotJudgedHere(`${path} is damaged`);
  const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(unpacked).blob();
}

/** Read a file of the bundle. Not from the cache: a server that went back to older files would answer "not modified". */
async function fetchFile(name: string): Promise<Blob> {
  const answer = await fetch(name.split("/").map(encodeURIComponent).join("/"), { cache: "no-store" });
  if (!answer.ok) throw new NotJudgedHere(`${name} cannot be read: the server says ${answer.status}`);
  return answer.blob();
}

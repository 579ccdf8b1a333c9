/** Whether a site's page is one of Aver's. The twin of `check_page` in `aver.ledger.bundle.site`; only the command judges it. */

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { NAMES, readNames, twinOf } from "../verify/bundle/site.ts";
import { type Directory, readStart } from "../verify/bytes.ts";
import { sortTexts } from "../verify/canonical.ts";
import { BadInput } from "../verify/json.ts";
import { show } from "../verify/text.ts";
import { type Tally, place } from "../verify/verdict.ts";

const PAGE_FILE = "index.html";
const MEMBERS = [PAGE_FILE, "explorer/app.js", "explorer/style.css"];
const PAGE_MAX = 8 * 1024 * 1024;
const PATH_SHOWN = 80;

/** SHA-256 over lines as `sha256sum` prints them, one for each file of a page, as it is shipped. */
export async function digestPage(read: (path: string) => Promise<Uint8Array> | Uint8Array): Promise<string> {
  const whole = createHash("sha256");
  for (const path of MEMBERS) {
    const bytes = Buffer.from(await read(path));
    const shipped = path === PAGE_FILE ? Buffer.from(bytes.toString("latin1").replaceAll('data-door="site"', 'data-door="files"'), "latin1") : bytes;
    whole.update(`${createHash("sha256").update(shipped).digest("hex")}  ${path}\n`);
  }
  return whole.digest("hex");
}

/** Warn of a page that no version of Aver has made, and of other files beside it (check `page`). */
export async function checkPage(directory: Directory, tally: Tally): Promise<void> {
  const warn = (words: string, path: string) => tally.warn("page", "PAGE_FOREIGN", words, place(null, null, show(path, 4000).slice(1, -1).slice(0, PATH_SHOWN)));
  let problem = "";
  try {
    const known = Object.values(JSON.parse(readFileSync(new URL(/* @vite-ignore */ "pages.json", import.meta.url), "utf8")) as Record<string, string>);
    const digest = await digestPage(async (path) => {
      const file = await directory.open(...path.split("/"));
      if (file.size > PAGE_MAX) throw new BadInput(`${path} is larger than ${PAGE_MAX} bytes`);
      return readStart(file, PAGE_MAX);
    });
    if (!known.includes(digest)) problem = "no version of Aver has made this page";
  } catch (error) {
    if (!(error instanceof BadInput)) throw error;
    problem = `this is no page of Aver's: ${error.message}`;
  }
  if (problem) warn(`${problem}: do not open it, open the records with your own Explorer`, PAGE_FILE);
  const own = new Set([...MEMBERS, NAMES, ...(await countTwins(directory))]);
  for (const path of await listSite(directory)) if (!own.has(path)) warn("it is no part of the page, and may be opened by one: do not open it", path);
}

/** The paths of the twins that the site lists. A list that cannot be read is reported where they are compared. */
async function countTwins(directory: Directory): Promise<string[]> {
  try {
    return (await readNames(await directory.open(...NAMES.split("/")))).map((_, at) => twinOf(at));
  } catch (error) {
    if (!(error instanceof BadInput)) throw error;
    return [];
  }
}

/** The paths of what lies in the site's directories. No link is followed. */
async function listSite(directory: Directory): Promise<string[]> {
  const data = await directory.list("explorer/data");
  const beside = sortTexts((await directory.list("explorer")) ?? []).filter((name) => name !== "data" || data === null);
  return [...beside.map((name) => `explorer/${name}`), ...sortTexts(data ?? []).map((name) => `explorer/data/${name}`)];
}

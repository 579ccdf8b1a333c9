// Ask the page's worker about a bundle, and print the answers as JSON.
//
//     node ask_library.mjs BUNDLE REQUESTS        REQUESTS is a JSON list, such as [{"type": "meta"}, {"type": "search", "words": "half up"}]
//
// A request that is refused has the answer {"refused": words}.

import { readFileSync, readdirSync } from "node:fs";
import { basename, join } from "node:path";
import { BadInput, JsonNumber } from "../src/verify/json.ts";
import { openEd25519 } from "../src/verify/verify.ts";
import { countActivity } from "../src/worker/activity.ts";
import { Library } from "../src/worker/library.ts";
import { listMeta } from "../src/worker/meta_entries.ts";
import { search } from "../src/worker/search.ts";

/** Hits of one search: more than any case has. */
const HITS_MAX = 1_000;

const [path, requests] = process.argv.slice(2);
const names = readdirSync(path, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
const files = names.map(({ parentPath, name }) => {
  const whole = join(parentPath, name);
  return [whole.slice(path.length + 1), new Blob([readFileSync(whole)])];
});
const library = new Library(await openEd25519());
await library.open({ name: basename(path), files, isFolder: true });

async function answer({ type, words }) {
  try {
    if (type === "activity") return await countActivity(library);
    return type === "meta" ? await listMeta(library) : await search(library, words, HITS_MAX);
  } catch (error) {
    if (!(error instanceof BadInput)) throw error;
    return { refused: error.message };
  }
}

const answers = [];
for (const request of JSON.parse(requests)) answers.push(await answer(request));
process.stdout.write(JSON.stringify(answers, (_, value) => (value instanceof JsonNumber ? value.value : value)));

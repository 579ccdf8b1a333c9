/** The texts of a record that can be searched. The twin of `aver.explorer.index.texts`: all that its sections tell, and its paths. */

import { at } from "../verify/block.ts";
import { type Json, isObject } from "../verify/json.ts";
import { cutText } from "../verify/text.ts";
import { fetchBlobs, fullTexts } from "./blobs.ts";
import { DECISION_KIND, type ReadBlob } from "./decisions.ts";
import { namesPath } from "./known_tools.ts";
import { type Step, isBlobReference } from "./step.ts";

/** Characters of one record that are searched, and bytes of a blob that is read for it. */
const TEXT_MAX = 64 * 1024;
/** Digests and signatures. A record is found by its hash in another way. */
const DIGEST = /^(?:[0-9a-f]{40}|[0-9a-f]{64}|[0-9a-f]{128})$/;
const EFFECT_PATH = /^(?:edited|wrote|added|deleted|read|moved|copied|renamed) (.+)/s;

export interface RecordTexts {
  text: string;
  paths: string;
}

/** The texts of a step. `lastAsked` is the prompt before it: a record of another tool that repeats it is not found by it. */
export async function readTexts(step: Step, blob: ReadBlob, lastAsked: string): Promise<RecordTexts> {
  const { asked, text, thinking, error } = await fullTexts(step, blob);
  const parts = [step.summary, text, thinking, error, step.title, step.rule, step.model, ...step.sideEffects];
  if (step.own || step.asked !== lastAsked) parts.push(asked);
  const paths = step.sideEffects.flatMap((effect) => EFFECT_PATH.exec(effect)?.[1] ?? []);
  for (const call of step.calls) await collect(call.get("arguments"), blob, parts, paths);
  // The rest of a decision is numbers and settings. Its reasons are the text of the step.
  const more = step.kind === DECISION_KIND ? at(step.more ?? undefined, "action") : step.more;
  const called = step.calls.flatMap((call) => [call.get("tool"), call.get("error"), call.get("result")]);
  for (const value of [...step.others, ...called, step.diff, more, step.addition?.says]) await collect(value, blob, parts, null);
  return { text: cutText([...new Set(parts)].filter(Boolean).join("\n"), TEXT_MAX), paths: cutText(paths.join("\n"), TEXT_MAX) };
}

/** Add all texts inside a value, without the names of its fields; to `paths` also those under names of paths. */
async function collect(value: Json | undefined, blob: ReadBlob, parts: (string | undefined)[], paths: string[] | null): Promise<void> {
  // A stack instead of recursion, because values may be deep. It ends when there is more text than is searched.
  const waiting: [Json | undefined, boolean][] = [[value, false]];
  for (let size = 0, next = waiting.pop(); next !== undefined && size <= TEXT_MAX; next = waiting.pop()) {
    const [item, isPath] = next;
    if (typeof item === "string") {
      if (DIGEST.test(item)) continue;
      parts.push(item);
      size += item.length;
      if (isPath) paths?.push(item);
    } else if (isBlobReference(item)) {
      const found = at(item, "blob", "media") === "text/x-diff" ? item : await fetchBlobs(item as Json, blob, TEXT_MAX);
      // A blob that is missing or too large stays a reference, which says nothing to search for.
      if (found !== item) waiting.push([found, isPath]);
    } else if (isObject(item)) for (const [name, inner] of [...item].reverse()) waiting.push([inner, isPath || namesPath(name)]);
    else if (Array.isArray(item)) for (const inner of [...item].reverse()) waiting.push([inner, isPath]);
  }
}

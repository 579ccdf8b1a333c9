/** Long texts that are stored beside a record. The twin of `fetch_blobs` and `full_text` in `aver.sessions.step`. */

import { at } from "../verify/block.ts";
import { BadInput, type Json, JsonNumber, isObject, readJson } from "../verify/json.ts";
import type { ReadBlob } from "./decisions.ts";
import { type Step, isBlobReference } from "./step.ts";

const TEXT_MEDIA = "text/plain; charset=utf-8";

/** The value with blob references replaced by their content. One that is missing, or larger than `most`, stays. */
export async function fetchBlobs(value: Json, blob: ReadBlob, most: number): Promise<Json> {
  if (Array.isArray(value)) return Promise.all(value.map((item) => fetchBlobs(item, blob, most)));
  if (!isObject(value)) return value;
  if (!isBlobReference(value)) {
    const members = [...value].map(async ([name, item]): Promise<[string, Json]> => [name, await fetchBlobs(item, blob, most)]);
    return new Map(await Promise.all(members));
  }
  const size = at(value, "blob", "size");
  const media = at(value, "blob", "media");
  if (!(size instanceof JsonNumber) || size.value > most || (media !== TEXT_MEDIA && media !== "text/x-diff" && media !== "application/json")) return value;
  const data = await blob(String(at(value, "blob", "digest")));
  if (data === null) return value;
  if (media !== "application/json") return new TextDecoder().decode(data);
  try {
    return await fetchBlobs(readJson(data), blob, most);
  } catch (error) {
    if (error instanceof BadInput) return value;
    throw error;
  }
}

const TEXTS = ["asked", "text", "thinking", "error"] as const;

/** The texts of a step, whole. One whose blob cannot be read stays cut, and `cut` still names it. */
export async function fullTexts(step: Step, blob: ReadBlob): Promise<Pick<Step, (typeof TEXTS)[number] | "cut">> {
  const { asked, text, thinking, error } = step;
  const whole = { asked, text, thinking, error, cut: new Map(step.cut) };
  await Promise.all(TEXTS.map(async (name) => {
    const digest = step.cut.get(name);
    const data = digest === undefined ? null : await blob(digest);
    if (data === null) return;
    whole[name] = new TextDecoder().decode(data);
    whole.cut.delete(name);
  }));
  return whole;
}

/** The step with its long texts put back. */
export async function fetchStep(step: Step, blob: ReadBlob, most: number): Promise<Step> {
  const [given, result, diff] = await Promise.all([step.arguments, step.result, step.diff].map((value) => fetchBlobs(value, blob, most)));
  return { ...step, ...(await fullTexts(step, blob)), arguments: given ?? null, result: result ?? null, diff: diff ?? null };
}

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

/** The whole text of a step's field. If its blob is missing, the cut text. */
export async function fullText(step: Step, name: "asked" | "text" | "thinking" | "error", blob: ReadBlob): Promise<string> {
  const digest = step.cut.get(name);
  const data = digest === undefined ? null : await blob(digest);
  return data === null ? step[name] : new TextDecoder().decode(data);
}

/** The step with its long texts put back. */
export async function fetchStep(step: Step, blob: ReadBlob, most: number): Promise<Step> {
  const [asked, text, thinking, error] = await Promise.all((["asked", "text", "thinking", "error"] as const).map((name) => fullText(step, name, blob)));
  const [given, result, diff] = await Promise.all([step.arguments, step.result, step.diff].map((value) => fetchBlobs(value, blob, most)));
  return { ...step, asked: asked ?? "", text: text ?? "", thinking: thinking ?? "", error: error ?? "", arguments: given ?? null, result: result ?? null, diff: diff ?? null };
}

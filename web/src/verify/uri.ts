/** `capsule://` URIs, which name one record or one place in it. The twin of `aver.capsule.uri`. */

import { HEX64 } from "./digest.ts";
import { BadInput, type Json, isObject } from "./json.ts";
import { CAPSULE_KEYS } from "./validate.ts";

export const SCHEME = "capsule://";
const URI_MAX = 2048;
const CHAIN = /^[A-Za-z0-9._-]+$/;
const SEQUENCE = /^(?:0|[1-9][0-9]{0,18})$/;
const SEQUENCE_END = 2n ** 63n;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const SEGMENT = /^(?:[A-Za-z0-9._!$&'()*+,;=:@-]|~[01]|%[0-9A-Fa-f]{2})+$/;

/** A parsed URI. Exactly one of `hash`, `sequence` and `id` is set; a sequence number is kept as it is written. */
export interface CapsuleUri {
  chain: string | null;
  hash: string | null;
  sequence: string | null;
  id: string | null;
  fragment: string | null;
}

/** Parse a URI. Raises `BadInput` that says why it is none. */
export function parseUri(text: string): CapsuleUri {
  const bad = (why: string) => new BadInput(`not a capsule URI: ${text.slice(0, 120)}: ${why}`);
  if (!text.startsWith(SCHEME)) throw bad(`it must begin with ${SCHEME}`);
  if ([...text].length > URI_MAX) throw bad(`it is longer than ${URI_MAX} characters`);
  const [rest = "", ...marked] = text.slice(SCHEME.length).split("#");
  const fragment = marked.length ? marked.join("#") : null;
  const problem = fragment === null ? null : readFragment(fragment);
  if (typeof problem === "string") throw bad(problem);
  const slash = rest.indexOf("/");
  const [chain, reference] = slash < 0 ? [null, rest] : [rest.slice(0, slash), rest.slice(slash + 1)];
  if (chain !== null && !CHAIN.test(chain)) throw bad("it has no chain name");
  const place = { chain, hash: null, sequence: null, id: null, fragment };
  if (reference.startsWith("sha3_")) {
    const hash = reference.slice("sha3_".length);
    if (!HEX64.test(hash)) throw bad("a hash has 64 lower-case hex digits");
    return { ...place, hash };
  }
  if (chain !== null) {
    if (!SEQUENCE.test(reference) || BigInt(reference) >= SEQUENCE_END) throw bad("after the chain comes a sequence number or a hash");
    return { ...place, sequence: reference };
  }
  if (!UUID.test(reference)) throw bad(reference ? "it names neither a hash (sha3_…) nor a UUID" : "it names no record");
  return { ...place, id: reference };
}

/** The segments of a fragment, or why it is none. */
function readFragment(fragment: string): string[] | string {
  const segments: string[] = [];
  for (const raw of fragment.split("/")) {
    if (!SEGMENT.test(raw)) return "its fragment has a segment that is none";
    try {
      segments.push(decodeURIComponent(raw).replaceAll("~1", "/").replaceAll("~0", "~"));
    } catch {
      return "its fragment is not percent-encoded UTF-8";
    }
  }
  if (segments.includes(".") || segments.includes("..")) return "a fragment cannot walk upwards";
  return CAPSULE_KEYS.includes(segments[0] as string) ? segments : "its fragment begins with no part of a capsule";
}

/** The value that a fragment points to in a capsule's content; undefined where there is none. */
export function resolveFragment(content: Json, fragment: string): Json | undefined {
  const segments = readFragment(fragment);
  if (typeof segments === "string") return undefined;
  let value: Json | undefined = content;
  for (const segment of segments) {
    if (isObject(value)) value = value.get(segment);
    else value = Array.isArray(value) && SEQUENCE.test(segment) ? value[Number(segment)] : undefined;
  }
  return value;
}

const REFERENCE = /capsule:\/\/(?:[A-Za-z0-9._-]+\/)?(?:sha3_[0-9a-f]{64}|[0-9a-f-]{36}|[0-9]{1,19})(?![0-9A-Za-z])(?:#[A-Za-z0-9._!$&'()*+,;=:@~%/-]*[A-Za-z0-9_])?/g;

/** A text in pieces: plain ones, and at each odd place a URI that names a record. */
export function splitReferences(text: string): string[] {
  const pieces = [""];
  let end = 0;
  for (const found of text.includes(SCHEME) ? text.matchAll(REFERENCE) : []) {
    try {
      parseUri(found[0]);
    } catch {
      continue;
    }
    pieces.push((pieces.pop() ?? "") + text.slice(end, found.index), found[0], "");
    end = found.index + found[0].length;
  }
  pieces.push((pieces.pop() ?? "") + text.slice(end));
  return pieces;
}

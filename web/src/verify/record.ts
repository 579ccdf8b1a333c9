/** Read the signed text of one record: whether it is a capsule, whether it is canonical, and its profile. */

import { type Json, type JsonObject, Unreadable, isInteger, isObject, isPlace } from "./json.ts";
import type { Sealed } from "./sealed.ts";
import { CPS_KEYS, SECTIONS, SPEC_VERSION, findCpsProblem, isPlainlyValid } from "./validate.ts";

interface RecordReading {
  content: JsonObject;
  isCanonical: boolean;
  /** Whether it is known to be valid by CPS. `examineProfile` tells about the others. */
  isValid: boolean;
}

const SCALARS = ["id", "type", "domain", "sequence", "previous_hash", "parent_id"];

/** Read a record. Raises `Unreadable` if its text is not a capsule. */
export function readRecord(sealed: Sealed): RecordReading {
  const content = sealed.value;
  const { isCanonical } = sealed;
  if (isPlainlyValid(content) && isPlace((content as JsonObject).get("sequence"))) {
    return { content: content as JsonObject, isCanonical, isValid: true };
  }
  const capsule = checkShape(content);
  // Scores are floats in the canonical form: a text with `1` for `1.0` is not canonical.
  const reasoning = capsule.get("reasoning") as JsonObject;
  const options = reasoning.get("options");
  const scores = [
    reasoning.get("confidence"),
    ...(Array.isArray(options) ? options.map((option) => (isObject(option) ? option.get("feasibility") : undefined)) : []),
  ];
  return { content: capsule, isCanonical: isCanonical && !scores.some(isInteger), isValid: false };
}

function checkShape(content: Json): JsonObject {
  if (!isObject(content)) throw new Unreadable("a capsule must be a JSON object");
  for (const name of [...SCALARS, ...SECTIONS]) {
    if (!content.has(name)) throw new Unreadable(`the key '${name}' is missing`);
  }
  for (const name of SECTIONS) if (!isObject(content.get(name))) throw new Unreadable(`${name} must be an object`);
  const isText = (name: string) => typeof content.get(name) === "string";
  const isTextOrNull = (name: string) => content.get(name) === null || isText(name);
  if (
    isText("id") &&
    isText("type") &&
    isText("domain") &&
    isPlace(content.get("sequence")) &&
    isTextOrNull("previous_hash") &&
    isTextOrNull("parent_id")
  ) {
    return content;
  }
  throw new Unreadable("id, type, domain, parent_id, sequence or previous_hash is not of its type");
}

const AGENT_CAPSULE_KEYS: Record<string, string[]> = {
  trigger: ["type", "source", "request"],
  context: ["agent_id", "session_id", "environment"],
  reasoning: ["analysis", "reasoning", "model"],
  authority: ["type"],
  execution: ["tool_calls", "duration_ms", "resources_used"],
  outcome: ["status", "summary", "side_effects"],
};

/** The specification that has these section keys, and the first thing that is not valid by CPS, or "". */
export function examineProfile(content: JsonObject): { profile: string; problem: string } {
  if (!content.has("spec_version")) {
    const complete = new Map(content).set("spec_version", SPEC_VERSION);
    const found = isPlainlyValid(complete) ? { profile: "cps", problem: "" } : examineProfile(complete);
    return { profile: `${found.profile} without spec_version`, problem: found.problem };
  }
  const section = (name: string) => content.get(name) as JsonObject;
  const hasAll = (keys: Record<string, string[]>) =>
    Object.entries(keys).every(([name, list]) => list.every((key) => section(name).has(key)));
  let profile = "other";
  if (hasAll(CPS_KEYS) && Object.entries(CPS_KEYS).every(([name, list]) => section(name).size === list.length)) {
    profile = "cps";
  } else if (
    hasAll(AGENT_CAPSULE_KEYS) &&
    // Agent-capsule never writes these two. A record of CPS that lost a key has them.
    !section("trigger").has("timestamp") &&
    !section("reasoning").has("options")
  ) {
    profile = "agent-capsule";
  }
  return { profile, problem: findCpsProblem(content, { complete: profile !== "agent-capsule" }) ?? "" };
}

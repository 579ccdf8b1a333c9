/** What CPS says about a capsule's keys and values. The twin of the reading half of `aver.capsule.validate`. */

import { type Json, type JsonObject, isFloat, isInteger, isObject, JsonNumber } from "./json.ts";
import { HEX64 } from "./digest.ts";
import { isCalendarTime } from "./statement.ts";
import { strip } from "./text.ts";

export const SPEC_VERSION = "1.0";
export const SECTIONS = ["trigger", "context", "reasoning", "authority", "execution", "outcome"] as const;

const TYPES = ["agent", "tool", "system", "kill", "workflow", "chat", "vault", "auth"];
const TRIGGER_TYPES = ["user_request", "scheduled", "system", "agent"];
const AUTHORITY_TYPES = ["autonomous", "human_approved", "policy", "escalated", "unknown"];
const STATUSES = ["pending", "success", "failure", "partial", "blocked"];
const SCORE_MIN = 1e-4;

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const CPS_TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?\+00:00$/;
const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{6})?\+00:00$/;

/** Takes a value; returns the problem or null. */
type Rule = (value: Json) => string | null;
type Rules = Record<string, Rule>;

const text: Rule = (value) => (typeof value === "string" ? null : "must be a string");
const textOrNull: Rule = (value) => (value === null || typeof value === "string" ? null : "must be a string or null");
const object: Rule = (value) => (isObject(value) ? null : "must be an object");
const flag: Rule = (value) => (typeof value === "boolean" ? null : "must be a boolean");
const anything: Rule = () => null;
const textList: Rule = (value) =>
  !Array.isArray(value) ? "must be an array" : value.every((item) => typeof item === "string") ? null : "must be an array of strings";
const objectList: Rule = (value) =>
  !Array.isArray(value) ? "must be an array" : value.every(isObject) ? null : "must be an array of objects";
const count: Rule = (value) =>
  !isInteger(value) ? "must be an integer" : value.text.startsWith("-") && value.text !== "-0" ? "may not be negative" : null;
const score: Rule = (value) => {
  if (!(value instanceof JsonNumber)) return "must be a number";
  return value.value >= 0 && value.value <= 1 ? null : "lies outside 0.0 to 1.0";
};
const uuid: Rule = (value) => text(value) ?? (UUID.test(value as string) ? null : "is not a UUID in lower case with hyphens");
const uuidOrNull: Rule = (value) => (value === null ? null : uuid(value));
const hashOrNull: Rule = (value) =>
  textOrNull(value) ?? (value === null || HEX64.test(value as string) ? null : "is not 64 lower-case hex digits");
const timestamp: Rule = (value) => {
  if (typeof value !== "string") return "must be a string";
  if (!CPS_TIMESTAMP.test(value)) return "is not ISO 8601 in UTC with +00:00";
  return isCalendarTime(value) ? null : "is not a date that exists";
};
const oneOf = (allowed: string[]): Rule => (value) =>
  text(value) ?? (allowed.includes(value as string) ? null : `is not one of ${allowed.join(", ")}`);

const TOP_LEVEL: Rules = {
  id: uuid,
  type: oneOf(TYPES),
  domain: text,
  parent_id: uuidOrNull,
  sequence: count,
  previous_hash: hashOrNull,
  spec_version: oneOf([SPEC_VERSION]),
  ...Object.fromEntries(SECTIONS.map((name) => [name, object])),
};
/** The keys of a capsule. */
export const CAPSULE_KEYS = Object.keys(TOP_LEVEL);
const SECTION_RULES: Record<string, Rules> = {
  trigger: {
    type: oneOf(TRIGGER_TYPES),
    source: text,
    timestamp,
    request: text,
    correlation_id: textOrNull,
    user_id: textOrNull,
  },
  context: { agent_id: text, session_id: textOrNull, environment: object },
  reasoning: {
    analysis: text,
    options: objectList,
    options_considered: textList,
    selected_option: text,
    reasoning: text,
    confidence: score,
    model: textOrNull,
    prompt_hash: hashOrNull,
  },
  authority: {
    type: oneOf(AUTHORITY_TYPES),
    approver: textOrNull,
    policy_reference: textOrNull,
    chain: objectList,
    escalation_reason: textOrNull,
  },
  execution: { tool_calls: objectList, duration_ms: count, resources_used: object },
  outcome: {
    status: oneOf(STATUSES),
    result: anything,
    summary: text,
    error: textOrNull,
    side_effects: textList,
    metrics: object,
  },
};
const OPTION: Rules = {
  id: text,
  description: text,
  pros: textList,
  cons: textList,
  estimated_impact: object,
  feasibility: score,
  risks: textList,
  selected: flag,
  rejection_reason: text,
};
const TOOL_CALL: Rules = {
  tool: text,
  arguments: object,
  result: anything,
  success: flag,
  duration_ms: count,
  error: textOrNull,
};

/** The section keys of CPS. */
export const CPS_KEYS: Record<string, string[]> = Object.fromEntries(
  Object.entries(SECTION_RULES).map(([section, rules]) => [section, Object.keys(rules)]),
);

/**
 * The first key or value that CPS itself does not allow; null if there is none. Without `complete`, keys may be missing,
 * and options and tool calls are not examined.
 */
export function findCpsProblem(content: JsonObject, { complete }: { complete: boolean }): string | null {
  const parts: [string, JsonObject, Rules][] = [["", content, TOP_LEVEL]];
  for (const [name, rules] of Object.entries(SECTION_RULES)) parts.push([`${name}.`, content.get(name) as JsonObject, rules]);
  const reasoning = content.get("reasoning") as JsonObject;
  if (complete) {
    const lists: [string, Json | undefined, Rules][] = [
      ["reasoning.options", reasoning.get("options"), OPTION],
      ["execution.tool_calls", (content.get("execution") as JsonObject).get("tool_calls"), TOOL_CALL],
    ];
    for (const [field, items, rules] of lists) {
      if (Array.isArray(items) && items.every(isObject)) {
        items.forEach((item, at) => parts.push([`${field}[${at}].`, item as JsonObject, rules]));
      }
    }
  }
  for (const [prefix, part, rules] of parts) {
    for (const [key, rule] of Object.entries(rules)) {
      const value = part.get(key);
      if (value === undefined) {
        if (complete) return `${prefix}${key} is missing`;
      } else {
        const problem = rule(value);
        if (problem !== null) return `${prefix}${key} ${problem}`;
      }
    }
  }
  return complete ? findSelectionProblem(reasoning) : null;
}

function findSelectionProblem(reasoning: JsonObject): string | null {
  const options = reasoning.get("options") as JsonObject[];
  const chosen = options.filter((option) => option.get("selected"));
  if (chosen.length > 1) return "reasoning.options: more than one option is marked as selected";
  const selected = reasoning.get("selected_option");
  if (options.length && selected) {
    const named = options.filter((option) => selected === option.get("id") || selected === option.get("description"));
    if (!named.length) return "reasoning.selected_option is none of the options";
    if (chosen.length && !named.includes(chosen[0] as JsonObject)) {
      return "reasoning.selected_option is not the option marked as selected";
    }
  }
  return null;
}

/** The rules as a list. Every record is held to them, and making the list anew would take longer than they do. */
const LISTED = new Map([TOP_LEVEL, OPTION, TOOL_CALL, ...Object.values(SECTION_RULES)].map((rules) => [rules, Object.entries(rules)]));

/** Whether a part has exactly the keys of the rules, with values that they allow. */
function followsRules(part: JsonObject, rules: Rules): boolean {
  const listed = LISTED.get(rules) as [string, Rule][];
  if (part.size !== listed.length) return false;
  // By index: a destructured pair for each of a record's fields would be a third of the time.
  for (let at = 0; at < listed.length; at++) {
    const rule = listed[at] as [string, Rule];
    const value = part.get(rule[0]);
    if (value === undefined || rule[1](value) !== null) return false;
  }
  return true;
}

function isPlainScore(value: Json | undefined): boolean {
  return isFloat(value) && ((value.value >= SCORE_MIN && value.value <= 1) || value.value === 0);
}

/** Whether a capsule follows all rules by which Aver writes one. False means only that one must look closer. */
export function isPlainlyValid(content: Json): boolean {
  if (!isObject(content) || !followsRules(content, TOP_LEVEL)) return false;
  const sections = SECTIONS.map((name) => content.get(name) as JsonObject);
  const [trigger, , reasoning, , execution] = sections as [JsonObject, JsonObject, JsonObject, JsonObject, JsonObject, JsonObject];
  for (const [at, name] of SECTIONS.entries()) {
    if (!followsRules(sections[at] as JsonObject, SECTION_RULES[name] as Rules)) return false;
  }
  const time = trigger.get("timestamp") as string;
  const sequence = (content.get("sequence") as JsonNumber).value;
  const calls = execution.get("tool_calls") as JsonObject[];
  return (
    (sequence === 0) === (content.get("previous_hash") === null) &&
    TIMESTAMP.test(time) &&
    !time.endsWith(".000000+00:00") &&
    isPlainScore(reasoning.get("confidence")) &&
    calls.every((call) => followsRules(call, TOOL_CALL)) &&
    arePlainOptions(reasoning)
  );
}

function arePlainOptions(reasoning: JsonObject): boolean {
  const options = reasoning.get("options") as JsonObject[];
  const considered = reasoning.get("options_considered") as string[];
  const selected = reasoning.get("selected_option") as string;
  if (options.length !== considered.length) return false;
  if (!options.length) return true;
  let chosen = 0;
  let isNamed = selected === "";
  for (const [at, option] of options.entries()) {
    if (!followsRules(option, OPTION) || option.get("description") !== considered[at]) return false;
    const isSelected = option.get("selected") === true;
    if (!isPlainScore(option.get("feasibility"))) return false;
    if (!isSelected && strip(option.get("rejection_reason") as string) === "") return false;
    if (selected === option.get("id") || selected === option.get("description")) isNamed = true;
    else if (selected !== "" && isSelected) return false;
    if (isSelected) chosen++;
  }
  return chosen <= 1 && isNamed;
}

/**
 * Values in records of any tool: texts, lists, counts, prices and times, each checked. The twin of
 * `aver.ingest.foreign_json`. A value of another type than expected is empty or null; nothing here raises.
 */

import { BadInput, type Json, JsonNumber, type JsonObject, isInteger, isObject } from "../verify/json.ts";
import type { Sealed } from "../verify/sealed.ts";

/** More than any real count of tokens. A larger number is an error. */
const COUNT_MAX = 1e15;
/** More dollars than any message costs. A larger number is an error. */
const COST_MAX = 1e9;

const NOTHING: JsonObject = new Map();

/** The content of a record; null if it cannot be read. The verdict says why. */
export function contentOf(record: Sealed): JsonObject | null {
  try {
    return record.content;
  } catch (error) {
    if (error instanceof BadInput) return null;
    throw error;
  }
}

export function asText(value: Json | undefined): string {
  return typeof value === "string" ? value : "";
}

export function asObject(value: Json | undefined): JsonObject {
  return isObject(value) ? value : NOTHING;
}

export function asList(value: Json | undefined): Json[] {
  return Array.isArray(value) ? value : [];
}

/** The texts of a list that are not empty. */
export function asTexts(value: Json | undefined): string[] {
  return asList(value).filter((item): item is string => typeof item === "string" && item !== "");
}

export function asCount(value: Json | undefined): number | null {
  if (!isInteger(value)) return null;
  const count = value.value;
  return count >= 0 && count < COUNT_MAX ? count + 0 : null;
}

export function asCost(value: Json | undefined): number | null {
  if (!(value instanceof JsonNumber)) return null;
  const cost = value.value;
  return cost >= 0 && cost < COST_MAX ? cost : null;
}

/** Whether Python takes the value for true. */
export function isTruthy(value: Json | undefined): boolean {
  if (value === undefined || value === null || value === false || value === "") return false;
  if (value instanceof JsonNumber) return value.value !== 0;
  if (Array.isArray(value)) return value.length > 0;
  return isObject(value) ? value.size > 0 : true;
}

/** The entry of a table under a name from a record; undefined if it has none. `constructor` is a name that every object has. */
export function lookUp<Entry>(table: Readonly<Record<string, Entry>>, name: string): Entry | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}

const WEEK = /^(\d{4})(-?)W(\d\d)(?:\2(\d))?/;
// The forms that Python's `datetime.fromisoformat` reads; a date by week becomes one by month first.
const MOMENT = /^(\d{4})(-?)(\d\d)\2(\d\d)(?:[^\d](\d\d)(?:(:?)(\d\d)(?:\6(\d\d))?)?(?:[.,](\d+))?(Z|[+-]\d\d(?:(:?)\d\d(?:\11\d\d(?:\.\d+)?)?)?)?)?$/u;

/** The date of a day of a week, such as 2026-W22-7. A week is of the year that its Thursday is in; another one is no date. */
function weekDate(whole: string, year: string, _: string, week: string, day = "1"): string {
  const date = new Date(0);
  date.setUTCFullYear(Number(year), 0, 4);
  date.setUTCDate(4 - (date.getUTCDay() || 7) + 7 * Number(week) - 3);
  if (date.getUTCFullYear() !== Number(year) || !/[1-7]/.test(day)) return whole;
  date.setUTCDate(date.getUTCDate() - 4 + Number(day));
  return date.toISOString().slice(0, 10);
}

/** A time of ISO 8601 in UTC, as Python writes it: `2026-05-31T09:00:02.500000+00:00`; null if it is no time. */
export function toUtc(value: Json | undefined): string | null {
  if (typeof value !== "string") return null;
  const found = MOMENT.exec(value.replace(WEEK, weekDate));
  if (found === null) return null;
  const [, year, , month, day, hour = "0", , minute = "0", second = "0", fraction = "", zone = ""] = found;
  const parts = [year, month, day, hour, minute, second].map(Number) as [number, number, number, number, number, number];
  if (parts[0] < 1 || parts[3] > 23 || parts[4] > 59 || parts[5] > 59) return null;
  const moment = new Date(0);
  moment.setUTCFullYear(parts[0], parts[1] - 1, parts[2]);
  if (moment.getUTCMonth() !== parts[1] - 1 || moment.getUTCDate() !== parts[2]) return null;
  moment.setUTCHours(parts[3], parts[4], parts[5]);
  const digits = zone.replace(/[^\d]/g, "");
  const offset = Number(digits.slice(0, 2) || 0) * 3600 + Number(digits.slice(2, 4) || 0) * 60 + Number(digits.slice(4, 6) || 0);
  if (offset >= 86400) return null;
  const utc = new Date(moment.getTime() - (zone.startsWith("-") ? -1 : 1) * offset * 1000);
  const shown = utc.toISOString();
  // Years before 1 and after 9999 have a sign here, and no form in Python.
  if (!/^\d/.test(shown) || utc.getUTCFullYear() < 1) return null;
  const micro = fraction.slice(0, 6).padEnd(6, "0");
  return `${shown.slice(0, 19)}${Number(micro) ? `.${micro}` : ""}+00:00`;
}

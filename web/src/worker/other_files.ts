/** Files of Aver that hold no record. */

import { firstKeys } from "../verify/subject.ts";

/** What a file of Aver is that holds no record, and what to do with it; null for every other file. */
export function describeOther(name: string, beginning: Uint8Array): string | null {
  const keys = firstKeys(beginning);
  const has = (...names: string[]) => names.every((key) => keys.includes(key));
  const start = new TextDecoder("latin1").decode(beginning);
  if (has("format", "version", "keys") && /"format"\s*:\s*"aver-public-keys"/.test(start)) {
    return `${name} is a list of public keys. It has no record to verify. Open the records, and choose this file on Keys, after you compared it with its owner.`;
  }
  if (has("statement", "payload", "artifacts")) {
    return `${name} is a participant's contribution to a trace. It is for the operator of the trace, who takes it by: aver protocol accept ${name}`;
  }
  if (has("artifacts", "checks", "claims")) {
    return `${name} is the report of an audit, without its records, so nothing in it can be checked. Open the bundle or the ledger that has the trace, or run: aver verify BUNDLE`;
  }
  if (has("subject", "status", "first_bad", "checks", "findings")) {
    return `${name} is a verdict that somebody wrote down. It proves nothing by itself: open the records that it is about.`;
  }
  return null;
}

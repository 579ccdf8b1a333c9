/** Sources of chains: the ledger and tenant that made a chain, apart for each import. */

import type { JsonObject } from "../json.ts";
import { pythonText } from "../text.ts";
import { OLD_IMPORT, readDigits } from "./imports.ts";

export interface Source {
  digits: string;
  ledger: string;
  tenant: string;
}

export function sourceKey({ digits, ledger, tenant }: Source): string {
  return JSON.stringify([digits, ledger, tenant]);
}

/** The source of an imported chain: the digits in its name here, and the ledger and tenant in its first record. */
export function identifySource(stored: string, named: JsonObject | null): Source {
  const name = (key: string) => (named?.has(key) ? pythonText(named.get(key)) : "");
  return { digits: readDigits(stored) ?? OLD_IMPORT, ledger: name("ledger"), tenant: name("tenant") };
}

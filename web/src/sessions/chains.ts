/**
 * Which chains make up a session. The twin of the first half of `aver.sessions.sessions`.
 *
 * A session is the chain `<tool>.<session>`, the chains of its subagents, and the chain of the gate's decisions about it.
 * The first record of each chain says to which session it belongs; the name alone does not. Imported chains are sessions,
 * too, also those of the agent-capsule tool; each import has its own.
 */

import { RESERVED_CHAINS, chainName, splitChainName } from "../verify/block.ts";
import { OLD_IMPORT, readDigits } from "../verify/bundle/imports.ts";
import { sha256Hex } from "../verify/digest.ts";
import type { Step } from "./step.ts";

/** The domain of the chains of the gate's decisions. */
export const DECISION_DOMAIN = "gate";
/** Domains of chains that are not sessions of coding agents. */
const OTHER_DOMAINS: ReadonlySet<string> = new Set([DECISION_DOMAIN, "actions", "gateway", "protocol", "approvals", ...RESERVED_CHAINS]);

/** A chain of the open thing. */
export interface ChainRow {
  name: string;
  /** Its original name, if it was imported; null for a chain that was made here. */
  origin: string | null;
}

/** The chains of a session. */
export interface SessionChains {
  tool: string;
  session: string;
  /** The chain of the session itself; null if only a subagent's chain is here. */
  main: string | null;
  /** Subagents and their chains. */
  agents: [agent: string, chain: string][];
  decisions: string | null;
  imported: boolean;
}

/** Whether a chain of this name may be one of a session. Its first record says whether it is. */
export function isOfSession(name: string): boolean {
  return !OTHER_DOMAINS.has(name.replace(/^import\.[0-9a-f]{16}\./, "").split(".")[0] as string);
}

/** All chains of the session. A verdict on it must cover all of them. */
export function chainNames({ main, agents, decisions }: SessionChains): string[] {
  return [main, ...agents.map(([, chain]) => chain), decisions].filter((chain) => chain !== null);
}

/** Reads the first record of a chain as a step; null where there is none. */
type ReadFirst = (chain: string) => Promise<Step | null>;

/** The domain that a chain had where it was made. */
function madeDomain({ name, origin }: ChainRow): string {
  return splitChainName(origin === null ? name : originalName(name, origin))[0];
}

/** All sessions; with `like`, only sessions of the same tool as that chain. */
export async function groupChains(rows: ChainRow[], readFirst: ReadFirst, like: string | null = null): Promise<SessionChains[]> {
  const found = rows.find((row) => row.name === like);
  const domain = found === undefined ? null : madeDomain(found);
  const decisions = new Map<string, string>();
  const groups = new Map<string, { tool: string; session: string; members: [string, ChainRow][] }>();
  const strays: ChainRow[] = [];
  for (const row of rows) {
    const source = row.origin === null ? "" : (readDigits(row.name) ?? OLD_IMPORT);
    const rowDomain = madeDomain(row);
    if (rowDomain === DECISION_DOMAIN) {
      const first = await readFirst(row.name);
      if (first?.session) decisions.set(`${source}\n${first.session}`, row.name);
    } else if (!OTHER_DOMAINS.has(rowDomain) && (domain === null || domain === rowDomain)) {
      const place = identifyChain(row, await readFirst(row.name));
      if (place === null) strays.push(row);
      else {
        const key = `${source}\n${place.tool}\n${place.session}`;
        const group = groups.get(key) ?? { ...place, members: [] };
        group.members.push([place.agent, row]);
        groups.set(key, group);
      }
    }
  }
  adoptStrays(strays, [...groups.values()]);
  return [...groups].map(([key, { tool, session, members }]) => {
    // A second copy of the session itself is listed with the subagents.
    const main = members.find(([agent]) => !agent)?.[1].name ?? null;
    return {
      tool,
      session,
      main,
      agents: members.filter(([, row]) => row.name !== main).map(([agent, row]) => [agent || row.name, row.name]),
      decisions: decisions.get(`${key.split("\n", 1)[0]}\n${session}`) ?? null,
      imported: members.some(([, row]) => row.origin !== null),
    };
  });
}

/**
 * Chains with the name of a subagent of a session whose first record does not say so. An attacker may have changed that
 * record. The verdict on the session must still cover the chain.
 */
function adoptStrays(strays: ChainRow[], groups: { members: [string, ChainRow][] }[]): void {
  const mains = new Map<string, [string, ChainRow][]>();
  for (const { members } of groups) for (const [agent, row] of members) if (!agent) mains.set(row.name, members);
  for (const row of strays) {
    for (let dot = row.name.lastIndexOf("."); dot >= 0; dot = row.name.slice(0, dot).lastIndexOf(".")) {
      mains.get(row.name.slice(0, dot))?.push([row.name.slice(row.name.lastIndexOf(".") + 1), row]);
    }
  }
}

/** Tool, session and subagent of a chain, from its first record; null if that names none. */
function identifyChain(row: ChainRow, first: Step | null): { tool: string; session: string; agent: string } | null {
  if (first === null) return null;
  const { toolName: tool, session, agent } = first;
  if (first.own) {
    const isOurs = first.key.startsWith(`${tool}:`) && session !== "";
    return isOurs && (row.origin || row.name) === sessionChainName(tool, session, agent) ? { tool, session, agent } : null;
  }
  if (row.origin === null || OTHER_DOMAINS.has(tool) || !tool) return null;
  return { tool, session: session || splitChainName(originalName(row.name, row.origin))[1], agent: "" };
}

/** The name of a session's chain, or of a subagent's own chain. */
function sessionChainName(tool: string, session: string, agent = ""): string | null {
  const parts = (agent ? [session, agent] : [session]).map((part) => {
    return /^[A-Za-z0-9_-]{1,63}$/.test(part) && !/^x-[0-9a-f]{32}$/.test(part) ? part : `x-${sha256Hex(part).slice(0, 32)}`;
  });
  return chainName(tool, parts.join("."));
}

/** The name of an imported chain where it was made, in Aver's form. */
function originalName(chain: string, origin: string): string {
  if (origin.includes(".") || RESERVED_CHAINS.has(origin)) return origin;
  let name = chain;
  for (let digits = readDigits(name); digits; digits = readDigits(name)) name = name.slice(`import.${digits}.`.length);
  return name;
}

/** The session of records in one file called `name`, by their first; null if they are no session. */
export function sessionOfFile(first: Step, name: string): SessionChains | null {
  const { toolName: tool, session } = first;
  if (!tool || OTHER_DOMAINS.has(tool) || !session || (first.own && !first.key.startsWith(`${tool}:`))) return null;
  return { tool, session, main: name, agents: [], decisions: null, imported: false };
}

/**
 * Leave out the parts of the libraries that the page never calls: it verifies, and signs nothing.
 *
 * A bundler drops the functions that nobody imports, but not the members of classes and objects. `CUTS` names those, and
 * the declarations that only they use. Nothing else of a library is changed.
 *
 * A new version of a library must not lose a part by accident. So the build fails
 *
 * 1. if a module or a name of `CUTS` is not found,
 * 2. if a module still uses a declaration that was cut, or has the name of a member as a text,
 * 3. if any code of the page still asks for a member that was cut (`checkCuts`).
 */

import { type Plugin, parseAst } from "vite";
import { type Node, walk } from "./script_lines.ts";

interface Cut {
  /** Members of classes and of object literals, wherever the module has them. */
  members?: string[];
  /** Functions and constants. */
  declarations?: string[];
}

const CUTS: Record<string, Cut> = {
  "@noble/post-quantum/ml-dsa.js": {
    members: ["keygen", "getPublicKey", "sign", "prehash", "lengths"],
    declarations: ["LowBits", "HighBits", "MakeHint", "Power2Round", "ETACoder", "T0Coder", "secretCoder", "CoefFromHalfByte", "RejBoundedPoly", "polyPowerRound", "polyMakeHint", "signRandBytes", "seedCoder"],
  },
};

/** Calls of the browser's own members that have the name of one that was cut. */
const OF_THE_BROWSER = ["crypto.subtle.sign", "response.getPublicKey"];

function nameOf(node: unknown): string {
  return (node as { name?: string } | null)?.name ?? "";
}

/** Take the parts out of a module. */
export function cut(code: string, id: string, { members = [], declarations = [] }: Cut): string {
  const spans: [number, number][] = [];
  const found = new Set<string>();
  walk(parseAst(code), (node) => {
    const isMember = ["MethodDefinition", "PropertyDefinition", "Property"].includes(node.type) && members.includes(nameOf(node.key)) && node.computed === false;
    const [only, ...others] = node.type === "VariableDeclaration" ? (node.declarations as Node[]) : node.type === "FunctionDeclaration" ? [node] : [];
    const isDeclaration = only !== undefined && !others.length && declarations.includes(nameOf(only.id));
    if (!isMember && !isDeclaration) return;
    found.add(nameOf(isMember ? node.key : only?.id));
    // A part of a part that was cut is gone with it.
    if (!spans.some(([start, end]) => start <= node.start && node.end <= end)) spans.push([node.start, code[node.end] === "," ? node.end + 1 : node.end]);
  });
  const missing = [...members, ...declarations].filter((name) => !found.has(name));
  if (missing.length) throw new Error(`${id} has no ${missing.join(", ")}: look at its new version`);
  let left = "";
  let at = 0;
  for (const [start, end] of spans.sort(([one], [other]) => one - other)) {
    left += code.slice(at, start);
    at = end;
  }
  left += code.slice(at);
  walk(parseAst(left), (node) => {
    const isUsed = (node.type === "Identifier" && declarations.includes(nameOf(node))) || (node.type === "Literal" && members.includes(String(node.value)));
    if (isUsed) throw new Error(`${id} still uses ${left.slice(node.start, node.end)}`);
  });
  return left;
}

const seen = new Set<string>();

export const LEAN_LIBRARIES: Plugin = {
  name: "lean-libraries",
  enforce: "pre",
  transform: (code, id) => {
    const name = Object.keys(CUTS).find((one) => id.endsWith(`node_modules/${one}`));
    if (name === undefined) return null;
    seen.add(name);
    return { code: cut(code, name, CUTS[name] as Cut), map: null };
  },
};

/** Fail if a module was not there, or if the script asks for a member that was cut. */
export function checkCuts(script: string): void {
  const absent = Object.keys(CUTS).filter((name) => !seen.has(name));
  if (absent.length) throw new Error(`the page no longer has ${absent.join(", ")}`);
  const asked = findCutMember(script, new Set(Object.values(CUTS).flatMap((one) => one.members ?? [])));
  if (asked !== null) throw new Error(`a part of a library was cut that the page uses: ${asked}`);
}

/** The first text of a script that asks for one of these members; null if none does. */
export function findCutMember(script: string, members: ReadonlySet<string>): string | null {
  let found: string | null = null;
  walk(parseAst(script), (node) => {
    const asked = node.type === "ObjectPattern" ? (node.properties as Node[]).map((one) => one.key) : node.type === "MemberExpression" && node.computed === false ? [node.property] : [];
    const text = script.slice(node.start, node.end);
    if (asked.some((one) => members.has(nameOf(one))) && !OF_THE_BROWSER.includes(text)) found ??= text;
  });
  return found;
}

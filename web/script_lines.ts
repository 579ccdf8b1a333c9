/**
 * The lines of the built script: each statement keeps its own, and nothing is renamed. Only spaces are taken away, which
 * every browser's tools add again.
 */

import { parseAst } from "vite";

/** A node of a syntax tree, as ESTree has it. */
export interface Node {
  type: string;
  start: number;
  end: number;
  [name: string]: unknown;
}

/** Call `visit` with each node of a tree, parents first. */
export function walk(node: unknown, visit: (node: Node) => void): void {
  if (Array.isArray(node)) for (const one of node) walk(one, visit);
  else if (typeof node === "object" && node !== null) {
    if (typeof (node as Node).type === "string") visit(node as Node);
    for (const one of Object.values(node)) walk(one, visit);
  }
}

/** Take the indentation away. The page is 5 % smaller. */
export function flattenLines(code: string): string {
  walk(parseAst(code), (node) => {
    // Its indentation belongs to the text.
    const isLong = node.type === "TemplateElement" && (node.value as { raw: string }).raw.includes("\n");
    if (isLong) throw new Error("a text in the page goes over several lines: write \\n");
  });
  return code.replace(/\n\t+/g, "\n");
}

/** Put lists, arguments and objects on one line each. The page is 1 % smaller. The script has no comments. */
export function joinLists(code: string): string {
  const lists = code.replace(/,\n\t*/g, ", ").replace(/([([])\n\t*/g, "$1").replace(/\n\t*([)\]])/g, "$1");
  const characters = lists.split("");
  walk(parseAst(lists), ({ type, start, end }) => {
    if (type !== "ObjectExpression" && type !== "ObjectPattern") return;
    for (const at of [start + 1, end - 2]) if (characters[at] === "\n") characters[at] = " ";
  });
  const joined = characters.join("");
  if (describe(joined) !== describe(code)) throw new Error("joining lines changed the script");
  return joined;
}

/** The statements of a script, without the places where they stand. */
function describe(code: string): string {
  return JSON.stringify(parseAst(code), (key, value: unknown) => (key === "start" || key === "end" ? undefined : typeof value === "bigint" ? String(value) : value));
}

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

/** The places of the spaces around the operators of an expression. A word such as `in` keeps its own. */
function* spacesOf(code: string, { type, operator, ...node }: Node): Generator<number> {
  const between = (one: unknown, sign: unknown, other: unknown): number[] => {
    if (typeof sign !== "string" || /^\w/.test(sign)) return [];
    const [from, to] = [(one as Node).end, (other as Node).start];
    const at = code.indexOf(` ${sign} `, from);
    // Two signs side by side would be another operator.
    return at < 0 || at + sign.length + 2 > to || code[at - 1] === sign || code[at + sign.length + 2] === sign ? [] : [at, at + sign.length + 1];
  };
  if (type === "ConditionalExpression") yield* [...between(node["test"], "?", node["consequent"]), ...between(node["consequent"], ":", node["alternate"])];
  else if (type === "ArrowFunctionExpression") yield* between((node["params"] as Node[]).at(-1) ?? { end: node.start }, "=>", node["body"]);
  else if (/^(Binary|Logical|Assignment)Expression$/.test(type)) yield* between(node["left"], operator, node["right"]);
}

/**
 * Put lists, arguments and objects on one line each, with no spaces after commas, after names of members, around operators
 * and inside of braces, and leave the parentheses of a single parameter out. The page is 4 % smaller. The script has no comments.
 */
export function joinLists(code: string): string {
  const lists = code.replace(/,\n\t*/g, ", ").replace(/([([])\n\t*/g, "$1").replace(/\n\t*([)\]])/g, "$1");
  const characters = lists.split("");
  const isText = new Uint8Array(lists.length);
  walk(parseAst(lists), (node) => {
    const { type, start, end, params } = node;
    for (const at of spacesOf(lists, node)) characters[at] = "";
    if (type === "Literal" || type === "TemplateElement") isText.fill(1, start, end);
    const [only, ...others] = type === "ArrowFunctionExpression" ? (params as Node[]) : [];
    if (only?.type === "Identifier" && !others.length && lists[only.start - 1] === "(" && lists[only.end] === ")") {
      for (const at of [only.start - 1, only.end]) characters[at] = "";
    }
    if (type !== "ObjectExpression" && type !== "ObjectPattern") return;
    for (const at of [start + 1, end - 2]) if (characters[at] === "\n" || characters[at] === " ") characters[at] = "";
  });
  for (const { index } of lists.matchAll(/,(?= )|(?<! ):(?= )/g)) if (!isText[index]) characters[index + 1] = "";
  for (const { index } of lists.matchAll(/ = /g)) if (!isText[index + 1]) characters[index] = characters[index + 2] = "";
  const joined = characters.join("");
  if (describe(joined) !== describe(code)) throw new Error("joining lines changed the script");
  return joined;
}

/** Take the semicolons at the ends of lines away: the language reads a new line in their place. The page is half a per cent smaller. */
export function dropSemicolons(code: string): string {
  const empty = new Set<number>();
  walk(parseAst(code), ({ type, start }) => void (type === "EmptyStatement" && empty.add(start)));
  // A line with one of these signs at its beginning would go on with the line before it.
  const dropped = code.replace(/;\n(?![([`/+*-])/g, (found, at: number) => (empty.has(at) ? found : "\n"));
  if (describe(dropped) !== describe(code)) throw new Error("taking semicolons away changed the script");
  return dropped;
}

/**
 * Leave out the fields of our own classes that only declare a name: TypeScript holds that each gets its value in the
 * constructor, or may be undefined.
 */
export function dropBareFields(code: string): string {
  const spans: [number, number][] = [];
  walk(parseAst(code), ({ type, start, end, value, computed, static: isStatic }) => {
    if (type === "PropertyDefinition" && value === null && computed === false && isStatic === false) spans.push([start, end]);
  });
  return spans.reduceRight((left, [start, end]) => left.slice(0, start) + left.slice(end), code);
}

/** The statements of a script, without the places where they stand. */
function describe(code: string): string {
  return JSON.stringify(parseAst(code), (key, value: unknown) => (key === "start" || key === "end" ? undefined : typeof value === "bigint" ? String(value) : value));
}

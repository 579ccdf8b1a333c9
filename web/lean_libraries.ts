/**
 * Leave out the parts of the libraries that the page never calls: it verifies, and signs nothing.
 *
 * A bundler drops the functions that nobody imports, but not the members of classes and objects. `CUTS` names those, the
 * declarations that only they use, and the few lines that mention them. Nothing else of a library is changed.
 *
 * A new version of a library must not lose a part by accident. So the build fails
 *
 * 1. if a module, a name or a line of `CUTS` is not found,
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
  /** Lines that mention them, and their replacement. Each is there once. */
  lines?: [found: string, replacement: string][];
}

/** Multiplication by secret scalars, in constant time, and its tables. Verifying multiplies by `mulAddUnsafe`. */
const MULTIPLICATION = ["multiply", "multiplyUnsafe", "precompute", "clearCofactor", "isSmallOrder"];
const TABLES: [string, string][] = [["if (wnaf.bits >= 6)\n        Point.BASE.precompute(6);", ""]];

const CUTS: Record<string, Cut> = {
  "@noble/post-quantum/ml-dsa.js": {
    members: ["keygen", "getPublicKey", "sign", "prehash", "lengths"],
    declarations: ["LowBits", "HighBits", "MakeHint", "Power2Round", "ETACoder", "T0Coder", "secretCoder", "CoefFromHalfByte", "RejBoundedPoly", "polyPowerRound", "polyMakeHint", "signRandBytes", "seedCoder"],
  },
  "@noble/curves/abstract/edwards.js": {
    members: MULTIPLICATION,
    declarations: ["wnaf", "normalize"],
    lines: [
      ...TABLES,
      ["const randomBytes = opts.randomBytes === undefined ? wcRandomBytes : opts.randomBytes;\n    // Coordinate", "// Coordinate"],
      // As `wnaf` computes it.
      ["return wnaf.mulUnsafe(this, CURVE.n).is0();", "return mulAddUnsafe(Point, [this], [CURVE.n], true).is0();"],
      ["normalizeZ, ScalarMultiplier, validatePointCons, }", "mulAddUnsafe, validatePointCons, }"],
    ],
  },
  "@noble/curves/abstract/weierstrass.js": {
    members: [...MULTIPLICATION, "mulAddUnsafe", "hasEvenY"],
    declarations: ["wnaf", "normalize", "endo", "splitEndoScalarN", "pushWnafPair"],
    lines: [
      ...TABLES,
      ["const randomBytes = extraOpts.randomBytes === undefined ? wcRandomBytes : extraOpts.randomBytes;\n", ""],
      ["const { endo: endoOpts, allow", "const { allow"],
      ["if (endoOpts) {\n        if (!Fp.is0(CURVE.a) || typeof endoOpts.beta !== 'bigint' || !Array.isArray(endoOpts.basises)) {\n            throw new Error('invalid endo: expected \"beta\": bigint and \"basises\": array');\n        }\n    }", ""],
      ["endo: 'object',", ""],
      // P-256 has the cofactor 1.
      ["return wnaf.mulUnsafe(this, CURVE_ORDER).is0();", "throw new Error('no orders of points');"],
    ],
  },
  "@noble/curves/abstract/modular.js": {
    members: ["isValidNot0", "invertBatch", "cmov"],
    // The primes of both curves are 5 modulo 8 and 3 modulo 4.
    lines: [["    // P ≡ 9 (mod 16) => Kong algorithm, page 11 of https://eprint.iacr.org/2012/685.pdf (algorithm 4)\n    if (P % _16n === _9n)\n        return sqrt9mod16(P);\n    // Tonelli-Shanks algorithm\n    return tonelliShanks(P);", "throw new Error('no square roots for this prime');"]],
  },
  "@noble/hashes/sha3.js": { members: ["clone", "_cloneInto", "xof"] },
  "@noble/hashes/sha2.js": { members: ["_cloneInto"] },
  "@noble/hashes/_md.js": { members: ["clone", "_cloneIntoMeta"] },
};

/** Calls of the browser's own members that have the name of one that was cut. */
const OF_THE_BROWSER = ["crypto.subtle.sign", "response.getPublicKey"];

function nameOf(node: unknown): string {
  return (node as { name?: string } | null)?.name ?? "";
}

/** Take the parts out of a module. */
export function cut(code: string, id: string, { members = [], declarations = [], lines = [] }: Cut): string {
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
  for (const [line, replacement] of lines) {
    if (left.split(line).length !== 2) throw new Error(`${id} does not have once: ${line}`);
    left = left.replace(line, () => replacement);
  }
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

/** The build loses no part of a library that the page uses: it fails instead. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { cut, findCutMember } from "../lean_libraries.ts";
import { dropBareFields, dropSemicolons, flattenLines, joinLists } from "../script_lines.ts";

const MODULE = `
class Point { double() { return this; } multiply(n) { return slow(n); } }
const slow = (n) => n;
export const scheme = { sign: () => 1, verify: () => new Point().double() };
`;

test("members and declarations are cut, and the rest is as it was", () => {
  const left = cut(MODULE, "m", { members: ["multiply", "sign"], declarations: ["slow"] });
  assert.doesNotMatch(left, /multiply|slow|sign/);
  assert.match(left, /double\(\) \{ return this; \}/);
  assert.match(left, /verify: \(\) => new Point\(\)\.double\(\)/);
});

test("a name that is not there fails the build", () => {
  assert.throws(() => cut(MODULE, "m", { members: ["multiply", "prehash"] }), /m has no prehash/);
  assert.throws(() => cut(MODULE, "m", { declarations: ["quick"] }), /m has no quick/);
});

test("a declaration that is still used fails the build", () => {
  assert.throws(() => cut(MODULE, "m", { declarations: ["slow"] }), /m still uses slow/);
  assert.throws(() => cut(`${MODULE}["sign"].map((name) => scheme[name]);`, "m", { members: ["sign"] }), /m still uses "sign"/);
});

test("a member that the page asks for is found, however it asks", () => {
  for (const use of ["key.multiply(2)", "const { multiply } = key", "const { multiply: times } = key", "key?.multiply", "x = key.multiply"]) {
    assert.notEqual(findCutMember(use, new Set(["multiply"])), null, use);
  }
  for (const use of ["multiply(2)", "const key = { multiply: 2 }", "crypto.subtle.sign()", "key.double()"]) {
    assert.equal(findCutMember(use, new Set(["multiply", "sign"])), null, use);
  }
});

test("lists and objects get one line, and statements keep theirs", () => {
  const code = "f({\n\ta: 1,\n\tb: [\n\t\t2,\n\t\t3\n\t]\n});\nif (x) {\n\ty();\n}\n";
  assert.equal(joinLists(flattenLines(code)), "f({a:1,b:[2,3]});\nif (x) {\ny();\n}\n");
  const arrows = "a = (x) => x; b = async (y) => y; c = ({ z }) => z; d = (x = 1) => x; e = (x, y) => y; g(() => 'a, b: c', /c, d/, `e, ${f ? 1 : 2}, g`);";
  assert.equal(joinLists(arrows), "a=x=>x; b=async y=>y; c=({z})=>z; d=(x=1)=>x; e=(x,y)=>y; g(()=>'a, b: c',/c, d/,`e, ${f?1:2}, g`);");
  const operators = "a = b ? (c) + 1 : d && e; f - -g; h + +i; j in k; l / /m/.n; o === ' p ? q : r ' || s; t += (u) => (v);";
  assert.equal(joinLists(operators), "a=b?(c)+1:d&&e; f - -g; h + +i; j in k; l / /m/.n; o===' p ? q : r '||s; t+=u=>(v);");
});

test("semicolons go where a new line says the same, and only there", () => {
  const code = "const a = 1;\nfor (let n = 0; n < 3; n++);\nlet b = a;\n[1].map(f);\n(g)();\nlet c = ';';\n";
  assert.equal(dropSemicolons(code), "const a = 1\nfor (let n = 0; n < 3; n++);\nlet b = a;\n[1].map(f);\n(g)()\nlet c = ';'\n");
});

test("a field that only declares a name is left out, and one with a value stays", () => {
  const left = dropBareFields("class A { name; size = 1; static made; [key]; constructor(name) { this.name = name; } }");
  assert.equal(left.replace(/\s+/g, " "), "class A { size = 1; static made; [key]; constructor(name) { this.name = name; } }");
});

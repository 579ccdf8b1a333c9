/**
 * Build the page into src/aver/explorer/page: not minified, so that what verifies can be read, and the same bytes each time.
 *
 *     node build.ts [DIRECTORY]
 *
 * 1. `verify.mjs`: the verifier as a command for Node.
 * 2. `explorer/app.js`: page and worker as one classic script, in one function. Chromium refuses worker files on file://, so
 *    the page makes its worker from the text of this function.
 * 3. `pages.json`: the digest of the page of each version. A build replaces that of its own version alone, so the page of every
 *    release stays in the list, and sites that it made stay those of Aver.
 * 4. `sources.json`: the digests of the sources. A test finds a stale build by them.
 */

import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { type Plugin, type Rolldown, build } from "vite";
import { LEAN_LIBRARIES, checkCuts } from "./lean_libraries.ts";
import { hasGoodForm } from "./src/verify/ed25519.ts";
import { digestPage } from "./src/node/site_page.ts";
import { dropBareFields, dropSemicolons, flattenLines, joinLists } from "./script_lines.ts";

const here = dirname(fileURLToPath(import.meta.url));
const root = dirname(here);
const out = process.argv[2] ?? join(root, "src", "aver", "explorer", "page");

/** Files outside `web/src` that the page is made of. */
const SHARED = ["tests/conformance/corpus/ed25519.json", "src/aver/gateway/codes.json", "src/aver/verdict/codes.json"];

/** Leave out the long comments of the libraries: their own pages have them, and a reader of the page must fetch them. */
const QUIET_LIBRARIES: Plugin = {
  name: "quiet-libraries",
  transform: (code, id) => (id.includes("node_modules") ? { code: code.replace(/\/\*\*[^]*?\*\//g, ""), map: null } : null),
};

/** Members of the shared tables that the page does not read: the names of test cases, which side of an act refuses, and how a share of evidence fails. */
const UNREAD = new Set(["about", "name", "side", "details"]);
/** Known signatures test the platform's Ed25519. It is never asked about one of a wrong form, so those stay in the tests alone. */
const isAsked = (value: unknown): boolean => {
  const { public: key, signature } = value as { public?: string; signature?: string };
  return key === undefined || signature === undefined || hasGoodForm(key, signature);
};
/** Codes that the page never has a finding of: those of a ledger's file, of transcripts, and of the checks that only the command makes. */
const OF_THE_COMMAND = new Set(["COLUMN_MISMATCH", "STORE_DAMAGED", "NOT_SEALED", "GATE_LOOSENED", "INSECURE_MODE", "ERASED", "PRUNED", "WITNESS_MISSING"]);
const LEAN_TABLES: Plugin = {
  name: "lean-tables",
  enforce: "pre",
  transform: (code, id) => {
    if (!SHARED.some((name) => id.endsWith(name))) return null;
    return { code: JSON.stringify(JSON.parse(code), (key, value: unknown) => (UNREAD.has(key) || OF_THE_COMMAND.has(key) ? undefined : Array.isArray(value) ? value.filter(isAsked) : value)), map: null };
  },
};

/** JSX becomes calls of `h`, with the children as arguments: shorter than the members that newer JSX makes of them. */
const ELEMENTS: Plugin = {
  name: "elements",
  enforce: "pre",
  transform: (code, id) => (id.endsWith(".tsx") ? { code: `import { Fragment, h } from "preact";\n${code}`, map: null } : null),
};

/** After the types are gone. The libraries stay as they are. */
const LEAN_CLASSES: Plugin = {
  name: "lean-classes",
  enforce: "post",
  transform: (code, id) => (id.startsWith(join(here, "src")) && /\.tsx?$/.test(id) ? { code: dropBareFields(code), map: null } : null),
};

async function bundle(entry: string, comments: boolean, external: RegExp[] = []): Promise<string> {
  const result = (await build({
    root: here,
    configFile: false,
    logLevel: "warn",
    plugins: [ELEMENTS, LEAN_LIBRARIES, QUIET_LIBRARIES, LEAN_TABLES, LEAN_CLASSES],
    json: { namedExports: false, stringify: false },
    oxc: { jsx: { runtime: "classic", pragma: "h", pragmaFrag: "Fragment" } },
    build: {
      write: false,
      minify: false,
      target: "es2022",
      // As a library: Vite puts no code of its own around dynamic imports, which here only choose between two threads.
      lib: { entry: join(here, entry), formats: ["es"] },
      rolldownOptions: {
        external,
        // Tests import the functions of the command.
        preserveEntrySignatures: "strict",
        output: { format: "es", codeSplitting: false, comments },
      },
    },
  } as Parameters<typeof build>[0])) as Rolldown.RolldownOutput | Rolldown.RolldownOutput[];
  const { output } = (Array.isArray(result) ? result[0] : result) as Rolldown.RolldownOutput;
  if (output.length !== 1 || output[0]?.type !== "chunk") throw new Error(`${entry} became ${output.length} files`);
  checkCuts(output[0].code);
  const named = [...OF_THE_COMMAND].find((code) => (output[0] as Rolldown.OutputChunk).code.includes(code));
  if (named !== undefined) throw new Error(`the page names ${named}, and its words were left out`);
  return output[0].code;
}

function listFiles(directory: string): string[] {
  return readdirSync(directory, { withFileTypes: true })
    .sort((one, other) => (one.name < other.name ? -1 : 1))
    .flatMap((entry) => (entry.isDirectory() ? listFiles(join(directory, entry.name)) : [join(directory, entry.name)]));
}

/** The licences of the libraries that a script contains, as a comment at its end. */
function licences(names: string[]): string {
  const texts = names.map((name) => {
    const home = join(here, "node_modules", name);
    const file = readdirSync(home).find((one) => /^licen[cs]e/i.test(one));
    if (file === undefined) throw new Error(`${name} has no licence`);
    return `${name}\n\n${readFileSync(join(home, file), "utf8").trim().replaceAll("*/", "* /")}`;
  });
  return `\n/*!\nThis file contains these libraries, without the parts that it never calls:\n\n${texts.join("\n\n")}\n*/\n`;
}

const CRYPTOGRAPHY = ["@noble/curves", "@noble/hashes", "@noble/post-quantum"];
const verifier = await bundle("src/node/main.ts", true, [/^node:/]);
// Without comments and indentation: verify.mjs has those of the verifier, and a reader must fetch the page.
// Of the lines that name a module, those of the verifier stay.
const script = flattenLines((await bundle("src/entry.ts", false)).replaceAll("/* @__PURE__ */ ", "")).replace(/^\/\/ (?!src\/verify\/).*\n/gm, "");
const app = `function averExplorer() {\n"use strict";\n${dropSemicolons(joinLists(script))}}\naverExplorer();\n`;

mkdirSync(join(out, "explorer"), { recursive: true });
writeFileSync(join(out, "verify.mjs"), verifier + licences(CRYPTOGRAPHY));
writeFileSync(join(out, "explorer", "app.js"), app + licences([...CRYPTOGRAPHY, "preact", "@preact/signals", "@preact/signals-core"]));
// Each view may have styles of its own beside it. They come after the page's.
const styles = [join(here, "src", "style.css"), ...listFiles(join(here, "src")).filter((path) => /\.css$/.test(path) && !path.endsWith("src/style.css"))];
writeFileSync(join(out, "explorer", "style.css"), styles.map((path) => readFileSync(path, "utf8").replace(/\/\*[^]*?\*\/\n?/g, "").replace(/\n +/g, "\n").replace(/([:;,{]) | (?=[{}])/g, "$1")).join("\n"));
copyFileSync(join(here, "src", "index.html"), join(out, "index.html"));

const committed = join(root, "src", "aver", "explorer", "page", "pages.json");
const pages = existsSync(committed) ? (JSON.parse(readFileSync(committed, "utf8")) as Record<string, string>) : {};
const [, version = ""] = /^version = "(.+)"$/m.exec(readFileSync(join(root, "pyproject.toml"), "utf8")) ?? [];
pages[version] = await digestPage((path) => readFileSync(join(out, path)));
writeFileSync(join(out, "pages.json"), `${JSON.stringify(pages, null, 1)}\n`);

const sources = [...listFiles(join(here, "src")), ...["build.ts", "lean_libraries.ts", "script_lines.ts", "package-lock.json"].map((name) => join(here, name))]
  .map((path) => relative(root, path))
  .concat(SHARED);
const digests = sources.map((path) => [path, createHash("sha256").update(readFileSync(join(root, path))).digest("hex")]);
writeFileSync(join(out, "sources.json"), `${JSON.stringify(Object.fromEntries(digests), null, 1)}\n`);

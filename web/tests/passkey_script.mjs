// Print the page's helper for passkeys as one script for a browser, with its names under `averPasskey`.

import { fileURLToPath } from "node:url";
import { build } from "vite";

const entry = "virtual:passkey";
const source = (name) => JSON.stringify(fileURLToPath(new URL(`../src/${name}`, import.meta.url)));
const { output } = [
  await build({
    configFile: false,
    logLevel: "error",
    plugins: [
      {
        name: entry,
        resolveId: (id) => (id === entry ? `\0${entry}` : null),
        load: (id) => (id === `\0${entry}` ? `export * from ${source("source/passkey.ts")}; export * from ${source("source/shown_text.ts")};` : null),
      },
    ],
    build: { write: false, minify: false, rolldownOptions: { input: entry, preserveEntrySignatures: "strict", output: { format: "iife", name: "averPasskey" } } },
  }),
].flat()[0];
process.stdout.write(`${output[0].code}\nglobalThis.averPasskey = averPasskey;\n`);

// Answer cases of the conformance corpus by the shipped verifier, and print the answers as JSON.
//
//     node judge_corpus.mjs VERIFY_MJS CASES_JSON

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { answerCases } from "./corpus_cases.mjs";

const [verifier, cases] = process.argv.slice(2);
const answers = await answerCases(await import(pathToFileURL(verifier).href), JSON.parse(readFileSync(cases, "utf8")));
process.stdout.write(JSON.stringify(answers));

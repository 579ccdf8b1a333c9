/** The state of one chain, as far as a verdict tells it. */

import type { JSX } from "preact";
import { plural } from "../../parts/text.tsx";
import { Mark } from "../../parts/verdict.tsx";
import { findingsOf, judgementOf } from "../../state.ts";

/** How many findings of one check and code a verdict lists; the others are only counted. */
const FINDINGS_KEPT = 100;

/** The mark of a chain with its word, or with the number of findings. */
/** The mark of a session: that of its worst chain. */
export function SessionMark({ chains }: { chains: string[] }): JSX.Element {
  const failed = chains.find((chain) => findingsOf(chain).some((one) => one.status === "failed"));
  const open = chains.find((chain) => judgementOf(chain).state !== "done");
  return <ChainMark chain={failed ?? open ?? chains[0] ?? ""} />;
}

export function ChainMark({ chain, isCounted = false }: { chain: string; isCounted?: boolean }): JSX.Element {
  const now = judgementOf(chain);
  if (now.state === "working") return <><Mark name="working" /> <span>verifying</span></>;
  if (now.state !== "done") return <><Mark name="not judged" /> <span>not judged</span></>;
  if (now.verdict.status === "verified") return <><Mark name="verified" /> <span>verified</span></>;
  const findings = findingsOf(chain);
  const failed = findings.filter((one) => one.status === "failed").length;
  if (failed) return <><Mark name="failed" /> <span>{isCounted ? plural(failed, "finding") : "failed"}</span></>;
  // The verdict lists a hundred findings of a kind. With more, one of this chain may be among those that are only counted.
  const isCut = now.verdict.findings.filter((one) => one.status === "failed").length >= FINDINGS_KEPT;
  return isCut
    ? <><Mark name="not judged" /> <span title="The verdict lists a hundred findings of a kind, and counts the others: one may be of this chain">not told apart</span></>
    : <><Mark name="qualified" /> <span>no failure</span></>;
}

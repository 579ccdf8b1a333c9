/** All chains of the open thing. */

import { useState } from "preact/hooks";
import type { JSX } from "preact";
import { Hex, Text, Time, count } from "../../parts/text.tsx";
import { Mark } from "../../parts/verdict.tsx";
import { contents, findingsOf, link, verdict } from "../../state.ts";
import type { ListedChain } from "../../worker/protocol.ts";

/** Rows of a table that are shown at once. */
const SHOWN_MAX = 100;

/** How many findings of one check and code a verdict lists; the others are only counted. */
const FINDINGS_KEPT = 100;

/** The state of one chain, as far as the verdict tells it. */
export function ChainMark({ chain }: { chain: string }): JSX.Element {
  const whole = verdict.value;
  if (whole === null) return <><Mark name="not judged" /> <span>not judged</span></>;
  if (whole.status === "verified") return <><Mark name="verified" /> <span>verified</span></>;
  const findings = findingsOf(chain);
  if (findings.some((one) => one.status === "failed")) return <><Mark name="failed" /> <span>failed</span></>;
  // The verdict lists a hundred findings of a kind. With more, one of this chain may be among those that are only counted.
  const isCut = whole.findings.filter((one) => one.status === "failed").length >= FINDINGS_KEPT;
  return isCut
    ? <><Mark name="not judged" /> <span>open it to see</span></>
    : <><Mark name="qualified" /> <span>no failure</span></>;
}

export function ChainTable({ chains }: { chains: ListedChain[] }): JSX.Element {
  if (!chains.length) return <p class="strip">There is no chain in it. <code>aver export --out DIR</code> writes a bundle with all of them.</p>;
  return (
    <div class="scroll">
      <table class="chains">
        <thead>
          <tr><th scope="col">State</th><th scope="col">Title</th><th scope="col">Chain</th><th scope="col" class="number">Records</th><th scope="col">Last</th><th scope="col">Signed by</th></tr>
        </thead>
        <tbody>
          {chains.map((chain) => (
            <tr key={chain.id}>
              <td class="state"><ChainMark chain={chain.id} /></td>
              <td><a href={link("s", chain.id)}><Text>{chain.title}</Text></a></td>
              <td><code><Text>{chain.id}</Text></code></td>
              <td class="number">{chain.length === null ? "" : count(chain.length)}</td>
              <td><Time>{chain.endedAt}</Time></td>
              <td>{chain.signers.slice(0, 3).map((signer) => <Hex key={signer}>{signer}</Hex>)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function ChainsView(_: { parts: string[] }): JSX.Element {
  const [wanted, setWanted] = useState("");
  const [shown, setShown] = useState(SHOWN_MAX);
  const all = contents.value?.chains ?? [];
  const found = all.filter((chain) => `${chain.id} ${chain.title} ${chain.tool}`.toLowerCase().includes(wanted.toLowerCase()));
  return (
    <>
      <h1>Chains</h1>
      <p>
        <label>Filter by name, title or tool <input type="search" value={wanted} onInput={(event) => setWanted(event.currentTarget.value)} /></label>{" "}
        <span class="beside">{count(found.length)} of {count(all.length)}</span>
      </p>
      <ChainTable chains={found.slice(0, shown)} />
      {found.length > shown ? <p><button type="button" onClick={() => setShown(shown + SHOWN_MAX)}>Show {SHOWN_MAX} more</button></p> : null}
    </>
  );
}

/** All chains of the open thing, with their heads. Only the rows near the window are in the page. */

import type { JSX } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import { useRowKeys } from "../../parts/rows.ts";
import { Empty } from "../../parts/states.tsx";
import { Hex, Text, Time, count } from "../../parts/text.tsx";
import { VirtualRows, isPhone } from "../../parts/virtual.tsx";
import { link } from "../../route.ts";
import { contents } from "../../state.ts";
import type { ListedChain } from "../../worker/protocol.ts";
import { ChainMark } from "./mark.tsx";

const ROW_HEIGHT = 40;
const PHONE_ROW_HEIGHT = 56;

function ChainRow({ chain, isLive }: { chain: ListedChain; isLive: boolean }): JSX.Element {
  return (
    <a class={`chain-row${isLive ? " of-ledger" : ""}`} href={link("chain", chain.id)} data-row tabIndex={-1}>
      <span class="state"><ChainMark chain={chain.id} /></span>
      <span class="what"><strong><Text>{chain.title}</Text></strong>{chain.title === chain.id ? null : <code><Text>{chain.id}</Text></code>}</span>
      <span class="number">{chain.length === null ? "" : count(chain.length)}</span>
      <span class="when"><Time brief>{chain.endedAt}</Time></span>
      <span class="by">{chain.signers.length ? chain.signers.slice(0, 2).map((signer) => <Hex key={signer}>{signer}</Hex>) : chain.head ? <Hex>{chain.head}</Hex> : null}</span>
    </a>
  );
}

export function ChainsView(_: { parts: string[] }): JSX.Element {
  const [wanted, setWanted] = useState("");
  const box = useRef<HTMLDivElement>(null);
  useRowKeys(box);
  const all = contents.value?.chains ?? [];
  const found = all.filter((chain) => `${chain.id} ${chain.title} ${chain.tool}`.toLowerCase().includes(wanted.toLowerCase()));
  const heights = useMemo(() => Array<number>(found.length).fill(isPhone() ? PHONE_ROW_HEIGHT : ROW_HEIGHT), [found.length]);
  const isLive = contents.value?.format === "ledger";
  return (
    <section class="fills">
      <h1>Chains</h1>
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        <label>Filter <input type="search" value={wanted} onInput={(event) => setWanted(event.currentTarget.value)} placeholder="name, title or tool" /></label>
        <span class="beside" role="status">{count(found.length)} of {count(all.length)}</span>
      </form>
      {all.length ? null : isLive ? <Empty command="aver install claude-code">Nothing is recorded in this ledger yet. This records what a coding agent does from now on.</Empty> : <Empty command="aver export --out DIR">There is no chain in it. This writes a bundle with all chains of your ledger.</Empty>}
      {all.length && !found.length ? <Empty>No chain fits this filter.</Empty> : null}
      {found.length ? (
        <>
          <div class={`chain-row heads${isLive ? " of-ledger" : ""}`} aria-hidden="true"><span>State</span><span>Chain</span><span class="number">Records</span><span class="when">{isLive ? "" : "Last"}</span><span class="by">{isLive ? "Head" : "Signed by"}</span></div>
          <div ref={box} class="grow">
            <VirtualRows heights={heights} label="Chains; j and k move, Enter opens one" row={(at) => <ChainRow chain={found[at] as ListedChain} isLive={isLive} />} />
          </div>
        </>
      ) : null}
      <p class="beside">Titles, times and lengths are claims of {isLive ? "the server" : "the index"}; the verdict compares them with the records. <a href={link("meta")}>What the meta chain remembers</a></p>
    </section>
  );
}

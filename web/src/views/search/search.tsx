/** Search. A hit is a place: what is shown there is read from the record, and verified when it is opened. */

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useKeys } from "../../parts/keyboard.ts";
import { useRowKeys } from "../../parts/rows.ts";
import { Empty, Loading, Problem, useAnswer } from "../../parts/states.tsx";
import { Text, Time, count, plural, visible } from "../../parts/text.tsx";
import { recordLink, searchLink } from "../../route.ts";
import { contents, news } from "../../state.ts";
import { type Found, findRecords, readHit } from "./find.ts";

/** One hit. Where it is from the index, its words are read from the record. */
function HitRow({ hit, words, isFirst }: { hit: Found["hits"][number]; words: string; isFirst: boolean }): JSX.Element {
  const read = useAnswer(() => (hit.title ? Promise.resolve(null) : readHit(hit.chain, hit.place, words)), [hit.chain, hit.place, words]);
  const row = read.value?.row;
  const title = hit.title || (read.state === "loading" ? "…" : row === undefined ? "this record cannot be read" : row.problem || row.summary);
  const excerpt = hit.excerpt ?? read.value?.excerpt;
  return (
    <li>
      <a href={recordLink(hit.chain, hit)} data-row tabIndex={isFirst ? 0 : -1}>
        <strong><Text>{title || hit.kind}</Text></strong>
        {excerpt ? <span class="excerpt"><bdi>{visible(excerpt[0])}<mark>{visible(excerpt[1])}</mark>{visible(excerpt[2])}</bdi></span> : null}
        {read.value?.hasHash === false ? <span class="bad">This text does not have the hash that it was sealed with.</span> : null}
        <span class="beside"><code><Text>{hit.chain}</Text></code> <Text>{`${hit.sequence} · ${hit.kind}${hit.tool ? ` · ${hit.tool}` : ""}`}</Text>{hit.at ? <> · <Time>{hit.at}</Time></> : null}</span>
      </a>
    </li>
  );
}

export function SearchView({ parts: [words = ""] }: { parts: string[] }): JSX.Element {
  const [limit, setLimit] = useState(100);
  const box = useRef<HTMLUListElement>(null);
  const field = useRef<HTMLInputElement>(null);
  const answer = useAnswer(() => findRecords(words, limit), [words, limit, contents.value?.ledger, news.value.index]);
  useRowKeys(box);
  useEffect(() => setLimit(100), [words]);
  const move = (step: number) => {
    const rows = [...(box.current?.querySelectorAll<HTMLElement>("[data-row]") ?? [])];
    const next = rows[(rows.indexOf(document.activeElement as HTMLElement) + step + rows.length) % Math.max(rows.length, 1)];
    next?.focus();
  };
  useKeys({ n: () => move(1), N: () => move(-1) });
  const found = answer.value;
  return (
    <>
      <h1>Search</h1>
      <form class="filters" onSubmit={(event) => { event.preventDefault(); const given = field.current?.value.trim(); if (given) location.hash = searchLink(given); }}>
        <label>Words <input ref={field} type="search" key={words} defaultValue={words} class="wide" /></label>
        <button type="submit">Search</button>
      </form>
      <p class="beside">Words, <code>"whole phrases"</code>, <code>begin*</code>, and <code>tool:</code> <code>kind:</code> <code>outcome:</code> <code>path:</code> <code>since:</code>. All must fit. A <code>capsule://</code> URI opens its record.</p>
      {answer.state === "failed" ? <Problem words={answer.words} retry={answer.retry} /> : null}
      {words && answer.state === "loading" ? <Loading rows={8} words="Searching" /> : null}
      {words ? null : <Empty>Nothing was searched for yet. Write a word above.</Empty>}
      {found && words ? (
        <p role="status">
          {plural(found.hits.length, "hit")}{found.isCut ? " so far" : ""} in {plural(found.searched, "record")}.{" "}
          <span class="beside">{found.by === "index" ? `Places from the server's index, texts from its records. Neither is proved until you open a hit.${found.behind ? ` ${count(found.behind)} records are not in it yet.` : ""}` : "This page read every record."}</span>
        </p>
      ) : null}
      {found && words && !found.hits.length ? <Empty>Nothing has these words. Fewer words, or <code>begin*</code> for a beginning, find more.</Empty> : null}
      <ul class="hits" ref={box}>{found?.hits.map((hit, at) => <HitRow key={`${hit.chain}/${hit.place}`} hit={hit} words={words} isFirst={at === 0} />)}</ul>
      {found?.isCut ? <p><button type="button" onClick={() => setLimit(limit + 100)}>Show more</button></p> : null}
    </>
  );
}

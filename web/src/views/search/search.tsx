/** Search. A hit is a place: what is shown there is read from the record, and verified when it is opened. */

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useRowKeys } from "../../parts/rows.ts";
import { Empty, Loading, Problem, useAnswer } from "../../parts/states.tsx";
import { Text, Time, count, plural, visible } from "../../parts/text.tsx";
import { recordLink, searchLink } from "../../route.ts";
import { contents, news } from "../../state.ts";
import { type Found, findRecords, readHit } from "./find.ts";

/** Hits that are shown at once, and in all. An index gives no more. */
const PAGE = 100;
const HITS_MAX = 500;

/** One hit. Where it is from the index, its words are read from the record when it comes near the window. */
function HitRow({ hit, words, isFirst }: { hit: Found["hits"][number]; words: string; isFirst: boolean }): JSX.Element {
  const item = useRef<HTMLLIElement>(null);
  const [isNear, setNear] = useState(Boolean(hit.title));
  useEffect(() => {
    if (isNear) return;
    const observer = new IntersectionObserver((seen) => { if (seen.some((one) => one.isIntersecting)) setNear(true); }, { rootMargin: "400px" });
    observer.observe(item.current as HTMLElement);
    return () => observer.disconnect();
  }, [isNear]);
  const read = useAnswer(async (isCurrent) => (hit.title ? null : isNear ? readHit(hit.chain, hit.place, words, isCurrent) : new Promise<never>(() => {})), [hit.chain, hit.place, words, isNear]);
  const row = read.value?.row;
  const title = hit.title || (read.state === "loading" ? "…" : row === undefined ? "this record cannot be read" : row.problem || row.summary);
  const excerpt = hit.excerpt ?? read.value?.excerpt;
  return (
    <li ref={item}>
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
  const [limit, setLimit] = useState(PAGE);
  const box = useRef<HTMLUListElement>(null);
  const field = useRef<HTMLInputElement>(null);
  const answer = useAnswer(() => findRecords(words, limit), [words, limit, contents.value?.ledger, news.value.index]);
  useRowKeys(box);
  useEffect(() => setLimit(PAGE), [words]);
  const found = answer.value;
  const shown = found?.hits.length ?? 0;
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
          {plural(shown, "hit")}{found.isCut ? " so far" : ""} in {plural(found.searched, "record")}.{" "}
          <span class="beside">{found.by === "index" ? `Places from the server's index, texts from its records. Neither is proved until you open a hit.${found.behind ? ` ${count(found.behind)} records are not in it yet.` : ""}` : found.isCut ? "" : "This page read every record."}
            {found.ignored.map((one) => ` ${visible(one)} has no word to search for and was ignored.`)}
            {found.shortened ? ` ${plural(found.shortened, "record")} with long texts: only their beginning is searched.` : ""}</span>
        </p>
      ) : null}
      {found && words && !shown ? <Empty>Nothing has these words. Fewer words, or <code>begin*</code> for a beginning, find more.</Empty> : null}
      <ul class="hits" ref={box}>{found?.hits.map((hit, at) => <HitRow key={`${hit.chain}/${hit.place}`} hit={hit} words={words} isFirst={at === 0} />)}</ul>
      {found?.isCut && shown && shown % PAGE === 0 ? <p>{shown < HITS_MAX ? <button type="button" onClick={() => setLimit(shown + PAGE)}>Show more</button> : `The first ${HITS_MAX} hits; narrow the search.`}</p> : null}
    </>
  );
}

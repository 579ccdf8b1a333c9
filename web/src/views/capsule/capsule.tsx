/** One record: six sections, its seal, its relatives, and the exact bytes with the computed hash beside the stored one. */

import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { useKeys } from "../../parts/keyboard.ts";
import { Value } from "../../parts/json.tsx";
import { Problem, useAnswer } from "../../parts/states.tsx";
import { Copy, Hex, Text, Time, plural, visible } from "../../parts/text.tsx";
import { TryToChange } from "../../parts/tamper.tsx";
import { FindingCard, Mark } from "../../parts/verdict.tsx";
import { pins } from "../../source/pins.ts";
import { toSealed } from "../../records.ts";
import { wayBack } from "../../route.ts";
import { connection, contents, findingsOf, link, pinnedKeys, verifyChain } from "../../state.ts";
import { asText, contentOf } from "../../sessions/values.ts";
import { at } from "../../verify/block.ts";
import type { JsonObject } from "../../verify/json.ts";
import { Sealed } from "../../verify/sealed.ts";
import { cutText } from "../../verify/text.ts";
import { resolveFragment } from "../../verify/uri.ts";
import { isDenial } from "../../worker/activity.ts";
import type { RecordDetail } from "../../worker/protocol.ts";
import { ActionSections, ReceiptBand, ReceiptSection } from "./action.tsx";
import { findRelated, relatedChains } from "./related.ts";
import { Sections } from "./sections.tsx";

/** Characters of a record that are laid out. A larger one is shown as its exact bytes alone. */
const LAID_OUT_MAX = 2_000_000;
/** Characters of the exact bytes that are shown. All of them can be copied. */
const EXACT_MAX = 200_000;

/** Related records that are listed at first. */
const LISTED = 8;

type Address = { place: number } | { sequence: string };

function readAddress(text: string): Address | null {
  const found = /^(p?)(\d{1,19})$/.exec(text);
  if (found === null) return null;
  return found[1] ? { place: Number(found[2]) } : { sequence: found[2] as string };
}

export function CapsuleView({ parts: [chain = "", address = "", fragment = ""] }: { parts: string[] }): JSX.Element {
  const { value: detail, words, retry } = useAnswer(async () => {
    const place = readAddress(address);
    if (place === null) throw new Error(`${address} names no record: a number does, or p and a place`);
    void verifyChain(chain);
    return connection.ask({ type: "record", chain, at: place, keys: pinnedKeys() });
  }, [chain, address, contents.value, pins.value]);
  const place = detail?.row.place ?? 0;
  const length = contents.value?.chains.find((one) => one.id === chain)?.length ?? null;
  const hasNext = length === null || place + 1 < length;
  // In a damaged chain a record does not lie where its number says.
  const near = (to: number) => link("c", chain, detail?.row.sequence === String(place) ? to : `p${to}`);
  useKeys({
    j: () => { if (detail && hasNext) location.hash = near(place + 1); },
    k: () => { if (detail && place > 0) location.hash = near(place - 1); },
    Escape: () => { location.hash = wayBack(chain, detail?.row.sequence ?? ""); },
  });
  if (words) {
    return (
      <>
        <p><a href={link("s", chain)}>Back to the chain</a></p>
        <Problem words={words} retry={retry} />
      </>
    );
  }
  if (detail === null) return <div aria-busy="true"><h1>Record</h1><p class="beside" role="status">Reading the record …</p><div class="band placeholder tall" /><div class="band placeholder tall" /></div>;
  return <Capsule key={detail.hash + place} chain={chain} detail={detail} hasNext={hasNext} near={near} fragment={fragment} />;
}

function Capsule({ chain, detail, hasNext, near, fragment }: { chain: string; detail: RecordDetail; hasNext: boolean; near: (to: number) => string; fragment: string }): JSX.Element {
  const { row } = detail;
  const { place } = row;
  const number = row.sequence || String(place);
  const record = useMemo(() => {
    const { canonical, hash, signature, signaturePq, signedAt, signedBy } = detail;
    return toSealed(chain, { place, canonical, hash, signature, signaturePq, signedAt, signedBy, problem: "" }) as Sealed;
  }, [detail]);
  const isAction = detail.receiptKeys !== undefined;
  const isDenied = isDenial(row);
  const content = useMemo(() => (isAction || record.canonical.length > LAID_OUT_MAX ? null : contentOf(record)), [record]);
  const inChain = findingsOf(chain).filter((one) => String(one.place.sequence) === number && one.code !== "UNKNOWN_SIGNER");
  // Capsules of a file may be of several chains.
  const uri = contents.value?.format === "capsules" ? `capsule://sha3_${detail.hash}` : `capsule://${chain}/${number}`;
  return (
    <article class="capsule record">
      <nav class="beside neighbours" aria-label="Neighbours">
        <a href={wayBack(chain, number)}>Back (Esc)</a>
        <a href={link(isAction ? "chain" : "s", chain, `at-${number}`)}>{isAction ? "All actions" : "Its session or chain"}</a>
        {place > 0 ? <a href={near(place - 1)} rel="prev">Record before (k)</a> : <span>The first of its chain</span>}
        {hasNext ? <a href={near(place + 1)} rel="next">Record after (j)</a> : <span>The last of its chain</span>}
      </nav>
      <h1>{isDenied ? <><span class="word failure">denied</span> </> : null}<Text>{row.summary || row.kind}</Text></h1>
      <p class="beside address">
        {isAction ? null : <><code><Text>{uri}</Text></code> <Copy text={uri} label="copy" /></>} <Copy text={location.href} label="copy link" />
        <span><Text>{`${row.kind} · ${row.type}`}</Text> · <Time>{row.at}</Time></span>
      </p>
      {isAction ? <ReceiptBand detail={detail} /> : <SealBand detail={detail} />}
      {inChain.map((finding, index) => <FindingCard key={index} finding={finding} />)}
      {content !== null && fragment ? <NamedPart content={content} fragment={fragment} /> : null}
      <div class="capsule-body">
        <div>
          {isAction ? <ActionSections detail={detail} /> : content === null
            ? <p class="strip">The text of this record is no JSON object, or too large to lay out. Its exact bytes are below.</p>
            : <Sections record={record} content={content} isDenied={isDenied} />}
        </div>
        <aside aria-label="Seal and related records">
          {isAction ? <ReceiptSection detail={detail} before={place > 0 ? near(place - 1) : ""} /> : <SealSection detail={detail} />}
          {content === null ? null : <Related chain={chain} place={place} content={content} />}
        </aside>
      </div>
      <TryToChange chain={chain} place={place} sequence={row.sequence} />
      <section class="section">
        <h2>Exact bytes</h2>
        <p class="beside">{isAction ? "The line as it is stored. " : "This text was hashed, as it is. "}{detail.canonical.length > EXACT_MAX ? `The first ${EXACT_MAX} of ${detail.canonical.length} characters are shown; the copy has all.` : ""}</p>
        <p><Copy text={detail.canonical} label={isAction ? "copy the line" : "copy the text that was hashed"} /></p>
        <pre class="exact" tabIndex={0}>{visible(cutText(detail.canonical, EXACT_MAX))}</pre>
      </section>
    </article>
  );
}

/** The part of a record that the fragment of a reference names. */
function NamedPart({ content, fragment }: { content: JsonObject; fragment: string }): JSX.Element {
  const value = resolveFragment(content, fragment);
  return (
    <section class="section" id="section-named">
      <h2>The part that the reference names <span class="soft"><Text>{fragment}</Text></span></h2>
      {value === undefined ? <p>This record has nothing there.</p> : <Value value={value} />}
    </section>
  );
}

/** What the record's own seal says, in one line. */
function SealBand({ detail }: { detail: RecordDetail }): JSX.Element {
  const isSame = detail.computedHash === detail.hash && detail.hash !== "";
  const failed = detail.findings.filter((one) => one.status === "failed");
  const isKnown = !detail.findings.some((one) => one.code === "UNKNOWN_SIGNER");
  const name = failed.length || !isSame ? "failed" : isKnown ? "verified" : "qualified";
  const words = failed.length || !isSame
    ? "This record does not hold by itself."
    : isKnown ? "The record holds by itself: its hash is right, and a key that you pinned signed it." : "Its hash is right. Its signer is not pinned here, so the signature is not checked.";
  return <p class={`seal-band ${name}`} role="status"><Mark name={name} /> <strong>{name}</strong> {words}</p>;
}

function SealSection({ detail }: { detail: RecordDetail }): JSX.Element {
  const isSame = detail.computedHash === detail.hash;
  return (
    <section class="section seal" id="section-seal">
      <h2>Seal</h2>
      <div class="members"><dl>
        <div><dt><Mark name={isSame ? "verified" : "failed"} /> SHA3-256, computed here</dt><dd><Hex length={64}>{detail.computedHash || "none: the text has no bytes"}</Hex></dd></div>
        <div><dt>hash, as stored</dt><dd><Hex length={64}>{detail.hash}</Hex> {isSame ? "the same" : <strong>another</strong>}</dd></div>
        <div><dt>hash of the record before</dt><dd>{detail.previousHash ? <Hex length={64}>{detail.previousHash}</Hex> : <span class="soft">none: this is the first</span>}</dd></div>
        <div><dt>signed by</dt><dd><Hex>{detail.signedBy}</Hex> at <Time>{detail.signedAt}</Time></dd></div>
        <div><dt>signature</dt><dd><Hex length={32}>{detail.signature}</Hex> <SignatureWords detail={detail} /></dd></div>
        <div><dt>post-quantum signature</dt><dd>{detail.signaturePq ? <Hex length={32}>{detail.signaturePq}</Hex> : <span class="soft">none</span>}</dd></div>
      </dl></div>
      {detail.findings.map((finding, index) => <p key={index} class="beside"><strong>{finding.code}</strong> <Text>{finding.words}</Text></p>)}
    </section>
  );
}

function SignatureWords({ detail }: { detail: RecordDetail }): JSX.Element {
  const failed = detail.findings.find((one) => one.code === "SIG_INVALID" || one.code === "SIG_MISSING");
  if (failed) return <strong>{failed.code}</strong>;
  const isUnknown = detail.findings.some((one) => one.code === "UNKNOWN_SIGNER");
  if (detail.computedHash !== detail.hash) return <strong class="bad">signs the stored hash, which this text does not have</strong>;
  if (!isUnknown) return <span class="good">valid, by a key that you pinned</span>;
  if (detail.matchesOwnKey === true) return <span class="warn">matches the key in the bundle, which you have not pinned: not checked. <a href={link("keys")}>Keys</a></span>;
  if (detail.matchesOwnKey === false) return <strong>does not match the key in the bundle</strong>;
  return <span class="warn">not checked: its key is not known here. <a href={link("keys")}>Keys</a></span>;
}

/** Parent, children, and records of the same request. */
function Related({ chain, place, content }: { chain: string; place: number; content: JsonObject }): JSX.Element {
  const { names, isWhole, isQuick } = useMemo(() => relatedChains(chain, asText(at(content, "context", "session_id"))), [chain, content, contents.value]);
  const [isAsked, setAsked] = useState(false);
  const [isWholeList, setWholeList] = useState(false);
  const isSearched = isQuick || isAsked;
  const { value: found, words, retry } = useAnswer(async (isCurrent) => (isSearched ? findRelated(chain, place, content, names, isCurrent) : null), [chain, place, content, names, isSearched]);
  return (
    <section class="section" id="section-related">
      <h2>Records that belong to it</h2>
      {words ? <Problem words={words} retry={retry} /> : null}
      {isSearched ? null : <p><button type="button" onClick={() => setAsked(true)}>Look through {plural(names.length, "chain")}</button></p>}
      {isSearched && found === null && !words ? <p class="beside" role="status">Looking through {plural(names.length, "chain")} …</p> : null}
      {found !== null && !found.found.length ? <p class="beside">No other record {isWhole ? "here" : "of its chain and session"} belongs to the same request, caused it, or was caused by it.</p> : null}
      {found?.found.length ? (
        <ul class="related">
          {found.found.slice(0, isWholeList ? undefined : LISTED).map((one) => (
            <li key={`${one.chain} ${one.place}`}>
              <span class="soft"><Text>{one.relation}</Text>:</span> <a href={link("c", one.chain, `p${one.place}`)}><Text>{one.summary || one.kind}</Text></a> <span class="beside"><Text>{one.kind}</Text> · <Time>{one.at}</Time></span>
            </li>
          ))}
        </ul>
      ) : null}
      {found !== null && found.found.length > LISTED && !isWholeList ? <p><button type="button" class="small" onClick={() => setWholeList(true)}>Show all {found.found.length}</button></p> : null}
      {found?.isCut ? <p class="beside">There are more. This list is cut.</p> : null}
      {found !== null && !isWhole ? <p class="beside">Only {plural(names.length, "chain")} of its session and its approvals were searched, because there are too many records.</p> : null}
    </section>
  );
}

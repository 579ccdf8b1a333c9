/** One record: its six sections, its seal, and the exact bytes with the computed hash beside the stored. */

import { useEffect, useState } from "preact/hooks";
import type { JSX } from "preact";
import { Value } from "../parts/json.tsx";
import { Copy, Hex, Text, Time, visible } from "../parts/text.tsx";
import { TryToChange } from "../parts/tamper.tsx";
import { FindingCard, Mark } from "../parts/verdict.tsx";
import { pins } from "../source/pins.ts";
import { connection, contents, findingsOf, link, pinnedKeys } from "../state.ts";
import { type Json, readJson } from "../verify/json.ts";
import type { RecordDetail } from "../worker/protocol.ts";

const SECTIONS: [string, string][] = [
  ["trigger", "What started it"],
  ["context", "Where it happened"],
  ["reasoning", "Why"],
  ["authority", "Who allowed it"],
  ["execution", "What was done"],
  ["outcome", "What came of it"],
];
/** Characters of a record that are parsed for showing. */
const SHOWN_MAX = 2_000_000;

function parse(canonical: string): Map<string, Json> | null {
  try {
    const value = canonical.length <= SHOWN_MAX ? readJson(canonical) : null;
    return value instanceof Map ? value : null;
  } catch {
    return null;
  }
}

/** `address` is a sequence number, or `p` and a place in the file. */
export function RecordView({ parts: [chain = "", address = "0"] }: { parts: string[] }): JSX.Element {
  const [detail, setDetail] = useState<RecordDetail | null>(null);
  const [words, setWords] = useState("");
  useEffect(() => {
    setDetail(null);
    setWords("");
    const at = address.startsWith("p") ? { place: Number(address.slice(1)) } : { sequence: address };
    connection.ask({ type: "record", chain, at, keys: pinnedKeys() }).then(setDetail, (error: Error) => setWords(error.message));
  }, [chain, address, contents.value, pins.value]);
  const place = detail?.row.place ?? 0;
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.target instanceof HTMLInputElement) return;
      if (event.key === "Escape") location.hash = link("s", chain, `at-${detail?.row.sequence ?? ""}`);
      else if (event.key === "j" && detail) location.hash = link("c", chain, `p${place + 1}`);
      else if (event.key === "k" && place > 0) location.hash = link("c", chain, `p${place - 1}`);
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [chain, detail]);
  if (words) {
    return (
      <>
        <p><a href={link("s", chain)}>Back to the chain</a></p>
        <div class="finding failed" role="alert"><p><Text>{words}</Text></p></div>
      </>
    );
  }
  if (detail === null) return <p class="strip" role="status">Reading the record …</p>;
  const content = parse(detail.canonical);
  const isSame = detail.computedHash === detail.hash;
  const inChain = findingsOf(chain).filter((one) => String(one.place.sequence) === detail.row.sequence);
  return (
    <article class="record">
      <nav class="beside" aria-label="Neighbours">
        <a href={link("s", chain, `at-${detail.row.sequence}`)}>Back to the chain (Esc)</a>
        {place > 0 ? <> · <a href={link("c", chain, `p${place - 1}`)}>before (k)</a></> : null} · <a href={link("c", chain, `p${place + 1}`)}>after (j)</a>
      </nav>
      <h1><Text>{detail.row.summary || detail.row.kind}</Text></h1>
      <p class="beside">
        <code><Text>{`capsule://${chain}/${detail.row.sequence}`}</Text></code> <Copy text={`capsule://${chain}/${detail.row.sequence}`} label="copy" />{" "}
        {detail.row.kind} · {detail.row.type} · <Time>{detail.row.at}</Time>
      </p>
      {inChain.map((finding, at) => <FindingCard key={at} finding={finding} />)}
      {content === null ? <p class="strip">The text of this record is no JSON object, or too large to lay out. Its exact bytes are below.</p> : null}
      {content === null ? null : SECTIONS.map(([name, title]) => (
        <section key={name} class="section">
          <h2>{title} <span class="soft">{name}</span></h2>
          <Value value={content.get(name) ?? null} />
        </section>
      ))}
      <section class="section seal">
        <h2>Seal</h2>
        <div class="members"><dl>
          <div><dt>SHA3-256, computed here</dt><dd><Mark name={isSame ? "verified" : "failed"} /> <Hex length={64}>{detail.computedHash || "none: the text has no bytes"}</Hex></dd></div>
          <div><dt>hash, as stored</dt><dd><Hex length={64}>{detail.hash}</Hex> {isSame ? "the same" : <strong>another</strong>}</dd></div>
          <div><dt>hash of the record before</dt><dd>{detail.previousHash ? <Hex length={64}>{detail.previousHash}</Hex> : <span class="soft">none: this is the first</span>}</dd></div>
          <div><dt>signed by</dt><dd><Hex>{detail.signedBy}</Hex> at <Time>{detail.signedAt}</Time></dd></div>
          <div><dt>signature</dt><dd><Hex length={32}>{detail.signature}</Hex> <SignatureWords detail={detail} /></dd></div>
          <div><dt>post-quantum signature</dt><dd>{detail.signaturePq ? <Hex length={32}>{detail.signaturePq}</Hex> : <span class="soft">none</span>}</dd></div>
        </dl></div>
        {detail.findings.map((finding, at) => <p key={at} class="beside"><strong>{finding.code}</strong> <Text>{finding.words}</Text></p>)}
      </section>
      <TryToChange chain={chain} place={place} sequence={detail.row.sequence} />
      <section class="section">
        <h2>Exact bytes</h2>
        <p><Copy text={detail.canonical} label="copy the text that was hashed" /></p>
        <pre class="exact">{visible(detail.canonical.slice(0, SHOWN_MAX / 10))}</pre>
      </section>
    </article>
  );
}

function SignatureWords({ detail }: { detail: RecordDetail }): JSX.Element {
  const failed = detail.findings.find((one) => one.code === "SIG_INVALID" || one.code === "SIG_MISSING");
  if (failed) return <strong>{failed.code}</strong>;
  const isUnknown = detail.findings.some((one) => one.code === "UNKNOWN_SIGNER");
  if (!isUnknown) return <span class="good">valid, by a key that you pinned</span>;
  if (detail.matchesOwnKey === true) return <span class="warn">matches the key in the bundle, which you have not pinned: not checked. <a href={link("keys")}>Keys</a></span>;
  if (detail.matchesOwnKey === false) return <strong>does not match the key in the bundle</strong>;
  return <span class="warn">not checked: its key is not known here. <a href={link("keys")}>Keys</a></span>;
}

/** JSON values as prose and tables. Numbers are shown by their text, never as JavaScript rounds them. */

import type { JSX } from "preact";
import { type Json, JsonNumber, type JsonObject, isObject } from "../verify/json.ts";
import { cutText } from "../verify/text.ts";
import { Linked, Text, WholeHex, visible } from "./text.tsx";

/** Items of a list or object that are shown. The exact text of the record shows all. */
const ITEMS_MAX = 200;
/** Characters of one text that are shown. */
const TEXT_MAX = 20_000;
/** Characters of a list of short values that stands in one line. */
const LINE_MAX = 96;
const DIGEST = /^[0-9a-f]{40,128}$/;

export function Value({ value, depth = 0 }: { value: Json; depth?: number }): JSX.Element {
  if (value === null) return <span class="soft">none</span>;
  if (typeof value === "boolean") return <span>{value ? "yes" : "no"}</span>;
  if (value instanceof JsonNumber) return <span class="figure">{value.text}</span>;
  if (typeof value === "string") return <LongText text={value} />;
  if (Array.isArray(value)) {
    if (!value.length) return <span class="soft">none</span>;
    const line = oneLine(value);
    if (line) return <Linked>{line}</Linked>;
    return (
      <ol class="list">
        {value.slice(0, ITEMS_MAX).map((item, at) => <li key={at}><Value value={item} depth={depth + 1} /></li>)}
        {value.length > ITEMS_MAX ? <li class="soft">{value.length - ITEMS_MAX} more, in the exact text of the record</li> : null}
      </ol>
    );
  }
  if (!value.size) return <span class="soft">none</span>;
  const blob = readBlobReference(value);
  if (blob !== null) return <span>{blob.media}, {blob.size} bytes, kept beside the record: <WholeHex>{blob.digest}</WholeHex></span>;
  const given = [...value].filter(([, item]) => !isEmpty(item));
  const others = [...value.keys()].filter((key) => isEmpty(value.get(key) as Json));
  return (
    <div class="members">
      <dl>
        {given.slice(0, ITEMS_MAX).map(([key, item]) => (
          <div key={key}>
            <dt><Text>{key}</Text></dt>
            <dd><Value value={item} depth={depth + 1} /></dd>
          </div>
        ))}
      </dl>
      {given.length > ITEMS_MAX ? <p class="beside">{given.length - ITEMS_MAX} more, in the exact text of the record</p> : null}
      {others.length ? <p class="beside">Empty: <Text>{others.slice(0, ITEMS_MAX).join(", ")}</Text></p> : null}
    </div>
  );
}

/** A list of short values as one line, such as `egress, network, read`; empty for any other list. */
function oneLine(values: Json[]): string {
  const words = values.map((item) => (typeof item === "string" ? item : item instanceof JsonNumber ? item.text : null));
  const isPlain = words.every((word) => word !== null && word !== "" && !/[\n,]/.test(word) && (word.length <= 32 || DIGEST.test(word)));
  const line = words.join(", ");
  return isPlain && line.length <= LINE_MAX ? line : "";
}

/** A value that is kept beside the record, by its digest; null for any other object. */
function readBlobReference(value: JsonObject): { digest: string; media: string; size: string } | null {
  const inner = value.size === 1 ? value.get("blob") : value;
  if (!isObject(inner) || inner.size !== 4) return null;
  const [digest, media, size] = [inner.get("digest"), inner.get("media"), inner.get("size")];
  if (typeof digest !== "string" || !DIGEST.test(digest) || typeof media !== "string" || !(size instanceof JsonNumber) || inner.get("alg") !== "sha256") return null;
  return { digest, media: visible(media), size: size.text };
}

function isEmpty(value: Json): boolean {
  return value === null || value === "" || (Array.isArray(value) && !value.length) || (value instanceof Map && !value.size);
}

function LongText({ text }: { text: string }): JSX.Element {
  if (text === "") return <span class="soft">empty</span>;
  if (DIGEST.test(text)) return <code class="hex">{text}</code>;
  if (!text.includes("\n") && text.length <= 160) return <Linked>{text}</Linked>;
  const isDiff = /^(?:diff --git|--- |@@ )/m.test(text) && /^[+-]/m.test(text);
  const shown = cutText(text, TEXT_MAX);
  return (
    <div class="long">
      <pre class={isDiff ? "diff" : ""}>
        {isDiff ? visible(shown).split("\n").map((line, at) => <DiffLine key={at} line={line} />) : <Linked>{shown}</Linked>}
      </pre>
      {text.length > TEXT_MAX ? <p class="beside">{text.length - TEXT_MAX} more characters, in the exact text of the record</p> : null}
    </div>
  );
}

function DiffLine({ line }: { line: string }): JSX.Element {
  const isHead = /^(?:\+\+\+|---|diff |index )/.test(line);
  const sort = isHead ? "head" : line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : line.startsWith("@@") ? "hunk" : "";
  return <span class={sort}>{`${line}\n`}</span>;
}

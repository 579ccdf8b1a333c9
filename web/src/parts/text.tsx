/** Texts from records, shown as they are: nothing in them is markup, and nothing in them stays invisible. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { usesUtc } from "../preferences.ts";
import { link } from "../route.ts";
import { server } from "../state.ts";
import { splitReferences } from "../verify/uri.ts";
import { visible } from "./visible.ts";

export { visible } from "./visible.ts";

export function Text({ children }: { children: string }): JSX.Element {
  return <bdi>{visible(children)}</bdi>;
}

/** A text of a record in which each `capsule://` URI leads to the record that it names. */
export function Linked({ children }: { children: string }): JSX.Element {
  return <bdi>{splitReferences(children).map((piece, at) => (at % 2 ? <a key={at} href={link("ref", piece)}>{visible(piece)}</a> : visible(piece)))}</bdi>;
}

/** The first 16 digits of a hash, and the whole while it has the focus. For places where a hash is read, not for lists. */
export function WholeHex({ children }: { children: string }): JSX.Element {
  const [isFocused, setFocused] = useState(false);
  return (
    <code class="hex" tabIndex={0} title={visible(children)} onFocus={() => setFocused(true)} onBlur={() => setFocused(false)}>
      {visible(isFocused ? children : children.slice(0, 16))}{!isFocused && children.length > 16 ? "…" : ""}
    </code>
  );
}

/** The first 16 digits of a hash; the pointer shows the whole. */
export function Hex({ children, length = 16 }: { children: string; length?: number }): JSX.Element {
  return (
    <code class="hex" title={visible(children)}>
      {visible(children.slice(0, length))}
      {children.length > length ? "…" : ""}
    </code>
  );
}

/** A point in time, in UTC or local time: whole, `short` without the day, or `brief` without seconds. A text that is no time stays as it is. */
export function Time({ children, short = false, brief = false }: { children: string; short?: boolean; brief?: boolean }): JSX.Element {
  const words = readTime(children);
  if (!words) return <Text>{children}</Text>;
  const zone = usesUtc.value ? " UTC" : "";
  const shown = short ? words.slice(11, 19) : brief ? words.slice(0, 16).replace("T", " ") : `${words.slice(0, 19).replace("T", " ")}${zone}`;
  return <time dateTime={children} title={visible(children)}>{shown}</time>;
}

/** The time that a text names, as the reader sees it; empty for a text that is no time. */
export function readTime(text: string): string {
  const date = new Date(/^\d{4}-\d\d-\d\dT/.test(text) ? text : NaN);
  return Number.isNaN(date.getTime()) ? "" : formatTime(date);
}

/** A time in the zone that the reader chose, such as `2026-05-31T09:00:00.000Z`; for local time, its `Z` means nothing. */
export function formatTime(date: Date): string {
  return (usesUtc.value ? date : new Date(date.getTime() - date.getTimezoneOffset() * 60_000)).toISOString();
}

/** Made once: a browser takes long to look a locale up. */
const figures = new Intl.NumberFormat("en-GB");

export function count(value: number): string {
  return figures.format(value.valueOf()); // A server's figure that is none breaks its view, and is not shown as NaN.
}

export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** A text that can be copied by a button. */
export function Copy({ text, label }: { text: string; label: string }): JSX.Element {
  return (
    <button
      type="button"
      class="small"
      onClick={(event) => {
        const button = event.currentTarget;
        void navigator.clipboard?.writeText(text).then(() => {
          button.textContent = "copied";
          setTimeout(() => {
            button.textContent = label;
          }, 1500);
        });
      }}
    >
      {label}
    </button>
  );
}

/** A name as a shell takes it. */
export function quoteName(name: string): string {
  return /^[A-Za-z0-9_@%+=:,./][A-Za-z0-9_@%+=:,./-]*$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`;
}

/**
 * The options that lead a command to the server's ledger. They are the server's word, so no others are taken: `--key` would
 * have it say which keys are good. What is about keys or a client alone has none.
 */
function ledgerOptions(command: string): string {
  const options = /^aver (?!install|keys)/.test(command) && server.value?.about["command_options"];
  if (!Array.isArray(options) || !options.every((word, at) => at % 2 || word === "--ledger" || word === "--tenant")) return "";
  return options.map((word, at) => ` ${at % 2 ? quoteName(visible(String(word))) : word}`).join("");
}

/** A command to copy. While the ledger of a server is open, it is about this ledger, unless it looks for something elsewhere. */
export function Command({ children, isElsewhere = false }: { children: string; isElsewhere?: boolean }): JSX.Element {
  const command = children + (isElsewhere ? "" : ledgerOptions(children));
  return (
    <span class="command">
      <code>{visible(command).split(" ").map((word, at) => <>{at ? " " : ""}<span>{word}</span></>)}</code> <Copy text={command} label="copy" />
    </span>
  );
}

/** Where the reader is: the part of the address after `#`, such as `#/c/claude-code.5d2e/7`. */

import { signal } from "@preact/signals";
import { keepPlace } from "./source/secrets.ts"; // First: it takes the token out of the address.
import { SCHEME } from "./verify/uri.ts";

function readRoute(): string[] {
  // A reference is an address, too. It has percent signs and slashes of its own.
  if (location.hash.startsWith(`#${SCHEME}`)) return ["ref", location.hash.slice(1)];
  const parts = location.hash.replace(/^#\/?/, "").split("?", 1)[0]!.split("/").map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  // A record's address without its number is the chain's.
  return parts[0] === "c" && !parts[2] ? ["chain", ...parts.slice(1, 2)] : parts;
}

/** The parts of the address. */
export const route = signal<string[]>(readRoute());

/** By address, the link that had the focus when the reader left it, and how far the page was scrolled. */
const left = new Map<string, string>();
const scrolled = new Map<string, number>();
let here = location.hash;
/** The last address that was not a record's; empty if the reader began with a record. */
let beforeRecord = isRecord(here) ? "" : here || "#/";
/** The last address that was neither a record's nor a chain's; empty if the reader began with one of these. */
let beforeChain = isOfChain(here) ? "" : here || "#/";
/** Waits for the link that gets the focus. */
let waiting: MutationObserver | null = null;
/** Whether the reader followed a link. By the way back, a page is where it was; by a link, it begins at its top. */
let isFollowed = false;

addEventListener("click", (event) => {
  isFollowed = event.target instanceof Element && event.target.closest("a[href^='#']") !== null;
}, { capture: true });

addEventListener("hashchange", () => {
  // The printed link of a server in a tab that has the page already: it begins anew with the token, where it was.
  if (location.hash.startsWith("#token=")) return keepPlace(here);
  const active = document.activeElement;
  const target = active instanceof HTMLElement ? active.getAttribute("href") : null;
  if (target !== null) left.set(here, target);
  scrolled.set(here, scrollY);
  here = location.hash;
  if (!isRecord(here)) beforeRecord = here;
  if (!isOfChain(here)) beforeChain = here;
  route.value = readRoute();
});

function isRecord(address: string): boolean {
  return address.startsWith("#/c/");
}

function isOfChain(address: string): boolean {
  return isRecord(address) || address.startsWith("#/chain/");
}

/** Where a reader of a chain came from: the list of the chains, or a view that led to it. */
export function wayUp(): string {
  return beforeChain || link("chains");
}

/** Where a reader of a record came from, such as a search. A session is found again at the record that he left. */
export function wayBack(chain: string, sequence: string): string {
  const [view = ""] = beforeRecord.replace(/^#\/?/, "").split("/", 1);
  if (beforeRecord === "" || view === "s") return link("s", chain, `at-${sequence}`);
  return view === "chain" ? link("chain", chain, `at-${sequence}`) : beforeRecord;
}

/** Put focus and window where they were when the reader left this address, or else to the top of the content. */
export function returnFocus(main: HTMLElement): void {
  scrollTo(0, isFollowed ? 0 : (scrolled.get(location.hash) ?? 0));
  isFollowed = false;
  const target = left.get(location.hash);
  const find = () => [...main.querySelectorAll<HTMLElement>("a[href]:not(svg a)")].find((one) => target !== undefined && one.getAttribute("href") === target);
  if (main.contains(document.activeElement) && document.activeElement !== main) return;
  (find() ?? main).focus({ preventScroll: find() === undefined });
  waiting?.disconnect();
  if (target === undefined || find()) return;
  // The view reads its rows again. The link gets the focus when it comes, unless the reader has gone on by then.
  const [y, address] = [scrollY, here];
  waiting = new MutationObserver(() => {
    const isStill = document.activeElement === main && scrollY === y && here === address;
    if (isStill && !find()) return;
    waiting?.disconnect();
    if (isStill) find()?.focus();
  });
  waiting.observe(main, { childList: true, subtree: true });
}

/** The address of a view. */
export function link(...parts: (string | number)[]): string {
  return `#/${parts.map((part) => encodeURIComponent(String(part))).join("/")}`;
}

/** The address of a search, or of the record that a `capsule://` URI names. */
export function searchLink(words: string): string {
  return link(words.startsWith(SCHEME) ? "ref" : "search", words);
}

/** The address of a record: by its sequence number, or by its place where that is another. */
export function recordLink(chain: string, row: { place: number; sequence: string }): string {
  return link("c", chain, row.sequence === String(row.place) ? row.sequence : `p${row.place}`);
}

/** What the page knows and shows: the open thing, the verdict on it, and where the reader is. */

import { computed, signal } from "@preact/signals";
import { Connection, NotJudgedHere } from "./source/connection.ts";
import { pins, recallHead, rememberHead } from "./source/pins.ts";
import type { Progress } from "./verify/options.ts";
import type { Finding, Verdict } from "./verify/verdict.ts";
import type { Change, Contents, OpenedThing, PinnedKey } from "./worker/protocol.ts";

export type Judgement =
  | { state: "none" }
  | { state: "working"; progress: Progress | null }
  | { state: "done"; verdict: Verdict; usesPlatform: boolean; at: Date }
  | { state: "not judged"; words: string };

export const connection = new Connection();
export const thing = signal<OpenedThing | null>(null);
export const contents = signal<Contents | null>(null);
export const judgement = signal<Judgement>({ state: "none" });
export const opening = signal<string>("");
export const problem = signal<string>("");
export const route = signal<string[]>(readRoute());
export const usesUtc = signal(true);
/** What was changed in the copy that is open; empty for the thing itself. */
export const changed = signal("");
let original: OpenedThing | null = null;

/** The verdict, if there is one. */
export const verdict = computed(() => (judgement.value.state === "done" ? judgement.value.verdict : null));

/** The findings about a chain, by sequence number. */
export function findingsOf(chain: string): Finding[] {
  const whole = verdict.value;
  if (whole === null) return [];
  // A single file has no chain to name: its findings have the file as their source.
  const isAlone = contents.value?.format !== "bundle";
  return whole.findings.filter((finding) => finding.place.chain === chain || (isAlone && finding.place.chain === null));
}

export function pinnedKeys(): PinnedKey[] {
  return pins.value.map(({ publicKey, publicKeyPq }) => ({ publicKey, publicKeyPq }));
}

function readRoute(): string[] {
  return location.hash.replace(/^#\/?/, "").split("/").map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
}

addEventListener("hashchange", () => {
  route.value = readRoute();
});

/** The address of a view. */
export function link(...parts: (string | number)[]): string {
  return `#/${parts.map((part) => encodeURIComponent(String(part))).join("/")}`;
}

/** Open a thing, show what it holds, and verify it. */
export async function openThing(found: OpenedThing, change = ""): Promise<void> {
  connection.stop("another thing was opened");
  changed.value = change;
  thing.value = found;
  contents.value = null;
  judgement.value = { state: "none" };
  problem.value = "";
  opening.value = `Reading ${found.name}`;
  try {
    contents.value = await connection.ask({ type: "open", thing: found });
    opening.value = "";
    const [view = ""] = route.value;
    if (!["c", "s"].includes(view)) location.hash = "#/";
    await verifyThing();
  } catch (error) {
    opening.value = "";
    thing.value = null;
    problem.value = (error as Error).message;
  }
}

/** Verify the open thing with the pinned keys. */
export async function verifyThing(): Promise<void> {
  if (contents.value === null || judgement.value.state === "working") return;
  judgement.value = { state: "working", progress: null };
  const { ledger, tenant } = contents.value;
  const name = `${ledger}/${tenant}`;
  try {
    const remembered = ledger === null || changed.value ? null : await recallHead(name);
    const { head, ...result } = await connection.ask({ type: "verify", keys: pinnedKeys(), remembered }, (progress) => {
      if (judgement.value.state === "working") judgement.value = { state: "working", progress };
    });
    judgement.value = { state: "done", ...result, at: new Date() };
    // Only what a pinned key signed is worth remembering: else anyone could fill the memory.
    if (ledger !== null && head !== null && !changed.value && result.verdict.status === "verified") await rememberHead(name, head);
  } catch (error) {
    const words = error instanceof NotJudgedHere ? error.message : `the verifier broke down: ${(error as Error).message}`;
    judgement.value = { state: "not judged", words };
  }
}

/** Stop the verification. The worker is ended, and the thing is opened anew in another one. */
export async function stopVerifying(): Promise<void> {
  const found = thing.value;
  connection.stop("you stopped it");
  judgement.value = { state: "not judged", words: "you stopped it" };
  if (found !== null) await connection.ask({ type: "open", thing: found });
}

/** Open a copy of the open thing with one record changed, to see where it breaks. */
export async function tryChange(chain: string, place: number, change: Change, words: string): Promise<void> {
  const found = thing.value;
  if (found === null) return;
  const { name, file } = await connection.ask({ type: "change", chain, place, change });
  original ??= found;
  await openThing({ ...found, files: found.files.map(([path, blob]) => [path, path === name ? file : blob]) }, words);
}

/** Go back from a changed copy to the thing itself. */
export async function undoChange(): Promise<void> {
  const found = original;
  original = null;
  if (found !== null) await openThing(found);
}

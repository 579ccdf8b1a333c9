/** What the page knows and shows: the open thing, the verdict on it, and where the reader is. */

import { computed, signal } from "@preact/signals";
import { Connection, NotJudgedHere } from "./source/connection.ts";
import { pins } from "./source/pins.ts";
import type { Progress } from "./verify/options.ts";
import type { Finding, Verdict } from "./verify/verdict.ts";
import type { Contents, OpenedThing, PinnedKey } from "./worker/protocol.ts";

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
export async function openThing(found: OpenedThing): Promise<void> {
  connection.stop("another thing was opened");
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
  try {
    const result = await connection.ask({ type: "verify", keys: pinnedKeys() }, (progress) => {
      if (judgement.value.state === "working") judgement.value = { state: "working", progress };
    });
    judgement.value = { state: "done", ...result, at: new Date() };
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

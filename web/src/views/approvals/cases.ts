/** The requests for an approval, with their states as this page computes them from the records. */

import { effect, signal } from "@preact/signals";
import { pins } from "../../source/pins.ts";
import { connection, contents, news, pinnedKeys, waiting } from "../../state.ts";
import type { ApprovalCase } from "../../worker/protocol.ts";

/** All requests, newest first; null until they are read. */
export const cases = signal<ApprovalCase[] | null>(null);
export const casesProblem = signal("");
/** Whether there are older requests that are not listed. */
export const isCasesCut = signal(false);
/** The time by which a request is judged, which moves on each second while one waits. */
export const now = signal(new Date());

/** A request that nobody answered in time is denied, also before the ledger has a record of it. */
export function stateOf(one: ApprovalCase): string {
  return one.state === "pending" && now.value > new Date(one.expires) ? "expired" : one.state;
}

let asked = 0;

/** Read the requests again. */
export function readCases(): void {
  const mine = ++asked;
  connection.ask({ type: "approvals", keys: pinnedKeys(), now: new Date().toISOString().replace("Z", "+00:00") }).then(
    (found) => {
      if (mine !== asked) return;
      cases.value = found.cases;
      isCasesCut.value = found.isCut;
      casesProblem.value = "";
    },
    (error: Error) => {
      if (mine === asked) casesProblem.value = error.message;
    },
  );
}

/** Read the requests when the open thing, the pins or the ledger change, and count those that wait. */
export function watchApprovals(): void {
  effect(() => {
    void [contents.value, pins.value, news.value.approvals];
    if (contents.value === null) cases.value = null;
    else readCases();
  });
  effect(() => {
    waiting.value = (cases.value ?? []).filter((one) => stateOf(one) === "pending").length;
  });
  setInterval(() => {
    if (waiting.value > 0) now.value = new Date();
  }, 1000);
}

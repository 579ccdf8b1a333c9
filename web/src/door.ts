/** Which door this page came through: the server of a ledger, a site, or nothing but the reader's own files. */

import { LiveStream, type News } from "./source/live.ts";
import { pinKey, readPins } from "./source/pins.ts";
import { answerOtherTabs, askOtherTabs, secrets } from "./source/secrets.ts";
import { openSite } from "./source/site.ts";
import {
  VERIFIED_AT_ONCE,
  contents,
  doorServer,
  home,
  judgement,
  liveState,
  news,
  openThing,
  opening,
  problem,
  reconnect,
  refreshContents,
  retryOpening,
  thing,
  totalRecords,
  verifyThing,
  warmWorkers,
} from "./state.ts";
import { sha256Hex } from "./verify/digest.ts";
import { Api } from "./worker/api.ts";
import type { About } from "./worker/live.ts";
import type { LiveAccess } from "./worker/protocol.ts";

/** Milliseconds to wait for more news before the page looks again. */
const NEWS_PAUSE = 400;
/** After news, the page verifies again. Between two verifications it rests this many times as long as the first took. */
const REST = 5;

/** Open what this page came with. */
export async function openDoor(): Promise<void> {
  const door = document.documentElement.dataset["door"];
  const isLive = door === "live" || secrets.token !== "";
  problem.value = "";
  retryOpening.value = null;
  // Said before the first wait: a key that the reader pinned meanwhile would be pinned before it is known for which ledger.
  if (door === "site") opening.value = "Reading this site";
  else if (isLive) opening.value = "Asking the server";
  try {
    if (door === "site") {
      warmWorkers();
      home.value = await openSite((done, total) => { opening.value = `Reading this site: ${done} of ${total} files`; });
      await openThing(home.value);
    } else if (isLive) {
      await openLive();
    }
  } catch (error) {
    opening.value = "";
    problem.value = (error as Error).message;
    retryOpening.value = () => void openDoor();
  }
}

async function openLive(): Promise<void> {
  await askOtherTabs();
  if (!secrets.token) {
    throw new Error("This page has no token. Open the link that aver serve prints when it starts.");
  }
  const access: LiveAccess = { origin: location.origin, token: secrets.token };
  const api = new Api(access);
  const about = await api.json<About>("about");
  doorServer.value = { api, about };
  answerOtherTabs(() => isStreaming);
  liveState.value = { isLive: true, since: new Date().toISOString(), words: "" };
  const name = `ledger ${about.ledger.slice(0, 8)}${about.tenant === "default" ? "" : ` · ${about.tenant}`}`;
  home.value = { name, files: [], isFolder: true, live: access };
  const opened = openThing(home.value, "", () => pinByLink(api));
  const stream = new LiveStream(api, { onNews: (sort) => catchUp(sort), onState: (isLive, words) => { isStreaming = isLive; noteState(isLive, words); } });
  reconnect.value = () => void stream.follow();
  void stream.follow();
  await opened;
}

/** Pin the server's keys, if the printed link vouches for exactly this list. */
async function pinByLink(api: Api): Promise<void> {
  if (!secrets.keys) return;
  const raw = await api.bytes("keys");
  if (sha256Hex(raw) !== secrets.keys.toLowerCase()) {
    problem.value = "The server's list of keys is not the one that its link vouches for. None was pinned: compare them on Keys.";
    return;
  }
  for (const key of readPins(raw)) pinKey(key, "by the link that aver serve printed");
}

function noteState(isLive: boolean, words: string): void {
  const before = liveState.value;
  if (isLive && before.isLive) return;
  // What happened in between is not known: look at everything again.
  if (isLive) for (const sort of ["heads", "approvals", "index"] as const) catchUp(sort);
  liveState.value = { isLive, words, since: before.isLive === isLive ? before.since : new Date().toISOString() };
}

/** Milliseconds after a look that failed, until the next one. */
const LOOK_AGAIN = 5_000;
/** Whether the server's events arrive. A look at the records can fail meanwhile. */
let isStreaming = false;

const fresh = new Set<News>();
let pause: ReturnType<typeof setTimeout> | undefined;

/** Look again at what is new. Several events in a short time are one look. */
function catchUp(sort: News): void {
  fresh.add(sort);
  pause ??= setTimeout(() => {
    pause = undefined;
    const seen = [...fresh];
    fresh.clear();
    takeNews(seen).then(
      // The look that failed before was made good.
      () => { if (isStreaming) noteState(true, ""); },
      (error: Error) => {
        noteState(false, error.message);
        setTimeout(() => { for (const sort of seen) catchUp(sort); }, LOOK_AGAIN);
      },
    );
  }, NEWS_PAUSE);
}

async function takeNews(sorts: News[]): Promise<void> {
  const isOpen = contents.value !== null && thing.value?.live !== undefined;
  const hasGrown = sorts.includes("heads") && isOpen && (await refreshContents());
  const next = { ...news.value };
  for (const sort of sorts) next[sort]++;
  news.value = next;
  if (hasGrown) planVerification();
}

let planned: ReturnType<typeof setTimeout> | undefined;
let lastTook = 0;

/** Verify again after news, where everything is small enough to be verified at once. */
function planVerification(): void {
  if (totalRecords.value > VERIFIED_AT_ONCE || planned !== undefined) return;
  planned = setTimeout(() => {
    planned = undefined;
    // Records that came while everything is verified are judged after that.
    if (judgement.value.state === "working") return planVerification();
    const start = performance.now();
    void verifyThing().then(() => { lastTook = performance.now() - start; });
  }, Math.max(1_000, lastTook * REST));
}

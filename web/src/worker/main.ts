/** The worker: reads and verifies, so that the page's own thread never waits. It answers one request after the other. */

import { BadInput } from "../verify/json.ts";
import { NotJudged } from "../verify/options.ts";
import { openEd25519 } from "../verify/verify.ts";
import { Library } from "./library.ts";
import type { Answer, Request } from "./protocol.ts";

/** Milliseconds between two reports of progress. More would only keep the page busy. */
const REPORT_EVERY = 100;

const opening = openEd25519().then((ed25519) => new Library(ed25519));
let queue: Promise<void> = Promise.resolve();

function send(answer: Answer): void {
  self.postMessage(answer);
}

async function answer(request: Request): Promise<void> {
  const { id } = request;
  try {
    const library = await opening;
    send({ id, type: "done", result: await carryOut(library, request) });
  } catch (error) {
    const isKnown = error instanceof BadInput || error instanceof NotJudged;
    send({ id, type: "failed", words: (error as Error).message, isNotJudged: isKnown });
  }
}

async function carryOut(library: Library, request: Request): Promise<unknown> {
  switch (request.type) {
    case "open":
      return library.open(request.thing);
    case "rows":
      return library.rows(request.chain);
    case "figures":
      return library.figures(request.chain);
    case "change":
      return library.change(request.chain, request.place, request.change);
    case "record":
      return library.record(request.chain, request.place, request.keys);
    case "verify": {
      let reported = 0;
      return library.verify(request.keys, request.remembered, (progress) => {
        const now = Date.now();
        if (now - reported < REPORT_EVERY) return;
        reported = now;
        send({ id: request.id, type: "progress", progress });
      });
    }
  }
}

self.addEventListener("message", (event: MessageEvent<Request>) => {
  queue = queue.then(() => answer(event.data));
});

/**
 * The worker: reads and verifies, so that the page's own thread never waits. It answers one request after the other, but for
 * scans: those read many records, and give way to everything else between two batches.
 */

import { BadInput } from "../verify/json.ts";
import { NotJudged } from "../verify/options.ts";
import { openEd25519 } from "../verify/verify.ts";
import { countActivity } from "./activity.ts";
import { ApiError } from "./api.ts";
import { listApprovals } from "./approval_cases.ts";
import { WorkerCrew, assist } from "./crew.ts";
import { Library, makeRing } from "./library.ts";
import { locate } from "./locate.ts";
import { listMeta } from "./meta_entries.ts";
import type { Answer, Request } from "./protocol.ts";
import { listPasskeys } from "./roster.ts";
import { readHit, search } from "./search.ts";
import { countSession, listSessions } from "./session_list.ts";
import { checkStatements } from "./statements.ts";

/** Milliseconds between two reports of progress. More would only keep the page busy. */
const REPORT_EVERY = 250;

function send(answer: Answer): void {
  self.postMessage(answer);
}

async function answer(opening: Promise<Library>, request: Request, giveWay?: (isClosed: () => boolean) => Promise<void>): Promise<void> {
  const { id } = request;
  try {
    const library = await opening;
    send({ id, type: "done", result: await carryOut(giveWay ? library.beside(giveWay) : library, request) });
  } catch (error) {
    const isKnown = error instanceof BadInput || error instanceof NotJudged || error instanceof ApiError;
    send({ id, type: "failed", words: (error as Error).message, isNotJudged: isKnown });
  }
}

async function carryOut(library: Library, request: Request): Promise<unknown> {
  switch (request.type) {
    case "assist":
      assist(request.port, library.verifier);
      return null;
    case "crew":
      library.crew = request.ports.length ? new WorkerCrew(request.ports) : null;
      return null;
    case "hold":
      return library.held.hold(request.held);
    case "open":
      return library.open(request.thing);
    case "refresh":
      return library.refresh();
    case "rows":
      return library.rows(request.chain, request.start, request.stop);
    case "records":
      return library.records(request.chain, request.start, request.stop);
    case "blob":
      return library.blob(request.digest);
    case "figures":
      return countSession(library, request.session);
    case "sessions":
      return listSessions(library);
    case "search":
      return search(library, request.words, request.limit, request.chains ?? null);
    case "locate":
      return locate(library, request.uri);
    case "hit":
      return readHit(library, request.chain, request.place, request.words);
    case "approvals":
      return listApprovals(library, makeRing(request.keys), request.now);
    case "statements":
      return checkStatements(request.text, makeRing(request.keys), request.along, library.verifier);
    case "passkeys":
      return listPasskeys(library);
    case "meta":
      return listMeta(library);
    case "activity":
      return countActivity(library);
    case "change":
      return library.change(request.chain, request.place, request.change);
    case "record":
      return library.record(request.chain, request.at, request.keys);
    case "verify": {
      let reported = 0;
      return library.verify(request.keys, request.remembered, request.chains, (progress) => {
        const now = Date.now();
        if (now - reported < REPORT_EVERY) return;
        reported = now;
        send({ id: request.id, type: "progress", progress });
      });
    }
  }
}

/** Milliseconds between two signs of life. The page gives up a worker that is silent for long. */
const ALIVE_EVERY = 5_000;

/** Requests that may read every record. They change nothing that another request depends on. */
const SCANS: ReadonlySet<Request["type"]> = new Set(["search", "locate", "sessions", "figures", "activity", "approvals", "passkeys", "meta"]);
/** Scans of which the page wants only the newest: the reader has typed on, or follows another reference. */
const NEWEST: ReadonlySet<Request["type"]> = new Set(["search", "locate"]);
/** Milliseconds that a scan works before it looks for other requests. */
const WORK_MS = 20;

/** Answer the requests of the page. */
export function startWorker(): void {
  const opening = openEd25519().then((ed25519) => new Library(ed25519));
  let queue: Promise<void> = Promise.resolve();
  const newest = new Map<Request["type"], number>();
  /** Lets a scan wait for the requests in the queue, and ends it where nobody waits for it any more. */
  const makeWay = ({ id, type }: Request) => {
    let since = performance.now();
    return async (isClosed: () => boolean) => {
      if (performance.now() - since > WORK_MS) {
        // Only a task of its own lets messages in.
        await new Promise((resolve) => setTimeout(resolve));
        for (let seen: unknown = null; seen !== queue; await queue) seen = queue;
        since = performance.now();
      }
      if (isClosed()) throw new NotJudged("another thing was opened");
      if (NEWEST.has(type) && newest.get(type) !== id) throw new NotJudged(`a newer ${type} was begun`);
    };
  };
  setInterval(() => send({ id: 0, type: "alive" }), ALIVE_EVERY);
  self.addEventListener("message", ({ data: request }: MessageEvent<Request>) => {
    if (request.type === "rest") void opening.then((library) => library.crew?.rest());
    else if (request.type === "hold") void answer(opening, request);
    else if (SCANS.has(request.type)) {
      newest.set(request.type, request.id);
      // Not before what was asked for earlier, such as opening the thing.
      void queue.then(() => answer(opening, request, makeWay(request)));
    } else queue = queue.then(() => answer(opening, request));
  });
}

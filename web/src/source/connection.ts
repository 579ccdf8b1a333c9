/**
 * The page's lines to its workers. One reads records for the views; another judges, so that a long verification keeps no
 * view waiting. The one that judges has a crew: as many further workers as the machine has cores, which compute for it.
 *
 * A worker that dies, falls silent or is stopped is replaced; its requests fail as not judged. A new worker opens again
 * what was open.
 */

import type { Progress } from "../verify/options.ts";
import type { Answer, OpenedThing, Request, Results } from "../worker/protocol.ts";
import { scriptUrl } from "./trusted.ts";

/** The thing was not judged: there is no verdict. */
export class NotJudgedHere extends Error {}

/** Looks in vain after which a worker that was asked counts as lost. It says every 5 seconds that it lives. */
const LOOKS_MAX = 12;
/** Milliseconds between two looks. They are counted, and no clock is read: a machine that slept has lost nobody. */
const LOOK_EVERY = 5_000;
/** Workers of a crew at most. More cores than these are busy with the platform's own threads. */
const CREW_MAX = 8;

interface Waiting {
  resolve(result: unknown): void;
  reject(error: Error): void;
  progress?: (progress: Progress) => void;
}

/** The whole script as a function: the build wraps it so. Its text is the worker's, too, so that both share one copy. */
declare const averExplorer: () => void;

/** The text of a worker, made once. */
let script: Blob | null = null;

function startWorker(): Worker {
  // Chromium refuses worker files on file://, so the worker is made from a text.
  script ??= new Blob([`(${String(averExplorer)})();`], { type: "text/javascript" });
  const url = URL.createObjectURL(script);
  const worker = new Worker(scriptUrl(url));
  URL.revokeObjectURL(url);
  return worker;
}

/** How many workers compute for the one that judges. */
export function crewSize(): number {
  return Math.min(Math.max((navigator.hardwareConcurrency || 2) - 1, 0), CREW_MAX);
}

export class Connection {
  private worker: Worker | null = null;
  private crew: Worker[] = [];
  private readonly crewWanted: number;
  private readonly waiting = new Map<number, Waiting>();
  private nextId = 1;
  private opened: OpenedThing | null = null;
  private looks = 0;
  private watch: ReturnType<typeof setInterval> | undefined;

  /** `crewWanted` workers compute for the first one. */
  constructor(crewWanted = 0) {
    this.crewWanted = crewWanted;
  }

  /** Ask the worker. Raises `NotJudgedHere` where it has no answer. */
  ask<Type extends Request["type"]>(
    request: { type: Type } & Omit<Extract<Request, { type: Type }>, "id" | "type">,
    progress?: (progress: Progress) => void,
  ): Promise<Results[Type]> {
    const isOpening = request.type === "open";
    if (isOpening) this.opened = (request as unknown as { thing: OpenedThing }).thing;
    const worker = this.start(isOpening);
    const id = this.nextId++;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve: resolve as (result: unknown) => void, reject, ...(progress ? { progress } : {}) });
      worker.postMessage({ ...request, id });
    });
  }

  /** Let a verification begin nothing for a moment, if one is at work. */
  rest(): void {
    if (this.waiting.size) this.worker?.postMessage({ id: 0, type: "rest" } satisfies Request);
  }

  /** Start the workers before they are asked for anything: they read their script meanwhile. */
  warm(): void {
    this.start(true);
  }

  /** End the workers, because another thing is opened. Those that have opened nothing yet stay. */
  leave(): void {
    if (this.opened !== null || this.waiting.size) this.stop("another thing was opened");
  }

  /** End the workers and all that they do. The next request starts new ones. */
  stop(words = "stopped"): void {
    for (const worker of [...(this.worker ? [this.worker] : []), ...this.crew]) worker.terminate();
    this.worker = null;
    this.crew = [];
    clearInterval(this.watch);
    for (const { reject } of this.waiting.values()) reject(new NotJudgedHere(words));
    this.waiting.clear();
  }

  private start(isOpening: boolean): Worker {
    if (this.worker !== null) return this.worker;
    const worker = this.startOne();
    this.worker = worker;
    worker.addEventListener("message", (event: MessageEvent<Answer>) => this.take(event.data));
    const ports = Array.from({ length: this.crewWanted }, () => {
      const { port1, port2 } = new MessageChannel();
      const helper = this.startOne();
      helper.postMessage({ id: 0, type: "assist", port: port2 } satisfies Request, [port2]);
      this.crew.push(helper);
      return port1;
    });
    if (ports.length) worker.postMessage({ id: 0, type: "crew", ports } satisfies Request, ports);
    // A worker that replaces a lost one has nothing open.
    if (!isOpening && this.opened !== null) worker.postMessage({ id: 0, type: "open", thing: this.opened } satisfies Request);
    this.looks = 0;
    this.watch = setInterval(() => this.look(), LOOK_EVERY);
    return worker;
  }

  private startOne(): Worker {
    const worker = startWorker();
    worker.addEventListener("error", (event) => this.stop(`a worker was lost: ${event.message || "no reason given"}`));
    return worker;
  }

  /** Give up workers that do not answer any more: nothing waits for ever. */
  private look(): void {
    this.looks = this.waiting.size ? this.looks + 1 : 0;
    if (this.looks > LOOKS_MAX) this.stop("a worker was lost: it has not answered for a minute");
  }

  private take(answer: Answer): void {
    this.looks = 0;
    const waiting = this.waiting.get(answer.id);
    if (waiting === undefined || answer.type === "alive") return;
    if (answer.type === "progress") {
      waiting.progress?.(answer.progress);
      return;
    }
    this.waiting.delete(answer.id);
    if (answer.type === "done") waiting.resolve(answer.result);
    else waiting.reject(answer.isNotJudged ? new NotJudgedHere(answer.words) : new Error(answer.words));
  }
}

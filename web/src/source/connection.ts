/**
 * The page's lines to its workers. One reads records for the views; another judges, so that a long verification keeps no
 * view waiting. A worker that dies, or is stopped, is replaced; its requests fail as not judged.
 */

import type { Progress } from "../verify/options.ts";
import type { Answer, Request, Results } from "../worker/protocol.ts";
import { scriptUrl } from "./trusted.ts";

/** The thing was not judged: there is no verdict. */
export class NotJudgedHere extends Error {}

interface Waiting {
  resolve(result: unknown): void;
  reject(error: Error): void;
  progress?: (progress: Progress) => void;
}

/** The whole script as a function: the build wraps it so. Its text is the worker's, too, so that both share one copy. */
declare const averExplorer: () => void;

export function startWorker(): Worker {
  // Chromium refuses worker files on file://, so the worker is made from a text.
  const url = URL.createObjectURL(new Blob([`(${String(averExplorer)})();`], { type: "text/javascript" }));
  const worker = new Worker(scriptUrl(url));
  URL.revokeObjectURL(url);
  return worker;
}

export class Connection {
  private worker: Worker | null = null;
  private readonly waiting = new Map<number, Waiting>();
  private nextId = 1;
  /** What a new worker is told before anything else: the thing that is open. */
  private readonly prepare: ((worker: Worker) => void) | null;

  constructor(prepare: ((worker: Worker) => void) | null = null) {
    this.prepare = prepare;
  }

  /** Ask the worker. Raises `NotJudgedHere` where it has no answer. */
  ask<Type extends Request["type"]>(
    request: { type: Type } & Omit<Extract<Request, { type: Type }>, "id" | "type">,
    progress?: (progress: Progress) => void,
  ): Promise<Results[Type]> {
    const id = this.nextId++;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve: resolve as (result: unknown) => void, reject, ...(progress ? { progress } : {}) });
      this.start().postMessage({ ...request, id });
    });
  }

  /** End the worker and all that it does. The next request starts a new one, which has nothing open. */
  stop(words = "stopped"): void {
    this.worker?.terminate();
    this.worker = null;
    for (const { reject } of this.waiting.values()) reject(new NotJudgedHere(words));
    this.waiting.clear();
  }

  private start(): Worker {
    if (this.worker !== null) return this.worker;
    this.worker = startWorker();
    this.worker.addEventListener("message", (event: MessageEvent<Answer>) => this.take(event.data));
    this.worker.addEventListener("error", (event) => this.stop(`a worker was lost: ${event.message || "no reason given"}`));
    this.prepare?.(this.worker);
    return this.worker;
  }

  private take(answer: Answer): void {
    const waiting = this.waiting.get(answer.id);
    if (waiting === undefined) return;
    if (answer.type === "progress") {
      waiting.progress?.(answer.progress);
      return;
    }
    this.waiting.delete(answer.id);
    if (answer.type === "done") waiting.resolve(answer.result);
    else waiting.reject(answer.isNotJudged ? new NotJudgedHere(answer.words) : new Error(answer.words));
  }
}

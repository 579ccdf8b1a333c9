/** The crew of the worker that judges: further workers that hash records and check signatures for it. */

import type { Crew, CrewAnswers } from "../verify/crew.ts";
import { sha3Hex } from "../verify/digest.ts";
import type { Ed25519, SignatureQuestion } from "../verify/ed25519.ts";
import { encoder } from "../verify/json.ts";
import { NotJudged } from "../verify/options.ts";

/** Milliseconds after which a worker that does not answer counts as lost. A batch takes far less, on any machine. */
const LOST_AFTER = 60_000;

interface Task {
  id: number;
  texts: string[];
  questions: SignatureQuestion[];
}

type Reply = { id: number } & CrewAnswers;

/** Compute for the worker at the other end of a port, for as long as this worker lives. */
export function assist(port: MessagePort, ed25519: Ed25519): void {
  port.onmessage = (event: MessageEvent<Task>) => {
    const { id, texts, questions } = event.data;
    const asked = ed25519.prefetch(questions);
    const hashes = texts.map((text) => sha3Hex(encoder.encode(text)));
    void asked.then(() => {
      const answers = questions.map(({ publicHex, message, signature }) => ed25519.verify(publicHex, message, signature));
      port.postMessage({ id, hashes, answers } satisfies Reply);
    });
  };
}

/** Milliseconds after the reader scrolled in which nothing is begun: drawing goes first. */
const REST_MS = 150;
/** Milliseconds that a batch waits at most, so that the work goes on however long the reader scrolls. */
const REST_MAX = 1_000;
const REST_LOOK = 50;

interface Waiting {
  resolve(answers: CrewAnswers): void;
  reject(error: Error): void;
  timer: ReturnType<typeof setTimeout>;
  sizes: [texts: number, questions: number];
}

/** Tasks that each worker has at a time: one at work, and the next, so that it never waits while the judge is busy itself. */
const TASKS_EACH = 4;

export class WorkerCrew implements Crew {
  readonly size: number;
  private readonly ports: MessagePort[];
  private readonly waiting = new Map<number, Waiting>();
  private nextId = 0;
  private begun = 0;
  private restUntil = 0;

  constructor(ports: MessagePort[]) {
    this.ports = ports;
    this.size = ports.length;
    for (const port of ports) port.onmessage = (event: MessageEvent<Reply>) => this.take(event.data);
  }

  get isBusy(): boolean {
    return this.begun >= TASKS_EACH * this.size;
  }

  rest(): void {
    this.restUntil = performance.now() + REST_MS;
  }

  async rested(): Promise<void> {
    for (let waited = 0; performance.now() < this.restUntil && waited < REST_MAX; waited += REST_LOOK) {
      await new Promise((resolve) => setTimeout(resolve, REST_LOOK));
    }
  }

  async work(texts: string[], questions: SignatureQuestion[]): Promise<CrewAnswers> {
    this.begun++;
    try {
      return await this.ask(texts, questions);
    } finally {
      this.begun--;
    }
  }

  private ask(texts: string[], questions: SignatureQuestion[]): Promise<CrewAnswers> {
    const id = this.nextId++;
    const port = this.ports[id % this.size] as MessagePort;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.waiting.delete(id);
        reject(new NotJudged("a worker was lost: it does not answer"));
      }, LOST_AFTER);
      this.waiting.set(id, { resolve, reject, timer, sizes: [texts.length, questions.length] });
      port.postMessage({ id, texts, questions } satisfies Task);
    });
  }

  private take({ id, hashes, answers }: Reply): void {
    const waiting = this.waiting.get(id);
    if (waiting === undefined) return;
    this.waiting.delete(id);
    clearTimeout(waiting.timer);
    if (hashes.length === waiting.sizes[0] && answers.length === waiting.sizes[1]) waiting.resolve({ hashes, answers });
    else waiting.reject(new NotJudged("a worker gave another number of answers than it was asked for"));
  }
}

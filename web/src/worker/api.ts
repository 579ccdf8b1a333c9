/** Requests to the server of a ledger. The page and its workers ask through this; nothing here believes an answer. */

import { NotJudged } from "../verify/options.ts";
import type { LiveAccess } from "./protocol.ts";

/** The server refused, or did not answer: what happened, and what to do. `status` is 0 where there was no answer. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string, advice: string) {
    super(advice ? `${message} (${advice})` : message);
    this.status = status;
    this.code = code;
  }
}

/** Bytes of an answer that are read. The server gives at most 8 MiB of records, or one that is larger. */
const ANSWER_MAX = 64 * 1024 ** 2;
/** Milliseconds after which a server that has not answered whole counts as silent. */
const SILENT_AFTER = 120_000;
/** How often a request is repeated that the server was too busy for. */
const TRIES = 4;

export class Api {
  private readonly access: LiveAccess;

  constructor(access: LiveAccess) {
    this.access = access;
  }

  /** Ask, and return the answer if it is a success. Raises `ApiError`. */
  async ask(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = { ...(init.headers as Record<string, string> | undefined), Authorization: `Bearer ${this.access.token}` };
    for (let tried = 1; ; tried++) {
      let answer: Response;
      const signal = init.signal ?? AbortSignal.timeout(SILENT_AFTER);
      try {
        answer = await fetch(`${this.access.origin}/api/v1/${path}`, { ...init, signal, headers, cache: "no-store", credentials: "omit", redirect: "error" });
      } catch (error) {
        if ((error as Error).name === "AbortError") throw error;
        throw unreachable();
      }
      if (answer.ok) return answer;
      if ((answer.status === 429 || answer.status === 503) && tried < TRIES) {
        await new Promise((resolve) => setTimeout(resolve, 250 * 2 ** tried));
        continue;
      }
      throw await readError(answer);
    }
  }

  /** The bytes of an answer. Raises `NotJudged` if it is too large, so that no server can fill the page's memory. */
  async bytes(path: string, limit = ANSWER_MAX, onHeaders?: (headers: Headers) => void): Promise<Uint8Array<ArrayBuffer>> {
    const answer = await this.ask(path);
    onHeaders?.(answer.headers);
    const parts: Uint8Array<ArrayBuffer>[] = [];
    let size = 0;
    try {
      for (const reader = (answer.body as ReadableStream<Uint8Array<ArrayBuffer>>).getReader(); ; ) {
        const { done, value } = await reader.read();
        if (done) break;
        size += value.length;
        if (size > limit) {
          void reader.cancel();
          throw new NotJudged(`the server's answer is larger than ${limit / 1024 ** 2} MiB`);
        }
        parts.push(value);
      }
    } catch (error) {
      if (error instanceof NotJudged) throw error;
      throw unreachable(); // It ended in the middle of its answer.
    }
    if (parts.length === 1) return parts[0] as Uint8Array<ArrayBuffer>;
    return new Uint8Array(await new Blob(parts).arrayBuffer());
  }

  /** The document of an answer. Its shape is only a claim. */
  async json<Result>(path: string): Promise<Result> {
    const text = new TextDecoder().decode(await this.bytes(path));
    try {
      return JSON.parse(text) as Result;
    } catch {
      throw new ApiError(200, "NOT_JSON", "the server's answer is no JSON", "Start it again: aver serve");
    }
  }
}

function unreachable(): ApiError {
  return new ApiError(0, "UNREACHABLE", "the server does not answer", "Start it again: aver serve");
}

async function readError(answer: Response): Promise<ApiError> {
  let said: { code?: unknown; message?: unknown; advice?: unknown } = {};
  try {
    said = (await answer.json()) as typeof said;
  } catch {
    // An answer of something between us and the server.
  }
  const text = (value: unknown, otherwise: string) => (typeof value === "string" ? value : otherwise);
  const words = `the server says ${answer.status}`;
  if (answer.status === 401) return new ApiError(401, text(said.code, ""), "the server does not accept this page's token: each start of aver serve makes a new one; open the link that it printed last", "");
  return new ApiError(answer.status, text(said.code, ""), text(said.message, words), text(said.advice, ""));
}

/** The query of a request, without what is not given. */
export function query(values: Record<string, string | number | null | undefined>): string {
  const given = Object.entries(values).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return given.length ? `?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}` : "";
}

/** Requests to the server of a ledger. The page and its workers ask through this; nothing here believes an answer. */

import type { LiveAccess } from "./protocol.ts";

/** The server refused, or did not answer. `status` is 0 where there was no answer. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly advice: string;

  constructor(status: number, code: string, message: string, advice: string) {
    super(message);
    this.status = status;
    this.code = code;
    this.advice = advice;
  }
}

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
      try {
        answer = await fetch(`${this.access.origin}/api/v1/${path}`, { ...init, headers, cache: "no-store", credentials: "omit", redirect: "error" });
      } catch (error) {
        if ((error as Error).name === "AbortError") throw error;
        throw new ApiError(0, "UNREACHABLE", "the server does not answer", "Start it again: aver serve");
      }
      if (answer.ok) return answer;
      if ((answer.status === 429 || answer.status === 503) && tried < TRIES) {
        await new Promise((resolve) => setTimeout(resolve, 250 * 2 ** tried));
        continue;
      }
      throw await readError(answer);
    }
  }

  async json<Result>(path: string): Promise<Result> {
    return (await (await this.ask(path)).json()) as Result;
  }
}

async function readError(answer: Response): Promise<ApiError> {
  let said: { code?: unknown; message?: unknown; advice?: unknown } = {};
  try {
    said = (await answer.json()) as typeof said;
  } catch {
    // An answer of something between us and the server.
  }
  const text = (value: unknown, otherwise: string) => (typeof value === "string" ? value : otherwise);
  const words = answer.status === 401 ? "the server does not accept this page's token" : `the server says ${answer.status}`;
  return new ApiError(answer.status, text(said.code, ""), text(said.message, words), text(said.advice, ""));
}

/** The query of a request, without what is not given. */
export function query(values: Record<string, string | number | null | undefined>): string {
  const given = Object.entries(values).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return given.length ? `?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}` : "";
}

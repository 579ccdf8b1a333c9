/**
 * The live door's event stream: the server of a ledger says that something is new, and the page asks again.
 *
 * Nothing that the server says is believed: lists and figures are claims, and records are verified from their bytes. The
 * stream comes by `fetch`, because an `EventSource` cannot send the token. A stream that ends is opened again, and
 * resumes after the last event that was seen.
 */

import { type Api, ApiError } from "../worker/api.ts";

/** Milliseconds before a stream that ended is opened again: the first wait, and the longest. */
const WAIT_FIRST = 500;
const WAIT_MAX = 15_000;
/** Milliseconds without a word after which the stream counts as dead. The server sends one every 15 seconds. */
const SILENCE_MAX = 40_000;

/** Characters of an event at most. The server's own have a few hundred. */
const EVENT_MAX = 1024 ** 2;

/** What an event is about. */
export type News = "heads" | "approvals" | "index";

interface StreamListener {
  onNews(sort: News): void;
  /** The stream was opened, or was lost and why. */
  onState(isLive: boolean, words: string): void;
}

export class LiveStream {
  private readonly api: Api;
  private readonly listener: StreamListener;
  private following: AbortController | null = null;
  private lastEvent = "";

  constructor(api: Api, listener: StreamListener) {
    this.api = api;
    this.listener = listener;
  }

  /** Follow the stream for as long as the page is open. A second call starts over. */
  async follow(): Promise<void> {
    this.following?.abort();
    const mine = new AbortController();
    this.following = mine;
    for (let wait = WAIT_FIRST; !mine.signal.aborted; wait = Math.min(wait * 2, WAIT_MAX)) {
      try {
        await this.read(mine.signal, () => { wait = WAIT_FIRST; });
        this.listener.onState(false, "the server ended the stream");
      } catch (error) {
        if (mine.signal.aborted) return;
        this.listener.onState(false, (error as Error).message);
        // A token that is wrong now stays wrong: the server was started anew, with another.
        if (error instanceof ApiError && (error.status === 401 || error.status === 403)) return;
      }
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  }

  private async read(signal: AbortSignal, onWord: () => void): Promise<void> {
    const silence = new AbortController();
    let timer = setTimeout(() => silence.abort(), SILENCE_MAX);
    const headers: Record<string, string> = { Accept: "text/event-stream", ...(this.lastEvent ? { "Last-Event-ID": this.lastEvent } : {}) };
    try {
      const answer = await this.api.ask("live", { headers, signal: AbortSignal.any([signal, silence.signal]) });
      this.listener.onState(true, "");
      const decoder = new TextDecoder();
      let rest = "";
      for (const reader = (answer.body as ReadableStream<Uint8Array>).getReader(); ; ) {
        const { done, value } = await reader.read();
        if (done) return;
        onWord();
        clearTimeout(timer);
        timer = setTimeout(() => silence.abort(), SILENCE_MAX);
        rest = (rest + decoder.decode(value, { stream: true })).replaceAll("\r\n", "\n");
        const events = rest.split("\n\n");
        rest = events.pop() ?? "";
        if (rest.length > EVENT_MAX) throw new Error("the server's stream has no events");
        for (const event of events) this.take(event);
      }
    } catch (error) {
      if (silence.signal.aborted) throw new Error("the server fell silent");
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  private take(event: string): void {
    let sort = "";
    for (const line of event.split("\n")) {
      if (line.startsWith("event:")) sort = line.slice(6).trim();
      else if (line.startsWith("id:")) this.lastEvent = line.slice(3).trim();
    }
    if (sort === "heads" || sort === "approvals" || sort === "index") this.listener.onNews(sort);
  }
}

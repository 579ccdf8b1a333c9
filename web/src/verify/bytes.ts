/**
 * Where bytes come from. A file of the browser, a file on disk, an answer of a server and bytes in memory all offer the
 * same two interfaces, so that the verifier is the same behind every door.
 */

import { NotFound } from "./json.ts";

/** Bytes that can be read in pieces. */
export interface ByteSource {
  readonly size: number;
  read(start: number, end: number): Promise<Uint8Array>;
}

/** A directory, without links: nothing outside of it is ever read. */
export interface Directory {
  readonly name: string;
  /** The names in it, or in a directory of it; null where that is no directory. */
  list(): Promise<string[]>;
  list(inside: string): Promise<string[] | null>;
  /** Open the file with this name, or `[directory, name]`. Raises `NotFound`, or `BadInput` if it is no plain file. */
  open(...names: string[]): Promise<ByteSource>;
  /** Whether it stands for a ledger that may grow at any time, and so has no signed heads of its end. */
  readonly isLive?: boolean;
  /** Two of these names that are one file, where the system can tell. */
  findSharedFiles?(names: ReadonlySet<string>): Promise<[string, string] | null>;
}

const CHUNK = 256 * 1024;

/** All bytes of a source in pieces. */
export async function* readChunks(source: ByteSource): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < source.size; at += CHUNK) {
    const chunk = await source.read(at, Math.min(at + CHUNK, source.size));
    if (chunk.length === 0) return;
    yield chunk;
  }
}

/** The first bytes of a source, at most `limit`. */
export async function readStart(source: ByteSource, limit: number): Promise<Uint8Array> {
  return source.read(0, Math.min(limit, source.size));
}

/** Bytes in memory. */
export class MemorySource implements ByteSource {
  readonly bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }

  get size(): number {
    return this.bytes.length;
  }

  async read(start: number, end: number): Promise<Uint8Array> {
    return this.bytes.subarray(start, end);
  }
}

/** Bytes that a file is asked for at a time. An answer takes a browser a millisecond, however short it is. */
const BLOCK = 1024 * 1024;
/** Blocks that are kept, for all files together: a bundle may have thousands of files. */
const BLOCKS_KEPT = 4;
const blocks = new Map<BlockSource, { start: number; bytes: Uint8Array }>();

/** A file that is read in blocks, so that short readings one after the other cost little. */
export abstract class BlockSource implements ByteSource {
  abstract readonly size: number;

  /** The bytes between two places, fewer where the file ends. */
  protected abstract load(start: number, end: number): Promise<Uint8Array>;

  async read(start: number, end: number): Promise<Uint8Array> {
    let block = blocks.get(this);
    if (block === undefined || start < block.start || Math.min(end, this.size) > block.start + block.bytes.length) {
      block = { start, bytes: await this.load(start, Math.max(end, start + BLOCK)) };
      blocks.delete(this);
      if (block.bytes.length <= BLOCK) blocks.set(this, block);
      if (blocks.size > BLOCKS_KEPT) blocks.delete(blocks.keys().next().value as BlockSource);
    }
    return block.bytes.subarray(start - block.start, end - block.start);
  }
}

/** A file of the browser. */
export class BlobSource extends BlockSource {
  private readonly blob: Blob;

  constructor(blob: Blob) {
    super();
    this.blob = blob;
  }

  get size(): number {
    return this.blob.size;
  }

  protected async load(start: number, end: number): Promise<Uint8Array> {
    return new Uint8Array(await this.blob.slice(start, end).arrayBuffer());
  }
}

/** Files by their paths inside one directory, `name` or `directory/name`. */
export class FileMap implements Directory {
  readonly name: string;
  private readonly files: ReadonlyMap<string, ByteSource>;

  constructor(name: string, files: ReadonlyMap<string, ByteSource>) {
    this.name = name;
    this.files = files;
  }

  async list(): Promise<string[]>;
  async list(inside: string): Promise<string[] | null>;
  async list(inside?: string): Promise<string[] | null> {
    if (inside !== undefined && this.files.has(inside)) return null;
    const prefix = inside === undefined ? "" : `${inside}/`;
    const names = new Set<string>();
    for (const path of this.files.keys()) {
      if (path.startsWith(prefix)) names.add(path.slice(prefix.length).split("/", 1)[0] as string);
    }
    return [...names];
  }

  async open(...names: string[]): Promise<ByteSource> {
    const found = this.files.get(names.join("/"));
    if (found === undefined) throw new NotFound(`there is no ${names.join("/")}`);
    return found;
  }
}

const LINE_FEED = 0x0a;

/** Reads lines from a source, each with its line feed, as a file of Python gives them. */
export class LineReader {
  /** The place of the next byte. */
  place = 0;
  private readonly source: ByteSource;
  private window: Uint8Array = new Uint8Array();
  private start = 0;

  constructor(source: ByteSource, place = 0) {
    this.source = source;
    this.place = place;
  }

  /** The next line, cut after `limit` bytes; null at the end. */
  async readLine(limit: number): Promise<Uint8Array | null> {
    let searched = 0;
    for (;;) {
      const left = this.window.length - this.start;
      const feed = this.window.indexOf(LINE_FEED, this.start + searched);
      if (feed >= 0 && feed - this.start < limit) return this.take(feed + 1 - this.start);
      if (left >= limit) return this.take(limit);
      searched = left;
      if (!(await this.fill())) return left ? this.take(left) : null;
    }
  }

  /** Go to the first byte that is not white space. Returns the number of line feeds that were skipped. */
  async skipBlanks(): Promise<number> {
    let feeds = 0;
    for (;;) {
      while (this.start < this.window.length) {
        const byte = this.window[this.start] as number;
        if (byte !== 0x20 && byte !== 0x09 && byte !== 0x0a && byte !== 0x0d) return feeds;
        if (byte === LINE_FEED) feeds++;
        this.start++;
        this.place++;
      }
      if (!(await this.fill())) return feeds;
    }
  }

  /** The rest of the source, at most `limit` bytes. */
  async readRest(limit: number): Promise<Uint8Array> {
    while (this.window.length - this.start < limit && (await this.fill()));
    return this.take(Math.min(limit, this.window.length - this.start));
  }

  private take(size: number): Uint8Array {
    const taken = this.window.subarray(this.start, this.start + size);
    this.start += size;
    this.place += size;
    return taken;
  }

  private async fill(): Promise<boolean> {
    const from = this.place + this.window.length - this.start;
    if (from >= this.source.size) return false;
    // Read as much again as is there, so that the end of a long line is sought only a few times.
    const more = await this.source.read(from, Math.min(from + Math.max(CHUNK, this.window.length - this.start), this.source.size));
    if (more.length === 0) return false;
    const kept = this.window.subarray(this.start);
    const window = new Uint8Array(kept.length + more.length);
    window.set(kept);
    window.set(more, kept.length);
    this.window = window;
    this.start = 0;
    return true;
  }
}

/** Whether two texts have the same bytes. By index: `every` takes twenty times as long. */
export function areSameBytes(one: Uint8Array, other: Uint8Array): boolean {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at++;
  return at === one.length && at === other.length;
}

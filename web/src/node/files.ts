/** Files and directories on disk, for the verifier in Node. No link inside a directory is followed. */

import { constants } from "node:fs";
import { type FileHandle, lstat, open, readdir, stat } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import { BlockSource, type ByteSource, type Directory } from "../verify/bytes.ts";
import { BadInput, NotFound } from "../verify/json.ts";
import { isFileName, show } from "../verify/text.ts";

/** A file on disk. It is opened for each block, so that a verifier of many files needs few handles. */
class DiskFile extends BlockSource {
  readonly size: number;
  private readonly path: string;

  constructor(path: string, size: number) {
    super();
    this.path = path;
    this.size = size;
  }

  protected async load(start: number, end: number): Promise<Uint8Array> {
    let handle: FileHandle | null = null;
    try {
      handle = await open(this.path, constants.O_RDONLY | constants.O_NONBLOCK);
      const buffer = new Uint8Array(Math.max(Math.min(end, this.size) - start, 0));
      let filled = 0;
      while (filled < buffer.length) {
        const { bytesRead } = await handle.read(buffer, filled, buffer.length - filled, start + filled);
        if (bytesRead === 0) break;
        filled += bytesRead;
      }
      return buffer.subarray(0, filled);
    } finally {
      await handle?.close();
    }
  }
}

function isMissing(error: unknown): boolean {
  return ["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "");
}

/** Open a regular file, behind links. Raises `NotFound` or `BadInput`. */
export async function openFile(path: string): Promise<ByteSource> {
  try {
    const status = await stat(path);
    if (!status.isFile()) throw new BadInput(`${path} is not a regular file`);
    return new DiskFile(path, status.size);
  } catch (error) {
    throw isMissing(error) ? new NotFound(`there is no ${path}`) : error;
  }
}

/** A directory on disk. */
export class DiskDirectory implements Directory {
  readonly name: string;
  private readonly path: string;

  constructor(path: string) {
    this.path = path;
    this.name = basename(resolve(path));
  }

  async list(): Promise<string[]>;
  async list(inside: string): Promise<string[] | null>;
  async list(inside?: string): Promise<string[] | null> {
    if (inside === undefined) return readdir(this.path);
    try {
      const path = join(this.path, inside);
      return (await lstat(path)).isDirectory() ? await readdir(path) : null;
    } catch (error) {
      if (isMissing(error)) return null;
      throw error;
    }
  }

  async open(...names: string[]): Promise<ByteSource> {
    let path = this.path;
    for (const name of names) {
      if (!isFileName(name)) throw new BadInput(`${show(name)} is not a name that a file may have here`);
    }
    try {
      for (const [at, name] of names.entries()) {
        path = join(path, name);
        const status = await lstat(path);
        const isLast = at === names.length - 1;
        if (!isLast && !status.isDirectory()) {
          // The system calls a file in the place of a directory "not a directory", as if nothing were there.
          throw status.isSymbolicLink() ? new BadInput(`${path} is a link`) : new NotFound(`there is no ${path}`);
        }
        if (isLast && !status.isFile()) throw new BadInput(`${path} is not a regular file`);
        if (isLast) return new DiskFile(path, status.size);
      }
    } catch (error) {
      throw isMissing(error) ? new NotFound(`there is no ${path}`) : error;
    }
    throw new NotFound(`there is no ${path}`);
  }

  async findSharedFiles(names: ReadonlySet<string>): Promise<[string, string] | null> {
    const seen = new Map<string, string>();
    for (const name of await readdir(this.path)) {
      if (!names.has(name)) continue;
      const status = await lstat(join(this.path, name));
      if (status.nlink < 2 || status.isDirectory()) continue;
      const inode = `${status.dev}:${status.ino}`;
      const other = seen.get(inode);
      if (other !== undefined) return other < name ? [other, name] : [name, other];
      seen.set(inode, name);
    }
    return null;
  }
}

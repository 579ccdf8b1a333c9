/** `.cap` files: a tar inside a gzip. The twin of the reading half of `aver.actions.archive`; it trusts nothing. */

import { areSameBytes } from "../bytes.ts";
import { Unreadable, encoder } from "../json.ts";
import { checkFileName } from "../bundle/layout.ts";
import { unpackGzip } from "../gzip.ts";
import { NotJudged } from "../options.ts";

const GZIP_HEADER = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 0xff];
const BLOCK = 512;
const TAR_RECORD = 10_240;
const MEMBERS_MAX = 64;
const TIME_HEADER_MAX = 4096;
const TIME_HEADER = /^(?:[0-9]{1,4} [amc]time=[0-9]{1,20}(?:\.[0-9]{1,20})?\n)*$/;

/** An archive that unpacks to more bytes than the first, and to more than the second times its size, is refused. */
const RATIO_CHECKED_FROM = 64 * 1024 ** 2;
const RATIO_MAX = 250;
/** Packed bytes that the platform gets at a time: they may unpack to a thousand times as many. */
const PIECE = 16 * 1024;
/** Bytes of a tar for which there is room at first. */
const ROOM = 256 * 1024;
/** Bytes that a page unpacks at most. `aver verify` has no such limit: it puts large members into files. */
const UNPACKED_MAX = 512 * 1024 ** 2;

export interface Archive {
  members: Map<string, Uint8Array>;
  /** Whether the gzip header and all tar headers are those that Aver writes. */
  isPlain: boolean;
}

/** A small member; null if there is none. Raises `Unreadable` if it is larger than `limit` bytes. */
export function readSmall(archive: Archive, name: string, limit: number): Uint8Array | null {
  const data = archive.members.get(name) ?? null;
  if (data !== null && data.length > limit) throw new Unreadable(`${name} is larger than ${limit} bytes`);
  return data;
}

/** Read an archive whose members are all of one of the formats. Raises `Unreadable` if it is damaged or hostile. */
export async function readArchive(packed: Uint8Array, ...formats: ReadonlySet<string>[]): Promise<Archive> {
  const archive: Archive = { members: new Map(), isPlain: GZIP_HEADER.every((byte, at) => packed[at] === byte) };
  const tar = await unpackTar(packed);
  let fitting = formats;
  let isDescribed = false;
  let at = 0;
  const take = (size: number): Uint8Array => {
    if (at + size > tar.length) throw damaged("it ends early");
    at += size;
    return tar.subarray(at - size, at);
  };
  for (;;) {
    const block = take(BLOCK);
    if (isZero(block)) break;
    const header = readHeader(block);
    if (header.type === "x" && !isDescribed) {
      checkTimeHeader(header.size, take);
      archive.isPlain = false;
      isDescribed = true;
      continue;
    }
    isDescribed = false;
    checkMember(header, archive);
    fitting = fitting.filter((names) => names.has(header.name));
    if (!fitting.length) throw new Unreadable(`${header.name} is no part of a run`);
    archive.isPlain &&= areSameBytes(block, writeHeader(header.name, header.size));
    archive.members.set(header.name, take(header.size));
    if (!isZero(take((BLOCK - (header.size % BLOCK)) % BLOCK))) {
      throw new Unreadable(`there are extra bytes after the end of ${header.name}`);
    }
  }
  if (!isZero(tar.subarray(at))) throw new Unreadable("there are extra bytes after the end of the tar");
  archive.isPlain &&= tar.length % TAR_RECORD === 0;
  return archive;
}

async function unpackTar(packed: Uint8Array): Promise<Uint8Array> {
  let at = 0;
  let out = new Uint8Array(ROOM);
  let size = 0;
  for await (const bytes of unpackGzip(async () => (at < packed.length ? packed.subarray(at, (at = Math.min(at + PIECE, packed.length))) : null))) {
    if (size + bytes.length > Math.max(RATIO_CHECKED_FROM, packed.length * RATIO_MAX)) throw new Unreadable(`it unpacks to more than ${RATIO_MAX} times its size`);
    if (size + bytes.length > UNPACKED_MAX) throw new NotJudged("it unpacks to more than a page can hold; run: aver verify FILE");
    if (size + bytes.length > out.length) {
      const larger = new Uint8Array(Math.max(2 * out.length, size + bytes.length));
      larger.set(out.subarray(0, size));
      out = larger;
    }
    out.set(bytes, size);
    size += bytes.length;
  }
  return out.subarray(0, size);
}

function damaged(words: string): Unreadable {
  return new Unreadable(`not a tar in gzip, or a damaged one: ${words}`);
}

function isZero(data: Uint8Array): boolean {
  return data.every((byte) => byte === 0);
}

interface TarHeader {
  name: string;
  size: number;
  type: string;
}

/** Read a header as Python's tarfile does. */
function readHeader(block: Uint8Array): TarHeader {
  let sum = 0;
  let signed = 0;
  block.forEach((byte, at) => {
    const value = at >= 148 && at < 156 ? 0x20 : byte;
    sum += value;
    signed += value > 127 ? value - 256 : value;
  });
  const stored = readNumber(block.subarray(148, 156));
  if (stored !== sum && stored !== signed) throw damaged("bad checksum");
  for (const [start, end] of [[100, 108], [108, 116], [116, 124], [136, 148], [329, 337], [337, 345]] as const) {
    readNumber(block.subarray(start, end));
  }
  for (const [start, end] of [[157, 257], [265, 297], [297, 329]] as const) readText(block.subarray(start, end));
  let name = readText(block.subarray(0, 100));
  const type = String.fromCharCode(block[156] as number);
  const prefix = readText(block.subarray(345, 500));
  if (prefix && !["L", "K", "S"].includes(type)) name = `${prefix}/${name}`;
  return { name, size: readNumber(block.subarray(124, 136)), type };
}

function readText(field: Uint8Array): string {
  const end = field.indexOf(0);
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(end < 0 ? field : field.subarray(0, end));
  } catch {
    throw damaged("a name is not UTF-8");
  }
}

/** A number in octal digits as Python reads them, or in base 256. */
function readNumber(field: Uint8Array): number {
  if (field[0] === 0x80 || field[0] === 0xff) {
    let value = 0n;
    for (const byte of field.subarray(1)) value = (value << 8n) + BigInt(byte);
    return Number(field[0] === 0xff ? value - (1n << BigInt(8 * (field.length - 1))) : value);
  }
  const text = readText(field);
  if (/[^\x00-\x7f]/.test(text)) throw damaged("invalid header");
  const digits = text.replace(/^[\t-\r\x1c-\x20]+|[\t-\r\x1c-\x20]+$/g, "") || "0";
  const match = /^([-+]?)(?:0[oO]_?)?([0-7]+(?:_[0-7]+)*)$/.exec(digits);
  if (match === null) throw damaged("invalid header");
  const value = Number.parseInt((match[2] as string).replaceAll("_", ""), 8);
  return match[1] === "-" ? -value : value;
}

function checkTimeHeader(size: number, take: (size: number) => Uint8Array): void {
  if (!(size >= 0 && size <= TIME_HEADER_MAX)) throw new Unreadable("an extended header is too large");
  const text = new TextDecoder("latin1").decode(take(size + ((BLOCK - (size % BLOCK)) % BLOCK)).subarray(0, size));
  if (!TIME_HEADER.test(text)) throw new Unreadable("an extended header says more than times");
}

function checkMember(header: TarHeader, archive: Archive): void {
  if (header.type !== "0") throw new Unreadable(`${header.name} is not a plain file`);
  header.name.split("/").forEach(checkFileName);
  if (archive.members.has(header.name)) throw new Unreadable(`${header.name} is in it twice`);
  if (archive.members.size >= MEMBERS_MAX) throw new Unreadable(`it has more than ${MEMBERS_MAX} members`);
  if (header.size < 0) throw new Unreadable(`${header.name} has no size`);
}

/** The header that Aver writes. */
function writeHeader(name: string, size: number): Uint8Array {
  const block = new Uint8Array(BLOCK);
  const put = (text: string, at: number) => block.set(encoder.encode(text).subarray(0, BLOCK - at), at);
  put(name.slice(0, 100), 0);
  put("0000644\0" + "0000000\0" + "0000000\0", 100);
  put(`${size.toString(8).padStart(11, "0")}\0${"0".repeat(11)}\0`, 124);
  put("        0", 148);
  put("ustar\u000000", 257);
  const sum = block.reduce((total, byte) => total + byte, 0);
  put(`${sum.toString(8).padStart(6, "0")}\0`, 148);
  return block;
}

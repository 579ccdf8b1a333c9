/**
 * Unpack gzip in plain TypeScript: exactly one member, and nothing after it.
 *
 * The platform's own reader does not tell where the member ended, and would unpack a bomb before anyone can look. This one
 * stops at a ratio that no honest text reaches, and accepts what zlib accepts.
 */

import { Unreadable } from "../json.ts";
import { NotJudged } from "../options.ts";

/** An archive that unpacks to more bytes than the first, and to more than the second times its size, is refused. */
const RATIO_CHECKED_FROM = 64 * 1024 ** 2;
const RATIO_MAX = 250;
/** Bytes by which the packed data counts as read, as Python's reader takes it. */
const PACKED_CHUNK = 256 * 1024;
/** Bytes that are unpacked between two looks at the ratio. */
const LOOK_EVERY = 256 * 1024;
/** Bytes that a page unpacks at most. `aver verify` has no such limit: it puts large members into files. */
const UNPACKED_MAX = 512 * 1024 ** 2;

const LENGTH_BASE = [3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258];
const LENGTH_EXTRA = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0];
const DISTANCE_BASE = [
  ...[1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769],
  ...[1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577],
];
const DISTANCE_EXTRA = [0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13];
const CODE_ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/** A Huffman code as counts by length, and symbols in the order of their codes. */
interface Huffman {
  counts: Uint16Array;
  symbols: Uint16Array;
}

function damaged(words: string): Unreadable {
  return new Unreadable(`not a tar in gzip, or a damaged one: ${words}`);
}

/** Build a code. Like zlib, it refuses one that is over-subscribed, and an incomplete one with more than one bit. */
function buildHuffman(lengths: ArrayLike<number>, start: number, end: number, mayBeIncomplete: boolean): Huffman {
  const counts = new Uint16Array(16);
  for (let at = start; at < end; at++) (counts[lengths[at] as number] as number)++;
  let left = 1;
  let longest = 0;
  for (let length = 1; length <= 15; length++) {
    left = 2 * left - (counts[length] as number);
    if (left < 0) throw damaged("a code is over-subscribed");
    if (counts[length]) longest = length;
  }
  if (longest > 0 && left > 0 && !(mayBeIncomplete && longest === 1)) throw damaged("a code is incomplete");
  const offsets = new Uint16Array(16);
  for (let length = 1; length < 15; length++) offsets[length + 1] = (offsets[length] as number) + (counts[length] as number);
  const symbols = new Uint16Array(end - start);
  for (let at = start; at < end; at++) {
    const length = lengths[at] as number;
    if (length) symbols[(offsets[length] as number)++] = at - start;
  }
  counts[0] = 0;
  return { counts, symbols };
}

const FIXED_LENGTHS = Uint8Array.from({ length: 288 }, (_, at) => (at < 144 ? 8 : at < 256 ? 9 : at < 280 ? 7 : 8));
const FIXED_LITERALS = buildHuffman(FIXED_LENGTHS, 0, 288, false);
const FIXED_DISTANCES = buildHuffman(new Uint8Array(32).fill(5), 0, 32, false);

class Inflater {
  out = new Uint8Array(256 * 1024);
  size = 0;
  /** Up to here bytes may be written without another look at the ratio, and at the room that is left. */
  private room = this.out.length;
  private readonly data: Uint8Array;
  private at: number;
  private bits = 0;
  private bitCount = 0;

  constructor(data: Uint8Array, at: number) {
    this.data = data;
    this.at = at;
  }

  /** Unpack the deflate stream. Returns the place after it. */
  run(): number {
    for (let isLast = 0; !isLast; ) {
      isLast = this.take(1);
      const type = this.take(2);
      if (type === 0) this.copyStored();
      else if (type === 1) this.decode(FIXED_LITERALS, FIXED_DISTANCES);
      else if (type === 2) this.decode(...this.readCodes());
      else throw damaged("a block of an unknown type");
    }
    return this.at;
  }

  private take(count: number): number {
    while (this.bitCount < count) {
      const byte = this.data[this.at++];
      if (byte === undefined) throw damaged("it ends early");
      this.bits |= byte << this.bitCount;
      this.bitCount += 8;
    }
    const value = this.bits & ((1 << count) - 1);
    this.bits >>>= count;
    this.bitCount -= count;
    return value;
  }

  private symbol({ counts, symbols }: Huffman): number {
    let code = 0;
    let first = 0;
    let index = 0;
    for (let length = 1; length <= 15; length++) {
      code |= this.take(1);
      const count = counts[length] as number;
      if (code - count < first) return symbols[index + (code - first)] as number;
      index += count;
      first = (first + count) << 1;
      code <<= 1;
    }
    throw damaged("a code that means nothing");
  }

  private readCodes(): [Huffman, Huffman] {
    const literals = this.take(5) + 257;
    const distances = this.take(5) + 1;
    const codes = this.take(4) + 4;
    if (literals > 286 || distances > 30) throw damaged("too many codes");
    const codeLengths = new Uint8Array(19);
    for (let at = 0; at < codes; at++) codeLengths[CODE_ORDER[at] as number] = this.take(3);
    const lengthCode = buildHuffman(codeLengths, 0, 19, false);
    const lengths = new Uint8Array(literals + distances);
    for (let at = 0; at < lengths.length; ) {
      const symbol = this.symbol(lengthCode);
      if (symbol < 16) {
        lengths[at++] = symbol;
        continue;
      }
      if (symbol === 16 && at === 0) throw damaged("a repetition of nothing");
      const value = symbol === 16 ? (lengths[at - 1] as number) : 0;
      const times = symbol === 16 ? 3 + this.take(2) : symbol === 17 ? 3 + this.take(3) : 11 + this.take(7);
      if (at + times > lengths.length) throw damaged("a repetition beyond the end");
      lengths.fill(value, at, at + times);
      at += times;
    }
    if (lengths[256] === 0) throw damaged("a block without an end");
    return [buildHuffman(lengths, 0, literals, true), buildHuffman(lengths, literals, lengths.length, true)];
  }

  private decode(literals: Huffman, distances: Huffman): void {
    for (;;) {
      const symbol = this.symbol(literals);
      if (symbol === 256) return;
      if (symbol < 256) {
        if (this.size === this.room) this.grow(1);
        this.out[this.size++] = symbol;
        continue;
      }
      if (symbol > 285) throw damaged("a length that means nothing");
      const length = (LENGTH_BASE[symbol - 257] as number) + this.take(LENGTH_EXTRA[symbol - 257] as number);
      const far = this.symbol(distances);
      if (far > 29) throw damaged("a distance that means nothing");
      const distance = (DISTANCE_BASE[far] as number) + this.take(DISTANCE_EXTRA[far] as number);
      if (distance > this.size) throw damaged("a distance beyond the beginning");
      if (this.size + length > this.room) this.grow(length);
      for (let end = this.size + length; this.size < end; this.size++) this.out[this.size] = this.out[this.size - distance] as number;
    }
  }

  private copyStored(): void {
    this.at -= Math.floor(this.bitCount / 8);
    this.bits = this.bitCount = 0;
    const header = this.data.subarray(this.at, this.at + 4);
    if (header.length < 4) throw damaged("it ends early");
    const [low = 0, high = 0, notLow = 0, notHigh = 0] = header;
    const length = low | (high << 8);
    if (length !== (~(notLow | (notHigh << 8)) & 0xffff)) throw damaged("a stored block of two lengths");
    this.at += 4;
    if (this.at + length > this.data.length) throw damaged("it ends early");
    if (this.size + length > this.room) this.grow(length);
    this.out.set(this.data.subarray(this.at, this.at + length), this.size);
    this.size += length;
    this.at += length;
  }

  private grow(by: number): void {
    const wanted = this.size + by;
    const packed = Math.min(Math.ceil(this.at / PACKED_CHUNK) * PACKED_CHUNK, this.data.length);
    if (this.size > RATIO_CHECKED_FROM && this.size > packed * RATIO_MAX) {
      throw new Unreadable(`it unpacks to more than ${RATIO_MAX} times its size`);
    }
    if (wanted > UNPACKED_MAX) throw new NotJudged("it unpacks to more than a page can hold; run: aver verify FILE");
    if (wanted > this.out.length) {
      const larger = new Uint8Array(Math.min(Math.max(2 * this.out.length, wanted), UNPACKED_MAX));
      larger.set(this.out.subarray(0, this.size));
      this.out = larger;
    }
    this.room = Math.min(Math.max(wanted, this.size + LOOK_EVERY), this.out.length);
  }
}

/** Unpack a gzip file. Raises `Unreadable` if it is damaged, or something follows its one member. */
export function gunzip(data: Uint8Array): Uint8Array {
  if (data.length < 10 || data[0] !== 0x1f || data[1] !== 0x8b || data[2] !== 8) throw damaged("no gzip header");
  const flags = data[3] as number;
  if (flags & 0xe0) throw damaged("unknown header flags");
  let at = 10;
  const skipText = () => {
    const end = data.indexOf(0, at);
    if (end < 0) throw damaged("it ends early");
    at = end + 1;
  };
  if (flags & 4) {
    if (at + 2 > data.length) throw damaged("it ends early");
    at += 2 + ((data[at] as number) | ((data[at + 1] as number) << 8));
  }
  if (flags & 8) skipText();
  if (flags & 16) skipText();
  if (flags & 2) {
    if (at + 2 > data.length) throw damaged("it ends early");
    const stored = (data[at] as number) | ((data[at + 1] as number) << 8);
    if (stored !== (crc32(data.subarray(0, at)) & 0xffff)) throw damaged("the header has another checksum");
    at += 2;
  }
  const inflater = new Inflater(data, at);
  at = inflater.run();
  if (at + 8 > data.length) throw damaged("it ends early");
  const view = new DataView(data.buffer, data.byteOffset + at, 8);
  const out = inflater.out.subarray(0, inflater.size);
  if (view.getUint32(0, true) !== crc32(out)) throw damaged("incorrect data check");
  if (view.getUint32(4, true) !== out.length % 2 ** 32) throw damaged("incorrect length check");
  if (at + 8 !== data.length) throw new Unreadable("there are extra bytes after the end of the gzip");
  return out;
}

const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1;
  return value >>> 0;
});

function crc32(data: Uint8Array): number {
  let crc = 0xffffffff;
  // By index: an iterator takes ten times as long.
  for (let at = 0; at < data.length; at++) crc = (CRC_TABLE[(crc ^ (data[at] as number)) & 0xff] as number) ^ (crc >>> 8);
  return (crc ^ 0xffffffff) >>> 0;
}

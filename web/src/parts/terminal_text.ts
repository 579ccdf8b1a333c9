/**
 * The output of a terminal as pieces of text with their colours.
 *
 * Only SGR sequences (`ESC [ … m`) are carried out: they colour text and hide none. Any other escape sequence could move
 * or erase text, so it becomes a visible mark. A text with the colour of its ground would be invisible; it loses the
 * ground. `conceal` is not carried out.
 *
 *     parseTerminal("ok \x1b[32mgreen\x1b[0m")  is  [{text: "ok "}, {text: "green", front: 2}]
 */

/** One piece of text. Colours are the 16 of every terminal, 0 to 15. */
export interface TerminalPiece {
  text: string;
  front?: number;
  ground?: number;
  isBold?: boolean;
  isFaint?: boolean;
  isItalic?: boolean;
  isUnderlined?: boolean;
  /** An escape sequence that was not carried out, written out. */
  isMark?: boolean;
}

/** Characters of an output that are shown. */
export const TERMINAL_MAX = 100_000;
/** Pieces of an output. More would make the page slow; the rest is one piece. */
const PIECES_MAX = 4_000;

// CSI, OSC (ended by BEL or ST), and other sequences of two characters. The bounds keep a match short.
const ESCAPE = /\x1b(?:\[([0-9:;<=>?]{0,64})[ -/]{0,8}([@-~])|\][^\x07\x1b]{0,2048}(?:\x07|\x1b\\)|[ -Z\\^-~])|\r(?!\n)|\r(?=\n)/g;

/** Whether a text has escape sequences of a terminal. */
export function hasEscapes(text: string): boolean {
  return text.includes("\x1b[");
}

export function parseTerminal(text: string): TerminalPiece[] {
  const pieces: TerminalPiece[] = [];
  let style: Style = {};
  let from = 0;
  const add = (piece: TerminalPiece) => {
    if (piece.text) pieces.push(piece);
  };
  for (const found of text.matchAll(ESCAPE)) {
    if (pieces.length >= PIECES_MAX) break;
    add({ text: text.slice(from, found.index), ...visibleStyle(style) });
    from = found.index + found[0].length;
    const isLineEnd = found[0] === "\r";
    if (found[2] === "m" && !/[<=>?]/.test(found[1] ?? "")) style = applySgr(style, found[1] ?? "");
    else if (!isLineEnd || text[from] !== "\n") add({ text: isLineEnd ? "␍" : `⟨ESC${found[0].slice(1, 24)}⟩`, isMark: true });
  }
  add({ text: text.slice(from), ...visibleStyle(style) });
  return pieces;
}

interface Style {
  front?: number;
  ground?: number;
  isBold?: boolean;
  isFaint?: boolean;
  isItalic?: boolean;
  isUnderlined?: boolean;
  isInverse?: boolean;
}

function visibleStyle({ isInverse, front, ground, ...rest }: Style): Omit<TerminalPiece, "text"> {
  const [above, below] = isInverse ? [ground ?? 15, front ?? 0] : [front, ground];
  return {
    ...rest,
    ...(above === undefined ? {} : { front: above }),
    ...(below === undefined || below === above ? {} : { ground: below }),
  };
}

/** Take up the parameters of one SGR sequence. */
function applySgr(before: Style, parameters: string): Style {
  const codes = parameters.split(/[;:]/).map((code) => Number(code || 0));
  let style = { ...before };
  for (let at = 0; at < codes.length; at++) {
    const code = codes[at] as number;
    if (code === 0) style = {};
    else if (code === 1) style.isBold = true;
    else if (code === 2) style.isFaint = true;
    else if (code === 3) style.isItalic = true;
    else if (code === 4) style.isUnderlined = true;
    else if (code === 7) style.isInverse = true;
    else if (code === 22) style = omit(style, "isBold", "isFaint");
    else if (code === 23) style = omit(style, "isItalic");
    else if (code === 24) style = omit(style, "isUnderlined");
    else if (code === 27) style = omit(style, "isInverse");
    else if (code === 39) style = omit(style, "front");
    else if (code === 49) style = omit(style, "ground");
    else if (code >= 30 && code <= 37) style.front = code - 30;
    else if (code >= 90 && code <= 97) style.front = code - 82;
    else if (code >= 40 && code <= 47) style.ground = code - 40;
    else if (code >= 100 && code <= 107) style.ground = code - 92;
    else if (code === 38 || code === 48) {
      const [colour, taken] = readColour(codes.slice(at + 1));
      if (colour !== null) style[code === 38 ? "front" : "ground"] = colour;
      at += taken;
    }
  }
  return style;
}

function omit(style: Style, ...names: (keyof Style)[]): Style {
  const left = { ...style };
  for (const name of names) delete left[name];
  return left;
}

/** A colour of 256, or of red, green and blue, as the nearest of 16; and how many codes it took. */
function readColour(codes: number[]): [number | null, number] {
  const [form, one = 0, two = 0, three = 0] = codes;
  if (form === 2) return [nearest(one, two, three), 4];
  if (form !== 5) return [null, 0];
  if (one < 16) return [one, 2];
  if (one >= 232) return [nearest(...grey(8 + 10 * (one - 232))), 2];
  const level = (step: number) => (step === 0 ? 0 : 55 + 40 * step);
  const cube = one - 16;
  return [nearest(level(Math.floor(cube / 36)), level(Math.floor(cube / 6) % 6), level(cube % 6)), 2];
}

function grey(value: number): [number, number, number] {
  return [value, value, value];
}

function nearest(red: number, green: number, blue: number): number {
  const most = Math.max(red, green, blue);
  const isGrey = most - Math.min(red, green, blue) < 48;
  if (isGrey) return most < 64 ? 0 : most < 144 ? 8 : most < 220 ? 7 : 15;
  const bits = [red, green, blue].map((part) => (part > most * 0.6 ? 1 : 0)) as [number, number, number];
  return bits[0] + 2 * bits[1] + 4 * bits[2] + (most > 200 ? 8 : 0);
}

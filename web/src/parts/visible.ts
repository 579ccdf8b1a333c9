/**
 * Texts from records with nothing left invisible.
 *
 *     visible("a\u202eb") === "a⟨U+202E⟩b"
 */

/** Texts without any such character, which nearly all are. */
const PLAIN = /^[\t\n\x20-\x7e]*$/;

/**
 * Characters that a reader would not see, or that would reorder or cover what he sees: controls, format characters, tags,
 * fillers, variation selectors, halves of pairs, and a third mark upon one letter. A selector after a pictograph only
 * chooses its colours, and stays.
 */
const HIDDEN = new RegExp(
  [
    "(?![\\t\\n\\ufe0e\\ufe0f])[\\p{Cc}\\p{Cf}\\p{Cs}\\p{Zl}\\p{Zp}\\p{Default_Ignorable_Code_Point}\\u2800]",
    "(?<!\\p{Extended_Pictographic})[\\ufe0e\\ufe0f]",
    "(?<=\\p{M}{2})\\p{M}",
  ].join("|"),
  "gu",
);

/** A text with its hidden characters written out, such as `⟨U+202E⟩`. */
export function visible(text: string): string {
  if (PLAIN.test(text)) return text;
  return text.replace(HIDDEN, (one) => `⟨U+${(one.codePointAt(0) as number).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

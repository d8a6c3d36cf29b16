// Escapes text for a terminal: whatever a cluster contains, it can neither move the cursor nor hide or forge a line.

/** Control characters, text direction, invisible characters, separators of lines other than LF, and halves of pairs. */
const unprintable = String.raw`\0-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}\ud800-\udfff`;
const inText = new RegExp(`[${unprintable}]`, "u");
const everyInText = new RegExp(inText.source, "gu");
const everyInLine = new RegExp(`[${unprintable}\\n\\t]`, "gu");

/** Several lines of our own: LF and tab stay. JSON stays the same JSON, because escapes are those of JSON. */
export function printable(text: string): string {
  return inText.test(text) ? text.replace(everyInText, escaped) : text;
}

/** A part of one line, such as a name or a message: LF and tab are escaped too. */
export function printableLine(text: string): string {
  return text.replace(everyInLine, escaped);
}

const named: ReadonlyMap<string, string> = new Map([
  ["\n", "\\n"],
  ["\r", "\\r"],
  ["\t", "\\t"],
]);

function escaped(character: string): string {
  const units = Array.from({ length: character.length }, (_, i) => character.charCodeAt(i));
  return named.get(character) ?? units.map((unit) => `\\u${unit.toString(16).padStart(4, "0")}`).join("");
}

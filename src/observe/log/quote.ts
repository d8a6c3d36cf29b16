// Quotes text the way Go's strconv.Quote does, so that no value can break a log line or a terminal.
import { printableLine } from "../../model/printable.ts";

const named: Readonly<Record<string, string>> = {
  '"': '\\"',
  "\\": "\\\\",
  "\u0007": "\\a",
  "\b": "\\b",
  "\f": "\\f",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  "\v": "\\v",
};

/** `"text"` with everything that is not printable escaped. */
export function goQuote(text: string): string {
  return `"${text.replace(/["\\]|[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu, escaped)}"`;
}

/** JSON on one line in which nothing invisible is left: control characters and text direction marks are escaped. */
export function safeJson(value: unknown): string {
  return printableLine(JSON.stringify(value, plain) ?? "null");
}

function plain(_key: string, value: unknown): unknown {
  if (typeof value === "bigint") return value.toString();
  if (value instanceof Error) return value.message;
  if (value instanceof Map) return Object.fromEntries(value);
  if (value instanceof Set) return [...value];
  return value;
}

function escaped(character: string): string {
  const code = character.codePointAt(0)!;
  if (named[character] !== undefined) return named[character];
  if (code < 0x80) return hex("\\x", character, 2);
  if (code >= 0xd800 && code <= 0xdfff) return "\\ufffd";
  return code > 0xffff ? hex("\\U", character, 8) : hex("\\u", character, 4);
}

function hex(prefix: string, character: string, digits: number): string {
  return prefix + character.codePointAt(0)!.toString(16).padStart(digits, "0");
}

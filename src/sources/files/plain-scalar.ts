// What the text of a scalar means in plain YAML, by the core schema of YAML 1.2 as the library has it.
import { dash, dot, NotPlain, table } from "./yaml-cursor.ts";

/** text: certainly. json: not text, and JSON has it as it stands. unclear: `jsonOf` knows. */
type Kind = "text" | "json" | "unclear";

/** A quick look at a scalar without quotes. */
export function kindOf(bytes: Uint8Array, from: number, to: number): Kind {
  const first = bytes[from]!;
  if (numberStarts[first] === 1) return numberKind(bytes, from, to);
  if (wordStarts[first] !== 1 || to - from > longestWord) return "text";
  return wordKinds.get(packed(bytes, from, to)) ?? "text";
}

function numberKind(bytes: Uint8Array, from: number, to: number): Kind {
  let digits = 0;
  let marks = 0;
  for (let at = from + 1; at < to; at++) {
    const byte = bytes[at]!;
    if (byte >= 48 && byte <= 57) digits++;
    else if (byte === dot || byte === dash) marks++;
  }
  // Addresses have more dots, and UIDs more dashes, than any number.
  if (marks > 2) return "text";
  const isInteger = bytes[from]! >= 49 && digits < 15 && from + 1 + digits === to;
  return isInteger ? "json" : "unclear";
}

/** Short text as a number. */
function packed(bytes: Uint8Array, from: number, to: number): number {
  let sum = 0;
  for (let at = from; at < to; at++) sum = sum * 256 + bytes[at]!;
  return sum;
}

/** A scalar without quotes as JSON. */
export function jsonOf(source: string): string {
  const word = words.get(source);
  if (word !== undefined) return word;
  if (jsonNumber.test(source)) return source;
  if (otherNumber.test(source)) throw new NotPlain();
  return JSON.stringify(source);
}

const words = new Map([
  ...["null", "~", "Null", "NULL"].map((word) => [word, "null"] as const),
  ...["true", "True", "TRUE"].map((word) => [word, "true"] as const),
  ...["false", "False", "FALSE"].map((word) => [word, "false"] as const),
]);
const wordKinds = new Map(
  [...words].map(([word, json]): [number, Kind] => [
    packed(Buffer.from(word), 0, word.length),
    word === json ? "json" : "unclear",
  ]),
);
const longestWord = "false".length;
const wordStarts = table("~nNtTfF");
const numberStarts = table("+-.0123456789");
/** Integers of no more digits than are exact. */
const jsonNumber = /^-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?$/;
/** What the library takes for numbers besides, and a little more; programs do not write it. */
const otherNumber = /^[-+]?(?:[0-9]*\.?[0-9]*(?:[eE][-+]?[0-9]+)?$|0[ox]|\.[iInN])/;

/** The text of a scalar with its quotes. */
export function unquoted(source: string): string {
  const inner = source.slice(1, -1).replace(/ *\n[ \n]*/g, (gap) => folded(gap.split("\n").length - 1));
  if (source.startsWith("'")) return inner.replaceAll("''", "'");
  try {
    return JSON.parse(`"${inner.replace(/\\(?:U00(0[1-9A-F]|10)([0-9A-F]{4})|.)/g, asJson)}"`) as string;
  } catch {
    throw new NotPlain();
  }
}

/** Every escape of JSON means the same in YAML. Of those that JSON lacks, kubectl writes one: for emoji. */
function asJson(sequence: string, plane: string | undefined, rest: string | undefined): string {
  return plane === undefined ? sequence : String.fromCodePoint(Number.parseInt(`${plane}${rest}`, 16));
}

/** What so many line ends within a scalar stand for. */
export function folded(breaks: number): string {
  return breaks === 1 ? " " : "\n".repeat(breaks - 1);
}

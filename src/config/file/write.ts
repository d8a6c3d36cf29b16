// Plain data to YAML, byte for byte as kube-proxy's Go library writes it: sorted keys, lists not indented.
import { type ProxyConfig, plainFile, unfold } from "../config.ts";
import { formatNumber } from "../units/numbers.ts";
import type { Plain } from "./kinds.ts";

/** What `--write-config-to` writes. */
export function writeConfig(config: ProxyConfig): string {
  return `${mapping(plainFile(unfold(config)), "").join("\n")}\n`;
}

type Mapping = { readonly [key: string]: Plain };

function mapping(map: Mapping, indent: string): string[] {
  return Object.keys(map)
    .sort(inGoOrder)
    .flatMap((key) => entry(`${indent}${scalar(key)}:`, map[key]!, indent));
}

function entry(label: string, value: Plain, indent: string): string[] {
  if (isList(value)) {
    return value.length === 0 ? [`${label} []`] : [label, ...value.flatMap((item) => listItem(item, indent))];
  }
  if (isMapping(value)) {
    return Object.keys(value).length === 0 ? [`${label} {}`] : [label, ...mapping(value, `${indent}  `)];
  }
  return [`${label} ${scalar(value)}`];
}

function listItem(item: Plain, indent: string): string[] {
  // The configuration has lists of texts and of mappings, no lists of lists.
  if (isList(item)) return [];
  if (!isMapping(item)) return [`${indent}- ${scalar(item)}`];
  const [first, ...rest] = mapping(item, `${indent}  `);
  return [`${indent}- ${first!.trimStart()}`, ...rest];
}

function isList(value: Plain): value is readonly Plain[] {
  return Array.isArray(value);
}

function isMapping(value: Plain): value is Mapping {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function scalar(value: string | number | bigint | boolean | null): string {
  if (typeof value === "string") return text(value);
  return typeof value === "number" && !Number.isInteger(value) ? formatNumber(value) : String(value);
}

/** Plain where YAML reads it as a string; single quotes where only punctuation prevents that. */
function text(value: string): string {
  if (unprintable.test(value) || readsAsSomethingElse(value)) return doubleQuoted(value);
  return blockIndicators.test(value) ? `'${value.replaceAll("'", "''")}'` : value;
}

// Go's library counts characters beyond U+FFFF as unprintable.
const unprintable = /[^\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd]/u;
const blockIndicators = /^\s|\s$|^---|^\.\.\.|^[#,[\]{}&*!|>'"%@`]|^[-?]$|^[-?]\s|:\s|:$|\s#/;

/** Null, boolean, number or time in YAML 1.1; it would not be read as a string. */
function readsAsSomethingElse(value: string): boolean {
  const isNumber = /^[-+.0-9]/.test(value) && numbers.test(value.replaceAll("_", ""));
  return isNumber || words.test(value) || base60.test(value) || time.test(value);
}

const words =
  /^(|~|null|Null|NULL|y|Y|yes|Yes|YES|on|On|ON|true|True|TRUE|n|N|no|No|NO|off|Off|OFF|false|False|FALSE)$/;
const numbers =
  /^([-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?0[xX][0-9a-fA-F]{1,16}|[-+]?0[bB][01]+|[-+]?0[oO][0-7]+|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$/;
const base60 = /^[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?$/;
const time =
  /^\d{4}-\d{1,2}-\d{1,2}([Tt]\d{1,2}:\d{1,2}:\d{1,2}(\.\d+)?(Z|[-+]\d{2}:\d{2})| \d{1,2}:\d{1,2}:\d{1,2}(\.\d+)?)?$/;

const escapes: Readonly<Record<string, string>> = {
  "\0": "\\0",
  "\x07": "\\a",
  "\b": "\\b",
  "\t": "\\t",
  "\n": "\\n",
  "\v": "\\v",
  "\f": "\\f",
  "\r": "\\r",
  "\x1b": "\\e",
  "\x85": "\\N",
  "\u2028": "\\L",
  "\u2029": "\\P",
  '"': '\\"',
  "\\": "\\\\",
};

function doubleQuoted(value: string): string {
  const body = value.replace(
    /["\\]|[^\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd]/gu,
    (c) => {
      const code = c.codePointAt(0)!;
      const [letter, digits] = code < 0x100 ? ["x", 2] : code < 0x10000 ? ["u", 4] : ["U", 8];
      return escapes[c] ?? `\\${letter}${code.toString(16).toUpperCase().padStart(digits, "0")}`;
    },
  );
  return `"${body}"`;
}

/** Letters by code, other characters before letters, runs of digits by their number. */
function inGoOrder(a: string, b: string): number {
  let i = 0;
  while (i < a.length && i < b.length && a[i] === b[i]) i++;
  if (i === a.length || i === b.length) return a.length - b.length;
  const [x, y] = [a[i]!, b[i]!];
  if (isLetter(x) !== isLetter(y)) return isLetter(y) ? -1 : 1;
  if (!isLetter(x)) {
    const [m, n] = [leadingNumber(a.slice(i)), leadingNumber(b.slice(i))];
    if (m !== n) return m - n;
  }
  return x < y ? -1 : 1;
}

function isLetter(c: string): boolean {
  return /\p{L}/u.test(c);
}

function leadingNumber(text: string): number {
  return Number(/^[0-9]*/.exec(text)![0] || "0");
}

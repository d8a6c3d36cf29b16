// One line of comma-separated values, with double quotes for values that hold a comma.
import { type Parsed, parsed, refused } from "./parsed.ts";

/** Reads the first line; values are not trimmed. Empty text has no values. */
export function parseCsv(text: string): Parsed<readonly string[]> {
  if (text === "") return parsed([]);
  const values: string[] = [];
  let at = 0;
  for (;;) {
    const value = text[at] === '"' ? quotedValue(text, at) : plainValue(text, at);
    if (value === null) return refused(`${JSON.stringify(text)} has a double quote in the wrong place`);
    values.push(value.text);
    if (text[value.end] !== ",") return parsed(values);
    at = value.end + 1;
  }
}

type Value = { readonly text: string; readonly end: number };

function plainValue(text: string, start: number): Value | null {
  let end = start;
  while (end < text.length && text[end] !== "," && text[end] !== "\n") end++;
  const value = text.slice(start, end).replace(/\r$/, "");
  return value.includes('"') ? null : { text: value, end };
}

function quotedValue(text: string, start: number): Value | null {
  let value = "";
  for (let at = start + 1; at < text.length; at++) {
    if (text[at] !== '"') value += text[at];
    else if (text[at + 1] === '"') {
      value += '"';
      at++;
    } else {
      const end = at + 1;
      return end === text.length || text[end] === "," || text[end] === "\n" ? { text: value, end } : null;
    }
  }
  return null;
}

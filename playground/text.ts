// Text on a screen: width, cutting and folding. Colours take no columns, wide characters take two.
import { printableLine } from "../src/model/printable.ts";

const esc = "\u001b";
const colourCode = new RegExp(`(${esc}\\[\\d+m)`);
const wide =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u;
const none = /^(?:\p{Mn}|\p{Me}|\p{Cf})$/u;

/** Columns it takes, colours not counted. */
export function widthOf(text: string): number {
  return partsOf(text).reduce((sum, part) => sum + (isColour(part) ? 0 : plainWidth(part)), 0);
}

/** No wider than `width`; a longer line ends in `…`. */
export function cut(line: string, width: number): string {
  if (widthOf(line) <= width) return line;
  let room = width - 1;
  let result = "";
  for (const part of partsOf(line)) {
    if (isColour(part)) result += part;
    else if (room >= 0) {
      const shown = head(part, room);
      result += shown === part ? part : `${shown}…`;
      room = shown === part ? room - plainWidth(part) : -1;
    }
  }
  return result;
}

/** Exactly `width` columns. */
export function padded(text: string, width: number): string {
  const short = cut(text, width);
  return short + " ".repeat(Math.max(0, width - widthOf(short)));
}

/** As much of the end of a text as fits, for the line being typed. */
export function tail(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  const characters = Array.from(text);
  while (plainWidth(characters.join("")) > width - 1) characters.shift();
  return `…${characters.join("")}`;
}

/** Lines no wider than `width`, broken between words. Continuation lines are aligned with the last column in the left half. */
export function folded(line: string, width: number): string[] {
  const columns = [...line.matchAll(/ {2,}(?=\S)/g)].map(({ index, 0: gap }) => index + gap.length);
  const indent = " ".repeat(columns.findLast((column) => column < width / 2) ?? 2);
  const lines: string[] = [];
  let rest = line;
  while (widthOf(rest) > width) {
    const most = head(rest, width);
    const space = rest[most.length] === " " ? most.length : most.lastIndexOf(" ");
    const at = space > width / 2 ? space : most.length;
    lines.push(rest.slice(0, at));
    rest = indent + rest.slice(at).trimStart();
  }
  return [...lines, rest];
}

/** The line for a terminal: colours stay, other control characters are escaped. */
export function onTerminal(line: string): string {
  return partsOf(line)
    .map((part) => (isColour(part) ? part : printableLine(part)))
    .join("");
}

function partsOf(line: string): string[] {
  return line.split(colourCode).filter((part) => part !== "");
}

function isColour(part: string): boolean {
  return part.startsWith(esc);
}

function plainWidth(text: string): number {
  let sum = 0;
  for (const character of text) sum += characterWidth(character);
  return sum;
}

function characterWidth(character: string): number {
  return none.test(character) ? 0 : wide.test(character) ? 2 : 1;
}

/** The beginning that fits. */
function head(text: string, width: number): string {
  let used = 0;
  let result = "";
  for (const character of text) {
    used += characterWidth(character);
    if (used > width) break;
    result += character;
  }
  return result;
}

// Tests of line editing: keys arrive in chunks of any size and edit the line at the cursor.
import { describe, expect, it } from "vitest";
import { emptyLine, keysIn, pressed } from "./line.ts";

const [left, right, home, end, del] = ["\u001b[D", "\u001b[C", "\u001b[H", "\u001b[F", "\u001b[3~"];

/** The line with the cursor as `|`. */
function typed(chunk: string): string {
  const { before, after } = keysIn(chunk).reduce(pressed, emptyLine);
  return `${before}|${after}`;
}

describe("line editing", () => {
  it.each([
    ["send", "send|"],
    [`snd${left}${left}e`, "se|nd"],
    [`send${left}${right}${right}s`, "sends|"],
    [`end${home}s`, "s|end"],
    [`sen${home}${end}d`, "send|"],
    ["end\u0001s\u0005 x", "send x|"],
    [`send${home}${del}`, "|end"],
    [`xsend${home}\u001b[C\u007f`, "|send"],
    ["send web-1 svc\u0017cart", "send web-1 cart|"],
    [`send web-1${left}${left}\u000b`, "send web|"],
    ["send\u0015kill", "kill|"],
    ["\u007f", "|"],
    // A wide character, and one composed of two code points.
    ["日本\u007f", "日|"],
    ["ae\u0301\u007f", "a|"],
    [`👍${left}x`, "x|👍"],
  ])("%j becomes %j", (chunk, line) => {
    expect(typed(chunk)).toBe(line);
  });

  it.each([
    // Unknown escape sequences do not swallow the keys after them.
    ["\u001b[Ahelp", ["\u001b[A", "h", "e", "l", "p"]],
    ["\u001bOAx", ["\u001bOA", "x"]],
    ["\u001b[1;5Cx", ["\u001b[1;5C", "x"]],
    ["\u001b[200~a\u001b[201~", ["\u001b[200~", "a", "\u001b[201~"]],
    ["\u001bxy", ["\u001bx", "y"]],
    ["\u001b", ["\u001b"]],
  ])("splits %j into the keys %j", (chunk, keys) => {
    expect(keysIn(chunk)).toEqual(keys);
  });

  it("ignores keys without a meaning", () => {
    for (const key of ["\u001b[A", "\u001b[15~", "\u001bx", "\u001b", "\u0007", "\u001a"])
      expect(pressed({ before: "a", after: "b" }, key)).toEqual({ before: "a", after: "b" });
  });
});

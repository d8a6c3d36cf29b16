import fc from "fast-check";
import { expect, it } from "vitest";
import { quoted } from "./problem.ts";

it("quoted text is on one line and has no terminal escapes", () => {
  const nasty = fc.string({
    unit: fc.oneof(
      fc.constantFrom("\u001b", "\n", "\r", "\u0085", "\u2028", "\u202e", '"', "\\"),
      fc.string(),
    ),
  });
  fc.assert(
    fc.property(nasty, (text) => {
      const shown = quoted(text);
      expect(shown.split("").filter(isNasty)).toEqual([]);
      expect(text.length > 200 || JSON.parse(shown) === text).toBe(true);
    }),
  );
  expect(quoted("x".repeat(100_000)).length).toBeLessThan(210);
});

/** Control characters, line separators, and what turns the direction of writing. */
function isNasty(letter: string): boolean {
  return /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u.test(letter);
}

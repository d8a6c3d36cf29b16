import fc from "fast-check";
import { expect, it } from "vitest";
import { quoted } from "./problem.ts";

it("quoted text stands on one line and moves no terminal", () => {
  const nasty = fc.string({
    unit: fc.oneof(
      fc.constantFrom("\u001b", "\n", "\r", "\u0085", "\u2028", "\u202e", '"', "\\"),
      fc.string(),
    ),
  });
  fc.assert(
    fc.property(nasty, (text) => {
      const shown = quoted(text);
      expect(shown).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/);
      if (text.length <= 200) expect(JSON.parse(shown)).toBe(text);
    }),
  );
  expect(quoted("x".repeat(100_000)).length).toBeLessThan(210);
});

// Whatever text contains, nothing that a terminal acts on is left of it.
import fc from "fast-check";
import { expect, it } from "vitest";
import { printable, printableLine } from "./printable.ts";
import { printProblem, quoted } from "./problem.ts";

/** Everything that is neither a letter, mark, number, sign nor a blank: what the log escapes too. */
const notShown = /[^\p{L}\p{M}\p{N}\p{P}\p{S}\p{Zs}\p{Co}\p{Cn}]/u;
/** Of the invisible ones only those between the letters of scripts that need them are left. */
const harmless =
  /[\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u{110bd}\u{110cd}\u{13430}-\u{1343f}\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}]/gu;

const shown = (text: string) => text.replace(harmless, "");
const hostile = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.string({
    unit: fc.constantFrom(
      "a",
      "\u001b[2J",
      "\u009b31m",
      "\n",
      "\r",
      "\t",
      "\u202e",
      "\u2066",
      "\ud800",
      "\u007f",
      "\u2028",
    ),
  }),
);

it("security/8: no control character, bidirectional mark or forged line is left", () => {
  fc.assert(
    fc.property(hostile, (text) => {
      expect(shown(printableLine(text))).not.toMatch(notShown);
      expect(shown(printable(text)).replaceAll(/[\n\t]/g, "")).not.toMatch(notShown);
      expect(shown(quoted(text))).not.toMatch(notShown);
      const problem = { kind: "unreadable", object: text, field: text, message: text } as const;
      expect(shown(printProblem(problem))).not.toMatch(notShown);
    }),
    { numRuns: 2000 },
  );
});

it("security/8: JSON stays the same JSON, and harmless text stays as it is", () => {
  fc.assert(
    fc.property(fc.jsonValue({ stringUnit: "binary" }), (value) => {
      expect(JSON.parse(printable(JSON.stringify(value)))).toEqual(JSON.parse(JSON.stringify(value)));
    }),
  );
  const plain = "näme 名前 🚂 → “x”\n\tdone\n";
  expect(printable(plain)).toBe(plain);
  expect(printableLine("a\u001b[2J\nb\u{e0001}")).toBe("a\\u001b[2J\\nb\\udb40\\udc01");
});

// YAML of any kind, right and wrong: what is read quickly is read as the library reads it.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { stringify, type ToStringOptions } from "yaml";
import { agrees } from "../../../test/support/yaml-agrees.ts";

describe("never disagrees with the library", () => {
  it("on what its printer prints, and on that with mistakes in it", () => {
    let read = 0;
    fc.assert(
      fc.property(documents, fc.array(mistake, { maxLength: 2 }), (text, mistakes) => {
        if (agrees(mistakes.reduce((wrong, make) => make(wrong), text))) read++;
      }),
      { numRuns: 1_500 },
    );
    expect(read).toBeGreaterThan(100);
  });

  it("on lines of any indentation", () => {
    let read = 0;
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(6), fc.constantFrom(...lines)), { maxLength: 8 }), (parts) => {
        if (agrees(parts.map(([indent, line]) => `${" ".repeat(indent)}${line}\n`).join(""))) read++;
      }),
      { numRuns: 8_000 },
    );
    expect(read).toBeGreaterThan(100);
  });

  it("on any heap of what YAML is made of", () => {
    let read = 0;
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...pieces), { maxLength: 16 }), (heap) => {
        if (agrees(heap.join(""))) read++;
      }),
      { numRuns: 8_000 },
    );
    expect(read).toBeGreaterThan(100);
  });
});

const sentence = "What this Service is for: in so many words that they do not fit into one line # of eighty";

const scalars = [
  ..."a b key kind items List 10.0.0.1 2001:db8::1 80 0x1f 0o17 1e3 -1 +1 .5 5. -0 null ~ true False yes << a:b".split(
    " ",
  ),
  ..."- -a ? :a a: ' \" it's \\ {} [] {a [1] | > *a &a !a %a @a ` ,a --- ... .inf .nan __proto__ = 007 1_0 😀".split(
    " ",
  ),
  ...[
    "",
    " ",
    "a b",
    "a: b",
    "a #b",
    "#x",
    "- a",
    "? a",
    "--- a",
    "a\n",
    "a\nb",
    "a\n\nb\n",
    "  a\n b",
    "a\n\n",
    "\n",
  ],
  ...[
    "\u0007",
    "\u0085",
    "\u00a0",
    "\u2028",
    'say "x"',
    sentence,
    sentence.replaceAll(/[:#]/g, ""),
    `${sentence}\n${sentence}`,
  ],
];

const tame = [
  "ClusterIP",
  "10.0.0.1",
  "2001:db8::1",
  "80",
  "true",
  "a b",
  "it's",
  "",
  "two\nlines\n",
  sentence,
];
const scalar = fc.oneof(
  { weight: 12, arbitrary: fc.constantFrom(...tame, null, true, false, 80, -1, 1.5) },
  fc.constantFrom(...scalars, -0, 1e21, 2 ** 53, Number.POSITIVE_INFINITY, 1 / 3),
  fc.string({ unit: "grapheme" }),
);
const key = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.constantFrom("a", "b", "kind", "items", "items", "example.com/c", "1", "true"),
  },
  fc.constantFrom(...scalars),
);
const { value } = fc.letrec((tie) => ({
  value: fc.oneof({ maxDepth: 4 }, scalar, fc.array(tie("value"), { maxLength: 4 }), tie("map")),
  map: fc.dictionary(key, tie("value"), { maxKeys: 4, noNullPrototype: true }),
}));
const map = fc.dictionary(key, value!, { minKeys: 1, maxKeys: 4, noNullPrototype: true });

const style: fc.Arbitrary<ToStringOptions> = fc.record({
  indent: fc.constantFrom(2, 2, 3, 4),
  indentSeq: fc.boolean(),
  lineWidth: fc.constantFrom(0, 80, 30),
  defaultStringType: fc.constantFrom("PLAIN", "PLAIN", "QUOTE_DOUBLE", "QUOTE_SINGLE", "BLOCK_LITERAL"),
  blockQuote: fc.constantFrom<NonNullable<ToStringOptions["blockQuote"]>[]>(true, "literal", "folded"),
  doubleQuotedAsJSON: fc.boolean(),
  collectionStyle: fc.constantFrom("any", "any", "any", "any", "any", "flow"),
  nullStr: fc.constantFrom("null", "~", ""),
});

const marker = fc.constantFrom("---\n", "--- \n", "--- # c\n", "---\n# c\n\n", "...\n");

const documents = fc
  .tuple(
    fc.array(fc.oneof({ weight: 9, arbitrary: map }, value!), { minLength: 1, maxLength: 3 }),
    style,
    marker,
  )
  .map(([values, options, between]) =>
    values
      .map((one) => stringify(one, { ...options, aliasDuplicateObjects: false, simpleKeys: true }))
      .join(between),
  );

const pieces = [
  ...[
    "\n",
    "\n",
    "\n",
    "\n  ",
    "\n  ",
    "\n    ",
    "\n\n",
    " ",
    "  ",
    "a",
    "a: ",
    "b:",
    "c: x",
    "items:",
    "items: ",
    "1",
    "~",
  ],
  ...[
    "- ",
    "- ",
    "- - ",
    "- a",
    "-",
    ":",
    ": ",
    "?",
    "? ",
    "#",
    " # c",
    "\n# c\n",
    "\n  # c\n",
    "'",
    '"',
    "'y'",
    '"x"',
    "'k':",
  ],
  ...[
    "|",
    "|\n",
    "|\n  x\n",
    "|-\n  x",
    "|+\n x\n\n",
    ">",
    "{}",
    "[]",
    "{",
    "}",
    "[",
    "]",
    ",",
    "\\",
    "&a ",
    "*a",
    "!x ",
  ],
  ...[
    "---",
    "---\n",
    "\n---\n",
    "...",
    "%",
    "<<: ",
    "0",
    "\t",
    "\r",
    "\uFEFF",
    "\u0000",
    "\u0002",
    "\u0018",
    "\u001f",
  ],
];

const lines = [
  ...[
    "a:",
    "b:",
    "c: x",
    "d: 10.0.0.1",
    "items:",
    "'e': ~",
    "f: 'x",
    "y'",
    'g: "x',
    'z"',
    "h: x # c",
    "i: # c",
    "j: {}",
  ],
  ...[
    "- ",
    "-",
    "- x",
    "- k: 1",
    "- items:",
    "- - l: 1",
    "- # c",
    "- []",
    "x",
    "xy: z",
    "'x y'",
    "# c",
    "#",
    "",
    "---",
    "--- # c",
  ],
  ...["m: |", "n: |+", "- |-", "|"],
];

/** By characters, so that none is cut in two. */
const slip = fc
  .tuple(fc.double({ min: 0, max: 1, noNaN: true }), fc.nat(2), fc.constantFrom("", "", ...pieces))
  .map(([place, cut, piece]) => (text: string) => {
    const characters = Array.from(text);
    characters.splice(Math.floor(place * characters.length), cut, piece);
    return characters.join("");
  });

const ofLines = fc
  .tuple(fc.nat(), fc.nat(), fc.nat(4), fc.constantFrom(...lines), fc.constantFrom(" ", " # c", " x", ":"))
  .map(([one, other, kind, added, tail]) => (text: string) => {
    const lines = text.split("\n");
    const [i, j] = [one % lines.length, other % lines.length];
    if (kind === 0) [lines[i], lines[j]] = [lines[j]!, lines[i]!];
    else if (kind === 1) lines[i] = ` ${lines[i]}`;
    else if (kind === 2) lines[i] = lines[i]!.replace(/^ /, "");
    else if (kind === 3) lines.splice(i, j % 2, added);
    else lines[i] += tail;
    return lines.join("\n");
  });

const mistake = fc.oneof(slip, ofLines);

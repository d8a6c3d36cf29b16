// Hostile text in files: every key and size is read or refused within bounds, and nothing outside the values changes.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { stringify } from "yaml";
import { parseManifests } from "./parse.ts";

const parse = (text: string) => parseManifests("x.yaml", text);

describe("hostile text", () => {
  it("keys that objects inherit are ordinary keys, in JSON and YAML, and no prototype changes", () => {
    const before = Object.getOwnPropertyNames(Object.prototype).sort();
    fc.assert(
      fc.property(hostile, fc.boolean(), (object, isJson) => {
        const text = isJson ? json(object) : stringify(JSON.parse(json(object)));
        const parsed = parse(text);
        expect(parsed.kind).toBe("good");
        expect(Object.getOwnPropertyNames(Object.prototype).sort()).toEqual(before);
        expect(({} as { readonly polluted?: unknown }).polluted).toBeUndefined();
      }),
      { numRuns: 300 },
    );
  });

  it("a prototype gives an object no kind, name or items", () => {
    const inherits =
      '{"__proto__": {"kind": "Service", "metadata": {"name": "x"}, "items": [{"kind": "Service"}]}}';
    expect(parse(inherits)).toMatchObject({ objects: [], problems: [{ object: "x.yaml:1" }] });
    expect(parse(`---\n${inherits}\n`)).toMatchObject({ objects: [], problems: [{ object: "x.yaml:2" }] });
  });

  it("aliases that expand to billions are refused, with the line of the first", () => {
    const row = (i: number) =>
      `b${i}: &b${i} [${Array(9)
        .fill(`*b${i - 1}`)
        .join()}]`;
    const bomb = ["b0: &b0 [x]", ...Array.from({ length: 12 }, (_, i) => row(i + 1))].join("\n");
    expect(parse(bomb)).toEqual({
      kind: "broken",
      problem: {
        kind: "unreadable",
        object: "x.yaml:2",
        field: "",
        message: "cannot be read: its aliases expand to too many values",
      },
    });
    const lists = Array.from(
      { length: 40 },
      (_, i) => `l${i + 1}: &l${i + 1} {kind: List, items: [*l${i}, *l${i}]}`,
    );
    expect(parse(["l0: &l0 {kind: Service}", ...lists, "kind: List", "items: [*l40]"].join("\n")).kind).toBe(
      "broken",
    );
    expect(parse("a: &a\n  b: *a\n").kind).toBe("broken");
    expect(parse(`a: &a 1\nb: [${Array(2_000).fill("*a").join()}]\n`).kind).toBe("broken");
  });

  it("deep nesting is refused or ignored", () => {
    expect(parse("[".repeat(100_000)).kind).toBe("broken");
    expect(parse(`${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}`)).toMatchObject({ objects: [] });
    const lists = `${'{"kind":"List","items":['.repeat(50_000)}${"]}".repeat(50_000)}`;
    expect(parse(lists)).toMatchObject({
      objects: [],
      problems: [{ object: "x.yaml, item 1", message: "is nested too deeply and is ignored" }],
    });
  });

  it("any text is read or refused with its line, never thrown", () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...pieces), { maxLength: 24 }), (some) => {
        const parsed = parse(some.join(""));
        const place = parsed.kind === "broken" ? parsed.problem.object : "x.yaml:1";
        expect(place).toMatch(/^x\.yaml:\d+$/);
      }),
      { numRuns: 3_000 },
    );
  });
});

const keys = [
  "__proto__",
  "constructor",
  "prototype",
  "toString",
  "hasOwnProperty",
  "polluted",
  "kind",
  "items",
];
const known = [
  "metadata",
  "spec",
  "status",
  "ports",
  "name",
  "labels",
  "namespace",
  "endpoints",
  "conditions",
];
const leaf = fc.constantFrom<unknown>(
  null,
  true,
  1,
  "",
  "Service",
  "List",
  "__proto__",
  "constructor",
  "10.0.0.1",
);
type Pairs = readonly (readonly [string, unknown])[];
const { node } = fc.letrec((tie) => ({
  node: fc.oneof({ maxDepth: 5 }, leaf, fc.array(tie("node"), { maxLength: 3 }), tie("object")),
  object: fc
    .uniqueArray(fc.tuple(fc.constantFrom(...keys, ...known), tie("node")), {
      maxLength: 4,
      selector: ([key]) => key,
    })
    .map((pairs) => ({ pairs })),
}));
const hostile = fc
  .tuple(
    fc.constantFrom("Service", "EndpointSlice", "Node", "ServiceCIDR", "List", "__proto__", "constructor"),
    fc.uniqueArray(fc.tuple(fc.constantFrom("__proto__", "constructor", ...known, "items"), node!), {
      maxLength: 5,
      selector: ([key]) => key,
    }),
  )
  .map(([kind, pairs]) => ({ pairs: [["kind", kind], ...pairs] as Pairs }));

/** Written by hand: an object literal cannot have two of these keys. */
function json(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(json).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const { pairs } = value as { readonly pairs: Pairs };
  return `{${pairs.map(([key, each]) => `${JSON.stringify(key)}:${json(each)}`).join(",")}}`;
}

const pieces = [
  ..."a: |b:|kind: Service|items:|- |-|? |: |# c|'|\"|{}|[]|{|}|[|]|,|\\|&a |*a|!x |---|...|%YAML 9|<<: |0|~".split(
    "|",
  ),
  ..."\n|\n|\n  |\n    |\n\n|\t|\r|\r\n|\uFEFF|\u0000|\u0007|\u0085|\u2028|\ud800|😀| ".split("|"),
  "|\n",
  "|",
  ">-\n",
];

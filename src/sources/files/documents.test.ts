// Documents are read as Kubernetes reads them, with the line of each; hostile ones are refused with the line of the error.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseAllDocuments, stringify, type ToStringOptions } from "yaml";
import { type Located, readDocuments } from "./documents.ts";

function read(text: string): readonly Located[] {
  const found = readDocuments(text);
  if ("message" in found) throw new Error(`line ${found.line}: ${found.message}`);
  return found.roots;
}

const values = (text: string) => read(text).map(({ value }) => value);

describe("values", () => {
  it("scalars are those of YAML 1.2, and merge keys work, as with kubectl", () => {
    const [value] = values(
      "a: yes\nb: True\nc: ~\nd: 0o17\ne: 0x1f\nf: '80'\ng: 80\nh: 2001-01-01\ni: on\nj:\nk: 1.5\nl: 10.0.0.1\nm: 2001:db8::1\n",
    );
    expect(value).toEqual({
      a: "yes",
      b: true,
      c: null,
      d: 15,
      e: 31,
      f: "80",
      g: 80,
      h: "2001-01-01",
      i: "on",
      j: null,
      k: 1.5,
      l: "10.0.0.1",
      m: "2001:db8::1",
    });
    expect(values("a: &a {b: 1, c: 2}\nd: {<<: *a, c: 3}\n")).toEqual([
      { a: { b: 1, c: 2 }, d: { b: 1, c: 3 } },
    ]);
  });

  it("empty documents are skipped", () => {
    expect(values("")).toEqual([]);
    expect(values("# comment\n---\n---\na: 1\n...\n---\n~\n")).toEqual([{ a: 1 }]);
  });

  it("agree with another YAML library, on what that prints in all its styles", () => {
    fc.assert(
      fc.property(fc.array(map, { minLength: 1, maxLength: 3 }), style, (documents, options) => {
        const text = documents.map((each) => stringify(each, options)).join("---\n");
        expect(values(text)).toEqual(parseAllDocuments(text).map((each) => each.toJS() as unknown));
      }),
      { numRuns: 300 },
    );
  });
});

describe("lines", () => {
  it("of documents, and of the items of a List", () => {
    const text =
      "# comment\n---\na: 1\n---\nkind: List\nitems:\n- b: 1\n\n  # comment\n-\n  c: 1\n- d\n---\n- 1\n";
    expect(read(text).map(({ place, items }) => [place, items?.map((item) => item.place)])).toEqual([
      [{ line: 3 }, undefined],
      [{ line: 5 }, [{ line: 7 }, { line: 11 }, { line: 12 }]],
      [{ line: 14 }, undefined],
    ]);
  });

  it("an item of a JSON List has its index instead", () => {
    expect(read('\n{"items": [{"a": 1}, 2]}')).toEqual([
      {
        value: { items: [{ a: 1 }, 2] },
        place: { line: 2 },
        path: [0],
        items: [
          { value: { a: 1 }, place: { item: 0 }, path: [0, "items", 0] },
          { value: 2, place: { item: 1 }, path: [0, "items", 1] },
        ],
      },
    ]);
  });

  it("JSON followed by more text is read as YAML", () => {
    expect(values('{"a": 1}\n---\n{"a": 2}\n')).toEqual([{ a: 1 }, { a: 2 }]);
  });

  it.each([
    ["a: 1\nb: [\n", 3],
    ["a: 1\na: 2\n", 2],
    ["a: *b\n", 1],
    ["a: 1\nb: !!js/function x\n", 2],
    ["a: 1\n\tb: 2\n", 2],
    ['{"a": 1,\n"b": }{', 2],
    ["a: 1\nb: \u0000\n", 2],
  ])("an error has its line: %j", (text, line) => {
    expect(readDocuments(text)).toEqual({ line, message: expect.stringMatching(/./) });
  });
});

const scalar = fc.oneof(
  fc.constantFrom(
    "ClusterIP",
    "10.0.0.1",
    "2001:db8::1",
    "80",
    "true",
    "a b",
    "it's",
    "",
    "two\nlines\n",
    "a: b",
  ),
  fc.constantFrom(null, true, false, 80, -1, 1.5),
  fc.stringMatching(/^[ -~]{0,100}$/),
);
const key = fc.constantFrom("a", "b", "kind", "items", "example.com/c", "1", "true", "constructor");
const { value } = fc.letrec((tie) => ({
  value: fc.oneof({ maxDepth: 4 }, scalar, fc.array(tie("value"), { maxLength: 4 }), tie("map")),
  map: fc.dictionary(key, tie("value"), { maxKeys: 4, noNullPrototype: true }),
}));
const map = fc.dictionary(key, value!, { minKeys: 1, maxKeys: 4, noNullPrototype: true });
const style: fc.Arbitrary<ToStringOptions> = fc.record({
  indent: fc.constantFrom(2, 3, 4),
  indentSeq: fc.boolean(),
  lineWidth: fc.constantFrom(0, 80, 30),
  defaultStringType: fc.constantFrom("PLAIN", "QUOTE_DOUBLE", "QUOTE_SINGLE", "BLOCK_LITERAL"),
  collectionStyle: fc.constantFrom("any", "flow"),
});

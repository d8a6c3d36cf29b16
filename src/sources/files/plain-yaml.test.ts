// The quick reader against the library: what it reads, it reads the same; what it does not know, it leaves alone.
import { describe, expect, it } from "vitest";
import { agrees } from "../../../test/support/yaml-agrees.ts";
import type { Located } from "./any-yaml.ts";
import { readDocuments, readPlainYaml } from "./plain-yaml.ts";

/** By kubectl v1.37 `-o yaml`. */
const printed = String.raw`apiVersion: v1
kind: Service
metadata:
  annotations:
    example.com/colon: 'note: what this Service is for, in so many words that they
      do not fit into a line of eighty characters, as it were'
    example.com/colons: 2001:db8::1
    example.com/dash: '-'
    example.com/date: "2026-11-01"
    example.com/emoji: "ü → \U0001F600"
    example.com/empty: ""
    example.com/float: "1.50"
    example.com/hash: 'a #b'
    example.com/json: '{"a": "it''s"}'
    example.com/keep: |+
      two
      lines

    example.com/percent: 50%
    example.com/plain: What this Service is for, in so many words that they do not
      fit into a line of eighty characters, as it were
    example.com/quote: it's
    example.com/said: say "x" \ y
    example.com/script: |
      #!/bin/sh
      if true; then
        echo one

      fi
    example.com/space: ' '
    example.com/strip: |-
      two
      lines
    example.com/tab: "a\tb: what this Service is for, in so many words that they do
      not fit into a line of eighty characters, as it were"
    example.com/url: http://a/b?c=d#e
    kubectl.kubernetes.io/last-applied-configuration: |
      {"apiVersion":"v1","kind":"Service"}
  creationTimestamp: "2026-11-01T00:00:00Z"
  labels:
    "123": "123"
    "null": "null"
    tier: "0x10"
    "true": "true"
    "y": "n"
  name: web
  namespace: shop
  resourceVersion: "1012"
  uid: 5f0d3c1e-8a42-4d0b-9c57-0e1f2a3b4c5d
spec:
  allocateLoadBalancerNodePorts: true
  clusterIP: 172.30.0.1
  clusterIPs:
  - 172.30.0.1
  - 2001:db8::1
  externalIPs: []
  ports:
  - name: http
    nodePort: 30080
    port: 80
    protocol: TCP
    targetPort: http
  - name: dns
    port: 53
    protocol: UDP
    targetPort: 53
  selector:
    app: web
  sessionAffinity: None
status:
  loadBalancer: {}
`;

describe("what kubectl prints", () => {
  it("is read, each object with its line", () => {
    const roots = readSame(listOf([printed, printed]));
    expect(roots[0]!.items!.map(({ line }) => line)).toEqual([3, 3 + printed.split("\n").length - 1]);
    expect(roots[0]!.items![1]!.value).toMatchObject({
      metadata: {
        annotations: {
          "example.com/emoji": "ü → 😀",
          "example.com/json": `{"a": "it's"}`,
          "example.com/keep": "two\nlines\n\n",
          "example.com/script": "#!/bin/sh\nif true; then\n  echo one\n\nfi\n",
          "example.com/tab":
            "a\tb: what this Service is for, in so many words that they do not fit into a line of eighty characters, as it were",
        },
        labels: { 123: "123", true: "true" },
      },
      spec: { allocateLoadBalancerNodePorts: true, externalIPs: [], ports: [{ nodePort: 30080 }, {}] },
    });
  });

  it("is read as many documents, too, with comments in between", () => {
    const text = `# one\n\n${printed}---\n# Source: two.yaml\n${printed}---\n---\n\n${printed}`;
    expect(readSame(text)).toHaveLength(3);
  });
});

it.each([
  ["nothing", ""],
  ["comments alone", "# a\n\n  # b\n"],
  ["no end of the last line", "a:\n  b: 1"],
  ["literal text without end of the last line", "a: |\n  b"],
  ["dashes below the key, and further right", "a:\n- 1\n- 2\nb:\n    - 3\n    - 4\n"],
  ["sequences in sequences", "a:\n- - 1\n  -   - 2\n      - 3\n-   b: 1\n    c:\n    - 4\n"],
  ["a value below its key or dash", "a:\n  b\nc:\n  'd'\ne:\n-\n  f: 1\n- # g\n  h: 1\n"],
  ["no value", "a:\nb: # c\nd:\n  e:\n"],
  ["comments anywhere", "a: 1 # b\n# c\nd: # e\n    # f\n  # g\n  h: 'i' # j\n# k\n  l: [] # m\n"],
  ["plain text with everything in it", "a: b#c - d, [e] {f} \"g\" 'h' i:j ? & * ! | > % @ ` \\ k\n"],
  ["keys that are hardly names", "a b: 1\n?d: 1\n:e: 1\n\"f: g\": 1\n'#h': 1\ni:j: 1\nk#l: 1\n"],
  ["keys of every object, and of none", "constructor: 1\n__proto__: 2\ntoString:\n  __proto__: 3\n"],
  ["numbers", "a: 0\nb: -1\nc: 1.5\nd: 1e+21\ne: -0.25E-3\nf: 999999999999999\n"],
  ["what looks like a number", "a: 1.2.3.4\nb: 1:2\nc: 1-2\nd: 1e\ne: 1_0\nf: --1\ng: 2026-11-01\nh: 0b1\n"],
  ["words", "a: ~\nb: Null\nc: TRUE\nd: False\ne: nul\nf: truth\ng: yes\nh: 'true'\ni: <<\n"],
  ["quotes and what they escape", "a: 'b\\'\nc: 'it''s'\nd: \"\\\"\\\\\"\n"],
  ["folded text", "a: b\n  c\n\n  - d\n\n\n  e  \nf: 'g\n\n\n  h '\ni: \"j \n  k\"\n"],
  [
    "items in items",
    "items:\n- items:\n  - 1\n  - - 2\n- b: 1\n-   'items':\n     -\n       c: 1\nports:\n- 2\n",
  ],
])("reads %s", (_, text) => {
  readSame(text);
});

it.each([
  ["an anchor", "a: &b c\n"],
  ["an alias", "a: *b\n"],
  ["a tag", "a: !!str 1\n"],
  ["a merge", "a:\n  <<:\n    b: 1\n"],
  ["a key twice", "a: 1\n'a': 2\n"],
  ["a key that is no text", "1: a\n"],
  ["a key that is a word", "true: a\n"],
  ["a key before a space", "a : b\n"],
  ["a key over two lines", "'a\n  b': c\n"],
  ["a very long key", `${"a".repeat(1025)}: b\n`],
  ["an explicit key", "? a\n: b\n"],
  ["a mapping behind a key", "a: b: c\n"],
  ["a sequence behind a key", "a: - b\n"],
  ["a key that stands too far left", "a:\n    b: 1\n  c: 2\n"],
  ["a key that stands too far right", "a: 1\n  b: 2\n"],
  ["an item among keys", "a: 1\n- b\n"],
  ["an item without value", "a:\n-\n- b\n"],
  ["text behind a comment", "a: b # c\n  d\n"],
  ["text below a comment", "a:\n# b\n c\nd: e\n"],
  ["a quote without end", "a: 'b\n"],
  ["text behind a quote", "a: 'b' c\n"],
  ["a comment right behind a quote", "a: 'b'#c\n"],
  ["a value without key", ": a\n"],
  ["quoted text that stands too far left", "a:\n  b: 'c\n  d'\n"],
  ["an escape of YAML alone", 'a: "\\x41"\n'],
  ["an escape of YAML that is one of JSON", 'a: "\\U0000005Cn"\n'],
  ["an escape of nothing", 'a: "\\q"\n'],
  ["a collection in brackets", "a: [b]\n"],
  ["folded block text", "a: >\n  b\n"],
  ["indentation in numbers", "a: |2\n    b\n"],
  ["text behind the bar", "a: |  b\n  c\n"],
  ["blank lines in front of literal text", "a: |\n\n  b\n"],
  ["blanks in a line of literal text", "a: |\n  b\n   \n  c\n"],
  ["a number of another base", "a: 0x10\n"],
  ["a number as only YAML has it", "a: +1\n"],
  ["a zero in front", "a: 010\n"],
  ["more digits than are exact", "a: 12345678901234567890\n"],
  ["infinity", "a: -.inf\n"],
  ["a tab", "a:\tb\n"],
  ["returns", "a: b\r\n"],
  ["a byte order mark", "\uFEFFa: b\n"],
  ["a directive", "%YAML 1.2\n---\na: b\n"],
  ["the end of a document", "a: b\n...\n"],
  ["text behind the end of a document", "a: b\n... a.b: c\n"],
  ["a document that starts with its marker", "--- a\n"],
  ["a document that is a sequence", "- a\n"],
  ["a document that is text", "a\n"],
  ["a document that is indented", "  a: b\n"],
  ["a hundred thousand levels", `a:\n${"- ".repeat(100_000)}b\n`],
  ["far more nulls than text", keys(676, "")],
  ["more keys than anybody has", keys(1_001, " 1")],
])("leaves to the library: %s", (_, text) => {
  expect(readPlainYaml(text)).toBeNull();
});

it("leaves bytes to the library that are no characters", () => {
  // Both keys would become the same.
  const bytes = Buffer.concat([
    Buffer.from([0xff]),
    Buffer.from(": 1\n"),
    Buffer.from([0xfe]),
    Buffer.from(": 2\n"),
  ]);
  expect(readDocuments(bytes)).toBeNull();
  expect(readDocuments(Buffer.from("ü: 1\nö: 2\n"))?.values).toEqual([{ value: { ü: 1, ö: 2 }, line: 1 }]);
});

it("does not stumble over what just does not fit", () => {
  // The last brackets have no room at some of these lengths.
  for (let count = 500; count < 676; count++) readPlainYaml(`${keys(count, "")}zzz:\n${"- ".repeat(90)}0\n`);
});

describe("a line that came before", () => {
  const repeated = (text: string, times: number) => listOf(Array.from({ length: times }, () => text));

  it("is read as such, and otherwise where its text goes on below", () => {
    const [once, more] = ["note: see\nname: a\n", "note: see\n  below\nname: a\n"];
    const roots = readSame(listOf([once, once, once, more, once, more, more]));
    expect(roots[0]!.items!.map(({ value }) => value)).toEqual(
      ["see", "see", "see", "see below", "see", "see below", "see below"].map((note) => ({
        note,
        name: "a",
      })),
    );
    expect(roots[0]!.items!.map(({ line }) => line)).toEqual([3, 5, 7, 9, 12, 14, 17]);
  });

  it("is no line with a comment", () => {
    expect(readSame(repeated("hinted: # for\n  a: 1\n", 4))).toHaveLength(1);
    for (let times = 0; times < 3; times++) expect(readPlainYaml("remarked: # for\n  text\n")).toBeNull();
  });

  it("is refused when its key is there already", () => {
    expect(readSame(repeated("same: 1\n", 3))).toHaveLength(1);
    expect(readPlainYaml("same: 1\nsame: 1\n")).toBeNull();
  });

  it("does not disturb others when its JSON is long", () => {
    const lines = Array.from({ length: 400 }, (_, i) => `k${i}: a${"\\".repeat(i % 2 === 0 ? 50 : 1)}\n`);
    for (let times = 0; times < 3; times++) readSame(lines.join(""));
  });

  it("is left to the library where it does not fit", () => {
    const counts = Array.from({ length: 100 }, (_, i) => 950 + i);
    const read = counts.filter((count) => agrees(`all:\n${"- k:\n".repeat(count)}${"- kk:\n".repeat(9)}`));
    expect(read.length).toBeGreaterThan(0);
    expect(read.length).toBeLessThan(counts.length);
  });

  it("is not kept as what fits of it", () => {
    for (const letter of "ABCDEFGHIJKLMNOPQRSTUVWXYZ") {
      const line = `${letter}${letter}:\n`;
      // There is room for all but the end of the last one.
      for (let times = 0; times < 2; times++) expect(readPlainYaml(keys(501, "") + line)).toBeNull();
      readSame(line);
    }
  });
});

function readSame(text: string): readonly Located[] {
  expect(agrees(text)).toBe(true);
  return readPlainYaml(text)!;
}

function listOf(objects: readonly string[]): string {
  const items = objects.map((text) => `- ${text.trimEnd().replaceAll(/\n(?=.)/g, "\n  ")}\n`);
  return `apiVersion: v1\nitems:\n${items.join("")}kind: List\nmetadata:\n  resourceVersion: ""\n`;
}

/** From `aa` on. */
function keys(count: number, value: string): string {
  const name = (i: number): string =>
    (i < 26 ? "" : name(Math.floor(i / 26) - 1)) + String.fromCharCode(97 + (i % 26));
  return Array.from({ length: count }, (_, i) => `${name(26 + i)}:${value}\n`).join("");
}

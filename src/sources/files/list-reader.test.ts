// Lists read stretch by stretch: what comes out is what reading the whole gives, and nothing is read twice.
import fc from "fast-check";
import { expect, it } from "vitest";
import { stringify } from "yaml";
import { arbitraryObjects } from "../../../test/generators.ts";
import { service } from "../../../test/support/api-rig.ts";
import { kinds } from "../../manifests/objects.ts";
import { ListReader } from "./list-reader.ts";
import { readText } from "./parse.ts";
import type { Pieces } from "./pieces.ts";
import { unfold } from "./unfold.ts";

/** What was given is spoilt when the next piece comes, unless it is to last. */
function cut(text: string, size = 1_000_000, isLasting = true): Pieces {
  const bytes = Buffer.from(text);
  let at = 0;
  let given = Buffer.alloc(0);
  return {
    get isLast() {
      return at >= bytes.length;
    },
    isLasting,
    async next(rest) {
      const piece = Buffer.concat([rest, bytes.subarray(at, at + size)]);
      if (!isLasting) given.fill("~");
      at += size;
      given = piece;
      return piece;
    },
    whole: async () => bytes,
  };
}

type Written = (items: readonly unknown[]) => string;

const list = (items: readonly unknown[]) => ({ apiVersion: "v1", items, kind: "List", metadata: {} });
const json: Written = (items) => `${JSON.stringify(list(items), null, 4)}\n`;
const narrowJson: Written = (items) => JSON.stringify(list(items), null, 1);
const yaml: Written = (items) => stringify(list(items), { indentSeq: false, aliasDuplicateObjects: false });
const wideYaml: Written = (items) => `# as told\n${stringify(list(items), { aliasDuplicateObjects: false })}`;
const oneLine: Written = (items) => JSON.stringify(list(items));
/** As the API prints it. */
const kindFirst: Written = (items) =>
  `${JSON.stringify({ kind: "List", apiVersion: "v1", metadata: {}, items })}\n`;
const documents: Written = (items) =>
  items.map((item) => stringify(item, { aliasDuplicateObjects: false })).join("---\n");
const ways = { json, narrowJson, oneLine, kindFirst, yaml, wideYaml, documents };

const objects = arbitraryObjects({ hostile: true }).map((found) =>
  kinds.flatMap((kind) => found[kind].map((object) => ({ ...(object as object), kind }))),
);
const edits = fc.array(fc.tuple(fc.nat(), fc.constantFrom("drop", "twice", "first", "rename")), {
  maxLength: 6,
});

/** The same items, a few of them gone, repeated, moved or changed. */
function edited<T extends object>(items: readonly T[], how: readonly (readonly [number, string])[]): T[] {
  const now = [...items];
  for (const [where, what] of how) {
    const at = where % Math.max(1, now.length);
    const [item] = now.splice(at, 1);
    if (item === undefined) continue;
    if (what === "twice") now.splice(at, 0, item, item);
    if (what === "first") now.unshift(item);
    if (what === "rename") now.splice(at, 0, { ...item, metadata: { name: `n${where}` } });
  }
  return now;
}

it.each([
  ["json", 150],
  ["narrowJson", 150],
  ["oneLine", 150],
  ["kindFirst", 150],
  ["yaml", 30],
  ["wideYaml", 30],
  ["documents", 30],
] as const)("reads generated Lists as if in one piece: %s", { timeout: 300_000 }, async (way, numRuns) => {
  const write = ways[way];
  const pieces = fc.tuple(fc.constantFrom(1_200, 2_500, 6_000, 1_000_000), fc.boolean());
  await fc.assert(
    fc.asyncProperty(
      objects,
      edits,
      fc.constantFrom(1, 300, 2_000),
      pieces,
      async (items, how, size, [pieceSize, isLasting]) => {
        const reader = new ListReader(size);
        for (const some of [items, edited(items, how), items]) {
          const text = write(some);
          const whole = readText(text);
          const found = await reader.read(cut(text, pieceSize, isLasting));
          expect(found ?? whole).toEqual(whole);
        }
      },
    ),
    { numRuns },
  );
});

const many = Array.from({ length: 300 }, (_, i) => service(`service-${i}`, `172.30.${i >> 8}.${i & 255}`));

const inPieces = Object.entries(ways).flatMap(([name, write]) => [
  [name, "one piece", write, 1_000_000] as const,
  [name, "many pieces", write, 15_000] as const,
]);

it.each(inPieces)("of a List that it knows it reads what differs: %s in %s", async (_, __, write, size) => {
  const reader = new ListReader(4_000);
  const read = async (items: readonly object[], pieceSize: number = size) => {
    const before = reader.bytesRead;
    const text = write(items);
    const found = await reader.read(cut(text, pieceSize));
    const readings = found!.objects.map(({ reading }) => reading);
    const values = items.map((value) => ({ value, line: 1 }));
    expect(readings).toEqual(unfold(values, "").objects.map(({ reading }) => reading));
    return { readings, bytes: reader.bytesRead - before, of: text.length };
  };
  const first = await read(many);
  expect(first.bytes).toBeGreaterThan(0.9 * first.of - 1_000);
  const again = await read(many);
  expect(again.bytes).toBe(0);
  expect(again.readings.every((reading, i) => reading === first.readings[i])).toBe(true);
  expect((await read(many, 17_000)).bytes).toBe(0);

  const changed = await read([...many.slice(0, 100), service("new", "172.31.0.1"), ...many.slice(101)]);
  expect(changed.bytes).toBeGreaterThan(0);
  expect(changed.bytes).toBeLessThan(10_000);
  expect((await read([service("new", "172.31.0.1"), ...many])).bytes).toBeLessThan(10_000);
  expect((await read([...many, service("new", "172.31.0.1")])).bytes).toBeLessThan(10_000);
  expect((await read([...many.slice(0, 50), ...many.slice(200)])).bytes).toBeLessThan(20_000);
  const other = service("service-x99", many[199]!.spec.clusterIP);
  expect((await read([...many.slice(0, 199), other, ...many.slice(200)])).bytes).toBeLessThan(10_000);
  expect((await read(many.slice(3))).bytes).toBeLessThan(10_000);
});

it("knows nothing of pieces that do not last", async () => {
  const reader = new ListReader(4_000);
  for (const count of [1, 2, 3]) {
    const pieces = Object.assign(cut(json(many), 15_000), { isLasting: false });
    expect((await reader.read(pieces))!.objects).toHaveLength(300);
    expect(reader.bytesRead).toBeGreaterThan(count * 0.9 * json(many).length);
  }
});

it("leaves a List to others that has an item larger than a piece", async () => {
  const large = { ...service("large"), more: "x".repeat(100_000) };
  expect(await new ListReader(4_000).read(cut(json([...many, large, ...many]), 15_000))).toBeNull();
});

const indented = (text: string) => text.replace(/^ {4}/gm, "");
const jsonItem = (name: string) => JSON.stringify(service(name), null, 2).replaceAll("\n", "\n    ");
const line = (name: string) => JSON.stringify(service(name));
const document = (name: string) => stringify(service(name));
const items = `    ${jsonItem("a")},\n    ${jsonItem("b")}`;

it.each([
  [
    "another List before it",
    `{\n  "metadata": {\n  "items": [\n${items}\n  ]},\n  "items": [\n${items}\n  ],\n  "kind": "List"\n}`,
  ],
  ["items twice", `{\n  "items": [\n${items}\n  ],\n  "kind": "List",\n  "items": []\n}`],
  [
    "items twice, the first ones empty",
    `{\n  "items": [],\n  "kind": "List",\n  "items": [\n${items}\n  ]\n}`,
  ],
  ["no kind", `{\n  "items": [\n${items}\n  ]\n}`],
  ["no items", '{\n  "items": [\n  ],\n  "kind": "List"\n}'],
  [
    "more behind the items",
    `{\n  "kind": "List",\n  "items": [\n${items}\n  ],\n  "more": [\n    {\n    }\n  ]\n}`,
  ],
  ["items that are none", '{\n  "items": [\n    1,\n    {\n    },\n    null\n  ],\n  "kind": "List"\n}'],
  [
    "a joint inside an item",
    `{\n  "items": [\n    {"kind": "Service", "metadata": {"name": "c"}, "x": [\n    {\n    },\n    {\n    }\n  ]}\n  ],\n  "kind": "List"\n}`,
  ],
  ["nothing behind the items", `{\n  "kind": "List",\n  "items": [\n${items}\n`],
  ["too much behind the items", `{\n  "kind": "List",\n  "items": [\n${items}\n  ]\n}\n}`],
  ["a comma too many", `{\n  "kind": "List",\n  "items": [\n${items},\n    {\n    },\n  ]\n}`],
  ["a flaw in an item", `{\n  "kind": "List",\n  "items": [\n${items.replace("172", "172\\q")}\n  ]\n}`],
  ["only a text that says so", '{\n  "a": "\\"items\\": [\\n",\n  "kind": "List"\n}'],
  ["one line, without kind", `{"items":[${line("a")},${line("b")}]}`],
  ["one line, items twice", `{"kind":"List","items":[${line("a")},${line("b")}],"items":[]}`],
  [
    "one line, more behind the items",
    `{"kind":"List","items":[${line("a")},${line("b")}],"more":[{"a":{}}]}`,
  ],
  ["one line, items that are none", '{"kind":"List","items":[{"a":1},{"a":2},3,{"a":4},null]}'],
  [
    "one line, items of another kind",
    `{"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}],"kind":"NodeList"}`,
  ],
  [
    "one line, an item that has such items inside",
    `{"kind":"List","items":[${line("a")},{"kind":"Service","x":[${line("b")},${line("c")}]},${line("d")}]}`,
  ],
  [
    "one line, text that looks like items",
    `{"kind":"List","items":[${line("a")},{"kind":"Service","metadata":{"name":"b","annotations":{"x":${JSON.stringify(`},${line("c")}`)}}}}]}`,
  ],
  [
    "one line, a flaw in an item",
    `{"kind":"List","items":[${line("a")},${line("b").replace("172", "172\\q")}]}`,
  ],
  ["one line, not ended", `{"kind":"List","items":[${line("a")},${line("b")}]`],
  ["one line, two texts", `{"kind":"List","items":[${line("a")},${line("b")}]}\n{}`],
  ["one line, no items", '{"kind":"List","items":[]}'],
  ["one line, further in", `{"spec":{"items":[${line("a")},${line("b")}]},"kind":"List","items":[]}`],
  ["documents that are empty", `---\n${document("a")}---\n---\n# nothing\n---\n${document("b")}---\n`],
  [
    "documents with a comment at the marker",
    `${document("a")}--- # next\n${document("b")}---\n${document("c")}`,
  ],
  ["documents that end with dots", `${document("a")}...\n---\n${document("b")}---\n${document("c")}`],
  ["documents with a directive", `%YAML 1.1\n---\n${document("a")}---\n${document("b")}x: yes\n`],
  ["documents with returns", `${document("a")}---\n${document("b")}`.replaceAll("\n", "\r\n")],
  ["documents with text like a marker", `${document("a")}text: |\n  a\n  ---\n  b\n---\n${document("b")}`],
  ["documents with a marker in a text", `${document("a")}text: "a\n---\n  b"\n---\n${document("b")}`],
  ["documents with an alias", `${document("a")}x: &x [1]\ny: *x\n---\n${document("b")}z: *x\n`],
  ["documents, one of them a List", `${document("a")}---\n${yaml(many.slice(0, 3))}---\n${document("b")}`],
  ["documents, one of them JSON", `${document("a")}---\n${line("c")}\n---\n${document("b")}`],
  ["documents, one of them no object", `${document("a")}---\n- a\n---\n7\n---\n${document("b")}`],
  ["documents, one of them wrong", `${document("a")}---\na: b: c\n---\n${document("b")}`],
  ["documents without an end", `${document("a")}---\n${document("b").trimEnd()}`],
  [
    "YAML with text that looks like items",
    indented(`kind: List
    items:
    - kind: Service
      metadata:
        name: a
        annotations:
          text: |
            items:
            - kind: Service
          more: "a

            - b"
    - kind: Service
      metadata: { name: b }
    `),
  ],
  [
    "YAML with an alias",
    indented(`kind: List
    items:
    - kind: Service
      metadata: &m
        name: a
    - kind: Service
      metadata: *m
    `),
  ],
  [
    "YAML with another sequence at the end",
    indented(`kind: List
    items:
    - kind: Service
      metadata:
        name: a
    more:
    - kind: Service
    - 1
    `),
  ],
  [
    "YAML with items twice",
    indented(`items:
    - kind: Service
    kind: List
    items:
    - kind: Service
    `),
  ],
  [
    "YAML with comments",
    indented(`items: # these
    # first
    - kind: Service # one
      metadata: # of it
        name: a
     # in between
    - kind: Service
      metadata:
        name: b
    # last
    kind: List
    `),
  ],
  [
    "YAML in two documents",
    indented(`kind: List
    items:
    - kind: Service
      metadata:
        name: a
    ---
    kind: List
    items:
    - kind: Service
      metadata:
        name: b
    `),
  ],
  [
    "YAML with items further in",
    indented(`spec:
      items:
      - kind: Service
        metadata:
          name: a
    kind: List
    `),
  ],
  [
    "YAML with items further in, and none of its own",
    indented(`spec:
      items:
      - kind: Service
        metadata:
          name: a
    items: []
    kind: List
    `),
  ],
  [
    "YAML with a List among the items",
    indented(`kind: List
    items:
    - kind: ServiceList
      items:
      - metadata:
          name: a
      - metadata:
          name: b
    - kind: Service
      metadata:
        name: c
    `),
  ],
  [
    "YAML with a flaw",
    indented(`kind: List
    items:
    - kind: Service
      metadata:
        name: a
        name: b
    - kind: Service
    `),
  ],
])("reads what only looks like a List as what it is: %s", async (_, text) => {
  for (const [size, pieceSize] of [1, 100, 10_000].flatMap((n) => [50, 200, 10_000].map((m) => [n, m]))) {
    const reader = new ListReader(size);
    await reader.read(cut(json(many.slice(0, 9))));
    await reader.read(cut(yaml(many.slice(0, 9))));
    const whole = readText(text);
    for (const isLasting of [false, true, false]) {
      const found = await reader.read(cut(text, pieceSize, isLasting));
      expect(found ?? whole).toEqual(whole);
    }
  }
});

it("knows where an item ends that begins like one before", async () => {
  const reader = new ListReader(1);
  const item = (...more: readonly string[]) => {
    const lines = ["- kind: Service", "  metadata:", "    name: a", `    annotations: ${"x".repeat(1_000)}`];
    return [...lines, ...more].join("\n");
  };
  for (const items of [
    [item()],
    [item("  spec:", "    clusterIP: 10.0.0.1"), item()],
    [`${item()}y`, item()],
  ]) {
    const text = `kind: List\nitems:\n${items.join("\n")}\n`;
    expect(await reader.read(cut(text))).toEqual(readText(text));
  }
});

it("tells apart what looks alike in Lists of different kinds", async () => {
  const reader = new ListReader();
  for (const kind of ["ServiceList", "NodeList", "List"]) {
    const text = `kind: ${kind}\nitems:\n- metadata:\n    name: a\n`;
    expect(await reader.read(cut(text))).toEqual(readText(text));
  }
});

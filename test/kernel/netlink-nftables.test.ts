// nf_tables over netlink: what `nft` wrote is read, written again elsewhere, and listed by `nft` as the same.
import { readdirSync, readFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { HostError } from "../../src/host/error.ts";
import type { Batch, Operation, TransactionOptions } from "../../src/host/netlink/batch.ts";
import { u32Bytes } from "../../src/host/netlink/bytes.ts";
import type { Element } from "../../src/host/netlink/elements.ts";
import { type Rule, tableFlag } from "../../src/host/netlink/nftables.ts";
import { readGeneration, readRules, readSets, readTables } from "../../src/host/netlink/ruleset.ts";
import { declareSet, type SetDeclaration } from "../../src/host/netlink/settypes.ts";
import { openSocket } from "../../src/host/netlink/socket.ts";
import { transact } from "../../src/host/netlink/transaction.ts";
import { commentOf, commentUserdata } from "../../src/host/netlink/userdata.ts";
import { createNamespace, isRoot, type Namespace } from "./netns.ts";
import { readElementsOf, readWhole, type WholeTable } from "./read-table.ts";

const layout = readFileSync(new URL("netlink-layout.nft", import.meta.url), "utf8");

describe.runIf(isRoot)("nf_tables over netlink", () => {
  let here: Namespace;
  let there: Namespace;
  beforeEach(() => {
    here = createNamespace();
    there = createNamespace();
  });
  afterEach(() => {
    here.remove();
    there.remove();
  });

  it("writes again what it read, and nft lists the same", async () => {
    here.feed(layout, ...loadStdin);
    await copy(here, there);
    expect(there.run("nft", "list", "ruleset")).toBe(here.run("nft", "list", "ruleset"));
  });

  it("reads the same from the copy as from the original", async () => {
    here.feed(layout, ...loadStdin);
    await copy(here, there);
    const [original, copied] = await Promise.all([contents(here), contents(there)]);
    expect(original.rules.flatMap(({ expressions }) => expressions).length).toBeGreaterThan(150);
    expect(comparable(copied)).toEqual(comparable(original));
  });

  it("declares sets exactly as nft does", async () => {
    here.feed(
      `table ip t {
        set a { type ipv4_addr . inet_proto . inet_service; comment "with a comment"; }
        set b { type ipv4_addr; flags interval; auto-merge; }
        set c { type ifname; }
        set d { typeof meta l4proto; }
        set e { typeof ip saddr . meta mark . meta iifname; flags interval; }
        map f { type inet_proto . inet_service : verdict; }
        map g { typeof ip saddr . meta l4proto : verdict; }
        map h { typeof ip daddr . meta l4proto . th dport . numgen random mod 65536 : ip daddr . tcp dport; }
        map i { typeof ip6 saddr : ip6 daddr . th dport; flags dynamic,timeout; timeout 3h; size 65535; }
        map j { type ipv4_addr : mark; flags timeout; }
        map k { type ipv4_addr : ipv4_addr . inet_service; }
        set l { type ipv4_addr . inet_proto . inet_service . ipv4_addr; flags interval; }
      }`,
      ...loadStdin,
    );
    const service = ["ipv4_addr", "inet_proto", "inet_service"] as const;
    const declarations: Omit<SetDeclaration, "family" | "table">[] = [
      { name: "a", key: service, comment: "with a comment" },
      { name: "b", key: ["ipv4_addr"], interval: true, autoMerge: true },
      { name: "c", key: ["ifname"] },
      { name: "d", key: ["meta l4proto"] },
      { name: "e", key: ["ip saddr", "meta mark", "meta iifname"], interval: true },
      { name: "f", key: ["inet_proto", "inet_service"], data: "verdict" },
      { name: "g", key: ["ip saddr", "meta l4proto"], data: "verdict" },
      {
        name: "h",
        key: ["ip daddr", "meta l4proto", "th dport", "numgen random mod 65536"],
        data: ["ip daddr", "tcp dport"],
      },
      {
        name: "i",
        key: ["ip6 saddr"],
        data: ["ip6 daddr", "th dport"],
        dynamic: true,
        timeout: 3 * 3600 * 1000,
        size: 65535,
      },
      { name: "j", key: ["ipv4_addr"], data: ["mark"], timeout: 0 },
      { name: "k", key: ["ipv4_addr"], data: ["ipv4_addr", "inet_service"] },
      { name: "l", key: [...service, "ipv4_addr"], interval: true },
    ];
    await apply(there, [
      addTable,
      ...declarations.map(
        (each): Operation => ({ kind: "addSet", set: declareSet({ ...each, family: "ip", table: "t" }) }),
      ),
    ]);
    const place = (namespace: Namespace) => ({ netns: namespace.path });
    expect(await readSets("ip", "t", place(there))).toEqual(await readSets("ip", "t", place(here)));
    expect(there.run("nft", "list", "ruleset")).toBe(here.run("nft", "list", "ruleset"));
  });

  it("splits a large list of elements, and reads it back", async () => {
    const elements = Array.from({ length: 20_000 }, (_, i): Element => ({ key: u32Bytes(0x0a000000 + i) }));
    const batch = await apply(here, [
      addTable,
      addAddresses,
      { kind: "addElements", to: addresses, elements },
    ]);
    expect(batch.parts.length).toBeGreaterThan(5);
    const read = await readElementsOf("s", { netns: here.path });
    expect(sorted(read)).toEqual(sorted(elements));
    await apply(here, [{ kind: "deleteElements", from: addresses, elements: elements.slice(1) }]);
    expect(await readElementsOf("s", { netns: here.path })).toEqual([elements[0]]);
    await apply(here, [{ kind: "flushSet", set: { family: "ip", table: "t", name: "s" } }]);
    expect(await readElementsOf("s", { netns: here.path })).toEqual([]);
  });

  it("reads every element once of a set that has just grown", async () => {
    const elements = Array.from({ length: 20_000 }, (_, i): Element => ({ key: u32Bytes(0x0a000000 + i) }));
    const wanted = new Set(elements.map(({ key }) => key));
    for (let round = 0; round < 15; round++) {
      await apply(here, [addTable, addAddresses, { kind: "addElements", to: addresses, elements }]);
      const found = await readElementsOf("s", { netns: here.path });
      expect(found).toHaveLength(wanted.size);
      expect(new Set(found.map(({ key }) => key))).toEqual(wanted);
      await apply(here, [{ kind: "deleteTable", table: { family: "ip", name: "t" } }]);
    }
  });

  it("reads a table of a thousand sets with few files open", async () => {
    const names = Array.from({ length: 1_000 }, (_, i) => `s${i}`);
    const sets = names.map(
      (name): Operation => ({
        kind: "addSet",
        set: declareSet({ family: "ip", table: "t", name, key: ["ipv4_addr"] }),
      }),
    );
    await apply(here, [addTable, ...sets]);
    const openFiles = () => readdirSync("/proc/self/fd").length;
    const before = openFiles();
    let most = before;
    const counting = setInterval(() => (most = Math.max(most, openFiles())), 1);
    const { elements } = (await readWhole("ip", "t", { netns: here.path }))!;
    clearInterval(counting);
    expect([...elements.keys()].sort()).toEqual(names.toSorted());
    expect(most).toBeGreaterThan(before);
    expect(most).toBeLessThan(before + 50);
  });

  it("names every refused operation and element, and applies nothing", async () => {
    await apply(here, [addTable, addAddresses]);
    const elements = Array.from({ length: 5_000 }, (_, i): Element => ({ key: u32Bytes(i) }));
    elements[4_321] = { key: "too long for an address" };
    const error = await apply(here, [
      { kind: "addElements", to: addresses, elements },
      { kind: "addChain", chain: { family: "ip", table: "t", name: "c" } },
      { kind: "addRule", rule: { family: "ip", table: "t", chain: "missing", expressions: [] } },
    ]).catch((cause: unknown) => cause);
    expect(error).toBeInstanceOf(HostError);
    expect(error).toMatchObject({
      kind: "refused",
      refusals: [
        { operation: 0, element: 4_321, errno: "EINVAL" },
        { operation: 2, errno: "ENOENT" },
      ],
    });
    expect(await readElementsOf("s", { netns: here.path })).toEqual([]);
    expect(here.run("nft", "list", "chains")).not.toContain("chain c");
  });

  it("writes only on top of the given generation", async () => {
    await apply(here, [addTable]);
    const { id: generation } = await readGeneration({ netns: here.path });
    await apply(here, [addAddresses], { generation });
    await expect(apply(here, [addAddresses], { generation })).rejects.toMatchObject({
      kind: "interrupted",
      errno: "ERESTART",
    });
  });

  it("adds, inserts, replaces and deletes rules by handle", async () => {
    const chain = { family: "ip", table: "t", name: "c" } as const;
    const verdict = (kind: "accept" | "drop" | "return"): Rule => ({
      family: "ip",
      table: "t",
      chain: "c",
      expressions: [{ kind: "verdict", verdict: { kind } }],
      userdata: commentUserdata(`verdict ${kind}`),
    });
    const verdicts = async () =>
      (await readRules("ip", { table: "t", chain: "c" }, { netns: here.path })).map((rule) =>
        commentOf(rule.userdata),
      );
    await apply(here, [
      addTable,
      { kind: "addChain", chain },
      { kind: "addRule", rule: verdict("drop") },
      { kind: "insertRule", rule: verdict("accept") },
    ]);
    expect(await verdicts()).toEqual(["verdict accept", "verdict drop"]);
    const [first] = await readRules("ip", { table: "t" }, { netns: here.path });
    const handle = first!.handle!;
    await apply(here, [{ kind: "addRule", rule: { ...verdict("return"), position: handle } }]);
    expect(await verdicts()).toEqual(["verdict accept", "verdict return", "verdict drop"]);
    await apply(here, [{ kind: "replaceRule", rule: { ...verdict("return"), handle } }]);
    expect(await verdicts()).toEqual(["verdict return", "verdict return", "verdict drop"]);
    const last = (await readRules("ip", { table: "t" }, { netns: here.path })).at(-1)!;
    await apply(here, [{ kind: "deleteRule", rule: { ...last, handle: last.handle! } }]);
    expect(await verdicts()).toEqual(["verdict return", "verdict return"]);
    await apply(here, [
      { kind: "flushChain", chain },
      { kind: "deleteChain", chain },
    ]);
    expect(here.run("nft", "list", "ruleset")).toBe("table ip t {\n}\n");
    await apply(here, [{ kind: "deleteTable", table: { family: "ip", name: "t" } }]);
    expect(await readTables({ netns: here.path })).toEqual([]);
  });

  it("protects an owned table from other processes, and keeps it after its owner exits", async () => {
    const owner = await openSocket("netfilter", { netns: here.path });
    const flags = tableFlag.owner | tableFlag.persist;
    await transact(owner, [{ kind: "addTable", table: { family: "ip", name: "t", flags } }]);
    expect(await readTables({ netns: here.path })).toMatchObject([{ flags, owner: owner.portId }]);
    await expect(apply(here, [addAddresses])).rejects.toMatchObject({ refusals: [{ errno: "EPERM" }] });
    here.run("nft", "flush", "ruleset");
    await owner.close();
    expect(await readTables({ netns: here.path })).toMatchObject([{ name: "t", flags: tableFlag.persist }]);
  });

  it("returns null for a missing table", async () => {
    expect(await readWhole("ip", "nothing", { netns: here.path })).toBeNull();
  });
});

const loadStdin = ["nft", "-f", "-"] as const;
const addTable: Operation = { kind: "addTable", table: { family: "ip", name: "t", flags: 0 } };
const addresses = { family: "ip", table: "t", set: "s" } as const;
const addAddresses: Operation = {
  kind: "addSet",
  set: declareSet({ family: "ip", table: "t", name: "s", key: ["ipv4_addr"] }),
};

async function apply(
  to: Namespace,
  operations: Operation[],
  options: TransactionOptions = {},
): Promise<Batch> {
  const socket = await openSocket("netfilter", { netns: to.path });
  try {
    return await transact(socket, operations, options);
  } finally {
    await socket.close();
  }
}

async function contents(namespace: Namespace): Promise<WholeTable> {
  return (await readWhole("ip", "kube-proxy", { netns: namespace.path }))!;
}

async function copy(from: Namespace, to: Namespace): Promise<void> {
  const socket = await openSocket("netfilter", { netns: to.path });
  for (const { family, name } of await readTables({ netns: from.path })) {
    const contents = await readWhole(family, name, { netns: from.path });
    await transact(socket, rebuild(contents!));
  }
  await socket.close();
}

function rebuild({ table, chains, rules, sets, elements, counters }: WholeTable): Operation[] {
  const { family } = table;
  const ids = new Map(sets.map(({ name }, index) => [name, index + 1]));
  return [
    { kind: "addTable", table },
    ...chains.map((chain): Operation => ({ kind: "addChain", chain })),
    ...counters.map((counter): Operation => ({ kind: "addCounter", counter })),
    ...sets.map((set): Operation => ({ kind: "addSet", set: { ...set, id: ids.get(set.name)! } })),
    ...sets.map((set): Operation => {
      const to = { family, table: table.name, set: set.name, setId: ids.get(set.name)! };
      return { kind: "addElements", to, elements: elements.get(set.name)! };
    }),
    ...rules.map((rule): Operation => ({ kind: "addRule", rule })),
  ];
}

// Handles differ between two tables, and so does the order of elements in a hash.
function comparable(contents: WholeTable): unknown {
  const elements = [...contents.elements].map(([name, list]) => [name, sorted(list)]);
  return JSON.parse(
    JSON.stringify({ ...contents, elements }, (key, value) =>
      key === "handle" ? undefined : typeof value === "bigint" ? String(value) : value,
    ),
  );
}

function sorted(elements: readonly Element[]): Element[] {
  return elements.toSorted((a, b) => (a.key < b.key ? -1 : 1));
}

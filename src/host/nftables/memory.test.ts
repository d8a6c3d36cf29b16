// The table in memory refuses elements that the kernel refuses.
import { describe, expect, it } from "vitest";
import { nodePortsSet as set } from "../../../test/support/nodeports-set.ts";
import type { Item, Operation } from "../../plan/nftables/diff.ts";
import type { Chain, Verdict } from "../../plan/nftables/types.ts";
import { drop, goto } from "../../plan/nftables/verdict.ts";
import { applyInMemory } from "./memory.ts";

const chain: Chain = { name: "a", hook: null, rules: [], comment: null };
const item = (data: Verdict): Item => ({ key: "tcp . 30080", slot: null, data, comment: null });
const add = (data: Verdict): Operation => ({ kind: "add elements", set, items: [item(data)] });
const base: readonly Operation[] = [
  { kind: "add table" },
  { kind: "add set", set },
  { kind: "add chain", chain },
];

describe("a table in memory", () => {
  it.each<[string, Operation[], string]>([
    ["an element that leads to a missing chain", [add(goto("b"))], "ENOENT"],
    ["a second verdict for a key", [add(goto("a")), add(drop)], "EEXIST"],
    [
      "to delete a chain that a goto leads to",
      [add(goto("a")), { kind: "delete chain", name: "a" }],
      "EBUSY",
    ],
    [
      "to delete a chain that a jump leads to",
      [add({ kind: "jump", chain: "a" }), { kind: "delete chain", name: "a" }],
      "EBUSY",
    ],
  ])("refuses %s", (_, patch, errno) => {
    expect(() => applyInMemory(null, [...base, ...patch], "ip")).toThrow(errno);
  });

  it("accepts an equal verdict for a key again", () => {
    const table = applyInMemory(null, [...base, add(goto("a")), add(goto("a"))], "ip");
    expect(table!.elements.get(set.name)!.get("tcp . 30080")!.data).toEqual(goto("a"));
  });
});

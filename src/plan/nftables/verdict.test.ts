// Verdicts are equal by value, whether they come from the Plan or from a kernel.
import { describe, expect, it } from "vitest";
import { nodePortsSet as set } from "../../../test/support/nodeports-set.ts";
import { diff } from "./diff.ts";
import { printVerdict } from "./print.ts";
import type { Element, NftTable, Verdict } from "./types.ts";
import { chainOf, drop, goto, sameVerdict } from "./verdict.ts";

const verdicts: readonly (Verdict | null)[] = [
  null,
  drop,
  { kind: "accept" },
  { kind: "return" },
  { kind: "continue" },
  { kind: "break" },
  goto("a"),
  goto("b"),
  { kind: "jump", chain: "a" },
  { kind: "jump", chain: "drop" },
];

describe("verdicts", () => {
  it.each(verdicts)("%j equals its copy and no other verdict", (verdict) => {
    const copy = structuredClone(verdict);
    expect(verdicts.filter((other) => sameVerdict(copy, other))).toEqual([verdict]);
  });

  it("name the chain they lead to", () => {
    expect(verdicts.map(chainOf)).toEqual([null, null, null, null, null, null, "a", "b", "a", "drop"]);
  });

  it("are printed as nft writes them", () => {
    expect(verdicts.map((verdict) => (verdict === null ? "" : printVerdict(verdict)))).toEqual([
      "",
      "drop",
      "accept",
      "return",
      "continue",
      "break",
      "goto a",
      "goto b",
      "jump a",
      "jump drop",
    ]);
  });

  it("differ between two tables only where their values do", () => {
    const have = table(verdicts.filter((verdict) => verdict !== null));
    expect(diff(have, structuredClone(have))).toEqual([]);
    const want = table([goto("a"), ...verdicts.filter((verdict) => verdict !== null).slice(1)]);
    expect(diff(have, want)).toMatchObject([
      { kind: "delete elements", items: [{ key: "tcp . 0", data: drop }] },
      { kind: "add elements", items: [{ key: "tcp . 0", data: goto("a") }] },
    ]);
  });
});

function table(held: readonly Verdict[]): NftTable {
  const elements = held.map((data, i): Element => ({ key: `tcp . ${i}`, data, comment: null }));
  return {
    family: "ip",
    sets: new Map([[set.name, set]]),
    counters: new Set(),
    chains: new Map(),
    elements: new Map([[set.name, new Map(elements.map((element) => [element.key, element]))]]),
    spreads: new Map(),
  };
}

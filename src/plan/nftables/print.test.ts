// Slots are printed in the order of their text.
import { expect, it } from "vitest";
import { slotMap as set } from "../../../test/support/slot-map.ts";
import { printElements } from "./print.ts";
import type { NftTable } from "./types.ts";

it.each([1, 10, 11, 120])("%i of them", (count) => {
  const key = "172.30.0.1 . tcp . 80";
  const backends = Array.from({ length: count }, (_, i) => ({ address: `10.0.0.${i}`, port: 8080 }));
  const table: NftTable = {
    family: "ip",
    sets: new Map([[set.name, set]]),
    counters: new Set(),
    chains: new Map(),
    elements: new Map(),
    spreads: new Map([[set.name, new Map([[key, { key, backends }]])]]),
  };
  const printed = printElements(set, table);
  expect(printed).toHaveLength(count);
  expect(printed).toEqual(printed.toSorted());
});

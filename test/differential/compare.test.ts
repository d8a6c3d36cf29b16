// When two worlds agree on a cell: chance does not count, everything else does.
import { expect, it } from "vitest";
import { type Cell, senders } from "./cells.ts";
import { agree } from "./compare.ts";

const cell = (place: string, sticky: boolean): Cell => ({
  from: senders.find((sender) => sender.place === place)!,
  protocol: "tcp",
  to: { address: "172.30.0.1", port: 80 },
  service: "shop/web",
  kind: "cluster IP",
  sticky,
});
const agrees = (place: string, sticky: boolean, theirs: string[], ours: string[]): boolean =>
  agree(cell(place, sticky), new Set(theirs), new Set(ours));

it("every outcome counts, in any order", () => {
  expect(agrees("L1", false, ["L1:80 kept", "R1:80 kept"], ["R1:80 kept", "L1:80 kept"])).toBe(true);
  expect(agrees("L1", false, ["L1:80 kept", "R1:80 kept"], ["L1:80 kept"])).toBe(false);
  expect(agrees("L1", false, ["L1:80 kept"], ["L1:80 masqueraded"])).toBe(false);
});

it("which endpoint a client sticks to is chance, unless it has many addresses", () => {
  expect(agrees("L1", true, ["L1:80 masqueraded"], ["R1:80 kept"])).toBe(true);
  expect(agrees("L1", true, ["L1:80 masqueraded"], ["silence"])).toBe(false);
  expect(agrees("X", true, ["L1:80 kept"], ["R1:80 kept"])).toBe(false);
});

it("a port of the node that masquerading happens to keep, or that a clash happens to change, is chance", () => {
  const masked = ["R1:80 masqueraded", "L1:80 masqueraded"];
  expect(agrees("host", false, masked, [...masked, "R1:80 kept"])).toBe(true);
  expect(agrees("host", false, ["R1:80 kept", "R1:80 masqueraded"], ["R1:80 kept"])).toBe(true);
  expect(agrees("host", false, masked, ["L1:80 masqueraded", "R1:80 kept"])).toBe(false);
  expect(agrees("L1", false, masked, [...masked, "R1:80 kept"])).toBe(false);
});

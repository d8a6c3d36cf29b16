// What a first load makes: few operations, none of them with an object of its own for each endpoint.
import { expect, it } from "vitest";
import { endpoint, ipv4Settings, routed, servicePort } from "../../../test/support/routed.ts";
import { compile } from "../../modes/nftables/compile.ts";
import { batches } from "./batches.ts";
import { Growth, isGrowth } from "./growth.ts";
import { emptyPlan } from "./plan.ts";

const services = 1000;
const ports = Array.from({ length: services }, (_, i) =>
  servicePort(`shop/web-${i}`, {
    clusterIP: `172.30.${i >> 8}.${i & 255}`,
    endpoints: Array.from({ length: 10 }, (_, e) => endpoint(`10.${e}.${i >> 8}.${i & 255}:80`)),
  }),
);
const plan = compile(null, routed(ports, ipv4Settings, null));
const keys = ports.map(({ key }) => key);

it("adds 1,000 Services with 10 endpoints in one batch of five operations", () => {
  const have = emptyPlan(plan.foundation);
  const parts = batches(have, plan, keys);
  expect(parts.map(({ grows, size }) => [grows, size])).toEqual([[true, services * 12]]);
  const patch = new Growth(have, plan).patch(keys);
  // The chain for ten endpoints, its rule, all slots, and the elements of two sets.
  expect(patch.map(({ kind }) => kind)).toEqual([
    "add chain",
    "add rules",
    "add slots",
    "add elements",
    "add elements",
  ]);
});

it("writes the Endpoints and elements of the Plan themselves, without copies", () => {
  const patch = new Growth(emptyPlan(plan.foundation), plan).patch(keys);
  const backends = patch
    .flatMap((each) => (each.kind === "add slots" ? each.spreads : []))
    .map((slots) => slots.backends);
  expect(backends.every((each, i) => each === ports[i]!.endpoints)).toBe(true);
  const items = patch.flatMap((each) => (each.kind === "add elements" ? each.items : []));
  const known = new Set<object>([...plan.fragments.values()].flatMap(({ elements }) => elements));
  expect(items.length).toBe(2 * services);
  expect(items.every((item) => known.has(item))).toBe(true);
});

it("adds what ServicePorts share once, in the first Patch that needs it", () => {
  const growth = new Growth(null, plan);
  const chains = [keys.slice(0, 500), keys.slice(500)].map((some) =>
    growth.patch(some).filter((each) => each.kind === "add chain" && each.chain.name === "pick/tcp/10"),
  );
  expect(chains.map(({ length }) => length)).toEqual([1, 0]);
});

it("is no growth where the host has one of the ServicePorts, or one of them goes", () => {
  const first = compile(null, routed(ports.slice(0, 1), ipv4Settings, null));
  expect(isGrowth(null, plan, keys)).toBe(true);
  expect(isGrowth({ ...first, foundation: plan.foundation }, plan, keys)).toBe(false);
  expect(isGrowth(null, first, keys)).toBe(false);
});

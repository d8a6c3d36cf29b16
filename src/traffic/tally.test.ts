// Sums of flows by Service and endpoint: right, and in memory that does not grow with the number of flows.
import { expect, it } from "vitest";
import { endpoint, routed, servicePort } from "../../test/support/routed.ts";
import { trackedView } from "../../test/support/tracked-flows.ts";
import type { Flow } from "../model/flow.ts";
import { nftablesBehavior } from "../modes/nftables/behavior.ts";
import { attributor } from "./attribute.ts";
import { FlowTally, openFlows } from "./tally.ts";
import { TopCounts } from "./top-counts.ts";

const routes = {
  ...routed([
    servicePort("shop/web", { endpoints: [endpoint("10.180.0.1:8080"), endpoint("10.0.2.1:8080")] }),
  ]),
  serviceCIDRs: ["172.30.0.0/16"],
};
const attribute = attributor(routes, nftablesBehavior, { conntrack: "shared" });

function tallied(flows: Iterable<readonly [string, Partial<Flow>?]>): FlowTally {
  const tally = new FlowTally();
  for (const [text, more] of flows) {
    const flow = trackedView(text, more);
    tally.add(flow, attribute(flow));
  }
  return tally;
}

const to = (place: string, client = "10.0.1.9:4000") => `tcp ${client} > 172.30.0.10:80 > ${place}`;

it("sums flows by phase, with what the kernel counted of them", () => {
  const counters = { original: { packets: 3, bytes: 300 }, reply: { packets: 2, bytes: 5000 } };
  const tally = tallied([
    [to("10.180.0.1:8080"), { counters }],
    [to("10.180.0.1:8080", "10.0.1.9:4001")],
    [to("10.180.0.1:8080", "10.0.1.9:4002"), { state: "SYN_SENT" }],
    [to("10.0.2.1:8080", "10.0.1.8:4003"), { state: "LAST_ACK" }],
    [to("10.0.2.1:8080", "10.0.1.9:4004"), { state: "TIME_WAIT" }],
    [to("10.0.2.9:8080", "10.0.1.9:4005")],
    ["tcp 10.0.1.9:4000 > 172.30.0.99:80 > 10.180.0.1:8080"],
    ["udp 10.0.1.9:4000 > 8.8.8.8:53", { status: 0x8 }],
  ]);
  const [web] = [...tally.ports];
  expect(web!.sums).toEqual({
    opening: 1,
    active: 3,
    closing: 1,
    closed: 1,
    packets: 5,
    bytes: 5300,
    uncounted: 5,
  });
  expect(openFlows(web!.sums)).toBe(5);
  expect(
    [...web!.endpoints].map(([name, { to: kind, nodeName, sums }]) => [
      name,
      kind,
      nodeName,
      openFlows(sums),
    ]),
  ).toEqual([
    ["10.180.0.1:8080", "endpoint", "node-a", 3],
    ["10.0.2.1:8080", "endpoint", "node-b", 1],
    ["10.0.2.9:8080", "gone", "", 1],
  ]);
  expect([openFlows(tally.all), openFlows(tally.deleted), openFlows(tally.other)]).toEqual([7, 1, 1]);
  expect(tally.other.opening).toBe(1);
  expect(Object.fromEntries(tally.states)).toEqual({
    "6 ESTABLISHED": 4,
    "6 SYN_SENT": 1,
    "6 LAST_ACK": 1,
    "6 TIME_WAIT": 1,
    "17": 1,
  });
  expect(tally.clients.top(2)).toEqual([
    { name: "10.0.1.9", count: 7, error: 0 },
    { name: "10.0.1.8", count: 1, error: 0 },
  ]);
});

it("keeps a limited number of removed endpoints and clients, and loses no flow", () => {
  function* flows(): Generator<[string]> {
    for (let n = 0; n < 30_000; n++)
      yield [to(`10.9.${n >> 8}.${n & 255}:80`, `10.1.${n >> 8}.${n & 255}:4000`)];
  }
  const tally = tallied(flows());
  const [web] = [...tally.ports];
  expect(web!.endpoints.size).toBe(10_001);
  expect(web!.endpoints.get("other removed endpoints")!.sums.active).toBe(20_000);
  expect(web!.sums.active).toBe(30_000);
  expect(tally.clients.isExact).toBe(false);
  expect(tally.clients.top(100_000)).toHaveLength(4096);
});

it("finds the most frequent names among many, whatever their order", () => {
  const counts = new TopCounts(64);
  const truth = new Map<string, number>();
  let state = 1;
  const random = () => (state = (state * 48_271) % 2_147_483_647);
  for (let i = 0; i < 50_000; i++) {
    const name = random() % 3 === 0 ? `often-${random() % 5}` : `rare-${random() % 10_000}`;
    truth.set(name, (truth.get(name) ?? 0) + 1);
    counts.add(name);
  }
  const top = counts.top(5);
  expect(top.map(({ name }) => name.replace(/\d/, "N"))).toEqual(Array(5).fill("often-N"));
  for (const { name, count, error } of top) {
    expect(count).toBeGreaterThanOrEqual(truth.get(name)!);
    expect(count - error).toBeLessThanOrEqual(truth.get(name)!);
  }
});

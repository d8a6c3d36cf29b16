// Whether a flow's endpoint would be chosen again: the reasons in words, and agreement with `decide` for every packet.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { endpoint, ipv4Settings, routed, servicePort } from "../../test/support/routed.ts";
import { trackedView } from "../../test/support/tracked-flows.ts";
import { type Endpoint, endpointKey, type ServicePort } from "../model/snapshot.ts";
import { iptablesBehavior } from "../modes/iptables/behavior.ts";
import { nftablesBehavior } from "../modes/nftables/behavior.ts";
import type { Behavior } from "../routing/behavior.ts";
import { decide } from "../routing/decide.ts";
import type { Routes } from "../routing/routes.ts";
import { attributor } from "./attribute.ts";
import { type Eligibility, eligibilityReader } from "./eligibility.ts";

const settings = { ...ipv4Settings, zone: "a" };

function eligibility(
  text: string,
  routes: Routes,
  behavior: Behavior = nftablesBehavior,
): Eligibility | null {
  const flow = trackedView(text);
  const found = attributor(routes, behavior, { conntrack: "shared" })(flow);
  if (found.kind !== "service" || found.to.kind !== "endpoint") return null;
  return eligibilityReader(routes, behavior)(flow, found, found.to.endpoint);
}

const [here, away] = [endpoint("10.180.0.1:8080"), endpoint("10.0.2.1:8080")];
const toAway = "tcp 10.0.1.9:4000 > 172.30.0.10:80 > 10.0.2.1:8080";
const fromOutside = (to: string) => `tcp 203.0.113.9:4000 > ${to} > 10.0.2.1:8080`;

describe("the endpoint of a flow", () => {
  const web = (more: Partial<ServicePort>) =>
    routed([servicePort("shop/web", { nodePort: 30_080, endpoints: [here, away], ...more })], settings);

  it("is eligible among all that may be chosen", () => {
    expect(eligibility(toAway, web({}))).toEqual({
      kind: "eligible",
      among: 2,
      because: "all ready endpoints",
    });
  });

  it.each<[string, string, Partial<ServicePort>, string, string]>([
    [
      "is not ready",
      toAway,
      { endpoints: [here, { ...away, state: "unready", serving: false }] },
      "not ready",
      "the endpoint is not ready and not serving while it terminates",
    ],
    [
      "drains while others are ready",
      toAway,
      { endpoints: [here, { ...away, state: "draining" }] },
      "draining",
      "the endpoint is terminating, and others are ready",
    ],
    [
      "is elsewhere, with internal policy Local",
      toAway,
      { internalPolicy: "local" },
      "policy",
      "internalTrafficPolicy Local: the endpoint is on node-b",
    ],
    [
      "is elsewhere, with external policy Local",
      fromOutside("192.168.0.2:30080"),
      { externalPolicy: "local" },
      "policy",
      "externalTrafficPolicy Local: the endpoint is on node-b",
    ],
    [
      "is elsewhere, and no endpoint is here",
      fromOutside("192.168.0.2:30080"),
      { externalPolicy: "local", endpoints: [away] },
      "policy",
      "externalTrafficPolicy Local: the endpoint is on node-b",
    ],
    [
      "is hinted for another zone",
      toAway,
      {
        endpoints: [
          { ...here, zoneHints: ["a"] },
          { ...away, zoneHints: ["b", "c"] },
        ],
      },
      "hints",
      "hinted for zones b, c; this node is in zone a",
    ],
    [
      "is hinted for another node",
      toAway,
      {
        endpoints: [
          { ...here, nodeHints: ["node-a"] },
          { ...away, nodeHints: ["node-b"] },
        ],
      },
      "hints",
      "hinted for node node-b; this node is node-a",
    ],
    [
      "has a client outside the source ranges",
      fromOutside("198.51.100.8:80"),
      { loadBalancerIPs: ["198.51.100.8"], sourceRanges: ["10.0.0.0/8"] },
      "source ranges",
      "203.0.113.9 is outside loadBalancerSourceRanges: a new connection would be dropped",
    ],
  ])("%s", (_, flow, more, reason, because) => {
    expect(eligibility(flow, web(more))).toEqual({ kind: "excluded", reason, because });
  });

  it("is eligible for this node in spite of external policy Local", () => {
    const routes = web({ externalPolicy: "local" });
    const flow = "tcp 192.168.0.2:4000 > 192.168.0.2:30080 > 10.0.2.1:8080";
    expect(eligibility(flow, routes)?.kind).toBe("eligible");
  });

  it("counts as eligible when interfaces identify pods and the client may be one", () => {
    const byInterface = { ...settings, detector: { kind: "interface" as const, name: "cni0" } };
    const port = servicePort("shop/web", {
      nodePort: 30_080,
      externalPolicy: "local",
      endpoints: [here, away],
    });
    const flow = fromOutside("192.168.0.2:30080");
    expect(eligibility(flow, routed([port], byInterface))?.kind).toBe("eligible");
    expect(eligibility(flow, routed([port], settings))?.kind).toBe("excluded");
  });

  it("is eligible exactly where decide() may choose it", () => {
    const clients = ["10.0.1.9", "192.168.0.2", "203.0.113.9"];
    const places = ["172.30.0.10:80", "198.51.100.7:80", "198.51.100.8:80", "192.168.0.2:30080"];
    let eligible = 0;
    fc.assert(
      fc.property(
        arbitraryPort,
        fc.constantFrom(...clients),
        fc.constantFrom(...places),
        fc.constantFrom(nftablesBehavior, iptablesBehavior),
        (port, client, place, behavior) => {
          const routes = routed([port], settings);
          const [address, number] = place.split(":") as [string, string];
          const packet = {
            from: { origin: "elsewhere" as const, address: client },
            to: { address, protocol: "tcp" as const, port: Number(number) },
          };
          const { outcome } = decide(routes, behavior, packet);
          const chosen =
            outcome.kind === "forward"
              ? new Set(outcome.choices.map((choice) => endpointKey(choice.endpoint)))
              : new Set();
          for (const each of port.endpoints) {
            const found = eligibility(
              `tcp ${client}:4000 > ${place} > ${endpointKey(each)}`,
              routes,
              behavior,
            );
            expect(found?.kind === "eligible").toBe(chosen.has(endpointKey(each)));
            if (found?.kind === "eligible") eligible++;
          }
        },
      ),
      { numRuns: 2000, seed: 7 },
    );
    expect(eligible).toBeGreaterThan(500);
  });
});

const arbitraryEndpoint: fc.Arbitrary<Endpoint> = fc.record({
  address: fc.constantFrom("10.180.0.1", "10.180.0.2", "10.0.2.1", "10.0.2.2"),
  port: fc.constant(8080),
  state: fc.constantFrom("ready", "ready", "draining", "unready"),
  serving: fc.boolean(),
  nodeName: fc.constantFrom("node-a", "node-b", ""),
  zoneHints: fc.constantFrom([], ["a"], ["b"], ["a", "b"]),
  nodeHints: fc.constantFrom([], [], ["node-a"], ["node-b"]),
});

const arbitraryPort: fc.Arbitrary<ServicePort> = fc
  .record({
    endpoints: fc.uniqueArray(arbitraryEndpoint, { selector: endpointKey, maxLength: 4 }),
    internalPolicy: fc.constantFrom("cluster", "local"),
    externalPolicy: fc.constantFrom("cluster", "local"),
    sourceRanges: fc.constantFrom([], ["10.0.0.0/8"], ["203.0.113.0/24", "192.168.0.0/24"]),
    externalIPs: fc.constantFrom([], ["198.51.100.7"], ["198.51.100.7", "198.51.100.8"]),
  })
  .map((more) => servicePort("shop/web", { nodePort: 30_080, loadBalancerIPs: ["198.51.100.8"], ...more }));
